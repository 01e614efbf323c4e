//! Counts the words of files with active messages. Each word has an owner among the ranks; the rank
//! that reads a word sends it there, where a handler counts it.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/word_count [FILE...]
//! ```
//!
//! Without arguments it counts the contract and the sources of this repository. Messages bring
//! batches of words. Rank 0 then receives all counts, in messages as long as they are, and compares
//! them with its own count of all files.
mod words;

use ayre::active::{Handler, Messenger, id_of};
use ayre::{PeerId, Port};
use std::error::Error;
use std::path::PathBuf;
use words::Counts;

/// Bytes of words that travel together.
const BATCH: usize = 1000;

/// The state that handlers change.
#[derive(Default)]
struct Table {
    /// Counts of the words that this rank owns.
    own: Counts,
    /// At rank 0: counts of all words.
    all: Counts,
}

fn main() -> Result<(), Box<dyn Error>> {
    let files = words::files(&["spec", "docs", "proto/src", "engine/src"])?;
    let mut messenger = Messenger::new(Port::join()?);
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let add = messenger.register("add", |table: &mut Table, _, [], text| {
        words::count(&mut table.own, &String::from_utf8_lossy(text));
    })?;
    let gather = messenger.register("gather", |table: &mut Table, _, [], lines| {
        table.all.extend(parse(lines));
    })?;
    let mut table = Table::default();
    messenger.sync(&mut table)?;
    let mine: Vec<_> = files.iter().skip(rank).step_by(size).collect();
    send_words(&mut messenger, &mut table, add, &mine)?;
    // Behind a sync, the handlers of all earlier messages of other ranks have run.
    messenger.sync(&mut table)?;
    let own = std::mem::take(&mut table.own);
    if rank == 0 {
        table.all.extend(own);
    } else {
        let lines: String = own.iter().map(|(word, count)| format!("{count} {word}\n")).collect();
        messenger.call(&mut table, PeerId(0), gather, [], lines.as_bytes())?;
    }
    messenger.sync(&mut table)?;
    if rank == 0 {
        words::report(&table.all, &files, 0)?;
    }
    Ok(())
}

/// Reads files; counts the words that this rank owns, and sends the others to their owners.
fn send_words(
    messenger: &mut Messenger<Table>,
    table: &mut Table,
    add: Handler<0>,
    files: &[&PathBuf],
) -> Result<(), Box<dyn Error>> {
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let mut batches = vec![String::new(); size];
    for file in files {
        for word in words::words(&words::read(file)?) {
            let owner = id_of(&word) as usize % size;
            if owner == rank {
                *table.own.entry(word).or_default() += 1;
                continue;
            }
            let batch = &mut batches[owner];
            if batch.len() + word.len() + 1 > BATCH {
                messenger.call(table, PeerId(owner as u16), add, [], batch.as_bytes())?;
                batch.clear();
            }
            batch.push_str(&word);
            batch.push(' ');
        }
    }
    for (owner, batch) in (0..).map(PeerId).zip(&batches).filter(|(_, batch)| !batch.is_empty()) {
        messenger.call(table, owner, add, [], batch.as_bytes())?;
    }
    Ok(())
}

/// Lines of a count and a word.
fn parse(lines: &[u8]) -> Counts {
    let line = |line: &str| {
        let (count, word) = line.split_once(' ')?;
        Some((word.to_owned(), count.parse().ok()?))
    };
    String::from_utf8_lossy(lines).lines().filter_map(line).collect()
}
