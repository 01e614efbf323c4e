//! Registrations of memory.

use super::DomainObject;
use super::memory::{Addressing, Regions, Request};
use crate::abi::{FidCntr, KEY_NOTAVAIL, REMOTE_WRITE, errno};
use crate::error::{Code, Outcome};
use crate::object::registry::{self, Body, Entity};
use crate::queue::cntr::Cntr;
use ayre::endpoint::raw::ExposeError;
use ayre_guest::cell::{Guard, Policy};
use std::sync::Arc;

/// Registered memory.
pub(crate) struct Mr<L: Policy> {
    key: u64,
    base: u64,
    domain: Arc<DomainObject<L>>,
}

impl<L: Policy> Mr<L> {
    /// Registers memory with a domain.
    ///
    /// # Errors
    /// `EINVAL` for memory that cannot be, and for an offset; `EBADFLAGS`; `ENOKEY` for a key that
    /// is taken or none at all; `ENOSPC` for more registrations than there can be.
    pub(crate) fn new(domain: Arc<DomainObject<L>>, request: Request) -> Outcome<Self> {
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
        let is_offered = !request.rights().is_empty();
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
        let domain: Arc<dyn Entity> = self.domain.clone();
        if !Arc::ptr_eq(&counter.domain, &domain) {
            return Err(Code(errno::EDOMAIN));
        }
        self.domain.regions.with(|regions| regions.count(self.key, counter));
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
        self.domain.regions.with(|regions| regions.forget(self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{MR_PROV_KEY, MR_VIRT_ADDR, REMOTE_READ};
    use crate::domain::tests::domain_with;
    use crate::sys::object::Object;
    use crate::sys::threads::Serial;
    use ayre::endpoint::raw::Span;
    use ayre_guest::cell::Shared;

    fn request(len: usize, key: u64) -> Request {
        let memory = vec![Span::of_static(vec![0; len].leak())];
        let access = REMOTE_READ | REMOTE_WRITE;
        Request { memory, start: 64, access, offset: 0, key, flags: 0 }
    }

    fn add<L: Policy>(domain: &Arc<DomainObject<L>>, request: Request) -> Outcome<Mr<L>> {
        Mr::new(Arc::clone(domain), request)
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
    fn an_invalid_registration_is_refused() {
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
        let counter = Cntr::<Serial>::new(domain.clone(), None);
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
