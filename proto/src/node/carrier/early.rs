//! Puts whose data may be in place before their turn, as their initiator knows it.
use crate::execute::{Action, Command};
use crate::units::Key;

/// Puts in a row, of which no two reach the same bytes: all are behind the first one, in one
/// region, and each lies outside of the span of those before it.
#[derive(Debug)]
pub struct Run {
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
    #[inline]
    pub fn join(run: &mut Option<Self>, command: Option<&Command>, before: u64) -> Option<u64> {
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
        debug_assert!(from <= to, "a span does not end before it begins");
        *run = Some(Self { key: claim.key, from, to, before });
        Some(before)
    }

    /// Commands before the first one.
    #[inline]
    pub const fn before(&self) -> u64 {
        self.before
    }
}

/// Of a frame: whether the data of its puts may be in place before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// There are no commands in it.
    NoMatter,
    /// As soon as so many commands have been executed.
    After(u64),
    /// In its turn only.
    Never,
}

impl Early {
    /// With one command more, as [`Run::join`] tells of it.
    #[inline]
    pub fn with(self, after: Option<u64>) -> Self {
        match (self, after) {
            (Self::NoMatter, Some(after)) => Self::After(after),
            (Self::After(first), Some(after)) if first == after => self,
            _ => Self::Never,
        }
    }

    /// Whether that is so when so many have been executed.
    #[inline]
    pub fn holds(self, executed: u64) -> bool {
        matches!(self, Self::After(after) if after <= executed)
    }
}
