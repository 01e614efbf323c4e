//! Messages that have arrived by channels, and the order in which they are run.
use super::calls::ChannelOptions;
use ayre_proto::logical::{Due, Turns, cost};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// A message that has arrived whole.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) source: PeerId,
    /// The serial number of the peer's ends.
    pub(super) serial: u32,
    pub(super) id: u32,
    /// Arguments and payload.
    pub(super) content: Vec<u8>,
    pub(super) due: Due,
}

/// A queue for each channel, with the messages of all peers.
#[derive(Debug)]
pub(crate) struct Inbox {
    turns: Turns,
    /// By channel number.
    queues: Vec<VecDeque<Arrived>>,
    held: [bool; 256],
    /// The only channel whose messages are run during `poll_only`.
    pub(super) only: Option<u8>,
    /// Buffers of messages that were run, to be used again.
    spare: Vec<Vec<u8>>,
}

/// The most spare buffers.
const SPARE_MAX: usize = 64;
const SPARE_BYTES: usize = 4096;

impl Default for Inbox {
    fn default() -> Self {
        let (queues, spare) = (Vec::new(), Vec::new());
        Self { turns: Turns::new(), queues, held: [false; 256], only: None, spare }
    }
}

impl Inbox {
    pub(super) fn set(&mut self, number: u8, options: ChannelOptions) {
        self.turns.set(number, options.priority, options.weight);
    }

    /// Whether a message can be run.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        !self.turns.is_empty() || self.only.is_some()
    }

    pub(super) fn hold(&mut self, number: u8) {
        self.held[usize::from(number)] = true;
        self.turns.rest(number);
    }

    pub(super) fn release(&mut self, number: u8) {
        self.held[usize::from(number)] = false;
        if self.queues.get(usize::from(number)).is_some_and(|queue| !queue.is_empty()) {
            self.turns.ready(number);
        }
    }

    /// Returns a buffer for a message.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let buffer = self.spare.pop().unwrap_or_default();
        debug_assert!(buffer.is_empty(), "nothing of an earlier message is left");
        buffer
    }

    /// Takes back a buffer that is not needed any more.
    pub(super) fn take_back(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && buffer.capacity() <= SPARE_BYTES {
            buffer.clear();
            self.spare.push(buffer);
            debug_assert!(self.spare.len() <= SPARE_MAX, "no more are kept");
        }
    }

    pub(super) fn push(&mut self, number: u8, message: Arrived) {
        if usize::from(number) >= self.queues.len() {
            self.queues.resize_with(usize::from(number) + 1, VecDeque::new);
        }
        self.queues[usize::from(number)].push_back(message);
        if !self.held[usize::from(number)] {
            self.turns.ready(number);
        }
    }

    /// Takes the message to be run next, with its channel.
    // spec: CHAN-6, CHAN-11
    pub(super) fn pop(&mut self) -> Option<(u8, Arrived)> {
        let number = match self.only {
            Some(number) => number,
            None => self.turns.next()?.0,
        };
        let is_asked = self.only.is_some();
        debug_assert!(is_asked || !self.held[usize::from(number)], "what is held has no turn");
        let queue = self.queues.get_mut(usize::from(number))?;
        debug_assert!(is_asked || !queue.is_empty(), "who has a turn has a message");
        let message = queue.pop_front()?;
        let is_empty = queue.is_empty();
        if self.only.is_none() {
            self.turns.did(cost(message.content.len() as u64));
        }
        if is_empty {
            self.turns.rest(number);
        }
        Some((number, message))
    }
}
