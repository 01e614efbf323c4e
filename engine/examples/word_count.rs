//! Counts the words of files with active messages: a word has an owner among the ranks, and whoever
//! reads it tells him.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/word_count [FILE...]
//! ```
//!
//! Without arguments it counts the contract and the sources of this repository. A message brings a
//! batch of words; its handler counts them, in polls of a rank that is reading files itself. Rank 0
//! then has all counts sent to it, in messages as long as they are, and compares them with what it
//! counts alone.
mod files;

use ayre::active::{Handler, Messenger};
use ayre::{PeerId, Port};
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of words that travel together.
const BATCH: usize = 1000;

type Counts = HashMap<String, u64>;

/// What handlers change.
#[derive(Default)]
struct Words {
    /// Of those that this rank owns.
    own: Counts,
    /// At rank 0: of all.
    all: Counts,
}

impl Words {
    fn add(&mut self, text: &[u8]) {
        for word in words(&String::from_utf8_lossy(text)) {
            *self.own.entry(word).or_default() += 1;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let files = files::named_or_in(&["spec", "docs", "proto/src", "engine/src"])?;
    let port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let mut messenger = Messenger::new(port);
    let add = messenger.register("add", |words: &mut Words, _, [], text| words.add(text))?;
    let gather = messenger.register("gather", |words: &mut Words, _, [], lines| {
        words.all.extend(parse(lines));
    })?;
    let mut words = Words::default();
    messenger.sync(&mut words)?;
    let start = Instant::now();
    let mine: Vec<_> = files.iter().skip(rank).step_by(size).collect();
    count(&mut messenger, &mut words, add, &mine)?;
    // Whatever anybody has told us is counted.
    messenger.sync(&mut words)?;
    let time = start.elapsed();
    let own = write(&words.own);
    match messenger.port().peer(0) {
        Some(first) if rank > 0 => messenger.call(&mut words, first, gather, [], &own)?,
        _ => words.all.extend(parse(&own)),
    }
    messenger.sync(&mut words)?;
    if rank == 0 {
        check(&words.all, &files, size, time)?;
    }
    Ok(())
}

/// Reads files, and tells each word's owner.
fn count(
    messenger: &mut Messenger<Words>,
    words: &mut Words,
    add: Handler<0>,
    files: &[&PathBuf],
) -> Result<(), Box<dyn Error>> {
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let mut batches = vec![String::new(); size];
    let bar = bar(rank, files.len());
    for file in files {
        for word in self::words(&read(file)?) {
            let owner = owner(&word, size);
            let batch = &mut batches[owner];
            if batch.len() + word.len() + 1 > BATCH {
                tell(messenger, words, (owner, add), batch)?;
            }
            batch.push_str(&word);
            batch.push(' ');
        }
        bar.inc(1);
    }
    for (owner, batch) in batches.iter_mut().enumerate() {
        tell(messenger, words, (owner, add), batch)?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn tell(
    messenger: &mut Messenger<Words>,
    words: &mut Words,
    (owner, add): (usize, Handler<0>),
    batch: &mut String,
) -> Result<(), Box<dyn Error>> {
    if owner == messenger.port().rank() {
        words.add(batch.as_bytes());
    } else {
        messenger.call(words, PeerId(owner as u16), add, [], batch.as_bytes())?;
    }
    batch.clear();
    Ok(())
}

/// Rank 0 alone does it again.
fn check(
    all: &Counts,
    files: &[PathBuf],
    size: usize,
    time: Duration,
) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut expected = Counts::new();
    for file in files {
        for word in words(&read(file)?) {
            *expected.entry(word).or_default() += 1;
        }
    }
    let alone = start.elapsed();
    if *all != expected {
        return Err("the counts differ from those of one process".into());
    }
    let total: u64 = all.values().sum();
    let mut most: Vec<_> = all.iter().collect();
    most.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (word, count) in most.iter().take(5) {
        println!("{count:8} {word}");
    }
    println!("{total} words, {} different, in {} files", all.len(), files.len());
    println!("{size} ranks: {:.1} ms; one process: {:.1} ms", millis(time), millis(alone));
    println!("counted as one process counts them");
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The same in every process.
fn owner(word: &str, size: usize) -> usize {
    ayre::active::id_of(word) as usize % size
}

fn write(counts: &Counts) -> Vec<u8> {
    let lines = counts.iter().map(|(word, count)| format!("{count} {word}\n"));
    lines.collect::<String>().into_bytes()
}

fn parse(lines: &[u8]) -> Counts {
    let text = String::from_utf8_lossy(lines);
    let line = |line: &str| {
        let (count, word) = line.split_once(' ')?;
        Some((word.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn read(file: &Path) -> Result<String, Box<dyn Error>> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn bar(rank: usize, files: usize) -> ProgressBar {
    if rank == 0 { ProgressBar::new(files as u64) } else { ProgressBar::hidden() }
}
