//! Two ranks write a greeting into each other's memory.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 2 -- target/release/examples/hello
//! ```
use ayre::{Port, PostOptions, RegionOptions, Rights};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut port = Port::join()?; // this process is one of those that `ayre run` started
    let peer = port.peer(port.rank() ^ 1).ok_or("start an even number of ranks")?;

    let region = port.alloc(4096, RegionOptions::new())?; // memory that others may reach
    port.share(peer, &region, 0..4096, Rights::all(), 0)?; // share ours, under the name 0
    let remote = port.accept_region(peer, 0)?; // and accept theirs

    port.put(&remote, 0, b"hello, neighbour", PostOptions::new().completer())?; // into their memory
    port.wait_notification(None)?; // their put has landed in our memory
    let mut text = [0; 16];
    region.read(0, &mut text);
    println!("rank {}: {}", port.rank(), String::from_utf8_lossy(&text));
    Ok(())
}
