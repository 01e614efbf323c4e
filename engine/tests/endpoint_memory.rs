//! Endpoints: writes, reads and updates of each other's windows.
#[path = "endpoint_memory/sides.rs"]
mod sides;

use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    CompletionKind, ExposeError, MemoryRegion, MemoryRegions, OutgoingMessage, RawEndpoint,
    RemoteAddress, RmaEvent, RmaKind, RmaUpdate, RmaWrite, Sent, Spans,
};
use ayre::{Fault, PostError, Rights, Spin};
use sides::{Sides, parts, pattern, span};

/// Sizes on both sides of every border.
const SIZES: [usize; 16] =
    [0, 1, 7, 8, 16, 17, 512, 513, 4096, 16384, 16385, 32768, 100_000, 262_144, 1_000_003, 4 << 20];
const KEY: u64 = 77;
const BASE: u64 = 0x7000_0000_0000;

fn open(sides: &Sides, memory: &mut [u8], rights: Rights) {
    open_spans(sides, vec![sides::whole(memory)], rights);
}

fn open_spans(sides: &Sides, memory: Vec<ayre::endpoint::raw::Span>, rights: Rights) {
    let window = MemoryRegion { key: KEY, base: BASE, memory, rights };
    sides.windows.expose(window).expect("there is room");
}

fn write_of(bytes: Spans) -> RmaWrite {
    RmaWrite { bytes, data: None, context: 5, inject: false }
}

// spec: ENV-25, ENV-27, ENV-31
#[test]
fn every_length_is_written_and_read_back() {
    for to_itself in [false, true] {
        let mut sides = Sides::new(to_itself);
        let mut memory = vec![9; (4 << 20) + 32];
        open(&sides, &mut memory, Rights::all());
        for (index, len) in SIZES.into_iter().enumerate() {
            let (mut from, mut into) = (pattern(len, index), vec![0; len + 16]);
            let address = BASE + 16 - (index % 3) as u64;
            let data = (index % 2 == 0).then_some(index as u64);
            let write = RmaWrite { data, ..write_of(parts(&mut from, index)) };
            sides.write(sides.spot(KEY, address), &write);
            assert_eq!(sides.end(), (5, CompletionKind::Written, Ok(())));
            let told = sides.touched();
            assert_eq!((told.key, told.kind, told.len), (KEY, RmaKind::Wrote, len as u64));
            assert_eq!((told.source, told.data), (sides.back, data));
            sides.read(sides.spot(KEY, address), parts(&mut into[8..8 + len], index + 1));
            assert_eq!(sides.end(), (6, CompletionKind::Read, Ok(())));
            assert_eq!(sides.touched(), RmaEvent { kind: RmaKind::Read, data: None, ..told });
            assert!(into[8..8 + len] == from[..], "{len} bytes, to itself: {to_itself}");
            assert!(into[..8] == [0; 8] && into[8 + len..] == [0; 8], "{len} bytes");
        }
        sides.windows.withdraw(KEY);
        assert!(memory[..14] == [9; 14], "before them");
        assert!(memory[(4 << 20) + 16..] == [9; 16], "behind them");
    }
}

// spec: ENV-21
#[test]
fn a_memory_region_of_several_spans_is_contiguous_to_peers() {
    let mut sides = Sides::new(false);
    let mut memory: Vec<Vec<u8>> = (0..16).map(|n| vec![0; n * 1000 % 7001]).collect();
    let len: usize = memory.iter().map(Vec::len).sum();
    open_spans(&sides, memory.iter_mut().map(|part| sides::whole(part)).collect(), Rights::all());
    let mut from = pattern(len, 3);
    sides.write(sides.spot(KEY, BASE), &write_of(span(&mut from)));
    assert_eq!(sides.end().2, Ok(()));
    for (at, size) in [(0, 8), (995, 10), (990, 6020), (5, len - 5), (len - 1, 1), (len, 0)] {
        let mut into = vec![0; size];
        sides.read(sides.spot(KEY, BASE + at as u64), span(&mut into));
        assert_eq!(sides.end().2, Ok(()));
        assert!(into == from[at..at + size], "{size} bytes at {at}");
    }
    sides.windows.withdraw(KEY);
    assert!(memory.concat() == from);
}

// spec: ENV-25
#[test]
fn an_injected_buffer_can_be_reused_at_once() {
    let mut sides = Sides::new(false);
    let mut memory = vec![0; 400 * RawEndpoint::inject_max()];
    open(&sides, &mut memory, Rights::WRITE);
    let mut count = 0;
    // Until there is no room, and once more.
    for index in 0..400_u64 {
        let mut from = pattern(RawEndpoint::inject_max(), index as usize);
        let spot = sides.spot(KEY, BASE + index * from.len() as u64);
        let write = RmaWrite { inject: true, ..write_of(span(&mut from)) };
        match sides.near.write(spot, &write) {
            Ok(sent) => assert_eq!(sent, Sent::Completed),
            Err(error) => {
                assert!(error.is_busy());
                break;
            }
        }
        from.fill(0xee);
        count += 1;
    }
    assert!((10..400).contains(&count), "the ring has room for some: {count}");
    for _ in 0..count {
        assert_eq!(sides.end(), (5, CompletionKind::Written, Ok(())));
    }
    sides.windows.withdraw(KEY);
    for (index, bytes) in memory.chunks(RawEndpoint::inject_max()).take(count).enumerate() {
        assert!(bytes == pattern(bytes.len(), index), "the {index}th");
    }
    let mut long = vec![0; RawEndpoint::inject_max() + 1];
    let write = RmaWrite { inject: true, ..write_of(span(&mut long)) };
    let refused = sides.near.write(sides.spot(KEY, BASE), &write);
    assert_eq!(refused, Err(PostError::Fault(Fault::TooLong)));
}

