//! Bounds: what is used up is Busy, with its reason and without effect, and comes back.
use crate::data::{assert_same, contents, pattern};
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::{FIRST, ManyToOne};
use crate::port::{Batch, Counted, Grant, Options, Port, Region, RegionOptions, RemoteRegion};
use crate::world::{Memory, World, next_message, take_notifications};
use ayre::memory::Ticket;
use ayre::{Busy, Fault, PostError, Rights, SetupError};

/// More than any limit of the table.
const MANY: u32 = 100_000;

fn put<P: Port>(port: &mut P, remote: &P::RemoteRegion, value: u32, options: Options) -> Posted {
    port.put(remote, 0, &value.to_le_bytes(), options.tag(value))
}

type Posted = Result<Ticket, PostError>;

/// With unread notifications up to the bound of its own queue, a port can post nothing; none is
/// lost, and reading them makes room.
// spec: NOTI-8, NOTI-10, POST-1, POST-9, LIM-1
pub fn own_notifications_are_bounded<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    for _ in 0..3 {
        let mut posted = 0;
        while posted < MANY {
            match put(world.initiator(), &remote, posted, Options::new().requester()) {
                Ok(_) => posted += 1,
                Err(PostError::Busy(busy)) => {
                    let peer = world.target_id();
                    let settled = world.initiator().is_flushed(peer);
                    if settled && busy == Busy::NotificationsFull {
                        break;
                    }
                    world.settle();
                }
                Err(PostError::Fault(fault)) => panic!("{fault}"),
            }
        }
        assert!(posted < MANY, "the queue is bounded");
        world.settle_ok();
        assert_eq!(contents(&region)[..4], (posted - 1).to_le_bytes(), "the refused has no effect");
        let refused = put(world.initiator(), &remote, posted, Options::new());
        assert_eq!(refused, Err(PostError::Busy(Busy::NotificationsFull)), "its fault needs room");
        let raised = world.raised();
        let tags: Vec<_> = raised.initiator.iter().map(|note| note.tag).collect();
        assert_eq!(tags, (0..posted).collect::<Vec<_>>(), "each once");
        world.post(|port| put(port, &remote, 7, Options::new()));
        world.settle_ok();
    }
}

/// Unread notifications at the target use up the initiator's room there; operations that raise
/// none go on, nothing is lost, and reading makes room.
// spec: NOTI-9, NOTI-10, NOTI-11, POST-1, POST-9
pub fn unread_notifications_refuse_more<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    for _ in 0..3 {
        let mut posted = 0;
        let refused = world.until("no room at the target", |world| {
            let peer = world.target_id();
            let settled = world.initiator().is_flushed(peer);
            match put(world.initiator(), &remote, posted, Options::new().completer()) {
                Ok(_) => posted += 1,
                Err(refused) => {
                    return (settled && posted > 0).then_some(refused);
                }
            }
            None
        });
        assert_eq!(refused, PostError::Busy(Busy::RequestLaneFull));
        assert_eq!(contents(&region)[..4], (posted - 1).to_le_bytes(), "the refused has no effect");
        world.post(|port| put(port, &remote, MANY, Options::new()));
        world.settle_ok();
        assert_eq!(contents(&region)[..4], MANY.to_le_bytes(), "one without a notification");
        let tags: Vec<_> = world.raised().target.iter().map(|note| note.tag).collect();
        assert_eq!(tags, (0..posted).collect::<Vec<_>>(), "each once");
    }
}

/// Notifications of one peer that nobody reads keep another's from nothing.
// spec: NOTI-11, PROG-4, CAP-10
pub fn one_peers_notifications_stop_no_other<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let mut unread = 0;
    for _ in 0..1000 {
        if ports.initiators[0].notify(TARGET, Options::new().tag(1)).is_ok() {
            unread += 1;
        }
        ports.target.progress();
        ports.initiators[0].progress();
    }
    assert!(unread < 1000, "the room of one peer is bounded");
    let second = ports.initiators[1].notify(TARGET, Options::new().tag(2));
    second.expect("room of its own");
    let mut seen = [0, 0, 0];
    ports.until("all notifications", |ports| {
        for note in take_notifications(&mut ports.target) {
            seen[note.tag as usize] += 1;
        }
        (seen == [0, unread, 1]).then_some(())
    });
}

/// Operations that have not ended are bounded; what was refused had no effect.
// spec: POST-1, POST-4, POST-9, LIM-1
pub fn operations_under_way_are_bounded<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(8);
    for _ in 0..20 {
        let mut posted = 0;
        let busy = loop {
            match put(world.initiator(), &remote, posted, Options::new()) {
                Ok(_) => posted += 1,
                Err(error) => break error,
            }
            assert!(posted < MANY, "the lane is bounded");
        };
        let reasons = [Busy::RequestLaneFull, Busy::TooManyOutstanding].map(PostError::Busy);
        assert!(reasons.contains(&busy), "{busy}");
        assert!(posted > 0, "a connection without anything under way has room");
        world.settle_ok();
        assert_eq!(contents(&region)[..4], (posted - 1).to_le_bytes());
    }
}

