//! Addresses of sockets, as the program sees them: without the names that this library has given.
use crate::listener::{self, Place};
use crate::sys::{memory, real};
use libc::{c_int, sockaddr, socklen_t};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The length of an address without a name.
const UNNAMED: socklen_t = size_of::<libc::sa_family_t>() as socklen_t;

/// Bytes of the longest name.
const PATH: usize = size_of::<libc::sockaddr_un>() - UNNAMED as usize;

/// The address of a socket, as the kernel tells it.
pub(super) struct Name {
    at: libc::sockaddr_un,
    len: socklen_t,
}

impl Default for Name {
    fn default() -> Self {
        let at = libc::sockaddr_un { sun_family: 0, sun_path: [0; PATH] };
        Self { at, len: size_of::<libc::sockaddr_un>() as socklen_t }
    }
}

impl Name {
    /// Where the kernel writes the address.
    pub(super) fn at(&mut self) -> *mut sockaddr {
        (&raw mut self.at).cast()
    }

    /// Where the kernel writes the length.
    pub(super) fn len(&mut self) -> *mut socklen_t {
        &raw mut self.len
    }

    fn bytes(&self) -> &[u8] {
        let len = (self.len as usize).min(size_of_val(&self.at));
        // SAFETY: an address of this family is plain bytes, of which all are written.
        unsafe { std::slice::from_raw_parts((&raw const self.at).cast(), len) }
    }

    /// The address as that of a peer. None where the kernel has told none.
    pub(super) fn peer(&self) -> Option<Place> {
        // SAFETY: the kernel has written as many bytes.
        unsafe { place((&raw const self.at).cast(), self.bytes().len() as socklen_t) }
    }
}

/// The place that C points to, if it is one of TCP or of Unix sockets.
///
/// # Safety
/// `at` must point to `len` bytes.
pub(super) unsafe fn place(at: *const sockaddr, len: socklen_t) -> Option<Place> {
    let len = len as usize;
    if !memory::may_be(at) || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: the caller's; long enough for each family, as checked.
    match c_int::from(unsafe { (&raw const (*at).sa_family).read_unaligned() }) {
        libc::AF_UNIX => {
            let head = size_of::<libc::sa_family_t>();
            // SAFETY: as above.
            let name = unsafe {
                let start = at.cast::<u8>().add(head);
                std::slice::from_raw_parts(start, len.min(size_of::<libc::sockaddr_un>()) - head)
            };
            Place::unix(name)
        }
        libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr));
            Some(Place::Tcp((ip, u16::from_be(at.sin_port)).into()))
        }
        libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(at.sin6_addr.s6_addr).to_canonical();
            Some(Place::Tcp((ip, u16::from_be(at.sin6_port)).into()))
        }
        _ => None,
    }
}

/// A place that C has for an address, with the room that there is.
#[derive(Clone, Copy)]
pub(super) struct Room {
    at: *mut sockaddr,
    len: *mut socklen_t,
    most: socklen_t,
}

impl Room {
    /// None where the program wants no address, or there can be none.
    ///
    /// # Safety
    /// As getsockname.
    pub(super) unsafe fn new(at: *mut sockaddr, len: *mut socklen_t) -> Option<Self> {
        if !memory::may_be(at) || !memory::may_be(len) {
            return None;
        }
        // SAFETY: the caller's.
        let most = unsafe { *len };
        (most <= c_int::MAX as socklen_t).then_some(Self { at, len, most })
    }

    /// Tells the address of a peer, without a name of this library.
    ///
    /// # Safety
    /// As accept.
    pub(super) unsafe fn tell(self, name: &Name) {
        let told = name.bytes();
        let told = &told[..told.len().min(self.most as usize)];
        // SAFETY: the caller's: there is room for as many bytes.
        unsafe { self.at.cast::<u8>().copy_from_nonoverlapping(told.as_ptr(), told.len()) };
        // SAFETY: as above.
        unsafe { *self.len = name.len };
        // SAFETY: as above: the address was told.
        unsafe { self.conceal() };
    }

    /// Takes a name of this library out of what the kernel has told.
    ///
    /// # Safety
    /// As getsockname, which has succeeded.
    pub(super) unsafe fn conceal(self) {
        // SAFETY: the caller's: the kernel has written there, as far as there is room.
        let len = unsafe { &mut *self.len };
        let told = (*len).min(self.most) as usize;
        // SAFETY: as above.
        let told = unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), told) };
        if listener::is_shown(told, *len as usize) {
            *len = UNNAMED;
        }
    }

    /// Tells the address of the peer of a Unix socket, as a read does; no length without a name.
    ///
    /// # Safety
    /// As getpeername.
    pub(super) unsafe fn tell_peer(self, fd: c_int) {
        // SAFETY: the caller's, here and below.
        let done = unsafe { getpeername(fd, self.at, self.len) };
        // SAFETY: as above.
        let len = unsafe { &mut *self.len };
        if done != 0 || *len <= UNNAMED {
            *len = 0;
        }
    }
}

/// getsockname, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getsockname(
    fd: c_int,
    at: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let room = unsafe { Room::new(at, len) };
    // SAFETY: as above.
    let done = unsafe { real::getsockname(fd, at, len) };
    if let Some(room) = room.filter(|_| done == 0) {
        // SAFETY: as above.
        unsafe { room.conceal() };
    }
    done
}

/// getpeername, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpeername(
    fd: c_int,
    at: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let room = unsafe { Room::new(at, len) };
    // SAFETY: as above.
    let done = unsafe { real::getpeername(fd, at, len) };
    if let Some(room) = room.filter(|_| done == 0) {
        // SAFETY: as above.
        unsafe { room.conceal() };
    }
    done
}
