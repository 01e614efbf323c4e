//! Scripts of attacks, read from bytes: for the fuzzer, and for tests with random bytes.
#![allow(dead_code, reason = "each fuzz target uses other parts of it")]
use crate::attacker::{Attacker, DONE, LANES, Lane, Offer, Parts, memory_file, sealed_file};
use crate::world::{Equipped, LANDING, REGION, World};
use ayre::deposit::{self, DepositMessage, Form, Instruction, Mask, OPERAND, Program, X, Y, Z};
use ayre::memory::{Atomic, AtomicOp, Classes, Key, Width};
use ayre::message::EAGER_MAX;
use ayre::{Mode, PeerId, PostOptions};
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES};
use ayre_proto::deposit::message::Posted;
use ayre_proto::lane::Kind;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;

/// Attackers that one world sees before it is made anew.
const ATTACKERS: u32 = 100;
/// Attackers between two rounds of honest traffic, which take long.
const PER_ROUND: u32 = 5;

/// A world that several scripts are played in, one attacker each.
pub(crate) struct Stage {
    mode: Mode,
    name: &'static str,
    world: Option<(World, u32)>,
}

impl Stage {
    pub(crate) const fn new(mode: Mode, name: &'static str) -> Self {
        Self { mode, name, world: None }
    }

    fn world(&mut self) -> &mut World {
        if let Some((world, played)) = &mut self.world
            && played.is_multiple_of(PER_ROUND)
        {
            world.honest_round();
        }
        if self.world.as_ref().is_none_or(|(_, played)| *played == ATTACKERS) {
            self.world = None;
            self.world = Some((World::new(self.mode, self.name), 0));
        }
        let (world, played) = self.world.as_mut().expect("made above");
        *played += 1;
        world
    }
}

/// Bytes as numbers; zeros behind the end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u64 {
        let taken = self.bytes(8);
        taken.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    fn words(&mut self, len: usize) -> Vec<u64> {
        (0..len).map(|_| self.word()).collect()
    }

    /// A number up to 255, or a word anywhere.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => self.word(),
            254 => u64::MAX - u64::from(self.byte()),
            small => u64::from(small) * 8,
        }
    }
}

/// A line with any status word but the right sequence number, or a word anywhere.
fn write_raw(attacker: &mut Attacker, script: &mut Script<'_>) {
    let which = script.byte();
    let lane = LANES[usize::from(which % 3)];
    if which & 128 != 0 || !attacker.has(lane) {
        let offset = script.word() % attacker.memory.words() * 8;
        return attacker.memory.store(offset, script.word());
    }
    let status = script.word() << 16 | u64::from(attacker.next_sequence(lane));
    let payload = script.words(usize::from(which >> 2 & 7));
    attacker.put_line(lane, status, &payload);
}

fn finish(world: &mut World, attacker: &Attacker) {
    world.drain();
    world.check_secret(attacker);
    // Its connection may be gone already, with what it wrote.
    let _ = world.victim.disconnect(PeerId(attacker.number as u16));
}

/// Commands to the victim, with keys that exist: operation, key, offset and length are the
/// script's.
pub(crate) fn commands(stage: &mut Stage, bytes: &[u8]) {
    let world = stage.world();
    let mut script = Script(bytes);
    let Equipped { mut attacker, key: own, .. } = world.granted_attacker();
    let keys = [own, world.honest_key(), Key { slot: 7, generation: 0 }];
    while !script.is_over() {
        match script.byte() % 4 {
            0 => write_raw(&mut attacker, &mut script),
            1 => world.drain(),
            _ => {
                let key = keys[usize::from(script.byte() % 3)];
                let mut words = vec![0; COMMAND_BYTES / 8];
                words[0] = script.word() & 0xffff_ffff | u64::from(key.slot) << 32;
                words[1] = u64::from(key.generation) | u64::from(script.byte()) << 32;
                words[2] = script.number();
                words[4] = script.number();
                words[5] = script.number();
                let data = script.byte();
                words.extend(script.words(usize::from(data % 64)));
                attacker.put_long(Lane::Requests, Kind::Command, &words);
            }
        }
    }
    finish(world, &attacker);
}

/// Deposit messages to the victim: instructions, registers, places and lengths are the script's,
/// and so is what else an inlet's key is used for.
pub(crate) fn deposits(stage: &mut Stage, bytes: &[u8]) {
    let world = stage.world();
    let mut script = Script(bytes);
    let mut depositing = world.depositing_attacker();
    let key = depositing.inlet.key();
    while !script.is_over() {
        match script.byte() % 16 {
            0 => write_raw(&mut depositing.attacker, &mut script),
            1 => world.drain(),
            2 => {
                // A put, get or atomic with a key that is none for that.
                let mut words = vec![0; COMMAND_BYTES / 8];
                words[0] = script.word() & 0xffff_fff8 | u64::from(key.slot) << 32;
                words[0] |= u64::from(script.byte() % 7);
                words[1] = u64::from(key.generation);
                (words[2], words[4]) = (script.number(), script.number());
                words.extend(script.words(2));
                depositing.attacker.put_long(Lane::Requests, Kind::Command, &words);
            }
            _ => {
                let epoch = depositing.epoch.wrapping_sub(u8::from(script.byte() == 7));
                let words = message(&mut script, key, epoch);
                let brought = Posted::brought(&words).div_ceil(8) as usize;
                let words = [words.to_vec(), script.words(brought)].concat();
                depositing.attacker.put_long(Lane::Requests, Kind::Command, &words);
            }
        }
        world.victim.progress();
        depositing.check_registers();
        depositing.let_run();
    }
    finish(world, &depositing.attacker);
}

