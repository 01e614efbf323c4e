//! Wrong arguments, for every call that moves data or tells of it: an error code, never a crash,
//! and nothing has happened.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const NO_ADDRESS: *mut c_void = null_mut();

/// Longer than what can be injected.
const LONG: usize = 5000;

fn code(code: i32) -> isize {
    -(code as isize)
}

/// A fault in the memory of a call, and the expected code.
struct Memory {
    start: *mut c_void,
    len: usize,
    wanted: isize,
}

fn wrong_memory(bytes: &mut [u8]) -> [Memory; 3] {
    let last = std::ptr::without_provenance_mut(usize::MAX - 6);
    [
        Memory { start: last, len: 8, wanted: code(errno::EINVAL) },
        Memory { start: NO_ADDRESS, len: 8, wanted: code(errno::EINVAL) },
        Memory { start: bytes.as_mut_ptr().cast(), len: 1 << 41, wanted: code(errno::EMSGSIZE) },
    ]
}

#[test]
fn memory_that_cannot_be_is_refused_by_every_call() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (ep, none) = (ends[0].ep, null_mut());
    for Memory { start, len, wanted } in wrong_memory(&mut [0; 8]) {
        let calls = [
            call!(ep, msg.send(start, len, none, 0, none)),
            call!(ep, msg.senddata(start, len, none, 1, 0, none)),
            call!(ep, msg.inject(start, len, 0)),
            call!(ep, msg.injectdata(start, len, 1, 0)),
            call!(ep, msg.recv(start, len, none, 0, none)),
            call!(ep, tagged.send(start, len, none, 0, 7, none)),
            call!(ep, tagged.senddata(start, len, none, 1, 0, 7, none)),
            call!(ep, tagged.inject(start, len, 0, 7)),
            call!(ep, tagged.injectdata(start, len, 1, 0, 7)),
            call!(ep, tagged.recv(start, len, none, 0, 7, 0, none)),
        ];
        assert_eq!(calls, [wanted; 10]);
        let iov = [Iovec { iov_base: start, iov_len: len }];
        assert_eq!(in_pieces(ep, iov.as_ptr(), 1), [wanted; 8]);
    }
    let bytes = [0u8; LONG];
    let start = bytes.as_ptr().cast();
    let injected = [
        call!(ep, msg.inject(start, LONG, 0)),
        call!(ep, msg.injectdata(start, LONG, 1, 0)),
        call!(ep, tagged.inject(start, LONG, 0, 7)),
        call!(ep, tagged.injectdata(start, LONG, 1, 0, 7)),
    ];
    assert_eq!(injected, [code(errno::EMSGSIZE); 4]);
    ends.iter().for_each(|end| assert_eq!(end.read().unwrap_err(), code(errno::EAGAIN)));
    ends.into_iter().for_each(End::close);
}

/// The codes of all calls that take pieces.
fn in_pieces(ep: *mut FidEp, iov: *const Iovec, count: usize) -> [isize; 8] {
    let none = null_mut();
    let plain = Msg { msg_iov: iov, iov_count: count, ..blank() };
    let tagged = MsgTagged { msg_iov: iov, iov_count: count, tag: 7, ..blank() };
    [
        call!(ep, msg.sendv(iov, null_mut(), count, 0, none)),
        call!(ep, msg.recvv(iov, null_mut(), count, 0, none)),
        call!(ep, msg.sendmsg(&plain, 0)),
        call!(ep, msg.recvmsg(&plain, 0)),
        call!(ep, tagged.sendv(iov, null_mut(), count, 0, 7, none)),
        call!(ep, tagged.recvv(iov, null_mut(), count, 0, 7, 0, none)),
        call!(ep, tagged.sendmsg(&tagged, 0)),
        call!(ep, tagged.recvmsg(&tagged, 0)),
    ]
}

#[test]
fn pieces_that_are_not_there_are_refused_by_every_call() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let iov = [Iovec { iov_base: NO_ADDRESS, iov_len: 0 }];
    let (some, odd) = (iov.as_ptr(), iov.as_ptr().wrapping_byte_add(1));
    for (iov, count) in [(null(), 1), (null(), usize::MAX), (some, usize::MAX), (odd, 1)] {
        assert_eq!(in_pieces(ends[0].ep, iov, count), [code(errno::EINVAL); 8]);
    }
    ends.into_iter().for_each(End::close);
}

