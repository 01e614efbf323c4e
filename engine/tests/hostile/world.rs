//! A victim with a secret, an honest peer whose traffic must stay exactly correct, and an attacker.
//! All are in one thread, so that each run takes the same course.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use crate::attacker::{Attacker, Begun, Offer, Random};
use ayre::deposit::{self, Depot, Inlet, InletOptions, Program, Protection, Register, X, Y};
use ayre::error::Status;
use ayre::memory::{Classes, Key, Operation};
use ayre::message::EAGER_MAX;
use ayre::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A word that stands in the victim's memory where no attacker has a right to it, and nowhere else.
pub(crate) const SECRET: u64 = 0x5ec7_e75e_c7e7_5ec7;
/// Bytes of each of the victim's regions.
pub(crate) const REGION: usize = 8192;
/// The part that the attacker may read and write.
pub(crate) const GRANTED: std::ops::Range<usize> = 2048..4096;
/// The part of the victim's own region where its gets from the attacker land.
pub(crate) const LANDING: std::ops::Range<usize> = 1024..2048;

pub(crate) struct World {
    pub(crate) victim: Port,
    pub(crate) honest: Port,
    /// Granted to nobody.
    secret: Region,
    /// The secret everywhere but where the attacker has its grant.
    pub(crate) shared: Region,
    /// The secret everywhere but where gets land.
    pub(crate) local: Region,
    /// The honest peer's part of the victim.
    theirs: Region,
    pub(crate) to_victim: RemoteRegion,
    /// The victim's part of the honest peer.
    at_honest: Region,
    to_honest: RemoteRegion,
    round: u64,
    next_number: u64,
    pub(crate) path: PathBuf,
}

