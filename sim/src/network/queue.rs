//! How long queues are over time, on request.
//!
//! A packet takes room in its queue from when it may ask for an output until its tail has left.
//!
//! ```text
//!   bytes         .-----.
//!     ^     .-----'     '--.
//!     |-----'              '--------> time
//!         comes comes    gone gone
//! ```
//!
//! Both times are known when it leaves. So packets that come cost nothing, and a queue is followed
//! up to the coming of the packet that left last: all that came before it have left, too.
use crate::time::Time;
use std::collections::VecDeque;

/// A queue of a router over the time of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// The router that it is in.
    pub router: u32,
    /// The input port there.
    pub port: u16,
    /// The virtual channel of the link, or the target where a node has a queue for each.
    pub channel: u32,
    /// The router at the other end of the link; nothing, if a node fills the queue.
    pub from: Option<u32>,
    /// Its bytes, in the mean over time.
    pub mean: f64,
    /// Its bytes when it was longest.
    pub most: u64,
    /// Packets that were in it at the end of the record.
    pub left: u64,
    /// The number that packets on links name it by.
    pub(crate) slot: u32,
}

/// The length of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Length {
    /// It is known up to then.
    since: Time,
    /// Its bytes at that time.
    bytes: u64,
    /// Packets that are in it by then, in the order in which they leave: when, and their bytes.
    leaving: VecDeque<(Time, u32)>,
    /// Its bytes, summed over picoseconds.
    pub(super) sum: u128,
    pub(super) most: u64,
    pub(super) left: u64,
}

impl Length {
    pub(super) fn new(since: Time) -> Self {
        Self { since, ..Self::default() }
    }

    /// A packet was in the queue, whose time in it is known now.
    pub(super) fn passed(&mut self, came: Time, gone: Time, bytes: u32, tell: impl FnMut(Stretch)) {
        self.follow(came, tell);
        self.leaving.push_back((gone, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Follows the queue up to `to`, and tells each time in which its length stayed.
    pub(super) fn follow(&mut self, to: Time, mut tell: impl FnMut(Stretch)) {
        loop {
            let first = self.leaving.front().copied().filter(|(gone, _)| *gone <= to);
            let end = first.map_or(to, |(gone, _)| gone);
            if end > self.since {
                let stretch = Stretch { from: self.since, to: end, bytes: self.bytes };
                self.sum += stretch.area();
                self.most = self.most.max(self.bytes);
                if self.bytes > 0 {
                    tell(stretch);
                }
                self.since = end;
            }
            let Some((_, bytes)) = first else { return };
            self.leaving.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }
}

/// A time in which a queue had one length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) bytes: u64,
}

impl Stretch {
    /// Bytes, summed over picoseconds.
    pub(super) fn area(&self) -> u128 {
        u128::from(self.bytes) * u128::from((self.to - self.from).0)
    }
}
