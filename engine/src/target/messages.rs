//! Deposit messages of mediated peers: found by their keys, carried out in the owner's depots.
use super::{Account, Exchange, Responder, Target, memory};
use crate::depot::carry::{Bytes, Carried, DepotEnd};
use crate::depot::expected::report;
use crate::depot::memo::Memo;

use crate::depot::served::Served as ServedInlet;
use crate::mem::depot::{DepotMemory, Holder};
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES, Response};
use ayre_proto::deposit::DATA_MAX;
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Malformed;
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Extent, Key, PeerId, Rights};
use std::sync::Arc;

/// A port's inlets, by the slots of their keys.
#[derive(Debug)]
pub(super) struct Inlets {
    slots: Vec<Option<(Key, ServedInlet)>>,
    /// The data of the message at hand: copied out of what its sender can write, or on its way
    /// there.
    data: Box<[u8; DATA_MAX]>,
    memo: Memo,
    /// A message waits for a depot, which wakes nobody when it is free.
    waits: bool,
}

impl Default for Inlets {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            data: Box::new([0; DATA_MAX]),
            memo: Memo::default(),
            waits: false,
        }
    }
}

impl Responder {
    pub(crate) fn add_inlet(&mut self, key: Key, inlet: ServedInlet) {
        let (slot, slots) = (usize::from(key.slot), &mut self.inlets.slots);
        slots.resize(slots.len().max(slot + 1), None);
        slots[slot] = Some((key, inlet));
    }

    pub(crate) fn remove_inlet(&mut self, key: Key) {
        if let Some(slot) = self.inlets.slots.get_mut(usize::from(key.slot))
            && slot.as_ref().is_some_and(|(found, _)| *found == key)
        {
            *slot = None;
        }
    }

    pub(crate) fn inlet(&self, key: Key) -> Option<&ServedInlet> {
        find(&self.inlets.slots, key)
    }

    /// Whether a depot has an inlet of this number whose key is alive.
    pub(crate) fn has_inlet(&self, depot: &Arc<DepotMemory>, number: u8) -> bool {
        let mut inlets = self.inlets.slots.iter().flatten().map(|(_, inlet)| inlet);
        inlets.any(|inlet| inlet.number == number && Arc::ptr_eq(&inlet.depot, depot))
    }

    /// Whether a message has found its depot locked since this was asked last: whoever serves it
    /// must come back.
    // spec: DEP-24, WAIT-3
    pub(super) fn waits_for_depot(&mut self) -> bool {
        std::mem::take(&mut self.inlets.waits)
    }

    /// Forgets all inlets of a depot; returns their keys, which are to be ended.
    pub(crate) fn end_inlets(&mut self, depot: &Arc<DepotMemory>) -> Vec<Key> {
        let of_depot = |slot: &mut Option<(Key, ServedInlet)>| {
            slot.take_if(|(_, i)| Arc::ptr_eq(&i.depot, depot))
        };
        self.inlets.slots.iter_mut().filter_map(of_depot).map(|(key, _)| key).collect()
    }
}

fn find(slots: &[Option<(Key, ServedInlet)>], key: Key) -> Option<&ServedInlet> {
    let (found, inlet) = slots.get(usize::from(key.slot))?.as_ref()?;
    (*found == key).then_some(inlet)
}

impl Target<'_> {
    // spec: CAP-7, DEP-2
    fn translate_inlet(&self, peer: PeerId, key: Key) -> Result<Extent, Fault> {
        self.table.check(peer, &Claim { key, offset: 0, len: 0 }, Rights::empty())
    }
}

impl Account {
    /// Performs a message unless its answer has no room, or somebody is inside the depot for long.
    // spec: LANE-10, DEP-22
    pub(super) fn perform_message(
        &mut self,
        words: &[u64; COMMAND_BYTES / 8],
        data: u64,
        exchange: &mut impl Exchange,
        target: &mut Target<'_>,
    ) -> Result<bool, Malformed> {
        let posted = Posted::parse(words, data).and_then(|posted| {
            posted.message.check()?;
            Ok((posted, target.translate_inlet(self.peer, posted.key)?))
        });
        let wanted = match &posted {
            Ok((Posted { message, .. }, _)) if !message.brings => usize::from(message.len),
            _ => 0,
        };
        if !exchange.has_room(RESPONSE_BYTES + wanted) {
            return Ok(false);
        }
        let carried = match &posted {
            Ok((posted, extent)) => {
                self.check_note_credit()?;
                match carry_out(posted, extent, exchange, target) {
                    Some(carried) => carried,
                    None => {
                        target.inlets.waits = true;
                        return Ok(false);
                    }
                }
            }
            Err(fault) => Carried { status: Status::Fault(*fault), given: 0, notifies: false },
        };
        let posted = posted.ok().map(|(posted, _)| posted);
        self.tell(posted.as_ref(), &carried, target);
        let asks = posted.is_some_and(|posted| posted.message.asks);
        self.executed += 1;
        if asks || carried.status != Status::Ok {
            let (number, Carried { status, given: value, .. }) = (self.executed as u32, carried);
            let read = if status == Status::Ok { wanted } else { 0 };
            let head = Response { number, status, value }.encode();
            let data = &target.inlets.data[..read];
            exchange.answer(head, read, |bytes| bytes.copy_from_slice(data));
        }
        Ok(true)
    }

    /// A notification, or the credit for one back; a fault's initiator has it back from the answer.
    // spec: DEP-11, DEP-19, DEP-27
    fn tell(&mut self, posted: Option<&Posted>, carried: &Carried, target: &mut Target<'_>) {
        let Some(posted) = posted else { return };
        if let Some(status) = carried.note() {
            let note = report(posted).note(self.peer, Classes::COMPLETER, status, posted.value);
            target.news.add_note(note);
            self.noted += 1;
        } else if carried.status.fault().is_none() {
            self.noted += 1;
            self.spared += 1;
        }
    }
}

/// What becomes of a message whose key is good; none where somebody is inside for long.
fn carry_out(
    posted: &Posted,
    extent: &Extent,
    exchange: &mut impl Exchange,
    target: &mut Target<'_>,
) -> Option<Carried> {
    let inlets = &mut *target.inlets;
    let Some(ServedInlet { depot, number, len }) = find(&inlets.slots, posted.key) else {
        // A capability that is no inlet.
        let status = Status::Fault(Fault::UnknownKey);
        return Some(Carried { status, given: 0, notifies: false });
    };
    let memory = memory(target.regions, extent);
    let range = (extent.offset(), *len);
    let end = DepotEnd { depot, number: *number, memory, range, memo: &inlets.memo };
    let data = &mut inlets.data[..usize::from(posted.message.len)];
    let bytes = if posted.message.brings {
        exchange.bring(data);
        Bytes::Brought(data)
    } else {
        Bytes::Wanted(data)
    };
    end.carry_out(Holder::OWNER, posted, bytes)
}
