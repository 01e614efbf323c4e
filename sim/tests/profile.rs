//! Nodes of the protocol behind interfaces that differ from it.
use ayre_proto::units::PeerId;
use ayre_sim::cluster::{
    Cluster, ClusterError, Event, InterfaceTimes, Lock, LockRequest, Locks, Mailboxes, Profile,
    ProfileError, Refusal,
};
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{NodeQueue, Parameters, Readout, Switching};
use ayre_sim::random::Random;
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;

/// 10 GB/s, 8 bytes at a time, 20 ns of wire.
const LINK: LinkTiming = LinkTiming { phit: Time(800), width: 8, wire: Time::from_nanos(20) };

fn parameters(nodes: u32) -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: LINK.wire,
        pipeline: Time::from_nanos(40),
        injection: Time::ZERO,
        credit: Time::from_nanos(20),
        channels: nodes as u16,
        buffer: 8192,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    }
}

/// Nodes at one switch, the first one connected with all others.
fn star(nodes: u32, profile: Profile) -> Cluster {
    let topology = Topology::star(nodes).expect("a possible star");
    let cluster =
        Cluster::with_profile(&topology, parameters(nodes), InterfaceTimes::PCIE, profile);
    let mut cluster = cluster.expect("possible parameters");
    (1..nodes).for_each(|node| cluster.connect(0, node));
    cluster
}

/// Lets time go on to a time, and looks after each step.
fn advance(cluster: &mut Cluster, to: Time, mut look: impl FnMut(&mut Cluster)) {
    while cluster.now() < to {
        cluster.pass(to - cluster.now());
        look(cluster);
    }
}

/// Lets time go on until links have nothing to say for a while.
fn settle(cluster: &mut Cluster) {
    while cluster.next_time().is_some_and(|at| at - cluster.now() < Time::from_nanos(100_000)) {
        cluster.step();
    }
}

fn mailboxes(slots: u32) -> Profile {
    let mailbox = Profile::extoll().mailbox.map(|mailbox| Mailboxes { slots, ..mailbox });
    Profile { mailbox, ..Profile::extoll() }
}

const NODE: PeerId = PeerId(0);

#[test]
fn a_target_that_reads_nothing_holds_no_sender_and_loses_what_finds_no_room() {
    let mut cluster = star(2, mailboxes(100));
    let mut held = 0;
    for number in 0..5_000_u32 {
        while cluster.send(1, NODE, 3, &number.to_le_bytes()).is_err() {
            held += 1;
            assert!(held < 1_000_000 && cluster.step(), "only what is on its way holds it up");
        }
    }
    settle(&mut cluster);
    let counts = cluster.mailbox(0).expect("there is one").counts();
    assert_eq!((counts.received, counts.discarded), (100, 4_900));
    // The first ones are kept, in order. Their slots are free again.
    for number in 0..100_u32 {
        let message = cluster.receive(0, PeerId(1)).expect("it was kept");
        assert_eq!((message.tag, &message.bytes[..]), (3, &number.to_le_bytes()[..]));
    }
    assert_eq!(cluster.receive(0, PeerId(1)), None);
    // The protocol alone holds the sender for good, with the lines of its lane.
    let mut cluster = star(2, Profile::default());
    let sent = (0..5_000).filter(|_| {
        settle(&mut cluster);
        cluster.send(1, NODE, 3, b"word").is_ok()
    });
    assert_eq!(sent.count(), 64);
}

#[test]
fn a_disabled_mailbox_discards_and_messages_wait_behind_those_of_others() {
    let mut cluster = star(3, mailboxes(8));
    cluster.mailbox_mut(0).expect("there is one").is_enabled = false;
    assert_eq!(cluster.send(1, NODE, 1, b"lost"), Ok(()));
    settle(&mut cluster);
    cluster.mailbox_mut(0).expect("there is one").is_enabled = true;
    assert_eq!(cluster.send(2, NODE, 1, b"first"), Ok(()));
    settle(&mut cluster);
    assert_eq!(cluster.send(1, NODE, 1, b"second"), Ok(()));
    settle(&mut cluster);
    let counts = cluster.mailbox(0).expect("there is one").counts();
    assert_eq!((counts.received, counts.discarded), (2, 1));
    assert_eq!(cluster.receive(0, PeerId(1)), None, "another one's is before it");
    for (source, bytes) in [(2, &b"first"[..]), (1, b"second")] {
        let message = cluster.receive(0, PeerId(source)).expect("it was kept");
        assert_eq!(message.bytes, bytes);
    }
}

