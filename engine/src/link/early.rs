//! Puts whose data may be in place before their turn, as their initiator knows it.
use ayre_proto::execute::{Action, Command};
use ayre_proto::units::Key;

/// Puts in a row, of which no two reach the same bytes: all are behind the first one, in one
/// region, and each lies outside of the span of those before it.
#[derive(Debug)]
pub(super) struct Run {
    key: Key,
    /// The span of all of them.
    from: u64,
    to: u64,
    /// Commands before the first one.
    before: u64,
}

impl Run {
    /// A command is posted, which so many precede: how many of these must have been executed before
    /// its data may be in place; none where it has to wait for its turn.
    ///
    /// Whatever tells two orders apart is a command: one that reads, or writes the same bytes. Of
    /// those that may not have been executed, all are of the run, and do neither.
    // spec: WIRE-13
    pub(super) fn join(
        run: &mut Option<Self>,
        command: Option<&Command>,
        before: u64,
    ) -> Option<u64> {
        let Some(command @ Command { action: Action::Put, .. }) = command else {
            *run = None;
            return None;
        };
        let claim = &command.claim;
        let (from, to) = (claim.offset, claim.offset.saturating_add(claim.len));
        if let Some(Self { key, from: least, to: most, before }) = run
            && *key == claim.key
            && (to <= *least || *most <= from)
        {
            (*least, *most) = ((*least).min(from), (*most).max(to));
            return Some(*before);
        }
        *run = Some(Self { key: claim.key, from, to, before });
        Some(before)
    }
}

/// Of a frame: whether the data of its puts may be in place before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    /// There are no commands in it.
    NoMatter,
    /// As soon as so many commands have been executed.
    After(u64),
    Never,
}

impl Early {
    /// With one command more, as [`Run::join`] tells of it.
    pub(super) fn with(self, after: Option<u64>) -> Self {
        match (self, after) {
            (Self::NoMatter, Some(after)) => Self::After(after),
            (Self::After(first), Some(after)) if first == after => self,
            _ => Self::Never,
        }
    }

    /// Whether that is so when so many have been executed.
    pub(super) fn holds(self, executed: u64) -> bool {
        matches!(self, Self::After(after) if after <= executed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ayre_proto::notify::Classes;
    use ayre_proto::units::Claim;

    const KEY: Key = Key { slot: 1, generation: 1 };

    fn command(action: Action, key: Key, offset: u64, len: u64) -> Command {
        let claim = Claim { key, offset, len };
        Command { action, classes: Classes::empty(), tag: 0, value: 0, claim }
    }

    fn put(offset: u64, len: u64) -> Command {
        command(Action::Put, KEY, offset, len)
    }

    // spec: WIRE-13
    #[test]
    fn puts_that_reach_none_of_the_same_bytes_wait_for_what_is_before_the_first() {
        let mut run = None;
        let mut join = |command, before| Run::join(&mut run, Some(&command), before);
        assert_eq!(join(put(100, 50), 7), Some(7));
        assert_eq!(join(put(150, 50), 8), Some(7), "behind");
        assert_eq!(join(put(0, 100), 9), Some(7), "before");
        assert_eq!(join(put(1000, 1), 10), Some(7), "apart");
        assert_eq!(join(put(300, 1), 11), Some(11), "inside the span");
        assert_eq!(join(put(300, 1), 12), Some(12), "again");
        assert_eq!(join(put(299, 2), 13), Some(13), "in part");
        let other = Key { generation: 2, ..KEY };
        assert_eq!(join(command(Action::Put, other, 500, 1), 14), Some(14), "perhaps the same");
        assert_eq!(join(put(u64::MAX, 9), 15), Some(15));
        assert_eq!(join(put(0, 9), 16), Some(15));
    }

    // spec: WIRE-13
    #[test]
    fn what_is_no_put_has_to_wait_and_is_waited_for() {
        for action in [Action::Get, Action::Immediate(1), Action::Notify] {
            let mut run = None;
            assert_eq!(Run::join(&mut run, Some(&put(0, 8)), 0), Some(0));
            assert_eq!(Run::join(&mut run, Some(&command(action, KEY, 64, 8)), 1), None);
            assert_eq!(Run::join(&mut run, Some(&put(8, 8)), 2), Some(2));
        }
    }

    // spec: WIRE-13
    #[test]
    fn a_frame_of_two_runs_or_with_what_is_no_put_waits_for_its_turn() {
        let after = |what: &[Option<u64>]| what.iter().copied().fold(Early::NoMatter, Early::with);
        assert!(after(&[Some(3), Some(3)]).holds(3));
        assert!(!after(&[Some(3), Some(3)]).holds(2));
        for mixed in [&[][..], &[Some(3), Some(4)], &[Some(3), None], &[None, Some(3), Some(3)]] {
            assert!(!after(mixed).holds(u64::MAX), "{mixed:?}");
        }
    }
}
