//! A command as the way to its target sees it.
use crate::command::{Request, Words};
use crate::deposit::message::Posted;
use crate::execute::Command;

/// A command as the way to the target's engine sees it.
pub trait CommandRecord {
    /// The words that travel.
    fn words(&self) -> Words;
    /// Whether its initiator waits for an answer although all goes well.
    fn is_answered(&self) -> bool;
    /// The command, if it names its place itself; `None` for a deposit message.
    fn command(&self) -> Option<&Command>;
}

impl CommandRecord for Request {
    #[inline]
    fn words(&self) -> Words {
        self.encode()
    }

    #[inline]
    fn is_answered(&self) -> bool {
        self.command.action.answers()
    }

    #[inline]
    fn command(&self) -> Option<&Command> {
        Some(&self.command)
    }
}

impl CommandRecord for Posted {
    #[inline]
    fn words(&self) -> Words {
        self.encode()
    }

    #[inline]
    fn is_answered(&self) -> bool {
        self.message.is_answered
    }

    #[inline]
    fn command(&self) -> Option<&Command> {
        None
    }
}
