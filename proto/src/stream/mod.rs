//! Streams: pipelines of stages at several ports, which items go along in order.
//!
//! ```text
//!              port A                       port B                        port C
//!   program -> [emitted] -- entry: B --> [arrived] stage [emitted] -- entry: C --> [arrived] stage
//!                  ^                        | ^
//!                  '------- credit ---------' '-- entry: B itself: what was emitted is next
//! ```
//!
//! This machine holds the state of one port. It holds numbers; its user keeps the items in two
//! queues for each stream, one of arrived items and one of emitted items.
//!
//! | module | what it is |
//! |---|---|
//! | `table` | tables of fixed size |
//! | `directory` | entries: set, cleared, replaced |
//! | `arrival` | what peers say |
//! | `flow` | whose turn it is: running stages, passing on, ending |
//! | `message` | what ports tell each other |
mod arrival;
mod directory;
mod flow;
mod message;
mod table;

pub use message::{Bytes, MESSAGE_BYTES, Message};

use crate::units::PeerId;
use table::{Line, Slab, Table};

/// The tag of an item, and the id of a long one.
// spec: PIPE-18
pub const ITEM: u32 = 14;
/// The tag of all else that is said of streams.
// spec: PIPE-18
pub const STREAM: u32 = 15;
/// Bytes of the longest item.
// spec: PIPE-2
pub const ITEM_MAX: usize = 1 << 20;
/// Checks look at all streams and hops only up to this number.
const FEW: usize = 64;
/// Units that may be under way on a stream, to one port.
// spec: PIPE-8
pub const WINDOW: u8 = 128;

/// The weight of an item.
// spec: PIPE-8
pub const fn weight(bytes: usize) -> u8 {
    let units = 1 + bytes / 1024;
    if units < WINDOW as usize / 2 { units as u8 } else { WINDOW / 2 }
}

/// Names a stream at a port: by the port that feeds it, which may be the port itself, and a number.
// spec: PIPE-3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName {
    /// The port that feeds it; in an entry, the port that is fed.
    pub peer: PeerId,
    /// Which of these.
    pub number: u32,
}

/// The stage for the items of a stream, and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The stage that takes them, by the hash of its name.
    pub stage: u32,
    /// The arguments of the stage.
    pub arguments: [u64; 4],
    /// An entry must lead on from there: it is not the last one.
    pub goes_on: bool,
}

/// An entry of a forwarding directory: the whole header of what goes out.
// spec: PIPE-4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The next port, and the stream's number there.
    pub to: StreamName,
    /// The next stage, and its arguments.
    pub way: Way,
    /// Whether it serves any number of streams, one after the other, and not only the next one.
    pub lasts: bool,
}

/// The reason why a stream has failed.
// spec: PIPE-14
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FailureReason {
    /// A stage has panicked.
    Panicked = 2,
    /// There is no stage of this name.
    UnknownStage = 3,
    /// No entry says where an item goes that was emitted, or where the stream goes on.
    Nowhere = 4,
    /// The next stream is fed already.
    Taken = 5,
    /// There is no room for a stream.
    Full = 6,
    /// The next port is not connected.
    Unreachable = 7,
    /// A port has died.
    PeerDied = 8,
    /// Its source has given it up.
    Cancelled = 9,
}

impl FailureReason {
    const ALL: [Self; 8] = [
        Self::Panicked,
        Self::UnknownStage,
        Self::Nowhere,
        Self::Taken,
        Self::Full,
        Self::Unreachable,
        Self::PeerDied,
        Self::Cancelled,
    ];

    const fn text(self) -> &'static str {
        match self {
            Self::Panicked => "a stage has panicked",
            Self::UnknownStage => "there is no such stage",
            Self::Nowhere => "no entry says where it goes on",
            Self::Taken => "the next stream is fed already",
            Self::Full => "there is no room for a stream",
            Self::Unreachable => "the next port is not connected",
            Self::PeerDied => "it has died",
            Self::Cancelled => "its source has given it up",
        }
    }

    fn from_word(word: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|why| *why as u32 == word)
    }
}

impl core::fmt::Display for FailureReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

/// The reason and the place of a stream's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamFailure {
    /// Why.
    pub why: FailureReason,
    /// The port where it failed; after a death, the port that died.
    pub at: PeerId,
}

/// The end of a stream, behind its last item.
// spec: PIPE-13
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamEnd {
    /// All items have come.
    Closed,
    /// All items on this way have come: an entry was cleared or replaced.
    Cut,
    /// More was to come.
    Failed(StreamFailure),
}

/// The result of a change to a directory.
// spec: PIPE-6
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EntryAnswer {
    /// It is done.
    Done = 0,
    /// Only the port itself, or the port that has set the entry, may do this.
    Denied = 1,
    /// There is no room for an entry.
    Full = 2,
    /// The destination of the entry is fed already, or the entry itself is in use.
    Taken = 3,
    /// There is no such entry.
    Unknown = 4,
}

