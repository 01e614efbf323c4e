//! Fenced operations: they begin when all has ended that went to the same peer before.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ptr::null_mut;

const KEY: u64 = 0xfe;

/// So long that what is read is not prompt.
const LEN: usize = 300_001;

const CALLS: [&str; 7] = ["send", "tsend", "write", "read", "change", "fetch", "compare"];

/// A fenced call, whose context is 2.
fn fenced(ep: *mut FidEp, how: &str, word: &mut [u64; 1], to: u64) -> isize {
    let (flags, context, none) = (FENCE | COMPLETION, 2 as *mut _, null_mut());
    let place = word.as_mut_ptr().cast();
    let iov = Iovec { iov_base: place, iov_len: 8 };
    let (msg_iov, desc, iov_count, addr, data) = (&raw const iov, none, 1, to, 0);
    let msg = Msg { msg_iov, desc, iov_count, addr, context, data };
    let (tag, ignore) = (1, 0);
    let tagged = MsgTagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data };
    let (rma_iov, rma_iov_count) = (&RmaIov { addr: 0, len: 8, key: KEY }, 1);
    let rma = MsgRma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data };
    let mut ioc = Ioc { addr: place, count: 1 };
    let (msg_iov, rma_iov) = (&raw const ioc, &RmaIoc { addr: 0, count: 1, key: KEY });
    let (datatype, op) = (UINT64, ATOMIC_WRITE);
    let op = if how == "compare" { CSWAP } else { op };
    let atomic = MsgAtomic {
        msg_iov,
        desc,
        iov_count,
        addr,
        rma_iov,
        rma_iov_count,
        datatype,
        op,
        context,
        data,
    };
    let result = &raw mut ioc;
    match how {
        "send" => call!(ep, msg.sendmsg(&msg, flags)),
        "tsend" => call!(ep, tagged.sendmsg(&tagged, flags)),
        "write" => call!(ep, rma.writemsg(&rma, flags)),
        "read" => call!(ep, rma.readmsg(&rma, flags)),
        "change" => call!(ep, atomic.writemsg(&atomic, flags)),
        "fetch" => call!(ep, atomic.readwritemsg(&atomic, result, none, 1, flags)),
        "compare" => {
            let compare = result.cast_const();
            call!(ep, atomic.compwritemsg(&atomic, compare, none, 1, result, none, 1, flags))
        }
        _ => unreachable!("{how}"),
    }
}

/// Sends a message, whose context is 4, that ends when it was received.
fn deliver(ep: *mut FidEp, word: &mut [u64; 1], addr: u64) -> isize {
    let iov = Iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 8 };
    let (msg_iov, desc, iov_count) = (&raw const iov, null_mut(), 1);
    let (tag, ignore, context, data) = (9, 0, 4 as *mut _, 0);
    let message = MsgTagged { msg_iov, desc, iov_count, addr, tag, ignore, context, data };
    call!(ep, tagged.sendmsg(&message, DELIVERY_COMPLETE | COMPLETION))
}

fn contexts(end: &End, all: &[End], count: usize) -> Vec<usize> {
    (0..count).map(|_| next(end, all).0.op_context as usize).collect()
}

#[test]
fn fence_is_offered_as_a_transmit_capability() {
    let mut infos = Infos::hints_with(|info| info.caps = MSG | FENCE).get().unwrap();
    assert_eq!(infos.info().caps & FENCE, FENCE);
    // SAFETY: an info comes with its attributes.
    let (tx, rx) = unsafe { ((*infos.info().tx_attr).caps, (*infos.info().rx_attr).caps) };
    assert_eq!((tx & FENCE, rx & FENCE), (FENCE, 0));
    assert_eq!(infos.ep().r#type, EP_RDM);
}

#[test]
fn a_fenced_call_waits_for_earlier_operations_to_the_same_peer() {
    let mut wishes = Wishes::remote();
    wishes.caps |= FENCE;
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let mut memory = vec![0xee; LEN];
    let mr = register(&opened, &memory, REMOTE_READ | REMOTE_WRITE, KEY).unwrap();
    let (ep, there, own) = (ends[0].ep, 0, 1);
    for how in CALLS {
        memory[..8].fill(0xee);
        let (mut into, mut word) = (vec![0u8; LEN], [0xeeee_eeee_eeee_eeee_u64]);
        let start = into.as_mut_ptr().cast();
        let mut read = || call!(ep, rma.read(start, LEN, null_mut(), there, 0, KEY, 3 as *mut _));
        assert_eq!(until_taken(&ends, &mut read), 0);
        let mut message = [4];
        assert_eq!(until_taken(&ends, || deliver(ep, &mut message, there)), 0);
        // Nobody receives the message.
        for _ in 0..100 {
            assert_eq!(fenced(ep, how, &mut word, there), -(errno::EAGAIN as isize), "{how}");
        }
        // With others it has nothing to do; what it writes there is what is there already.
        assert_eq!(until_taken(&ends[..1], || fenced(ep, how, &mut word, own)), 0, "{how}");
        // A thread of the peer may have served the read by now.
        let mut ended = contexts(&ends[0], &ends[..1], 1);
        if ended == [3] {
            ended.extend(contexts(&ends[0], &ends[..1], 1));
        }
        assert_eq!(ended.last(), Some(&2), "{how}");
        word = [0x1122_3344_5566_7788];
        let (mut taken, none) = ([0_u64], null_mut());
        let place = taken.as_mut_ptr().cast();
        let received = call!(ends[1].ep, tagged.recv(place, 8, none, 0, 9, 0, 5 as *mut _));
        assert_eq!(received, 0);
        assert_eq!(until_taken(&ends, || fenced(ep, how, &mut word, there)), 0, "{how}");
        ended.extend(contexts(&ends[0], &ends, 4 - ended.len()));
        assert_eq!(ended.pop(), Some(2), "{how}");
        ended.sort_unstable();
        assert_eq!(ended, [2, 3, 4], "{how}");
        assert_eq!(next(&ends[1], &ends).0.op_context as usize, 5, "{how}");
        if ["write", "change", "fetch"].contains(&how) {
            let read = std::hint::black_box(&into);
            assert!(read.iter().all(|byte| *byte == 0xee), "{how}: it was read before");
        }
    }
    assert_eq!(close(mr), 0);
    ends.into_iter().for_each(End::close);
}
