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

/// The key of the jobs' links.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Runs an example; returns the output of its ranks. With several hosts, each has the same number
/// of ranks. All have one job directory, so that no files need to be carried between them.
fn run(family: &Family, name: &str, size: usize, way: (&str, usize)) -> String {
    run_apart(family, (name, &[]), size, way)
}

/// Runs an example whose ranks but the first are started by this command.
fn run_apart(
    family: &Family,
    (name, others): (&str, &[&str]),
    size: usize,
    (mode, per_host): (&str, usize),
) -> String {
    if per_host < size {
        std::fs::write(family.directory().join("key"), KEY).unwrap();
    }
    let output = Directory::new();
    let start = |rank: usize| {
        let command = match others {
            [program, arguments @ ..] if rank > 0 => {
                let mut command = Command::new(program);
                command.args(arguments).arg(example(name));
                command
            }
            _ => Command::new(example(name)),
        };
        family.start_command(command, |command| {
            let file = File::create(output.join(&rank.to_string())).unwrap();
            command.env("AYRE_JOB", family.directory().path()).env("AYRE_MODE", mode);
            command.env("AYRE_RANK", rank.to_string()).env("AYRE_SIZE", size.to_string());
            let first = rank / per_host * per_host;
            let end = size.min(first + per_host);
            command.env("AYRE_HOST_RANKS", format!("{first}..{end}")).env("AYRE_NET", "lo");
            command.stdout(file);
        })
    };
    let mut ranks: Vec<_> = (0..size).map(start).collect();
    ranks.iter_mut().for_each(Process::succeeds);
    for entry in family.directory().entries() {
        let of_launcher = entry.ends_with("key") || entry.extension() == Some("addr".as_ref());
        assert!(per_host < size && of_launcher, "{} was left behind", entry.display());
        std::fs::remove_file(entry).unwrap();
    }
    (0..size).map(|rank| std::fs::read_to_string(output.join(&rank.to_string())).unwrap()).collect()
}

fn check(name: &str, sizes: &[usize], said: &str) {
    // The processes are those of the example, so none runs this test again.
    let never = |_, _| unreachable!("an example is no test");
    with_processes(never, |family| {
        for size in sizes {
            let hosts = [("direct", *size), ("mediated", *size), ("direct", 1), ("direct", 2)];
            for way in hosts {
                let output = run(family, name, *size, way);
                assert!(output.contains(said), "{name}, {size} ranks, {way:?}: {output:?}");
            }
        }
    });
}

// spec: LIFE-21
#[test]
fn hello() {
    check("hello", &[2], "rank 1: hello, neighbour");
}

/// As in containers that were moved or restored: their clocks are 100000 s apart.
#[test]
fn ranks_may_have_clocks_of_their_own() {
    let apart = ["unshare", "-T", "--boottime", "100000", "--monotonic", "100000", "--kill-child"];
    let is_allowed = Command::new(apart[0]).args(&apart[1..]).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no time namespaces here");
        return;
    }
    let never = |_, _| unreachable!("an example is no test");
    with_processes(never, |family| {
        for way in [("direct", 2), ("mediated", 2), ("direct", 1)] {
            let output = run_apart(family, ("hello", &apart), 2, way);
            assert!(output.contains("rank 1: hello, neighbour"), "{way:?}: {output:?}");
        }
    });
}

#[test]
fn send_file() {
    let output = Command::new(example("send_file")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(" bytes sent, and received in order"), "{said}");
}

#[test]
fn halo() {
    check("halo", &[1, 2, 3], "as computed alone");
}

#[test]
fn work_queue() {
    check("work_queue", &[2, 3], "counted as one process counts them");
}

#[test]
fn append_log() {
    check("append_log", &[2, 3], ", none lost, none torn");
}

#[test]
fn priorities() {
    check("priorities", &[2, 3], " producers, ");
}

#[test]
fn transpose() {
    check("transpose", &[1, 3], ", none astray");
}

#[test]
fn barrier() {
    check("barrier", &[2, 3], ", none early");
}

#[test]
fn word_count() {
    check("word_count", &[1, 3], "counted as one process counts them");
}

// spec: PIPE-1, PIPE-13
#[test]
fn pipeline() {
    check("pipeline", &[1, 2, 3], "counted as one process counts them");
}

#[test]
fn reach() {
    check("reach", &[1, 3], "as far as one process finds them");
}

#[test]
fn kmeans() {
    check("kmeans", &[1, 2, 5], "the clusters that one process finds");
}

#[test]
fn collectives() {
    check("collectives", &[3], "all as computed alone");
}

#[test]
fn lock() {
    check("lock", &[1, 2, 3], "ranks have added up to ");
}

#[test]
fn rendezvous() {
    check("rendezvous", &[1, 2, 3], "messages of up to ");
}
