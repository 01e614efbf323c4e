//! A queue of records in shared memory, with many producers and many consumers.
//!
//! ```text
//!   0     mark, bytes of the ring, most records
//!   64    the producers' mutex          128   the consumers' mutex
//!   192   tail, seam, jump; head and free as producers have last seen them
//!   256   head, free; tail as consumers have last seen it
//!   320   where consumers sleep         384   where producers sleep
//!   448   records that are done with
//!   4096  the ring: for each record eight bytes for its length, and its bytes
//! ```
//!
//! One word says how far the producers are, and one how far the consumers are. Each is stored when
//! all else of a record is done, under a mutex. So there is nothing to repair when a process dies:
//! a record is there, or it is not. Consumers give pages back between storing `head` and `free`,
//! and producers go up to `free`.
use super::SLEEP;
use super::places::{Cursor, LINE, Limits, Places, Step};
use crate::clock;
use crate::error::{Busy, Fault, PostError, ReceiveError, SetupError};
use crate::mem::file::{Pages, is_sealed, memory_file, round_to_pages, seal_seals};
use crate::mem::map::Mapping;
use crate::mem::robust::{Bed, MUTEX_BYTES, Mutex, Taken, sleep_at, wake_at};
use crate::sync::Ordering;
use crate::sys::descriptor::{self, Descriptor};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, fallocate, fstat};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MARK: u64 = u64::from_le_bytes(*b"ayrequeu");
const CAPACITY: u64 = 8;
const MOST: u64 = 16;
const PRODUCERS: u64 = 64;
const CONSUMERS: u64 = 128;
const TAIL: u64 = 192;
const HEAD_SEEN: u64 = 200;
const FREE_SEEN: u64 = 208;
const SEAM: u64 = 216;
const JUMP: u64 = 224;
const HEAD: u64 = 256;
const FREE: u64 = 264;
const TAIL_SEEN: u64 = 272;
const NEWS: u64 = 320;
const ROOM: u64 = 384;
const DONE: u64 = 448;
const RING: u64 = 4096;

const _: () = assert!(CONSUMERS - PRODUCERS >= MUTEX_BYTES as u64, "a mutex has its line");

/// Bytes before a record.
const HEADER: usize = 8;
/// Producers turn back behind this line at the earliest: 256 KiB.
const WARM: u32 = 1 << 12;
/// The lines of the ring whose pages stay: 32 MiB.
const KEEP: u32 = 1 << 19;
/// Lines whose pages are given back at a time: 4 MiB.
const STEP: u32 = 1 << 16;
/// From a line to one that it is not soon.
const FAR: u32 = 1 << 31;
/// Waits for another one's copy last this long even if the time of the call is over.
const COPY: Duration = Duration::from_millis(50);
/// Polls of a wait before it sleeps: for about twice as long as a wake-up. Processes with queues
/// often outnumber processors.
const POLLS: u32 = 750;
/// Attempts to take a mutex before a thread sleeps at it.
const ATTEMPTS: u32 = 100;

/// A queue of records that processes share: many put records in, and each record is taken by one.
///
/// Records of one producer are taken in their order. The queue takes as much memory as waits in it,
/// and up to 36 MiB that were used before. Any thread may call it. Other processes get it as
/// [the module](crate::shared) says.
///
/// A record whose producer dies on the way is not there, and one whose consumer dies before the
/// call has returned stays.
#[derive(Debug)]
pub struct SharedQueue {
    mapping: Arc<Mapping>,
    file: Descriptor,
    producers: Mutex,
    consumers: Mutex,
    places: Places,
    most: u32,
}

/// A record that is being taken.
#[derive(Debug)]
pub struct SharedRecord<'a> {
    mapping: &'a Mapping,
    at: u64,
    len: usize,
}

impl SharedRecord<'_> {
    /// The length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes out, from an offset on.
    ///
    /// # Panics
    /// Panics if the range exceeds the record.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let fits = offset.checked_add(into.len()).is_some_and(|end| end <= self.len);
        assert!(fits, "{} bytes at {offset} leave a record of {}", into.len(), self.len);
        self.mapping.read(self.at + offset as u64, into);
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

/// A mutex of the queue, while this thread holds it.
struct Held<'a>(&'a Mutex);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let released = self.0.unlock();
        debug_assert!(released.is_ok(), "the thread that has taken it releases it");
    }
}

/// Records and the length of one.
impl SharedQueue {
    /// The largest capacity in bytes.
    pub const CAPACITY_MAX: usize = 1 << 36;

