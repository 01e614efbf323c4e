//! Links and queues over time, on request: how long links were busy, how much room of buffers was
//! taken, and how many packets were on their way. It has single packets on links, too.
//!
//! Time is parted into windows. When their number reaches the limit, each two become one of double
//! length. So a record of any run takes bounded memory.
use super::queue::{Length, Queue, Stretch};
use super::{NO_LANE, Network, NodeQueue, TO_NODE};
use crate::packet::{Handle, NONE, Packet};
use crate::time::Time;
use crate::topology::{Port, Topology};
use core::ops::Range;

/// A record of what links and queues do, from a time on.
#[derive(Clone, Debug)]
pub struct Record {
    /// The number of each router's first output.
    first: Vec<u32>,
    outputs: usize,
    start: Time,
    /// Binary logarithm of a window's length in picoseconds.
    shift: u32,
    /// Windows at most: an even number.
    windows_max: usize,
    /// Busy picoseconds of each output, window after window.
    busy: Vec<u64>,
    /// How many packets came on their way in each window, less those that left it.
    growth: Vec<i64>,
    /// Packets on their way at the start.
    before: usize,
    /// Those at the beginning of each window, when the record has ended.
    backlog: Vec<u64>,
    /// The room that is taken in all buffers behind links.
    room: Vec<Room>,
    lengths: Vec<Length>,
    /// The queues, when the record has ended.
    queues: Vec<Queue>,
    /// For how long it has lasted, likewise.
    span: Time,
    /// The input port at the other end of each output with a link.
    ends: Vec<Port>,
    /// The input port of each node.
    injects: Vec<Port>,
    slices: Vec<Slice>,
    slices_max: usize,
    /// Packets that found no room among the slices.
    missed: u64,
}

/// The room that is taken in the buffers behind links, in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// Bytes of all of them, summed over picoseconds.
    sum: u128,
    /// Bytes of the fullest one at its fullest time.
    most: u64,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The router that it leaves.
    pub router: u32,
    /// The output port there.
    pub port: u16,
    /// The queue that it was in there.
    pub(crate) queue: u32,
    /// Since when.
    pub came: Time,
    /// When its head takes the link.
    pub from: Time,
    /// When its tail has left.
    pub to: Time,
    /// When its source made it.
    pub born: Time,
    /// Its source.
    pub source: u32,
    /// Its target.
    pub target: u32,
    /// Its length.
    pub bytes: u32,
}

/// Numbers that all windows together may have.
const NUMBERS_MAX: usize = 1 << 22;
const WINDOWS_MAX: usize = 64;
/// The length of the first windows: about a microsecond.
const SHIFT: u32 = 20;

impl Record {
    /// A record that begins at `start`, with up to `slices` packets on links.
    pub fn new(topology: &Topology, start: Time, slices: usize) -> Self {
        let mut outputs = 0;
        let mut first = Vec::with_capacity(topology.ports.len());
        for ports in &topology.ports {
            first.push(outputs);
            outputs += u32::from(*ports);
        }
        let outputs = outputs as usize;
        let mut ends = vec![Port { router: 0, port: 0 }; outputs];
        for link in &topology.links {
            let output = first[link.from.router as usize] + u32::from(link.from.port);
            ends[output as usize] = link.to;
        }
        let windows = (NUMBERS_MAX / outputs.max(1)).clamp(2, WINDOWS_MAX);
        Self {
            first,
            outputs,
            start,
            shift: SHIFT,
            windows_max: windows & !1,
            busy: Vec::new(),
            growth: Vec::new(),
            before: 0,
            backlog: Vec::new(),
            room: Vec::new(),
            lengths: Vec::new(),
            queues: Vec::new(),
            span: Time::ZERO,
            ends,
            injects: topology.nodes.iter().map(|node| node.inject).collect(),
            slices: Vec::new(),
            slices_max: slices,
            missed: 0,
        }
    }

    /// A packet takes an output.
    fn sent(&mut self, slice: Slice, is_behind_link: bool) {
        let window = self.reach(slice.from);
        self.passed(slice.queue, (slice.came, slice.to), slice.bytes, is_behind_link);
        let output = (self.first[slice.router as usize] + u32::from(slice.port)) as usize;
        self.busy[window * self.outputs + output] += (slice.to - slice.from).0;
        if self.slices.len() < self.slices_max {
            self.slices.push(slice);
        } else {
            self.missed += 1;
        }
    }

    /// A packet is taken out of a queue behind a link at `now`.
    pub(super) fn taken_out(&mut self, queue: u32, stay: (Time, Time), bytes: u32, now: Time) {
        self.reach(now);
        self.passed(queue, stay, bytes, true);
    }

    /// There are more packets on their way, or fewer.
    pub(super) fn changed(&mut self, now: Time, by: i64) {
        let window = self.reach(now.max(self.start));
        self.growth[window] += by;
    }

