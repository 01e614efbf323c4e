//! What a rank reads in its environment, and what it says of one that is wrong.
mod common;

use ayre::{Config, Endpoint, Port, SetupError, Spin};
use common::{Family, Line, with_processes};
use std::process::Command;

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
fn a_wrong_choice_is_an_error_where_nothing_needs_it_and_says_what_there_is() {
    let wrong = [
        ("AYRE_NET", "nonsense", "lo 127.0.0.1"),
        ("AYRE_NET", "lo,lo,lo,lo,lo", "at most 4"),
        ("AYRE_PROTECTION", "foo", "`sealed`, `plain`"),
        ("AYRE_ETHERNET", "perhaps", "`never`, `required`"),
        ("AYRE_FAULTS", "loss=5", "a share such as 20%"),
        ("AYRE_TUNING", "/nowhere/at/all", "No such file"),
        ("AYRE_MODES", "direct", "AYRE_MODE, AYRE_NET"),
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
    for error in [Port::open(Config::new()).err(), Endpoint::open(Spin::SHARED).err()] {
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
