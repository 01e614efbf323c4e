//! How ports find each other and agree on a connection.
//!
//! ```text
//!   connecting port                         accepting port
//!     Hello   version number mode           checks credentials and version
//!             fds: page, two bells     -->
//!                                      <--  Welcome  number, agreed mode and lane sizes
//!                                           fds: page, connection file
//! ```
//!
//! The connection file is made by the accepting port; its first direction is that port's outgoing
//! one. A connection is direct only where both ends want it so.
use crate::bell::Bells;
use crate::config::Config;
use crate::connection::{Agreement, Connection, Link, Mode, Name, checked_sizes, lane_sizes};
use crate::control::{self, Channel, Packet, PacketKind};
use crate::error::SetupError;
use crate::mem::fence::{Fencing, expedited};
use crate::mem::layout::{Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::mem::page::{PeerPage, Sleeper};
use crate::port::Port;
use crate::responder::Served;
use crate::sys::descriptor;
use crate::wire::Arrived;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::units::PeerId;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, sockopt,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Spoken in Hello and Welcome; changes with any layout of spec/90.
pub(crate) const VERSION: u64 = 4;
/// In place of a number, where there is none.
const NO_NUMBER: u64 = u64::MAX;
const BACKLOG: i32 = 1024;
/// Callers that have not said Hello yet; beyond these the oldest are turned away.
const CALLERS_MAX: usize = 64;
/// Steps of accepting once its time is over: a knock and a word of each who can be waiting then.
const LATE_MAX: usize = 2 * (BACKLOG as usize + 1) + CALLERS_MAX;

/// One side's part of the handshake.
struct Half {
    /// None of an endpoint, which goes by its name.
    number: Option<PeerId>,
    mode: Mode,
    expedited: bool,
    says: Says,
}

/// What only one of the two says.
enum Says {
    /// Who connects: the endpoint's name, zeros for a port that is none.
    Hello(Name),
    /// Who accepts: what it has made.
    Welcome(LaneSizes),
}

impl Half {
    fn words(&self) -> [u64; 7] {
        let number = self.number.map_or(NO_NUMBER, |number| u64::from(number.0));
        let mode = u64::from(self.mode == Mode::Mediated);
        let [a, b, c] = match self.says {
            Says::Hello([low, high]) => [low, high, 0],
            Says::Welcome(LaneSizes { paired, response, ring }) => {
                [paired, response, ring].map(u64::from)
            }
        };
        [VERSION, number, mode, u64::from(self.expedited), a, b, c]
    }

    // spec: LIFE-7
    fn parse(words: &[u64; 7], kind: PacketKind) -> Result<Self, SetupError> {
        let [version, number, mode, expedited, a, b, c] = *words;
        if version != VERSION {
            return Err(SetupError::Protocol("the peer speaks another version"));
        }
        let number = match number {
            NO_NUMBER => None,
            _ => {
                let number = u16::try_from(number);
                Some(PeerId(number.map_err(|_| SetupError::Protocol("peer number"))?))
            }
        };
        let mode = if mode == 0 { Mode::Direct } else { Mode::Mediated };
        let says = match kind {
            PacketKind::Welcome => Says::Welcome(checked_sizes(a, (b, c), mode)?),
            _ if number.is_some() && [a, b] != Name::default() => {
                return Err(SetupError::Protocol("a name beside a number"));
            }
            _ => Says::Hello([a, b]),
        };
        Ok(Self { number, mode, expedited: expedited == 1, says })
    }
}

impl Port {
    /// Takes connections at a Unix socket of this path; [`Port::accept`] completes each.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the path cannot be bound.
    // spec: LIFE-6
    pub fn listen(&mut self, path: impl AsRef<Path>) -> Result<(), SetupError> {
        self.listener = Some(Listener::at_path(path.as_ref())?);
        Ok(())
    }

    /// Completes the next connection that a peer has begun, waiting for one. Strangers that say
    /// something else, or nothing, are turned away and harm nobody; those that keep coming do not
    /// make it wait longer.
    ///
    /// # Errors
    /// [`SetupError::TimedOut`]; [`SetupError::Os`] where the system refuses this port what a
    /// connection takes: the caller is turned away, and is not to blame.
    // spec: LIFE-9
    pub fn accept(&mut self) -> Result<PeerId, SetupError> {
        if self.listener.is_none() && self.wire.get().is_none() {
            return Err(SetupError::Invalid("accept comes after listen or open_net"));
        }
        self.accept_links(true);
        let accepted = self.accept_next();
        self.accept_links(false);
        accepted
    }

    fn accept_next(&mut self) -> Result<PeerId, SetupError> {
        let deadline = Instant::now() + self.config.setup_timeout;
        let mut late = 0;
        while late < LATE_MAX {
            late += usize::from(Instant::now() >= deadline);
            match self.wait_beside(deadline, |port, until| port.next_ready(until))? {
                Ready::Listener => self.let_in()?,
                Ready::Link(arrived) => match self.take_link(arrived) {
                    Ok(peer) => return Ok(peer),
                    Err(_) => self.count_malformed(),
                },
                Ready::Caller(index) => {
                    let caller = self.callers.swap_remove(index);
                    match self.welcome(caller) {
                        Ok(peer) => return Ok(peer),
                        // Of welcoming, only what the system refuses us.
                        Err(error @ SetupError::Os { .. }) => return Err(error),
                        Err(_) => self.count_malformed(),
                    }
                }
            }
        }
        Err(SetupError::TimedOut("a peer"))
    }

    /// Waits until a new caller knocks or a known one has said something or left, until the port
    /// has other things to do, or until `deadline`.
    fn next_ready(&self, deadline: Instant) -> Result<Option<Ready>, SetupError> {
        if let Some(arrived) = self.next_link() {
            return Ok(Some(Ready::Link(arrived)));
        }
        let callers = self.callers.iter().map(AsFd::as_fd);
        let listener = self.listener.as_ref().map(|listener| listener.socket.as_fd());
        let own = self.sleep.as_fd();
        let watched: Vec<_> = callers.chain(listener).chain([own]).collect();
        let mut fds: Vec<_> = watched.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        control::poll_until(&mut fds, deadline)?;
        fds.pop();
        let happened = fds.iter().position(|fd| !fd.revents().is_empty());
        Ok(happened.map(|index| match index < self.callers.len() {
            true => Ready::Caller(index),
            false => Ready::Listener,
        }))
    }

    /// Somebody who knocks now, if anybody does and is of those who may.
    pub(crate) fn next_caller(&self) -> Result<Option<OwnedFd>, SetupError> {
        let listening = self.listening()?;
        let mut knock = [PollFd::new(listening, PollFlags::IN)];
        control::poll_until(&mut knock, Instant::now())?;
        if knock[0].revents().is_empty() {
            return Ok(None);
        }
        self.accept_caller()
    }

    /// Whoever has knocked, if he is of those who may.
    fn accept_caller(&self) -> Result<Option<OwnedFd>, SetupError> {
        let socket = descriptor::accept(self.listening()?, SocketFlags::empty())
            .map_err(SetupError::os("accept"))?;
        Ok(check_credentials(socket.as_fd()).is_ok().then_some(socket))
    }

    /// Listens at an address that is no path.
    pub(crate) fn listen_at(&mut self, address: &SocketAddrUnix) -> Result<(), SetupError> {
        let listener = Listener::at(address)?;
        self.sleep.watch(listener.socket.as_fd())?;
        self.listener = Some(listener);
        Ok(())
    }

    fn listening(&self) -> Result<&OwnedFd, SetupError> {
        let listener = self.listener.as_ref();
        let listener = listener.ok_or(SetupError::Invalid("accept comes after listen"))?;
        Ok(&listener.socket)
    }

    /// Lets a new caller speak.
    fn let_in(&mut self) -> Result<(), SetupError> {
        let caller = self.accept_caller()?;
        self.callers.extend(caller);
        if self.callers.len() > CALLERS_MAX {
            self.callers.remove(0);
        }
        Ok(())
    }

    /// Connects to the port that listens at `path`, waiting until it accepts.
    ///
    /// # Errors
    /// As [`Port::accept`].
    // spec: LIFE-6
    pub fn connect(&mut self, path: impl AsRef<Path>) -> Result<PeerId, SetupError> {
        let begun = self.begin_connect(path.as_ref())?;
        self.finish_connect(begun)
    }

    /// Connects this port to itself: the simplest connection, where both ends are one.
    ///
    /// # Errors
    /// As [`Port::accept`].
    // spec: LIFE-5
    pub fn connect_loopback(&mut self) -> Result<PeerId, SetupError> {
        let (mode, sizes) = (self.config.mode, self.sizes_for(self.config.mode));
        let (socket, other) = control_pair()?;
        let (bells, rung) = Bells::pair()?;
        let link = link(socket, PeerPage::new(self.page.file())?, &rung, true);
        let (_, mapping) = sizes.make_file()?;
        let (out, _) = Direction::pair(&mapping, sizes);
        let inward = out.clone();
        let peer = self.add(Agreement::here(bells, self.id, (mode, link), (out, inward)))?;
        // Not before: where there is a loopback already, it lives by the end that stands here.
        self.loopback_control = Some(other);
        Ok(peer)
    }

    /// Opens two ports and connects them with each other: for two threads of one process, and for
    /// tests.
    ///
    /// # Errors
    /// As [`Port::open`] and [`Port::connect`].
    pub fn pair(first: Config, second: Config) -> Result<(Self, Self), SetupError> {
        let (mut first, mut second) = (Self::open(first)?, Self::open(second)?);
        let (near, far) = control_pair()?;
        let begun = first.greet(near)?;
        second.welcome(far)?;
        first.finish_connect(begun)?;
        Ok((first, second))
    }

    /// Sends the Hello; the peer's answer is taken by [`Port::finish_connect`].
    pub(crate) fn begin_connect(&mut self, path: &Path) -> Result<Begun, SetupError> {
        self.begin_connect_at(&socket_address(path)?)
    }

    pub(crate) fn begin_connect_at(&mut self, to: &SocketAddrUnix) -> Result<Begun, SetupError> {
        let socket = control_socket()?;
        let timeout = Some(self.config.setup_timeout);
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, timeout)
            .map_err(SetupError::os("connect timeout"))?;
        connect(&socket, to).map_err(SetupError::os("connect"))?;
        check_credentials(socket.as_fd())?;
        self.greet(socket)
    }

    fn greet(&mut self, socket: OwnedFd) -> Result<Begun, SetupError> {
        let (bells, theirs) = Bells::pair()?;
        let says = Says::Hello(self.config.name.unwrap_or_default());
        let half = self.half(self.config.mode, says);
        let [port, engine] = [Sleeper::Port, Sleeper::Engine].map(|it| theirs.of(it).as_fd());
        let fds = [self.page.file(), port, engine];
        control::send(socket.as_fd(), PacketKind::Hello, half.words(), &fds)?;
        Ok(Begun { socket, bells })
    }

    pub(crate) fn finish_connect(&mut self, begun: Begun) -> Result<PeerId, SetupError> {
        let deadline = Instant::now() + self.config.setup_timeout;
        let packet = loop {
            match begun.answer()? {
                Some(packet) => break packet,
                None => self.wait_readable(begun.socket.as_fd(), deadline)?,
            }
        };
        self.welcomed(begun, packet)
    }

    /// The other side has answered the Hello.
    pub(crate) fn welcomed(&mut self, begun: Begun, packet: Packet) -> Result<PeerId, SetupError> {
        let Begun { socket, bells } = begun;
        let half = expect(&packet, PacketKind::Welcome)?;
        let [page, file] = &packet.fds[..] else {
            return Err(wrong_descriptors(&packet.fds, socket.as_fd()));
        };
        let number = self.number_of(&half)?;
        let Says::Welcome(sizes) = half.says else {
            return Err(SetupError::Protocol("lane sizes"));
        };
        if half.mode == Mode::Direct && self.config.mode == Mode::Mediated {
            return Err(SetupError::Protocol("mode"));
        }
        let link = link(socket, PeerPage::new(page.as_fd())?, &bells, half.expedited);
        let mapping = Arc::new(Mapping::foreign(file.as_fd(), sizes.file_len(), true)?);
        let (inward, out) = Direction::pair(&mapping, sizes);
        self.add(Agreement::here(bells, number, (half.mode, link), (out, inward)))
    }

    /// Answers a Hello that is there to be read. Fails with [`SetupError::Os`] only where the
    /// system refuses us something; nothing that the caller does can bring that about.
    // spec: LIFE-8, LIFE-9
    fn welcome(&mut self, socket: OwnedFd) -> Result<PeerId, SetupError> {
        let hello = hear_hello(socket.as_fd())?.ok_or(SetupError::Protocol("no hello"))?;
        self.answer(socket, hello)
    }

    /// Makes the connection that a caller has asked for.
    pub(crate) fn answer(&mut self, socket: OwnedFd, hello: Hello) -> Result<PeerId, SetupError> {
        let Hello { half: theirs, fds: [page, port_bell, engine_bell] } = hello;
        let bells = Bells::foreign(port_bell, engine_bell)?;
        // Whatever stands in the way of mapping it, the caller has chosen the file.
        let page = PeerPage::new(page.as_fd()).map_err(|_| SetupError::UnsafeFile)?;
        let number = self.number_of(&theirs)?;
        let mediated = theirs.mode == Mode::Mediated || self.config.mode == Mode::Mediated;
        let mode = if mediated { Mode::Mediated } else { Mode::Direct };
        let sizes = self.sizes_for(mode);
        let (file, mapping) = sizes.make_file()?;
        let link = link(socket, page, &bells, theirs.expedited);
        let ours = self.half(mode, Says::Welcome(sizes));
        let fds = [self.page.file(), file.as_fd()];
        // What keeps the answer from the caller concerns nobody else.
        link.control
            .send(PacketKind::Welcome, ours.words(), &fds)
            .map_err(|_| SetupError::PeerLeft)?;
        let (out, inward) = Direction::pair(&mapping, sizes);
        self.add(Agreement::here(bells, number, (mode, link), (out, inward)))
    }

    fn half(&self, mode: Mode, says: Says) -> Half {
        let number = self.config.name.is_none().then_some(self.id);
        Half { number, mode, expedited: expedited(), says }
    }

    fn sizes_for(&self, mode: Mode) -> LaneSizes {
        if self.config.name.is_none() {
            return lane_sizes(mode);
        }
        let others = self.connections.iter().flatten().count();
        LaneSizes::endpoint(self.config.ring.unwrap_or_else(|| LaneSizes::ring_beside(others)))
    }

    /// The number that a peer has here: what it says, or the next one that is free. Endpoints keep
    /// to themselves, for only they know what is in each other's lanes.
    fn number_of(&self, half: &Half) -> Result<PeerId, SetupError> {
        match (half.number, self.config.name) {
            (Some(number), None) => self.check_foreign_number(number).map(|()| number),
            (None, Some(_)) => self.free_number(),
            _ => Err(SetupError::Protocol("an endpoint connects with endpoints")),
        }
    }

    pub(crate) fn free_number(&self) -> Result<PeerId, SetupError> {
        let is_free = |number: &usize| {
            *number != self.id.index() && self.connections.get(*number).is_none_or(Option::is_none)
        };
        let number = (0..PEERS_MAX).find(is_free).ok_or(SetupError::Exhausted("peer number"))?;
        Ok(PeerId(number as u16))
    }

    /// Our own number names our loopback; a peer of that number would pass for it.
    pub(crate) fn check_foreign_number(&self, peer: PeerId) -> Result<(), SetupError> {
        if peer == self.id {
            return Err(SetupError::Refused("the peer has our own number"));
        }
        self.check_number(peer)
    }

    /// Numbers are the peers' choice; each is taken once, and none is absurd.
    fn check_number(&self, peer: PeerId) -> Result<(), SetupError> {
        if peer.index() >= PEERS_MAX {
            return Err(SetupError::Exhausted("peer number"));
        }
        match self.connection(peer) {
            Ok(_) => Err(SetupError::Refused("a peer of this number is connected already")),
            Err(_) => Ok(()),
        }
    }

    // spec: LIFE-14
    pub(crate) fn add(&mut self, agreed: Agreement) -> Result<PeerId, SetupError> {
        self.check_number(agreed.peer)?;
        self.watch(&agreed)?;
        let index = agreed.peer.index();
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        let peer = agreed.peer;
        // A wait that named the number now would mean the wrong peer.
        self.died.retain(|died| *died != peer);
        self.peer_changes += 1;
        let connection = Connection::new(agreed);
        if let Some(taken) = connection.notes_taken() {
            let Connection { link, inward, out, .. } = &connection;
            self.responder().add(match connection.is_carried() {
                true => Served::carried(peer, link.clone(), inward, taken),
                false => Served::new(peer, link.clone(), (inward, out), taken),
            });
            self.mediated += 1;
        }
        self.linked += usize::from(connection.is_carried());
        self.connections[index] = Some(connection);
        Ok(peer)
    }

    /// Sleeps on all of a new connection, or on nothing of it.
    fn watch(&self, agreed: &Agreement) -> Result<(), SetupError> {
        let (Some(control), Some(bells)) = (agreed.link.control.socket(), &agreed.bells) else {
            return Ok(());
        };
        self.sleep.watch(control)?;
        let watched = self.watch_bells(bells);
        if watched.is_err() {
            self.sleep.forget(control);
            self.forget_bells(bells);
        }
        watched
    }

    fn watch_bells(&self, bells: &Bells) -> Result<(), SetupError> {
        self.sleep.watch_bell(bells.of(Sleeper::Port))?;
        if self.engine.is_none() {
            self.sleep.watch_bell(bells.of(Sleeper::Engine))?;
        }
        self.engine_sleep.watch_bell(bells.of(Sleeper::Engine))
    }

    pub(crate) fn forget_bells(&self, bells: &Bells) {
        self.sleep.forget_bell(bells.of(Sleeper::Port));
        self.sleep.forget_bell(bells.of(Sleeper::Engine));
        self.engine_sleep.forget_bell(bells.of(Sleeper::Engine));
    }
}

