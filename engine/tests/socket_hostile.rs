//! A peer that writes anything into the memory of a pair, at any time. Both ends of the connection
//! there stay in their rings and return, and other pairs are not disturbed.
#[path = "socket/world.rs"]
mod world;

use ayre::socket::{Connection, RING};
use proptest::prelude::*;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use world::{End, byte, bytes, check, connect, pair, sockets};

/// The layout of the memory, as `engine/src/mem/socket.rs` has it.
const SLOTS: usize = 1 << 14;
const BELLS: usize = 1024;
const OWNERS: usize = 2048;
const USED: usize = OWNERS + 2 * BELLS * 4;
const RUNG: usize = USED + SLOTS / 8;
const RUNG_BYTES: usize = 128 + SLOTS / 8;
const FIRST_SLOT: usize = RUNG + 2 * BELLS * RUNG_BYTES + 4 * 65536;
const SLOT_BYTES: usize = 640;
/// All before the rings, and the rings of the first slots.
const BYTES: usize = FIRST_SLOT + SLOTS * SLOT_BYTES;
const RINGS_BYTES: usize = 64 * 2 * RING as usize;

/// The bytes beside a ring that are looked at.
const BESIDE: usize = 4096;

/// A part of the memory of a pair, as a hostile peer has it.
struct Memory {
    at: *mut u8,
    len: usize,
}

/// The starts of all such parts of this length in this process.
fn memories(len: usize) -> Vec<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let at = |digits| usize::from_str_radix(digits, 16).ok();
        (at(end)? - at(start)? == len && line.contains("memfd")).then_some(at(start)?)
    };
    maps.lines().filter_map(of).collect()
}

/// A part of this length that was not there before.
fn new_memory(len: usize, before: &[usize]) -> Memory {
    let new = memories(len).into_iter().find(|start| !before.contains(start));
    Memory { at: std::ptr::with_exposed_provenance_mut(new.expect("it is mapped")), len }
}

impl Memory {
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len);
        // SAFETY: the mapping has this length, and lives as long as the pair, which the test has.
        unsafe { &*self.at.add(offset).cast() }
    }

    /// Changes a word, or one half of it.
    fn poke(&self, offset: usize, part: Part, value: u64) {
        let (word, half) = (self.word(offset), u64::from(u32::MAX));
        let last = word.load(Ordering::Relaxed);
        let value = match part {
            Part::All => value,
            Part::Low => last & !half | value & half,
            Part::High => last & half | value << 32,
            Part::Added => last.wrapping_add(value),
        };
        word.store(value, Ordering::Relaxed);
    }

    /// The places beside the two rings of a slot, among the rings of the first ones.
    fn beside(slot: usize) -> impl Iterator<Item = usize> {
        let start = slot * 2 * RING as usize;
        let end = start + 2 * RING as usize;
        (start - BESIDE..start).chain(end..end + BESIDE).step_by(8)
    }
}

#[derive(Clone, Copy, Debug)]
enum Part {
    All,
    Low,
    High,
    Added,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// In the slot of the connection.
    Poke(usize, Part, u64),
    /// In the header, or among the rung slots.
    PokeHead(usize, Part, u64),
    Act(usize, Act),
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    Read(usize),
    Peek(usize),
    WantBytes,
    Look,
    WantKernel,
    WantRoom,
    Settle,
    Ask,
    TakeRung,
    MoreBells,
    LeaveReading,
    LeaveWriting,
    EndWriting,
    Offer,
}

