//! Calls of the C library by name, as any program makes them, with an error number for a failure.

use std::ffi::{CStr, c_int};

/// The result of a call: a number, or the error number.
pub(crate) type Outcome = Result<usize, i32>;

/// Calls a function of the C library, through the symbol that a preloaded library may define.
macro_rules! call {
    ($function:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: the pointers come from buffers and structures that live until the call returns,
        // and the lengths are theirs.
        #[allow(unused_unsafe)]
        let returned = unsafe { libc::$function($($argument),*) };
        $crate::common::call::outcome(returned as isize)
    }};
}

/// A structure of C whose bytes are all zero.
macro_rules! zeroed {
    ($type:ty) => {{
        // SAFETY: structures of C that the tests name are valid when all bytes are zero.
        unsafe { std::mem::zeroed::<$type>() }
    }};
}

/// The outcome that a returned number stands for.
pub(crate) fn outcome(returned: isize) -> Outcome {
    if returned >= 0 { Ok(returned as usize) } else { Err(errno()) }
}

/// The error number of the last failed call.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The name of an error number that sockets have.
pub(crate) fn error_name(number: i32) -> String {
    let names = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EBADF, "EBADF"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::EEXIST, "EEXIST"),
        (libc::EFAULT, "EFAULT"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::EINTR, "EINTR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EISCONN, "EISCONN"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOENT, "ENOENT"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ENOTSOCK, "ENOTSOCK"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EPERM, "EPERM"),
        (libc::EPIPE, "EPIPE"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
    ];
    let name = names.iter().find(|(n, _)| *n == number).map(|(_, name)| name.to_string());
    name.unwrap_or_else(|| format!("error {number}"))
}

/// An address of the loopback interface.
pub(crate) fn loopback(port: u16) -> libc::sockaddr_in {
    let mut address = zeroed!(libc::sockaddr_in);
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

pub(crate) const ADDRESS_LENGTH: libc::socklen_t = size_of::<libc::sockaddr_in>() as u32;

/// The kind of the sockets of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Tcp,
    /// Unix sockets with abstract names, in which there are ports.
    Unix,
}

/// The variable that says whether a process of a test uses Unix sockets.
pub(crate) const UNIX: &str = "AYRE_SOCKETS_TEST_UNIX";

/// The kind of the sockets of this process.
pub(crate) fn family() -> Family {
    if std::env::var_os(UNIX).is_some() { Family::Unix } else { Family::Tcp }
}

/// The name of a Unix socket with a port has this in front of its digits.
const NAME: &str = "ayre-test-";

fn has_library() -> bool {
    std::env::var_os("LD_PRELOAD").is_some()
}

/// An address as the kernel tells it, with its length.
struct Address {
    at: libc::sockaddr_un,
    length: libc::socklen_t,
}

impl Address {
    const HEAD: usize = size_of::<libc::sa_family_t>();

    /// The name of a Unix socket with a port.
    fn unix(port: u16) -> Self {
        let mut at = zeroed!(libc::sockaddr_un);
        at.sun_family = libc::AF_UNIX as u16;
        let name = format!("\0{NAME}{port:05}");
        for (place, byte) in at.sun_path.iter_mut().zip(name.bytes()) {
            *place = byte as std::ffi::c_char;
        }
        Self { at, length: (Self::HEAD + name.len()) as u32 }
    }

    /// The address of this end, or of the other one.
    fn of(fd: c_int, peer: bool) -> Result<Self, i32> {
        let mut at = zeroed!(libc::sockaddr_un);
        let mut length = size_of::<libc::sockaddr_un>() as u32;
        let place = (&raw mut at).cast();
        if peer {
            call!(getpeername(fd, place, &mut length))?;
        } else {
            call!(getsockname(fd, place, &mut length))?;
        }
        Ok(Self { at, length })
    }

    /// Its port; 0 for a Unix socket without a name, and `EINVAL` for another name.
    fn port(&self) -> Result<u16, i32> {
        if c_int::from(self.at.sun_family) != libc::AF_UNIX {
            return Ok(u16::from_be_bytes([0, 1].map(|i| self.at.sun_path[i] as u8)));
        }
        let name = self.at.sun_path.iter().map(|byte| *byte as u8);
        let name: Vec<u8> = name.take((self.length as usize).saturating_sub(Self::HEAD)).collect();
        let digits = std::str::from_utf8(&name).ok().and_then(|name| name.strip_prefix('\0'));
        match digits.and_then(|name| name.strip_prefix(NAME)?.parse().ok()) {
            Some(port) => Ok(port),
            None if name.is_empty() => Ok(0),
            // A program without the library sees what the other one has named its socket.
            None if !has_library() && name.starts_with(b"\0ayre-sockets/from/") => Ok(0),
            None => Err(libc::EINVAL),
        }
    }
}

/// The port of this end, or of the other one.
pub(crate) fn port_of(fd: c_int, peer: bool) -> Result<u16, i32> {
    Address::of(fd, peer)?.port()
}

/// The kind of a socket.
pub(crate) fn family_of(fd: c_int) -> Result<Family, i32> {
    let domain = option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)?;
    Ok(if domain == libc::AF_UNIX { Family::Unix } else { Family::Tcp })
}

