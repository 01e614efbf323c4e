//! C programs over the library, each for itself: misuse, with what watches memory; examples.
use crate::built::{self, COMPILERS};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn misuse(name: &str, flags: &[&str]) -> std::path::PathBuf {
    let files = ["misuse.c", "messengers.c"].map(|file| built::folder().join("tests/c").join(file));
    built::program(name, &files, "cc", flags)
}

fn assert_runs(program: impl AsRef<Path>, arguments: &[&str]) {
    let program = program.as_ref();
    let run = Command::new(program).args(arguments).output().expect("it starts");
    let (out, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.contains("all as expected"), "{out}\n{errors}");
}

#[test]
fn misuse_is_an_error_and_harms_nothing() {
    assert_runs(misuse("misuse", &[]), &["100000"]);
}

/// The C side of the same program, with each access to memory checked.
#[test]
fn misuse_passes_the_address_sanitizer() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    assert_runs(misuse("misuse-checked", &flags), &["10"]);
}

/// Both sides, with each access to memory checked.
#[test]
fn misuse_passes_valgrind() {
    let program = misuse("misuse-plain", &[]);
    let program = program.to_str().expect("a path in UTF-8");
    assert_runs("valgrind", &["-q", "--error-exitcode=9", "--leak-check=full", program, "10"]);
}

fn endpoint(compiler: &str, flags: &[&str]) -> std::path::PathBuf {
    let file = built::folder().join("tests/c/endpoint.c");
    built::program(&format!("endpoint-{compiler}{}", flags.len()), &[file], compiler, flags)
}

#[test]
fn endpoints_send_and_write_by_all_compilers() {
    COMPILERS.into_iter().for_each(|compiler| assert_runs(endpoint(compiler, &[]), &[]));
}

#[test]
fn endpoints_pass_the_address_sanitizer() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    assert_runs(endpoint("gcc", &flags), &[]);
}

#[test]
fn endpoints_pass_valgrind() {
    let program = endpoint("gcc", &["-O1"]);
    let program = program.to_str().expect("a path in UTF-8");
    // Tables of the process, which its endpoints share, stay.
    let leaks = "--errors-for-leak-kinds=definite";
    assert_runs("valgrind", &["-q", "--error-exitcode=9", "--leak-check=full", leaks, program]);
}

fn example(name: &str, compiler: &str, flags: &[&str]) -> std::path::PathBuf {
    let file = built::folder().join("examples").join(name).with_extension("c");
    built::program(&format!("{name}-{compiler}{}", flags.len()), &[file], compiler, flags)
}

/// The output of a program, which has ended well.
fn said(name: &str, output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program as a job, and returns what each rank has said.
fn run_job(program: &Path, ranks: usize) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("ayre-c-job-{}", std::process::id()));
    let folder = folder.join(program.file_name().expect("a name"));
    std::fs::create_dir_all(&folder).expect("a folder for the job");
    let start = |rank: usize| {
        let mut command = Command::new(program);
        command.env("AYRE_JOB", &folder).env("AYRE_RANK", rank.to_string());
        command.env("AYRE_SIZE", ranks.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let started: Vec<_> = (0..ranks).map(start).collect();
    let ended = started.into_iter().map(|rank| rank.wait_with_output().expect("it ends"));
    let name = program.display().to_string();
    let all = ended.map(|output| said(&name, &output)).collect();
    std::fs::remove_dir_all(&folder).expect("the folder of the job");
    all
}

#[test]
fn the_first_example_greets_by_all_compilers() {
    for compiler in COMPILERS {
        let all = run_job(&example("hello", compiler, &[]), 2);
        assert!(all.iter().all(|said| said.contains("hello, neighbour")), "{compiler}: {all:?}");
    }
}

#[test]
fn the_work_queue_counts_right_by_all_compilers() {
    for compiler in COMPILERS {
        let all = run_job(&example("work_queue", compiler, &["-O2"]), 4);
        assert!(all[0].contains("148933 primes"), "{compiler}: {all:?}");
    }
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

/// The layer for C++, in both languages that it is for, with each access to memory checked.
fn layer_passes(compiler: &str, exceptions: &str) {
    let file = built::folder().join("tests/c/layer.cpp");
    for language in ["-std=c++17", "-std=c++20"] {
        let flags =
            [language, exceptions, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let name = format!("layer-{compiler}{exceptions}{language}");
        assert_runs(built::program(&name, &[&file], compiler, &flags), &[]);
    }
}

#[test]
fn the_layer_for_cpp_throws_where_exceptions_are_on() {
    ["g++", "clang++"].into_iter().for_each(|compiler| layer_passes(compiler, "-fexceptions"));
}

#[test]
fn the_layer_for_cpp_needs_no_exceptions() {
    ["g++", "clang++"].into_iter().for_each(|compiler| layer_passes(compiler, "-fno-exceptions"));
}
