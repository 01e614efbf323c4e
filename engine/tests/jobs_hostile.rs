//! Unconnected processes at the sockets of a job: other users, garbage, silence, many at once.
#[path = "hostile/attacker.rs"]
mod attacker;
mod common;
#[path = "jobs_hostile/containers.rs"]
mod containers;
#[path = "jobs_hostile/little_memory.rs"]
mod little_memory;
#[path = "jobs_hostile/memory_files.rs"]
mod memory_files;

use attacker::{HELLO, Parts, REFUSE, VERSION};
use ayre::error::Refusal;
use ayre::{Config, Port, SetupError};
use common::ports::{tell, told};
use common::system::descriptors;
use common::{Directory, Family, Line, Process, Random, iterations, with_processes};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, send, socket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIZE: usize = 3;

/// A rank that joins and then talks with all the others.
fn rank() {
    let mut port = Port::join().unwrap();
    let me = port.rank();
    let others: Vec<_> = port.peers().filter(|peer| peer.index() != me).collect();
    assert_eq!(others.len(), SIZE - 1);
    for other in &others {
        tell(&mut port, *other, 0, me as u64);
    }
    let mut sum = 0;
    for _ in &others {
        let mut word = [0; 8];
        port.recv(&mut word, None).unwrap();
        sum += u64::from_le_bytes(word);
    }
    assert_eq!(sum as usize, (0..SIZE).sum::<usize>() - me);
    port.barrier().unwrap();
}

fn connect_only(path: &Path) -> OwnedFd {
    // The rank may not be there yet.
    while !path.exists() {
        std::thread::yield_now();
    }
    let stranger = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&stranger, &SocketAddrUnix::new(path).unwrap()).expect("what is seen listens");
    stranger
}

/// Starts a job, all ranks but the last, and does something to each of their sockets before that.
fn disturb(family: &Family, mut disturb: impl FnMut(&Path)) {
    let mut ranks: Vec<_> = (0..SIZE - 1).map(|rank| family.start_rank(rank, SIZE)).collect();
    for rank in 0..SIZE - 1 {
        disturb(&family.directory().join(&format!("{rank}.sock")));
    }
    ranks.push(family.start_rank(SIZE - 1, SIZE));
    ranks.iter_mut().for_each(Process::succeeds);
    assert!(family.directory().entries().is_empty());
}

// spec: LIFE-3, LIFE-9
#[test]
fn garbage_from_other_processes_does_not_disturb_a_job() {
    with_processes(
        |_, _| rank(),
        |family| {
            for seed in iterations(10) {
                let mut random = Random::new(seed);
                let mut strangers = Vec::new();
                disturb(family, |path| {
                    for _ in 0..1 + random.below(8) {
                        let stranger = connect_only(path);
                        say_something(&stranger, &mut random);
                        // Some hang up at once, the others stay.
                        if random.below(2) == 0 {
                            strangers.push(stranger);
                        }
                    }
                });
            }
        },
    );
}

/// Nothing, noise, or packets that begin as the real ones do.
fn say_something(stranger: &OwnedFd, random: &mut Random) {
    for _ in 0..random.below(4) {
        let mut packet: Vec<u8> = (0..16).flat_map(|_| random.word().to_le_bytes()).collect();
        if random.below(2) == 0 {
            packet.truncate(64);
            packet[..8].copy_from_slice(&random.below(8).to_le_bytes());
            packet[8..16].copy_from_slice(&1u64.to_le_bytes());
            packet[16..24].copy_from_slice(&random.below(4).to_le_bytes());
        } else {
            packet.truncate(1 + random.below(128) as usize);
        }
        // Whoever has been turned away is not heard.
        let _ = send(stranger, &packet, rustix::net::SendFlags::NOSIGNAL);
    }
}

/// A rank of another version is refused, and both ends say which rank and both versions.
// spec: LIFE-27, LANE-14
#[test]
fn a_rank_of_another_version_ends_joining_at_both_ends() {
    with_processes(
        |_, line| {
            let error = Port::join().expect_err("no rank of this version comes").to_string();
            let said =
                [format!("rank 1 speaks version {} ", VERSION + 1), format!("version {VERSION}")];
            let said = said.map(|text| error.contains(&text));
            line.say(u64::from(said == [true; 2]));
        },
        |family| {
            let mut rank = family.start_rank(0, 2);
            let other = connect_only(&family.directory().join("0.sock"));
            let parts = Parts::new();
            assert!(attacker::send(&other, [HELLO, VERSION + 1, 1, 0, 1, 0, 0, 0], &parts.fds()));
            let (words, _) = attacker::receive(&other).expect("a refusal");
            let [code, detail] = Refusal::Version(VERSION).to_words();
            assert_eq!(words[..4], [REFUSE, VERSION, code, detail]);
            assert_eq!(rank.line.hear(), 1, "the reason names the rank and both versions");
            rank.succeeds();
        },
    );
}