/// A message that parses, most often, and that would do harm if it were let.
fn message(script: &mut Script<'_>, key: Key, epoch: u8) -> [u64; COMMAND_BYTES / 8] {
    let registers = [(); 3].map(|()| script.byte() % 32);
    let form = match script.byte() % 8 {
        0 => Form::Pointer { entry: u16::from(script.byte() % 4), registers },
        1 => Form::Carried(Program::new().then(X.set(OPERAND)).carry(registers)),
        2 => Form::Carried(Program::new().then(X.add(Y)).give(Z).carry(registers)),
        3 => Form::Carried(Program::new().read(deposit::AddressMode::Direct).carry(registers)),
        4 => Form::Carried(Program::new().write(deposit::AddressMode::Indexed).carry(registers)),
        _ => {
            let word = script.word() & !(0xf_u64 << 5) | u64::from(script.byte() % 12) << 5;
            Instruction::parse(word).map_or(Form::Probe, Form::Carried)
        }
    };
    let (brings, operand) = (script.byte().is_multiple_of(2), script.number());
    let (len, mask) = (u16::from(script.byte() % 16), Mask(u64::MAX << (script.byte() % 2)));
    let message = DepositMessage { form, operand, mask, len, brings, is_answered: !brings };
    Posted { key, epoch, classes: Classes::empty(), tag: 7, value: 8, message }.encode()
}

/// Posts something that the attacker then answers, or not; nothing that waits for it.
fn ask(world: &mut World, equipped: &Equipped, script: &mut Script<'_>) {
    let (victim, remote) = (&mut world.victim, &equipped.remote);
    let (options, data) = (PostOptions::new().requester().completer(), [1; 600]);
    let (what, size) = (script.byte(), usize::from(script.byte()) * 4);
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let _ = match what % 4 {
        0 => victim.put(remote, 0, &data[..size.min(600)], options).map(|_| ()),
        1 => {
            let landing = LANDING.start..LANDING.start + size.min(600);
            victim.get(remote, 8, world.local.slice(landing), options).map(|_| ())
        }
        2 => victim.atomic(remote, 8, add, options).map(|_| ()),
        _ => victim.send(equipped.peer, 1, &data[..size.clamp(1, 600)]),
    };
}

/// Answers and counts, to operations that the victim has posted or not.
pub(crate) fn responses(stage: &mut Stage, bytes: &[u8]) {
    let world = stage.world();
    let mut script = Script(bytes);
    let mut equipped = world.granted_attacker();
    while !script.is_over() {
        let attacker = &mut equipped.attacker;
        match script.byte() % 6 {
            0 => write_raw(attacker, &mut script),
            1 => world.drain(),
            2 => attacker.memory.store(attacker.control_in(DONE), script.number() / 8),
            3 => ask(world, &equipped, &mut script),
            _ => {
                let (status, number) = (u64::from(script.byte() & 15), script.number() / 8);
                let mut words = vec![status << 32 | u64::from(number as u32), script.number()];
                debug_assert_eq!(words.len() * 8, RESPONSE_BYTES);
                let data = script.byte();
                words.extend(script.words(usize::from(data % 100)));
                attacker.put_long(Lane::Responses, Kind::Response, &words);
            }
        }
    }
    finish(world, &equipped.attacker);
}

/// Lines of a direct connection.
pub(crate) fn lines(stage: &mut Stage, bytes: &[u8]) {
    let world = stage.world();
    let mut script = Script(bytes);
    let Equipped { mut attacker, .. } = world.granted_attacker();
    let mut message = [0; EAGER_MAX];
    while !script.is_over() {
        write_raw(&mut attacker, &mut script);
        let _ = world.victim.poll_notification();
        let _ = world.victim.try_recv(&mut message);
    }
    finish(world, &attacker);
}

/// Packets with files of all kinds, and a victim that takes what it is offered.
pub(crate) fn control(stage: &mut Stage, bytes: &[u8]) {
    let world = stage.world();
    let mut script = Script(bytes);
    let (attacker, peer) = world.attacker(script.byte() & 1 == 1);
    let (len, fixed) = (REGION as u64, SealFlags::SHRINK | SealFlags::GROW);
    let parts = Parts::new();
    let files: [OwnedFd; 3] =
        [sealed_file(len), memory_file(len, SealFlags::empty()), memory_file(64, fixed)];
    let palette: Vec<BorrowedFd<'_>> =
        parts.fds().into_iter().chain(files.iter().map(AsFd::as_fd)).collect();
    while !script.is_over() {
        let fds: Vec<_> = (0..script.byte() % 6)
            .map(|_| palette[usize::from(script.byte()) % palette.len()])
            .collect();
        let name = u64::from(script.byte() % 2);
        let sent = match script.byte() % 3 {
            0 => {
                let (base, len, mapped) = (script.number(), script.number(), script.number());
                let offer = Offer { name, rights: u64::from(script.byte()), base, len, mapped };
                attacker.offer_region(offer, fds.first().copied())
            }
            1 => {
                let lines = script.number() / 8;
                attacker.send([crate::attacker::OFFER_QUEUE, name, lines, 0, 0, 0, 0, 0], &fds)
            }
            _ => {
                let mut words = [0; 8];
                words.fill_with(|| script.number());
                words[0] = u64::from(script.byte() % 8);
                attacker.send(words, &fds)
            }
        };
        match script.byte() % 3 {
            _ if !sent => break,
            0 => drop(world.victim.accept_region(peer, name)),
            1 => drop(world.victim.accept_queue(peer, name)),
            _ => world.victim.progress(),
        }
    }
    finish(world, &attacker);
}
