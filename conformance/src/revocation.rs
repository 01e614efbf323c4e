//! Revocation: when it returns, the memory is the owner's alone.
use crate::data::{CANARY, assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Grant, Options, Port, Region, RemoteRegion};
use crate::world::{Memory, World, fault_of, take_notifications};
use ayre::error::Status;
use ayre::memory::Fenced;
use ayre::{Fault, PostError, Rights};
use std::thread::yield_now;

/// Operations that were posted before and not executed fault, executed ones stay, and no later one
/// happens.
// spec: REV-1, REV-2, NOTI-7, FLUSH-2, KEY-2
pub fn each_operation_under_way_completes_once<F: Fabric>(fabric: F) {
    for served in [0, 1, 3] {
        let mut world = World::open(fabric);
        let Memory { region, remote, grant } = world.memory(64);
        for tag in 0..8_u32 {
            let options = Options::new().requester().tag(tag);
            let put = world.initiator().put(&remote, u64::from(tag) * 8, &[1; 8], options);
            put.expect("room for eight");
            (0..served).for_each(|_| world.target().progress());
        }
        assert_eq!(world.target().revoke(grant).expect("a live grant"), Fenced::Drained);
        let revoked = contents(&region);
        let raised = world.raised();
        assert_same(&contents(&region), &revoked, &"after the revocation");
        assert_eq!(raised.initiator.len(), 8, "each ends once");
        for (tag, note) in raised.initiator.iter().enumerate() {
            let written = revoked[tag * 8] == 1;
            let status = if written { Status::Ok } else { Status::Fault(Fault::StaleKey) };
            assert_eq!((note.tag, note.status), (tag as u32, status));
        }
        let peer = world.target_id();
        let faulted = raised.initiator.iter().any(|note| note.status != Status::Ok);
        let expected = if faulted { Err(Fault::StaleKey) } else { Ok(()) };
        assert_eq!(world.initiator().flush(peer), expected);
    }
}

/// Puts without pause until a flush reports the revocation, and some more after.
fn put_until_stale<P: Port>(port: &mut P, remote: &P::RemoteRegion) -> u64 {
    let (mut posted, mut left) = (0, 50);
    while left > 0 {
        posted += 1;
        let data = pattern(posted, 4096);
        match port.put(remote, 0, &data, Options::new()) {
            Ok(_) => {}
            Err(PostError::Busy(_)) => yield_now(),
            Err(PostError::Fault(fault)) => panic!("a revoked key is a completion, not {fault}"),
        }
        if port.flush(remote.peer()).is_err() {
            left -= 1;
        }
        take_notifications(port);
    }
    posted
}

/// While a holder puts without pause, what the owner writes after the revocation stays.
// spec: REV-1, REV-2, REV-4
pub fn a_put_does_not_land_after_revocation<F: Fabric>(fabric: F) {
    for _ in 0..20 {
        let mut world = World::open(fabric);
        let Memory { region, remote, grant } = world.memory(4096);
        world.both(
            |port| put_until_stale(port, &remote),
            |port| {
                while region.load(4088) == 0 {
                    port.progress();
                }
                // Where the holder is not scheduled for long, it counts as stopped.
                port.revoke(grant).expect("a live grant");
                fill(&region, &[CANARY; 4096]);
            },
        );
        world.settle();
        assert_same(&contents(&region), &[CANARY; 4096], &"after the revocation");
    }
}

/// Other grants, of the same bytes too, are not affected.
// spec: REV-2, REG-3
pub fn other_grants_live_on<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, grant } = world.memory(64);
    let before = pattern(13, 64);
    fill(&region, &before);
    let (twin, _twin_grant) = world.grant(&region, 0..64, Rights::all());
    assert_eq!(grant.peer(), world.initiator_id());
    assert_eq!(grant.key(), remote.key());
    assert_ne!(remote.key(), twin.key());
    world.target().revoke(grant).expect("a live grant");
    assert_same(&contents(&region), &before, &"a revocation changes no byte");
    let mut got = [0; 64];
    world.drive(|port| {
        let refused = port.get(&remote, 0, &mut [0; 64], Options::new());
        assert_eq!(fault_of(refused), Fault::StaleKey);
        port.get(&twin, 0, &mut got, Options::new()).expect("the twin is alive");
        assert_eq!(port.flush(twin.peer()), Err(Fault::StaleKey), "the first one's");
        port.put(&twin, 0, &[1; 64], Options::new()).expect("the twin is alive");
        assert_eq!(port.flush(twin.peer()), Ok(()));
    });
    assert_same(&got, &before, &"through the twin");
    assert_same(&contents(&region), &[1; 64], &"through the twin");
}

/// A region can be shared again, under the same name; old handles stay dead.
// spec: KEY-1, KEY-2, CAP-3, REV-1
pub fn a_region_can_be_shared_again<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let Memory { region, remote, grant } = world.memory(64);
    world.target().revoke(grant).expect("a live grant");
    let mut dead = vec![remote];
    for round in 1..20_u8 {
        let all = Rights::all();
        let grant = world.target().share(initiator, &region, 0..64, all, 99).expect("a grant");
        let remote = world.initiator().accept_region(target, 99).expect("it was shared");
        assert!(dead.iter().all(|old| old.key() != remote.key()), "a key names one grant");
        world.post(|port| port.put(&remote, 0, &[round; 64], Options::new()));
        world.settle_ok();
        for old in &dead {
            world.post(|port| port.put(old, 0, &[0xff; 64], Options::new()));
        }
        world.settle();
        assert_eq!(world.initiator().flush(target), Err(Fault::StaleKey));
        assert_eq!(world.raised().initiator.len(), dead.len(), "a fault each");
        assert_same(&contents(&region), &[round; 64], &"the live one's");
        world.target().revoke(grant).expect("a live grant");
        dead.push(remote);
    }
}

/// The operations of a port complete before it enters a barrier, and their fault stays for the
/// flush.
// spec: BAR-4, FLUSH-2
pub fn a_barrier_leaves_faults_to_flush<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let target = world.target_id();
    let Memory { remote, grant, .. } = world.memory(64);
    world.target().revoke(grant).expect("a live grant");
    world.post(|port| port.put(&remote, 0, &[1; 64], Options::new()));
    world.drive(|port| {
        assert_eq!(port.barrier(), Ok(()));
        assert!(port.is_flushed(target), "it has ended");
        assert_eq!(port.flush(target), Err(Fault::StaleKey), "and how is not forgotten");
    });
}
