//! The port's notification queue.
use crate::error::ReceiveError;
use crate::mem::lane::Probe;
use crate::mem::layout::Control;
use crate::port::Port;
use crate::port::turns::Streak;
use crate::sync::Ordering;
use ayre_proto::lane::Kind;
use ayre_proto::notify::{Notification, Packed};
use ayre_proto::units::PeerId;
use std::time::Duration;

impl Port {
    /// Takes the next notification of any operation, peer and class, if there is one. Makes
    /// progress. Never blocks.
    ///
    /// When it returns a notification, the data of that operation is visible, and so is the data of
    /// every earlier put of its source.
    // spec: NOTI-4, NOTI-13, ORD-2
    #[inline(always)]
    pub fn poll_notification(&mut self) -> Option<Notification> {
        self.poll_packed().map(Packed::unpack)
    }

    #[inline(always)]
    fn poll_packed(&mut self) -> Option<Packed> {
        if !self.notes.is_empty() {
            return self.take_notification();
        }
        match self.notified_by(self.turns.notes.hot()) {
            None => self.poll_other_notifications(),
            found => {
                if self.turns.notes.took(self.peers.count()) == Streak::Ends {
                    self.progress_lanes();
                }
                found
            }
        }
    }

    #[inline(never)]
    fn take_notification(&mut self) -> Option<Packed> {
        let notification = self.notes.take()?;
        self.return_credit(&notification.unpack());
        Some(notification)
    }

    /// The second half of a poll: the peer whose turn it is, and progress.
    #[inline(never)]
    fn poll_other_notifications(&mut self) -> Option<Packed> {
        let turn = self.turns.notes.turn(self.peers.count());
        // A second look at a line while a peer is about to write it would delay that peer.
        let again = turn == self.turns.notes.hot();
        let found = if again { None } else { self.notified_by(turn) };
        match found {
            None => {
                // Notifications that a mediated peer's commands have raised come by this queue.
                self.progress_lanes();
                self.take_notification()
            }
            Some(_) => {
                self.turns.notes.expect(turn);
                found
            }
        }
    }

    /// Takes the next notification. Blocks for at most `timeout`; sleeps in a long wait.
    ///
    /// # Errors
    /// [`ReceiveError::TimedOut`]; [`ReceiveError::PeerDied`], once for each peer that has died.
    pub fn wait_notification(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Notification, ReceiveError> {
        let (turns, deadline) = (self.peers.count(), self.clock.deadline(timeout));
        self.wait_or_died(deadline, turns, |port| port.poll_notification().map(Ok))
    }

    #[inline(always)]
    fn notified_by(&mut self, index: usize) -> Option<Packed> {
        let connection = self.peers.at_mut(index)?;
        let source = connection.peer;
        let end = connection.executor.direct()?;
        end.landing.send_for_next();
        let read = match end.notes_in.take_words(Kind::Notification) {
            Probe::Nothing => return None,
            Probe::Taken([head, value, place]) => {
                end.landing.follow(place, self.exposed.ranges());
                Packed::read_at_target([head, value], source)
            }
            Probe::Other => None,
        };
        debug_assert!(read.is_none_or(|note| note.source() == source), "a lane is one peer's");
        if read.is_none() {
            self.end_malformed_lane(source);
        }
        read
    }

    /// Whether there is a notification of this peer that was not taken yet.
    pub(crate) fn has_notes_of(&self, peer: PeerId) -> bool {
        let waits = self.connection(peer).is_ok_and(|connection| connection.executor.has_notes());
        waits || self.notes.has_of(peer)
    }

    /// Returns credit to a mediated initiator, which may have only a bounded number of
    /// notifications here that are not taken.
    // spec: NOTI-9, NOTI-11
    fn return_credit(&mut self, notification: &Notification) {
        if !notification.is_raised_at_target() {
            return;
        }
        let Ok(connection) = self.connection_mut(notification.source) else { return };
        if let Some(end) = connection.executor.mediated() {
            // Relaxed: NOTE-R1 below.
            let taken = end.notes_taken.fetch_add(1, Ordering::Relaxed) + 1;
            // NOTE-R1: our responder knows before the initiator does (NOTE-A1), and would take it
            // for malformed otherwise.
            connection.inward.control(Control::Noted).fetch_max(taken, Ordering::Release);
        }
    }
}
