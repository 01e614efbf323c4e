//! Long messages by rendezvous: the sender announces its data, and the receiver gets it from the
//! sender's memory. The responder notification of the get tells the sender that the buffer is free.
//! Each rank sends to the next one of a ring. The get copies from region to region, once.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/rendezvous
//! ```
use ayre::memory::Classes;
use ayre::{PeerId, Port, PostOptions, RegionOptions, Rights};
use std::error::Error;

const LEN: usize = 1 << 18;
const ROUNDS: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut port = Port::join()?;
    let (rank, size) = (port.rank(), port.size());
    let next = port.peer((rank + 1) % size).ok_or("a rank of the job")?;
    let previous = port.peer((rank + size - 1) % size).ok_or("a rank of the job")?;
    let outbox = port.alloc(LEN, RegionOptions::new())?;
    let inbox = port.alloc(LEN, RegionOptions::new())?;
    port.share(next, &outbox, 0..LEN, Rights::READ | Rights::NOTIFY, 0)?;
    let source = port.accept_region(previous, 0)?;

    for round in 0..ROUNDS {
        // Lengths differ, so they are announced.
        let len = LEN - (rank * 7919 + round as usize * 104_729) % (LEN / 2);
        outbox.write(0, &data(rank, round, len));
        port.send_wait(next, round, &(len as u64).to_le_bytes())?;

        let mut announced = [0; 8];
        port.recv(&mut announced, None)?;
        let announced = u64::from_le_bytes(announced) as usize;
        let options = PostOptions::new().completer().responder().tag(round);
        port.get(&source, 0, inbox.slice(0..announced), options)?;
        wait_for_both(&mut port, previous, next)?;

        let mut received = vec![0; announced];
        inbox.read(0, &mut received);
        let expected = data(previous.index(), round, announced);
        assert!(received == expected, "rank {rank} has received something else");
    }
    port.barrier()?;
    if rank == 0 {
        println!("{ROUNDS} messages of up to {LEN} bytes to each of {size} ranks");
    }
    Ok(())
}

/// Waits until our get has landed and the next rank's get has read our buffer.
fn wait_for_both(port: &mut Port, previous: PeerId, next: PeerId) -> Result<(), Box<dyn Error>> {
    for _ in 0..2 {
        let notification = port.wait_notification(None)?;
        match notification.class {
            Classes::COMPLETER => assert_eq!(notification.source, previous),
            Classes::RESPONDER => assert_eq!(notification.source, next),
            _ => return Err(format!("{notification:?}").into()),
        }
    }
    Ok(())
}

fn data(rank: usize, round: u32, len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + rank * 17 + round as usize) as u8).collect()
}
