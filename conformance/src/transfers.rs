//! Contiguous puts and gets, and immediate puts: every byte that must move, and no other.
use crate::data::{CANARY, assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region, RemoteRegion};
use crate::seed::Dice;
use crate::world::{Memory, World, insist};
use ayre::PeerId;

/// Bytes before and behind what is transferred.
const MARGIN: usize = 64;
/// Longest transfer.
const LONGEST: usize = (1 << 20) + 1;
/// Sizes up to which every pair of alignments is tried.
const DENSE: usize = 200;

/// Powers of two, one less and one more, up to the longest.
fn long_sizes() -> impl Iterator<Item = usize> {
    (8..=LONGEST.ilog2()).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1])
}

/// Where a transfer begins at both ends.
#[derive(Clone, Copy, Debug)]
struct Place {
    len: usize,
    local: usize,
    remote: usize,
}

/// Every small size at every pair of alignments, then long sizes at some.
fn places() -> impl Iterator<Item = Place> {
    let small = (0..=DENSE).flat_map(|len| {
        (0..64).map(move |a| Place { len, local: MARGIN + a % 8, remote: MARGIN + a / 8 })
    });
    let long = long_sizes().flat_map(|len| {
        [(0, 0), (1, 0), (3, 5), (0, 7)].map(|(local, remote)| Place {
            len,
            local: MARGIN + local,
            remote: MARGIN + remote,
        })
    });
    small.chain(long)
}

/// A region with room for the longest transfer.
fn memory<F: Fabric>(world: &mut World<F>) -> Memory<F::Port> {
    world.memory(LONGEST + 4 * MARGIN)
}

/// Checks that a region holds `data` at its place and canaries around, and puts canaries back.
fn check_and_clear(region: &impl Region, at: usize, data: &[u8], what: &dyn std::fmt::Debug) {
    let (start, end) = (at - MARGIN, at + data.len() + MARGIN);
    let mut found = vec![0; end - start];
    region.read(start, &mut found);
    assert_same(&found[..MARGIN], &[CANARY; MARGIN], what);
    assert_same(&found[MARGIN..][..data.len()], data, what);
    assert_same(&found[MARGIN + data.len()..], &[CANARY; MARGIN], what);
    region.write(at, &vec![CANARY; data.len()]);
}

fn flush<P: Port>(port: &mut P, peer: PeerId, what: &dyn std::fmt::Debug) {
    assert_eq!(port.flush(peer), Ok(()), "{what:?}");
}

/// A put copies every length at every pair of alignments, and changes no neighbour.
// spec: PUT-1, PUT-3, PUT-4, FLUSH-1, REG-2
pub fn put_copies_exactly<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = memory(&mut world);
    fill(&region, &vec![CANARY; region.len()]);
    let source = pattern(1, LONGEST + 4 * MARGIN);
    world.drive(|port| {
        for place in places() {
            let data = &source[place.local..][..place.len];
            let put = port.put(&remote, place.remote as u64, data, Options::new());
            put.unwrap_or_else(|error| panic!("{place:?}: {error}"));
            flush(port, remote.peer(), &place);
            check_and_clear(&region, place.remote, data, &place);
        }
    });
    assert_same(&contents(&region), &vec![CANARY; region.len()], &"far from any put");
    assert!(world.raised().is_empty(), "nobody asked for a notification");
}

/// A put may be followed at once by another use of its buffer.
// spec: PUT-2, POST-6
pub fn a_put_buffer_can_be_reused_at_once<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64 * 1024);
    let mut buffer = vec![0; 1000];
    let mut last = None;
    for round in 0..64_u64 {
        buffer.copy_from_slice(&pattern(round, 1000));
        let ticket = world.post(|port| port.put(&remote, round * 1000, &buffer, Options::new()));
        assert!(last < Some(ticket), "tickets increase");
        last = Some(ticket);
        buffer.fill(CANARY);
    }
    world.settle_ok();
    let expected: Vec<u8> = (0..64).flat_map(|round| pattern(round, 1000)).collect();
    assert_same(&contents(&region)[..64_000], &expected, &"64 puts from one buffer");
}

