//! A victim, an honest peer whose traffic must stay exactly correct, and somebody on the way
//! between them, who passes everything on, and remembers it. All in one thread but for set-up.
#![allow(dead_code, reason = "each test program uses other parts of it")]
use crate::common::net::{Protection, open_at};
use crate::common::random::fill;
use ayre::Rights;
use ayre::error::Status;
use ayre::memory::{Classes, Operation};
use ayre::{Message, Notification, PeerId, Port, PostOptions, Region, RegionOptions, RemoteRegion};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

/// Stands in the victim's memory where nobody has a right to it.
const SECRET: u64 = 0x5ec7_e75e_c7e7_5ec7;
/// Bytes of each region.
const LEN: usize = 4096;
/// The victim's region is granted under this name.
const NAME: u64 = 1;
/// Steps in which a datagram that is there is taken for sure.
const STEPS: usize = 4;
/// Datagrams that are remembered of either direction.
const REMEMBERED: usize = 400;

/// Somebody on the way.
pub(crate) struct Tap {
    /// Where the honest peer sends to.
    pub(crate) front: UdpSocket,
    back: UdpSocket,
    victim: SocketAddr,
    honest: Option<SocketAddr>,
    /// The datagrams to the victim, and to the honest peer.
    pub(crate) seen: [Vec<Vec<u8>>; 2],
    /// The fate of a datagram to the victim, or to the honest peer; where it is false, it is lost.
    pub(crate) tamper: Option<Tamper>,
}

pub(crate) type Tamper = Box<dyn FnMut(usize, &mut Vec<u8>) -> bool + Send>;

pub(crate) fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket of this host");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

/// The next datagram of a socket, if one is there.
pub(crate) fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        match socket.recv_from(&mut bytes) {
            Ok((len, from)) => {
                bytes.truncate(len);
                return Some((bytes, from));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            // Somebody has sent to a port that is closed by now.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
        }
    }
}

impl Tap {
    pub(crate) fn before(victim: SocketAddr) -> Self {
        let (seen, tamper) = ([Vec::new(), Vec::new()], None);
        Self { front: socket(), back: socket(), victim, honest: None, seen, tamper }
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.front.local_addr().expect("an address")
    }

    /// Passes on what has come.
    pub(crate) fn pump(&mut self) {
        while let Some((bytes, from)) = receive(&self.front) {
            self.honest = Some(from);
            self.pass(0, bytes);
        }
        while let Some((bytes, from)) = receive(&self.back) {
            if from == self.victim {
                self.pass(1, bytes);
            }
        }
    }

    fn pass(&mut self, direction: usize, mut bytes: Vec<u8>) {
        if self.seen[direction].len() < REMEMBERED {
            self.seen[direction].push(bytes.clone());
        }
        if self.tamper.as_mut().is_none_or(|tamper| tamper(direction, &mut bytes)) {
            self.send(direction, &bytes);
        }
    }

    /// Sends something to the victim as if the honest peer had sent it, or the other way round.
    pub(crate) fn send(&self, direction: usize, bytes: &[u8]) {
        // A datagram is allowed to be lost, or to be refused by the system.
        let _ = match (direction, self.honest) {
            (0, _) => self.back.send_to(bytes, self.victim),
            (_, Some(honest)) => self.front.send_to(bytes, honest),
            (_, None) => Ok(0),
        };
    }
}

pub(crate) struct World {
    pub(crate) victim: Port,
    pub(crate) at: SocketAddr,
    pub(crate) tap: Tap,
    honest: Port,
    /// The names that the two use for each other.
    pub(crate) to_honest: PeerId,
    pub(crate) to_victim: PeerId,
    secret: Region,
    region: Region,
    remote: RemoteRegion,
    expected: Vec<u8>,
    round: u64,
}

