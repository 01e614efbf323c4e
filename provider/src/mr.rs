//! Registered memory: keys, what may be done under them, and where that is.

use crate::abi::{
    FidCntr, FidDomain, MR_BASIC, MR_PROV_KEY, MR_VIRT_ADDR, READ, RECV, REMOTE_READ, REMOTE_WRITE,
    RMA_EVENT, SEND, WRITE, errno,
};
use crate::cntr::Cntr;
use crate::code::{Code, Outcome};
use crate::domain::Domain;
use crate::registry::{self, Body, Entity};
use crate::sys::cell::{Guard, Policy};
use crate::sys::object::Object;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

/// A piece of the program's memory, by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

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

/// A registration.
pub(crate) struct Region {
    pieces: Arc<[Piece]>,
    /// What peers call its first byte.
    base: u64,
    len: u64,
    access: u64,
    notice: Option<Notice>,
}

/// What is to be done when a peer has written to a region.
pub(crate) type Notice = Arc<dyn Fn() + Send + Sync>;

impl Region {
    /// A peer has written here: whoever wants to count that does.
    pub(crate) fn written(&self) {
        if let Some(notice) = &self.notice {
            notice();
        }
    }

    /// Where `len` bytes are that a peer calls `address`, if it may do that to them: pieces of
    /// memory, in order.
    ///
    /// # Errors
    /// `EACCES` without the right, `EINVAL` outside of the region.
    pub(crate) fn find(&self, address: u64, len: u64, access: u64) -> Outcome<Vec<Piece>> {
        if access & !self.access != 0 {
            return Err(Code(errno::EACCES));
        }
        let from = address.checked_sub(self.base).ok_or(Code::INVALID)?;
        let to = from.checked_add(len).filter(|to| *to <= self.len).ok_or(Code::INVALID)?;
        let mut found = Vec::new();
        let mut start = 0;
        for piece in &*self.pieces {
            let end = start + piece.len as u64;
            let part: Range<u64> = from.max(start)..to.min(end);
            if part.start < part.end {
                let at = piece.at + (part.start - start) as usize;
                found.push(Piece { at, len: (part.end - part.start) as usize });
            }
            start = end;
        }
        Ok(found)
    }
}

/// What a program wants registered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) key: u64,
    pub(crate) flags: u64,
}

/// What may be allowed.
const ACCESS: u64 = SEND | RECV | READ | WRITE | REMOTE_READ | REMOTE_WRITE;

/// All registrations of a domain, by key.
#[derive(Default)]
pub(crate) struct Regions {
    by_key: BTreeMap<u64, Region>,
    next_key: u64,
}

impl Regions {
    /// Registers memory and returns its key.
    ///
    /// # Errors
    /// `EINVAL` for memory that cannot be, and for an offset; `EBADFLAGS`; `ENOKEY` for a key that
    /// is taken or none at all.
    pub(crate) fn add(&mut self, addressing: Addressing, request: &Request) -> Outcome<u64> {
        let region = region(addressing, request)?;
        let key = if addressing.chooses_keys { self.free_key() } else { request.key };
        if key == u64::MAX || self.by_key.contains_key(&key) {
            return Err(Code(errno::ENOKEY));
        }
        self.by_key.insert(key, region);
        Ok(key)
    }

    fn free_key(&mut self) -> u64 {
        while self.by_key.contains_key(&self.next_key) {
            self.next_key += 1;
        }
        self.next_key += 1;
        self.next_key - 1
    }

    /// Has something done whenever a peer has written to the region.
    fn set_notice(&mut self, key: u64, notice: Notice) {
        if let Some(region) = self.by_key.get_mut(&key) {
            region.notice = Some(notice);
        }
    }

    fn remove(&mut self, key: u64) {
        self.by_key.remove(&key);
    }

    /// The registration of a key.
    ///
    /// # Errors
    /// `ENOKEY` if nothing has it.
    pub(crate) fn get(&self, key: u64) -> Outcome<&Region> {
        self.by_key.get(&key).ok_or(Code(errno::ENOKEY))
    }
}

