//! Jobs of other launchers: ranks that meet at a board, of a server of our own and of real ones.
mod common;
#[path = "launchers/real.rs"]
mod real;
#[path = "launchers/refusals.rs"]
mod refusals;
#[path = "launchers/server.rs"]
mod server;
#[path = "launchers/slurm.rs"]
mod slurm;

use ayre::{Config, Port, SetupError};
use common::net_hosts::{Hosts, KINDS, Kind, enter};
use common::{Directory, Family, Line, Process, with_processes};
use rustix::fd::AsRawFd;
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use server::Server;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Starts a rank below a server. A process below a launcher further out inherits the variables of
/// that one: they must not count.
fn start(
    family: &Family,
    server: &Arc<Server>,
    (rank, size): (usize, usize),
    prepare: impl FnOnce(&mut Command),
) -> Process {
    let socket = server.attend();
    let number = socket.as_raw_fd();
    family.start_with(|command| {
        command.env("PMI_FD", number.to_string());
        command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", size.to_string());
        command.env("PMIX_NAMESPACE", "of another job").env("PMIX_RANK", "0");
        prepare(command);
        let inherit = move || Ok(rustix::io::fcntl_setfd(&socket, FdFlags::empty())?);
        // SAFETY: between fork and exec it makes one system call and allocates nothing.
        unsafe { command.pre_exec(inherit) };
    })
}

/// Talks with every other rank, and tells the test how many are reached by links, how many of these
/// are sealed, and how many paths they have.
fn talk(line: &Line) {
    if let Ok(host) = std::env::var("HOST") {
        enter(&host);
    }
    assert!(Port::is_launched());
    let mut port = Port::join().unwrap();
    let told = ["AYRE_RANK", "PMI_RANK"].into_iter().find_map(|name| std::env::var(name).ok());
    assert_eq!(port.rank().to_string(), told.unwrap());
    greet(&mut port);
    let links = port.wire_report().map_or(Vec::new(), |report| report.links);
    line.say(links.len() as u64);
    line.say(links.iter().filter(|link| link.is_sealed).count() as u64);
    line.say(links.iter().map(|link| link.paths.len()).sum::<usize>() as u64);
    port.barrier().unwrap();
    port.leave().ok();
}

/// A message to each rank, and one from each.
fn greet(port: &mut Port) {
    let (rank, size) = (port.rank(), port.size());
    for other in 0..size {
        let peer = port.peer(other).unwrap();
        port.send_wait(peer, rank as u32, &[rank as u8]).unwrap();
    }
    let mut heard: Vec<_> = (0..size)
        .map(|_| {
            let mut byte = [0];
            let message = port.recv(&mut byte, None).unwrap();
            assert_eq!(message.source.index(), usize::from(byte[0]));
            byte[0]
        })
        .collect();
    heard.sort_unstable();
    assert!(heard.into_iter().eq(0..size as u8));
}

/// Hears what `talk` says.
fn links(ranks: &mut [Process]) -> Vec<[u64; 3]> {
    let told = ranks.iter().map(|rank| [(); 3].map(|()| rank.line.hear())).collect();
    ranks.iter_mut().for_each(Process::succeeds);
    told
}

/// Joins a job that cannot be, for the reason that it is told.
fn refuse() {
    let named = std::env::var("NAMED").unwrap();
    let config = match std::env::var("HASTY") {
        Ok(_) => Config::new().setup_timeout(Duration::from_millis(50)),
        Err(_) => Config::new(),
    };
    let error = Port::join_with(config).expect_err("there is no such job");
    let text = error.to_string();
    let is_named = matches!(
        error,
        SetupError::Environment(_) | SetupError::TimedOut(_) | SetupError::Os { .. }
    );
    assert!(is_named && text.contains(&named), "{text:?} does not name {named:?}");
    assert!(!text.contains("secret"), "{text}");
}

// spec: LIFE-5, LIFE-23, LIFE-24
#[test]
fn ranks_of_one_host_share_memory() {
    with_processes(
        |_, line| talk(&line),
        |family| {
            for size in [1, 2, 5] {
                let server = Server::new(size);
                let start = |rank| start(family, &server, (rank, size), |_| {});
                let mut ranks: Vec<_> = (0..size).map(start).collect();
                assert_eq!(links(&mut ranks), vec![[0; 3]; size]);
                // Nobody asks for addresses where there is one host.
                assert_eq!(server.passed(), (1, size));
            }
        },
    );
}

/// Ranks 0, 2 and 4 are of one host, 1 and 3 of the other one.
fn over_hosts(family: &Family, hosts: &Hosts, prepare: impl Fn(&mut Command)) -> Vec<[u64; 3]> {
    let server = Server::new(5);
    let start = |rank| {
        start(family, &server, (rank, 5), |command| {
            command.env("HOST", hosts.of(rank % 2));
            prepare(command);
        })
    };
    let mut ranks: Vec<_> = (0..5).map(start).collect();
    let links = links(&mut ranks);
    // Cards, keys and addresses; in plain jobs there are no keys.
    let rounds = if links[0][1] == 0 { 2 } else { 3 };
    assert_eq!(server.passed(), (rounds, 5));
    links
}

