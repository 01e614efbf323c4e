//! Counts the longer words of files by a stream: rank 0 reads, the next rank splits and filters,
//! the one behind it counts, and rank 0 prints.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/pipeline [FILE...]
//! ```
//!
//! ```text
//!  rank 0              rank 1                         rank 2              rank 0
//!   files -- lines --> split -- words --> filter --> count -- totals ---> print
//! ```
//!
//! Without arguments it reads `spec/` and `docs/`.
mod words;

use ayre::active::Messenger;
use ayre::stream::{Flow, Hop, Input};
use ayre::{PeerId, Port};
use std::error::Error;
use words::Counts;

const SHORTEST: usize = 4; // bytes of a word that passes the filter

/// The state that stages change: counts at the rank that counts, totals at rank 0.
#[derive(Default)]
struct Table {
    counts: Counts,
    totals: Counts,
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let mut messenger = Messenger::new(port);
    let mut streams = messenger.streams();
    let split = streams.stage("split", split)?;
    let filter = streams.stage("filter", filter)?;
    let count = streams.stage("count", count)?;
    let print = streams.stage("print", print)?;
    let mut table = Table::default();
    messenger.sync(&mut table)?;
    if rank == 0 {
        let files = words::files(&["spec", "docs"])?;
        let peer = |rank: usize| PeerId((rank % size) as u16);
        let hops = [
            Hop::new(peer(1), split),
            Hop::new(peer(1), filter).arguments([SHORTEST as u64, 0, 0, 0]),
            Hop::new(peer(2), count),
            Hop::new(peer(0), print),
        ];
        let mut streams = messenger.streams();
        let stream = streams.lay(&mut table, &hops)?;
        for file in &files {
            for line in words::read(file)?.lines() {
                streams.push(&mut table, &stream, line.as_bytes())?;
            }
        }
        streams.close(&mut table, stream)?;
        words::report(&table.totals, &files, SHORTEST)?;
    }
    // The stages of the other ranks run in here.
    messenger.sync(&mut table)?;
    Ok(())
}

fn split(_: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    if let Input::Item(line) = input {
        words::words(&String::from_utf8_lossy(line)).for_each(|word| flow.emit(word));
    }
}

fn filter(_: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    if let Input::Item(word) = input
        && word.len() >= flow.arguments()[0] as usize
    {
        flow.emit(word);
    }
}

fn count(table: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    match input {
        Input::Item(word) => words::count(&mut table.counts, &String::from_utf8_lossy(word)),
        Input::End(_) => {
            for (word, count) in table.counts.drain() {
                flow.emit([&count.to_le_bytes()[..], word.as_bytes()].concat());
            }
        }
    }
}

fn print(table: &mut Table, _: &mut Flow<'_>, input: Input<'_>) {
    if let Input::Item(total) = input
        && let Some((count, word)) = total.split_first_chunk()
    {
        let word = String::from_utf8_lossy(word).into_owned();
        table.totals.insert(word, u64::from_le_bytes(*count));
    }
}
