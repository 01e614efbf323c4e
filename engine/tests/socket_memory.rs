//! The memory of rings: how many are large at a time, what goes back to the system, and how much a
//! ring has as it begins.
#[path = "socket/world.rs"]
mod world;

use ayre::socket::{RING, Ready};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use world::{End, bytes, check, connect, is_readable, pair};

/// Bytes of a small ring, and the number of large ones.
const SMALL: u64 = 28 << 10;
const LARGE: usize = 64;

/// One test at a time: the large rings are the process's.
static ONE: Mutex<()> = Mutex::new(());

/// Writes until the ring is full. Returns the next position.
fn fill(end: &End, mut at: u64) -> u64 {
    loop {
        match end.write(&bytes(at, 10_000)) {
            Ok(len) => at += len as u64,
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                return at;
            }
        }
    }
}

/// Reads some bytes.
fn read(end: &End, at: u64, len: u64) -> u64 {
    let mut into = vec![0; len as usize];
    let got = end.read(&mut into, RecvFlags::empty()).unwrap();
    check(at, &into[..got]);
    at + got as u64
}

fn drain(end: &End, mut at: u64, to: u64) {
    while at < to {
        at = read(end, at, 10_000);
    }
}

/// Bytes that the memory files of this process have.
fn allocated() -> u64 {
    let of = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let is_memory = target.to_string_lossy().starts_with("/memfd:");
        let file = std::fs::metadata(entry.path()).ok().filter(|_| is_memory)?;
        Some((file.ino(), file.blocks() * 512))
    };
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(of);
    files.collect::<std::collections::BTreeMap<_, _>>().values().sum()
}

/// Connections whose readers look at the ring.
fn connections(count: usize) -> Vec<[End; 2]> {
    let pairs = pair();
    let all = (0..count).map(|_| {
        let ends = connect(&pairs);
        ends[1].connection.want_bytes(None);
        ends
    });
    all.collect()
}

// spec: SOCK-40, SOCK-41
#[test]
fn a_process_writes_at_most_64_large_rings() {
    let _one = ONE.lock();
    let all = connections(LARGE + 2);
    let before = allocated();
    let (busy, others) = all.split_at(LARGE);
    for [near, _] in busy {
        assert_eq!(fill(near, 0), RING);
    }
    let [near, far] = &others[0];
    assert_eq!(fill(near, 0), SMALL);
    assert_eq!(near.connection.writable(), Ready::No);
    let full = allocated();
    assert!(full - before >= LARGE as u64 * RING + SMALL, "{full} now, {before} before");

    // Its writer waits for the whole ring, and gets all bytes through.
    let (mut at, mut head) = (SMALL, read(far, 0, 10));
    for _ in 0..3 {
        near.connection.want_room(Some(&near.room));
        let middle = read(far, head, SMALL / 2);
        assert!(!is_readable(&near.room.fd()), "woken for half a ring");
        assert_eq!(near.write(b"more"), Err(Errno::AGAIN));
        drain(far, middle, at);
        assert!(is_readable(&near.room.fd()), "the writer sleeps for ever");
        near.room.hush();
        assert_eq!(near.connection.writable(), Ready::Yes);
        (head, at) = (at, fill(near, at));
    }
    assert_eq!(at, 4 * SMALL);

    // A large ring that is empty makes room for it, and its memory goes back.
    drain(&busy[7][1], 0, RING);
    drain(far, head, at);
    // Each try looks at some of them.
    let end = (0..LARGE / 8).fold(at, |at, _| fill(near, at));
    assert_eq!(end, at + RING);
    let exchanged = allocated();
    assert!(exchanged < full + RING / 2, "{exchanged} now, {full} before");
    let other = (0..LARGE / 8).fold(0, |at, _| fill(&others[1][0], at));
    assert_eq!(other, SMALL, "there are 64 again");

    // The small one works as before.
    let end = fill(&busy[7][0], RING);
    assert_eq!(end, RING + SMALL);
    drain(&busy[7][1], RING, end);
}

// spec: SOCK-41
#[test]
fn a_writer_whose_small_ring_is_just_full_may_have_a_large_one() {
    let _one = ONE.lock();
    let [near, far] = &connections(1)[0];
    assert_eq!(near.write(&bytes(0, SMALL as usize)), Ok(SMALL as usize));
    assert_eq!(near.connection.writable(), Ready::Yes);
    assert_eq!(near.write(&bytes(SMALL, 10)), Ok(10));
    drain(far, 0, SMALL + 10);
}

// spec: SOCK-42
#[test]
fn memory_of_closed_connections_goes_back() {
    let _one = ONE.lock();
    const FIRST: u64 = 64;
    const COUNT: usize = 100;
    // Which end closes first does not matter.
    for first in [0, 1] {
        let pairs = pair();
        let before = allocated();
        let all: Vec<[End; 2]> = (0..COUNT).map(|_| connect(&pairs)).collect();
        for ends in &all {
            for (writer, reader) in [(0, 1), (1, 0)] {
                ends[reader].connection.want_bytes(None);
                let len = fill(&ends[writer], 0);
                drain(&ends[reader], 0, len);
            }
        }
        let used = allocated() - before;
        assert!(used > COUNT as u64 * 2 * SMALL, "{used} bytes");
        for ends in &all {
            ends[first].close();
            ends[1 - first].close();
        }
        assert!(allocated() - before >= used, "a thread may use them still");
        drop(all);
        let kept = allocated() - before;
        // Slots, their ports and bells have pages of their own.
        assert!(kept <= FIRST * 2 * SMALL + (3 << 19), "{kept} bytes");
    }
}

#[test]
fn closed_connections_make_room_for_large_rings() {
    let _one = ONE.lock();
    for _ in 0..3 {
        let all = connections(LARGE);
        for [near, _] in &all {
            assert_eq!(fill(near, 0), RING);
            near.close();
        }
    }
}

// The kernel may have told that it has room.
// spec: SOCK-17
#[test]
fn a_ring_without_room_is_not_begun() {
    let [near, far] = connect(&pair());
    let mut written = 0;
    while written < 2 * RING {
        written += near.write(&bytes(written, 10_000)).expect("the kernel has room") as u64;
    }
    far.connection.want_bytes(None);
    assert_eq!(near.connection.writable(), Ready::AskKernel);
    written += near.write(&bytes(written, 10_000)).expect("the kernel has room still") as u64;
    assert_eq!(near.written_by_ring(), 0);
    let mut into = vec![0; 10_000];
    let mut read = 0;
    while read < written {
        let len = far.read(&mut into, RecvFlags::empty()).expect("TCP has brought them");
        check(read, &into[..len]);
        read += len as u64;
    }
    assert_eq!(near.connection.writable(), Ready::Yes);
    assert_eq!(near.write(&[1]), Ok(1));
    assert_eq!(near.written_by_ring(), 1);
}
