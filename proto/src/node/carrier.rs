//! The carrier: it stands for a peer of another host, at the far side of a connection's lanes.
//!
//! A connection over the wire is a mediated one whose lanes lie in this process's own memory. A
//! carrier reads and writes them, in place of a peer of the same host:
//!
//! ```text
//!   port A --> message lane --> carrier ==== records ==== carrier --> message lane --> port B
//!                     <-- cursor                                <-- cursor
//!          --> command ------------------------------------------> target of port B
//!          <-- response lane <------------------------------------
//! ```
//!
//! A line goes back to the port that wrote it only when the port at the other end has given back
//! the line that it went to. So the two lanes are one, and all bounds of a lane hold over the wire.
//! Arriving records find room, and unread messages hold up no other traffic. Commands take no lane:
//! their bytes go from the source into a frame, and from the arrived frame to the destination. Only
//! the credit of the frames holds them up.
//!
//! | module | subject |
//! |---|---|
//! | [`lanes`], [`pack`] | what a carrier stands between: its port's lanes, a link's frames |
//! | [`frames`] | the frames that one end of a link holds |
//! | [`counts`] | how far each side has come, as it travels |
//! | [`early`] | puts whose data may be in place before their turn |
mod control;
pub mod counts;
pub mod early;
pub mod frames;
pub mod lanes;
pub mod pack;
mod queues;

use self::control::{Heard, Told};
use self::counts::is_after;
use self::early::Run;
use self::frames::{Frames, Memory};
use self::lanes::{Lanes, RxLane, TxLane};
use self::pack::Pack;
use self::queues::{Feed, Queues, Sink};
use super::command_record::CommandRecord;
use super::target::Exchange;
use crate::command::{COMMAND_BYTES, Head, RESPONSE_BYTES, Words};
use crate::lane::{Kind, Malformed};
use crate::limits::RECORD_MAX;
use crate::link::frame::{Channel, Full, HEAD_BYTES, Packer, Payload, Record, RecordKind};
use alloc::vec::Vec;
use core::array;

pub use self::control::{About, COUNTS_DELAY};
pub use self::queues::{LINES_MAX, QUEUES_MAX};

/// The target of a connection, which performs the commands that come on it.
pub trait Perform {
    /// Performs the next command, with `data` bytes of data. Returns false if it has to wait;
    /// nothing has happened then.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer writes that.
    fn perform(
        &mut self,
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed>;
    /// Places the data of a put before its turn. Returns false, and changes nothing, if the command
    /// is no put or would be a fault.
    fn place(&mut self, command: (&Words, &[u8])) -> bool;
}

/// The result of offering a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Taken,
    /// A command of another channel comes first, or what it causes has no room.
    NotYet,
}

/// The data of a command that has come.
#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    Here(&'a [u8]),
    /// This number of bytes, which were placed before the command's turn.
    InPlace(u64),
}

/// Data out of a record that has come, answers into a frame that will go.
struct OverFrames<'a, P> {
    data: Data<'a>,
    frames: &'a mut P,
    answers: &'a mut u64,
}

impl<P: Pack> Exchange for OverFrames<'_, P> {
    #[inline]
    fn bring(&mut self, into: &mut [u8]) {
        if let Data::Here(data) = self.data {
            into.copy_from_slice(&data[..into.len()]);
        }
    }

    #[inline]
    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        if let Data::Here(data) = self.data {
            write(&data[..len]);
        }
    }

    #[inline]
    fn longest(&self) -> usize {
        RECORD_MAX.min(self.frames.longest())
    }

    #[inline]
    fn has_room(&mut self, len: usize) -> bool {
        self.frames.has_room(Channel::Response, len)
    }

    #[inline]
    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let record = (RecordKind::Response, 0);
        let packed = self.frames.pack(Channel::Response, record, RESPONSE_BYTES + len, |bytes| {
            let (first, data) = bytes.split_at_mut(RESPONSE_BYTES);
            write_words(first, &head);
            fill(data);
        });
        debug_assert!(packed.is_ok(), "has_room() came first");
        *self.answers += 1;
    }
}

/// The far side of one connection's lanes.
#[derive(Debug, Default)]
pub struct Carrier {
    /// Commands and responses that were passed on, and that have come, in all.
    commands_out: u64,
    commands_in: u32,
    responses_out: u64,
    responses_in: u32,
    barrier_told: u64,
    /// Puts that were posted last.
    run: Option<Run>,
    told: Told,
    heard: Heard,
    feeds: Queues<Feed>,
    sinks: Queues<Sink>,
    /// The port waits for what it has posted.
    wants_counts: bool,
}

