//! Counts words: all ranks but one read files and enqueue lines, rank 0 takes them from its remote
//! queue and counts. Producers neither wait for each other nor ask before they enqueue.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/work_queue [FILE...]
//! ```
//!
//! Without arguments it counts the words of the contract, this repository's `spec/`.
mod words;

use ayre::{PeerId, Port, PostError, Queue, RemoteQueue};
use std::error::Error;
use std::path::Path;
use words::Counts;

const CAPACITY: usize = 64 << 10;
/// The last record of a producer.
const END: &[u8] = b"\0";

fn main() -> Result<(), Box<dyn Error>> {
    let files = words::files(&["spec"])?;
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
        words::report(&counts, &files, 0)?;
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
    for line in words::read(file)?.lines() {
        let mut record = String::new();
        for word in words::words(line) {
            if !record.is_empty() && record.len() + 1 + word.len() > queue.record_max() {
                enqueue(port, queue, record.as_bytes())?;
                record.clear();
            }
            record.push_str(&word);
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

/// Counts the lines of all producers until each has sent its last record.
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
            line => words::count(&mut counts, std::str::from_utf8(line)?),
        }
    }
    Ok(counts)
}
