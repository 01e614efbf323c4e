//! The functions of the C library, behind ours in the order of libraries.
use libc::{c_char, c_int, c_long, c_uint, c_void, size_t, ssize_t};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library, which is found when it is first called.
pub(crate) struct Real {
    at: AtomicPtr<c_void>,
    name: &'static CStr,
}

impl Real {
    /// The function with this name, behind which there is a zero.
    pub(crate) const fn new(name: &'static str) -> Self {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Self { at: AtomicPtr::new(std::ptr::null_mut()), name },
            Err(_) => panic!("a zero ends a name"),
        }
    }

    /// Its address.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() { self.find() } else { at }
    }

    /// The process ends where the C library has no such function: nothing could be done in its
    /// place.
    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: dlsym only reads the name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        assert!(!found.is_null(), "the C library has {:?}", self.name);
        self.at.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! real {
    ($($name:ident($($arg:ident: $type:ty),* $(,)?) -> $returned:ty;)*) => { $(
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As that function's.
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "the C library's")]
        pub(crate) unsafe fn $name($($arg: $type),*) -> $returned {
            static REAL: Real = Real::new(concat!(stringify!($name), "\0"));
            type Call = unsafe extern "C" fn($($type),*) -> $returned;
            // SAFETY: the symbol of this name has this type.
            let call = unsafe { std::mem::transmute::<*mut c_void, Call>(REAL.get()) };
            // SAFETY: the caller's.
            unsafe { call($($arg),*) }
        }
    )* };
}

/// Functions that first do something, and then are the C library's own, with all arguments that
/// they were given. So functions may be among them whose number of arguments varies.
macro_rules! before {
    ($before:path: $($name:ident)*) => { $(
        #[doc = concat!(stringify!($name), ", as the C library has it.")]
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        #[allow(clippy::unnecessary_safety_comment, reason = "every unsafe attribute has one")]
        // SAFETY: the body keeps to the C library's way of calling: registers with arguments, the
        // stack and the return address are as before at its jump.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            extern "C" fn before() -> *const std::ffi::c_void {
                static REAL: $crate::sys::real::Real =
                    $crate::sys::real::Real::new(concat!(stringify!($name), "\0"));
                $before();
                REAL.get()
            }
            // Seven registers on the stack align it for a call.
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {before}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                before = sym before,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "bl {before}",
                "mov x16, x0",
                "ldp x6, x7, [sp, #64]", "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]", "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                before = sym before,
            );
        }
    )* };
}
pub(crate) use before;

real! {
    accept4(fd: c_int, at: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int) -> c_int;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    connect(fd: c_int, at: *const libc::sockaddr, len: libc::socklen_t) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    epoll_ctl(epfd: c_int, op: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int;
    epoll_pwait(
        epfd: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int,
        mask: *const libc::sigset_t,
    ) -> c_int;
    epoll_pwait2(
        epfd: c_int, events: *mut libc::epoll_event, most: c_int, timeout: *const libc::timespec,
        mask: *const libc::sigset_t,
    ) -> c_int;
    _exit(status: c_int) -> ();
    fork() -> libc::pid_t;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE;
    getpeername(fd: c_int, at: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int;
    getsockname(fd: c_int, at: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int;
    getsockopt(
        fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut libc::socklen_t,
    ) -> c_int;
    ioctl(fd: c_int, request: libc::c_ulong, argument: usize) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
    posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int) -> c_int;
    ppoll(
        fds: *mut libc::pollfd, count: libc::nfds_t, timeout: *const libc::timespec,
        mask: *const libc::sigset_t,
    ) -> c_int;
    pselect(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set,
        except: *mut libc::fd_set, timeout: *const libc::timespec, mask: *const libc::sigset_t,
    ) -> c_int;
    preadv2(
        fd: c_int, pieces: *const libc::iovec, count: c_int, offset: libc::off_t, flags: c_int,
    ) -> ssize_t;
    pwritev2(
        fd: c_int, pieces: *const libc::iovec, count: c_int, offset: libc::off_t, flags: c_int,
    ) -> ssize_t;
    read(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t;
    readv(fd: c_int, pieces: *const libc::iovec, count: c_int) -> ssize_t;
    recvfrom(
        fd: c_int, into: *mut c_void, len: size_t, flags: c_int, from: *mut libc::sockaddr,
        from_len: *mut libc::socklen_t,
    ) -> ssize_t;
    recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> ssize_t;
    recvmmsg(
        fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int,
        timeout: *mut libc::timespec,
    ) -> c_int;
    select(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set,
        except: *mut libc::fd_set, timeout: *mut libc::timeval,
    ) -> c_int;
    send(fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    sendfile(out: c_int, from: c_int, offset: *mut libc::off_t, len: size_t) -> ssize_t;
    sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int) -> c_int;
    sendto(
        fd: c_int, from: *const c_void, len: size_t, flags: c_int, to: *const libc::sockaddr,
        to_len: libc::socklen_t,
    ) -> ssize_t;
    setsockopt(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, len: libc::socklen_t,
    ) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    splice(
        from: c_int, from_at: *mut libc::loff_t, to: c_int, to_at: *mut libc::loff_t,
        len: size_t, flags: c_uint,
    ) -> ssize_t;
    syscall(
        number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
    ) -> c_long;
    write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t;
    writev(fd: c_int, pieces: *const libc::iovec, count: c_int) -> ssize_t;
}