fn acts() -> impl Strategy<Value = Act> {
    let len = prop_oneof![3 => 1usize..200, 1 => 1usize..2 * RING as usize];
    prop_oneof![
        8 => len.clone().prop_map(Act::Write),
        8 => len.clone().prop_map(Act::Read),
        1 => len.prop_map(Act::Peek),
        4 => Just(Act::WantBytes),
        2 => Just(Act::Look),
        1 => Just(Act::WantKernel),
        2 => Just(Act::WantRoom),
        1 => Just(Act::Settle),
        2 => Just(Act::Ask),
        2 => Just(Act::TakeRung),
        1 => Just(Act::MoreBells),
        1 => Just(Act::LeaveReading),
        1 => Just(Act::LeaveWriting),
        1 => Just(Act::EndWriting),
        1 => Just(Act::Offer),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![
        any::<u64>(),
        0u64..300,
        (0u64..8, 0u64..4).prop_map(|(small, rings)| rings * RING + small),
        (0u64..8).prop_map(|small| u64::MAX - small),
        Just(1 << 63),
    ];
    let part = prop_oneof![Just(Part::All), Just(Part::Low), Just(Part::High), Just(Part::Added)];
    // The words that mean something: the offer, and two lines for each direction.
    let place =
        prop_oneof![0usize..8, 16usize..26, 32usize..36, 48usize..58, 64usize..68, 0usize..80];
    let head =
        prop_oneof![0usize..6, OWNERS / 8..USED / 8, USED / 8..RUNG / 8, RUNG / 8..FIRST_SLOT / 8];
    let poke = (place, part.clone(), value.clone());
    let step = prop_oneof![
        5 => poke.prop_map(|(place, part, value)| Step::Poke(8 * place, part, value)),
        1 => (head, part, value).prop_map(|(at, part, value)| Step::PokeHead(8 * at, part, value)),
        9 => (0..2usize, acts()).prop_map(|(side, act)| Step::Act(side, act)),
    ];
    proptest::collection::vec(step, 1..120)
}

/// All that a call on a connection whose peer lies may return.
fn allow(what: &str, result: Result<usize, Errno>, most: usize) {
    match result {
        Ok(len) => assert!(len <= most, "{what}: {len} of {most}"),
        Err(Errno::AGAIN | Errno::CONNRESET | Errno::PIPE) => {}
        Err(errno) => panic!("{what}: {errno}"),
    }
}

fn act(end: &End, act: Act) {
    let connection = &end.connection;
    let (pair, slot) = match connection.place() {
        Some((pair, slot)) => (Some(pair), slot),
        None => (None, 0),
    };
    match act {
        Act::Write(len) => allow("write", end.write(&bytes(0, len)), len),
        Act::Read(len) => allow("read", end.read(&mut vec![0; len], RecvFlags::empty()), len),
        Act::Peek(len) => allow("peek", end.read(&mut vec![0; len], RecvFlags::PEEK), len),
        Act::WantBytes => connection.want_bytes(Some(&end.bell)),
        Act::Look => connection.want_bytes(None),
        Act::WantKernel => connection.want_kernel(Some(&end.bell)),
        Act::WantRoom => connection.want_room(Some(&end.room)),
        Act::Settle => allow("settle", end.settle().map(|()| 0), 0),
        Act::Ask => {
            let _ = (connection.is_readable(), connection.writable(), connection.bells());
            let _ = (connection.arrived(), connection.is_ended_by_peer(), connection.is_settled());
            assert!(connection.unread().0 <= RING);
        }
        Act::TakeRung => {
            if pair.is_some() {
                end.bell.take_marks(|slot| assert!((slot as usize) < SLOTS));
                end.bell.ring(slot);
            }
        }
        Act::MoreBells => {
            let _ = pair.and_then(|pair| pair.bell());
        }
        Act::LeaveReading => connection.leave_reading(),
        Act::LeaveWriting => connection.leave_writing(),
        Act::EndWriting => end.end_writing(),
        Act::Offer => {
            if let (Some(pair), Some(other)) = (pair, Connection::new()) {
                let (_, addresses) = sockets();
                let is_offered =
                    pair.side() == ayre::socket::Side::Maker && other.offer(pair, &addresses);
                let _ = (pair.find(&addresses), is_offered);
                other.close(end.socket.as_fd());
            }
        }
    }
}

/// A connection of another pair, which works throughout.
fn use_other(ends: &[End; 2], position: &mut u64) {
    let [near, far] = ends;
    let mut into = [0; 100];
    far.connection.want_bytes(Some(&far.bell));
    assert_eq!(near.write(&bytes(*position, into.len())), Ok(into.len()));
    assert_eq!(far.read(&mut into, RecvFlags::empty()), Ok(into.len()));
    check(*position, &into);
    *position += into.len() as u64;
    assert_eq!(near.written_by_ring(), *position);
}

/// One case at a time: the memory of a new pair is what was not there before.
static ONE: Mutex<()> = Mutex::new(());

fn attack(steps: Vec<Step>, other: &[End; 2], position: &mut u64) {
    let before = [memories(BYTES), memories(RINGS_BYTES)];
    let pairs = pair();
    // The slot before has a ring that nobody uses.
    let first = Connection::new().unwrap();
    assert!(first.offer(&pairs[0], &sockets().1));
    let ends = connect(&pairs);
    let [memory, rings] =
        [(BYTES, &before[0]), (RINGS_BYTES, &before[1])].map(|(len, it)| new_memory(len, it));
    let slot = ends[0].connection.place().expect("both have it").1 as usize;
    let guard = |offset: usize| u64::from_ne_bytes([byte(offset as u64); 8]);
    for offset in Memory::beside(slot) {
        rings.word(offset).store(guard(offset), Ordering::Relaxed);
    }
    for step in steps {
        match step {
            Step::Poke(at, part, value) => {
                memory.poke(FIRST_SLOT + slot * SLOT_BYTES + at, part, value);
            }
            Step::PokeHead(at, part, value) => memory.poke(at, part, value),
            Step::Act(side, what) => act(&ends[side], what),
        }
    }
    for offset in Memory::beside(slot) {
        assert_eq!(rings.word(offset).load(Ordering::Relaxed), guard(offset), "beside the ring");
    }
    use_other(other, position);
    for end in &ends {
        end.close();
    }
}

/// The next number of a simple sequence.
fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    *random >> 33
}

