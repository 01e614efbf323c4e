//! Graphs as text: one edge a line.
//!
//! ```text
//! # A comment reaches from a word that starts with '#' to the end of the line.
//! source target      # two names, separated by blanks or tabs: an edge
//! alone              # one name: a vertex, with or without edges elsewhere
//! ```
//!
//! A name is any text in UTF-8 without white space that does not start with `#`; a number is a name
//! like any other. Empty lines mean nothing. Vertices are numbered in the order in which their
//! names first appear.

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;

use crate::graph::{Builder, Dropped, Graph};

/// Reads an edge list; `progress` counts bytes.
pub(crate) fn read(mut reader: impl BufRead, progress: &ProgressBar) -> Result<(Graph, Dropped)> {
    let mut builder = Builder::default();
    let mut line = String::new();
    for number in 1_u64.. {
        line.clear();
        let bytes = reader.read_line(&mut line).with_context(|| format!("line {number}"))?;
        if bytes == 0 {
            break;
        }
        add(&mut builder, &line).with_context(|| format!("line {number}"))?;
        progress.inc(bytes as u64);
    }
    Ok(builder.build())
}

/// Writes an edge list from which `read` makes an equal graph.
///
/// All vertices come first, a name a line: so they keep their numbers, and those without edges
/// are not lost.
pub(crate) fn write(graph: &Graph, mut writer: impl Write) -> io::Result<()> {
    writeln!(writer, "# {} vertices, {} edges: source target", graph.vertices(), graph.edges())?;
    for vertex in 0..graph.vertices() {
        writeln!(writer, "{}", graph.name(vertex))?;
    }
    for source in 0..graph.vertices() {
        for &target in graph.targets(source) {
            writeln!(writer, "{} {}", graph.name(source), graph.name(target))?;
        }
    }
    writer.flush()
}

fn add(builder: &mut Builder, line: &str) -> Result<()> {
    let mut names = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    let Some(source) = names.next() else { return Ok(()) };
    let target = names.next();
    if let Some(extra) = names.next() {
        bail!("'{extra}' follows the two names of an edge");
    }
    let source = builder.vertex(source)?;
    if let Some(target) = target {
        let target = builder.vertex(target)?;
        builder.edge(source, target);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn parse(text: &[u8]) -> Result<(Graph, Dropped)> {
        read(text, &ProgressBar::hidden())
    }

    #[test]
    fn accepts_the_documented_edge_format() {
        let text =
            "# heading\n\n 1\t2 # trailing\r\n2 3\n1 2\nalone\n3 3\n  #\nc# d\u{e9}j\u{e0}-vu";
        let (graph, dropped) = parse(text.as_bytes()).unwrap();
        let names: Vec<&str> = (0..graph.vertices()).map(|vertex| graph.name(vertex)).collect();
        assert_eq!(names, ["1", "2", "3", "alone", "c#", "d\u{e9}j\u{e0}-vu"]);
        assert_eq!(graph.edges(), 3);
        assert_eq!(dropped, Dropped { duplicates: 1, self_loops: 1 });
        assert_eq!(parse(b"").unwrap().0.vertices(), 0);
    }

    #[test]
    fn errors_name_the_line() {
        let table: [(&[u8], &str); 3] = [
            (b"a b\nb c 0.5\n", "line 2: '0.5' follows the two names of an edge"),
            (b"# x\n\na b c # d", "line 3: 'c' follows the two names of an edge"),
            (b"a b\n\xff\xfe\n", "line 2: stream did not contain valid UTF-8"),
        ];
        for (text, expected) in table {
            assert_eq!(format!("{:#}", parse(text).unwrap_err()), expected);
        }
    }

    #[test]
    fn a_written_graph_reads_back_equal() {
        for graph in
            [testing::graph("b a  a c  c b"), testing::scrambled(50, 90), testing::graph("")]
        {
            let mut text = Vec::new();
            write(&graph, &mut text).unwrap();
            assert_eq!(parse(&text).unwrap(), (graph, Dropped::default()));
        }
    }
}
