//! Revocation against holders in other processes: hammering, stopped and killed ones.
mod common;

use ayre::memory::{Fenced, Grant};
use ayre::{Config, Fault, PeerId, Port, PostOptions, Region, RegionOptions};
use ayre::{RemoteRegion, Rights, SetupError};
use common::ports::{
    assert_content, content, owner, post, progress_until, take_faults, tell, told,
};
use common::{Executor, Family, Line, Process, Random, iterations, with_processes};
use std::time::Duration;

const SMALL: usize = 64 << 10;
const LARGE: usize = 64 << 20;
/// A region that no test revokes.
const OTHER: u64 = u64::MAX;
const STALE: u32 = 1;
const GO_ON: u32 = 2;
const LAST: u64 = u64::MAX;

/// A process that writes what it is granted until it is revoked, round by round.
fn holder(number: u64, line: &Line, mode: Executor, hammer: impl Fn(&mut Hand, u64)) {
    let config = Config::new().number(number as u16 + 1).mode(mode.mode());
    let mut port = Port::open(config).unwrap();
    let owner = port.connect(path_of(line)).unwrap();
    let other = port.accept_region(owner, OTHER).unwrap();
    let mut hand = Hand { port, owner, faulted: 0 };
    let mut stale = Vec::new();
    loop {
        let round = told(&mut hand.port, owner, GO_ON);
        if round == LAST {
            return;
        }
        let remote = hand.port.accept_region(owner, round).unwrap();
        hammer(&mut hand, round);
        hand.until_stale(&remote, round);
        stale.push(remote);
        hand.check_stale(&stale);
        assert_eq!(hand.port.fetch_add(&other, 0, 1), Ok(stale.len() as u64 - 1));
        tell(&mut hand.port, owner, STALE, round);
    }
}

fn path_of(line: &Line) -> std::path::PathBuf {
    let len = line.hear();
    let bytes: Vec<u8> = (0..len).map(|_| line.hear() as u8).collect();
    String::from_utf8(bytes).unwrap().into()
}

/// A holder's port.
struct Hand {
    port: Port,
    owner: PeerId,
    faulted: u64,
}

impl Hand {
    /// Writes until a flush says that the key is stale.
    // spec: REV-1, FLUSH-2, NOTI-7
    fn until_stale(&mut self, remote: &RemoteRegion, round: u64) {
        let mut random = Random::new(round);
        let data = vec![round as u8; remote.len() as usize];
        loop {
            self.write_once(remote, &data, &mut random);
            self.faulted += take_faults(&mut self.port, Fault::StaleKey);
            if self.faulted != 0 {
                break;
            }
        }
        assert_eq!(self.port.flush(self.owner), Err(Fault::StaleKey));
        take_faults(&mut self.port, Fault::StaleKey);
        self.faulted = 0;
    }

    fn write_once(&mut self, remote: &RemoteRegion, data: &[u8], random: &mut Random) {
        let len = remote.len();
        let result = match random.below(8) {
            0 => post(&mut self.port, |port| port.put(remote, 0, data, PostOptions::new())),
            1..=4 => {
                let at = random.below(len);
                let data = &data[..random.below(len - at + 1) as usize];
                post(&mut self.port, |port| port.put(remote, at, data, PostOptions::new()))
            }
            5 => {
                let (at, value) = (random.below(len / 8) * 8, random.word());
                post(&mut self.port, |port| {
                    port.put_immediate(remote, at, value, PostOptions::new())
                })
            }
            _ => {
                let at = random.below(len / 8) * 8;
                let result = post(&mut self.port, |port| port.fetch_add(remote, at, 1));
                assert!(result.is_ok() || result == Err(Fault::StaleKey));
                return;
            }
        };
        result.expect("what the owner decides is a completion");
    }

