//! Remote queues over the wire: what a producer here has enqueued for a consumer there, and the
//! other way round. As with all lanes, a producer's lines come back once the consumer's have.
use super::lanes::{Lanes, RxLane, TxLane};
use super::pack::Pack;
use crate::lane::{Kind, Malformed, longest_of_queue};
use crate::link::frame::{Channel, Full, RecordKind};
use alloc::vec::Vec;
use core::mem::take;

/// Queues of one connection and direction.
// spec: LIM-1
pub const QUEUES_MAX: usize = 256;
/// Lines of all of them: 16 MiB.
// spec: LIM-1
pub const LINES_MAX: u32 = 1 << 17;

/// Queues of one direction, by their numbers.
#[derive(Debug)]
pub(super) struct Queues<Q> {
    all: Vec<Q>,
    /// Lines of all queues.
    lines: u32,
}

impl<Q> Default for Queues<Q> {
    fn default() -> Self {
        Self { all: Vec::new(), lines: 0 }
    }
}

impl<Q> Queues<Q> {
    /// Whether one more queue of `lines` lines is allowed.
    // spec: WIRE-9
    pub(super) fn has_room(&self, lines: u32) -> bool {
        self.all.len() < QUEUES_MAX && self.lines + lines <= LINES_MAX
    }

    /// The number of the next queue.
    pub(super) fn number(&self) -> usize {
        self.all.len()
    }

    /// Adds a queue of `lines` lines, for which there is room.
    pub(super) fn add(&mut self, queue: Q, lines: u32) {
        assert!(self.has_room(lines), "a queue is added only where it may be");
        self.all.push(queue);
        self.lines += lines;
    }

    /// Whether there is a queue of this number.
    pub(super) fn has(&self, number: usize) -> bool {
        number < self.all.len()
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Q> {
        self.all.get_mut(number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Q)> {
        self.all.iter().enumerate()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Q)> {
        self.all.iter_mut().enumerate()
    }
}

/// Records of a producer of this host on their way to a consumer of another host.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// A record that is longer than a frame that goes whole, and how much of it has gone.
    long: Vec<u8>,
    gone: usize,
}

impl Feed {
    fn check(&self) {
        debug_assert!(self.gone <= self.long.len(), "no more has gone than there is");
        debug_assert!(self.gone.is_multiple_of(8) || self.is_gone(), "parts are whole words");
    }

    fn is_gone(&self) -> bool {
        self.gone == self.long.len()
    }

    pub(super) fn is_drained(&self, number: usize, lanes: &impl Lanes) -> bool {
        self.is_gone() && lanes.head(TxLane::Queue(number)).is_none()
    }

    /// Passes on what the producer has enqueued, as far as there is room.
    pub(super) fn pass(
        &mut self,
        number: usize,
        lanes: &mut impl Lanes,
        frames: &mut impl Pack,
    ) -> Result<(), Full> {
        let lane = TxLane::Queue(number);
        self.pass_long(number, frames)?;
        while let Some(status) = lanes.head(lane) {
            // The lane is the producer's, which is our own program.
            let Ok(status) = status else { return Ok(()) };
            let len = status.len as usize;
            if len > frames.whole() {
                self.long.resize(len, 0);
                lanes.copy(lane, &mut self.long);
                self.gone = 0;
                lanes.pass(lane, &status);
                self.pass_long(number, frames)?;
            } else {
                let head = (RecordKind::Queue, number as u32);
                frames.pack(Channel::Posted, head, len, |bytes| lanes.copy(lane, bytes))?;
                lanes.pass(lane, &status);
            }
        }
        Ok(())
    }

    fn pass_long(&mut self, number: usize, frames: &mut impl Pack) -> Result<(), Full> {
        self.check();
        while self.gone < self.long.len() {
            let left = &self.long[self.gone..];
            let len = left.len().min(frames.share(Channel::Posted) & !7);
            let last = len == left.len();
            let kind = if last { RecordKind::Queue } else { RecordKind::QueuePart };
            let part = &left[..len];
            frames.pack(Channel::Posted, (kind, number as u32), len, |bytes| {
                bytes.copy_from_slice(part);
            })?;
            self.gone += len;
            self.check();
        }
        self.long.clear();
        self.gone = 0;
        Ok(())
    }
}

/// Records on their way to a consumer of this host.
#[derive(Debug)]
pub(super) struct Sink {
    record_max: usize,
    /// Parts of a record that is not whole yet.
    parts: Vec<u8>,
    told: u32,
}

impl Sink {
    /// A sink of a lane of `lines` lines.
    pub(super) const fn new(lines: u32) -> Self {
        Self { record_max: longest_of_queue(lines), parts: Vec::new(), told: 0 }
    }

    /// Takes a record or a part of one.
    // spec: WIRE-5
    pub(super) fn take(
        &mut self,
        lane: RxLane,
        (bytes, last): (&[u8], bool),
        lanes: &mut impl Lanes,
    ) -> Result<(), Malformed> {
        if self.parts.len() + bytes.len() > self.record_max {
            return Err(Malformed);
        }
        if last && self.parts.is_empty() {
            return enqueue(lane, bytes, lanes);
        }
        self.parts.extend_from_slice(bytes);
        debug_assert!(self.parts.len() <= self.record_max, "no record is longer than its queue's");
        if last {
            let record = take(&mut self.parts);
            enqueue(lane, &record, lanes)?;
        }
        Ok(())
    }

    /// The count of lines that the consumer has given back, if the producer does not know it.
    pub(super) fn news(&self, lane: RxLane, lanes: &impl Lanes) -> Option<u32> {
        let cursor = lanes.given_back(lane);
        (cursor != self.told).then_some(cursor)
    }

    pub(super) const fn told(&mut self, cursor: u32) {
        self.told = cursor;
    }
}

/// Its producer knows what there is room for.
fn enqueue(lane: RxLane, record: &[u8], lanes: &mut impl Lanes) -> Result<(), Malformed> {
    lanes.publish(lane, (Kind::Record, 0), record).map_err(|_| Malformed)
}
