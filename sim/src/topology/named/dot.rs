//! Graphviz' DOT, as far as topologies need it.
use super::super::{PORTS_MAX, Port};
use super::Named;
use super::draft::{Draft, End, number};
use super::error::{Fault, FileFault};
use core::fmt::Write;
use std::collections::{HashMap, HashSet};

/// Begins the vertex of a node whose name is a router's, too.
const NODE: &str = "node ";

/// A word or a sign, with its line.
struct Token {
    line: usize,
    text: String,
    /// It stood in quotes, so that it is no sign.
    quoted: bool,
}

/// The meaning of a vertex.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Router,
    Node,
    Both,
}

struct Vertex {
    line: usize,
    name: String,
    kind: Kind,
    ports: Option<u16>,
}

/// An edge, with the ports at its ends.
struct Edge {
    line: usize,
    ends: [(usize, Option<u16>); 2],
    pair: bool,
}

#[derive(Default)]
struct Graph {
    numbers: HashMap<String, usize>,
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

pub(super) fn read(text: &str) -> Result<Named, Fault> {
    let tokens = split(text)?;
    let last = tokens.last().map_or(1, |token| token.line);
    let mut reader = Reader { tokens: &tokens, next: 0, last };
    let graph = reader.graph()?;
    graph.draft()?.finish(last)
}

/// Whether a text begins as DOT does. The text form has none of its words.
pub(super) fn is_dot(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', '/']));
    let first = first.unwrap_or_default().split(|c| !is_word(c)).next().unwrap_or_default();
    ["strict", "graph", "digraph"].contains(&first)
}

/// The tokens of a text, without comments.
fn split(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, token) = if rest.starts_with("//") || first == '#' {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or((line, FileFault::Cut("}")))?;
            (end + 2, None)
        } else if first == '"' {
            let end = rest[1..].find('"').ok_or((line, FileFault::Cut("}")))? + 1;
            (end + 1, Some(&rest[1..end]))
        } else if rest.starts_with("--") || rest.starts_with("->") {
            (2, Some(&rest[..2]))
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (end, Some(&rest[..end]))
        } else {
            let sign = (!first.is_whitespace()).then_some(&rest[..first.len_utf8()]);
            (first.len_utf8(), sign)
        };
        if let Some(text) = token {
            tokens.push(Token { line, text: text.into(), quoted: first == '"' });
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

struct Reader<'a> {
    tokens: &'a [Token],
    next: usize,
    last: usize,
}

impl Reader<'_> {
    /// Takes the next token if it is this sign or word.
    fn sees(&mut self, sign: &str) -> bool {
        let next = self.tokens.get(self.next);
        let sees = next.is_some_and(|token| !token.quoted && token.text == sign);
        self.next += usize::from(sees);
        sees
    }

    fn line(&self) -> usize {
        self.tokens.get(self.next).map_or(self.last, |token| token.line)
    }

    fn fault<T>(&self, expected: &'static str) -> Result<T, Fault> {
        let Some(token) = self.tokens.get(self.next) else {
            return Err((self.last, FileFault::Cut("}")));
        };
        let found = token.text.chars().take(64).collect();
        Err((token.line, FileFault::Dot { expected, found }))
    }

    fn word(&mut self, expected: &'static str) -> Result<String, Fault> {
        match self.tokens.get(self.next) {
            Some(token) if token.quoted || token.text.starts_with(is_word) => {
                self.next += 1;
                Ok(token.text.clone())
            }
            _ => self.fault(expected),
        }
    }

    fn graph(&mut self) -> Result<Graph, Fault> {
        let _ = self.sees("strict");
        if !self.sees("graph") && !self.sees("digraph") {
            return self.fault("`graph` or `digraph`");
        }
        if !self.sees("{") {
            let _name = self.word("a name or `{`")?;
            if !self.sees("{") {
                return self.fault("`{`");
            }
        }
        let mut graph = Graph::default();
        while !self.sees("}") {
            self.statement(&mut graph)?;
            let _ = self.sees(";");
        }
        if self.next < self.tokens.len() {
            return Err((self.line(), FileFault::Behind));
        }
        Ok(graph)
    }

    fn statement(&mut self, graph: &mut Graph) -> Result<(), Fault> {
        let line = self.line();
        for defaults in ["graph", "node", "edge"] {
            if self.sees(defaults) {
                self.attributes()?;
                return Ok(());
            }
        }
        let first = self.word("a vertex, an edge or `}`")?;
        if first == "subgraph" {
            self.next -= 1;
            return self.fault("a vertex or an edge outside of subgraphs");
        }
        if self.sees("=") {
            self.word("a value")?;
            return Ok(());
        }
        let mut from = graph.vertex(line, first);
        let mut edges = Vec::new();
        loop {
            let both = self.sees("--");
            if !both && !self.sees("->") {
                break;
            }
            let to = self.word("a vertex")?;
            let to = graph.vertex(line, to);
            edges.push((from, to, both));
            from = to;
        }
        let attributes = self.attributes()?;
        let fault = |fault| (line, fault);
        let count = |key: &str, what, least, limit| {
            let word = attributes.get(key).filter(|word| !word.is_empty());
            word.map(|word| number(what, word, least, limit)).transpose()
        };
        if edges.is_empty() {
            let vertex = &mut graph.vertices[from];
            vertex.kind = match attributes.get("shape").map(String::as_str) {
                Some("box") => Kind::Router,
                Some("ellipse") => Kind::Node,
                _ => vertex.kind,
            };
            let ports = count("ports", "ports", 0, PORTS_MAX as u16).map_err(fault)?;
            vertex.ports = ports.or(vertex.ports);
        }
        let port = |key| count(key, "a port", 0, PORTS_MAX as u16 - 1).map_err(fault);
        let (tail, head) = (port("taillabel")?, port("headlabel")?);
        for (from, to, both) in edges {
            let pair = both || attributes.get("dir").is_some_and(|dir| dir == "both");
            graph.edges.push(Edge { line, ends: [(from, tail), (to, head)], pair });
        }
        Ok(())
    }

