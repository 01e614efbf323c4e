//! Jobs of other launchers: ranks that meet at a board, of a server of our own and of real ones.
mod common;
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
use slurm::Cluster;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
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

/// A rank of a job of one finds one answer spoilt.
fn expect_refusal(family: &Family, request: &'static str, answer: Option<&[u8]>, named: &str) {
    println!("{request}: {}", answer.unwrap_or(b"hangs up").escape_ascii());
    let answer = answer.map(<[u8]>::to_vec);
    let server = Server::with(1, move |asked, right| match asked.contains(request) {
        true => answer.clone(),
        false => Some(right.into_bytes()),
    });
    let prepare = |command: &mut Command| {
        command.env("NAMED", named);
    };
    start(family, &server, (0, 1), prepare).succeeds();
}

// spec: LIFE-26
#[test]
fn a_launcher_that_answers_wrongly_is_named() {
    const STEPS: [&str; 6] = [
        "cmd=init",
        "cmd=get_maxes",
        "cmd=get_my_kvsname",
        "cmd=put",
        "cmd=barrier_in",
        "cmd=get ",
    ];
    let long = [b'x'; 5000];
    let wrong: [(&'static str, &[u8], &str); 10] = [
        ("cmd=init", b"cmd=response_to_init pmi_version=2 rc=-1\n", "pmi_version=2"),
        ("cmd=get_maxes", b"cmd=maxes keylen_max=64\n", "keylen_max=64"),
        ("cmd=get_maxes", b"cmd=maxes vallen_max=256\n", "vallen_max=256"),
        ("cmd=get_maxes", b"cmd=maxes vallen_max=-1\n", "vallen_max=-1"),
        ("cmd=get_my_kvsname", b"cmd=my_kvsname name=a\n", "name=a"),
        ("cmd=put", b"cmd=put_result rc=1 msg=full\n", "msg=full"),
        ("cmd=get ", b"cmd=get_result rc=-1 value=secret\n", "rc=-1"),
        ("cmd=get ", b"cmd=get_result rc=0\n", "get_result rc=0"),
        ("cmd=get ", b"cmd=get_result rc=0 value=secret\n", "rank 0"),
        ("cmd=get ", b"cmd=get_result rc=0 value=ayre-card-9/a/b/c/d/e\n", "rank 0"),
    ];
    with_processes(
        |_, _| refuse(),
        |family| {
            for step in STEPS {
                expect_refusal(family, step, None, "launcher");
                expect_refusal(family, step, Some(b"\n"), "the launcher answers ``");
                expect_refusal(family, step, Some(b"rc=0 cmd\n"), "rc=0 cmd");
                expect_refusal(family, step, Some(b"cmd=\xff\n"), "no text");
                expect_refusal(family, step, Some(&long), "without an end");
            }
            for (step, answer, named) in wrong {
                expect_refusal(family, step, Some(answer), named);
            }
        },
    );
}

// spec: LIFE-4, LIFE-26
#[test]
fn a_launcher_or_a_rank_that_does_not_come_is_waited_for_so_long() {
    with_processes(
        |_, _| refuse(),
        |family| {
            let hasty = |command: &mut Command| {
                command.env("HASTY", "").env("NAMED", "timed out waiting for the launcher");
            };
            // Rank 1 of 2 never comes, and then not even an answer.
            start(family, &Server::new(2), (0, 2), hasty).succeeds();
            let silent = Server::with(1, |_, _| Some(Vec::new()));
            start(family, &silent, (0, 1), hasty).succeeds();
        },
    );
}

// spec: LIFE-2, LIFE-23, LIFE-26
#[test]
fn what_a_launcher_says_wrongly_in_the_environment_is_named() {
    with_processes(
        |_, _| refuse(),
        |family| {
            let spoilt = |place: (usize, usize), named: &str, spoil: &dyn Fn(&mut Command)| {
                let prepare = |command: &mut Command| {
                    command.env("NAMED", named);
                    spoil(command);
                };
                start(family, &Server::new(1), place, prepare).succeeds();
            };
            spoilt((0, 1), "PMI_SIZE is not", &|command| {
                command.env_remove("PMI_SIZE");
            });
            spoilt((0, 1), "PMI_RANK=first", &|command| {
                command.env("PMI_RANK", "first");
            });
            spoilt((1, 1), "rank 1 of 1 ranks", &|_| {});
            spoilt((0, 1025), "1024 at most", &|_| {});
            spoilt((0, 1), "AYRE_PROTECTION=none", &|command| {
                command.env("AYRE_PROTECTION", "none");
            });
            spoilt((0, 1), "AYRE_ETHERNET=maybe", &|command| {
                command.env("AYRE_ETHERNET", "maybe");
            });
            // No socket is behind the number, and no launcher behind the other variables.
            for fd in ["", "x", "0x", "-1", "1000"] {
                spoilt((0, 1), "AYRE_JOB is not set", &|command| {
                    command.env("PMI_FD", fd).env_remove("PMIX_RANK");
                });
            }
            spoilt((0, 1), "srun --mpi=", &|command| {
                command.env("PMI_FD", "-1").env_remove("PMIX_RANK").env("SLURM_PROCID", "0");
            });
        },
    );
}

// spec: SEAL-13
#[test]
fn ranks_that_differ_in_protection_do_not_join() {
    with_processes(
        |_, _| refuse(),
        |family| {
            let server = Server::new(3);
            let start = |rank| {
                start(family, &server, (rank, 3), |command| {
                    command.env("NAMED", "AYRE_PROTECTION of rank 2");
                    command.env("AYRE_PROTECTION", if rank == 2 { "plain" } else { "sealed" });
                })
            };
            let mut ranks: Vec<_> = (0..3).map(start).collect();
            ranks.iter_mut().for_each(Process::succeeds);
        },
    );
}

/// Two ranks that take each other for one of another host, one of which finds its answers spoilt.
fn expect_no_key(family: &Family, victim: usize, spoil: fn(&str, &str) -> Option<String>) {
    let server = Server::with(2, move |asked, right| {
        let spoilt = spoil(asked, right.trim_end()).map(|answer| answer + "\n");
        let right = spoilt.unwrap_or(right);
        let seen = if asked.ends_with("key=ayre-card-1") {
            right.replace("card-2/", "card-2/other-")
        } else {
            right
        };
        Some(seen.into_bytes())
    });
    let start = |rank| {
        start(family, &server, (rank, 2), |command| {
            command.env("NAMED", "key").env("AYRE_NET", "127.0.0.1");
        })
    };
    let mut ranks = [start(0), start(1)];
    // The other one waits for it, and is killed.
    ranks[victim].succeeds();
}

// spec: SEAL-13
#[test]
fn a_key_that_was_changed_or_is_for_another_rank_is_not_taken() {
    with_processes(
        |_, _| refuse(),
        |family| {
            expect_no_key(family, 1, |asked, right| {
                let other = if right.ends_with('0') { '1' } else { '0' };
                let changed = || format!("{}{other}", &right[..right.len() - 1]);
                asked.ends_with("key=ayre-key-1-0").then(changed)
            });
            // Rank 0 seals to somebody else.
            expect_no_key(family, 1, |asked, right| {
                let (rest, _) = right.rsplit_once('/')?;
                asked.ends_with("key=ayre-card-1").then(|| format!("{rest}/{}", "7".repeat(64)))
            });
            expect_no_key(family, 0, |asked, right| {
                let (rest, _) = right.rsplit_once('/')?;
                asked.ends_with("key=ayre-card-1").then(|| format!("{rest}/sealed"))
            });
        },
    );
}

// spec: LIFE-24, LIFE-31
#[test]
fn what_a_rank_leaves_that_is_killed_while_it_joins_is_removed_by_the_next() {
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
    let knock = || {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap();
        rustix::net::connect(&socket, &address)
    };
    assert_eq!(knock(), Ok(()), "it listens before it tells where");
    rank.kill();
    assert_eq!(knock(), Err(rustix::io::Errno::CONNREFUSED));
}

/// A folder with a `libpmix` of our own.
fn library() -> Directory {
    let directory = Directory::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/launchers/pmix.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-shared", "-fPIC", source, "-o"]);
    assert!(compiler.arg(directory.join("libpmix.so.2")).status().unwrap().success());
    directory
}

/// A rank of a job of one below a launcher that speaks PMIx.
fn start_by_pmix(
    family: &Family,
    library: &Directory,
    prepare: impl FnOnce(&mut Command),
) -> Process {
    family.start_with(|command| {
        command.env("LD_LIBRARY_PATH", library.path());
        command.env("PMIX_NAMESPACE", "job").env("PMIX_RANK", "0").env_remove("PMI_FD");
        prepare(command);
    })
}

/// Joins a job of one, or finds that it cannot be, for the reason that it is told.
fn join_or_refuse() {
    if std::env::var_os("NAMED").is_some() {
        return refuse();
    }
    let port = Port::join().unwrap();
    assert_eq!((port.rank(), port.size()), (0, 1));
}

// spec: LIFE-23, LIFE-26
#[test]
fn a_library_of_pmix_is_used_as_declared_and_believed_nothing() {
    const WRONG: [(&str, &str); 15] = [
        ("init", "PMIX_ERROR"),
        ("rank", "rank 1 of 1 ranks"),
        ("no size", "PMIX_ERR_NOT_FOUND"),
        ("null size", "a value is missing"),
        ("size of another type", "a value has another type"),
        ("put", "PMIX_ERROR"),
        ("commit", "PMIX_ERROR"),
        ("fence", "PMIX_ERROR"),
        ("fence later", "PMIX_ERROR"),
        ("fence for ever", "timed out waiting for the launcher"),
        ("no text", "PMIX_ERR_NOT_FOUND"),
        ("null text", "a value is missing"),
        ("text of another type", "a value has another type"),
        ("text is null", "a value has another type"),
        ("bytes", "a value has another type"),
    ];
    with_processes(
        |_, _| join_or_refuse(),
        |family| {
            let library = library();
            for how in ["PMIX_AS_USUAL", "PMIX_AT_ONCE"] {
                let prepare = |command: &mut Command| {
                    command.env(how, "").env_remove("NAMED");
                };
                start_by_pmix(family, &library, prepare).succeeds();
            }
            let expect = |wrong: &str, named: &str, how: &str| {
                println!("{wrong}: {named}");
                let prepare = |command: &mut Command| {
                    command.env("PMIX_WRONG", wrong).env("NAMED", named).env(how, "");
                };
                start_by_pmix(family, &library, prepare).succeeds();
            };
            for (wrong, named) in WRONG {
                let how = if wrong == "fence for ever" { "HASTY" } else { "PMIX_AS_USUAL" };
                expect(wrong, named, how);
            }
            expect("put", "status -1", "PMIX_SPEECHLESS");
        },
    );
}

/// An example, built with this test: `cargo test` builds both.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(std::path::Path::parent).unwrap();
    profile.join("examples").join(name)
}

