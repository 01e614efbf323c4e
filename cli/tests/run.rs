//! `ayre run` from outside: exit codes, environment, output, signals, and nothing left behind.
//!
//! No test looks at a clock: a job whose ranks sleep a thousand seconds simply ends, or the test
//! does not.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

#[path = "run/starting.rs"]
mod starting;

/// A private folder in which the launcher under test keeps its job directories.
struct Base(PathBuf);

impl Base {
    fn new() -> Self {
        let name = format!("ayre-test-{:016x}", RandomState::new().build_hasher().finish());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    /// A launcher with these options for ranks that run `script`.
    fn launcher(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ayre"));
        command.arg("run").args(options).args(["--", "sh", "-c", script]);
        command.env("XDG_RUNTIME_DIR", &self.0).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn job(&self, options: &[&str], script: &str) -> Output {
        let output = self.launcher(options, script).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(self.entries(), Vec::<PathBuf>::new(), "the job directory is still there");
        output
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A job that runs beside its test; its ranks speak on standard output.
struct Running {
    launcher: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut launcher: Command) -> Self {
        let mut launcher = launcher.stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(launcher.stdout.take().unwrap());
        Self { launcher, output }
    }

    /// The next lines, sorted: ranks write in any order.
    fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines: Vec<_> =
            self.output.by_ref().lines().take(count).collect::<Result<_, _>>().unwrap();
        lines.sort();
        lines
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).unwrap();
    }

    fn code(mut self) -> Option<i32> {
        self.launcher.wait().unwrap().code()
    }
}

fn sorted_lines(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> =
        String::from_utf8(text.to_vec()).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Whether what this process starts ignores `signal`, as what a script starts with `&` does.
fn is_ignored_here(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

fn assert_says(output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(expected), "{expected:?} is not in {said:?}");
}

#[test]
fn every_rank_learns_its_place() {
    let output = Base::new().job(&["-n", "3"], "echo $AYRE_RANK $AYRE_SIZE ${AYRE_MODE-unset}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(sorted_lines(&output.stdout), ["0 3 unset", "1 3 unset", "2 3 unset"]);
    assert!(output.stderr.is_empty());

    let output = Base::new().job(&["-n", "1", "--mode", "mediated"], "echo $AYRE_MODE");
    assert_eq!(output.stdout, b"mediated\n");
}

// spec: LIFE-30
#[test]
fn a_wrong_variable_starts_no_rank_and_all_are_listed_on_request() {
    let base = Base::new();
    for (name, value, there_is) in [
        ("AYRE_MODES", "direct", "AYRE_MODE, AYRE_NET"),
        ("AYRE_SOCKETS_POLCY", "/none", "AYRE_SOCKETS_POLICY"),
        ("AYRE_PROTECTION", "foo", "AYRE_PROTECTION=foo: there is no `foo`; it may be `sealed`"),
    ] {
        let mut launcher = base.launcher(&["-n", "2"], "echo started");
        let output = launcher.env(name, value).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert_says(&output, there_is);
        assert!(output.stdout.is_empty());
        let mut tool = Command::new(env!("CARGO_BIN_EXE_ayre"));
        let output = tool.args(["info", "--env"]).env(name, value).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("no port can be opened") && said.contains(name), "{said}");
    }
    let mut launcher = base.launcher(&["-n", "1"], "echo $AYRE_SOCKETS");
    let output = launcher.env("AYRE_SOCKETS", "off").output().unwrap();
    assert_eq!(output.stdout, b"off\n", "the rank may load the library of sockets");
    let mut tool = Command::new(env!("CARGO_BIN_EXE_ayre"));
    let output = tool.args(["info", "--env"]).env("AYRE_MODE", "mediated").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("AYRE_MODE=mediated  (set)\n"), "{said}");
    assert!(said.contains("AYRE_NET  (not set: "), "{said}");
}

// spec: LIFE-3
#[test]
fn the_job_directory_is_private_shared_and_new() {
    let base = Base::new();
    let directory_of = |job: Output| {
        let lines = sorted_lines(&job.stdout);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], lines[1]);
        let (mode, path) = lines[0].split_once(' ').unwrap();
        assert_eq!(mode, "drwx------");
        assert_eq!(Path::new(path).parent(), Some(base.0.as_path()));
        path.to_owned()
    };
    let script = "mode=$(ls -ld \"$AYRE_JOB\") && echo ${mode%%[. ]*} $AYRE_JOB; >$AYRE_JOB/file";
    let (first, second) = (
        directory_of(base.job(&["-n", "2"], script)),
        directory_of(base.job(&["-n", "2"], script)),
    );
    assert_ne!(first, second);
}

#[test]
fn the_code_of_a_failing_rank_is_the_jobs() {
    let output = Base::new().job(&["-n", "3"], "[ $AYRE_RANK != 1 ] || exit 3; exec sleep 1000");
    assert_eq!(output.status.code(), Some(3));
    assert_says(&output, "ayre: rank 1 exited with code 3; ending the other 2 ranks\n");
    assert_eq!(sorted_lines(&output.stderr).len(), 1);
}

