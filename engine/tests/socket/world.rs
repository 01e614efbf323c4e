//! Pairs and connections whose two ends are in this process, over TCP on loopback.
#![allow(dead_code, reason = "each test program uses its part of it")]
use ayre::socket::{Addresses, Bell, Connection, Door, Ends, Pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A wait that is this long will not end.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A name that nothing else on the host has.
pub(crate) fn fresh_name() -> SocketAddrUnix {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ayre-socket-test/{}/{number}", std::process::id());
    SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()
}

/// The two sides of a pair: the maker, then the taker.
pub(crate) fn pair() -> [Arc<Pair>; 2] {
    let name = fresh_name();
    let door = Door::open(&name).unwrap();
    let maker = Pair::knock(&name, 7, |_| true).unwrap();
    let taker = door.callers(|_| true).pop().unwrap();
    [maker, taker]
}

/// Two sockets that are connected, with their addresses.
pub(crate) fn sockets() -> ([TcpStream; 2], Ends) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taker = listener.local_addr().unwrap();
    let near = TcpStream::connect(taker).unwrap();
    let (far, maker) = listener.accept().unwrap();
    for socket in [&near, &far] {
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
    }
    ([near, far], Ends::Tcp(Addresses { maker, taker }))
}

/// One end of a connection.
pub(crate) struct End {
    pub(crate) connection: Arc<Connection>,
    pub(crate) socket: TcpStream,
    pub(crate) bell: Bell,
    /// Another one, for the other direction.
    pub(crate) room: Bell,
}

impl End {
    pub(crate) fn read(&self, into: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        self.connection.read(self.socket.as_fd(), &mut [IoSliceMut::new(into)], flags)
    }

    pub(crate) fn write(&self, from: &[u8]) -> Result<usize, Errno> {
        let flags = SendFlags::NOSIGNAL;
        self.connection.write(self.socket.as_fd(), &[IoSlice::new(from)], flags)
    }

    pub(crate) fn settle(&self) -> Result<(), Errno> {
        self.connection.settle(self.socket.as_fd())
    }

    pub(crate) fn end_writing(&self) {
        self.connection.end_writing(self.socket.as_fd());
    }

    pub(crate) fn close(&self) -> bool {
        self.connection.close(self.socket.as_fd())
    }

    /// Whether the kernel has something to read, or tells an end.
    pub(crate) fn kernel_is_readable(&self) -> bool {
        is_readable(&self.socket)
    }

    /// Bytes that were written by the ring.
    pub(crate) fn written_by_ring(&self) -> u64 {
        self.connection.counts_out().ring
    }
}

/// The ends of a connection that is not offered yet: the maker's, then the taker's.
pub(crate) fn unmet(pairs: &[Arc<Pair>; 2]) -> ([End; 2], Ends) {
    let ([near, far], addresses) = sockets();
    let end = |socket, pair: &Pair| {
        let [bell, room] = [(); 2].map(|()| pair.bell().expect("a bell"));
        End { connection: Arc::new(Connection::new().unwrap()), socket, bell, room }
    };
    ([end(near, &pairs[0]), end(far, &pairs[1])], addresses)
}

/// A connection that both ends have: the maker's, then the taker's.
pub(crate) fn connect(pairs: &[Arc<Pair>; 2]) -> [End; 2] {
    let ([near, far], addresses) = unmet(pairs);
    assert!(near.connection.offer(&pairs[0], &addresses));
    let number = pairs[1].find(&addresses).expect("the offer is there");
    assert!(far.connection.take(&pairs[1], number));
    [near, far]
}

/// Whether a descriptor is readable now.
pub(crate) fn is_readable(of: &impl AsFd) -> bool {
    readable_within(&[of.as_fd()], Duration::ZERO)
}

/// Whether one of these is readable within a time.
pub(crate) fn readable_within(of: &[rustix::fd::BorrowedFd<'_>], time: Duration) -> bool {
    let polled = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut polled: Vec<PollFd<'_>> = of.iter().copied().map(polled).collect();
    let time = Timespec::try_from(time).unwrap();
    poll(&mut polled, Some(&time)).unwrap() > 0
}

/// The byte at a position of a stream.
pub(crate) fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Bytes of a stream from a position on.
pub(crate) fn bytes(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(byte).collect()
}

/// Checks bytes that were read at a position.
pub(crate) fn check(from: u64, found: &[u8]) {
    for (i, found) in found.iter().enumerate() {
        let at = from + i as u64;
        assert_eq!(*found, byte(at), "at {at}");
    }
}
