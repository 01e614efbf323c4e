//! When an endpoint looks at its links with other hosts.
use super::{Completion, RawEndpoint};

/// Idle polls between two polls of links, where something else came last. Each poll of links is a
/// system call, and messages of this host should not wait for it.
const POLLS_PER_LOOK: u32 = 4;

impl RawEndpoint {
    /// Looks at the links, if it is time to, and takes what that brings at once. Whether there was
    /// anything.
    ///
    /// It is not time right after a poll that found something. Many programs poll until nothing is
    /// there before they answer, and the answer should not wait for a system call.
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