#[test]
fn an_interrupt_wakes_a_program_later_than_a_look_finds_the_message() {
    let mut cluster = star(2, mailboxes(8));
    let mailbox = |cluster: &mut Cluster, interrupts| {
        cluster.mailbox_mut(0).expect("there is one").interrupts = interrupts;
    };
    let mut times = Vec::new();
    for interrupts in [true, false] {
        mailbox(&mut cluster, interrupts);
        settle(&mut cluster);
        assert_eq!(cluster.send(1, NODE, 1, b"wake up"), Ok(()));
        let (mut written, mut woken) = (None, None);
        let end = cluster.now() + Time::from_nanos(10_000);
        advance(&mut cluster, end, |cluster| {
            let has_mail = cluster.mailbox(0).is_some_and(|mailbox| mailbox.peek().is_some());
            written = written.or_else(|| has_mail.then_some(cluster.now()));
            let event = cluster.event(0);
            let is_woken = event == Some(Event::Interrupt);
            woken = woken.or_else(|| is_woken.then_some(cluster.now()));
        });
        assert!(cluster.receive(0, PeerId(1)).is_some());
        times.push((written.expect("it has come"), woken));
    }
    let interrupt = Profile::extoll().mailbox.expect("it has mailboxes").interrupt;
    assert_eq!(times[0].1, Some(times[0].0 + interrupt));
    assert_eq!(times[1].1, None);
    assert_eq!(cluster.mailbox(0).map(|mailbox| mailbox.counts().interrupts), Some(1));
}

/// Senders at random, and a program that takes a random time for each message, are a queue of one
/// server with `size` places. That queue, M/M/1/K, loses the share `(1-r) r^K / (1-r^(K+1))` of
/// its customers. Error: 4 %, some two standard deviations of this number of messages.
#[test]
fn a_mailbox_under_random_traffic_loses_what_a_bounded_queue_loses() {
    /// The time that a program takes for a message, in the mean; long beside that of the network.
    const READING: f64 = 50e6;
    for (load, size, messages) in [(0.5, 3, 60_000_u32), (0.9, 8, 60_000), (1.5, 4, 20_000)] {
        let mut cluster = star(5, mailboxes(size));
        let mut reading = Random::new(1, 0);
        let mut senders: Vec<_> = (1..5).map(|node| Random::new(1, node)).collect();
        let gap = |random: &mut Random| Time((random.exponential() * READING * 4.0 / load) as u64);
        let mut next: Vec<_> = senders.iter_mut().map(gap).collect();
        // When the program has read the message that it is at.
        let mut done: Option<Time> = None;
        for _ in 0..messages {
            let which = (0..4).min_by_key(|which| next[*which]).expect("there are four");
            while cluster.now() < next[which] {
                if done.is_some_and(|done| done <= cluster.now()) {
                    let mail = cluster.mailbox_mut(0).and_then(|mailbox| mailbox.read());
                    assert!(mail.is_some(), "it has read one");
                    done = None;
                }
                let has_mail = cluster.mailbox(0).is_some_and(|mailbox| mailbox.peek().is_some());
                if done.is_none() && has_mail {
                    let spent = Time((reading.exponential() * READING) as u64);
                    done = Some(cluster.now() + spent);
                }
                let until = done.map_or(next[which], |done| done.min(next[which]));
                cluster.pass(until - cluster.now());
            }
            let node = which as u32 + 1;
            assert_eq!(cluster.send(node, NODE, 1, b"a message"), Ok(()));
            next[which] += gap(&mut senders[which]);
        }
        let counts = cluster.mailbox(0).expect("there is one").counts();
        let lost = counts.discarded as f64 / (counts.discarded + counts.received) as f64;
        let power = |count: u32| (0..count).fold(1.0, |product, _| product * load);
        let expected = (1.0 - load) * power(size) / (1.0 - power(size + 1));
        assert!((lost / expected - 1.0).abs() < 0.04, "{load}: {lost}, {expected}");
    }
}