    /// The window of a time, up to which there are windows now.
    fn reach(&mut self, now: Time) -> usize {
        let mut window = ((now - self.start).0 >> self.shift) as usize;
        while window >= self.windows_max {
            self.fold();
            window /= 2;
        }
        self.lengthen(window + 1);
        window
    }

    fn lengthen(&mut self, windows: usize) {
        if self.growth.len() < windows {
            self.growth.resize(windows, 0);
            self.room.resize(windows, Room::default());
            self.busy.resize(windows * self.outputs, 0);
        }
    }

    /// A packet was in a queue from when it came until it was gone.
    fn passed(&mut self, queue: u32, (came, gone): (Time, Time), bytes: u32, is_behind_link: bool) {
        let Self { lengths, room, start, shift, .. } = self;
        let tell = |stretch| take_room(room, *start, *shift, is_behind_link, stretch);
        lengths[queue as usize].passed(came, gone, bytes, tell);
    }

    /// Makes one window of each two.
    fn fold(&mut self) {
        let windows = self.growth.len();
        for window in 0..windows {
            let (from, to) = (window * self.outputs, window / 2 * self.outputs);
            for output in 0..self.outputs {
                let busy = self.busy[from + output];
                if window % 2 == 0 {
                    self.busy[to + output] = busy;
                } else {
                    self.busy[to + output] += busy;
                }
            }
        }
        let both = |pair: &[Room]| {
            let most = pair.iter().map(|room| room.most).max().unwrap_or_default();
            Room { sum: pair.iter().map(|room| room.sum).sum(), most }
        };
        self.room = self.room.chunks(2).map(both).collect();
        self.growth = self.growth.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.busy.truncate(self.growth.len() * self.outputs);
        self.shift += 1;
    }

    /// A record of another part of the network, which goes on with these queues.
    pub(super) fn beside(&self) -> Self {
        let mut other = self.clone();
        other.busy.fill(0);
        other.room.fill(Room::default());
        other.growth.fill(0);
        other.slices.clear();
        other.missed = 0;
        other
    }

    /// Adds the record of another part, to which these queues belong.
    pub(super) fn merge(&mut self, mut other: Self, queues: Range<usize>) {
        while self.shift < other.shift {
            self.fold();
        }
        while other.shift < self.shift {
            other.fold();
        }
        self.lengthen(other.growth.len());
        for (own, more) in self.busy.iter_mut().zip(other.busy) {
            *own += more;
        }
        for (own, more) in self.room.iter_mut().zip(other.room) {
            *own = Room { sum: own.sum + more.sum, most: own.most.max(more.most) };
        }
        for (own, more) in self.growth.iter_mut().zip(other.growth) {
            *own += more;
        }
        self.lengths[queues.clone()].clone_from_slice(&other.lengths[queues]);
        self.slices.append(&mut other.slices);
        self.slices.sort_by_key(|slice| (slice.from, slice.router, slice.port));
        self.missed += other.missed + self.slices.len().saturating_sub(self.slices_max) as u64;
        self.slices.truncate(self.slices_max);
    }

    /// The length of a window.
    pub fn window(&self) -> Time {
        Time(1 << self.shift)
    }

    /// The number of windows, of which the last one may have been cut short.
    pub fn windows(&self) -> usize {
        self.growth.len()
    }

    /// Packets on their way at the beginning of each window.
    pub fn backlog(&self) -> &[u64] {
        &self.backlog
    }

    /// For how long an output was busy in a window.
    pub fn busy(&self, window: usize, router: u32, port: u16) -> Time {
        let output = (self.first[router as usize] + u32::from(port)) as usize;
        Time(self.busy[window * self.outputs + output])
    }

    /// Bytes in all buffers behind links in the mean over a window, and those in the fullest one at
    /// its fullest time.
    pub fn room(&self, window: usize) -> (f64, u64) {
        let Room { sum, most } = self.room[window];
        (sum as f64 / self.window().0 as f64, most)
    }

    /// For how long it has lasted, when it has ended.
    pub fn span(&self) -> Time {
        self.span
    }

    /// The queues of routers, when the record has ended.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// The first packets on links, in the order in which they took them.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// How many more there were.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// A buffer had a length from one time to another one, which windows may part.
fn take_room(room: &mut [Room], start: Time, shift: u32, is_behind_link: bool, stretch: Stretch) {
    let mut rest = stretch;
    while is_behind_link && rest.from < stretch.to {
        let window = (rest.from - start).0 >> shift;
        let end = start + Time((window + 1) << shift);
        rest.to = stretch.to.min(end);
        let room = &mut room[window as usize];
        room.sum += rest.area();
        room.most = room.most.max(rest.bytes);
        rest.from = rest.to;
    }
}

impl Network {
    /// From now on, links and queues are recorded. It costs a little time, and changes nothing
    /// else.
    pub fn record(&mut self, mut record: Record) {
        self.join();
        record.before = self.packets.live();
        record.lengths = vec![Length::new(record.start); self.slots.len()];
        self.record = Some(Box::new(record));
    }

