//! Distributed runs: real processes, every variant, both modes, and what happens when one dies.
//!
//! No test looks at a clock: a job that does not end is a test that does not end.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ayre-pagerank");

/// Goes on until it is stopped.
const ENDLESS: [&str; 4] = ["--graph", "small", "--repeat", "4294967295"];

/// A private folder in which jobs keep their directories, and in which nothing may stay.
struct Base(PathBuf);

impl Base {
    fn new() -> Self {
        let name = format!("ayre-test-{:016x}", RandomState::new().build_hasher().finish());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A launcher for a job of the program.
    fn launcher(&self, options: &[&str]) -> Command {
        let launcher = Path::new(PROGRAM).with_file_name("ayre");
        assert!(launcher.exists(), "build the workspace first: the tests run its launcher");
        let mut command = Command::new(launcher);
        command.arg("run").args(options).arg("--");
        command.env("XDG_RUNTIME_DIR", &self.0).stdin(Stdio::null());
        command
    }

    fn job(&self, options: &[&str], args: &[&str]) -> Output {
        self.launcher(options).arg(PROGRAM).args(args).output().unwrap()
    }

    /// The output of a job that has to succeed.
    fn stdout(&self, options: &[&str], args: &[&str]) -> String {
        let output = self.job(options, args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{options:?} {args:?}: {stderr}");
        assert_eq!(stderr, "", "progress is drawn on terminals only");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A process of a job that nobody watches over.
    fn process(&self, number: usize, count: usize) -> Command {
        let mut command = Command::new(PROGRAM);
        command.env("AYRE_JOB", &self.0).env("AYRE_RANK", number.to_string());
        command.env("AYRE_SIZE", count.to_string()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Waits for the end of a process that has to fail; returns what it said.
    fn failure(child: Child) -> String {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let left = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name != "graph").collect();
        fs::remove_dir_all(&self.0).unwrap();
        if !std::thread::panicking() {
            assert!(left.is_empty(), "{left:?} stayed behind");
        }
    }
}

/// The rows of the table of ranks.
fn top(text: &str) -> Vec<&str> {
    let rows = text.lines().skip_while(|line| !line.ends_with("name")).skip(1);
    rows.take_while(|line| !line.is_empty()).collect()
}

/// The number of runs that were equal to the single-process result; no other may be reported.
fn equal_runs(text: &str) -> usize {
    assert!(text.ends_with("\ncheck: equal to the single-process result\n"), "{text}");
    assert!(!text.contains(" NO\n"), "{text}");
    text.lines().filter(|line| line.ends_with(" yes")).count()
}

/// Reads lines until one begins with `start`; returns the rest of that line.
fn wait_for(output: &mut BufReader<ChildStdout>, start: &str) -> String {
    let mut lines = output.lines().map(Result::unwrap);
    lines.find_map(|line| line.strip_prefix(start).map(str::to_owned)).expect(start)
}

fn all_variants_equal_the_single_process(mode: &str) {
    let alone = Command::new(PROGRAM).args(["--graph", "small"]).output().unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    assert_eq!(top(&alone).len(), 20);
    for count in ["1", "2", "3", "4"] {
        let args = ["--graph", "small", "--repeat", "2"];
        let text = Base::new().stdout(&["-n", count, "--mode", mode], &args);
        assert_eq!(equal_runs(&text), 4, "{count} processes: {text}");
        assert_eq!(top(&text), top(&alone), "{count} processes");
    }
}

#[test]
fn all_variants_equal_the_single_process_direct() {
    all_variants_equal_the_single_process("direct");
}

#[test]
fn all_variants_equal_the_single_process_mediated() {
    all_variants_equal_the_single_process("mediated");
}

#[test]
fn a_limit_on_iterations_holds_in_a_job() {
    for iterations in ["0", "1", "7"] {
        let args = ["--graph", "small", "--iterations", iterations, "--tolerance", "0"];
        let text = Base::new().stdout(&["-n", "3"], &[&args[..], &["--repeat", "2"]].concat());
        assert!(text.contains(&format!("\n{iterations} iterations, ")), "{text}");
        assert_eq!(equal_runs(&text), 4);
    }
}

#[test]
fn processes_may_be_more_than_vertices() {
    for graph in ["1 2\n", "1 3\n2 3\n3 1\n", "# nothing\n"] {
        for mode in ["direct", "mediated"] {
            let base = Base::new();
            let graph = base.file("graph", graph);
            let text = base.stdout(&["-n", "4", "--mode", mode], &["--graph", &graph]);
            assert_eq!(equal_runs(&text), 4, "{text}");
        }
    }
}

#[test]
fn one_variant_can_be_chosen() {
    for variant in ["edge-atomics", "atomics", "queues", "puts"] {
        let text = Base::new().stdout(&["-n", "2"], &["--graph", "small", "--variant", variant]);
        assert_eq!(equal_runs(&text), 1);
        assert!(text.contains(&format!("\n{variant} x 5 ")), "{text}");
    }
}

#[test]
fn a_killed_process_ends_its_job() {
    // The shell tells the process's number before the program takes its place.
    let script = "echo \"process $AYRE_RANK is $$\"; exec \"$@\"";
    let base = Base::new();
    for killed in [0, 1] {
        let mut launcher = base.launcher(&["-n", "3"]);
        launcher.args(["sh", "-c", script, "sh", PROGRAM]).args(ENDLESS);
        launcher.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = launcher.spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let process = wait_for(&mut output, &format!("process {killed} is "));
        if killed != 0 {
            wait_for(&mut output, "job: 3 processes");
        }
        let kill = Command::new("sh").args(["-c", "kill -KILL $0", &process]).status().unwrap();
        assert!(kill.success());
        // The output ends when nobody is left who could write to it.
        output.read_to_end(&mut Vec::new()).unwrap();
        let output = launcher.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        // A survivor may notice and end before the launcher has looked at the killed process.
        assert!(matches!(output.status.code(), Some(137 | 1)), "{stderr}");
        assert!(stderr.contains("ayre: rank "), "the launcher tells who began: {stderr}");
    }
}

#[test]
fn survivors_notice_a_killed_process_themselves() {
    for mode in ["direct", "mediated"] {
        for variant in ["edge-atomics", "atomics", "queues", "puts"] {
            let base = Base::new();
            let mut processes: Vec<_> = (0..3)
                .map(|number| {
                    let mut command = base.process(number, 3);
                    command.env("AYRE_MODE", mode).args(ENDLESS).args(["--variant", variant]);
                    command.spawn().unwrap()
                })
                .collect();
            let mut output = BufReader::new(processes[0].stdout.take().unwrap());
            wait_for(&mut output, "job: 3 processes");
            processes[1].kill().unwrap();
            assert_eq!(processes.remove(1).wait().unwrap().code(), None);
            for survivor in processes {
                let said = Base::failure(survivor);
                assert!(said.starts_with("ayre-pagerank: "), "{mode} {variant}: {said}");
            }
        }
    }
}

#[test]
fn a_process_that_fails_takes_the_others_along() {
    let base = Base::new();
    let processes = [0, 1, 2].map(|number| {
        let mut command = base.process(number, 3);
        command.args(["--graph", "/nonexistent"]).spawn().unwrap()
    });
    let [said, others @ ..] = processes.map(Base::failure);
    assert!(said.contains("/nonexistent: No such file"), "{said}");
    for said in others {
        assert!(said.contains("died"), "{said}");
    }
}

#[test]
fn a_job_writes_no_edges() {
    let output = Base::new().job(&["-n", "2"], &["--graph", "small", "--write-edges", "graph"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--write-edges takes no job"));
}
