//! PCI Express: the bytes around packets, and reads with tags.
//!
//! Source: PCI Express Base Specification 5.0, sections 2.2 (headers), 2.3.1 (completions), 3.5 and
//! 4.2 (framing and encoding).
//!
//! ```text
//!   device's write:  | framing 4 | header 16 | data <= payload | CRC 4 |              posted
//!   device's read:   | framing 4 | header 16 | CRC 4 |         ->  host: memory
//!                    | framing 4 | header 12 | data <= payload | CRC 4 | ...  <-  completions
//! ```
//!
//! A read keeps a tag until its last completion has come. Reads overtake each other in the host, so
//! a device that needs them in order keeps those that come early.
//!
//! Packets for flow control and acknowledgements go the other way than the data that they are
//! about, and are not modelled.
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::Time;

/// A generation of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// 2.5 GT/s, 10 bits for each byte.
    One,
    /// 5 GT/s, 10 bits for each byte.
    Two,
    /// 8 GT/s, 130 bits for each 16 bytes.
    Three,
    /// 16 GT/s, encoded as the third.
    Four,
    /// 32 GT/s, encoded as the third.
    Five,
}

impl Generation {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::One, Self::Two, Self::Three, Self::Four, Self::Five];

    /// Bytes per second of a lane in each direction.
    pub fn lane(self) -> f64 {
        let (transfers, share) = match self {
            Self::One => (2.5e9, 8.0 / 10.0),
            Self::Two => (5e9, 8.0 / 10.0),
            Self::Three => (8e9, 128.0 / 130.0),
            Self::Four => (16e9, 128.0 / 130.0),
            Self::Five => (32e9, 128.0 / 130.0),
        };
        transfers * share / 8.0
    }
}

/// Bytes of framing, sequence number and CRC around a packet.
const AROUND: u32 = 8;
/// Bytes of the header of a request with an address of 64 bits, and of a completion.
const REQUEST: u32 = 16;
const COMPLETION: u32 = 12;

/// Parts of the time of reads and writes.
const TAG: Part = Part("wait for a tag");
const UP: Part = Part("request");
const HOST: Part = Part("host");
const DOWN: Part = Part("completions");
const DATA: Part = Part("data");

/// The units of a link.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    tags: UnitId,
    up: UnitId,
    down: UnitId,
}

impl Units {
    /// Adds those of a link to a machine.
    pub fn new(machine: &mut Machine, link: &Pcie) -> Self {
        Self {
            tags: machine.named_of("device", "tags", link.tags),
            up: machine.named("device", "link to the host"),
            down: machine.named("host", "link to the device"),
        }
    }
}

/// A device's link to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcie {
    /// The generation.
    pub generation: Generation,
    /// Lanes, each of which moves bytes in both directions.
    pub lanes: u32,
    /// Bytes of data in a packet at most: 128 to 4096.
    pub payload: u32,
    /// Bytes that a read asks for at most: 128 to 4096.
    pub read: u32,
    /// Reads under way at most.
    pub tags: u32,
    /// From a packet's end at one side to the other side's knowledge of it: the layers of both
    /// ends. It depends on the chips; measured round trips of reads are 300 ns to 1 us.
    pub latency: Time,
}

/// Reads in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadStream {
    /// Bytes per second.
    pub rate: f64,
    /// Reads that ended before an earlier one did.
    pub early: usize,
    /// Reads that waited at a time, at most, for an earlier one that had not ended.
    pub kept: usize,
}

impl Pcie {
    /// The third generation with 16 lanes, 256 bytes in a packet, reads of 512 bytes, and 64 tags:
    /// usual values of servers.
    pub const GEN3_X16: Self = Self {
        generation: Generation::Three,
        lanes: 16,
        payload: 256,
        read: 512,
        tags: 64,
        latency: Time::from_nanos(150),
    };

    /// Bytes per second of the link in each direction, packets' headers included.
    pub fn raw(&self) -> f64 {
        self.generation.lane() * f64::from(self.lanes)
    }

    fn span(&self, bytes: u32) -> Time {
        Time((f64::from(bytes) * 1e12 / self.raw()).round() as u64)
    }

    /// Bytes on the link for data in packets with this header.
    fn packets(&self, data: u32, header: u32) -> u32 {
        data + data.div_ceil(self.payload) * (header + AROUND)
    }

    /// For how long a write keeps the link, the headers of its packets included.
    pub fn write_span(&self, bytes: u32) -> Time {
        self.span(self.packets(bytes.max(1), REQUEST))
    }

    /// For how long the request of a read keeps the link.
    pub fn request_span(&self) -> Time {
        self.span(REQUEST + AROUND)
    }

    /// For how long the data of reads keeps the link, the headers of its packets included.
    pub fn data_span(&self, bytes: u32) -> Time {
        self.span(self.packets(bytes.max(1), COMPLETION))
    }

    /// The share of a long write's bytes on the link that is data.
    pub fn write_efficiency(&self) -> f64 {
        f64::from(self.payload) / f64::from(self.payload + REQUEST + AROUND)
    }

    /// From the begin of a write until its last byte is in memory, but for the memory's own time.
    pub fn write_time(&self, bytes: u32) -> Time {
        self.write_span(bytes) + self.latency
    }

