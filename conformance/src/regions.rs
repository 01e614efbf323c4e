//! Registered memory at its owner.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region, RegionOptions, RemoteRegion};
use crate::world::{Memory, World, fault_of};
use ayre::{Fault, Mode, Rights, SetupError};

/// A region has the length asked for, zeros, and memory of its own.
// spec: REG-1, REG-2, LIM-1
pub fn memory_is_zeroed<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let mut regions = vec![];
    for len in [1, 7, 8, 4095, 4096, 4097, 1 << 20] {
        let region = world.target().alloc(len, RegionOptions::new()).expect("memory is there");
        assert_eq!((region.len(), region.is_empty()), (len, false));
        assert_same(&contents(&region), &vec![0; len], &len);
        fill(&region, &pattern(len as u64, len));
        regions.push(region);
    }
    for region in &regions {
        let clone = region.clone();
        assert_same(&contents(&clone), &pattern(clone.len() as u64, clone.len()), &clone.len());
    }
    let none = world.target().alloc(0, RegionOptions::new());
    assert!(matches!(none, Err(SetupError::Invalid(_))), "{none:?}");
    let all = world.target().alloc(usize::MAX, RegionOptions::new());
    assert!(matches!(all, Err(SetupError::Os { .. })), "{all:?}");
}

/// Peers get the data that the owner writes, and the other way round.
// spec: REG-2, PUT-1, GET-1
pub fn the_owner_shares_its_memory<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    region.write(3, &pattern(1, 20));
    region.store(32, 0x1122_3344_5566_7788);
    let mut got = [0; 64];
    world.drive(|port| {
        port.get(&remote, 0, &mut got, Options::new()).expect("a get");
        port.put_immediate(&remote, 40, 99, Options::new()).expect("an immediate put");
        assert_eq!(port.flush(remote.peer()), Ok(()));
    });
    assert_same(&got[3..23], &pattern(1, 20), &"bytes");
    assert_eq!(got[32..40], 0x1122_3344_5566_7788_u64.to_le_bytes());
    assert_eq!(region.load(40), 99);
}

/// Parts outside of a region, or that begin at another than a multiple of 8, are not granted.
// spec: CAP-1, CAP-11
pub fn grants_stay_inside<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, .. } = world.memory(100);
    let initiator = world.initiator_id();
    for (start, end) in [(0, 101), (96, 104), (104, 104), (0, usize::MAX), (16, 8), (4, 64)] {
        let grant = world.target().share(initiator, &region, start..end, Rights::all(), 50);
        assert!(matches!(grant, Err(SetupError::Invalid(_))), "{start}..{end}: {grant:?}");
    }
}

/// Taking a region back revokes all its grants, and no other region's.
// spec: REG-4, REV-1, REV-2, KEY-2
pub fn deregistering_revokes<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote: whole, grant } = world.memory(64);
    let (part, _part_grant) = world.grant(&region, 8..16, Rights::all());
    let other = world.memory(64);
    let peer = world.target_id();
    world.target().deregister(&region).expect("its own region");
    for remote in [&whole, &part] {
        world.post(|port| port.put(remote, 0, &[1; 8], Options::new()));
        world.settle();
        assert_eq!(world.initiator().flush(peer), Err(Fault::StaleKey));
        assert_eq!(world.raised().initiator.len(), 1, "the fault's notification");
    }
    assert_eq!(contents(&region), [0; 64]);
    let again = world.target().revoke(grant);
    assert!(matches!(again, Err(SetupError::Fault(Fault::StaleKey))), "{again:?}");
    world.post(|port| port.put(&other.remote, 0, &[2; 8], Options::new()));
    world.settle_ok();
    assert_eq!(contents(&other.region)[..8], [2; 8]);
    // A new region may get the old one's number; old capabilities do not reach it.
    let fresh = world.memory(64);
    world.post(|port| port.put(&whole, 0, &[3; 8], Options::new()));
    world.settle();
    assert_eq!(world.initiator().flush(peer), Err(Fault::StaleKey));
    assert_eq!(contents(&fresh.region), [0; 64]);
}

/// A deregistered region cannot be shared any more. Its number, which another region may have by
/// then, has no meaning for a second deregistration, nor for operations in flight.
// spec: REG-4, KEY-2
pub fn a_deregistered_region_cannot_be_shared_or_used<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (peer, initiator) = (world.target_id(), world.initiator_id());
    let region = world.target().alloc(64, RegionOptions::new()).expect("memory is there");
    let all = Rights::all();
    world.target().share(initiator, &region, 0..64, all, 60).expect("a grant");
    world.target().deregister(&region).expect("its own region");
    match world.initiator().accept_region(peer, 60) {
        Ok(late) => {
            world.post(|port| port.put(&late, 0, &[1; 8], Options::new()));
            world.settle();
            assert_eq!(world.initiator().flush(peer), Err(Fault::StaleKey));
        }
        Err(refused) => {
            assert!(matches!(refused, SetupError::Fault(Fault::StaleKey)), "{refused:?}");
        }
    }
    let fresh = world.memory(64);
    let shared = world.target().share(initiator, &region, 0..64, all, 61);
    assert!(matches!(shared, Err(SetupError::Invalid(_))), "{shared:?}");
    let again = world.target().deregister(&region);
    assert!(matches!(again, Err(SetupError::Invalid(_))), "{again:?}");
    world.raised();
    world.post(|port| port.put(&fresh.remote, 0, &[2; 8], Options::new()));
    world.settle_ok();
    assert_eq!(contents(&fresh.region)[..8], [2; 8]);
}

/// Memory that the program brought is for mediated peers, and works like any other.
// spec: REG-5, PUT-1, GET-1, ATOM-1
pub fn registered_words_are_memory<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let region = world.target().register(vec![7; 16]).expect("words");
    assert_eq!((region.len(), region.load(120)), (128, 7));
    assert!(world.target().register(vec![]).is_err(), "no words");
    let shared = world.target().share(initiator, &region, 0..128, Rights::all(), 9);
    if fabric.traits().mode == Mode::Direct && !fabric.traits().is_loopback {
        assert!(matches!(shared, Err(SetupError::Invalid(_))), "{shared:?}");
        return;
    }
    shared.expect("a grant");
    let remote = world.initiator().accept_region(target, 9).expect("it was shared");
    world.drive(|port| {
        assert_eq!(port.fetch_add(&remote, 64, 1), Ok(7));
        port.put(&remote, 1, &[1; 9], Options::new()).expect("a put");
        let mut got = [0; 16];
        port.get(&remote, 0, &mut got, Options::new()).expect("a get");
        assert_eq!(got, [7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(fault_of(port.put(&remote, 128, &[1], Options::new())), Fault::Bounds);
    });
    assert_eq!(region.load(64), 8);
}
