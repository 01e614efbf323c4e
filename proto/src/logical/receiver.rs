//! A receiver's end of all channels of one peer.
use super::{PLACES, SHORT_MAX, WINDOW, cost};
use crate::lane::Malformed;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The sender is told of returned cost at the latest when it is this part of a window.
const PART: u64 = 4;
/// Messages longer than this are given back while they come: they could exceed a window.
// spec: CHAN-10
const LARGE: u64 = WINDOW / 2;

/// The cost of each channel that has come, and that was given back.
#[derive(Clone, Debug)]
pub struct ChannelReceiver {
    lines: Box<[Line; PLACES]>,
    /// Bytes that large messages may take at the same time.
    room: u64,
    /// Channels on which a large message waits for that.
    waiting: VecDeque<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The cost that was received, that was given back, and that the sender was told of.
    received: u64,
    returned: u64,
    announced: u64,
    /// Messages that have come whole and were not run.
    whole: u64,
    partial: Option<Partial>,
}

/// A message of which a part is still to come.
#[derive(Clone, Copy, Debug)]
struct Partial {
    total: u64,
    len: u64,
    /// Cost of its parts that was not given back.
    kept: u64,
    place: Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// It has its place in the window.
    Window,
    /// It is dropped as it comes.
    Waits,
    Large,
    /// It is thrown away as it comes.
    None,
}

/// The amounts that are given back once a message was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    kept: u64,
    large: u64,
}

impl ChannelReceiver {
    /// An empty receiver; large messages may take `room` bytes in all.
    pub fn new(room: u64) -> Self {
        let line = Line { received: 0, returned: 0, announced: 0, whole: 0, partial: None };
        Self { lines: Box::new([line; PLACES]), room, waiting: VecDeque::new() }
    }

    /// Invariants that hold between two steps, for all input of the sender.
    fn check(&self, number: u8) {
        let Line { received, returned, announced, partial, .. } = self.lines[usize::from(number)];
        debug_assert!(announced <= returned, "what is announced was given back");
        debug_assert!(returned <= received, "only what has come is given back");
        debug_assert!(received - announced <= WINDOW, "what the sender may send fits the window");
        if let Some(Partial { total, len, kept, .. }) = partial {
            debug_assert!(len < total, "what is whole comes no more");
            debug_assert!(kept <= received - returned, "what is kept was not given back");
        }
    }

    /// A message has come in one part.
    // spec: CHAN-3, CHAN-9
    pub fn on_short(&mut self, number: u8, bytes: u64) -> Result<Due, Malformed> {
        if self.lines[usize::from(number)].partial.is_some() || bytes > SHORT_MAX as u64 {
            return Err(Malformed);
        }
        self.count(number, bytes)?;
        self.lines[usize::from(number)].whole += 1;
        self.check(number);
        Ok(Due { kept: cost(bytes), large: 0 })
    }

    /// The first part of a longer one comes; `is_wanted` says whether it is taken at all.
    // spec: CHAN-9, CHAN-10
    pub fn begin(&mut self, number: u8, total: u64, is_wanted: bool) -> Result<(), Malformed> {
        let line = &mut self.lines[usize::from(number)];
        if line.partial.is_some() || total <= SHORT_MAX as u64 {
            return Err(Malformed);
        }
        let place = match total {
            _ if !is_wanted => Room::None,
            0..=LARGE => Room::Window,
            _ => Room::Waits,
        };
        line.partial = Some(Partial { total, len: 0, kept: 0, place });
        if place == Room::Waits {
            self.waiting.push_back(number);
            self.admit();
        }
        Ok(())
    }

    /// A part of `bytes` bytes has come. Returns the amounts to give back if it is the last one.
    // spec: CHAN-3, CHAN-9, CHAN-10
    pub fn on_part(&mut self, number: u8, bytes: u64) -> Result<Option<Due>, Malformed> {
        let partial = self.lines[usize::from(number)].partial;
        let is_sound = partial.is_some_and(|one| (1..=one.total - one.len).contains(&bytes));
        if !is_sound {
            return Err(Malformed);
        }
        self.check(number);
        self.count(number, bytes)?;
        let line = &mut self.lines[usize::from(number)];
        let Some(partial) = &mut line.partial else { return Err(Malformed) };
        partial.len += bytes;
        match partial.place {
            Room::Window | Room::Waits => partial.kept += cost(bytes),
            Room::Large | Room::None => line.returned += cost(bytes),
        }
        if partial.len < partial.total {
            return Ok(None);
        }
        let Partial { total, kept, place, .. } = *partial;
        line.partial = None;
        line.whole += 1;
        Ok(Some(Due { kept, large: if place == Room::Large { total } else { 0 } }))
    }

    /// The bytes of a part are there, within the window that the sender knows of.
    fn count(&mut self, number: u8, bytes: u64) -> Result<(), Malformed> {
        let line = &mut self.lines[usize::from(number)];
        let received = line.received + cost(bytes);
        if number == 0 || received - line.announced > WINDOW {
            return Err(Malformed);
        }
        line.received = received;
        Ok(())
    }

    /// A message was run, or dropped. True where what comes by other channels was given back by
    /// that, too.
    // spec: CHAN-3
    pub fn ran(&mut self, number: u8, due: Due) -> bool {
        let line = &mut self.lines[usize::from(number)];
        line.whole -= 1;
        line.returned += due.kept;
        self.room += due.large;
        let waits = !self.waiting.is_empty();
        if waits {
            self.admit();
        }
        self.check(number);
        waits
    }

    /// Gives places to large messages, the first that waits first, if all before it on its channel
    /// have been run.
    // spec: CHAN-10
    fn admit(&mut self) {
        let (room, lines) = (&mut self.room, &mut self.lines);
        let mut is_full = false;
        self.waiting.retain(|number| {
            let line = &mut lines[usize::from(*number)];
            let partial = line.partial.as_mut().filter(|partial| partial.place == Room::Waits);
            // It had room enough in its window.
            let Some(partial) = partial else { return false };
            if is_full || line.whole > 0 {
                return true;
            }
            is_full = partial.total > *room;
            if is_full {
                return true;
            }
            *room -= partial.total;
            partial.place = Room::Large;
            line.returned += core::mem::take(&mut partial.kept);
            false
        });
    }

    /// The count of a channel that is to be reported to the sender, if it is due.
    // spec: CHAN-3
    pub fn due(&self, number: u8) -> Option<u64> {
        let Line { returned, announced, .. } = self.lines[usize::from(number)];
        if returned - announced < WINDOW / PART { None } else { Some(returned) }
    }

    /// The sender was told of this count.
    pub fn told(&mut self, number: u8, returned: u64) {
        self.lines[usize::from(number)].announced = returned;
        self.check(number);
    }
}
