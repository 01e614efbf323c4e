//! How jobs end, and what they leave.
use super::{Hosts, Running, assert_ends, assert_says};
use std::fs;
use std::io::{BufRead, BufReader};

use rustix::process::{Signal, kill_process};

#[test]
fn the_code_of_a_failing_rank_is_the_jobs() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "[ $AYRE_RANK != 3 ] || exit 3; exec sleep 1000";
    let output = hosts.job(&["--hosts", "a:2,b:2"], script);
    assert_eq!(output.status.code(), Some(3));
    let said = "ayre: rank 3 exited with code 3; ending the other 3 ranks\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);

    let script = "[ $AYRE_RANK = 0 ] || kill -KILL $$; (sleep 1000; true) & sleep 1000; true";
    let output = hosts.job(&["--hosts", "a,b"], script);
    assert_eq!(output.status.code(), Some(137));
    assert_says(&output, "rank 1 was killed by signal 9 (SIGKILL)");
}

#[test]
fn a_failed_job_kills_leftover_processes_on_all_hosts() {
    let hosts = Hosts::new(&["a", "b", "c"]);
    // Rank 0 has ended well by then, and rank 1 leaves its host without a rank.
    let script = "cd $AYRE_JOB; address() { echo 127.0.0.1:1 >tmp; mv tmp $AYRE_RANK.addr; }
        sleep 1000 & echo $AYRE_RANK $!
        [ $AYRE_RANK != 0 ] || { address; exit 0; }
        [ $AYRE_RANK != 1 ] || { until [ -f 0.addr ]; do :; done; read go <go; exit 6; }
        wait";
    let script = script.replace("read go <go", "mkfifo go.new; mv go.new go; read go <go");
    let mut job = Running::start(hosts.launcher(&["--hosts", "a,b,c"], &script));
    let orphans = job.processes(3);
    let go = loop {
        let folders = fs::read_dir(hosts.base.join("b")).unwrap();
        if let Some(go) =
            folders.map(|folder| folder.unwrap().path().join("go")).find(|go| go.exists())
        {
            break go;
        }
    };
    fs::write(go, "now\n").unwrap();
    let output = job.end();
    assert_eq!(output.status.code(), Some(6));
    orphans.iter().flatten().for_each(|(_, process)| assert_ends(process));
    hosts.assert_nothing_left();
}

#[test]
fn a_successful_job_does_not_kill_leftover_processes() {
    let hosts = Hosts::new(&["a", "b"]);
    let mut job = Running::start(hosts.launcher(&["--hosts", "a,b"], "sleep 1000 & echo - $!"));
    let sleepers = job.processes(2);
    assert_eq!(job.end().status.code(), Some(0));
    hosts.assert_nothing_left();
    for (process, fd) in sleepers.iter().flatten() {
        kill_process(*process, Signal::KILL).expect("it is there still");
        assert_ends(fd);
    }
}

#[test]
fn a_job_out_of_time_fails_with_124() {
    let hosts = Hosts::new(&["a", "b"]);
    let options = ["--hosts", "a,b", "--timeout", "0.01", "--grace", "0"];
    let output = hosts.job(&options, "trap '' TERM; while :; do sleep 1000; done");
    assert_eq!(output.status.code(), Some(124));
    assert_says(&output, "has used up its time");
}

#[test]
fn signals_are_passed_on_to_every_rank() {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::USR1, "USR1")] {
        let hosts = Hosts::new(&["a", "b"]);
        let script = format!(
            "trap 'kill -9 $!; echo got $AYRE_RANK; exit 0' {name}; sleep 1000 & echo ready; wait"
        );
        let options = ["--hosts", "a,b", "--grace", "1000"];
        let mut job = Running::start(hosts.launcher(&options, &script));
        assert_eq!(job.lines(2), ["ready", "ready"]);
        job.signal(signal);
        assert_eq!(job.lines(2), ["got 0", "got 1"], "{name}");
        assert_eq!(job.end().status.code(), Some(0), "{name}");
        hosts.assert_nothing_left();
    }
}

#[test]
fn a_job_that_is_told_to_end_before_it_begins_ends() {
    let hosts = Hosts::new(&["a", "b"]);
    let via = hosts.via("echo connecting >&2; cat >/dev/null;");
    let launcher = hosts.launcher_via(&via, &["--hosts", "a,b", "--grace", "0"], "echo started");
    let mut job = Running::start(launcher);
    let mut said = BufReader::new(job.launcher.stderr.take().unwrap()).lines();
    // Both hosts are on their way, so the launcher holds its signals or is about to; either way it
    // ends by the signal's number.
    for _ in 0..2 {
        assert_eq!(said.next().unwrap().unwrap(), "connecting");
    }
    job.signal(Signal::TERM);
    let output = job.end();
    let by_default = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert!(output.status.code() == Some(143) || by_default == Some(15), "{:?}", output.status);
    assert!(output.stdout.is_empty());
    hosts.assert_nothing_left();
}

#[test]
fn a_killed_agent_ends_the_job_and_its_ranks() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "echo $AYRE_RANK $$ $PPID; exec sleep 1000";
    let mut job = Running::start(hosts.launcher(&["--hosts", "a,b:2"], script));
    let ranks = job.processes(3);
    kill_process(ranks[1][1].0, Signal::KILL).unwrap();
    let output = job.end();
    assert_eq!(output.status.code(), Some(125));
    assert_says(
        &output,
        "host b: its agent is gone: sh was killed by signal 9 (SIGKILL); ending the other rank",
    );
    ranks.iter().flatten().for_each(|(_, process)| assert_ends(process));
    // What the agent could not remove goes with the next job.
    assert_eq!(hosts.job(&["--hosts", "a,b"], "true").status.code(), Some(0));
}

#[test]
fn a_terminated_agent_leaves_no_process_or_file() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "trap '' TERM; echo $AYRE_RANK $$ $PPID; while :; do sleep 1000; done";
    let options = ["--hosts", "a,b", "--grace", "0"];
    let mut job = Running::start(hosts.launcher(&options, script));
    let ranks = job.processes(2);
    kill_process(ranks[0][1].0, Signal::TERM).unwrap();
    let output = job.end();
    assert_says(&output, "rank 0 was killed by signal 9 (SIGKILL); ending the other rank");
    ranks.iter().flatten().for_each(|(_, process)| assert_ends(process));
    hosts.assert_nothing_left();
}

#[test]
fn a_killed_launcher_leaves_no_process_or_file_on_any_host() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "trap '' TERM; echo $AYRE_RANK $$ $PPID; while :; do sleep 1000; done";
    let mut job = Running::start(hosts.launcher(&["--hosts", "a:2,b:2"], script));
    let ranks = job.processes(4);
    job.signal(Signal::KILL);
    assert_eq!(job.end().status.code(), None);
    ranks.iter().flatten().for_each(|(_, process)| assert_ends(process));
    hosts.assert_nothing_left();
}
