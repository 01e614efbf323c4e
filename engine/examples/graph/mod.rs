//! A directed graph with names, and a breadth-first search in it by one process.
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The level of a vertex that cannot be reached.
pub(crate) const FAR: u32 = u32::MAX;

pub(crate) struct Graph {
    pub(crate) names: Vec<String>,
    /// Targets of edges, by their source.
    pub(crate) targets: Vec<Vec<u32>>,
}

/// The graph and the vertex that the command line names, or Debian's packages and `xfce4`.
pub(crate) fn of_arguments() -> Result<(Graph, u32), Box<dyn Error>> {
    let debian = "../examples/pagerank/data/debian-xfce.edges";
    let debian = Path::new(env!("CARGO_MANIFEST_DIR")).join(debian);
    let mut given = std::env::args().skip(1);
    let graph = read(&given.next().map_or(debian, PathBuf::from))?;
    let root = given.next().unwrap_or_else(|| "xfce4".to_owned());
    let root = graph.names.iter().position(|name| *name == root).ok_or("no such vertex")?;
    Ok((graph, root as u32))
}

/// Reads a graph: lines of one name are vertices, lines of two are edges.
fn read(path: &Path) -> Result<Graph, Box<dyn Error>> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut graph = Graph { names: vec![], targets: vec![] };
    let mut numbers = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut ends = line.split_whitespace().map(|name| {
            *numbers.entry(name).or_insert_with(|| {
                graph.names.push(name.to_owned());
                graph.targets.push(vec![]);
                graph.names.len() - 1
            })
        });
        let (source, target) = (ends.next(), ends.next());
        if let (Some(source), Some(target)) = (source, target) {
            graph.targets[source].push(target as u32);
        }
    }
    Ok(graph)
}

/// The levels of all vertices.
pub(crate) fn levels(graph: &Graph, root: u32) -> Vec<u32> {
    let mut levels = vec![FAR; graph.names.len()];
    let (mut frontier, mut level) = (vec![root], 0);
    levels[root as usize] = 0;
    while !frontier.is_empty() {
        level += 1;
        let mut next = vec![];
        for target in frontier.iter().flat_map(|vertex| &graph.targets[*vertex as usize]) {
            if levels[*target as usize] == FAR {
                levels[*target as usize] = level;
                next.push(*target);
            }
        }
        frontier = next;
    }
    levels
}

/// Prints how many vertices each level has.
pub(crate) fn print(levels: &[u32]) {
    let mut counts = BTreeMap::<u32, u64>::new();
    for level in levels {
        *counts.entry(*level).or_default() += 1;
    }
    for (level, count) in &counts {
        let level = if *level == FAR { "none".to_owned() } else { level.to_string() };
        println!("level {level:>4}: {count} vertices");
    }
}

/// Vertices as a message carries them.
pub(crate) fn to_bytes(vertices: &[u32]) -> Vec<u8> {
    vertices.iter().flat_map(|vertex| vertex.to_le_bytes()).collect()
}

/// The vertices of a message.
pub(crate) fn vertices(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|vertex| u32::from_le_bytes(*vertex))
}
