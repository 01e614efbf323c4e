//! Programs that run under ptrace(2), by which their instructions or system calls are counted.

use super::call;
use std::ffi::{c_int, c_uint};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A call of ptrace(2).
pub(crate) fn trace(request: c_uint, process: c_int, number: usize, at: usize) -> call::Outcome {
    call!(ptrace(request, process, number, at))
}

/// Has the program of a command be traced by the process that starts it.
pub(crate) fn be_traced(command: &mut Command) {
    let be_traced = || match trace(libc::PTRACE_TRACEME, 0, 0, 0) {
        Ok(_) => Ok(()),
        Err(error) => Err(std::io::Error::from_raw_os_error(error)),
    };
    // SAFETY: the function makes one system call.
    unsafe { command.pre_exec(be_traced) };
}

/// In a stop's signal: the process begins or ends a system call.
pub(crate) const IS_CALL: c_int = libc::SIGTRAP | 0x80;

/// Lets a traced process go on by requests of this kind, until it ends well. `at_stop` is told the
/// signal of each stop, and tells the next request and the signal that the process gets.
pub(crate) fn follow(
    child: &mut Child,
    mut request: c_uint,
    mut at_stop: impl FnMut(c_int) -> (c_uint, c_int),
) {
    let process = child.id() as c_int;
    let mut status = 0;
    assert_eq!(call!(waitpid(process, &mut status, 0)), Ok(process as usize));
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    trace(libc::PTRACE_SETOPTIONS, process, 0, options as usize).expect("it is traced");
    let mut signal = 0;
    loop {
        trace(request, process, 0, signal as usize).expect("it goes on");
        assert_eq!(call!(waitpid(process, &mut status, 0)), Ok(process as usize));
        if !libc::WIFSTOPPED(status) {
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
            // It was waited for above.
            let _ = child.wait();
            return;
        }
        (request, signal) = at_stop(libc::WSTOPSIG(status));
    }
}
