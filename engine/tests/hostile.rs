//! A connected peer writes anything into the memory that it shares with a port. The port does not
//! crash, hang, or access memory that was not granted, and its other peers are not affected.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{ACTIVE, Attacker, BARRIER, DONE, LANES, Lane, NOTED, Random};
use ayre::memory::{Atomic, AtomicOp, Key, Width};
use ayre::{Mode, PostOptions};
use ayre_proto::command::{Request, Response};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Status as Ended;
use ayre_proto::lane::Kind;
use ayre_proto::notify::Classes;
use ayre_proto::units::Claim;
use world::{Equipped, LANDING, World, seeds};

const KINDS: [Kind; 7] = [
    Kind::Message,
    Kind::Notification,
    Kind::Command,
    Kind::Response,
    Kind::Record,
    Kind::GatedMessage,
    Kind::Continuation,
];

/// The keys that an attacker may know of: its own, another peer's, and guesses.
struct Keys {
    own: Key,
    other: Key,
}

impl Keys {
    fn pick(&self, random: &mut Random) -> Key {
        let guess = Key { slot: random.below(8) as u16, generation: random.below(3) as u32 };
        let wild = Key { slot: random.word() as u16, generation: random.nasty() as u32 };
        let stale = Key { generation: self.own.generation.wrapping_sub(1), ..self.own };
        random.pick(&[self.own, self.own, self.own, self.other, guess, wild, stale])
    }
}

fn any_action(random: &mut Random) -> Action {
    let ops = [AtomicOp::Add, AtomicOp::Swap, AtomicOp::CompareSwap, AtomicOp::Fcaa];
    let atomic = Atomic {
        width: random.pick(&[Width::W32, Width::W64]),
        op: random.pick(&ops),
        operand: random.nasty(),
        compare: random.nasty(),
    };
    match random.below(6) {
        0 => Action::Put,
        1 => Action::Get,
        2 => Action::Immediate(random.nasty()),
        3 => Action::Notify,
        4 => Action::Atomic(atomic),
        _ => Action::Fetch(atomic),
    }
}

/// A command whose numbers are lies, with or without data behind it.
fn put_command(attacker: &mut Attacker, keys: &Keys, random: &mut Random) {
    let ends = [0, 8, 2040, 2048, 2049, u64::MAX - 7, u64::MAX, 1 << 63];
    let (offset, len) = (random.pick(&ends), random.pick(&ends));
    let command = Command {
        action: any_action(random),
        classes: Classes::from_bits_truncate(random.word() as u8),
        tag: random.word() as u32,
        value: random.nasty(),
        claim: Claim {
            key: keys.pick(random),
            offset: if random.below(2) == 0 { offset } else { random.nasty() },
            len: if random.below(2) == 0 { len } else { random.below(4096) },
        },
    };
    let mut words = Request { command, cookie: random.nasty() }.encode().to_vec();
    if random.below(4) == 0 {
        let at = random.below(6) as usize;
        words[at] = random.nasty();
    }
    if command.action == Action::Put || random.below(8) == 0 {
        words.extend((0..random.below(40)).map(|_| random.word()));
    }
    attacker.put_long(Lane::Requests, Kind::Command, &words);
}

/// An answer to something that the victim may have asked, or not.
fn put_response(attacker: &mut Attacker, random: &mut Random) {
    let number = if random.below(4) == 0 { random.nasty() } else { random.below(12) };
    let any = random.word() as u8;
    let status = Ended::from_code(random.pick(&[0, 0, 0, 15, 1, 4, 7, any]));
    let value = if random.below(2) == 0 { random.nasty() } else { random.below(1025) };
    let head = Response { number: number as u32, status, value }.encode();
    let data = (0..random.below(60)).map(|_| random.word());
    let words: Vec<u64> = head.into_iter().chain(data).collect();
    attacker.put_long(Lane::Responses, Kind::Response, &words);
}

/// A line that the victim looks at next, with a number that it expects, and nothing else right.
fn put_nonsense(attacker: &mut Attacker, random: &mut Random) {
    let lane = random.pick(&LANES);
    if !attacker.has(lane) {
        return;
    }
    let payload: Vec<u64> = (0..7).map(|_| random.nasty()).collect();
    match random.below(3) {
        0 => {
            let sequence = u64::from(attacker.next_sequence(lane));
            attacker.put_line(lane, random.word() << 16 | sequence, &payload);
        }
        1 => attacker.put_record(lane, random.pick(&KINDS), random.below(4096) as u32, &payload),
        _ => attacker.put_line(lane, random.word(), &payload),
    }
}