impl EntryAnswer {
    fn from_word(word: u32) -> Option<Self> {
        let all = [Self::Done, Self::Denied, Self::Full, Self::Taken, Self::Unknown];
        all.into_iter().find(|answer| *answer as u32 == word)
    }
}

/// The reason why a stage is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The oldest item that has arrived.
    Item,
    /// The end behind the last item. After a failure nothing that is emitted goes anywhere.
    End(StreamEnd),
}

/// The queues of streams, by the place that a stream has; the stages; and what streams cause.
pub trait Effects {
    /// The weight of the oldest arrived item.
    fn arrived(&self, place: u16) -> Option<u8>;
    /// The weight of the oldest emitted item.
    fn emitted(&self, place: u16) -> Option<u8>;
    /// Whether a peer can take an item now.
    fn has_room(&self, peer: PeerId) -> bool;
    /// Whether a peer is connected.
    fn is_connected(&self, peer: PeerId) -> bool;
    /// Whether there is a stage of this name.
    fn has_stage(&self, stage: u32) -> bool;

    /// Runs a stage; what it emits is behind all that was emitted.
    fn run(&mut self, place: u16, of: (StreamName, Way), input: Input)
    -> Result<(), FailureReason>;
    /// The oldest item that one has emitted is the only one that has arrived at the other.
    fn pass(&mut self, from: u16, to: u16);
    /// The oldest item that was emitted goes to this port, as one of this number.
    fn send(&mut self, place: u16, to: StreamName);
    /// A message goes to a peer; to a dead one, nowhere.
    fn tell(&mut self, peer: PeerId, message: Message);
    /// The program's own stream of this number is over.
    fn over(&mut self, number: u32, how: Result<(), StreamFailure>);
    /// Nothing is kept for this place any more.
    fn clear(&mut self, place: u16);
}

/// Limits of a port's streams.
// spec: PIPE-16
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Streams at once, those that only lead away among them, 1 or more.
    pub streams: u16,
    /// Entries of the directory.
    pub entries: u16,
    /// Units under way on a stream, 2 or more; the same at all ports.
    pub window: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self { streams: 1024, entries: 1024, window: WINDOW }
    }
}

/// The origin of a stream's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    Program,
    Peer,
    /// A hop of another stream of this port.
    Hop(u16),
    /// One that has died.
    Gone,
}

/// The phase of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Its stage takes items.
    Flows,
    /// Its stage has seen the end.
    Heard,
    /// The next stage was told of the end.
    Passed,
}

/// A stream that this port is a part of.
#[derive(Clone, Copy, Debug)]
struct Stream {
    name: StreamName,
    way: Way,
    feeder: Feeder,
    /// Units that its feeder has sent and that were not returned.
    taken: u8,
    /// Units of these that were run.
    owed: u8,
    end: Option<StreamEnd>,
    phase: Phase,
    /// The hop that its emitted items take now.
    hop: Option<u16>,
    /// Hops that are not over; all but one were cut.
    hops: u16,
}

/// The way from a stream of this port to the next stage.
#[derive(Clone, Copy, Debug)]
struct Hop {
    to: StreamName,
    /// The stream that it belongs to, unless that is over.
    stream: Option<u16>,
    /// The next stream, at this port.
    target: Option<u16>,
    /// Units that may be sent.
    free: u8,
    /// The next stage was told of an end.
    has_ended: bool,
}

/// An entry, and the port that has set it.
#[derive(Clone, Copy, Debug)]
struct Row {
    entry: Entry,
    by: PeerId,
}

/// The streams of one port.
#[derive(Debug)]
pub struct Streams {
    me: PeerId,
    options: Options,
    /// Peers may change the directory.
    is_open: bool,
    directory: Table<StreamName, Row>,
    streams: Slab<Stream>,
    /// Streams by the name under which they are fed.
    fed: Table<StreamName, u16>,
    hops: Slab<Hop>,
    /// Streams by the name of their destination.
    leads: Table<StreamName, u16>,
    /// The stream that is next, before all others.
    current: Option<u16>,
    ready: Line,
    /// Streams whose next port had no room.
    held: Line,
}

impl Streams {
    /// The streams of a port of this name. Allocates.
    pub fn new(me: PeerId, options: Options) -> Self {
        assert!(options.streams > 0 && options.window >= 2, "something can be under way");
        let (streams, entries) = (usize::from(options.streams), usize::from(options.entries));
        Self {
            me,
            options,
            is_open: true,
            directory: Table::new(entries),
            streams: Slab::new(streams),
            fed: Table::new(streams),
            hops: Slab::new(streams),
            leads: Table::new(streams),
            current: None,
            ready: Line::new(streams),
            held: Line::new(streams),
        }
    }

