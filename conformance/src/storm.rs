//! Storms: everybody asks everybody, and answers are answered, with the smallest buffers there are.
use crate::Executor;
use crate::engine::socket_path;
use crate::fabric::{INITIATOR, TARGET};
use crate::messenger::{Active, Call, MessengerOptions, Messengers};
use crate::port::Port;
use crate::processes::{address, executor, start};
use crate::seed::Dice;
use crate::world::join;
use ayre::ReceiveError;
use ayre::active::Handler;

/// Ports, all connected with each other.
const MEMBERS: u16 = 4;
/// Questions that each asks.
const ASKED: u64 = 400;
/// Most answers to answers.
const DEPTH: u64 = 6;

/// The state of a member.
#[derive(Debug, Default)]
struct Storm {
    /// Messages run.
    run: u64,
    /// Of its own questions, those that have come back.
    ended: u64,
    /// Last number of each member.
    last: [u64; MEMBERS as usize],
}

/// Each question comes back to its sender after the number of hops that it names, while others
/// send, too. Messages of one member to another keep their order, short ones and long ones.
// spec: AM-5, AM-8, AM-9, AM-12, AM-14
pub fn every_question_comes_back<F: Messengers>(fabric: F) {
    let ports = fabric.mesh(MEMBERS);
    let ran: u64 = std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || member::<F>(port));
        let members: Vec<_> = ports.into_iter().map(start).collect();
        members.into_iter().map(join).sum()
    });
    // A question of `left` hops is run `left + 1` times.
    let expected: u64 = (0..u64::from(MEMBERS)).flat_map(questions).map(|left| left + 1).sum();
    assert_eq!(ran, expected);
}

/// The hops of each question of a member, odd so that the last one leads back to who has asked.
fn questions(member: u64) -> impl Iterator<Item = u64> {
    (0..ASKED).map(move |number| (number + member) % (DEPTH / 2) * 2 + 1)
}

/// How many bytes a message brings.
fn len(number: u64, left: u64) -> usize {
    let mixed = (number * 31 + left * 7).wrapping_mul(0x9e37_79b9) as usize;
    if number.is_multiple_of(5) { mixed % 9000 } else { mixed % 120 }
}

// Arguments: hops that are left; who has asked; the question's number there.
fn pass(storm: &mut Storm, call: &mut dyn Call, [left, asker, number]: [u64; 3], payload: &[u8]) {
    storm.run += 1;
    let (len, byte) = (len(number, left), (number + left) as u8);
    assert!(payload.len() == len && payload.iter().all(|found| *found == byte));
    if left == 0 {
        storm.ended += 1;
        return;
    }
    let bytes = vec![(number + left - 1) as u8; self::len(number, left - 1)];
    let pass = Handler::<3>::named("pass");
    call.reply(pass, [left - 1, asker, number], &bytes).expect("within the limit");
}

/// Returns how many messages it has run.
fn member<F: Messengers>(port: F::Port) -> u64 {
    let own = port.rank() as u64;
    let peers: Vec<_> = port.peers().collect();
    let options = MessengerOptions::new().landing(1 << 12);
    let mut messenger = F::Messenger::with_options(port, &options).expect("good limits");
    let handler = messenger.register("pass", pass).expect("a new name");
    let in_order = |storm: &mut Storm, call: &mut dyn Call, [number]: [u64; 1], _: &[u8]| {
        let last = &mut storm.last[call.source().index()];
        assert_eq!(number, *last + 1);
        *last = number;
    };
    let numbered = messenger.register("in order", in_order).expect("a new name");
    let mut storm = Storm::default();
    messenger.sync(&mut storm).expect("all are alive");
    let mut dice = Dice::new(own);
    for (number, left) in (0..).zip(questions(own)) {
        let peer = peers[dice.below(peers.len() as u64) as usize];
        let bytes = vec![(number + left) as u8; len(number, left)];
        let asked = messenger.call(&mut storm, peer, handler, [left, own, number], &bytes);
        asked.expect("the peer is alive");
        for peer in &peers {
            let long = vec![0; if number % 50 == 0 { 5000 } else { 0 }];
            let told = messenger.call(&mut storm, *peer, numbered, [number + 1], &long);
            told.expect("the peer is alive");
        }
    }
    messenger.serve_while(&mut storm, |storm| storm.ended < ASKED).expect("all are alive");
    // Others' questions may still go by way of us.
    messenger.sync(&mut storm).expect("all are alive");
    assert_eq!(messenger.failures().count(), 0);
    assert!(peers.iter().all(|peer| storm.last[peer.index()] == ASKED));
    messenger.into_port().leave().expect("all was sent");
    storm.run
}

