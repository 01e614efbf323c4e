//! A connection between two nodes: what both programs do on it, and what is expected of it.
use super::Seen;
use super::end::{Datagram, Half, LINES, Net, longest};
use crate::pair::driver::Pair;
use crate::pair::port::LEN;
use crate::pair::way::{Channel, Record};
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES, Request, Words};
use ayre_proto::deposit::message::Posted;
use ayre_proto::lane::Kind;
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::node::initiator::Bounds;
use ayre_proto::notify::Operation;

/// Commands that wait beside the frames.
const ROOM: u64 = 40;
/// Where operations begin that reach the same bytes.
const NARROW: u64 = 64;

/// Both ends.
pub(crate) struct Connection {
    /// The programs, initiators and targets, with an oracle for each direction.
    pair: Pair,
    halves: [Half; 2],
    /// Messages that each end has sent, and has been given.
    sent: [u64; 2],
    came: [u64; 2],
    /// Operations reach the same bytes again and again.
    is_narrow: bool,
}

impl Connection {
    pub(crate) fn new(number: usize, seed: u64) -> Self {
        let (most, responses) = (longest(), LINES[1] as usize * LINE_PAYLOAD);
        let bounds = Bounds { requests: None, responses, most, worth: most };
        let pair = Pair::new(seed, false, ROOM, bounds);
        let halves = [0, 1].map(|own| Half::new(number, own));
        Self { pair, halves, sent: [0; 2], came: [0; 2], is_narrow: seed.is_multiple_of(2) }
    }

    pub(crate) fn deadline(&self) -> u64 {
        let [one, other] = self.halves.each_ref().map(|half| half.linked.deadline());
        one.min(other)
    }

    pub(crate) fn on_datagram(&mut self, datagram: &Datagram, now: u64, network: &mut Net) {
        let (own, pair) = (datagram.to, &mut self.pair);
        self.halves[own].on_datagram(&mut pair.ports[own], datagram, (now, network));
        self.take_in(own);
    }

    pub(crate) fn on_time(&mut self, now: u64, network: &mut Net) {
        for own in [0, 1] {
            if self.halves[own].linked.deadline() <= now {
                self.poll(own, now, network);
            }
        }
    }

    pub(crate) fn resync(&mut self, own: usize, now: u64, network: &mut Net) {
        self.halves[own].resync(now, network);
    }

    /// A program does something, and looks after its port.
    pub(crate) fn act(&mut self, own: usize, now: u64, network: &mut Net) {
        let pair = &mut self.pair;
        match pair.dice.below(10) {
            0..4 if pair.is_busy(own) => pair.push_more(own),
            0..3 => {
                let mut wish = pair.wish(own);
                if self.is_narrow && wish.command.claim.offset <= LEN {
                    wish.command.claim.offset %= NARROW;
                }
                let _ = pair.post(own, wish, false);
            }
            3 => {
                let _ = pair.message(own);
            }
            4 => {
                let _ = pair.batch(own);
            }
            5 => self.send(own),
            6 => pair.ports[own].shared.is_depot_busy ^= true,
            7 => pair.ports[own].are_replies_held_up ^= true,
            8 => self.halves[own].ask(),
            _ => pair.read_note(own),
        }
        self.poll(own, now, network);
        self.receive(own);
    }

    /// A short message, which says how many commands precede it.
    fn send(&mut self, own: usize) {
        let gate = self.pair.ports[own].initiator.posted();
        let len = self.pair.dice.below(200) as usize;
        let number = self.sent[own];
        let bytes = [&gate.to_le_bytes()[..], &number.to_le_bytes(), &vec![number as u8; len]];
        let lane = &mut self.halves[own].lanes.messages;
        self.sent[own] += u64::from(lane.push(Kind::GatedMessage, number as u32, &bytes.concat()));
    }

