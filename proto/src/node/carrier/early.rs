//! Puts whose data may be in place before their turn, as their initiator knows it.
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

/// Of a frame: whether the data of its puts may be in place before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// There are no commands in it.
    NoMatter,
    /// As soon as this number of commands have been executed.
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

    /// Whether the condition holds once `executed` commands have been executed.
    #[inline]
    pub fn holds(self, executed: u64) -> bool {
        matches!(self, Self::After(after) if after <= executed)
    }
}
