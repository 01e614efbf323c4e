//! Environment variables of a rank, and errors for wrong ones.
mod common;

use ayre::active::{Handler, Messenger};
use ayre::endpoint::raw::RawEndpoint;
use ayre::{Config, Port, SetupError, Spin};
use common::{Family, Line, Process, with_processes};
use std::fs::File;
use std::process::Command;
use std::time::Duration;

/// Joins a job that cannot be, for the reason that it is told.
fn refuse(_: &Line) {
    let named = std::env::var("WRONG").unwrap();
    let error = Port::join().expect_err("there is no such job");
    let text = error.to_string();
    assert!(matches!(error, SetupError::Environment(_)), "{text}");
    assert!(text.contains(&named), "{text:?} does not name {named}");
}

fn expect_refusal(family: &Family, named: &str, spoil: impl FnOnce(&mut Command)) {
    println!("{named} is wrong");
    let mut process = family.start_rank_with(1, 2, |command| {
        command.env("WRONG", named);
        spoil(command);
    });
    process.succeeds();
}

// spec: LIFE-2
#[test]
fn a_missing_variable_is_named() {
    with_processes(
        |_, line| refuse(&line),
        |family| {
            for name in ["AYRE_JOB", "AYRE_RANK", "AYRE_SIZE"] {
                expect_refusal(family, name, |command| {
                    command.env_remove(name);
                });
            }
        },
    );
}

// spec: LIFE-2
#[test]
fn a_wrong_variable_is_named() {
    let wrong = [
        ("AYRE_RANK", ""),
        ("AYRE_RANK", "first"),
        ("AYRE_RANK", "-1"),
        ("AYRE_RANK", "5"),
        ("AYRE_SIZE", "5000"),
        ("AYRE_RANK", "99999999999999999999"),
        ("AYRE_SIZE", "two"),
        ("AYRE_MODE", "fast"),
        ("AYRE_MODE", ""),
    ];
    with_processes(
        |_, line| refuse(&line),
        |family| {
            for (name, value) in wrong {
                println!("{name}={value:?}");
                expect_refusal(family, name, |command| {
                    command.env(name, value);
                });
            }
        },
    );
}

// spec: LIFE-23, LIFE-30
#[test]
fn a_wrong_setting_is_an_error_even_if_unused_and_lists_choices() {
    let wrong = [
        ("AYRE_NET", "nonsense", "lo 127.0.0.1"),
        ("AYRE_NET", "lo,lo,lo,lo,lo", "at most 4"),
        ("AYRE_PROTECTION", "foo", "`sealed`, `plain`"),
        ("AYRE_ETHERNET", "perhaps", "`never`, `required`"),
        ("AYRE_FAULTS", "loss=5", "a share such as 20%"),
        ("AYRE_TUNING", "/nowhere/at/all", "No such file"),
        ("AYRE_LOG", "loud", "`off`, `error`, `warn`"),
        ("AYRE_MODES", "direct", "AYRE_MODE, AYRE_NET"),
        ("AYRE_SOCKETS_POLCY", "/none", "AYRE_SOCKETS_POLICY"),
    ];
    with_processes(
        |_, line| refuse(&line),
        |family| {
            for (name, value, there_is) in wrong {
                println!("{name}={value:?}: {there_is}");
                for named in [name, there_is] {
                    expect_refusal(family, named, |command| {
                        command.env(name, value);
                    });
                }
            }
        },
    );
}

/// A port without a job looks, too.
fn open_none(_: &Line) {
    for error in [Port::open(Config::new()).err(), RawEndpoint::open(Spin::SHARED).err()] {
        let text = error.expect("a variable is wrong").to_string();
        assert!(text.contains("AYRE_MODES"), "{text}");
    }
}

// spec: LIFE-30
#[test]
fn every_port_looks_at_the_variables() {
    with_processes(
        |_, line| open_none(&line),
        |family| {
            let mut process = family.start_with(|command| {
                command.env("AYRE_MODES", "direct");
            });
            process.succeeds();
        },
    );
}

fn open_one(_: &Line) {
    Port::open(Config::new()).expect("the variables are those of another library");
}

// spec: LIFE-30
#[test]
fn a_port_opens_beside_the_library_of_sockets() {
    with_processes(
        |_, line| open_one(&line),
        |family| {
            let mut process = family.start_with(|command| {
                command.envs([("AYRE_SOCKETS", "off"), ("AYRE_SOCKETS_REPORT", "/none")]);
            });
            process.succeeds();
        },
    );
}

/// Waits for what nobody hands over, and calls a handler that nobody has, in a job of two.
fn ask_in_vain(_: &Line) {
    let mut port =
        Port::join_with(Config::new().setup_timeout(Duration::from_millis(200))).unwrap();
    let peer = port.peer(port.rank() ^ 1).unwrap();
    if port.rank() == 0 {
        let error = port.accept_region(peer, 3).expect_err("nobody hands it over");
        let text = format!("{error:?}");
        assert!(text.starts_with("rank 0: ") && text.contains("region 3 of peer 1"), "{text}");
    }
    port.barrier().unwrap();
    let mut messenger = Messenger::<()>::new(port);
    if messenger.port().rank() == 0 {
        messenger.call(&mut (), peer, Handler::<0>::named("nobody's"), [], b"hello").unwrap();
    }
    messenger.sync(&mut ()).unwrap();
}

// spec: ERR-10, ERR-11
#[test]
fn vain_attempts_are_logged_to_standard_error_as_configured() {
    with_processes(
        |_, line| ask_in_vain(&line),
        |family| {
            let said = |level: Option<&str>| {
                let files = [0, 1].map(|rank| family.directory().join(&format!("said-{rank}")));
                let mut ranks = [0, 1].map(|rank: usize| {
                    family.start_rank_with(rank, 2, |command| {
                        command.stderr(File::create(&files[rank]).unwrap());
                        command.envs(level.map(|level| ("AYRE_LOG", level)));
                    })
                });
                ranks.iter_mut().for_each(Process::succeeds);
                files.map(|file| std::fs::read_to_string(file).unwrap())
            };
            let [caller, called] = said(None);
            assert!(
                caller.contains("ayre: warn: rank 0: waiting for region 3 of peer 1"),
                "{caller}"
            );
            let handler = Handler::<0>::named("nobody's").id();
            assert!(
                called.contains(&format!("call of peer 0 to handler of id {handler}")),
                "{called}"
            );
            assert!(!caller.contains("joined a job"), "{caller}");
            let [caller, _] = said(Some("info"));
            assert!(caller.contains("ayre: info: rank 0: joined a job of 2 ranks"), "{caller}");
            assert_eq!(said(Some("off")), ["", ""]);
        },
    );
}

/// Nothing but the variables counts: a job of one needs no more.
fn alone(_: &Line) {
    let mut port = Port::join().unwrap();
    assert_eq!((port.rank(), port.size()), (0, 1));
    port.barrier().unwrap();
    port.leave().unwrap();
}

// spec: LIFE-4
#[test]
fn a_job_of_one_joins_at_once() {
    with_processes(|_, line| alone(&line), |family| family.start_rank(0, 1).succeeds());
}
