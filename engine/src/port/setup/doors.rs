//! Where a port is called on its host, and the callers that wait there.
use super::listener::Listener;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::mem::take;

/// Callers that have not said Hello yet; beyond these the oldest are turned away.
pub(crate) const CALLERS_MAX: usize = 64;

/// A port's listener and the callers that have not said Hello yet.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    listener: Option<Listener>,
    /// In the order of their coming.
    callers: Vec<OwnedFd>,
    /// Keeps the loopback connection's control channel open.
    loopback: Option<OwnedFd>,
}

impl Doors {
    pub(crate) fn open(&mut self, listener: Listener) {
        debug_assert!(listener.sockets().next().is_some(), "callers find a door");
        self.listener = Some(listener);
    }

    /// Takes no further callers; those that have called may still speak.
    pub(crate) fn close(&mut self) {
        self.listener = None;
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

    /// A caller may speak. The oldest one has to go where there are too many.
    pub(crate) fn admit(&mut self, caller: OwnedFd) {
        self.callers.push(caller);
        if self.callers.len() > CALLERS_MAX {
            self.callers.remove(0);
        }
        debug_assert!(self.callers.len() <= CALLERS_MAX, "the oldest make room");
    }

    pub(super) fn callers(&self) -> impl ExactSizeIterator<Item = BorrowedFd<'_>> {
        self.callers.iter().map(AsFd::as_fd)
    }

    /// One of [`Doors::callers`], which has spoken.
    pub(super) fn take_caller(&mut self, index: usize) -> OwnedFd {
        self.callers.remove(index)
    }

    pub(crate) fn take_callers(&mut self) -> Vec<OwnedFd> {
        take(&mut self.callers)
    }

    /// The loopback lives by this end of its control channel.
    pub(super) fn keep_loopback(&mut self, end: OwnedFd) {
        self.loopback = Some(end);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::control_pair;
    use super::*;
    use std::os::fd::AsRawFd;

    // spec: LIFE-9
    #[test]
    fn the_oldest_caller_goes_where_there_are_too_many() {
        let mut doors = Doors::default();
        let pairs: Vec<_> = (0..=CALLERS_MAX).map(|_| control_pair().unwrap()).collect();
        let (near, _far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let numbers: Vec<_> = near.iter().map(AsRawFd::as_raw_fd).collect();
        near.into_iter().for_each(|caller| doors.admit(caller));
        let left: Vec<_> = doors.callers().map(|caller| caller.as_raw_fd()).collect();
        assert_eq!(left, numbers[1..]);
        assert_eq!(doors.take_caller(2).as_raw_fd(), numbers[3]);
        assert_eq!(doors.take_callers().len(), CALLERS_MAX - 1);
        assert_eq!(doors.callers().len(), 0);
    }
}
