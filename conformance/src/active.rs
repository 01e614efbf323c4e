//! Active messages: handlers that run with what was sent, whatever else goes on.
use crate::fabric::{Fabric, TARGET};
use crate::many_to_one::ManyToOne;
use crate::messenger::{Active, Call, MessengerOptions, Messengers};
use crate::port::{Options, Port, Region};
use crate::seed::Dice;
use crate::world::{ROUNDS, World, insist};
use ayre::active::{ARGUMENTS_MAX, DropCause, DroppedCall, Handler};
use ayre::{Busy, Fault, PeerId, PostError, ReceiveError};
use std::sync::Mutex;
use std::thread::yield_now;

/// Memory of a fabric's ports.
type RegionOf<F> = <<F as Fabric>::Port as Port>::Region;

/// The runs of a handler: arguments and payload.
type Seen = Vec<(Vec<u64>, Vec<u8>)>;

/// A messenger at each end.
pub(crate) struct Pair<F: Messengers, S> {
    fabric: F,
    pub(crate) near: F::Messenger<S>,
    pub(crate) far: F::Messenger<S>,
    pub(crate) at_near: S,
    pub(crate) at_far: S,
    pub(crate) near_id: PeerId,
    pub(crate) far_id: PeerId,
}

impl<F: Messengers, S: Default + Send> Pair<F, S> {
    pub(crate) fn open(fabric: F) -> Self {
        Self::with_options(fabric, MessengerOptions::new())
    }

    pub(crate) fn with_options(fabric: F, options: MessengerOptions) -> Self {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (near, far) = world.split();
        let new = |port| F::Messenger::with_options(port, &options).expect("good limits");
        let (near, far) = (new(near), new(far));
        let (at_near, at_far) = (S::default(), S::default());
        Self { fabric, near, far, at_near, at_far, near_id, far_id }
    }

    /// Polls both ends until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for round in 0..ROUNDS {
            if done(self) {
                return;
            }
            self.far.poll(&mut self.at_far);
            self.near.poll(&mut self.at_near);
            self.fabric.step(round);
        }
        let lives =
            [self.near.port().is_alive(self.far_id), self.far.port().is_alive(self.near_id)];
        panic!("waited in vain: {what}; whether they know each other alive: {lives:?}");
    }

    /// Posts a message of the near end's; the far end polls meanwhile. Where one thread has both
    /// ends, it is a short one.
    fn send<const N: usize>(&mut self, handler: Handler<N>, arguments: [u64; N], payload: &[u8]) {
        if self.fabric.traits().is_one_thread {
            return self.until("room", |pair| {
                let sent = pair.near.try_call(pair.far_id, handler, arguments, payload);
                assert!(!matches!(sent, Err(PostError::Fault(_))), "{sent:?}");
                sent.is_ok()
            });
        }
        let Self { near, far, at_near, at_far, far_id, .. } = self;
        let mut sent = false;
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| near.call(at_near, *far_id, handler, arguments, payload));
            while !sending.is_finished() {
                far.poll(at_far);
                yield_now();
            }
            sent = sending.join().expect("it does not panic").is_ok();
        });
        assert!(sent, "the peer is alive");
    }
}

fn keep<const N: usize>(seen: &mut Seen, _: &mut dyn Call, arguments: [u64; N], payload: &[u8]) {
    seen.push((arguments.to_vec(), payload.to_vec()));
}

pub(crate) fn bytes(dice: &mut Dice, len: usize) -> Vec<u8> {
    let first = dice.below(256);
    (0..len).map(|at| (first as usize + at * 7 + at / 251) as u8).collect()
}

