//! Rights: each operation without the one that it needs.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::port::{Options, Port, Region, RegionOptions, RemoteRegion};
use crate::world::{World, fault_of};
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{Fault, PostError, Rights, SetupError};

const SWAP: Atomic = Atomic { width: Width::W64, op: AtomicOp::Swap, operand: 1, compare: 0 };

/// Performs everything that a capability may be for; returns who was let through.
fn try_all<P: Port>(
    port: &mut P,
    remote: &P::RemoteRegion,
    options: Options,
) -> [Result<(), PostError>; 5] {
    [
        port.put(remote, 0, &[1; 8], options).map(drop),
        port.put_immediate(remote, 0, 1, options).map(drop),
        port.get(remote, 0, &mut [0; 8], options).map(drop),
        port.atomic(remote, 0, SWAP, options).map(drop),
        port.fetch(remote, 0, SWAP, options).map(drop),
    ]
}

fn region<F: Fabric>(world: &mut World<F>, options: RegionOptions) -> <F::Port as Port>::Region {
    let region = world.target().alloc(64, options).expect("memory is there");
    fill(&region, &pattern(12, 64));
    region
}

/// An operation without its right is refused by the call and has no effect; the others go on.
// spec: CAP-1, CAP-2, CAP-5, POST-1, ERR-4
pub fn each_right_is_needed<F: Fabric>(fabric: F) {
    let refused = Err(PostError::Fault(Fault::Rights));
    for missing in [Rights::READ, Rights::WRITE, Rights::ATOMIC] {
        let mut world = World::open(fabric);
        let region = region(&mut world, RegionOptions::new());
        let rights = Rights::all() - missing;
        let (remote, _grant) = world.grant(&region, 0..64, rights);
        assert_eq!(remote.rights(), rights);
        let needed = [Rights::WRITE, Rights::WRITE, Rights::READ, Rights::ATOMIC, Rights::ATOMIC];
        let expected = needed.map(|right| if right == missing { refused } else { Ok(()) });
        let results = world.drive(|port| try_all(port, &remote, Options::new()));
        assert_eq!(results, expected, "without {missing:?}");
        world.settle_ok();
        assert!(world.raised().is_empty());
    }
}

/// An operation that would notify the owner needs the right to do so; without, it has no effect.
// spec: CAP-2, CAP-5, POST-1
pub fn notifying_is_a_right<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let region = region(&mut world, RegionOptions::new());
    let (remote, _grant) = world.grant(&region, 0..64, Rights::all() - Rights::NOTIFY);
    let options = Options::new().completer().responder();
    let results = world.drive(|port| try_all(port, &remote, options));
    assert_eq!(results, [Err(PostError::Fault(Fault::Rights)); 5]);
    assert_same(&contents(&region), &pattern(12, 64), &"what is refused writes nothing");
    let results = world.drive(|port| try_all(port, &remote, Options::new()));
    assert_eq!(results, [Ok(()); 5], "nobody is notified");
    assert!(world.raised().is_empty());
}

/// A capability for nothing lets nothing through.
// spec: CAP-2, CAP-5, POST-1
pub fn a_capability_without_rights_permits_no_operation<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let region = region(&mut world, RegionOptions::new());
    let (remote, _grant) = world.grant(&region, 0..64, Rights::empty());
    let all = Options::new().requester().completer().responder();
    let results = world.drive(|port| try_all(port, &remote, all));
    assert_eq!(results, [Err(PostError::Fault(Fault::Rights)); 5]);
    assert!(world.raised().is_empty(), "what is refused notifies nobody");
    assert_same(&contents(&region), &pattern(12, 64), &"what is refused writes nothing");
}

/// A sealed region cannot be granted for writing, and can be read.
// spec: CAP-9, CAP-3
pub fn a_sealed_region_is_for_reading<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let region = region(&mut world, RegionOptions::new().sealed());
    let initiator = world.initiator_id();
    for rights in [Rights::WRITE, Rights::ATOMIC, Rights::READ | Rights::WRITE, Rights::all()] {
        let grant = world.target().share(initiator, &region, 0..64, rights, 1000);
        assert!(matches!(grant, Err(SetupError::Invalid(_))), "{rights:?}: {grant:?}");
    }
    let (remote, _grant) = world.grant(&region, 0..64, Rights::READ);
    let mut got = [0; 64];
    world.drive(|port| {
        port.get(&remote, 0, &mut got, Options::new()).expect("reading is granted");
        let put = port.put(&remote, 0, &[1; 8], Options::new());
        assert_eq!(fault_of(put), Fault::Rights);
    });
    assert_same(&got, &pattern(12, 64), &"a get from a sealed region");
    region.write(0, &[9; 8]);
    assert_eq!(contents(&region)[..8], [9; 8], "the owner writes all the same");
}
