//! Packets on their way, in a slab: a packet is an index.
use crate::time::Time;
use core::num::NonZeroU32;

/// The index of a packet, or [`NONE`].
pub type Handle = u32;

/// No packet.
pub const NONE: Handle = u32::MAX;

/// A packet between its birth and its delivery: a line of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Packet {
    /// When its source made it.
    pub born: Time,
    /// When its head may ask for an output of the router that it is at or travels to.
    pub ready: Time,
    /// The time that it has waited for outputs and credits so far, without its source's queue.
    pub waited: Time,
    /// The time that it has waited in the queue of its source.
    pub queued: Time,
    /// The node that made it.
    pub source: u32,
    /// The node that it goes to.
    pub target: u32,
    /// Its length.
    pub bytes: u32,
    /// The one behind it in the same queue; of a free entry the next free one.
    pub next: Handle,
    /// The input queue that it is in or travels to.
    pub slot: u32,
    /// Links passed, the one into its target not counted.
    pub hops: u32,
    /// Names it to the program that injected it; `None` if a node made it by itself.
    pub tag: Option<NonZeroU32>,
    /// The place that it passes on its way, if its policy sends it by one, or [`NONE`].
    pub via: u32,
}

const _: () = assert!(size_of::<Packet>() == 64);

/// All packets on their way.
#[derive(Debug, Default)]
pub struct Packets {
    entries: Vec<Packet>,
    free: Option<Handle>,
    live: usize,
}

impl Packets {
    /// Adds a packet.
    pub fn add(&mut self, packet: Packet) -> Handle {
        self.live += 1;
        if let Some(handle) = self.free {
            let entry = &mut self.entries[handle as usize];
            self.free = (entry.next != NONE).then_some(entry.next);
            *entry = packet;
            return handle;
        }
        self.entries.push(packet);
        (self.entries.len() - 1) as Handle
    }

    /// Removes a packet, and returns it.
    pub fn remove(&mut self, handle: Handle) -> Packet {
        self.live -= 1;
        let entry = &mut self.entries[handle as usize];
        let packet = *entry;
        entry.next = self.free.unwrap_or(NONE);
        self.free = Some(handle);
        packet
    }

    /// All packets on their way.
    pub fn all(&self) -> impl Iterator<Item = &Packet> {
        let mut is_free = vec![false; self.entries.len()];
        let mut free = self.free.unwrap_or(NONE);
        while let Some(entry) = self.entries.get(free as usize) {
            is_free[free as usize] = true;
            free = entry.next;
        }
        self.entries.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(packet, _)| packet)
    }

    /// How many packets are on their way.
    pub fn live(&self) -> usize {
        self.live
    }
}

impl core::ops::Index<Handle> for Packets {
    type Output = Packet;
    fn index(&self, handle: Handle) -> &Packet {
        &self.entries[handle as usize]
    }
}

impl core::ops::IndexMut<Handle> for Packets {
    fn index_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.entries[handle as usize]
    }
}
