//! Logical channels between two ends over a pipe with little room, beside a model that keeps all.
#[path = "common/dice.rs"]
mod dice;

use ayre_proto::lane::Malformed;
use ayre_proto::logical::{
    BACK, Back, CHANNEL, ChannelReceiver, ChannelSender, Due, Head, PART_MAX, SHARE, SHORT_MAX,
    Start, Turns, WINDOW,
};
use dice::{Dice, seeds};
use std::collections::{HashMap, VecDeque};

/// A message at the sender, or what has come of one.
#[derive(Clone, Copy, Debug)]
struct Sent {
    name: u64,
    total: u64,
    done: u64,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Short { number: u8, message: Sent },
    Part { number: u8, message: Sent, is_first: bool, bytes: u64 },
}

/// Two ends, what is between them, and what has been run.
struct Pair {
    outward: ChannelSender,
    queues: HashMap<u8, VecDeque<Sent>>,
    pipe: VecDeque<Packet>,
    pipe_max: usize,
    inward: ChannelReceiver,
    coming: HashMap<u8, Sent>,
    arrived: HashMap<u8, VecDeque<(Sent, Due)>>,
    ran: HashMap<u8, Vec<u64>>,
    longest: u64,
}

impl Pair {
    fn new(pipe_max: usize, longest: u64) -> Self {
        Self {
            outward: ChannelSender::new(),
            queues: HashMap::new(),
            pipe: VecDeque::new(),
            pipe_max,
            inward: ChannelReceiver::new(longest),
            coming: HashMap::new(),
            arrived: HashMap::new(),
            ran: HashMap::new(),
            longest,
        }
    }

    fn post(&mut self, number: u8, name: u64, total: u64) {
        let message = Sent { name, total, done: 0 };
        let is_short = total <= SHORT_MAX as u64;
        if is_short && self.pipe.len() < self.pipe_max && self.outward.send_at_once(number, total) {
            return self.pipe.push_back(Packet::Short { number, message });
        }
        let queue = self.queues.entry(number).or_default();
        queue.push_back(message);
        if queue.len() == 1 {
            self.outward.offer(number, total);
        }
    }

    /// Sends what may go, as far as the pipe has room.
    fn pump(&mut self, landing_has_room: bool) {
        if landing_has_room {
            self.outward.resume();
        }
        while self.pipe.len() < self.pipe_max
            && let Some(turn) = self.outward.next()
        {
            let number = turn.number;
            let queue = self.queues.get_mut(&number).expect("it has offered something");
            let mut message = *queue.front().expect("it has offered something");
            let left = message.total - message.done;
            if message.total <= SHORT_MAX as u64 {
                queue.pop_front();
                let then = queue.front().map(|then| then.total);
                self.outward.sent(message.total, (0, message.total), then);
                self.pipe.push_back(Packet::Short { number, message });
                continue;
            }
            if !landing_has_room {
                self.outward.stall(number);
                continue;
            }
            let bytes = left.min(turn.most);
            assert!(bytes > 0 && bytes <= PART_MAX);
            let is_first = message.done == 0;
            self.pipe.push_back(Packet::Part { number, message, is_first, bytes });
            message.done += bytes;
            *queue.front_mut().expect("it is there") = message;
            if left == bytes {
                queue.pop_front();
            }
            let then = queue.front().map(|then| then.total);
            self.outward.sent(bytes, (left - bytes, message.total), then);
        }
    }

    fn deliver(&mut self) -> Result<(), Malformed> {
        let Some(packet) = self.pipe.pop_front() else { return Ok(()) };
        match packet {
            Packet::Short { number, message } => {
                let due = self.inward.on_short(number, message.total)?;
                self.arrived.entry(number).or_default().push_back((message, due));
            }
            Packet::Part { number, message, is_first, bytes } => {
                if is_first {
                    self.inward.begin(number, message.total, message.total <= self.longest)?;
                    self.coming.insert(number, message);
                }
                if let Some(due) = self.inward.on_part(number, bytes)? {
                    let message = self.coming.remove(&number).expect("it has begun");
                    self.arrived.entry(number).or_default().push_back((message, due));
                }
                self.tell(number);
            }
        }
        Ok(())
    }

