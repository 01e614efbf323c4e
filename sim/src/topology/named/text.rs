//! The text form: a statement a line.
use super::super::{PORTS_MAX, Port};
use super::Named;
use super::draft::{Draft, End, number};
use super::error::{Fault, FileFault};
use core::fmt::Write;

const ROUTER: &str = "router NAME [PORTS]";
const LINK: &str = "link ROUTER[:PORT] [->] ROUTER[:PORT]";
const NODE: &str = "node NAME ROUTER[:PORT] [ROUTER[:PORT]]";
const END: &str = "end";

pub(super) fn read(text: &str) -> Result<Named, Fault> {
    let mut draft = Draft::default();
    let mut ended = None;
    let mut last = 1;
    for (line, content) in (1..).zip(text.lines()) {
        last = line;
        let statement = content.split('#').next().unwrap_or_default();
        let words: Vec<_> = statement.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        if ended.is_some() {
            return Err((line, FileFault::Behind));
        }
        if words == [END] {
            ended = Some(line);
            continue;
        }
        take(&mut draft, line, &words).map_err(|fault| (line, fault))?;
    }
    let end = ended.ok_or((last, FileFault::Cut(END)))?;
    draft.finish(end)
}

/// Takes one statement.
fn take(draft: &mut Draft, line: usize, words: &[&str]) -> Result<(), FileFault> {
    match words {
        ["router", name] => draft.router(name, None),
        ["router", name, ports] => {
            let ports = number("ports", ports, 0, PORTS_MAX as u16)?;
            draft.router(name, Some(ports))
        }
        ["link", from, "->", to] => draft.link(line, end(draft, from)?, end(draft, to)?, false),
        ["link", from, to] => draft.link(line, end(draft, from)?, end(draft, to)?, true),
        ["node", name, at] => draft.node(line, name, end(draft, at)?, None),
        ["node", name, inject, eject] => {
            let (inject, eject) = (end(draft, inject)?, end(draft, eject)?);
            draft.node(line, name, inject, Some(eject))
        }
        ["router", ..] => Err(FileFault::Form(ROUTER)),
        ["link", ..] => Err(FileFault::Form(LINK)),
        ["node", ..] => Err(FileFault::Form(NODE)),
        [END, ..] => Err(FileFault::Form(END)),
        other => Err(FileFault::Statement(other.concat().chars().take(20).collect())),
    }
}

/// An end of a link, `ROUTER` or `ROUTER:PORT`.
fn end(draft: &Draft, word: &str) -> Result<End, FileFault> {
    let (name, port) = word.split_once(':').map_or((word, None), |(name, port)| (name, Some(port)));
    let port = port.map(|port| number("a port", port, 0, PORTS_MAX as u16 - 1)).transpose()?;
    Ok(End { router: draft.find(name)?, port })
}

pub(super) fn write(named: &Named) -> String {
    let mut text = String::new();
    let end = |port: Port| format!("{}:{}", named.routers[port.router as usize], port.port);
    let mut add = |line: core::fmt::Arguments<'_>| {
        // Text takes all that is written to it.
        let _ = writeln!(text, "{line}");
    };
    for (name, ports) in named.routers.iter().zip(&named.topology.ports) {
        add(format_args!("router {name} {ports}"));
    }
    for (link, pair) in named.joints() {
        let arrow = if pair { "" } else { " ->" };
        add(format_args!("link {}{arrow} {}", end(link.from), end(link.to)));
    }
    for (name, node) in named.nodes.iter().zip(&named.topology.nodes) {
        if node.inject == node.eject {
            add(format_args!("node {name} {}", end(node.inject)));
        } else {
            add(format_args!("node {name} {} {}", end(node.inject), end(node.eject)));
        }
    }
    add(format_args!("{END}"));
    text
}
