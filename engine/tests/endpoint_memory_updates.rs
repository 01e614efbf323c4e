//! Endpoints: updates of each other's windows.
#[path = "endpoint_memory/sides.rs"]
mod sides;

use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    Comparison, Completion, CompletionKind, MemoryRegion, MemoryRegions, RawEndpoint,
    RemoteAddress, RmaKind, RmaUpdate, Spans,
};
use ayre::{Fault, PostError, Rights, Spin};
use sides::{Sides, parts, pattern, span, whole};
use std::sync::atomic::{AtomicUsize, Ordering};

const KEY: u64 = 5;
/// Where the numbers are: nothing is aligned.
const AT: usize = 3;

fn open(windows: &MemoryRegions, memory: &mut [u8]) {
    let memory = vec![whole(memory)];
    windows
        .expose(MemoryRegion { key: KEY, base: 0, memory, rights: Rights::all() })
        .expect("room");
}

struct Asked {
    update: RmaUpdate,
    operand: Vec<u8>,
    compare: Vec<u8>,
    result: Vec<u8>,
}

/// An update of `count` numbers, with some operands, in several spans or in one.
fn asked((op, number): (Combine, Number), count: usize, seed: usize) -> Asked {
    let len = number.size() * count;
    let operand = if op.has_operand() { pattern(len, seed + 1) } else { Vec::new() };
    let compare = if op.has_comparand() { pattern(len, seed + seed % 2) } else { Vec::new() };
    let tells = !seed.is_multiple_of(3) || !op.has_operand();
    let result = if tells { vec![0; len] } else { Vec::new() };
    let mut asked = Asked {
        update: RmaUpdate {
            op,
            number,
            operand: Spans::default(),
            compare: Spans::default(),
            result: None,
            data: seed.is_multiple_of(2).then_some(seed as u64),
            context: 7,
        },
        operand,
        compare,
        result,
    };
    asked.update.operand = parts(&mut asked.operand, seed);
    asked.update.compare = parts(&mut asked.compare, seed + 1);
    asked.update.result = tells.then(|| parts(&mut asked.result, seed + 2));
    asked
}

// spec: ENV-28, ENV-29, ENV-31
#[test]
fn every_op_on_every_number() {
    for to_itself in [false, true] {
        let mut sides = Sides::new(to_itself);
        let mut seed = 0;
        for op in Combine::ALL {
            for number in Number::ALL.into_iter().filter(|number| op.is_defined(*number)) {
                for count in [0, 1, 2, 7, RawEndpoint::update_max(op, number)] {
                    seed += 1;
                    one_update(&mut sides, (op, number), (count, seed));
                }
            }
        }
    }
}

fn one_update(sides: &mut Sides, of: (Combine, Number), (count, seed): (usize, usize)) {
    let len = of.1.size() * count;
    let mut memory = pattern(len + 2 * AT, seed);
    let mut due = memory.clone();
    let old = memory[AT..AT + len].to_vec();
    open(&sides.windows, &mut memory);
    let asked = asked(of, count, seed);
    sides.update(sides.spot(KEY, AT as u64), &asked.update);
    assert_eq!(sides.end(), (7, CompletionKind::Updated, Ok(())), "{of:?}, {count}");
    let told = sides.touched();
    let tells = asked.update.result.is_some();
    let kind = if tells { RmaKind::Fetched } else { RmaKind::Updated };
    assert_eq!((told.kind, told.len, told.data), (kind, len as u64, asked.update.data));
    sides.windows.withdraw(KEY);
    of.0.apply(of.1, &mut due[AT..AT + len], &asked.operand, &asked.compare);
    assert!(memory == due, "{of:?}, {count}");
    assert!(asked.result.is_empty() || asked.result == old, "{of:?}, {count}: what was there");
}

