//! Messages through every call that sends and every call that receives.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Both sides of every border in the engine.
const SIZES: [usize; 8] = [0, 1, 8, 512, 513, 4096, 16385, 300_001];

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

fn iov(bytes: &mut [u8]) -> [Iovec; 3] {
    let (first, rest) = bytes.split_at_mut(bytes.len() / 3);
    let (second, third) = rest.split_at_mut(rest.len() / 2);
    [first, second, third]
        .map(|part| Iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() })
}

/// The ways to send a message, and whether it has data and a completion.
const SENDS: [(&str, bool, bool); 6] = [
    ("send", false, true),
    ("sendv", false, true),
    ("sendmsg", true, true),
    ("inject", false, false),
    ("senddata", true, true),
    ("injectdata", true, false),
];

const DATA: u64 = 0xda7a_0000_1234_5678;
const TAG: u64 = 0x1_0000_0007;

fn send(ends: &[End], how: &str, tagged: bool, bytes: &mut [u8], context: usize) {
    let (ep, len, iov) = (ends[0].ep, bytes.len(), iov(bytes));
    let (start, pieces, none) = (bytes.as_ptr().cast::<c_void>(), iov.as_ptr(), null_mut());
    let at = context as *mut c_void;
    let msg_tagged = MsgTagged {
        msg_iov: pieces,
        desc: null_mut(),
        iov_count: 3,
        addr: 0,
        tag: TAG,
        ignore: 0,
        context: at,
        data: DATA,
    };
    let MsgTagged { msg_iov, desc, iov_count, addr, context, data, .. } = msg_tagged;
    let msg = Msg { msg_iov, desc, iov_count, addr, context, data };
    let flags = REMOTE_CQ_DATA | COMPLETION;
    let status = until_taken(ends, || match (how, tagged) {
        ("send", false) => call!(ep, msg.send(start, len, none, 0, at)),
        ("sendv", false) => call!(ep, msg.sendv(pieces, null_mut(), 3, 0, at)),
        ("sendmsg", false) => call!(ep, msg.sendmsg(&msg, flags)),
        ("inject", false) => call!(ep, msg.inject(start, len, 0)),
        ("senddata", false) => call!(ep, msg.senddata(start, len, none, DATA, 0, at)),
        ("injectdata", false) => call!(ep, msg.injectdata(start, len, DATA, 0)),
        ("send", true) => call!(ep, tagged.send(start, len, none, 0, TAG, at)),
        ("sendv", true) => call!(ep, tagged.sendv(pieces, null_mut(), 3, 0, TAG, at)),
        ("sendmsg", true) => call!(ep, tagged.sendmsg(&msg_tagged, flags)),
        ("inject", true) => call!(ep, tagged.inject(start, len, 0, TAG)),
        ("senddata", true) => call!(ep, tagged.senddata(start, len, none, DATA, 0, TAG, at)),
        ("injectdata", true) => call!(ep, tagged.injectdata(start, len, DATA, 0, TAG)),
        _ => unreachable!("{how}"),
    });
    assert_eq!(status, 0, "{how} of {len} bytes");
}

fn receive(end: &End, how: &str, tagged: bool, bytes: &mut [u8], context: usize) {
    let (ep, len, iov) = (end.ep, bytes.len(), iov(bytes));
    let (start, pieces, none) = (bytes.as_mut_ptr().cast::<c_void>(), iov.as_ptr(), null_mut());
    let at = context as *mut c_void;
    let (tag, ignore) = (TAG | 0xff00, 0xff00);
    let msg_tagged = MsgTagged {
        msg_iov: pieces,
        desc: null_mut(),
        iov_count: 3,
        addr: 0,
        tag,
        ignore,
        context: at,
        data: 0,
    };
    let MsgTagged { msg_iov, desc, iov_count, addr, context, data, .. } = msg_tagged;
    let msg = Msg { msg_iov, desc, iov_count, addr, context, data };
    let status = match (how, tagged) {
        ("recv", false) => call!(ep, msg.recv(start, len, none, ADDR_UNSPEC, at)),
        ("recvv", false) => call!(ep, msg.recvv(pieces, null_mut(), 3, 0, at)),
        ("recvmsg", false) => call!(ep, msg.recvmsg(&msg, COMPLETION)),
        ("recv", true) => call!(ep, tagged.recv(start, len, none, ADDR_UNSPEC, tag, ignore, at)),
        ("recvv", true) => call!(ep, tagged.recvv(pieces, null_mut(), 3, 0, tag, ignore, at)),
        ("recvmsg", true) => call!(ep, tagged.recvmsg(&msg_tagged, COMPLETION)),
        _ => unreachable!("{how}"),
    };
    assert_eq!(status, 0, "{how} of {len} bytes");
}

