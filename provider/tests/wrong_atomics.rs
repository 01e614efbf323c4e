//! Wrong arguments, for every atomic: an error code or a failure, never a crash, and nothing has
//! happened.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::scene::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{dangling, null, null_mut, without_provenance_mut};

const CHANGES: [&str; 4] = ["write", "writev", "writemsg", "inject"];
const FETCHES: [&str; 3] = ["readwrite", "readwritev", "readwritemsg"];
const COMPARES: [&str; 3] = ["compwrite", "compwritev", "compwritemsg"];
const DESCRIBED: [&str; 3] = ["writemsg", "readwritemsg", "compwritemsg"];

/// Numbers at home, as calls have them that take one piece, and as others do.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    start: *mut c_void,
    iov: *const Ioc,
    iov_count: usize,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
struct Atomic {
    /// In pieces that are one.
    count: usize,
    operand: Numbers,
    compare: Numbers,
    result: Numbers,
    datatype: u32,
    /// Those of calls that compare are other ones.
    op: u32,
}

/// The code of a call.
fn post(ep: *mut FidEp, how: &str, atomic: Atomic, aim: Aim) -> isize {
    let Atomic { count, operand, compare, result, datatype, op } = atomic;
    let Aim { to, key, address, flags } = aim;
    let (from, with, into) = (operand.start, compare.start, result.start);
    let (iov, iovs) = (operand.iov, operand.iov_count);
    let (withv, withs) = (compare.iov, compare.iov_count);
    let (intov, intos) = (result.iov.cast_mut(), result.iov_count);
    let (none, descs) = (null_mut(), null_mut());
    let rma_iov = &RmaIoc { addr: address, count, key };
    let msg = MsgAtomic {
        msg_iov: iov,
        iov_count: iovs,
        addr: to,
        rma_iov,
        rma_iov_count: 1,
        datatype,
        op,
        ..blank()
    };
    match how {
        "write" => {
            call!(ep, atomic.write(from, count, none, to, address, key, datatype, op, none))
        }
        "writev" => {
            call!(ep, atomic.writev(iov, descs, iovs, to, address, key, datatype, op, none))
        }
        "writemsg" => call!(ep, atomic.writemsg(&msg, flags)),
        "inject" => call!(ep, atomic.inject(from, count, to, address, key, datatype, op)),
        "readwrite" => call!(
            ep,
            atomic.readwrite(from, count, none, into, none, to, address, key, datatype, op, none)
        ),
        "readwritev" => call!(
            ep,
            atomic.readwritev(
                iov, descs, iovs, intov, descs, intos, to, address, key, datatype, op, none
            )
        ),
        "readwritemsg" => call!(ep, atomic.readwritemsg(&msg, intov, descs, intos, flags)),
        "compwrite" => call!(
            ep,
            atomic.compwrite(
                from, count, none, with, none, into, none, to, address, key, datatype, op, none
            )
        ),
        "compwritev" => call!(
            ep,
            atomic.compwritev(
                iov, descs, iovs, withv, descs, withs, intov, descs, intos, to, address, key,
                datatype, op, none
            )
        ),
        "compwritemsg" => {
            call!(ep, atomic.compwritemsg(&msg, withv, descs, withs, intov, descs, intos, flags))
        }
        _ => unreachable!("{how}"),
    }
}

/// An operation of a call's family.
fn op_of(how: &str) -> u32 {
    if COMPARES.contains(&how) { CSWAP } else { SUM }
}

fn every_call() -> Vec<&'static str> {
    [&CHANGES[..], &FETCHES, &COMPARES].concat()
}

/// Which numbers a call takes.
fn roles(how: &str) -> &'static [usize] {
    match how {
        _ if CHANGES.contains(&how) => &[0],
        _ if FETCHES.contains(&how) => &[0, 2],
        _ => &[0, 1, 2],
    }
}

/// The call says this.
fn says(ends: &[End], how: &str, wanted: i32, atomic: Atomic, aim: Aim) {
    let said = until_taken(ends, || post(ends[0].ep, how, atomic, aim));
    assert_eq!(said, code(wanted), "{how} {atomic:x?} {aim:x?}");
}

