//! What stands for a peer of another host: the far side of a connection's lanes.
//!
//! A connection over the wire is a mediated one whose lanes lie in this process's own memory. Where
//! a peer of the same host would read and write them, a carrier does:
//!
//! ```text
//!   port A --> lanes --> carrier ==== records of a link ==== carrier --> lanes --> port B
//!                  <-- cursor                                      cursor <--
//! ```
//!
//! A line goes back to the port that wrote it only when the port at the other end has given back
//! the line that it went to. So the two lanes are one, and everything that bounds a lane holds over
//! the wire: what comes finds room, and nobody's unread messages stand in the way of anything.
use super::counts::{self, Counts, is_after};
use super::mail::Mail;
use super::queues::{Feed, Sink};
use crate::control::{Packet, PacketKind};
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::word::Word;
use crate::sync::Ordering;
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::link::frame::{Channel, Record, RecordKind};
use ayre_proto::notify::Operation;

/// Nanoseconds for which the other side need not be told what nobody waits for.
const PATIENCE: u64 = 20_000;

/// What a control record is about; its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum About {
    Counts = 1,
    /// The same, and the sender waits for those of the receiver.
    CountsAsking = 2,
    Region = 3,
    Queue = 4,
    Barrier = 5,
    QueueCursor = 6,
}

