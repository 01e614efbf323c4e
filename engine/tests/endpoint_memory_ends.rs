//! How writes, reads and updates end where something comes between: a window that is withdrawn, a
//! death.
#[path = "endpoint_memory/sides.rs"]
mod sides;

use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    CompletionKind, MemoryRegion, MemoryRegions, RawEndpoint, RemoteAddress, RmaUpdate, RmaWrite,
    Sent, Spans,
};
use ayre::{Fault, Rights, Spin};
use sides::{Sides, span, whole};
use std::sync::atomic::{AtomicBool, Ordering};

const KEY: u64 = 9;
const LEN: usize = 4 << 20;

fn open(windows: &MemoryRegions, memory: &mut [u8]) {
    let memory = vec![whole(memory)];
    windows
        .expose(MemoryRegion { key: KEY, base: 0, memory, rights: Rights::all() })
        .expect("room");
}

fn write_of(bytes: &mut [u8]) -> RmaWrite {
    RmaWrite { bytes: span(bytes), data: Some(1), context: 5, inject: false }
}

fn sum_of(bytes: &mut [u8], result: Option<Spans>) -> RmaUpdate {
    let operand = span(bytes);
    let (op, number, compare) = (Combine::Sum, Number::U8, Spans::default());
    RmaUpdate { op, number, operand, compare, result, data: None, context: 7 }
}

// spec: ENV-22, ENV-26, ENV-31
#[test]
fn a_write_under_way_stops_at_the_fence() {
    for to_itself in [false, true] {
        let mut sides = Sides::new(to_itself);
        let (mut memory, mut bytes) = (vec![0; LEN], vec![1; LEN]);
        open(&sides.windows, &mut memory);
        let sent = sides.near.write(sides.spot(KEY, 0), &write_of(&mut bytes));
        assert_eq!(sent, Ok(Sent::Pending));
        (0..4).for_each(|_| sides.progress());
        assert!(sides.windows.withdraw(KEY));
        let placed = memory.iter().filter(|byte| **byte == 1).count();
        assert!(0 < placed && placed < LEN, "it is under way: {placed}");
        memory.fill(7);
        assert_eq!(sides.end(), (5, CompletionKind::Written, Err(Fault::UnknownKey)));
        assert!(memory.iter().all(|byte| *byte == 7), "nothing comes behind the fence");
        // One of the same key does not make the rest of another write right.
        open(&sides.windows, &mut memory);
        let sent = sides.near.write(sides.spot(KEY, 0), &write_of(&mut bytes));
        assert_eq!(sent, Ok(Sent::Pending));
        (0..4).for_each(|_| sides.progress());
        assert!(sides.windows.withdraw(KEY));
        (0..4).for_each(|_| sides.progress());
        memory.fill(7);
        open(&sides.windows, &mut memory);
        assert_eq!(sides.end(), (5, CompletionKind::Written, Err(Fault::UnknownKey)));
        sides.windows.withdraw(KEY);
        assert!(memory.iter().all(|byte| *byte == 7), "what was refused stays refused");
        sides.check_lives();
        sides.check_nothing_told();
    }
}

// spec: ENV-22, ENV-27
#[test]
fn a_read_under_way_stops_at_the_fence() {
    for to_itself in [false, true] {
        let mut sides = Sides::new(to_itself);
        let (mut memory, mut bytes) = (vec![1; LEN], vec![0; LEN]);
        open(&sides.windows, &mut memory);
        sides.read(sides.spot(KEY, 0), span(&mut bytes));
        (0..4).for_each(|_| sides.progress());
        assert!(sides.windows.withdraw(KEY));
        memory.fill(7);
        assert_eq!(sides.end(), (6, CompletionKind::Read, Err(Fault::UnknownKey)));
        let read = bytes.iter().filter(|byte| **byte == 1).count();
        assert!(0 < read && read < LEN, "it was under way: {read}");
        assert!(bytes.iter().all(|byte| *byte < 7), "nothing is read behind the fence");
        // The next one has a name of its own.
        open(&sides.windows, &mut memory);
        sides.read(sides.spot(KEY, 0), span(&mut bytes));
        assert_eq!(sides.end(), (6, CompletionKind::Read, Ok(())));
        assert!(bytes == memory);
        sides.windows.withdraw(KEY);
    }
}

