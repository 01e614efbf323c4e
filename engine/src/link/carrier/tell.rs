//! What the two carriers of a connection tell each other: how far each has come, and what their
//! ports offer.
use super::{Carrier, lay};
use crate::link::counts::{self, Counts, is_after};
use crate::link::pack::{Full, Pack};
use crate::link::queues::{Feed, Sink};
use crate::mem::ring::RingTarget;
use crate::peer::packet::{Packet, PacketKind};
use crate::sync::Ordering;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::PENDING_MAX;
use ayre_proto::link::frame::{Channel, Record, RecordKind};

/// Nanoseconds for which the other side need not be told what nobody waits for.
pub(super) const PATIENCE: u64 = 20_000;
/// Commands whose end may go untold: half of what an initiator may have under way.
const UNTOLD_MAX: u64 = PENDING_MAX as u64 / 2;

/// Of this part of a ring at most it goes untold that it was taken.
const RING_SHARES: u32 = 4;

/// What a control record is about; its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum About {
    Counts = 1,
    /// The same, and the sender waits for those of the receiver.
    CountsAsking = 2,
    Region = 3,
    Queue = 4,
    Barrier = 5,
    QueueCursor = 6,
    Inlet = 7,
}

/// What the other side was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) counts: Counts,
    pub(super) serial: u32,
    /// Since when there has been more.
    pub(super) since: Option<u64>,
}

/// What the other side has told.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) serial: u32,
    pub(super) done: u64,
    /// Executed, as far as its responses have come.
    pub(super) early: Option<(u32, u64)>,
    /// It waits for our counts.
    pub(super) asks: bool,
}

impl Carrier {
    /// When there is something to tell though nothing else happens.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.told.since.map(|since| since.saturating_add(PATIENCE))
    }

    pub(super) fn gather_cursors(&mut self, frames: &mut impl Pack) {
        for (number, sink) in self.sinks.iter_mut().enumerate() {
            let Some(cursor) = sink.news() else { continue };
            let word = number as u64 | u64::from(cursor) << 32;
            if tell(frames, Channel::Response, About::QueueCursor, &[word]).is_err() {
                return;
            }
            sink.told(cursor);
        }
    }

    /// After everything that came before it.
    pub(super) fn gather_barrier(&mut self, frames: &mut impl Pack) {
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
            // DONE-A1: their responses were passed on (DONE-R1).
            done: self.done.load(Ordering::Acquire),
            responses: self.responses_out as u32,
            // NOTE-A1: as an initiator of the same host reads it.
            noted: self.noted.load(Ordering::Acquire),
            lines: self.to_messages.given_back(),
            ring: self.to_ring.as_ref().map_or(0, RingTarget::given_back),
        }
    }

    /// Tells how far we are: along with what goes anyway, or where somebody waits for it, or after
    /// a while.
    // spec: WIRE-4
    pub(super) fn gather_counts(&mut self, frames: &mut impl Pack) {
        let counts = self.counts();
        let is_new = Counts { responses: self.told.counts.responses, ..counts } != self.told.counts;
        if !is_new && !self.asks {
            return;
        }
        let now = frames.now();
        let since = *self.told.since.get_or_insert(now);
        let waited = now >= since.saturating_add(PATIENCE);
        let room = counts.lines != self.told.counts.lines
            || self.is_ring_untold(counts.ring)
            || counts.done.wrapping_sub(self.told.counts.done) >= UNTOLD_MAX;
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

    /// Whether so much of the ring was taken that who writes it may be short of room.
    fn is_ring_untold(&self, given_back: u32) -> bool {
        let untold = given_back.wrapping_sub(self.told.counts.ring);
        self.to_ring.as_ref().is_some_and(|ring| untold >= ring.lines() / RING_SHARES)
    }

    pub(super) fn say(&mut self, packet: &Packet, frames: &mut impl Pack) -> Result<(), Full> {
        match packet.kind {
            PacketKind::OfferRegion => tell(frames, Channel::Posted, About::Region, &packet.words),
            PacketKind::OfferInlet => tell(frames, Channel::Posted, About::Inlet, &packet.words),
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

    /// Commands of ours that have been executed, as far as the other side has told.
    pub(crate) fn executed_there(&self) -> u64 {
        self.heard.done
    }

    pub(super) fn hear(&mut self, record: &Record<'_>) -> Result<(), Malformed> {
        let tag = record.tag;
        if tag == About::Counts as u32 || tag == About::CountsAsking as u32 {
            self.heard.asks |= tag == About::CountsAsking as u32;
            return self.hear_counts(&words(record)?);
        }
        if tag == About::Region as u32 {
            let words = words(record)?;
            self.mail.deliver(Packet { kind: PacketKind::OfferRegion, words, fds: Vec::new() });
        } else if tag == About::Inlet as u32 {
            let words = words(record)?;
            self.mail.deliver(Packet { kind: PacketKind::OfferInlet, words, fds: Vec::new() });
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
        if counts.done < self.heard.done || counts.done > self.commands_out {
            return Err(Malformed);
        }
        self.messages.give_back(counts.lines)?;
        match &mut self.ring {
            Some(ring) => ring.give_back(counts.ring)?,
            None if counts.ring != 0 => return Err(Malformed),
            None => {}
        }
        self.heard.serial = serial;
        self.heard.early = Some((counts.responses, counts.done));
        // NOTE-R1: the peer's responder knows already.
        self.noted_there.store(counts.noted, Ordering::Release);
        self.count_early();
        Ok(())
    }

    /// Commands count as executed once their responses have come.
    pub(super) fn count_early(&mut self) {
        let Some((responses, done)) = self.heard.early else { return };
        if !is_after(responses, self.responses_in) {
            self.heard.early = None;
            self.heard.done = done;
            // DONE-R1: the answers of all commands counted are in the lane.
            self.done_there.store(done, Ordering::Release);
        }
    }
}

fn tell(frames: &mut impl Pack, channel: Channel, about: About, words: &[u64]) -> Result<(), Full> {
    let head = (RecordKind::Control, about as u32);
    frames.pack(channel, head, words.len() * 8, |bytes| lay(bytes, words))
}

fn words<const N: usize>(record: &Record<'_>) -> Result<[u64; N], Malformed> {
    match record.split() {
        Some((words, [])) => Ok(words),
        _ => Err(Malformed),
    }
}
