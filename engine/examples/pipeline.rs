//! Counts the longer words of files by a stream: rank 0 reads, the next rank splits and sieves, the
//! one after that counts, and rank 0 prints.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/pipeline [FILE...]
//! ```
//!
//! ```text
//!  rank 0              rank 1                        rank 2              rank 0
//!   files -- pieces --> split -- words --> sieve --> count -- lines ----> print
//!                          '-- recycled --'              at the end
//! ```
//!
//! Without arguments it reads the contract and the pages of this repository. Where there are fewer
//! than three ranks, they take turns. Rank 0 compares what it prints with what it counts alone.
mod files;

use ayre::active::Messenger;
use ayre::stream::{Flow, Hop, Input};
use ayre::{PeerId, Port};
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of text that travel together.
const PIECE: usize = 16 << 10;
/// Bytes of a word that is not sieved out.
const SHORTEST: usize = 4;

type Counts = HashMap<Vec<u8>, u64>;

/// What stages change.
#[derive(Default)]
struct Table {
    /// At the rank that counts.
    counts: Counts,
    /// At rank 0, what it prints.
    lines: Counts,
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let mut messenger = Messenger::new(port);
    let mut streams = messenger.streams();
    let split = streams.stage("split", split)?;
    let sieve = streams.stage("sieve", sieve)?;
    let count = streams.stage("count", count)?;
    let print = streams.stage("print", print)?;
    let mut table = Table::default();
    messenger.sync(&mut table)?;
    if rank == 0 {
        let files = files::named_or_in(&["spec", "docs"])?;
        let peer = |rank: usize| PeerId((rank % size) as u16);
        let hops = [
            Hop::new(peer(1), split),
            Hop::new(peer(1), sieve).arguments([SHORTEST as u64, 0, 0, 0]),
            Hop::new(peer(2), count),
            Hop::new(peer(0), print),
        ];
        let start = Instant::now();
        let mut streams = messenger.streams();
        let stream = streams.lay(&mut table, &hops)?;
        let bar = ProgressBar::new(files.len() as u64);
        for file in &files {
            for piece in pieces(&read(file)?) {
                streams.push(&mut table, &stream, piece)?;
            }
            bar.inc(1);
        }
        streams.close(&mut table, stream)?;
        bar.finish_and_clear();
        let time = start.elapsed();
        check(&table.lines, &files)?;
        println!("{size} ranks: {:.1} ms", time.as_secs_f64() * 1e3);
        println!("counted as one process counts them");
    }
    // The stages run in here, at the other ranks.
    messenger.sync(&mut table)?;
    Ok(())
}

fn split(_: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    if let Input::Item(text) = input {
        words(text).for_each(|word| flow.emit(word));
    }
}

fn sieve(_: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    let shortest = flow.arguments()[0] as usize;
    match input {
        Input::Item(word) if word.len() >= shortest => flow.emit(word),
        _ => {}
    }
}

fn count(table: &mut Table, flow: &mut Flow<'_>, input: Input<'_>) {
    match input {
        Input::Item(word) => *table.counts.entry(word.to_vec()).or_default() += 1,
        Input::End(_) => {
            for (word, count) in table.counts.drain() {
                flow.emit([&count.to_le_bytes()[..], &word].concat());
            }
        }
    }
}

fn print(table: &mut Table, _: &mut Flow<'_>, input: Input<'_>) {
    if let Input::Item(line) = input
        && let Some((count, word)) = line.split_first_chunk()
    {
        table.lines.insert(word.to_vec(), u64::from_le_bytes(*count));
    }
}

/// Rank 0 alone does it again.
fn check(lines: &Counts, files: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let mut expected = Counts::new();
    for file in files {
        for word in words(&read(file)?).filter(|word| word.len() >= SHORTEST) {
            *expected.entry(word).or_default() += 1;
        }
    }
    if *lines != expected {
        return Err("the counts differ from those of one process".into());
    }
    let mut most: Vec<_> = lines.iter().collect();
    most.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (word, count) in most.iter().take(5) {
        println!("{count:8} {}", String::from_utf8_lossy(word));
    }
    let total: u64 = lines.values().sum();
    println!("{total} words, {} different, in {} files", lines.len(), files.len());
    Ok(())
}

/// A text in parts that end where words do.
fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = PIECE.min(rest.len());
        let end = rest[from..].iter().position(|byte| !byte.is_ascii_alphanumeric());
        let (piece, behind) = rest.split_at(end.map_or(rest.len(), |end| from + end));
        rest = behind;
        if piece.is_empty() { None } else { Some(piece) }
    })
}

fn words(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let parts = text.split(|byte| !byte.is_ascii_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(<[u8]>::to_ascii_lowercase)
}

fn read(file: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()).into())
}
