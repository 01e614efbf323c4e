//! The functions of the C library, behind ours in the order of libraries.
use libc::{c_char, c_int, c_long, c_uint, c_void, size_t, ssize_t};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Finds a function once. The process ends where the C library has no such function: nothing could
/// be done in its place.
fn find(at: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    // SAFETY: dlsym only reads the name.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has {name:?}");
    at.store(found, Ordering::Relaxed);
    found
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
            static AT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let mut at = AT.load(Ordering::Relaxed);
            if at.is_null() {
                const NAME: &CStr =
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zero"),
                    };
                at = find(&AT, NAME);
            }
            type Call = unsafe extern "C" fn($($type),*) -> $returned;
            // SAFETY: the symbol of this name has this type.
            let call = unsafe { std::mem::transmute::<*mut c_void, Call>(at) };
            // SAFETY: the caller's.
            unsafe { call($($arg),*) }
        }
    )* };
}

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
    execvp(file: *const c_char, arguments: *const *const c_char) -> c_int;
    execvpe(
        file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char,
    ) -> c_int;
fork() -> libc::pid_t;
        execve(
        path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char,
    ) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE;
    getsockopt(
        fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut libc::socklen_t,
    ) -> c_int;
    ioctl(fd: c_int, request: libc::c_ulong, argument: usize) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
    posix_spawn(
        child: *mut libc::pid_t, path: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int) -> c_int;
    posix_spawnp(
        child: *mut libc::pid_t, file: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    ppoll(
        fds: *mut libc::pollfd, count: libc::nfds_t, timeout: *const libc::timespec,
        mask: *const libc::sigset_t,
    ) -> c_int;
    pselect(
        count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set,
        except: *mut libc::fd_set, timeout: *const libc::timespec, mask: *const libc::sigset_t,
    ) -> c_int;
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
