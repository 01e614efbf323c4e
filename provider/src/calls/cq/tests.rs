//! Completions and failures as programs read them, in every form and version.

use super::*;
use crate::calls::fid;
use crate::object::registry::tests::owner;
use crate::queue::cq::{QueuedCompletion, Terms};
use crate::sys::threads::Serial;
use ayre_guest::cell::Shared;
use ayre_guest::layout::version;
use std::ffi::CStr;
use std::sync::Arc;

/// A queue of a form, for a program of a version.
fn queue<L: Policy>(format: u32, api: u32) -> (Arc<CqObject<L>>, *mut FidCq, &'static OpsCq) {
    let ops = ops::<L>(format).unwrap();
    let head = FidCq { fid: fid::fid(CLASS_CQ, std::ptr::null_mut()), ops };
    let object =
        Object::new(head, Cq::new(owner(), Terms { size: 8, is_managed: true, api }, None));
    let handle = Object::handle(&object);
    (object, handle, ops)
}

fn completion(n: usize) -> QueuedCompletion {
    let [flags, data, tag, source] = [2, 5, 6, 7].map(|field| field + 10 * n as u64);
    QueuedCompletion {
        context: 10 * n + 1,
        flags,
        len: 10 * n + 3,
        buf: 10 * n + 4,
        data,
        tag,
        source,
    }
}

/// The first words of each of two completions, as a program finds them in its memory.
fn forms<L: Policy>() {
    let words = [1, 2, 3, 4, 5, 6];
    for (format, count) in
        [(CQ_FORMAT_CONTEXT, 1), (CQ_FORMAT_MSG, 3), (CQ_FORMAT_DATA, 5), (CQ_FORMAT_TAGGED, 6)]
    {
        let (cq, handle, ops) = queue::<L>(format, version(1, 17));
        (0..3).for_each(|n| _ = cq.write(completion(n)));
        let (mut room, mut peers) = ([99u64; 13], [99u64; 3]);
        let place = room.as_mut_ptr().cast();
        // SAFETY: the queue is open, with room for as many.
        unsafe {
            assert_eq!(ops.readfrom.unwrap()(handle, place, 2, peers.as_mut_ptr()), 2);
        }
        let wanted = words[..count].iter().copied();
        let wanted = wanted.clone().chain(wanted.map(|word| word + 10));
        assert!(room.iter().copied().take(2 * count).eq(wanted), "{room:?}");
        assert_eq!((room[2 * count], peers), (99, [7, 17, 99]));
        // SAFETY: as above.
        unsafe {
            assert_eq!(ops.read.unwrap()(handle, place, 2), 1);
            assert_eq!(ops.read.unwrap()(handle, place, 2), -(errno::EAGAIN as isize));
        }
        assert_eq!((room[0], room[count]), (21, 11));
    }
    assert!(ops::<L>(CQ_FORMAT_TAGGED + 1).is_none());
}

#[test]
fn completions_are_read_in_every_form_under_both_policies() {
    forms::<Shared>();
    forms::<Serial>();
}

fn failure(data: &[u8]) -> Failure {
    let completion = completion(0);
    Failure { completion, olen: 8, err: errno::ETRUNC, prov_errno: 9, data: data.to_vec() }
}

#[test]
fn failures_are_as_long_as_the_program_knows_them() {
    for (api, has_source) in
        [(version(1, 5), false), (version(1, 17), false), (version(1, 20), true)]
    {
        let (cq, handle, ops) = queue::<Shared>(CQ_FORMAT_CONTEXT, api);
        cq.write_failure(failure(&[]));
        // SAFETY: zeros are a value of it; the queue is open.
        let entry = unsafe {
            let mut entry: CqErrEntry = std::mem::zeroed();
            entry.src_addr = 99;
            let read = ops.read.unwrap()(handle, std::ptr::null_mut(), 0);
            assert_eq!(read, -(errno::EAVAIL as isize));
            assert_eq!(ops.readerr.unwrap()(handle, &mut entry, 0), 1);
            entry
        };
        assert_eq!((entry.op_context as usize, entry.flags, entry.len), (1, 2, 3));
        assert_eq!((entry.buf as usize, entry.data, entry.tag, entry.olen), (4, 5, 6, 8));
        assert_eq!((entry.err, entry.prov_errno), (errno::ETRUNC, 9));
        assert!(entry.err_data.is_null() && entry.err_data_size == 0);
        assert_eq!(entry.src_addr, if has_source { 7 } else { 99 });
    }
}

#[test]
fn data_of_failures_go_where_there_is_room_or_stay_with_the_queue() {
    for (api, room, copied) in
        [(version(1, 17), 3, true), (version(1, 17), 0, false), (version(1, 4), 3, false)]
    {
        let (cq, handle, ops) = queue::<Shared>(CQ_FORMAT_CONTEXT, api);
        cq.write_failure(failure(b"hello\0"));
        let mut place = *b"......";
        // SAFETY: zeros are a value of it; the queue is open, and keeps the data.
        unsafe {
            let mut entry: CqErrEntry = std::mem::zeroed();
            entry.err_data = place.as_mut_ptr().cast();
            entry.err_data_size = room;
            assert_eq!(ops.readerr.unwrap()(handle, &mut entry, 0), 1);
            if copied {
                assert_eq!((&place, entry.err_data_size), (b"hel...", 3));
            } else {
                assert_eq!((&place, entry.err_data_size), (b"......", 6));
                assert_eq!(CStr::from_ptr(entry.err_data.cast()), c"hello");
            }
        }
    }
}
