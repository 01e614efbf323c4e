//! All ranks add to one counter, by reading and writing it under a lock. The sum is right only if
//! no rank ever comes between the get and the put of another one.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/lock
//! ```
use ayre::memory::{Lock, LockMode};
use ayre::{PeerId, Port, PostOptions, RegionOptions, RemoteRegion, Rights};
use std::error::Error;

const ROUNDS: u64 = 500;
/// Where the lock and the counter lie in the memory of rank 0.
const LOCK: u64 = 0;
const COUNTER: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let region = port.alloc(128, RegionOptions::new())?;
    if rank == 0 {
        // To itself too: its loopback is a connection like the others.
        for peer in port.peers().collect::<Vec<_>>() {
            port.share(peer, &region, 0..128, Rights::all(), 0)?;
        }
    }
    let shared = port.accept_region(PeerId(0), 0)?;

    let mut lock = Lock::new(&shared, LOCK, size as u32);
    for _ in 0..ROUNDS {
        lock.lock(&mut port, LockMode::Exclusive)?;
        let value = read(&mut port, &shared)?;
        port.put(&shared, COUNTER, &(value + 1).to_le_bytes(), PostOptions::new())?;
        lock.unlock(&mut port)?;
    }
    port.barrier()?;

    lock.lock(&mut port, LockMode::Shared)?;
    let sum = read(&mut port, &shared)?;
    lock.unlock(&mut port)?;
    assert_eq!(sum, ROUNDS * size as u64, "rank {rank} sees a sum that is wrong");
    port.barrier()?;
    if rank == 0 {
        println!("{size} ranks have added up to {sum}");
    }
    Ok(())
}

fn read(port: &mut Port, shared: &RemoteRegion) -> Result<u64, Box<dyn Error>> {
    let mut bytes = [0; 8];
    port.get(shared, COUNTER, &mut bytes, PostOptions::new())?;
    Ok(u64::from_le_bytes(bytes))
}
