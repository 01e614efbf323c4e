//! The retry of a link: each end counts the good packets that it received, and tells the count in
//! NOPs (section II).
//!
//! ```text
//!   one end:    d0 d1 d2 d3 | T N1 | d1 d2 d3 ...      d1 spoilt: the other end trains (T), and
//!   the other:       N0 ... | T N1 | ...               tells in a NOP (N1) that it has one packet
//! ```
//!
//! An end that finds a packet with a wrong CRC lets the link train anew, drops all that comes
//! before the other end trains, too, and then tells its count. The other end goes on from there:
//! its buffer has all packets from the count on. Data carry no number; that of [`Symbol::Data`] is
//! for tests. Training lasts long, so bit errors do not hide it.
use super::packet::{CRC_BYTES, Verdict, judge, seal};
use crate::calendar::{Calendar, Event};
use crate::link::LinkTiming;
use crate::random::{Random, mix};
use crate::time::Time;
use std::collections::VecDeque;

/// The contents of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A training sequence.
    Training,
    /// A NOP with the count of good packets, modulo 256.
    Nop {
        /// The count.
        count: u8,
    },
    /// A packet.
    Data {
        /// Its number.
        number: u64,
    },
}

/// Limits of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets in the retry buffer: at most 127.
    pub buffer: u64,
    /// Good packets after which a NOP goes before data.
    pub every: u64,
    /// Packets to be sent.
    pub packets: u64,
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// The next packet to be sent.
    next: u64,
    /// The packets that the other end has for sure.
    acknowledged: u64,
    /// The good packets that came, and the count that was told last.
    received: u64,
    told: u64,
    /// All is dropped until the other end trains.
    waits: bool,
    /// The other end has told its count since the training.
    resumed: bool,
    /// Trainings to be sent. There are two if an answer has not been sent yet, and a packet behind
    /// the other end's training is bad: one training cannot both answer and ask.
    owes_trainings: u8,
    owes_nop: bool,
}

impl Default for End {
    fn default() -> Self {
        Self {
            next: 0,
            acknowledged: 0,
            received: 0,
            told: 0,
            waits: false,
            resumed: true,
            owes_trainings: 0,
            owes_nop: false,
        }
    }
}

impl End {
    /// Sends a symbol, if there is one to be sent.
    pub fn send(&mut self, limits: &Limits) -> Option<Symbol> {
        if self.owes_trainings > 0 {
            self.owes_trainings -= 1;
            return Some(Symbol::Training);
        }
        let untold = self.received - self.told;
        if self.owes_nop || untold >= limits.every {
            return Some(self.tell());
        }
        let room = self.next < self.acknowledged + limits.buffer;
        if self.resumed && room && self.next < limits.packets {
            self.next += 1;
            return Some(Symbol::Data { number: self.next - 1 });
        }
        (untold > 0).then(|| self.tell())
    }

    fn tell(&mut self) -> Symbol {
        self.owes_nop = false;
        self.told = self.received;
        Symbol::Nop { count: self.received as u8 }
    }

    /// Takes a symbol. The result is the number of a packet that is delivered.
    pub fn take(&mut self, symbol: Symbol, verdict: Verdict) -> Option<u64> {
        match symbol {
            Symbol::Training => {
                // The answer to ours, or the other end begins.
                if !core::mem::take(&mut self.waits) {
                    self.train();
                }
                None
            }
            _ if self.waits || verdict == Verdict::Stomped => None,
            _ if verdict == Verdict::Bad => {
                self.train();
                self.waits = true;
                None
            }
            Symbol::Nop { count } => {
                let new = count.wrapping_sub(self.acknowledged as u8);
                self.acknowledged += u64::from(new);
                if !core::mem::replace(&mut self.resumed, true) {
                    self.next = self.acknowledged;
                }
                None
            }
            Symbol::Data { number } => {
                self.received += 1;
                Some(number)
            }
        }
    }

    fn train(&mut self) {
        self.resumed = false;
        self.owes_trainings += 1;
        self.owes_nop = true;
    }

    /// Whether all packets of both directions have come, as far as this end knows.
    pub fn is_done(&self, limits: &Limits) -> bool {
        self.acknowledged == limits.packets && self.received == limits.packets
    }
}

/// A link with bit errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noisy {
    /// Each direction. Its wire has the way through both ends.
    pub link: LinkTiming,
    /// The time of a training.
    pub training: Time,
    /// The chance of a bit to be wrong.
    pub error: f64,
    /// Those of each end.
    pub limits: Limits,
}

