//! Logical channels: each keeps its order, and none is in the way of another.
use crate::active::{Pair, bytes};
use crate::messenger::{Active, Call, ChannelOptions, Channels, MessengerOptions, Messengers};
use crate::port::Port;
use crate::seed::{self, Dice};
use crate::world::{ROUNDS, World, join};
use ayre::active::{DropCause, DroppedCall, Handler};
use ayre::channel::Channel;
use ayre::{Busy, Fault, PeerId, PostError, ReceiveError};
use std::thread::yield_now;

/// A handler's run: the channel that the message named, the channel it came by, and its bytes.
#[derive(Default)]
struct Seen {
    messages: Vec<(u64, u64, Vec<u8>)>,
    is_done: bool,
}

impl Seen {
    fn of(&self, channel: u64) -> Vec<u64> {
        let its = self.messages.iter().filter(|(by, ..)| *by == channel);
        its.map(|(_, number, _)| *number).collect()
    }
}

const KEEP: Handler<2> = Handler::named("keep");
const DONE: Handler<0> = Handler::named("done");

fn keep(seen: &mut Seen, _: &mut dyn Call, [channel, number]: [u64; 2], payload: &[u8]) {
    seen.messages.push((channel, number, payload.to_vec()));
}

fn register(messenger: &mut impl Active<Seen>) {
    messenger.register("keep", keep).expect("a new name");
    let done = |seen: &mut Seen, _: &mut dyn Call, []: [u64; 0], _: &[u8]| seen.is_done = true;
    messenger.register("done", done).expect("a new name");
}

fn pair<F: Messengers>(fabric: F) -> Pair<F, Seen> {
    let mut pair = Pair::open(fabric);
    register(&mut pair.near);
    register(&mut pair.far);
    pair
}

fn channel(number: u8) -> Channel {
    Channel::with_number(number).expect("not 0")
}

fn numbers(end: u64) -> Vec<u64> {
    (0..end).collect()
}

/// A message by a channel, and another one if the channel's queue is full.
fn send<F: Messengers>(pair: &mut Pair<F, Seen>, by: u8, number: u64, payload: &[u8]) {
    let arguments = [u64::from(by), number];
    pair.until("room in the queue", |pair| {
        let to = pair.far_id;
        let sent = pair.near.on(channel(by)).try_call(to, KEEP, arguments, payload);
        assert!(matches!(sent, Ok(()) | Err(PostError::Busy(Busy::ChannelFull))), "{sent:?}");
        sent.is_ok()
    });
}

/// Messages of all sizes come whole, once, and in the order of their channel.
// spec: CHAN-1, CHAN-2, CHAN-8, CHAN-10
pub fn messages_arrive_by_all_channels<F: Messengers>(fabric: F) {
    let options = MessengerOptions::new().longest(1 << 20);
    let mut pair = Pair::with_options(fabric, options);
    register(&mut pair.near);
    register(&mut pair.far);
    let by = [1, 2, 7, 255];
    for (number, priority) in [(2, 3), (7, 7)] {
        pair.near.open_channel(number, ChannelOptions::new().priority(priority)).expect("sound");
    }
    let (mut dice, mut sent) = (Dice::new(seed::of(&fabric)), [const { vec![] }; 4]);
    for _ in 0..200 {
        let which = dice.below(4) as usize;
        let len = match dice.below(20) {
            0..12 => dice.below(90),
            12..17 => dice.below(3000),
            17..19 => dice.below(200_000),
            _ => dice.below(1 << 20),
        };
        let payload = bytes(&mut dice, len as usize);
        send(&mut pair, by[which], sent[which].len() as u64, &payload);
        sent[which].push(payload);
    }
    pair.until("all messages", |pair| pair.at_far.messages.len() == 200);
    for (which, by) in by.into_iter().enumerate() {
        assert_eq!(pair.at_far.of(by.into()), numbers(sent[which].len() as u64));
    }
    for (by, number, payload) in &pair.at_far.messages {
        let which = [1, 2, 7, 255].iter().position(|one| one == by).expect("one of them");
        assert!(*payload == sent[which][*number as usize], "{number} by {by}");
    }
    assert_eq!(pair.near.failures().count() + pair.far.failures().count(), 0);
}

