//! C programs over the library, each for itself: misuse, with what watches memory.
use crate::built;
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
