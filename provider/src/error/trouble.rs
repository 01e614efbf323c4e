//! Errors in words and as numbers. The words go to libfabric's log at *warn*, and `fi_cq_strerror`
//! and `fi_eq_strerror` return them. The number is of the kind of the reason.

use super::code::Code;
use crate::abi::{LOG_EP_CTRL, errno};
use crate::sys::core;
use ayre::error::{DisconnectReason, LinkMismatch, Refusal};
use ayre::{Fault, SetupError};
use ayre_guest::error::is_new;
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_int};
use std::sync::{Mutex, PoisonError};

/// Numbers of the provider from here on have words of their own; below, they are error numbers.
const FIRST: c_int = 1 << 24;

/// Words that are kept, for as long as the process lives: programs hold pointers to them.
const KEPT_MAX: usize = 4096;

static KEPT: Mutex<Vec<&'static CStr>> = Mutex::new(Vec::new());

/// Keeps words; the number by which [`words`] finds them. None where there are too many.
fn keep(text: &str) -> Option<c_int> {
    let text = CString::new(text).ok()?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = kept.iter().position(|known| **known == *text) {
        return Some(FIRST + at as c_int);
    }
    if kept.len() == KEPT_MAX {
        return None;
    }
    kept.push(Box::leak(text.into_boxed_c_str()));
    Some(FIRST + kept.len() as c_int - 1)
}

/// The meaning of a number of the provider.
pub(crate) fn words(number: c_int) -> String {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let at = usize::try_from(number - FIRST).ok();
    match at.and_then(|at| kept.get(at)) {
        Some(text) => text.to_string_lossy().into_owned(),
        None => usual(number).map_or_else(
            || format!("error {number} of the provider ayre"),
            |what| format!("ayre: {what}"),
        ),
    }
}

/// The words for an error, for callers that have no room for them.
pub(crate) fn lasting_words(number: c_int) -> &'static CStr {
    match keep(&words(number)) {
        Some(number) => {
            let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept[(number - FIRST) as usize]
        }
        None => c"an error of the provider ayre",
    }
}

/// The meaning of an error number in the failure of an operation.
fn usual(number: c_int) -> Option<&'static str> {
    Some(match number {
        errno::ENOTCONN => "the peer has left or died",
        errno::EIO => "the peer sent invalid records, or the operation is not valid",
        errno::EINVAL => "the peer is unknown, or the range exceeds its memory region",
        errno::ENOKEY => "the peer has registered no memory under this key, or has closed it",
        errno::EACCES => "the peer's memory region does not allow this access",
        errno::ENOMEM => "the peer has no memory for more unexpected messages (AYRE_MEMORY there)",
        errno::EMSGSIZE => {
            "the operation is longer than its limit (`fi_info -p ayre -v` shows the limits)"
        }
        errno::ETRUNC => "the message is longer than the memory of its receive",
        errno::ECANCELED => "the operation was cancelled",
        errno::EOVERRUN => "the queue was full, and completions were lost",
        _ => return None,
    })
}

impl From<Errno> for Code {
    fn from(error: Errno) -> Self {
        match error {
            // What to do about these is told where libfabric's log is.
            Errno::MFILE | Errno::NFILE => {
                of_setup("a descriptor", &SetupError::Os { call: "open", errno: error })
            }
            Errno::BADF => of_setup("fi_close", &SetupError::Os { call: "close", errno: error }),
            _ => Self::of_system(error),
        }
    }
}

/// Something could not be opened or found: told in the log, unless that was said before.
pub(crate) fn of_setup(what: &str, error: &SetupError) -> Code {
    let code = code_of_setup(error);
    if is_new(&format!("{what}: {error}")) {
        core::warn(LOG_EP_CTRL, format_args!("{what}: {error} (error {})", code.0));
    }
    code
}

fn code_of_setup(error: &SetupError) -> Code {
    Code(match error {
        SetupError::Os { errno, .. } | SetupError::MemoryFile { refused: errno, .. } => {
            return Code::of_system(*errno);
        }
        SetupError::Exhausted(_) => errno::ENOSPC,
        SetupError::Memory { .. } => errno::ENOMEM,
        SetupError::Environment(_) | SetupError::Invalid(_) => errno::EINVAL,
        SetupError::NoLink { why: LinkMismatch::NotOpen | LinkMismatch::NoNet, .. } => {
            errno::EHOSTUNREACH
        }
        SetupError::NoLink { .. } => errno::EKEYREJECTED,
        SetupError::PortsTaken(_) | SetupError::InUse { .. } => errno::EADDRINUSE,
        SetupError::TimedOut(_) => errno::ETIMEDOUT,
        SetupError::PeerLeft { .. } => errno::ENOTCONN,
        SetupError::Version { .. } => errno::EPROTONOSUPPORT,
        SetupError::Refused { why, .. } | SetupError::Rejected { why, .. } => return refusal(*why),
        _ => errno::EOTHER,
    })
}

