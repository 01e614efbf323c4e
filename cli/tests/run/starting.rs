//! Where and how jobs start: hosts that are this machine, banners, places for the job directory,
//! ranks that fail while others go on, and launchers in odd places.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{Base, assert_says, sorted_lines};

const TOOL: &str = env!("CARGO_BIN_EXE_ayre");

/// A `PATH` on which `ssh` and `srun` say that they were asked, and fail.
fn path_without_ways(base: &Base) -> String {
    let folder = base.0.join("bin");
    fs::create_dir(&folder).unwrap();
    for name in ["ssh", "srun"] {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\necho {name} was asked >&2\nexit 9\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// This machine's name for itself.
fn own_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim_end().to_owned()
}

#[test]
fn hosts_that_are_this_machine_need_neither_ssh_nor_srun() {
    let base = Base::new();
    let path = path_without_ways(&base);
    let own = format!("{}:2", own_name());
    let script = "echo $AYRE_RANK $AYRE_SIZE $AYRE_HOST_RANKS";
    for host in ["localhost:2", "LocalHost:2", "127.0.0.1:2", "127.0.0.2:2", &own] {
        let mut launcher = base.launcher(&["--hosts", host], script);
        let output = launcher.env("PATH", &path).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{host}: {output:?}");
        assert_eq!(sorted_lines(&output.stdout), ["0 2 0..2", "1 2 0..2"], "{host}");
        assert!(output.stderr.is_empty(), "{host}: {output:?}");
    }
    for host in ["root@localhost", "192.0.2.1"] {
        let mut launcher = base.launcher(&["--hosts", host], script);
        let output = launcher.env("PATH", &path).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{host}");
        assert_says(&output, "ssh was asked");
        assert_says(&output, &format!("`ssh {host} true` must work without a password"));
        assert_says(&output, "--via");
    }
}

#[test]
fn an_allocation_of_this_machine_alone_needs_no_srun() {
    let base = Base::new();
    let path = path_without_ways(&base);
    let job = |node: &str, called: &str| {
        let mut launcher = base.launcher(&[], "echo $AYRE_RANK $AYRE_SIZE");
        launcher.env("PATH", &path).env("SLURM_JOB_NODELIST", node);
        launcher.env("SLURM_TASKS_PER_NODE", "2").env("SLURMD_NODENAME", called);
        launcher.stderr(Stdio::piped()).output().unwrap()
    };
    for (node, called) in [(&*own_name(), ""), ("n[07]", "n07")] {
        let output = job(node, called);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(sorted_lines(&output.stdout), ["0 2", "1 2"]);
    }
    let output = job("no-such-node", "n07");
    assert_says(&output, "srun was asked");
    assert_says(&output, "`srun -N1 -w no-such-node true` must work");
    let output = job("a;b", "");
    assert_says(&output, "a host's name has letters, digits and .-_:@%[] only, not ';'");
}

#[test]
fn a_banner_of_a_host_is_passed_on() {
    let base = Base::new();
    let via = "sh -c 'echo Welcome to {host}; echo; printf loading; exec {command}'";
    let output = base.job(&["--hosts", "a", "--via", via], "echo $AYRE_RANK");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"0\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "ayre: host a: Welcome to a\nayre: host a: \nayre: host a: loading\n");
}

#[test]
fn a_host_that_says_something_and_no_more_is_not_waited_for_for_ever() {
    let base = Base::new();
    let via = "sh -c 'echo Welcome to {host}; exec cat >/dev/null; {command}'";
    let options = ["--hosts", "a", "--via", via, "--connect-timeout", "0.2"];
    let output = base.job(&options, "echo started");
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "host a: no agent has answered for 200ms; sh must start ");
    assert_says(&output, "--connect-timeout SECONDS");
    assert!(output.stdout.is_empty());
}

#[test]
fn other_ranks_can_write_output_after_a_failure() {
    // Rank 0 hears of the death of rank 1 by the end of its pipe.
    let script = "cd $AYRE_JOB
        if [ $AYRE_RANK = 0 ]; then mkfifo a.new; mv a.new a; read x <a; echo seen >&2
            exec sleep 1000; fi
        until [ -p a ]; do :; done; exec 3>a; exit 3";
    for options in [&["-n", "2"][..], &["-n", "2", "--prefix"]] {
        let output = Base::new().job(options, script);
        assert_eq!(output.status.code(), Some(3));
        assert_says(&output, "seen\n");
        assert_says(&output, "rank 1 exited with code 3; ending the other rank\n");
    }
}

#[test]
fn a_job_that_keeps_going_ends_with_the_highest_code() {
    // Rank 0 works on when both others have gone; what rank 1 leaves behind holds the output open.
    let script = "cd $SHARED
        if [ $AYRE_RANK = 0 ]; then for other in 1 2; do
            mkfifo new; mv new $other; read x <$other; done; echo going on; exit 0; fi
        until [ -p $AYRE_RANK ]; do :; done; exec 3>$AYRE_RANK
        [ $AYRE_RANK = 1 ] || kill -KILL $$
        (sleep 1000; true) 3>&- & exit 3";
    let hosts = ["-n", "3", "--hosts", "a:2,b:1", "--via", "sh -c 'exec {command}'"];
    for options in [&["-n", "3", "--keep-going"][..], &[&hosts[..], &["--keep-going"]].concat()] {
        // The ranks of different hosts share no directory.
        let (base, shared) = (Base::new(), Base::new());
        let mut launcher = base.launcher(options, script);
        let output = launcher.env("SHARED", &shared.0).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(137), "{output:?}");
        assert_eq!(output.stdout, b"going on\n");
        assert_says(&output, "; going on with the other ");
        assert_says(&output, "rank 1 exited with code 3");
        assert_says(&output, "rank 2 was killed by signal 9 (SIGKILL)");
        assert_eq!(sorted_lines(&output.stderr).len(), 2, "{output:?}");
    }
    let output = Base::new().job(&["-n", "2", "--keep-going"], "true");
    assert_eq!(output.status.code(), Some(0));
}

