//! Stages, and the effects of the state machine of streams: it runs stages and sends to peers.
use super::queue::{Queue, meet};
use crate::active::outgoing::Outgoing;
use ayre_proto::active::id_of;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::stream::{
    Effects, FailureReason, ITEM, ITEM_MAX, Message, STREAM, StreamEnd, StreamFailure, StreamName,
    Way, weight,
};
use ayre_proto::units::PeerId;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The most bytes of an item in a record, behind the stream's number.
pub(super) const SHORT_MAX: usize = EAGER_MAX - 4;
const _: () = assert!(SHORT_MAX < ITEM_MAX, "others are long messages");

/// A handle of a stage, valid at every process.
// spec: PIPE-2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    pub(super) id: u32,
}

impl Stage {
    /// Returns the handle of a name, whether or not a stage is registered under it.
    pub const fn named(name: &str) -> Self {
        Self { id: id_of(name) }
    }

    /// Returns the id, which is the same at all processes.
    pub const fn id(self) -> u32 {
        self.id
    }
}

/// The input of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// An item.
    Item(&'a [u8]),
    /// The end of the stream, with its reason. The stage may still emit items; after a failure they
    /// are lost.
    // spec: PIPE-13
    End(StreamEnd),
}

/// The stream that a stage is run for, by which it emits items.
#[derive(Debug)]
pub struct Flow<'a> {
    name: StreamName,
    way: Way,
    emitted: &'a mut VecDeque<Vec<u8>>,
}

impl Flow<'_> {
    /// Sends an item on, to the next stage of the port's forwarding directory. Never blocks: items
    /// wait for room in order.
    ///
    /// # Panics
    /// If the item is longer than [`ITEM_MAX`] bytes.
    // spec: PIPE-2
    #[track_caller]
    pub fn emit(&mut self, item: impl Into<Vec<u8>>) {
        let item = item.into();
        assert!(item.len() <= ITEM_MAX, "an item has at most 2^20 bytes");
        self.emitted.push_back(item);
    }

    /// Returns the arguments of the directory entry that leads to this stage.
    // spec: PIPE-4
    pub fn arguments(&self) -> [u64; 4] {
        self.way.arguments
    }

    /// Returns the name of the stream, which is unique at this port while the stream exists.
    // spec: PIPE-3
    pub fn name(&self) -> StreamName {
        self.name
    }
}

/// The function of a stage.
pub(super) type Run<S> = Box<dyn FnMut(&mut S, &mut Flow<'_>, Input<'_>) + Send>;

/// A registered stage.
pub(super) struct Registered<S> {
    pub(super) id: u32,
    pub(super) run: Run<S>,
}

/// The effects of the state machine, and the state that they change.
pub(super) struct Side<'a, S> {
    pub(super) state: &'a mut S,
    pub(super) out: &'a mut Outgoing,
    pub(super) stages: &'a mut [Registered<S>],
    pub(super) queues: &'a mut Vec<Queue>,
    pub(super) overs: &'a mut HashMap<u32, Result<(), StreamFailure>>,
    pub(super) met: &'a mut Vec<bool>,
    pub(super) ran: &'a mut usize,
}

impl<S> Side<'_, S> {
    pub(super) fn queue(&mut self, place: u16) -> &mut Queue {
        let place = usize::from(place);
        if place >= self.queues.len() {
            self.queues.resize_with(place + 1, Queue::default);
        }
        &mut self.queues[place]
    }
}

fn oldest(queue: Option<&VecDeque<Vec<u8>>>) -> Option<u8> {
    queue.and_then(VecDeque::front).map(|item| weight(item.len()))
}

impl<S> Effects for Side<'_, S> {
    fn arrived(&self, place: u16) -> Option<u8> {
        oldest(self.queues.get(usize::from(place)).map(|queue| &queue.arrived))
    }

    fn emitted(&self, place: u16) -> Option<u8> {
        oldest(self.queues.get(usize::from(place)).map(|queue| &queue.emitted))
    }

    fn has_room(&self, peer: PeerId) -> bool {
        self.out.takes_at_once(peer)
    }

    fn is_connected(&self, peer: PeerId) -> bool {
        self.out.port.is_alive(peer)
    }

    fn has_stage(&self, stage: u32) -> bool {
        self.stages.iter().any(|registered| registered.id == stage)
    }

    // spec: PIPE-2, PIPE-14
    fn run(
        &mut self,
        place: u16,
        (name, way): (StreamName, Way),
        input: ayre_proto::stream::Input,
    ) -> Result<(), FailureReason> {
        use ayre_proto::stream::Input as Due;
        let item = match input {
            Due::Item => self.queue(place).arrived.pop_front(),
            Due::End(_) => None,
        };
        let is_end = matches!(input, Due::End(_));
        debug_assert!(is_end || item.is_some(), "an item has come whose turn it is");
        let found = self.stages.iter().position(|registered| registered.id == way.stage);
        let mut emitted = std::mem::take(&mut self.queue(place).emitted);
        let before = emitted.len();
        let run = &mut self.stages[found.ok_or(FailureReason::UnknownStage)?].run;
        let mut flow = Flow { name, way, emitted: &mut emitted };
        let state = &mut *self.state;
        let input = match input {
            Due::Item => Input::Item(item.as_deref().unwrap_or_default()),
            Due::End(end) => Input::End(end),
        };
        let ended = catch_unwind(AssertUnwindSafe(|| run(state, &mut flow, input)));
        *self.ran += 1;
        debug_assert!(emitted.len() >= before, "a stage takes nothing back");
        if matches!(input, Input::End(StreamEnd::Failed(_))) {
            emitted.truncate(before);
        }
        self.queue(place).emitted = emitted;
        ended.map_err(|_| FailureReason::Panicked)
    }

    fn pass(&mut self, from: u16, to: u16) {
        let item = self.queue(from).emitted.pop_front();
        debug_assert!(item.is_some(), "what is passed was emitted");
        self.queue(to).arrived.extend(item);
    }

    // spec: PIPE-18
    fn send(&mut self, place: u16, to: StreamName) {
        let Some(item) = self.queue(place).emitted.pop_front() else {
            debug_assert!(false, "what is sent was emitted");
            return;
        };
        if item.len() > SHORT_MAX {
            let argument = u64::from(to.number).to_le_bytes();
            return self.out.owe_long(to.peer, ITEM, &argument, Arc::new(item));
        }
        let (mut record, len) = ([0; EAGER_MAX], 4 + item.len());
        record[..4].copy_from_slice(&to.number.to_le_bytes());
        record[4..len].copy_from_slice(&item);
        self.out.owe_bytes(to.peer, ITEM, &record[..len]);
    }

    // spec: PIPE-18
    fn tell(&mut self, peer: PeerId, message: Message) {
        meet(self.met, peer, true);
        self.out.owe_bytes(peer, STREAM, &message.encode());
    }

    fn over(&mut self, number: u32, how: Result<(), StreamFailure>) {
        let other = self.overs.insert(number, how);
        debug_assert!(other.is_none(), "a stream ends once");
    }

    fn clear(&mut self, place: u16) {
        *self.queue(place) = Queue::default();
    }
}
