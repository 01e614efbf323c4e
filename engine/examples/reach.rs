//! How far is every package from one that needs it? A breadth-first search of Debian's dependencies
//! with active messages: a rank that finds an edge tells the owner of its target.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/reach [GRAPH [VERTEX]]
//! ```
//!
//! The graph is the one of the example `ayre-pagerank`, from `xfce4` on, or a file that
//! `ayre-pagerank --write-edges` has written. A sync ends a level: behind it, the handlers of all
//! messages of other ranks have run. An allreduce then adds up how many vertices were found.
//! Another one gives all levels to rank 0, which compares them with those that it finds alone.
mod graph;

use ayre::active::{Handler, Messenger};
use ayre::collective::{Combine, Group};
use ayre::{PeerId, Port};
use graph::{FAR, Graph};
use std::error::Error;

/// Vertices that travel together.
const BATCH: usize = 250;

/// The state that handlers change.
struct Search {
    level: u32,
    /// The level of each vertex that this rank owns: vertex `v` is owned by rank `v % size`.
    levels: Vec<u32>,
    /// Vertices found at this level, here.
    found: Vec<u32>,
}

impl Search {
    fn visit(&mut self, vertex: u32) {
        let level = &mut self.levels[vertex as usize];
        if *level == FAR {
            *level = self.level;
            self.found.push(vertex);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (graph, root) = graph::of_arguments()?;
    let mut messenger = Messenger::new(Port::join()?);
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let visit = messenger.register("visit", |search: &mut Search, _, [], vertices| {
        graph::vertices(vertices).for_each(|vertex| search.visit(vertex));
    })?;
    let mut search = Search { level: 0, levels: vec![FAR; graph.names.len()], found: vec![] };
    if root as usize % size == rank {
        search.visit(root);
    }
    messenger.sync(&mut search)?;
    let all = messenger.collectives().group_of_all("all")?;
    spread(&mut messenger, &mut search, (all, visit), &graph)?;

    let mut levels = std::mem::take(&mut search.levels);
    messenger.collectives().allreduce(&mut search, all, Combine::Min, &mut levels)?;
    if rank == 0 {
        if levels != graph::levels(&graph, root) {
            return Err("the levels differ from those of one process".into());
        }
        graph::print(&levels);
        println!("{size} ranks: as far as one process finds them");
    }
    Ok(messenger.sync(&mut search)?)
}

/// Searches level by level, until one finds nothing new.
fn spread(
    messenger: &mut Messenger<Search>,
    search: &mut Search,
    (all, visit): (Group, Handler<0>),
    graph: &Graph,
) -> Result<(), Box<dyn Error>> {
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    loop {
        let frontier = std::mem::take(&mut search.found);
        search.level += 1;
        let mut batches = vec![vec![]; size];
        for target in frontier.iter().flat_map(|vertex| &graph.targets[*vertex as usize]) {
            batches[*target as usize % size].push(*target);
        }
        // A rank is told of a level only after it has begun it.
        messenger.sync(search)?;
        std::mem::take(&mut batches[rank]).into_iter().for_each(|own| search.visit(own));
        for (owner, batch) in (0..).map(PeerId).zip(&batches) {
            for vertices in batch.chunks(BATCH) {
                messenger.call(search, owner, visit, [], &graph::to_bytes(vertices))?;
            }
        }
        messenger.sync(search)?;
        let mut found = [search.found.len() as u64];
        messenger.collectives().allreduce(search, all, Combine::Sum, &mut found)?;
        if found == [0] {
            return Ok(());
        }
    }
}
