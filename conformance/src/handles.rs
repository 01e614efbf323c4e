//! Handles in the wrong hands, and names.
use crate::data::contents;
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::ManyToOne;
use crate::port::{Options, Port, Region, RegionOptions, RemoteQueue, RemoteRegion};
use crate::world::{Memory, World, fault_of};
use ayre::memory::{Atomic, AtomicOp, Strided, Width};
use ayre::{Fault, PeerId, PostError, ReceiveError, Rights, SetupError};
use std::time::Duration;

/// A capability works with the port that accepted it only.
// spec: CAP-6, ERR-1
pub fn a_capability_is_of_its_port<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let mut stranger = World::open(fabric);
    let options = Options::new().requester().completer().responder();
    let atomic = Atomic { width: Width::W64, op: AtomicOp::Swap, operand: 1, compare: 0 };
    let port = stranger.initiator();
    let faults = [
        fault_of(port.put(&remote, 0, &[1; 8], options)),
        fault_of(port.get(&remote, 0, &mut [0; 8], options)),
        fault_of(port.put_immediate(&remote, 0, 1, options)),
        fault_of(port.atomic(&remote, 0, atomic, options)),
        fault_of(port.fetch(&remote, 0, atomic, options)),
    ];
    assert_eq!(faults, [Fault::ForeignHandle; 5]);
    assert!(stranger.raised().is_empty() && world.raised().is_empty());
    assert_eq!(contents(&region), [0; 64]);
}

/// A region is a local buffer of its own port, and its owner's to share.
// spec: CAP-6
pub fn a_region_is_of_its_port<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let mut stranger = World::open(fabric);
    let other = stranger.own_memory(64);
    let port = world.initiator();
    let put = port.put(&remote, 0, other.slice(0..8), Options::new());
    assert_eq!(fault_of(put), Fault::ForeignHandle);
    let got = port.get(&remote, 0, other.slice(0..8), Options::new());
    assert_eq!(fault_of(got), Fault::ForeignHandle);
    let initiator = world.initiator_id();
    let shared = world.target().share(initiator, &other, 0..64, Rights::all(), 50);
    assert!(matches!(shared, Err(SetupError::Invalid(_))), "{shared:?}");
    assert!(stranger.target().deregister(&region).is_err(), "another port's region");
}

/// A grant is revoked by the port that made it.
// spec: CAP-6, REV-2
pub fn a_grant_is_of_its_port<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, grant } = world.memory(64);
    let mut stranger = World::open(fabric);
    let revoked = stranger.target().revoke(grant);
    assert!(matches!(revoked, Err(SetupError::Fault(Fault::ForeignHandle))), "{revoked:?}");
    world.post(|port| port.put(&remote, 0, &[1; 8], Options::new()));
    world.settle_ok();
    assert_eq!(contents(&region)[..8], [1; 8], "it lives on");
}

/// A peer that is not connected is named by no call.
// spec: CAP-6, ERR-1
pub fn an_unknown_peer_is_a_foreign_handle<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let port = world.initiator();
    for nobody in [PeerId(0), PeerId(9), PeerId(u16::MAX)] {
        assert_eq!(fault_of(port.notify(nobody, Options::new())), Fault::ForeignHandle);
        assert_eq!(fault_of(port.send(nobody, 0, &[1])), Fault::ForeignHandle);
        assert_eq!(port.flush(nobody), Err(Fault::ForeignHandle));
        assert_eq!(port.mode(nobody), Err(Fault::ForeignHandle));
        assert!(!port.is_alive(nobody));
        let region = port.alloc(8, RegionOptions::new()).expect("memory is there");
        assert!(port.share(nobody, &region, 0..8, Rights::all(), 0).is_err());
        assert!(port.accept_region(nobody, 0).is_err());
    }
    let waited = port.recv(&mut [0; 8], Some(Duration::ZERO));
    assert_eq!(waited, Err(ReceiveError::TimedOut));
}

/// Capabilities are found by their names, in any order.
// spec: CAP-3, REG-3
pub fn names_find_capabilities<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let region = world.target().alloc(256, RegionOptions::new()).expect("memory is there");
    let names = [0, 7, u64::MAX, 1 << 40];
    for (index, name) in names.into_iter().enumerate() {
        let part = index * 64..index * 64 + 64;
        world.target().share(initiator, &region, part, Rights::all(), name).expect("a grant");
    }
    for (index, name) in names.into_iter().enumerate().rev() {
        let remote = world.initiator().accept_region(target, name).expect("it was shared");
        assert_eq!((remote.peer(), remote.len()), (target, 64));
        world.post(|port| port.put(&remote, 0, &[index as u8 + 1; 64], Options::new()));
    }
    world.settle_ok();
    let expected: Vec<u8> = (0..256).map(|i| (i / 64) as u8 + 1).collect();
    assert_eq!(contents(&region), expected);
}

