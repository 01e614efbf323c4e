//! A rank that is killed at whatever instruction it is: the others are told, go on, and nothing of
//! it stays.

mod common;

#[allow(dead_code, reason = "the engine's tests use more")]
#[allow(unreachable_pub, reason = "a test binary exports nothing")]
#[path = "common/processes.rs"]
mod processes;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use processes::{Line, Process, with_processes};
use std::ffi::c_void;
use std::fs;
use std::ptr::{null, null_mut};

/// Of the three ranks, the one that is killed.
const VICTIM: u64 = 2;

/// A command of the test to its ranks.
const GO_ON: u64 = 1;

fn send(end: &End, bytes: &[u8], to: u64, context: usize) {
    let (start, len, at) = (bytes.as_ptr().cast(), bytes.len(), context as *mut c_void);
    let all = std::slice::from_ref(end);
    let sent = until_taken(all, || call!(end.ep, tagged.send(start, len, null_mut(), to, 7, at)));
    assert_eq!(sent, 0);
}

fn receive(end: &End, into: &mut [u8], from: u64, context: usize) {
    let (start, len, at) = (into.as_mut_ptr().cast(), into.len(), context as *mut c_void);
    assert_eq!(call!(end.ep, tagged.recv(start, len, null_mut(), from, 7, 0, at)), 0);
}

/// Tells the test its name, and hears those of all ranks.
fn meet(end: &End, line: &Line) {
    name(end.ep).as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
    let names = [0; 3].map(|_: u64| {
        let mut name = [0; 64];
        for word in name.as_chunks_mut().0 {
            *word = line.hear().to_le_bytes();
        }
        name
    });
    end.insert(&names);
}

/// A message to another rank, and one from it.
fn exchange(end: &End, other: u64) {
    let mut into = [0; 8];
    receive(end, &mut into, other, 1);
    send(end, &other.to_le_bytes(), other, 2);
    let mut told = [0, 1].map(|_| next(end, &[]).0.op_context as usize);
    told.sort_unstable();
    assert_eq!(told, [1, 2]);
}

/// The next failure, for which rank 0 looks all the time, and rank 1 sleeps.
fn wait_for_failure(end: &End, rank: u64) -> CqErrEntry {
    if rank == 0 {
        return next_failure(end, &[]);
    }
    let mut told: Told = blank();
    let status = call!(end.cq, ops.sread((&raw mut told).cast(), 1, null(), -1));
    assert_eq!(status, -(errno::EAVAIL as isize));
    end.failure()
}

fn rank(number: u64, line: &Line) {
    let wishes = Wishes { wait_obj: WAIT_FD, ..Wishes::default() };
    let opened = wishes.opened();
    let end = End::new(&opened, &wishes);
    meet(&end, line);
    (0..3).filter(|other| *other != number).for_each(|other| exchange(&end, other));
    line.say(GO_ON);
    if number == VICTIM {
        loop {
            give_time(&end);
        }
    }
    // A message that the victim never receives, and one that it never sends.
    let (long, mut into) = (vec![1; 1 << 20], [0; 8]);
    send(&end, &long, VICTIM, 3);
    receive(&end, &mut into, VICTIM, 4);
    line.say(GO_ON);
    let mut failed = [0, 1].map(|_| wait_for_failure(&end, number));
    failed.sort_by_key(|failure| failure.op_context as usize);
    let told = failed.map(|failure| (failure.op_context as usize, failure.err));
    assert_eq!(told, [(3, errno::ENOTCONN), (4, errno::ENOTCONN)]);
    exchange(&end, 1 - number);
    line.say(GO_ON);
    assert_eq!(line.hear(), GO_ON);
    end.close();
}

/// Hears the names of all ranks, and tells them to each.
fn introduce(ranks: &[Process]) -> Vec<[u64; 8]> {
    let names: Vec<_> = ranks.iter().map(|rank| [0; 8].map(|_: u64| rank.line.hear())).collect();
    for rank in ranks {
        names.iter().flatten().for_each(|word| rank.line.say(*word));
    }
    names
}

/// Whether there is a socket at which this rank is called.
fn has_socket(name: &[u64; 8]) -> bool {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    sockets.contains(&format!("@ayre-{:016x}{:016x}", name[2], name[3]))
}

/// Whether there is a file by name that a rank may have made. `ayre run` makes a directory beside
/// this test, which does not count.
fn has_file() -> bool {
    let entries = fs::read_dir("/dev/shm").unwrap().flatten();
    let mut files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.any(|file| file.file_name().to_string_lossy().contains("ayre"))
}

#[test]
fn a_killed_rank_ends_operations_of_others_and_leaves_no_files() {
    with_processes(
        |number, line| rank(number, &line),
        |family| {
            // Names of endpoints that other hosts reach tell nobody that of their sockets.
            let here = || family.start_with(|command| _ = command.env("FI_AYRE_NET", "none"));
            let mut ranks = [0; 3].map(|_| here());
            let names = introduce(&ranks);
            // All know each other; the victim's friends wait for it.
            for rank in ranks.iter().chain(&ranks[..2]) {
                assert_eq!(rank.line.hear(), GO_ON);
            }
            assert!(names.iter().all(has_socket));
            ranks[VICTIM as usize].kill();
            for rank in &ranks[..2] {
                assert_eq!(rank.line.hear(), GO_ON, "it was told, and goes on");
            }
            assert!(!has_socket(&names[VICTIM as usize]));
            for rank in &mut ranks[..2] {
                rank.line.say(GO_ON);
                rank.succeeds();
            }
            assert!(!names.iter().any(has_socket));
            assert!(!has_file());
        },
    );
}
