//! Parameters that a user sets in the environment.

mod common;

#[allow(dead_code, unused_imports, reason = "other tests use more")]
#[allow(unreachable_pub, reason = "a test binary exports nothing")]
#[path = "common/processes.rs"]
mod processes;

use ayre::endpoint::Address;
use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use processes::container::{Container, socket_of};
use processes::family::Family;
use processes::{Line, Process, with_processes};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::fs::{File, read_to_string};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::ptr::{null, null_mut};

/// A row of the page of settings, with a value that is obeyed and one that is refused.
struct Row {
    name: &'static str,
    /// `DIRECTORY` stands for the test's folder.
    good: &'static str,
    bad: &'static str,
    /// A part of the error for the bad value.
    words: &'static str,
}

const fn row(
    name: &'static str,
    good: &'static str,
    (bad, words): (&'static str, &'static str),
) -> Row {
    Row { name, good, bad, words }
}

/// Parameters whose effect one endpoint shows, see [`is_obeyed`].
const ROWS: &[Row] = &[
    row("FI_AYRE_NET", "none", ("nonsense", "nothing here is, or has, the address")),
    row("FI_AYRE_KEY", "DIRECTORY/key", ("DIRECTORY/none", "DIRECTORY/none: No such file")),
    row("FI_AYRE_PORTS", "20000-20999", ("many", "a range of UDP ports is first-last")),
    row("FI_AYRE_PROTECTION", "plain", ("foo", "it may be `sealed`, `plain`")),
    row("FI_AYRE_ETHERNET", "required", ("maybe", "it may be `never`, `required`")),
    row(
        "FI_AYRE_CAPTURE",
        "DIRECTORY/{rank}.pcap",
        ("/nowhere/{rank}", "the capture (AYRE_CAPTURE)"),
    ),
    row("FI_AYRE_RECORD", "DIRECTORY", ("/nowhere", "/nowhere/")),
    row("FI_AYRE_MEMORY", "1M", ("1", "1 bytes are too few; it may be bytes")),
    row("FI_AYRE_CQ_SIZE", "77", ("0", "it may be a number of completions from 1 to 2^24")),
    row("FI_AYRE_PLAIN", "1", ("maybe", "it may be `1` or `0`")),
];

/// Parameters whose effect two endpoints show, in `times_and_faults_of_links_are_obeyed`.
const ROWS_OF_LINKS: &[Row] = &[
    row("FI_AYRE_FAULTS", "loss=100%", ("loss=5", "a share such as 20%")),
    row("FI_AYRE_SILENCE", "1", ("soon", "`soon` is no number of seconds")),
    row("FI_AYRE_DEAD_AFTER", "3", ("0", "`0` is no number of seconds")),
];

/// Whether this process has a socket for Ethernet frames.
fn has_packet_socket() -> bool {
    let sockets = read_to_string("/proc/self/net/packet").unwrap();
    let inodes = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().last());
    let inodes: BTreeSet<_> = inodes.map(|inode| format!("socket:[{inode}]")).collect();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    open.any(|path| path.to_str().is_some_and(|path| inodes.contains(path)))
}

/// Whether an endpoint, or a queue, shows the effect of a parameter's good value.
fn is_obeyed(name_of: &str) -> bool {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    if name_of == "FI_AYRE_CQ_SIZE" {
        let given = |asked| {
            let (mut attr, mut cq) = (CqAttr { size: asked, ..blank() }, null_mut());
            assert_eq!(call!(opened.domain, ops.cq_open(&mut attr, &mut cq, null_mut())), 0);
            assert_eq!(close(cq), 0);
            attr.size
        };
        assert_eq!(given(5), 5, "the program is stronger");
        return given(0) == 77;
    }
    if name_of == "FI_AYRE_ETHERNET" {
        // By default the loopback interface has none.
        return open_ep(&opened).map_or(true, |ep| {
            let has_socket = has_packet_socket();
            assert_eq!(close(ep), 0);
            has_socket
        });
    }
    let end = End::new(&opened, &wishes);
    let bytes = name(end.ep);
    let reached_at = Address::from_bytes(&bytes).unwrap().reached_at();
    let is_obeyed = match name_of {
        "FI_AYRE_NET" => reached_at.is_empty(),
        "FI_AYRE_KEY" => bytes[6..8] != [0; 2],
        "FI_AYRE_PORTS" => reached_at.iter().all(|at| (20000..=20999).contains(&at.port())),
        "FI_AYRE_PROTECTION" | "FI_AYRE_PLAIN" => bytes[1] == 3,
        "FI_AYRE_CAPTURE" => {
            let capture = format!("{}.pcap", std::process::id());
            PathBuf::from(std::env::var_os("DIRECTORY").unwrap()).join(capture).exists()
        }
        "FI_AYRE_RECORD" => {
            let recording = format!("{}.record", std::process::id());
            PathBuf::from(std::env::var_os("DIRECTORY").unwrap()).join(recording).exists()
        }
        // Half of the memory, and 512 bytes for each: one more is no matter of waiting.
        "FI_AYRE_MEMORY" => {
            let mut byte = 0_u8;
            let place = std::ptr::from_mut(&mut byte).cast();
            let post = |_: &u32| {
                let (source, tag) = (ADDR_UNSPEC, 7);
                call!(end.ep, tagged.recv(place, 1, null_mut(), source, tag, 0, null_mut()))
            };
            let refused = (0..2000).position(|index| post(&index) != 0);
            refused == Some(1024) && post(&0) == -(errno::ENOMEM as isize)
        }
        other => panic!("{other} has no effect here"),
    };
    end.close();
    is_obeyed
}