    /// Lists of attributes in brackets, or none.
    fn attributes(&mut self) -> Result<HashMap<String, String>, Fault> {
        let mut attributes = HashMap::new();
        while self.sees("[") {
            while !self.sees("]") {
                let key = self.word("an attribute or `]`")?;
                if !self.sees("=") {
                    return self.fault("`=`");
                }
                attributes.insert(key, self.word("a value")?);
                let _ = self.sees(",") || self.sees(";");
            }
        }
        Ok(attributes)
    }
}

impl Graph {
    fn vertex(&mut self, line: usize, name: String) -> usize {
        let number = self.vertices.len();
        let number = *self.numbers.entry(name.clone()).or_insert(number);
        if number == self.vertices.len() {
            self.vertices.push(Vertex { line, name, kind: Kind::Both, ports: None });
        }
        number
    }

    fn draft(&self) -> Result<Draft, Fault> {
        let mut draft = Draft::default();
        for vertex in self.vertices.iter().filter(|vertex| vertex.kind != Kind::Node) {
            draft.router(&vertex.name, vertex.ports).map_err(|fault| (vertex.line, fault))?;
        }
        // The edges of each node, those that enter the network first.
        let mut places = vec![(None, None); self.vertices.len()];
        for edge in &self.edges {
            let fault = |fault| (edge.line, fault);
            let [from, to] = edge.ends.map(|(vertex, port)| {
                let name = &self.vertices[vertex].name;
                draft.find(name).map(|router| End { router, port })
            });
            let [(tail, _), (head, _)] = edge.ends;
            match (self.vertices[tail].kind, self.vertices[head].kind) {
                (Kind::Node, _) => {
                    let to = to.map_err(fault)?;
                    places[tail].0 = Some(to);
                    if edge.pair {
                        places[tail].1 = Some(to);
                    }
                }
                (_, Kind::Node) => {
                    let from = from.map_err(fault)?;
                    places[head].1 = Some(from);
                    if edge.pair {
                        places[head].0 = Some(from);
                    }
                }
                _ => {
                    let (from, to) = (from.map_err(fault)?, to.map_err(fault)?);
                    draft.link(edge.line, from, to, edge.pair).map_err(fault)?;
                }
            }
        }
        for (vertex, place) in self.vertices.iter().zip(places) {
            let fault = |fault| (vertex.line, fault);
            let (inject, eject) = match (vertex.kind, place) {
                (Kind::Router, _) => continue,
                (Kind::Both, _) => {
                    let router = draft.find(&vertex.name).map_err(fault)?;
                    (End { router, port: None }, None)
                }
                (Kind::Node, (Some(inject), Some(eject))) => {
                    let one = inject.router == eject.router && inject.port == eject.port;
                    (inject, (!one).then_some(eject))
                }
                (Kind::Node, _) => {
                    let expected = "an edge from the node to a router and back";
                    return Err(fault(FileFault::Dot { expected, found: vertex.name.clone() }));
                }
            };
            let name = vertex.name.strip_prefix(NODE).unwrap_or(&vertex.name);
            draft.node(vertex.line, name, inject, eject).map_err(fault)?;
        }
        Ok(draft)
    }
}

pub(super) fn write(named: &Named) -> String {
    let mut text = String::from("digraph topology {\n");
    let mut add = |line: core::fmt::Arguments<'_>| {
        // Text takes all that is written to it.
        let _ = writeln!(text, "  {line}");
    };
    let router = |port: Port| &named.routers[port.router as usize];
    for (name, ports) in named.routers.iter().zip(&named.topology.ports) {
        add(format_args!("\"{name}\" [shape=box, ports={ports}]"));
    }
    let routers: HashSet<_> = named.routers.iter().collect();
    let vertices: Vec<_> = named
        .nodes
        .iter()
        .map(|name| format!("{}{name}", if routers.contains(name) { NODE } else { "" }))
        .collect();
    for vertex in &vertices {
        add(format_args!("\"{vertex}\" [shape=ellipse]"));
    }
    for (link, pair) in named.joints() {
        let (from, to) = (router(link.from), router(link.to));
        let (tail, head) = (link.from.port, link.to.port);
        let dir = if pair { ", dir=both" } else { "" };
        let ports = format!("taillabel={tail}, headlabel={head}");
        add(format_args!("\"{from}\" -> \"{to}\" [{ports}{dir}]"));
    }
    for (vertex, node) in vertices.iter().zip(&named.topology.nodes) {
        let (inject, eject) = (router(node.inject), router(node.eject));
        let (head, tail) = (node.inject.port, node.eject.port);
        if node.inject == node.eject {
            add(format_args!("\"{vertex}\" -> \"{inject}\" [headlabel={head}, dir=both]"));
        } else {
            add(format_args!("\"{vertex}\" -> \"{inject}\" [headlabel={head}]"));
            add(format_args!("\"{eject}\" -> \"{vertex}\" [taillabel={tail}]"));
        }
    }
    text.push_str("}\n");
    text
}