/// A frame has no room for a record, nor may another one be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Where records go.
pub(crate) trait Pack {
    /// Appends a record of `len` bytes, which `fill` writes, to a frame of the channel.
    fn pack(
        &mut self,
        channel: Channel,
        head: (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full>;
    /// Longest record.
    fn longest(&self) -> usize;
    /// A channel on which a frame is about to go anyway.
    fn begun(&self) -> Option<Channel>;
    /// Nanoseconds.
    fn now(&self) -> u64;
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Taken,
    /// A command of another channel comes first.
    NotYet,
}

/// The far side of one connection's lanes.
#[derive(Debug)]
pub(crate) struct Carrier {
    mail: Mail,
    /// What the port publishes.
    requests: LaneReceiver,
    messages: LaneReceiver,
    responses: LaneReceiver,
    done: Word,
    noted: Word,
    barrier: Word,
    /// What is published to the port.
    to_requests: LaneSender,
    to_messages: LaneSender,
    to_responses: LaneSender,
    done_there: Word,
    noted_there: Word,
    barrier_there: Word,
    /// Commands and responses that were passed on, and that have come, in all.
    commands_out: u64,
    commands_in: u32,
    messages_out: u64,
    responses_out: u64,
    responses_in: u32,
    barrier_told: u64,
    told: Told,
    heard: Heard,
    feeds: Vec<Feed>,
    sinks: Vec<Sink>,
    /// The port waits for what it has posted.
    asks: bool,
}

/// What the other side was told last.
#[derive(Debug, Default)]
struct Told {
    counts: Counts,
    serial: u32,
    /// Since when there has been more.
    since: Option<u64>,
}

/// What the other side has told.
#[derive(Debug, Default)]
struct Heard {
    serial: u32,
    done: u64,
    /// Executed, as far as its responses have come.
    early: Option<(u32, u64)>,
    /// It waits for our counts.
    asks: bool,
}

impl Carrier {
    /// For the connection whose port has these directions.
    pub(crate) fn new(out: &Direction, inward: &Direction, mail: Mail) -> Self {
        Self {
            mail,
            requests: out.requests().receiver(),
            messages: out.messages().receiver(),
            responses: out.responses().receiver(),
            done: inward.control(Control::Done),
            noted: inward.control(Control::Noted),
            barrier: out.control(Control::Barrier),
            to_requests: inward.requests().sender(),
            to_messages: inward.messages().sender(),
            to_responses: inward.responses().sender(),
            done_there: out.control(Control::Done),
            noted_there: out.control(Control::Noted),
            barrier_there: inward.control(Control::Barrier),
            commands_out: 0,
            commands_in: 0,
            messages_out: 0,
            responses_out: 0,
            responses_in: 0,
            barrier_told: 0,
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

    /// The port leaves: what it has done is told before.
    pub(crate) fn leave(&mut self) {
        self.heard.asks = true;
    }

    /// The port waits for everything that it has posted.
    pub(crate) fn ask(&mut self) {
        self.asks = true;
    }

    /// When there is something to tell though nothing else happens.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.told.since.map(|since| since.saturating_add(PATIENCE))
    }

    /// Whether everything that the port has published was passed on, when it was gathered last.
    pub(crate) fn is_drained(&self) -> bool {
        let lanes = [&self.requests, &self.messages, &self.responses];
        let is_told = self.told.since.is_none();
        let is_passed = lanes.iter().all(|lane| lane.peek().is_none());
        is_told && is_passed && self.feeds.iter().all(Feed::is_drained)
    }

    /// Passes on what the port has published, as far as there is room.
    // spec: WIRE-1
    pub(crate) fn gather(&mut self, frames: &mut impl Pack) {
        // Before the responses: those of the commands counted are in the lane (DONE-R1).
        let counts = self.counts();
        let answered = self.gather_responses(frames).is_ok();
        let said = self.gather_posted(frames);
        if said.is_ok() {
            self.gather_barrier(frames);
        }
        self.gather_counts(counts, answered, frames);
    }

    fn gather_responses(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        let Self { responses, responses_out, sinks, .. } = self;
        pass(responses, responses_out, frames, |_| (Channel::Response, RecordKind::Response))?;
        for (number, sink) in sinks.iter_mut().enumerate() {
            let Some(cursor) = sink.news() else { continue };
            let word = number as u64 | u64::from(cursor) << 32;
            tell(frames, Channel::Response, About::QueueCursor, &[word])?;
            sink.told(cursor);
        }
        Ok(())
    }

    fn gather_posted(&mut self, frames: &mut impl Pack) -> Result<(), Full> {
        while let Some(packet) = self.mail.collect() {
            if let Err(full) = self.say(&packet, frames) {
                self.mail.put_back(packet);
                return Err(full);
            }
        }
        let Self { requests, messages, commands_out, messages_out, feeds, .. } = self;
        // Each has its share, whatever becomes of the others.
        let requests = pass(requests, commands_out, frames, |first| {
            let channel = if awaits_response(first) { Channel::NonPosted } else { Channel::Posted };
            (channel, RecordKind::Command)
        });
        let messages =
            pass(messages, messages_out, frames, |_| (Channel::Posted, RecordKind::Message));
        let feeds = feeds.iter_mut().map(|feed| feed.pass(frames));
        feeds.fold(requests.and(messages), Result::and)
    }

    /// After everything that came before it.
    fn gather_barrier(&mut self, frames: &mut impl Pack) {
        // BAR-A1: everything that the port did before (BAR-R1).
        let reached = self.barrier.load(Ordering::Acquire);
        if reached != self.barrier_told
            && tell(frames, Channel::Posted, About::Barrier, &[reached]).is_ok()
        {
            self.barrier_told = reached;
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            responses: 0,
            // DONE-A1: their responses are in the lane (DONE-R1).
            done: self.done.load(Ordering::Acquire),
            // NOTE-A1: as an initiator of the same host reads it.
            noted: self.noted.load(Ordering::Acquire),
            lines: [
                self.to_messages.given_back(),
                self.to_requests.given_back(),
                self.to_responses.given_back(),
            ],
        }
    }

    /// Tells how far we are: along with what goes anyway, or where somebody waits for it, or after
    /// a while.
    // spec: WIRE-4
    fn gather_counts(&mut self, mut counts: Counts, answered: bool, frames: &mut impl Pack) {
        counts.responses = self.responses_out as u32;
        if !answered {
            counts.done = self.told.counts.done;
        }
        let is_new = Counts { responses: self.told.counts.responses, ..counts } != self.told.counts;
        if !is_new && !self.asks {
            return;
        }
        let now = frames.now();
        let since = *self.told.since.get_or_insert(now);
        let waited = now >= since.saturating_add(PATIENCE);
        let room = counts.lines != self.told.counts.lines;
        let is_due = waited || room || self.asks || self.heard.asks;
        let channel = match frames.begun() {
            Some(begun) => begun,
            None if is_due => Channel::Response,
            None => return,
        };
        let serial = self.told.serial.wrapping_add(1);
        let about = if self.asks { About::CountsAsking } else { About::Counts };
        if tell(frames, channel, about, &counts.encode(serial)).is_ok() {
            self.told = Told { counts, serial, since: None };
            self.asks = false;
            self.heard.asks &= counts.done as u32 != self.commands_in;
        }
    }

    fn say(&mut self, packet: &Packet, frames: &mut impl Pack) -> Result<(), Full> {
        match packet.kind {
            PacketKind::OfferRegion => tell(frames, Channel::Posted, About::Region, &packet.words),
            PacketKind::OfferQueue => {
                let Some(sink) = Sink::over(packet, &self.sinks) else { return Ok(()) };
                let mut words = packet.words;
                words[2] = self.sinks.len() as u64;
                tell(frames, Channel::Posted, About::Queue, &words)?;
                self.sinks.push(sink);
                Ok(())
            }
            // Said by closing the link.
            _ => Ok(()),
        }
    }

    /// Takes a record that has come. It finds room, for its sender knows what was given back.
    // spec: WIRE-2, WIRE-3
    pub(crate) fn take(&mut self, record: &Record<'_>) -> Result<Taken, Malformed> {
        match record.kind {
            RecordKind::Command => return self.take_command(record),
            RecordKind::Message => {
                let head = (Kind::GatedMessage, record.tag);
                publish(&mut self.to_messages, head, record.bytes)?;
            }
            RecordKind::Response => {
                publish(&mut self.to_responses, (Kind::Response, 0), record.bytes)?;
                self.responses_in = self.responses_in.wrapping_add(1);
                self.count_early();
            }
            RecordKind::Queue | RecordKind::QueuePart => {
                let sink = self.sinks.get_mut(record.tag as usize).ok_or(Malformed)?;
                sink.take(record.bytes, record.kind == RecordKind::Queue)?;
            }
            RecordKind::Control => self.hear(record)?,
        }
        Ok(Taken::Taken)
    }

    /// Commands of the two channels come in the order in which they were posted.
    // spec: WIRE-2
    fn take_command(&mut self, record: &Record<'_>) -> Result<Taken, Malformed> {
        let next = self.commands_in.wrapping_add(1);
        if record.tag != next {
            return if is_after(record.tag, next) { Ok(Taken::NotYet) } else { Err(Malformed) };
        }
        publish(&mut self.to_requests, (Kind::Command, 0), record.bytes)?;
        self.commands_in = next;
        Ok(Taken::Taken)
    }

    fn hear(&mut self, record: &Record<'_>) -> Result<(), Malformed> {
        let tag = record.tag;
        if tag == About::Counts as u32 || tag == About::CountsAsking as u32 {
            self.heard.asks |= tag == About::CountsAsking as u32;
            return self.hear_counts(&words(record)?);
        }
        if tag == About::Region as u32 {
            let words = words(record)?;
            self.mail.deliver(Packet { kind: PacketKind::OfferRegion, words, fds: Vec::new() });
        } else if tag == About::Queue as u32 {
            let (feed, packet) = Feed::offered(words(record)?, &self.feeds)?;
            self.feeds.push(feed);
            self.mail.deliver(packet);
        } else if tag == About::Barrier as u32 {
            let [reached] = words(record)?;
            // BAR-R1: what the peer did before has been published to the port.
            self.barrier_there.store(reached, Ordering::Release);
        } else if tag == About::QueueCursor as u32 {
            let [word] = words(record)?;
            let feed = self.feeds.get_mut(word as u32 as usize).ok_or(Malformed)?;
            feed.give_back((word >> 32) as u32)?;
        } else {
            return Err(Malformed);
        }
        Ok(())
    }

    // spec: WIRE-3, WIRE-4
    fn hear_counts(&mut self, words: &[u64; counts::WORDS]) -> Result<(), Malformed> {
        let (serial, counts) = Counts::parse(words);
        if !is_after(serial, self.heard.serial) {
            return Ok(());
        }
        let [messages, requests, responses] = counts.lines;
        self.messages.give_back(messages)?;
        self.requests.give_back(requests)?;
        self.responses.give_back(responses)?;
        if counts.done < self.heard.done || counts.done > self.commands_out {
            return Err(Malformed);
        }
        self.heard.serial = serial;
        self.heard.early = Some((counts.responses, counts.done));
        // NOTE-R1: the peer's responder knows already.
        self.noted_there.store(counts.noted, Ordering::Release);
        self.count_early();
        Ok(())
    }

    /// Commands count as executed once their responses have come.
    fn count_early(&mut self) {
        let Some((responses, done)) = self.heard.early else { return };
        if !is_after(responses, self.responses_in) {
            self.heard.early = None;
            self.heard.done = done;
            // DONE-R1: the answers of all commands counted are in the lane.
            self.done_there.store(done, Ordering::Release);
        }
    }
}

/// Passes on the records of a lane and counts them; `place` says where each goes, from its first
/// word. Commands carry their number, and messages their own tag.
fn pass(
    lane: &mut LaneReceiver,
    count: &mut u64,
    frames: &mut impl Pack,
    place: impl Fn(u64) -> (Channel, RecordKind),
) -> Result<(), Full> {
    while let Some(status) = lane.peek() {
        let status = status.expect("our own port writes records");
        let [first] = lane.head();
        let (channel, kind) = place(first);
        let tag = if kind == RecordKind::Command { (*count + 1) as u32 } else { status.tag };
        frames.pack(channel, (kind, tag), status.len as usize, |bytes| lane.copy(0, bytes))?;
        lane.pass(&status);
        *count += 1;
    }
    Ok(())
}

/// Whether the command that begins with this word has a response in any case.
fn awaits_response(first: u64) -> bool {
    let operation = Operation::from_code(first as u8);
    matches!(operation, Some(Operation::Get | Operation::FetchAtomic))
}

/// Publishes a record to the port.
fn publish(lane: &mut LaneSender, head: (Kind, u32), bytes: &[u8]) -> Result<(), Malformed> {
    lane.push(head, [], bytes).map_err(|_| Malformed)
}

fn tell(frames: &mut impl Pack, channel: Channel, about: About, words: &[u64]) -> Result<(), Full> {
    frames.pack(channel, (RecordKind::Control, about as u32), words.len() * 8, |bytes| {
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
    })
}

fn words<const N: usize>(record: &Record<'_>) -> Result<[u64; N], Malformed> {
    match record.split() {
        Some((words, [])) => Ok(words),
        _ => Err(Malformed),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
