//! C programs over the library that check themselves, with what watches memory.
use crate::built::{self, COMPILERS};
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