/// One message, posted before its receive or after it.
fn one(ends: &[End; 2], (how, tagged): ((&str, bool, bool), bool), recv: &str, len: usize) {
    let (how, has_data, is_told) = how;
    let kind = if tagged { TAGGED } else { MSG };
    let (mut from, mut into) = (pattern(len, 3), vec![0; len]);
    let is_first = len.is_multiple_of(2);
    if is_first {
        receive(&ends[1], recv, tagged, &mut into, 0x77);
    }
    send(ends, how, tagged, &mut from, 0x55);
    if !is_told {
        // Injected: the memory is ours again.
        from.fill(0xee);
    }
    if !is_first {
        receive(&ends[1], recv, tagged, &mut into, 0x77);
    }
    let (told, source) = next(&ends[1], ends);
    let data = if has_data { (REMOTE_CQ_DATA, DATA) } else { (0, 0) };
    assert_eq!((told.flags, told.data), (kind | RECV | data.0, data.1), "{how} {recv} {len}");
    assert_eq!((told.op_context as usize, told.len, source), (0x77, len, 0));
    assert_eq!(told.tag, if tagged { TAG } else { 0 });
    assert!(into == pattern(len, 3), "{how} {recv} of {len} bytes");
    if is_told {
        let (told, _) = next(&ends[0], ends);
        assert_eq!((told.op_context as usize, told.flags), (0x55, kind | SEND));
    }
    assert!(ends[0].read().is_err() && ends[1].read().is_err(), "nothing else is told");
}

#[test]
fn every_call_moves_every_length() {
    for threading in [THREAD_SAFE, THREAD_DOMAIN] {
        let wishes = Wishes { threading, ..Wishes::default() };
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        for (how, tagged) in SENDS.iter().flat_map(|how| [(*how, false), (*how, true)]) {
            for recv in ["recv", "recvv", "recvmsg"] {
                let sizes = SIZES.iter().filter(|len| how.2 || **len <= 4096);
                sizes.for_each(|len| one(&ends, (how, tagged), recv, *len));
            }
        }
        ends.into_iter().for_each(End::close);
    }
}

#[test]
fn an_endpoint_injects_to_itself() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let end = &ends[0];
    for len in [8, 513, 4096] {
        let (mut from, mut into) = (pattern(len, 1), vec![0; len]);
        let start = from.as_ptr().cast::<c_void>();
        assert_eq!(until_taken(&ends, || call!(end.ep, tagged.inject(start, len, 1, TAG))), 0);
        from.fill(0);
        receive(end, "recv", true, &mut into, 1);
        assert_eq!(next(end, &ends).1, 1);
        assert!(into == pattern(len, 1), "{len} bytes");
    }
    ends.into_iter().for_each(End::close);
}

fn search(end: &End, flags: u64, into: &mut [u8], context: usize) -> isize {
    let iov = Iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let msg = MsgTagged {
        msg_iov: &iov,
        desc: null_mut(),
        iov_count: 1,
        addr: ADDR_UNSPEC,
        tag: TAG,
        ignore: 0,
        context: context as *mut c_void,
        data: 0,
    };
    call!(end.ep, tagged.recvmsg(&msg, flags))
}

