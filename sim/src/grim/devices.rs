//! Cards as further endpoints: their processors, their memory, and a camera (chapter 6).
use super::dma::Rate;
use crate::machine::{Machine, Part, Step};
use crate::time::Time;

/// A host and a card with a processor, which run the same software for a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The way between two hosts.
    pub host_to_host: Time,
    /// The part of that way that the hosts' processors compute.
    pub computing: Time,
    /// Clocks per second of the host, and of the card.
    pub clocks: (f64, f64),
}

impl Pair {
    /// The I2O card, an i960 at 66 MHz, in early GRIM between hosts of 550 MHz (section 6.2).
    ///
    /// Reconstructed: the card computes what the host computes, in as many clocks. The host's
    /// stores are no computing.
    pub fn i2o(computing: Time) -> Self {
        Self { host_to_host: Time::from_nanos(13_000), computing, clocks: (550.0, 66.0) }
    }

    /// Half of a round trip between the host and the card: one end computes at the card's clock.
    pub fn one_way(&self) -> Time {
        let slower = self.computing.0 as f64 * (self.clocks.0 / self.clocks.1 - 1.0);
        self.host_to_host + Time((slower / 2.0) as u64)
    }
}

/// Endpoints that share the banks of a card's memory, whose card sees one register only (6.3.6).
///
/// ```text
///   endpoints --> requests, a set each --> merged --> the card's register
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arbiter {
    /// A bit for each bank that the endpoint has requested.
    requests: Vec<u32>,
    /// The register's contents.
    register: u32,
    /// The writes to it.
    pub writes: u64,
}

impl Arbiter {
    /// For this number of endpoints.
    pub fn new(endpoints: usize) -> Self {
        Self { requests: vec![0; endpoints], ..Self::default() }
    }

    /// An endpoint requests these banks from now on, and no others. The card's register is written
    /// if the sum of all requests has changed.
    pub fn request(&mut self, endpoint: usize, banks: u32) {
        self.requests[endpoint] = banks;
        let merged = self.requests.iter().fold(0, |all, banks| all | banks);
        if merged != self.register {
            self.register = merged;
            self.writes += 1;
        }
    }

    /// The banks that the bus owns, not the card.
    pub fn owned(&self) -> u32 {
        self.register
    }
}

/// A camera whose card writes frames into the host's memory, from where they go to an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Bytes of a frame.
    pub frame: u32,
    /// Frames in a second.
    pub frames: u32,
    /// Bytes of a transfer to the host.
    pub burst: u32,
    /// Frames that the host's memory holds.
    pub buffers: u32,
}

/// The result of a stream of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Frames in a second that come through.
    pub rate: f64,
    /// The share of the bus that the camera's transfers take.
    pub camera: f64,
    /// The share of the bus that all transfers take.
    pub bus: f64,
}

const CAPTURE: Part = Part("capture");
const INJECT: Part = Part("inject");

impl Camera {
    /// NTSC with 640 x 480 pixels of 16 bits, and two frames in memory (sections 6.4.1 and 6.4.2).
    pub const NTSC: Self = Self { frame: 640 * 480 * 2, frames: 30, burst: 640 * 2, buffers: 2 };

    /// A second of frames over one bus. Each is injected in pieces of `piece` bytes, which take the
    /// bus for `inject` each.
    ///
    /// # Panics
    /// If there are fewer than five frames in a second.
    pub fn stream(&self, bus: Rate, piece: u32, inject: Time) -> Stream {
        assert!(self.frames >= 5, "a rate needs frames between the first one and the last one");
        let mut machine = Machine::default();
        let [unit, program] = [machine.unit(), machine.unit()];
        let buffers = machine.units_of(self.buffers);
        let period = Time(1_000_000_000_000 / u64::from(self.frames));
        let bursts = self.frame.div_ceil(self.burst);
        let pause = Time(period.0 / u64::from(bursts));
        let transfer = bus.span(self.burst);
        let mut course = vec![Step::take(CAPTURE, buffers, 1)];
        for _ in 0..bursts {
            course.push(Step::serve(CAPTURE, unit, transfer));
            course.push(Step::delay(CAPTURE, Time(pause.0.saturating_sub(transfer.0))));
        }
        course.push(Step::take(INJECT, program, 1));
        let pieces = self.frame.div_ceil(piece);
        course.extend((0..pieces).map(|_| Step::serve(INJECT, unit, inject)));
        course.push(Step::give(INJECT, program, 1));
        course.push(Step::give(INJECT, buffers, 1));
        let begins = (0..self.frames).map(|frame| Time(period.0 * u64::from(frame)));
        let first = machine.add(course, begins);
        machine.run();
        let last = first + self.frames as usize - 1;
        // The first frame and the last one have the bus for themselves at times.
        let [begin, end] = [first + 1, last - 1].map(|frame| machine.passage(frame).ended);
        let span = (end - begin).0 as f64;
        let (each, all) = (f64::from(bursts) * transfer.0 as f64, machine.busy(unit).0 as f64);
        Stream {
            rate: f64::from(self.frames - 3) * 1e12 / span,
            camera: each / period.0 as f64,
            bus: all / machine.passage(last).ended.0 as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_of_the_hosts_clock_is_a_host() {
        let pair = Pair { clocks: (66.0, 66.0), ..Pair::i2o(Time::from_nanos(2_000)) };
        assert_eq!(pair.one_way(), pair.host_to_host);
    }

    #[test]
    fn a_bank_is_owned_as_long_as_anybody_requests_it() {
        let mut arbiter = Arbiter::new(2);
        arbiter.request(0, 0b01);
        arbiter.request(1, 0b11);
        arbiter.request(0, 0);
        assert_eq!(arbiter.owned(), 0b11, "the other one's request stays");
        arbiter.request(1, 0);
        assert_eq!(arbiter.owned(), 0);
        arbiter.request(0, 0);
        assert_eq!(arbiter.writes, 3, "written if the sum has changed");
    }

    #[test]
    fn frames_come_at_the_pace_of_the_slower_of_camera_and_program() {
        let (bus, piece) = (Rate(132.0), 1 << 10);
        let quick = Camera::NTSC.stream(bus, piece, bus.span(piece));
        assert!((quick.rate - 30.0).abs() < 0.01, "{quick:?}");
        let share = 640.0 * 480.0 * 2.0 * 30.0 / 132e6;
        assert!((quick.camera - share).abs() < 1e-3 && (quick.bus - 2.0 * share).abs() < 0.02);
        let slow = Camera::NTSC.stream(bus, piece, Time::from_nanos(100_000));
        let least = 1.0 / (600.0 * 100e-6);
        assert!(slow.rate < least && slow.rate > 0.8 * least, "{slow:?}");
    }
}
