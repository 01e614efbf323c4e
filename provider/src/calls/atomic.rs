//! Atomics on peers' memory.

use super::ep::EpObject;
use super::memory::{self, Array};
use super::rma::{FLAGS as RMA_FLAGS, NEVER, as_chosen};
use crate::abi::*;
use crate::atomic::Family;
use crate::code::{Code, Outcome, posted, status};
use crate::ep::{Change, Note, Reported, Target};
use crate::sys::cell::Policy;
use crate::sys::copy;
use ayre::Spans;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// The calls of a policy.
pub(crate) struct Calls<L>(PhantomData<L>);

type Ep = *mut FidEp;

/// Flags of a call. Operands are always injected.
const FLAGS: u64 = RMA_FLAGS | INJECT;

/// What an atomic is, as libfabric numbers it, and the memory that it takes.
struct Wanted {
    family: Family,
    datatype: u32,
    op: u32,
    operand: Pieces,
    compare: Pieces,
    result: Pieces,
}

/// Elements, as a program describes them.
enum Pieces {
    One(Ioc),
    Several(Array<Ioc>),
}

const NONE: Pieces = Pieces::One(Ioc { addr: null_mut(), count: 0 });

impl Pieces {
    /// # Errors
    /// As for [`Array::get`] and [`memory::elements`].
    ///
    /// # Safety
    /// They are there, and if they are to be written, until the operation has ended.
    unsafe fn memory(&self, size: usize) -> Outcome<Spans> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::One(piece) => memory::elements(&[*piece], size),
                Self::Several(pieces) => memory::elements(pieces.get()?, size),
            }
        }
    }
}

impl Wanted {
    /// The same, and how many elements it has.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for what there is not; `EINVAL` for no elements, and where operands, comparands
    /// and results are not as many; `EMSGSIZE` for more than a call can have; those of
    /// [`memory::elements`].
    ///
    /// # Safety
    /// All pieces are there, and those of the results until the operation has ended.
    unsafe fn change(&self) -> Outcome<(Change, usize)> {
        let kind = self.family.kind(self.datatype, self.op)?;
        let size = kind.number.size();
        // SAFETY: the caller's promise.
        let memory = |pieces| unsafe { Pieces::memory(pieces, size) };
        let (is_read, is_compare) = (self.op == ATOMIC_READ, self.family == Family::Compare);
        let result = if self.family == Family::Change { None } else { Some(memory(&self.result)?) };
        // A program that only reads may name anything.
        let operand = memory(if is_read { &NONE } else { &self.operand })?;
        let compare = memory(&self.compare)?;
        let len = result.as_ref().map_or(operand.len(), Spans::len);
        let fits = |other: &Spans, is_needed: bool| !is_needed || other.len() == len;
        if len == 0 || !fits(&operand, !is_read) || !fits(&compare, is_compare) {
            return Err(Code::INVALID);
        }
        let count = len / size;
        if count > kind.most() {
            return Err(Code::TOO_LONG);
        }
        Ok((Change { op: kind.op, number: kind.number, operand, compare, result }, count))
    }
}

/// Some elements.
fn one(start: *const c_void, count: usize) -> Pieces {
    Pieces::One(Ioc { addr: start.cast_mut(), count })
}

/// The same in pieces.
fn several(iov: *const Ioc, count: usize) -> Pieces {
    Pieces::Several(Array::new(iov, count))
}

/// # Safety
/// The endpoint is open, and the memory is the call's until its operation has ended.
unsafe fn post<L: Policy>(ep: Ep, wanted: &Wanted, target: Target, note: Note) -> isize {
    // SAFETY: the caller's promise.
    let (ep, change) = unsafe { (EpObject::<L>::at(ep), wanted.change()) };
    posted(change.and_then(|(change, _)| ep.core.update(target, change, note)))
}

