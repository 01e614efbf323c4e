//! The names of all operations: `--op` is checked against them before anything starts, and `--list`
//! prints them.

use std::fmt::Write;

use super::{Args, Mode};

/// Cases that are measured in the same way.
struct Group {
    /// The arguments to measure them.
    how: &'static str,
    is_in: fn(&Args) -> bool,
    names: &'static [&'static str],
}

const GROUPS: [Group; 5] = [
    Group {
        how: "two processes of this host (where no --net and no --procs is given)",
        is_in: |args| !args.net.is_on() && args.procs.is_none(),
        names: &[
            "raw-pingpong",
            "raw-put",
            "raw-ring",
            "raw-ring-two-way",
            "raw-memcpy",
            "raw-memcpy-two-way",
            "raw-memcpy-out",
            "raw-memcpy-shared",
            "raw-atomic",
            "raw-atomic-two-way",
            "raw-load",
            "raw-wake",
            "raw-barrier",
            "raw-locked-queue",
            "raw-fan-in",
            "message-latency",
            "put-notify-latency",
            "put-latency",
            "immediate-put-latency",
            "notification-put-latency",
            "queue-latency",
            "barrier-latency",
            "get-latency",
            "fetch-add-latency",
            "compare-swap-latency",
            "fcaa-latency",
            "message-rate",
            "message-rate-two-way",
            "put-notify-rate",
            "queue-rate",
            "atomic-rate",
            "put-rate",
            "append-rate",
            "append-shared-rate",
            "put-bandwidth",
            "put-region-bandwidth",
            "get-bandwidth",
            "message-bandwidth",
            "active-latency",
            "active-long-latency",
            "active-long-call-latency",
            "active-rate",
            "active-bandwidth",
            "channel-latency",
            "channel-beside-bulk",
            "channel-behind-bulk",
            "group-barrier-latency",
            "allreduce-latency",
            "poll-messages-1",
            "poll-messages-64",
            "poll-notifications-1",
            "poll-notifications-64",
            "wake-latency",
        ],
    },
    Group {
        how: "the same two, with --mode direct only",
        is_in: |args| !args.net.is_on() && args.procs.is_none() && args.mode == Mode::Direct,
        names: &["fetch-add-contended"],
    },
    Group {
        how: "rank 0 to 3, 7 and 15 others, only where --op asks for it; or with --procs N",
        is_in: |args| !args.net.is_on(),
        names: &super::catalogue::TO_ALL,
    },
    Group {
        how: "--procs N: two and N processes of this host",
        is_in: |args| args.procs.is_some(),
        names: &[
            "raw-token",
            "raw-barrier",
            "raw-all-to-all",
            "barrier-latency",
            "ring-latency",
            "all-to-all-latency",
            "group-barrier-latency",
            "allreduce-latency",
        ],
    },
    Group {
        how: "--net: two hosts",
        is_in: |args| args.net.is_on(),
        names: &[
            "raw-udp-polling",
            "raw-udp-waiting",
            "raw-udp-stream",
            "raw-tcp-stream",
            "message-latency",
            "put-notify-latency",
            "message-wait-latency",
            "put-notify-wait-latency",
            "put-bandwidth",
            "message-rate",
            "fetch-add-latency",
            "loss-goodput",
            "loss-go-back-n",
            "loss-transmissions",
            "cut-first-byte",
        ],
    },
];

/// All names, by what it takes to measure them.
pub(super) fn list() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        let _ = writeln!(text, "{}:", group.how);
        group.names.iter().for_each(|name| text += &format!("  {name}\n"));
    }
    text
}

/// Whether there is something of this name.
pub(super) fn has(name: &str) -> bool {
    GROUPS.iter().any(|group| group.names.contains(&name))
}

/// The error for a name that no case has: the reason, and the names that exist. It ignores sizes.
pub(super) fn refusal(args: &Args) -> Option<String> {
    let of = |group: &&Group, op: &str| group.names.iter().any(|name| name.contains(op));
    let missed = args.ops.iter().find(|op| {
        let mut in_reach = GROUPS.iter().filter(|group| (group.is_in)(args));
        !in_reach.any(|group| of(&group, op))
    })?;
    let elsewhere: Vec<_> =
        GROUPS.iter().filter(|group| of(group, missed)).map(|group| group.how).collect();
    Some(match elsewhere.as_slice() {
        [] => format!("nothing that is measured is called `{missed}`; there are\n{}", list()),
        others => format!("`{missed}` is not measured so, but by {}\n", others.join("; or ")),
    })
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    fn args(words: &[&str]) -> Args {
        let command = Args::augment_args(Command::new("perf"));
        let words = ["perf"].iter().chain(words);
        Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn an_unknown_operation_is_refused_with_the_list() {
        for words in
            [&["--op", "nonsense"][..], &["--op", "put,nonsense"], &["--net", "--op", "nope"]]
        {
            let said = refusal(&args(words)).unwrap();
            assert!(said.starts_with("nothing that is measured is called `no"), "{said}");
            assert!(said.contains("  message-latency\n") && said.contains("--net"), "{said}");
        }
        assert_eq!(refusal(&args(&[])), None);
        assert_eq!(refusal(&args(&["--op", "raw-ring,put,latency"])), None);
    }

    #[test]
    fn an_operation_measured_in_another_mode_is_refused_with_that_mode() {
        for (words, how) in [
            (&["--net", "--op", "active-bandwidth"][..], "two processes of this host"),
            (&["--op", "ring-latency"], "--procs N"),
            (&["--op", "loss"], "--net"),
            (&["--procs", "4", "--op", "put"], "two processes of this host"),
            (&["--mode", "mediated", "--op", "fetch-add-contended"], "--mode direct"),
        ] {
            let said = refusal(&args(words)).unwrap();
            assert!(said.contains("is not measured so") && said.contains(how), "{said}");
        }
        for words in [&["--op", "multicast"][..], &["--procs", "4", "--op", "multicast"]] {
            assert_eq!(refusal(&args(words)), None, "{words:?}");
        }
    }
}
