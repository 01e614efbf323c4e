//! The control records between the two carriers of a connection: their progress, and the offers of
//! their ports.
use super::Carrier;
use super::counts::{Counts, WORDS, is_after};
use super::lanes::{Lanes, OFFER_WORDS, Offer, OfferKind, RxLane, TxLane};
use super::pack::Pack;
use super::queues::{Feed, Sink};
use crate::lane::Malformed;
use crate::limits::PENDING_MAX;
use crate::link::frame::{Channel, Full, Record, RecordKind};

/// Nanoseconds for which a report may be delayed if nobody waits for it.
pub const COUNTS_DELAY: u64 = 20_000;
/// Commands whose end may be unreported: half of the commands that an initiator may have under way.
const UNTOLD_MAX: u64 = PENDING_MAX as u64 / 2;

/// A report is due once a ring's length divided by this was taken without one.
const RING_SHARES: u32 = 4;

/// The subject of a control record; its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum About {
    /// The sender's progress counts.
    Counts = 1,
    /// The sender's progress counts; it waits for those of the receiver.
    CountsAsking = 2,
    /// A region is offered.
    Region = 3,
    /// A queue is offered.
    Queue = 4,
    /// The sender has reached a barrier.
    Barrier = 5,
    /// Lines of a queue were given back.
    QueueCursor = 6,
    /// A way into a depot is offered.
    Inlet = 7,
}

impl About {
    /// Reads a tag from a peer.
    // spec: WIRE-4, WIRE-5
    pub const fn from_tag(tag: u32) -> Option<Self> {
        Some(match tag {
            1 => Self::Counts,
            2 => Self::CountsAsking,
            3 => Self::Region,
            4 => Self::Queue,
            5 => Self::Barrier,
            6 => Self::QueueCursor,
            7 => Self::Inlet,
            _ => return None,
        })
    }
}

/// The state that was reported last to the other side.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) counts: Counts,
    pub(super) serial: u32,
    /// Since when there has been more.
    pub(super) since: Option<u64>,
}

/// The state that the other side has reported.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) serial: u32,
    pub(super) done: u64,
    /// Executed, as far as its responses have come.
    pub(super) early: Option<(u32, u64)>,
    /// The other side waits for the counts of this one.
    pub(super) wants_counts: bool,
}

