//! Sandboxes that refuse a process the kernel's own files of memory, or its counters.
use super::common::container::{Container, may_make};
use super::common::system::mappings;
use super::common::{Line, with_processes};
use super::containers::{LOCAL, Outcome, meet, talk};
use ayre::endpoint::raw::RawEndpoint;
use ayre::{Config, EndpointOptions, Port, PostOptions, RegionOptions, Rights};
use std::collections::BTreeSet;
use std::ffi::OsString;

const FILES: i64 = libc::SYS_memfd_create;
const COUNTERS: i64 = libc::SYS_eventfd2;
/// Of the folders where a file could be, only those that the program names have room.
const NOT_THERE: &str = "/proc/self/nowhere";

fn without(errno: i32, calls: &[i64]) -> Container {
    Container::none().denying(errno, calls)
}

/// Talks, and looks at what was mapped for it.
fn talk_over_files(number: u64, line: &Line) {
    talk(number, line);
    let is_kernels = mappings().iter().any(|mapped| mapped.name.starts_with("/memfd:"));
    assert!(!is_kernels, "of the kernel's own there are none");
}

// spec: LIFE-41
#[test]
fn endpoints_share_files_that_no_folder_lists_where_memory_files_are_refused() {
    with_processes(
        |number, line| talk_over_files(number, &line),
        |family| {
            let local = [(LOCAL, "")];
            for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES, libc::EINVAL] {
                let both = without(errno, &[FILES, COUNTERS]);
                assert_eq!(meet(family, [&both, &both], &local), Outcome::ByMemory, "{errno}");
            }
            // Nor does the sandbox let them be laid out by one call.
            let both = without(libc::ENOSYS, &[FILES, libc::SYS_fallocate]);
            assert_eq!(meet(family, [&both, &both], &local), Outcome::ByMemory);
            if !may_make() {
                return;
            }
            // The first folder has no room, and where none has a name there is none.
            let small = Container::none().with_room("4k", "64m");
            let both = small.denying(libc::EPERM, &[FILES]);
            let folders = [(LOCAL, ""), ("TMPDIR", NOT_THERE), ("XDG_RUNTIME_DIR", NOT_THERE)];
            assert_eq!(meet(family, [&both, &both], &folders), Outcome::ByMemory);
            // Names of this length, which others may have in these folders, too.
            let listed = |folder: &str| -> BTreeSet<OsString> {
                let names = std::fs::read_dir(folder).expect("a folder").flatten();
                names.map(|name| name.file_name()).filter(|name| name.len() == 21).collect()
            };
            let before = ["/dev/shm", "/tmp"].map(listed);
            let both = without(libc::EPERM, &[FILES]);
            assert_eq!(meet(family, [&both, &both], &local), Outcome::ByMemory);
            let after = ["/dev/shm", "/tmp"].map(listed);
            let is_more = |(after, before): (&BTreeSet<_>, _)| !after.is_subset(before);
            assert!(!after.iter().zip(&before).any(is_more), "no name stays: {after:?}");
        },
    );
}

// spec: LIFE-41, LIFE-27, ENV-38
#[test]
fn peers_with_and_without_memory_files_connect_by_link() {
    with_processes(
        |number, line| talk(number, &line),
        |family| {
            let (host, other) = (Container::none(), without(libc::EPERM, &[FILES]));
            for pair in [[&host, &other], [&other, &host]] {
                assert_eq!(meet(family, pair, &[]), Outcome::ByLinkForFiles, "{pair:?}");
                let refused = meet(family, pair, &[(LOCAL, "")]);
                assert_eq!(refused, Outcome::RefusedForFiles, "{pair:?}");
            }
        },
    );
}

// spec: LIFE-41, ERR-10
#[test]
fn where_no_folder_has_room_for_memory_the_error_names_them_all() {
    with_processes(
        |_, _| {
            let error = RawEndpoint::open_with(&EndpointOptions::new().local()).map(|_| ());
            let said = error.expect_err("there is no room").to_string();
            for word in ["memfd_create", "seccomp", "/dev/shm: No space", "/tmp: No space"] {
                assert!(said.contains(word), "no `{word}` in: {said}");
            }
            assert!(
                said.contains(&format!("{NOT_THERE}: No such file")) && said.contains("TMPDIR")
            );
        },
        |family| {
            if !may_make() {
                return;
            }
            let small = Container::none().with_room("4k", "4k").denying(libc::EPERM, &[FILES]);
            let start = |command: &mut std::process::Command| {
                command.env("TMPDIR", NOT_THERE).env_remove("XDG_RUNTIME_DIR");
            };
            small.start(family, start).succeeds();
        },
    );
}

/// A port puts into its own memory, which the thread of its engine does, and both sleep.
fn wake_by_pipes() {
    let config = Config::new().mode(ayre::Mode::Mediated);
    let mut port = Port::open(config).expect("a port");
    let own = port.connect_loopback().expect("a loopback");
    port.start_engine().expect("a thread");
    let region = port.alloc(4096, RegionOptions::new()).expect("memory");
    port.share(own, &region, 0..4096, Rights::all(), 0).expect("it is handed over");
    let remote = port.accept_region(own, 0).expect("what was handed over");
    for round in 0..100u8 {
        let both = PostOptions::new().requester().completer();
        port.put(&remote, 0, &[round], both).expect("it is posted");
        for _ in 0..2 {
            port.wait_notification(None).expect("the thread is woken, and wakes the port");
        }
        let mut byte = [0];
        region.read(0, &mut byte);
        assert_eq!(byte, [round]);
    }
    let sealed = port.alloc(4096, RegionOptions::new().sealed()).map(|_| ());
    let said = sealed.expect_err("there are no seals").to_string();
    assert!(said.contains("memfd_create"), "{said}");
}

// spec: LIFE-41
#[test]
fn threads_wake_each_other_by_pipes_where_counters_are_refused() {
    with_processes(
        |_, _| wake_by_pipes(),
        |family| without(libc::EPERM, &[FILES, COUNTERS]).start(family, |_| {}).succeeds(),
    );
}
