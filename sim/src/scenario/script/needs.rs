//! The connections and capabilities that a script needs.
use super::collective::Joint;
use super::error::{CONNECTIONS_MAX, STATEMENTS_MAX};
use super::way::WHOLE_MAX;
use super::{Call, Deposit, Line, Nodes, Script, ScriptError, ScriptFault, Statement, Who};
use ayre_proto::collective::{Place, Plan, Step, Task};
use std::collections::BTreeSet;

/// Stands for the region of a landing.
pub(super) const LANDING: usize = usize::MAX;

/// Stand for the depots, from this number on.
pub(super) const DEPOTS: usize = 1 << 20;
const _: () = assert!(DEPOTS > STATEMENTS_MAX, "regions have smaller numbers");

/// The ways between nodes, and all that is handed out on them.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Pairs of nodes, the lower number first.
    pub(super) pairs: BTreeSet<(u32, u32)>,
    /// A holder, a node, and its region.
    pub(super) grants: BTreeSet<(u32, u32, usize)>,
    /// A producer, and a queue.
    pub(super) producers: BTreeSet<(u32, usize)>,
    /// The nodes with collectives.
    pub(super) group: BTreeSet<u32>,
    /// A node, another one that it calls, and the handler.
    calls: BTreeSet<(u32, u32, usize)>,
    /// A node, and a peer whose messages it takes whenever it waits.
    pub(super) talks: BTreeSet<(u32, u32)>,
}

impl Needs {
    fn pair(&mut self, one: u32, other: u32) {
        self.pairs.insert((one.min(other), one.max(other)));
    }

    /// A node sends another one messages, by a landing where they are long.
    fn talk(&mut self, from: u32, to: u32, is_long: bool) {
        self.pair(from, to);
        self.talks.extend([(from, to), (to, from)]);
        if is_long {
            self.grants.insert((from, to, LANDING));
        }
    }

    /// Notes the ways between the members of the group.
    fn meet(&mut self, script: &Script) -> Result<(), ScriptError> {
        let group: Vec<_> = self.group.iter().copied().collect();
        for block in &script.blocks {
            for line in &block.body {
                let Statement::Collective(joint) = &line.statement else { continue };
                let not_there = ScriptFault::NoMember { node: joint.root.unwrap_or_default() };
                let task = joint.task(&group).ok_or_else(|| script.fail(line.number, not_there))?;
                for own in (0..group.len()).filter(|own| block.nodes.has(group[*own])) {
                    self.follow(joint, task, Place { member: own, members: group.len() }, &group);
                }
            }
        }
        Ok(())
    }

    /// Notes the ways that the plan of a member takes.
    fn follow(&mut self, joint: &Joint, task: Task, place: Place, group: &[u32]) {
        let about = joint.about(task, place, 0);
        for step in Plan::new(task, place).into_iter().flatten() {
            let own = group[place.member];
            match step {
                Step::Send { to, blocks } => {
                    self.talk(own, group[to], about.bytes_of(blocks, 0) > WHOLE_MAX as u64);
                }
                Step::Receive { from, .. } => self.talk(group[from], own, false),
                Step::PushOwn { .. } => {}
            }
        }
    }
}

impl Script {
    pub(super) fn needs(&self, nodes: u32) -> Result<Needs, ScriptError> {
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
        needs.meet(self)?;
        if needs.pairs.len() > CONNECTIONS_MAX {
            return Err(self.fail(1, ScriptFault::Connections(needs.pairs.len())));
        }
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
            Statement::Collective(_) => {
                needs.group.insert(own);
            }
            Statement::Deposit(Deposit { depot, node, .. }) => {
                let home = self.depot_home(line.number, (own, nodes), depot, node)?;
                needs.grants.insert((own, home, DEPOTS + depot));
                needs.pair(own, home);
            }
            Statement::Register { depot, .. } => {
                self.depot_home(line.number, (own, nodes), depot, Some(Who::Own))?;
            }
            Statement::Call(call) => self.call(needs, line.number, (own, nodes), call)?,
            Statement::Kill(_) | Statement::Restart(_) => {}
            _ => peer.into_iter().for_each(|peer| needs.pair(own, peer)),
        }
        Ok(())
    }

    /// The node with the depot that another one names.
    fn depot_home(
        &self,
        line: usize,
        (own, nodes): (u32, u32),
        depot: usize,
        node: Option<Who>,
    ) -> Result<u32, ScriptError> {
        self.home(&self.depot_place(depot, node), own, nodes).map_err(|why| self.fail(line, why))
    }

    /// Notes the ways of a message to a handler, and of those that its handler sends.
    fn call(
        &self,
        needs: &mut Needs,
        line: usize,
        (own, nodes): (u32, u32),
        call: Call,
    ) -> Result<(), ScriptError> {
        let mut left = vec![(line, own, own, call)];
        while let Some((line, own, source, call)) = left.pop() {
            let to = if call.to == Who::Source { source } else { call.to.resolve(own, nodes) };
            if to >= nodes {
                return Err(self.fail(line, ScriptFault::NoNode { node: to, nodes }));
            }
            needs.talk(own, to, call.is_long());
            if !needs.calls.insert((own, to, call.handler)) {
                continue;
            }
            for line in &self.handlers[call.handler].body {
                if let Statement::Call(next) = line.statement {
                    left.push((line.number, to, own, next));
                } else {
                    self.need(needs, line, (to, nodes), None)?;
                }
            }
        }
        Ok(())
    }
}
