//! Bells: what wakes a port, or its engine's thread, that sleeps.
//!
//! Two ports have a pair of connected stream sockets for each kind of sleeper, and hold one end of
//! each: to ring is to send a byte, to be rung is to have one to receive. A peer may do with its
//! end, and with copies of both if it made them, what it likes:
//!
//! - A ring never blocks, whatever the flags of the socket are, and what becomes of it does not
//!   matter: where there is no room, the sleeper has rings that it has not taken and is awake or
//!   about to be; a peer that is gone is reported by the control channel.
//! - Of a bell that rings without end, each wake takes a bounded part.
//! - A bell that says it has something and gives nothing was closed, shut down or emptied by the
//!   peer. It is not listened to any more, see `wait.rs`: that peer has to wait until we wake.
//!
//! One thing is left to a peer that made the pair: the kernel locks our end while a copy of it is
//! read, so that reading it into memory that faults for long makes the taking of rings wait.
use crate::error::SetupError;
use crate::mem::page::Sleeper;
use crate::sys::descriptor;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, sockopt};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Rings that are taken at a time.
const RINGS_MAX: usize = 4096;

/// Our ends of two pairs of sockets.
#[derive(Clone, Debug)]
pub(crate) struct Bells {
    port: Arc<OwnedFd>,
    engine: Arc<OwnedFd>,
}

impl Bells {
    /// Both ends of both pairs.
    pub(crate) fn pair() -> Result<(Self, Self), SetupError> {
        let ((port, far_port), (engine, far_engine)) = (socket_pair()?, socket_pair()?);
        Ok((Self::new(port, engine), Self::new(far_port, far_engine)))
    }

    /// Of what a peer hands over.
    // spec: LIFE-9
    pub(crate) fn foreign(port: OwnedFd, engine: OwnedFd) -> Result<Self, SetupError> {
        if is_bell(&port) && is_bell(&engine) {
            return Ok(Self::new(port, engine));
        }
        Err(SetupError::Protocol("a bell is a stream socket"))
    }

    fn new(port: OwnedFd, engine: OwnedFd) -> Self {
        Self { port: Arc::new(port), engine: Arc::new(engine) }
    }

    /// The end that concerns this sleeper, ours or the peer's.
    pub(crate) fn of(&self, sleeper: Sleeper) -> &Arc<OwnedFd> {
        match sleeper {
            Sleeper::Port => &self.port,
            Sleeper::Engine => &self.engine,
        }
    }

    #[cold]
    pub(crate) fn ring(&self, sleeper: Sleeper) {
        // See above for why the outcome does not matter.
        let _ = send(self.of(sleeper), &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Takes rings of a bell that has been rung. Returns whether there were any.
pub(crate) fn take_rings(bell: &OwnedFd) -> bool {
    let mut rings = [MaybeUninit::uninit(); RINGS_MAX];
    match recv(bell, &mut rings[..], RecvFlags::DONTWAIT) {
        Ok((_, taken)) => taken > 0,
        Err(errno) => errno == Errno::INTR,
    }
}

/// A bell between two threads of this process: the kernel's counter, which nobody else holds.
pub(crate) fn own_bell() -> Result<OwnedFd, SetupError> {
    descriptor::event().map_err(SetupError::os("eventfd"))
}

/// Takes all rings of such a bell.
pub(crate) fn hush_own(bell: BorrowedFd<'_>) {
    // None is as well.
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

pub(crate) fn ring_own(bell: BorrowedFd<'_>) {
    // A full counter wakes as well.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), SetupError> {
    descriptor::socket_pair(SocketType::STREAM).map_err(SetupError::os("socketpair"))
}

fn is_bell(file: &OwnedFd) -> bool {
    sockopt::socket_domain(file) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(file) == Ok(SocketType::STREAM)
}