impl World {
    pub(crate) fn new(mode: Mode, name: &str) -> Self {
        // Whatever a call waits for is there before it, or never will be.
        let config = |number| {
            Config::new().mode(mode).number(number).setup_timeout(Duration::ZERO).spin(Spin::SHARED)
        };
        let (mut victim, mut honest) = Port::pair(config(0), config(1)).expect("two ports");
        let file = format!("ayre-{name}-{mode:?}-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(file);
        let _ = std::fs::remove_file(&path);
        victim.listen(&path).expect("the victim listens");
        let alloc = |port: &mut Port| port.alloc(REGION, RegionOptions::new()).expect("memory");
        let (secret, shared, local) = (alloc(&mut victim), alloc(&mut victim), alloc(&mut victim));
        let (theirs, at_honest) = (alloc(&mut victim), alloc(&mut honest));
        for offset in (0..REGION).step_by(8) {
            secret.store(offset, SECRET);
            if !GRANTED.contains(&offset) {
                shared.store(offset, SECRET);
            }
            if !LANDING.contains(&offset) {
                local.store(offset, SECRET);
            }
        }
        let (one, zero) = (victim.peer(1).expect("honest"), honest.peer(0).expect("victim"));
        victim.share(one, &theirs, 0..REGION, Rights::all(), 1).expect("a grant");
        honest.share(zero, &at_honest, 0..REGION, Rights::all(), 1).expect("a grant");
        let to_victim = honest.accept_region(zero, 1).expect("the victim's grant");
        let to_honest = victim.accept_region(one, 1).expect("the honest peer's grant");
        Self {
            victim,
            honest,
            secret,
            shared,
            local,
            theirs,
            to_victim,
            at_honest,
            to_honest,
            round: 0,
            next_number: 2,
            path,
        }
    }

    /// The key that the honest peer holds.
    pub(crate) fn honest_key(&self) -> Key {
        self.to_victim.key()
    }

    /// A number that no peer has had.
    pub(crate) fn fresh_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Lets an attacker connect.
    pub(crate) fn attacker(&mut self, mediated: bool) -> (Attacker, PeerId) {
        let begun = Begun::connect(&self.path.clone(), self.fresh_number(), mediated);
        let peer = self.victim.accept().expect("a correct introduction");
        (begun.finish(), peer)
    }

    /// Lets an attacker connect that has a grant of the victim, and offers memory of its own.
    pub(crate) fn granted_attacker(&mut self) -> Equipped {
        let (attacker, peer) = self.attacker(false);
        let grant = self.victim.share(peer, &self.shared, GRANTED, Rights::all(), 1);
        let grant = grant.expect("a grant");
        let file = crate::attacker::sealed_file(REGION as u64);
        let offered = attacker.offer_region(Offer::of(1, REGION as u64), Some(as_fd(&file)));
        assert!(offered, "the victim is there");
        let remote = self.victim.accept_region(peer, 1).expect("a truthful offer");
        Equipped { attacker, peer, key: grant.key(), remote }
    }

    /// Lets an attacker connect that has an inlet, into the part that attackers may write, with
    /// registers 8 to 15 of a depot whose others hold the secret. Register 6 is the tail of a queue
    /// of records of eight bytes.
    pub(crate) fn depositing_attacker(&mut self) -> Depositing {
        let (attacker, peer) = self.attacker(false);
        let depot = self.victim.create_depot().expect("a depot");
        (0..=255).for_each(|index| depot.set_register(index, SECRET).expect("nobody is inside"));
        depot.set_register(6, 0).expect("nobody is inside");
        depot.set_register(7, 8).expect("nobody is inside");
        (8..16).for_each(|index| depot.set_register(index, 0).expect("nobody is inside"));
        depot.protect(8..=15, Protection::all()).expect("nobody is inside");
        let [tail, size, none] = [6, 7, 255].map(Register::At);
        let append = Program::new().write(deposit::AddressMode::Indirect).then(X.add(Y));
        depot.store(0, &[append.store([tail, size, none])]).expect("there is a place");
        let options = InletOptions::new()
            .rights(Rights::READ | Rights::WRITE | Rights::PROGRAM)
            .registers(8..16)
            .entries(0..2)
            .longest(8)
            .holds();
        let part = (&self.shared, GRANTED);
        let inlet = self.victim.share_inlet(peer, &depot, part, &options, 2).expect("an inlet");
        Depositing { attacker, depot, inlet, epoch: 0 }
    }

    /// Messages, notifications and puts between the honest peer and the victim, in both directions.
    /// All must be exactly right within a bounded number of polls.
    pub(crate) fn honest_round(&mut self) {
        self.round += 1;
        let round = self.round;
        let data: Vec<u8> = (0..200).map(|at| (round * 7 + at) as u8).collect();
        let offset = round * 64 % (REGION as u64 - 200);
        let options = PostOptions::new().completer().tag(round as u32);
        let (victim, honest) = (&mut self.victim, &mut self.honest);
        let (one, zero) = (self.to_honest.peer(), self.to_victim.peer());
        victim.put(&self.to_honest, offset, &data, options).expect("room for a put");
        honest.put(&self.to_victim, offset, &data, options).expect("room for a put");
        victim.send(one, round as u32, &data).expect("room for a message");
        honest.send(zero, round as u32, &data).expect("room for a message");
        let polls = polls(victim);
        let mut within = |what: &str, mut is_there: Box<Attempt<'_>>| {
            let found = (0..polls).any(|_| {
                victim.progress();
                honest.progress();
                is_there(victim, honest)
            });
            assert!(found, "{what} of an honest peer, within {polls} polls");
        };
        within("a message", Box::new(|victim, _| took_message(victim, one, round, &data)));
        within("a message", Box::new(|_, honest| took_message(honest, zero, round, &data)));
        within("a notification", Box::new(|victim, _| took_notification(victim, one, round)));
        within("a notification", Box::new(|_, honest| took_notification(honest, zero, round)));
        within(
            "a flush",
            Box::new(|victim, honest| victim.is_flushed(one) && honest.is_flushed(zero)),
        );
        victim.flush(one).expect("no fault at the honest peer");
        honest.flush(zero).expect("no fault at the victim");
        for region in [&self.theirs, &self.at_honest] {
            let mut landed = vec![0; data.len()];
            region.read(offset as usize, &mut landed);
            assert_eq!(landed, data, "what was put landed");
        }
    }