    fn run(&mut self, number: u8) -> bool {
        let queue = self.arrived.entry(number).or_default();
        let Some((message, due)) = queue.pop_front() else { return false };
        self.ran.entry(number).or_default().push(message.name);
        self.inward.ran(number, due);
        // What was admitted by that may be on any channel.
        (1..=9).for_each(|number| self.tell(number));
        true
    }

    fn tell(&mut self, number: u8) {
        if let Some(back) = self.inward.due(number) {
            self.inward.told(number, back);
            self.outward.on_back(number, back).expect("it was sent");
        }
    }

    /// Bytes that have come and were not run, or are under way.
    fn kept(&self, number: u8) -> u64 {
        let taken = |one: &(Sent, Due)| if one.0.total <= self.longest { one.0.total } else { 0 };
        let whole = self.arrived.get(&number).map_or(0, |all| all.iter().map(taken).sum());
        let in_pipe = self.pipe.iter().map(|packet| match packet {
            Packet::Short { number: of, message } if *of == number => message.total,
            Packet::Part { number: of, bytes, .. } if *of == number => *bytes,
            _ => 0,
        });
        whole + in_pipe.sum::<u64>()
    }
}

/// Every sent message is run, once and in the order of its channel. The receiver holds some
/// channels for long, the landing is full now and then, and the pipe takes little. A held channel
/// keeps no more than its window and one large message, and stops no other channel.
// spec: CHAN-2, CHAN-3, CHAN-4, CHAN-5, CHAN-10
#[test]
fn random_traffic() {
    for seed in 0..seeds(3000) {
        let caught = std::panic::catch_unwind(|| traffic(seed));
        assert!(caught.is_ok(), "seed {seed}");
    }
}

fn traffic(seed: u64) {
    let mut dice = Dice(seed);
    let longest = [1 << 17, 1 << 18, 1 << 20][dice.below(3) as usize];
    let mut pair = Pair::new(1 + dice.below(20) as usize, longest);
    let channels = 1 + dice.below(9) as u8;
    for number in 1..=channels {
        pair.outward.set(number, dice.below(8) as u8, 1 + dice.below(16) as u8);
    }
    let held = if dice.percent(50) { 1 + dice.below(u64::from(channels)) as u8 } else { 0 };
    let mut posted: HashMap<u8, Vec<u64>> = HashMap::new();
    for name in 0..dice.below(400) {
        let number = 1 + dice.below(u64::from(channels)) as u8;
        let total = match dice.below(10) {
            0..7 => dice.below(SHORT_MAX as u64 + 1),
            7..9 => SHORT_MAX as u64 + 1 + dice.below(100_000),
            _ => 1 + SHORT_MAX as u64 + dice.below(longest * 5 / 4),
        };
        pair.post(number, name, total);
        posted.entry(number).or_default().push(name);
        for _ in 0..dice.below(4) {
            pair.pump(dice.percent(70));
            pair.deliver().expect("nobody lies");
            let number = 1 + dice.below(u64::from(channels)) as u8;
            if number != held {
                pair.run(number);
            }
        }
        assert!(pair.kept(held) <= WINDOW + longest, "{}", pair.kept(held));
    }
    settle(&mut pair, held);
    for number in (1..=channels).filter(|number| *number != held) {
        let is_alone = pair
            .arrived
            .get(&held)
            .is_none_or(|all| all.iter().all(|one| one.0.total <= WINDOW / 2));
        if is_alone {
            assert_eq!(
                pair.ran.get(&number),
                posted.get(&number),
                "channel {number}, {held} is held"
            );
        }
    }
    settle(&mut pair, 0);
    assert_eq!(pair.ran, posted);
}

fn settle(pair: &mut Pair, held: u8) {
    loop {
        pair.pump(true);
        let mut goes_on = !pair.pipe.is_empty();
        pair.deliver().expect("nobody lies");
        for number in (1..=9).filter(|number| *number != held) {
            goes_on |= pair.run(number);
        }
        if !goes_on {
            return;
        }
    }
}