// spec: ENV-22
#[test]
fn a_memory_region_can_be_withdrawn_from_another_thread() {
    let is_over = AtomicBool::new(false);
    for round in 0..20 {
        let windows = MemoryRegions::new();
        let (mut memory, mut bytes) = (vec![0; LEN], vec![1; LEN]);
        let mut into = vec![0; LEN];
        open(&windows, &mut memory);
        let mut far = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
        far.share(&windows);
        let address = far.address();
        is_over.store(false, Ordering::Release);
        std::thread::scope(|scope| {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    far.progress(|_| ());
                }
            });
            let mut near = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
            let spot = RemoteAddress {
                remote: near.remote(&address).expect("a neighbour"),
                key: KEY,
                address: 0,
            };
            let mut ends = Vec::new();
            let write = write_of(&mut bytes);
            while near.write(spot, &write).is_err() {
                near.progress(|end| ends.push(end));
            }
            while near.read(spot, span(&mut into), 6).is_err() && round % 2 == 1 {
                near.progress(|end| ends.push(end));
            }
            for _ in 0..round {
                near.progress(|end| ends.push(end));
            }
            assert!(windows.withdraw(KEY));
            memory.fill(7);
            let due = 1 + usize::from(round % 2 == 1);
            while ends.len() < due {
                near.progress(|end| ends.push(end));
            }
            is_over.store(true, Ordering::Release);
        });
        assert!(memory.iter().all(|byte| *byte == 7), "nothing is written behind the fence");
        assert!(into.iter().all(|byte| *byte < 7), "nothing is read behind the fence");
    }
}

/// Posts one of each kind; returns how many.
fn post_each(sides: &mut Sides, rooms: &mut [Vec<u8>; 5], long_write: bool) -> usize {
    let spot = sides.spot(KEY, 0);
    let [long, short, into, few, old] = rooms;
    assert_eq!(sides.near.read(spot, span(into), 6), Ok(()));
    assert_eq!(sides.near.read(spot, span(few), 6), Ok(()));
    assert_eq!(sides.near.update(spot, &sum_of(short, None)), Ok(()));
    assert_eq!(sides.near.update(spot, &sum_of(short, Some(span(old)))), Ok(()));
    assert_eq!(sides.near.write(spot, &write_of(short)), Ok(Sent::Completed));
    if long_write {
        assert_eq!(sides.near.write(spot, &write_of(long)), Ok(Sent::Pending));
    }
    5 + usize::from(long_write)
}

fn rooms() -> [Vec<u8>; 5] {
    [LEN, 8, LEN, 40, 8].map(|len| vec![1; len])
}

// spec: ENV-8, ENV-16
#[test]
fn everything_ends_with_its_target() {
    for polls in [0, 1, 2, 5] {
        for is_forgotten in [false, true] {
            let mut sides = Sides::new(false);
            let (mut memory, mut rooms) = (vec![0; LEN], rooms());
            open(&sides.windows, &mut memory);
            let count = post_each(&mut sides, &mut rooms, polls != 1);
            (0..polls).for_each(|_| sides.progress());
            let spot = sides.spot(KEY, 0);
            if is_forgotten {
                assert!(sides.near.forget(spot.remote));
            } else {
                sides.replace_far();
            }
            let mut faults = 0;
            for _ in 0..count {
                match sides.end().2 {
                    Ok(()) => {}
                    Err(why) => {
                        assert_eq!(why, Fault::PeerDead);
                        faults += 1;
                    }
                }
            }
            let all = if polls == 0 { count } else { 1 };
            assert!(faults >= all, "{faults} of {count}");
            assert!(sides.near.read(spot, span(&mut rooms[3]), 6).is_err(), "nobody is there");
            (0..100).for_each(|_| sides.progress());
            assert!(sides.has_no_ends(), "each ends once");
        }
    }
}

// spec: ENV-8
#[test]
fn a_death_does_not_disturb_other_peers() {
    let mut sides = Sides::new(false);
    let (mut memory, mut rooms) = (vec![0; LEN], rooms());
    open(&sides.windows, &mut memory);
    for polls in [0_u8, 1, 2, 5] {
        let mut other = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
        let remote = other.remote(&sides.far.address()).expect("a neighbour");
        let spot = RemoteAddress { remote, key: KEY, address: 0 };
        sides.until(|_| {
            other.progress(|_| ());
            other.read(spot, span(&mut rooms[2]), 6).is_ok()
        });
        let sent = other.write(spot, &write_of(&mut rooms[0]));
        assert_eq!(sent, Ok(Sent::Pending));
        for _ in 0..polls {
            other.progress(|_| ());
            sides.progress();
        }
        drop(other);
        // Whoever stays is served, and sees what it writes itself.
        let (mut from, mut into) = ([polls; 600], [0; 600]);
        let spot = sides.spot(KEY, 0);
        sides.far.wake();
        sides.write(spot, &write_of(&mut from));
        assert_eq!(sides.end(), (5, CompletionKind::Written, Ok(())));
        sides.read(spot, span(&mut into));
        assert_eq!(sides.end(), (6, CompletionKind::Read, Ok(())));
        assert!(into == from);
    }
    sides.windows.withdraw(KEY);
    assert_eq!(sides.far.counters().malformed(), 0);
}
