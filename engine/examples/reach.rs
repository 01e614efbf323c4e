//! How far is every package from one that needs it? A breadth-first search of Debian's dependencies
//! with active messages: whoever finds an edge to a vertex tells its owner.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/reach [GRAPH [VERTEX]]
//! ```
//!
//! The graph is the one that the example `ayre-pagerank` comes with, from `xfce4` on, or a file
//! that `ayre-pagerank --write-edges` has written. A message brings vertices of one level; its
//! handler marks those that are new. A level ends with a sync, behind which all its messages have
//! been run; how many vertices it has found altogether, everybody tells everybody. Rank 0 has all
//! levels sent to it, and compares them with those that it finds alone.
use ayre::active::{Handler, Messenger};
use ayre::{PeerId, Port};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Vertices that travel together.
const BATCH: usize = 250;
const FAR: u32 = u32::MAX;

struct Graph {
    names: Vec<String>,
    /// By source.
    targets: Vec<Vec<u32>>,
}

/// What handlers change. Vertex `v` is at place `v / size` of rank `v % size`.
struct Search {
    size: usize,
    level: u32,
    levels: Vec<u32>,
    /// Found at this level, here.
    found: Vec<u32>,
    /// And by the others.
    elsewhere: u64,
    /// At rank 0: levels of all, by rank.
    all: Vec<Vec<u32>>,
}

impl Search {
    fn visit(&mut self, vertex: u32) {
        let level = &mut self.levels[vertex as usize / self.size];
        if *level == FAR {
            *level = self.level;
            self.found.push(vertex);
        }
    }
}

struct Handlers {
    visit: Handler<0>,
    found: Handler<1>,
    gather: Handler<0>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let graph = read(&given.next().map_or_else(of_pagerank, PathBuf::from))?;
    let root = given.next().unwrap_or_else(|| "xfce4".to_owned());
    let root = graph.names.iter().position(|name| *name == root).ok_or("no such vertex")? as u32;
    let port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let own = (graph.names.len() + size - 1 - rank) / size;
    let (levels, all) = (vec![FAR; own], vec![vec![]; size]);
    let mut search = Search { size, level: 0, levels, found: vec![], elsewhere: 0, all };
    let mut messenger = Messenger::new(port);
    let handlers = register(&mut messenger)?;
    messenger.sync(&mut search)?;
    let start = Instant::now();
    spread(&mut messenger, &mut search, &handlers, (&graph, root))?;
    let time = start.elapsed();
    let levels: Vec<u8> = search.levels.iter().flat_map(|level| level.to_le_bytes()).collect();
    if rank > 0 {
        messenger.call(&mut search, PeerId(0), handlers.gather, [], &levels)?;
    } else {
        search.all[0] = numbers(&levels);
    }
    messenger.sync(&mut search)?;
    if rank == 0 {
        check(&search.all, &graph, root, time)?;
    }
    Ok(())
}

fn register(messenger: &mut Messenger<Search>) -> Result<Handlers, Box<dyn Error>> {
    let visit = messenger.register("visit", |search: &mut Search, _, [], vertices| {
        numbers(vertices).into_iter().for_each(|vertex| search.visit(vertex));
    })?;
    let found = messenger.register("found", |search: &mut Search, _, [count], _| {
        search.elsewhere += count;
    })?;
    let gather = messenger.register("gather", |search: &mut Search, call, [], levels| {
        search.all[call.source().index()] = numbers(levels);
    })?;
    Ok(Handlers { visit, found, gather })
}

/// Level by level, until one finds nothing new.
fn spread(
    messenger: &mut Messenger<Search>,
    search: &mut Search,
    handlers: &Handlers,
    (graph, root): (&Graph, u32),
) -> Result<(), Box<dyn Error>> {
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let bar = if rank == 0 { ProgressBar::no_length() } else { ProgressBar::hidden() };
    if root as usize % size == rank {
        search.visit(root);
    }
    loop {
        let frontier = std::mem::take(&mut search.found);
        search.level += 1;
        // Nobody is told of the next level before he is there himself.
        messenger.sync(search)?;
        let mut batches = vec![vec![]; size];
        for target in frontier.iter().flat_map(|vertex| &graph.targets[*vertex as usize]) {
            let owner = *target as usize % size;
            batches[owner].push(*target);
            if batches[owner].len() == BATCH {
                tell(messenger, search, (owner, handlers.visit), &mut batches[owner])?;
            }
        }
        for (owner, batch) in batches.iter_mut().enumerate() {
            tell(messenger, search, (owner, handlers.visit), batch)?;
        }
        messenger.sync(search)?;
        let found = search.found.len() as u64;
        for peer in (0..size).filter(|peer| *peer != rank) {
            messenger.call(search, PeerId(peer as u16), handlers.found, [found], &[])?;
        }
        messenger.sync(search)?;
        let new = found + std::mem::take(&mut search.elsewhere);
        bar.inc(new);
        if new == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
    }
}

fn tell(
    messenger: &mut Messenger<Search>,
    search: &mut Search,
    (owner, visit): (usize, Handler<0>),
    batch: &mut Vec<u32>,
) -> Result<(), Box<dyn Error>> {
    if owner == messenger.port().rank() {
        batch.iter().for_each(|vertex| search.visit(*vertex));
    } else if !batch.is_empty() {
        let bytes: Vec<u8> = batch.iter().flat_map(|vertex| vertex.to_le_bytes()).collect();
        messenger.call(search, PeerId(owner as u16), visit, [], &bytes)?;
    }
    batch.clear();
    Ok(())
}

/// Rank 0 alone does it again.
fn check(all: &[Vec<u32>], graph: &Graph, root: u32, time: Duration) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut expected = vec![FAR; graph.names.len()];
    let (mut frontier, mut level) = (vec![root], 0);
    expected[root as usize] = 0;
    while !frontier.is_empty() {
        level += 1;
        let mut next = vec![];
        for target in frontier.iter().flat_map(|vertex| &graph.targets[*vertex as usize]) {
            if expected[*target as usize] == FAR {
                expected[*target as usize] = level;
                next.push(*target);
            }
        }
        frontier = next;
    }
    let alone = start.elapsed();
    let mut levels = BTreeMap::<u32, u64>::new();
    for (vertex, expected) in expected.iter().enumerate() {
        if all[vertex % all.len()][vertex / all.len()] != *expected {
            return Err(format!("{} has another level", graph.names[vertex]).into());
        }
        *levels.entry(*expected).or_default() += 1;
    }
    for (level, count) in &levels {
        let level = if *level == FAR { "none".to_owned() } else { level.to_string() };
        println!("level {level:>4}: {count} vertices");
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!("{} ranks: {:.0} us; one process: {:.0} us", all.len(), micros(time), micros(alone));
    println!("as far as one process finds them");
    Ok(())
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn of_pagerank() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pagerank/data/debian-xfce.edges")
}

/// Lines of one name are vertices, lines of two are edges.
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