/// Cost served in `rounds` turns, of channels that always have something to do.
fn served(turns: &mut Turns, rounds: usize, cost: impl Fn(u8) -> u64) -> [u64; 256] {
    let mut served = [0; 256];
    for _ in 0..rounds {
        let (number, left) = turns.next().expect("all are ready");
        // What is short is never cut.
        let cost = cost(number);
        let cost = if cost > SHORT_MAX as u64 { cost.min(left) } else { cost };
        served[usize::from(number)] += cost;
        turns.did(cost);
    }
    served
}

/// By weight, whatever the sizes of the messages are.
// spec: CHAN-6
#[test]
fn channels_of_one_priority_share_by_weight() {
    let mut turns = Turns::new();
    let weights = [(1, 1), (2, 2), (3, 5), (200, 16)];
    for (number, weight) in weights {
        turns.set(number, 3, weight);
        turns.ready(number);
    }
    let sizes = |number| [64, 1016, 100, PART_MAX][usize::from(number) % 4];
    let served = served(&mut turns, 100_000, sizes);
    let all: u64 = served.iter().sum();
    for (number, weight) in weights {
        let ideal = all * u64::from(weight) / 24;
        let off = served[usize::from(number)].abs_diff(ideal);
        assert!(
            off <= 2 * u64::from(SHARE) * u64::from(weight),
            "{number}: {} of {all}, {ideal}",
            served[usize::from(number)]
        );
    }
}

/// Nobody is served while one of higher priority is ready, and all are once it rests.
// spec: CHAN-6
#[test]
fn priorities_are_strict() {
    let mut turns = Turns::new();
    for (number, priority) in [(1, 0), (2, 7), (3, 7), (4, 2)] {
        turns.set(number, priority, 1);
        turns.ready(number);
    }
    let next = |turns: &Turns| turns.next().map_or(0, |(number, _)| number);
    let mut order = vec![];
    for _ in 0..3 {
        order.push(next(&turns));
        turns.did(1_000_000);
    }
    assert_eq!(order, [2, 3, 2]);
    for (rests, then) in [(3, 2), (2, 4), (4, 1)] {
        turns.rest(rests);
        assert_eq!(next(&turns), then);
    }
    turns.set(1, 5, 1);
    turns.ready(4);
    assert_eq!(next(&turns), 1, "it is still ready");
    turns.set(4, 5, 2);
    turns.did(1);
    turns.rest(1);
    turns.ready(1);
    assert_eq!(turns.next(), Some((4, 2 * u64::from(SHARE))));
    turns.did(2 * u64::from(SHARE));
    assert_eq!(turns.next(), Some((1, u64::from(SHARE))), "a whole turn");
}

/// Turns and a plain list, in random order, agree on who is next.
// spec: CHAN-6
#[test]
fn rings_are_lists() {
    for seed in 0..seeds(500) {
        let (mut dice, mut turns) = (Dice(seed), Turns::new());
        let mut rings: [VecDeque<u8>; 8] = Default::default();
        let mut priorities = [0_u8; 256];
        for _ in 0..300 {
            let number = 1 + dice.below(12) as u8;
            let ring = usize::from(priorities[usize::from(number)]);
            match dice.below(4) {
                0 => {
                    let priority = dice.below(8) as u8;
                    let was = rings[ring].contains(&number);
                    rings[ring].retain(|other| *other != number);
                    if was {
                        rings[usize::from(priority)].push_back(number);
                    }
                    priorities[usize::from(number)] = priority;
                    turns.set(number, priority, 1);
                }
                1 => {
                    if !rings[ring].contains(&number) {
                        rings[ring].push_back(number);
                    }
                    turns.ready(number);
                }
                2 => {
                    rings[ring].retain(|other| *other != number);
                    turns.rest(number);
                }
                _ => {
                    turns.did(u64::from(SHARE));
                    if let Some(ring) = rings.iter_mut().rev().find(|ring| !ring.is_empty()) {
                        ring.rotate_left(1);
                    }
                }
            }
            let first = rings.iter().rev().find_map(|ring| ring.front().copied());
            assert_eq!(turns.next().map(|(number, _)| number), first, "seed {seed}");
        }
    }
}