/// Messages that nobody takes fill a channel's window and queue; other channels, and messages
/// without a channel, go on.
// spec: CHAN-3, CHAN-4, CHAN-5, CHAN-11
pub fn a_full_channel_does_not_delay_other_channels<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    pair.near.open_channel(1, ChannelOptions::new().priority(7).room(100_000)).expect("sound");
    pair.far.hold(channel(1));
    let mut sent = 0;
    // A window and a queue, less one message each at the most.
    pair.until("it is full", |pair| {
        let to = pair.far_id;
        let full = Err(PostError::Busy(Busy::ChannelFull));
        let tried = pair.near.on(channel(1)).try_call(to, KEEP, [1, sent], &[1; 1000]);
        assert!(tried == full || tried.is_ok(), "{tried:?}");
        sent += u64::from(tried.is_ok());
        tried == full && sent >= (262_144 / 1016 - 1) + (100_000 / 1016 - 1)
    });
    assert!(sent <= 362_144 / 1016, "no more than a window and a queue: {sent}");
    let to = pair.far_id;
    assert!((90_000..=110_000).contains(&pair.near.backlog(to, channel(1))));
    for number in 0..500 {
        send(&mut pair, 2, number, &[2; 500]);
    }
    pair.until("a long one", |pair| {
        let to = pair.far_id;
        pair.near.on(channel(3)).try_call(to, KEEP, [3, 0], &[3; 100_000]).is_ok()
    });
    pair.until("by none", |pair| pair.near.try_call(pair.far_id, KEEP, [0, 0], &[]).is_ok());
    pair.until("all others", |pair| pair.at_far.messages.len() == 502);
    assert_eq!(pair.at_far.of(1), [0; 0]);
    assert_eq!(pair.at_far.of(2), numbers(500));
    pair.far.release(channel(1));
    pair.until("what was held", |pair| pair.at_far.messages.len() as u64 == 502 + sent);
    assert_eq!(pair.at_far.of(1), numbers(sent));
}

/// Sends by some channels what the far end holds, in turn, and has it run when all has come.
fn run_at_once<F: Messengers>(pair: &mut Pair<F, Seen>, by: &[u8], each: u64) {
    by.iter().for_each(|by| pair.far.hold(channel(*by)));
    for number in 0..each {
        by.iter().for_each(|by| send(pair, *by, number, &[0; 1000]));
    }
    let to = pair.far_id;
    pair.until("all is sent", |pair| by.iter().all(|by| pair.near.backlog(to, channel(*by)) == 0));
    pair.until("room", |pair| pair.near.try_call(to, DONE, [], &[]).is_ok());
    pair.until("the last one", |pair| pair.at_far.is_done);
    by.iter().for_each(|by| pair.far.release(channel(*by)));
    let all = each as usize * by.len();
    pair.until("all is run", |pair| pair.at_far.messages.len() == all);
}

/// By priority, of what has come.
// spec: CHAN-6
pub fn a_channel_of_higher_priority_is_run_first<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    for (number, priority) in [(1, 0), (2, 7), (3, 3)] {
        pair.far.open_channel(number, ChannelOptions::new().priority(priority)).expect("sound");
    }
    run_at_once(&mut pair, &[1, 2, 3], 60);
    let order: Vec<_> = pair.at_far.messages.iter().map(|(by, ..)| *by).collect();
    assert_eq!(order, [[2; 60], [3; 60], [1; 60]].concat());
}

