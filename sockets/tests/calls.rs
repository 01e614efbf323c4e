//! One scenario for each call, over the kernel's sockets and over the library: both ends must see
//! the same. Each runs on a fresh connection, and on one whose requests and answers have gone
//! before; of TCP, and of Unix sockets.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;
#[path = "calls/added.rs"]
mod added;
#[path = "calls/control.rs"]
mod control;
#[path = "calls/end.rs"]
mod end;
#[path = "calls/messages.rs"]
mod messages;
#[path = "calls/names.rs"]
mod names;
#[path = "calls/order.rs"]
mod order;
#[path = "calls/programs.rs"]
mod programs;
#[path = "calls/rows.rs"]
mod rows;
#[path = "calls/signals.rs"]
mod signals;
#[path = "calls/starts.rs"]
mod starts;

use std::process::Command;

use common::call::{Family, UNIX};
use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use end::{End, FOLDER, WARM};

/// Seconds after which a row hangs.
const DEADLINE: u64 = 20;

/// The variable that names the row.
const ROW: &str = "AYRE_SOCKETS_TEST_ROW";

before_main! {
    let role = std::env::var(ROLE);
    if let Ok(role @ ("server" | "client")) = role.as_deref() {
        let name = std::env::var(ROW).expect("the row is named");
        let (_, subject, row) = ROWS.iter().find(|(n, ..)| *n == name).expect("the row exists");
        let mut end = End::new(role == "server");
        if !matches!(*subject, "added" | "starts") {
            end.connect();
        }
        row(&mut end);
        end.finish();
    }
}

/// Runs a row, and returns what both ends saw and the library's report.
fn run(row: &str, net: Net, warm: bool) -> (String, String) {
    run_with(row, net, warm, |_, _| {})
}

/// As [`run`], after something was done to the command of each role.
fn run_with(
    row: &str,
    net: Net,
    warm: bool,
    prepare: impl Fn(&str, &mut Command),
) -> (String, String) {
    let folder = Folder::new();
    let mut crew = Crew::new();
    for role in ["server", "client"] {
        let mut command = Crew::command(&folder, role, net);
        command.env(FOLDER, &folder.path).env(ROW, row);
        if warm {
            // Hosts meet while requests and answers go by TCP.
            command.env(WARM, if matches!(net, Net::Hosts { .. }) { "2000" } else { "50" });
        }
        prepare(role, &mut command);
        crew.start(&mut command);
    }
    let ending = crew.wait(DEADLINE);
    let ends = ["server", "client"].map(|name| format!("{name}:\n{}", folder.text(name)));
    let errors = folder.text("errors");
    assert_eq!(ending, Ending::Well, "{row} over {net:?}, warm {warm}: {errors}");
    (ends.concat(), folder.text("report"))
}

/// As [`run`], over sockets of a kind.
fn run_over(family: Family, row: &str, net: Net, warm: bool) -> (String, String) {
    run_with(row, net, warm, |_, command| {
        if family == Family::Unix {
            command.env(UNIX, "1");
        }
    })
}

fn compare(row: &str, family: Family, net: Net) {
    for warm in [false, true] {
        let (plain, _) = run_over(family, row, Net::Plain, warm);
        let (over, _) = run_over(family, row, net, warm);
        assert_eq!(plain, over, "{row}, warm {warm}: the kernel on the left, the library right");
    }
}

macro_rules! rows {
    (
        $($subject:ident: $($row:ident)*;)*
        @at_once $($near:ident: $($at_once:ident)*;)*
        @tcp $($of_tcp:ident)*;
    ) => {
        /// Names, subjects and functions.
        const ROWS: &[(&str, &str, fn(&mut End))] = &[
            $($((stringify!($row), stringify!($subject), $subject::$row),)*)*
            $($((stringify!($at_once), stringify!($near), $near::$at_once),)*)*
            $((stringify!($of_tcp), "starts", starts::$of_tcp),)*
        ];
        $(
            #[test]
            fn $of_tcp() {
                compare(stringify!($of_tcp), Family::Tcp, Net::Library);
            }
        )*
        $($(
            #[test]
            fn $row() {
                compare(stringify!($row), Family::Tcp, Net::Library);
            }
        )*)*
        $($(
            #[test]
            fn $at_once() {
                compare(stringify!($at_once), Family::Tcp, Net::Library);
            }
        )*)*

        /// Rows of TCP between processes that take each other for such of two hosts. Those that
        /// count on bytes which arrive at once are left out, and those that close all numbers while
        /// the link opens.
        // spec: SOCK-67, SOCK-69
        mod hosts {
            use super::{Family, Net, compare};

            $($(
                #[test]
                fn $row() {
                    compare(stringify!($row), Family::Tcp, Net::Hosts { are_sealed: true });
                }
            )*)*
        }

        /// All rows over Unix sockets.
        mod unix {
            use super::{Family, Net, compare};

            $($(
                #[test]
                fn $row() {
                    compare(stringify!($row), Family::Unix, Net::Library);
                }
            )*)*
            $($(
                #[test]
                fn $at_once() {
                    compare(stringify!($at_once), Family::Unix, Net::Library);
                }
            )*)*
        }
    };
}

