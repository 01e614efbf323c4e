//! How ports find each other and agree on a connection.
//!
//! ```text
//!   connecting port                         accepting port
//!     Hello   version number mode           checks credentials and version
//!             fds: page                -->
//!                                      <--  Welcome  number, agreed mode and lane sizes
//!                                           fds: page, connection file
//! ```
//!
//! The connection file is made by the accepting port; its first direction is that port's outgoing
//! one. A connection is direct only where both ends want it so. Who is not let in hears a Refuse
//! instead of a Welcome, with the reason.
//!
//! | file | subject |
//! |---|---|
//! | `doors.rs` | listener and callers of a port |
//! | `greeting.rs` | what both say |
//! | `listener.rs` | where callers knock |
//! | `users.rs` | whose processes connect |
mod doors;
mod greeting;
mod listener;
mod users;

pub(crate) use doors::{CALLERS_MAX, Caller, Doors, TIME_TO_SPEAK};
pub(crate) use greeting::{Hello, hear_hello};
pub(crate) use listener::{Listener, PREFIX, answers};

use super::config::Config;
use super::connection::Connection;
use super::device::{AnyDevice, Device};
use crate::clock::{self, poll_until};
use crate::error::{Fault, SetupError};
use crate::link::Arrived;
use crate::log::tell;
use crate::mem::Instead;
use crate::mem::fence::{Fencing, expedited};
use crate::mem::file::check_alike;
use crate::mem::layout::{Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::mem::page::PeerPage;
use crate::peer::agreement::{Agreement, lane_sizes};
use crate::peer::contact::{Link, Waker};
use crate::peer::control::{self, Channel, Socket};
use crate::peer::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::settings::choice::Mode;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use crate::target::Served;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use greeting::{Half, OF_NUMBER, Says, expect, refusal_of, refuse, wrong_descriptors};
use listener::{BACKLOG, Knock, control_socket, knock, socket_address};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType, connect, sockopt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use users::check_credentials;

/// Between two calls of one who was not let in, or found no room.
pub(crate) const BETWEEN_CALLS: Duration = Duration::from_millis(1);
/// Steps of accepting once its time is over: a knock and a word of each who can be waiting then.
const LATE_MAX: usize = 2 * (BACKLOG as usize + 1) + CALLERS_MAX;

impl Port {
    /// Takes connections at a Unix socket of this path; [`Port::accept`] completes each. A socket
    /// that a killed process has left there is replaced.
    ///
    /// # Errors
    /// [`SetupError::InUse`] where another process listens there, or what is there is no socket;
    /// [`SetupError::Os`] where the path cannot be bound.
    // spec: LIFE-6, LIFE-33
    pub fn listen(&mut self, path: impl AsRef<Path>) -> Result<(), SetupError> {
        self.check_process()?;
        self.doors.open(Listener::at_path(path.as_ref())?);
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
        self.check_process()?;
        if !self.doors.are_open() && !self.remote.is_open() {
            return Err(SetupError::invalid("accept comes after listen or open_net"));
        }
        let accepted = self.accept_next(false);
        self.accept_links(false);
        accepted.map_err(|error| match error {
            SetupError::TimedOut(_) => self.remote.turned_away().unwrap_or(error),
            other => other,
        })
    }

    /// The same for a rank that waits for another one: a rank of another version does not become
    /// one of this version, so that ends the waiting.
    // spec: LIFE-27
    pub(crate) fn accept_rank(&mut self) -> Result<PeerId, SetupError> {
        let accepted = self.accept_next(true);
        self.accept_links(false);
        accepted
    }

    fn accept_next(&mut self, is_rank: bool) -> Result<PeerId, SetupError> {
        let deadline = self.clock.within(self.config.setup_timeout);
        // The numbers of those that have gone are free for links as well.
        self.service_control();
        let (mut late, mut changes) = (0, None);
        while late < LATE_MAX {
            late += usize::from(self.clock.is_over(deadline));
            if changes.replace(self.peers.changes()) != Some(self.peers.changes()) {
                self.accept_links(true);
            }
            match self.wait_beside(deadline, |port, until| port.next_ready(until, is_rank))? {
                Ready::Listener => self.let_in()?,
                Ready::Link(arrived) => match self.take_call(arrived) {
                    Ok(peer) => return Ok(peer),
                    Err(_) => self.count_malformed(),
                },
                Ready::Caller(index) => {
                    let caller = self.doors.take_caller(index);
                    match self.welcome(caller) {
                        Ok(peer) => return Ok(peer),
                        // Of welcoming, only what the system refuses us.
                        Err(error @ SetupError::Os { .. }) => return Err(error),
                        Err(SetupError::Version { peer, theirs, ours }) if is_rank => {
                            let peer = peer.replace(OF_NUMBER, "rank ");
                            return Err(SetupError::Version { peer, theirs, ours });
                        }
                        Err(_) => self.count_malformed(),
                    }
                }
            }
        }
        Err(SetupError::timed_out("a peer"))
    }

    /// Waits until a new caller knocks or a known one has said something or left, until the port
    /// has other things to do, or until `deadline`.
    fn next_ready(
        &self,
        deadline: Option<Instant>,
        is_rank: bool,
    ) -> Result<Option<Ready>, SetupError> {
        if let Some(arrived) = self.remote.next_link() {
            return Ok(Some(Ready::Link(arrived)));
        }
        let callers = self.doors.callers();
        let count = callers.len();
        let own = self.sleep.as_fd();
        let full = self.doors.full_until().filter(|_| is_rank);
        let full = full.filter(|until| !self.clock.is_over(*until));
        let listening = self.doors.sockets().filter(|_| full.is_none());
        let watched: Vec<_> = callers.chain(listening).chain([own]).collect();
        let mut fds: Vec<_> = watched.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        poll_until(
            &mut fds,
            deadline.into_iter().chain(full.and_then(|full| self.wake_by(Some(full)))).min(),
        )?;
        fds.pop();
        let happened = fds.iter().position(|fd| !fd.revents().is_empty());
        Ok(happened.map(|index| match index < count {
            true => Ready::Caller(index),
            false => Ready::Listener,
        }))
    }

    /// Somebody who knocks now, if anybody does and is of those who may.
    // spec: LIFE-7, LIFE-27
    pub(crate) fn next_caller(&mut self) -> Result<Option<Descriptor>, SetupError> {
        let sockets: Vec<_> = self.doors.sockets().collect();
        let mut knocks: Vec<_> = sockets.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        poll_until(&mut knocks, clock::at_once())?;
        let Some(knock) = knocks.iter().position(|fd| !fd.revents().is_empty()) else {
            return Ok(None);
        };
        let Some(listener) = self.doors.listener() else { return Ok(None) };
        let (socket, short) = listener.accept(knock).map_err(SetupError::os("accept"))?;
        if let Some(errno) = short {
            turn_away(socket, SetupError::Os { call: "accept", errno });
            listener.has_turned_away();
            return Ok(None);
        }
        match check_credentials(socket.as_fd()) {
            Ok(()) => Ok(Some(socket)),
            Err(error) => {
                turn_away(socket, error);
                self.count_stranger();
                Ok(None)
            }
        }
    }

    /// Listens at a name, for those who call by it.
    pub(crate) fn listen_at(&mut self, name: &str) -> Result<(), SetupError> {
        let listener = Listener::at_name(name)?;
        for socket in listener.sockets() {
            self.sleep.watch(socket)?;
        }
        self.doors.open(listener);
        Ok(())
    }

    /// Lets a new caller speak.
    fn let_in(&mut self) -> Result<(), SetupError> {
        if let Some(caller) = self.next_caller()? {
            self.doors.admit(Caller { socket: caller, until: self.clock.within(TIME_TO_SPEAK) });
        }
        Ok(())
    }

    /// Connects to the port that listens at `path`, waiting until it accepts.
    ///
    /// # Errors
    /// As [`Port::accept`]; [`SetupError::Refused`], [`SetupError::Rejected`] and
    /// [`SetupError::Version`] where one of the two does not want the connection.
    // spec: LIFE-6, LIFE-27
    pub fn connect(&mut self, path: impl AsRef<Path>) -> Result<PeerId, SetupError> {
        let path = path.as_ref();
        let connected = self.begin_connect(path).and_then(|begun| self.finish_connect(begun));
        connected.map_err(|error| error.of(path.display().to_string()))
    }

    /// Connects this port to itself: the simplest connection, where both ends are one.
    ///
    /// # Errors
    /// As [`Port::accept`].
    // spec: LIFE-5
    pub fn connect_loopback(&mut self) -> Result<PeerId, SetupError> {
        self.check_process()?;
        let (mode, sizes) = (self.config.mode, self.sizes_for(self.config.mode));
        let (socket, other) = control_pair()?;
        let (page, waker) =
            (PeerPage::new(self.page.file())?, Waker::Bell(self.engine.bell().clone()));
        let link = link(socket, page, waker, true)?;
        let (_, mapping) = sizes.make_file()?;
        let (out, _) = Direction::pair(&mapping, sizes);
        let inward = out.clone();
        let peer = self.add(Agreement::here(self.id, (mode, link), (out, inward)))?;
        // Not before: where there is a loopback already, it lives by the end that stands here.
        self.doors.keep_loopback(other);
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
        let there = second.welcome(far)?;
        let here = first.finish_connect(begun)?;
        debug_assert_eq!(first.mode(here), second.mode(there), "both ends have agreed");
        Ok((first, second))
    }

    /// Sends the Hello; the peer's answer is taken by [`Port::finish_connect`].
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

    /// Sends the Hello to who listens at a name; never waits.
    // spec: LIFE-31
    pub(crate) fn begin_call_here(&mut self, name: &str) -> Result<Called, SetupError> {
        let socket = match knock(name)? {
            Knock::Called(socket) => socket,
            Knock::Full => return Ok(Called::Full),
            Knock::Nobody => return Ok(Called::Nobody),
        };
        check_credentials(socket.as_fd())?;
        self.greet(socket).map(Called::Begun)
    }

    /// The same, for who waits for room among the callers.
    pub(crate) fn begin_connect_to(&mut self, name: &str) -> Result<Option<Begun>, SetupError> {
        let deadline = self.clock.within(self.config.setup_timeout);
        loop {
            match self.begin_call_here(name)? {
                Called::Begun(begun) => return Ok(Some(begun)),
                Called::Nobody => return Ok(None),
                Called::Full if self.clock.is_over(deadline) => {
                    return Err(SetupError::timed_out("room among a rank's callers"));
                }
                // The system tells nobody of room.
                Called::Full => self.let_go_by(BETWEEN_CALLS),
            }
        }
    }

    fn greet(&mut self, socket: Descriptor) -> Result<Begun, SetupError> {
        let says = Says::Hello(self.config.name.unwrap_or_default());
        let half = self.half(self.config.mode, says);
        match control::send(socket.as_fd(), PacketKind::Hello, half.words(), &[self.page.file()]) {
            // One that refuses at once has said why before it closed.
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

    /// The other side has answered the Hello.
    pub(crate) fn welcomed(&mut self, begun: Begun, packet: Packet) -> Result<PeerId, SetupError> {
        let Begun { socket } = begun;
        let half = expect(&packet, PacketKind::Welcome)?;
        let [page, file] = &packet.fds[..] else {
            return Err(wrong_descriptors(&packet.fds, socket.as_fd()));
        };
        self.look_after(&half);
        let number = self.number_of(&half)?;
        let Says::Welcome(sizes) = half.says else {
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
        self.add(Agreement::here(number, (half.mode, link), (out, inward)))
    }

    /// Answers a Hello that is there to be read. Fails with [`SetupError::Os`] only where the
    /// system refuses us something; nothing that the caller does can bring that about.
    // spec: LIFE-8, LIFE-9
    fn welcome(&mut self, socket: Descriptor) -> Result<PeerId, SetupError> {
        let heard = hear_hello(socket.as_fd());
        match heard.and_then(|hello| hello.ok_or(SetupError::Protocol("no hello"))) {
            Ok(hello) => self.answer(socket, hello),
            Err(error) => Err(turn_away(socket, error)),
        }
    }

    /// Makes the connection that a caller has asked for, or tells it why not.
    pub(crate) fn answer(
        &mut self,
        socket: Descriptor,
        hello: Hello,
    ) -> Result<PeerId, SetupError> {
        self.look_after(&hello.half);
        match self.terms(hello) {
            Ok(terms) => self.accept_on(socket, terms),
            Err(error) => Err(turn_away(socket, error)),
        }
    }

    /// What a caller is to be given, if it is let in.
    fn terms(&self, hello: Hello) -> Result<Terms, SetupError> {
        let Hello { half: theirs, page } = hello;
        // Whatever stands in the way of mapping it, the caller has chosen the file.
        let mapped = PeerPage::new(page.as_fd()).map_err(|error| match error {
            SetupError::Rejected { .. } => error,
            _ => SetupError::UnsafeFile,
        })?;
        check_alike(self.page.file(), page.as_fd())?;
        let number = self.number_of(&theirs)?;
        let checked = self.doors.check(number).map_err(SetupError::rejected);
        checked.map_err(|error| error.of(format!("{OF_NUMBER}{}", number.0)))?;
        let mediated = theirs.mode == Mode::Mediated || self.config.mode == Mode::Mediated;
        let mode = if mediated { Mode::Mediated } else { Mode::Direct };
        let sizes = self.sizes_for(mode);
        let memory = sizes.make_file()?;
        Ok(Terms { number, mode, sizes, memory, page: mapped, expedited: theirs.expedited })
    }

    fn accept_on(&mut self, socket: Descriptor, terms: Terms) -> Result<PeerId, SetupError> {
        let Terms { number, mode, sizes, memory: (file, mapping), page, expedited } = terms;
        debug_assert_eq!(mapping.len(), sizes.file_len(), "the caller maps as much");
        let link = link(socket, page, Waker::Channel, expedited)?;
        let ours = self.half(mode, Says::Welcome(sizes));
        let fds = [self.page.file(), file.as_fd()];
        // What keeps the answer from the caller concerns nobody else.
        link.control
            .send(PacketKind::Welcome, ours.words(), &fds)
            .map_err(|_| SetupError::peer_left())?;
        let (out, inward) = Direction::pair(&mapping, sizes);
        self.add(Agreement::here(number, (mode, link), (out, inward)))
    }

    fn half(&self, mode: Mode, says: Says) -> Half {
        let number = self.config.name.is_none().then_some(self.id);
        Half { number, mode, expedited: expedited(), says }
    }

    fn sizes_for(&self, mode: Mode) -> LaneSizes {
        if self.config.name.is_none() {
            return lane_sizes(mode);
        }
        LaneSizes::endpoint(self.config.ring.unwrap_or_else(LaneSizes::ring_here))
    }

    /// Somebody comes with a number that another one has: that may have gone meanwhile.
    fn look_after(&mut self, half: &Half) {
        if half.number.is_some_and(|number| self.is_alive(number)) {
            self.service_control();
        }
    }

    /// The number that a peer has here: what it says, or the next one that is free. Endpoints keep
    /// to themselves, for only they know what is in each other's lanes.
    fn number_of(&self, half: &Half) -> Result<PeerId, SetupError> {
        match (half.number, self.config.name) {
            (Some(number), None) => self.check_foreign_number(number).map(|()| number),
            (None, Some(_)) => self.free_number(),
            _ => Err(SetupError::rejected(Refusal::Kind)),
        }
    }

    pub(crate) fn free_number(&self) -> Result<PeerId, SetupError> {
        let is_free =
            |number: &usize| *number != self.id.index() && self.peers.at(*number).is_none();
        let number = (0..PEERS_MAX)
            .find(is_free)
            .ok_or_else(|| SetupError::exhausted("peer number; a port has at most 1024 peers"))?;
        Ok(PeerId(number as u16))
    }

    /// Our own number names our loopback; a peer of that number would pass for it.
    pub(crate) fn check_foreign_number(&self, peer: PeerId) -> Result<(), SetupError> {
        if peer == self.id {
            return Err(SetupError::rejected(Refusal::Taken));
        }
        self.check_number(peer)
    }

    /// Numbers are the peers' choice; each is taken once at a time, and none is absurd.
    // spec: LIFE-14
    fn check_number(&self, peer: PeerId) -> Result<(), SetupError> {
        if peer.index() >= PEERS_MAX {
            return Err(SetupError::exhausted("peer number; a port has at most 1024 peers"));
        }
        match self.connection(peer) {
            Ok(_) if !self.is_over(peer) => Err(SetupError::rejected(Refusal::Taken)),
            _ => Ok(()),
        }
    }

    /// Whether a connection has ended, or its peer has said that it leaves, and nothing of it is
    /// left to be received. The end of one that leaves may be late: a child of it may have its
    /// sockets, too.
    pub(crate) fn is_over(&self, peer: PeerId) -> bool {
        let has_gone = |known: &Connection| {
            let has_ended = known.ended.is_some() || known.left;
            has_ended && known.messages_in.peek().is_none()
        };
        self.connection(peer).is_ok_and(has_gone) && !self.has_notes_of(peer)
    }

    // spec: LIFE-14
    pub(crate) fn add(&mut self, agreed: Agreement) -> Result<PeerId, SetupError> {
        self.check_number(agreed.peer)?;
        self.watch(&agreed)?;
        let peer = agreed.peer;
        if self.peers.find(peer).is_ok() {
            self.end_connection(peer, Fault::PeerDead);
            self.forget(peer)?;
        }
        let (wire, is_tended) = (self.remote.shared(), self.engine.runs());
        let mut device = AnyDevice::for_connection(&agreed, wire, is_tended);
        if let Some(trace) = &self.config.trace {
            device = device.recorded(peer, trace);
        }
        let connection = Connection::new(agreed, device);
        if let Some(taken) = connection.executor.notes_taken() {
            let Connection { link, inward, out, .. } = &connection;
            self.responder().add(match connection.is_driven_here() {
                true => Served::carried(peer, link.clone(), inward, taken),
                false => Served::new(peer, link.clone(), (inward, out), taken),
            });
            self.mediated += 1;
        }
        if connection.is_driven_here() {
            self.remote.begin_use();
        }
        let how = connection.device.how();
        tell!(INFO, "connected with peer {} {how}", peer.index());
        debug_assert!(
            self.peers.at(peer.index()).is_none(),
            "the last one of the number is forgotten"
        );
        self.peers.add(connection);
        self.check();
        Ok(peer)
    }

    /// Sleeps on all of a new connection, or on nothing of it.
    fn watch(&self, agreed: &Agreement) -> Result<(), SetupError> {
        self.sleep.watch_control(&agreed.link)?;
        let watched = self.engine.watch(&agreed.link);
        if watched.is_err() {
            self.sleep.forget_control(&agreed.link);
        }
        watched
    }
}

/// What a caller who is let in is given.
struct Terms {
    number: PeerId,
    mode: Mode,
    sizes: LaneSizes,
    memory: (Descriptor, Arc<Mapping>),
    page: PeerPage,
    /// Whether membarriers reach the caller.
    expedited: bool,
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

/// How a call at a name stands.
pub(crate) enum Called {
    Begun(Begun),
    /// As many callers wait as may: it is to be tried again.
    Full,
    /// Nobody listens.
    Nobody,
}

/// A connection whose Hello is under way.
#[derive(Debug)]
pub(crate) struct Begun {
    socket: Descriptor,
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

/// Ends the call of one that is not let in, and tells it why.
// spec: LIFE-27
pub(crate) fn turn_away(caller: Descriptor, why: SetupError) -> SetupError {
    tell!(WARN, "a caller was not let in: {why}");
    refuse(caller.as_fd(), refusal_of(&why));
    why
}

fn control_pair() -> Result<(Descriptor, Descriptor), SetupError> {
    descriptor::socket_pair(SocketType::SEQPACKET).map_err(SetupError::os("socketpair"))
}

fn link(
    control: Descriptor,
    page: PeerPage,
    waker: Waker,
    theirs_expedited: bool,
) -> Result<Arc<Link>, SetupError> {
    let both = expedited() && theirs_expedited;
    let fencing = if both { Fencing::Asymmetric } else { Fencing::Symmetric };
    let control = Channel::Socket(Socket::new(control)?);
    Ok(Arc::new(Link { control, page, waker, fencing }))
}
