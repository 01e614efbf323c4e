//! Scripts: the operations of each node, one after the other or several at once.
//!
//! ```text
//!   region data 4KiB 1          # memory of node 1, which starts as zeros
//!   node 0
//!     put data 0 64 fill=7      # at offset 0, 64 bytes of the value 7
//!     together
//!       fetch add data 64 1
//!       get data 0 64 expect=7
//!     end
//! ```
//!
//! [`read`] reads the text, [`Script::check`] looks whether the nodes are there, and [`run()`]
//! carries it out on a [`Cluster`](crate::cluster::Cluster): the protocol's own nodes in simulated
//! time.
mod error;
mod node;
mod post;
mod read;
mod run;
mod runner;
mod world;

pub use error::{ScriptError, ScriptFault};
pub(super) use run::{Ran, run};
pub(super) use runner::Kind;

use super::units::Span;
use crate::cluster::InterfaceTimes;
use ayre_proto::alu::Atomic;
use ayre_proto::lock::LockMode;
use ayre_proto::notify::Classes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A script, with the times of the interfaces that carry it out.
#[derive(Clone, Debug)]
pub struct ScriptWork {
    /// The script.
    pub script: Arc<Script>,
    /// The times.
    pub times: InterfaceTimes,
}

/// The statements of all nodes, and their memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    file: String,
    regions: Vec<Region>,
    queues: Vec<Queue>,
    blocks: Vec<Block>,
}

/// Memory under a name.
#[derive(Clone, Debug, PartialEq)]
struct Region {
    name: String,
    len: u64,
    homes: Nodes,
    line: usize,
}

/// A queue under a name, at its consumer.
#[derive(Clone, Debug, PartialEq)]
struct Queue {
    name: String,
    /// Lines of each producer's lane.
    lines: u32,
    home: u32,
    line: usize,
}

/// Some nodes, and their statements.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    nodes: Nodes,
    body: Vec<Line>,
    line: usize,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    number: usize,
    statement: Statement,
    /// It is to end in a fault.
    is_fault: bool,
}

/// Nodes of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    All,
    /// From the first to the last one.
    Range(u32, u32),
}

impl Nodes {
    fn has(self, node: u32) -> bool {
        match self {
            Self::All => true,
            Self::Range(first, last) => (first..=last).contains(&node),
        }
    }
}

/// A node, as another one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Number(u32),
    Own,
    Next,
    Previous,
}

impl Who {
    fn resolve(self, own: u32, nodes: u32) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Own => own,
            Self::Next => (own + 1) % nodes,
            Self::Previous => (own + nodes - 1) % nodes,
        }
    }
}

/// A place in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    region: usize,
    /// None: the node itself if it has the region, or else the only node that has it.
    node: Option<Who>,
    offset: u64,
}

/// The notifications that an operation asks for, and their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    classes: Classes,
    tag: u32,
    value: u64,
}

/// Statements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statement {
    Put {
        to: Place,
        len: u64,
        fill: u8,
        note: Note,
    },
    Get {
        from: Place,
        len: u64,
        expect: Option<u8>,
        note: Note,
    },
    Immediate {
        to: Place,
        value: u64,
        note: Note,
    },
    Atomic {
        on: Place,
        atomic: Atomic,
        note: Note,
    },
    Fetch {
        on: Place,
        atomic: Atomic,
        expect: Option<u64>,
        note: Note,
    },
    Notify {
        to: Who,
        note: Note,
    },
    Await {
        from: Option<Who>,
        tag: Option<u32>,
        value: Option<u64>,
    },
    Send {
        to: Who,
        len: u64,
        fill: u8,
        tag: u32,
    },
    Receive {
        from: Who,
        tag: Option<u32>,
        expect: Option<u8>,
    },
    Append {
        queue: usize,
        len: u64,
        fill: u8,
    },
    Take {
        queue: usize,
        from: Option<Who>,
        expect: Option<u8>,
    },
    Lock {
        on: Place,
        mode: LockMode,
    },
    Unlock {
        on: Place,
        mode: LockMode,
    },
    Flush {
        to: Option<Who>,
    },
    Compute(Span),
    Barrier,
    Wait {
        at: Place,
        value: u64,
    },
    Check {
        at: Place,
        value: u64,
    },
    Kill(Who),
    Restart(Who),
    Repeat(u32),
    Together,
    Batch(Who),
    /// The end of the block that begins at this index.
    End(usize),
}

