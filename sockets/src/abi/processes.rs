//! Forks, and other programs.
use crate::names;
use crate::sys::{memory, real};
use crate::table;
use libc::{c_char, c_int, c_void, pid_t};

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

/// execve, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    names::before_exec();
    // SAFETY: the C library's contract.
    let failed = unsafe { real::execve(path, arguments, environment) };
    memory::keeping_errno(names::not_executed);
    failed
}

#[allow(clippy::unnecessary_safety_comment, reason = "every unsafe block has one")]
// SAFETY: the C library's variable, of this type.
unsafe extern "C" {
    static environ: *const *const c_char;
}

/// execv, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execv(
    path: *const c_char,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the C library's contract.
    unsafe { execve(path, arguments, environ) }
}

/// execvp, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execvp(
    file: *const c_char,
    arguments: *const *const c_char,
) -> c_int {
    names::before_exec();
    // SAFETY: the C library's contract.
    let failed = unsafe { real::execvp(file, arguments) };
    memory::keeping_errno(names::not_executed);
    failed
}

/// execvpe, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execvpe(
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    names::before_exec();
    // SAFETY: the C library's contract.
    let failed = unsafe { real::execvpe(file, arguments, environment) };
    memory::keeping_errno(names::not_executed);
    failed
}

/// posix_spawn, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    names::leave_inherited();
    // SAFETY: the C library's contract.
    unsafe { real::posix_spawn(child, path, actions, attributes, arguments, environment) }
}

/// posix_spawnp, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    names::leave_inherited();
    // SAFETY: the C library's contract.
    unsafe { real::posix_spawnp(child, file, actions, attributes, arguments, environment) }
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
        stream.leave();
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
