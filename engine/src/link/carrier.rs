//! Between the lanes of a port and the frames of a link, in memory: what `proto::node::carrier`
//! decides is carried out here.
use crate::error::SetupError;
use crate::mem::file::{Pages, memory_file, seal_seals};
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::map::Mapping;
use crate::mem::queue;
use crate::mem::ring::{RingMemory, RingSource, RingTarget};
use crate::mem::word::Word;
use crate::peer::contact::Link;
use crate::peer::mail::Mail;
use crate::peer::packet::{Packet, PacketKind};
use crate::sync::Ordering;
use crate::sys::descriptor::Descriptor;
use crate::target::{Responder, lock};
use ayre_proto::command::Words;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::node::carrier::Perform;
use ayre_proto::node::carrier::lanes::{Lanes, NoRoom, Offer, OfferKind, RxLane, TxLane};
use ayre_proto::node::target::Exchange;
use ayre_proto::units::PeerId;
use rustix::fd::AsFd;
use std::sync::{Arc, Mutex};

/// The executor of the commands that come on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Performer {
    pub(crate) peer: PeerId,
    /// The connection's.
    pub(crate) link: Arc<Link>,
    pub(crate) responder: Arc<Mutex<Responder>>,
}

impl Perform for Performer {
    #[inline]
    fn perform(
        &mut self,
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        lock(&self.responder).perform((self.peer, &self.link), command, exchange)
    }

    fn place(&mut self, command: (&Words, &[u8])) -> bool {
        lock(&self.responder).place((self.peer, &self.link), command)
    }
}

/// The far side of one connection's lanes, with the words and the mail beside them.
#[derive(Debug)]
pub(crate) struct FarSide {
    mail: Mail,
    /// The next record from the port to its peer.
    offer: Option<Packet>,
    /// The lane that the port publishes to.
    messages: LaneReceiver,
    ring: Option<RingSource>,
    done: Word,
    noted: Word,
    barrier: Word,
    /// The lane that is published to the port.
    to_messages: LaneSender,
    to_ring: Option<RingTarget>,
    to_responses: LaneSender,
    done_there: Word,
    noted_there: Word,
    barrier_there: Word,
    /// Of queues of the peer's, in which the port enqueues, and of its own.
    feeds: Vec<LaneReceiver>,
    sinks: Vec<LaneSender>,
}

impl FarSide {
    /// For the connection whose port has these directions.
    pub(crate) fn new((out, inward): (&Direction, &Direction), mail: Mail) -> Self {
        assert_eq!(out.ring().is_some(), inward.ring().is_some(), "a ring each way, or none");
        Self {
            mail,
            offer: None,
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
            feeds: Vec::new(),
            sinks: Vec::new(),
        }
    }

    pub(crate) fn mail(&self) -> &Mail {
        &self.mail
    }

    fn source(&self, lane: TxLane) -> &LaneReceiver {
        match lane {
            TxLane::Messages => &self.messages,
            TxLane::Queue(number) => &self.feeds[number],
        }
    }

    fn source_mut(&mut self, lane: TxLane) -> &mut LaneReceiver {
        match lane {
            TxLane::Messages => &mut self.messages,
            TxLane::Queue(number) => &mut self.feeds[number],
        }
    }
}

impl Lanes for FarSide {
    #[inline]
    fn head(&self, lane: TxLane) -> Option<Result<Status, Malformed>> {
        self.source(lane).peek()
    }

    #[inline]
    fn copy(&self, lane: TxLane, into: &mut [u8]) {
        self.source(lane).copy(0, into);
    }

    #[inline]
    fn pass(&mut self, lane: TxLane, status: &Status) {
        self.source_mut(lane).pass(status);
    }

    #[inline]
    fn give_back(&mut self, lane: TxLane, consumed: u32) -> Result<(), Malformed> {
        self.source_mut(lane).give_back(consumed)
    }

    #[inline]
    fn publish(&mut self, lane: RxLane, head: (Kind, u32), bytes: &[u8]) -> Result<(), NoRoom> {
        let lane = match lane {
            RxLane::Messages => &mut self.to_messages,
            RxLane::Responses => &mut self.to_responses,
            RxLane::Queue(number) => &mut self.sinks[number],
        };
        lane.push(head, [], bytes).map_err(|_| NoRoom)
    }

    #[inline]
    fn given_back(&self, lane: RxLane) -> u32 {
        let lane = match lane {
            RxLane::Messages => &self.to_messages,
            RxLane::Responses => &self.to_responses,
            RxLane::Queue(number) => &self.sinks[number],
        };
        lane.given_back()
    }

    #[inline]
    fn ring_lines(&self) -> u32 {
        self.to_ring.as_ref().map_or(0, RingTarget::lines)
    }