/// Loops of nodes that take the lock of node 0, keep it for a time, and give it back.
struct Contest {
    /// How often each node has had the lock.
    had: Vec<u32>,
    /// Requests and answers that have passed.
    messages: u64,
    /// The time that all nodes together have waited for the lock.
    waited: Time,
    /// The greatest number of times that others had it while a node waited.
    passed: u32,
}

const LOCK: Lock = Lock { process: 1, number: 7 };
const TAKE: LockRequest = LockRequest { lock: LOCK, limit: 0, addend: 1 };
const GIVE: LockRequest = LockRequest { lock: LOCK, limit: i32::MAX, addend: -1 };

/// The state of a node in a contest, with the number of its last request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Asks { number: u32, since: Time, others: u32 },
    Holds { until: Time },
    Gives { number: u32 },
}

impl Contest {
    fn run(nodes: u32, places: usize, kept: Time, end: Time) -> Self {
        let locks = Some(Locks { processes: 2, places });
        let mut cluster = star(nodes + 1, Profile { locks, ..Profile::extoll() });
        settle(&mut cluster);
        let begin = cluster.now();
        let mut contest =
            Self { had: vec![0; nodes as usize], messages: 0, waited: Time::ZERO, passed: 0 };
        let ask = |cluster: &mut Cluster, node| cluster.lock(node, NODE, TAKE).expect("room");
        let mut stages: Vec<_> = (1..=nodes)
            .map(|node| Stage::Asks { number: ask(&mut cluster, node), since: begin, others: 0 })
            .collect();
        contest.messages = u64::from(nodes);
        while cluster.now() < begin + end {
            let ends = stages.iter().filter_map(|stage| match stage {
                Stage::Holds { until } => Some(*until),
                _ => None,
            });
            let until = ends.min().unwrap_or(begin + end);
            cluster.pass(until - cluster.now());
            for node in 1..=nodes {
                contest.turn(&mut cluster, node, kept, &mut stages);
            }
        }
        contest
    }

    fn turn(&mut self, cluster: &mut Cluster, node: u32, kept: Time, stages: &mut [Stage]) {
        let (now, at) = (cluster.now(), node as usize - 1);
        if let Stage::Holds { until } = stages[at]
            && until <= now
        {
            let number = cluster.lock(node, NODE, GIVE).expect("room");
            self.messages += 1;
            stages[at] = Stage::Gives { number };
        }
        let Some(Event::Lock(NODE, answer)) = cluster.event(node) else { return };
        self.messages += 1;
        match stages[at] {
            Stage::Asks { number, since, others } if answer.success => {
                assert_eq!((answer.number, answer.value), (number, 1));
                let holds = |stage: &Stage| matches!(stage, Stage::Holds { .. });
                assert!(!stages.iter().any(holds), "one has it");
                self.had[at] += 1;
                self.waited += now - since;
                self.passed = self.passed.max(others);
                for stage in stages.iter_mut() {
                    if let Stage::Asks { others, .. } = stage {
                        *others += 1;
                    }
                }
                stages[at] = Stage::Holds { until: now + kept };
            }
            Stage::Asks { since, others, .. } => {
                let number = cluster.lock(node, NODE, TAKE).expect("room");
                self.messages += 1;
                stages[at] = Stage::Asks { number, since, others };
            }
            Stage::Gives { number } => {
                assert_eq!((answer.number, answer.value, answer.success), (number, 0, true));
                let number = cluster.lock(node, NODE, TAKE).expect("room");
                self.messages += 1;
                stages[at] = Stage::Asks { number, since: now, others: 0 };
            }
            Stage::Holds { .. } => panic!("nobody asks while it holds the lock"),
        }
    }
}

