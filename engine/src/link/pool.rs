//! The frame buffers of a port, and what each of its links has of them.
//!
//! ```text
//!   |--- reserved: the least for each link that there can be ---|------- shared -------|
//!    given to links | kept for links to come                     given      | free
//! ```
//!
//! A credit promises a buffer, and promises cannot be taken back: so they are counted before they
//! are given. A link always finds its least, with which it goes on, however much others have. A
//! channel that uses what it has gets more of the shared part, and one that does not gives that
//! back with what it takes next.
use crate::sync::{AtomicU32, Ordering};
use ayre_proto::link::WINDOW;
use ayre_proto::link::frame::{CHANNELS, Channel};
use std::sync::Arc;

/// Frame buffers of a port: 49 MB, with an MTU of 1500 bytes, if all were filled.
// spec: WIRE-12
const BUFFERS: u32 = 32768;
/// Bytes of a buffer, with that MTU.
const BUFFER_BYTES: u64 = 1500;
/// Those that each channel of a link has in any case.
// spec: WIRE-12
const LEAST: u32 = 4;
/// A channel gets no more beyond its least than this part of the free buffers. So a few busy links
/// have enough, and many links come to have equal parts.
const PART: u32 = 8;
/// Nanoseconds without a frame after which a channel is taken for unused.
const IDLE: u64 = 1_000_000_000;
const _: () = assert!(PART > 1, "no channel gets all that is free");

/// The frame buffers of a port. They are counted here; memory is taken as frames come.
#[derive(Debug)]
pub(crate) struct Pool {
    links_max: u32,
    shared: u32,
    /// Links that have their least, and what is given of the shared part: only changed under the
    /// wire's lock.
    links: AtomicU32,
    given: AtomicU32,
}

/// How many buffers there are, by what has become of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) in_all: u32,
    /// To links.
    pub(crate) given: u32,
    /// For links to come.
    pub(crate) reserved: u32,
}

impl Pool {
    /// The pool of a port that may have `links` links, and whose process may use this number of
    /// bytes for them.
    // spec: WIRE-12, LIM-5
    pub(crate) fn of_port(links_max: usize, bytes: u64) -> Arc<Self> {
        let links_max = links_max as u32;
        let shared = BUFFERS.saturating_sub(links_max * LEAST * CHANNELS as u32);
        let affordable = (bytes / BUFFER_BYTES).max(u64::from(PART * LEAST));
        Self::new(links_max, u64::from(shared).min(affordable) as u32)
    }

    /// The least for this number of links, and the number of buffers that all of them share.
    fn new(links_max: u32, shared: u32) -> Arc<Self> {
        let (links, given) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { links_max, shared, links, given })
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        debug_assert!(self.links.load(Ordering::Relaxed) <= self.links_max, "each has its least");
        debug_assert!(self.given.load(Ordering::Relaxed) <= self.shared, "promises are kept");
    }

    pub(crate) fn counts(&self) -> Counts {
        // Relaxed, here and below: under the wire's lock.
        let links = self.links.load(Ordering::Relaxed);
        let least = LEAST * CHANNELS as u32;
        Counts {
            in_all: self.links_max * least + self.shared,
            given: links * least + self.given.load(Ordering::Relaxed),
            reserved: (self.links_max - links) * least,
        }
    }

    /// Of a channel that has some of the shared part and gives some of it back: how many more it
    /// gets, of those that it wants.
    // spec: WIRE-12
    fn trade(&self, (has, back): (u32, u32), wants: u32) -> u32 {
        debug_assert!(back <= has, "a channel gives back what it has");
        let given = self.given.load(Ordering::Relaxed) - back;
        let gets = ((self.shared - given) / PART).saturating_sub(has - back).min(wants);
        if gets != back {
            self.given.store(given + gets, Ordering::Relaxed);
        }
        self.check();
        gets
    }
}

/// One link's share of its port's buffers; the rest of it goes back with the link.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<Pool>,
    channels: [Part; CHANNELS],
}

/// Of one channel.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Its share of the common part.
    shared: u32,
    /// How many buffers it should have.
    target: u32,
    /// Frames that were taken since that has changed.
    taken: u32,
    /// When the last one was.
    taken_at: u64,
}

impl Share {
    /// The least that a link has.
    // spec: WIRE-12
    pub(crate) fn of(pool: &Arc<Pool>) -> Self {
        let links = pool.links.fetch_add(1, Ordering::Relaxed);
        assert!(links < pool.links_max, "a port has at most so many links");
        let part = Part { shared: 0, target: LEAST, taken: 0, taken_at: 0 };
        Self { pool: pool.clone(), channels: [part; CHANNELS] }
    }

    /// Buffers with which each channel begins.
    pub(crate) const fn least(&self) -> u32 {
        LEAST
    }

    /// The program has taken a frame of a channel, which has this number of buffers left. Returns
    /// how many more it gets.
    // spec: LINK-4, WIRE-12
    pub(crate) fn renew(&mut self, channel: Channel, left: u32, now: u64) -> u32 {
        let part = &mut self.channels[channel.index()];
        part.on_taken(now);
        let keeps = left.saturating_sub(LEAST);
        let wants = part.target.saturating_sub(left.max(LEAST));
        let gets = self.pool.trade((part.shared, part.shared - keeps), wants);
        part.shared = keeps + gets;
        LEAST.saturating_sub(left) + gets
    }
}

impl Part {
    /// A channel that has used up what it had should have twice as much, and one that was not used
    /// its least.
    fn on_taken(&mut self, now: u64) {
        if now.saturating_sub(self.taken_at) >= IDLE {
            (self.target, self.taken) = (LEAST, 0);
        }
        (self.taken, self.taken_at) = (self.taken + 1, now);
        if self.taken >= self.target {
            (self.target, self.taken) = ((2 * self.target).min(WINDOW), 0);
        }
        debug_assert!((LEAST..=WINDOW).contains(&self.target), "a channel has its least, or more");
        debug_assert!(self.taken < self.target, "what is used up is doubled");
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let shared = self.channels.iter().map(|part| part.shared).sum();
        let given = self.pool.given.fetch_sub(shared, Ordering::Relaxed);
        let links = self.pool.links.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(given >= shared && links > 0, "what goes back was given");
    }
}

const _: () = assert!(LEAST <= WINDOW, "a channel can have its least");

#[cfg(all(test, not(loom)))]
mod tests;