/// A get copies every length at every pair of alignments, changes no neighbour in the buffer and
/// nothing at the target.
// spec: GET-1, GET-2, PUT-3
pub fn get_copies_exactly<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = memory(&mut world);
    let there = pattern(2, region.len());
    fill(&region, &there);
    world.drive(|port| {
        let mut buffer = vec![CANARY; LONGEST + 4 * MARGIN];
        for place in places() {
            let Place { len, local, remote: at } = place;
            let got = port.get(&remote, at as u64, &mut buffer[local..][..len], Options::new());
            got.unwrap_or_else(|error| panic!("{place:?}: {error}"));
            let around = &buffer[local - MARGIN..][..len + 2 * MARGIN];
            assert_same(&around[..MARGIN], &[CANARY; MARGIN], &place);
            assert_same(&around[MARGIN..][..len], &there[at..][..len], &place);
            assert_same(&around[MARGIN + len..], &[CANARY; MARGIN], &place);
            buffer[local..][..len].fill(CANARY);
        }
        assert_same(&buffer, &vec![CANARY; buffer.len()], &"far from any get");
    });
    assert_same(&contents(&region), &there, &"a get leaves the target as it is");
    assert!(world.raised().is_empty(), "nobody asked for a notification");
}

/// Puts from a region of the initiator, and gets into one, copy as those of private bytes do.
// spec: PUT-1, PUT-3, GET-1, GET-3
pub fn regions_are_local_buffers<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = memory(&mut world);
    fill(&region, &vec![CANARY; region.len()]);
    let source = world.own_memory(LONGEST + 4 * MARGIN);
    let sink = world.own_memory(LONGEST + 4 * MARGIN);
    let data = pattern(3, source.len());
    fill(&source, &data);
    fill(&sink, &vec![CANARY; sink.len()]);
    world.drive(|port| {
        for place in places() {
            let Place { len, local, remote: at } = place;
            let slice = source.slice(local..local + len);
            insist(port, |port| port.put(&remote, at as u64, slice, Options::new()));
            let slice = sink.slice(local..local + len);
            insist(port, |port| port.get(&remote, at as u64, slice, Options::new()));
            flush(port, remote.peer(), &place);
            check_and_clear(&region, at, &data[local..][..len], &place);
            check_and_clear(&sink, local, &data[local..][..len], &place);
        }
    });
    assert_same(&contents(&source), &data, &"a put leaves its source as it is");
    assert_same(&contents(&sink), &vec![CANARY; sink.len()], &"far from any get");
}

/// A get into a region has landed when its completer notification is delivered.
// spec: GET-3, NOTI-4, ORD-1
pub fn get_into_a_region_lands_with_its_completer<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(LONGEST);
    let sink = world.own_memory(LONGEST);
    for (round, len) in [1_usize, 56, 900, 5000, 100_000, LONGEST].into_iter().enumerate() {
        let data = pattern(round as u64, len);
        region.write(0, &data);
        world.drive(|port| {
            let options = Options::new().completer().tag(round as u32);
            port.get(&remote, 0, sink.slice(0..len), options).expect("a get into a region");
            let note = port.wait_notification(None).expect("its completer");
            assert_eq!(note.tag, round as u32, "{note:?}");
            let mut landed = vec![0; len];
            sink.read(0, &mut landed);
            assert_same(&landed, &data, &len);
        });
    }
    assert!(world.raised().is_empty(), "one completer each");
}

/// An immediate put stores its eight bytes, little-endian, at every multiple of eight.
// spec: IMM-1
pub fn immediate_put_stores_a_word<F: Fabric>(fabric: F) {
    let (mut world, mut dice) = (World::open(fabric), Dice::new(0));
    let Memory { region, remote, .. } = world.memory(512);
    let mut expected = vec![0; 512];
    for round in 0..1000 {
        let (at, value) = (dice.index(64) * 8, dice.word());
        world.post(|port| port.put_immediate(&remote, at as u64, value, Options::new()));
        expected[at..at + 8].copy_from_slice(&value.to_le_bytes());
        if round % 10 == 0 {
            world.settle_ok();
            assert_same(&contents(&region), &expected, &(round, at, value));
        }
    }
}

/// A transfer of no bytes is checked and notified like any other.
// spec: PUT-3, NOTI-6
pub fn no_bytes_are_a_transfer<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(100);
    let options = Options::new().completer();
    for offset in [0, 50, 100] {
        world.post(|port| port.put(&remote, offset, &[], options.tag(offset as u32)));
        let raised = world.raised();
        assert_eq!(raised.target.len(), 1, "the completer of a put at {offset}");
        world.drive(|port| port.get(&remote, offset, &mut [], options).map(|_| ())).expect("a get");
        assert_eq!(world.raised().initiator.len(), 1, "the completer of a get at {offset}");
    }
    assert!(world.initiator().put(&remote, 101, &[], options).is_err(), "outside is outside");
    assert_eq!(contents(&region), vec![0; 100]);
}
