//! Atomics on peers' memory.

use super::memory::{self, Array};
use super::rma::READS;
use super::table::{call, calls, note};
use crate::abi::*;
use crate::ep::{Change, Handle, Note, Reported, Target};
use crate::error::{Code, Outcome, status};
use crate::info::atomic::Family;
use ayre::endpoint::raw::Spans;
use ayre_guest::copy;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

type Desc = *mut c_void;
type Context = *mut c_void;

/// Flags of a call. Operands are always injected.
const FLAGS: u64 = READS | INJECT;

/// The numbers of an atomic in libfabric, and its memory.
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
    /// The atomic that is asked for, and how many elements it has.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for an atomic that does not exist. `EINVAL` for no elements, and where the
    /// numbers of operands, comparands and results differ. `EMSGSIZE` for more elements than a call
    /// can have. Those of [`memory::elements`].
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

/// Some elements in pieces.
fn several(iov: *const Ioc, count: usize) -> Pieces {
    Pieces::Several(Array::new(iov, count))
}

/// # Errors
/// Those of [`Wanted::change`], and of `Core::update`.
///
/// # Safety
/// As for [`Wanted::change`].
unsafe fn post<H: Handle>(ep: &H, wanted: &Wanted, target: Target, note: Note) -> Outcome {
    // SAFETY: the caller's promise.
    let (change, _) = unsafe { wanted.change() }?;
    ep.core().update(target, change, note)
}

/// Posts what a call says in memory, besides results and comparands.
///
/// # Errors
/// `EBADFLAGS`; `EINVAL` where not one place is named of as many elements; those of [`post`].
///
/// # Safety
/// As for [`post`]; the message is null or there, with as many pieces as it says.
unsafe fn post_message<H: Handle>(
    ep: &H,
    msg: *const MsgAtomic,
    (family, flags): (Family, u64),
    (compare, result): (Pieces, Pieces),
) -> Outcome {
    if flags & !FLAGS != 0 {
        return Err(Code::BAD_FLAGS);
    }
    // SAFETY: the caller's promise.
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
    ep.core().update(Target { to, key, address }, change, note(context, Reported::By(flags)))
}

/// # Safety
/// The place for the count is null or there.
unsafe fn valid(family: Family, datatype: u32, op: u32, place: *mut usize) -> c_int {
    let kind = family.kind(datatype, op);
    // SAFETY: the caller's promise.
    status(kind.map(|kind| unsafe { copy::put(place, kind.most()) }))
}

/// # Safety
/// As for [`valid`].
unsafe extern "C" fn writevalid(
    _ep: *mut FidEp,
    datatype: u32,
    op: u32,
    place: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { valid(Family::Change, datatype, op, place) }
}

/// # Safety
/// As for [`valid`].
unsafe extern "C" fn readwritevalid(
    _ep: *mut FidEp,
    datatype: u32,
    op: u32,
    place: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { valid(Family::Fetch, datatype, op, place) }
}

/// # Safety
/// As for [`valid`].
unsafe extern "C" fn compwritevalid(
    _ep: *mut FidEp,
    datatype: u32,
    op: u32,
    place: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { valid(Family::Compare, datatype, op, place) }
}

/// The calls that need no endpoint.
const VALID: OpsAtomic = OpsAtomic {
    writevalid: Some(writevalid),
    readwritevalid: Some(readwritevalid),
    compwritevalid: Some(compwritevalid),
    ..OpsAtomic::REFUSING
};

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

calls! {
    /// Those of all three families.
    Calls: OpsAtomic, otherwise VALID;

    write(
        ep, operand: *const c_void, count: usize, _desc: Desc, to: u64, address: u64, key: u64,
        datatype: u32, op: u32, context: Context,
    ) {
        let (family, operand) = (Family::Change, one(operand, count));
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    writev(
        ep, iov: *const Ioc, _descs: *mut Desc, count: usize, to: u64, address: u64, key: u64,
        datatype: u32, op: u32, context: Context,
    ) {
        let (family, operand) = (Family::Change, several(iov, count));
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    writemsg(ep, msg: *const MsgAtomic, flags: u64) {
        post_message(ep, msg, (Family::Change, flags), (NONE, NONE))
    }

    inject(
        ep, operand: *const c_void, count: usize, to: u64, address: u64, key: u64, datatype: u32,
        op: u32,
    ) {
        let (family, operand) = (Family::Change, one(operand, count));
        let wanted = Wanted { family, datatype, op, operand, compare: NONE, result: NONE };
        post(ep, &wanted, Target { to, key, address }, Note::NEVER)
    }

    readwrite(
        ep, operand: *const c_void, count: usize, _desc: Desc, result: *mut c_void,
        _result_desc: Desc, to: u64, address: u64, key: u64, datatype: u32, op: u32,
        context: Context,
    ) {
        let [operand, result] = [operand, result].map(|at| one(at, count));
        let wanted = Wanted { family: Family::Fetch, datatype, op, operand, compare: NONE, result };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    readwritev(
        ep, iov: *const Ioc, _descs: *mut Desc, count: usize, result: *mut Ioc,
        _result_descs: *mut Desc, result_count: usize, to: u64, address: u64, key: u64,
        datatype: u32, op: u32, context: Context,
    ) {
        let (operand, result) = (several(iov, count), several(result, result_count));
        let wanted = Wanted { family: Family::Fetch, datatype, op, operand, compare: NONE, result };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    readwritemsg(
        ep, msg: *const MsgAtomic, result: *mut Ioc, _descs: *mut Desc, count: usize, flags: u64,
    ) {
        post_message(ep, msg, (Family::Fetch, flags), (NONE, several(result, count)))
    }

    compwrite(
        ep, operand: *const c_void, count: usize, _desc: Desc, compare: *const c_void,
        _compare_desc: Desc, result: *mut c_void, _result_desc: Desc, to: u64, address: u64,
        key: u64, datatype: u32, op: u32, context: Context,
    ) {
        let [operand, compare, result] = [operand, compare, result].map(|at| one(at, count));
        let wanted = Wanted { family: Family::Compare, datatype, op, operand, compare, result };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    compwritev(
        ep, iov: *const Ioc, _descs: *mut Desc, count: usize, compare: *const Ioc,
        _compare_descs: *mut Desc, compare_count: usize, result: *mut Ioc,
        _result_descs: *mut Desc, result_count: usize, to: u64, address: u64, key: u64,
        datatype: u32, op: u32, context: Context,
    ) {
        let (operand, compare) = (several(iov, count), several(compare, compare_count));
        let result = several(result, result_count);
        let wanted = Wanted { family: Family::Compare, datatype, op, operand, compare, result };
        post(ep, &wanted, Target { to, key, address }, note(context, ep.sends(FLAGS)))
    }

    compwritemsg(
        ep, msg: *const MsgAtomic, compare: *const Ioc, _compare_descs: *mut Desc,
        compare_count: usize, result: *mut Ioc, _result_descs: *mut Desc, result_count: usize,
        flags: u64,
    ) {
        let (compare, result) = (several(compare, compare_count), several(result, result_count));
        post_message(ep, msg, (Family::Compare, flags), (compare, result))
    }
}
