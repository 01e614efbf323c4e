//! Recordings of what programs post, and the schedules that the simulator makes of them.

mod common;

#[allow(dead_code, unused_imports, reason = "other tests use more")]
#[allow(unreachable_pub, reason = "a test binary exports nothing")]
#[path = "common/processes.rs"]
mod processes;

use ayre_fi::abi::*;
use ayre_sim::goal::{Kind, LogGops, Recordings, Schedule, run};
use ayre_sim::time::Time;
use common::ends::*;
use common::*;
use processes::with_processes;
use std::path::Path;
use std::ptr::null_mut;

const ROUNDS: u64 = 20;

/// Short messages, and some that take a handshake.
fn bytes_of(round: u64) -> usize {
    if round.is_multiple_of(4) { 300_000 } else { 1 + round as usize }
}

/// Two ranks in one process, each with a domain of its own, send messages to and fro.
fn play(threading: u32) {
    let wishes = Wishes { threading, ..Wishes::default() };
    let opened = [(); 2].map(|()| wishes.opened());
    let ends = [0, 1].map(|rank: usize| End::new(&opened[rank], &wishes));
    let names = ends.each_ref().map(|end| name(end.ep));
    ends.iter().for_each(|end| _ = end.insert(&names));
    let mut memory = vec![0_u8; 300_000];
    for message in 0..2 * ROUNDS {
        let (from, to) = ((message % 2) as usize, (1 - message % 2) as usize);
        let (place, len, tag) = (memory.as_mut_ptr().cast(), bytes_of(message / 2), message % 3);
        let (ignore, context) = (7, (message as usize) as *mut _);
        let post = || {
            call!(ends[to].ep, tagged.recv(place, len, null_mut(), ADDR_UNSPEC, 0, ignore, context))
        };
        assert_eq!(post(), 0);
        let send =
            || call!(ends[from].ep, tagged.send(place, len, null_mut(), to as u64, tag, context));
        assert_eq!(until_taken(&ends, send), 0);
        assert_eq!(next(&ends[to], &ends).0.len, len);
        assert_eq!(next(&ends[from], &ends).0.flags & SEND, SEND);
    }
    ends.into_iter().for_each(End::close);
    drop(opened);
}

/// The schedule of the recordings in a folder.
fn merged(folder: &Path) -> (Recordings, String, Schedule) {
    let recordings = Recordings::read_folder(folder).unwrap();
    let mut text = String::new();
    recordings.write(&mut text).unwrap();
    let schedule = Schedule::read(text.as_bytes()).unwrap();
    (recordings, text, schedule)
}

/// The time of a message: `o + L + (bytes - 1) G + o`, and with a handshake an `L` to and fro more.
fn least(bytes: usize) -> u64 {
    let LogGops { hosts, latency, gap_per_byte } = LogGops::LOGGOPSIM;
    2 * hosts.overhead.0 + latency.0 + (bytes as u64 - 1) * gap_per_byte.0
}

#[test]
fn a_recorded_ping_pong_makes_a_schedule_of_messages_one_after_the_other() {
    with_processes(
        |number, _| play([THREAD_SAFE, THREAD_DOMAIN][number as usize]),
        |family| {
            for _ in [THREAD_SAFE, THREAD_DOMAIN] {
                let folder = family.directory().join("recordings");
                std::fs::create_dir(&folder).unwrap();
                let mut process = family.start_with(|command| {
                    command.env("FI_AYRE_RECORD", &folder);
                });
                assert!(process.wait().success());
                let (recordings, text, schedule) = merged(&folder);
                assert_eq!((recordings.ranks(), recordings.left_out()), (2, 0), "{text}");
                let of = |kind| schedule.operations().iter().filter(move |it| it.kind == kind);
                let sizes = |kind| of(kind).map(|it| it.size).sum::<u64>();
                let messages = || (0..2 * ROUNDS).map(|message| bytes_of(message / 2));
                let bytes = messages().sum::<usize>() as u64;
                assert_eq!([Kind::Send, Kind::Receive].map(sizes), [bytes; 2]);
                // Each message waits for the one before. All else is the ranks' own time.
                let report = run(&schedule, &LogGops::LOGGOPSIM, false).unwrap();
                assert!(report.end() >= Time(messages().map(least).sum()), "{text}");
                assert!(recordings.took() > Time::ZERO);
                std::fs::remove_dir_all(&folder).unwrap();
            }
        },
    );
}

#[test]
fn a_file_that_is_there_is_not_written_again() {
    with_processes(
        |_, _| {
            // The domain's number of the second one is in the name of its file.
            let path = |name: &str| {
                let folder = std::env::var_os("FI_AYRE_RECORD").unwrap();
                Path::new(&folder).join(format!("{}{name}.record", std::process::id()))
            };
            std::fs::write(path("-2"), "mine").unwrap();
            let opened = Wishes::default().opened();
            let ep = open_ep(&opened).unwrap();
            let other = Wishes::default().opened();
            assert_eq!(open_ep(&other).unwrap_err(), -errno::EINVAL);
            assert_eq!(close(ep), 0);
            drop(opened);
            assert_eq!(std::fs::read_to_string(path("-2")).unwrap(), "mine");
            let whole = std::fs::read_to_string(path("")).unwrap();
            assert!(
                whole.starts_with("ayre record 1\n") && whole.ends_with("\nend 0\n"),
                "{whole}"
            );
        },
        |family| {
            let folder = family.directory().path().to_owned();
            let start =
                |command: &mut std::process::Command| _ = command.env("FI_AYRE_RECORD", folder);
            assert!(family.start_with(start).wait().success());
        },
    );
}
