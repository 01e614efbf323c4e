//! The order in which a poll looks at lanes.
use ayre_proto::units::PeerId;

/// Records in a row from one peer before a poll looks at another one first.
const STREAK_MAX: u32 = 64;

/// The lanes that a call looks at: those of the connection where something came last, and those of
/// one other, in turn. So a poll costs the same for any number of peers.
// spec: PROG-4
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PollOrder {
    hot: usize,
    next: usize,
    streak: u32,
}

/// Whether the hot peer stays hot. Progress is due at the end of a streak, because polls that
/// always find something make none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streak {
    Goes,
    Ends,
}

impl PollOrder {
    /// The connection where something came last.
    #[inline(always)]
    pub(crate) fn hot(&self) -> usize {
        self.hot
    }

    /// Has the next poll look at this connection first.
    #[inline(always)]
    pub(crate) fn expect(&mut self, index: usize) {
        self.hot = index;
    }

    /// Records that something came from the hot one of `count`. A peer that never pauses does not
    /// stay hot, so that others are looked at.
    // spec: MSG-9, QUE-7
    #[inline(always)]
    pub(crate) fn took(&mut self, count: usize) -> Streak {
        debug_assert!(self.streak < STREAK_MAX, "a streak ends at its longest");
        self.streak += 1;
        if self.streak < STREAK_MAX {
            return Streak::Goes;
        }
        self.streak = 0;
        self.hot = if self.hot + 1 >= count { 0 } else { self.hot + 1 };
        Streak::Ends
    }

    /// The next one in turn of `count`.
    #[inline(always)]
    pub(crate) fn turn(&mut self, count: usize) -> usize {
        let turn = self.next;
        self.next = if turn + 1 >= count { 0 } else { turn + 1 };
        turn
    }
}

/// The orders of all lanes of a port.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Message lanes.
    pub(super) mail: PollOrder,
    /// Lanes of notifications.
    pub(super) notes: PollOrder,
    /// Command lanes that this thread serves.
    pub(super) commands: PollOrder,
    /// Lanes of answers.
    pub(super) answers: PollOrder,
}

impl Turns {
    /// Expects the next message from this peer.
    #[inline]
    pub(crate) fn expect_message(&mut self, peer: PeerId) {
        self.mail.expect(peer.index());
    }

    /// Something was posted to a peer, which will answer.
    pub(super) fn expect_answer(&mut self, peer: PeerId) {
        self.answers.expect(peer.index());
    }

    /// Something was posted or answered, which makes room for more.
    pub(super) fn expect_progress(&mut self, peer: PeerId) {
        self.commands.expect(peer.index());
        self.answers.expect(peer.index());
    }

    /// Expects anything next from this peer.
    pub(super) fn expect_anything(&mut self, peer: PeerId) {
        self.expect_progress(peer);
        self.expect_message(peer);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: MSG-9, QUE-7
    #[test]
    fn a_peer_that_never_pauses_stays_first_for_one_streak() {
        let mut rota = PollOrder::default();
        rota.expect(2);
        for _ in 1..STREAK_MAX {
            assert_eq!((rota.took(3), rota.hot()), (Streak::Goes, 2));
        }
        assert_eq!((rota.took(3), rota.hot()), (Streak::Ends, 0), "it was the last number");
        assert_eq!(rota.took(3), Streak::Goes, "a streak begins anew");
    }

    // spec: PROG-4
    #[test]
    fn each_number_has_its_turn_also_where_some_go() {
        let mut rota = PollOrder::default();
        let turns: Vec<_> = [3, 3, 3, 3, 3, 2].map(|count| rota.turn(count)).into();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        assert_eq!(rota.turn(2), 0, "a number that is no more is left by its turn");
        assert_eq!((rota.turn(0), rota.turn(0)), (1, 0));
    }
}