    /// Handles of earlier rounds stay stale, although their slots may serve again.
    // spec: KEY-1, KEY-2
    fn check_stale(&mut self, stale: &[RemoteRegion]) {
        for remote in stale {
            let result = post(&mut self.port, |port| port.fetch_add(remote, 0, 1));
            assert_eq!(result, Err(Fault::StaleKey));
            let put = post(&mut self.port, |port| port.put(remote, 0, b"late", PostOptions::new()));
            put.unwrap();
            assert_eq!(self.port.flush(self.owner), Err(Fault::StaleKey));
            assert_eq!(take_faults(&mut self.port, Fault::StaleKey), 2);
        }
    }
}

/// The owner, in the test's own process, and its holder.
struct Owner {
    port: Port,
    peer: PeerId,
    region: Region,
    other: Region,
    process: Process,
}

impl Owner {
    fn new(family: &Family, executor: Executor, len: usize, grace: Duration) -> Self {
        let config = Config::new().revoke_grace(grace);
        let name = format!("{executor:?}");
        let mut port = owner(family.directory(), &name, executor, config);
        let region = port.alloc(len, RegionOptions::new()).unwrap();
        let other = port.alloc(64, RegionOptions::new()).unwrap();
        let (peer, process) = join(family, &mut port, &name, &other, executor);
        Self { port, peer, region, other, process }
    }

    /// Grants the region and waits until the holder has begun to write it.
    fn grant(&mut self, round: u64) -> Grant {
        let all = 0..self.region.len();
        let grant = self.port.share(self.peer, &self.region, all, Rights::all(), round).unwrap();
        let before = content(&self.region);
        tell(&mut self.port, self.peer, GO_ON, round);
        let mut now = vec![0; before.len().min(4096)];
        let tail = before.len() - now.len();
        let region = self.region.clone();
        progress_until(&mut self.port, |_| {
            region.read(0, &mut now);
            let begun = now != before[..now.len()];
            region.read(tail, &mut now);
            begun || now != before[tail..]
        });
        grant
    }

    /// Waits until the holder has seen that its key is stale, and finds that nothing has changed.
    // spec: REV-1, REV-2
    fn expect_stale(&mut self, round: u64, before: &[u8]) {
        assert_eq!(told(&mut self.port, self.peer, STALE), round);
        assert_content(&self.region, before);
    }

    fn finish(mut self, rounds: u64) {
        tell(&mut self.port, self.peer, GO_ON, LAST);
        self.process.succeeds();
        assert_eq!(self.other.load(0), rounds);
    }
}

/// Starts a holder and connects with it; hands it the region that is not revoked.
fn join(
    family: &Family,
    port: &mut Port,
    name: &str,
    other: &Region,
    executor: Executor,
) -> (PeerId, Process) {
    let process = family.start_with(|command| {
        command.env("HOLDER", format!("{executor:?}"));
    });
    let path = family.directory().join(name).to_string_lossy().into_owned();
    process.line.say(path.len() as u64);
    path.bytes().for_each(|byte| process.line.say(u64::from(byte)));
    let peer = port.accept().unwrap();
    port.share(peer, other, 0..64, Rights::all(), OTHER).unwrap();
    (peer, process)
}

fn executor_of_holder() -> Executor {
    let name = std::env::var("HOLDER").unwrap();
    *Executor::ALL.iter().find(|executor| format!("{executor:?}") == name).unwrap()
}

/// Lets a random number of the holder's instructions pass.
fn dawdle(random: &mut Random, port: &mut Port, executor: Executor) {
    for _ in 0..random.scaled(13) {
        if executor == Executor::Progress {
            port.progress();
        } else {
            std::hint::spin_loop();
        }
    }
}

// spec: REV-1, REV-2
#[test]
fn no_write_lands_once_revoke_has_returned() {
    let child = |number, line: Line| holder(number, &line, executor_of_holder(), |_, _| {});
    with_processes(child, |family| {
        for executor in Executor::ALL {
            let mut owner = Owner::new(family, executor, SMALL, Duration::from_millis(100));
            let seeds = iterations(30);
            let rounds = seeds.end - seeds.start;
            for seed in seeds {
                let grant = owner.grant(seed);
                dawdle(&mut Random::new(seed), &mut owner.port, executor);
                let fenced = owner.port.revoke(grant).unwrap();
                let after = content(&owner.region);
                assert!(executor == Executor::Direct || fenced == Fenced::Drained);
                owner.expect_stale(seed, &after);
            }
            owner.finish(rounds);
        }
    });
}

