//! Atomics on numbers in memory of peers.

use super::param::{Parameters, StatusPtr, answer};
use super::request::{release, wait};
use super::rma::Target;
use crate::abi::numbers::*;
use crate::abi::request::{EndFn, RequestParam};
use crate::abi::status::Status;
use crate::rkey::Rkey;
use crate::sys::atomic::{Change, Op, Width};
use crate::sys::request::Told;
use crate::worker::{Ep, Posted};
use ayre::Rights;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

impl Target<'_> {
    /// Changes a number there. As in UCX, all need the right to write.
    ///
    /// # Safety
    /// The place for what was there before stays until the operation has ended.
    #[inline]
    unsafe fn update(&self, change: Change, param: &Parameters) -> Posted {
        match self.reach(change.size(), Rights::WRITE) {
            Ok(_) if !self.address.is_multiple_of(change.size() as u64) => {
                Posted::Failed(Status::INVALID_PARAM)
            }
            Ok(Some((reachable, offset))) => {
                // SAFETY: peers keep memory while its keys are used; the right to write is there.
                unsafe { change.directly(reachable, offset) };
                self.worker.done(&param.wish)
            }
            Ok(None) => self.worker.update(self.for_engine(), change, &param.wish),
            Err(status) => Posted::Failed(status),
        }
    }
}

/// The operation of [`ucp_atomic_op_nbx`], of two operands. None for a number without a meaning.
fn op_of(number: c_uint, expected: u64) -> Option<Op> {
    Some(match number {
        UCP_ATOMIC_OP_ADD => Op::Add,
        UCP_ATOMIC_OP_SWAP => Op::Swap,
        UCP_ATOMIC_OP_CSWAP => Op::CompareSwap(expected),
        UCP_ATOMIC_OP_AND => Op::And,
        UCP_ATOMIC_OP_OR => Op::Or,
        UCP_ATOMIC_OP_XOR => Op::Xor,
        _ => return None,
    })
}

/// The number of [`ucp_atomic_op_nbx`] for one of the older functions that give nothing back.
fn op_of_post(number: c_uint) -> Option<c_uint> {
    let all = [UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR, UCP_ATOMIC_OP_XOR];
    all.get(number as usize).copied()
}

/// An operation as the functions describe it: the number of the operation, the width, the operand,
/// and a place for what was there before. For *compare and swap* the operand is what is expected,
/// and the new number lies at that place.
///
/// # Errors
/// *invalid parameter* for numbers without a meaning, and for *swap* and *compare and swap* without
/// a place.
///
/// # Safety
/// The place is null, or may be read and written until the operation has ended.
unsafe fn change(
    (number, width): (c_uint, Option<Width>),
    operand: u64,
    place: *mut c_void,
) -> Result<Change, Status> {
    let (Some(width), Some(op)) = (width, op_of(number, operand)) else {
        return Err(Status::INVALID_PARAM);
    };
    let operand = match op {
        Op::Swap | Op::CompareSwap(_) if place.is_null() => return Err(Status::INVALID_PARAM),
        // SAFETY: the caller's promise.
        Op::CompareSwap(_) => unsafe { width.read(place) },
        _ => operand,
    };
    // SAFETY: the caller's promise.
    Ok(unsafe { Change::new((op, width), operand, place) })
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_atomic_op_nbx(
    ep: *const Ep,
    number: c_uint,
    operand: *const c_void,
    count: usize,
    address: u64,
    rkey: *const Rkey,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfSend);
        let width = param.element().filter(|_| count == 1).and_then(Width::of_size);
        let operand = width.map_or(0, |width| width.read(operand));
        let posted = match change((number, width), operand, param.reply) {
            Ok(change) => Target::new(ep, (address, rkey)).update(change, &param),
            Err(status) => Posted::Failed(status),
        };
        answer(posted)
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_atomic_post(
    ep: *const Ep,
    number: c_uint,
    operand: u64,
    size: usize,
    address: u64,
    rkey: *const Rkey,
) -> Status {
    let Some(number) = op_of_post(number) else { return Status::INVALID_PARAM };
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise.
    unsafe {
        let target = Target::new(ep, (address, rkey));
        match change((number, Width::of_size(size)), operand, null_mut()) {
            Ok(change) => release(target.worker, target.update(change, &param)),
            Err(status) => status,
        }
    }
}

/// The number of [`ucp_atomic_op_nbx`] for one of the older functions that give something back.
fn op_of_fetch(number: c_uint) -> Option<c_uint> {
    let all = [
        UCP_ATOMIC_OP_ADD,
        UCP_ATOMIC_OP_SWAP,
        UCP_ATOMIC_OP_CSWAP,
        UCP_ATOMIC_OP_AND,
        UCP_ATOMIC_OP_OR,
        UCP_ATOMIC_OP_XOR,
    ];
    all.get(number as usize).copied()
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_atomic_fetch_nb(
    ep: *const Ep,
    number: c_uint,
    operand: u64,
    result: *mut c_void,
    size: usize,
    address: u64,
    rkey: *const Rkey,
    end: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
) -> StatusPtr {
    let param = Parameters::of_callback(0, Told::OfSend(EndFn { send: end }), false);
    let number = op_of_fetch(number).filter(|_| !result.is_null()).unwrap_or(UCP_ATOMIC_OP_LAST);
    // SAFETY: the caller's promise.
    unsafe {
        answer(match change((number, Width::of_size(size)), operand, result) {
            Ok(change) => Target::new(ep, (address, rkey)).update(change, &param),
            Err(status) => Posted::Failed(status),
        })
    }
}

/// The oldest functions, which return when the operation has ended. `$operand` is what the number
/// is combined with or compared to, and `$result` the place for what was there before.
macro_rules! blocking {
    ($($name:ident(
        $op:ident, $number:ty; $operand:ident $(, $new:ident)? $(=> $result:ident)?
    );)*) => { $(
        /// # Safety
        /// As UCP's headers say.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            ep: *const Ep,
            $operand: $number,
            $($new: $number,)?
            address: u64,
            rkey: *const Rkey,
            $($result: *mut $number,)?
        ) -> Status {
            let place: *mut c_void = [$($result.cast(),)? null_mut()][0];
            // SAFETY: the caller's promise.
            unsafe {
                $(place.cast::<$number>().write_unaligned($new);)?
                let width = Width::of_size(size_of::<$number>());
                match change(($op, width), $operand.into(), place) {
                    Ok(change) => {
                        let param = Parameters::of_callback(0, Told::Nobody, false);
                        let target = Target::new(ep, (address, rkey));
                        wait(target.worker, target.update(change, &param))
                    }
                    Err(status) => status,
                }
            }
        }
    )* };
}

blocking! {
    ucp_atomic_add32(UCP_ATOMIC_OP_ADD, u32; add);
    ucp_atomic_add64(UCP_ATOMIC_OP_ADD, u64; add);
    ucp_atomic_fadd32(UCP_ATOMIC_OP_ADD, u32; add => result);
    ucp_atomic_fadd64(UCP_ATOMIC_OP_ADD, u64; add => result);
    ucp_atomic_swap32(UCP_ATOMIC_OP_SWAP, u32; swap => result);
    ucp_atomic_swap64(UCP_ATOMIC_OP_SWAP, u64; swap => result);
    ucp_atomic_cswap32(UCP_ATOMIC_OP_CSWAP, u32; compare, swap => result);
    ucp_atomic_cswap64(UCP_ATOMIC_OP_CSWAP, u64; compare, swap => result);
}
