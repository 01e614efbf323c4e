//! Where a port is called on its host, and the callers that wait there.
use super::listener::Listener;
use crate::net::clock::Deadline;
use crate::sys::descriptor::Descriptor;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, BorrowedFd};
use std::mem::take;
use std::ops::Range;
use std::time::Duration;

/// Callers that have not said Hello yet; beyond these the oldest are turned away.
pub(crate) const CALLERS_MAX: usize = 64;
/// How long a caller of a rank that waits for others may take to say Hello, whoever else calls:
/// some turns on a processor that others use, too.
pub(crate) const TIME_TO_SPEAK: Duration = Duration::from_millis(250);

/// Somebody who has called.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) socket: Descriptor,
    /// The end of [`TIME_TO_SPEAK`].
    pub(crate) until: Deadline,
}

/// A port's listener and the callers that have not said Hello yet.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    listener: Option<Listener>,
    /// In the order of their coming.
    callers: Vec<Caller>,
    /// The ranks that a rank waits for while it joins, and how many its job has: nobody else is let
    /// in then.
    ranks: Option<(Range<u16>, u64)>,
    /// Keeps the loopback connection's control channel open.
    loopback: Option<Descriptor>,
}

impl Doors {
    pub(crate) fn open(&mut self, listener: Listener) {
        debug_assert!(listener.sockets().next().is_some(), "callers find a door");
        self.listener = Some(listener);
    }

    /// Takes no further callers; those that have called may still speak.
    pub(crate) fn close(&mut self) {
        self.listener = None;
        self.ranks = None;
    }

    /// Lets in those ranks of a job that are higher than this one.
    // spec: LIFE-5
    pub(crate) fn let_in_ranks(&mut self, above: u16, size: usize) {
        debug_assert!(usize::from(above) < size, "a rank is one of the job's");
        self.ranks = Some((above + 1..size.min(PEERS_MAX) as u16, size as u64));
    }

    /// Whether one of this number is let in.
    pub(crate) fn check(&self, peer: PeerId) -> Result<(), Refusal> {
        match &self.ranks {
            Some((ranks, size)) if !ranks.contains(&peer.0) => Err(Refusal::Full(*size)),
            _ => Ok(()),
        }
    }

    /// The numbers that are not let in, whoever is connected.
    pub(crate) fn outside(&self) -> impl Iterator<Item = u16> {
        let ranks = self.ranks.iter();
        ranks.flat_map(|(ranks, _)| (0..PEERS_MAX as u16).filter(|peer| !ranks.contains(peer)))
    }

    pub(crate) fn are_open(&self) -> bool {
        self.listener.is_some()
    }

    pub(super) fn listener(&mut self) -> Option<&mut Listener> {
        self.listener.as_mut()
    }

    /// Where callers knock.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listener.iter().flat_map(Listener::sockets)
    }

    /// A caller may speak. The oldest one has to go where there are too many, which a rank
    /// that waits for others brings about only after [`Doors::full_until`].
    pub(crate) fn admit(&mut self, caller: Caller) {
        self.callers.push(caller);
        if self.callers.len() > CALLERS_MAX {
            self.callers.remove(0);
        }
        debug_assert!(self.callers.len() <= CALLERS_MAX, "the oldest make room");
    }

    /// Until when no caller makes room for another one; none where there is room.
    // spec: LIFE-9
    pub(super) fn full_until(&self) -> Option<Deadline> {
        let is_full = self.callers.len() == CALLERS_MAX;
        self.callers.first().filter(|_| is_full).map(|oldest| oldest.until)
    }

    pub(super) fn callers(&self) -> impl ExactSizeIterator<Item = BorrowedFd<'_>> {
        self.callers.iter().map(|caller| caller.socket.as_fd())
    }

    /// One of [`Doors::callers`], which has spoken.
    pub(super) fn take_caller(&mut self, index: usize) -> Descriptor {
        self.callers.remove(index).socket
    }

    pub(crate) fn take_callers(&mut self) -> Vec<Caller> {
        take(&mut self.callers)
    }

    /// The loopback lives by this end of its control channel.
    pub(super) fn keep_loopback(&mut self, end: Descriptor) {
        self.loopback = Some(end);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::control_pair;
    use super::*;
    use crate::net::clock::Clock;
    use std::os::fd::AsRawFd;

    // spec: LIFE-9
    #[test]
    fn the_oldest_caller_goes_where_there_are_too_many() {
        let mut doors = Doors::default();
        let pairs: Vec<_> = (0..=CALLERS_MAX).map(|_| control_pair().unwrap()).collect();
        let (near, _far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let numbers: Vec<_> = near.iter().map(AsRawFd::as_raw_fd).collect();
        let until = Clock::system().within(TIME_TO_SPEAK);
        for (nth, socket) in near.into_iter().enumerate() {
            let is_full = nth >= CALLERS_MAX;
            assert_eq!(doors.full_until(), is_full.then_some(until), "caller {nth}");
            doors.admit(Caller { socket, until });
        }
        let left: Vec<_> = doors.callers().map(|caller| caller.as_raw_fd()).collect();
        assert_eq!(left, numbers[1..]);
        assert_eq!(doors.take_caller(2).as_raw_fd(), numbers[3]);
        assert_eq!(doors.take_callers().len(), CALLERS_MAX - 1);
        assert_eq!(doors.callers().len(), 0);
    }
}