impl World {
    pub(crate) fn new(protection: Protection) -> Self {
        let (mut victim, at) = open_at(0, protection.options());
        let (mut honest, _) = open_at(1, protection.options());
        let mut tap = Tap::before(at);
        let (to_honest, to_victim) = connect_through(&mut victim, &mut honest, &mut tap);
        let alloc = |port: &mut Port| port.alloc(LEN, RegionOptions::new()).expect("memory");
        let (secret, region) = (alloc(&mut victim), alloc(&mut victim));
        (0..LEN).step_by(8).for_each(|offset| secret.store(offset, SECRET));
        victim.share(to_honest, &region, 0..LEN, Rights::all(), NAME).expect("a grant");
        let remote = std::thread::scope(|scope| {
            let accepting = scope.spawn(|| honest.accept_region(to_victim, NAME));
            while !accepting.is_finished() {
                victim.progress();
                tap.pump();
                std::thread::yield_now();
            }
            accepting.join().expect("no panic").expect("the victim's grant")
        });
        let expected = vec![0; LEN];
        Self {
            victim,
            at,
            tap,
            honest,
            to_honest,
            to_victim,
            secret,
            region,
            remote,
            expected,
            round: 0,
        }
    }

    pub(crate) fn step(&mut self) {
        self.victim.progress();
        self.tap.pump();
        self.honest.progress();
        self.tap.pump();
    }

    /// Lets the victim take what somebody has sent.
    pub(crate) fn settle(&mut self) {
        (0..STEPS).for_each(|_| self.step());
    }

    /// A put, a notification and a message each way; all exactly as they should be.
    pub(crate) fn honest_round(&mut self) {
        self.round += 1;
        let (round, tag) = (self.round, self.round as u32);
        let offset = round * 40 % (LEN as u64 - 200);
        let mut data = vec![0; 200];
        fill(&mut data, 1, 0, round);
        self.expected[offset as usize..][..200].copy_from_slice(&data);
        let options = PostOptions::new().completer().requester().tag(tag);
        self.honest.put(&self.remote, offset, &data, options).expect("room for a put");
        self.honest.send(self.to_victim, tag, &data).expect("room for a message");
        self.victim.send(self.to_honest, tag, &data).expect("room for a message");
        let mut into = [vec![0; 1024], vec![0; 1024]];
        let mut messages: [Option<Message>; 2] = [None; 2];
        let mut notes: [Option<Notification>; 2] = [None; 2];
        while messages.contains(&None) || notes.contains(&None) {
            self.step();
            for (index, port) in [&mut self.victim, &mut self.honest].into_iter().enumerate() {
                let message = port.try_recv(&mut into[index]).expect("a buffer of that size");
                assert!(message.is_none() || messages[index].is_none(), "one message: {message:?}");
                messages[index] = messages[index].or(message);
                let note = port.poll_notification();
                assert!(note.is_none() || notes[index].is_none(), "one notification: {note:?}");
                notes[index] = notes[index].or(note);
            }
            std::thread::yield_now();
        }
        for (index, source) in [self.to_honest, self.to_victim].into_iter().enumerate() {
            assert_eq!(messages[index], Some(Message { source, tag, len: 200 }));
            assert_eq!(into[index][..200], data);
            let note = notes[index].expect("it came");
            assert_eq!((note.tag, note.status), (tag, Status::Ok));
            assert_eq!(note.operation, Operation::Put);
        }
        let classes = notes.map(|note| note.expect("it came").class);
        assert_eq!(classes, [Classes::COMPLETER, Classes::REQUESTER]);
    }

    /// Nothing has landed that the honest peer has not sent.
    #[track_caller]
    pub(crate) fn check(&mut self) {
        self.settle();
        for port in [&mut self.victim, &mut self.honest] {
            for _ in 0..STEPS {
                let message = port.try_recv(&mut [0; 1024]).expect("a buffer of that size");
                assert_eq!(message, None, "nobody has sent that");
                assert_eq!(port.poll_notification(), None, "nobody has done that");
            }
        }
        let words = (0..LEN).step_by(8);
        assert!(words.into_iter().all(|offset| self.secret.load(offset) == SECRET), "secret");
        crate::common::ports::assert_content(&self.region, &self.expected);
        assert!(self.victim.is_alive(self.to_honest) && self.honest.is_alive(self.to_victim));
    }
}

/// Connects the honest peer, with somebody in between.
fn connect_through(victim: &mut Port, honest: &mut Port, tap: &mut Tap) -> (PeerId, PeerId) {
    let at = tap.at();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| victim.accept().expect("the honest peer connects"));
        let connecting = scope.spawn(|| honest.connect_net(&[at]).expect("the victim accepts"));
        while !accepting.is_finished() || !connecting.is_finished() {
            tap.pump();
            std::thread::yield_now();
        }
        let join = "no panic";
        (accepting.join().expect(join), connecting.join().expect(join))
    })
}
