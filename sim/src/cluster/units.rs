//! The times of a frame's records in the units of an interface, and their bytes on the network.
//!
//! ```text
//!   record              as it leaves                     as it comes
//!   command of a put    requester: unit, translation,    completer: unit, translation, write
//!                       DMA read
//!   command of a get    requester: unit                  responder: translation
//!   its answer          responder: unit, DMA read        completer: unit, translation, write
//!   message of VELO     -                                write
//!   request for a lock  requester: unit                  -
//!   its answer          responder: unit, DMA read, write completer: unit, write
//! ```
//!
//! A notification is one more write (EXTOLL thesis, table 9-1). A unit of RMA is kept from its
//! command until its packet has left, and some cycles longer. Writes are posted: the last one does
//! not keep its unit. A frame of several records takes the times of all of them, and its effects
//! are seen together.
use super::pages::{Page, Translator};
use super::profile::{ANSWER, LOCK_TAG, Profile};
use crate::extoll::Parameters;
use crate::extoll::frame::{self, PHIT};
use crate::time::Time;
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::Action;
use ayre_proto::link::frame::{HEADER_BYTES, Payload, Record, RecordKind};
use ayre_proto::node::message::GATE_BYTES;
use ayre_proto::units::{Claim, Key, PeerId, Ticket};
use core::ops::AddAssign;
use std::collections::BTreeMap;

/// Bytes of an answer that brings a word.
const WORD: u32 = 8;

/// A frame's cost to a stage, besides the stage's own times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The time that the frame takes longer.
    pub(super) latency: Time,
    /// The time for which it keeps the stage longer.
    pub(super) hold: Time,
    /// Bytes on the network.
    pub(super) bytes: u32,
    /// Whether memory is read for it.
    pub(super) reads: bool,
}

/// The passes through units and the accesses of a record.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    units: u64,
    translation: Time,
    reads: u64,
    writes: u64,
    phits: u32,
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.units += other.units;
        self.translation += other.translation;
        self.reads += other.reads;
        self.writes += other.writes;
        self.phits += other.phits;
    }
}

/// The units of a node's interface.
#[derive(Debug)]
pub(super) struct Units {
    times: Option<Parameters>,
    pub(super) translator: Option<Translator>,
    /// Pages at this node of operations under way, by the peer and the number of the last command.
    local: BTreeMap<(PeerId, u32), Page>,
    /// When the last frame in the stage of receiving lands.
    pub(super) landed: Time,
    /// When the last read of memory in the stage of sending ends.
    pub(super) reading: Time,
}