/// Opens an endpoint and a queue, and exits as its test expects.
fn open() {
    let opened = Wishes::default().opened();
    let code = match open_ep(&opened) {
        Ok(ep) => {
            let code = open_cq(&opened, |attr| attr.size = 0).map_or_else(|code| code, close);
            assert_eq!(close(ep), 0);
            code
        }
        Err(code) => code,
    };
    assert_eq!(code.to_string(), std::env::var("EXPECTED").unwrap());
}

/// Starts a process with one variable; returns its log.
fn log_with(family: &Family, (name, value): (&str, &str), others: &[(&str, &str)]) -> String {
    println!("{name}={value}");
    let log = family.directory().join("log");
    let value = value.replace("DIRECTORY", family.directory().path().to_str().unwrap());
    let mut process = family.start_with(|command| {
        command.envs(others.iter().copied()).env("FI_LOG_LEVEL", "warn").env(name, value);
        command.env("DIRECTORY", family.directory().path());
        command.stderr(File::create(&log).unwrap());
    });
    let (status, log) = (process.wait(), read_to_string(log).unwrap());
    assert!(status.success(), "{log}");
    log
}

// spec: LIFE-23, LIFE-30
#[test]
fn a_wrong_parameter_is_an_error_and_the_log_lists_choices() {
    let others = [
        ("AYRE_NET", "nonsense", "AYRE_NET=nonsense: nothing here is, or has, the address"),
        ("FI_AYRE_NETS", "lo", "there are FI_AYRE_CQ_SIZE, FI_AYRE_NET"),
        ("AYRE_NETS", "lo", "Ayre has no variable AYRE_NETS"),
    ];
    let right = [
        ("FI_AYRE_NET", "lo"),
        ("AYRE_NET", "127.0.0.0/8"),
        ("FI_AYRE_ETHERNET", "0"),
        ("FI_AYRE_ETHERNET", "never"),
    ];
    with_processes(
        |_, _| open(),
        |family| {
            let rows = ROWS.iter().chain(ROWS_OF_LINKS);
            let wrong = rows.map(|row| (row.name, row.bad, row.words)).chain(others);
            let expected = (-errno::EINVAL).to_string();
            for (name, value, words) in wrong {
                let log = log_with(family, (name, value), &[("EXPECTED", &expected)]);
                let directory = family.directory().path().to_str().unwrap();
                let words = words.replace("DIRECTORY", directory);
                let is_told = log.contains("fi_endpoint: ") || log.contains("fi_cq_open: ");
                let has_name = log.contains(name.trim_start_matches("FI_"));
                assert!(is_told && has_name && log.contains(&words), "{name}={value}: {log}");
            }
            for variable in right {
                let log = log_with(family, variable, &[("EXPECTED", "0")]);
                assert!(!log.contains("fi_endpoint"), "{log}");
            }
        },
    );
}