/// An initiator that takes no answers can have a bounded number of operations under way, whatever
/// the target has executed. For a target that only its own calls serve.
// spec: POST-9, LIM-1
pub fn answers_not_taken_are_bounded<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { remote, .. } = world.memory(8);
    let mut posted = 0;
    let busy = loop {
        match put(world.initiator(), &remote, posted, Options::new()) {
            Ok(_) => posted += 1,
            Err(PostError::Busy(Busy::RequestLaneFull)) => world.target().progress(),
            Err(error) => break error,
        }
        assert!(posted < MANY, "operations under way are bounded");
    };
    assert_eq!(busy, PostError::Busy(Busy::TooManyOutstanding));
    world.settle_ok();
    world.post(|port| put(port, &remote, posted, Options::new()));
    world.settle_ok();
}

/// The table of grants is bounded; a slot that a revocation frees can be used again.
// spec: LIM-1, KEY-1
pub fn the_table_is_bounded<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let region = world.target().alloc(64, RegionOptions::new()).expect("memory is there");
    let mut grants = vec![];
    let refused = loop {
        let name = grants.len() as u64;
        match world.target().share(initiator, &region, 0..64, Rights::all(), name) {
            Ok(grant) => grants.push(grant),
            Err(error) => break error,
        }
        drop(world.initiator().accept_region(target, name).expect("it was shared"));
        assert!(grants.len() < MANY as usize, "the table is bounded");
    };
    assert!(matches!(refused, SetupError::Exhausted(_)), "{refused}");
    let mut keys: Vec<_> = grants.iter().map(|grant| (grant.key().slot, grant.key())).collect();
    keys.sort_by_key(|(slot, _)| *slot);
    keys.dedup_by_key(|(slot, _)| *slot);
    assert_eq!(keys.len(), grants.len(), "each grant has a slot of its own");
    world.target().revoke(grants.swap_remove(17)).expect("a live grant");
    let (remote, _grant) = world.grant(&region, 0..64, Rights::all());
    assert!(keys.iter().all(|(_, key)| *key != remote.key()), "a key names one grant");
    let data = pattern(14, 64);
    world.post(|port| port.put(&remote, 0, &data, Options::new()));
    world.settle_ok();
    assert_same(&contents(&region), &data, &"through the slot that was freed");
}

/// Two ports that post at each other without pause, and only read notifications, both get through:
/// a call that is Busy makes the progress that the other one waits for.
// spec: POST-4, PROG-2
pub fn busy_ports_get_through<F: Fabric>(fabric: F) {
    const COUNT: u32 = 2000;
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let there = world.memory(8);
    let region = world.own_memory(8);
    world.initiator().share(target, &region, 0..8, Rights::all(), 1).expect("a grant");
    let back = world.target().accept_region(initiator, 1).expect("it was shared");
    let mut posted = [0, 0];
    for _ in 0..MANY {
        if put(world.initiator(), &there.remote, posted[0], Options::new()).is_ok() {
            posted[0] += 1;
        }
        if put(world.target(), &back, posted[1], Options::new()).is_ok() {
            posted[1] += 1;
        }
    }
    assert!(posted[0] > COUNT && posted[1] > COUNT, "both get through, not {posted:?}");
}

/// Polls serve every peer and take in every peer's answers, each in its turn, while one of them
/// never pauses. A message is found in its turn, with the commands before it.
// spec: NOTI-13, PROG-2, PROG-4, ORD-3
pub fn polls_serve_every_peer<F: Fabric>(fabric: F) {
    const PEERS: u16 = 5;
    let mut ports = ManyToOne::open(fabric, PEERS);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let (ids, remotes) = (ports.ids(), ports.share(&region));
    let turns = usize::from(FIRST + PEERS);
    for round in 1..=100_u64 {
        let ManyToOne { target, initiators, .. } = &mut ports;
        let (flooding, others) = initiators.split_first_mut().expect("there are some");
        let mut flood = |tag| while put(flooding, &remotes[0], tag, Options::new()).is_ok() {};
        for (index, port) in (1..).zip(&mut *others) {
            let at = index as u64 * 8;
            port.put_immediate(&remotes[index], at, round, Options::new()).expect("room");
            target.notify(ids[index], Options::new()).expect("room");
            assert_eq!(take_notifications(port).len(), 1);
        }
        for turn in 0..turns {
            flood(turn as u32);
            assert_eq!(target.poll_notification(), None, "nobody asked for one");
        }
        assert!((1..5).all(|index| region.load(index * 8) == round), "served in round {round}");
        assert!(ids[1..].iter().all(|id| target.is_flushed(*id)), "answered in round {round}");
        for (index, port) in (1..).zip(others) {
            let at = index as u64 * 8;
            port.put_immediate(&remotes[index], at, !round, Options::new()).expect("room");
            port.send(TARGET, index as u32, &[1]).expect("room");
        }
        let mut nothing = 0;
        for _ in 1..PEERS {
            let message = loop {
                flood(0);
                match target.try_recv(&mut [0]).expect("it fits") {
                    Some(message) => break message,
                    None => nothing += 1,
                }
            };
            assert_eq!(region.load(message.tag as usize * 8), !round, "what came before it");
        }
        assert!(nothing <= turns, "found after {nothing} polls that found nothing");
    }
}

