//! How two ports meet on a host and agree on a connection.
//!
//! ```text
//!   connecting port                         accepting port
//!     Hello   version number mode           checks credentials and version
//!             fds: page                -->
//!                                      <--  Welcome  number, agreed mode and lane sizes
//!                                           fds: page, connection file
//! ```
//!
//! The accepting port makes the connection file; the file's first direction is that port's outgoing
//! one. A connection is direct only where both ports choose that. A caller that is not admitted
//! gets a Refuse with the reason in place of a Welcome.
//!
//! | file | subject |
//! |---|---|
//! | `accept_queue.rs` | listener and callers of a port |
//! | `calling.rs` | the connecting port |
//! | `greeting.rs` | the packets of both sides |
//! | `listener.rs` | the sockets that accept callers |
//! | `users.rs` | the users whose processes may connect |
mod accept_queue;
mod calling;
mod greeting;
mod listener;
mod users;

pub(crate) use accept_queue::{AcceptQueue, CALLERS_MAX, Caller, TIME_TO_SPEAK};
pub(crate) use calling::{BETWEEN_CALLS, Begun, Called};
pub(crate) use greeting::{Hello, hear_hello};
pub(crate) use listener::{Listener, PREFIX, answers};

use super::config::Config;
use super::connection::Connection;
use super::device::{AnyDevice, Device};
use crate::clock::{self, poll_until};
use crate::error::{Fault, SetupError};
use crate::link::Arrived;
use crate::log::tell;
use crate::mem::fence::{Fencing, expedited};
use crate::mem::file::check_alike;
use crate::mem::layout::{Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::mem::page::PeerPage;
use crate::peer::agreement::{Agreement, lane_sizes};
use crate::peer::contact::{Link, Waker};
use crate::peer::control::{Channel, Socket};
use crate::peer::packet::PacketKind;
use crate::port::Port;
use crate::settings::choice::Mode;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use crate::target::Served;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use greeting::{Half, OF_NUMBER, SideSpecific, refusal_of, refuse};
use listener::BACKLOG;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::AsFd;
use rustix::net::SocketType;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use users::check_credentials;

/// Steps of accepting after its time is over: one connection and one packet of each caller that can
/// be waiting then.
const LATE_MAX: usize = 2 * (BACKLOG as usize + 1) + CALLERS_MAX;

impl Port {
    /// Listens at a Unix socket of this path; [`Port::accept`] completes each connection. Replaces
    /// a socket that a killed process has left there.
    ///
    /// # Errors
    /// [`SetupError::InUse`] where another process listens there, or the file there is no socket;
    /// [`SetupError::Os`] where the path cannot be bound.
    // spec: LIFE-6, LIFE-33
    pub fn listen(&mut self, path: impl AsRef<Path>) -> Result<(), SetupError> {
        self.check_process()?;
        self.accept_queue.open(Listener::at_path(path.as_ref())?);
        Ok(())
    }

    /// Accepts the next connection that a peer has begun. Blocks until there is one, at most for
    /// the set-up time. Callers that send something else, or nothing, are refused, and do not delay
    /// other callers or the end of the wait.
    ///
    /// # Errors
    /// [`SetupError::TimedOut`] where nobody has connected; [`SetupError::Os`] where the system
    /// refuses this port a resource that a connection needs. The caller is then refused, too.
    // spec: LIFE-9
    pub fn accept(&mut self) -> Result<PeerId, SetupError> {
        self.check_process()?;
        if !self.accept_queue.is_listening() && !self.remote.is_open() {
            return Err(SetupError::invalid("accept comes after listen or open_net"));
        }
        let accepted = self.accept_next(false);
        self.accept_links(false);
        accepted.map_err(|error| match error {
            SetupError::TimedOut(_) => self.remote.turned_away().unwrap_or(error),
            other => other,
        })
    }

    /// Accepts the next rank for a rank that waits for another one. A rank of another version ends
    /// the wait: it cannot become one of this version.
    // spec: LIFE-27
    pub(crate) fn accept_rank(&mut self) -> Result<PeerId, SetupError> {
        let accepted = self.accept_next(true);
        self.accept_links(false);
        accepted
    }

    fn accept_next(&mut self, is_rank: bool) -> Result<PeerId, SetupError> {
        let deadline = self.clock.within(self.config.setup_timeout);
        // The numbers of peers that have gone are free for links as well.
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
                    let caller = self.accept_queue.take_caller(index);
                    match self.welcome(caller) {
                        Ok(peer) => return Ok(peer),
                        // An error of welcoming counts only if the system refuses this port
                        // something.
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

    /// Waits until a new caller connects, a known one has sent something or left, the port has
    /// other work, or `deadline` has passed.
    fn next_ready(
        &self,
        deadline: Option<Instant>,
        is_rank: bool,
    ) -> Result<Option<Ready>, SetupError> {
        if let Some(arrived) = self.remote.next_link() {
            return Ok(Some(Ready::Link(arrived)));
        }
        let callers = self.accept_queue.callers();
        let count = callers.len();
        let own = self.sleep.as_fd();
        let full = self.accept_queue.full_until().filter(|_| is_rank);
        let full = full.filter(|until| !self.clock.is_over(*until));
        let listening = self.accept_queue.sockets().filter(|_| full.is_none());
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

    /// Accepts a caller, if there is one whose user may connect.
    // spec: LIFE-7, LIFE-27
    pub(crate) fn next_caller(&mut self) -> Result<Option<Descriptor>, SetupError> {
        let sockets: Vec<_> = self.accept_queue.sockets().collect();
        let mut polled: Vec<_> = sockets.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        poll_until(&mut polled, clock::at_once())?;
        let Some(ready) = polled.iter().position(|fd| !fd.revents().is_empty()) else {
            return Ok(None);
        };
        let Some(listener) = self.accept_queue.listener() else { return Ok(None) };
        let (socket, short) = listener.accept(ready).map_err(SetupError::os("accept"))?;
        if let Some(errno) = short {
            turn_away(socket, SetupError::Os { call: "accept", errno });
            listener.has_turned_away();
            return Ok(None);
        }
        match check_credentials(socket.as_fd()) {
            Ok(()) => Ok(Some(socket)),
            Err(error) => {
                turn_away(socket, error);
                self.count_refused_user();
                Ok(None)
            }
        }
    }

    /// Listens at a name, for peers that call by name.
    pub(crate) fn listen_at(&mut self, name: &str) -> Result<(), SetupError> {
        let listener = Listener::at_name(name)?;
        for socket in listener.sockets() {
            self.sleep.watch(socket)?;
        }
        self.accept_queue.open(listener);
        Ok(())
    }

    /// Accepts a new caller, which may then send its Hello.
    fn let_in(&mut self) -> Result<(), SetupError> {
        if let Some(caller) = self.next_caller()? {
            self.accept_queue
                .admit(Caller { socket: caller, until: self.clock.within(TIME_TO_SPEAK) });
        }
        Ok(())
    }

    /// Connects this port to itself: the simplest connection, in which both sides are one port.
    /// Does not block.
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
        // Only now: where there is a loopback already, it depends on the descriptor stored there.
        self.accept_queue.keep_loopback(other);
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

    /// Answers a Hello that can be read. Fails with [`SetupError::Os`] only where the system
    /// refuses this port something, which a caller cannot cause.
    // spec: LIFE-8, LIFE-9
    fn welcome(&mut self, socket: Descriptor) -> Result<PeerId, SetupError> {
        let heard = hear_hello(socket.as_fd());
        match heard.and_then(|hello| hello.ok_or(SetupError::Protocol("no hello"))) {
            Ok(hello) => self.answer(socket, hello),
            Err(error) => Err(turn_away(socket, error)),
        }
    }

    /// Makes the connection that a caller has asked for, or refuses it with the reason.
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

    /// The terms for a caller, if it is admitted.
    fn terms(&self, hello: Hello) -> Result<Terms, SetupError> {
        let Hello { half: theirs, page } = hello;
        // The caller has chosen the file, so it is to blame for any failure to map it.
        let mapped = PeerPage::new(page.as_fd()).map_err(|error| match error {
            SetupError::Rejected { .. } => error,
            _ => SetupError::UnsafeFile,
        })?;
        check_alike(self.page.file(), page.as_fd())?;
        let number = self.number_of(&theirs)?;
        let checked = self.accept_queue.check(number).map_err(SetupError::rejected);
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
        let ours = self.half(mode, SideSpecific::Welcome(sizes));
        let fds = [self.page.file(), file.as_fd()];
        // A failure to send the answer concerns this caller only.
        link.control
            .send(PacketKind::Welcome, ours.words(), &fds)
            .map_err(|_| SetupError::peer_left())?;
        let (out, inward) = Direction::pair(&mapping, sizes);
        self.add(Agreement::here(number, (mode, link), (out, inward)))
    }

    fn half(&self, mode: Mode, says: SideSpecific) -> Half {
        let number = self.config.name.is_none().then_some(self.id);
        Half { number, mode, expedited: expedited(), says }
    }

    fn sizes_for(&self, mode: Mode) -> LaneSizes {
        if self.config.name.is_none() {
            return lane_sizes(mode);
        }
        LaneSizes::endpoint(self.config.ring.unwrap_or_else(LaneSizes::ring_here))
    }

    /// Called when a caller has the number of a peer: checks whether that peer has gone meanwhile.
    fn look_after(&mut self, half: &Half) {
        if half.number.is_some_and(|number| self.is_alive(number)) {
            self.service_control();
        }
    }

    /// The number of a peer here: its own, or the next free one. Endpoints connect with endpoints
    /// only, because only they understand the records in each other's lanes.
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

    /// Refuses this port's own number, which names its loopback.
    pub(crate) fn check_foreign_number(&self, peer: PeerId) -> Result<(), SetupError> {
        if peer == self.id {
            return Err(SetupError::rejected(Refusal::Taken));
        }
        self.check_number(peer)
    }

    /// Checks a number that a peer has chosen: it must be valid and not taken.
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

    /// Whether a connection has ended, or its peer has announced that it leaves, and all its
    /// messages were received. The socket of a peer that leaves may close late, because a child of
    /// it may hold it, too.
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
        let (wire, is_served) = (self.remote.shared(), self.engine.runs());
        let mut device = AnyDevice::for_connection(&agreed, wire, is_served);
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

    /// Adds all descriptors of a new connection to the port's sleep, or none.
    fn watch(&self, agreed: &Agreement) -> Result<(), SetupError> {
        self.sleep.watch_control(&agreed.link)?;
        let watched = self.engine.watch(&agreed.link);
        if watched.is_err() {
            self.sleep.forget_control(&agreed.link);
        }
        watched
    }
}

/// The resources of an admitted caller's connection.
struct Terms {
    number: PeerId,
    mode: Mode,
    sizes: LaneSizes,
    memory: (Descriptor, Arc<Mapping>),
    page: PeerPage,
    /// Whether membarriers reach the caller's process.
    expedited: bool,
}

/// The next thing for a port that accepts.
enum Ready {
    /// A link with another host has opened.
    Link(Arrived),
    /// A new caller has connected.
    Listener,
    /// This caller has sent something or left.
    Caller(usize),
}

/// Refuses a caller and sends it the reason.
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