    /// Makes a queue of at least `capacity` bytes. With `most`, that many records wait in it at
    /// most. A record takes eight bytes more than it has, rounded up to a multiple of 64.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a capacity of 0 or of more than [`SharedQueue::CAPACITY_MAX`],
    /// and for a `most` of 0; [`SetupError::Os`].
    pub fn new(capacity: usize, most: Option<u32>) -> Result<Self, SetupError> {
        if !(1..=Self::CAPACITY_MAX).contains(&capacity) || most == Some(0) {
            return Err(SetupError::invalid(format!(
                "a queue has a capacity of 1 to {} bytes, and room for one record or more",
                Self::CAPACITY_MAX
            )));
        }
        let capacity = capacity.next_power_of_two().max(RING as usize);
        let len = round_to_pages(RING as usize + capacity, Pages::Ordinary);
        let file = memory_file(len, Pages::Ordinary)?;
        let mapping = Arc::new(Mapping::own_in_part(file.as_fd(), len, Some(0..RING as usize))?);
        seal_seals(file.as_fd())?;
        // Relaxed: who gets the file later sees it.
        mapping.word(CAPACITY).store(capacity as u64, Ordering::Relaxed);
        mapping.word(MOST).store(most.unwrap_or(u32::MAX).into(), Ordering::Relaxed);
        mapping.word(SEAM).store(FAR.into(), Ordering::Relaxed);
        mapping.word(JUMP).store(FAR.into(), Ordering::Relaxed);
        let producers = Mutex::make(&mapping, PRODUCERS)?;
        let consumers = Mutex::make(&mapping, CONSUMERS)?;
        mapping.store(0, MARK);
        Ok(Self::over((mapping, file), (producers, consumers)))
    }

    /// Opens the queue of a file that another process has made.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where the file is no queue's; [`SetupError::UnsafeFile`],
    /// [`SetupError::Os`].
    pub fn of_file(file: OwnedFd) -> Result<Self, SetupError> {
        let file = descriptor::placed(file).map_err(SetupError::os("dup"))?;
        let wrong = || SetupError::invalid("the file is not that of a queue");
        let stat = fstat(&file).map_err(SetupError::os("size of a queue's file"))?;
        let len = usize::try_from(stat.st_size).map_err(|_| wrong())?;
        if len < RING as usize {
            return Err(wrong());
        }
        let mapping = Arc::new(Mapping::foreign(file.as_fd(), len, true)?);
        // Relaxed: they were stored before this process got the file.
        let word = |offset| mapping.word(offset).load(Ordering::Relaxed);
        let capacity = word(CAPACITY);
        let is_one = word(0) == MARK
            && capacity.is_power_of_two()
            && capacity <= Self::CAPACITY_MAX as u64
            && round_to_pages((RING + capacity) as usize, Pages::Ordinary) == len;
        let mutex = |offset| Mutex::made_at(&mapping, offset).ok_or_else(wrong);
        let mutexes = (mutex(PRODUCERS)?, mutex(CONSUMERS)?);
        if !is_one {
            return Err(wrong());
        }
        Ok(Self::over((mapping, file), mutexes))
    }

    fn over(
        (mapping, file): (Arc<Mapping>, Descriptor),
        (producers, consumers): (Mutex, Mutex),
    ) -> Self {
        // Relaxed: they were stored before this process got the file.
        let word = |offset| mapping.word(offset).load(Ordering::Relaxed);
        let lines = (word(CAPACITY) / LINE as u64) as u32;
        // A file in place of a memory file keeps its pages.
        let keep = if is_sealed(file.as_fd()) { KEEP.min(lines) } else { lines };
        let most = u32::try_from(word(MOST)).unwrap_or(u32::MAX);
        let places = Places { lines, warm: WARM, keep, step: STEP };
        Self { mapping, file, producers, consumers, places, most }
    }

    /// A descriptor of the queue's file, for another process.
    ///
    /// # Errors
    /// [`SetupError::Os`] where no number is free.
    pub fn to_file(&self) -> Result<OwnedFd, SetupError> {
        Ok(descriptor::copy(&self.file).map_err(SetupError::os("dup"))?.into_owned())
    }

    /// The length of the longest record, in bytes.
    pub const fn record_max(&self) -> usize {
        self.places.longest() as usize * LINE - HEADER
    }

    /// The number of records that may wait; `None`: as many as have room.
    pub const fn most(&self) -> Option<u32> {
        if self.most == u32::MAX { None } else { Some(self.most) }
    }

    /// The number of records that wait, as of now.
    pub fn len(&self) -> usize {
        let head = self.head();
        self.tail().since(head) as usize
    }

