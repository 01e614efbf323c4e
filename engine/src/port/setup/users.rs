//! The rule by which users' processes may connect, which both sides of a connection apply.
//!
//! Each side admits processes of its own user, of root, and of the group that `AYRE_GROUP` names. A
//! connection needs both sides. So it does not depend on which of the two processes calls, and
//! root's processes admit other users only where root's own variable says so.
use crate::error::SetupError;
use crate::settings;
use crate::sys::credentials::{self, Credentials};
use ayre_proto::refusal::Refusal;
use rustix::fd::BorrowedFd;
use std::fs;

/// The number that the kernel reports for a user or a group without a number in this user
/// namespace.
const OVERFLOW: u32 = 65534;
/// The count of valid numbers: the last one means none.
const NUMBERS: u64 = u32::MAX as u64;

/// Checks that the process at the other end of a socket may be a peer.
// spec: LIFE-7
pub(super) fn check_credentials(socket: BorrowedFd<'_>) -> Result<(), SetupError> {
    let theirs = credentials::of_peer(socket).map_err(SetupError::os("peer credentials"))?;
    let own = rustix::process::geteuid().as_raw();
    let is_member = || match settings::group() {
        Ok(Some(group)) => is_in(socket, &theirs, group),
        _ => false,
    };
    if is_let_in(own, theirs.uid, is_told_apart(theirs.uid, "uid")) || is_member() {
        return Ok(());
    }
    Err(SetupError::rejected(Refusal::User(theirs.uid)))
}

/// Whether the processes of one user admit those of another one, by their numbers. `is_told_apart`
/// tells that the number stands for one user only.
fn is_let_in(own: u32, theirs: u32, is_told_apart: bool) -> bool {
    theirs == 0 || theirs == own && is_told_apart
}

fn is_in(socket: BorrowedFd<'_>, theirs: &Credentials, group: u32) -> bool {
    let is_member = theirs.gid == group || credentials::peer_has_group(socket, group);
    is_member && is_told_apart(group, "gid")
}

/// Whether a number stands for one user or group only. All those without a number in this user
/// namespace share the overflow number.
// spec: LIFE-7
fn is_told_apart(number: u32, of: &str) -> bool {
    let overflow = fs::read_to_string(format!("/proc/sys/kernel/overflow{of}"));
    let overflow = overflow.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(OVERFLOW);
    number != overflow
        || fs::read_to_string(format!("/proc/self/{of}_map")).is_ok_and(|map| maps_all(&map))
}

/// Whether a map of numbers, as the kernel shows it, gives each user or group a number here.
fn maps_all(map: &str) -> bool {
    let counts = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() >= NUMBERS
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: LIFE-7
    #[test]
    fn the_same_user_and_root_are_let_in() {
        assert!(is_let_in(1000, 1000, true) && is_let_in(1000, 0, true) && is_let_in(0, 0, true));
        assert!(!is_let_in(1000, 1001, true));
        assert!(!is_let_in(0, 1000, true), "root's processes are no users' to call");
    }

    /// A process of nobody does not count all users without a number here as its own.
    // spec: LIFE-7
    #[test]
    fn the_overflow_user_id_is_admitted_only_if_it_is_unambiguous() {
        assert!(!is_let_in(OVERFLOW, OVERFLOW, false));
        assert!(is_let_in(OVERFLOW, OVERFLOW, true));
        assert!(maps_all("         0          0 4294967295\n"));
        for part in ["0 1000 1\n", "0 1000 1\n1 100000 65536\n", "", "0 0\n"] {
            assert!(!maps_all(part), "{part:?}");
        }
        assert!(is_told_apart(1000, "uid"));
    }
}
