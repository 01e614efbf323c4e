//! The nodes of a script, and the times of their operations.
use super::node::Member;
use super::way::Way;
use super::world::World;
use super::{Line, ScriptError, ScriptFault};
use crate::time::Time;
use std::collections::HashMap;

/// The nodes of a script on their way.
pub(super) struct Runner<'a> {
    pub(super) world: World<'a>,
    pub(super) members: Vec<Member>,
    /// By node and peer.
    pub(super) ways: HashMap<(u32, u32), Way>,
    pub(super) kinds: Vec<Kind>,
    /// Handlers that have run.
    pub(super) handled: u64,
    /// When a node moved last.
    pub(super) moved: Time,
    /// The time of a phit.
    pub(super) cycle: Time,
}

/// Whether a statement is over.
pub(super) type Over = Result<bool, ScriptError>;

/// Operations of one kind.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Kind {
    pub(in super::super) word: &'static str,
    pub(in super::super) count: u64,
    pub(in super::super) sum: Time,
    pub(in super::super) least: Time,
    pub(in super::super) most: Time,
}

impl Runner<'_> {
    pub(super) fn member(&self, node: u32) -> &Member {
        &self.members[node as usize]
    }

    pub(super) fn member_mut(&mut self, node: u32) -> &mut Member {
        &mut self.members[node as usize]
    }

    /// An operation that began at a time has ended.
    pub(super) fn count_since(&mut self, word: &'static str, begun: Time) {
        let time = self.world.cluster.now() - begun;
        let place = self.kinds.iter().position(|kind| kind.word == word);
        let place = place.unwrap_or_else(|| {
            let none =
                Kind { word, count: 0, sum: Time::ZERO, least: Time::NEVER, most: Time::ZERO };
            self.kinds.push(none);
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[place];
        kind.count += 1;
        kind.sum += time;
        kind.least = kind.least.min(time);
        kind.most = kind.most.max(time);
    }

    pub(super) fn unexpected(&self, node: u32, line: &Line, what: String) -> ScriptError {
        let word = line.statement.word();
        self.world.script.fail(line.number, ScriptFault::Unexpected { node, word, what })
    }
}