/// Everything one may ask of a window, with this many bytes: what each needs, and how it has ended.
fn ask(sides: &mut Sides, key: u64, address: u64, bytes: &mut [u8]) -> Vec<(Rights, Ended)> {
    let spot = sides.spot(key, address);
    let mut asked = Vec::new();
    sides.write(spot, &write_of(span(bytes)));
    sides.read(spot, span(bytes));
    let both = Rights::all();
    let updates = [(Combine::Sum, false), (Combine::Write, true), (Combine::Read, true)];
    if bytes.len() <= RawEndpoint::update_max(Combine::Sum, Number::U8) {
        for (op, tells) in updates {
            let what = update(op, bytes, tells);
            sides.update(spot, &what);
            let needs = [Rights::WRITE, both, Rights::READ][asked.len()];
            asked.push((CompletionKind::Updated, needs));
        }
    }
    asked.extend([(CompletionKind::Written, Rights::WRITE), (CompletionKind::Read, Rights::READ)]);
    let mut ends: Vec<_> = asked.iter().map(|_| sides.end()).collect();
    let mut take = |what| {
        let at = ends.iter().position(|(_, ended, _)| *ended == what).expect("it has ended");
        ends.remove(at).2
    };
    // Those of one kind end in order.
    asked.into_iter().map(|(what, needs)| (needs, take(what))).collect()
}

type Ended = Result<(), Fault>;

fn update(op: Combine, bytes: &mut [u8], tells: bool) -> RmaUpdate {
    let operand = if op.has_operand() { span(bytes) } else { Spans::default() };
    let compare = if op.has_comparand() { span(bytes) } else { Spans::default() };
    let result = tells.then(|| span(bytes));
    RmaUpdate { op, number: Number::U8, operand, compare, result, data: None, context: 7 }
}

// spec: ENV-23, ENV-24
#[test]
fn an_operation_that_its_memory_region_does_not_allow_is_refused() {
    let len = 100_000;
    let mut memory = vec![9; len];
    for size in [0, 1, 512, 513, 40_000] {
        let mut sides = Sides::new(false);
        open(&sides, &mut memory, Rights::all());
        let mut bytes = vec![3; size];
        let end = BASE + len as u64;
        for (key, address, why) in [
            (KEY + 1, BASE, Fault::UnknownKey),
            (0, 0, Fault::UnknownKey),
            (KEY, BASE - 1, Fault::Bounds),
            (KEY, 0, Fault::Bounds),
            (KEY, end - size as u64 + 1, Fault::Bounds),
            (KEY, end + 1, Fault::Bounds),
            (KEY, u64::MAX, Fault::Bounds),
            (KEY, (size as u64).wrapping_neg(), Fault::Bounds),
        ] {
            for (_, ended) in ask(&mut sides, key, address, &mut bytes) {
                assert_eq!(ended, Err(why), "{size} bytes at {address:#x}");
            }
        }
        sides.windows.withdraw(KEY);
        assert!(memory == vec![9; len], "nothing is written, {size}");
        assert!(bytes == vec![3; size], "nothing is read, {size}");
        // Rights.
        for rights in [Rights::empty(), Rights::READ, Rights::WRITE] {
            open(&sides, &mut memory, rights);
            for (needs, ended) in ask(&mut sides, KEY, BASE, &mut bytes) {
                let due = if rights.contains(needs) { Ok(()) } else { Err(Fault::Rights) };
                assert_eq!(ended, due, "{size} bytes, {rights:?}, {needs:?}");
            }
            sides.windows.withdraw(KEY);
        }
        memory.fill(9);
        assert_eq!(sides.far.counters().malformed(), 0);
        sides.check_lives();
    }
}

// spec: ENV-23
#[test]
fn without_memory_regions_each_key_is_unknown() {
    let mut sides = Sides::new(false);
    let (spot, mut bytes) = (sides.spot(KEY, 0), [0; 8]);
    let back = RemoteAddress { remote: sides.back, ..spot };
    // The near one shares none.
    let _ = sides.far.write(back, &write_of(span(&mut bytes))).expect("there is room");
    sides.until(|sides| !sides.far_ends.is_empty());
    assert_eq!(sides.far_ends[0].result, Err(Fault::UnknownKey));
}

