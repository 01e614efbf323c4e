//! Tests of `ayre run --hosts` from outside. A shell stands for each host, with a folder of its own
//! for job directories; the agents there work as they do behind `ssh`.
//!
//! No test looks at a clock: a job whose ranks sleep a thousand seconds simply ends, or the test
//! does not.
#[path = "run_hosts/ends.rs"]
mod ends;
#[path = "run_hosts/told.rs"]
mod told;

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

const TOOL: &str = env!("CARGO_BIN_EXE_ayre");

/// Hosts named `a`, `b` and so on, each a folder.
struct Hosts {
    base: PathBuf,
    names: Vec<&'static str>,
}

impl Hosts {
    fn new(names: &[&'static str]) -> Self {
        let name = format!("ayre-test-{:016x}", RandomState::new().build_hasher().finish());
        let base = std::env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).create(&base).unwrap();
        names.iter().for_each(|name| builder.create(base.join(name)).unwrap());
        Self { base, names: names.to_vec() }
    }

    /// The command that starts the agent of a host: `before`, in its folder.
    fn via(&self, before: &str) -> String {
        let base = self.base.display();
        format!("sh -c 'export XDG_RUNTIME_DIR={base}/{{host}}; {before} exec {{command}}'")
    }

    /// A launcher with these options for ranks that run `script`.
    fn launcher(&self, options: &[&str], script: &str) -> Command {
        self.launcher_via(&self.via(""), options, script)
    }

    fn launcher_via(&self, via: &str, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(TOOL);
        command.args(["run", "--via", via]).args(options).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn job(&self, options: &[&str], script: &str) -> Output {
        let output = self.launcher(options, script).stderr(Stdio::piped()).output().unwrap();
        self.assert_nothing_left();
        output
    }

    fn job_via(&self, via: &str, options: &[&str], script: &str) -> Output {
        let mut launcher = self.launcher_via(via, options, script);
        let output = launcher.stderr(Stdio::piped()).output().unwrap();
        self.assert_nothing_left();
        output
    }

    fn assert_nothing_left(&self) {
        for name in &self.names {
            let left = fs::read_dir(self.base.join(name)).unwrap().count();
            assert_eq!(left, 0, "host {name} still has a job directory");
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.base).unwrap();
    }
}

/// A job that runs beside its test; its ranks speak on standard output.
struct Running {
    launcher: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut launcher: Command) -> Self {
        let mut launcher = launcher.stderr(Stdio::piped()).spawn().unwrap();
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

    /// Processes that the next lines name, by the words of each line.
    fn processes(&mut self, count: usize) -> Vec<Vec<(Pid, OwnedFd)>> {
        let process = |word: &str| {
            let process = Pid::from_raw(word.parse().unwrap()).unwrap();
            (process, pidfd_open(process, PidfdFlags::empty()).unwrap())
        };
        let lines = self.lines(count);
        lines.iter().map(|line| line.split(' ').skip(1).map(process).collect()).collect()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).unwrap();
    }

    fn end(self) -> Output {
        self.launcher.wait_with_output().unwrap()
    }
}