/// A turn of the lock needs four messages: a request and an answer to take it, and to give it back.
/// With parking there are no others, but for those of turns that have not ended. Without parking a
/// node that waits asks once in each round trip, so there are two more in each.
#[test]
fn parking_saves_the_messages_of_those_that_ask_again_and_makes_turns_fair() {
    let (kept, end) = (Time::from_nanos(20_000), Time::from_nanos(4_000_000));
    let alone = Contest::run(1, 0, kept, end);
    // A turn alone is two round trips and the time of holding.
    let trip = (end.0 as f64 / f64::from(alone.had[0]) - kept.0 as f64) / 2.0;
    for nodes in [2, 4, 7] {
        let parked = Contest::run(nodes, nodes as usize, kept, end);
        let turns: u32 = parked.had.iter().sum();
        assert!((4 * turns).abs_diff(parked.messages as u32) <= 4 * nodes, "{nodes}: {turns}");
        // Each turn is a time of holding, and a trip in which the lock changes hands.
        let expected = end.0 as f64 / (kept.0 as f64 + trip);
        assert!((f64::from(turns) / expected - 1.0).abs() < 0.03, "{nodes}: {turns}, {expected}");
        let [least, most] = [parked.had.iter().min(), parked.had.iter().max()];
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{nodes}");
        assert!(parked.passed < nodes, "nobody has it twice while another one waits");

        let again = Contest::run(nodes, 0, kept, end);
        let turns: u32 = again.had.iter().sum();
        let asked = again.messages as f64 - 4.0 * f64::from(turns);
        let expected = 2.0 * again.waited.0 as f64 / trip;
        assert!((asked / expected - 1.0).abs() < 0.1, "{nodes}: {asked}, {expected}");
        assert!(again.messages > 2 * parked.messages, "{nodes}");
    }
}

#[test]
fn messages_and_locks_beyond_the_profile_are_refused_and_nothing_happens() {
    let mut cluster = star(2, Profile::extoll());
    let long = cluster.send(1, NODE, 1, &[0; 65]);
    assert_eq!(long, Err(Refusal::Message { len: 65, longest: 64 }));
    assert_eq!(cluster.send(1, NODE, u32::MAX, b"word"), Err(Refusal::Tag(u32::MAX)));
    for lock in [Lock { process: 32, number: 0 }, Lock { process: 0, number: 1024 }] {
        let asked = cluster.lock(1, NODE, LockRequest { lock, ..TAKE });
        assert_eq!(asked, Err(Refusal::Lock { lock, processes: 32 }));
    }
    settle(&mut cluster);
    assert_eq!(cluster.mailbox(0).map(|mailbox| mailbox.counts()), Some(Default::default()));
    assert_eq!(cluster.send(1, NODE, 1, &[7; 64]), Ok(()));
    settle(&mut cluster);
    assert_eq!(cluster.receive(0, PeerId(1)).map(|message| message.bytes), Some(vec![7; 64]));
    let mut plain = star(2, Profile::default());
    let asked = plain.lock(1, NODE, TAKE);
    assert_eq!(asked, Err(Refusal::Lock { lock: LOCK, processes: 0 }));
}

#[test]
fn a_node_asks_its_own_lock_unit_by_its_interface() {
    let mut cluster = star(2, Profile::extoll());
    cluster.connect_loopback(1);
    let number = cluster.lock(1, PeerId(1), TAKE).expect("room");
    settle(&mut cluster);
    let Some(Event::Lock(PeerId(1), answer)) = cluster.event(1) else { panic!("an answer") };
    assert_eq!((answer.number, answer.value, answer.success), (number, 1, true));
    assert_eq!(cluster.locks(1).word(LOCK), Some(1));
    assert_eq!(cluster.locks(0).word(LOCK), Some(0));
}

#[test]
fn an_impossible_profile_is_an_error() {
    let topology = Topology::star(2).expect("a possible star");
    let made = |profile| {
        let times = InterfaceTimes::PCIE;
        Cluster::with_profile(&topology, parameters(2), times, profile).map(|_| ())
    };
    let locks = Profile { mailbox: None, ..Profile::extoll() };
    assert!(matches!(made(locks), Err(ClusterError::Profile(ProfileError::Locks))));
    let slots = Err(ProfileError::Slots { slots: 1, longest: 64 });
    assert_eq!(mailboxes(1).check(), slots);
    assert!(made(mailboxes(2)).is_ok());
}
