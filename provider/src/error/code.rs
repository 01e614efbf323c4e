//! Error codes as values.

use crate::abi::errno;
use rustix::io::Errno;
use std::ffi::c_int;

/// An error number of libfabric, positive; the calls return it negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

/// The result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

impl Code {
    /// The code of a refusal by the system. For a limit, of threads for example, the system says
    /// `EAGAIN`; but no repetition helps a program past that.
    // spec: ENV-43
    pub(crate) const fn of_system(error: Errno) -> Self {
        match error {
            Errno::AGAIN => Self(errno::ENOSPC),
            _ => Self(error.raw_os_error()),
        }
    }
}

/// Shorthand for the codes that are used most.
impl Code {
    pub(crate) const AGAIN: Self = Self(errno::EAGAIN);
    pub(crate) const INVALID: Self = Self(errno::EINVAL);
    pub(crate) const BUSY: Self = Self(errno::EBUSY);
    pub(crate) const NOT_SUPPORTED: Self = Self(errno::ENOSYS);
    pub(crate) const BAD_FLAGS: Self = Self(errno::EBADFLAGS);
    pub(crate) const NO_DATA: Self = Self(errno::ENODATA);
    pub(crate) const TOO_LONG: Self = Self(errno::EMSGSIZE);
}

/// The return value of a call without a result.
pub(crate) fn status(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(code) => -code.0,
    }
}

/// The return value of a call that counts.
pub(crate) fn counted(outcome: Outcome<usize>) -> isize {
    match outcome {
        Ok(count) => count as isize,
        Err(code) => -(code.0 as isize),
    }
}

/// The return value of a call that posts an operation.
#[inline(always)]
pub(crate) fn posted(call: impl FnOnce() -> Outcome) -> isize {
    match call() {
        Ok(()) => 0,
        Err(code) => -(code.0 as isize),
    }
}
