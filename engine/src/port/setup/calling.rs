//! The connecting port: it calls a listener, sends the Hello and takes the answer.
use super::greeting::{SideSpecific, expect, wrong_descriptors};
use super::link;
use super::listener::{ConnectAttempt, control_socket, socket_address, try_connect};
use super::users::check_credentials;
use crate::error::SetupError;
use crate::mem::Instead;
use crate::mem::layout::Direction;
use crate::mem::map::Mapping;
use crate::mem::page::PeerPage;
use crate::peer::agreement::Agreement;
use crate::peer::contact::Waker;
use crate::peer::control;
use crate::peer::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::settings::choice::Mode;
use crate::sys::descriptor::Descriptor;
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{SocketAddrUnix, SocketFlags, connect, sockopt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The time between two calls of a peer that was refused, or found no room.
pub(crate) const BETWEEN_CALLS: Duration = Duration::from_millis(1);

impl Port {
    /// Connects to the port that listens at `path`. Blocks until it accepts, at most for the set-up
    /// time.
    ///
    /// # Errors
    /// As [`Port::accept`]; [`SetupError::Refused`], [`SetupError::Rejected`] and
    /// [`SetupError::Version`] where one of the two refuses the connection.
    // spec: LIFE-6, LIFE-27
    pub fn connect(&mut self, path: impl AsRef<Path>) -> Result<PeerId, SetupError> {
        let path = path.as_ref();
        let connected = self.begin_connect(path).and_then(|begun| self.finish_connect(begun));
        connected.map_err(|error| error.of(path.display().to_string()))
    }

    /// Sends the Hello; [`Port::finish_connect`] takes the peer's answer.
    pub(crate) fn begin_connect(&mut self, path: &Path) -> Result<Begun, SetupError> {
        self.begin_connect_at(&socket_address(path)?)
    }

    fn begin_connect_at(&mut self, to: &SocketAddrUnix) -> Result<Begun, SetupError> {
        let socket = control_socket(SocketFlags::empty())?;
        let timeout = Some(self.config.setup_timeout);
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, timeout)
            .map_err(SetupError::os("connect timeout"))?;
        connect(&socket, to).map_err(SetupError::os("connect"))?;
        check_credentials(socket.as_fd())?;
        self.greet(socket)
    }

    /// Sends the Hello to the listener of a name; never waits.
    // spec: LIFE-31
    pub(crate) fn begin_call_here(&mut self, name: &str) -> Result<Called, SetupError> {
        let socket = match try_connect(name)? {
            ConnectAttempt::Connected(socket) => socket,
            ConnectAttempt::Full => return Ok(Called::Full),
            ConnectAttempt::Nobody => return Ok(Called::Nobody),
        };
        check_credentials(socket.as_fd())?;
        self.greet(socket).map(Called::Begun)
    }

    /// Sends the Hello to the listener of a name; waits while its queue of callers is full.
    pub(crate) fn begin_connect_to(&mut self, name: &str) -> Result<Option<Begun>, SetupError> {
        let deadline = self.clock.within(self.config.setup_timeout);
        loop {
            match self.begin_call_here(name)? {
                Called::Begun(begun) => return Ok(Some(begun)),
                Called::Nobody => return Ok(None),
                Called::Full if self.clock.is_over(deadline) => {
                    return Err(SetupError::timed_out("room among a rank's callers"));
                }
                // The system does not report when there is room.
                Called::Full => self.let_go_by(BETWEEN_CALLS),
            }
        }
    }

    /// Sends the Hello.
    pub(super) fn greet(&mut self, socket: Descriptor) -> Result<Begun, SetupError> {
        let says = SideSpecific::Hello(self.config.name.unwrap_or_default());
        let half = self.half(self.config.mode, says);
        match control::send(socket.as_fd(), PacketKind::Hello, half.words(), &[self.page.file()]) {
            // A peer that refuses at once has sent the reason before it closed.
            Ok(()) | Err(SetupError::PeerLeft { .. }) => Ok(Begun { socket }),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn finish_connect(&mut self, begun: Begun) -> Result<PeerId, SetupError> {
        let deadline = self.clock.within(self.config.setup_timeout);
        let packet = loop {
            match begun.answer()? {
                Some(packet) => break packet,
                None => self.wait_readable(begun.socket.as_fd(), deadline)?,
            }
        };
        self.welcomed(begun, packet)
    }

    /// Completes a connection with the other side's answer to the Hello.
    pub(crate) fn welcomed(&mut self, begun: Begun, packet: Packet) -> Result<PeerId, SetupError> {
        let Begun { socket } = begun;
        let half = expect(&packet, PacketKind::Welcome)?;
        let [page, file] = &packet.fds[..] else {
            return Err(wrong_descriptors(&packet.fds, socket.as_fd()));
        };
        self.look_after(&half);
        let number = self.number_of(&half)?;
        let SideSpecific::Welcome(sizes) = half.says else {
            return Err(SetupError::Protocol("lane sizes"));
        };
        if half.mode == Mode::Direct && self.config.mode == Mode::Mediated {
            return Err(SetupError::Protocol("mode"));
        }
        let link = link(socket, PeerPage::new(page.as_fd())?, Waker::Channel, half.expedited)?;
        let mapping = Arc::new(
            Mapping::foreign(file.as_fd(), sizes.file_len(), true)?.private(Instead::Zeros),
        );
        let (inward, out) = Direction::pair(&mapping, sizes);
        let peer = self.add(Agreement::here(number, (half.mode, link), (out, inward)))?;
        debug_assert_eq!(self.mode(peer), Ok(half.mode), "the connection has the agreed mode");
        Ok(peer)
    }
}

/// The outcome of a call by name.
pub(crate) enum Called {
    Begun(Begun),
    /// The queue of callers is full: try again later.
    Full,
    /// Nobody listens.
    Nobody,
}

/// A connection whose Hello was sent.
#[derive(Debug)]
pub(crate) struct Begun {
    socket: Descriptor,
}

impl Begun {
    /// The socket on which the answer comes.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The answer of the other side, if it has come.
    pub(crate) fn answer(&self) -> Result<Option<Packet>, SetupError> {
        control::receive(self.socket.as_fd()).packet()
    }
}
