//! An endpoint that this one knows, and how the two stand.
use super::address::Address;
use super::ahead::Ahead;
use super::numbers::RemoteId;
use super::replies::Reply;
use super::stuck::Stuck;
use super::toucher::Toucher;
use crate::error::EndReason;
use crate::machine::processors::Processors;
use crate::mem::inject::Process;
use crate::mem::ring::{RingReceiver, RingSender};
use crate::port::attach::BegunLink;
use crate::port::setup::Begun;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;
use std::time::Instant;

/// How we stand with a remote.
#[derive(Debug)]
pub(super) enum Standing {
    /// Nobody has called.
    Strangers,
    /// We have.
    Calling(Call),
    Connected,
    /// Nothing goes to it any more.
    Ended(EndReason),
}

/// A call that was not answered yet.
#[derive(Debug)]
pub(super) enum Call {
    /// It found no room among the callers, or was closed: when it is tried again.
    Again(Instant),
    Here(Begun),
    /// To another host.
    Away(BegunLink),
}

/// An endpoint this one knows.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) id: RemoteId,
    pub(super) address: Address,
    /// It is one of another process of this host.
    pub(super) is_neighbour: bool,
    pub(super) standing: Standing,
    /// The serial number of its beginning, or of its end: which of two was earlier.
    pub(super) since: u64,
    /// Since when its calls are closed without a word, and nothing else was heard of it.
    pub(super) closed: Option<Instant>,
    /// Since when it is called, or since that was told as long; none where it is not.
    pub(super) called: Option<Instant>,
    /// Why it is called over the network, though it is of this host.
    pub(super) detour: Option<EndReason>,
    /// Where it is connected.
    pub(super) peer: Option<PeerId>,
    /// Its number, while something may be posted to it: not while a long write leaves.
    pub(super) open: Option<RemoteId>,
    /// Where it was connected last.
    pub(super) at: PeerId,
    pub(super) ring_out: Option<RingSender>,
    pub(super) ahead: Ahead,
    pub(super) ring_in: Option<RingReceiver>,
    /// What it is to be answered when there is room.
    pub(super) replies: VecDeque<Reply>,
    pub(super) toucher: Toucher,
    /// Messages of ours that it wants, in the order in which they are to leave.
    pub(super) wanted: VecDeque<usize>,
    /// It was told to keep what it can keep, because we keep much of it.
    pub(super) is_curbed: bool,
    /// There was no room for it.
    pub(super) stuck: Option<Stuck>,
    /// One of the two has no memory for what the other one has sent: which.
    pub(super) shut_out: Option<EndReason>,
    /// Whose memory it is that messages wait in for their receives; none before the first of them.
    pub(super) process: Option<Option<Process>>,
    /// The processors that a neighbour may run on, as it was when it was connected.
    pub(super) processors: Option<Box<Processors>>,
}

impl Remote {
    /// Whether it is called or connected.
    pub(super) fn is_used(&self) -> bool {
        matches!(self.standing, Standing::Calling(_) | Standing::Connected)
    }

    /// The call over the network that it has not answered yet.
    pub(super) fn call_away(&self) -> Option<&BegunLink> {
        match &self.standing {
            Standing::Calling(Call::Away(call)) => Some(call),
            _ => None,
        }
    }

    /// Where it is connected, if something may be posted to it, and this is its number.
    #[inline(always)]
    pub(super) fn way(&self, to: RemoteId) -> Option<PeerId> {
        (self.open == Some(to)).then_some(self.at)
    }
}