#[test]
fn messages_are_found_claimed_and_thrown_away() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    assert_eq!(search(&ends[1], PEEK, &mut [], 4), 0);
    let failure = next_failure(&ends[1], &ends);
    assert_eq!((failure.err, failure.op_context as usize), (errno::ENOMSG, 4));
    assert_eq!(search(&ends[1], CLAIM, &mut [], 4), -(errno::ENOMSG as isize));
    for len in [8, 3000, 60_000] {
        let mut all = [1, 2, 3, 4].map(|seed| pattern(len, seed));
        for bytes in &mut all {
            send(&ends, "senddata", true, bytes, 1);
        }
        let found = |flags, context| {
            loop {
                assert_eq!(search(&ends[1], flags, &mut [], context), 0);
                match ends[1].read() {
                    Ok((told, source)) => {
                        assert_eq!((told.len, told.tag, told.data, source), (len, TAG, DATA, 0));
                        assert_eq!(told.op_context as usize, context);
                        return;
                    }
                    Err(_) => assert_eq!(ends[1].failure().err, errno::ENOMSG),
                }
                give_time(&ends[0]);
            }
        };
        found(PEEK, 10);
        found(PEEK | CLAIM, 11);
        found(PEEK | CLAIM, 12);
        found(PEEK | DISCARD, 13);
        let mut fourth = vec![0; len];
        receive(&ends[1], "recv", true, &mut fourth, 14);
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 14);
        assert!(fourth == all[3], "the others are set aside or gone");
        let mut first = vec![0; len];
        assert_eq!(search(&ends[1], CLAIM, &mut first, 11), 0);
        assert_eq!(next(&ends[1], &ends).0.len, len);
        assert!(first == all[0]);
        assert_eq!(search(&ends[1], CLAIM | DISCARD, &mut [], 12), 0);
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 12);
        (0..4).for_each(|_| assert_eq!(next(&ends[0], &ends).0.flags, TAGGED | SEND));
    }
    ends.into_iter().for_each(End::close);
}

#[test]
fn a_receive_of_many_messages_is_released_when_it_is_full() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let least = 300usize;
    // SAFETY: the value is as long as is said.
    let status = unsafe {
        let setopt = (*(*ends[1].ep).ops).setopt.unwrap();
        setopt(fid(ends[1].ep), OPT_ENDPOINT, OPT_MIN_MULTI_RECV, (&raw const least).cast(), 8)
    };
    assert_eq!(status, 0);
    let mut into = vec![0u8; 1000];
    let iov = Iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let msg = Msg {
        msg_iov: &iov,
        desc: null_mut(),
        iov_count: 1,
        addr: ADDR_UNSPEC,
        context: 9 as *mut c_void,
        data: 0,
    };
    assert_eq!(call!(ends[1].ep, msg.recvmsg(&msg, MULTI_RECV | COMPLETION)), 0);
    let mut all: Vec<_> = (0..4).map(|seed| pattern(200, seed)).collect();
    for (at, bytes) in all.iter_mut().enumerate() {
        send(&ends, "send", false, bytes, 1);
        let (told, _) = next(&ends[1], &ends);
        let over = if at == 3 { MULTI_RECV } else { 0 };
        assert_eq!((told.flags, told.len), (MSG | RECV | over, 200));
        assert_eq!(told.buf as usize, into.as_ptr() as usize + at * 200);
    }
    assert!(into[..800] == all.concat());
    ends.into_iter().for_each(End::close);
}

#[test]
fn a_message_longer_than_its_buffer_is_truncated_with_an_error() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    for len in [100, 5000, 50_000] {
        let (mut from, mut into) = (pattern(len, 3), vec![0; 64]);
        receive(&ends[1], "recv", true, &mut into, 2);
        send(&ends, "send", true, &mut from, 1);
        let failure = next_failure(&ends[1], &ends);
        assert_eq!((failure.err, failure.len, failure.olen), (errno::ETRUNC, 64, len - 64));
        assert_eq!((failure.op_context as usize, failure.tag), (2, TAG));
        assert_eq!(into, from[..64]);
        assert_eq!(next(&ends[0], &ends).0.flags, TAGGED | SEND);
    }
    ends.into_iter().for_each(End::close);
}

#[test]
fn a_receive_can_be_taken_back() {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let (mut first, mut second) = (vec![0; 8], vec![0; 8]);
    receive(&ends[1], "recv", true, &mut first, 2);
    receive(&ends[1], "recv", true, &mut second, 3);
    let cancel = |context: usize| {
        // SAFETY: the endpoint is open.
        unsafe { (*(*ends[1].ep).ops).cancel.unwrap()(fid(ends[1].ep), context as *mut c_void) }
    };
    assert_eq!((cancel(2), cancel(2)), (0, -(errno::ENOENT as isize)));
    let failure = next_failure(&ends[1], &ends);
    assert_eq!((failure.err, failure.op_context as usize), (errno::ECANCELED, 2));
    send(&ends, "send", true, &mut pattern(8, 1), 1);
    assert_eq!(next(&ends[1], &ends).0.op_context as usize, 3);
    ends.into_iter().for_each(End::close);
}