// spec: ENV-21
#[test]
fn memory_regions_have_limits() {
    let windows = MemoryRegions::new();
    let expose = |key, base, memory| {
        windows.expose(MemoryRegion { key, base, memory, rights: Rights::all() })
    };
    let mut bytes = [0; 8];
    let mut memory = || vec![sides::whole(&mut bytes)];
    assert_eq!(expose(1, u64::MAX - 7, memory()), Err(ExposeError::TooLong));
    assert_eq!(expose(1, u64::MAX - 8, memory()), Ok(()));
    assert_eq!(expose(1, 0, memory()), Err(ExposeError::KeyTaken));
    assert!(windows.clone().withdraw(1), "clones are the same windows");
    assert!(!windows.withdraw(1));
    assert_eq!(expose(1, 0, vec![memory()[0]; 17]), Err(ExposeError::TooManySpans));
    for key in 0..ayre::endpoint::raw::MEMORY_REGIONS_MAX as u64 {
        assert_eq!(expose(key, 0, Vec::new()), Ok(()));
    }
    assert_eq!(expose(u64::MAX, 0, memory()), Err(ExposeError::TooMany));
    windows.withdraw(5);
    assert_eq!(expose(u64::MAX, 0, memory()), Ok(()));
}

// spec: ENV-30
#[test]
fn posted_operations_execute_in_order() {
    let mut sides = Sides::new(false);
    let mut memory = vec![0; 300_000];
    open(&sides, &mut memory, Rights::all());
    for round in 0..20_u8 {
        let mut long = vec![round; 300_000];
        let mut short = [round ^ 0x80; 40];
        let mut got = [0; 512];
        let mut note = [round];
        let spot = sides.spot(KEY, BASE);
        sides.write(spot, &write_of(span(&mut long)));
        sides.write(RemoteAddress { address: BASE + 100, ..spot }, &write_of(span(&mut short)));
        sides.read(spot, span(&mut got));
        sides.write(spot, &write_of(span(&mut long[..512])));
        let message = OutgoingMessage {
            tag: Some(1),
            data: None,
            bytes: span(&mut note),
            context: 8,
            delivered: false,
        };
        let _ = sides.post(|sides| sides.near.send(spot.remote, &message));
        // The message tells the target that the writes before it are there.
        sides.until(|sides| sides.far.find(None, Some((1, 0))).is_some());
        let found = sides.far.find(None, Some((1, 0))).expect("it was found").id;
        assert!(sides.far.discard(true, found));
        let mut seen = vec![0; 300_000];
        sides.windows.withdraw(KEY);
        seen.copy_from_slice(&memory);
        open(&sides, &mut memory, Rights::all());
        assert!(seen.iter().all(|byte| *byte == round), "the last write lies over the others");
        for _ in 0..4 {
            assert_eq!(sides.end().2, Ok(()));
        }
        assert!(got[..100].iter().chain(&got[140..]).all(|byte| *byte == round));
        assert!(got[100..140] == short, "a read sees the writes before it");
    }
    sides.windows.withdraw(KEY);
}

// spec: ENV-24, ENV-30
#[test]
fn later_operations_do_not_overtake_a_long_write() {
    let mut sides = Sides::new(false);
    let mut memory = vec![0; 4 << 20];
    open(&sides, &mut memory, Rights::all());
    let (mut long, mut short) = (vec![1; 4 << 20], [2; 8]);
    let spot = sides.spot(KEY, BASE);
    assert_eq!(sides.near.write(spot, &write_of(span(&mut long))), Ok(Sent::Pending));
    let message = OutgoingMessage {
        tag: Some(1),
        data: None,
        bytes: span(&mut short),
        context: 8,
        delivered: false,
    };
    assert!(sides.near.send(spot.remote, &message).is_err_and(|why| why.is_busy()));
    let write = write_of(span(&mut short));
    assert!(sides.near.write(spot, &write).is_err_and(|why| why.is_busy()));
    assert!(sides.near.read(spot, span(&mut short), 6).is_err_and(|why| why.is_busy()));
    let update = update(Combine::Sum, &mut short, false);
    assert!(sides.near.update(spot, &update).is_err_and(|why| why.is_busy()));
    assert_eq!(sides.end(), (5, CompletionKind::Written, Ok(())));
    assert!(sides.near.send(spot.remote, &message).is_ok());
    sides.windows.withdraw(KEY);
    assert!(memory == long);
}

// spec: ENV-24
#[test]
fn endpoints_that_are_not_known_are_not_touched() {
    let mut near = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
    let mut far = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
    let remote = near.remote(&far.address()).expect("a neighbour");
    assert!(near.forget(remote));
    let (spot, mut bytes) = (RemoteAddress { remote, key: 1, address: 0 }, [0; 8]);
    let foreign = PostError::Fault(Fault::ForeignHandle);
    assert_eq!(near.write(spot, &write_of(span(&mut bytes))), Err(foreign));
    assert_eq!(near.read(spot, span(&mut bytes), 1), Err(foreign));
    assert_eq!(near.update(spot, &update(Combine::Sum, &mut bytes, false)), Err(foreign));
    far.progress(|_| ());
}