rows! {
    added:
        added_for_edges added_for_answers added_for_levels added_for_bytes added_for_one_event
        added_and_changed added_and_removed added_and_replaced added_and_duplicated
        added_to_two_epolls added_to_an_epoll_with_two_names added_before_a_fork added_by_a_child
        added_and_refused added_with_an_option added_to_listen;
    control:
        descriptors descriptors_that_nobody_takes credentials addresses sends_to_an_address
        queue_of_the_writer;
    messages:
        urgent_byte shutdown_of_reading shutdown_of_both
        shutdown_while_a_thread_reads two_threads_read wrong_addresses
        close_while_a_thread_reads;
    names:
        two_epolls epoll_with_two_names epoll_with_two_names_at_first removed_from_an_epoll
        removed_and_replaced;
    programs:
        program_by_execl program_by_execl_of_many program_by_execle program_by_execlp
        program_by_execv program_by_execvp program_by_execvpe program_by_execve program_by_fexecve
        program_by_execveat program_by_syscall program_by_vfork program_by_posix_spawn
        program_by_posix_spawnp program_by_system program_by_popen
        program_while_bytes_are_unread program_while_the_peer_sleeps daemon passed_on;
    starts:
        connects_as_nobody buffers_of_the_listener buffers_of_the_connection room_before_accept
        edge_of_room_before_accept edge_of_room_of_one_added_before room_of_one_at_stdin
        forks_at_once daemon_with_unread_bytes patience_of_the_client signal_before_connect;
    rows:
        read_and_write peek waitall dontwait receive_timeout available options half_close
        close_with_unread_bytes close_with_unread_bytes_before_a_mark linger_zero broken_pipe
        kill_of_a_process epoll_kinds nested_epoll duplicated_epoll dup2_onto_it hundred_children
        a_shell_answers;
    signals:
        interrupted_reads restarted_reads interrupted_writes restarted_write send_timeout
        masks_of_waits signal_of_bytes timeouts_and_signals masks_and_bytes;
    @at_once
    messages:
        several_messages shutdown_of_writing system_calls_by_number vectors_with_flags;
    names:
        read_over_marks dup2_onto_all;
    starts:
        closes_all_at_start;
    rows:
        close_range_of_all;
    order:
        order_of_connections order_of_many_connections order_of_many_edges order_of_two_processes
        unread_connection_keeps_no_place;
    @tcp
        forbidden_calls forbidden_calls_of_the_server forbidden_calls_of_the_client
        patience_of_the_server;
}

/// Whether both directions of a row went by rings.
fn goes_by_rings(row: &str, warm: bool) {
    if library().is_none() {
        return;
    }
    for family in [Family::Tcp, Family::Unix] {
        let (_, report) = run_over(family, row, Net::Library, warm);
        assert_eq!(report.lines().count(), 2, "{family:?}: {report}");
        for line in report.lines() {
            let none = [" rings=0 ", " ring_bytes_out=0 ", " ring_bytes_in=0 "];
            assert!(none.iter().all(|none| !line.contains(none)), "{row}, {family:?}: {line}");
        }
    }
}

/// Without this, all rows could pass over plain TCP.
#[test]
fn warm_rows_go_by_rings() {
    goes_by_rings("read_and_write", true);
}

// spec: SOCK-74
/// A socket that an epoll had before it connected needs no other wait to show that it reads.
#[test]
fn a_connection_that_was_added_before_goes_by_rings() {
    goes_by_rings("added_for_answers", false);
}

/// A program may ask for room as soon as it has connected, as those do that never block.
#[test]
fn a_connection_that_was_waited_for_early_goes_by_rings() {
    goes_by_rings("room_before_accept", false);
}

// spec: SOCK-51
#[test]
fn a_child_of_a_server_of_a_unix_socket_that_forks_at_once_has_the_ring() {
    if library().is_none() {
        return;
    }
    let (_, report) = run_over(Family::Unix, "forks_at_once", Net::Library, false);
    let with_rings = report.lines().filter(|line| line.contains(" rings=1 ")).count();
    assert_eq!(with_rings, 2, "the client's, and the child's: {report}");
}

/// Children that have a connection, too, count it only if they are the last that have it.
#[test]
fn a_report_has_each_end_of_a_connection_once() {
    if library().is_none() {
        return;
    }
    for row in ["hundred_children", "close_with_unread_bytes"] {
        let (_, report) = run(row, Net::Library, true);
        assert_eq!(report.lines().count(), 2, "{row}: {report}");
        let is_one = |line: &str| line.contains(" connections=1 ");
        assert!(report.lines().all(is_one), "{row}: {report}");
    }
}

// spec: SOCK-3
#[test]
fn a_process_that_is_off_leaves_all_bytes_to_the_kernel() {
    for off in ["server", "client"] {
        let (seen, report) = run_with("read_and_write", Net::Library, true, |role, command| {
            if role == off {
                command.env("AYRE_SOCKETS", "off");
            }
        });
        assert_eq!(seen, run("read_and_write", Net::Plain, true).0);
        assert_eq!(report, "", "the {off} is off");
    }
}

// spec: SOCK-8
#[test]
fn processes_of_different_users_have_no_rings() {
    // Only root can change its user.
    if call!(geteuid()) != Ok(0) {
        return;
    }
    let (seen, report) = run("connects_as_nobody", Net::Library, true);
    assert_eq!(seen, run("connects_as_nobody", Net::Plain, true).0);
    assert!(!report.contains(" rings=1 "), "{report}");
}

// spec: SOCK-18
#[test]
fn bytes_for_two_epolls_come_by_the_kernel() {
    if library().is_none() {
        return;
    }
    // An end that two epolls have before it has found the offer of its peer stays with TCP.
    let has_met = |report: &String| report.lines().count() == 2;
    let mut reports = (0..50).map(|_| run("two_epolls", Net::Library, false).1);
    let report = reports.find(has_met).expect("the ends meet at last");
    assert!(report.lines().all(|line| line.contains(" ring_bytes_in=0 ")), "{report}");
}