impl Carrier {
    /// The carrier of a connection on which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// Invariants that hold between two steps, for all input of the other side.
    #[inline]
    fn check(&self) {
        debug_assert!(self.heard.done <= self.commands_out, "only what was posted is executed");
        if let Some((_, done)) = self.heard.early {
            debug_assert!(done <= self.commands_out, "nor is more told of");
        }
        if let Some(run) = &self.run {
            debug_assert!(run.before() < self.commands_out, "a run is of what was posted");
        }
    }

    /// Whether something is to be reported to the other side.
    #[inline]
    pub const fn has_news(&self) -> bool {
        self.told.since.is_some()
    }

    /// Has the counts reported with the next frame that is sent.
    #[inline]
    pub const fn tell_now(&mut self) {
        self.heard.wants_counts = true;
    }

    /// The port waits for everything that it has posted.
    #[inline]
    pub const fn ask(&mut self) {
        self.wants_counts = true;
    }

    /// Whether everything that the port has published was passed on, when it was gathered last.
    #[inline]
    pub fn is_drained(&self, lanes: &impl Lanes) -> bool {
        let is_told = self.told.since.is_none();
        let mut feeds = self.feeds.iter();
        is_told
            && lanes.head(TxLane::Messages).is_none()
            && feeds.all(|(number, feed)| feed.is_drained(number, lanes))
    }

    /// Passes on what the port has published, as far as there is room.
    // spec: WIRE-1
    #[inline]
    pub fn gather(&mut self, lanes: &mut impl Lanes, frames: &mut impl Pack) {
        self.gather_cursors(lanes, frames);
        if self.gather_posted(lanes, frames).is_ok() {
            self.gather_barrier(lanes, frames);
        }
        self.gather_counts(lanes, frames);
        self.check();
    }

    /// Posts a command of the port, whose data `fill` writes: `len` bytes.
    ///
    /// # Errors
    /// [`Full`] where the frames have no room for it.
    // spec: WIRE-1
    #[inline]
    pub fn post<M: Memory>(
        &mut self,
        request: &impl CommandRecord,
        (data, fill): (usize, impl FnOnce(&mut [u8])),
        frames: &mut Frames<M>,
    ) -> Result<(), Full> {
        let (channel, len) = (channel_of(request.is_answered()), COMMAND_BYTES + data);
        if !frames.fits(channel, len) {
            return Err(Full);
        }
        let after = Run::join(&mut self.run, request.command(), self.commands_out);
        self.commands_out += 1;
        let head = (RecordKind::Command, self.commands_out as u32);
        frames.append(channel, head, len, |bytes| {
            let (first, data) = bytes.split_at_mut(COMMAND_BYTES);
            write_words(first, &request.words());
            fill(data);
        });
        frames.add_command(channel, after);
        self.check();
        Ok(())
    }

    fn gather_posted(
        &mut self,
        lanes: &mut impl Lanes,
        frames: &mut impl Pack,
    ) -> Result<(), Full> {
        self.gather_offers(lanes, frames)?;
        // Each has its share, whatever becomes of the others.
        let messages = pass_messages(lanes, frames);
        let feeds = self.feeds.iter_mut().map(|(number, feed)| feed.pass(number, lanes, frames));
        feeds.fold(messages, Result::and)
    }

    /// Takes a record that has come. A message finds room, for its sender knows what was given
    /// back.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer says that.
    // spec: WIRE-2, WIRE-3
    #[inline]
    pub fn take(
        &mut self,
        record: &Record<'_>,
        lanes: &mut impl Lanes,
        target: &mut impl Perform,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        match record.kind {
            RecordKind::Command => {
                let data = record.bytes.get(COMMAND_BYTES..).ok_or(Malformed)?;
                return self.take_command(record, Data::Here(data), target, frames);
            }
            RecordKind::Message => {
                let head = (Kind::GatedMessage, record.tag);
                lanes.publish(RxLane::Messages, head, record.bytes).map_err(|_| Malformed)?;
            }
            RecordKind::Response => {
                let head = (Kind::Response, 0);
                if lanes.publish(RxLane::Responses, head, record.bytes).is_err() {
                    // The port takes its answers in when it makes progress.
                    return Ok(Taken::NotYet);
                }
                self.responses_in = self.responses_in.wrapping_add(1);
                self.count_early(lanes);
            }
            RecordKind::Queue | RecordKind::QueuePart => {
                let number = record.tag as usize;
                let sink = self.sinks.get_mut(number).ok_or(Malformed)?;
                let part = (record.bytes, record.kind == RecordKind::Queue);
                sink.take(RxLane::Queue(number), part, lanes)?;
            }
            RecordKind::Ring if lanes.ring_lines() == 0 => return Err(Malformed),
            RecordKind::Ring => lanes.place_ring(record.bytes)?,
            RecordKind::Control => self.on_control(record, lanes)?,
            RecordKind::Filler => {}
        }
        self.check();
        Ok(Taken::Taken)
    }

