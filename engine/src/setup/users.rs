//! Which users' processes connect.
use crate::error::SetupError;
use ayre_proto::refusal::Refusal;
use rustix::fd::BorrowedFd;
use rustix::net::sockopt;

/// Only processes of the same user, and root's, are peers.
// spec: LIFE-7
pub(super) fn check_credentials(socket: BorrowedFd<'_>) -> Result<(), SetupError> {
    let theirs = sockopt::socket_peercred(socket).map_err(SetupError::os("peer credentials"))?;
    let own = rustix::process::geteuid();
    if theirs.uid == own || theirs.uid.is_root() {
        return Ok(());
    }
    Err(SetupError::rejected(Refusal::User(theirs.uid.as_raw())))
}