    /// Ends the record.
    pub fn take_record(&mut self) -> Option<Record> {
        self.join();
        let mut record = *self.record.take()?;
        let now = self.now.max(self.time).max(record.start);
        record.reach(now);
        for (number, slot) in (0..).zip(&self.slots) {
            let is_behind_link = slot.feeder != NO_LANE;
            let mut next = slot.head;
            while next != NONE {
                let packet = &self.packets[next];
                let times = (packet.ready.min(now), Time::NEVER);
                record.passed(number, times, packet.bytes, is_behind_link);
                record.lengths[number as usize].left += 1;
                next = packet.next;
            }
            let Record { lengths, room, start, shift, .. } = &mut record;
            let tell = |stretch| take_room(room, *start, *shift, is_behind_link, stretch);
            lengths[number as usize].follow(now, tell);
        }
        record.span = now - record.start;
        record.queues = self.queues(&record);
        let mut live = record.before as u64;
        for growth in &record.growth {
            record.backlog.push(live);
            live = live.saturating_add_signed(*growth);
        }
        Some(record)
    }

    /// The queues that packets may enter, with their lengths over a record.
    fn queues(&self, record: &Record) -> Vec<Queue> {
        let span = record.span.0.max(1) as f64;
        let queue = |slot: u32, port: Port, channel, from| {
            let length = &record.lengths[slot as usize];
            let (mean, most, left) = (length.sum as f64 / span, length.most, length.left);
            Queue { router: port.router, port: port.port, channel, from, mean, most, left, slot }
        };
        let mut queues = Vec::new();
        for (number, slot) in (0..).zip(&self.slots) {
            if let Some(lane) = self.lanes.get(slot.feeder as usize) {
                let output = record.first[lane.router as usize] + u32::from(lane.port);
                let channel = slot.feeder - self.outputs[output as usize].lane;
                let end = record.ends[output as usize];
                queues.push(queue(number, end, channel, Some(lane.router)));
            }
        }
        for (source, port) in self.sources.iter().zip(&record.injects) {
            let count = match self.parameters.node_queue {
                NodeQueue::PerTarget => self.nodes(),
                NodeQueue::One => 1,
            };
            queues
                .extend((0..count).map(|target| queue(source.slot + target, *port, target, None)));
        }
        queues
    }

    /// A packet leaves a router: its tail is gone at `to`.
    #[cold]
    pub(super) fn note_departure(&mut self, router: u32, port: u32, handle: Handle, from: Time) {
        let Packet { born, ready, source, target, bytes, slot, .. } = self.packets[handle];
        let (port, to) = (port as u16, from + self.parameters.link.span(bytes));
        let output = self.routers[router as usize].output + u32::from(port);
        let is_last = self.outputs[output as usize].slot == TO_NODE;
        let is_behind_link = self.slots[slot as usize].feeder != NO_LANE;
        if let Some(record) = &mut self.record {
            let slice = Slice {
                router,
                port,
                queue: slot,
                came: ready,
                from,
                to,
                born,
                source,
                target,
                bytes,
            };
            record.sent(slice, is_behind_link);
            if is_last {
                record.changed(from, -1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows have the bytes of their own time, and keep them when each two become one.
    #[test]
    fn a_stay_is_parted_among_windows() {
        let mut record = Record::new(&Topology::star(2).unwrap(), Time(1_000), 0);
        record.lengths = vec![Length::new(record.start); 2];
        let at = |quarters: u64| Time(1_000 + (quarters << SHIFT) / 4);
        record.reach(at(12));
        record.passed(0, (at(2), at(9)), 8, true);
        record.passed(0, (at(4), at(10)), 4, true);
        record.passed(0, (at(12), at(13)), 1, true);
        // The packets of a node are not in a buffer behind a link.
        record.passed(1, (at(4), at(6)), 100, false);
        record.passed(1, (at(12), at(13)), 1, false);
        let rooms = |record: &Record| -> Vec<_> {
            (0..record.windows()).map(|window| record.room(window)).collect()
        };
        assert_eq!(rooms(&record), [(4.0, 8), (12.0, 12), (2.0 + 2.0, 12), (0.0, 0)]);
        record.reach(at(4 * WINDOWS_MAX as u64));
        let rooms = rooms(&record);
        assert_eq!(rooms[..2], [(8.0, 12), (2.0, 12)]);
        assert_eq!(rooms.len(), WINDOWS_MAX / 2 + 1);
    }
}