fn region(addressing: Addressing, request: &Request) -> Outcome<Region> {
    if request.flags & !RMA_EVENT != 0 {
        return Err(Code::BAD_FLAGS);
    }
    if request.offset != 0 || request.access & !ACCESS != 0 {
        return Err(Code::INVALID);
    }
    let first = request.pieces.first().ok_or(Code::INVALID)?;
    let mut len = 0u64;
    for piece in &request.pieces {
        piece.at.checked_add(piece.len).ok_or(Code::INVALID)?;
        len = len.checked_add(piece.len as u64).ok_or(Code::INVALID)?;
    }
    let base = if addressing.is_virtual { first.at as u64 } else { 0 };
    base.checked_add(len).ok_or(Code::INVALID)?;
    Ok(Region {
        pieces: request.pieces.clone().into(),
        base,
        len,
        access: request.access,
        notice: None,
    })
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
    /// As [`Regions::add`].
    pub(crate) fn new(
        domain: Arc<Object<FidDomain, Domain<L>>>,
        request: &Request,
    ) -> Outcome<Self> {
        let (key, base) = domain.regions.with(|regions| -> Outcome<_> {
            let key = regions.add(domain.addressing(), request)?;
            Ok((key, regions.get(key)?.base))
        })?;
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
        let notice: Notice = Arc::new(move || counter.change(|count| count.value += 1));
        self.domain.regions.with(|regions| regions.set_notice(self.key, notice));
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
    fn drop(&mut self) {
        self.domain.regions.with(|regions| regions.remove(self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OFFSETS: Addressing = Addressing { is_virtual: false, chooses_keys: false };

    fn request(pieces: &[(usize, usize)], key: u64) -> Request {
        let pieces = pieces.iter().map(|&(at, len)| Piece { at, len }).collect();
        Request { pieces, access: REMOTE_READ | REMOTE_WRITE, offset: 0, key, flags: 0 }
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

    #[test]
    fn keys_are_the_programs_or_ours() {
        let mut regions = Regions::default();
        assert_eq!(regions.add(OFFSETS, &request(&[(64, 8)], 7)), Ok(7));
        assert_eq!(regions.add(OFFSETS, &request(&[(64, 8)], 7)), Err(Code(errno::ENOKEY)));
        assert_eq!(regions.add(OFFSETS, &request(&[(64, 8)], u64::MAX)), Err(Code(errno::ENOKEY)));
        let ours = Addressing { chooses_keys: true, ..OFFSETS };
        assert_eq!(regions.add(ours, &request(&[(64, 8)], 7)), Ok(0));
        assert_eq!(regions.add(ours, &request(&[(64, 8)], 7)), Ok(1));
        regions.remove(7);
        assert_eq!(regions.get(7).err(), Some(Code(errno::ENOKEY)));
    }

    #[test]
    fn what_cannot_be_registered_is_refused() {
        let mut regions = Regions::default();
        let mut add = |request| regions.add(OFFSETS, &request);
        let good = request(&[(64, 8)], 1);
        assert_eq!(add(request(&[], 1)), Err(Code::INVALID));
        assert_eq!(add(request(&[(usize::MAX, 2)], 1)), Err(Code::INVALID));
        assert_eq!(add(Request { offset: 1, ..good.clone() }), Err(Code::INVALID));
        assert_eq!(add(Request { access: 1, ..good.clone() }), Err(Code::INVALID));
        assert_eq!(add(Request { flags: 1, ..good.clone() }), Err(Code::BAD_FLAGS));
        assert_eq!(add(good), Ok(1));
    }

    #[test]
    fn rights_and_bounds_hold() {
        let region = region(OFFSETS, &Request { access: REMOTE_READ, ..request(&[(64, 8)], 1) });
        let region = region.unwrap();
        let find = |address, len| region.find(address, len, REMOTE_READ);
        assert_eq!(find(2, 6), Ok(vec![Piece { at: 66, len: 6 }]));
        assert_eq!(find(8, 0), Ok(vec![]));
        assert_eq!(find(2, 7), Err(Code::INVALID));
        assert_eq!(find(u64::MAX, 2), Err(Code::INVALID));
        assert_eq!(region.find(0, 1, REMOTE_WRITE), Err(Code(errno::EACCES)));
        let virt =
            super::region(Addressing { is_virtual: true, ..OFFSETS }, &request(&[(64, 8)], 1));
        let virt = virt.unwrap();
        assert_eq!(virt.find(64, 8, REMOTE_WRITE), Ok(vec![Piece { at: 64, len: 8 }]));
        assert_eq!(virt.find(63, 2, REMOTE_WRITE), Err(Code::INVALID));
    }

    #[test]
    fn memory_belongs_to_its_domain_until_it_is_dropped() {
        let domain = crate::domain::tests::domain::<crate::sys::cell::Serial>(true);
        let mr = Mr::new(Arc::clone(&domain), &request(&[(64, 8)], 3)).unwrap();
        assert_eq!((mr.key(), mr.raw_key()), (3, Some((0, 3))));
        let find = |key| domain.regions.with(|all| all.get(key)?.find(0, 8, REMOTE_READ));
        assert_eq!(find(3), Ok(vec![Piece { at: 64, len: 8 }]));
        let counter = Cntr::new(Arc::clone(&domain), None);
        let head = crate::calls::fid::fid(0, std::ptr::null_mut());
        let counter = Object::new(FidCntr { fid: head, ops: std::ptr::null() }, counter);
        let entity: Arc<dyn Entity> = Arc::clone(&counter) as _;
        assert_eq!(mr.bind(&entity, REMOTE_WRITE), Ok(()));
        domain.regions.with(|all| all.get(3).map(Region::written)).unwrap();
        assert_eq!(counter.read().value, 1);
        drop(mr);
        assert_eq!(find(3), Err(Code(errno::ENOKEY)));
    }

    proptest! {
        #[test]
        fn pieces_are_found_byte_for_byte(
            lens in proptest::collection::vec(0usize..9, 1..6),
            from in 0u64..40,
            len in 0u64..40,
        ) {
            let pieces: Vec<_> = lens.iter().enumerate().map(|(i, len)| (i * 100, *len)).collect();
            let all: Vec<usize> =
                pieces.iter().flat_map(|&(at, len)| at..at + len).collect();
            let region = region(OFFSETS, &request(&pieces, 1)).unwrap();
            let found = region.find(from, len, REMOTE_READ);
            match all.get(from as usize..(from + len) as usize) {
                None => prop_assert_eq!(found, Err(Code::INVALID)),
                Some(bytes) => {
                    let found: Vec<usize> = found
                        .unwrap()
                        .iter()
                        .flat_map(|piece| piece.at..piece.at + piece.len)
                        .collect();
                    prop_assert_eq!(&found[..], bytes);
                }
            }
        }
    }
}