impl Statement {
    /// Its first word.
    fn word(&self) -> &'static str {
        match self {
            Self::Put { .. } => "put",
            Self::Get { .. } => "get",
            Self::Immediate { .. } => "immediate",
            Self::Atomic { .. } => "atomic",
            Self::Fetch { .. } => "fetch",
            Self::Notify { .. } => "notify",
            Self::Await { .. } => "await",
            Self::Send { .. } => "send",
            Self::Receive { .. } => "receive",
            Self::Append { .. } => "append",
            Self::Take { .. } => "take",
            Self::Lock { .. } => "lock",
            Self::Unlock { .. } => "unlock",
            Self::Flush { .. } => "flush",
            Self::Compute(_) => "compute",
            Self::Barrier => "barrier",
            Self::Wait { .. } => "wait",
            Self::Check { .. } => "check",
            Self::Kill(_) => "kill",
            Self::Restart(_) => "restart",
            Self::Repeat(_) => "repeat",
            Self::Together => "together",
            Self::Batch(_) => "batch",
            Self::End(_) => "end",
        }
    }

    /// Whether it is posted, and ends later.
    fn is_posted(&self) -> bool {
        use Statement::{Append, Atomic, Fetch, Get, Immediate, Notify, Put, Send};
        matches!(
            self,
            Put { .. }
                | Get { .. }
                | Immediate { .. }
                | Atomic { .. }
                | Fetch { .. }
                | Notify { .. }
                | Send { .. }
                | Append { .. }
        )
    }

    /// Whether a batch may have it.
    fn is_batched(&self) -> bool {
        use Statement::{Atomic, Immediate, Notify, Put};
        matches!(self, Put { .. } | Immediate { .. } | Atomic { .. } | Notify { .. })
    }

    /// The place that it names.
    fn place(&self) -> Option<Place> {
        match *self {
            Self::Put { to: place, .. }
            | Self::Get { from: place, .. }
            | Self::Immediate { to: place, .. }
            | Self::Atomic { on: place, .. }
            | Self::Fetch { on: place, .. }
            | Self::Lock { on: place, .. }
            | Self::Unlock { on: place, .. }
            | Self::Wait { at: place, .. }
            | Self::Check { at: place, .. } => Some(place),
            _ => None,
        }
    }

    /// The node that it names.
    fn who(&self) -> Option<Who> {
        match *self {
            Self::Notify { to: who, .. }
            | Self::Send { to: who, .. }
            | Self::Receive { from: who, .. }
            | Self::Kill(who)
            | Self::Restart(who)
            | Self::Batch(who) => Some(who),
            Self::Await { from, .. } | Self::Take { from, .. } => from,
            Self::Flush { to } => to,
            _ => None,
        }
    }
}

/// The connections and capabilities that a script needs.
#[derive(Debug, Default)]
struct Needs {
    /// Pairs of nodes, the lower number first.
    pairs: BTreeSet<(u32, u32)>,
    /// A holder, a node, and its region.
    grants: BTreeSet<(u32, u32, usize)>,
    /// A producer, and a queue.
    producers: BTreeSet<(u32, usize)>,
    /// The nodes that meet at barriers.
    barrier: BTreeSet<u32>,
}