/// Runs an example by a launcher that is installed here.
fn run_by(launcher: &str, options: &[&str]) {
    let mut command = Command::new(launcher);
    command.args(options).arg(example("hello"));
    for name in ["AYRE_JOB", "AYRE_RANK", "AYRE_SIZE", "PMI_FD", "PMIX_RANK"] {
        command.env_remove(name);
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // It need not be there on a machine without others.
    command.env("OMPI_MCA_plm_rsh_agent", "false");
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("LEFT OUT: no {launcher}, so NOTHING was tested with it (scripts/deps.sh)");
            return;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for rank in 0..4 {
        assert!(text.contains(&format!("rank {rank}: hello, neighbour")), "{text}");
    }
}

// spec: LIFE-23
#[test]
fn mpich_starts_ranks() {
    run_by("mpiexec.hydra", &["-n", "4"]);
}

// spec: LIFE-23
#[test]
fn open_mpi_starts_ranks() {
    run_by("mpirun.openmpi", &["--oversubscribe", "-n", "4"]);
}

/// One of four ranks on two hosts, as Slurm sees it too.
fn talk_below_slurm() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let mut port = Port::join().unwrap();
    assert_eq!((port.rank(), port.size()), (number("SLURM_PROCID"), 4));
    assert_eq!(port.rank() % 2, number("SLURM_NODEID"), "the next rank is of the other host");
    greet(&mut port);
    let links = port.wire_report().unwrap().links;
    let mut peers: Vec<_> = links.iter().map(|link| link.peer).collect();
    peers.sort_unstable();
    let others = [1, 3].map(|other| other - port.rank() % 2);
    assert_eq!(peers, others, "links with those of the other host");
    assert!(links.iter().all(|link| link.is_sealed), "{links:?}");
    port.barrier().unwrap();
    port.leave().ok();
}

// spec: LIFE-23, LIFE-24, LIFE-25, SEAL-13
#[test]
fn slurm_starts_ranks_on_two_hosts() {
    with_processes(
        |_, _| talk_below_slurm(),
        |family| {
            let Some(cluster) = Cluster::new(family) else { return };
            for how in ["--mpi=pmi2", "--mpi=pmix"] {
                if !cluster.runs(how) {
                    eprintln!("LEFT OUT: this Slurm has no {how}, so it was NOT tested");
                    continue;
                }
                cluster.start_ranks(family, how, "slurm_starts_ranks_on_two_hosts").succeeds();
            }
        },
    );
}