/// Arguments and payloads of all sizes arrive whole, once, and in the order of sending: short ones
/// do not overtake long ones.
// spec: AM-5, AM-12, AM-13
pub fn handlers_receive_all_arguments_and_payloads_in_order<F: Messengers>(fabric: F) {
    let mut pair = Pair::<F, Seen>::open(fabric);
    let none = pair.far.register::<0>("none", keep::<0>).expect("a new name");
    let one = pair.far.register::<1>("one", keep::<1>).expect("a new name");
    let most = pair.far.register::<ARGUMENTS_MAX>("most", keep::<8>).expect("a new name");
    let mut dice = Dice::new(47);
    let mut sent: Seen = vec![];
    let lens = [0, 1, 7, 8, 40, 47, 48, 49, 55, 56, 57, 959, 960, 961, 1016, 1017, 1024, 1025];
    let long = [4096, 32_767, 32_768, 32_769, 131_072, 300_000, 1 << 20, 3, 2_000_001, 0, 1500];
    for len in lens.into_iter().chain(long) {
        let payload = bytes(&mut dice, len);
        pair.send(none, [], &payload);
        sent.push((vec![], payload.clone()));
        let word = u64::MAX - len as u64;
        pair.send(one, [word], &payload);
        sent.push((vec![word], payload.clone()));
        let words = std::array::from_fn(|at| word ^ at as u64);
        pair.send(most, words, &payload);
        sent.push((words.to_vec(), payload));
    }
    pair.until("all has come", |pair| pair.at_far.len() >= sent.len());
    for (number, (seen, sent)) in pair.at_far.iter().zip(&sent).enumerate() {
        assert_eq!((&seen.0, seen.1.len()), (&sent.0, sent.1.len()), "message {number}");
        assert!(seen.1 == sent.1, "message {number}");
    }
    assert_eq!(pair.at_far.len(), sent.len());
    assert_eq!(pair.far.failures().count(), 0);
}

/// A name is known when its announcement has come, whichever port was first. Earlier messages are
/// dropped and reported. One name has one meaning.
// spec: AM-1, AM-2, AM-3, AM-4, AM-7
pub fn names_are_the_same_everywhere<F: Messengers>(fabric: F) {
    let mut pair = Pair::<F, Seen>::open(fabric);
    let (near, far) = (pair.near_id, pair.far_id);
    let late = Handler::<1>::named("late");
    pair.send(late, [1], b"nobody");
    let unknown = |peer, is_ours| DroppedCall {
        peer,
        handler: late.id(),
        cause: DropCause::Unknown,
        is_ours,
    };
    let mut failures = vec![];
    pair.until("the sender hears of it", |pair| {
        failures.extend(pair.near.failures());
        !failures.is_empty()
    });
    assert_eq!(failures, [unknown(far, true)]);
    assert_eq!(pair.far.failures().collect::<Vec<_>>(), [unknown(near, false)]);
    assert!(!pair.near.is_announced(far, late));
    assert_eq!(pair.far.register::<1>("late", keep::<1>).expect("a new name"), late);
    pair.until("it is announced", |pair| pair.near.is_announced(far, late));
    pair.send(late, [2], b"somebody");
    pair.until("it is run", |pair| !pair.at_far.is_empty());
    assert_eq!(pair.at_far, [(vec![2], b"somebody".to_vec())]);

    assert!(pair.far.register::<1>("late", keep::<1>).is_err(), "once");
    assert!(pair.far.register::<1>("", keep::<1>).is_err());
    assert!(pair.far.register::<1>(&"n".repeat(65), keep::<1>).is_err());
    for id in [0, 31, 256] {
        assert!(pair.far.register_static::<1>(id, keep::<1>).is_err(), "{id}");
    }
    // The other end means something else by this name, in either order.
    pair.near.register::<2>("late", keep::<2>).expect("new here");
    let other = pair.near.register::<2>("other", keep::<2>).expect("a new name");
    pair.until("it is announced", |pair| pair.far.is_announced(near, other));
    pair.far.register::<1>("other", keep::<1>).expect("new here");
    for handler in [late, Handler::<1>::named("other")] {
        pair.send(handler, [3], b"which one?");
        pair.until("it is dropped", |pair| {
            pair.far.failures().any(|failed| failed.cause == DropCause::Unknown)
        });
    }
    assert_eq!(pair.at_far.len(), 1);
    let fixed = pair.far.register_static::<1>(200, keep::<1>).expect("a static id");
    pair.send(fixed, [4], b"");
    pair.until("it is run", |pair| pair.at_far.len() == 2);
}