impl Carrier {
    /// The time when a report is due, if nothing else happens before.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        self.told.since.map(|since| since.saturating_add(COUNTS_DELAY))
    }

    pub(super) fn gather_cursors(&mut self, lanes: &impl Lanes, frames: &mut impl Pack) {
        for (number, sink) in self.sinks.iter_mut() {
            let Some(cursor) = sink.news(RxLane::Queue(number), lanes) else { continue };
            let word = number as u64 | u64::from(cursor) << 32;
            if pack_control(frames, Channel::Response, About::QueueCursor, &[word]).is_err() {
                return;
            }
            sink.told(cursor);
        }
    }

    /// Packs the barrier behind everything that came before it.
    pub(super) fn gather_barrier(&mut self, lanes: &impl Lanes, frames: &mut impl Pack) {
        let reached = lanes.barrier();
        if reached != self.barrier_told
            && pack_control(frames, Channel::Posted, About::Barrier, &[reached]).is_ok()
        {
            self.barrier_told = reached;
        }
    }

    fn counts(&self, lanes: &impl Lanes) -> Counts {
        Counts {
            // The responses of these were passed on.
            done: lanes.done(),
            responses: self.responses_out as u32,
            noted: lanes.noted(),
            lines: lanes.given_back(RxLane::Messages),
            ring: lanes.ring_given_back(),
        }
    }

    /// Tells how far we are: along with what goes anyway, or where somebody waits for it, or after
    /// a while.
    // spec: WIRE-4
    pub(super) fn gather_counts(&mut self, lanes: &impl Lanes, frames: &mut impl Pack) {
        let counts = self.counts(lanes);
        debug_assert!(counts.done >= self.told.counts.done, "what was executed stays executed");
        let is_new = Counts { responses: self.told.counts.responses, ..counts } != self.told.counts;
        if !is_new && !self.wants_counts {
            return;
        }
        let now = frames.now();
        let since = *self.told.since.get_or_insert(now);
        let waited = now >= since.saturating_add(COUNTS_DELAY);
        let room = counts.lines != self.told.counts.lines
            || self.is_ring_untold(counts.ring, lanes)
            || counts.done.wrapping_sub(self.told.counts.done) >= UNTOLD_MAX;
        let is_due = waited || room || self.wants_counts || self.heard.wants_counts;
        let channel = match frames.begun() {
            Some(begun) => begun,
            None if is_due => Channel::Response,
            None => return,
        };
        let serial = self.told.serial.wrapping_add(1);
        let about = if self.wants_counts { About::CountsAsking } else { About::Counts };
        if pack_control(frames, channel, about, &counts.encode(serial)).is_ok() {
            self.told = Told { counts, serial, since: None };
            self.wants_counts = false;
            self.heard.wants_counts &= counts.done as u32 != self.commands_in;
        }
    }

    /// Whether enough of the ring was taken, without a report, that its writer may lack room.
    fn is_ring_untold(&self, given_back: u32, lanes: &impl Lanes) -> bool {
        let untold = given_back.wrapping_sub(self.told.counts.ring);
        let lines = lanes.ring_lines();
        lines > 0 && untold >= lines / RING_SHARES
    }

    /// Tells the other side what the port offers its peer, as far as there is room.
    pub(super) fn gather_offers(
        &mut self,
        lanes: &mut impl Lanes,
        frames: &mut impl Pack,
    ) -> Result<(), Full> {
        while let Some(offer) = lanes.offer() {
            match offer.kind {
                OfferKind::Region => {
                    pack_control(frames, Channel::Posted, About::Region, &offer.words)?;
                }
                OfferKind::Inlet => {
                    pack_control(frames, Channel::Posted, About::Inlet, &offer.words)?
                }
                OfferKind::Queue => self.offer_queue(&offer, lanes, frames)?,
            }
            lanes.pass_offer();
        }
        Ok(())
    }

    /// A queue that is too large, or for which there is no memory, is not offered, as if nobody
    /// accepted it.
    // spec: WIRE-9
    fn offer_queue(
        &mut self,
        offer: &Offer,
        lanes: &mut impl Lanes,
        frames: &mut impl Pack,
    ) -> Result<(), Full> {
        if !frames.has_room(Channel::Posted, 8 * OFFER_WORDS) {
            return Err(Full);
        }
        let lines = offer.lines().filter(|lines| self.sinks.has_room(*lines));
        let number = self.sinks.number();
        let Some(lines) = lines.filter(|_| lanes.join_queue(number)) else { return Ok(()) };
        let mut words = offer.words;
        words[2] = number as u64;
        let told = pack_control(frames, Channel::Posted, About::Queue, &words);
        debug_assert!(told.is_ok(), "has_room() came first");
        self.sinks.add(Sink::new(lines), lines);
        Ok(())
    }

    /// Number of this port's commands that were executed, as far as the other side has reported.
    #[inline]
    pub const fn executed_there(&self) -> u64 {
        self.heard.done
    }

    pub(super) fn on_control(
        &mut self,
        record: &Record<'_>,
        lanes: &mut impl Lanes,
    ) -> Result<(), Malformed> {
        let about = About::from_tag(record.tag).ok_or(Malformed)?;
        match about {
            About::Counts | About::CountsAsking => {
                self.heard.wants_counts |= about == About::CountsAsking;
                return self.on_counts(&words(record)?, lanes);
            }
            About::Region => {
                lanes.deliver(Offer { kind: OfferKind::Region, words: words(record)? })
            }
            About::Inlet => lanes.deliver(Offer { kind: OfferKind::Inlet, words: words(record)? }),
            About::Queue => return self.on_queue(words(record)?, lanes),
            About::Barrier => {
                let [reached] = words(record)?;
                // What the peer did before has been published to the port.
                lanes.set_barrier(reached);
            }
            About::QueueCursor => {
                let [word] = words(record)?;
                let number = word as u32 as usize;
                if !self.feeds.has(number) {
                    return Err(Malformed);
                }
                lanes.give_back(TxLane::Queue(number), (word >> 32) as u32)?;
            }
        }
        Ok(())
    }

    /// The peer offers a queue under its number.
    fn on_queue(
        &mut self,
        words: [u64; OFFER_WORDS],
        lanes: &mut impl Lanes,
    ) -> Result<(), Malformed> {
        let offer = Offer { kind: OfferKind::Queue, words };
        let number = self.feeds.number();
        let lines = offer.lines().filter(|lines| self.feeds.has_room(*lines)).ok_or(Malformed)?;
        // Without memory for it the queue cannot be, and so neither can the connection.
        if words[2] != number as u64 || !lanes.make_queue(number, offer) {
            return Err(Malformed);
        }
        self.feeds.add(Feed::default(), lines);
        Ok(())
    }

    // spec: WIRE-3, WIRE-4
    fn on_counts(&mut self, words: &[u64; WORDS], lanes: &mut impl Lanes) -> Result<(), Malformed> {
        let (serial, counts) = Counts::parse(words);
        if !is_after(serial, self.heard.serial) {
            return Ok(());
        }
        if counts.done < self.heard.done || counts.done > self.commands_out {
            return Err(Malformed);
        }
        lanes.give_back(TxLane::Messages, counts.lines)?;
        if lanes.ring_lines() > 0 {
            lanes.give_back_ring(counts.ring)?;
        } else if counts.ring != 0 {
            return Err(Malformed);
        }
        self.heard.serial = serial;
        self.heard.early = Some((counts.responses, counts.done));
        // The peer's target knows already.
        lanes.set_noted(counts.noted);
        self.count_early(lanes);
        Ok(())
    }

    /// Commands count as executed once their responses have come.
    pub(super) fn count_early(&mut self, lanes: &mut impl Lanes) {
        let Some((responses, done)) = self.heard.early else { return };
        if !is_after(responses, self.responses_in) {
            debug_assert!(self.heard.done <= done, "what was executed stays executed");
            debug_assert!(done <= self.commands_out, "only what was posted is executed");
            self.heard.early = None;
            self.heard.done = done;
            // The answers of all commands counted are in the lane.
            lanes.set_done(done);
        }
    }
}

fn pack_control(
    frames: &mut impl Pack,
    channel: Channel,
    about: About,
    words: &[u64],
) -> Result<(), Full> {
    let head = (RecordKind::Control, about as u32);
    frames.pack(channel, head, words.len() * 8, |bytes| super::write_words(bytes, words))
}

fn words<const N: usize>(record: &Record<'_>) -> Result<[u64; N], Malformed> {
    match record.split() {
        Some((words, [])) => Ok(words),
        _ => Err(Malformed),
    }
}