/// A holder may narrow a capability, to a part and to fewer rights, and never widen it.
// spec: CAP-4, CAP-5, REV-1
pub fn capabilities_can_be_narrowed<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, .. } = world.memory(256);
    let rights = Rights::READ | Rights::WRITE;
    let (remote, grant) = world.grant(&region, 64..192, rights);
    let part = remote.narrow(32..64, rights).expect("less");
    let inner = part.narrow(8..16, Rights::WRITE).expect("less");
    assert_eq!((part.len(), inner.len(), inner.rights()), (32, 8, Rights::WRITE));
    assert_eq!((inner.peer(), inner.key()), (remote.peer(), remote.key()));
    for wider in [0..33, 33..33, 0..u64::MAX, u64::MAX - 7..u64::MAX] {
        let widened = part.narrow(wider.clone(), rights).map(|handle| handle.len());
        assert_eq!(widened, Err(Fault::Bounds), "{wider:?}");
    }
    let shifted = part.narrow(4..12, rights).map(|handle| handle.len());
    assert_eq!(shifted, Err(Fault::Alignment));
    let widened = inner.narrow(0..8, rights).map(|handle| handle.rights());
    assert_eq!(widened, Err(Fault::Rights));
    let port = world.initiator();
    assert_eq!(fault_of(port.put(&inner, 1, &[1; 8], Options::new())), Fault::Bounds);
    assert_eq!(fault_of(port.get(&inner, 0, &mut [0; 8], Options::new())), Fault::Rights);
    world.post(|port| port.put(&inner, 0, &[7; 8], Options::new()));
    world.post(|port| port.put(&part, 31, &[8], Options::new()));
    world.settle_ok();
    let mut expected = [0; 256];
    expected[64 + 32 + 8..][..8].fill(7);
    expected[64 + 32 + 31] = 8;
    assert_eq!(contents(&region), expected);
    world.target().revoke(grant).expect("a live grant");
    world.post(|port| port.put(&inner, 0, &[9; 8], Options::new()));
    world.settle();
    let peer = world.target_id();
    assert_eq!(world.initiator().flush(peer), Err(Fault::StaleKey), "it ends with the whole");
    assert_eq!(contents(&region), expected);
}

/// Of several capabilities under one name, the one that was handed over first comes first.
// spec: CAP-3
pub fn one_name_gives_one_after_the_other<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let region = world.target().alloc(256, RegionOptions::new()).expect("memory is there");
    for len in [64, 128, 256] {
        world.target().share(initiator, &region, 0..len, Rights::all(), 7).expect("a grant");
    }
    let mut queue = world.target().create_queue(4096).expect("a queue");
    world.target().share_queue(initiator, &mut queue, 7).expect("a producer");
    let queue = world.initiator().accept_queue(target, 7).expect("of its kind the only one");
    assert_eq!(queue.peer(), target);
    for len in [64, 128, 256] {
        let remote = world.initiator().accept_region(target, 7).expect("it was shared");
        assert_eq!(remote.len(), len);
    }
}

/// Of several faults that apply, the one that the table puts first is returned.
// spec: ERR-3, POST-2
pub fn faults_have_an_order<F: Fabric>(fabric: F) {
    let (mut world, mut stranger) = (World::open(fabric), World::open(fabric));
    let Memory { region, .. } = world.memory(64);
    let (remote, _grant) = world.grant(&region, 0..64, Rights::READ);
    let foreign = stranger.memory(64).remote;
    let options = Options::new();
    let overlapping = Strided { row_len: 8, rows: 2, local_stride: 8, remote_stride: 1 };
    let port = world.initiator();
    let faults = [
        fault_of(port.put_immediate(&foreign, 1, 1, options)),
        fault_of(port.put_strided(&foreign, 60, &[0; 16], overlapping, options)),
        fault_of(port.put_immediate(&remote, 65, 1, options)),
        fault_of(port.put(&remote, 65, &[1], options)),
        fault_of(port.get(&remote, 65, &mut [1], options)),
    ];
    let expected =
        [Fault::ForeignHandle, Fault::Malformed, Fault::Alignment, Fault::Rights, Fault::Bounds];
    assert_eq!(faults, expected);
    assert_eq!(fault_of(port.send(PeerId(77), 0, &[])), Fault::Malformed);
    assert!(world.raised().is_empty());
}

/// Names of different pairs do not interfere, and each holder uses a capability of its own.
// spec: CAP-3, CAP-6, KEY-1
pub fn names_are_of_a_pair<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let mut remotes = vec![];
    for (index, holder) in ports.ids().into_iter().enumerate() {
        let part = index * 32..index * 32 + 32;
        ports.target.share(holder, &region, part, Rights::all(), 5).expect("a grant");
    }
    for port in &mut ports.initiators {
        remotes.push(port.accept_region(TARGET, 5).expect("it was shared"));
    }
    assert_ne!(remotes[0].key(), remotes[1].key());
    let crossed = ports.initiators[0].put(&remotes[1], 0, &[9; 8], Options::new());
    assert_eq!(crossed, Err(PostError::Fault(Fault::ForeignHandle)));
    ports.each(
        remotes,
        |port, remote| {
            let data = [port.rank() as u8; 32];
            port.put(&remote, 0, &data, Options::new()).expect("a put");
            assert_eq!(port.flush(TARGET), Ok(()));
        },
        |_| (),
    );
    let ids = ports.ids();
    let expected: Vec<u8> = (0..64).map(|i| ids[i / 32].0 as u8).collect();
    assert_eq!(contents(&region), expected);
}

/// Both ends agree on the mode of their connection.
// spec: LIFE-8
pub fn the_mode_is_agreed<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    assert_eq!(world.initiator().mode(target), Ok(fabric.traits().mode));
    assert_eq!(world.target().mode(initiator), Ok(fabric.traits().mode));
    assert!(world.initiator().is_alive(target) && world.target().is_alive(initiator));
    assert_eq!(world.initiator().peers().collect::<Vec<_>>(), [target]);
}

/// A port has one loopback; asking for another one leaves it as it is.
// spec: LIFE-5
pub fn a_second_loopback_is_refused<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let port = world.initiator();
    let own = PeerId(port.rank() as u16);
    if !fabric.traits().is_loopback {
        assert_eq!(port.connect_loopback().expect("the first one"), own);
    }
    let second = port.connect_loopback();
    assert!(matches!(second, Err(SetupError::Rejected { .. })), "{second:?}");
    port.progress();
    assert!(port.is_alive(own), "the first one lives");
    assert_eq!(port.send(own, 1, b"to myself"), Ok(()));
}