/// A word of the connection's memory, one that means something or any.
fn put_word(attacker: &Attacker, random: &mut Random) {
    let control = random.pick(&[0, 1, 2, DONE, BARRIER, NOTED, ACTIVE]);
    let offset = match random.below(4) {
        0 => attacker.control_in(control),
        1 => attacker.control_out(control),
        _ => random.below(attacker.memory.words()) * 8,
    };
    attacker.memory.store(offset, random.nasty());
}

/// One thing that only an attacker does.
fn attack(attacker: &mut Attacker, keys: &Keys, random: &mut Random) {
    match random.below(10) {
        0 => put_word(attacker, random),
        1 => put_nonsense(attacker, random),
        2 | 3 if attacker.has(Lane::Responses) => put_response(attacker, random),
        4 => attacker.memory.store(attacker.control_in(DONE), random.below(12)),
        5 => attacker.memory.store(attacker.control_in(random.below(3)), random.below(100)),
        6 => {
            let words: Vec<u64> = (0..random.below(30)).map(|_| random.word()).collect();
            let kind = if attacker.mediated { Kind::GatedMessage } else { Kind::Message };
            attacker.put_long(Lane::Messages, kind, &words);
        }
        7 => attacker.page.store(random.below(2) * 64, random.below(2)),
        _ if attacker.mediated => put_command(attacker, keys, random),
        _ => put_note(attacker, random),
    }
}

fn put_note(attacker: &mut Attacker, random: &mut Random) {
    let head = random.word() & 0xffff_ffff_0700_0000 | random.below(8) << 16;
    let words = [head, random.word(), random.nasty()];
    attacker.put_record(Lane::Requests, Kind::Notification, 24, &words);
}

/// One thing that a program does with a peer that it does not suspect, and that does not wait for
/// the peer: all fit one command. Whether it succeeds is between the two.
fn use_peer(world: &mut World, equipped: &Equipped, random: &mut Random) {
    let (victim, remote) = (&mut world.victim, &equipped.remote);
    let data: Vec<u8> = (0..random.below(600)).map(|at| at as u8).collect();
    let (options, offset) = (PostOptions::new().requester().completer(), random.below(1024));
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let _ = match random.below(6) {
        0 => victim.put(remote, offset, &data, options).map(|_| ()),
        1 => {
            let landing = LANDING.start..LANDING.start + random.below(600) as usize;
            victim.get(remote, offset, world.local.slice(landing), options).map(|_| ())
        }
        2 => victim.atomic(remote, offset & !7, add, options).map(|_| ()),
        3 => victim.notify(equipped.peer, options).map(|_| ()),
        4 => victim.put_immediate(remote, offset, 7, options).map(|_| ()),
        _ => victim.send(equipped.peer, 1, &data),
    };
}

/// Attacks on one world; an attacker whose connection was ended comes back.
fn random_attacks(mode: Mode, name: &str) {
    for (seed, mut random) in seeds(24) {
        println!("seed {seed}");
        let mut world = World::new(mode, name);
        let mut equipped = world.granted_attacker();
        for _ in 0..200 {
            let keys = Keys { own: equipped.key, other: world.honest_key() };
            attack(&mut equipped.attacker, &keys, &mut random);
            if random.below(2) == 0 {
                use_peer(&mut world, &equipped, &mut random);
            }
            if random.below(4) == 0 {
                world.drain();
            }
            if random.below(8) == 0 {
                world.honest_round();
            }
            if !world.victim.is_alive(equipped.peer) {
                world.check_secret(&equipped.attacker);
                equipped = world.granted_attacker();
            }
        }
        world.drain();
        world.honest_round();
        world.check_secret(&equipped.attacker);
        drop(equipped);
        world.honest_round();
    }
}

// spec: ERR-7, ERR-8, CAP-2, CAP-7, MSG-5
#[test]
fn arbitrary_bytes_in_a_mediated_connection_do_not_disturb_others() {
    random_attacks(Mode::Mediated, "any-bytes");
}

// spec: ERR-7, ERR-8, MSG-5
#[test]
fn arbitrary_bytes_in_a_direct_connection_do_not_disturb_others() {
    random_attacks(Mode::Direct, "any-bytes");
}
