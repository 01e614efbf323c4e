//! Faults of scripts.
use super::super::units::UnitError;
use thiserror::Error;

/// Statements of a script at most.
pub(super) const STATEMENTS_MAX: usize = 10_000;
/// Operations of a node at most, repetitions included.
pub(super) const OPERATIONS_MAX: u64 = 10_000_000;

/// Connections at most: each takes some 35 KB of memory.
pub(super) const CONNECTIONS_MAX: usize = 50_000;

/// A fault of a script, in a line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {fault}")]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub fault: ScriptFault,
}

/// Faults of lines.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScriptFault {
    /// No statement begins so.
    #[error("{word:?} is no statement{}", near(.nearest))]
    Statement {
        /// The word.
        word: String,
        /// A similar one.
        nearest: Option<&'static str>,
    },
    /// A statement has another form.
    #[error("the statement is to be `{0}`")]
    Form(&'static str),
    /// A quantity that is none.
    #[error("{word:?}: {why}")]
    Unit {
        /// The word.
        word: String,
        /// The reason.
        why: UnitError,
    },
    /// A number that is none, or too large.
    #[error("{word:?} is no whole number from {least} to {most}")]
    Number {
        /// The word.
        word: String,
        /// The least number.
        least: u64,
        /// The greatest one.
        most: u64,
    },
    /// Numbers that are combined have 8 bytes.
    #[error("{0} B: numbers that are combined have 8 B each")]
    Words(u64),
    /// A line that is no instruction of a depot.
    #[error("no instruction: {0}")]
    Instruction(&'static str),
    /// A depot cannot store more.
    #[error("a depot stores at most {0} instructions")]
    Stored(usize),
    /// A word that is none of those that are allowed.
    #[error("{word:?} is none of {allowed}")]
    Choice {
        /// The word.
        word: String,
        /// The allowed ones.
        allowed: &'static str,
    },
    /// A name that is none, or is taken.
    #[error("{0:?} is no name that is free: letters, digits, `_` and `-`, up to 64")]
    Name(String),
    /// A name that nothing has.
    #[error("there is no {what} {name:?} up to this line")]
    Unknown {
        /// Region or queue.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A statement outside of a block of nodes.
    #[error("`{0}` is a statement of nodes: `node NODES` comes first")]
    Outside(&'static str),
    /// A statement that cannot be there.
    #[error("`{word}` cannot be in `{block}`")]
    Inside {
        /// The statement.
        word: &'static str,
        /// The block around it.
        block: &'static str,
    },
    /// A block without its end, or an end without a block.
    #[error("`end` is missing, or there is nothing to end")]
    End,
    /// The script is too long.
    #[error("the script has more than {STATEMENTS_MAX} statements")]
    Statements,
    /// Repetitions make too many operations.
    #[error("repetitions make more than {OPERATIONS_MAX} operations of a node")]
    Operations,
    /// Handlers call each other for ever.
    #[error("handlers have run more than {OPERATIONS_MAX} times")]
    Calls,
    /// Connections take too much memory.
    #[error("nodes need {0} connections, at most {CONNECTIONS_MAX}: run it on fewer nodes")]
    Connections(usize),
    /// There are too many handlers.
    #[error("a script has at most {0} handlers")]
    Handlers(usize),
    /// A statement, or a node, that only handlers have.
    #[error("only handlers have `{0}`")]
    OnlyHandlers(&'static str),
    /// There is no memory for that.
    #[error("regions have more than {limit} B in all")]
    Memory {
        /// The limit.
        limit: u64,
    },
    /// The script has no statement.
    #[error("no node has a statement")]
    Empty,
    /// A node that is not there.
    #[error("there is no node {node}: the network has {nodes}")]
    NoNode {
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// The root of a collective takes no part in any.
    #[error("node {node} is to be the root, and has no collective itself")]
    NoMember {
        /// The node.
        node: u32,
    },
    /// A schedule is not for that collective.
    #[error("the schedule {0:?} is not for this collective")]
    Schedule(String),
    /// A node has no such region.
    #[error("node {node} has no region {region:?}")]
    NotThere {
        /// The region.
        region: String,
        /// The node.
        node: u32,
    },
    /// Several nodes have the region.
    #[error("several nodes have a region {0:?}: name one of them, as in `{0}@1`")]
    SeveralHomes(String),
    /// A node reads memory or a queue of another one.
    #[error("{region:?} does not belong to node {node}, whose statement this is")]
    NotOwn {
        /// The region or queue.
        region: String,
        /// The node.
        node: u32,
    },
    /// A node cannot hand out more capabilities or queues, or the cluster cannot be built.
    #[error("{0}")]
    Cluster(String),
    /// A statement does not end.
    #[error("node {node}: `{word}` waits for ever")]
    Waits {
        /// The node.
        node: u32,
        /// The statement.
        word: &'static str,
    },
    /// A statement ends in another way than is expected.
    #[error("node {node}: `{word}` {what}")]
    Unexpected {
        /// The node.
        node: u32,
        /// The statement.
        word: &'static str,
        /// The difference.
        what: String,
    },
    /// The simulated time is over.
    #[error("node {node}: the simulated time is over at `{word}`")]
    Late {
        /// The node.
        node: u32,
        /// The statement.
        word: &'static str,
    },
}

fn near(nearest: &Option<&str>) -> String {
    nearest.map(|name| format!("; is `{name}` meant?")).unwrap_or_default()
}