#[test]
fn flags_and_peers_that_are_not_there_are_refused_by_every_call() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (ep, none) = (ends[0].ep, null_mut());
    let (plain, tagged): (Msg, MsgTagged) = (blank(), blank());
    for flags in [READ, WRITE, COMMIT_COMPLETE] {
        let calls = [
            call!(ep, msg.sendmsg(&plain, flags)),
            call!(ep, msg.recvmsg(&plain, flags)),
            call!(ep, tagged.sendmsg(&tagged, flags)),
            call!(ep, tagged.recvmsg(&tagged, flags)),
        ];
        assert_eq!(calls, [code(errno::EBADFLAGS); 4], "{flags:#x}");
    }
    let nothing = [
        call!(ep, msg.sendmsg(null(), 0)),
        call!(ep, msg.recvmsg(null(), 0)),
        call!(ep, tagged.sendmsg(null(), 0)),
        call!(ep, tagged.recvmsg(null(), 0)),
    ];
    assert_eq!(nothing, [code(errno::EINVAL); 4]);
    for to in [2, ADDR_UNSPEC, ADDR_UNSPEC - 1] {
        let calls = [
            call!(ep, msg.send(none, 0, none, to, none)),
            call!(ep, msg.senddata(none, 0, none, 1, to, none)),
            call!(ep, msg.inject(none, 0, to)),
            call!(ep, msg.injectdata(none, 0, 1, to)),
            call!(ep, tagged.send(none, 0, none, to, 7, none)),
            call!(ep, tagged.senddata(none, 0, none, 1, to, 7, none)),
            call!(ep, tagged.inject(none, 0, to, 7)),
            call!(ep, tagged.injectdata(none, 0, 1, to, 7)),
        ];
        assert_eq!(calls, [code(errno::EINVAL); 8], "{to:#x}");
    }
    ends.into_iter().for_each(End::close);
}

#[test]
fn rooms_that_are_not_there_are_refused_by_every_queue() {
    let wishes = Wishes { wait_obj: WAIT_FD, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    // There is something to be told, and still is afterwards.
    let send = || call!(ends[0].ep, msg.inject(null_mut(), 0, 1));
    assert_eq!(until_taken(&ends, send), 0);
    assert_eq!(call!(ends[0].ep, msg.recv(NO_ADDRESS, 0, null_mut(), 1, null_mut())), 0);
    let cq = ends[0].cq;
    let reads = [
        call!(cq, ops.read(NO_ADDRESS, 1)),
        call!(cq, ops.readfrom(NO_ADDRESS, 1, null_mut())),
        call!(cq, ops.sread(NO_ADDRESS, 1, null(), -1)),
        call!(cq, ops.sreadfrom(NO_ADDRESS, 1, null_mut(), null(), -1)),
        call!(cq, ops.readerr(null_mut(), 0)),
    ];
    assert_eq!(reads, [code(errno::EINVAL); 5]);
    assert_eq!(next(&ends[0], &ends).0.flags & RECV, RECV);
    let eq = open_eq(&opened, WRITE, WAIT_FD);
    assert_eq!(call!(eq, ops.write(7, [1u8].as_ptr().cast(), 1, 0)), 1);
    let mut number = 0;
    let reads = [
        call!(eq, ops.read(&mut number, NO_ADDRESS, 1, 0)),
        call!(eq, ops.sread(&mut number, NO_ADDRESS, 1, -1, 0)),
        call!(eq, ops.readerr(null_mut(), 0)),
    ];
    assert_eq!((reads, number), ([code(errno::EINVAL); 3], 0));
    let mut byte = 0u8;
    assert_eq!(
        call!(eq, ops.read(null_mut(), (&raw mut byte).cast(), 1, READ)),
        code(errno::EBADFLAGS)
    );
    assert_eq!(call!(eq, ops.read(null_mut(), (&raw mut byte).cast(), 1, 0)), 1);
    assert_eq!((byte, close(eq)), (1, 0));
    ends.into_iter().for_each(End::close);
}