#[test]
fn a_rank_killed_by_a_signal_fails_with_128_and_its_number() {
    let output = Base::new().job(&["-n", "2"], "[ $AYRE_RANK = 0 ] || kill -KILL $$");
    assert_eq!(output.status.code(), Some(137));
    assert_says(&output, "rank 1 was killed by signal 9 (SIGKILL)");
}

#[test]
fn ranks_that_ignore_the_request_to_end_are_killed() {
    let options = ["-n", "2", "--grace", "0"];
    // Rank 1 fails only once rank 0 ignores the signal; the job directory carries the news.
    let script = "if [ $AYRE_RANK = 0 ]; then trap '' TERM; mkfifo $AYRE_JOB/a.new
        mv $AYRE_JOB/a.new $AYRE_JOB/a; echo >$AYRE_JOB/a; exec sleep 1000; fi
        until [ -p $AYRE_JOB/a ]; do :; done; read x <$AYRE_JOB/a; exit 4";
    let output = Base::new().job(&options, script);
    assert_eq!(output.status.code(), Some(4));
    assert_says(&output, "killing what is left");
}

#[test]
fn a_failed_job_takes_the_programs_of_its_wrappers_along() {
    // The sleeping programs hold the output open: the job's output ends only when they do.
    let script = "[ $AYRE_RANK != 1 ] || exit 6; (sleep 1000; true) & sleep 1000; true";
    let output = Base::new().job(&["-n", "2"], script);
    assert_eq!(output.status.code(), Some(6));
}

#[test]
fn a_job_out_of_time_fails_with_124() {
    let output = Base::new().job(&["-n", "2", "--timeout", "0.01"], "exec sleep 1000");
    assert_eq!(output.status.code(), Some(124));
    assert_says(&output, "has used up its time");
}

#[test]
fn signals_are_passed_on_to_every_rank() {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::USR1, "USR1"), (Signal::HUP, "HUP")] {
        if is_ignored_here(signal) {
            eprintln!("skipped: these tests were started to ignore SIG{name}");
            continue;
        }
        let base = Base::new();
        // A request to end could be lost on the sleeper, which starts as a copy of the shell with
        // its trap; a kill cannot.
        let script = format!(
            "trap 'kill -9 $!; echo got $AYRE_RANK; exit 0' {name}; sleep 1000 & echo ready; wait"
        );
        let mut job = Running::start(base.launcher(&["-n", "2", "--grace", "1000"], &script));
        assert_eq!(job.lines(2), ["ready", "ready"]);
        job.signal(signal);
        assert_eq!(job.lines(2), ["got 0", "got 1"], "{name}");
        assert_eq!(job.code(), Some(0), "{name}");
        assert!(base.entries().is_empty());
    }
}

#[test]
fn a_second_interrupt_kills() {
    if is_ignored_here(Signal::INT) {
        eprintln!("skipped: these tests were started to ignore SIGINT, and so is the launcher");
        return;
    }
    let base = Base::new();
    let script =
        "trap 'echo got' INT; trap '' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut job = Running::start(base.launcher(&["-n", "2", "--grace", "1000"], script));
    assert_eq!(job.lines(2), ["ready", "ready"]);
    job.signal(Signal::INT);
    assert_eq!(job.lines(2), ["got", "got"]);
    job.signal(Signal::INT);
    assert_eq!(job.code(), Some(137));
    assert!(base.entries().is_empty());
}

