//! A port's listener, and the callers that have connected and not said Hello yet.
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

/// The most callers without a Hello; beyond these the oldest ones are refused.
pub(crate) const CALLERS_MAX: usize = 64;
/// The time in which a caller of a joining rank must say Hello, even if others call: long enough
/// for some turns on a processor that others use, too.
pub(crate) const TIME_TO_SPEAK: Duration = Duration::from_millis(250);

/// A caller: a process that has connected to the listener.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) socket: Descriptor,
    /// The end of [`TIME_TO_SPEAK`].
    pub(crate) until: Deadline,
}

/// A port's listener and the callers that have not said Hello yet.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    listener: Option<Listener>,
    /// The callers in the order in which they connected.
    callers: Vec<Caller>,
    /// The ranks that a joining rank waits for, and the number of ranks of its job: no others are
    /// admitted meanwhile.
    ranks: Option<(Range<u16>, u64)>,
    /// Keeps the loopback connection's control channel open.
    loopback: Option<Descriptor>,
}

impl AcceptQueue {
    pub(crate) fn open(&mut self, listener: Listener) {
        debug_assert!(listener.sockets().next().is_some(), "a listener has sockets");
        self.listener = Some(listener);
    }

    /// Stops listening; callers that have connected may still say Hello.
    pub(crate) fn close(&mut self) {
        self.listener = None;
        self.ranks = None;
    }

    /// Admits only those ranks of a job that are higher than this one.
    // spec: LIFE-5
    pub(crate) fn admit_ranks(&mut self, above: u16, size: usize) {
        debug_assert!(usize::from(above) < size, "a rank is one of the job's");
        self.ranks = Some((above + 1..size.min(PEERS_MAX) as u16, size as u64));
    }

    /// Whether a peer of this number is admitted.
    pub(crate) fn check(&self, peer: PeerId) -> Result<(), Refusal> {
        match &self.ranks {
            Some((ranks, size)) if !ranks.contains(&peer.0) => Err(Refusal::Full(*size)),
            _ => Ok(()),
        }
    }

    /// The numbers that are not admitted, connected or not.
    pub(crate) fn not_admitted(&self) -> impl Iterator<Item = u16> {
        let ranks = self.ranks.iter();
        ranks.flat_map(|(ranks, _)| (0..PEERS_MAX as u16).filter(|peer| !ranks.contains(peer)))
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    pub(super) fn listener(&mut self) -> Option<&mut Listener> {
        self.listener.as_mut()
    }

    /// The listening sockets.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listener.iter().flat_map(Listener::sockets)
    }

    /// Adds a caller, which may then say Hello. Removes the oldest one where there are too many. A
    /// joining rank does that only after [`AcceptQueue::full_until`].
    pub(crate) fn admit(&mut self, caller: Caller) {
        self.callers.push(caller);
        if self.callers.len() > CALLERS_MAX {
            self.callers.remove(0);
        }
        debug_assert!(self.callers.len() <= CALLERS_MAX, "the oldest make room");
    }

    /// The time until which no caller is removed for another one; None where there is room.
    // spec: LIFE-9
    pub(super) fn full_until(&self) -> Option<Deadline> {
        let is_full = self.callers.len() == CALLERS_MAX;
        self.callers.first().filter(|_| is_full).map(|oldest| oldest.until)
    }

    pub(super) fn callers(&self) -> impl ExactSizeIterator<Item = BorrowedFd<'_>> {
        self.callers.iter().map(|caller| caller.socket.as_fd())
    }

    /// Removes one of [`AcceptQueue::callers`], which has sent something.
    pub(super) fn take_caller(&mut self, index: usize) -> Descriptor {
        self.callers.remove(index).socket
    }

    pub(crate) fn take_callers(&mut self) -> Vec<Caller> {
        take(&mut self.callers)
    }

    /// Keeps this descriptor, by which the loopback's control channel stays open.
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
        let mut accept_queue = AcceptQueue::default();
        let pairs: Vec<_> = (0..=CALLERS_MAX).map(|_| control_pair().unwrap()).collect();
        let (near, _far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let numbers: Vec<_> = near.iter().map(AsRawFd::as_raw_fd).collect();
        let until = Clock::system().within(TIME_TO_SPEAK);
        for (nth, socket) in near.into_iter().enumerate() {
            let is_full = nth >= CALLERS_MAX;
            assert_eq!(accept_queue.full_until(), is_full.then_some(until), "caller {nth}");
            accept_queue.admit(Caller { socket, until });
        }
        let left: Vec<_> = accept_queue.callers().map(|caller| caller.as_raw_fd()).collect();
        assert_eq!(left, numbers[1..]);
        assert_eq!(accept_queue.take_caller(2).as_raw_fd(), numbers[3]);
        assert_eq!(accept_queue.take_callers().len(), CALLERS_MAX - 1);
        assert_eq!(accept_queue.callers().len(), 0);
    }
}
