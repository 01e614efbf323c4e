//! The connections of another process, as a tool of the same user sees them: it reads the memory
//! of the process's family, by the file that the process keeps open. The process does nothing.
use super::connection::Counts;
use crate::mem::seat::{SeenDirection, SeenFamily, SeenSocket};
use ayre_proto::socket::Reason;
use rustix::fd::AsFd;
use std::collections::HashMap;
use std::fs::{self, File};

/// A process that has the library.
#[derive(Clone, Debug)]
pub struct SeenProcess {
    /// The numbers of its sockets, of all kinds.
    pub sockets: Vec<u64>,
    /// Ends of connections that it, or another process of its family, has.
    pub ends: Vec<SeenEnd>,
    /// By the number of the socket.
    reasons: HashMap<u64, Reason>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenEnd {
    /// The number of its socket; 0 where another process of the family has it alone.
    pub socket: u64,
    /// Why it does not use rings.
    pub reason: Reason,
    /// Bytes that it has written.
    pub outward: SeenWay,
    /// Bytes that it has read.
    pub inward: SeenWay,
}

/// The way of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenWay {
    /// Bytes by way.
    pub counts: Counts,
    /// The last bytes have gone by the ring.
    pub is_ring: bool,
}

impl SeenWay {
    fn of(direction: SeenDirection) -> Self {
        let SeenDirection { bytes, by_kernel: kernel, segment } = direction;
        let counts = Counts { ring: bytes.saturating_sub(kernel), kernel };
        Self { counts, is_ring: !segment.is_multiple_of(2) }
    }
}

impl SeenProcess {
    /// Looks at a process. None where it has no connection with the library, or belongs to another
    /// user.
    pub fn look(process: u32) -> Option<Self> {
        let folder = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
        let (mut sockets, mut family) = (Vec::new(), None);
        for entry in folder.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy();
            if let Some(number) = target.strip_prefix("socket:[") {
                let fd = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
                sockets.extend(number.trim_end_matches(']').parse::<u64>().ok().zip(fd));
            } else if family.is_none() && target.ends_with(" (deleted)") {
                let file = File::open(entry.path()).ok();
                family = file.and_then(|file| SeenFamily::read(file.as_fd()));
            }
        }
        let family = family?;
        let own = own_number(process)?;
        let reason = |(number, fd): &(u64, u32)| (*number, family.reason(own, *fd));
        let kept = sockets.iter().map(reason).filter(|(_, reason)| *reason != Reason::None);
        let reasons = kept.collect();
        let at: HashMap<u32, u64> = sockets.iter().map(|(number, fd)| (*fd, *number)).collect();
        let number = |socket| match socket {
            SeenSocket::Number(number) => number,
            SeenSocket::Descriptor(of) if of.process == own => at.get(&of.fd).copied().unwrap_or(0),
            SeenSocket::Descriptor(_) => 0,
        };
        let ends = family.seats.iter().map(|seat| SeenEnd {
            socket: number(seat.socket),
            reason: if seat.holders > 1 { Reason::Forked } else { seat.reason },
            outward: SeenWay::of(seat.outward),
            inward: SeenWay::of(seat.inward),
        });
        let ends = ends.collect();
        let sockets = sockets.into_iter().map(|(number, _)| number).collect();
        Some(Self { sockets, ends, reasons })
    }

    /// Why a socket that has no end among these goes by the kernel, as far as that was kept.
    pub fn reason(&self, socket: u64) -> Reason {
        self.reasons.get(&socket).copied().unwrap_or_default()
    }
}

/// The number that a process has for itself: in a namespace of its own, it is another one.
fn own_number(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}
