//! Tests of the ranks' knowledge of their job.
use super::{Hosts, TOOL, assert_says, sorted_lines};
use std::process::{Command, Stdio};

#[test]
fn ranks_learn_their_place_and_that_of_their_host() {
    let hosts = Hosts::new(&["a", "b"]);
    let script =
        "echo $AYRE_RANK $AYRE_SIZE $AYRE_HOST_RANKS ${AYRE_MODE-unset} ${AYRE_ADDRESSES-all}";
    let output = hosts.job(&["--hosts", "a:1,b:2"], script);
    assert_eq!(output.status.code(), Some(0));
    let expected = ["0 3 0..1 unset all", "1 3 1..3 unset all", "2 3 1..3 unset all"];
    assert_eq!(sorted_lines(&output.stdout), expected);
    assert!(output.stderr.is_empty());

    let options = ["--hosts", "a,b", "-n", "3", "--mode", "mediated", "--net", "lo"];
    let output = hosts.job(&options, "echo $AYRE_RANK $AYRE_HOST_RANKS $AYRE_MODE $AYRE_ADDRESSES");
    let expected =
        ["0 0..2 mediated 127.0.0.1", "1 0..2 mediated 127.0.0.1", "2 2..3 mediated 127.0.0.1"];
    assert_eq!(sorted_lines(&output.stdout), expected);

    let output = hosts.job(&["--hosts", "a:2"], "echo ${AYRE_ADDRESSES-unset} $AYRE_HOST_RANKS");
    assert_eq!(sorted_lines(&output.stdout), ["unset 0..2", "unset 0..2"]);
}

// spec: SEAL-12, LIFE-23
#[test]
fn ranks_are_told_to_do_without_protection_only_if_the_user_says_so() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "echo ${AYRE_PROTECTION-unset}";
    for (option, variable, expected) in [
        (None, None, "unset"),
        (Some("--plain"), None, "plain"),
        (None, Some("plain"), "plain"),
        (None, Some("sealed"), "sealed"),
        (Some("--plain"), Some("sealed"), "plain"),
    ] {
        let options: Vec<_> = ["--hosts", "a,b"].into_iter().chain(option).collect();
        let mut launcher = hosts.launcher(&options, script);
        launcher.envs(variable.map(|value| ("AYRE_PROTECTION", value)));
        let output = launcher.output().unwrap();
        assert_eq!(sorted_lines(&output.stdout), [expected; 2], "{output:?}");
    }
    let output = Command::new(TOOL).args(["run", "-n", "2", "--plain", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "this is for several hosts");
}

// spec: LIFE-23
#[test]
fn the_interfaces_that_the_user_names_hold_on_every_host_and_the_option_is_stronger() {
    let hosts = Hosts::new(&["a", "b"]);
    let script = "echo $AYRE_NET $AYRE_ADDRESSES";
    for (options, variable, expected) in [
        (&[][..], "lo", "lo 127.0.0.1"),
        (&["--net", "127.0.0.0/8"], "nonsense", "127.0.0.0/8 127.0.0.1"),
    ] {
        let options = [&["--hosts", "a,b"], options].concat();
        let output = hosts.launcher(&options, script).env("AYRE_NET", variable).output().unwrap();
        assert_eq!(sorted_lines(&output.stdout), [expected; 2], "{output:?}");
    }
    let mut here = Command::new(TOOL);
    here.args(["run", "-n", "2", "true"]);
    for mut launcher in [hosts.launcher(&["--hosts", "a,b"], "true"), here] {
        let output = launcher.env("AYRE_NET", "nonsense").stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert_says(&output, "the address `nonsense`; there are");
    }
}

// spec: ENV-35
#[test]
fn the_ports_that_a_firewall_lets_pass_are_told_to_every_host_and_the_option_is_stronger() {
    let hosts = Hosts::new(&["a", "b"]);
    for (options, expected) in [(&[][..], "7500-7510"), (&["--ports", "8000-8010"], "8000-8010")] {
        let options = [&["--hosts", "a,b"], options].concat();
        let mut launcher = hosts.launcher(&options, "echo $AYRE_PORTS");
        let output = launcher.env("AYRE_PORTS", "7500-7510").output().unwrap();
        assert_eq!(sorted_lines(&output.stdout), [expected; 2], "{output:?}");
    }
    let mut launcher = hosts.launcher(&["--hosts", "a,b", "--ports", "9-8"], "true");
    let output = launcher.stderr(Stdio::piped()).output().unwrap();
    assert_says(&output, "a range of UDP ports is first-last");
}