/// Records that an honest sender cannot send are refused.
// spec: CHAN-3, CHAN-9
#[test]
fn forged_channel_records_are_malformed() {
    let short = SHORT_MAX as u64;
    let mut inward = ChannelReceiver::new(1 << 20);
    assert_eq!(inward.on_short(0, 8), Err(Malformed), "no channel");
    assert_eq!(inward.on_short(1, short + 1), Err(Malformed), "not short");
    assert_eq!(inward.on_part(1, 8), Err(Malformed), "of no message");
    assert_eq!(inward.begin(1, short, true), Err(Malformed), "short, and in parts");
    inward.begin(1, short + 1, true).expect("the shortest that is long");
    assert_eq!(inward.begin(1, short + 1, true), Err(Malformed), "within another");
    assert_eq!(inward.on_short(1, 8), Err(Malformed), "within another");
    assert_eq!(inward.on_part(1, short + 2), Err(Malformed), "longer than what is left");
    assert_eq!(inward.on_part(1, 0), Err(Malformed), "empty");
    inward.on_short(2, 8).expect("another channel");
    let mut inward = ChannelReceiver::new(1 << 20);
    let all = (0..WINDOW / 64).map(|_| inward.on_short(7, 0)).collect::<Result<Vec<_>, _>>();
    let all = all.expect("within the window");
    assert_eq!(inward.on_short(7, 0), Err(Malformed), "beyond the window");
    inward.ran(7, all[0]);
    assert_eq!(inward.on_short(7, 0), Err(Malformed), "beyond what it was told of");
    assert_eq!(inward.due(7), None, "nothing was run");

    let mut outward = ChannelSender::new();
    assert!(outward.send_at_once(3, 100));
    assert_eq!(outward.on_back(3, 101), Err(Malformed), "more than was sent");
    outward.on_back(3, 64).expect("a part of it");
    assert_eq!(outward.on_back(3, 63), Err(Malformed), "less than before");
    assert_eq!(outward.on_back(0, 0), Err(Malformed), "no channel");
    outward.offer(3, 100);
    outward.clear();
    assert_eq!(outward.next(), None, "it is lost");
    outward.on_back(3, 100).expect("what was sent before");
}

/// Heads and the words of parts are read as they were written, and all else is refused.
// spec: CHAN-8, CHAN-9
#[test]
fn heads_are_read_as_written() {
    let heads = [Head { number: 1, begins: None }, Head { number: 255, begins: Some(32) }];
    for head in heads {
        assert_eq!(Head::parse(head.encode()), Ok(head));
    }
    assert_eq!(heads[1].encode(), [255, 1, 0, 0, 32, 0, 0, 0]);
    for wrong in [[0, 1, 0, 0, 32, 0, 0, 0], [1, 1, 0, 0, 31, 0, 0, 0], [1, 0, 0, 0, 32, 0, 0, 0]] {
        assert_eq!(Head::parse(wrong), Err(Malformed), "{wrong:?}");
    }
    assert_eq!(Head::parse([1, 2, 0, 0, 0, 0, 0, 0]), Err(Malformed), "a bit that has no meaning");
    for start in [Start::First { id: 1 << 20, total: 1 << 26 }, Start::Later] {
        let (words, len) = start.encode(9);
        assert_eq!(Start::parse(&words[..len]), Ok((9, start)));
        assert_eq!(Start::parse(&words[..len - 1]), Err(Malformed));
        assert_eq!(Start::parse(&[&words[..len], &[0; 8]].concat()), Err(Malformed));
    }
    assert_eq!((CHANNEL, BACK), (18, 19));
    let back = Back { number: 255, back: 1 << 40 };
    assert_eq!(back.encode(), [255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(Back::parse(&back.encode()), Ok(back));
    for wrong in [Back { number: 0, back: 1 }.encode(), (1_u128 << 8).to_le_bytes()] {
        assert_eq!(Back::parse(&wrong), Err(Malformed), "{wrong:?}");
    }
    assert_eq!(Back::parse(&back.encode()[..15]), Err(Malformed));
    assert_eq!(Back::parse(&[&back.encode()[..], &[0]].concat()), Err(Malformed));
}