#[test]
fn ranks_start_with_no_signal_blocked() {
    let output = Base::new().job(&["-n", "1"], "grep SigBlk /proc/self/status");
    let own = fs::read_to_string("/proc/thread-self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("SigBlk")).unwrap();
    assert_eq!(sorted_lines(&output.stdout), [own]);
}

#[test]
fn a_killed_launcher_leaves_no_rank_and_its_directory_only_until_the_next_job() {
    let base = Base::new();
    let mut job = Running::start(base.launcher(&["-n", "3"], "echo $$; exec sleep 1000"));
    let ranks: Vec<_> = job
        .lines(3)
        .iter()
        .map(|line| Pid::from_raw(line.parse().unwrap()).unwrap())
        .map(|rank| pidfd_open(rank, PidfdFlags::empty()).unwrap())
        .collect();
    job.signal(Signal::KILL);
    assert_eq!(job.code(), None);
    for rank in &ranks {
        let ended = (0..60).any(|_| {
            let mut event = [PollFd::new(rank, PollFlags::IN)];
            poll(&mut event, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap() == 1
        });
        assert!(ended, "a rank has outlived its launcher");
    }
    assert_eq!(base.entries().len(), 1);
    assert_eq!(base.job(&["-n", "1"], "true").status.code(), Some(0));
}

#[test]
fn the_directory_of_a_living_job_is_left_alone() {
    let base = Base::new();
    let mut job = Running::start(base.launcher(&["-n", "1"], "echo $AYRE_JOB; exec sleep 1000"));
    let directory = PathBuf::from(job.lines(1).remove(0));
    let other = base.launcher(&["-n", "1"], "true").status().unwrap();
    assert!(other.success());
    assert_eq!(base.entries(), [directory]);
    job.signal(Signal::TERM);
    assert_eq!(job.code(), Some(143));
    assert!(base.entries().is_empty());
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let base = Base::new();
    let plain = base.0.join("plain");
    fs::write(&plain, "#!/nowhere/to/be/found\n").unwrap();
    let run = |program: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ayre"));
        command.args(["run", "-n", "2", "--"]).arg(program).env("XDG_RUNTIME_DIR", &base.0);
        command.output().unwrap()
    };

    let output = run(Path::new("ayre-no-such-program"));
    assert_eq!(output.status.code(), Some(127));
    assert_says(&output, "ayre-no-such-program: not found in PATH");

    let output = run(&base.0.join("missing"));
    assert_eq!(output.status.code(), Some(127));
    assert_says(&output, "missing: no such file");

    let output = run(&plain);
    assert_eq!(output.status.code(), Some(126));
    assert_says(&output, "plain: not executable");

    fs::set_permissions(&plain, fs::Permissions::from_mode(0o700)).unwrap();
    let output = run(&plain);
    assert_eq!(output.status.code(), Some(126));
    assert_says(&output, "interpreter");
    assert_eq!(base.entries(), [plain]);
}

#[test]
fn prefixed_output_keeps_lines_and_streams() {
    let script = "printf 'one\\n\\nlast'; printf 'bad\\377\\000\\n' >&2";
    let output = Base::new().job(&["-n", "1", "--prefix"], script);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"[0] one\n[0] \n[0] last\n");
    assert_eq!(output.stderr, b"[0] bad\xff\0\n");
}

#[test]
fn prefixed_lines_of_several_ranks_never_mix() {
    let script = "line=$AYRE_RANK; for i in 1 2 3 4 5 6 7 8; do line=$line$line; done
        yes $line | head -n 1000";
    let output = Base::new().job(&["-n", "4", "--prefix"], script);
    let mut expected = Vec::new();
    for rank in 0..4 {
        let line = format!("[{rank}] {}", rank.to_string().repeat(256));
        expected.extend(std::iter::repeat_n(line, 1000));
    }
    assert!(sorted_lines(&output.stdout) == expected);
}

#[test]
fn a_process_left_behind_does_not_hold_up_the_job() {
    // The sleeping process keeps the launcher's pipe open; its number is on record to end it.
    let output = Base::new().job(&["-n", "1", "--prefix"], "sleep 1000 & echo $!");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let sleeper = text.trim_end().strip_prefix("[0] ").unwrap().parse().unwrap();
    kill_process(Pid::from_raw(sleeper).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn input_goes_to_rank_0() {
    let base = Base::new();
    let mut launcher = base.launcher(&["-n", "2", "--prefix"], "cat; echo end");
    let mut job = launcher.stdin(Stdio::piped()).spawn().unwrap();
    job.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = job.wait_with_output().unwrap();
    assert_eq!(sorted_lines(&output.stdout), ["[0] end", "[0] hello", "[1] end"]);
}

#[test]
fn bound_ranks_have_one_core_each_in_turn() {
    let script = "while read name value; do
        [ $name != Cpus_allowed_list: ] || echo $AYRE_RANK $value; done </proc/self/status";
    let cores_of = |options: &[&str]| {
        let output = Base::new().job(options, script);
        assert_eq!(output.status.code(), Some(0));
        let lines = sorted_lines(&output.stdout);
        lines.iter().map(|line| line[2..].to_owned()).collect::<Vec<_>>()
    };
    let unbound = cores_of(&["-n", "1"]);
    let bound = cores_of(&["-n", "1", "--bind", "cores"]);
    assert!(bound[0].parse::<u32>().is_ok(), "not one core: {bound:?}");
    let list = cores_of(&["-n", "3", "--bind", &bound[0]]);
    assert_eq!(list, [bound[0].as_str(); 3]);
    let none = cores_of(&["-n", "1", "--bind", "none"]);
    assert_eq!(none, unbound);

    let script = "echo ${AYRE_PROCESSORS-unset}";
    let output = Base::new().job(&["-n", "2", "--bind", &bound[0]], script);
    assert_eq!(sorted_lines(&output.stdout), ["1", "1"]);
    let output = Base::new().job(&["-n", "1"], script);
    assert_eq!(sorted_lines(&output.stdout), ["unset"]);
}

#[test]
fn a_core_that_does_not_exist_is_refused() {
    let output = Base::new().job(&["-n", "2", "--bind", "1023"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "core 1023");
}

// spec: LIM-1
#[test]
fn a_job_larger_than_any_may_be_is_refused() {
    let output = Base::new().job(&["-n", "1025"], "true");
    assert_eq!(output.status.code(), Some(2));
    assert_says(&output, "1025 is not in 1..=1024");
}
