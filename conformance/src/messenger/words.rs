//! The arguments of calls to a messenger: plain data that any implementation can read.
use ayre::PeerId;
use ayre::active::id_of;
use ayre::collective::Combine;
use ayre::collective::{Collective, Schedule};

/// Limits of a messenger: bytes, where something else than the usual is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessengerOptions {
    /// That are kept for each peer of what handlers send.
    pub overflow: Option<usize>,
    /// Of the memory that long messages land in.
    pub landing: Option<usize>,
    /// Of the longest payload that is taken.
    pub longest: Option<usize>,
}

impl MessengerOptions {
    /// The usual limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes that it keeps.
    pub fn overflow(self, bytes: usize) -> Self {
        Self { overflow: Some(bytes), ..self }
    }

    /// Sets the bytes that land at a time.
    pub fn landing(self, bytes: usize) -> Self {
        Self { landing: Some(bytes), ..self }
    }

    /// Sets the longest message in bytes.
    pub fn longest(self, bytes: usize) -> Self {
        Self { longest: Some(bytes), ..self }
    }
}

/// How a channel is treated, where something else than the usual is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Those of more go first.
    pub priority: Option<u8>,
    /// Its share of a turn.
    pub weight: Option<u8>,
    /// Bytes that wait here.
    pub room: Option<usize>,
}

impl ChannelOptions {
    /// As usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a priority.
    pub fn priority(self, priority: u8) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// With a weight.
    pub fn weight(self, weight: u8) -> Self {
        Self { weight: Some(weight), ..self }
    }

    /// With so much room.
    pub fn room(self, bytes: usize) -> Self {
        Self { room: Some(bytes), ..self }
    }
}

/// Room of a member of a group, where something else than the usual is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MulticastOptions {
    /// Messages that it has not seen.
    pub window: Option<u16>,
    /// Messages of its own that wait for their place.
    pub requests: Option<u16>,
}

impl MulticastOptions {
    /// As usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of messages.
    pub fn window(self, messages: u16) -> Self {
        Self { window: Some(messages), ..self }
    }

    /// Sets the number of its own messages.
    pub fn requests(self, messages: u16) -> Self {
        Self { requests: Some(messages), ..self }
    }
}

/// A stage of a stream, by its name: a handler of items, wherever it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The name.
    pub name: &'static str,
}

impl Stage {
    /// The stage of this name.
    pub const fn named(name: &'static str) -> Self {
        Self { name }
    }

    /// By which it is known to other processes.
    pub const fn id(self) -> u32 {
        id_of(self.name)
    }
}

/// An entry of a forwarding directory, which stays until it is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the stream goes.
    pub to: PeerId,
    /// Its number there.
    pub number: u32,
    /// The stage that runs there.
    pub stage: Stage,
    /// Its arguments.
    pub arguments: [u64; 4],
    /// Whether the stage has an entry of its own to go on by.
    pub goes_on: bool,
}

impl Entry {
    /// To a stage, which is told nothing and is the last.
    pub fn new(to: PeerId, number: u32, stage: Stage) -> Self {
        Self { to, number, stage, arguments: [0; 4], goes_on: false }
    }

    /// Tells it this.
    pub fn arguments(self, arguments: [u64; 4]) -> Self {
        Self { arguments, ..self }
    }

    /// It is not the last.
    pub fn goes_on(self) -> Self {
        Self { goes_on: true, ..self }
    }
}

/// A stage of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Where it is run.
    pub peer: PeerId,
    /// The stage.
    pub stage: Stage,
    /// Its arguments.
    pub arguments: [u64; 4],
}

impl Hop {
    /// A stage that is told nothing.
    pub fn new(peer: PeerId, stage: Stage) -> Self {
        Self { peer, stage, arguments: [0; 4] }
    }

    /// Tells it this.
    pub fn arguments(self, arguments: [u64; 4]) -> Self {
        Self { arguments, ..self }
    }
}

/// The values of a collective, and how they are dealt with.
#[derive(Debug)]
pub enum Values<R, W> {
    /// A barrier's.
    None,
    /// The buffer that is changed.
    One(W),
    /// The buffer that is combined.
    Combined(Combine, W),
    /// The buffer that is read, and the one where the result is written.
    Two(R, W),
}

