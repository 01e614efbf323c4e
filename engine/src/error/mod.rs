//! Errors of the public interface: what calls return when they do not do what was asked.
mod end_reason;
pub(crate) mod tried;

pub use self::end_reason::DisconnectReason;
pub(crate) use self::tried::CHECK;
pub use self::tried::{AddressAttempt, AttemptOutcome};
use crate::port_range::PortRange;
pub use ayre_proto::fault::{Fault, Status};
pub use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use rustix::io::Errno;
use std::borrow::Cow;

/// Has `Debug` print what `Display` prints, after the rank of this process in its job: Rust prints
/// the error that `main` returns by `Debug`.
// spec: ERR-10
macro_rules! debug_is_display {
    ($($error:ty),+) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "{}{self}", $crate::process::whose())
            }
        })+
    };
}
pub(crate) use debug_is_display;

debug_is_display!(Busy, PostError, ReceiveError, SetupError);

/// There is no room right now. The call has had no effect; repeat it after progress.
// spec: POST-9
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Busy {
    /// The receiver has not taken earlier messages yet.
    #[error(
        "the receiver has not taken this port's earlier messages: make progress and send again"
    )]
    MessageLaneFull,
    /// The target has not taken earlier commands or notifications yet.
    #[error("the target has not taken this port's earlier operations: make progress and try again")]
    RequestLaneFull,
    /// This port's own notification queue has no room for the operation's notifications.
    #[error("the notification queue of this port is full: read it and try again")]
    NotificationsFull,
    /// The connection holds as many pending operations as it can.
    #[error("too many operations to this peer are pending: make progress and try again")]
    TooManyOutstanding,
    /// The consumer has not taken earlier records yet.
    #[error("the consumer has not taken this port's earlier records: try again later")]
    QueueFull,
    /// The endpoint has not answered this side's call yet.
    #[error("the remote has not answered the request to connect: make progress and try again")]
    Connecting,
    /// Another access holds the depot's lock, or its owner has frozen it.
    #[error("another access holds the depot's lock, or its owner has frozen it: try again")]
    DepotLocked,
    /// A messenger already keeps as much for its peers as its limit allows.
    #[error(
        "handlers' messages that wait for room fill the limit MessengerOptions::overflow: poll the \
         messenger and try again"
    )]
    OverflowFull,
    /// As many bytes wait for the peer on this channel as its limit allows.
    #[error(
        "messages that wait for this peer fill the limit ChannelOptions::room: poll the messenger \
         and try again"
    )]
    ChannelFull,
}

impl Busy {
    /// Each reason once, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::MessageLaneFull,
        Self::RequestLaneFull,
        Self::NotificationsFull,
        Self::TooManyOutstanding,
        Self::QueueFull,
        Self::Connecting,
        Self::DepotLocked,
        Self::OverflowFull,
        Self::ChannelFull,
    ];
}

const _: () = {
    let mut at = 0;
    while at < Busy::ALL.len() {
        assert!(Busy::ALL[at] as usize == at, "each once, in the order of the numbers");
        at += 1;
    }
};

/// The reason why an operation was not posted.
// spec: POST-1
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PostError {
    /// There is no room. Try again after progress.
    #[error("busy: {0}")]
    Busy(#[from] Busy),
    /// The operation can never succeed as asked.
    #[error("{0}")]
    Fault(#[from] Fault),
}

impl PostError {
    /// Whether the same call may succeed later.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy(_))
    }
}

/// The reason why nothing was received.
// spec: WAIT-2, MSG-8
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The next message or record is longer than the buffer: its length in bytes. It stays where it
    /// is.
    #[error(
        "the next message or record has {0} bytes: repeat the call with a buffer of that length"
    )]
    TooLong(usize),
    /// A wait ended because this peer has died. Each peer is reported once.
    #[error("peer {} died", .0.index())]
    PeerDied(PeerId),
    /// A wait ended because its time was over.
    #[error("nothing has come within the timeout of the call")]
    TimedOut,
}

/// The reason why two endpoints of different hosts cannot open links to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkMismatch {
    /// This program's Ayre has no links.
    #[error(
        "it is of another host, and this program's Ayre was built without the Cargo feature `net`"
    )]
    NoNet,
    /// One of the two can be reached from its own host only.
    #[error(
        "it is of another host, and one of the two is not open to others (AYRE_NET, FI_AYRE_NET)"
    )]
    NotOpen,
    /// One encrypts its links, the other one does not.
    #[error(
        "it has plain links to other hosts and this endpoint has encrypted ones, or the other way \
         round (AYRE_PROTECTION, FI_AYRE_PROTECTION)"
    )]
    Protection,
    /// The two have different keys.
    #[error(
        "it has another key for other hosts than this endpoint, or one of the two has none \
         (AYRE_KEY, FI_AYRE_KEY)"
    )]
    Key,
}