/// A handler that panics, or that a message has too few arguments for, harms that message.
// spec: AM-7
pub fn a_panic_harms_its_message<F: Messengers>(fabric: F) {
    let mut pair = Pair::<F, Seen>::open(fabric);
    let far = pair.far_id;
    let picky = pair.far.register("picky", |seen: &mut Seen, call, [word]: [u64; 1], payload| {
        if word % 3 == 0 {
            // Without the hook's noise.
            std::panic::resume_unwind(Box::new("planted"));
        }
        keep(seen, call, [word], payload);
    });
    let picky = picky.expect("a new name");
    for word in 0..9 {
        let payload = vec![word as u8; if word % 2 == 0 { 20 } else { 5000 }];
        pair.send(picky, [word], &payload);
    }
    let without = Handler::<0>::with_id(picky.id()).expect("a handler's id");
    pair.send(without, [], b"short");
    pair.send(without, [], &[0; 5000]);
    assert_eq!(Handler::<0>::with_id(15), None, "a record's");
    pair.send(picky, [100], b"the last");
    pair.until("the last is run", |pair| pair.at_far.last().is_some_and(|(a, _)| a == &[100]));
    let words: Vec<_> = pair.at_far.iter().map(|(arguments, _)| arguments[0]).collect();
    assert_eq!(words, [1, 2, 4, 5, 7, 8, 100]);
    let mut told = vec![];
    pair.until("the sender hears of all", |pair| {
        told.extend(pair.near.failures().map(|failed| (failed.peer, failed.cause)));
        told.len() >= 5
    });
    let (panicked, malformed) = ((far, DropCause::Panicked), (far, DropCause::Malformed));
    assert_eq!(told, [panicked, panicked, panicked, malformed, malformed]);
}

/// Replies are replied to, without anybody's waiting.
// spec: AM-6, AM-8
pub fn replies_are_replied_to<F: Messengers>(fabric: F) {
    let mut pair = Pair::<F, u64>::open(fabric);
    let bounce = |count: &mut u64, call: &mut dyn Call, [left]: [u64; 1], payload: &[u8]| {
        *count += 1;
        if left > 0 {
            call.reply(Handler::<1>::named("bounce"), [left - 1], payload).expect("there is room");
        }
    };
    let handler = pair.far.register("bounce", bounce).expect("a new name");
    pair.near.register("bounce", bounce).expect("a new name");
    for (round, len) in [0, 48, 1000, 3000, 200_000].into_iter().enumerate() {
        pair.send(handler, [100], &vec![7; len]);
        let all = 101 * (round as u64 + 1);
        pair.until("the last reply", |pair| pair.at_near + pair.at_far == all);
    }
}

/// A handler's messages are kept where there is no room, go out in order, and before later ones; a
/// limit holds.
// spec: AM-8, AM-14
pub fn handlers_do_not_wait<F: Messengers>(fabric: F) {
    let options = MessengerOptions::new().overflow(1 << 20).landing(1 << 12);
    let mut pair = Pair::<F, Seen>::with_options(fabric, options);
    let heard = pair.near.register::<1>("heard", keep::<1>).expect("a new name");
    let ask =
        pair.far.register("ask", move |seen: &mut Seen, call, [count]: [u64; 1], _: &[u8]| {
            for number in 0..count {
                let len = if number % 10 == 0 { 9000 } else { 700 };
                let sent = call.reply(heard, [number], &vec![number as u8; len]);
                if sent == Err(PostError::Busy(Busy::OverflowFull)) {
                    seen.push((vec![number], vec![]));
                    return;
                }
                sent.expect("the peer is alive");
            }
        });
    let ask = ask.expect("a new name");
    let far = pair.far_id;
    pair.near.try_call(far, ask, [300], b"").expect("the lane is empty");
    // The near end does not poll while the far one runs it.
    for _ in 0..1000 {
        pair.far.poll(&mut pair.at_far);
    }
    pair.until("all replies", |pair| pair.at_near.len() == 300);
    assert!(pair.at_far.is_empty(), "the limit was not reached");
    for (number, (arguments, payload)) in pair.at_near.iter().enumerate() {
        assert_eq!((arguments[0], payload[0]), (number as u64, number as u8));
    }
    pair.at_near.clear();
    pair.send(ask, [10_000], b"");
    pair.until("the limit", |pair| !pair.at_far.is_empty());
    let refused = pair.at_far[0].0[0];
    assert!((250..600).contains(&refused), "half a megabyte was kept: {refused}");
    pair.until("what was kept", |pair| pair.at_near.len() as u64 == refused);
    let numbers = pair.at_near.iter().map(|(arguments, _)| arguments[0]);
    assert!(numbers.eq(0..refused));
}

