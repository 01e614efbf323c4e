//! The examples, as people build and run them: by each compiler, alone or as the ranks of a job.
use crate::built::{self, COMPILERS};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An example, built as strictly as the other programs.
fn example(name: &str, compiler: &str, flags: &[&str]) -> PathBuf {
    let file = built::folder().join("examples").join(name).with_extension("c");
    built::program(&format!("{name}-{compiler}{}", flags.len()), &[file], compiler, flags)
}

/// The output of a program, which has ended well.
fn said(name: &str, output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program as the ranks of a job that meet in a folder, as `ayre run` does. Returns what
/// each has said.
fn run_job(program: &Path, arguments: &[&str], (ranks, mode): (usize, &str)) -> Vec<String> {
    let name = program.file_name().and_then(|name| name.to_str()).expect("a name");
    let job = format!("ayre-c-job-{}-{name}-{ranks}-{mode}", std::process::id());
    let folder = std::env::temp_dir().join(job);
    std::fs::create_dir(&folder).expect("a folder for the job");
    let start = |rank: usize| {
        let mut command = Command::new(program);
        command.args(arguments).env("AYRE_JOB", &folder).env("AYRE_MODE", mode);
        command.env("AYRE_RANK", rank.to_string()).env("AYRE_SIZE", ranks.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let started: Vec<_> = (0..ranks).map(start).collect();
    let ended = started.into_iter().map(|rank| rank.wait_with_output().expect("it ends"));
    let all = ended.map(|output| said(name, &output)).collect();
    std::fs::remove_dir_all(&folder).expect("the folder of the job");
    all
}

#[test]
fn the_first_example_greets_by_all_compilers() {
    for compiler in COMPILERS {
        let all = run_job(&example("hello", compiler, &[]), &[], (2, "direct"));
        assert!(all.iter().all(|said| said.contains("hello, neighbour")), "{compiler}: {all:?}");
    }
}

#[test]
fn the_work_queue_counts_right_by_all_compilers() {
    for compiler in COMPILERS {
        let all = run_job(&example("work_queue", compiler, &["-O2"]), &[], (4, "direct"));
        assert!(all[0].contains("148933 primes"), "{compiler}: {all:?}");
    }
}

/// Ways to run an example that compares what its ranks find with what one process finds.
const WAYS: [(usize, &str); 4] = [(2, "direct"), (4, "direct"), (2, "mediated"), (4, "mediated")];

fn check(name: &str, arguments: &[&str], due: &str) {
    for (compiler, way) in ["gcc", "clang"].into_iter().cycle().zip(WAYS) {
        let all = run_job(&example(name, compiler, &[]), arguments, way).concat();
        assert!(all.contains(due), "{name}, {compiler}, {way:?}: {all}");
    }
}

#[test]
fn halo_finds_what_one_process_finds() {
    check("halo", &[], "as computed alone");
}

#[test]
fn kmeans_finds_what_one_process_finds() {
    let irises = built::folder().join("../engine/examples/data/iris.csv");
    let irises = irises.to_str().expect("a path in UTF-8");
    check("kmeans", &[irises, "3"], "the clusters that one process finds");
}

#[test]
fn a_server_in_an_event_loop_answers_a_thousand_clients() {
    for (compiler, clients) in COMPILERS.into_iter().zip([1000, 100, 100, 100]) {
        let server = example("server", compiler, &[]);
        let run = Command::new(server).arg(clients.to_string()).output().expect("it starts");
        let said = said(compiler, &run);
        assert_eq!(
            said,
            format!("{clients} clients, {0} requests, sum {1}\n", clients * 20, clients * 210)
        );
    }
}

/// The C side, with each access to memory checked.
#[test]
fn the_server_passes_the_address_sanitizer() {
    for compiler in ["gcc", "clang"] {
        let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let server = example("server", compiler, &flags);
        let run = Command::new(server).arg("60").output().expect("it starts");
        assert!(said(compiler, &run).contains("1200 requests"));
    }
}
