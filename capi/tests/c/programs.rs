//! C and C++ programs over the library, each for itself, with what watches memory and threads.
use crate::built::{self, CHECKED, COMPILERS, Library, VALGRIND};
use std::path::Path;
use std::process::Command;

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
    assert_runs(misuse("misuse-checked", &CHECKED), &["10"]);
}

/// Both sides, with each access to memory checked.
#[test]
fn misuse_passes_valgrind() {
    let program = misuse("misuse-plain", &[]);
    let program = program.to_str().expect("a path in UTF-8");
    let strict = ["--errors-for-leak-kinds=definite,possible", program, "10"];
    assert_runs(VALGRIND[0], &[&VALGRIND[1..], &strict].concat());
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
    assert_runs(endpoint("gcc", &CHECKED), &[]);
}

#[test]
fn endpoints_pass_valgrind() {
    let program = endpoint("gcc", &["-O1"]);
    let program = program.to_str().expect("a path in UTF-8");
    assert_runs(VALGRIND[0], &[&VALGRIND[1..], &[program]].concat());
}

/// Two threads with a port each, and two that hand one port around.
#[test]
fn threads_pass_the_thread_sanitizer() {
    let options = built::thread_options();
    for compiler in ["gcc", "clang"] {
        let file = built::folder().join("tests/c/threads.c");
        let name = format!("threads-{compiler}");
        let compiled = (compiler, &["-fsanitize=thread"][..]);
        let program = built::program_with(&name, &[file], compiled, Library::Shared);
        let listens = program.with_extension("listens");
        let _ = std::fs::remove_file(&listens);
        let words = [&program, &listens].map(|path| path.to_str().expect("a path in UTF-8"));
        assert_runs("env", &[&[&*options], &words[..]].concat());
    }
}

/// The layer for C++, in both languages that it is for, with each access to memory checked.
fn layer_passes(compiler: &str, exceptions: &str) {
    let file = built::folder().join("tests/c/layer.cpp");
    for language in ["-std=c++17", "-std=c++20"] {
        let flags = [language, exceptions, CHECKED[0], CHECKED[1]];
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