impl Units {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            times: profile.units,
            translator: profile.pages.map(Translator::new),
            local: BTreeMap::new(),
            landed: Time::ZERO,
            reading: Time::ZERO,
        }
    }

    /// An operation on a peer is under way that reads or writes this page of the node's own. Its
    /// last command has the ticket's number.
    /// A node's operations on itself pass no unit.
    pub(super) fn posted(&mut self, (own, to): (u32, PeerId), ticket: Ticket, page: Option<Page>) {
        if let Some(page) = page.filter(|_| own != u32::from(to.0)) {
            self.local.insert((to, ticket.0 as u32), page);
        }
    }

    /// A connection is forgotten, and its operations are.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.local.retain(|(of, _), _| *of != peer);
    }

    /// A capability's pages are not translated any more.
    pub(super) fn forget_key(&mut self, key: Key) {
        if let Some(translator) = &mut self.translator {
            translator.forget(key);
        }
    }

    /// The cost of a frame to the stage of sending.
    pub(super) fn leave(&mut self, to: PeerId, payload: &[u8]) -> Cost {
        let parts = self.parts(to, payload, Self::sent);
        let mut cost = self.cost(&parts, payload);
        if let Some(times) = &self.times {
            // Phits pass the link in as many cycles.
            let turnaround = if parts.units > 0 { times.turnaround } else { 0 };
            cost.hold = cost.latency + times.cycles(u64::from(parts.phits) + turnaround);
        }
        cost
    }

    /// The cost of a frame to the stage of receiving.
    pub(super) fn enter(&mut self, from: PeerId, payload: &[u8]) -> Cost {
        let parts = self.parts(from, payload, Self::received);
        let mut cost = self.cost(&parts, payload);
        if let Some(times) = &self.times {
            let posted = if parts.writes > 0 { times.dma_write } else { Time::ZERO };
            let turnaround = if parts.units > 0 { times.turnaround } else { 0 };
            cost.hold = cost.latency - posted + times.cycles(turnaround);
        }
        cost
    }

    fn parts(
        &mut self,
        peer: PeerId,
        payload: &[u8],
        of: fn(&mut Self, PeerId, &Record<'_>) -> Option<Parts>,
    ) -> Parts {
        let mut parts = Parts::default();
        for record in Payload::parse(payload).into_iter().flat_map(|payload| payload.records()) {
            parts += of(self, peer, &record).unwrap_or_default();
        }
        parts
    }

    fn cost(&self, parts: &Parts, payload: &[u8]) -> Cost {
        let reads = parts.reads > 0;
        let Some(times) = &self.times else {
            let (latency, bytes) = (parts.translation, (HEADER_BYTES + payload.len()) as u32);
            return Cost { latency, hold: latency, bytes, reads };
        };
        let sum = times.unit.0 * parts.units
            + times.dma_read.0 * parts.reads
            + times.dma_write.0 * parts.writes;
        let latency = parts.translation + Time(sum);
        // The protocol's own reports have the length of a packet without payload.
        let bytes = parts.phits.max(frame::cycles(0, false)) * PHIT;
        Cost { latency, hold: latency, bytes, reads }
    }

    /// The parts of a record that leaves.
    fn sent(&mut self, to: PeerId, record: &Record<'_>) -> Option<Parts> {
        let len = record.bytes.len() as u32;
        let rma =
            |payload| Parts { units: 1, phits: frame::cycles(payload, true), ..Parts::default() };
        Some(match record.kind {
            RecordKind::Command => {
                let (words, data) = record.split()?;
                let request = Request::parse(&words, data.len() as u64).ok()?;
                if request.command.action != Action::Put {
                    return Some(rma(0));
                }
                let translation = self.translate_local(to, record.tag);
                Parts { reads: 1, translation, ..rma(data.len() as u32) }
            }
            RecordKind::Response => {
                let (head, data) = record.split()?;
                let answers = Response::parse(&head).status.fault().is_none();
                let is_word = answers && data.is_empty();
                let parts = rma((data.len() as u32).max(WORD));
                Parts { reads: answers.into(), writes: is_word.into(), ..parts }
            }
            RecordKind::Message if is_lock_answer(record) => {
                Parts { reads: 1, writes: 1, ..rma(WORD) }
            }
            RecordKind::Message if record.tag == LOCK_TAG => rma(0),
            RecordKind::Message => {
                let phits = frame::cycles(len - GATE_BYTES as u32, false);
                Parts { phits, ..Parts::default() }
            }
            RecordKind::Queue | RecordKind::QueuePart | RecordKind::Ring => {
                Parts { phits: frame::cycles(len, false), ..Parts::default() }
            }
            RecordKind::Control | RecordKind::Filler => Parts::default(),
        })
    }

    /// The parts of a record that has come.
    fn received(&mut self, from: PeerId, record: &Record<'_>) -> Option<Parts> {
        let none = Parts::default();
        Some(match record.kind {
            RecordKind::Command => {
                let (words, data) = record.split()?;
                let command = Request::parse(&words, data.len() as u64).ok()?.command;
                let note = u64::from(command.notifies_target());
                let translation = match command.action {
                    Action::Notify => Time::ZERO,
                    _ => self.translate_shared(&command.claim),
                };
                match command.action {
                    Action::Put | Action::Immediate(_) => {
                        Parts { units: 1, translation, writes: 1 + note, ..none }
                    }
                    Action::Atomic(_) => {
                        Parts { units: 1, translation, reads: 1, writes: 1 + note, ..none }
                    }
                    Action::Notify => Parts { units: 1, writes: 1, ..none },
                    Action::Get | Action::Fetch(_) => Parts { translation, writes: note, ..none },
                }
            }
            RecordKind::Response => {
                let (head, data) = record.split()?;
                let number = Response::parse(&head).number;
                if data.is_empty() {
                    self.local.remove(&(from, number));
                    return Some(Parts { units: 1, writes: 1, ..none });
                }
                let translation = self.translate_local(from, number);
                Parts { units: 1, translation, writes: 2, ..none }
            }
            RecordKind::Message if is_lock_answer(record) => Parts { units: 1, writes: 1, ..none },
            RecordKind::Message if record.tag == LOCK_TAG => none,
            RecordKind::Message | RecordKind::Queue => Parts { writes: 1, ..none },
            RecordKind::QueuePart | RecordKind::Ring | RecordKind::Control | RecordKind::Filler => {
                none
            }
        })
    }

    /// A page of a capability.
    fn translate_shared(&mut self, claim: &Claim) -> Time {
        match &mut self.translator {
            Some(translator) => {
                let page = translator.shared(claim.key, claim.offset);
                translator.translate(page)
            }
            None => self.times.map_or(Time::ZERO, |times| times.translation),
        }
    }

    /// The page at this node of the operation that a command belongs to. It is forgotten with the
    /// last command.
    fn translate_local(&mut self, peer: PeerId, number: u32) -> Time {
        let mut later = self.local.range((peer, number)..=(peer, u32::MAX));
        let Some((&(_, last), &page)) = later.next() else { return Time::ZERO };
        if last == number {
            self.local.remove(&(peer, number));
        }
        match &mut self.translator {
            Some(translator) => translator.translate(page),
            None => self.times.map_or(Time::ZERO, |times| times.translation),
        }
    }
}

fn is_lock_answer(record: &Record<'_>) -> bool {
    record.tag == LOCK_TAG && record.bytes.len() == GATE_BYTES + 4 * ANSWER
}