/// The reason why a port, connection or region could not be set up.
#[derive(thiserror::Error)]
pub enum SetupError {
    /// A system call failed.
    #[error("{call}: {errno}{}", advice(call, *errno))]
    Os {
        /// Its name.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// A peer handed over a file that it could still shrink, or that is shorter than it says.
    #[error(
        "the peer sent a memory file that is not sealed, or shorter than it says: it is faulty"
    )]
    UnsafeFile,
    /// A peer sent something that no correct peer sends.
    #[error("the peer sent what no peer of this version sends: {0}")]
    Protocol(&'static str),
    /// The peer refused the connection.
    #[error("{peer} refused the connection: {why}")]
    Refused {
        /// The peer: its rank, number, path or address.
        peer: String,
        /// The reason that it gave.
        why: Refusal,
    },
    /// This side refused the connection.
    #[error("no connection with {peer}: {why}")]
    Rejected {
        /// The peer: its rank, number, path or address.
        peer: String,
        /// The reason.
        why: Refusal,
    },
    /// The two sides speak different versions of the formats.
    #[error(
        "{peer} speaks version {theirs} of the formats, and this process version {ours}: \
         both need the same release"
    )]
    Version {
        /// The peer: its rank, number, path or address.
        peer: String,
        /// The peer's version.
        theirs: u64,
        /// This side's version.
        ours: u64,
    },
    /// Another process listens at the path, or the file there is no socket.
    #[error("{path} is in use: another process listens there, or the file there is no socket")]
    InUse {
        /// The path.
        path: String,
    },
    /// The peer has closed the connection or died.
    #[error("{peer} has left or died")]
    PeerLeft {
        /// The peer: its rank, number, path or address.
        peer: String,
    },
    /// The environment of the process, as its launcher or user has set it, lacks something or is
    /// wrong.
    #[error("{0}")]
    Environment(String),
    /// There is less memory than was to be made present.
    #[error(
        "{wanted} bytes of memory are wanted, and {left} are left to this process, by the limits \
         of its control groups (memory.max) and by what the machine has: raise those, or use less"
    )]
    Memory {
        /// Bytes of memory that were asked for.
        wanted: u64,
        /// Bytes of memory that this process can have.
        left: u64,
    },
    /// The system refuses memory files, and no other file can replace one.
    #[error(
        "memfd_create: {refused}{}; and no file of {len} bytes can be made in its place ({tried}): \
         make room there, or set TMPDIR to a folder that has some",
        advice("memfd_create", *refused)
    )]
    MemoryFile {
        /// The error of `memfd_create`.
        refused: Errno,
        /// The size of the file in bytes.
        len: usize,
        /// The folders that were tried, and the error of each.
        tried: String,
    },
    /// No link can be opened with an endpoint of another host.
    #[error("no link with {peer}: {why}")]
    NoLink {
        /// The peer.
        peer: String,
        /// The reason.
        why: LinkMismatch,
    },
    /// No port of UDP is left of those that the user has chosen.
    #[error(
        "all UDP ports {0} are taken: choose more of them by AYRE_PORTS=first-last \
         (FI_AYRE_PORTS of MPI programs, --ports of `ayre run`)"
    )]
    PortsTaken(PortRange),
    /// All slots of the translation table, or all numbers of peers, are taken.
    #[error("no free {0}")]
    Exhausted(Cow<'static, str>),
    /// The request contradicts itself or a stated limit.
    #[error("invalid: {0}")]
    Invalid(Cow<'static, str>),
    /// The operation names a key that is not valid.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// There is no peer of this number.
    #[error("there is no peer {}; there {there}", .number.index())]
    NoPeer {
        /// The number.
        number: PeerId,
        /// The numbers of the peers that there are, in words: `are 2, from 0 to 1`.
        there: String,
    },
    /// The time allowed for set-up is over.
    #[error("timed out waiting for {0}")]
    TimedOut(Cow<'static, str>),
}

/// The name of a peer of which only the number is known.
pub(crate) fn name_of(peer: PeerId) -> String {
    format!("peer {}", peer.index())
}

/// Advice about a system call that has failed.
pub(crate) fn advice(call: &str, errno: Errno) -> &'static str {
    match errno {
        Errno::MFILE => "; the process has as many descriptors as it may (raise `ulimit -n`)",
        Errno::NFILE => "; the machine has as many open files as it may (sysctl fs.file-max)",
        Errno::NOMEM | Errno::NOSPC if call.contains("huge") => {
            "; there are too few huge pages (sysctl vm.nr_hugepages); ordinary ones need none"
        }
        Errno::FBIG => {
            "; files of the process may not be that long, memory among them (`ulimit -f`)"
        }
        Errno::BADF => "; the program has closed descriptors that are not its own",
        Errno::NOMEM => "; memory is short (`ulimit -v`, the control group's memory.max)",
        Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::AFNOSUPPORT => {
            "; a sandbox may forbid the call (the seccomp profile of a container or a service)"
        }
        _ => "",
    }
}

/// The name for an expected peer that is not known.
pub(crate) const A_PEER: &str = "a peer";

/// The name for a peer that has none yet.
const THE_PEER: &str = "the peer";

impl SetupError {
    pub(crate) fn invalid(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(what.into())
    }

    pub(crate) fn exhausted(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Exhausted(what.into())
    }

    pub(crate) fn timed_out(waiting_for: impl Into<Cow<'static, str>>) -> Self {
        Self::TimedOut(waiting_for.into())
    }

    pub(crate) fn peer_left() -> Self {
        Self::PeerLeft { peer: THE_PEER.to_owned() }
    }

    /// An error: the peer has refused the connection.
    pub(crate) fn refused(why: Refusal) -> Self {
        Self::Refused { peer: THE_PEER.to_owned(), why }
    }

    /// An error: this side refuses the connection.
    pub(crate) fn rejected(why: Refusal) -> Self {
        Self::Rejected { peer: THE_PEER.to_owned(), why }
    }

    /// An error: the peer speaks another version of the formats.
    pub(crate) fn version(theirs: u64, ours: u64) -> Self {
        Self::Version { peer: THE_PEER.to_owned(), theirs, ours }
    }

    /// Adds the peer's name to an error.
    pub(crate) fn of(mut self, name: impl Into<String>) -> Self {
        if let Self::Refused { peer, .. }
        | Self::Rejected { peer, .. }
        | Self::Version { peer, .. }
        | Self::PeerLeft { peer } = &mut self
        {
            *peer = name.into();
        }
        self
    }

    /// Wraps the error of a system call.
    pub(crate) fn os(call: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::port::Port;
    use crate::port::config::Config;
    use crate::port::queue::Queue;
    use std::fmt::Debug;
    use std::time::Duration;

    fn said<T>(result: Result<T, impl Debug>) -> String {
        let Err(error) = result else { panic!("it is an error") };
        format!("{error:?}")
    }

    fn assert_says<T>(result: Result<T, impl Debug>, words: &[&str]) {
        let said = said(result);
        words.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in: {said}"));
    }

    // spec: ERR-10
    #[test]
    fn printed_errors_name_the_peer_the_duration_and_the_limit() {
        let config = Config::new().setup_timeout(Duration::from_millis(20));
        let (mut port, mut peer) = Port::pair(config.clone(), config.number(1)).unwrap();
        let region = peer.alloc(64, Default::default()).unwrap();
        peer.share(PeerId(0), &region, 0..64, ayre_proto::units::Rights::all(), 7).unwrap();
        assert_says(
            port.accept_region(PeerId(1), 8),
            &["region 8 of peer 1", "0.02 s", "it has shared 7"],
        );
        assert_says(port.accept_queue(PeerId(1), 8), &["queue 8", "shared no queue"]);
        assert_says(port.accept_region(PeerId(99), 8), &["no peer 99", "are 1, from 1 to 1"]);
        assert_says(port.send(PeerId(1), 0, &[0; 5000]), &["1024 bytes for a message"]);
        assert_says(port.send(PeerId(1), 0, b""), &["empty"]);
        assert_says(port.send(PeerId(99), 0, b"a"), &["no peer of this port"]);
        let most = Queue::CAPACITY_MAX;
        for bytes in [0, most + 1] {
            let limits = format!("{bytes} bytes; it has from 1 to {most}");
            assert_says(port.create_queue(bytes), &[&limits]);
        }
        assert_eq!(port.create_queue(most).unwrap().record_max(), most / 2);
        peer.leave().unwrap();
        assert_says(port.accept_region(PeerId(1), 8), &["peer 1 has left or died"]);
    }

    // spec: ERR-10
    #[test]
    fn a_failed_system_call_comes_with_advice() {
        for (call, errno, advice) in [
            ("memfd_create", Errno::PERM, "seccomp"),
            ("memfd_create", Errno::NOSYS, "seccomp"),
            ("epoll_create", Errno::MFILE, "`ulimit -n`"),
            ("mmap of huge pages", Errno::NOMEM, "vm.nr_hugepages"),
            ("ftruncate of shared memory", Errno::FBIG, "`ulimit -f`"),
            ("epoll_wait", Errno::BADF, "closed"),
        ] {
            assert_says(Err::<(), _>(SetupError::Os { call, errno }), &[call, advice]);
        }
    }

    // spec: ERR-10
    #[test]
    fn errors_on_the_way_of_data_stay_small() {
        assert_eq!((size_of::<PostError>(), size_of::<Fault>()), (2, 1));
        assert_eq!(size_of::<Result<(), PostError>>(), 2);
    }
}
