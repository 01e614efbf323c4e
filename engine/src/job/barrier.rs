//! Barriers of a job.
use crate::error::Fault;
use crate::mem::layout::Control;
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::sync::Ordering;
use ayre_proto::units::PeerId;
use std::time::Duration;

/// In a barrier word: a rank has gone, so no barrier of this job can complete any more.
const BROKEN: u64 = u64::MAX;

impl Port {
    /// Blocks until every rank of the job has called this, and everything that they posted before
    /// has completed and is visible. Sleeps in a long wait, and makes progress meanwhile. Faults of
    /// earlier operations stay for [`Port::flush`]. It needs the Cargo feature `job`.
    ///
    /// A dissemination barrier: in round k each rank signals the one 2^k above it.
    ///
    /// # Errors
    /// [`Fault::PeerDead`] where a rank has left or died. [`Fault::Interrupted`]: the next call
    /// goes on with this barrier.
    // spec: BAR-1, BAR-2, BAR-3, BAR-4
    pub fn barrier(&mut self) -> Result<(), Fault> {
        // Only an interrupt ends it early.
        if self.barrier_within(None)? { Ok(()) } else { Err(Fault::Interrupted) }
    }

    /// Does as [`Port::barrier`], but blocks for at most `timeout`. Returns whether all ranks have
    /// come; where they have not, the next call goes on with this barrier.
    ///
    /// # Errors
    /// As [`Port::barrier`].
    pub fn barrier_within(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let deadline = self.clock.deadline(timeout);
        for peer in self.peers().collect::<Vec<_>>() {
            if !self.wait_flushed(peer, deadline) {
                return Ok(false);
            }
        }
        let met = self.meet(self.barriers + 1, deadline);
        match met {
            Ok(has_met) => self.barriers += u64::from(has_met),
            // Ranks that wait for us, or for the same ranks, must not wait for ever.
            Err(_) => self.tell_barrier(|_| true, BROKEN),
        }
        met
    }

    /// Goes through the rounds of a barrier. Returns whether it has, before the deadline. Rounds
    /// that a call has gone through before cost the next one no wait.
    fn meet(&mut self, count: u64, deadline: Option<Deadline>) -> Result<bool, Fault> {
        let (rank, size) = (self.rank(), self.size);
        debug_assert!(count < BROKEN, "barriers are counted from 1");
        debug_assert!(size == 1 || rank < size, "a rank is one of the job's");
        let mut distance = 1;
        while distance < size {
            debug_assert!(distance.is_power_of_two(), "each round reaches twice as far");
            let to = self.peer((rank + distance) % size).ok_or(Fault::PeerDead)?;
            let from = self.peer((rank + size - distance) % size).ok_or(Fault::PeerDead)?;
            self.tell_barrier(|peer| peer == to, count);
            match self.wait_for(deadline, |port| port.barrier_reached(from, count)) {
                Some(reached) => reached?,
                None => return Ok(false),
            }
            distance *= 2;
        }
        Ok(true)
    }

    fn tell_barrier(&self, tell: impl Fn(PeerId) -> bool, count: u64) {
        for connection in self.peers.iter().filter(|c| tell(c.peer)) {
            // BAR-R1: everything that this rank did before.
            connection.out.control(Control::Barrier).store(count, Ordering::Release);
            connection.published();
        }
    }

    fn barrier_reached(&self, from: PeerId, count: u64) -> Option<Result<(), Fault>> {
        let Ok(connection) = self.connection(from) else { return Some(Err(Fault::PeerDead)) };
        // BAR-A1: everything that the peer did before (BAR-R1).
        match connection.inward.control(Control::Barrier).load(Ordering::Acquire) {
            BROKEN => Some(Err(Fault::PeerDead)),
            reached if reached >= count => Some(Ok(())),
            _ => connection.ended.map(Err),
        }
    }
}
