//! A work queue with priorities, fed by several producers with one deposit message a task. The
//! interface of rank 0 puts the task into the queue of its priority, and wakes rank 0 only if no
//! task as urgent is pending.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/priorities
//! ```
//!
//! This is the example with which the hybrid deposit paper begins; `ranked/mod.rs` has the stored
//! programs. With plain operations a task takes a compare-and-swap for its place, a put, an atomic
//! on the bits of the queues that are not empty, and always a notification.
mod ranked;

use ayre::deposit::{Deposit, RemoteInlet};
use ayre::{PeerId, Port, PostError};
use ranked::{PRIORITIES, RankedQueue};
use std::error::Error;

const TASKS: u64 = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut port = Port::join()?;
    let producers = port.size() - 1;
    if producers == 0 {
        return Err("start two ranks or more".into());
    }
    if port.rank() == 0 {
        let wakes = consume(&mut port, producers)?;
        println!("{} tasks of {producers} producers, {wakes} wakes", TASKS * producers as u64);
    } else {
        produce(&mut port)?;
    }
    port.barrier()?;
    Ok(())
}

/// Takes the most urgent task until all have been taken. Returns how often it had to be woken.
fn consume(port: &mut Port, producers: usize) -> Result<u64, Box<dyn Error>> {
    let mut queue = RankedQueue::open(port)?;
    port.barrier()?;
    let mut next = vec![[0; PRIORITIES]; producers + 1];
    let mut wakes = 0;
    for _ in 0..TASKS * producers as u64 {
        let (priority, [producer, number]) = loop {
            if let Some(task) = queue.take() {
                break task;
            }
            port.wait_notification(None)?;
            wakes += 1;
        };
        let expected = &mut next[producer as usize][priority];
        assert!(number >= *expected, "tasks of one priority come in their producer's order");
        *expected = number + 1;
    }
    assert!(queue.take().is_none(), "each task comes once");
    Ok(wakes)
}

fn produce(port: &mut Port) -> Result<(), Box<dyn Error>> {
    let inlets: Vec<RemoteInlet> = (0..PRIORITIES as u64)
        .map(|priority| port.accept_inlet(PeerId(0), priority))
        .collect::<Result<_, _>>()?;
    // No message finds its depot half set up.
    port.barrier()?;
    let rank = port.rank() as u64;
    for number in 0..TASKS {
        // Most tasks have time.
        let priority = (number * 0x9e37_79b9 + rank).trailing_zeros() as usize % PRIORITIES;
        let task = [rank, number].map(u64::to_le_bytes).concat();
        while !post(port, &inlets[priority], &task)? {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Sends a task. Returns false where its queue is full.
fn post(port: &mut Port, inlet: &RemoteInlet, task: &[u8]) -> Result<bool, PostError> {
    match port.deposit_fetch(inlet, &Deposit::enter(0).data(task), &mut []) {
        Ok(answer) => Ok(!answer.declined),
        Err(PostError::Busy(_)) => {
            port.progress();
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}