/// The same for a call that says in memory what it wants, besides results and comparands.
///
/// # Safety
/// As for [`post`]; the message is null or there, with as many pieces as it says.
unsafe fn post_message<L: Policy>(
    ep: Ep,
    msg: *const MsgAtomic,
    (family, flags): (Family, u64),
    (compare, result): (Pieces, Pieces),
) -> isize {
    // SAFETY: the caller's promise.
    let ep = unsafe { EpObject::<L>::at(ep) };
    let post = || -> Outcome {
        if flags & !FLAGS != 0 {
            return Err(Code::BAD_FLAGS);
        }
        // SAFETY: as above.
        let msg = unsafe { memory::described(msg) }?;
        let &MsgAtomic { addr: to, datatype, op, context, .. } = msg;
        let operand = several(msg.msg_iov, msg.iov_count);
        let wanted = Wanted { family, datatype, op, operand, compare, result };
        // SAFETY: as above.
        let (change, found) = unsafe { wanted.change() }?;
        // SAFETY: as above.
        let places = unsafe { Array::new(msg.rma_iov, msg.rma_iov_count).get() }?;
        let [RmaIoc { addr: address, count, key }] = *places else { return Err(Code::INVALID) };
        if count != found {
            return Err(Code::INVALID);
        }
        let note = Note { context: context as usize, reported: Reported::By(flags) };
        ep.core.fence(to, flags)?;
        ep.core.update(Target { to, key, address }, change, note)
    };
    posted(post())
}

/// # Safety
/// The place for the count is null or there.
unsafe fn valid(family: Family, datatype: u32, op: u32, place: *mut usize) -> c_int {
    let kind = family.kind(datatype, op);
    // SAFETY: the caller's promise.
    status(kind.map(|kind| unsafe { copy::put(place, kind.most()) }))
}

/// Which atomics the endpoints of a domain have.
///
/// # Safety
/// The place for the answer is null or there.
pub(super) unsafe extern "C" fn query(
    _domain: *mut FidDomain,
    datatype: u32,
    op: u32,
    place: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    let answer = || -> Outcome {
        let family = match flags {
            0 => Family::Change,
            FETCH_ATOMIC => Family::Fetch,
            COMPARE_ATOMIC => Family::Compare,
            // There are none on tagged receives.
            _ if flags & TAGGED != 0 => return Err(Code(errno::EOPNOTSUPP)),
            _ => return Err(Code::BAD_FLAGS),
        };
        if place.is_null() {
            return Err(Code::INVALID);
        }
        let kind = family.kind(datatype, op)?;
        let attr = AtomicAttr { count: kind.most(), size: kind.number.size() };
        // SAFETY: not null, and the caller's promise.
        unsafe { copy::put(place, attr) };
        Ok(())
    };
    status(answer())
}