// spec: LIFE-23
#[test]
fn each_parameter_of_the_page_is_obeyed() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
    let page = read_to_string(page).unwrap();
    let on_page = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let on_page: BTreeSet<_> = on_page.filter(|name| name.starts_with("FI_AYRE_")).collect();
    let tested: BTreeSet<_> = ROWS.iter().chain(ROWS_OF_LINKS).map(|row| row.name).collect();
    assert_eq!(tested, on_page);
    with_processes(
        |_, _| {
            let name = std::env::var("NAME").unwrap();
            assert_eq!(is_obeyed(&name), std::env::var_os("IS_SET").is_some(), "{name}");
        },
        |family| {
            let mut options = File::options();
            let key =
                options.write(true).create(true).mode(0o600).open(family.directory().join("key"));
            key.unwrap().write_all("5a".repeat(32).as_bytes()).unwrap();
            for Row { name, good, .. } in ROWS {
                let net = if *name == "FI_AYRE_NET" { "AYRE_MEMORY" } else { "FI_AYRE_NET" };
                let value = if *name == "FI_AYRE_NET" { "512M" } else { "127.0.0.1" };
                let others = [("NAME", *name), (net, value), ("IS_SET", "1")];
                log_with(family, (name, good), &others);
                log_with(family, others[1], &others[..1]);
            }
        },
    );
}

/// Tells the test this endpoint's name, and hears those of both.
fn meet(end: &End, line: &Line) {
    name(end.ep).as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
    let names = [0; 2].map(|_: u64| {
        let mut name = [0; 64];
        name.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
        name
    });
    end.insert(&names);
}

/// The first process answers while it is there. The second one has a reason from its queue in the
/// end: its call was not answered, or an open link has fallen silent.
fn use_link(number: u64, line: &Line) {
    let wishes = Wishes::default();
    let opened = wishes.opened();
    let end = End::new(&opened, &wishes);
    meet(&end, line);
    let other = 1 - number;
    let mut into = 0_u8;
    let place: *mut c_void = std::ptr::from_mut(&mut into).cast();
    let receive = || call!(end.ep, tagged.recv(place, 1, null_mut(), other, 7, 0, null_mut()));
    let send = || call!(end.ep, tagged.send(place, 1, null_mut(), other, 7, null_mut()));
    let all = std::slice::from_ref(&end);
    let reason = std::env::var("REASON").unwrap();
    if reason.starts_with("nothing was heard") {
        assert_eq!((receive(), until_taken(all, send)), (0, 0));
        (0..2).for_each(|_| _ = next(&end, &[]));
        line.say(1);
    }
    if number == 0 {
        loop {
            give_time(&end);
        }
    }
    assert_eq!(receive(), 0);
    if reason.starts_with("it did not answer") {
        assert_ne!(until_taken(all, send), 0);
    }
    let failure = next_failure(&end, &[]);
    let words = call!(end.cq, ops.strerror(failure.prov_errno, null(), null_mut(), 0));
    // SAFETY: it has an end.
    let words = unsafe { CStr::from_ptr(words) }.to_string_lossy();
    assert!(words.contains(&reason), "{words}");
    end.close();
}

// spec: LIFE-23
#[test]
fn times_and_faults_of_links_are_obeyed() {
    with_processes(
        |number, line| use_link(number % 2, &line),
        |family| {
            // Without sockets of their host, endpoints take links to each other.
            let apart = Container::none().denying(libc::EPERM, &[socket_of(libc::AF_UNIX)]);
            let start = |variables: &[(&str, &str)], reason: &str| {
                apart.start(family, |command| {
                    command.env("FI_AYRE_NET", "127.0.0.1").env("REASON", reason);
                    command.envs(variables.iter().copied());
                })
            };
            let [faults, silence, dead_after] = [0, 1, 2]
                .map(|index: usize| (ROWS_OF_LINKS[index].name, ROWS_OF_LINKS[index].good));
            // A call may be unanswered for four times the silence.
            let reason = "it did not answer within 4 s";
            let mut pair = [start(&[silence], reason), start(&[silence, faults], reason)];
            introduce(&pair);
            pair[1].succeeds();
            pair[0].kill();

            let (times, reason) = ([silence, dead_after], "nothing was heard of it for 3 s");
            let mut pair = [start(&times, reason), start(&times, reason)];
            introduce(&pair);
            assert_eq!(pair.each_ref().map(|process| process.line.hear()), [1, 1]);
            pair[0].stop();
            pair[1].succeeds();
            pair[0].kill();
        },
    );
}

/// Hears the names of both, and tells them to each.
fn introduce(pair: &[Process; 2]) {
    let names = pair.each_ref().map(|process| [0; 8].map(|_: u64| process.line.hear()));
    for process in pair {
        names.iter().flatten().for_each(|word| process.line.say(*word));
    }
}