    /// From the begin of a read of at most [`Pcie::read`] bytes until its last byte has come, where
    /// the host takes `memory` for it.
    pub fn read_time(&self, bytes: u32, memory: Time) -> Time {
        let data = self.data_span(bytes.min(self.read));
        self.request_span() + self.latency + memory + self.latency + data
    }

    /// The steps of a read of at most [`Pcie::read`] bytes, where the host takes `memory` for it.
    pub fn read_course(&self, units: &Units, bytes: u32, memory: Time) -> Course {
        vec![
            Step::take(TAG, units.tags, 1),
            Step::serve(UP, units.up, self.request_span()),
            Step::delay(HOST, self.latency + memory + self.latency),
            Step::serve(DOWN, units.down, self.data_span(bytes.min(self.read))),
            Step::give(TAG, units.tags, 1),
        ]
    }

    /// The steps of a write, which is posted: by the device, or by a program.
    pub fn write_course(&self, units: &Units, by_device: bool, bytes: u32) -> Course {
        let link = if by_device { units.up } else { units.down };
        let time = self.span(self.packets(bytes.max(1), REQUEST));
        vec![Step::serve(DATA, link, time), Step::delay(HOST, self.latency)]
    }

    /// Reads of the greatest length, one behind the other as tags allow, of each of which the host
    /// takes as long as `memory` says.
    pub fn read_stream(&self, memory: &[Time]) -> ReadStream {
        let mut machine = Machine::default();
        let units = Units::new(&mut machine, self);
        for time in memory {
            let course = self.read_course(&units, self.read, *time);
            machine.add(course, [Time::ZERO]);
        }
        machine.run();
        let ends: Vec<_> = (0..memory.len()).map(|read| machine.passage(read).ended).collect();
        in_order(&ends, f64::from(self.read))
    }
}

/// Reads that ended at these times, in the order in which they began.
fn in_order(ends: &[Time], bytes: f64) -> ReadStream {
    let mut turns: Vec<_> = (0..ends.len()).collect();
    turns.sort_by_key(|read| (ends[*read], *read));
    let mut ended = vec![false; ends.len()];
    let (mut next, mut early, mut kept) = (0, 0, 0);
    for (count, read) in (1..).zip(turns) {
        ended[read] = true;
        early += usize::from(read > next);
        while ended.get(next) == Some(&true) {
            next += 1;
        }
        kept = kept.max(count - next);
    }
    let last = ends.iter().max().map_or(1, |end| end.0.max(1));
    ReadStream { rate: ends.len() as f64 * bytes * 1e12 / last as f64, early, kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MEMORY: Time = Time::from_nanos(100);

    #[test]
    fn a_generation_has_the_rates_of_the_standard() {
        let gigabytes =
            Generation::ALL.map(|generation| Pcie { generation, ..Pcie::GEN3_X16 }.raw() / 1e9);
        let expected = [4.0, 8.0, 15.754, 31.508, 63.015];
        for (ours, theirs) in gigabytes.into_iter().zip(expected) {
            assert!((ours / theirs - 1.0).abs() < 1e-4, "{ours} GB/s");
        }
    }

    #[test]
    fn short_packets_waste_the_link() {
        let share = |payload| Pcie { payload, ..Pcie::GEN3_X16 }.write_efficiency();
        assert!((share(128) - 128.0 / 152.0).abs() < 1e-12);
        assert!(share(128) < share(256) && share(256) < share(4096) && share(4096) < 1.0);
    }

    #[test]
    fn one_tag_gives_one_read_for_each_round_trip() {
        let link = Pcie { tags: 1, ..Pcie::GEN3_X16 };
        let alone = link.read_time(link.read, MEMORY);
        let stream = link.read_stream(&[MEMORY; 100]);
        let expected = f64::from(link.read) * 1e12 / alone.0 as f64;
        assert!((stream.rate / expected - 1.0).abs() < 1e-9, "{}", stream.rate);
        assert_eq!((stream.early, stream.kept), (0, 0));
    }

    #[test]
    fn reads_are_as_fast_as_their_tags_or_as_the_link() {
        for tags in [1, 2, 4, 8, 64, 256] {
            let link = Pcie { tags, ..Pcie::GEN3_X16 };
            let data = f64::from(link.read);
            let share = data / f64::from(link.packets(link.read, COMPLETION));
            let by_tags =
                f64::from(tags) * data * 1e12 / link.read_time(link.read, MEMORY).0 as f64;
            let expected = by_tags.min(link.raw() * share);
            let ours = link.read_stream(&[MEMORY; 4_000]).rate;
            assert!((ours / expected - 1.0).abs() < 0.02, "{tags} tags: {ours}, {expected}");
        }
    }

    #[test]
    fn reads_that_overtake_each_other_are_kept_at_most_as_many_as_there_are_tags() {
        let mut random = Random::new(1, 0);
        let memory: Vec<_> =
            (0..2_000).map(|_| Time::from_nanos(50 + u64::from(random.below(400)))).collect();
        let link = Pcie { tags: 16, ..Pcie::GEN3_X16 };
        let stream = link.read_stream(&memory);
        assert!(stream.early > 100, "{stream:?}");
        assert!((1..16).contains(&stream.kept), "{stream:?}");
    }
}
