//! The examples, run as jobs: each checks itself, so they need only end well and say something.
mod common;

use common::{Directory, Family, Process, with_processes};
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

/// An example, built with this test: `cargo test` builds both.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(std::path::Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    assert!(path.exists(), "{} is not built: cargo build --examples", path.display());
    path
}

/// Runs an example; returns what its ranks have said.
fn run(family: &Family, name: &str, size: usize, mode: &str) -> String {
    let output = Directory::new();
    let start = |rank: usize| {
        let command = Command::new(example(name));
        family.start_command(command, |command| {
            let file = File::create(output.join(&rank.to_string())).unwrap();
            command.env("AYRE_JOB", family.directory().path()).env("AYRE_MODE", mode);
            command.env("AYRE_RANK", rank.to_string()).env("AYRE_SIZE", size.to_string());
            command.stdout(file);
        })
    };
    let mut ranks: Vec<_> = (0..size).map(start).collect();
    ranks.iter_mut().for_each(Process::succeeds);
    assert!(family.directory().entries().is_empty());
    (0..size).map(|rank| std::fs::read_to_string(output.join(&rank.to_string())).unwrap()).collect()
}

fn check(name: &str, sizes: &[usize], said: &str) {
    // The processes are those of the example, so none runs this test again.
    let never = |_, _| unreachable!("an example is no test");
    with_processes(never, |family| {
        for size in sizes {
            for mode in ["direct", "mediated"] {
                let output = run(family, name, *size, mode);
                assert!(output.contains(said), "{name}, {size} ranks, {mode}: {output:?}");
            }
        }
    });
}

#[test]
fn hello() {
    check("hello", &[2], "rank 1: hello, neighbour");
}

#[test]
fn halo() {
    check("halo", &[1, 2, 3], "as computed alone");
}

#[test]
fn work_queue() {
    check("work_queue", &[2, 3], " words of ");
}

#[test]
fn lock() {
    check("lock", &[1, 2, 3], "ranks have added up to ");
}

#[test]
fn rendezvous() {
    check("rendezvous", &[1, 2, 3], "messages of up to ");
}
