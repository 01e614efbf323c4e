//! Messages whose handlers were not run.
use super::peers::Name;
use crate::log::tell;
use ayre_proto::active::record::DropCause;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// The most failures that are kept for the program. Beyond it the oldest is forgotten.
const FAILURES_MAX: usize = 1024;
/// The most failures that are logged, because peers may cause any number.
const TOLD_MAX: u32 = 16;

/// A message whose handler was not run, here or at a peer.
// spec: AM-7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedCall {
    /// The peer: its sender, or its destination if `is_ours`.
    pub peer: PeerId,
    /// The id of the handler.
    pub handler: u32,
    /// The reason.
    pub cause: DropCause,
    /// Whether this process has sent the message.
    pub is_ours: bool,
}

/// Failures that the program has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Failures {
    queue: VecDeque<DroppedCall>,
    told: u32,
}

impl Failures {
    /// Adds a failure. `names` are those by which the log may name its handler.
    pub(super) fn add<'a>(&mut self, failure: DroppedCall, names: impl Iterator<Item = &'a Name>) {
        if self.told < TOLD_MAX {
            self.told += 1;
            tell!(WARN, "{}", in_words(&failure, names));
        }
        if self.queue.len() == FAILURES_MAX {
            self.queue.pop_front();
        }
        self.queue.push_back(failure);
        debug_assert!(self.queue.len() <= FAILURES_MAX, "the oldest are forgotten");
        debug_assert!(self.told <= TOLD_MAX, "some are told");
    }

    /// Takes failures, one by one. After the first call they are not logged any more.
    pub(super) fn take(&mut self) -> impl Iterator<Item = DroppedCall> {
        self.told = TOLD_MAX;
        std::iter::from_fn(|| self.queue.pop_front())
    }
}

#[cold]
fn in_words<'a>(failure: &DroppedCall, mut names: impl Iterator<Item = &'a Name>) -> String {
    let DroppedCall { peer, handler, cause, is_ours } = *failure;
    let name = names.find(|name| name.id == handler).map(|name| &name.name);
    let handler = match name {
        Some(name) => format!("`{name}`"),
        None => format!("of id {handler}"),
    };
    let why = match cause {
        DropCause::Unknown => "there is none of this name, or it is another one there",
        DropCause::Malformed => "it takes other arguments, or not so long a payload",
        DropCause::Panicked => "it has panicked",
    };
    let peer = peer.index();
    match is_ours {
        true => format!("a call of this process to handler {handler} of peer {peer}: {why}"),
        false => format!("a call of peer {peer} to handler {handler} of this process: {why}"),
    }
}
