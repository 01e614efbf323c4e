//! The program and the wire of a node: they note all that it causes.
use super::super::frame::{crc, hex};
use super::super::names::{KINDS, STATUSES, fault, name};
use super::{BUFFERS, LANES, WORDS};
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::link::frame::{Channel, Header};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::effects::{self, LaneName, WordName};
use ayre_proto::node::initiator::Ended;
use ayre_proto::node::lane::Entry;
use ayre_proto::node::target::{Delivery, Exchange, Exposed};
use ayre_proto::notify::Notification;
use ayre_proto::units::{Extent, PeerId};
use std::cell::RefCell;
use std::rc::Rc;

/// The effects of a node, in their order.
pub(super) type Log = Rc<RefCell<Vec<String>>>;

/// A program that notes the effects on it, and does them.
pub(super) struct Program {
    pub(super) memory: Vec<u8>,
    pub(super) log: Log,
}

impl Program {
    fn note(&self, effect: String) {
        self.log.borrow_mut().push(effect);
    }

    fn at(&mut self, extent: Extent) -> &mut [u8] {
        &mut self.memory[extent.offset() as usize..][..extent.len() as usize]
    }
}

impl Exposed for Program {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.note(format!("write {:x} {}", to.offset(), hex(data)));
        self.at(to).copy_from_slice(data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.note(format!("read {:x} {:x}", from.offset(), into.len()));
        into.copy_from_slice(&self.memory[from.offset() as usize..][..into.len()]);
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.note(format!("store {:x} {value:x}", to.offset()));
        self.at(to).copy_from_slice(&value.to_le_bytes());
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let place: &mut [u8; 8] = self.at(at).try_into().expect("a word");
        let old = u64::from_le_bytes(*place);
        *place = atomic.apply(old).unwrap_or(old).to_le_bytes();
        self.note(format!("atomic {:x} {old:x}", at.offset()));
        atomic.fetched(old)
    }

    fn carry_out(&mut self, _: &Posted, _: Extent, _: &mut impl Exchange) -> Delivery {
        Delivery::NoInlet
    }

    fn give(&self, _: &mut [u8]) {}
}

impl effects::Program for Program {
    /// An address.
    type Local = u64;
    type Reply = ();

    fn load(&self, local: &u64, offset: u64, into: &mut [u8]) {
        self.note(format!("load {:x} {:x}", local + offset, into.len()));
        into.copy_from_slice(&self.memory[(local + offset) as usize..][..into.len()]);
    }

    fn land(&mut self, local: &u64, offset: u64, data: &[u8]) {
        self.note(format!("land {:x} {}", local + offset, hex(data)));
        self.memory[(local + offset) as usize..][..data.len()].copy_from_slice(data);
    }

    fn reply(&mut self, (): &mut (), _: u64, _: &[u8]) -> Option<(Status, Option<Notification>)> {
        Some((Status::Ok, None))
    }

    fn ended(&mut self, _: PeerId, ended: &Ended) {
        let Ended { ticket, status, value, .. } = ended;
        self.note(format!("ended {:x} {} {value:x}", ticket.0, name(STATUSES, status)));
    }

    fn offered(&mut self, _: PeerId, _: Offer) {}

    fn gone(&mut self, _: PeerId, why: Fault) {
        self.note(format!("gone {}", fault(why)));
    }
}

/// A wire that notes what is sent.
pub(super) struct Wire {
    pub(super) log: Log,
}

impl effects::Wire for Wire {
    fn transmit(&mut self, _: PeerId, header: &Header, payload: &[u8]) {
        let frame = [&header.encode(crc)[..], payload].concat();
        self.log.borrow_mut().push(format!("transmit {}", hex(&frame)));
    }

    fn renew(&mut self, _: PeerId, _: Channel, left: u32) -> u32 {
        BUFFERS - left
    }

    fn store(&mut self, _: PeerId, lane: LaneName, record: Entry) {
        let Entry { kind, tag, bytes } = record;
        let (lane, kind) = (name(LANES, &lane), name(KINDS, &kind));
        self.log.borrow_mut().push(format!("record {lane} {kind} {tag:x} {}", hex(&bytes)));
    }

    fn tell(&mut self, _: PeerId, word: WordName, value: u64) {
        self.log.borrow_mut().push(format!("word {} {value:x}", name(WORDS, &word)));
    }

    fn offer(&mut self, _: PeerId, _: Offer) {}
}
