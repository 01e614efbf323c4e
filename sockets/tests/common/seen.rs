//! Connections as a tool sees them.

use ayre::socket::{Reason, SeenProcess};
use std::ffi::c_int;

/// The way of a connection of this process, as others see it. An end that has left the rings is
/// seen with its reason, also before its next bytes.
pub(crate) fn way_of(fd: c_int) -> String {
    let mut stat = zeroed!(libc::stat);
    call!(fstat(fd, &mut stat)).expect("it is open");
    let seen = SeenProcess::look(std::process::id());
    let Some(seen) = seen else { return "no library".to_owned() };
    match seen.ends.iter().find(|end| end.socket == stat.st_ino) {
        Some(end) if end.reason == Reason::None && end.outward.is_ring && end.inward.is_ring => {
            "rings".to_owned()
        }
        Some(end) => format!("TCP: {}", end.reason.text()),
        None => format!("TCP: {}", seen.reason(stat.st_ino).text()),
    }
}
