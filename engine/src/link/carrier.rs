//! What stands for a peer of another host: the far side of a connection's lanes.
//!
//! A connection over the wire is a mediated one whose lanes lie in this process's own memory. Where
//! a peer of the same host would read and write them, a carrier does:
//!
//! ```text
//!   port A --> message lane --> carrier ==== records ==== carrier --> message lane --> port B
//!                     <-- cursor                                <-- cursor
//!          --> command ------------------------------------------> responder of port B
//!          <-- response lane <------------------------------------
//! ```
//!
//! A line goes back to the port that wrote it only when the port at the other end has given back
//! the line that it went to. So the two lanes are one, and everything that bounds a lane holds over
//! the wire: what comes finds room, and nobody's unread messages stand in the way of anything.
//! Commands take no lane: bytes go from where they are into a frame, and from the frame that has
//! come to where they belong. What holds them up is the frames' own credit.
mod tell;

use self::tell::{Heard, Told};
use super::counts::is_after;
use super::early::Run;
use super::frames::Frames;
use super::pack::{Full, Pack};
use super::queues::{Feed, Sink};
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::ring::{RingMemory, RingSource, RingTarget};
use crate::mem::word::Word;
use crate::peer::contact::Link;
use crate::peer::mail::Mail;
use crate::target::{Responder, lock};
use ayre_proto::command::{COMMAND_BYTES, Head, RESPONSE_BYTES};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::link::frame::{Channel, HEAD_BYTES, Packer, Payload, Record, RecordKind};
use ayre_proto::node::ask::Ask;
use ayre_proto::node::target::Exchange;
use ayre_proto::units::PeerId;
use std::sync::{Arc, Mutex};

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Taken,
    /// A command of another channel comes first, or what it causes has no room.
    NotYet,
}

/// Who performs the commands that come on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Performer {
    pub(crate) peer: PeerId,
    /// The connection's.
    pub(crate) link: Arc<Link>,
    pub(crate) responder: Arc<Mutex<Responder>>,
}

/// The data of a command that has come.
#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    Here(&'a [u8]),
    /// So many bytes, which were put in place before the command's turn.
    InPlace(u64),
}

/// Data out of a record that has come, answers into a frame that will go.
struct OverFrames<'a, P> {
    data: Data<'a>,
    frames: &'a mut P,
    answers: &'a mut u64,
}

impl<P: Pack> Exchange for OverFrames<'_, P> {
    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        if let Data::Here(data) = self.data {
            write(&data[..len]);
        }
    }

    fn bring(&mut self, into: &mut [u8]) {
        if let Data::Here(data) = self.data {
            into.copy_from_slice(&data[..into.len()]);
        }
    }

    fn longest(&self) -> usize {
        RECORD_MAX.min(self.frames.longest())
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.frames.has_room(Channel::Response, len)
    }

    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let record = (RecordKind::Response, 0);
        let packed = self.frames.pack(Channel::Response, record, RESPONSE_BYTES + len, |bytes| {
            let (first, data) = bytes.split_at_mut(RESPONSE_BYTES);
            lay(first, &head);
            fill(data);
        });
        debug_assert!(packed.is_ok(), "has_room() came first");
        *self.answers += 1;
    }
}

/// The far side of one connection's lanes.
#[derive(Debug)]
pub(crate) struct Carrier {
    mail: Mail,
    performer: Performer,
    /// What the port publishes.
    messages: LaneReceiver,
    ring: Option<RingSource>,
    done: Word,
    noted: Word,
    barrier: Word,
    /// What is published to the port.
    to_messages: LaneSender,
    to_ring: Option<RingTarget>,
    to_responses: LaneSender,
    done_there: Word,
    noted_there: Word,
    barrier_there: Word,
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
    feeds: Vec<Feed>,
    sinks: Vec<Sink>,
    /// The port waits for what it has posted.
    asks: bool,
}

