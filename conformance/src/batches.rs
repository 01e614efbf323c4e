//! Batches: several operations that are posted together, or not at all.
use crate::data::{assert_same, contents, pattern};
use crate::fabric::Fabric;
use crate::port::{Batch, Options, Port, Region, RemoteRegion};
use crate::world::{Memory, World, fault_of};
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{Busy, Fault, PostError, Rights};

const ADD: Atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 5, compare: 0 };

/// A batch of everything that fits one, each with a notification at the target.
fn of_everything<'a, P: Port>(
    remote: &'a P::RemoteRegion,
    data: &'a [u8],
    tag: u32,
) -> Batch<'a, P> {
    let notify = |i| Options::new().completer().responder().tag(tag + i);
    let mut batch = Batch::new(remote.peer());
    assert!(batch.is_empty());
    batch
        .put(remote, 0, data, notify(0))
        .put_immediate(remote, 8, 77, notify(1))
        .atomic(remote, 8, ADD, notify(2))
        .notify(notify(3))
        .put(remote, 1, &[9; 3], notify(4));
    assert_eq!(batch.len(), 5);
    batch
}

/// Posts a batch, settling where there is no room.
fn release<F: Fabric>(world: &mut World<F>, batch: &Batch<'_, F::Port>) {
    world.post(|port| port.release(batch));
    world.settle_ok();
}

/// All operations of a batch are posted, in the order in which they were prepared, again each time.
// spec: BATCH-2, BATCH-3, ORD-1, NOTI-12, POST-6
pub fn a_batch_is_posted_in_order<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let data = pattern(16, 64);
    let mut expected = data.clone();
    expected[8..16].copy_from_slice(&82_u64.to_le_bytes());
    expected[1..4].fill(9);
    let batch = of_everything(&remote, &data, 100);
    let mut last = None;
    for _ in 0..20 {
        region.write(0, &[0; 64]);
        let ticket = world.post(|port| port.release(&batch));
        world.settle_ok();
        assert!(ticket > last, "tickets increase");
        last = ticket;
        assert_same(&contents(&region), &expected, &"one after the other");
        let tags: Vec<_> = world.raised().target.iter().map(|note| note.tag).collect();
        assert_eq!(tags, [100, 101, 102, 103, 104]);
    }
    let peer = remote.peer();
    assert_eq!(world.initiator().release(&Batch::new(peer)), Ok(None), "nothing to post");
}

/// Prepared operations have no effect before the batch is posted, and none if it never is.
// spec: BATCH-1
pub fn a_prepared_batch_has_no_effect_before_it_is_posted<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let data = pattern(17, 64);
    let batch = of_everything::<F::Port>(&remote, &data, 0);
    world.settle_ok();
    assert_eq!(contents(&region), [0; 64]);
    drop(batch);
    assert!(world.raised().is_empty());
    assert_eq!(contents(&region), [0; 64]);
}

/// A batch with one operation that faults, or without room for all, posts none.
// spec: BATCH-2, POST-1, POST-2, CAP-6
pub fn a_batch_is_posted_whole_or_not<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let mut stranger = World::open(fabric);
    let foreign = stranger.memory(64).remote;
    let Memory { region, remote, .. } = world.memory(64);
    let (part, _grant) = world.grant(&region, 0..8, Rights::all() - Rights::WRITE);
    let data = pattern(18, 64);
    for fault in [Fault::Bounds, Fault::Alignment, Fault::Rights, Fault::ForeignHandle] {
        let mut batch = of_everything(&remote, &data, 0);
        match fault {
            Fault::Bounds => batch.put_immediate(&remote, 64, 1, Options::new()),
            Fault::Alignment => batch.atomic(&remote, 4, ADD, Options::new()),
            Fault::Rights => batch.put(&part, 0, &[1], Options::new()),
            _ => batch.put(&foreign, 0, &[1], Options::new()),
        };
        assert_eq!(fault_of(world.initiator().release(&batch)), fault);
    }
    assert!(world.raised().is_empty());
    assert_eq!(contents(&region), [0; 64], "none of a faulty batch is posted");
    let batch = of_everything(&remote, &data, 0);
    let mut posted = 0;
    let refused = world.until("no room at the target", |world| {
        // Before the attempt: what ends while it is made makes room as well.
        let peer = world.target_id();
        let settled = world.initiator().is_flushed(peer);
        match world.initiator().release(&batch) {
            Ok(_) => posted += 1,
            Err(refused) => return settled.then_some(refused),
        }
        None
    });
    assert_eq!(refused, PostError::Busy(Busy::RequestLaneFull));
    let raised = world.raised().target.len();
    assert_eq!(raised, posted * 5, "each batch whole, the refused one not at all");
    release(&mut world, &batch);
    assert_eq!(world.raised().target.len(), 5);
}

/// A batch that can never fit is refused for good, without effect.
// spec: BATCH-5, LIM-1
pub fn a_batch_that_never_fits_is_too_long<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(64);
    let mut batch = Batch::new(remote.peer());
    for _ in 0..65 {
        batch.put_immediate(&remote, 0, 1, Options::new());
    }
    let release = |port: &mut F::Port| fault_of(port.release(&batch));
    assert_eq!(release(world.initiator()), Fault::TooLong);
    assert!(world.raised().is_empty());
    assert_eq!(contents(&region), [0; 64]);
}
