//! Error codes, and the text of the last error of each thread.
use ayre::collective::{CallMismatch, GroupError};
use ayre::memory::Ticket;
use ayre::multicast::MulticastError;
use ayre::stream::{EntryAnswer, FailureReason, PushError, StreamError, StreamFailure};
use ayre::{Busy, Fault, PeerId, PostError, ReceiveError, SetupError};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All went well.
pub const AYRE_OK: c_int = 0;

/// Busy: the receiver has not taken this port's earlier messages. Make progress and try again, as
/// after each code from here to `AYRE_BUSY_LAST`.
pub const AYRE_BUSY_MESSAGES: c_int = -1;
/// Busy: the target has not taken this port's earlier operations.
pub const AYRE_BUSY_REQUESTS: c_int = -2;
/// Busy: the notification queue of this port is full. Read it.
pub const AYRE_BUSY_NOTIFICATIONS: c_int = -3;
/// Busy: too many operations on this peer are pending.
pub const AYRE_BUSY_OUTSTANDING: c_int = -4;
/// Busy: the consumer has not taken this port's earlier records.
pub const AYRE_BUSY_QUEUE: c_int = -5;
/// Busy: the other endpoint has not answered the request to connect.
pub const AYRE_BUSY_CONNECTING: c_int = -6;
/// Busy: another access holds the depot's lock, or its owner has frozen it.
pub const AYRE_BUSY_DEPOT: c_int = -7;
/// Busy: messages of handlers that wait for room fill the messenger's limit.
pub const AYRE_BUSY_OVERFLOW: c_int = -8;
/// Busy: messages that wait for the peer fill the channel's limit.
pub const AYRE_BUSY_CHANNEL: c_int = -9;
/// Busy: too many messages to a group wait for their place in the order.
pub const AYRE_BUSY_MULTICAST: c_int = -10;
/// Busy: the stream has no room, because a later stage is slow.
pub const AYRE_BUSY_STREAM: c_int = -11;
/// The last code of those that say busy.
pub const AYRE_BUSY_LAST: c_int = AYRE_BUSY_STREAM;

/// Fault: no such key at the target. A fault is final: the call never succeeds as it is.
pub const AYRE_FAULT_UNKNOWN_KEY: c_int = -33;
/// Fault: the key was revoked.
pub const AYRE_FAULT_STALE_KEY: c_int = -34;
/// Fault: the capability lacks the right that the operation needs.
pub const AYRE_FAULT_RIGHTS: c_int = -35;
/// Fault: the range leaves the capability's range.
pub const AYRE_FAULT_BOUNDS: c_int = -36;
/// Fault: the address is not a multiple of the width.
pub const AYRE_FAULT_ALIGNMENT: c_int = -37;
/// Fault: the peer has left or died.
pub const AYRE_FAULT_PEER_DEAD: c_int = -38;
/// Fault: it is empty or contradicts itself, or the peer sent invalid records.
pub const AYRE_FAULT_MALFORMED: c_int = -39;
/// Fault: the message or record is longer than its limit.
pub const AYRE_FAULT_TOO_LONG: c_int = -40;
/// Fault: no peer of this port, or a handle of another port.
pub const AYRE_FAULT_FOREIGN_HANDLE: c_int = -41;
/// Fault: the peer was started anew.
pub const AYRE_FAULT_PEER_RESTARTED: c_int = -42;
/// Fault: the inlet has stopped at an earlier message.
pub const AYRE_FAULT_STOPPED: c_int = -43;
/// Fault: the inlet has stopped at this message.
pub const AYRE_FAULT_HELD: c_int = -44;
/// Fault: the message asks for the program of the depot's owner.
pub const AYRE_FAULT_EXCEPTION: c_int = -45;
/// Fault: the connection was refused.
pub const AYRE_FAULT_REFUSED: c_int = -46;
/// Fault: there is no memory for more unexpected messages.
pub const AYRE_FAULT_NO_MEMORY: c_int = -48;
/// Fault: the program has interrupted the call. No function for C returns it.
pub const AYRE_FAULT_INTERRUPTED: c_int = -49;

/// The next message or record is longer than the buffer. It stays where it is.
pub const AYRE_TOO_LONG: c_int = -64;
/// A wait has ended with the death of a peer. Each peer is reported once.
pub const AYRE_PEER_DIED: c_int = -65;
/// The time of a call is over.
pub const AYRE_TIMED_OUT: c_int = -66;