/// A program that will not poll for a while can wait until its handlers' messages have gone.
// spec: AM-8
pub fn a_flush_ends<F: Messengers>(fabric: F) {
    let pair = Pair::<F, u64>::open(fabric);
    let Pair { mut near, mut far, far_id, .. } = pair;
    let heard = near.register("heard", |count: &mut u64, _, [], _: &[u8]| *count += 1);
    let heard: Handler<0> = heard.expect("a new name");
    let ask = far.register("ask", move |count: &mut u64, call, [], payload| {
        *count += 1;
        call.reply(heard, [], payload).expect("within the limit");
    });
    let ask: Handler<0> = ask.expect("a new name");
    const CALLS: u64 = 60;
    let flushed = Mutex::new(0);
    std::thread::scope(|scope| {
        let flushed = &flushed;
        scope.spawn(move || {
            let mut count = 0;
            for round in 1..=CALLS {
                let len = [10, 5000, 100_000][round as usize % 3];
                near.call(&mut count, far_id, ask, [], &vec![1; len]).expect("it is alive");
                near.serve_while(&mut count, |count| *count < round).expect("it is alive");
                // Nothing that we send ends the flush; where we give up, our death does.
                let ended = (0..ROUNDS).find(|_| {
                    near.poll(&mut count);
                    yield_now();
                    *flushed.lock().expect("nobody panics with it") == round
                });
                assert!(ended.is_some(), "waited in vain: flush {round}");
            }
            near.into_port().leave().expect("all was sent");
        });
        let mut count = 0;
        for round in 1..=CALLS {
            far.serve_while(&mut count, |count| *count < round).expect("it is alive");
            far.flush(&mut count);
            *flushed.lock().expect("nobody panics with it") = round;
        }
    });
}

/// Both ends ask more than the lanes hold, and each question has an answer.
// spec: AM-8, AM-9
pub fn all_peers_progress_while_all_flood<F: Messengers>(fabric: F) {
    const ASKED: u64 = 4000;
    let pair = Pair::<F, u64>::open(fabric);
    let Pair { near, far, near_id, far_id, .. } = pair;
    let flood = |mut messenger: F::Messenger<u64>, peer: PeerId| {
        let answered = messenger.register("answered", |count: &mut u64, _, [], _| *count += 1);
        let answered: Handler<0> = answered.expect("a new name");
        let ask = messenger.register("ask", move |_, call, [], payload| {
            call.reply(answered, [], payload).expect("within the limit");
        });
        let ask: Handler<0> = ask.expect("a new name");
        let mut count = 0;
        messenger.sync(&mut count).expect("the peer is alive");
        for number in 0..ASKED {
            let len = if number % 500 == 0 { 20_000 } else { number as usize % 300 };
            messenger.call(&mut count, peer, ask, [], &vec![1; len]).expect("it is alive");
        }
        messenger.serve_while(&mut count, |count| *count < ASKED).expect("it is alive");
        messenger.sync(&mut count).expect("the peer is alive");
        assert_eq!(messenger.failures().count(), 0);
        messenger.into_port().leave().expect("all was sent");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| flood(near, far_id));
        flood(far, near_id);
    });
}