    /// Takes whatever has come from attackers, as a program would that knows no better.
    pub(crate) fn drain(&mut self) {
        let mut message = [0; EAGER_MAX];
        for _ in 0..64 {
            self.victim.progress();
            let _ = self.victim.poll_notification();
            let _ = self.victim.try_recv(&mut message);
        }
    }

    /// Nothing that no grant covers was written, or told to the attacker.
    pub(crate) fn check_secret(&self, attacker: &Attacker) {
        assert!(!attacker.memory.holds(SECRET), "bytes that no grant covers were read");
        for offset in (0..REGION).step_by(8) {
            assert_eq!(self.secret.load(offset), SECRET, "a region without a grant");
            let is_ours = GRANTED.contains(&offset) || self.shared.load(offset) == SECRET;
            assert!(is_ours, "a word at {offset}, outside of the grant");
            let is_kept = LANDING.contains(&offset) || self.local.load(offset) == SECRET;
            assert!(is_kept, "a word at {offset}, where no get was to land");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Looks at the victim and at the honest peer.
type Attempt<'a> = dyn FnMut(&mut Port, &mut Port) -> bool + 'a;

/// An attacker with a grant, and the victim's handle of the memory that it offers.
pub(crate) struct Equipped {
    pub(crate) attacker: Attacker,
    pub(crate) peer: PeerId,
    pub(crate) key: Key,
    pub(crate) remote: RemoteRegion,
}

/// An attacker with an inlet.
pub(crate) struct Depositing {
    pub(crate) attacker: Attacker,
    depot: Depot,
    pub(crate) inlet: Inlet,
    /// Of messages that the inlet takes.
    pub(crate) epoch: u8,
}

impl Depositing {
    /// The inlet runs again, whatever it was that stopped it.
    pub(crate) fn let_run(&mut self) {
        if self.inlet.held().expect("nobody is inside").is_some() {
            self.inlet.reset().expect("nobody is inside");
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Registers that no message may name are as they were, but for the tail, which goes on by
    /// whole records and within the part.
    pub(crate) fn check_registers(&self) {
        for index in (0..6).chain(16..=255) {
            assert_eq!(self.depot.register(index), SECRET, "register {index}");
        }
        let tail = self.depot.register(6);
        assert!(tail.is_multiple_of(8) && tail <= GRANTED.len() as u64, "a tail of {tail}");
        assert_eq!(self.depot.register(7), 8, "the bytes of a record");
    }
}

/// Polls until everything that honest peers sent must have been seen: a few turns through all peers
/// with what each may have in its lanes.
fn polls(victim: &Port) -> usize {
    let highest = victim.peers().map(PeerId::index).max().unwrap_or(0);
    4 * (highest + 1) + 1024
}

fn took_message(port: &mut Port, from: PeerId, round: u64, data: &[u8]) -> bool {
    let mut buffer = [0; EAGER_MAX];
    let taken = port.try_recv(&mut buffer).expect("messages are at most this long");
    let Some(message) = taken.filter(|message| message.source == from) else { return false };
    assert_eq!((message.tag, &buffer[..message.len]), (round as u32, data));
    true
}

fn took_notification(port: &mut Port, from: PeerId, round: u64) -> bool {
    let Some(note) = port.poll_notification().filter(|note| note.source == from) else {
        return false;
    };
    let expected = (Classes::COMPLETER, Operation::Put, Status::Ok, round as u32);
    assert_eq!((note.class, note.operation, note.status, note.tag), expected);
    true
}

fn as_fd(file: &rustix::fd::OwnedFd) -> rustix::fd::BorrowedFd<'_> {
    rustix::fd::AsFd::as_fd(file)
}

/// Runs of a randomised test: more in a soak, which says so with the variable of proptest.
pub(crate) fn runs(usual: u64) -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse::<u64>().ok());
    cases.map_or(usual, |cases| usual * (cases / 256).clamp(1, 50))
}

pub(crate) fn seeds(usual: u64) -> impl Iterator<Item = (u64, Random)> {
    (1..=runs(usual)).map(|seed| (seed, Random::new(seed)))
}

pub(crate) fn socket_path(name: &str) -> PathBuf {
    let path =
        Path::new(&std::env::temp_dir()).join(format!("ayre-{name}-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}
