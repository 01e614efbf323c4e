//! A peer of the same host. It reads the lanes that the port writes, and writes those that the port
//! reads.
//!
//! ```text
//!   commands, messages, records of queues --> store -->  the peer's lanes
//!   responses <-- target <-- commands     <-- record <-- the peer
//! ```
use super::carrier::lanes::{Lanes, RxLane, TxLane};
use super::connection::{Connection, Lines};
use super::effects::{LaneName, Program, Reach, Wire, WordName};
use super::lane::{Entry, Lane};
use super::target::{CommandLane, Exchange, Target};
use crate::command::{COMMAND_BYTES, Head, Words};
use crate::lane::{Kind, Malformed, Status};
use crate::limits::RECORD_MAX;
use crate::units::PeerId;
use crate::xlate::Table;
use alloc::vec::Vec;

/// The lanes of commands and of answers, and the words as last reported to the peer.
#[derive(Debug)]
pub(super) struct SameHost {
    /// The lanes that the port writes.
    pub(super) commands: Lane,
    responses: Lane,
    /// The lane that it reads.
    incoming: Lane,
    /// The words as the peer has them.
    told: Vec<u64>,
    /// Something may have changed that the peer does not know.
    has_news: bool,
}

impl SameHost {
    pub(super) fn new(lines: &Lines) -> Self {
        Self {
            commands: Lane::new(lines.commands),
            responses: Lane::new(lines.responses),
            incoming: Lane::new(lines.commands),
            told: Vec::new(),
            has_news: false,
        }
    }

    /// There may be something to do.
    pub(super) const fn wake(&mut self) {
        self.has_news = true;
    }

    pub(super) const fn has_news(&self) -> bool {
        self.has_news
    }

    /// The peer has stored a record; it knows the free room of the lane.
    // spec: LANE-8, ERR-6
    pub(super) fn on_record(
        &mut self,
        lane: LaneName,
        record: &Entry,
        connection: &mut Connection,
    ) -> Result<(), Malformed> {
        let lane = match lane {
            LaneName::Commands => &mut self.incoming,
            LaneName::Responses => &mut connection.responses,
            LaneName::Messages => &mut connection.incoming,
            LaneName::Queue(number) => {
                connection.rx_lane(RxLane::Queue(number)).ok_or(Malformed)?
            }
        };
        self.has_news = true;
        if lane.push(record.kind, record.tag, &record.bytes) { Ok(()) } else { Err(Malformed) }
    }

    /// The peer has stored a word.
    // spec: LANE-8, LANE-10
    pub(super) fn on_word(
        &mut self,
        word: WordName,
        value: u64,
        connection: &mut Connection,
    ) -> Result<(), Malformed> {
        self.has_news = true;
        let lane = match word {
            WordName::Done if value < connection.there.done => return Err(Malformed),
            WordName::Done => {
                connection.set_done(value);
                return Ok(());
            }
            WordName::Noted => {
                connection.set_noted(value);
                return Ok(());
            }
            WordName::Lines(LaneName::Commands) => &mut self.commands,
            WordName::Lines(LaneName::Responses) => &mut self.responses,
            WordName::Lines(LaneName::Messages) => &mut connection.messages,
            WordName::Lines(LaneName::Queue(number)) => {
                connection.tx_lane(TxLane::Queue(number)).ok_or(Malformed)?
            }
        };
        lane.give_back(value as u32)
    }

    /// Has what the peer has posted performed, as far as answers find room and it need not wait.
    // spec: ORD-1
    pub(super) fn perform<P: Program>(
        &mut self,
        target: &mut Target,
        table: &Table,
        reach: &mut Reach<'_, P>,
    ) -> Result<(), Malformed> {
        let Self { incoming, responses, .. } = self;
        while target.serve(table, reach, &mut OverLanes { incoming, responses })? {}
        Ok(())
    }

    /// Stores what the port has written, and then how far it has come.
    // spec: LANE-8, LANE-10
    pub(super) fn store(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        wire: &mut impl Wire,
    ) {
        let own =
            [(LaneName::Commands, &mut self.commands), (LaneName::Responses, &mut self.responses)];
        let feeds = connection.feeds.iter_mut().enumerate();
        let queues = feeds.map(|(number, lane)| (LaneName::Queue(number), lane));
        let messages = (LaneName::Messages, &mut connection.messages);
        for (name, lane) in own.into_iter().chain([messages]).chain(queues) {
            while let Some(record) = lane.pass() {
                wire.store(peer, name, record);
            }
        }
        let others = connection.all_rx().map(|(name, lane)| (name, lane.given_back()));
        let commands = [(LaneName::Commands, self.incoming.given_back())];
        let lines = commands.into_iter().chain(others);
        let lines = lines.map(|(name, lines)| (WordName::Lines(name), u64::from(lines)));
        let counts = [(WordName::Done, connection.done()), (WordName::Noted, connection.noted())];
        for (place, (word, value)) in counts.into_iter().chain(lines).enumerate() {
            self.told.resize(self.told.len().max(place + 1), 0);
            if self.told[place] != value {
                self.told[place] = value;
                wire.tell(peer, word, value);
            }
        }
        self.has_news = false;
    }

    /// Hands on what the port offers. A queue has the next number at both ends.
    pub(super) fn offer(&self, peer: PeerId, connection: &mut Connection, wire: &mut impl Wire) {
        while let Some(offer) = connection.offer() {
            let number = connection.sinks.len();
            let is_there = !offer.is_queue() || connection.join_queue(number);
            debug_assert!(is_there, "a queue is offered with a lane that can be");
            wire.offer(peer, offer);
            connection.pass_offer();
        }
    }
}

/// Data out of a record of a lane, answers into another one.
struct OverLanes<'a> {
    incoming: &'a mut Lane,
    responses: &'a mut Lane,
}

impl OverLanes<'_> {
    fn data(&self) -> &[u8] {
        debug_assert!(self.incoming.peek().is_some(), "a record stays until it was performed");
        self.incoming.data::<{ COMMAND_BYTES / 8 }>()
    }
}

impl CommandLane for OverLanes<'_> {
    fn peek(&self) -> Option<Result<Status, Malformed>> {
        self.incoming.status()
    }

    fn head(&self) -> Words {
        self.incoming.head()
    }

    fn consume(&mut self, _: &Status) {
        self.incoming.consume();
    }
}

impl Exchange for OverLanes<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        into.copy_from_slice(&self.data()[..into.len()]);
    }

    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        write(&self.data()[..len]);
    }

    fn longest(&self) -> usize {
        RECORD_MAX.min(self.responses.capacity())
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.responses.has_room(len)
    }

    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let pushed = self.responses.push_with((Kind::Response, 0), head, (len, fill));
        debug_assert!(pushed, "has_room() came first");
    }
}