/// With numbers that every call has, of the operation that is its own.
fn with_numbers(count: usize, mut test: impl FnMut(Atomic)) {
    let numbers = [const { [0u64; 8] }; 3];
    let starts = numbers.each_ref().map(|numbers| numbers.as_ptr().cast_mut().cast());
    let iovs = starts.map(|addr| Ioc { addr, count });
    let role = |at: usize| Numbers { start: starts[at], iov: &raw const iovs[at], iov_count: 1 };
    let [operand, compare, result] = [role(0), role(1), role(2)];
    test(Atomic { count, operand, compare, result, datatype: UINT64, op: SUM });
}

/// All numbers that a call takes are right but those in one role, for each role and every call.
fn with_one_wrong(wrong: Numbers, count: usize, mut test: impl FnMut(&str, Atomic)) {
    with_numbers(count, |right| {
        for how in every_call() {
            for role in roles(how) {
                let mut atomic = Atomic { op: op_of(how), ..right };
                *[&mut atomic.operand, &mut atomic.compare, &mut atomic.result][*role] = wrong;
                test(how, atomic);
            }
        }
    });
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for scene in Scene::of_each_kind() {
        let last = without_provenance_mut(usize::MAX - 6);
        for addr in [null_mut(), last] {
            let iov = [Ioc { addr, count: 1 }];
            let wrong = Numbers { start: addr, iov: iov.as_ptr(), iov_count: 1 };
            with_one_wrong(wrong, 1, |how, atomic| {
                says(&scene.ends, how, errno::EINVAL, atomic, Aim::default());
            });
        }
        for count in [129, 1 << 38, 1 << 60, usize::MAX] {
            with_numbers(count, |atomic| {
                for how in every_call() {
                    let atomic = Atomic { op: op_of(how), ..atomic };
                    says(&scene.ends, how, errno::EMSGSIZE, atomic, Aim::default());
                }
            });
        }
        with_numbers(0, |atomic| {
            for how in every_call() {
                let atomic = Atomic { op: op_of(how), ..atomic };
                says(&scene.ends, how, errno::EINVAL, atomic, Aim::default());
            }
        });
        scene.close();
    }
}

#[test]
fn pieces_that_are_not_there_are_refused() {
    for scene in Scene::of_each_kind() {
        let numbers = [0u64; 8];
        let start = numbers.as_ptr().cast_mut().cast();
        let iov = [Ioc { addr: start, count: 1 }; 5];
        let odd = iov.as_ptr().wrapping_byte_add(1);
        let (none, some) = (null(), iov.as_ptr());
        // And one that has not as many as there are otherwise.
        let wrong =
            [(none, 0), (none, 1), (none, usize::MAX), (some, 2), (some, 5), (some, usize::MAX)];
        for (iov, iov_count) in wrong.into_iter().chain([(odd, 1)]) {
            let wrong = Numbers { start, iov, iov_count };
            with_one_wrong(wrong, 1, |how, atomic| {
                let is_sum_of_two = how == "writev" && iov_count == 2;
                if (how.ends_with('v') || how.ends_with("msg")) && !is_sum_of_two {
                    says(&scene.ends, how, errno::EINVAL, atomic, Aim::default());
                }
            });
        }
        scene.close();
    }
}

#[test]
fn places_that_are_not_there_are_refused() {
    for scene in Scene::of_each_kind() {
        let places = [RmaIoc { addr: 0, count: 1, key: KEY }; 2];
        let others = [0, 2, usize::MAX].map(|count| RmaIoc { count, ..places[0] });
        let (ep, start, odd) =
            (scene.ends[0].ep, places.as_ptr(), dangling::<MsgAtomic>().wrapping_byte_add(1));
        let wrong = [
            (null(), 0),
            (null(), 1),
            (start, 0),
            (start, 2),
            (start, usize::MAX),
            (start.wrapping_byte_add(4), 1),
        ];
        let of_other_counts = others.iter().map(|other| (&raw const *other, 1));
        let wrong = wrong.into_iter().chain(of_other_counts).map(|(rma_iov, rma_iov_count)| {
            MsgAtomic { rma_iov, rma_iov_count, datatype: UINT64, ..blank() }
        });
        with_numbers(1, |Atomic { operand, compare, result, .. }| {
            let (with, into, descs) = (compare.iov, result.iov.cast_mut(), null_mut());
            let all_refuse = |sum: *const MsgAtomic, swap: *const MsgAtomic| {
                let said = [
                    call!(ep, atomic.writemsg(sum, 0)),
                    call!(ep, atomic.readwritemsg(sum, into, descs, 1, 0)),
                    call!(ep, atomic.compwritemsg(swap, with, descs, 1, into, descs, 1, 0)),
                ];
                assert_eq!(said, [code(errno::EINVAL); 3]);
            };
            for wrong in wrong.clone() {
                let wrong = MsgAtomic { msg_iov: operand.iov, iov_count: 1, ..wrong };
                all_refuse(&MsgAtomic { op: SUM, ..wrong }, &MsgAtomic { op: CSWAP, ..wrong });
            }
            all_refuse(null(), null());
            all_refuse(odd, odd);
        });
        scene.close();
    }
}