/// A system call has failed: `ayre_errno` has its number.
pub const AYRE_SYSTEM: c_int = -80;
/// A peer sent what no correct peer sends.
pub const AYRE_PROTOCOL: c_int = -81;
/// The peer has refused the connection, or refuses as the member of a group.
pub const AYRE_REFUSED: c_int = -82;
/// This side has refused the connection.
pub const AYRE_REJECTED: c_int = -83;
/// The two sides speak different versions.
pub const AYRE_VERSION_DIFFERS: c_int = -84;
/// Another process listens at the path.
pub const AYRE_IN_USE: c_int = -85;
/// The peer has left or died during set-up.
pub const AYRE_PEER_LEFT: c_int = -86;
/// The environment of the process lacks something, or a variable is wrong.
pub const AYRE_ENVIRONMENT: c_int = -87;
/// There is too little memory.
pub const AYRE_NO_MEMORY: c_int = -88;
/// No link can be opened with the endpoint of another host.
pub const AYRE_NO_LINK: c_int = -89;
/// All UDP ports that may be used are taken.
pub const AYRE_PORTS_TAKEN: c_int = -90;
/// A table is full.
pub const AYRE_EXHAUSTED: c_int = -91;
/// The call contradicts itself or a stated limit.
pub const AYRE_INVALID: c_int = -92;
/// There is no peer of this number.
pub const AYRE_NO_PEER: c_int = -93;

/// Members of a group call different collectives: `ayre_error_mismatch` has the difference.
pub const AYRE_MISMATCH: c_int = -96;
/// Another member has given the group up. Its own error says why.
pub const AYRE_GIVEN_UP: c_int = -97;

/// The port is no member of the group, or is leaving it.
pub const AYRE_NO_MEMBER: c_int = -98;
/// A member is not connected with this port, or the door has died or is no peer.
pub const AYRE_UNREACHABLE: c_int = -99;
/// The door has gone: the message may have been delivered, or not.
pub const AYRE_UNKNOWN_OUTCOME: c_int = -100;

/// The stream has failed: a stage has returned another number than 0, or has panicked. With this
/// and the next ones, `ayre_error_peer` is the port where it failed.
pub const AYRE_STREAM_STAGE_FAILED: c_int = -101;
/// The stream has failed: there is no stage of this name.
pub const AYRE_STREAM_UNKNOWN_STAGE: c_int = -102;
/// The stream has failed: no entry says where an item goes, or where the stream goes on.
pub const AYRE_STREAM_NOWHERE: c_int = -103;
/// The stream has failed: the next stream is fed already.
pub const AYRE_STREAM_TAKEN: c_int = -104;
/// The stream has failed: there is no room for it.
pub const AYRE_STREAM_FULL: c_int = -105;
/// The stream has failed: the next port is not connected.
pub const AYRE_STREAM_UNREACHABLE: c_int = -106;
/// The stream has failed: a port has died.
pub const AYRE_STREAM_PEER_DIED: c_int = -107;
/// The stream has failed: its source has given it up.
pub const AYRE_STREAM_CANCELLED: c_int = -108;

/// A handle is NULL, was closed, or is of another kind.
pub const AYRE_BAD_HANDLE: c_int = -112;
/// A handle is in use: by another thread, or by the call that has called this function.
pub const AYRE_HANDLE_IN_USE: c_int = -113;
/// The library has found a fault of its own. The port may be unusable.
pub const AYRE_INTERNAL: c_int = -114;

/// A port refuses to change its directory of entries: only the port itself, or the one that has set
/// the entry, may do this. `ayre_error_peer` names the port.
pub const AYRE_ENTRY_DENIED: c_int = -117;
/// It refuses: there is no room for an entry.
pub const AYRE_ENTRY_FULL: c_int = -118;
/// It refuses: the destination of the entry is fed already, or the entry is in use.
pub const AYRE_ENTRY_TAKEN: c_int = -119;
/// It refuses: there is no such entry.
pub const AYRE_ENTRY_UNKNOWN: c_int = -120;

