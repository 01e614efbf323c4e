//! Topologies with names, in files: in a text form of our own and in Graphviz' DOT.
mod dot;
mod draft;
mod error;
mod links;
mod text;

use super::{Link, Port, Topology};
pub use error::{FileError, FileFault, LinkError};
use std::collections::HashSet;

/// A topology whose routers and nodes have names.
///
/// A topology that is read has the shape of a regular construction if that makes just its routers,
/// ports, links and nodes, in the order of the file. Policies for that shape fit then.
///
/// # The text form
///
/// ```text
/// # Two switches and three nodes.
/// router left 8          # a router, and how many ports it has
/// router right           # one with as many ports as are used
/// router above
/// link left above        # a link each way, at the lowest free ports
/// link left:6 right:6    # parallel links name their ports, all of them
/// link left:7 right:7
/// link right -> above    # a link one way
/// node a left            # a node, at the lowest free port
/// node b right:2         # a node at this port
/// node c left:5 right:5  # a node whose packets enter at `left` and leave at `right`
/// end
/// ```
///
/// Each line is one statement, and `#` begins a comment. A router is declared before it is named.
/// Ports that lines name are taken first; then each line that names none takes the lowest that is
/// free. Input ports and output ports are numbered apart: links both ways and nodes take one
/// number of both. The last line is `end`, so that a file that was cut is found out.
///
/// # DOT
///
/// A part of the language is read: one `graph` or `digraph` with statements for vertices, edges and
/// attributes, and comments. Subgraphs, ports after a colon and HTML are errors. A
/// vertex with `shape=box` is a router, one with `shape=ellipse` a node, and one without a shape is
/// a router with a node of the same name at it. The attribute `ports` of a router is how many it
/// has. An edge `a -- b`, or `a -> b` with `dir=both`, is a
/// link each way; other `a -> b` are links one way. The attributes `taillabel` and `headlabel` are
/// the ports at `a` and `b`. All other attributes are for Graphviz alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The topology.
    pub topology: Topology,
    /// The name of each router.
    pub routers: Vec<String>,
    /// The name of each node.
    pub nodes: Vec<String>,
}

impl Named {
    /// Names routers `r0`, `r1` and so on, and nodes `n0`, `n1` and so on.
    pub fn by_number(topology: Topology) -> Self {
        let names = |letter, count| (0..count).map(|number| format!("{letter}{number}")).collect();
        let routers = names('r', topology.ports.len());
        let nodes = names('n', topology.nodes.len());
        Self { topology, routers, nodes }
    }

    /// Reads either form: DOT, if the first word is one that DOT begins with. `file` is for errors.
    ///
    /// # Errors
    /// See [`FileFault`].
    pub fn read(file: &str, text: &str) -> Result<Self, FileError> {
        if dot::is_dot(text) { Self::from_dot(file, text) } else { Self::from_text(file, text) }
    }

    /// Reads the text form. `file` is for errors.
    ///
    /// # Errors
    /// See [`FileFault`].
    pub fn from_text(file: &str, text: &str) -> Result<Self, FileError> {
        text::read(text).map_err(|(line, fault)| FileError { file: file.into(), line, fault })
    }

    /// The text form.
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// Reads DOT. `file` is for errors.
    ///
    /// # Errors
    /// See [`FileFault`].
    pub fn from_dot(file: &str, text: &str) -> Result<Self, FileError> {
        dot::read(text).map_err(|(line, fault)| FileError { file: file.into(), line, fault })
    }

    /// The topology as DOT.
    pub fn to_dot(&self) -> String {
        dot::write(self)
    }

    /// The number of the router with this name.
    pub fn router(&self, name: &str) -> Option<u32> {
        self.routers.iter().position(|router| router == name).map(|number| number as u32)
    }

    /// The links, each pair of opposite ones at the same ports once: and whether it is a pair.
    fn joints(&self) -> Vec<(Link, bool)> {
        let links = &self.topology.links;
        let key = |from: Port, to: Port| (from.router, from.port, to.router, to.port);
        let all: HashSet<_> = links.iter().map(|link| key(link.from, link.to)).collect();
        let mut joints = Vec::new();
        for link in links {
            let pair = all.contains(&key(link.to, link.from));
            if !pair || key(link.from, link.to) < key(link.to, link.from) {
                joints.push((*link, pair));
            }
        }
        joints
    }
}