/// The course of a run over a noisy link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bits that both directions carried, without trainings.
    pub bits: u64,
    /// Bits among them that were wrong.
    pub errors: u64,
    /// Trainings of both ends.
    pub trainings: u64,
    /// Packets that were never delivered.
    pub lost: u64,
    /// Packets that were delivered again.
    pub doubled: u64,
    /// Packets that were wrong and passed for good.
    pub undetected: u64,
    /// When all had come.
    pub end: Time,
}

/// Kinds of events: an end may send, or a symbol comes to it.
const SEND: u64 = 0;
const COME: u64 = 1;

/// Bytes of a NOP, and of a command with 64 bytes of data.
const NOP: usize = 4;
const DATA: usize = 72;

/// A direction.
struct Way {
    random: Random,
    /// Bits up to the next wrong one, and with it.
    until: u64,
    /// When its sender may send again.
    free: Time,
    /// The symbols on it, and how they will arrive.
    symbols: VecDeque<(Symbol, Verdict)>,
    /// The packet that its receiver expects.
    expected: u64,
}

/// A link in use.
struct Line<'a> {
    noisy: &'a Noisy,
    calendar: Calendar,
    ends: [End; 2],
    /// From each end.
    ways: [Way; 2],
    report: Report,
}

impl Noisy {
    /// Sends all packets in both directions.
    pub fn run(&self, seed: u64) -> Report {
        let way = |number| {
            let mut random = Random::new(seed, number);
            let until = random.trials(self.error);
            Way { random, until, free: Time::ZERO, symbols: VecDeque::new(), expected: 0 }
        };
        let mut line = Line {
            noisy: self,
            calendar: Calendar::new(self.link.span(DATA as u32)),
            ends: [End::default(), End::default()],
            ways: [way(0), way(1)],
            report: Report::default(),
        };
        for end in 0..2 {
            line.calendar.insert(Event { at: Time::ZERO, what: SEND << 1 | end });
        }
        line.run();
        let missing = line.ways.iter().map(|way| self.limits.packets - way.expected);
        line.report.lost += missing.sum::<u64>();
        line.report
    }
}

impl Line<'_> {
    fn run(&mut self) {
        while let Some(now) = self.calendar.next_time() {
            // All that comes at this time comes before an end decides what to send.
            let mut woken = [false; 2];
            while let Some(event) = self.calendar.take_at(now) {
                let end = (event & 1) as usize;
                woken[end] = true;
                if event >> 1 == COME {
                    self.come(end, now);
                }
            }
            for (end, woken) in woken.into_iter().enumerate() {
                if woken && self.ways[end].free <= now {
                    self.send(end, now);
                }
            }
        }
    }

    /// The first symbol on its way comes to an end.
    fn come(&mut self, end: usize, now: Time) {
        let way = &mut self.ways[1 - end];
        let (symbol, verdict) = way.symbols.pop_front().expect("it was sent");
        self.report.end = now;
        if let Some(number) = self.ends[end].take(symbol, verdict) {
            self.report.lost += number.saturating_sub(way.expected);
            self.report.doubled += u64::from(number < way.expected);
            way.expected = way.expected.max(number + 1);
        }
    }

    /// An end sends its next symbol, if it has one.
    fn send(&mut self, end: usize, now: Time) {
        let Some(symbol) = self.ends[end].send(&self.noisy.limits) else { return };
        let (bytes, training) = match symbol {
            Symbol::Training => (0, true),
            Symbol::Nop { .. } => (NOP + CRC_BYTES, false),
            Symbol::Data { .. } => (DATA + CRC_BYTES, false),
        };
        let verdict = self.spoil(end, symbol, bytes);
        self.report.trainings += u64::from(training);
        let link = &self.noisy.link;
        let span = if training { self.noisy.training } else { link.span(bytes as u32) };
        let way = &mut self.ways[end];
        way.free = now + span;
        way.symbols.push_back((symbol, verdict));
        self.calendar.insert(Event { at: way.free, what: SEND << 1 | end as u64 });
        let at = way.free + link.wire;
        self.calendar.insert(Event { at, what: COME << 1 | (1 - end as u64) });
    }

    /// Sends the bits of a symbol, and judges them as they arrive. Only packets with wrong bits are
    /// made: all others pass.
    fn spoil(&mut self, end: usize, symbol: Symbol, bytes: usize) -> Verdict {
        let way = &mut self.ways[end];
        let bits = bytes as u64 * 8;
        self.report.bits += bits;
        let mut sealed = Vec::new();
        let mut done = 0;
        while way.until <= bits - done {
            if sealed.is_empty() {
                sealed = packet(symbol);
            }
            done += way.until;
            sealed[(done - 1) as usize / 8] ^= 1 << ((done - 1) % 8);
            self.report.errors += 1;
            way.until = way.random.trials(self.noisy.error);
        }
        way.until -= bits - done;
        if sealed.is_empty() {
            return Verdict::Good;
        }
        let verdict = judge(&sealed);
        self.report.undetected += u64::from(verdict != Verdict::Bad);
        verdict
    }
}

