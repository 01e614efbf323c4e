//! The connections of a process as a tool sees them: here, of this one.
#[path = "socket/world.rs"]
mod world;

use ayre::socket::{Counts, Reason, SeenEnd, SeenProcess, keep_reason};
use rustix::fd::AsFd;
use rustix::net::RecvFlags;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use world::{End, bytes, connect, pair};

fn number_of(socket: &TcpStream) -> u64 {
    let file = std::fs::File::from(socket.as_fd().try_clone_to_owned().unwrap());
    file.metadata().unwrap().ino()
}

fn look() -> SeenProcess {
    SeenProcess::look(std::process::id()).expect("this process has a family")
}

fn seen(end: &End) -> SeenEnd {
    let (number, process) = (number_of(&end.socket), look());
    assert!(process.sockets.contains(&number));
    *process.ends.iter().find(|seen| seen.socket == number).expect("the end is shown")
}

// spec: SOCK-35
#[test]
fn both_ends_are_seen_with_their_ways_and_bytes() {
    let [near, far] = connect(&pair());
    for end in [&near, &far] {
        end.connection.show(end.socket.as_fd());
    }
    assert_eq!(near.write(&bytes(0, 1000)), Ok(1000));
    far.connection.want_bytes(None);
    assert_eq!(near.write(&bytes(1000, 500)), Ok(500));
    let out = seen(&near);
    assert_eq!(out.reason, Reason::None);
    assert_eq!(
        (out.outward.counts, out.outward.is_ring),
        (Counts { ring: 500, kernel: 1000 }, true)
    );
    assert!(!out.inward.is_ring && !seen(&far).inward.is_ring, "nothing was read yet");
    let mut into = [0; 1200];
    assert_eq!(far.read(&mut into, RecvFlags::empty()), Ok(1000));
    assert_eq!(far.read(&mut into[..200], RecvFlags::empty()), Ok(200));
    let inward = seen(&far).inward;
    assert_eq!((inward.counts, inward.is_ring), (Counts { ring: 200, kernel: 1000 }, true));
    // Those that the peer will not read from the ring go by the kernel after all.
    far.connection.leave_reading();
    far.connection.keep_reason(Reason::Passed);
    near.settle().unwrap();
    assert_eq!(seen(&near).outward.counts, Counts { ring: 200, kernel: 1300 });
    assert_eq!(seen(&far).reason, Reason::Passed);
    near.connection.before_fork();
    assert_eq!(seen(&near).reason, Reason::Forked);
    near.close();
    far.close();
    let number = number_of(&far.socket);
    assert!(!look().ends.iter().any(|end| end.socket == number), "it is closed");
}

// spec: SOCK-36
#[test]
fn a_socket_without_an_end_has_its_reason() {
    let ([near, far], _) = world::sockets();
    keep_reason(near.as_fd(), Reason::NoPeer);
    assert_eq!(look().reason(number_of(&near)), Reason::NoPeer);
    assert_eq!(look().reason(number_of(&far)), Reason::None);
    keep_reason(near.as_fd(), Reason::Policy);
    assert_eq!(look().reason(number_of(&near)), Reason::Policy);
}

// spec: SOCK-35
#[test]
fn an_offer_that_nobody_has_taken_says_so() {
    let [maker, taker] = pair();
    let ([near, _far], of) = world::sockets();
    let [one, other] = [(); 2].map(|()| ayre::socket::Connection::new().unwrap());
    one.show(near.as_fd());
    assert!(one.offer(&maker, &of));
    let number = number_of(&near);
    let reason = || look().ends.iter().find(|end| end.socket == number).map(|end| end.reason);
    assert_eq!(reason(), Some(Reason::Opening));
    assert!(other.take(&taker, taker.find(&of).unwrap()));
    assert!(one.place().is_some());
    assert_eq!(reason(), Some(Reason::None));
}
