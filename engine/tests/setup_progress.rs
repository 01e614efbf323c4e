//! A port that waits for a peer in set-up serves those that it has.
use ayre::*;
use std::path::PathBuf;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

const LEN: usize = 1 << 16;

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ayre-{name}-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn config(number: u16) -> Config {
    // So long only where the one that it waits for can never come.
    Config::new().mode(Mode::Mediated).number(number).setup_timeout(Duration::from_secs(20))
}

/// A port, and a mediated peer's thread: it reaches the port's memory, which takes the port's help,
/// and only then brings about what the port waits for.
fn served_first(then: impl FnOnce() + Send + 'static) -> (Port, JoinHandle<()>) {
    let (mut port, mut peer) = Port::pair(config(0), config(1)).expect("two ports");
    let region = port.alloc(LEN, RegionOptions::new()).expect("memory");
    port.share(PeerId(1), &region, 0..LEN, Rights::all(), 1).expect("a grant");
    let remote = peer.accept_region(PeerId(0), 1).expect("the grant");
    let thread = spawn(move || {
        let data = vec![7; LEN];
        for round in 0..8 {
            peer.put(&remote, 0, &data, PostOptions::new()).expect("a put");
            peer.flush(PeerId(0)).expect("the port serves");
            assert_eq!(peer.fetch_add(&remote, 8, 1), Ok(u64::from_ne_bytes([7; 8])), "{round}");
        }
        then();
        // Stays until the port has gone.
        assert_eq!(peer.recv(&mut [0; 8], None), Err(ReceiveError::PeerDied(PeerId(0))));
    });
    (port, thread)
}

// spec: PROG-2, WAIT-3
#[test]
fn a_port_that_accepts_serves_its_peers() {
    let listener = path("accepts");
    let third = listener.clone();
    let (mut port, thread) = served_first(move || {
        let mut third_port = Port::open(config(2)).expect("a port");
        third_port.connect(third).expect("the port accepts");
    });
    port.listen(&listener).expect("a free path");
    assert_eq!(port.accept().ok(), Some(PeerId(2)), "it comes once the other one is served");
    drop(port);
    thread.join().expect("the peer was served");
}

// spec: PROG-2, WAIT-3
#[test]
fn a_port_that_connects_serves_its_peers() {
    let listener = path("connects");
    let mut third = Port::open(config(2)).expect("a port");
    third.listen(&listener).expect("a free path");
    let (mut port, thread) = served_first(move || {
        third.accept().expect("the port connects");
    });
    assert_eq!(port.connect(&listener).ok(), Some(PeerId(2)), "once the other one is served");
    drop(port);
    thread.join().expect("the peer was served");
}
