//! Registered memory: what peers call it, and which counters hear of it. Who may do what to which
//! bytes is the engine's to know.

use crate::abi::{
    FidCntr, FidDomain, KEY_NOTAVAIL, MR_BASIC, MR_PROV_KEY, MR_VIRT_ADDR, READ, RECV, REMOTE_READ,
    REMOTE_WRITE, RMA_EVENT, SEND, WRITE, errno,
};
use crate::cntr::Cntr;
use crate::code::{Code, Outcome};
use crate::domain::Domain;
use crate::registry::{self, Body, Entity};
use crate::sys::cell::{Guard, Policy};
use crate::sys::object::Object;
use ayre::{Access, ExposeError, Span, Window, Windows};
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
    /// What the bits of `mr_mode` mean.
    pub(crate) fn of(mr_mode: c_int) -> Self {
        if mr_mode == MR_BASIC {
            return Self { is_virtual: true, chooses_keys: true };
        }
        Self { is_virtual: mr_mode & MR_VIRT_ADDR != 0, chooses_keys: mr_mode & MR_PROV_KEY != 0 }
    }
}

/// What a domain has registered, as peers may work on it: by offsets, and by virtual addresses.
///
/// Which of the two an endpoint's peers say is its own info's to choose: a program may open two on
/// one domain, for two parts of it that have asked for different things. Atomics are atomic to each
/// other in either way.
pub(crate) struct Memory {
    by_offset: Windows,
    by_address: Windows,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let by_offset = Windows::new();
        let by_address = by_offset.beside();
        Self { by_offset, by_address }
    }

    /// As the peers of an endpoint see it.
    pub(crate) fn of(&self, addressing: Addressing) -> &Windows {
        if addressing.is_virtual { &self.by_address } else { &self.by_offset }
    }

    fn expose(&self, key: u64, request: Request) -> Result<(), ExposeError> {
        let access = request.access();
        let Request { memory, start, .. } = request;
        let skipped = u64::from(start == 0);
        let window = Window { key, base: skipped, memory, access };
        self.by_offset.expose(window.clone())?;
        let exposed = self.by_address.expose(Window { base: start + skipped, ..window });
        if exposed.is_err() {
            self.by_offset.withdraw(key);
        }
        exposed
    }

    fn withdraw(&self, key: u64) {
        self.by_offset.withdraw(key);
        self.by_address.withdraw(key);
    }
}

/// What a program wants registered.
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

/// What may be allowed.
const ACCESS: u64 = SEND | RECV | READ | WRITE | REMOTE_READ | REMOTE_WRITE;

impl Request {
    /// # Errors
    /// `EBADFLAGS`; `EINVAL` for an offset, and for rights that there are not.
    fn check(&self) -> Outcome {
        if self.flags & !RMA_EVENT != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let is_known = self.offset == 0 && self.access & !ACCESS == 0;
        if is_known { Ok(()) } else { Err(Code::INVALID) }
    }

    fn access(&self) -> Access {
        let mut access = Access::empty();
        access.set(Access::READ, self.access & REMOTE_READ != 0);
        access.set(Access::WRITE, self.access & REMOTE_WRITE != 0);
        access
    }
}

type Counter<L> = Arc<Object<FidCntr, Cntr<L>>>;

/// What a domain knows of its registrations besides the memory.
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
    fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key - 1
    }

    /// A peer has changed what is registered by this key.
    pub(crate) fn changed(&self, key: u64) {
        if let Some(counter) = self.counters.get(&key) {
            counter.change(|count| count.value = count.value.wrapping_add(1));
        }
    }
}

/// Registered memory.
pub(crate) struct Mr<L: Policy> {
    key: u64,
    base: u64,
    domain: Arc<Object<FidDomain, Domain<L>>>,
}