/// The end of a call that did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    Post(PostError),
    Receive(ReceiveError),
    Setup(SetupError),
    Group(Box<GroupError>),
    Multicast(MulticastError),
    Stream(StreamError),
    /// A stream has no room.
    StreamBusy,
    /// A handle of this kind was expected.
    Handle(&'static str),
    InUse(&'static str),
    /// An argument is wrong.
    Argument(&'static str),
    Panic(String),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        Self::Post(error)
    }
}

impl From<Busy> for Failure {
    fn from(busy: Busy) -> Self {
        Self::Post(busy.into())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Post(fault.into())
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Self {
        Self::Receive(error)
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        Self::Group(Box::new(error))
    }
}

impl From<MulticastError> for Failure {
    fn from(error: MulticastError) -> Self {
        Self::Multicast(error)
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Busy => Self::StreamBusy,
            PushError::Ended(error) => error.into(),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Fault(fault) => fault.into(),
            error => Self::Setup(error),
        }
    }
}

/// The code of a fault.
pub(crate) fn fault(fault: Fault) -> c_int {
    AYRE_FAULT_UNKNOWN_KEY + 1 - c_int::from(fault.code())
}

/// The code of a reason for busy.
pub(crate) fn busy(busy: Busy) -> c_int {
    match busy {
        Busy::MessageLaneFull => AYRE_BUSY_MESSAGES,
        Busy::RequestLaneFull => AYRE_BUSY_REQUESTS,
        Busy::NotificationsFull => AYRE_BUSY_NOTIFICATIONS,
        Busy::TooManyOutstanding => AYRE_BUSY_OUTSTANDING,
        Busy::QueueFull => AYRE_BUSY_QUEUE,
        Busy::Connecting => AYRE_BUSY_CONNECTING,
        Busy::DepotLocked => AYRE_BUSY_DEPOT,
        Busy::OverflowFull => AYRE_BUSY_OVERFLOW,
        Busy::ChannelFull => AYRE_BUSY_CHANNEL,
    }
}

/// The reason for busy of a code.
pub(crate) fn busy_of(code: c_int) -> Option<Busy> {
    Busy::ALL.into_iter().find(|why| busy(*why) == code)
}

/// The fault of a code.
pub(crate) fn fault_of(code: c_int) -> Option<Fault> {
    FAULTS.map(Fault::from_code).find(|why| fault(*why) == code)
}

/// The codes that faults have where they travel.
pub(crate) const FAULTS: std::ops::RangeInclusive<u8> = 1..=17;

impl Failure {
    fn code(&self) -> c_int {
        match self {
            Self::Post(PostError::Busy(why)) => busy(*why),
            Self::Post(PostError::Fault(why)) => fault(*why),
            Self::Receive(ReceiveError::TooLong(_)) => AYRE_TOO_LONG,
            Self::Receive(ReceiveError::PeerDied(_)) => AYRE_PEER_DIED,
            Self::Receive(ReceiveError::TimedOut) => AYRE_TIMED_OUT,
            Self::Setup(error) => setup(error),
            Self::Group(error) => group(error),
            Self::Multicast(error) => multicast(error),
            Self::Stream(error) => stream(error),
            Self::StreamBusy => AYRE_BUSY_STREAM,
            Self::Handle(_) => AYRE_BAD_HANDLE,
            Self::InUse(_) => AYRE_HANDLE_IN_USE,
            Self::Argument(_) => AYRE_INVALID,
            Self::Panic(_) => AYRE_INTERNAL,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Post(error) => error.to_string(),
            Self::Receive(error) => error.to_string(),
            Self::Setup(error) => error.to_string(),
            Self::Group(error) => error.to_string(),
            Self::Multicast(error) => error.to_string(),
            Self::Stream(error) => error.to_string(),
            Self::StreamBusy => PushError::Busy.to_string(),
            Self::Handle(name) => {
                format!("no {name}: the handle is NULL, was closed, or is of another kind")
            }
            Self::InUse(name) => format!(
                "the {name} is in use: one thread at a time calls a port, and a function that one \
                 of its calls has called does not"
            ),
            Self::Argument(what) => format!("invalid: {what}"),
            Self::Panic(what) => format!("a fault of the library, please report it: {what}"),
        }
    }

    fn peer(&self) -> Option<PeerId> {
        match self {
            Self::Receive(ReceiveError::PeerDied(peer)) => Some(*peer),
            Self::Group(error) => match **error {
                GroupError::PeerDied(peer)
                | GroupError::GivenUp(peer)
                | GroupError::Mismatch { peer, .. } => Some(peer),
                GroupError::Interrupted | GroupError::Invalid(_) => None,
            },
            Self::Multicast(
                MulticastError::Refused(peer)
                | MulticastError::Unreachable(peer)
                | MulticastError::Unknown(peer),
            ) => Some(*peer),
            Self::Stream(StreamError::Failed(StreamFailure { at: peer, .. }))
            | Self::Stream(StreamError::Refused(peer, _)) => Some(*peer),
            _ => None,
        }
    }

    fn errno(&self) -> c_int {
        match self {
            Self::Setup(
                SetupError::Os { errno, .. } | SetupError::MemoryFile { refused: errno, .. },
            ) => errno.raw_os_error(),
            _ => 0,
        }
    }
}

fn setup(error: &SetupError) -> c_int {
    match error {
        SetupError::Os { .. } => AYRE_SYSTEM,
        SetupError::UnsafeFile | SetupError::Protocol(_) => AYRE_PROTOCOL,
        SetupError::Refused { .. } => AYRE_REFUSED,
        SetupError::Rejected { .. } => AYRE_REJECTED,
        SetupError::Version { .. } => AYRE_VERSION_DIFFERS,
        SetupError::InUse { .. } => AYRE_IN_USE,
        SetupError::PeerLeft { .. } => AYRE_PEER_LEFT,
        SetupError::Environment(_) => AYRE_ENVIRONMENT,
        SetupError::Memory { .. } | SetupError::MemoryFile { .. } => AYRE_NO_MEMORY,
        SetupError::NoLink { .. } => AYRE_NO_LINK,
        SetupError::PortsTaken(_) => AYRE_PORTS_TAKEN,
        SetupError::Exhausted(_) => AYRE_EXHAUSTED,
        SetupError::Invalid(_) => AYRE_INVALID,
        SetupError::Fault(why) => fault(*why),
        SetupError::NoPeer { .. } => AYRE_NO_PEER,
        SetupError::TimedOut(_) => AYRE_TIMED_OUT,
    }
}

fn group(error: &GroupError) -> c_int {
    match error {
        GroupError::PeerDied(_) => AYRE_PEER_DIED,
        GroupError::Mismatch { .. } => AYRE_MISMATCH,
        GroupError::GivenUp(_) => AYRE_GIVEN_UP,
        GroupError::Interrupted => AYRE_FAULT_INTERRUPTED,
        GroupError::Invalid(_) => AYRE_INVALID,
    }
}

fn multicast(error: &MulticastError) -> c_int {
    match error {
        MulticastError::Busy => AYRE_BUSY_MULTICAST,
        MulticastError::NoMember => AYRE_NO_MEMBER,
        MulticastError::Refused(_) => AYRE_REFUSED,
        MulticastError::Unreachable(_) => AYRE_UNREACHABLE,
        MulticastError::Unknown(_) => AYRE_UNKNOWN_OUTCOME,
        MulticastError::TooLong => fault(Fault::TooLong),
        MulticastError::Interrupted => AYRE_FAULT_INTERRUPTED,
        // What a later version adds, too.
        _ => AYRE_INVALID,
    }
}

fn stream(error: &StreamError) -> c_int {
    match error {
        StreamError::Failed(failure) => stream_failure(failure.why),
        StreamError::Refused(_, answer) => AYRE_ENTRY_DENIED + 1 - *answer as c_int,
        StreamError::TooLong => fault(Fault::TooLong),
        StreamError::Interrupted => AYRE_FAULT_INTERRUPTED,
    }
}

/// The code of a reason why a stream has failed.
pub(crate) fn stream_failure(why: FailureReason) -> c_int {
    AYRE_STREAM_STAGE_FAILED + FailureReason::Panicked as c_int - why as c_int
}

const _: () = assert!(
    AYRE_STREAM_STAGE_FAILED - AYRE_STREAM_CANCELLED
        == FailureReason::Cancelled as c_int - FailureReason::Panicked as c_int
);
const _: () = assert!(AYRE_ENTRY_DENIED - AYRE_ENTRY_UNKNOWN == EntryAnswer::Unknown as c_int - 1);

/// The last error of a thread. Its text is made when somebody asks for it: a program that is told
/// that there is no room tries again at once.
#[derive(Debug)]
struct Last {
    failure: Option<Failure>,
    text: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last { failure: None, text: None }) };
}