/// Where peers knock; its path, if it has one, goes with it.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: Option<PathBuf>,
}

impl Listener {
    pub(crate) fn at_path(path: &Path) -> Result<Self, SetupError> {
        let mut listener = Self::at(&socket_address(path)?)?;
        listener.path = Some(path.to_owned());
        Ok(listener)
    }

    /// Of an address that is no path.
    pub(crate) fn at(address: &SocketAddrUnix) -> Result<Self, SetupError> {
        let socket = control_socket()?;
        bind(&socket, address).map_err(SetupError::os("bind"))?;
        listen(&socket, BACKLOG).map_err(SetupError::os("listen"))?;
        Ok(Self { socket, path: None })
    }

    /// Gives its path another name.
    pub(crate) fn rename(&mut self, path: PathBuf) -> std::io::Result<()> {
        if let Some(old) = &self.path {
            std::fs::rename(old, &path)?;
            self.path = Some(path);
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It may have been renamed or removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Where there is something to do for whoever accepts.
enum Ready {
    /// A link with another host has come up.
    Link(Arrived),
    /// A new caller has knocked.
    Listener,
    /// This one has said something or left.
    Caller(usize),
}

/// A connection whose Hello is under way.
#[derive(Debug)]
pub(crate) struct Begun {
    socket: OwnedFd,
    bells: Bells,
}

impl Begun {
    /// Where the answer comes.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What the other side has answered, if it has.
    pub(crate) fn answer(&self) -> Result<Option<Packet>, SetupError> {
        control::receive(self.socket.as_fd()).packet()
    }
}

/// A caller's Hello.
pub(crate) struct Hello {
    half: Half,
    /// Page and bells.
    fds: [OwnedFd; 3],
}

impl Hello {
    /// The caller's, if it is an endpoint.
    pub(crate) fn name(&self) -> Option<Name> {
        match self.half.says {
            Says::Hello(name) if self.half.number.is_none() => Some(name),
            _ => None,
        }
    }
}

/// The Hello that a caller has said, if he has said anything.
pub(crate) fn hear_hello(socket: BorrowedFd<'_>) -> Result<Option<Hello>, SetupError> {
    let Some(packet) = control::receive(socket).packet()? else { return Ok(None) };
    let half = expect(&packet, PacketKind::Hello)?;
    let fds = packet.fds.try_into().map_err(|fds: Vec<_>| wrong_descriptors(&fds, socket))?;
    Ok(Some(Hello { half, fds }))
}

fn socket_address(path: &Path) -> Result<SocketAddrUnix, SetupError> {
    SocketAddrUnix::new(path).map_err(SetupError::os("socket path"))
}

fn control_socket() -> Result<OwnedFd, SetupError> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::empty());
    descriptor::socket(AddressFamily::UNIX, kind, flags, None).map_err(SetupError::os("socket"))
}

fn control_pair() -> Result<(OwnedFd, OwnedFd), SetupError> {
    descriptor::socket_pair(SocketType::SEQPACKET).map_err(SetupError::os("socketpair"))
}

/// Only processes of the same user, and root's, are peers.
// spec: LIFE-7
fn check_credentials(socket: BorrowedFd<'_>) -> Result<(), SetupError> {
    let theirs = sockopt::socket_peercred(socket).map_err(SetupError::os("peer credentials"))?;
    let own = rustix::process::geteuid();
    if theirs.uid == own || theirs.uid.is_root() {
        return Ok(());
    }
    Err(SetupError::Refused("the peer belongs to another user"))
}

fn link(control: OwnedFd, page: PeerPage, bells: &Bells, theirs_expedited: bool) -> Arc<Link> {
    let both = expedited() && theirs_expedited;
    let fencing = if both { Fencing::Asymmetric } else { Fencing::Symmetric };
    Arc::new(Link { control: Channel::Socket(control), page, bells: bells.clone(), fencing })
}

/// Why a packet has not brought the descriptors that it should: the kernel keeps back those that we
/// have no room for, in which case there is none for one more. Those that came are held meanwhile.
fn wrong_descriptors(_held: &[OwnedFd], socket: BorrowedFd<'_>) -> SetupError {
    match descriptor::copy(socket) {
        Ok(_) => SetupError::Protocol("descriptors of a packet"),
        Err(errno) => SetupError::Os { call: "descriptors of a packet", errno },
    }
}

fn expect(packet: &Packet, kind: PacketKind) -> Result<Half, SetupError> {
    match packet.kind {
        PacketKind::Refuse => Err(SetupError::Refused("by the listening port")),
        found if found == kind => Half::parse(&packet.words, kind),
        _ => Err(SetupError::Protocol("packet out of turn")),
    }
}
