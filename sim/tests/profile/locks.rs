//! Lock spaces, with and without parking.
use super::*;

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
        let profile = Profile { locks, units: None, ..Profile::extoll() };
        let mut cluster = star(nodes + 1, profile);
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