/// A destination that takes nothing leaves room for what others are owed.
// spec: AM-8
pub fn a_peer_that_reads_nothing_does_not_take_the_room_of_others<F: Messengers>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, 2);
    let (lazy, eager) = (ports.ids()[0], ports.ids()[1]);
    let spare = fabric.open(40);
    let target = std::mem::replace(&mut ports.target, spare);
    let options = MessengerOptions::new().overflow(1 << 20);
    let mut target = F::Messenger::<u64>::with_options(target, &options).expect("good limits");
    let to_nobody = Handler::<0>::named("to nobody");
    let fill = target.register("fill", move |kept: &mut u64, call, [], _: &[u8]| {
        while call.send(lazy, to_nobody, [], &[1; 1000]).is_ok() {
            *kept += 1;
        }
        call.reply(to_nobody, [], &[2; 100_000]).expect("there is room for others");
    });
    let fill: Handler<0> = fill.expect("a new name");
    let mut asking = F::Messenger::<()>::new(ports.initiators.pop().expect("two"));
    asking.try_call(TARGET, fill, [], b"").expect("there is room");
    let mut kept = 0;
    let mut heard = vec![];
    for _ in 0..ROUNDS {
        target.poll(&mut kept);
        asking.poll(&mut ());
        heard.extend(asking.failures());
        if !heard.is_empty() {
            break;
        }
        yield_now();
    }
    // It has come whole, and is to nobody.
    assert_eq!(heard.len(), 1);
    assert!(!heard[0].is_ours && heard[0].peer == TARGET);
    assert!((400..700).contains(&kept), "half a megabyte, and what the lane holds: {kept}");
    assert!(target.port().is_alive(eager) && target.port().is_alive(lazy));
}

/// Data that was put before a message is there when its handler runs.
// spec: AM-10
pub fn memory_comes_before_the_handler<F: Messengers>(fabric: F) {
    struct Memory<R> {
        region: Option<R>,
        found: Vec<u64>,
    }
    let mut world = World::open(fabric);
    let memory = world.memory(4096);
    let (near, far) = world.split();
    let (mut near, mut far) = (F::Messenger::<()>::new(near), F::Messenger::new(far));
    let look =
        far.register("look", |memory: &mut Memory<RegionOf<F>>, _, [at]: [u64; 1], _: &[u8]| {
            let region = memory.region.as_ref().expect("it is given");
            memory.found.push(region.load(at as usize));
        });
    let look = look.expect("a new name");
    let mut state = Memory { region: Some(memory.region), found: vec![] };
    for round in 1..=500_u64 {
        let at = round % 64 * 8;
        insist(near.port(), |port| {
            port.put(&memory.remote, at, &round.to_le_bytes(), Options::new())
        });
        while near.try_call(TARGET, look, [at], b"").is_err() {
            far.poll(&mut state);
            near.poll(&mut ());
        }
        for _ in 0..ROUNDS {
            if state.found.len() as u64 == round {
                break;
            }
            far.poll(&mut state);
            near.poll(&mut ());
            yield_now();
        }
    }
    assert!(state.found.into_iter().eq(1..=500));
}

/// A sync has run what was sent before by who goes at once, short or long.
// spec: AM-4, AM-11
pub fn a_sync_runs_all_messages_sent_before_it<F: Messengers>(fabric: F) {
    for round in 0..30 {
        let pair = Pair::<F, Seen>::open(fabric);
        let Pair { mut near, mut far, far_id, .. } = pair;
        let seen = far.register::<0>("seen", keep::<0>).expect("a new name");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut none = vec![];
                let payload = vec![5; if round % 2 == 0 { 10 } else { 3000 }];
                for _ in 0..5 {
                    near.call(&mut none, far_id, seen, [], &payload).expect("it is alive");
                }
                near.sync(&mut none).expect("it is alive");
                near.into_port().leave().expect("all was sent");
            });
            let mut found = vec![];
            far.sync(&mut found).expect("it is alive");
            assert_eq!(found.len(), 5, "round {round}");
        });
    }
}

/// A sync does not wait for one that leaves without, whenever it does.
// spec: AM-4
pub fn a_sync_ends_when_others_leave<F: Messengers>(fabric: F) {
    for round in 0..20 {
        let one = |port: F::Port| {
            let own = port.rank();
            let mut messenger = F::Messenger::new(port);
            if own > 0 {
                (0..round).for_each(|_| yield_now());
                return messenger.into_port().leave().expect("nothing is under way");
            }
            messenger.sync(&mut ()).expect("nothing but departures");
        };
        std::thread::scope(|scope| {
            let ports = fabric.mesh(3).into_iter();
            ports.for_each(|port| drop(scope.spawn(move || one(port))));
        });
    }
}

