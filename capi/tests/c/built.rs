//! C programs over the library, built once for a test program.
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// Libraries of the system that a Rust archive needs.
const SYSTEM: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lrt"];

/// As strict as people's own builds are.
const STRICT: [&str; 6] = ["-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Compilers of people's builds, for C and for C++.
pub(crate) const COMPILERS: [&str; 4] = ["gcc", "clang", "g++", "clang++"];

/// Each access of the program to memory is checked, the library's are not.
pub(crate) const CHECKED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Both sides are checked. Tables of the process stay, which its ports share.
pub(crate) const VALGRIND: [&str; 6] = [
    "valgrind",
    "-q",
    concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/tests/c/valgrind.supp"),
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite",
];

/// The form in which a program has the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Archive,
    Shared,
}

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
    program_with(name, files, (compiler, flags), Library::Archive)
}

/// Builds a program that has the library in this form.
pub(crate) fn program_with(
    name: &str,
    files: &[impl AsRef<OsStr>],
    (compiler, flags): (&str, &[&str]),
    library: Library,
) -> PathBuf {
    let program = tmp().join(name);
    let mut command = Command::new(compiler);
    command.args(language(compiler)).args(STRICT).args(flags);
    command.arg("-I").arg(folder().join("include")).args(files).args(NO_LANGUAGE);
    match library {
        Library::Archive => command.arg(archive()),
        Library::Shared => command.arg(&*SHARED).arg(format!("-Wl,-rpath,{}", tmp().display())),
    };
    run(command.args(SYSTEM).arg("-o").arg(&program));
    program
}

/// The shared library, as `scripts/capi.sh` links it.
static SHARED: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared = tmp().join("libayre.so");
    let map = format!("-Wl,--version-script={}", folder().join("libayre.map").display());
    let mut command = Command::new("cc");
    command.args(["-shared", "-Wl,-soname,libayre.so", "-Wl,--gc-sections", &map]);
    command.arg("-Wl,--whole-archive").arg(archive()).arg("-Wl,--no-whole-archive");
    run(command.args(SYSTEM).arg("-o").arg(&shared));
    shared
});

/// The variable for the thread sanitizer, which sees the program and not the library.
///
/// Atomics and locks of the library order its accesses. So its calls of the C library, such as
/// `memcpy`, do not count.
pub(crate) fn thread_options() -> String {
    let suppressions = tmp().join("thread-sanitizer.txt");
    std::fs::write(&suppressions, "called_from_lib:libayre.so\n").expect("a file");
    format!("TSAN_OPTIONS=halt_on_error=1:suppressions={}", suppressions.display())
}

fn tmp() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn run(command: &mut Command) {
    let built = command.output().expect("a compiler");
    assert!(built.status.success(), "{command:?}: {}", String::from_utf8_lossy(&built.stderr));
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
