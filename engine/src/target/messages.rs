//! Deposit messages of mediated peers: found by their keys, executed in the owner's depots.
use super::Responder;
use crate::depot::carry::{Bytes, DepotEnd};
use crate::depot::instruction_cache::InstructionCache;
use crate::depot::served::Served as ServedInlet;
use crate::mem::depot::{DepotMemory, Holder};
use crate::mem::map::Mapping;
use ayre_proto::deposit::DATA_MAX;
use ayre_proto::deposit::message::Posted;
use ayre_proto::node::target::{Delivery, Exchange};
use ayre_proto::units::{Extent, Key};
use std::sync::Arc;

/// A port's inlets, by the slots of their keys.
#[derive(Debug)]
pub(super) struct Inlets {
    slots: Vec<Option<(Key, ServedInlet)>>,
    /// The data of the present message, copied from or to memory that its sender can access.
    data: Box<[u8; DATA_MAX]>,
    instructions: InstructionCache,
    /// A message waits for a depot, whose release wakes nobody.
    waits: bool,
}

impl Default for Inlets {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            data: Box::new([0; DATA_MAX]),
            instructions: InstructionCache::default(),
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

    /// Whether a depot has an inlet of this number whose key is valid.
    pub(crate) fn has_inlet(&self, depot: &Arc<DepotMemory>, number: u8) -> bool {
        let mut inlets = self.inlets.slots.iter().flatten().map(|(_, inlet)| inlet);
        inlets.any(|inlet| inlet.number == number && Arc::ptr_eq(&inlet.depot, depot))
    }

    /// Whether a message has found its depot locked since the last call: then the server must try
    /// again.
    // spec: DEP-24, WAIT-3
    pub(super) fn waits_for_depot(&mut self) -> bool {
        std::mem::take(&mut self.inlets.waits)
    }

    /// Removes all inlets of a depot; returns their keys, which the caller must revoke.
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

impl Inlets {
    /// Executes a message whose key is valid; `at` is the beginning of its inlet's memory.
    // spec: DEP-22
    pub(super) fn carry_out(
        &mut self,
        posted: &Posted,
        (at, memory): (Extent, &Mapping),
        exchange: &mut impl Exchange,
    ) -> Delivery {
        let Self { slots, data, instructions, waits } = self;
        let Some(ServedInlet { depot, number, len }) = find(slots, posted.key) else {
            return Delivery::NoInlet;
        };
        let range = (at.offset(), *len);
        let end = DepotEnd { depot, number: *number, memory, range, instructions };
        let data = &mut data[..usize::from(posted.message.len)];
        let bytes = if posted.message.brings {
            exchange.bring(data);
            Bytes::Brought(data)
        } else {
            Bytes::Wanted(data)
        };
        match end.carry_out(Holder::OWNER, posted, bytes) {
            Some(carried) => Delivery::Carried(carried),
            None => {
                *waits = true;
                Delivery::Busy
            }
        }
    }

    /// The data that the last message has read.
    pub(super) fn read(&self, len: usize) -> &[u8] {
        &self.data[..len]
    }
}
