//! Calls of libfabric that are made most, a case each, for counting their instructions: the program
//! `cargo xtask instructions` runs with few and with many operations.

#[path = "../tests/common/mod.rs"]
mod common;

use ayre_fi::abi::*;
use common::ends::{End, Wishes, give_time, until_taken};
use common::{Opened, call};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Messages that are on their way at a time.
const WINDOW: usize = 64;

/// Two endpoints that know each other, and have talked.
fn ends(opened: &Opened, wishes: &Wishes) -> [End; 2] {
    let ends = End::pair(opened, wishes);
    send(&ends, &[0]);
    receive(&ends, &mut [0]);
    take(&ends);
    ends
}

fn send([near, far]: &[End; 2], bytes: &[u8]) {
    let start = bytes.as_ptr().cast();
    let sent = || call!(near.ep, tagged.inject(start, bytes.len(), 0, 7));
    if sent() != 0 {
        // The first one has to be heard.
        let again = || {
            give_time(far);
            sent()
        };
        assert_eq!(until_taken(std::slice::from_ref(near), again), 0);
    }
}

fn receive([_, far]: &[End; 2], into: &mut [u8]) {
    let (start, len) = (into.as_mut_ptr().cast(), into.len());
    let posted = call!(far.ep, tagged.recv(start, len, null_mut(), 0, 7, 0, null_mut()));
    assert_eq!(posted, 0);
}

/// Reads the completion of a receive.
fn take([_, far]: &[End; 2]) {
    let mut entry = [0_u64; 8];
    let mut read = || call!(far.cq, ops.read(entry.as_mut_ptr().cast::<c_void>(), 1));
    while read() != 1 {}
}

/// A window of receives, their messages, and the completions, as many in a read as there are.
fn window(ends: &[End; 2], bytes: &[u8], into: &mut [u8]) {
    (0..WINDOW).for_each(|_| receive(ends, into));
    (0..WINDOW).for_each(|_| send(ends, bytes));
    let mut entries = [[0_u64; 8]; WINDOW];
    let mut left = WINDOW;
    while left > 0 {
        let read = call!(ends[1].cq, ops.read(entries.as_mut_ptr().cast::<c_void>(), left));
        left -= usize::try_from(read).unwrap_or(0);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().expect("CASE COUNT");
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("CASE COUNT");
    // As most programs do, it keeps its threads apart.
    let wishes = Wishes { threading: THREAD_DOMAIN, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = ends(&opened, &wishes);
    let (bytes, mut into) = ([1; 8], [0; 8]);
    match case.as_str() {
        "tagged-8-calls" => (0..count).for_each(|_| {
            receive(&ends, &mut into);
            send(&ends, &bytes);
            take(&ends);
        }),
        "tagged-8-windows" => {
            (0..count / WINDOW as u64).for_each(|_| window(&ends, &bytes, &mut into));
        }
        "empty-read" => (0..count).for_each(|_| give_time(&ends[1])),
        other => panic!("no case {other}"),
    }
    ends.into_iter().for_each(End::close);
}
