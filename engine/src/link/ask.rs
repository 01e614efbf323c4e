//! A command as the way to its target sees it.
use ayre_proto::command::{COMMAND_BYTES, Request};
use ayre_proto::deposit::message::Posted as Message;
use ayre_proto::execute::Command;

/// A command as the way to the target's engine sees it.
pub(crate) trait Ask {
    /// The words that travel.
    fn words(&self) -> [u64; COMMAND_BYTES / 8];
    /// Whether its initiator waits for an answer although all goes well.
    fn is_answered(&self) -> bool;
    /// What it does at a place that its initiator names; none where that does not.
    fn command(&self) -> Option<&Command>;
}

impl Ask for Request {
    fn words(&self) -> [u64; COMMAND_BYTES / 8] {
        self.encode()
    }

    fn is_answered(&self) -> bool {
        self.command.action.answers()
    }

    fn command(&self) -> Option<&Command> {
        Some(&self.command)
    }
}

impl Ask for Message {
    fn words(&self) -> [u64; COMMAND_BYTES / 8] {
        self.encode()
    }

    fn is_answered(&self) -> bool {
        self.message.asks
    }

    fn command(&self) -> Option<&Command> {
        None
    }
}
