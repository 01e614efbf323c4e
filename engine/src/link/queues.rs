//! Remote queues over the wire: what a producer here has enqueued for a consumer there, and the
//! other way round. As with all lanes, a producer's lines come back once the consumer's have.
use super::pack::{Full, Pack};
use crate::error::SetupError;
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::map::{Mapping, Pages, memory_file, seal_seals};
use crate::mem::queue::{file_len, lane, record_max};
use crate::peer::packet::{Packet, PacketKind};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::{LANE_LINES_MAX, LANE_LINES_MIN};
use ayre_proto::link::frame::{Channel, RecordKind};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Queues of one connection and direction.
// spec: LIM-1
const QUEUES_MAX: usize = 256;
/// Lines of all of them: 16 MiB.
// spec: LIM-1
const LINES_MAX: u32 = 1 << 17;

/// Records of a producer of ours on their way to a consumer of another host.
#[derive(Debug)]
pub(crate) struct Feed {
    number: u32,
    lane: LaneReceiver,
    /// A record that is longer than a frame that goes whole, and how much of it has gone.
    long: Vec<u8>,
    gone: usize,
}

impl Feed {
    /// A peer offers a queue under its number: what stands for it here, and the offer for our port.
    pub(crate) fn offered(words: [u64; 7], known: &[Self]) -> Result<(Self, Packet), Malformed> {
        let [_, lines, number, ..] = words;
        let valid = (LANE_LINES_MIN as u64..=LANE_LINES_MAX as u64).contains(&lines);
        if !valid || number != known.len() as u64 {
            return Err(Malformed);
        }
        let lines = lines as u32;
        if !has_room(known.iter().map(|feed| feed.lane.lines()), lines) {
            return Err(Malformed);
        }
        // Without memory for it the queue cannot be, and so neither can the connection.
        let (file, mapping) = queue_file(lines).map_err(|_| Malformed)?;
        let lane = lane(&mapping, lines).receiver();
        let feed = Self { number: number as u32, lane, long: Vec::new(), gone: 0 };
        let packet = Packet { kind: PacketKind::OfferQueue, words, fds: vec![file] };
        Ok((feed, packet))
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.gone == self.long.len() && self.lane.peek().is_none()
    }

    /// Passes on what the producer has enqueued, as far as there is room.
    pub(crate) fn pass(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        self.pass_long(frames)?;
        while let Some(status) = self.lane.peek() {
            // The lane is the producer's, which is our own program.
            let Ok(status) = status else { return Ok(()) };
            let len = status.len as usize;
            if len > frames.whole() {
                self.long.resize(len, 0);
                self.lane.copy(0, &mut self.long);
                self.gone = 0;
                self.lane.pass(&status);
                self.pass_long(frames)?;
            } else {
                let Self { lane, number, .. } = self;
                let head = (RecordKind::Queue, *number);
                frames.pack(Channel::Posted, head, len, |bytes| lane.copy(0, bytes))?;
                lane.pass(&status);
            }
        }
        Ok(())
    }

    fn pass_long(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        while self.gone < self.long.len() {
            let left = &self.long[self.gone..];
            let len = left.len().min(frames.share(Channel::Posted) & !7);
            let last = len == left.len();
            let kind = if last { RecordKind::Queue } else { RecordKind::QueuePart };
            let part = &left[..len];
            frames.pack(Channel::Posted, (kind, self.number), len, |bytes| {
                bytes.copy_from_slice(part);
            })?;
            self.gone += len;
        }
        self.long.clear();
        self.gone = 0;
        Ok(())
    }

    pub(crate) fn give_back(&mut self, consumed: u32) -> Result<(), Malformed> {
        self.lane.give_back(consumed)
    }
}

/// Records that come for a consumer of ours.
#[derive(Debug)]
pub(crate) struct Sink {
    lane: LaneSender,
    record_max: usize,
    /// Parts of a record that is not whole yet.
    parts: Vec<u8>,
    told: u32,
}

impl Sink {
    /// For a queue that our port offers beside others. None where it is beyond all measure, or
    /// there is no memory to map it: then it is not offered, as what nobody accepts.
    pub(crate) fn over(packet: &Packet, others: &[Self]) -> Option<Self> {
        let lines = packet.words[1] as u32;
        if !has_room(others.iter().map(|sink| sink.lane.lines()), lines) {
            return None;
        }
        let file = packet.fds.first()?;
        let mapping = Mapping::foreign(file.as_fd(), file_len(lines), true).ok()?;
        let lane = lane(&Arc::new(mapping), lines).sender();
        Some(Self { lane, record_max: record_max(lines), parts: Vec::new(), told: 0 })
    }

    /// Takes a record or a part of one.
    // spec: WIRE-5
    pub(crate) fn take(&mut self, bytes: &[u8], last: bool) -> Result<(), Malformed> {
        if self.parts.len() + bytes.len() > self.record_max {
            return Err(Malformed);
        }
        if last && self.parts.is_empty() {
            return self.enqueue(bytes);
        }
        self.parts.extend_from_slice(bytes);
        if last {
            let record = std::mem::take(&mut self.parts);
            self.enqueue(&record)?;
        }
        Ok(())
    }

    fn enqueue(&mut self, record: &[u8]) -> Result<(), Malformed> {
        self.lane.push((Kind::Record, 0), [], record).map_err(|_| Malformed)
    }

    /// The count of lines that the consumer has given back, if the producer does not know it.
    pub(crate) fn news(&self) -> Option<u32> {
        let cursor = self.lane.given_back();
        (cursor != self.told).then_some(cursor)
    }

    pub(crate) fn told(&mut self, cursor: u32) {
        self.told = cursor;
    }
}

/// Whether one more queue of so many lines may be beside others.
fn has_room(others: impl Iterator<Item = u32>, lines: u32) -> bool {
    let (count, sum) = others.fold((0, 0), |(count, sum), lines| (count + 1, sum + lines));
    count < QUEUES_MAX && sum + lines <= LINES_MAX
}

fn queue_file(lines: u32) -> Result<(OwnedFd, Arc<Mapping>), SetupError> {
    let len = file_len(lines);
    let file = memory_file(len, Pages::Ordinary)?;
    seal_seals(file.as_fd())?;
    let mapping = Arc::new(Mapping::own(file.as_fd(), len)?);
    Ok((file, mapping))
}
