//! A topology in the making: statements are collected, then ports are given out.
use super::super::{Link, Node, PORTS_MAX, Port, ROUTERS_MAX, Shape, Topology};
use super::Named;
use super::error::{Fault, FileFault};
use std::collections::HashMap;

/// The longest name.
const NAME_MAX: usize = 64;

/// An end of a link: a router, and the port if the line names one.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) router: u32,
    pub(super) port: Option<u16>,
}

/// Links and nodes, which take ports.
enum Join {
    /// A link, and whether there is one back.
    Link { from: End, to: End, pair: bool },
    /// A node, with two ends if it leaves elsewhere.
    Node { inject: End, eject: Option<End> },
}

#[derive(Default)]
pub(super) struct Draft {
    names: HashMap<String, u32>,
    routers: Vec<String>,
    /// How many ports each router has, if its line says so.
    limits: Vec<Option<u16>>,
    nodes: HashMap<String, u32>,
    node_names: Vec<String>,
    joins: Vec<(usize, Join)>,
    /// For each pair of routers with a link: whether all of them name their ports.
    pairs: HashMap<(u32, u32), bool>,
    /// A bit for each port that is taken.
    inputs: Vec<u64>,
    outputs: Vec<u64>,
}

impl Draft {
    pub(super) fn router(&mut self, name: &str, ports: Option<u16>) -> Result<(), FileFault> {
        let name = check_name(name)?;
        let number = self.routers.len() as u32;
        if self.names.insert(name.clone(), number).is_some() {
            return Err(FileFault::Taken { what: "router", name });
        }
        if u64::from(number) == ROUTERS_MAX {
            return Err(FileFault::Many { what: "routers", limit: ROUTERS_MAX });
        }
        self.routers.push(name);
        self.limits.push(ports);
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Result<u32, FileFault> {
        self.names.get(name).copied().ok_or_else(|| FileFault::Unknown(name.into()))
    }

    pub(super) fn node(
        &mut self,
        line: usize,
        name: &str,
        inject: End,
        eject: Option<End>,
    ) -> Result<(), FileFault> {
        let name = check_name(name)?;
        let number = self.node_names.len() as u32;
        if self.nodes.insert(name.clone(), number).is_some() {
            return Err(FileFault::Taken { what: "node", name });
        }
        if u64::from(number) == ROUTERS_MAX {
            return Err(FileFault::Many { what: "nodes", limit: ROUTERS_MAX });
        }
        self.node_names.push(name);
        self.joins.push((line, Join::Node { inject, eject }));
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        line: usize,
        from: End,
        to: End,
        pair: bool,
    ) -> Result<(), FileFault> {
        if from.router == to.router {
            return Err(FileFault::Itself(self.routers[from.router as usize].clone()));
        }
        self.note_pair(from, to)?;
        if pair {
            self.note_pair(to, from)?;
        }
        self.joins.push((line, Join::Link { from, to, pair }));
        Ok(())
    }

    fn note_pair(&mut self, from: End, to: End) -> Result<(), FileFault> {
        let named = from.port.is_some() && to.port.is_some();
        let before = self.pairs.insert((from.router, to.router), named);
        if before.is_some_and(|before| !(before && named)) {
            let name = |end: End| self.routers[end.router as usize].clone();
            return Err(FileFault::Parallel { from: name(from), to: name(to) });
        }
        Ok(())
    }

    /// Gives out ports. `line` is the last one of the file.
    pub(super) fn finish(mut self, line: usize) -> Result<Named, Fault> {
        if self.node_names.len() < 2 {
            return Err((line, FileFault::Few(self.node_names.len())));
        }
        self.inputs = vec![0; self.routers.len()];
        self.outputs = vec![0; self.routers.len()];
        let mut joins = core::mem::take(&mut self.joins);
        for named in [true, false] {
            for (line, join) in &mut joins {
                self.place(join, named).map_err(|fault| (*line, fault))?;
            }
        }
        let (mut links, mut nodes) = (Vec::new(), Vec::new());
        let port = |end: End| Port { router: end.router, port: end.port.unwrap_or_default() };
        for (_, join) in joins {
            match join {
                Join::Link { from, to, pair } => {
                    let (from, to) = (port(from), port(to));
                    links.push(Link { from, to });
                    if pair {
                        links.push(Link { from: to, to: from });
                    }
                }
                Join::Node { inject, eject } => {
                    nodes.push(Node { inject: port(inject), eject: port(eject.unwrap_or(inject)) });
                }
            }
        }
        let used = self.inputs.iter().zip(&self.outputs).map(|(inputs, outputs)| inputs | outputs);
        let ports = used
            .zip(&self.limits)
            .map(|(used, limit)| limit.unwrap_or(64 - used.leading_zeros() as u16))
            .collect();
        let topology = Topology { ports, links, nodes, shape: Shape::Table };
        let topology = topology.recognised();
        Ok(Named { topology, routers: self.routers, nodes: self.node_names })
    }

    /// Takes the ports that a line names, or the lowest free ones for those that it does not.
    fn place(&mut self, join: &mut Join, named: bool) -> Result<(), FileFault> {
        let ends = match join {
            Join::Link { from, to, pair } => [(from, *pair, true), (to, true, *pair)],
            Join::Node { inject, eject: Some(eject) } => {
                [(inject, true, false), (eject, false, true)]
            }
            Join::Node { inject, eject: None } => return self.take(inject, true, true, named),
        };
        for (end, input, output) in ends {
            self.take(end, input, output, named)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        end: &mut End,
        input: bool,
        output: bool,
        named: bool,
    ) -> Result<(), FileFault> {
        if end.port.is_some() != named {
            return Ok(());
        }
        let router = end.router as usize;
        let mut taken = 0;
        for (used, ports) in [(input, &self.inputs), (output, &self.outputs)] {
            taken |= if used { ports[router] } else { 0 };
        }
        let limit = self.limits[router].unwrap_or(PORTS_MAX as u16);
        let name = || self.routers[router].clone();
        let port = end.port.unwrap_or_else(|| (!taken).trailing_zeros() as u16);
        if port >= limit {
            return Err(FileFault::Ports { router: name(), ports: limit });
        }
        let bit = 1_u64 << port;
        if taken & bit != 0 {
            return Err(FileFault::PortTaken { router: name(), port });
        }
        for (used, ports) in [(input, &mut self.inputs), (output, &mut self.outputs)] {
            ports[router] |= if used { bit } else { 0 };
        }
        end.port = Some(port);
        Ok(())
    }
}

fn check_name(name: &str) -> Result<String, FileFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || name.starts_with('-') || !name.chars().all(fits)
    {
        let begin = name.chars().take(NAME_MAX).collect();
        return Err(FileFault::Name(begin));
    }
    Ok(name.into())
}

/// Reads a number of ports, or of a port.
pub(super) fn number(
    what: &'static str,
    word: &str,
    least: u16,
    limit: u16,
) -> Result<u16, FileFault> {
    let number = word.parse().ok().filter(|number| (least..=limit).contains(number));
    number.ok_or_else(|| {
        let word = word.chars().take(NAME_MAX).collect();
        FileFault::Number { what, word, least, limit }
    })
}