/// The result of a call that may fail.
pub(crate) fn status(call: impl FnOnce() -> Outcome<()>) -> c_int {
    match run(call) {
        Ok(()) => AYRE_OK,
        Err(code) => code,
    }
}

/// The result of a call that counts, or that says whether something is so.
pub(crate) fn number<N: Into<i64>>(call: impl FnOnce() -> Outcome<N>) -> i64 {
    match run(call) {
        Ok(number) => number.into(),
        Err(code) => code.into(),
    }
}

/// Whether something is so.
pub(crate) fn flag(call: impl FnOnce() -> Outcome<bool>) -> c_int {
    match run(call) {
        Ok(is_so) => is_so.into(),
        Err(code) => code,
    }
}

/// How many, or which number.
pub(crate) fn count(call: impl FnOnce() -> Outcome<usize>) -> c_int {
    match run(call) {
        Ok(count) => c_int::try_from(count).unwrap_or(c_int::MAX),
        Err(code) => code,
    }
}

/// The ticket of an operation that was posted.
pub(crate) fn posted(call: impl FnOnce() -> Outcome<Ticket>) -> i64 {
    number(|| call().map(|ticket| ticket.0 as i64))
}

/// The peer that a call has found.
pub(crate) fn peer(call: impl FnOnce() -> Outcome<PeerId>) -> c_int {
    match run(call) {
        Ok(peer) => peer.0.into(),
        Err(code) => code,
    }
}