/// By weight, within a turn.
// spec: CHAN-6
pub fn channels_of_one_priority_share_by_weight<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    for (number, weight) in [(1, 1), (2, 3)] {
        pair.far.open_channel(number, ChannelOptions::new().weight(weight)).expect("sound");
    }
    run_at_once(&mut pair, &[1, 2], 120);
    let first = pair.at_far.messages[..100].iter().filter(|(by, ..)| *by == 1).count();
    // Turns are of 8 and of 25 messages.
    assert!((17..=33).contains(&first), "{first} of 100");
}

/// A long message goes in parts, and what is short and urgent between them.
// spec: CHAN-5, CHAN-6, CHAN-8
pub fn short_messages_pass_long_ones<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    pair.near.open_channel(2, ChannelOptions::new().priority(1)).expect("sound");
    let (to, long) = (pair.far_id, vec![1; 4 << 20]);
    pair.near.on(channel(1)).try_call(to, KEEP, [1, 0], &long).expect("one always fits");
    pair.near.on(channel(2)).try_call(to, KEEP, [2, 0], b"now").expect("there is room");
    pair.until("both", |pair| pair.at_far.messages.len() == 2);
    assert_eq!(pair.at_far.messages[0], (2, 0, b"now".to_vec()));
    assert!(pair.at_far.messages[1].2 == long);
}

/// A poll for one channel runs messages of no other.
// spec: CHAN-11
pub fn one_channel_is_polled<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    pair.far.hold(channel(2));
    for number in 0..50 {
        send(&mut pair, 2, number, &[]);
    }
    let to = pair.far_id;
    for number in 0..50 {
        let sent = pair.near.on(channel(1)).try_call(to, KEEP, [1, number], &[]);
        sent.expect("its queue has room");
    }
    for round in 0..ROUNDS {
        if pair.at_far.of(2).len() == 50 && pair.near.backlog(to, channel(1)) == 0 {
            break;
        }
        pair.far.poll_only(&mut pair.at_far, channel(2));
        pair.near.poll(&mut pair.at_near);
        fabric.step(round);
    }
    assert_eq!((pair.at_far.of(2), pair.at_far.of(1)), (numbers(50), vec![]));
    pair.until("the others", |pair| pair.at_far.of(1).len() == 50);
}

/// However much waits by channels.
// spec: CHAN-5
pub fn messages_without_a_channel_are_run_beside_full_channels<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    let to = pair.far_id;
    let room = ChannelOptions::new().priority(7).room(8 << 20);
    pair.near.open_channel(1, room).expect("sound");
    let mut sent = 0;
    while pair.near.on(channel(1)).try_call(to, KEEP, [1, sent], &[0; 1000]).is_ok() {
        sent += 1;
    }
    for number in 0..20 {
        pair.until("room for one by none", |pair| {
            pair.near.try_call(to, KEEP, [0, number], &[0; 500]).is_ok()
        });
    }
    pair.until("those by none", |pair| pair.at_far.of(0).len() == 20);
    assert!(pair.at_far.of(1).len() < sent as usize, "they have not waited for all");
    pair.until("all", |pair| pair.at_far.of(1).len() as u64 == sent);
    assert_eq!(pair.at_far.of(0), numbers(20));
}

const MEMBERS: u16 = 3;
const QUESTIONS: u64 = 200;
const ASK: Handler<2> = Handler::named("ask");
const OVER: Handler<0> = Handler::named("over");

/// Messages that found no room, last answers that have come, and the number of complete senders.
#[derive(Default)]
struct Asked {
    missed: Vec<(PeerId, [u64; 2])>,
    ended: u64,
    over: u16,
}

