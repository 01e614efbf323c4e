//! The limits: what programs do with the system's sockets between the same two hosts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use anyhow::{Context, Result};
use rustix::net::sockopt;

use super::super::case::Case;
use super::super::side::Side;
use super::Options;
use super::tcp::Stream as TcpCase;
use super::udp::{PingPong, Stream as UdpCase, Wait};

/// The limits, by what they limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// A datagram there and back; both ends ask the system again and again.
    UdpPolling,
    /// Datagrams there and back; both ends sleep in the system.
    UdpWaiting,
    /// Datagrams as fast as they go, one for each message.
    UdpStream,
    /// A stream of long writes.
    TcpStream,
}

impl Limit {
    pub(super) const ALL: [Self; 4] =
        [Self::UdpPolling, Self::UdpWaiting, Self::UdpStream, Self::TcpStream];
}

/// One program for each limit, with its sockets.
pub(super) struct Limits([Box<dyn Case>; 4]);

impl Limits {
    /// Opens all sockets. Collective.
    pub(super) fn open(side: &Side<'_>, options: &Options) -> Result<Self> {
        let stream = meet(side, options).context("could not open a TCP connection")?;
        let ends = [side.rank(), side.other()].map(|rank| options.of(rank));
        let udp = || exchange(&stream, ends).context("could not open UDP");
        let (polling, waiting, streaming) = (udp()?, udp()?, udp()?);
        Ok(Self([
            Box::new(PingPong::new(Wait::Polling, polling)?),
            Box::new(PingPong::new(Wait::Sleeping, waiting)?),
            Box::new(UdpCase::new(streaming)?),
            Box::new(TcpCase::new(stream)?),
        ]))
    }

    /// The program of a limit.
    pub(super) fn get(&mut self, limit: Limit) -> &mut dyn Case {
        &mut *self.0[limit as usize]
    }
}

/// A connection between the ranks. Collective.
fn meet(side: &Side<'_>, options: &Options) -> Result<TcpStream> {
    if side.measures() {
        let listener = TcpListener::bind(options.of(0))?;
        side.agree(listener.local_addr()?.port().into());
        return Ok(listener.accept()?.0);
    }
    let port = side.agree(0) as u16;
    Ok(TcpStream::connect(SocketAddr::new(options.of(0).ip(), port))?)
}

/// A socket for datagrams, and where the other rank has its own. Collective: the ranks tell each
/// other over the connection.
fn exchange(
    mut stream: &TcpStream,
    [own, mut other]: [SocketAddr; 2],
) -> Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind(own)?;
    // As much as Ayre asks for; what is granted does in any case.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
    let mut port = socket.local_addr()?.port().to_le_bytes();
    stream.write_all(&port)?;
    stream.read_exact(&mut port)?;
    other.set_port(u16::from_le_bytes(port));
    Ok((socket, other))
}

const BUFFER_BYTES: usize = 8 << 20;
