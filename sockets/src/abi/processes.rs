//! Forks, and other programs.
use crate::names;
use crate::sys::memory::{self, returned};
use crate::sys::real;
use crate::table;
use ayre::socket::Reason;
use libc::{c_int, c_void, pid_t};
use rustix::fd::{FromRawFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{chdir, setsid};

/// fork, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> pid_t {
    // SAFETY: the C library's contract.
    let child = unsafe { real::fork() };
    if child != 0 {
        memory::keeping_errno(|| names::forked(u32::try_from(child).ok()));
    }
    child
}

/// A child of vfork would change this library's tables in its parent's memory, so it has its own.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: a program that keeps to what vfork allows may fork, too.
    unsafe { fork() }
}

real::before! {
    names::before_exec: execl execle execlp execv execve execveat execvp execvpe fexecve
}

// The C library's own child executes the program of these.
real::before! { names::before_spawn: popen posix_spawn posix_spawnp system }

/// The C library's own ends the parent without a word to this library.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn daemon(keeps_folder: c_int, keeps_output: c_int) -> c_int {
    // SAFETY: the C library's contract.
    match unsafe { fork() } {
        -1 => -1,
        0 => returned(detach(keeps_folder != 0, keeps_output != 0).map(|()| 0)) as c_int,
        // SAFETY: as above.
        _ => unsafe { _exit(0) },
    }
}

fn detach(keeps_folder: bool, keeps_output: bool) -> Result<(), Errno> {
    setsid()?;
    if !keeps_folder {
        chdir("/")?;
    }
    if keeps_output {
        return Ok(());
    }
    let null = open("/dev/null", OFlags::RDWR, Mode::empty())?.into_raw_fd();
    for fd in 0..=2 {
        // SAFETY: the descriptors are the program's, which has asked for this.
        unsafe { super::names::dup2(null, fd) };
    }
    if null > 2 {
        // SAFETY: it was opened above.
        drop(unsafe { OwnedFd::from_raw_fd(null) });
    }
    Ok(())
}

/// The child is given a duplicate of a stream, which this library does not see.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    to: c_int,
) -> c_int {
    if let Some(stream) = table::stream(fd) {
        stream.leave(Reason::Passed);
    }
    // SAFETY: the C library's contract.
    unsafe { real::posix_spawn_file_actions_adddup2(actions, fd, to) }
}

/// _exit, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) -> ! {
    names::ending();
    // SAFETY: the C library's contract.
    unsafe { real::_exit(status) };
    unreachable!("the process has ended")
}

/// _Exit, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the two are the same function.
    unsafe { _exit(status) }
}
