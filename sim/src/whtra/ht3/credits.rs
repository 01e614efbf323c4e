//! The rates that credits allow (section V).
//!
//! ```text
//!   FPGA                                  processor
//!   take a credit --> link --> FPGA's half of the way --> buffer
//!        ^                                                  |
//!        '------ FPGA's other half <--- NOP with a credit <-'
//! ```
//!
//! The source gives 655 ns for a program's read of the device. Less the processor's share and the
//! link, it is the way through serializers and pipeline of the FPGA, in and out. A credit takes
//! the same way. The processor gives back a buffer at once: the source blames the FPGA alone.
use super::HT1600_8;
use crate::machine::{Machine, Part, Step};
use crate::time::Time;

/// Buffers of the processor's link, by virtual channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// For posted requests.
    pub posted: u32,
    /// For requests with a response.
    pub nonposted: u32,
    /// For responses.
    pub response: u32,
    /// For requests of isochronous traffic.
    pub isochronous: u32,
    /// For any channel; our FPGA does not use them.
    pub free: u32,
}

impl Split {
    /// The counts that coreboot sets for a link to a device on this processor family: 7 posted,
    /// 14 non-posted, 2 responses, 1 isochronous, 8 free. Reconstructed: the source gives none.
    pub const DEFAULT: Self =
        Self { posted: 7, nonposted: 14, response: 2, isochronous: 1, free: 8 };

    /// Free and isochronous buffers go to the posted channel. Reconstructed: the source says only
    /// that the posted channel got more.
    pub fn for_posted(self) -> Self {
        let posted = self.posted + self.free + self.isochronous;
        Self { posted, isochronous: 0, free: 0, ..self }
    }

    /// All buffers.
    pub fn all(&self) -> u32 {
        self.posted + self.nonposted + self.response + self.isochronous + self.free
    }
}

/// The times of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Through the FPGA, in and out.
    pub fpga: Time,
    /// From a read's arrival at the processor to its data.
    pub memory: Time,
    /// Reads that the device may have under way: five bits of tags.
    pub tags: u32,
}

/// Bytes of a command with its CRC, of a NOP with its CRC, and of a payload.
const COMMAND: u32 = 8 + 4;
const NOP: u32 = 4 + 4;
/// The payload of a packet (section V).
pub const PAYLOAD: u32 = 64;
/// A packet of a posted write: command, data, CRC.
const WRITE: u32 = COMMAND + PAYLOAD;
/// A response: half a command, data, CRC. The NOP of a credit goes with it, between packets.
const RESPONSE: u32 = NOP + PAYLOAD + NOP;

const CREDIT: Part = Part("credit");
const LINK: Part = Part("link");
const WAY: Part = Part("way");

impl Device {
    /// The device whose read by a program takes `round_trip`, of which `host` is the processor's.
    /// Its DMA reads need 70 ns in the memory (EXTOLL thesis, table 3-1).
    pub fn measured(round_trip: Time, host: Time) -> Self {
        let link = HT1600_8.span(COMMAND) + HT1600_8.span(NOP + 4);
        let fpga = Time(round_trip.0.saturating_sub((host + link).0));
        Self { fpga, memory: Time::from_nanos(70), tags: 32 }
    }

    fn half(&self) -> Time {
        Time(self.fpga.0 / 2)
    }

    /// From taking a credit to having it back, for a packet of this length.
    fn turn(&self, bytes: u32) -> Time {
        Time(2 * self.half().0) + HT1600_8.span(bytes) + HT1600_8.span(NOP)
    }

    /// The loop of a posted write's credit.
    pub fn write_loop(&self) -> Time {
        self.turn(WRITE)
    }

    /// The loop of a read's credit.
    pub fn read_loop(&self) -> Time {
        self.turn(COMMAND)
    }

    /// Megabytes per second of DMA writes with this number of credits.
    pub fn writes(&self, credits: u32) -> f64 {
        let mut machine = Machine::default();
        let (pool, up) = (machine.units_of(credits), machine.unit());
        let course = vec![
            Step::take(CREDIT, pool, 1),
            Step::serve(LINK, up, HT1600_8.span(WRITE)),
            Step::delay(WAY, self.half()),
            Step::delay(LINK, HT1600_8.span(NOP)),
            Step::delay(WAY, self.half()),
            Step::give(CREDIT, pool, 1),
        ];
        rate(machine, course)
    }

    /// Megabytes per second of DMA reads with this number of credits.
    pub fn reads(&self, credits: u32) -> f64 {
        let mut machine = Machine::default();
        let (pool, tags) = (machine.units_of(credits), machine.units_of(self.tags));
        let (up, down) = (machine.unit(), machine.unit());
        let course = vec![
            Step::take(CREDIT, tags, 1),
            Step::take(CREDIT, pool, 1),
            Step::serve(LINK, up, HT1600_8.span(COMMAND)),
            Step::delay(WAY, self.half()),
            Step::delay(LINK, HT1600_8.span(NOP)),
            Step::delay(WAY, self.half()),
            Step::give(CREDIT, pool, 1),
            // The data follow the credit, and pass the same way.
            Step::delay(WAY, self.memory),
            Step::serve(LINK, down, HT1600_8.span(RESPONSE)),
            Step::give(CREDIT, tags, 1),
        ];
        rate(machine, course)
    }
}

/// Packets of a stream; the second half is measured.
const PACKETS: usize = 4_000;

fn rate(mut machine: Machine, course: Vec<Step>) -> f64 {
    let first = machine.add(course, [Time::ZERO; PACKETS]);
    machine.run();
    let [begin, end] = [PACKETS / 2, PACKETS].map(|item| machine.passage(first + item - 1).ended);
    PACKETS as f64 / 2.0 * f64::from(PAYLOAD) * 1e6 / (end - begin).0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device =
        Device { fpga: Time::from_nanos(500), memory: Time::from_nanos(70), tags: 32 };

    #[test]
    fn writes_climb_by_one_payload_a_loop_up_to_the_link() {
        let link = f64::from(PAYLOAD) * 1e6 / HT1600_8.span(WRITE).0 as f64;
        for credits in 1..40 {
            let line = f64::from(credits * PAYLOAD) * 1e6 / DEVICE.write_loop().0 as f64;
            let (ours, due) = (DEVICE.writes(credits), line.min(link));
            assert!((ours / due - 1.0).abs() < 0.01, "{credits} credits: {ours} and {due}");
        }
    }

    #[test]
    fn reads_stop_climbing_when_all_tags_are_out() {
        let device = Device { tags: 4, ..DEVICE };
        let way = device.read_loop() + device.memory + HT1600_8.span(RESPONSE);
        let due = f64::from(4 * PAYLOAD) * 1e6 / way.0 as f64;
        assert!((device.reads(30) / due - 1.0).abs() < 0.01, "{} and {due}", device.reads(30));
    }

    #[test]
    fn a_new_split_has_as_many_buffers() {
        assert_eq!(Split::DEFAULT.all(), 32);
        assert_eq!(Split::DEFAULT.for_posted().all(), 32);
    }
}
