//! C programs over the library, built once for a test program.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Libraries of the system that a Rust archive needs.
const SYSTEM: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lrt"];

/// As strict as people's own builds are.
const STRICT: [&str; 6] = ["-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Compilers of people's builds, for C and for C++.
pub(crate) const COMPILERS: [&str; 4] = ["gcc", "clang", "g++", "clang++"];

/// The folder of the library's sources.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds a program of these files by this compiler, and returns where it is.
pub(crate) fn program(
    name: &str,
    files: &[impl AsRef<OsStr>],
    compiler: &str,
    flags: &[&str],
) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let include = folder().join("include");
    let built = Command::new(compiler)
        .args(language(compiler))
        .args(STRICT)
        .args(flags)
        .arg("-I")
        .arg(include)
        .args(files)
        .args(NO_LANGUAGE)
        .arg(archive())
        .args(SYSTEM)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a compiler for C");
    assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
    program
}

/// The language that a compiler is to take the files for.
fn language(compiler: &str) -> [&'static str; 3] {
    if compiler.ends_with("++") { ["-std=c++17", "-x", "c++"] } else { ["-std=c11", "-x", "c"] }
}

/// Other files are of the kinds that their names say.
const NO_LANGUAGE: [&str; 2] = ["-x", "none"];

/// The files of a folder that the compiler reads.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect()
}

/// The library, which cargo has built for this test: the newest one beside it.
fn archive() -> PathBuf {
    let this = std::env::current_exe().expect("this program");
    let age = |path: &PathBuf| -> SystemTime {
        path.metadata().and_then(|found| found.modified()).expect("a time of change")
    };
    let entries = std::fs::read_dir(this.parent().expect("a folder")).expect("the folder");
    let archives = entries.map(|entry| entry.expect("an entry").path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libayre_c") && name.ends_with(".a")
    });
    archives.max_by_key(age).expect("the library for C")
}