/// The bytes of a packet. Data are drawn from its number.
fn packet(symbol: Symbol) -> Vec<u8> {
    seal(match symbol {
        Symbol::Training => Vec::new(),
        Symbol::Nop { count } => vec![count, 0, 0, 0],
        Symbol::Data { number } => {
            let words = (0..DATA as u64 / 8).map(|word| mix(number ^ mix(word)));
            words.flat_map(u64::to_le_bytes).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whtra::ht3::HT1600_8;
    use std::collections::HashSet;

    fn noisy(error: f64, packets: u64) -> Noisy {
        Noisy {
            link: LinkTiming { wire: Time::from_nanos(200), ..HT1600_8 },
            training: Time::from_nanos(1_000),
            error,
            limits: Limits { buffer: 64, every: 4, packets },
        }
    }

    #[test]
    fn a_link_without_errors_carries_packets_and_a_nop_for_each_four() {
        let report = noisy(1e-18, 4_000).run(1);
        assert_eq!((report.errors, report.trainings), (0, 0));
        assert_eq!((report.lost, report.doubled), (0, 0));
        let due = HT1600_8.span(76).0 * 4_000 + HT1600_8.span(8).0 * 1_000;
        assert!(
            (report.end.0 as f64 / due as f64 - 1.0).abs() < 0.01,
            "{} and {due}",
            report.end.0
        );
    }

    #[test]
    fn at_any_rate_of_errors_all_packets_come_once_and_in_order() {
        for error in [1e-6, 1e-5, 1e-4, 1e-3] {
            let report = noisy(error, 5_000).run(2);
            assert_eq!((report.lost, report.doubled, report.undetected), (0, 0, 0), "{error}");
        }
    }

    #[test]
    fn errors_are_as_many_as_their_chance_says() {
        let report = noisy(1e-4, 20_000).run(4);
        let due = report.bits as f64 * 1e-4;
        // Four standard deviations of a count.
        assert!(
            (report.errors as f64 - due).abs() < 4.0 * due.sqrt(),
            "{} and {due}",
            report.errors
        );
    }

    /// Two ends, and what is under way from each.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        ends: [End; 2],
        ways: [VecDeque<Symbol>; 2],
        errors: u32,
    }

    const LIMITS: Limits = Limits { buffer: 2, every: 1, packets: 2 };
    const UNDER_WAY: usize = 2;

    impl State {
        /// An end sends. False if it cannot.
        fn send(&mut self, end: usize) -> bool {
            if self.ways[end].len() == UNDER_WAY {
                return false;
            }
            let sent = self.ends[end].send(&LIMITS);
            self.ways[end].extend(sent);
            sent.is_some()
        }

        /// A symbol comes to an end. False if there is none.
        fn come(&mut self, end: usize, verdict: Verdict) -> bool {
            let Some(symbol) = self.ways[1 - end].pop_front() else { return false };
            let expected = self.ends[end].received;
            if let Some(number) = self.ends[end].take(symbol, verdict) {
                assert_eq!(number, expected, "each packet comes once and in order");
            }
            true
        }

        /// All states that may follow.
        fn followers(&self) -> Vec<Self> {
            let mut all = Vec::new();
            for end in 0..2 {
                let mut sent = self.clone();
                if sent.send(end) {
                    all.push(sent);
                }
                let mut good = self.clone();
                if good.come(end, Verdict::Good) {
                    all.push(good);
                }
                let is_packet = self.ways[1 - end].front().is_some_and(|s| *s != Symbol::Training);
                if self.errors > 0 && is_packet {
                    let mut bad = Self { errors: self.errors - 1, ..self.clone() };
                    bad.come(end, Verdict::Bad);
                    all.push(bad);
                }
            }
            all
        }

        /// Without further errors, all packets come.
        fn ends_well(mut self) -> bool {
            for _ in 0..100 {
                for end in 0..2 {
                    self.send(end);
                    self.come(end, Verdict::Good);
                }
            }
            self.ends.iter().all(|end| end.is_done(&LIMITS))
        }
    }

    #[test]
    fn in_every_order_of_events_with_three_errors_each_packet_comes_once() {
        let begin = State {
            ends: [End::default(), End::default()],
            ways: [VecDeque::new(), VecDeque::new()],
            errors: 3,
        };
        let mut seen = HashSet::from([begin.clone()]);
        let mut open = vec![begin];
        while let Some(state) = open.pop() {
            assert!(state.clone().ends_well());
            for next in state.followers() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        assert!(seen.len() > 1_000, "{} states", seen.len());
    }
}
