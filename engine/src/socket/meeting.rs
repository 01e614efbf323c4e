//! How a process that connects finds the one that listens, and how both agree on a connection.
//!
//! ```text
//!   connecting process (maker)                      listening process (taker)
//!                                                   listen: door = Unix socket by the port's name
//!   connect: door -> memory, bells; offer in a slot
//!   SYN with the code of the pair      ---------->  accept: code in the SYN -> the pair's offers;
//!                                                   unknown code -> who knocked at the door?
//!   offer: the addresses, in a slot    ---------->  the slot with these addresses is taken
//! ```
//!
//! A Unix socket that connects has no port, and sends no SYN. It shows the code in its name, which
//! nobody else has, and which the accepting end sees.
//!
//! The connection works from the beginning: its bytes go by the kernel until both ends know that
//! the slot is taken.
use super::pair::{Bell, FIRST_BELLS, Pair, receive_with, send_with, user_of};
use crate::error::SetupError;
use crate::mem::socket::{OFFER_WORDS, PairMemory};
use crate::sys::fork::Shared;
use crate::sys::hidden::Hidden;
use ayre_proto::socket::far::Token;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, chmod, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use rustix::process::{Pid, getpid};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

const GREETING: [u8; 8] = *b"ayre-so1";

/// Callers that wait at a door.
const CALLERS: i32 = 4096;

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The end that connects.
    pub maker: SocketAddr,
    /// The end that accepts.
    pub taker: SocketAddr,
}

/// The ends of a connection, as both sides know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The addresses of TCP.
    Tcp(Addresses),
    /// The number in the name of the Unix socket that connects.
    Unix(u64),
    /// The token of a connection between hosts.
    Far(Token),
}

/// In the last word of a Unix connection's: no ports are this number.
const IS_UNIX: u64 = 1 << 63;
/// Likewise, of a connection between hosts.
const IS_FAR: u64 = 1 << 62;

impl Ends {
    pub(super) fn words(&self) -> [u64; OFFER_WORDS] {
        let halves = |of: SocketAddr| {
            let bits = match of.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            [(bits >> 64) as u64, bits as u64]
        };
        match self {
            Self::Tcp(Addresses { maker, taker }) => {
                let ([a, b], [c, d]) = (halves(*maker), halves(*taker));
                [a, b, c, d, u64::from(maker.port()) << 16 | u64::from(taker.port())]
            }
            Self::Unix(number) => [*number, 0, 0, 0, IS_UNIX],
            Self::Far([a, b]) => [*a, *b, 0, 0, IS_FAR],
        }
    }

    /// The addresses of TCP that have these words.
    pub(super) fn of_words([a, b, c, d, ports]: &[u64; OFFER_WORDS]) -> Option<Self> {
        let address = |high: u64, low: u64, port: u64| {
            let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
            SocketAddr::new(ip.to_canonical(), port as u16)
        };
        let ends =
            Addresses { maker: address(*a, *b, ports >> 16), taker: address(*c, *d, *ports) };
        (*ports <= u64::from(u32::MAX)).then_some(Self::Tcp(ends))
    }

    /// The token of a connection between hosts that has these words.
    pub(super) fn token([a, b, _, _, kind]: &[u64; OFFER_WORDS]) -> Option<Token> {
        (*kind == IS_FAR).then_some([*a, *b])
    }

    /// A number that connections which open at the same time do not share.
    pub(super) fn number(&self) -> u16 {
        match self {
            Self::Tcp(addresses) => addresses.maker.port(),
            Self::Unix(number) | Self::Far([number, _]) => *number as u16,
        }
    }
}

/// Where an offer was found: the number of its slot, and the word of the slot's state.
pub type Found = (u32, u64);

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Where callers of a listening socket knock.
#[derive(Debug)]
pub struct Door {
    socket: Hidden,
    /// Its file, and the process that has made it; none for a name without a file.
    file: Option<(PathBuf, Pid)>,
    /// Callers whose message has not come yet.
    silent: Shared<Vec<OwnedFd>>,
}