/// A socket of a kind, with the flags given.
pub(crate) fn socket(family: Family, flags: c_int) -> Result<c_int, i32> {
    let domain = if family == Family::Unix { libc::AF_UNIX } else { libc::AF_INET };
    Ok(call!(socket(domain, libc::SOCK_STREAM | flags, 0))? as c_int)
}

/// A listener at a port that was free, and the port.
pub(crate) fn listener(family: Family, flags: c_int) -> Result<(c_int, u16), i32> {
    let fd = socket(family, flags)?;
    Ok((fd, listen_at(fd, 0)?))
}

/// Gives a Unix socket the first free name from that of a port on.
fn bind_near(fd: c_int, port: u16) -> Outcome {
    let Address { at, length } = Address::unix(port);
    match call!(bind(fd, (&raw const at).cast(), length)) {
        Err(libc::EADDRINUSE) => bind_near(fd, port.wrapping_add(61).max(1)),
        bound => bound,
    }
}

/// Has a socket listen at a port, or at one that is free; the port.
pub(crate) fn listen_at(fd: c_int, port: u16) -> Result<u16, i32> {
    let address = loopback(port);
    match family_of(fd)? {
        Family::Tcp => call!(bind(fd, (&raw const address).cast(), ADDRESS_LENGTH))?,
        Family::Unix if port == 0 => bind_near(fd, (std::process::id() as u16).max(1))?,
        Family::Unix => bind_near(fd, port)?,
    };
    call!(listen(fd, 64))?;
    port_of(fd, false)
}

pub(crate) fn connect_to(fd: c_int, port: u16) -> Outcome {
    if family_of(fd)? == Family::Unix {
        let Address { at, length } = Address::unix(port);
        return call!(connect(fd, (&raw const at).cast(), length));
    }
    let address = loopback(port);
    call!(connect(fd, (&raw const address).cast(), ADDRESS_LENGTH))
}

pub(crate) fn read(fd: c_int, into: &mut [u8]) -> Outcome {
    call!(read(fd, into.as_mut_ptr().cast(), into.len()))
}

pub(crate) fn write(fd: c_int, bytes: &[u8]) -> Outcome {
    call!(write(fd, bytes.as_ptr().cast(), bytes.len()))
}

pub(crate) fn recv(fd: c_int, into: &mut [u8], flags: c_int) -> Outcome {
    call!(recv(fd, into.as_mut_ptr().cast(), into.len(), flags))
}

pub(crate) fn send(fd: c_int, bytes: &[u8], flags: c_int) -> Outcome {
    call!(send(fd, bytes.as_ptr().cast(), bytes.len(), flags))
}

pub(crate) fn close(fd: c_int) -> Outcome {
    call!(close(fd))
}

/// The events that `poll` reports for one descriptor, within a number of milliseconds.
pub(crate) fn poll(fd: c_int, events: i16, milliseconds: c_int) -> Result<i16, i32> {
    let mut asked = libc::pollfd { fd, events, revents: 0 };
    call!(poll(&mut asked, 1, milliseconds))?;
    Ok(asked.revents)
}

/// Waits until a descriptor has bytes, by `select`, or by `pselect` where there is a mask.
pub(crate) fn select(fd: c_int, seconds: i64, mask: Option<&libc::sigset_t>) -> Outcome {
    let mut read = zeroed!(libc::fd_set);
    // SAFETY: the set is a live value, and programs of the tests have few descriptors.
    unsafe { libc::FD_SET(fd, &mut read) };
    let none = std::ptr::null_mut();
    match mask {
        None => {
            let mut time = libc::timeval { tv_sec: seconds, tv_usec: 0 };
            call!(select(fd + 1, &mut read, none, none, &mut time))
        }
        Some(mask) => {
            let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
            call!(pselect(fd + 1, &mut read, none, none, &time, mask))
        }
    }
}

/// A set of signals.
pub(crate) fn signals(numbers: &[c_int]) -> libc::sigset_t {
    let mut set = zeroed!(libc::sigset_t);
    for number in numbers {
        call!(sigaddset(&mut set, *number)).expect("a signal");
    }
    set
}

/// Switches `O_NONBLOCK` on or off, and says whether it was on.
pub(crate) fn set_nonblocking(fd: c_int, on: bool) -> Result<bool, i32> {
    let flags = call!(fcntl(fd, libc::F_GETFL))? as c_int;
    let wanted = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
    call!(fcntl(fd, libc::F_SETFL, wanted))?;
    Ok(flags & libc::O_NONBLOCK != 0)
}

pub(crate) fn is_nonblocking(fd: c_int) -> bool {
    call!(fcntl(fd, libc::F_GETFL)).is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}

/// Sets an option to any plain structure of C.
pub(crate) fn set_option<T>(fd: c_int, level: c_int, name: c_int, value: &T) -> Outcome {
    call!(setsockopt(fd, level, name, (&raw const *value).cast(), size_of::<T>() as u32))
}

