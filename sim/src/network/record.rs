//! Links over time, on request: how long each was busy, how many packets were on their way, and
//! single packets on links.
//!
//! Time is parted into windows. When their number reaches the limit, each two become one of double
//! length. So a record of any run takes bounded memory.
use super::Network;
use crate::packet::{Handle, Packet};
use crate::time::Time;
use crate::topology::Topology;

/// A record of what links do, from a time on.
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
    /// Packets on their way when the window's first packet left a router.
    backlog: Vec<u64>,
    slices: Vec<Slice>,
    slices_max: usize,
    /// Packets that found no room among the slices.
    missed: u64,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The router that it leaves.
    pub router: u32,
    /// The output port there.
    pub port: u16,
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
        let windows = (NUMBERS_MAX / outputs.max(1)).clamp(2, WINDOWS_MAX);
        Self {
            first,
            outputs,
            start,
            shift: SHIFT,
            windows_max: windows & !1,
            busy: Vec::new(),
            backlog: Vec::new(),
            slices: Vec::new(),
            slices_max: slices,
            missed: 0,
        }
    }

    /// A packet takes an output from `from` to `to`, while `backlog` packets are on their way.
    fn sent(&mut self, slice: Slice, backlog: usize) {
        let mut window = ((slice.from - self.start).0 >> self.shift) as usize;
        while window >= self.windows_max {
            self.fold();
            window /= 2;
        }
        while self.backlog.len() <= window {
            self.backlog.push(backlog as u64);
            self.busy.resize(self.busy.len() + self.outputs, 0);
        }
        let output = (self.first[slice.router as usize] + u32::from(slice.port)) as usize;
        self.busy[window * self.outputs + output] += (slice.to - slice.from).0;
        if self.slices.len() < self.slices_max {
            self.slices.push(slice);
        } else {
            self.missed += 1;
        }
    }

    /// Makes one window of each two.
    fn fold(&mut self) {
        let windows = self.backlog.len();
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
        self.backlog = self.backlog.iter().copied().step_by(2).collect();
        self.busy.truncate(self.backlog.len() * self.outputs);
        self.shift += 1;
    }

    /// The length of a window.
    pub fn window(&self) -> Time {
        Time(1 << self.shift)
    }

    /// The number of windows, of which the last one may have been cut short.
    pub fn windows(&self) -> usize {
        self.backlog.len()
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

    /// The first packets on links, in the order in which they took them.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// How many more there were.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl Network {
    /// From now on, links are recorded. It costs a little time, and changes nothing else.
    pub fn record(&mut self, record: Record) {
        self.join();
        self.record = Some(Box::new(record));
    }

    /// Ends the record.
    pub fn take_record(&mut self) -> Option<Record> {
        self.record.take().map(|record| *record)
    }

    /// A packet leaves a router.
    #[cold]
    pub(super) fn note_departure(&mut self, router: u32, port: u32, handle: Handle, from: Time) {
        let Packet { born, source, target, bytes, .. } = self.packets[handle];
        let (port, to) = (port as u16, from + self.parameters.link.span(bytes));
        let backlog = self.packets.live();
        if let Some(record) = &mut self.record {
            record.sent(Slice { router, port, from, to, born, source, target, bytes }, backlog);
        }
    }
}