/// The error number of a refusal.
fn refusal(why: Refusal) -> Code {
    Code(match why {
        Refusal::User(_) => errno::EACCES,
        Refusal::Version(_) => errno::EPROTONOSUPPORT,
        Refusal::Kind => errno::EPROTOTYPE,
        Refusal::Taken => errno::EADDRINUSE,
        Refusal::Full(_) => errno::EUSERS,
        Refusal::Protection => errno::EKEYREJECTED,
        Refusal::Resources(_) | Refusal::Memory => errno::EREMOTEIO,
        Refusal::PathMtu(_) => errno::EMSGSIZE,
        _ => errno::ECONNREFUSED,
    })
}

/// The error number of an endpoint's end.
pub(crate) fn of_reason(reason: &DisconnectReason) -> Code {
    Code(match reason {
        DisconnectReason::Refused(why) | DisconnectReason::Rejected(why) => return refusal(*why),
        DisconnectReason::Version { .. } => errno::EPROTONOSUPPORT,
        DisconnectReason::HungUp(_) => errno::ECONNREFUSED,
        DisconnectReason::Unanswered { .. }
        | DisconnectReason::Silent(_)
        | DisconnectReason::NoData(_) => errno::ETIMEDOUT,
        DisconnectReason::Restarted | DisconnectReason::Forgotten => errno::ECONNRESET,
        DisconnectReason::Os { errno, .. } => return Code::of_system(*errno),
        DisconnectReason::Other(_) => errno::EOTHER,
        _ => return of_fault(reason.fault()),
    })
}

/// The error number of a fault.
pub(crate) fn of_fault(fault: Fault) -> Code {
    match fault {
        Fault::PeerDead => Code(errno::ENOTCONN),
        Fault::Refused => Code(errno::ECONNREFUSED),
        Fault::PeerRestarted => Code(errno::ECONNRESET),
        Fault::Malformed => Code(errno::EIO),
        Fault::ForeignHandle | Fault::Bounds => Code::INVALID,
        Fault::UnknownKey | Fault::StaleKey => Code(errno::ENOKEY),
        Fault::Rights => Code(errno::EACCES),
        Fault::TooLong => Code::TOO_LONG,
        Fault::NoMemory => Code(errno::ENOMEM),
        _ => Code(errno::EOTHER),
    }
}

/// The number for `fi_cq_strerror` of what an endpoint's end was told with.
pub(crate) fn number_of(text: &str, code: Code) -> c_int {
    keep(text).unwrap_or(code.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn words_are_kept_once_and_numbers_below_have_the_usual_ones() {
        let one = keep("the peer at 10.0.0.1:7000: it has left").unwrap();
        assert_eq!(keep("the peer at 10.0.0.1:7000: it has left"), Some(one));
        assert_eq!(words(one), "the peer at 10.0.0.1:7000: it has left");
        assert_eq!(lasting_words(one).to_str().unwrap(), words(one));
        assert_eq!(
            words(errno::ETRUNC),
            "ayre: the message is longer than the memory of its receive"
        );
        assert_eq!(words(5000), "error 5000 of the provider ayre");
        assert_eq!(words(-1), "error -1 of the provider ayre");
    }

    #[test]
    fn each_kind_of_reason_has_its_error_number() {
        let silence = Duration::from_secs(12);
        for (reason, code) in [
            (DisconnectReason::Died, errno::ENOTCONN),
            (DisconnectReason::Left, errno::ENOTCONN),
            (DisconnectReason::Refused(Refusal::User(4001)), errno::EACCES),
            (DisconnectReason::Rejected(Refusal::Full(1024)), errno::EUSERS),
            (DisconnectReason::Version { theirs: 4, ours: 5 }, errno::EPROTONOSUPPORT),
            (DisconnectReason::Unanswered { waited: silence, tried: vec![] }, errno::ETIMEDOUT),
            (DisconnectReason::Silent(silence), errno::ETIMEDOUT),
            (DisconnectReason::NoData(silence), errno::ETIMEDOUT),
            (DisconnectReason::PortClosed, errno::ENOTCONN),
            (DisconnectReason::Forgotten, errno::ECONNRESET),
            (DisconnectReason::HungUp(silence), errno::ECONNREFUSED),
            (DisconnectReason::Os { call: "socket", errno: Errno::MFILE }, errno::EMFILE),
        ] {
            assert_eq!(of_reason(&reason), Code(code), "{reason:?}");
        }
        let no_link = |why| SetupError::NoLink { peer: "the endpoint at 10.0.0.1".into(), why };
        for (error, code) in [
            (SetupError::Os { call: "memfd_create", errno: Errno::PERM }, errno::EPERM),
            // A program would try again for ever.
            (SetupError::Os { call: "pthread_create", errno: Errno::AGAIN }, errno::ENOSPC),
            (SetupError::PortsTaken("7000-7001".parse().unwrap()), errno::EADDRINUSE),
            (no_link(LinkMismatch::NotOpen), errno::EHOSTUNREACH),
            (no_link(LinkMismatch::Protection), errno::EKEYREJECTED),
            (no_link(LinkMismatch::Key), errno::EKEYREJECTED),
        ] {
            assert_eq!(code_of_setup(&error), Code(code), "{error}");
        }
        let reason = DisconnectReason::Os { call: "pthread_create", errno: Errno::AGAIN };
        assert_eq!(of_reason(&reason), Code(errno::ENOSPC));
    }
}