    #[inline]
    fn ring_left(&self) -> usize {
        self.ring.as_ref().map_or(0, RingSource::left)
    }

    fn pass_ring(&mut self, into: &mut [u8]) {
        if let Some(ring) = &mut self.ring {
            ring.pass(into);
        }
    }

    fn give_back_ring(&mut self, lines: u32) -> Result<(), Malformed> {
        self.ring.as_mut().ok_or(Malformed)?.give_back(lines)
    }

    fn place_ring(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.to_ring.as_mut().ok_or(Malformed)?.place(bytes)
    }

    #[inline]
    fn ring_given_back(&self) -> u32 {
        self.to_ring.as_ref().map_or(0, RingTarget::given_back)
    }

    #[inline]
    fn done(&self) -> u64 {
        // DONE-A1: their responses were passed on (DONE-R1).
        self.done.load(Ordering::Acquire)
    }

    #[inline]
    fn noted(&self) -> u64 {
        // NOTE-A1: as an initiator of the same host reads it.
        self.noted.load(Ordering::Acquire)
    }

    #[inline]
    fn barrier(&self) -> u64 {
        // BAR-A1: everything that the port did before (BAR-R1).
        self.barrier.load(Ordering::Acquire)
    }

    #[inline]
    fn set_done(&mut self, done: u64) {
        // DONE-R1: the answers of all commands counted are in the lane.
        self.done_there.store(done, Ordering::Release);
    }

    #[inline]
    fn set_noted(&mut self, noted: u64) {
        // NOTE-R1: the peer's responder knows already.
        self.noted_there.store(noted, Ordering::Release);
    }

    fn set_barrier(&mut self, reached: u64) {
        // BAR-R1: what the peer did before has been published to the port.
        self.barrier_there.store(reached, Ordering::Release);
    }

    #[inline]
    fn offer(&mut self) -> Option<Offer> {
        loop {
            if self.offer.is_none() {
                self.offer = self.mail.collect();
            }
            let Packet { kind, words, .. } = self.offer.as_ref()?;
            match offered(*kind) {
                Some(kind) => return Some(Offer { kind, words: *words }),
                // Said by closing the link.
                None => self.offer = None,
            }
        }
    }

    fn pass_offer(&mut self) {
        debug_assert!(self.offer.is_some(), "what is passed was offered");
        self.offer = None;
    }

    fn join_queue(&mut self, number: usize) -> bool {
        debug_assert_eq!(number, self.sinks.len(), "queues are numbered one by one");
        let Some(packet) = &self.offer else { return false };
        let lines = packet.words[1] as u32;
        debug_assert!(packet.kind == PacketKind::OfferQueue, "a queue was offered");
        let Some(file) = packet.fds.first() else { return false };
        let mapped = Mapping::foreign(file.as_fd(), queue::file_len(lines), true);
        let Ok(mapping) = mapped else { return false };
        self.sinks.push(queue::lane(&Arc::new(mapping), lines).sender());
        true
    }

    fn deliver(&mut self, offer: Offer) {
        let kind = packet_of(offer.kind);
        self.mail.deliver(Packet { kind, words: offer.words, fds: Vec::new() });
    }

    fn make_queue(&mut self, number: usize, offer: Offer) -> bool {
        debug_assert_eq!(number, self.feeds.len(), "queues are numbered one by one");
        let lines = offer.words[1] as u32;
        let Ok((file, mapping)) = queue_file(lines) else { return false };
        self.feeds.push(queue::lane(&mapping, lines).receiver());
        let kind = packet_of(offer.kind);
        self.mail.deliver(Packet { kind, words: offer.words, fds: vec![file] });
        true
    }
}

const fn offered(kind: PacketKind) -> Option<OfferKind> {
    match kind {
        PacketKind::OfferRegion => Some(OfferKind::Region),
        PacketKind::OfferQueue => Some(OfferKind::Queue),
        PacketKind::OfferInlet => Some(OfferKind::Inlet),
        _ => None,
    }
}

const fn packet_of(kind: OfferKind) -> PacketKind {
    match kind {
        OfferKind::Region => PacketKind::OfferRegion,
        OfferKind::Queue => PacketKind::OfferQueue,
        OfferKind::Inlet => PacketKind::OfferInlet,
    }
}

fn queue_file(lines: u32) -> Result<(Descriptor, Arc<Mapping>), SetupError> {
    let len = queue::file_len(lines);
    let file = memory_file(len, Pages::Ordinary)?;
    seal_seals(file.as_fd())?;
    let mapping = Arc::new(Mapping::own(file.as_fd(), len)?);
    Ok((file, mapping))
}

#[cfg(all(test, not(loom)))]
mod tests;