#[allow(clippy::too_many_arguments, reason = "C says how many there are")]
impl<L: Policy> Calls<L> {
    pub(crate) const OPS: &'static OpsAtomic = &OpsAtomic {
        write: Some(Self::write),
        writev: Some(Self::writev),
        writemsg: Some(Self::writemsg),
        inject: Some(Self::inject),
        readwrite: Some(Self::readwrite),
        readwritev: Some(Self::readwritev),
        readwritemsg: Some(Self::readwritemsg),
        compwrite: Some(Self::compwrite),
        compwritev: Some(Self::compwritev),
        compwritemsg: Some(Self::compwritemsg),
        writevalid: Some(Self::writevalid),
        readwritevalid: Some(Self::readwritevalid),
        compwritevalid: Some(Self::compwritevalid),
        ..OpsAtomic::REFUSING
    };

    /// # Safety
    /// As the manual page says: the endpoint is open, and the memory is the call's until its
    /// operation has ended; so for all others here.
    unsafe extern "C" fn write(
        ep: Ep,
        operand: *const c_void,
        count: usize,
        _desc: *mut c_void,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (operand, target) = (one(operand, count), Target { to, key, address });
        let family = Family::Change;
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
        // SAFETY: the caller's promise.
        unsafe { post::<L>(ep, &wanted, target, as_chosen(context)) }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn writev(
        ep: Ep,
        iov: *const Ioc,
        _desc: *mut *mut c_void,
        count: usize,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (family, target) = (Family::Change, Target { to, key, address });
        // SAFETY: the caller's promise.
        unsafe {
            let operand = several(iov, count);
            let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
            post::<L>(ep, &wanted, target, as_chosen(context))
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn writemsg(ep: Ep, msg: *const MsgAtomic, flags: u64) -> isize {
        // SAFETY: the caller's promise.
        unsafe { post_message::<L>(ep, msg, (Family::Change, flags), (NONE, NONE)) }
    }

    /// # Safety
    /// As for `write`, but the memory is the call's until it returns.
    unsafe extern "C" fn inject(
        ep: Ep,
        operand: *const c_void,
        count: usize,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
    ) -> isize {
        let (operand, target) = (one(operand, count), Target { to, key, address });
        let family = Family::Change;
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
        // SAFETY: the caller's promise.
        unsafe { post::<L>(ep, &wanted, target, NEVER) }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn readwrite(
        ep: Ep,
        operand: *const c_void,
        count: usize,
        _desc: *mut c_void,
        result: *mut c_void,
        _result_desc: *mut c_void,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (family, target) = (Family::Fetch, Target { to, key, address });
        let (operand, result) = (one(operand, count), one(result, count));
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result };
        // SAFETY: the caller's promise.
        unsafe { post::<L>(ep, &wanted, target, as_chosen(context)) }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn readwritev(
        ep: Ep,
        iov: *const Ioc,
        _desc: *mut *mut c_void,
        count: usize,
        result: *mut Ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (family, target) = (Family::Fetch, Target { to, key, address });
        // SAFETY: the caller's promise.
        unsafe {
            let (operand, result) = (several(iov, count), several(result, result_count));
            let wanted = Wanted { family, datatype, op, operand, compare: NONE, result };
            post::<L>(ep, &wanted, target, as_chosen(context))
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn readwritemsg(
        ep: Ep,
        msg: *const MsgAtomic,
        result: *mut Ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        flags: u64,
    ) -> isize {
        // SAFETY: the caller's promise.
        unsafe {
            let result = several(result, result_count);
            post_message::<L>(ep, msg, (Family::Fetch, flags), (NONE, result))
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn compwrite(
        ep: Ep,
        operand: *const c_void,
        count: usize,
        _desc: *mut c_void,
        compare: *const c_void,
        _compare_desc: *mut c_void,
        result: *mut c_void,
        _result_desc: *mut c_void,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (family, target) = (Family::Compare, Target { to, key, address });
        let [operand, compare, result] = [operand, compare, result].map(|at| one(at, count));
        let wanted = Wanted { family, datatype, op, operand, compare, result };
        // SAFETY: the caller's promise.
        unsafe { post::<L>(ep, &wanted, target, as_chosen(context)) }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn compwritev(
        ep: Ep,
        iov: *const Ioc,
        _desc: *mut *mut c_void,
        count: usize,
        compare: *const Ioc,
        _compare_desc: *mut *mut c_void,
        compare_count: usize,
        result: *mut Ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        to: u64,
        address: u64,
        key: u64,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    ) -> isize {
        let (family, target) = (Family::Compare, Target { to, key, address });
        // SAFETY: the caller's promise.
        unsafe {
            let (operand, compare) = (several(iov, count), several(compare, compare_count));
            let result = several(result, result_count);
            let wanted = Wanted { family, datatype, op, operand, compare, result };
            post::<L>(ep, &wanted, target, as_chosen(context))
        }
    }

    /// # Safety
    /// As for `write`.
    unsafe extern "C" fn compwritemsg(
        ep: Ep,
        msg: *const MsgAtomic,
        compare: *const Ioc,
        _compare_desc: *mut *mut c_void,
        compare_count: usize,
        result: *mut Ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        flags: u64,
    ) -> isize {
        // SAFETY: the caller's promise.
        unsafe {
            let compare = several(compare, compare_count);
            let result = several(result, result_count);
            post_message::<L>(ep, msg, (Family::Compare, flags), (compare, result))
        }
    }

    /// # Safety
    /// The place for the count is null or there; so for those below.
    unsafe extern "C" fn writevalid(_ep: Ep, datatype: u32, op: u32, place: *mut usize) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { valid(Family::Change, datatype, op, place) }
    }

    /// # Safety
    /// As for `writevalid`.
    unsafe extern "C" fn readwritevalid(
        _ep: Ep,
        datatype: u32,
        op: u32,
        place: *mut usize,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { valid(Family::Fetch, datatype, op, place) }
    }

    /// # Safety
    /// As for `writevalid`.
    unsafe extern "C" fn compwritevalid(
        _ep: Ep,
        datatype: u32,
        op: u32,
        place: *mut usize,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { valid(Family::Compare, datatype, op, place) }
    }
}