/// A collective on values that are lent for it.
#[derive(Debug)]
pub struct Request<'a, T> {
    /// Which one.
    pub collective: Collective,
    /// The root's place, where there is one.
    pub root: usize,
    /// On what.
    pub values: Values<&'a [T], &'a mut [T]>,
    /// How many values are of each member, where they differ.
    pub lens: Option<&'a [usize]>,
    /// How many go to each member and come from each, where they differ.
    pub out_and_in: Option<[&'a [usize]; 2]>,
}

impl<'a, T> Request<'a, T> {
    fn about(collective: Collective, root: usize, of: Values<&'a [T], &'a mut [T]>) -> Self {
        Self { collective, root, values: of, lens: None, out_and_in: None }
    }

    /// The root has all members' values.
    pub fn gather(root: usize, own: &'a [T], all: &'a mut [T]) -> Self {
        Self::about(Collective::Gather, root, Values::Two(own, all))
    }

    /// Each member has its part of the root's.
    pub fn scatter(root: usize, all: &'a [T], own: &'a mut [T]) -> Self {
        Self::about(Collective::Scatter, root, Values::Two(all, own))
    }

    /// Everybody has all members' values.
    pub fn allgather(own: &'a [T], all: &'a mut [T]) -> Self {
        Self::about(Collective::Allgather, 0, Values::Two(own, all))
    }

    /// Each member has a block of each.
    pub fn alltoall(out: &'a [T], come: &'a mut [T]) -> Self {
        Self::about(Collective::Alltoall, 0, Values::Two(out, come))
    }

    /// Everybody has all members' values combined.
    pub fn allreduce(combine: Combine, values: &'a mut [T]) -> Self {
        Self::about(Collective::Allreduce, 0, Values::Combined(combine, values))
    }

    /// Sets the number of values of each member.
    pub fn lens(self, lens: &'a [usize]) -> Self {
        Self { lens: Some(lens), ..self }
    }

    /// Sets the numbers of values that go to each member and come from each.
    pub fn out_and_in(self, out: &'a [usize], come: &'a [usize]) -> Self {
        Self { out_and_in: Some([out, come]), ..self }
    }
}

/// A collective on values that it owns until it is finished.
#[derive(Debug)]
pub struct Owned<T> {
    /// Which one.
    pub collective: Collective,
    /// The root's place, where there is one.
    pub root: usize,
    /// On what.
    pub values: Values<Vec<T>, Vec<T>>,
}

impl Owned<u64> {
    /// Waits for all members.
    pub fn barrier() -> Self {
        Self { collective: Collective::Barrier, root: 0, values: Values::None }
    }
}

impl<T> Owned<T> {
    /// The root's values are everybody's.
    pub fn broadcast(root: usize, values: Vec<T>) -> Self {
        Self { collective: Collective::Broadcast, root, values: Values::One(values) }
    }

    /// Everybody has all members' values combined.
    pub fn allreduce(combine: Combine, values: Vec<T>) -> Self {
        let values = Values::Combined(combine, values);
        Self { collective: Collective::Allreduce, root: 0, values }
    }

    /// Everybody has all members' values.
    pub fn allgather(own: Vec<T>, all: Vec<T>) -> Self {
        let values = Values::Two(own, all);
        Self { collective: Collective::Allgather, root: 0, values }
    }
}

/// A call that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Which collective of the group.
    pub number: u32,
    /// When it began, in nanoseconds since the recording did.
    pub begin_ns: u64,
    /// How long it took, in nanoseconds.
    pub time_ns: u64,
    /// The collective.
    pub collective: Collective,
    /// How.
    pub schedule: Schedule,
    /// Bytes of the vector, or of a block.
    pub bytes: usize,
    /// To each member, in their order.
    pub links: Vec<LinkUse>,
}

/// The traffic on a link during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that waited when it began.
    pub waiting: u32,
    /// Smoothed round trip at its end, in nanoseconds.
    pub round_trip_ns: u64,
}