/// Asks all others, and answers them and their answers: how many last answers have come.
fn ask_all<F: Messengers>(port: F::Port) -> u64 {
    let (mut member, mut asked) = (F::Messenger::new(port), Asked::default());
    let ask = |asked: &mut Asked, call: &mut dyn Call, [by, left]: [u64; 2], payload: &[u8]| {
        if left == 0 {
            asked.ended += 1;
        } else if call.reply_by(channel(by as u8), ASK, [by, left - 1], payload).is_err() {
            asked.missed.push((call.source(), [by, left - 1]));
        }
    };
    member.register("ask", ask).expect("a new name");
    let over = |asked: &mut Asked, _: &mut dyn Call, []: [u64; 0], _: &[u8]| asked.over += 1;
    member.register("over", over).expect("a new name");
    for number in 1..=3 {
        let options = ChannelOptions::new().priority(number % 3).room(2000);
        member.open_channel(number, options).expect("sound");
    }
    member.sync(&mut asked).expect("all live");
    let own = member.port().rank() as u16;
    let others = (0..MEMBERS).filter(|peer| *peer != own).map(PeerId);
    for number in 0..QUESTIONS {
        let (by, len) = (1 + number % 3, [0, 300, 3000][number as usize / 3 % 3]);
        for peer in others.clone() {
            let mut way = member.on(channel(by as u8));
            way.call(&mut asked, peer, ASK, [by, 4], &vec![0; len]).expect("it lives");
        }
    }
    // The last answer of a question comes to who was asked; meanwhile others need ours.
    let mut is_over = false;
    while asked.over < MEMBERS - 1 || !is_over {
        if member.poll(&mut asked) == 0 {
            yield_now();
        }
        for (peer, arguments) in std::mem::take(&mut asked.missed) {
            let by = channel(arguments[0] as u8);
            if member.on(by).try_call(peer, ASK, arguments, &[]).is_err() {
                asked.missed.push((peer, arguments));
            }
        }
        if !is_over && asked.ended == QUESTIONS * u64::from(MEMBERS - 1) {
            is_over = true;
            for peer in others.clone() {
                member.call(&mut asked, peer, OVER, [], &[]).expect("it lives");
            }
        }
    }
    member.sync(&mut asked).expect("all live");
    assert_eq!(asked.missed, []);
    asked.ended
}

/// Answers to answers among all, by channels with little room: what is refused is asked again.
// spec: CHAN-2, CHAN-4
pub fn replies_are_sent_over_channels<F: Messengers>(fabric: F) {
    std::thread::scope(|scope| {
        let start = |port| scope.spawn(move || ask_all::<F>(port));
        let members: Vec<_> = fabric.mesh(MEMBERS).into_iter().map(start).collect();
        for member in members {
            assert_eq!(join(member), QUESTIONS * u64::from(MEMBERS - 1));
        }
    });
}

/// A sender to an unknown handler gets an error, as without channels, and so does the sender of too
/// long a message; later messages are run.
// spec: CHAN-2, CHAN-10
pub fn senders_learn_of_messages_without_a_handler<F: Messengers>(fabric: F) {
    let options = MessengerOptions::new().longest(1 << 16);
    let mut pair = Pair::with_options(fabric, options);
    register(&mut pair.near);
    register(&mut pair.far);
    const NOBODY: Handler<1> = Handler::named("nobody");
    let to = pair.far_id;
    let long = vec![0; 300_000];
    pair.near.on(channel(1)).try_call(to, NOBODY, [1], b"short").expect("there is room");
    pair.near.on(channel(1)).try_call(to, NOBODY, [1], &long).expect("one fits");
    pair.until("room", |pair| pair.near.on(channel(1)).try_call(to, KEEP, [1, 0], &long).is_ok());
    send(&mut pair, 1, 1, b"run");
    pair.until("the last one", |pair| !pair.at_far.messages.is_empty());
    assert_eq!(pair.at_far.of(1), [1]);
    let mut told = vec![];
    pair.until("what has failed", |pair| {
        told.extend(pair.near.failures());
        told.len() == 3
    });
    let failure = |handler, cause| DroppedCall { peer: to, handler, cause, is_ours: true };
    let nobody = failure(NOBODY.id(), DropCause::Unknown);
    assert_eq!(told, [nobody, nobody, failure(KEEP.id(), DropCause::Malformed)]);
}

