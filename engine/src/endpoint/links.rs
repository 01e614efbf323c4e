//! When an endpoint looks at its links with other hosts.
use super::{Completion, RawEndpoint};

/// Polls that find nothing between two looks at links, where something else came last: each look is
/// a call of the system, for which what is of this host should not wait.
const POLLS_PER_LOOK: u32 = 4;

impl RawEndpoint {
    /// Looks at the links, if it is time to, and takes what that brings at once. Whether there was
    /// anything.
    ///
    /// It is not time right after a poll that found something: many a program polls until nothing
    /// is there before it answers, and the answer should not wait for a call of the system.
    // spec: ENV-5
    #[inline(never)]
    pub(super) fn look_at_links(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        // Counted as what this poll will have been if it finds nothing, as by all who take turns.
        let idle = self.polls.next_idle();
        let is_time = self.is_linked(self.polls.hot()) || idle.is_multiple_of(POLLS_PER_LOOK);
        if !is_time || self.polls.empty() == 0 {
            return false;
        }
        let Some(peer) = self.port.pump() else { return false };
        self.set_hot(peer.index());
        self.poll(tell)
    }
}
