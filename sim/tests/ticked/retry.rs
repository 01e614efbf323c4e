//! HyperTransport 3's retry over a link with bit errors.
use ayre_sim::link::LinkTiming;
use ayre_sim::random::Random;
use ayre_sim::time::Time;
use ayre_sim::whtra::ht3::retry::{Limits, Noisy, Report};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// Bytes on the link, with the CRC.
const NOP: u32 = 4 + 4;
const DATA: u32 = 72 + 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol {
    Training,
    /// Good packets that came to the sender of this.
    Nop(u64),
    Data(u64),
}

/// An end: it sends packets, and takes those of the other end.
#[derive(Default)]
struct End {
    /// Packets that have not been sent.
    fresh: VecDeque<u64>,
    /// Packets that have been sent, and may be lost.
    buffer: VecDeque<u64>,
    /// Of these, those to be sent again.
    again: VecDeque<u64>,
    /// Packets that the other end has said it has.
    acknowledged: u64,
    /// Good packets that came, and as many as the other end has been told of.
    came: u64,
    told: u64,
    /// Trainings to be sent. No data before the other end has told its count after one.
    trainings: u32,
    is_count_due: bool,
    waits_for_count: bool,
    /// Dropping all until the other end trains.
    is_deaf: bool,
    /// The link takes its next symbol from then on.
    free: u64,
    /// Symbols on the link: when they come, and whether they are spoilt.
    sent: VecDeque<(u64, Symbol, bool)>,
    /// Bits that it has sent, and those of all its bits that are wrong, counted from 1.
    bits: u64,
    wrong: BTreeSet<u64>,
    /// Numbers of packets that have been delivered here.
    delivered: Vec<u64>,
}

impl End {
    /// The next symbol: a training, a count that is due, data, or any other count.
    fn next(&mut self, limits: &Limits) -> Option<Symbol> {
        if self.trainings > 0 {
            self.trainings -= 1;
            return Some(Symbol::Training);
        }
        let untold = self.came - self.told;
        if !self.is_count_due && untold < limits.every {
            if let Some(packet) = self.packet(limits) {
                return Some(Symbol::Data(packet));
            }
            if untold == 0 {
                return None;
            }
        }
        self.is_count_due = false;
        self.told = self.came;
        Some(Symbol::Nop(self.came))
    }

    fn packet(&mut self, limits: &Limits) -> Option<u64> {
        if self.waits_for_count {
            return None;
        }
        if let Some(packet) = self.again.pop_front() {
            return Some(packet);
        }
        if self.buffer.len() as u64 == limits.buffer {
            return None;
        }
        let packet = self.fresh.pop_front()?;
        self.buffer.push_back(packet);
        Some(packet)
    }

    fn train(&mut self) {
        self.trainings += 1;
        self.is_count_due = true;
        self.waits_for_count = true;
    }

    fn take(&mut self, symbol: Symbol, is_spoilt: bool) {
        match symbol {
            // The answer to ours.
            Symbol::Training if self.is_deaf => self.is_deaf = false,
            Symbol::Training => self.train(),
            _ if self.is_deaf => {}
            _ if is_spoilt => {
                self.train();
                self.is_deaf = true;
            }
            Symbol::Nop(count) => {
                while self.acknowledged < count {
                    let packet = self.buffer.pop_front();
                    self.acknowledged += 1;
                    if self.again.front() == packet.as_ref() {
                        self.again.pop_front();
                    }
                }
                if self.waits_for_count {
                    self.waits_for_count = false;
                    self.again = self.buffer.clone();
                }
            }
            Symbol::Data(number) => {
                self.came += 1;
                self.delivered.push(number);
            }
        }
    }
}

fn tick(noisy: &Noisy, ends: &mut [End; 2], report: &mut Report, now: u64) {
    for end in 0..2 {
        while let Some((at, symbol, is_spoilt)) = ends[1 - end].sent.front().copied()
            && at == now
        {
            ends[1 - end].sent.pop_front();
            ends[end].take(symbol, is_spoilt);
            report.end = Time(now);
        }
    }
    for end in ends.iter_mut().filter(|end| end.free <= now) {
        let Some(symbol) = end.next(&noisy.limits) else { continue };
        let bytes = match symbol {
            Symbol::Training => 0,
            Symbol::Nop(_) => NOP,
            Symbol::Data(_) => DATA,
        };
        let is_training = symbol == Symbol::Training;
        report.trainings += u64::from(is_training);
        let time = if is_training { noisy.training } else { noisy.link.span(bytes) };
        let bits = 8 * u64::from(bytes);
        let wrong = end.wrong.range(end.bits + 1..end.bits + bits + 1).count() as u64;
        end.bits += bits;
        report.bits += bits;
        report.errors += wrong;
        end.free = now + time.0;
        end.sent.push_back((end.free + noisy.link.wire.0, symbol, wrong > 0));
    }
}

/// Runs the reference until nothing has been on the link for longer than any step takes.
fn reference(noisy: &Noisy, seed: u64) -> Report {
    let mut report = Report::default();
    let packets = noisy.limits.packets;
    let mut ends = [0, 1].map(|number| {
        let mut random = Random::new(seed, number);
        let mut wrong = BTreeSet::new();
        let mut bit = 0;
        while bit < BITS_MAX {
            bit += random.trials(noisy.error);
            wrong.insert(bit);
        }
        End { fresh: (0..packets).collect(), wrong, ..End::default() }
    });
    let longest = noisy.training + noisy.link.wire + noisy.link.span(DATA);
    let mut quiet = 0;
    for now in 0.. {
        tick(noisy, &mut ends, &mut report, now);
        quiet = if ends.iter().all(|end| end.sent.is_empty()) { quiet + 1 } else { 0 };
        if quiet > longest.0 {
            break;
        }
    }
    assert!(ends.iter().all(|end| end.bits < BITS_MAX), "more bits than are spoilt");
    for end in &ends {
        // Each comes once and in order, so none is lost or comes again.
        assert_eq!(end.delivered, (0..packets).collect::<Vec<_>>());
    }
    report
}

/// Bits of a direction for which errors are drawn.
const BITS_MAX: u64 = 1 << 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_sent_and_sent_again_as_the_reference_says(
        (phit, width, wire, training) in (1_u64..4, 4_u32..20, 0_u64..40, 1_u64..60),
        (buffer, every, packets) in (1_u64..12, 1_u64..8, 0_u64..60),
        errors_in_a_thousand_packets in 0.0_f64..500.0,
        seed in any::<u64>(),
    ) {
        let noisy = Noisy {
            link: LinkTiming { phit: Time(phit), width, wire: Time(wire) },
            training: Time(training),
            error: (errors_in_a_thousand_packets / 1e3 / f64::from(8 * DATA)).max(1e-9),
            limits: Limits { buffer, every, packets },
        };
        prop_assert_eq!(noisy.run(seed), reference(&noisy, seed));
    }
}
