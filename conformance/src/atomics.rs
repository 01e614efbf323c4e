//! Atomics and fetch-compare-and-add against a model, one at a time.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::model::{OPERATIONS, WIDTHS, model};
use crate::port::{Options, Port, Region, RemoteRegion};
use crate::seed::Dice;
use crate::world::{Memory, World, fault_of};
use ayre::Fault;
use ayre::memory::{Atomic, AtomicOp, Fetched, Width};

/// Operands for each operation and width.
const ROUNDS: usize = 100;
const LEN: usize = 64;

fn draw(dice: &mut Dice, op: AtomicOp, width: Width, word: u64) -> Atomic {
    // Conditions hold about every second time.
    let compare = if dice.below(2) == 0 { word } else { dice.word() };
    Atomic { width, op, operand: dice.word(), compare }
}

/// Puts the model's new word into the expected bytes.
fn place(expected: &mut [u8], at: usize, atomic: &Atomic, new: u64) {
    let len = atomic.width.bytes() as usize;
    expected[at..at + len].copy_from_slice(&new.to_le_bytes()[..len]);
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let end = bytes.len().min(at + 8);
    word[..end - at].copy_from_slice(&bytes[at..end]);
    u64::from_le_bytes(word)
}

/// Each operation of each width, fetching and not, leaves and returns what the table says, and
/// changes no neighbour.
// spec: ATOM-1, ATOM-3, ATOM-5, FCAA-1, FCAA-2, FCAA-4
pub fn atomics_agree_with_the_model<F: Fabric>(fabric: F) {
    let (mut world, mut dice) = (World::open(fabric), Dice::new(0));
    let Memory { region, remote, .. } = world.memory(LEN);
    let mut expected = pattern(7, LEN);
    fill(&region, &expected);
    world.drive(|port| {
        for (op, width) in OPERATIONS.into_iter().flat_map(|op| WIDTHS.map(|width| (op, width))) {
            for round in 0..ROUNDS {
                let size = width.bytes() as usize;
                let at = dice.index(LEN / size) * size;
                if round % 4 == 0 {
                    region.write(at, &dice.word().to_le_bytes()[..size]);
                    expected = contents(&region);
                }
                let old = word_at(&expected, at);
                let atomic = draw(&mut dice, op, width, old);
                let (new, value, success) = model(&atomic, old);
                if round % 2 == 0 {
                    let fetched = port.fetch(&remote, at as u64, atomic, Options::new());
                    assert_eq!(fetched, Ok(Fetched { value, success }), "{atomic:?} on {old:#x}");
                } else {
                    port.atomic(&remote, at as u64, atomic, Options::new()).expect("an atomic");
                    assert_eq!(port.flush(remote.peer()), Ok(()), "{atomic:?} on {old:#x}");
                }
                place(&mut expected, at, &atomic, new);
                assert_same(&contents(&region), &expected, &(atomic, old));
            }
        }
    });
    assert!(world.raised().is_empty(), "nobody asked for a notification");
}

/// The owner's own atomics are the same ones.
// spec: ATOM-1, REG-2
pub fn the_owner_performs_atomics<F: Fabric>(fabric: F) {
    let (mut world, mut dice) = (World::open(fabric), Dice::new(0));
    let Memory { region, .. } = world.memory(LEN);
    for (op, width) in OPERATIONS.into_iter().flat_map(|op| WIDTHS.map(|width| (op, width))) {
        for _ in 0..ROUNDS {
            let old = dice.word();
            region.store(8, old);
            let atomic = draw(&mut dice, op, width, old);
            let (new, value, success) = model(&atomic, old);
            let fetched = region.atomic(8, &atomic);
            assert_eq!(fetched, Fetched { value, success }, "{atomic:?} on {old:#x}");
            let mut expected = old.to_le_bytes();
            place(&mut expected, 0, &atomic, new);
            assert_eq!(region.load(8), u64::from_le_bytes(expected), "{atomic:?} on {old:#x}");
        }
    }
}

/// The shorthands are the operations that they stand for.
// spec: ATOM-1, FCAA-2
pub fn shorthands_are_atomics<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN);
    world.drive(|port| {
        assert_eq!(port.fetch_add(&remote, 16, 5), Ok(0));
        assert_eq!(port.fetch_add(&remote, 16, u64::MAX), Ok(5), "sums wrap");
        let swapped = port.compare_swap(&remote, 16, 4, 9).expect("a compare-swap");
        assert_eq!((swapped.value, swapped.success), (4, true));
        let declined = port.compare_swap(&remote, 16, 4, 1).expect("a compare-swap");
        assert_eq!((declined.value, declined.success), (9, false));
        let added = port.fcaa(&remote, 16, 9, -10).expect("an FCAA");
        assert_eq!((added.value as i64, added.success), (-1, true));
    });
    assert_eq!(region.load(16) as i64, -1);
}

fn fcaa<P: Port>(
    port: &mut P,
    remote: &P::RemoteRegion,
    width: Width,
    compare: i64,
    add: i64,
) -> Fetched {
    let (operand, compare) = (add as u64, compare as u64);
    let atomic = Atomic { width, op: AtomicOp::Fcaa, operand, compare };
    port.fetch(remote, 0, atomic, Options::new()).expect("a failed comparison is not a fault")
}

/// FCAA compares as two's complement numbers at all edges, and never adds where it declines.
// spec: FCAA-1, FCAA-2, FCAA-3
pub fn fcaa_compares_signed<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    for (width, min, max) in
        [(Width::W64, i64::MIN, i64::MAX), (Width::W32, i64::from(i32::MIN), i64::from(i32::MAX))]
    {
        let edges = [min, min + 1, -2, -1, 0, 1, 2, max - 1, max];
        let cut = |value: i64| (value as u64) & (u64::MAX >> (64 - 8 * width.bytes()));
        world.drive(|port| {
            for (word, compare, add) in edges.into_iter().flat_map(|word| {
                let pairs = edges.into_iter().flat_map(move |c| [-1, 1, min].map(|add| (c, add)));
                pairs.map(move |(compare, add)| (word, compare, add))
            }) {
                region.store(0, cut(word));
                let holds = word <= compare;
                let expected = cut(if holds { word.wrapping_add(add) } else { word });
                let fetched = fcaa(port, &remote, width, compare, add);
                assert_eq!(fetched.success, holds, "{width:?}: {word} <= {compare}");
                assert_eq!(fetched.value, expected, "{width:?}: {word} <= {compare} adds {add}");
                assert_eq!(region.load(0), expected, "{width:?}: the word is what was returned");
            }
        });
    }
}

/// A word that is not naturally aligned in the owner's region is refused, before anything happens.
// spec: ATOM-2, POST-2
pub fn atomics_are_aligned<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LEN);
    let before = pattern(8, LEN);
    fill(&region, &before);
    for width in WIDTHS {
        let atomic = Atomic { width, op: AtomicOp::Swap, operand: 1, compare: 0 };
        for offset in (0..LEN as u64 - 8).filter(|offset| offset % width.bytes() != 0) {
            let port = world.initiator();
            let posted = port.atomic(&remote, offset, atomic, Options::new().completer());
            assert_eq!(fault_of(posted), Fault::Alignment, "{width:?} at {offset}");
            let fetched = port.fetch(&remote, offset, atomic, Options::new().completer());
            assert_eq!(fault_of(fetched), Fault::Alignment, "{width:?} at {offset}");
        }
    }
    assert!(world.raised().is_empty(), "what is refused notifies nobody");
    assert_same(&contents(&region), &before, &"what is refused writes nothing");
}