impl<L: Policy> Mr<L> {
    /// Registers memory with a domain.
    ///
    /// # Errors
    /// `EINVAL` for memory that cannot be, and for an offset; `EBADFLAGS`; `ENOKEY` for a key that
    /// is taken or none at all; `ENOSPC` for more registrations than there can be.
    pub(crate) fn new(
        domain: Arc<Object<FidDomain, Domain<L>>>,
        request: Request,
    ) -> Outcome<Self> {
        request.check()?;
        let Addressing { is_virtual, chooses_keys } = domain.addressing();
        let key = match chooses_keys {
            true => domain.regions.with(Regions::new_key),
            false => request.key,
        };
        if key == KEY_NOTAVAIL {
            return Err(Code(errno::ENOKEY));
        }
        let base = if is_virtual { request.start } else { 0 };
        let is_offered = !request.access().is_empty();
        domain.memory.expose(key, request).map_err(|error| match error {
            ExposeError::KeyTaken => Code(errno::ENOKEY),
            ExposeError::TooMany => Code(errno::ENOSPC),
            ExposeError::TooLong | ExposeError::TooManySpans => Code::INVALID,
        })?;
        if is_offered {
            domain.offer();
        }
        Ok(Self { key, base, domain })
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

impl<L: Policy> Body for Mr<L> {
    fn bind(&self, other: &Arc<dyn Entity>, flags: u64) -> Outcome {
        if flags != REMOTE_WRITE {
            return Err(Code::BAD_FLAGS);
        }
        let counter = registry::typed::<FidCntr, Cntr<L>>(other).ok_or(Code::INVALID)?;
        if !Arc::ptr_eq(&counter.domain, &self.domain) {
            return Err(Code(errno::EDOMAIN));
        }
        self.domain.regions.with(|regions| regions.counters.insert(self.key, counter));
        Ok(())
    }

    fn enable(&self) -> Outcome {
        Ok(())
    }

    fn raw_key(&self) -> Option<(u64, u64)> {
        Some((self.base, self.key))
    }
}

impl<L: Policy> Drop for Mr<L> {
    /// When this is over, no peer touches the memory any more.
    fn drop(&mut self) {
        self.domain.memory.withdraw(self.key);
        self.domain.regions.with(|regions| regions.counters.remove(&self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::DomainObject;
    use crate::domain::tests::domain_with;
    use crate::sys::cell::{Serial, Shared};

    fn request(len: usize, key: u64) -> Request {
        let memory = vec![Span::of_static(vec![0; len].leak())];
        let access = REMOTE_READ | REMOTE_WRITE;
        Request { memory, start: 64, access, offset: 0, key, flags: 0 }
    }

    fn add<L: Policy>(domain: &Arc<DomainObject<L>>, request: Request) -> Outcome<Mr<L>> {
        Mr::new(Arc::clone(domain), request)
    }

    #[test]
    fn bits_choose_addressing_and_keys_apart() {
        let of = |mode| (Addressing::of(mode).is_virtual, Addressing::of(mode).chooses_keys);
        assert_eq!(of(0), (false, false));
        assert_eq!(of(MR_VIRT_ADDR), (true, false));
        assert_eq!(of(MR_PROV_KEY), (false, true));
        assert_eq!(of(MR_BASIC), (true, true));
        assert_eq!(of(crate::abi::MR_SCALABLE), (false, false));
    }

    fn keys<L: Policy>() {
        let domain = domain_with::<L>(0);
        let (first, last) = (add(&domain, request(8, 7)).unwrap(), KEY_NOTAVAIL);
        assert_eq!((first.key(), first.raw_key()), (7, Some((0, 7))));
        for key in [7, last] {
            assert_eq!(add(&domain, request(8, key)).err(), Some(Code(errno::ENOKEY)));
        }
        drop(first);
        assert_eq!(add(&domain, request(8, 7)).map(|mr| mr.key()), Ok(7));
        let ours = domain_with::<L>(MR_PROV_KEY | MR_VIRT_ADDR);
        let all = [7, 7].map(|key| add(&ours, request(8, key)).unwrap());
        assert_eq!(all.each_ref().map(Mr::key), [0, 1]);
        assert_eq!(all[1].raw_key(), Some((64, 1)));
        drop(all);
        assert_eq!(add(&ours, request(8, 7)).map(|mr| mr.key()), Ok(2));
    }

    #[test]
    fn keys_are_the_programs_or_ours() {
        keys::<Shared>();
        keys::<Serial>();
    }

    #[test]
    fn what_cannot_be_registered_is_refused() {
        let domain = domain_with::<Serial>(MR_VIRT_ADDR);
        let refused = |request| add(&domain, request).err();
        assert_eq!(refused(Request { offset: 1, ..request(8, 1) }), Some(Code::INVALID));
        assert_eq!(refused(Request { access: 1, ..request(8, 1) }), Some(Code::INVALID));
        assert_eq!(refused(Request { flags: 1, ..request(8, 1) }), Some(Code::BAD_FLAGS));
        assert_eq!(refused(Request { start: u64::MAX, ..request(8, 1) }), Some(Code::INVALID));
        assert_eq!(refused(request(8, 1)), None);
    }

    #[test]
    fn changes_are_counted_by_key() {
        let domain = domain_with::<Serial>(0);
        let mr = add(&domain, request(8, 3)).unwrap();
        let counter = Cntr::new(Arc::clone(&domain), None);
        let head = crate::calls::fid::fid(0, std::ptr::null_mut());
        let counter = Object::new(FidCntr { fid: head, ops: std::ptr::null() }, counter);
        let entity: Arc<dyn Entity> = Arc::clone(&counter) as _;
        assert_eq!(mr.bind(&entity, REMOTE_WRITE), Ok(()));
        let change = |key| domain.regions.with(|regions| regions.changed(key));
        change(3);
        change(4);
        drop(mr);
        change(3);
        assert_eq!(counter.read().value, 1);
    }
}
