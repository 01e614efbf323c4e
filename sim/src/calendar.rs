//! The queue of events, in order of time.
//!
//! ```text
//!            now                       window of BUCKETS widths of time
//!             |                                        |
//!   current: [e e e]   buckets: [ ] [e e] [ ] [e] ... [ ]   far: heap of all later events
//!             sorted             not sorted
//! ```
//!
//! An event is inserted into the bucket of its time, and a bucket is sorted when its time has come.
//! So an event costs two moves and its share of sorting a few. The memory of emptied buckets goes
//! to the next ones that fill, so that it stays in the cache.
//!
//! Events of one time come in an order that depends on how they were inserted. A model has to come
//! to the same state in whatever order it takes them: then its course depends neither on this
//! module nor on the number of threads. Models do so in two phases. They note all events of one
//! time first, and decide afterwards.
use crate::random::mix;
use crate::time::Time;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event, in the terms of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When it happens.
    pub at: Time,
    /// The event itself.
    pub what: u64,
}

/// Buckets in the window.
const BUCKETS: usize = 1024;
/// Words that have a bit for each bucket.
const WORDS: usize = BUCKETS / 64;

/// Events in order of their times.
#[derive(Debug)]
pub struct Calendar {
    /// Binary logarithm of a bucket's width in picoseconds.
    shift: u32,
    /// The events of the bucket whose time it is, those from `taken` on still to come.
    current: Vec<Event>,
    taken: usize,
    /// The number of that bucket, counted from time zero.
    bucket: u64,
    buckets: Box<[Vec<Event>]>,
    /// A bit for each bucket that is not empty.
    filled: [u64; WORDS],
    far: BinaryHeap<Reverse<Event>>,
    /// Emptied memory of buckets.
    spare: Vec<Vec<Event>>,
    /// Decides on the order of events of one time, in tests.
    scramble: Option<u64>,
}

impl Calendar {
    /// An empty calendar. Buckets are about as wide as `step`, which decides on speed only: best
    /// is a clock's period, or the time in which two or three events come.
    pub fn new(step: Time) -> Self {
        Self {
            shift: step.0.clamp(1, 1 << 40).ilog2(),
            current: Vec::new(),
            taken: 0,
            bucket: 0,
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            filled: [0; WORDS],
            far: BinaryHeap::new(),
            spare: Vec::new(),
            scramble: None,
        }
    }

    /// Events of one time come in an order that follows from `seed` from now on: for tests, which
    /// show that a model does not depend on it.
    #[doc(hidden)]
    pub fn scramble(&mut self, seed: u64) {
        self.scramble = Some(seed);
    }

    /// Inserts an event. It may not be earlier than the last time that was returned.
    #[inline]
    pub fn insert(&mut self, event: Event) {
        let bucket = event.at.0 >> self.shift;
        let ahead = bucket.wrapping_sub(self.bucket);
        // A bucket before the current one wraps round, and is `insert_now`'s as the current one is.
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1 {
            self.insert_near(bucket, event);
        } else {
            self.insert_elsewhere(ahead, event);
        }
    }

    #[inline]
    fn insert_near(&mut self, bucket: u64, event: Event) {
        let index = bucket as usize % BUCKETS;
        let events = &mut self.buckets[index];
        if events.is_empty() {
            self.filled[index / 64] |= 1 << (index % 64);
            if events.capacity() == 0 {
                *events = self.spare.pop().unwrap_or_default();
            }
        }
        events.push(event);
    }

    #[cold]
    fn insert_elsewhere(&mut self, ahead: u64, event: Event) {
        if ahead as i64 <= 0 {
            let place = self.current[self.taken..].partition_point(|other| other.at <= event.at);
            self.current.insert(self.taken + place, event);
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// Takes all events out, in no order.
    pub(crate) fn take_all(&mut self) -> Vec<Event> {
        let mut events = self.current.split_off(self.taken);
        for bucket in &mut self.buckets {
            events.append(bucket);
        }
        self.filled = [0; WORDS];
        events.extend(self.far.drain().map(|Reverse(event)| event));
        events
    }

    /// An empty calendar with buckets as wide, in which events of one time have the same order.
    pub(crate) fn beside(&self) -> Self {
        let width = Time(1 << self.shift);
        Self { bucket: self.bucket, scramble: self.scramble, ..Self::new(width) }
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&mut self) -> Option<Time> {
        if self.taken == self.current.len() && !self.turn_over() {
            return None;
        }
        Some(self.current[self.taken].at)
    }

    /// Takes an event of this time, which [`next_time`](Self::next_time) has returned.
    #[inline]
    pub fn take_at(&mut self, at: Time) -> Option<u64> {
        let event = *self.current.get(self.taken)?;
        if event.at != at {
            return None;
        }
        self.taken += 1;
        Some(event.what)
    }

    /// Makes the next bucket with events the current one.
    fn turn_over(&mut self) -> bool {
        let near = self.next_filled();
        let far = self.far.peek().map(|Reverse(event)| event.at.0 >> self.shift);
        self.bucket = match (near, far) {
            (None, None) => return false,
            (Some(near), None) => near,
            (None, Some(far)) => far,
            (Some(near), Some(far)) => near.min(far),
        };
        if far.is_some() {
            self.bring_near();
        }
        let index = self.bucket as usize % BUCKETS;
        self.filled[index / 64] &= !(1 << (index % 64));
        let next = core::mem::take(&mut self.buckets[index]);
        let mut emptied = core::mem::replace(&mut self.current, next);
        emptied.clear();
        self.spare.push(emptied);
        if let Some(seed) = self.scramble {
            self.current.sort_unstable_by_key(|event| (event.at, mix(seed ^ mix(event.what))));
        } else if !self.current.is_sorted_by_key(|event| event.at) {
            self.current.sort_unstable_by_key(|event| event.at);
        }
        self.taken = 0;
        true
    }

    /// Moves the events that have come into the window from the heap to their buckets.
    fn bring_near(&mut self) {
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let bucket = event.at.0 >> self.shift;
            if bucket - self.bucket >= BUCKETS as u64 {
                return;
            }
            self.far.pop();
            self.insert_near(bucket, event);
        }
    }

    /// The number of the first bucket in the window that has events.
    fn next_filled(&self) -> Option<u64> {
        let first = self.bucket as usize % BUCKETS;
        let mut word = first / 64;
        let mut bits = self.filled[word] & u64::MAX << (first % 64);
        // The first word comes twice: its later bits first, its earlier ones last.
        for _ in 0..=WORDS {
            if bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.bucket + (index.wrapping_sub(first) % BUCKETS) as u64);
            }
            word = (word + 1) % WORDS;
            bits = self.filled[word];
        }
        None
    }
}