// spec: LIFE-23, LINK-17
#[test]
fn after_which_times_a_rank_is_not_heard_and_dead_is_told_to_every_host() {
    let hosts = Hosts::new(&["a", "b"]);
    let given = ["--silence", "0.5", "--dead-after", "600"];
    for (options, expected) in [(&[][..], "2 30"), (&given, "0.5 600")] {
        let options = [&["--hosts", "a,b"], options].concat();
        let mut launcher = hosts.launcher(&options, "echo $AYRE_SILENCE $AYRE_DEAD_AFTER");
        let output = launcher.env("AYRE_SILENCE", "2").env("AYRE_DEAD_AFTER", "30").output();
        assert_eq!(sorted_lines(&output.unwrap().stdout), [expected; 2]);
    }
}

#[test]
fn variables_and_the_working_directory_go_along() {
    let hosts = Hosts::new(&["a", "b"]);
    let options = ["--hosts", "a,b", "--env", "ONE=1 =", "--env", "TWO"];
    let script = "echo $ONE $TWO ${THREE-unset} $AYRE_TEST_FOUR ${AYRE_PROCESSORS-unset}; pwd";
    let mut launcher = hosts.launcher(&options, script);
    launcher.env("TWO", "2").env("AYRE_TEST_FOUR", "4").env("AYRE_PROCESSORS", "9");
    launcher.current_dir("/usr/bin");
    let output = launcher.output().unwrap();
    assert_eq!(sorted_lines(&output.stdout)[..2], ["/usr/bin", "/usr/bin"]);
    assert_eq!(sorted_lines(&output.stdout)[2..], ["1 = 2 unset 4 unset"; 2]);

    let output = hosts.job(&["--hosts", "a", "--env", "NO_SUCH_VARIABLE"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert_says(&output, "NO_SUCH_VARIABLE");
}

// spec: LIFE-36
#[test]
fn addresses_reach_the_ranks_of_all_other_hosts() {
    let hosts = Hosts::new(&["a", "b", "c"]);
    let script = "cd $AYRE_JOB; port=$((1000 + AYRE_RANK))
        { echo any; echo 127.0.0.1:$port; echo [::1]:$port; } >$AYRE_RANK.tmp
        mv $AYRE_RANK.tmp $AYRE_RANK.addr
        for rank in 0 1 2 3 4; do until [ -f $rank.addr ]; do :; done; done
        echo $AYRE_RANK $(cat ?.addr)";
    let output = hosts.job(&["--hosts", "a:2,b:2,c:1"], script);
    assert_eq!(output.status.code(), Some(0));
    let all: Vec<_> =
        (1000..1005).map(|port| format!("any 127.0.0.1:{port} [::1]:{port}")).collect();
    let expected: Vec<_> = (0..5).map(|rank| format!("{rank} {}", all.join(" "))).collect();
    assert_eq!(sorted_lines(&output.stdout), expected);
}

#[test]
fn an_address_that_is_none_ends_the_job() {
    for text in ["", "any", "nonsense", "127.0.0.1:0", "0.0.0.0:7", "127.0.0.1"] {
        let hosts = Hosts::new(&["a", "b"]);
        let script = format!(
            "cd $AYRE_JOB; [ $AYRE_RANK = 0 ] || exec sleep 1000
            echo '{text}' >tmp; mv tmp 0.addr; exec sleep 1000"
        );
        let output = hosts.job(&["--hosts", "a,b"], &script);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert_says(&output, "host a: rank 0 has no address");
    }
}

#[test]
fn the_key_is_private_the_same_everywhere_and_new() {
    let key_of = || {
        let hosts = Hosts::new(&["a", "b"]);
        let script = "ls -l $AYRE_JOB/key | cut -c 1-10; ls -ld $AYRE_JOB | cut -c 1-10
            echo key $(cat $AYRE_JOB/key)";
        let lines = sorted_lines(&hosts.job(&["--hosts", "a,b"], script).stdout);
        assert_eq!(lines[..4], ["-rw-------", "-rw-------", "drwx------", "drwx------"]);
        assert_eq!(lines[4], lines[5]);
        let key = lines[4].strip_prefix("key ").unwrap();
        assert!(key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit()), "{key}");
        key.to_owned()
    };
    assert_ne!(key_of(), key_of());
}