/// Messages that wait for a peer that dies are dropped, and complete ones from it are run.
// spec: CHAN-2
pub fn a_death_drops_messages_that_wait_for_the_peer<F: Messengers>(fabric: F) {
    let mut pair = pair(fabric);
    pair.near.hold(channel(1));
    let (near, far) = (pair.near_id, pair.far_id);
    pair.until("room", |pair| {
        pair.far.on(channel(1)).try_call(near, KEEP, [1, 0], b"held").is_ok()
    });
    pair.until("a sign", |pair| pair.far.try_call(near, DONE, [], &[]).is_ok());
    pair.until("it has come", |pair| pair.at_near.is_done);
    for number in 0..500 {
        let sent = pair.near.on(channel(2)).try_call(far, KEEP, [2, number], &[0; 1000]);
        assert!(matches!(sent, Ok(()) | Err(PostError::Busy(Busy::ChannelFull))), "{sent:?}");
    }
    let Pair { mut near, far: gone, mut at_near, .. } = pair;
    drop(gone);
    loop {
        match near.wait(&mut at_near, None) {
            Err(ReceiveError::PeerDied(peer)) => break assert_eq!(peer, far),
            other => assert!(other.is_ok(), "{other:?}"),
        }
    }
    assert_eq!(near.backlog(far, channel(2)), 0);
    let late = near.on(channel(2)).try_call(far, KEEP, [2, 0], &[]);
    assert_eq!(late, Err(PostError::Fault(Fault::PeerDead)));
    assert_eq!(
        near.on(channel(2)).call(&mut at_near, far, KEEP, [2, 0], &[]),
        Err(Fault::PeerDead)
    );
    near.flush(&mut at_near);
    near.release(channel(1));
    near.poll(&mut at_near);
    assert_eq!(at_near.messages, [(1, 0, b"held".to_vec())]);
}

/// A peer that breaks the protocol of channels is disconnected.
// spec: CHAN-9
pub fn a_peer_that_breaks_the_channel_protocol_is_disconnected<F: Messengers>(fabric: F) {
    let head = |number: u8, first: u8, id: u32| {
        let mut head = vec![number, first, 0, 0];
        head.extend_from_slice(&id.to_le_bytes());
        head
    };
    let back = |number: u64, bytes: u64| (19, [number.to_le_bytes(), bytes.to_le_bytes()].concat());
    let good = (18, [head(1, 1, KEEP.id()), vec![0; 16]].concat());
    let lies = [
        (false, vec![good.clone(); 3]),
        (true, vec![(18, vec![1, 1, 0])]),
        (true, vec![(18, head(0, 1, KEEP.id()))]),
        (true, vec![(18, head(1, 0, 0))]),
        (true, vec![(18, head(1, 3, KEEP.id()))]),
        (true, vec![(18, head(1, 1, 31))]),
        (true, vec![back(1, 1)]),
        (true, vec![good.clone(), back(1, 1)]),
        (true, vec![back(0, 0)]),
        (true, vec![good; 4097]),
    ];
    for (is_lie, records) in lies {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let (mut far, mut seen) = (F::Messenger::new(far), Seen::default());
        register(&mut far);
        if records.len() > 1000 {
            // More than a window, of which nothing is given back.
            far.hold(channel(1));
        }
        let mut left = &records[..];
        for round in 0..ROUNDS {
            let is_over = left.is_empty() && seen.messages.len() == 3;
            if !far.port().is_alive(near_id) || is_over {
                break;
            }
            if let Some((tag, record)) = left.first()
                && liar.send(far_id, *tag, record).is_ok()
            {
                left = &left[1..];
            }
            far.poll(&mut seen);
            liar.progress();
            fabric.step(round);
        }
        assert_ne!(far.port().is_alive(near_id), is_lie, "{:?}", records.last());
    }
}
