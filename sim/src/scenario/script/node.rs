//! A node of a script: where it is in its statements, and what it has under way.
use super::collective::Running;
use super::{Block, Line, Script, Statement};
use crate::cluster::Local;
use crate::time::Time;
use ayre_proto::node::Order;
use ayre_proto::units::Ticket;
use std::collections::VecDeque;

/// An operation that was posted and has not ended.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) peer: u32,
    pub(super) ticket: Ticket,
    pub(super) begun: Time,
    pub(super) word: &'static str,
    pub(super) line: usize,
    pub(super) is_fault: bool,
    pub(super) check: Check,
}

/// The result that is looked at when an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Nothing,
    /// The buffer of a get.
    Data {
        buffer: u64,
        expect: Option<u8>,
    },
    /// The value of a fetching atomic.
    Value(Option<u64>),
    /// The value that a deposit message gives back, and whether it is declined.
    Deposit {
        is_declined: bool,
        expect: Option<u64>,
    },
    /// Whether a lock was taken.
    Lock,
}

/// A handler that is run.
#[derive(Debug)]
pub(super) struct Handling {
    pub(super) handler: usize,
    /// The statement that it is at.
    pub(super) at: usize,
    pub(super) source: u32,
    /// Arguments and payload.
    pub(super) message: Vec<u8>,
    pub(super) begun: Time,
}

/// A node.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// The blocks of the script that it runs, which of them it is in, and at which statement.
    blocks: Vec<usize>,
    block: usize,
    pub(super) at: usize,
    /// How often the repetitions around it are still to begin anew.
    loops: Vec<u32>,
    /// It posts without waiting.
    pub(super) is_together: bool,
    /// The operations of a batch so far, and its peer.
    pub(super) batch: Option<(u32, Vec<Order<Local>>)>,
    pub(super) pending: Vec<Pending>,
    /// When the statement began, and whether its operation was posted.
    pub(super) begun: Option<Time>,
    pub(super) is_posted: bool,
    /// It computes until then.
    pub(super) wake: Option<Time>,
    /// The operations that have ended, and that number when the peers were asked last.
    pub(super) ended_operations: u64,
    pub(super) asked: Option<u64>,
    /// The collectives that it has done, and the one that it is in.
    pub(super) collectives: u32,
    pub(super) running: Option<Running>,
    /// Messages to handlers that have come, of whom and to which, and the one whose handler runs.
    pub(super) calls: VecDeque<(u32, u32, Vec<u8>)>,
    pub(super) handling: Option<Handling>,
    /// Handlers that have run and were not waited for.
    pub(super) served: u32,
    /// How often the node had heard anything when its program looked last.
    pub(super) heard: u64,
    /// When it had nothing more to do, or was killed.
    pub(super) ended: Option<Time>,
}

impl Member {
    pub(super) fn new(script: &Script, node: u32) -> Self {
        let own = |(_, block): &(usize, &Block)| block.nodes.has(node);
        let blocks = script.blocks.iter().enumerate().filter(own).map(|(number, _)| number);
        Self { blocks: blocks.collect(), ..Self::default() }
    }

    /// Whether it has statements at all.
    pub(super) fn is_used(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The statement that it is at.
    pub(super) fn line<'a>(&mut self, script: &'a Script) -> Option<&'a Line> {
        loop {
            let block = &script.blocks[*self.blocks.get(self.block)?];
            if let Some(line) = block.body.get(self.at) {
                return Some(line);
            }
            self.block += 1;
            self.at = 0;
        }
    }

    /// The next statement is to be carried out.
    pub(super) fn go_on(&mut self) {
        self.at += 1;
        self.begun = None;
        self.is_posted = false;
        self.asked = None;
    }

    /// A repetition begins.
    pub(super) fn repeat(&mut self, times: u32) {
        self.loops.push(times - 1);
        self.go_on();
    }

    /// The end of a repetition, which begins at `begin`.
    pub(super) fn again(&mut self, begin: usize) {
        match self.loops.pop() {
            Some(left @ 1..) => {
                self.loops.push(left - 1);
                self.at = begin;
                self.go_on();
            }
            _ => self.go_on(),
        }
    }

    /// Whether the statement at `begin` repeats.
    pub(super) fn block_of<'a>(&self, script: &'a Script, begin: usize) -> &'a Statement {
        &script.blocks[self.blocks[self.block]].body[begin].statement
    }
}