fn assert_ends(process: &OwnedFd) {
    let ends = (0..60).any(|_| {
        let mut event = [PollFd::new(process, PollFlags::IN)];
        poll(&mut event, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap() == 1
    });
    assert!(ends, "a process has outlived its job");
}

fn sorted_lines(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> =
        String::from_utf8(text.to_vec()).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn assert_says(output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(expected), "{expected:?} is not in {said:?}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let hosts = Hosts::new(&["a", "b"]);
    let mut launcher = Command::new(TOOL);
    launcher.args(["run", "--hosts", "a,b", "--via", &hosts.via("[ {host} = a ] || cd /;")]);
    let output = launcher.args(["--", "ayre-no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert_says(&output, "cannot be started: ayre-no-such-program: not found in PATH");
    hosts.assert_nothing_left();
}

#[test]
fn no_rank_starts_while_a_host_is_missing() {
    let hosts = Hosts::new(&["a", "b"]);
    let via = hosts.via("[ {host} = a ] || exit 9;");
    let output = hosts.job_via(&via, &["--hosts", "a:2,b"], "echo started");
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "host b: no agent answers: sh exited with code 9; is ");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_missing_agent_is_named() {
    let hosts = Hosts::new(&["a"]);
    let output = hosts.job(&["--hosts", "a", "--agent", "/no/such/ayre"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert_says(
        &output,
        "host a: no agent answers: sh exited with code 127; is /no/such/ayre there",
    );

    let output = hosts.job_via("no-such-ssh {host} {command}", &["--hosts", "a"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "host a: no-such-ssh");
}

#[test]
fn an_invalid_agent_greeting_ends_the_job() {
    let version = env!("CARGO_PKG_VERSION");
    let greeting = format!("echo ayre agent {version}");
    for (says, expected) in [
        ("yes Welcome", "host a: what answers is no agent: it goes on from `Welcome`"),
        ("echo ayre agent 0.0.9", "host a: its ayre has version 0.0.9, this one"),
        (&format!("{greeting}; echo and that was it"), "host a: a message of"),
        (
            &format!("{greeting}; printf \"\\001\\000\\000\\000\\377\\n\""),
            "host a: a message makes no",
        ),
        (&format!("{greeting}; printf \"\\001\\000\""), "host a: the channel ended inside"),
        (&format!("{greeting}; printf \"\\002\\000\\000\\000\\004\\000\\n\""), "host a: it "),
    ] {
        let hosts = Hosts::new(&["a", "b"]);
        let via = hosts.via(&format!("[ {{host}} = b ] || {{ {says}; exec cat >/dev/null; }};"));
        let output = hosts.job_via(&via, &["--hosts", "a,b"], "exec sleep 1000");
        assert_eq!(output.status.code(), Some(125), "{says}");
        assert_says(&output, expected);
    }
}

#[test]
fn output_comes_as_it_was_written() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "[ $AYRE_RANK = 1 ] || exit 0; printf 'one\\n\\377\\000last'; printf bad >&2";
    let output = hosts.job(&["--hosts", "a,b"], script);
    assert_eq!(output.stdout, b"one\n\xff\0last");
    assert_eq!(output.stderr, b"bad");
    let output = hosts.job(&["--hosts", "a,b", "--prefix"], script);
    assert_eq!(output.stdout, b"[1] one\n[1] \xff\0last\n");
    assert_eq!(output.stderr, b"[1] bad\n");
}

#[test]
fn lines_of_several_hosts_never_mix() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "line=$AYRE_RANK; for i in 1 2 3 4 5 6 7 8; do line=$line$line; done
        yes $line | head -n 3000";
    let output = hosts.job(&["--hosts", "a:2,b:2"], script);
    let line = |rank: usize| rank.to_string().repeat(256);
    let expected: Vec<_> = (0..4).flat_map(|rank| std::iter::repeat_n(line(rank), 3000)).collect();
    assert!(sorted_lines(&output.stdout) == expected);
}

#[test]
fn ranks_get_a_broken_pipe_when_their_output_is_not_read() {
    let hosts = Hosts::new(&["a", "b"]);
    // Without a reader `yes` ends, by a signal; what it says of itself is read still.
    let script = "trap '' PIPE; yes; echo no reader $AYRE_RANK >&2";
    let mut job = Running::start(hosts.launcher(&["--hosts", "a,b"], script));
    assert_eq!(job.lines(1), ["y"]);
    let Running { launcher, output } = job;
    drop(output);
    let output = launcher.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_says(&output, "no reader 0");
    assert_says(&output, "no reader 1");
    hosts.assert_nothing_left();
}

#[test]
fn a_job_can_be_killed_while_its_output_is_not_read() {
    let hosts = Hosts::new(&["a"]);
    let script = "trap '' INT TERM; echo - $$ $PPID; yes";
    let mut job = Running::start(hosts.launcher(&["--hosts", "a", "--grace", "0"], script));
    let processes = job.processes(1);
    // From here on, nobody reads: soon the launcher cannot even be told how the ranks have ended.
    job.signal(Signal::TERM);
    assert!(matches!(job.launcher.wait().unwrap().code(), Some(125 | 137)));
    processes.iter().flatten().for_each(|(_, process)| assert_ends(process));
    hosts.assert_nothing_left();
}

#[test]
fn ranks_of_several_hosts_get_empty_standard_input() {
    let hosts = Hosts::new(&["a", "b"]);
    let output = hosts.job(&["--hosts", "a,b"], "cat; echo end");
    assert_eq!(output.stdout, b"end\nend\n");
}

#[test]
fn an_allocation_of_slurm_gives_hosts_and_ranks() {
    let hosts = Hosts::new(&["n01", "n02", "m1", "bin"]);
    // Stands for `srun`: says what it was asked for, and does it; passes on whole lines only.
    let srun = format!(
        "#!/bin/sh\necho \"$1 $2 $3 $4 $5\" >&2\n
        export XDG_RUNTIME_DIR={}/$5\nshift 5\n\"$@\" | LC_ALL=C sed -u ''\n",
        hosts.base.display()
    );
    let file = hosts.base.join("bin/srun");
    fs::write(&file, srun).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    let path = format!("{}:{}", file.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let job = |options: &[&str], tasks: (&str, &str)| {
        let mut launcher = Command::new(TOOL);
        launcher.arg("run").args(options).env("PATH", &path);
        launcher.env("SLURM_JOB_NODELIST", "n[01-02],m1").env(tasks.0, tasks.1);
        let script = "echo $AYRE_RANK $AYRE_HOST_RANKS ${AYRE_JOB%/*}";
        let output = launcher.args(["--", "sh", "-c", script]).output().unwrap();
        let base = format!("{}/", hosts.base.display());
        let ranks: Vec<_> =
            sorted_lines(&output.stdout).iter().map(|line| line.replace(&base, "")).collect();
        (ranks, sorted_lines(&output.stderr))
    };
    let (ranks, said) = job(&[], ("SLURM_TASKS_PER_NODE", "2,1(x2)"));
    assert_eq!(ranks, ["0 0..2 n01", "1 0..2 n01", "2 2..3 n02", "3 3..4 m1"]);
    let asked = |host| format!("--nodes=1 --ntasks=1 --cpu-bind=none -w {host}");
    assert_eq!(said, [asked("m1"), asked("n01"), asked("n02")]);
    let (ranks, _) = job(&[], ("SLURM_NTASKS", "3"));
    assert_eq!(ranks, ["0 0..1 n01", "1 1..2 n02", "2 2..3 m1"]);
    let (ranks, _) = job(&["-n", "1"], ("SLURM_NTASKS", "3"));
    assert!(ranks.len() == 1 && !ranks[0].contains("n01"), "with -n it is a job of this machine");
    fs::remove_file(file).unwrap();
    hosts.assert_nothing_left();
}

#[test]
fn impossible_host_options_are_refused() {
    let hosts = Hosts::new(&["a", "b"]);
    for (options, expected) in [
        (&["--hosts", "a,a"][..], "a is named twice: write a:slots"),
        (&["--hosts", "a:1,b:1", "-n", "3"], "3 ranks do not fit: the hosts have 2 slots"),
        (&["--hosts", "a:900,b:900"], "1800 ranks are more than the 1024 of a job"),
        (&["-n", "2"], "name them with --hosts"),
        (&["--hosts", "a,b", "--net", "no-such-net"], "is, or has, the address `no-such-net`"),
        (&["--hosts", "a,b", "--net", "lo,lo,lo,lo,lo"], "at most 4 paths"),
    ] {
        let output = hosts.job(options, "true");
        assert_eq!(output.status.code(), Some(125), "{options:?}");
        assert_says(&output, expected);
    }
    let without = Command::new(TOOL).args(["run", "--", "true"]).output().unwrap();
    assert_eq!(without.status.code(), Some(125));
    assert_says(&without, "how many ranks? (-n N, or --hosts)");
    let no_command = hosts.job_via("ssh {host}", &["--hosts", "a"], "true");
    assert_eq!(no_command.status.code(), Some(2));
}

#[test]
fn an_agent_refuses_malformed_orders() {
    use std::io::Write;
    for orders in
        [&b"\xff\xff\xff\xff"[..], b"\x01\x00\x00\x00\x09\n", b"\x01\x00\x00\x00\x05\n", b"\x09"]
    {
        let mut agent = Command::new(TOOL);
        agent.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = agent.spawn().unwrap();
        agent.stdin.take().unwrap().write_all(orders).unwrap();
        let output = agent.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{orders:?}");
        assert!(output.stdout.starts_with(b"ayre agent "));
    }
    let output = Command::new(TOOL).arg("agent").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "no orders are no harm");
}
