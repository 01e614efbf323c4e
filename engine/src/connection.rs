//! One end of a connection: the lanes, the peer's page, and what is under way.
use crate::bell::ring_own;
use crate::control::{self, Channel};
use crate::deposit::Expected;
use crate::error::{Fault, SetupError};
use crate::job::processors::Processors;
use crate::mem::fence::Fencing;
use crate::mem::inject::Process;
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::mem::page::{PeerPage, Sleeper};
use crate::mem::word::Word;
use crate::notification::Landing;
use crate::sync::{AtomicU64, Ordering, StaticCounter};
use crate::sys::credentials;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::notify::Notification;
use ayre_proto::pending::Pending;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Key, PeerId};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Who performs operations on the target's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The initiator's processor, in memory that the target has handed over: for processes that
    /// trust each other not to break the protocol.
    #[default]
    Direct,
    /// The target's engine, on commands it checks: for processes that do not.
    Mediated,
}

/// What both the port and the engine that serves it need of a peer.
#[derive(Debug)]
pub(crate) struct Link {
    /// Closes when the peer dies.
    pub(crate) control: Channel,
    pub(crate) page: PeerPage,
    /// The bell of this port's own engine, for a loopback and for a peer of another host. It is
    /// rung in place of the channel.
    pub(crate) bell: Option<Arc<OwnedFd>>,
    pub(crate) fencing: Fencing,
}

impl Link {
    /// After publishing: wakes the peer if it sleeps. An awake peer costs one cached load.
    // spec: WAIT-3, WAIT-4
    #[inline(always)]
    pub(crate) fn kick(&self, sleeper: Sleeper) {
        self.fencing.light();
        if self.page.is_asleep(sleeper) {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        match &self.bell {
            Some(bell) => ring_own(bell.as_fd()),
            None => self.control.ring(),
        }
    }
}

/// Where an answer goes while no call is waiting for it.
#[derive(Debug)]
pub(crate) enum Sink {
    /// A get's data.
    Memory { mapping: Arc<Mapping>, offset: u64, shape: Shape },
    /// What a deposit message has read.
    Reply(Box<Expected>),
    /// The reply was carried out; what is to be raised for it.
    Replied(Option<Notification>),
}

/// The part of a connection that depends on who performs operations.
#[derive(Debug)]
pub(crate) enum Executor {
    Direct(DirectEnd),
    Mediated(Box<MediatedEnd>),
}

/// Notifications travel in the request lanes; memory is the peer's own.
#[derive(Debug)]
pub(crate) struct DirectEnd {
    pub(crate) notes_out: LaneSender,
    pub(crate) notes_in: LaneReceiver,
    pub(crate) landing: Landing,
}

/// Commands out, answers in.
#[derive(Debug)]
pub(crate) struct MediatedEnd {
    pub(crate) cut: Cut,
    pub(crate) requests: Requests,
    pub(crate) responses: LaneReceiver,
    pub(crate) pending: Pending,
    pub(crate) sinks: Vec<Option<Sink>>,
    /// The target's count of executed commands.
    pub(crate) done: Word,
    /// The target's count of notifications taken.
    pub(crate) notes_taken_there: Word,
    /// Commands that raise a notification at the target, posted in all.
    pub(crate) noted: u64,
    /// Notifications of the peer's commands that the program has taken; the responder counts on it,
    /// so it is not in memory that the peer can write.
    pub(crate) notes_taken: Arc<AtomicU64>,
}

/// How long the records are that transfers are cut into, in bytes, heads included.
#[derive(Debug)]
pub(crate) struct Cut {
    /// The longest.
    pub(crate) most: usize,
    /// The longest that goes whole by the paths of a link, which its frames tell.
    pub(crate) whole: Option<Arc<AtomicU64>>,
}

impl Cut {
    /// The longest record that is worth posting.
    // spec: MTU-1
    pub(crate) fn worth(&self) -> usize {
        // Relaxed: what is longer goes in pieces.
        self.whole.as_ref().map_or(self.most, |whole| whole.load(Ordering::Relaxed) as usize)
    }
}

/// Where commands go.
#[derive(Debug)]
pub(crate) enum Requests {
    /// To a lane that the target's engine reads.
    Lane(LaneSender),
    /// To the frames of a link.
    Wire,
}

/// One end of a connection.
// spec: MSG-5, MSG-6, LIFE-13
#[derive(Debug)]
pub(crate) struct Connection {
    /// Tells this connection's handles from those of any other, earlier ones of the peer included.
    pub(crate) identity: u64,
    pub(crate) peer: PeerId,
    /// Whether the peer is on another host.
    is_carried: bool,
    pub(crate) link: Arc<Link>,
    pub(crate) messages_out: LaneSender,
    pub(crate) messages_in: LaneReceiver,
    pub(crate) executor: Executor,
    /// The peer's commands that our responder has executed, on a mediated connection.
    pub(crate) served: Word,
    /// Shows the peer which of its keys we are using, on a direct connection.
    pub(crate) active: Word,
    /// From us to the peer.
    pub(crate) out: Direction,
    /// From the peer to us.
    pub(crate) inward: Direction,
    /// Operations posted on a direct connection.
    pub(crate) posted: u64,
    /// First fault since the last flush.
    pub(crate) fault: Option<Fault>,
    /// The peer has said that it leaves.
    pub(crate) left: bool,
    /// Why nothing goes out any more.
    pub(crate) ended: Option<Fault>,
    /// Capabilities that the peer has handed over and the program has not accepted yet.
    pub(crate) offers: Vec<control::Packet>,
}

/// What tells an endpoint from all others; nobody can guess it.
pub(crate) type Name = [u64; 2];

/// A number that no other port or connection of this process has.
pub(crate) fn identity() -> u64 {
    static NEXT: StaticCounter = StaticCounter::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What set-up has agreed on.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) peer: PeerId,
    pub(crate) mode: Mode,
    pub(crate) link: Arc<Link>,
    pub(crate) out: Direction,
    pub(crate) inward: Direction,
    pub(crate) cut: Cut,
}