    /// The program takes messages whose commands were executed: each once, in order, whole.
    fn receive(&mut self, own: usize) {
        let executed = self.pair.ports[own].target.executed();
        while let Some(entry) = self.halves[own].lanes.came.peek() {
            let (words, _) = entry.bytes.as_chunks();
            let [gate, number] = [words[0], words[1]].map(u64::from_le_bytes);
            if gate > executed {
                return;
            }
            assert_eq!((entry.kind, number), (Kind::GatedMessage, self.came[own]));
            assert_eq!(entry.tag, number as u32);
            assert!(entry.bytes[16..].iter().all(|byte| *byte == number as u8), "whole");
            self.halves[own].lanes.came.take();
            self.came[own] += 1;
        }
    }

    /// What was pushed goes into frames, as far as they have room; and the port is looked after.
    fn poll(&mut self, own: usize, now: u64, network: &mut Net) {
        let Pair { ports, sides, .. } = &mut self.pair;
        let (half, requests) = (&mut self.halves[own], &mut sides[own].requests.records);
        while let Some(record) = requests.front()
            && post(half, record)
        {
            requests.pop_front();
        }
        half.serve(&mut ports[own], now, network);
        self.take_in(own);
    }

    /// What has come for the port: answers, and then how far its commands have come.
    fn take_in(&mut self, own: usize) {
        let lanes = &mut self.halves[own].lanes;
        let answers: &mut Channel = &mut self.pair.sides[own].answers;
        while let Some(entry) = lanes.answers.peek()
            && answers.has_room(entry.bytes.len())
        {
            let (head, data) = entry.bytes.split_at(RESPONSE_BYTES);
            let (words, _) = head.as_chunks();
            let head = std::array::from_fn(|index| u64::from_le_bytes(words[index]));
            answers.push(Record::answer(head, data));
            lanes.answers.take();
        }
        if lanes.answers.peek().is_none() {
            self.pair.ports[1 - own].told = (lanes.done_there, lanes.noted_there);
        }
        self.pair.take(own);
    }

    /// Everything goes on, and nothing new begins.
    pub(crate) fn settle(&mut self, now: u64, network: &mut Net) {
        for own in [0, 1] {
            let port = &mut self.pair.ports[own];
            (port.shared.is_depot_busy, port.are_replies_held_up) = (false, false);
            self.pair.push_more(own);
            self.pair.read_note(own);
            self.poll(own, now, network);
            self.receive(own);
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        let are_idle = self.halves.iter().all(|half| half.linked.is_idle(&half.lanes));
        let [sent, came] = [self.sent, self.came];
        let is_told = |own: usize| {
            let (here, there) = (&self.pair.ports[own], &self.halves[1 - own].lanes);
            (here.target.executed(), here.shared.taken) == (there.done_there, there.noted_there)
        };
        let is_through = are_idle && [0, 1].into_iter().all(is_told);
        is_through && self.pair.is_idle() && sent == [came[1], came[0]]
    }

    /// Memory, credits and counts are what the oracles say.
    pub(crate) fn finish(mut self) -> Seen {
        self.pair.drain();
        let [one, other] = &self.halves;
        let counters = [one, other].map(|half| *half.linked.end().counters());
        let again = counters.map(|of| of.overtaken + of.asked_for + of.timed_out);
        let sides = &self.pair.sides;
        Seen {
            ended: sides.iter().map(|side| side.ended).sum(),
            refused: sides.iter().map(|side| side.refused).sum(),
            messages: self.came.iter().sum(),
            early: one.linked.early() + other.linked.early(),
            again: again.iter().sum(),
            resyncs: 0,
            pieces: 0,
        }
    }

    pub(crate) fn summary(&self) -> String {
        let halves = self.halves.each_ref().map(|half| half.linked.end().counters());
        format!("{halves:?}, sent {:?}, came {:?}", self.sent, self.came)
    }
}

/// Posts a command as it was pushed. False where the frames have no room.
fn post(half: &mut Half, record: &Record) -> bool {
    let words: Words = record.head();
    let len = record.data.len();
    assert_eq!(record.len, COMMAND_BYTES + len);
    let data = (len, |bytes: &mut [u8]| bytes.copy_from_slice(&record.data));
    let posted = if words[0] as u8 == Operation::Deposit as u8 {
        let message = Posted::parse(&words, len as u64).expect("our own");
        half.linked.post(&message, data)
    } else {
        let request = Request::parse(&words, len as u64).expect("our own");
        half.linked.post(&request, data)
    };
    posted.is_ok()
}
