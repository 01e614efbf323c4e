//! Wrong arguments, for every call that reads and writes peers' memory: an error code or a failure,
//! never a crash, and nothing has happened.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::scene::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{dangling, null, null_mut, without_provenance};

const WRITES: [&str; 6] = ["write", "writev", "writemsg", "inject", "writedata", "injectdata"];
const READS: [&str; 3] = ["read", "readv", "readmsg"];

/// The memory at home, as calls have it that take one piece, and as others do.
#[derive(Clone, Copy)]
struct Home {
    start: *const c_void,
    len: usize,
    iov: *const Iovec,
    iov_count: usize,
}

/// The code of a call.
fn post(ep: *mut FidEp, how: &str, home: Home, aim: Aim) -> isize {
    let Home { start, len, iov, iov_count } = home;
    let Aim { to, key, address, flags } = aim;
    let (into, none, descs) = (start.cast_mut(), null_mut(), null_mut());
    let rma_iov = &RmaIov { addr: address, len, key };
    let msg = MsgRma { msg_iov: iov, iov_count, addr: to, rma_iov, rma_iov_count: 1, ..blank() };
    match how {
        "write" => call!(ep, rma.write(start, len, none, to, address, key, none)),
        "writev" => call!(ep, rma.writev(iov, descs, iov_count, to, address, key, none)),
        "writemsg" => call!(ep, rma.writemsg(&msg, flags)),
        "inject" => call!(ep, rma.inject(start, len, to, address, key)),
        "writedata" => call!(ep, rma.writedata(start, len, none, 1, to, address, key, none)),
        "injectdata" => call!(ep, rma.injectdata(start, len, 1, to, address, key)),
        "read" => call!(ep, rma.read(into, len, none, to, address, key, none)),
        "readv" => call!(ep, rma.readv(iov, descs, iov_count, to, address, key, none)),
        "readmsg" => call!(ep, rma.readmsg(&msg, flags)),
        _ => unreachable!("{how}"),
    }
}

/// All of these calls are to say this.
fn all_say(ends: &[End], calls: &[&str], wanted: i32, home: Home, aim: Aim) {
    for how in calls {
        let said = until_taken(ends, || post(ends[0].ep, how, home, aim));
        assert_eq!(said, code(wanted), "{how} {aim:x?}");
    }
}

fn every_call() -> Vec<&'static str> {
    [&WRITES[..], &READS].concat()
}

/// With memory in one piece, which every call has.
fn in_one_piece(start: *const c_void, len: usize, test: impl FnOnce(Home)) {
    let iov = [Iovec { iov_base: start.cast_mut(), iov_len: len }];
    test(Home { start, len, iov: iov.as_ptr(), iov_count: 1 });
}

fn with_eight_bytes(test: impl FnOnce(Home)) {
    let bytes = [0u8; 8];
    in_one_piece(bytes.as_ptr().cast(), 8, test);
}

#[test]
fn memory_that_cannot_be_is_refused() {
    for scene in Scene::of_each_kind() {
        let there = scene.memory.as_ptr().cast();
        let wrong = [
            (null(), 8, errno::EINVAL),
            // Beyond the last address.
            (without_provenance(usize::MAX - 6), 8, errno::EINVAL),
            (there, 1 << 41, errno::EMSGSIZE),
            (there, usize::MAX, errno::EMSGSIZE),
        ];
        for (start, len, wanted) in wrong {
            in_one_piece(start, len, |home| {
                all_say(&scene.ends, &every_call(), wanted, home, Aim::default());
            });
        }
        scene.close();
    }
}

#[test]
fn pieces_that_are_not_there_are_refused() {
    let calls = ["writev", "writemsg", "readv", "readmsg"];
    for scene in Scene::of_each_kind() {
        let iov = [Iovec { iov_base: null_mut(), iov_len: 0 }; 5];
        let odd = iov.as_ptr().wrapping_byte_add(1);
        let wrong = [(null(), 1), (null(), usize::MAX), (iov.as_ptr(), 5), (odd, 1)];
        for (iov, iov_count) in wrong.into_iter().chain([(iov.as_ptr(), usize::MAX)]) {
            let home = Home { start: null(), len: 0, iov, iov_count };
            all_say(&scene.ends, &calls, errno::EINVAL, home, Aim::default());
        }
        scene.close();
    }
}