    /// Whether no record waits, as of now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether as many records wait as may, or the shortest has no room, as of now.
    pub fn is_full(&self) -> bool {
        !self.has_room(1)
    }

    fn tail(&self) -> Cursor {
        // SHARE-A2: the records before it (SHARE-R2).
        Cursor::of_word(self.mapping.word(TAIL).load(Ordering::Acquire))
    }

    fn head(&self) -> Cursor {
        // SHARE-A3: those records were copied out (SHARE-R3).
        Cursor::of_word(self.mapping.word(HEAD).load(Ordering::Acquire))
    }

    fn free(&self) -> u32 {
        // SHARE-A3: the pages before it were given back (SHARE-R3).
        self.mapping.word(FREE).load(Ordering::Acquire) as u32
    }

    fn offset(&self, line: u32) -> u64 {
        RING + u64::from(self.places.place(line)) * LINE as u64
    }
}

/// Producing.
impl SharedQueue {
    /// Puts a record in, whose bytes are those of the parts, one behind the other. Does not block.
    ///
    /// # Errors
    /// [`Busy::QueueFull`] where there is no room, or another producer is copying;
    /// [`Fault::TooLong`] for more bytes than [`SharedQueue::record_max`].
    pub fn try_enqueue(&self, parts: &[&[u8]]) -> Result<(), PostError> {
        let lines = self.lines_of(parts)?;
        let held = self.try_hold(&self.producers);
        self.put(held, parts, lines).then_some(()).ok_or_else(|| Busy::QueueFull.into())
    }

    /// Puts a record in as [`SharedQueue::try_enqueue`] does, and waits for room, within a time if
    /// there is one. Blocks. The time may be exceeded by 50 ms while another producer copies.
    ///
    /// # Errors
    /// [`Busy::QueueFull`] where the time is over; [`Fault::TooLong`].
    pub fn enqueue_wait(
        &self,
        parts: &[&[u8]],
        timeout: Option<Duration>,
    ) -> Result<(), PostError> {
        let lines = self.lines_of(parts)?;
        let deadline = deadline(timeout);
        loop {
            let held = self.hold(&self.producers, deadline);
            if self.put(held, parts, lines) {
                return Ok(());
            }
            let bed = Bed::at(&self.mapping, ROOM);
            if is_over(deadline) || !wait(bed, deadline, || self.has_room(lines)) {
                return Err(Busy::QueueFull.into());
            }
        }
    }

    fn lines_of(&self, parts: &[&[u8]]) -> Result<u32, PostError> {
        let len = parts.iter().try_fold(0_usize, |all, part| all.checked_add(part.len()));
        let len = len.filter(|len| *len <= self.record_max()).ok_or(Fault::TooLong)?;
        Ok(lines_of(len))
    }

    /// Puts a record in, if there is room; whether there was. Wakes a consumer afterwards.
    fn put(&self, held: Option<Held<'_>>, parts: &[&[u8]], lines: u32) -> bool {
        let Some(held) = held else { return false };
        let tail = self.tail();
        let Some(step) = self.find(tail, lines) else { return false };
        let begin = self.places.begin(tail.line, step, self.line_at(SEAM));
        self.tell(tail.line, step);
        let at = self.offset(begin);
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.mapping.write(at, &(len as u64).to_ne_bytes());
        let mut to = at + HEADER as u64;
        for part in parts {
            self.mapping.write(to, part);
            to += part.len() as u64;
        }
        // SHARE-R2: the record is there before the word says so.
        self.mapping.word(TAIL).store(tail.behind(begin, lines).word(), Ordering::Release);
        drop(held);
        Bed::at(&self.mapping, NEWS).wake();
        true
    }

    /// Tells consumers how the record behind a line follows.
    fn tell(&self, line: u32, step: Step) {
        // Relaxed: the tail, which is stored later, orders it.
        let say = |at, line: u32| self.mapping.word(at).store(line.into(), Ordering::Relaxed);
        for (at, other) in [(SEAM, Step::Back), (JUMP, Step::Over)] {
            if step == other {
                say(at, line);
            } else if self.line_at(at) == line {
                // Of a producer that has died, or of the time before the counts went round.
                say(at, line ^ FAR);
            }
        }
    }

    /// A line that producers have told.
    fn line_at(&self, at: u64) -> u32 {
        // Relaxed: the tail orders it.
        self.mapping.word(at).load(Ordering::Relaxed) as u32
    }