    /// Invariants that hold between two steps, for all input of peers. Each stream is checked if
    /// there are few.
    fn check(&self) {
        debug_assert!(self.leads.len() == self.hops.len(), "a hop is found by what it leads to");
        debug_assert!(self.fed.len() <= self.streams.len(), "only a stream is fed");
        if !cfg!(debug_assertions) || self.streams.len() + self.hops.len() > FEW {
            return;
        }
        self.streams.iter().for_each(|(place, stream)| self.check_stream(place, stream));
        for (at, hop) in self.hops.iter() {
            debug_assert!(hop.free <= self.options.window, "no more may be sent than the window");
            debug_assert!(self.leads.get(hop.to) == Some(at), "a hop is where its name leads");
            let is_here = hop.to.peer == self.me;
            debug_assert!(hop.target.is_some() == is_here, "a stream of this port is its target");
        }
    }

    fn check_stream(&self, place: u16, stream: &Stream) {
        let Stream { name, feeder, taken, owed, end, phase, hop, hops, .. } = *stream;
        debug_assert!(owed <= taken, "only what was sent is given back");
        debug_assert!(taken <= self.options.window, "no more is taken than the window");
        debug_assert!(phase == Phase::Flows || end.is_some(), "only an end is heard of");
        let own = self.hops.iter().filter(|(_, hop)| hop.stream == Some(place)).count();
        debug_assert!(own == usize::from(hops), "a stream's hops are counted");
        let is_own = |at| self.hops.get(at).is_some_and(|hop| hop.stream == Some(place));
        debug_assert!(hop.is_none_or(is_own), "what is emitted goes by a hop of the stream");
        let is_fed = self.fed.get(name) == Some(place);
        debug_assert!(is_fed == (feeder != Feeder::Gone), "who lives feeds its stream");
        if let Feeder::Hop(at) = feeder {
            let target = self.hops.get(at).and_then(|hop| hop.target);
            debug_assert!(target == Some(place), "a hop leads to the stream that it feeds");
        }
    }

    /// Whether peers may change the directory: they may, until this says otherwise.
    // spec: PIPE-6
    pub fn let_peers_set(&mut self, may: bool) {
        self.is_open = may;
    }

    /// Opens a stream that the program feeds, and returns its place. Items emitted there take the
    /// way of the entry.
    // spec: PIPE-3, PIPE-5
    pub fn open(&mut self, number: u32) -> Result<u16, FailureReason> {
        let name = StreamName { peer: self.me, number };
        if self.directory.get(name).is_none() {
            return Err(FailureReason::Nowhere);
        }
        self.check();
        self.begin(name, Way { stage: 0, arguments: [0; 4], goes_on: true }, Feeder::Program)
    }

    /// The program has emitted something, if it was not refused it: see [`Effects::emitted`].
    pub fn feed(&mut self, place: u16) {
        self.ready.push(place);
    }

    /// The program has emitted all.
    // spec: PIPE-13
    pub fn close(&mut self, place: u16) {
        if let Some(stream) = self.streams.get_mut(place) {
            stream.end.get_or_insert(StreamEnd::Closed);
            self.ready.push(place);
        }
    }

    /// The program gives its stream up.
    // spec: PIPE-14
    pub fn cancel(&mut self, place: u16, fx: &mut impl Effects) {
        self.fail(place, StreamFailure { why: FailureReason::Cancelled, at: self.me }, fx);
        self.check();
    }

    /// Streams that this port is a part of, and hops that lead away from it.
    pub fn len(&self) -> (usize, usize) {
        (self.streams.len(), self.hops.len())
    }

    /// Entries of the directory.
    pub fn entries(&self) -> impl Iterator<Item = (StreamName, Entry)> {
        self.directory.rows().map(|(name, row)| (*name, row.entry))
    }

    /// Whether it is part of none.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// Whether there is something to do for [`Streams::advance`].
    pub fn is_due(&self) -> bool {
        self.current.is_some() || !self.ready.is_empty() || !self.held.is_empty()
    }

    /// Whether a peer that has `has` of these may have one more: no more than it leaves free.
    // spec: PIPE-16
    fn admits(&self, peer: PeerId, has: usize, free: usize) -> bool {
        free > 0 && (peer == self.me || has < free)
    }

    /// A stream is fed from now on.
    // spec: PIPE-5, PIPE-16
    fn begin(&mut self, name: StreamName, way: Way, feeder: Feeder) -> Result<u16, FailureReason> {
        if self.fed.get(name).is_some() {
            return Err(FailureReason::Taken);
        }
        let has = self.streams.iter().filter(|(_, stream)| stream.name.peer == name.peer).count();
        let place = self.streams.next().ok_or(FailureReason::Full)?;
        if !self.admits(name.peer, has, self.streams.free()) {
            return Err(FailureReason::Full);
        }
        let (taken, owed, hops) = (0, 0, 0);
        let (end, phase, hop) = (None, Phase::Flows, None);
        self.streams.put(place, Stream { name, way, feeder, taken, owed, end, phase, hop, hops });
        self.fed.put(name, place);
        Ok(place)
    }
}
