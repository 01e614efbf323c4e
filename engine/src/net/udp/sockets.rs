//! The sockets of a UDP port: one for everybody, and connected ones for those that it sends to all
//! the time.
//!
//! A connected socket saves the system the search for the route of each datagram, and for the
//! socket where one comes in: a fifth of a round trip. It is bound to the same address and port, so
//! that nobody else can tell; the system gives it what its peer sends, and all else to the other
//! one. Nobody else may share the port: sockets allow that only while one is added.
use super::{enlarge, errors, open};
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use crate::sys::train::{Train, receive_train};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGroSegment;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Connected sockets at most.
// spec: LIM-1
const CONNECTED_MAX: usize = 16;
/// Calls in a row that send to one destination, after which it gets a socket of its own.
const STREAK: u32 = 64;

/// All sockets of one address and port.
#[derive(Debug)]
pub(super) struct Sockets {
    local: SocketAddr,
    /// The first is for everybody.
    sockets: Vec<Descriptor>,
    /// The peers of the sockets behind the first.
    peers: Vec<Peer>,
    /// Can be read when one of them can.
    epoll: Descriptor,
    /// The destination of the last calls, and their number.
    streak: (Option<SocketAddr>, u32),
}

/// The peer that a socket is connected to.
#[derive(Debug)]
struct Peer {
    address: SocketAddr,
    /// The datagrams that came before it was connected, from anybody, have been taken.
    is_alone: bool,
}

/// Sockets that can be read, by their places.
#[derive(Debug)]
pub(super) struct Ready {
    places: [usize; CONNECTED_MAX + 1],
    count: usize,
}

impl Ready {
    pub(super) fn places(&self) -> &[usize] {
        &self.places[..self.count]
    }
}

const _: () = assert!(STREAK > CONNECTED_MAX as u32, "few of many get a socket of their own");

impl Sockets {
    /// Asserts what holds between two calls.
    fn check(&self) {
        assert_eq!(self.sockets.len(), self.peers.len() + 1, "one is for everybody");
        assert!(self.peers.len() <= CONNECTED_MAX, "no more are connected than may be");
        debug_assert!(self.streak.0.is_some() || self.streak.1 == 0, "calls are for somebody");
    }

    /// The socket for everybody.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = open(address)?;
        rustix::net::bind(&socket, &address)?;
        prepare(&socket, address);
        let local = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
        let epoll = descriptor::epoll()?;
        watch(&epoll, &socket, 0)?;
        let (sockets, peers) = (vec![socket], Vec::new());
        Ok(Self { local, sockets, peers, epoll, streak: (None, 0) })
    }

    /// Goes on with a socket for everybody at another address. A thread that waits for them to be
    /// readable notices nothing.
    pub(super) fn rebind(&mut self, address: SocketAddr) -> io::Result<()> {
        let new = Self::bind(address)?;
        let socket = new.sockets.into_iter().next().expect("the one for everybody");
        watch(&self.epoll, &socket, 0)?;
        // The others are not watched once they are closed.
        (self.sockets, self.peers, self.streak) = (vec![socket], Vec::new(), (None, 0));
        self.local = new.local;
        self.check();
        Ok(())
    }

    /// Their address.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Can be read when something has come.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Descriptor> {
        self.sockets.iter()
    }

    /// The socket for everybody.
    pub(super) fn common(&self) -> &Descriptor {
        &self.sockets[0]
    }

    /// Receives one train, or one datagram, from the socket of a place, and says from whom; none of
    /// what cannot be used.
    ///
    /// # Errors
    /// The system's error; `AGAIN` where nothing is there.
    #[inline]
    pub(super) fn receive(
        &mut self,
        place: usize,
        room: &mut [u8],
    ) -> Result<Option<(SocketAddr, Train)>, Errno> {
        let mut peer = place.checked_sub(1).and_then(|at| self.peers.get_mut(at));
        let known = peer.as_ref().filter(|peer| peer.is_alone).map(|peer| peer.address);
        let received = receive_train(self.sockets[place].as_fd(), room, known.is_none());
        if let (Some(peer), Err(Errno::AGAIN)) = (&mut peer, &received) {
            peer.is_alone = true;
        }
        let train = received?;
        Ok(known.or(train.from).filter(|_| train.is_whole).map(|from| (from, train)))
    }

    /// The socket that is connected to this destination, if one is.
    pub(super) fn connected(&self, to: SocketAddr) -> Option<&Descriptor> {
        let place = self.peers.iter().position(|peer| peer.address == to)?;
        Some(&self.sockets[place + 1])
    }

    /// A call is about to send to this destination alone.
    pub(super) fn count(&mut self, to: SocketAddr) {
        let (last, calls) = &mut self.streak;
        if *last != Some(to) {
            (*last, *calls) = (Some(to), 0);
        }
        *calls = calls.saturating_add(1);
        // Where it fails, the socket for everybody does as well.
        if *calls == STREAK && self.peers.len() < CONNECTED_MAX && self.connected(to).is_none() {
            let _ = self.connect(to);
        }
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        let socket = open(to)?;
        let joined = self.share_port(&socket, true).and_then(|()| {
            rustix::net::bind(&socket, &self.local)?;
            // What comes to it before it is connected may be anybody's.
            rustix::net::connect(&socket, &to)?;
            Ok(())
        });
        self.share_port(&socket, false)?;
        joined?;
        prepare(&socket, to);
        watch(&self.epoll, &socket, self.sockets.len())?;
        self.sockets.push(socket);
        self.peers.push(Peer { address: to, is_alone: false });
        self.check();
        Ok(())
    }

    fn share_port(&self, another: &Descriptor, may_share: bool) -> io::Result<()> {
        let all = self.sockets.iter().chain([another]);
        all.into_iter().try_for_each(|socket| Ok(set_socket_reuseaddr(socket, may_share)?))
    }

    /// Whether there is only the one for everybody.
    pub(super) fn is_one(&self) -> bool {
        self.peers.is_empty()
    }

    /// Which sockets can be read.
    pub(super) fn ready(&self) -> Ready {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; CONNECTED_MAX + 1];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut ready = Ready { places: [0; CONNECTED_MAX + 1], count: 0 };
        // What is missed now is found next time.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&at_once)) else {
            return ready;
        };
        for (place, event) in ready.places.iter_mut().zip(&*events) {
            *place = event.data.u64() as usize;
            debug_assert!(*place < self.sockets.len(), "each is watched by its place");
        }
        ready.count = events.len();
        ready
    }
}

fn prepare(socket: &Descriptor, address: SocketAddr) {
    enlarge(socket);
    errors::keep(socket, address.is_ipv4());
    // Without it, datagrams come one by one.
    let _ = setsockopt(socket, UdpGroSegment, &true);
}

fn watch(epoll: &Descriptor, socket: &Descriptor, place: usize) -> io::Result<()> {
    Ok(epoll::add(epoll, socket, EventData::new_u64(place as u64), EventFlags::IN)?)
}