    /// How the next record follows. Looks at the consumers' words, which cost a transfer, only
    /// where it matters.
    fn find(&self, tail: Cursor, lines: u32) -> Option<Step> {
        // Relaxed: the mutex orders them.
        let seen = |offset| self.mapping.word(offset).load(Ordering::Relaxed);
        if self.places.place(tail.line) < WARM {
            let (head, free) = (Cursor::of_word(seen(HEAD_SEEN)), seen(FREE_SEEN) as u32);
            let step = self.find_within(tail, (head, free), lines);
            if step.is_some() {
                return step;
            }
        }
        let (head, free) = (self.head(), self.free());
        // Relaxed: as above.
        self.mapping.word(HEAD_SEEN).store(head.word(), Ordering::Relaxed);
        self.mapping.word(FREE_SEEN).store(free.into(), Ordering::Relaxed);
        self.find_within(tail, (head, free), lines)
    }

    fn find_within(&self, tail: Cursor, (head, free): (Cursor, u32), lines: u32) -> Option<Step> {
        let limits = Limits { free, seam: self.line_at(SEAM), jump: self.line_at(JUMP) };
        let step = self.places.find(tail.line, limits, lines);
        step.filter(|_| tail.since(head) < self.most)
    }

    fn has_room(&self, lines: u32) -> bool {
        let consumers = (self.head(), self.free());
        self.find_within(self.tail(), consumers, lines).is_some()
    }
}

/// Consuming.
impl SharedQueue {
    /// Takes the next record: `read` copies what it wants of it, and must not call the queue. None
    /// if there is no record, or another consumer is copying. Does not block.
    pub fn try_dequeue<T>(&self, read: impl FnOnce(&SharedRecord<'_>) -> T) -> Option<T> {
        let held = self.try_hold(&self.consumers);
        self.take(held, &mut Some(read))
    }

    /// Takes the next record as [`SharedQueue::try_dequeue`] does, and waits for one, within a time
    /// if there is one. Blocks. The time may be exceeded by 50 ms while another consumer copies.
    ///
    /// # Errors
    /// [`ReceiveError::TimedOut`].
    pub fn dequeue_wait<T>(
        &self,
        timeout: Option<Duration>,
        read: impl FnOnce(&SharedRecord<'_>) -> T,
    ) -> Result<T, ReceiveError> {
        let deadline = deadline(timeout);
        let mut read = Some(read);
        loop {
            if !self.is_empty() {
                let held = self.hold(&self.consumers, deadline);
                if let Some(value) = self.take(held, &mut read) {
                    return Ok(value);
                }
            }
            let bed = Bed::at(&self.mapping, NEWS);
            if is_over(deadline) || !wait(bed, deadline, || !self.is_empty()) {
                return Err(ReceiveError::TimedOut);
            }
        }
    }

    fn take<T, F: FnOnce(&SharedRecord<'_>) -> T>(
        &self,
        held: Option<Held<'_>>,
        read: &mut Option<F>,
    ) -> Option<T> {
        let held = held?;
        let head = self.head();
        let tail = self.tail_beyond(head)?;
        let (begin, len) = self.record_at(head.line);
        let lines = lines_of(len);
        let next = head.behind(begin, lines);
        let is_there = next.line.wrapping_sub(head.line) <= tail.line.wrapping_sub(head.line);
        assert!(is_there, "the processes of the program keep to the queue's form");
        let at = self.offset(begin) + HEADER as u64;
        let value = read.take().map(|read| read(&SharedRecord { mapping: &self.mapping, at, len }));
        // SHARE-R3: the record was copied out.
        self.mapping.word(HEAD).store(next.word(), Ordering::Release);
        self.settle(head.line, begin, next.line);
        drop(held);
        Bed::at(&self.mapping, ROOM).wake();
        value
    }

    /// The tail, if there is a record behind the head. Looks at the producers' word only where
    /// none is known.
    fn tail_beyond(&self, head: Cursor) -> Option<Cursor> {
        // Relaxed: the mutex orders it, and the record was seen with it.
        let seen = Cursor::of_word(self.mapping.word(TAIL_SEEN).load(Ordering::Relaxed));
        if seen.items != head.items {
            return Some(seen);
        }
        let tail = self.tail();
        // Relaxed: as above.
        self.mapping.word(TAIL_SEEN).store(tail.word(), Ordering::Relaxed);
        (tail.items != head.items).then_some(tail)
    }

    /// The beginning of the record behind a line, and its length.
    fn record_at(&self, line: u32) -> (u32, usize) {
        let (seam, jump) = (self.line_at(SEAM), self.line_at(JUMP));
        let begin = self.places.begin(line, Places::told(line, seam, jump), seam);
        let mut len = [0; HEADER];
        self.mapping.read(self.offset(begin), &mut len);
        let len = usize::try_from(u64::from_ne_bytes(len)).ok();
        let len = len.filter(|len| *len <= self.record_max());
        (begin, len.expect("the processes of the program keep to the queue's form"))
    }

    /// Lets producers go further, after a record that has begun there and ends before `next`.
    fn settle(&self, line: u32, begin: u32, next: u32) {
        let (former, free) = (self.free(), self.places.settled(next));
        if free != former {
            self.give_back(self.places.left(former, (line, begin), next));
            // SHARE-R3: the pages were given back.
            self.mapping.word(FREE).store(free.into(), Ordering::Release);
        }
    }

    /// Gives the pages of these places of the ring back to the system.
    fn give_back(&self, places: Range<u32>) {
        let bytes = u64::from(places.end.saturating_sub(places.start)) * LINE as u64;
        if bytes > 0 {
            let start = RING + u64::from(places.start) * LINE as u64;
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where the system does not do it, the pages stay.
            let _ = fallocate(&self.file, how, start, bytes);
        }
    }
}

/// Records that are done with.
impl SharedQueue {
    /// The number of records that were put in and that nobody has marked as done.
    pub fn unfinished(&self) -> usize {
        let done = self.done();
        self.tail().items.wrapping_sub(done) as usize
    }

    /// Marks one record as done. False if all are marked already.
    pub fn mark_done(&self) -> bool {
        let word = self.mapping.half_word(DONE);
        loop {
            let done = self.done();
            let items = self.tail().items;
            if done == items {
                return false;
            }
            let next = done.wrapping_add(1);
            // SHARE-R4: the work on the record.
            let marked = word.compare_exchange(done, next, Ordering::Release, Ordering::Relaxed);
            if marked.is_ok() {
                if next == items {
                    wake_at(word);
                }
                return true;
            }
        }
    }

    /// Waits until all records that were put in are marked as done, within a time if there is one.
    /// Blocks. Returns whether they are.
    pub fn wait_done(&self, timeout: Option<Duration>) -> bool {
        let deadline = deadline(timeout);
        loop {
            let done = self.done();
            if done == self.tail().items {
                return true;
            }
            let left = left(deadline);
            if left.is_zero() {
                return false;
            }
            sleep_at(self.mapping.half_word(DONE), done, left.min(SLEEP));
        }
    }

    fn done(&self) -> u32 {
        // SHARE-A4: the work on those records (SHARE-R4).
        self.mapping.half_word(DONE).load(Ordering::Acquire)
    }
}

/// Waiting.
impl SharedQueue {
    fn try_hold<'a>(&self, mutex: &'a Mutex) -> Option<Held<'a>> {
        let taken = mutex.try_lock();
        self.held(mutex, taken)
    }