#[test]
fn flags_and_peers_that_do_not_exist_are_refused() {
    let known = COMPLETION
        | INJECT_COMPLETE
        | TRANSMIT_COMPLETE
        | DELIVERY_COMPLETE
        | MORE
        | INJECT
        | FENCE;
    for scene in Scene::of_each_kind() {
        with_numbers(1, |atomic| {
            for flags in (0..64).map(|bit| 1u64 << bit).filter(|flag| known & flag == 0) {
                for how in DESCRIBED {
                    let atomic = Atomic { op: op_of(how), ..atomic };
                    let aim = Aim { flags, ..Aim::default() };
                    says(&scene.ends, how, errno::EBADFLAGS, atomic, aim);
                }
            }
            for to in [2, 1 << 32, ADDR_UNSPEC - 1, ADDR_UNSPEC] {
                for how in every_call() {
                    let atomic = Atomic { op: op_of(how), ..atomic };
                    says(&scene.ends, how, errno::EINVAL, atomic, Aim { to, ..Aim::default() });
                }
            }
        });
        scene.close();
    }
}

/// Each call takes what its own question says that it does, and refuses everything else.
#[test]
fn operations_and_numbers_that_do_not_exist_are_refused() {
    let numbers = || (0..48).chain([u32::MAX, 1 << 31]);
    for scene in Scene::of_each_kind() {
        let ep = scene.ends[0].ep;
        let mut refused = 0;
        for (datatype, op) in numbers().flat_map(|number| numbers().map(move |op| (number, op))) {
            let valid = [
                call!(ep, atomic.writevalid(datatype, op, null_mut())),
                call!(ep, atomic.readwritevalid(datatype, op, null_mut())),
                call!(ep, atomic.compwritevalid(datatype, op, null_mut())),
            ];
            let families = [&CHANGES[..], &FETCHES, &COMPARES].into_iter().zip(valid);
            with_numbers(1, |atomic| {
                let atomic = Atomic { datatype, op, ..atomic };
                for (calls, valid) in families.clone().filter(|(_, valid)| *valid != 0) {
                    assert_eq!(valid, -errno::EOPNOTSUPP);
                    for how in calls {
                        says(&scene.ends, how, errno::EOPNOTSUPP, atomic, Aim::default());
                        refused += 1;
                    }
                }
            });
        }
        assert!(refused > 10_000, "{refused}");
        scene.close();
    }
}

/// A target says whether keys and addresses are valid, and nothing is accessed.
#[test]
fn unknown_keys_and_addresses_of_a_peer_are_errors() {
    for mr_mode in [0, MR_VIRT_ADDR] {
        let scene = Scene::new(Wishes { mr_mode, ..Wishes::remote() });
        for (aim, wanted) in scene.wrong_aims(8) {
            with_numbers(1, |atomic| {
                for how in every_call() {
                    let kind = if CHANGES.contains(&how) { WRITE } else { READ };
                    says(&scene.ends, how, 0, Atomic { op: op_of(how), ..atomic }, aim);
                    scene.failed(ATOMIC | kind, wanted);
                }
            });
        }
        scene.close();
    }
}

#[test]
fn an_endpoint_that_is_not_ready_or_has_not_asked_refuses() {
    for (caps, wanted) in [(ATOMIC, errno::EOPBADSTATE), (MSG, errno::ENOSYS)] {
        let opened = Wishes { caps, ..Wishes::default() }.opened();
        let ep = open_ep(&opened).unwrap();
        with_numbers(1, |atomic| {
            for how in every_call() {
                let said = post(ep, how, Atomic { op: op_of(how), ..atomic }, Aim::default());
                assert_eq!(said, code(wanted), "{how}");
            }
        });
        assert_eq!(close(ep), 0);
    }
}