/// A holder that is stopped is never waited for longer than the deadline, and what it writes when
/// it goes on reaches nobody.
// spec: REV-2, REV-3, REV-4, LIFE-15
#[test]
fn a_holder_that_is_stopped_anywhere_is_fenced() {
    let child = |number, line: Line| holder(number, &line, executor_of_holder(), |_, _| {});
    with_processes(child, |family| {
        for executor in Executor::ALL {
            let mut owner = Owner::new(family, executor, SMALL, Duration::from_millis(2));
            let seeds = iterations(40);
            let rounds = seeds.end - seeds.start;
            let mut moved = 0;
            for seed in seeds {
                let grant = owner.grant(seed);
                dawdle(&mut Random::new(!seed), &mut owner.port, executor);
                owner.process.stop();
                let before = (executor == Executor::Direct).then(|| content(&owner.region));
                let fenced = owner.port.revoke(grant).unwrap();
                let after = content(&owner.region);
                if let Some(before) = before {
                    assert!(before == after, "revoking changed the region");
                }
                moved += u64::from(fenced == Fenced::Moved);
                owner.process.resume();
                owner.expect_stale(seed, &after);
            }
            println!("{executor:?}: {moved} of {rounds} stopped holders were inside an operation");
            assert!(executor == Executor::Direct || moved == 0);
            owner.finish(rounds);
        }
    });
}

/// A process that writes the whole region again and again until it is revoked, round by round.
fn large_holder(number: u64, line: &Line) {
    let mut port = Port::open(Config::new().number(number as u16 + 1)).unwrap();
    let owner = port.connect(path_of(line)).unwrap();
    let other = port.accept_region(owner, OTHER).unwrap();
    loop {
        let round = told(&mut port, owner, GO_ON);
        if round == LAST {
            return;
        }
        let remote = port.accept_region(owner, round).unwrap();
        let mut data = vec![0; remote.len() as usize];
        while port.flush(owner).is_ok() {
            let next = data[0] % 250 + 1;
            data.fill(next);
            port.put(&remote, 0, &data, PostOptions::new()).unwrap();
        }
        take_faults(&mut port, Fault::StaleKey);
        port.fetch_add(&other, 0, 1).unwrap();
        tell(&mut port, owner, STALE, round);
    }
}

/// Stops the holder such that it has written a part of the region, and so is inside a put.
///
/// Copying routines write the very ends out of order, so it looks a little further inside.
fn stop_inside(owner: &Owner) {
    let ends = || (owner.region.load(1 << 14), owner.region.load(LARGE - (1 << 14)));
    loop {
        owner.process.stop();
        let before = ends();
        if before.0 != before.1 {
            return;
        }
        owner.process.resume();
        while ends() == before {
            std::thread::yield_now();
        }
    }
}

// spec: REV-2, REV-3, REV-4
#[test]
fn a_holder_stopped_inside_a_put_loses_the_storage() {
    with_processes(
        |number, line| large_holder(number, &line),
        |family| {
            let mut owner = Owner::new(family, Executor::Direct, LARGE, Duration::from_millis(10));
            let seeds = iterations(4);
            let rounds = seeds.end - seeds.start;
            for seed in 1..=rounds {
                let grant = owner.grant(seed);
                stop_inside(&owner);
                let before = content(&owner.region);
                assert_eq!(owner.port.revoke(grant).unwrap(), Fenced::Moved);
                assert_content(&owner.region, &before);
                owner.process.resume();
                owner.expect_stale(seed, &before);
                owner.region.write(0, &vec![0xff; LARGE]);
            }
            owner.finish(rounds);
        },
    );
}

