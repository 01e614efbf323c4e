//! The examples, run as jobs: each checks itself.
use crate::built;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An example, built as strictly as the other programs.
fn example(name: &str) -> PathBuf {
    let source = built::folder().join("examples").join(name).with_extension("c");
    built::program(&format!("example-{name}"), &[source], "cc", &[])
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

fn check(name: &str, arguments: &[&str], said: &str) {
    let program = example(name);
    for way in [(2, "direct"), (4, "direct"), (2, "mediated"), (4, "mediated")] {
        let mut all = String::new();
        for rank in start(&program, arguments, way) {
            let ended = rank.wait_with_output().expect("it ends");
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "{name}, {way:?}: {errors}");
            all += &String::from_utf8_lossy(&ended.stdout);
        }
        assert!(all.contains(said), "{name}, {way:?}: {all}");
    }
}

#[test]
fn halo() {
    check("halo", &[], "as computed alone");
}

#[test]
fn kmeans() {
    let irises = built::folder().join("../engine/examples/data/iris.csv");
    let irises = irises.to_str().expect("a path in UTF-8");
    check("kmeans", &[irises, "3"], "the clusters that one process finds");
}