/// An option whose value is a number.
pub(crate) fn option(fd: c_int, level: c_int, name: c_int) -> Result<c_int, i32> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    call!(getsockopt(fd, level, name, (&raw mut value).cast(), &mut length))?;
    Ok(value)
}

/// The number that an `ioctl` tells.
pub(crate) fn ioctl_number(fd: c_int, request: libc::Ioctl) -> Result<c_int, i32> {
    let mut value: c_int = 0;
    call!(ioctl(fd, request, &raw mut value))?;
    Ok(value)
}

/// How long a read may wait; none for ever.
pub(crate) fn set_receive_timeout(fd: c_int, milliseconds: i64) -> Outcome {
    let time = libc::timeval { tv_sec: milliseconds / 1000, tv_usec: milliseconds % 1000 * 1000 };
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)
}

/// Two connected Unix sockets.
pub(crate) fn socket_pair() -> Result<[c_int; 2], i32> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    call!(socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
    Ok(ends)
}

/// Runs a command by `popen`, and reads its output to the end. The status of `pclose`.
pub(crate) fn popen_to_end(command: &CStr) -> Result<c_int, i32> {
    // SAFETY: both are strings of C; the stream is used only where there is one, until pclose.
    unsafe {
        let stream = libc::popen(command.as_ptr(), c"r".as_ptr());
        if stream.is_null() {
            return Err(errno());
        }
        while libc::fgetc(stream) != libc::EOF {}
        Ok(libc::pclose(stream))
    }
}

/// From now on, these system calls and new sockets of one family fail with `EPERM`.
pub(crate) fn forbid(numbers: &[libc::c_long], family: c_int) {
    let (load, equal, end) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let step = |code: u32, k: u32, jf| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let fail = step(end, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0);
    // The number is the first word of what the filter sees; the first argument is at 16.
    let mut steps = vec![step(load, 0, 0)];
    for number in numbers {
        steps.extend([step(equal, *number as u32, 1), fail]);
    }
    steps.extend([step(equal, libc::SYS_socket as u32, 3), step(load, 16, 0)]);
    steps.extend([step(equal, family as u32, 1), fail, step(end, libc::SECCOMP_RET_ALLOW, 0)]);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    call!(prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)).expect("no new rights");
    let mode = libc::SECCOMP_MODE_FILTER;
    call!(prctl(libc::PR_SET_SECCOMP, mode, &raw const program)).expect("the filter is set");
}

pub(crate) fn pipe() -> Result<[c_int; 2], i32> {
    let mut ends = [0; 2];
    call!(pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
    Ok(ends)
}

/// Makes a call in another thread, and a second one in this thread as soon as that sleeps.
/// Returns the outcomes of both.
pub(crate) fn when_asleep(
    sleeps: impl FnOnce() -> Outcome + Send + 'static,
    then: impl FnOnce() -> Outcome,
) -> (Outcome, Outcome) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let number = call!(syscall(libc::SYS_gettid)).expect("a thread has a number");
        sender.send(number).expect("the other thread hears");
        sleeps()
    });
    let number = receiver.recv().expect("the thread begins");
    let state = || {
        let text = std::fs::read_to_string(format!("/proc/self/task/{number}/syscall"));
        text.unwrap_or_default()
    };
    // A thread that runs has no system call to tell of.
    while !SLEEPS.iter().any(|call| state().split(' ').next() == Some(&call.to_string())) {
        std::thread::yield_now();
    }
    let then = then();
    (thread.join().expect("the thread ends well"), then)
}

/// Calls in which a read sleeps, by TCP or by the library.
const SLEEPS: [libc::c_long; 3] = [libc::SYS_read, libc::SYS_poll, libc::SYS_ppoll];

/// The process ends at once, as by `_exit`.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// The number of a new child; 0 in the child.
pub(crate) fn fork() -> Result<c_int, i32> {
    Ok(call!(fork())? as c_int)
}

/// The code with which a child ended; 128 and the signal's number where a signal ended it.
pub(crate) fn wait_for(child: c_int) -> Result<c_int, i32> {
    let mut status = 0;
    while let Err(error) = call!(waitpid(child, &mut status, 0)) {
        if error != libc::EINTR {
            return Err(error);
        }
    }
    let ended = libc::WIFEXITED(status);
    Ok(if ended { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Sends a descriptor over a Unix socket.
pub(crate) fn pass(over: c_int, fd: c_int) -> Outcome {
    let mut byte = [b'd'];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0u64; 4];
    let mut message = zeroed!(libc::msghdr);
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 24;
    // SAFETY: the control buffer is aligned, and has room for one header and one descriptor.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(fd);
    }
    call!(sendmsg(over, &message, 0))
}

/// Takes the descriptor that `pass` sent.
pub(crate) fn take(over: c_int) -> Result<c_int, i32> {
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0u64; 4];
    let mut message = zeroed!(libc::msghdr);
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    call!(recvmsg(over, &mut message, 0))?;
    // SAFETY: the kernel wrote the control buffer, whose header is checked before its descriptor.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(libc::EBADMSG);
        }
        Ok(libc::CMSG_DATA(header).cast::<c_int>().read_unaligned())
    }
}