/// A second holder of the same region, which looks at what it is told to.
fn onlooker(line: &Line) {
    let mut port = Port::open(Config::new().number(2)).unwrap();
    let owner = port.connect(path_of(line)).unwrap();
    let other = port.accept_region(owner, OTHER).unwrap();
    let remote = port.accept_region(owner, 7).unwrap();
    let narrow = port.accept_region(owner, 8).unwrap();
    let mut bytes = [0; 8];
    port.get(&remote, 0, &mut bytes, PostOptions::new()).unwrap();
    port.put(&narrow, 0, b"a narrow", PostOptions::new()).unwrap();
    tell(&mut port, owner, GO_ON, 0);

    told(&mut port, owner, GO_ON);
    let found = port.get(&remote, 0, &mut bytes, PostOptions::new());
    assert_eq!(found, Err(Fault::StaleKey.into()));
    assert_eq!(port.flush(owner), Err(Fault::StaleKey));
    port.put(&narrow, 0, b"too late", PostOptions::new()).unwrap();
    assert_eq!(port.flush(owner), Err(Fault::StaleKey));
    port.fetch_add(&other, 8, 1).unwrap();
    let again = port.accept_region(owner, 9).unwrap();
    port.put(&again, 0, b"new life", PostOptions::new()).unwrap();
    port.flush(owner).unwrap();
    tell(&mut port, owner, GO_ON, 1);
    told(&mut port, owner, GO_ON);
}

// spec: REV-3
#[test]
fn all_capabilities_of_a_moved_region_end_and_no_other() {
    let child = |number, line: Line| match number {
        0 => large_holder(number, &line),
        _ => onlooker(&line),
    };
    with_processes(child, |family| {
        let mut owner = Owner::new(family, Executor::Direct, LARGE, Duration::from_millis(10));
        let name = format!("{:?}", Executor::Direct);
        let (watcher, mut process) =
            join(family, &mut owner.port, &name, &owner.other, Executor::Direct);
        let (port, region) = (&mut owner.port, &owner.region);
        let whole = port.share(watcher, region, 0..LARGE, Rights::READ, 7).unwrap();
        let part = LARGE / 2..LARGE / 2 + 8;
        let narrow = port.share(watcher, region, part.clone(), Rights::all(), 8).unwrap();
        told(port, watcher, GO_ON);

        let grant = owner.grant(3);
        stop_inside(&owner);
        let before = content(&owner.region);
        assert_eq!(owner.port.revoke(grant).unwrap(), Fenced::Moved);
        for ended in [whole, narrow] {
            let again = owner.port.revoke(ended);
            assert!(matches!(again, Err(SetupError::Fault(Fault::StaleKey))), "{again:?}");
        }
        tell(&mut owner.port, watcher, GO_ON, 0);
        owner.port.share(watcher, &owner.region, part.clone(), Rights::all(), 9).unwrap();
        assert_eq!(told(&mut owner.port, watcher, GO_ON), 1);
        let mut expected = before;
        expected[part].copy_from_slice(b"new life");
        assert_content(&owner.region, &expected);
        owner.process.resume();
        owner.expect_stale(3, &expected);
        assert_eq!(owner.other.load(8), 1);
        tell(&mut owner.port, watcher, GO_ON, 1);
        process.succeeds();
        owner.finish(1);
    });
}

/// The deadline is so far away that waiting for it would be noticed.
// spec: REV-4, LIFE-13
#[test]
fn a_killed_holder_is_not_waited_for() {
    let child = |number: u64, line: Line| match executor_of_holder() {
        Executor::Direct if number.is_multiple_of(2) => large_holder(number, &line),
        executor => holder(number, &line, executor, |_, _| {}),
    };
    with_processes(child, |family| {
        for seed in iterations(12) {
            let executor = Executor::of(seed);
            let mut owner = Owner::new(family, executor, LARGE / 8, Duration::from_secs(3600));
            let grant = owner.grant(1);
            dawdle(&mut Random::new(seed), &mut owner.port, executor);
            owner.process.kill();
            let before = (executor == Executor::Direct).then(|| content(&owner.region));
            assert_eq!(owner.port.revoke(grant).unwrap(), Fenced::Drained);
            if let Some(before) = before {
                assert_content(&owner.region, &before);
            }
            std::fs::remove_file(family.directory().join(&format!("{executor:?}"))).unwrap();
        }
    });
}