impl Door {
    /// Opens the door of this name.
    ///
    /// # Errors
    /// `EADDRINUSE` where another process has it.
    pub fn open(at: &SocketAddrUnix) -> Result<Self, Errno> {
        let socket = unix_socket()?;
        let path = at.path().map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes())));
        match (bind(&socket, at), &path) {
            // The file of a process that has ended may stay behind.
            (Err(Errno::ADDRINUSE), Some(path)) if is_deserted(at) => {
                unlink(path)?;
                bind(&socket, at)?;
            }
            (bound, _) => bound?,
        }
        if let Some(path) = &path {
            // The rights of the folder decide which processes may knock.
            chmod(path, Mode::from_raw_mode(0o777))?;
        }
        listen(&socket, CALLERS)?;
        let file = path.map(|path| (path, getpid()));
        Ok(Self { socket: Hidden::new(socket)?, file, silent: Shared::new(Vec::new()) })
    }

    /// The pairs of all that have knocked, whose users are welcome. Callers whose message is
    /// malformed are left out.
    pub fn callers(&self, is_welcome: impl Fn(u32) -> bool) -> Vec<Arc<Pair>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let next = || accept_with(self.socket.fd(), flags).ok();
        let is_welcome = |caller: &OwnedFd| user_of(caller.as_fd()).is_some_and(&is_welcome);
        // A fork leaves the lock alone: a child finds what it guards as it was.
        let Some(mut silent) = self.silent.try_lock() else { return Vec::new() };
        let callers = std::mem::take(&mut *silent).into_iter().chain(std::iter::from_fn(next));
        let mut pairs = Vec::new();
        for caller in callers.filter(is_welcome) {
            match greet(&caller) {
                Ok(None) => silent.push(caller),
                Ok(Some((memory, bells))) => pairs.extend(pair_of(memory, bells, caller)),
                Err(_) => {}
            }
        }
        pairs
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // A forked child that closes its copy leaves the file to its parent.
        if let Some((path, maker)) = &self.file
            && *maker == getpid()
        {
            let _ = unlink(path);
        }
    }
}

/// Whether nobody listens at this door any more.
fn is_deserted(at: &SocketAddrUnix) -> bool {
    unix_socket().is_ok_and(|socket| connect(&socket, at) == Err(Errno::CONNREFUSED))
}

/// Reads a caller's message: its memory and its first bells. None where it has not come yet.
fn greet(caller: &OwnedFd) -> Result<Option<(PairMemory, Vec<OwnedFd>)>, SetupError> {
    let told = |errno| SetupError::Os { call: "socket of a caller", errno };
    let mut message = [0; 8];
    let mut fds = match receive_with(caller.as_fd(), &mut message, 1 + FIRST_BELLS) {
        Ok((_, fds)) => fds,
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(told(errno)),
    };
    if message != GREETING || fds.len() != 1 + FIRST_BELLS {
        return Err(told(Errno::PROTO));
    }
    let bells = fds.split_off(1);
    let memory = PairMemory::open(fds[0].as_fd())?;
    let memory = memory.ok_or_else(|| told(Errno::PROTO))?;
    Ok(Some((memory, bells)))
}

fn pair_of(memory: PairMemory, bells: Vec<OwnedFd>, caller: OwnedFd) -> Option<Arc<Pair>> {
    let pair = Pair::new(memory, caller, 0).ok()?;
    pair.keep_their_first(bells).ok()?;
    pair.pass_first();
    Some(pair)
}

impl Pair {
    /// Knocks at a door: makes the memory of a pair, which the listening process takes when it
    /// sees the code. Never waits. A process whose user is not welcome is given nothing.
    ///
    /// # Errors
    /// `ECONNREFUSED` where there is no such door, and `EPERM` where its user is not welcome.
    pub fn knock(
        at: &SocketAddrUnix,
        code: u16,
        is_welcome: impl FnOnce(u32) -> bool,
    ) -> Result<Arc<Self>, SetupError> {
        let told = |errno| SetupError::Os { call: "door of a listening socket", errno };
        let socket = unix_socket().map_err(told)?;
        connect(&socket, at).map_err(told)?;
        if !user_of(socket.as_fd()).is_some_and(is_welcome) {
            return Err(told(Errno::PERM));
        }
        let (memory, file) = PairMemory::make()?;
        let bells: Vec<OwnedFd> =
            (0..FIRST_BELLS).map(|_| Bell::counter()).collect::<Result<_, _>>().map_err(told)?;
        let mut fds = vec![file.as_fd()];
        fds.extend(bells.iter().map(AsFd::as_fd));
        send_with(socket.as_fd(), &GREETING, &fds).map_err(told)?;
        let pair = Self::new(memory, socket, code).map_err(told)?;
        pair.keep_first(bells).map_err(told)?;
        Ok(pair)
    }

    /// Where a connection is offered.
    pub fn find(&self, of: &Ends) -> Option<Found> {
        self.offered(of.number(), of.words())
    }
}