impl Agreement {
    /// With a peer of this host.
    pub(crate) fn here(
        peer: PeerId,
        (mode, link): (Mode, Arc<Link>),
        (out, inward): (Direction, Direction),
    ) -> Self {
        let cut = Cut { most: RECORD_MAX, whole: None };
        Self { peer, mode, link, out, inward, cut }
    }
}

impl Connection {
    /// No reply over this inlet of ours is carried out any more.
    // spec: DEP-28
    pub(crate) fn revoke_replies(&mut self, key: Key) {
        let Executor::Mediated(end) = &mut self.executor else { return };
        for sink in end.sinks.iter_mut().flatten() {
            if let Sink::Reply(expected) = sink {
                expected.revoke(key);
            }
        }
    }

    pub(crate) fn new(agreed: Agreement) -> Self {
        let Agreement { peer, mode, link, out, inward, cut } = agreed;
        let is_carried = link.control.socket().is_none();
        let executor = match mode {
            Mode::Direct => Executor::Direct(DirectEnd {
                notes_out: out.requests().sender(),
                notes_in: inward.requests().receiver(),
                landing: Landing::default(),
            }),
            Mode::Mediated => Executor::Mediated(Box::new(MediatedEnd {
                cut,
                requests: match is_carried {
                    false => Requests::Lane(out.requests().sender()),
                    true => Requests::Wire,
                },
                responses: inward.responses().receiver(),
                pending: Pending::new(),
                sinks: Vec::new(),
                done: out.control(Control::Done),
                notes_taken_there: out.control(Control::Noted),
                noted: 0,
                notes_taken: Arc::new(AtomicU64::new(0)),
            })),
        };
        Self {
            identity: identity(),
            peer,
            is_carried,
            messages_out: out.messages().sender(),
            messages_in: inward.messages().receiver(),
            executor,
            link,
            served: inward.control(Control::Done),
            active: out.control(Control::Active),
            out,
            inward,
            posted: 0,
            fault: None,
            left: false,
            ended: None,
            offers: Vec::new(),
        }
    }

    /// What the responder needs of a mediated connection besides its lanes.
    pub(crate) fn notes_taken(&self) -> Option<Arc<AtomicU64>> {
        match &self.executor {
            Executor::Mediated(end) => Some(end.notes_taken.clone()),
            Executor::Direct(_) => None,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.executor {
            Executor::Direct(_) => Mode::Direct,
            Executor::Mediated(_) => Mode::Mediated,
        }
    }

    /// The process of the peer, whose memory the kernel may let us read; none of a loopback, of one
    /// on another host, and of one that could not stop us in any case.
    pub(crate) fn process(&self) -> Option<Process> {
        let credentials = credentials::of_peer(self.control().socket()?).ok()?;
        Process::of_equal(credentials, self.control().life())
    }

    /// The processors that a peer of this host may run on, if its process is seen from here.
    pub(crate) fn processors(&self) -> Option<Processors> {
        let process = credentials::of_peer(self.control().socket()?).ok()?.pid;
        (process != 0).then(|| Processors::of_process(process)).flatten()
    }

    /// Whether operations can go straight to the peer's memory.
    #[inline(always)]
    pub(crate) fn is_open_direct(&self) -> bool {
        self.ended.is_none() && matches!(self.executor, Executor::Direct(_))
    }

    pub(crate) fn control(&self) -> &Channel {
        &self.link.control
    }

    /// Whether the peer is on another host.
    pub(crate) fn is_carried(&self) -> bool {
        self.is_carried
    }

    /// Whether the peer, on a direct connection, is inside an operation with a key of `slot`.
    pub(crate) fn peer_is_using(&self, slot: u16) -> bool {
        // REV-A1: once the word has changed, the operation's stores are visible (REV-R1).
        self.inward.control(Control::Active).load(Ordering::Acquire) == active_word(slot)
    }
}

/// What an initiator shows while it uses a key.
#[inline]
pub(crate) fn active_word(slot: u16) -> u64 {
    u64::from(slot) + 1
}

/// Lane sizes of a mode, between ports that are no endpoints.
pub(crate) fn lane_sizes(mode: Mode) -> LaneSizes {
    match mode {
        Mode::Direct => LaneSizes::DIRECT,
        Mode::Mediated => LaneSizes::MEDIATED,
    }
}

/// Checks sizes that a peer proposes.
// spec: ERR-7
pub(crate) fn checked_sizes(
    paired: u64,
    (response, ring): (u64, u64),
    mode: Mode,
) -> Result<LaneSizes, SetupError> {
    let sizes = [paired, response, ring].map(u32::try_from);
    let [Ok(paired), Ok(response), Ok(ring)] = sizes else {
        return Err(SetupError::Protocol("lane sizes"));
    };
    let sizes = LaneSizes { paired, response, ring };
    let complete = sizes.valid() && (mode == Mode::Direct || sizes.response > 0);
    if complete { Ok(sizes) } else { Err(SetupError::Protocol("lane sizes")) }
}
