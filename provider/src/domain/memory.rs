//! The registered memory of a domain: the names by which peers address it, and the counters of its
//! accesses. The engine checks the rights.

use crate::abi::{
    FidCntr, MR_BASIC, MR_PROV_KEY, MR_VIRT_ADDR, READ, RECV, REMOTE_READ, REMOTE_WRITE, RMA_EVENT,
    SEND, WRITE,
};
use crate::error::{Code, Outcome};
use crate::queue::cntr::Cntr;
use crate::sys::object::Object;
use ayre::Rights;
use ayre::endpoint::raw::{ExposeError, MemoryRegion, MemoryRegions, Span};
use ayre_guest::cell::Policy;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

/// How a domain's memory is addressed, and who chooses its keys: each on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addressing {
    /// Peers say virtual addresses; otherwise offsets from the beginning.
    pub(crate) is_virtual: bool,
    /// We choose keys; otherwise the program does.
    pub(crate) chooses_keys: bool,
}

impl Addressing {
    /// Reads the bits of `mr_mode`.
    pub(crate) fn of(mr_mode: c_int) -> Self {
        if mr_mode == MR_BASIC {
            return Self { is_virtual: true, chooses_keys: true };
        }
        Self { is_virtual: mr_mode & MR_VIRT_ADDR != 0, chooses_keys: mr_mode & MR_PROV_KEY != 0 }
    }
}

/// The registered memory of a domain, by offsets and by virtual addresses.
///
/// The info of an endpoint chooses the form that its peers use. A program may open two endpoints on
/// one domain, for two parts of it that asked for different forms. Atomics are atomic to each other
/// in either form.
pub(crate) struct Memory {
    by_offset: MemoryRegions,
    by_address: MemoryRegions,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let by_offset = MemoryRegions::new();
        let by_address = by_offset.beside();
        Self { by_offset, by_address }
    }

    /// As the peers of an endpoint see it.
    pub(crate) fn of(&self, addressing: Addressing) -> &MemoryRegions {
        if addressing.is_virtual { &self.by_address } else { &self.by_offset }
    }

    /// # Errors
    /// Those of [`MemoryRegions::expose`].
    pub(crate) fn expose(&self, key: u64, request: Request) -> Result<(), ExposeError> {
        let rights = request.rights();
        let Request { memory, start, .. } = request;
        let skipped = u64::from(start == 0);
        let window = MemoryRegion { key, base: skipped, memory, rights };
        self.by_offset.expose(window.clone())?;
        let exposed = self.by_address.expose(MemoryRegion { base: start + skipped, ..window });
        if exposed.is_err() {
            self.by_offset.withdraw(key);
        }
        exposed
    }

    pub(crate) fn withdraw(&self, key: u64) {
        self.by_offset.withdraw(key);
        self.by_address.withdraw(key);
    }
}

/// The registration that a program asks for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) memory: Vec<Span>,
    /// The virtual address of the first byte. From 0 on is from 1 on: a program that registers all
    /// of its memory has nothing there.
    pub(crate) start: u64,
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) key: u64,
    pub(crate) flags: u64,
}

/// All access flags.
const ACCESS: u64 = SEND | RECV | READ | WRITE | REMOTE_READ | REMOTE_WRITE;

impl Request {
    /// # Errors
    /// `EBADFLAGS`; `EINVAL` for an offset, and for rights that there are not.
    pub(crate) fn check(&self) -> Outcome {
        if self.flags & !RMA_EVENT != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let is_known = self.offset == 0 && self.access & !ACCESS == 0;
        if is_known { Ok(()) } else { Err(Code::INVALID) }
    }

    /// The rights of peers.
    pub(crate) fn rights(&self) -> Rights {
        let mut rights = Rights::empty();
        rights.set(Rights::READ, self.access & REMOTE_READ != 0);
        rights.set(Rights::WRITE, self.access & REMOTE_WRITE != 0);
        rights
    }
}

type Counter<L> = Arc<Object<FidCntr, Cntr<L>>>;

/// The registrations of a domain, besides the memory.
pub(crate) struct Regions<L: Policy> {
    next_key: u64,
    /// By key: what counts the changes that peers make.
    counters: BTreeMap<u64, Counter<L>>,
}

impl<L: Policy> Regions<L> {
    pub(crate) fn new() -> Self {
        Self { next_key: 0, counters: BTreeMap::new() }
    }

    /// A key that no registration of the domain has had.
    pub(crate) fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key - 1
    }

    /// Has a counter hear of changes to what is registered by this key.
    pub(crate) fn count(&mut self, key: u64, counter: Counter<L>) {
        self.counters.insert(key, counter);
    }

    /// No counter hears of it any more.
    pub(crate) fn forget(&mut self, key: u64) {
        self.counters.remove(&key);
    }

    /// A peer has changed what is registered by this key.
    pub(crate) fn changed(&self, key: u64) {
        if let Some(counter) = self.counters.get(&key) {
            counter.change(|count| count.value = count.value.wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::MR_SCALABLE;

    #[test]
    fn bits_choose_addressing_and_keys_apart() {
        let of = |mode| (Addressing::of(mode).is_virtual, Addressing::of(mode).chooses_keys);
        assert_eq!(of(0), (false, false));
        assert_eq!(of(MR_VIRT_ADDR), (true, false));
        assert_eq!(of(MR_PROV_KEY), (false, true));
        assert_eq!(of(MR_BASIC), (true, true));
        assert_eq!(of(MR_SCALABLE), (false, false));
    }
}