/// Both ends of a connection act until it is reset, or for a while.
fn act_at_random(ends: &[End; 2], random: &mut u64) {
    for _ in 0..300 {
        let end = &ends[next(random) as usize % 2];
        let len = 1 + next(random) as usize % 3000;
        match next(random) % 8 {
            0..3 => allow("write", end.write(&bytes(0, len)), len),
            3..6 => allow("read", end.read(&mut vec![0; len], RecvFlags::empty()), len),
            6 => end.connection.want_bytes(Some(&end.bell)),
            _ => act(end, Act::Ask),
        }
    }
}

#[test]
fn a_peer_that_writes_anything_meanwhile_disturbs_its_own_connection_only() {
    let _one = ONE.lock();
    let other = connect(&pair());
    let (mut random, mut position) = (5, 0);
    for round in 0..200 {
        let before = memories(BYTES);
        let pairs = pair();
        let ends = connect(&pairs);
        let slot = ends[0].connection.place().expect("both have it").1 as usize;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let memory = new_memory(BYTES, &before);
                let mut random = round;
                while !is_over.load(Ordering::Relaxed) {
                    // Neither the offer nor the state, so that the ends find lies elsewhere.
                    let at = 8 * (16 + next(&mut random) as usize % 60);
                    let value = next(&mut random) >> (next(&mut random) % 31);
                    let parts = [Part::All, Part::Low, Part::High, Part::Added];
                    let part = parts[next(&mut random) as usize % 4];
                    memory.poke(FIRST_SLOT + slot * SLOT_BYTES + at, part, value);
                    (0..next(&mut random) % 4000).for_each(|_| std::hint::spin_loop());
                }
            });
            act_at_random(&ends, &mut random);
            is_over.store(true, Ordering::Relaxed);
        });
        use_other(&other, &mut position);
        ends.iter().for_each(|end| _ = end.close());
    }
}

#[test]
fn a_peer_that_writes_anything_disturbs_its_own_connection_only() {
    let _one = ONE.lock();
    let other = connect(&pair());
    let position = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(500));
    let result = runner.run(&steps(), |steps| {
        let mut at = position.get();
        attack(steps, &other, &mut at);
        position.set(at);
        Ok(())
    });
    result.unwrap();
}