/// A port whose number is beyond the job's ranks would be taken for one of them.
// spec: LIFE-5, LIFE-27
#[test]
fn a_port_of_another_number_is_refused_and_joining_goes_on() {
    with_processes(
        |_, _| rank(),
        |family| {
            disturb(family, |path| {
                for number in [SIZE, 1000] {
                    let config = Config::new().number(number as u16);
                    let mut stranger = Port::open(config).expect("a port opens");
                    drop(connect_only(path));
                    let refused = stranger.connect(path);
                    let Err(SetupError::Refused { why: Refusal::Full(size), .. }) = refused else {
                        panic!("{refused:?}");
                    };
                    assert_eq!(size, SIZE as u64);
                }
            });
        },
    );
}

/// Many that say nothing and stay.
// spec: LIFE-9
#[test]
fn silent_callers_do_not_delay_a_job() {
    with_processes(
        |_, _| rank(),
        |family| {
            let mut strangers = Vec::new();
            disturb(family, |path| {
                strangers.extend((0..SILENT).map(|_| connect_only(path)));
            });
        },
    );
}

const SILENT: usize = 100;

/// Becomes another user, for good.
fn become_nobody() {
    // SAFETY: changes the credentials of this process only, which is done with its own.
    let changed = unsafe { libc::setresgid(65534, 65534, 65534) == 0 }
        // SAFETY: as above.
        && unsafe { libc::setresuid(65534, 65534, 65534) == 0 };
    assert!(changed, "root may become anybody");
}

/// Opens a folder and a socket to everybody, so that only the port itself can refuse.
fn open_to_all(directory: &Directory, path: Option<&Path>) {
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(directory.path(), 0o777);
    path.into_iter().for_each(|path| mode(path, 0o777));
}

fn may_change_users() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: only root can start a process of another user");
    }
    root
}

fn path() -> PathBuf {
    std::env::var("SOCKET").unwrap().into()
}

/// The first process is another user's, the second one is not.
fn connect_as_other_user(number: u64, line: &Line) {
    let mut port = Port::open(Config::new().number(number as u16 + 1)).unwrap();
    if number == 0 {
        become_nobody();
        let error = port.connect(path()).unwrap_err();
        let refused = matches!(error, SetupError::Refused { why: Refusal::User(65534), .. });
        line.say(u64::from(refused));
    } else {
        line.hear();
        let peer = port.connect(path()).unwrap();
        assert_eq!(told(&mut port, peer, 0), 7);
    }
}

// spec: LIFE-7
#[test]
fn a_process_of_another_user_is_refused() {
    with_processes(
        |number, line| connect_as_other_user(number, &line),
        |family| {
            if !may_change_users() {
                return;
            }
            let path = family.directory().join("socket");
            let mut port = Port::open(Config::new()).unwrap();
            port.listen(&path).unwrap();
            open_to_all(family.directory(), Some(&path));
            let start = || {
                family.start_with(|command| {
                    command.env("SOCKET", &path);
                })
            };
            let (mut nobody, mut friend) = (start(), start());
            // One call: it passes the stranger over and completes the friend's connection.
            let (other, to_friend) = (&nobody.line, &friend.line);
            let peer = std::thread::scope(|scope| {
                scope.spawn(move || {
                    assert_eq!(other.hear(), 1, "the stranger was not refused");
                    to_friend.say(0);
                });
                port.accept().unwrap()
            });
            assert_eq!(peer.index(), 2);
            assert_eq!(port.counters().strangers(), 1);
            tell(&mut port, peer, 0, 7);
            nobody.succeeds();
            friend.succeeds();
        },
    );
}

/// Listens as another user.
fn listen_as_nobody(line: &Line) {
    let config = Config::new().number(1).setup_timeout(Duration::from_secs(5));
    let mut port = Port::open(config).unwrap();
    become_nobody();
    port.listen(path()).unwrap();
    line.say(0);
    line.hear();
    assert!(port.peers().next().is_none());
}

// spec: LIFE-7
#[test]
fn a_port_of_another_user_is_not_connected_to() {
    with_processes(
        |_, line| listen_as_nobody(&line),
        |family| {
            if !may_change_users() {
                return;
            }
            let path = family.directory().join("socket");
            open_to_all(family.directory(), None);
            let mut nobody = family.start_with(|command| {
                command.env("SOCKET", &path);
            });
            nobody.line.hear();
            let mut port = Port::open(Config::new()).unwrap();
            let error = port.connect(&path).unwrap_err();
            assert!(
                matches!(error, SetupError::Rejected { why: Refusal::User(65534), .. }),
                "{error}"
            );
            nobody.line.say(0);
            nobody.succeeds();
        },
    );
}

/// A port that listens does not keep resources of callers that it has refused.
fn turn_away(line: &Line) {
    let config = Config::new().setup_timeout(Duration::from_millis(1));
    let mut port = Port::open(config).unwrap();
    let path = path();
    port.listen(&path).unwrap();
    let before = descriptors().len();
    let mut random = Random::new(1);
    for _ in 0..500 {
        let stranger = connect_only(&path);
        say_something(&stranger, &mut random);
        drop(stranger);
        port.accept().unwrap_err();
    }
    assert_eq!(descriptors().len(), before);
    line.say(0);
}

// spec: LIFE-9, LIM-1
#[test]
fn callers_from_outside_the_job_leave_no_resources() {
    with_processes(
        |_, line| turn_away(&line),
        |family| {
            family
                .start_with(|command| {
                    command.env("SOCKET", family.directory().join("socket"));
                })
                .succeeds();
        },
    );
}
