//! Counts words: all ranks but one read files and enqueue lines, rank 0 takes them from its remote
//! queue and counts. No producer waits for another one, and none asks before it enqueues.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/work_queue [FILE...]
//! ```
//!
//! Without arguments it counts the words of the contract, this repository's `spec/`.
mod files;

use ayre::{PeerId, Port, PostError, Queue, RemoteQueue};
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const CAPACITY: usize = 64 << 10;
/// A record that is no line: its producer has no more.
const END: &[u8] = b"\0";
const SHOWN: usize = 5;

type Counts = HashMap<String, u64>;

fn main() -> Result<(), Box<dyn Error>> {
    let files = files::named_or_in(&["spec"])?;
    let mut port = Port::join()?;
    let (rank, producers) = (port.rank(), port.size() - 1);
    if producers == 0 {
        return Err("start two ranks or more".into());
    }
    if rank == 0 {
        let mut queue = port.create_queue(CAPACITY)?;
        for producer in 1..=producers {
            let producer = port.peer(producer).ok_or("a rank of the job")?;
            port.share_queue(producer, &mut queue, 0)?;
        }
        let counts = consume(&mut port, &mut queue, producers)?;
        report(&counts, &files, producers)?;
    } else {
        let mut queue = port.accept_queue(PeerId(0), 0)?;
        for file in files.iter().skip(rank - 1).step_by(producers) {
            produce(&mut port, &mut queue, file)?;
        }
        enqueue(&mut port, &mut queue, END)?;
    }
    port.barrier()?;
    Ok(())
}

/// Enqueues the lines of a file, long ones in parts that end with a word.
fn produce(port: &mut Port, queue: &mut RemoteQueue, file: &Path) -> Result<(), Box<dyn Error>> {
    let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
    for line in text.lines() {
        let mut record = String::new();
        for word in words(line) {
            if !record.is_empty() && record.len() + 1 + word.len() > queue.record_max() {
                enqueue(port, queue, record.as_bytes())?;
                record.clear();
            }
            record.push_str(word);
            record.push(' ');
        }
        if !record.is_empty() {
            enqueue(port, queue, record.trim_end().as_bytes())?;
        }
    }
    Ok(())
}

/// Enqueues a record as soon as the consumer has made room.
fn enqueue(port: &mut Port, queue: &mut RemoteQueue, record: &[u8]) -> Result<(), PostError> {
    loop {
        match port.enqueue(queue, record) {
            Err(PostError::Busy(_)) => {
                port.progress();
                std::thread::yield_now();
            }
            result => return result,
        }
    }
}

fn consume(
    port: &mut Port,
    queue: &mut Queue,
    mut producers: usize,
) -> Result<Counts, Box<dyn Error>> {
    let mut counts = Counts::new();
    let mut buffer = vec![0; queue.record_max()];
    while producers > 0 {
        let record = port.dequeue_wait(queue, &mut buffer, None)?;
        match &buffer[..record.len] {
            END => producers -= 1,
            line => count(&mut counts, std::str::from_utf8(line)?),
        }
    }
    Ok(counts)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn count(counts: &mut Counts, line: &str) {
    for word in words(line) {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
}

/// Shows the commonest words, and compares with a count of the same files made here.
fn report(counts: &Counts, files: &[PathBuf], producers: usize) -> Result<(), Box<dyn Error>> {
    let mut alone = Counts::new();
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        text.lines().for_each(|line| count(&mut alone, line));
    }
    assert_eq!(*counts, alone, "the queue has lost or changed words");
    let mut common: Vec<_> = counts.iter().collect();
    common.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), (*word).clone()));
    let total: u64 = counts.values().sum();
    println!("{total} words of {} files by {producers} producers", files.len());
    for (word, count) in common.into_iter().take(SHOWN) {
        println!("{count:8} {word}");
    }
    Ok(())
}