    /// Commands of the two channels come in the order in which they were posted.
    // spec: WIRE-2
    #[inline]
    fn take_command(
        &mut self,
        record: &Record<'_>,
        data: Data<'_>,
        target: &mut impl Perform,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        let next = self.commands_in.wrapping_add(1);
        if record.tag != next {
            return if is_after(record.tag, next) { Ok(Taken::NotYet) } else { Err(Malformed) };
        }
        let head = words_of(record.bytes.first_chunk().ok_or(Malformed)?);
        let len = match data {
            Data::Here(data) => data.len() as u64,
            Data::InPlace(len) => len,
        };
        let before = self.responses_out;
        let mut exchange = OverFrames { data, frames, answers: &mut self.responses_out };
        if !target.perform((&head, len), &mut exchange)? {
            debug_assert!(self.responses_out == before, "what waits is not answered");
            return Ok(Taken::NotYet);
        }
        debug_assert!(self.responses_out - before <= 1, "a command has one answer at most");
        self.commands_in = next;
        Ok(Taken::Taken)
    }

    /// Puts the data of a frame's puts in place before their turn. Returns what is left to be taken
    /// in its turn: the records, with the length of each put's data in place of it. None where one
    /// of the commands is no put, or a fault: all are taken with their data in their turn.
    // spec: WIRE-13
    pub fn place(&self, payload: &Payload<'_>, target: &mut impl Perform) -> Option<Vec<u8>> {
        let mut left = Vec::new();
        for record in payload.records() {
            if record.kind != RecordKind::Command {
                append(&mut left, &record, record.bytes, &[]);
                continue;
            }
            let (head, data) = record.bytes.split_first_chunk::<COMMAND_BYTES>()?;
            if !target.place((&words_of(head), data)) {
                return None;
            }
            append(&mut left, &record, head, &(data.len() as u64).to_le_bytes());
        }
        debug_assert!(Payload::parse(&left).is_ok(), "what is left are records");
        Some(left)
    }

    /// Takes a record that [`Carrier::place`] has left.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer says that.
    // spec: WIRE-13
    pub fn take_placed(
        &mut self,
        record: &Record<'_>,
        lanes: &mut impl Lanes,
        target: &mut impl Perform,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        if record.kind != RecordKind::Command {
            return self.take(record, lanes, target, frames);
        }
        let len = record.bytes.last_chunk().expect("the length that stands for the data");
        self.take_command(record, Data::InPlace(u64::from_le_bytes(*len)), target, frames)
    }
}

/// A command that has a response in any case goes apart from those that have none.
#[inline]
pub const fn channel_of(answered: bool) -> Channel {
    if answered { Channel::NonPosted } else { Channel::Posted }
}

/// Passes messages on. Ring bytes that they may name go first.
// spec: WIRE-14
fn pass_messages(lanes: &mut impl Lanes, frames: &mut impl Pack) -> Result<(), Full> {
    while let Some(status) = lanes.head(TxLane::Messages) {
        let status = status.expect("our own port writes records");
        pass_ring(lanes, frames)?;
        let (head, len) = ((RecordKind::Message, status.tag), status.len as usize);
        frames.pack(Channel::Posted, head, len, |bytes| lanes.copy(TxLane::Messages, bytes))?;
        lanes.pass(TxLane::Messages, &status);
    }
    Ok(())
}

/// Passes on the bytes that were written to the ring. Records are as long as there is room for, and
/// at most as long as one pass allows.
fn pass_ring(lanes: &mut impl Lanes, frames: &mut impl Pack) -> Result<(), Full> {
    while let left @ 1.. = lanes.ring_left() {
        if frames.is_laden() {
            return Err(Full);
        }
        let len = left.min(frames.share(Channel::Posted));
        frames.pack(Channel::Posted, (RecordKind::Ring, 0), len, |bytes| lanes.pass_ring(bytes))?;
    }
    Ok(())
}

/// Appends a record to a payload, with other bytes.
fn append(payload: &mut Vec<u8>, record: &Record<'_>, first: &[u8], rest: &[u8]) {
    let (at, len) = (payload.len(), first.len() + rest.len());
    payload.resize(at + HEAD_BYTES + len.next_multiple_of(8), 0);
    let mut packer = Packer::new(&mut payload[at..]);
    let place = packer.reserve((record.kind, record.tag), [], len);
    let place = place.expect("room was made for it");
    place[..first.len()].copy_from_slice(first);
    place[first.len()..].copy_from_slice(rest);
}

/// Writes words to bytes.
fn write_words(bytes: &mut [u8], words: &[u64]) {
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

fn words_of(head: &[u8; COMMAND_BYTES]) -> Words {
    let (words, _) = head.as_chunks();
    array::from_fn(|index| u64::from_le_bytes(words[index]))
}
