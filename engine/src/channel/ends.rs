//! The state of channels for each peer.
use super::calls::ChannelOptions;
use crate::active::outgoing::Outgoing;
use ayre_proto::active::ARGUMENTS_MAX;
use ayre_proto::active::record::DropCause;
use ayre_proto::logical::{ChannelReceiver, ChannelSender};
use ayre_proto::units::PeerId;
use std::collections::{BTreeMap, VecDeque};

/// The most messages of a queue for which a check adds up all of them.
const WALKED_MAX: usize = 16;

/// The sending side of a messenger's channels, by which handlers send, too.
#[derive(Debug, Default)]
pub(crate) struct Logical {
    /// The options of opened channels, by number.
    pub(super) options: BTreeMap<u8, ChannelOptions>,
    /// By peer number; none before the first message by a channel.
    ends: Vec<Option<Box<Ends>>>,
    /// The number of all ends so far.
    serial: u32,
}

/// The sending and the receiving ends here of the channels with a peer.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) outward: ChannelSender,
    /// By channel number.
    queues: Vec<Queue>,
    pub(super) inward: ChannelReceiver,
    pub(super) coming: BTreeMap<u8, Coming>,
    /// Channels whose returned credit the peer is to be told.
    pub(super) dues: Vec<u8>,
    /// Tells these ends from those of an earlier connection with the peer.
    pub(super) serial: u32,
    /// Whether channels have yielded the last pass to other messages.
    has_yielded: bool,
}

/// The messages of a channel that wait at their sender.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) messages: VecDeque<Waiting>,
    pub(super) bytes: usize,
}

/// A waiting message.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u32,
    /// Arguments and payload.
    pub(super) content: Vec<u8>,
    pub(super) sent: usize,
}

/// A long message that arrives in parts.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) id: u32,
    pub(super) content: Vec<u8>,
    /// Set if it has no handler or is too long. Its parts are taken and forgotten.
    pub(super) dropped: Option<DropCause>,
}

impl Outgoing {
    #[inline(always)]
    pub(super) fn logical(&mut self) -> &mut Logical {
        self.outbound.as_mut()
    }
}

impl Logical {
    pub(super) fn ends(&mut self, peer: PeerId) -> Option<&mut Ends> {
        self.ends.get_mut(peer.index())?.as_deref_mut()
    }

    /// Returns the ends of a peer, and makes them if there are none. `longest` is the longest
    /// payload that is accepted.
    pub(super) fn ends_or_new(&mut self, peer: PeerId, longest: usize) -> &mut Ends {
        if peer.index() >= self.ends.len() {
            self.ends.resize_with(peer.index() + 1, || None);
        }
        let Self { options, ends, serial } = self;
        ends[peer.index()].get_or_insert_with(|| {
            *serial = serial.wrapping_add(1);
            Box::new(Ends::new(options, longest, *serial))
        })
    }

    pub(super) fn set(&mut self, number: u8, options: ChannelOptions) {
        for ends in self.ends.iter_mut().flatten() {
            ends.outward.set(number, options.priority, options.weight);
        }
        self.options.insert(number, options);
    }

    /// Whether anything waits to be sent.
    pub(super) fn waits(&self) -> bool {
        let mut queues = self.ends.iter().flatten().flat_map(|ends| &ends.queues);
        queues.any(|queue| !queue.messages.is_empty())
    }

    /// Whether anything may be sent to a peer when it has room.
    pub(super) fn is_ready(&mut self, peer: PeerId) -> bool {
        self.ends(peer).is_some_and(|ends| !ends.dues.is_empty() || ends.outward.next().is_some())
    }

    /// Whether channels may send in this pass. If other messages wait for the same room, they may
    /// in every other pass.
    pub(super) fn takes_turn(&mut self, peer: PeerId) -> bool {
        let Some(ends) = self.ends(peer) else { return false };
        ends.has_yielded = !ends.has_yielded;
        !ends.has_yielded
    }

    /// Drops the messages that wait for a peer that has gone.
    pub(super) fn drop_waiting(&mut self, peer: PeerId) {
        if let Some(ends) = self.ends(peer) {
            // The receiving side stays, because arrived messages are still run.
            ends.outward.clear();
            (ends.queues, ends.dues) = (Vec::new(), Vec::new());
            debug_assert!(ends.outward.next().is_none(), "nothing has a turn any more");
        }
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        if let Some(ends) = self.ends.get_mut(peer.index()) {
            *ends = None;
        }
    }
}

impl Ends {
    fn new(options: &BTreeMap<u8, ChannelOptions>, longest: usize, serial: u32) -> Self {
        let mut outward = ChannelSender::new();
        for (number, options) in options {
            outward.set(*number, options.priority, options.weight);
        }
        Self {
            outward,
            queues: Vec::new(),
            inward: ChannelReceiver::new((longest + 8 * ARGUMENTS_MAX) as u64),
            coming: BTreeMap::new(),
            dues: Vec::new(),
            serial,
            has_yielded: false,
        }
    }

    /// Checks the invariants of a channel between two calls.
    pub(super) fn check(&self, number: u8) {
        let Some(queue) = self.queues.get(usize::from(number)) else { return };
        debug_assert!(queue.bytes == 0 || !queue.messages.is_empty(), "bytes are messages'");
        let len_max = usize::from(u8::MAX) + 1;
        debug_assert!(self.queues.len() <= len_max, "a channel has one queue");
        debug_assert!(self.dues.len() <= len_max, "a peer is told once of each");
        if cfg!(debug_assertions) && queue.messages.len() <= WALKED_MAX {
            let left = queue.messages.iter().map(|message| message.content.len() - message.sent);
            debug_assert_eq!(queue.bytes, left.sum::<usize>(), "bytes that are not sent");
            let mut rest = queue.messages.iter().skip(1);
            debug_assert!(rest.all(|message| message.sent == 0), "one after the other");
        }
    }

    pub(super) fn queue(&mut self, number: u8) -> &mut Queue {
        if usize::from(number) >= self.queues.len() {
            self.queues.resize_with(usize::from(number) + 1, Queue::default);
        }
        &mut self.queues[usize::from(number)]
    }

    /// Bytes of messages that wait on a channel.
    pub(super) fn backlog(&self, number: u8) -> usize {
        self.queues.get(usize::from(number)).map_or(0, |queue| queue.bytes)
    }

    /// Whether credit of a channel is due to the peer. If so, notes that it will be sent.
    pub(super) fn heed_due(&mut self, number: u8) -> bool {
        let is_due = self.inward.due(number).is_some();
        if is_due && !self.dues.contains(&number) {
            self.dues.push(number);
        }
        is_due
    }
}

impl Queue {
    /// Bytes of the first waiting message.
    pub(super) fn first(&self) -> Option<u64> {
        self.messages.front().map(|message| message.content.len() as u64)
    }
}
