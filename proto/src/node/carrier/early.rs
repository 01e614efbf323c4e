//! Puts whose data may be placed before their turn, as their initiator knows them.
use crate::execute::{Action, Command};
use crate::units::Key;

/// A sequence of puts of which no two reach the same bytes. All follow the first one, in one
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
    /// A command is posted behind `before` others. Returns the number of commands that must have
    /// been executed before its data may be placed; `None` if it has to wait for its turn.
    ///
    /// Only a command that reads the same bytes, or writes them, can tell two orders apart. The
    /// commands that may not have been executed are all of the run, and do neither.
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

/// Whether the data of a frame's puts may be placed before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// There are no commands in the frame.
    NoMatter,
    /// As soon as this number of commands have been executed.
    After(u64),
    /// Only in its turn.
    Never,
}

impl Early {
    /// The condition with one command more, given the result of [`Run::join`].
    #[inline]
    pub fn with(self, after: Option<u64>) -> Self {
        match (self, after) {
            (Self::NoMatter, Some(after)) => Self::After(after),
            (Self::After(first), Some(after)) if first == after => self,
            _ => Self::Never,
        }
    }

    /// Whether the condition holds once `executed` commands have been executed.
    #[inline]
    pub fn holds(self, executed: u64) -> bool {
        matches!(self, Self::After(after) if after <= executed)
    }
}