/// Runs the tool in namespaces of its own, after `script`; none where that is not allowed.
fn contained(unshare: &[&str], script: &str, arguments: &[&str]) -> Option<Output> {
    let as_root = if rustix::process::geteuid().is_root() { &[][..] } else { &["--map-root-user"] };
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(as_root).args(unshare).args(["sh", "-c", script, "sh", TOOL]);
        command
    };
    if !inside("exit 0").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no namespaces here ({unshare:?})");
        return None;
    }
    let script = format!("set -e\n{script}\nexec \"$@\"");
    Some(inside(&script).args(arguments).env_remove("XDG_RUNTIME_DIR").output().unwrap())
}

/// A program that communicates: two processes send each other messages of 8 bytes.
const TALK: [&str; 8] =
    ["perf", "--quick", "--reps", "1", "--op", "message-latency", "--size", "8"];

fn assert_talked(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("message-latency"), "{output:?}");
}

#[test]
fn where_no_job_directory_can_be_made_the_variable_that_helps_is_named() {
    assert!(!TOOL.starts_with("/tmp/"), "the container hides /tmp: build outside of it");
    let read_only = "for place in /tmp /dev/shm; do
        mount -t tmpfs -o ro,size=4k none $place; done; export TMPDIR=";
    let Some(output) = contained(&["-m"], &format!("{read_only}/tmp"), &TALK) else { return };
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "no place for the job directory: /dev/shm: Read-only file system");
    assert_says(&output, "/tmp (TMPDIR): Read-only file system");
    assert_says(&output, "Set TMPDIR to a folder that can be written to");

    let long = "l".repeat(150);
    let long = format!("mkdir /mnt/{long}; {read_only}/mnt/{long}");
    let mount = "mount -t tmpfs none /mnt";
    let output = contained(&["-m"], &format!("{mount}; {long}"), &TALK).unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "(TMPDIR): its path is too long for sockets: 155 characters");
    let relative = format!("{read_only}somewhere");
    let output = contained(&["-m"], &relative, &TALK).unwrap();
    assert_says(&output, "somewhere (TMPDIR): its path does not begin with /");

    let output = contained(&["-m"], &format!("{mount}; {read_only}/mnt"), &TALK).unwrap();
    assert_talked(&output);
}

#[test]
fn a_long_name_in_tmpdir_is_no_harm_where_there_is_another_place() {
    let base = Base::new();
    let long = base.0.join("l".repeat(150));
    fs::create_dir(&long).unwrap();
    let mut launcher = base.launcher(&["-n", "2"], "echo $AYRE_RANK");
    let output = launcher.env("TMPDIR", &long).output().unwrap();
    assert_eq!(sorted_lines(&output.stdout), ["0", "1"]);
}

#[test]
fn the_umask_does_not_affect_the_job_directory() {
    let script = "umask 177; exec \"$0\" run -n 1 -- sh -c 'stat -c %a \"$AYRE_JOB\"'";
    let output = Command::new("sh").args(["-c", script, TOOL]).output().unwrap();
    assert_eq!(output.stdout, b"700\n", "{output:?}");
}

#[test]
fn little_shared_memory_as_in_containers_is_enough() {
    for (size, inodes) in [(64, 100), (1024, 3)] {
        let mount = format!("mount -t tmpfs -o size={size}k,nr_inodes={inodes} none /dev/shm");
        let Some(output) = contained(&["-m"], &mount, &TALK) else { return };
        assert_talked(&output);
    }
}

#[test]
fn a_launcher_may_be_the_first_process_of_a_container() {
    let first = ["-p", "-f", "--mount-proc"];
    let Some(output) = contained(&first, "[ $$ = 1 ]", &TALK) else { return };
    assert_talked(&output);
    let failing = ["run", "-n", "2", "--", "sh", "-c", "sleep 1000 & exit 7"];
    let output = contained(&first, "[ $$ = 1 ]", &failing).unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn a_job_may_start_jobs() {
    let base = Base::new();
    let inner = format!("{TOOL} {}", TALK.join(" "));
    let output = base.job(&["-n", "2"], &inner);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("\nmessage-latency").count(), 2 * 2, "direct and loopback: {text}");
    let inner = format!("exec {TOOL} run -n 2 -- sh -c 'echo $AYRE_RANK of $AYRE_SIZE'");
    let output = base.job(&["-n", "3"], &inner);
    assert_eq!(
        sorted_lines(&output.stdout),
        ["0 of 2", "0 of 2", "0 of 2", "1 of 2", "1 of 2", "1 of 2"]
    );
}

#[test]
fn successive_jobs_leave_no_files() {
    let base = Base::new();
    for _ in 0..15 {
        let output = base.job(&["-n", "8"], "echo $AYRE_RANK");
        assert_eq!(sorted_lines(&output.stdout).len(), 8);
    }
    let mut command = Command::new(TOOL);
    command.args(["perf", "--procs", "64", "--op", "barrier-latency", "--quick", "--reps", "1"]);
    let output = command.env("XDG_RUNTIME_DIR", &base.0).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" 64 on "), "{output:?}");
    assert!(Path::new(&base.0).read_dir().unwrap().next().is_none());
}
