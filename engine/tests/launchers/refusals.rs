//! Wrong answers of a launcher, or of a rank, are refused and named.
use super::common::{Family, Process, with_processes};
use super::server::Server;
use super::{refuse, start};
use std::process::Command;

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
fn wrong_launcher_variables_are_named() {
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
