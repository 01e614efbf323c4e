//! The executor of a connection's operations: the initiator's calls, or the target's engine.
//!
//! The two ports have agreed on the [`Mode`]. Each method here answers one question about the
//! executor, so that no other code asks which one it is.
use super::landing::Landing;
use crate::depot::expected::Expected;
use crate::error::Fault;
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::map::Mapping;
use crate::mem::word::Word;
use crate::peer::agreement::Cut;
use crate::settings::choice::Mode;
use crate::sync::{AtomicU64, Ordering};
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::node::initiator::{Ended, Initiator};
use ayre_proto::units::Key;
use std::sync::Arc;

/// The place for a get's data while no call waits for it.
#[derive(Debug)]
pub(crate) struct LocalMemory {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) offset: u64,
}

/// The pending operations of a mediated connection.
pub(crate) type Outgoing = Initiator<LocalMemory, Box<Expected>>;

/// The part of a connection that depends on its mode.
#[derive(Debug)]
pub(crate) enum Executor {
    Direct(DirectEnd),
    Mediated(Box<MediatedEnd>),
}

/// The direct mode: operations access the peer's memory, and notifications travel in the request
/// lanes.
#[derive(Debug)]
pub(crate) struct DirectEnd {
    pub(crate) notes_out: LaneSender,
    pub(crate) notes_in: LaneReceiver,
    pub(crate) landing: Landing,
}

/// The mediated mode: commands go out, answers come in.
#[derive(Debug)]
pub(crate) struct MediatedEnd {
    pub(crate) cut: Cut,
    pub(crate) responses: LaneReceiver,
    pub(crate) outgoing: Outgoing,
    /// The target's count of executed commands.
    pub(crate) done: Word,
    /// The target's count of notifications taken.
    pub(crate) notes_taken_there: Word,
    /// The number of notifications of the peer's commands that the program has taken. The responder
    /// relies on it, so it is not in memory that the peer can write.
    pub(crate) notes_taken: Arc<AtomicU64>,
}

impl Executor {
    pub(super) fn new(mode: Mode, cut: Cut, (out, inward): (&Direction, &Direction)) -> Self {
        let is_near = cut.whole.is_none();
        assert!(!is_near || cut.most <= RECORD_MAX, "there is memory for a record on its way");
        assert!(is_near || mode == Mode::Mediated, "another host's memory is not at hand");
        match mode {
            Mode::Direct => Self::Direct(DirectEnd {
                notes_out: out.requests().sender(),
                notes_in: inward.requests().receiver(),
                landing: Landing::default(),
            }),
            Mode::Mediated => Self::Mediated(Box::new(MediatedEnd {
                cut,
                responses: inward.responses().receiver(),
                outgoing: Outgoing::new(),
                done: out.control(Control::Done),
                notes_taken_there: out.control(Control::Noted),
                notes_taken: Arc::new(AtomicU64::new(0)),
            })),
        }
    }

    pub(super) const fn mode(&self) -> Mode {
        match self {
            Self::Direct(_) => Mode::Direct,
            Self::Mediated(_) => Mode::Mediated,
        }
    }

    /// Whether operations access the peer's memory.
    #[inline(always)]
    pub(super) const fn is_direct(&self) -> bool {
        matches!(self, Self::Direct(_))
    }

    /// The state of a direct connection, if it is one.
    #[inline(always)]
    pub(crate) const fn direct(&mut self) -> Option<&mut DirectEnd> {
        match self {
            Self::Direct(end) => Some(end),
            Self::Mediated(_) => None,
        }
    }

    /// The state of a mediated connection, if it is one.
    #[inline(always)]
    pub(super) fn mediated(&mut self) -> Option<&mut MediatedEnd> {
        match self {
            Self::Direct(_) => None,
            Self::Mediated(end) => Some(end),
        }
    }

    /// The number of commands that must have been executed before the record published now is
    /// valid; None where all posted operations have been performed.
    // spec: MSG-7, ORD-3
    #[inline(always)]
    pub(crate) fn commands_before(&self) -> Option<u64> {
        match self {
            Self::Direct(_) => None,
            Self::Mediated(end) => Some(end.outgoing.posted()),
        }
    }

    /// Whether all posted operations have completed.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Direct(_) => true,
            Self::Mediated(end) => end.outgoing.is_empty(),
        }
    }

    /// Whether there are answers to take in.
    #[inline(always)]
    pub(super) fn has_answers(&self) -> bool {
        match self {
            Self::Direct(_) => false,
            // Relaxed: only whether it has changed matters here.
            Self::Mediated(end) => {
                end.done.load(Ordering::Relaxed) != end.outgoing.done()
                    || end.responses.peek().is_some()
            }
        }
    }

    /// The next completed operation that was not reported yet.
    pub(super) fn pop(&mut self) -> Option<Ended> {
        self.mediated()?.outgoing.pop()
    }

    /// Completes a pending operation with a fault: the peer has gone.
    pub(super) fn abandon(&mut self, why: Fault) -> Option<Ended> {
        let outgoing = &mut self.mediated()?.outgoing;
        let ended = outgoing.abandon(why);
        debug_assert!(ended.is_some() || outgoing.is_empty(), "none is left out");
        ended
    }

    /// Whether the peer's lane here holds a notification.
    pub(super) fn has_notes(&self) -> bool {
        match self {
            Self::Direct(end) => end.notes_in.has_come(),
            Self::Mediated(_) => false,
        }
    }

    /// The count of notifications taken, which the responder of a mediated connection needs.
    pub(super) fn notes_taken(&self) -> Option<Arc<AtomicU64>> {
        match self {
            Self::Direct(_) => None,
            Self::Mediated(end) => Some(end.notes_taken.clone()),
        }
    }

    /// From now on, no reply over this inlet of ours is carried out.
    // spec: DEP-28
    pub(crate) fn revoke_replies(&mut self, key: Key) {
        let Some(end) = self.mediated() else { return };
        end.outgoing.replies_mut().for_each(|expected| expected.reply.revoke(key));
    }
}