#[test]
fn places_that_are_not_there_are_refused() {
    for scene in Scene::of_each_kind() {
        let (ep, bytes) = (scene.ends[0].ep, [0u8; 8]);
        let iov = [Iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: 8 }];
        let places = [RmaIov { addr: 0, len: 8, key: KEY }; 2];
        let others = [0, 7, 9, usize::MAX].map(|len| RmaIov { len, ..places[0] });
        let start = places.as_ptr();
        let wrong = [
            (null(), 0),
            (null(), 1),
            (start, 0),
            (start, 2),
            (start, usize::MAX),
            (start.wrapping_byte_add(4), 1),
        ];
        let of_other_lengths = others.iter().map(|other| (&raw const *other, 1));
        for (rma_iov, rma_iov_count) in wrong.into_iter().chain(of_other_lengths) {
            let msg_iov = iov.as_ptr();
            let msg = MsgRma { msg_iov, iov_count: 1, rma_iov, rma_iov_count, ..blank() };
            assert_eq!(call!(ep, rma.writemsg(&msg, 0)), code(errno::EINVAL));
            assert_eq!(call!(ep, rma.readmsg(&msg, 0)), code(errno::EINVAL));
        }
        for nothing in [null(), dangling::<MsgRma>().wrapping_byte_add(1)] {
            assert_eq!(call!(ep, rma.writemsg(nothing, 0)), code(errno::EINVAL));
            assert_eq!(call!(ep, rma.readmsg(nothing, 0)), code(errno::EINVAL));
        }
        scene.close();
    }
}

#[test]
fn flags_that_do_not_exist_are_refused() {
    let known = COMPLETION | INJECT_COMPLETE | TRANSMIT_COMPLETE | DELIVERY_COMPLETE | MORE | FENCE;
    for scene in Scene::of_each_kind() {
        for flags in (0..64).map(|bit| 1u64 << bit).filter(|flag| known & flag == 0) {
            let aim = Aim { flags, ..Aim::default() };
            with_eight_bytes(|home| {
                if flags & (INJECT | REMOTE_CQ_DATA) == 0 {
                    all_say(&scene.ends, &["writemsg"], errno::EBADFLAGS, home, aim);
                }
                all_say(&scene.ends, &["readmsg"], errno::EBADFLAGS, home, aim);
            });
        }
        scene.close();
    }
}

#[test]
fn more_than_can_be_injected_is_refused() {
    let calls = ["inject", "injectdata", "writemsg"];
    for scene in Scene::of_each_kind() {
        // SAFETY: it is open.
        let most = unsafe { (*scene.opened.infos.info().tx_attr).inject_size };
        let bytes = vec![0u8; most + 1];
        let aim = Aim { flags: INJECT, ..Aim::default() };
        in_one_piece(bytes.as_ptr().cast(), most + 1, |home| {
            all_say(&scene.ends, &calls, errno::EMSGSIZE, home, aim);
        });
        scene.close();
    }
}

#[test]
fn peers_that_are_not_there_are_refused() {
    for scene in Scene::of_each_kind() {
        let mut removed = scene.ends[0].insert(&[name(scene.ends[1].ep)]);
        let (at, count) = (removed.as_mut_ptr(), removed.len());
        assert_eq!(call!(scene.ends[0].av, ops.remove(at, count, 0)), 0);
        for to in [removed[0], 3, 1 << 32, ADDR_UNSPEC - 1, ADDR_UNSPEC] {
            let aim = Aim { to, ..Aim::default() };
            with_eight_bytes(|home| {
                all_say(&scene.ends, &every_call(), errno::EINVAL, home, aim);
            });
        }
        scene.close();
    }
}

/// A target says whether keys and addresses are valid, and nothing is accessed.
#[test]
fn unknown_keys_and_addresses_of_a_peer_are_errors() {
    for mr_mode in [0, MR_VIRT_ADDR] {
        let scene = Scene::new(Wishes { mr_mode, ..Wishes::remote() });
        for (aim, wanted) in scene.wrong_aims(8) {
            for (calls, kind) in [(&WRITES[..], WRITE), (&READS, READ)] {
                for how in calls {
                    with_eight_bytes(|home| {
                        all_say(&scene.ends, &[how], 0, home, aim);
                        scene.failed(RMA | kind, wanted);
                    });
                }
            }
        }
        scene.close();
    }
}

#[test]
fn an_endpoint_that_is_not_ready_refuses() {
    for opened in Opened::of_each_kind() {
        let mut infos = Infos::hints_with(|info| info.caps = RMA).get().unwrap();
        infos.domain().threading = THREAD_UNSPEC;
        let mut ep = null_mut();
        assert_eq!(call!(opened.domain, ops.endpoint(infos.0, &mut ep, null_mut())), 0);
        with_eight_bytes(|home| {
            for how in every_call() {
                let said = post(ep, how, home, Aim::default());
                assert_eq!(said, code(errno::EOPBADSTATE), "{how}");
            }
        });
        assert_eq!(close(ep), 0);
    }
}

#[test]
fn an_endpoint_without_the_rma_capability_refuses_rma_calls() {
    let wishes = Wishes { caps: MSG, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    with_eight_bytes(|home| {
        all_say(&ends, &every_call(), errno::ENOSYS, home, Aim::default());
    });
    ends.into_iter().for_each(End::close);
}
