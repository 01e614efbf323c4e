//! Letting others run, and sleeping until something comes.
use super::{Address, Completion, RawEndpoint, pollers};
use crate::net::clock::Deadline;
use crate::sys::switches::switches;
use ayre_proto::endpoint::Transport;
use rustix::fd::BorrowedFd;
use std::time::Duration;

/// Longest sleep of a poll.
const NAP: Duration = Duration::from_micros(250);
/// Idle polls between two yields of an endpoint with links that knows of no other user of its
/// processor. Each poll of links takes longer than a yield, and together they take the time of some
/// messages.
const POLLS_PER_LINKED_YIELD: u32 = 16;
impl RawEndpoint {
    /// Can be read when something has come while the endpoint rests.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.sleep.as_fd()
    }

    /// Announces that the program is about to sleep, so that senders ring the bell. False where
    /// something has come already, or is to be done: then it must not sleep. The rest ends with the
    /// next [`RawEndpoint::wake`]. Operations that are posted meanwhile ring, too, if they need
    /// progress or have completed.
    // spec: ENV-9
    pub fn rest(&mut self, mut tell: impl FnMut(Completion)) -> bool {
        !self.protocol.waits_for_room() && self.announce_sleep(&mut tell)
    }

    /// Rests, even while it waits for room: for naps, which end soon in any case.
    fn announce_sleep(&mut self, tell: &mut dyn FnMut(Completion)) -> bool {
        debug_assert!(!self.is_asleep, "a rest ends before the next one");
        self.port.announce_sleep(true);
        self.port.fence_sleep();
        if self.look_everywhere(tell) || self.port.remote.has_mail() || self.port.peers.has_dead() {
            self.wake();
            return false;
        }
        self.port.set_alarm(true);
        if let Some(next) = self.next_call()
            && !self.port.set_alarm_by(next)
        {
            self.wake();
            return false;
        }
        self.is_asleep = true;
        true
    }

    /// Takes from everybody, callers too, what has come. Whether there was anything, or is more.
    pub(super) fn look_everywhere(&mut self, tell: &mut dyn FnMut(Completion)) -> bool {
        let calls = self.remotes.calls();
        self.handshake();
        // A caller that has just been answered may have something to send.
        let is_answered = self.remotes.calls() != calls;
        let progressed = self.port.progress_all();
        let turns = self.port.peers.count().max(1);
        let mut tell = tell;
        let any = (0..turns).any(|_| self.poll(&mut tell)) || self.protocol.has_completions();
        any || progressed || is_answered
    }

    /// Something was put off to the next poll, for which nobody else rings.
    // spec: ENV-9
    pub(super) fn request_poll(&mut self) {
        self.parts().1.request_poll();
    }

    /// The program no longer sleeps.
    pub fn wake(&mut self) {
        self.is_asleep = false;
        self.port.announce_sleep(false);
        self.port.set_alarm(false);
        self.port.service_control();
        self.handshake();
        if self.port.peers.has_dead() {
            self.end_dead();
        }
    }

    /// Yields or sleeps if there are more pollers than processors. An arrival ends the sleep.
    // spec: ENV-9
    #[cold]
    pub(super) fn yield_processor(&mut self) {
        if self.sharing.is_crowded() {
            if self.may_nap() {
                if self.nap() {
                    pollers::has_napped(self.port.clock.now());
                }
            } else if !self.sharing.yields_itself(self.polls.idle(), switches) {
                std::thread::yield_now();
            }
            return;
        }
        let is_turn =
            self.sharing.is_shared() || self.polls.idle().is_multiple_of(POLLS_PER_LINKED_YIELD);
        if self.port.remote.is_in_use() && is_turn {
            self.yield_at_links();
        }
    }

    /// Yields. A yield to a program that computes gives away a whole time slice, and polls use up
    /// our own, so that a datagram waits for the next one. After a yield like that, a waiting
    /// program naps for a while instead: a datagram wakes it, and the scheduler runs it at once.
    // spec: ENV-5
    fn yield_at_links(&mut self) {
        match self.port.yield_in_turn() {
            Some(lasted) => self.sharing.note_yield(lasted),
            None if self.sharing.is_program_waiting(self.port.clock.now())
                && !self.is_needed_elsewhere() =>
            {
                self.nap();
                self.sharing.begin_waiting(self.port.clock.now());
            }
            None => {}
        }
    }

    /// Whether a nap is allowed. A program that polls between steps of its own cannot be told from
    /// one that waits, so naps take at most half of its time.
    // spec: ENV-5
    fn may_nap(&mut self) -> bool {
        self.polls.empty() >= super::POLLS_BEFORE_NAP
            && !self.protocol.waits_for_room()
            && !self.is_needed_elsewhere()
            && pollers::may_nap(NAP, self.port.clock.now())
    }

    /// Sleeps for a moment, unless something has come already. Whether it has.
    fn nap(&mut self) -> bool {
        let mut ends = Vec::new();
        let may = self.announce_sleep(&mut |end| ends.push(end));
        if may {
            let until = self.port.clock.within(NAP);
            self.port.sleep.doze(self.port.wake_by(Some(until)));
            self.wake();
        }
        debug_assert!(!self.is_asleep, "a nap is over when it ends");
        self.protocol.put_off_completions(ends);
        may
    }

    /// Whether this is no time to sleep, nor soon: a thread may poll several endpoints, and to
    /// sleep at one that nobody talks to would keep it from the others.
    // spec: ENV-5
    fn is_needed_elsewhere(&mut self) -> bool {
        let is_needed = self.sharing.have_others_found();
        if is_needed {
            self.polls.has_found();
        }
        is_needed
    }

    pub(super) fn is_neighbour(&self, address: &Address) -> bool {
        address.is_with(&self.address) && !pollers::is_of_this_process(address.name())
    }

    /// Sleeps until something comes, at most for `timeout`; tells what ends. May return before. The
    /// time passes by the network's clock, and a simulated one's goes no further meanwhile.
    // spec: NET-17
    pub fn wait(&mut self, timeout: Option<Duration>, tell: impl FnMut(Completion)) {
        self.wait_until(self.port.clock.deadline(timeout), tell);
    }

    /// Waits by a deadline of the port's clock.
    // spec: NET-17
    pub(super) fn wait_until(&mut self, until: Option<Deadline>, mut tell: impl FnMut(Completion)) {
        let _waiting = self.port.clock.wait(until);
        if self.rest(&mut tell) {
            let wakes = until.into_iter().chain(self.next_call()).min();
            self.port.sleep.doze(self.port.wake_by(wakes));
            self.wake();
        }
        debug_assert!(!self.is_asleep, "a wait is over when it ends");
        self.progress(tell);
    }
}