/// Runs a function at each of `members` members, with its number. Returns all results.
pub(crate) fn all<F: Messengers, S: Default, R: Send>(
    fabric: F,
    members: u16,
    run: impl Fn(&mut F::Messenger<S>, usize) -> R + Sync,
) -> Vec<R> {
    let run = &run;
    let one = move |port: F::Port| {
        let own = port.rank();
        let mut member = F::Messenger::new(port);
        let result = run(&mut member, own);
        // A member that has gone would be a dead one to those who are still at it.
        member.sync(&mut S::default()).expect("nothing but deaths, which it survives");
        result
    };
    std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || one(port));
        let members: Vec<_> = fabric.mesh(members).into_iter().map(start).collect();
        members.into_iter().map(join).collect()
    })
}

/// Processes that are killed, each with messages of all lengths under way.
const KILLS: u64 = 12;

/// A messenger of the engine.
fn engines<S>(port: ayre::Port) -> <Executor as Messengers>::Messenger<S> {
    Active::new(port)
}

/// Kills a process while it sends and asks. All its messages that have come are whole and in order.
/// Its number then goes to another process, whose names are announced anew.
// spec: AM-3, AM-5, AM-7, AM-11, INJ-6, LIFE-18
pub fn a_killed_sender_leaves_only_whole_messages_in_order(
    executor: Executor,
    test_of_child: &str,
) {
    let mut port = executor.open(TARGET.0);
    let path = socket_path();
    port.listen(&path).expect("a socket path");
    let mut messenger = engines(port);
    let number = |next: &mut u64, call: &mut dyn Call, [number]: [u64; 1], payload: &[u8]| {
        assert_eq!((number, payload.len()), (*next, len(number, 0)));
        assert!(payload.iter().all(|found| *found == number as u8));
        *next += 1;
        // Kept for a process that may be gone.
        let _ = call.reply(Handler::<0>::named("answer"), [], payload);
    };
    messenger.register("number", number).expect("a new name");
    for kill in 0..KILLS {
        let mut child = start(test_of_child, &path, executor);
        assert_eq!(messenger.port().accept().expect("the child connects"), INITIATOR);
        let mut next = 0;
        let served = messenger.serve_while(&mut next, |next| *next < 100 + 37 * kill);
        served.expect("the child is alive");
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        let died = messenger.serve_while(&mut next, |_| true);
        assert_eq!(died, Err(ReceiveError::PeerDied(INITIATOR)), "after {kill} kills");
        messenger.disconnect(INITIATOR).expect("it is known");
        assert_eq!(messenger.failures().count(), 0);
    }
    std::fs::remove_file(&path).expect("the socket is there");
}

/// The child's part: calls until it is killed. Returns at once where nobody has started it so.
///
/// # Panics
/// Where the parent does not answer.
pub fn child() {
    let Some(address) = address() else { return };
    let mut port = executor().open(INITIATOR.0);
    assert_eq!(port.connect(address).expect("the parent accepts"), TARGET);
    let mut messenger = engines(port);
    messenger.register("answer", |_: &mut (), _, [], _| ()).expect("a new name");
    for number in 0.. {
        let payload = vec![number as u8; len(number, 0)];
        let handler = Handler::<1>::named("number");
        let called = messenger.call(&mut (), TARGET, handler, [number], &payload);
        called.expect("the parent is alive");
    }
}