// spec: ENV-24
#[test]
fn updates_that_cannot_be_are_not_posted() {
    let mut sides = Sides::new(false);
    let (mut bytes, spot) = (vec![0; 4096], sides.spot(KEY, 0));
    let mut refused = |op, number, [operand, compare, result]: [usize; 3]| {
        let update = RmaUpdate {
            op,
            number,
            operand: span(&mut bytes[..operand]),
            compare: span(&mut bytes[..compare]),
            result: (result < 4096).then(|| span(&mut bytes[..result])),
            data: None,
            context: 1,
        };
        sides.near.update(spot, &update)
    };
    let none = 4096;
    let swap = Combine::CompareSwap(Comparison::Eq);
    let order = Combine::CompareSwap(Comparison::Lt);
    for (op, number, lens) in [
        (Combine::Sum, Number::I64, [7, 0, none]),
        (Combine::Sum, Number::I64, [8, 8, none]),
        (Combine::Sum, Number::I64, [8, 0, 16]),
        (Combine::Sum, Number::C64, [8, 0, none]),
        (Combine::Read, Number::I64, [0, 0, none]),
        (Combine::Read, Number::I64, [8, 0, 8]),
        (Combine::Read, Number::I64, [0, 0, 4]),
        (swap, Number::I64, [8, 0, none]),
        (swap, Number::I64, [8, 16, 8]),
        (order, Number::C32, [8, 8, 8]),
        (Combine::BOr, Number::F32, [8, 0, none]),
        (Combine::Min, Number::C64, [16, 0, none]),
        (Combine::MaskedSwap, Number::F64, [8, 8, none]),
    ] {
        let malformed = Err(PostError::Fault(Fault::Malformed));
        assert_eq!(refused(op, number, lens), malformed, "{op:?} {number:?} {lens:?}");
    }
    for (op, number, lens) in [
        (Combine::Sum, Number::U8, [1025, 0, none]),
        (swap, Number::I64, [65 * 8, 65 * 8, none]),
        (Combine::Read, Number::C64, [0, 0, 65 * 16]),
    ] {
        let too_long = Err(PostError::Fault(Fault::TooLong));
        assert_eq!(refused(op, number, lens), too_long, "{op:?} {number:?} {lens:?}");
    }
    sides.check_lives();
}

const INITIATORS: usize = 3;
const ROUNDS: u64 = 2000;

/// Adds 1 to the counter and says what it found each time.
fn count_up(target: &ayre::endpoint::Address) -> Vec<u64> {
    let mut near = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
    let remote = near.remote(target).expect("a neighbour");
    let mut found = Vec::new();
    let (mut one, mut old) = (1_u64.to_le_bytes(), [0; 8]);
    let update = RmaUpdate {
        op: Combine::Sum,
        number: Number::U64,
        operand: span(&mut one),
        compare: Spans::default(),
        result: Some(span(&mut old)),
        data: None,
        context: 1,
    };
    for _ in 0..ROUNDS {
        while let Err(error) = near.update(RemoteAddress { remote, key: KEY, address: 0 }, &update)
        {
            assert!(error.is_busy(), "{error}");
            near.progress(|_| ());
        }
        let mut ended = None;
        while ended.is_none() {
            near.progress(|end: Completion| ended = Some(end.result));
        }
        assert_eq!(ended, Some(Ok(())));
        found.push(u64::from_le_bytes(old));
    }
    found
}

// spec: ENV-28
#[test]
fn several_endpoints_count_on_one_counter() {
    let windows = MemoryRegions::new();
    let sets = [windows.clone(), windows.beside()];
    let mut counter = [0; 8];
    sets.iter().for_each(|set| open(set, &mut counter));
    let left = AtomicUsize::new(INITIATORS);
    let mut found: Vec<u64> = std::thread::scope(|scope| {
        let initiators: Vec<_> = (0..INITIATORS)
            .map(|at| {
                let mut target = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
                target.share(&sets[at % sets.len()]);
                let address = target.address();
                let left = &left;
                scope.spawn(move || {
                    while left.load(Ordering::Acquire) > 0 {
                        target.progress(|_| ());
                        std::thread::yield_now();
                    }
                });
                scope.spawn(move || {
                    let found = count_up(&address);
                    left.fetch_sub(1, Ordering::AcqRel);
                    found
                })
            })
            .collect();
        initiators.into_iter().flat_map(|it| it.join().expect("it counts")).collect()
    });
    sets.iter().for_each(|set| assert!(set.withdraw(KEY)));
    let all = INITIATORS as u64 * ROUNDS;
    assert_eq!(u64::from_le_bytes(counter), all);
    found.sort_unstable();
    assert!(found.into_iter().eq(0..all), "each found another one");
}