/// Whether a call has taken something. The two errors that a receiver has to know more about tell
/// it by `also`: a length, or the peer that has died.
pub(crate) fn taken(
    call: impl FnOnce() -> Outcome<bool>,
    also: impl FnOnce(Result<usize, PeerId>),
) -> c_int {
    let result = catch(call);
    match &result {
        Err(Failure::Receive(ReceiveError::TooLong(len))) => also(Ok(*len)),
        Err(Failure::Receive(ReceiveError::PeerDied(peer))) => also(Err(*peer)),
        _ => {}
    }
    match result {
        Ok(is_taken) => is_taken.into(),
        Err(failure) => note(failure),
    }
}

/// Tries the shortest way of a call. Nothing where that takes more steps: then the call is made as
/// the others are. No panic crosses the border to C.
#[inline(always)]
pub(crate) fn quickly<T: From<c_int>>(call: impl FnOnce() -> Option<T>) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done,
        Err(panic) => Some(note(panicked(&*panic)).into()),
    }
}

/// No panic crosses the border to C.
fn run<T>(call: impl FnOnce() -> Outcome<T>) -> Result<T, c_int> {
    catch(call).map_err(note)
}

fn catch<T>(call: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::Panic(text.unwrap_or_default())
}

#[cold]
fn note(failure: Failure) -> c_int {
    let code = failure.code();
    let _ = LAST.try_with(|last| last.borrow_mut().failure = Some(failure));
    code
}

/// The last error of this thread, if members of a group have called different collectives.
pub(crate) fn mismatch() -> Option<(PeerId, CallMismatch)> {
    let found = LAST.try_with(|last| match &last.borrow().failure {
        Some(Failure::Group(error)) => match **error {
            GroupError::Mismatch { peer, difference } => Some((peer, difference)),
            _ => None,
        },
        _ => None,
    });
    found.ok().flatten()
}

/// The text of the last error of this thread, with what it was about. It is valid until the next
/// call of this function by the thread. Empty if no call has failed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_detail() -> *const c_char {
    let text = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let text = last.failure.as_ref().map(Failure::text).unwrap_or_default();
        // A name in it may have a zero byte.
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        last.text.insert(text).as_ptr()
    });
    // A thread that ends has no text any more.
    text.unwrap_or(c"".as_ptr())
}

/// The number of the system's error behind the last `AYRE_SYSTEM` or `AYRE_NO_MEMORY` of this
/// thread, as in `errno`; 0 if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_errno() -> c_int {
    let errno = LAST.try_with(|last| last.borrow().failure.as_ref().map_or(0, Failure::errno));
    errno.unwrap_or(0)
}

/// The peer of the last error of this thread: that has died, has refused, or does something else.
/// -1 if the error names none.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_error_peer() -> c_int {
    let peer = LAST.try_with(|last| last.borrow().failure.as_ref().and_then(Failure::peer));
    peer.ok().flatten().map_or(-1, |peer| peer.0.into())
}