impl Carrier {
    /// For the connection whose port has these directions.
    pub(crate) fn new(
        (out, inward): (&Direction, &Direction),
        mail: Mail,
        performer: Performer,
    ) -> Self {
        Self {
            mail,
            performer,
            messages: out.messages().receiver(),
            ring: out.ring().map(RingMemory::source),
            done: inward.control(Control::Done),
            noted: inward.control(Control::Noted),
            barrier: out.control(Control::Barrier),
            to_messages: inward.messages().sender(),
            to_ring: inward.ring().map(RingMemory::target),
            to_responses: inward.responses().sender(),
            done_there: out.control(Control::Done),
            noted_there: out.control(Control::Noted),
            barrier_there: inward.control(Control::Barrier),
            commands_out: 0,
            commands_in: 0,
            responses_out: 0,
            responses_in: 0,
            barrier_told: 0,
            run: None,
            told: Told::default(),
            heard: Heard::default(),
            feeds: Vec::new(),
            sinks: Vec::new(),
            asks: false,
        }
    }

    pub(crate) fn mail(&self) -> &Mail {
        &self.mail
    }

    /// What comes is performed as this peer's.
    pub(crate) fn belong_to(&mut self, peer: PeerId) {
        self.performer.peer = peer;
    }

    /// Whether it stands at the other side of this connection.
    pub(crate) fn is_of(&self, link: &Arc<Link>) -> bool {
        Arc::ptr_eq(&self.performer.link, link)
    }

    /// The port leaves: what it has done is told before.
    pub(crate) fn leave(&mut self) {
        self.tell_now();
    }

    /// Whether there is something that the other side has not been told.
    pub(crate) fn has_news(&self) -> bool {
        self.told.since.is_some()
    }

    /// What the other side has not been told is told with what is sent next.
    pub(crate) fn tell_now(&mut self) {
        self.heard.asks = true;
    }

    /// The port waits for everything that it has posted.
    pub(crate) fn ask(&mut self) {
        self.asks = true;
    }

    /// Whether everything that the port has published was passed on, when it was gathered last.
    pub(crate) fn is_drained(&self) -> bool {
        let is_told = self.told.since.is_none();
        is_told && self.messages.peek().is_none() && self.feeds.iter().all(Feed::is_drained)
    }

    /// Passes on what the port has published, as far as there is room.
    // spec: WIRE-1
    pub(crate) fn gather(&mut self, frames: &mut impl Pack) {
        self.gather_cursors(frames);
        if self.gather_posted(frames).is_ok() {
            self.gather_barrier(frames);
        }
        self.gather_counts(frames);
    }