// spec: LIFE-24, LIFE-25, SEAL-12, SEAL-13
#[test]
fn ranks_of_several_hosts_are_joined_by_links() {
    with_processes(
        |_, line| talk(&line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            let usual = over_hosts(family, &hosts, |_| {});
            assert_eq!(usual, [[2, 2, 2], [3, 3, 3], [2, 2, 2], [3, 3, 3], [2, 2, 2]]);
            let other = over_hosts(family, &hosts, |command| {
                command.env("AYRE_PROTECTION", "plain").env("AYRE_NET", "c1,10.77.0.0/24");
            });
            assert_eq!(other, [[2, 0, 4], [3, 0, 6], [2, 0, 4], [3, 0, 6], [2, 0, 4]]);
        },
    );
}

// spec: LIFE-21, LIFE-25, LIFE-36, OPEN-30
#[test]
fn a_rank_is_found_at_the_address_that_answers() {
    with_processes(
        |_, line| talk(&line),
        |family| {
            for Kind { what, before, behind } in &KINDS {
                let Some(hosts) = Hosts::with(before, behind) else { return };
                let server = Server::new(2);
                let mut ranks = [0, 1].map(|rank| {
                    start(family, &server, (rank, 2), |command| {
                        command.env("HOST", hosts.of(rank));
                    })
                });
                let told = [0, 1].map(|rank| server.text(&format!("ayre-net-{rank}")));
                eprintln!("{what}: {told:?}");
                assert!(told.iter().all(|told| told.starts_with("any,")), "{told:?}");
                assert_eq!(links(&mut ranks), [[1; 3]; 2], "{what}");
                let job = Directory::new();
                let mut ranks = [0, 1].map(|rank| {
                    family.start_rank_with(rank, 2, |command| {
                        command.env("AYRE_JOB", job.path()).env("HOST", hosts.of(rank));
                        command.env("AYRE_HOST_RANKS", format!("{rank}..{}", rank + 1));
                        command.env("AYRE_PROTECTION", "plain");
                    })
                });
                assert_eq!(links(&mut ranks), [[1, 0, 1]; 2], "{what}, by `ayre run`");
            }
        },
    );
}

/// Of three ranks on two hosts, some are open at addresses that are named, some at all.
// spec: LIFE-36
#[test]
fn ranks_with_named_addresses_and_ranks_without_have_links_of_one_path() {
    with_processes(
        |_, line| talk(&line),
        |family| {
            let Some(hosts) = Hosts::new() else { return };
            for named in [[true, false], [false, true], [true, true]] {
                let server = Server::new(2);
                let start = |rank: usize| {
                    start(family, &server, (rank, 2), |command| {
                        command.env("HOST", hosts.of(rank));
                        named[rank].then(|| command.env("AYRE_NET", "c1,c0"));
                    })
                };
                let paths = if named == [true, true] { 2 } else { 1 };
                assert_eq!(links(&mut [start(0), start(1)]), [[1, 1, paths]; 2], "{named:?}");
            }
        },
    );
}

/// Each rank is a host of its own, and all have one job directory: nobody needs to bring files.
fn talk_plainly() {
    let mut port = Port::join().unwrap();
    let links = port.wire_report().unwrap().links;
    assert!(links.len() == 2 && links.iter().all(|link| !link.is_sealed), "{links:?}");
    // Links go when the first rank leaves.
    port.barrier().unwrap();
    port.leave().ok();
}

// spec: LIFE-21, SEAL-12
#[test]
fn a_plain_job_of_ayre_run_has_no_key() {
    with_processes(
        |_, _| talk_plainly(),
        |family| {
            let start = |rank| {
                family.start_rank_with(rank, 3, |command| {
                    command.env("AYRE_HOST_RANKS", format!("{rank}..{}", rank + 1));
                    command.env("AYRE_NET", "127.0.0.1").env("AYRE_PROTECTION", "plain");
                })
            };
            let mut ranks: Vec<_> = (0..3).map(start).collect();
            ranks.iter_mut().for_each(Process::succeeds);
        },
    );
}

// spec: LIFE-24, LIFE-31
#[test]
fn files_of_a_rank_killed_while_joining_are_removed_by_the_next() {
    with_processes(
        |_, _| {
            let _ = Port::join();
        },
        |family| {
            let runtime = Directory::new();
            let kill_one = || {
                let server = Server::new(2);
                let mut rank = start(family, &server, (0, 2), |command| {
                    command.env("XDG_RUNTIME_DIR", runtime.path()).env("TMPDIR", runtime.path());
                });
                let name = name_on(&server.text("ayre-card-0"));
                kill_at(&mut rank, &name);
                name
            };
            let (first, second) = (kill_one(), kill_one());
            let [folder] = &runtime.entries()[..] else { panic!("the user's folder alone") };
            let left = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
            let left: Vec<_> = left.collect();
            let is_of = |name: &str| left.iter().any(|file| file.to_str().unwrap().contains(name));
            assert!(left.len() == 1 && is_of(&second) && !is_of(&first), "{left:?}");
        },
    );
}

/// Where a rank listens, by its card.
fn name_on(card: &str) -> String {
    let mut fields = card.split('/');
    fields.find(|field| field.starts_with("ayre-") && field.len() == 37).unwrap().to_owned()
}

/// Kills a rank, after which nobody listens at its name.
fn kill_at(rank: &mut Process, name: &str) {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let try_connect = || {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap();
        rustix::net::connect(&socket, &address)
    };
    assert_eq!(try_connect(), Ok(()), "it listens before it tells where");
    rank.kill();
    assert_eq!(try_connect(), Err(rustix::io::Errno::CONNREFUSED));
}