/// Complete messages of a dead peer are run; nobody waits for the rest.
// spec: AM-11
pub fn a_death_drops_incomplete_messages<F: Messengers>(fabric: F) {
    let mut pair = Pair::<F, Seen>::open(fabric);
    let far = pair.far_id;
    let heard = pair.near.register::<0>("heard", keep::<0>).expect("a new name");
    let ask = pair.far.register("ask", move |_: &mut Seen, call, [], _: &[u8]| {
        for _ in 0..50 {
            call.reply(heard, [], &[3; 100]).expect("within the limit");
        }
        call.reply(heard, [], &[4; 2_000_000]).expect("within the limit");
    });
    let ask: Handler<0> = ask.expect("a new name");
    pair.send(ask, [], b"");
    pair.until("the far end has begun", |pair| !pair.at_near.is_empty());
    let Pair { mut near, far: dying, mut at_near, .. } = pair;
    drop(dying);
    let mut died = None;
    for _ in 0..ROUNDS {
        match near.wait(&mut at_near, None) {
            Ok(_) => {}
            Err(error) => {
                died = Some(error);
                break;
            }
        }
    }
    assert_eq!(died, Some(ReceiveError::PeerDied(far)));
    assert!(at_near.iter().all(|(_, payload)| payload.len() == 100));
    let to_the_dead = near.call(&mut at_near, far, ask, [], b"");
    assert!(matches!(to_the_dead, Err(Fault::PeerDead | Fault::ForeignHandle)), "{to_the_dead:?}");
    let to_nobody = near.call(&mut at_near, PeerId(77), ask, [], b"");
    assert_eq!(to_nobody, Err(Fault::ForeignHandle));
}

const SENDERS: u16 = 3;
const LONG: u64 = 60;

/// Long messages of several senders come in pieces in between each other, and none of it mixes.
// spec: AM-5, AM-12
pub fn long_messages_do_not_mix<F: Messengers>(fabric: F) {
    let mut ports = ManyToOne::open(fabric, SENDERS);
    let ids = ports.ids();
    let spare = fabric.open(40);
    let target = std::mem::replace(&mut ports.target, spare);
    let mut messenger = F::Messenger::<[u64; 64]>::new(target);
    let handler = messenger.register("long", |next: &mut [u64; 64], call, [number], payload| {
        let source = call.source();
        assert_eq!(number, next[source.index()], "in order");
        next[source.index()] += 1;
        let (len, byte) = shape(source, number);
        assert!(payload.len() == len && payload.iter().all(|found| *found == byte));
    });
    let handler: Handler<1> = handler.expect("a new name");
    let mut next = [0; 64];
    std::thread::scope(|scope| {
        for (port, id) in ports.initiators.drain(..).zip(ids.clone()) {
            scope.spawn(move || send_long::<F>(port, id, handler));
        }
        let served =
            messenger.serve_while(&mut next, |next| ids.iter().any(|id| next[id.index()] < LONG));
        // Whoever has sent everything leaves, before the others have.
        while let Err(ReceiveError::PeerDied(_)) =
            messenger.serve_while(&mut next, |next| ids.iter().any(|id| next[id.index()] < LONG))
        {
        }
        let _ = served;
    });
    assert!(ids.iter().all(|id| next[id.index()] == LONG));
    assert_eq!(messenger.failures().count(), 0);
}

fn send_long<F: Messengers>(port: F::Port, id: PeerId, handler: Handler<1>) {
    let mut messenger = F::Messenger::<()>::new(port);
    for number in 0..LONG {
        let (len, byte) = shape(id, number);
        messenger.call(&mut (), TARGET, handler, [number], &vec![byte; len]).expect("it is alive");
    }
    messenger.into_port().leave().expect("all was sent");
}

fn shape(source: PeerId, number: u64) -> (usize, u8) {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9 * u64::from(source.0));
    (mixed as usize % 90_000, mixed as u8)
}