    /// A command of the port's own, with so many bytes of data, which `fill` writes.
    // spec: WIRE-1
    pub(crate) fn post(
        &mut self,
        request: &impl Ask,
        (data, fill): (usize, impl FnOnce(&mut [u8])),
        frames: &mut Frames,
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
            lay(first, &request.words());
            fill(data);
        });
        frames.add_command(channel, after);
        Ok(())
    }

    fn gather_posted(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        while let Some(packet) = self.mail.collect() {
            if let Err(full) = self.say(&packet, frames) {
                self.mail.put_back(packet);
                return Err(full);
            }
        }
        // Each has its share, whatever becomes of the others.
        let messages = self.pass_messages(frames);
        let feeds = self.feeds.iter_mut().map(|feed| feed.pass(frames));
        feeds.fold(messages, Result::and)
    }

    /// What a message may name in the ring goes before it.
    // spec: WIRE-14
    fn pass_messages(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        let Self { messages: lane, ring, .. } = self;
        while let Some(status) = lane.peek() {
            let status = status.expect("our own port writes records");
            ring.as_mut().map_or(Ok(()), |ring| pass_ring(ring, frames))?;
            let (head, len) = ((RecordKind::Message, status.tag), status.len as usize);
            frames.pack(Channel::Posted, head, len, |bytes| lane.copy(0, bytes))?;
            lane.pass(&status);
        }
        Ok(())
    }

    /// Takes a record that has come. A message finds room, for its sender knows what was given
    /// back.
    // spec: WIRE-2, WIRE-3
    pub(crate) fn take(
        &mut self,
        record: &Record<'_>,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        match record.kind {
            RecordKind::Command => {
                let data = record.bytes.get(COMMAND_BYTES..).ok_or(Malformed)?;
                return self.take_command(record, Data::Here(data), frames);
            }
            RecordKind::Message => {
                let head = (Kind::GatedMessage, record.tag);
                publish(&mut self.to_messages, head, record.bytes)?;
            }
            RecordKind::Response => {
                let head = (Kind::Response, 0);
                if publish(&mut self.to_responses, head, record.bytes).is_err() {
                    // The port takes its answers in when it makes progress.
                    return Ok(Taken::NotYet);
                }
                self.responses_in = self.responses_in.wrapping_add(1);
                self.count_early();
            }
            RecordKind::Queue | RecordKind::QueuePart => {
                let sink = self.sinks.get_mut(record.tag as usize).ok_or(Malformed)?;
                sink.take(record.bytes, record.kind == RecordKind::Queue)?;
            }
            RecordKind::Ring => self.to_ring.as_mut().ok_or(Malformed)?.place(record.bytes)?,
            RecordKind::Control => self.hear(record)?,
            RecordKind::Filler => {}
        }
        Ok(Taken::Taken)
    }

    /// Commands of the two channels come in the order in which they were posted.
    // spec: WIRE-2
    fn take_command(
        &mut self,
        record: &Record<'_>,
        data: Data<'_>,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        let next = self.commands_in.wrapping_add(1);
        if record.tag != next {
            return if is_after(record.tag, next) { Ok(Taken::NotYet) } else { Err(Malformed) };
        }
        let head = record.bytes.first_chunk().ok_or(Malformed)?;
        let len = match data {
            Data::Here(data) => data.len() as u64,
            Data::InPlace(len) => len,
        };
        let Performer { peer, link, responder } = &self.performer;
        let mut exchange = OverFrames { data, frames, answers: &mut self.responses_out };
        if !lock(responder).perform((*peer, link), (head, len), &mut exchange)? {
            return Ok(Taken::NotYet);
        }
        self.commands_in = next;
        Ok(Taken::Taken)
    }

    /// Puts the data of a frame's puts in place before their turn. Returns what is left to be taken
    /// in its turn: the records, with the length of each put's data in place of it. None where one
    /// of the commands is no put, or a fault: all are taken with their data in their turn.
    // spec: WIRE-13
    pub(crate) fn place(&mut self, payload: &Payload<'_>) -> Option<Vec<u8>> {
        let Performer { peer, link, responder } = &self.performer;
        let mut responder = lock(responder);
        let mut left = Vec::new();
        for record in payload.records() {
            if record.kind != RecordKind::Command {
                append(&mut left, &record, record.bytes, &[]);
                continue;
            }
            let (head, data) = record.bytes.split_first_chunk::<COMMAND_BYTES>()?;
            if !responder.place((*peer, link), head, data) {
                return None;
            }
            append(&mut left, &record, head, &(data.len() as u64).to_le_bytes());
        }
        Some(left)
    }

    /// Takes a record that [`Carrier::place`] has left.
    // spec: WIRE-13
    pub(crate) fn take_placed(
        &mut self,
        record: &Record<'_>,
        frames: &mut impl Pack,
    ) -> Result<Taken, Malformed> {
        if record.kind != RecordKind::Command {
            return self.take(record, frames);
        }
        let len = record.bytes.last_chunk().expect("the length that stands for the data");
        self.take_command(record, Data::InPlace(u64::from_le_bytes(*len)), frames)
    }
}

/// A command that has a response in any case goes apart from those that have none.
pub(super) const fn channel_of(answered: bool) -> Channel {
    if answered { Channel::NonPosted } else { Channel::Posted }
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

/// What has been written to the ring and not passed on, in records as long as there is room for.
fn pass_ring(ring: &mut RingSource, frames: &mut impl Pack) -> Result<(), Full> {
    while let left @ 1.. = ring.left() {
        let len = left.min(frames.share(Channel::Posted));
        frames.pack(Channel::Posted, (RecordKind::Ring, 0), len, |bytes| ring.pass(bytes))?;
    }
    Ok(())
}

/// Writes words to bytes.
fn lay(bytes: &mut [u8], words: &[u64]) {
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

/// Publishes a record to the port.
fn publish(lane: &mut LaneSender, head: (Kind, u32), bytes: &[u8]) -> Result<(), Malformed> {
    lane.push(head, [], bytes).map_err(|_| Malformed)
}

#[cfg(all(test, not(loom)))]
mod tests;