/// Refusals and faults are counted, each by its reason.
// spec: ERR-9
pub fn refusals_and_faults_are_counted<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { remote, grant, .. } = world.memory(8);
    let target = world.target_id();
    assert_eq!(world.initiator().count(Counted::Busy(Busy::MessageLaneFull)), 0);
    while world.initiator().send(target, 0, &[1; 100]).is_ok() {}
    let port = world.initiator();
    assert_eq!(port.count(Counted::Busy(Busy::MessageLaneFull)), 1);
    assert_eq!(port.count(Counted::Busy(Busy::QueueFull)), 0);
    assert_eq!(port.count(Counted::Malformed), 0);
    world.target().revoke(grant).expect("a live grant");
    for _ in 0..3 {
        world.post(|port| put(port, &remote, 1, Options::new()));
    }
    world.settle();
    let port = world.initiator();
    assert_eq!(port.count(Counted::Fault(Fault::StaleKey)), 3);
    assert_eq!(port.count(Counted::Fault(Fault::UnknownKey)), 0);
}

/// With two peers that have all their notifications unread, a third one's operations are executed,
/// also where the program of the target makes no call.
// spec: NOTI-11, PROG-2, PROG-4
pub fn unread_notifications_delay_no_operation<F: Fabric>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 3);
    let region = ports.target.alloc(64, RegionOptions::new()).expect("memory is there");
    let remotes = ports.share(&region);
    for port in &mut ports.initiators[..2] {
        let mut refused = 0;
        while refused < 1000 {
            let posted = port.notify(TARGET, Options::new());
            refused += u32::from(posted.is_err());
            port.progress();
        }
    }
    for round in 0..100_u64 {
        ports.initiators[2].put_immediate(&remotes[2], 0, round, Options::new()).expect("room");
        ports.until("an operation without notifications", |ports| {
            ports.initiators[2].is_flushed(TARGET).then_some(())
        });
        assert_eq!(region.load(0), round);
    }
}

/// The offers to a peer that accepts none are bounded, whether it makes progress or not; the
/// connection goes on.
// spec: LIM-1, CAP-3
pub fn offers_to_a_peer_that_does_not_accept_are_bounded<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let (initiator, target) = (world.initiator_id(), world.target_id());
    let region = world.target().alloc(64, RegionOptions::new()).expect("memory is there");
    let shared = (0..u64::from(MANY))
        .map(|name| world.target().share(initiator, &region, 0..64, Rights::all(), name))
        .position(|grant| grant.is_err());
    assert!(shared.is_some_and(|shared| shared >= 64), "it fails after {shared:?}");
    (0..10).for_each(|_| world.serve());
    let mut queues = vec![];
    for name in 0..2000 {
        let mut queue = world.target().create_queue(1).expect("a queue");
        if world.target().share_queue(initiator, &mut queue, name).is_err() {
            break;
        }
        queues.push(queue);
        world.serve();
    }
    assert!(world.initiator().is_alive(target) && world.target().is_alive(initiator));
    let remote = world.initiator().accept_region(target, 3).expect("it was shared");
    world.post(|port| port.put_immediate(&remote, 0, 5, Options::new()));
    world.settle_ok();
    assert_eq!(region.load(0), 5);
}

/// Operations that fit the lane are posted at once, whether the target makes progress or not.
// spec: POST-3, POST-8, PUT-4, GET-3, BATCH-4
pub fn posting_does_not_wait<F: Fabric>(fabric: F) {
    let mut world = World::open(fabric);
    let Memory { region, remote, .. } = world.memory(4096);
    let (sink, data) = (world.own_memory(4096), pattern(19, 1000));
    let target = world.target_id();
    let mut batch = Batch::new(target);
    batch.put_immediate(&remote, 2000, 1, Options::new()).notify(Options::new());
    batch.put(&remote, 3000, &data[..700], Options::new());
    for _ in 0..20 {
        let port = world.initiator();
        port.put(&remote, 0, &data, Options::new()).expect("an empty lane");
        world.settle_ok();
        let port = world.initiator();
        port.get(&remote, 0, sink.slice(0..4096), Options::new()).expect("an empty lane");
        port.release(&batch).expect("room for three");
        port.send(target, 0, &[1]).expect("an empty lane");
        world.settle_ok();
        assert_same(&contents(&sink)[..1000], &data, &"a get into a region");
        assert_eq!(world.raised().target.len(), 1);
        // A message is no operation whose end has been waited for: over a network it may be on its
        // way still.
        world.until("the message comes", |world| next_message(world.target(), &mut [0; 8]));
    }
    assert_eq!(region.load(2000), 1);
}