impl Script {
    /// Reads the text of a file with this name.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn read(file: &str, text: &str) -> Result<Self, ScriptError> {
        read::read(file, text)
    }

    /// Checks that a network has all nodes that are named.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn check(&self, nodes: u32) -> Result<(), ScriptError> {
        self.needs(nodes).map(|_| ())
    }

    fn fail(&self, line: usize, fault: ScriptFault) -> ScriptError {
        ScriptError { file: self.file.clone(), line, fault }
    }

    fn needs(&self, nodes: u32) -> Result<Needs, ScriptError> {
        let is_there = |line: usize, node: u32| match node < nodes {
            true => Ok(()),
            false => Err(self.fail(line, ScriptFault::NoNode { node, nodes })),
        };
        let last = |nodes: Nodes| if let Nodes::Range(_, last) = nodes { last } else { 0 };
        for region in &self.regions {
            is_there(region.line, last(region.homes))?;
        }
        for queue in &self.queues {
            is_there(queue.line, queue.home)?;
        }
        let mut needs = Needs::default();
        for block in &self.blocks {
            is_there(block.line, last(block.nodes))?;
            for own in (0..nodes).filter(|node| block.nodes.has(*node)) {
                for line in &block.body {
                    let peer = line.statement.who().map(|who| who.resolve(own, nodes));
                    peer.map_or(Ok(()), |peer| is_there(line.number, peer))?;
                    self.need(&mut needs, line, (own, nodes), peer)?;
                }
            }
        }
        needs.meet();
        Ok(needs)
    }

    /// Notes the needs of a statement of a node.
    fn need(
        &self,
        needs: &mut Needs,
        line: &Line,
        (own, nodes): (u32, u32),
        peer: Option<u32>,
    ) -> Result<(), ScriptError> {
        let statement = &line.statement;
        if let Some(place) = statement.place() {
            let home = self.home(&place, own, nodes).map_err(|why| self.fail(line.number, why))?;
            let is_local = matches!(statement, Statement::Wait { .. } | Statement::Check { .. });
            if is_local && home != own {
                let region = self.regions[place.region].name.clone();
                return Err(self.fail(line.number, ScriptFault::NotOwn { region, node: own }));
            }
            if !is_local {
                needs.grants.insert((own, home, place.region));
                needs.pair(own, home);
            }
        }
        match *statement {
            Statement::Append { queue, .. } => {
                needs.producers.insert((own, queue));
                needs.pair(own, self.queues[queue].home);
            }
            Statement::Take { queue, .. } if self.queues[queue].home != own => {
                let queue = self.queues[queue].name.clone();
                return Err(
                    self.fail(line.number, ScriptFault::NotOwn { region: queue, node: own })
                );
            }
            Statement::Barrier => {
                needs.barrier.insert(own);
            }
            Statement::Kill(_) | Statement::Restart(_) => {}
            _ => peer.into_iter().for_each(|peer| needs.pair(own, peer)),
        }
        Ok(())
    }

    /// The node whose region a place is in.
    fn home(&self, place: &Place, own: u32, nodes: u32) -> Result<u32, ScriptFault> {
        let region = &self.regions[place.region];
        let only = match region.homes {
            _ if region.homes.has(own) => Some(own),
            Nodes::Range(first, last) if first == last => Some(first),
            _ => None,
        };
        let home = match place.node {
            Some(who) => who.resolve(own, nodes),
            None => only.ok_or_else(|| ScriptFault::SeveralHomes(region.name.clone()))?,
        };
        if home >= nodes || !region.homes.has(home) {
            return Err(ScriptFault::NotThere { region: region.name.clone(), node: home });
        }
        Ok(home)
    }
}

impl Needs {
    fn pair(&mut self, one: u32, other: u32) {
        self.pairs.insert((one.min(other), one.max(other)));
    }

    /// The nodes of the barrier, each with those that it tells, and the region that stands for it.
    fn meet(&mut self) {
        let members: Vec<_> = self.barrier.iter().copied().collect();
        for (place, own) in members.iter().enumerate() {
            for round in 0..rounds(members.len()) {
                let told = members[(place + (1 << round)) % members.len()];
                self.grants.insert((*own, told, BARRIER));
                self.pair(*own, told);
            }
        }
    }
}

/// Stands for the region of the barrier.
const BARRIER: usize = usize::MAX;

/// Rounds of a barrier of this number of nodes.
fn rounds(members: usize) -> u32 {
    members.next_power_of_two().trailing_zeros()
}