    /// Takes a mutex that others hold for a copy at most.
    fn hold<'a>(&self, mutex: &'a Mutex, deadline: Option<Instant>) -> Option<Held<'a>> {
        for _ in 0..ATTEMPTS {
            if let Some(held) = self.try_hold(mutex) {
                return Some(held);
            }
            std::hint::spin_loop();
        }
        let at_most = left(deadline).min(SLEEP).max(COPY);
        let taken = mutex.lock(clock::since_1970().saturating_add(at_most));
        self.held(mutex, taken)
    }

    fn held<'a>(
        &self,
        mutex: &'a Mutex,
        taken: Result<Option<Taken>, rustix::io::Errno>,
    ) -> Option<Held<'a>> {
        let taken = taken.expect("the function that reads a record does not call the queue")?;
        if taken == Taken::Abandoned {
            tracing::debug!("a process has died while it used a queue");
        }
        Some(Held(mutex))
    }
}

/// Waits until a condition holds that others bring about: polls, then sleeps. False if the time
/// is over.
fn wait(bed: Bed<'_>, deadline: Option<Instant>, condition: impl Fn() -> bool) -> bool {
    for _ in 0..POLLS {
        if condition() {
            return true;
        }
        std::hint::spin_loop();
    }
    loop {
        let left = left(deadline);
        if left.is_zero() {
            return condition();
        }
        bed.sleep_unless(&condition, left.min(SLEEP));
        if condition() {
            return true;
        }
    }
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| clock::now().checked_add(timeout))
}

fn left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(clock::now()))
}

fn is_over(deadline: Option<Instant>) -> bool {
    left(deadline).is_zero()
}

/// Lines of a record of this length, which its caller has found to be short enough.
fn lines_of(len: usize) -> u32 {
    (len + HEADER).div_ceil(LINE) as u32
}
