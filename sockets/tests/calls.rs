//! One scenario for each call, over TCP and over the library: both ends must see the same. Each
//! runs on a fresh connection, and on one whose requests and answers have gone before.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;
#[path = "calls/end.rs"]
mod end;
#[path = "calls/rows.rs"]
mod rows;

use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use end::{End, FOLDER, WARM};

/// Seconds after which a row hangs.
const DEADLINE: u64 = 20;

/// The variable that names the row.
const ROW: &str = "AYRE_SOCKETS_TEST_ROW";

/// The processes of the tests are this binary once more: they never come to `main`.
#[used]
#[allow(clippy::unnecessary_safety_comment, reason = "the attribute is unsafe")]
// SAFETY: the section holds functions that the C library calls before `main`.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn take_role() {
        let role = std::env::var(ROLE);
        if let Ok(role @ ("server" | "client")) = role.as_deref() {
            let name = std::env::var(ROW).expect("the row is named");
            let (_, row) = ROWS.iter().find(|(n, _)| *n == name).expect("the row exists");
            let mut end = End::open(role == "server");
            row(&mut end);
            end.finish();
        }
    }
    take_role
};

/// Runs a row, and returns what both ends saw and the library's report.
fn run(row: &str, net: Net, warm: bool) -> (String, String) {
    let folder = Folder::new();
    let mut crew = Crew::new();
    for role in ["server", "client"] {
        let mut command = Crew::command(&folder, role, net);
        command.env(FOLDER, &folder.path).env(ROW, row);
        if warm {
            command.env(WARM, "1");
        }
        crew.start(&mut command);
    }
    let ending = crew.wait(DEADLINE);
    let ends = ["server", "client"].map(|name| format!("{name}:\n{}", folder.text(name)));
    let errors = folder.text("errors");
    assert_eq!(ending, Ending::Well, "{row} over {net:?}, warm {warm}: {errors}");
    (ends.concat(), folder.text("report"))
}

fn compare(row: &str) {
    for warm in [false, true] {
        let (plain, _) = run(row, Net::Plain, warm);
        let (over, _) = run(row, Net::Library, warm);
        assert_eq!(plain, over, "{row}, warm {warm}: TCP on the left, the library on the right");
    }
}

macro_rules! rows {
    ($($row:ident)*) => {
        const ROWS: &[(&str, fn(&mut End))] = &[$((stringify!($row), rows::$row)),*];
        $(
            #[test]
            fn $row() {
                compare(stringify!($row));
            }
        )*
    };
}

rows! {
    read_and_write peek waitall dontwait receive_timeout available options half_close
    close_with_unread_bytes linger_zero broken_pipe kill_of_a_process epoll_kinds nested_epoll
    dup2_onto_it hundred_children close_range_of_all a_shell_answers
}

/// Without this, all rows could pass over plain TCP.
#[test]
fn warm_rows_go_by_rings() {
    if library().is_none() {
        return;
    }
    let (_, report) = run("read_and_write", Net::Library, true);
    assert_eq!(report.lines().count(), 2, "{report}");
    for line in report.lines() {
        assert!(line.contains(" rings=1 "), "{line}");
    }
}
