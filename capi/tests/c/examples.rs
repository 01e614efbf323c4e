//! The examples, run as jobs: each checks itself.
use crate::built::{self, COMPILERS};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An example, built as strictly as the other programs.
fn example(name: &str, compiler: &str, flags: &[&str]) -> PathBuf {
    let source = built::folder().join("examples").join(name);
    built::program(&format!("example-{name}-{compiler}"), &[source], compiler, flags)
}

/// Starts the ranks of a job that meet in a folder, as `ayre run` does.
fn start(program: &Path, arguments: &[&str], (size, mode): (usize, &str)) -> Vec<Child> {
    let name = program.file_name().and_then(|name| name.to_str()).expect("a name");
    let job = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{size}-{mode}"));
    let _ = std::fs::remove_dir_all(&job);
    std::fs::create_dir(&job).expect("a folder");
    let rank = |rank: usize| {
        let mut command = Command::new(program);
        command.args(arguments).env("AYRE_JOB", &job).env("AYRE_MODE", mode);
        command.env("AYRE_RANK", rank.to_string()).env("AYRE_SIZE", size.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    (0..size).map(rank).collect()
}

/// The ranks of a job and their mode, as each program is run.
const WAYS: [(usize, &str); 4] = [(2, "direct"), (4, "direct"), (2, "mediated"), (4, "mediated")];

fn check(program: &Path, arguments: &[&str], way: (usize, &str), said: &str) {
    let mut all = String::new();
    for rank in start(program, arguments, way) {
        let ended = rank.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{program:?}, {way:?}: {errors}");
        all += &String::from_utf8_lossy(&ended.stdout);
    }
    assert!(all.contains(said), "{program:?}, {way:?}: {all}");
}

/// Runs an example in C by all compilers.
fn check_c(name: &str, arguments: &[&str], said: &str) {
    for (compiler, way) in COMPILERS.into_iter().zip(WAYS) {
        check(&example(name, compiler, &[]), arguments, way, said);
    }
}

/// Runs an example in C++, with each access to memory checked.
fn check_cpp(name: &str, arguments: &[&str], said: &str) {
    let checked = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (compiler, more) in [("g++", "-std=c++17"), ("clang++", "-fno-exceptions")] {
        let program = example(name, compiler, &[checked[0], checked[1], more]);
        check(&program, arguments, WAYS[0], said);
        check(&program, arguments, WAYS[2], said);
    }
}

#[test]
fn halo_by_all_compilers() {
    check_c("halo.c", &[], "as computed alone");
}

fn irises() -> String {
    let irises = built::folder().join("../engine/examples/data/iris.csv");
    irises.to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn kmeans_by_all_compilers() {
    check_c("kmeans.c", &[&irises(), "3"], "the clusters that one process finds");
}

#[test]
fn kmeans_in_cpp_passes_the_address_sanitizer() {
    check_cpp("kmeans.cpp", &[&irises(), "3"], "the clusters that one process finds");
}

#[test]
fn hello_in_cpp_passes_the_address_sanitizer() {
    check_cpp("hello.cpp", &[], "rank 1: hello, neighbour");
}
