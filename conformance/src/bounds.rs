//! Ranges: a capability reaches its own bytes, and nothing that exceeds it has any effect.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, RemoteRegion};
use crate::world::{Memory, World, fault_of};
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{Fault, PostError, Rights};

const SWAP: Atomic = Atomic { width: Width::W64, op: AtomicOp::Swap, operand: 1, compare: 0 };

/// Ranges outside of `len` bytes, sums that wrap among them.
fn outside(len: u64) -> Vec<(u64, usize)> {
    let far = [len + 1, u64::from(u32::MAX) + 1, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut ranges: Vec<_> =
        far.into_iter().flat_map(|at| [0, 1, 8, 100].map(|n| (at, n))).collect();
    ranges.extend([(len, 1), (len - 1, 2), (0, len as usize + 1), (8, len as usize)]);
    ranges
}

fn transfers<P: Port>(port: &mut P, remote: &P::RemoteRegion, at: u64, len: usize) -> [Fault; 2] {
    let options = Options::new().requester().completer().responder();
    let mut buffer = vec![0x77; len];
    let put = fault_of(port.put(remote, at, &buffer, options));
    let got = fault_of(port.get(remote, at, &mut buffer, options));
    assert!(buffer.iter().all(|byte| *byte == 0x77), "a refused get writes nothing");
    [put, got]
}

fn words<P: Port>(port: &mut P, remote: &P::RemoteRegion, at: u64) -> [Fault; 3] {
    let options = Options::new().requester().completer().responder();
    [
        fault_of(port.put_immediate(remote, at, 1, options)),
        fault_of(port.atomic(remote, at, SWAP, options)),
        fault_of(port.fetch(remote, at, SWAP, options)),
    ]
}

/// An operation that exceeds its capability is refused by the call, and has no effect anywhere.
// spec: CAP-5, CAP-2, POST-1, POST-2, ERR-1, ERR-4
pub fn an_operation_that_exceeds_its_capability_is_refused<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(4096);
    let before = pattern(9, 4096);
    fill(&region, &before);
    for (at, len) in outside(4096) {
        let faults = transfers(world.initiator(), &remote, at, len);
        assert_eq!(faults, [Fault::Bounds; 2], "{len} bytes at {at}");
    }
    for at in [4096, 1 << 40, 1 << 63, u64::MAX - 7] {
        assert_eq!(words(world.initiator(), &remote, at), [Fault::Bounds; 3], "a word at {at}");
    }
    assert!(world.raised().is_empty(), "what is refused notifies nobody");
    assert_same(&contents(&region), &before, &"what is refused writes nothing");
    world.settle_ok();
    world.post(|port| port.put(&remote, 4095, &[1], Options::new()));
    world.settle_ok();
    assert_eq!(contents(&region)[4095], 1, "the next one is not affected");
}

/// A capability of a part reaches that part; offsets count from its start.
// spec: CAP-1, CAP-2, REG-3
pub fn a_capability_covers_only_the_granted_range<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, .. } = world.memory(4096);
    let mut expected = pattern(10, 4096);
    fill(&region, &expected);
    let (part, _grant) = world.grant(&region, 1024..1024 + 333, Rights::all());
    assert_eq!((part.len(), part.is_empty(), part.rights()), (333, false, Rights::all()));
    let data = pattern(11, 333);
    let mut got = vec![0; 333];
    world.drive(|port| {
        port.get(&part, 0, &mut got, Options::new()).expect("all of the part");
        port.put(&part, 0, &data, Options::new()).expect("all of the part");
        for (at, len) in outside(333) {
            assert_eq!(transfers(port, &part, at, len), [Fault::Bounds; 2], "{len} at {at}");
        }
        assert_eq!(words(port, &part, 328), [Fault::Bounds; 3], "the word's end is outside");
        port.fetch_add(&part, 320, 1).expect("a word inside");
    });
    world.settle_ok();
    assert_same(&got, &expected[1024..][..333], &"a get counts from the part's start");
    expected[1024..][..333].copy_from_slice(&data);
    let word = u64::from_le_bytes(std::array::from_fn(|i| data[320 + i])).wrapping_add(1);
    expected[1344..][..8].copy_from_slice(&word.to_le_bytes());
    assert_same(&contents(&region), &expected, &"a put writes the part");
}

/// Parts may overlap and nest, each with its own bounds.
// spec: REG-3, CAP-1
pub fn parts_overlap<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, .. } = world.memory(256);
    let parts = [0..256, 64..192, 128..256, 128..136, 200..200];
    let handles: Vec<_> =
        parts.iter().map(|part| world.grant(&region, part.clone(), Rights::all())).collect();
    let mut expected = vec![0; 256];
    for (round, ((remote, _), part)) in handles.iter().zip(&parts).enumerate() {
        let data = vec![round as u8 + 1; part.len()];
        world.post(|port| port.put(remote, 0, &data, Options::new()));
        expected[part.clone()].copy_from_slice(&data);
        let more = vec![9; part.len() + 1];
        let refused = world.initiator().put(remote, 0, &more, Options::new());
        assert_eq!(refused, Err(PostError::Fault(Fault::Bounds)), "{part:?}");
    }
    world.settle_ok();
    assert_same(&contents(&region), &expected, &"the later one stays");
}
