//! Messengers: ports that carry active messages.
use super::assembly::Assembly;
use super::call::Call;
use super::failures::DroppedCall;
use super::handler::Handler;
use super::handlers::Handlers;
use super::options::MessengerOptions;
use super::outgoing::{Outbound, Outgoing, bytes_of};
use super::peers::Name;
use super::way::say;
use crate::error::{Busy, Fault, PostError, ReceiveError, SetupError};
use crate::mem::lane::Probe;
use crate::net::clock::Deadline;
use crate::port::Port;
use crate::port::message::Message;
use ayre_proto::active::long::Piece;
use ayre_proto::active::record::Record;
use ayre_proto::active::{LONGEST, STATIC_IDS};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;
use std::time::Duration;

/// The most messages that one poll takes.
const POLL_MAX: usize = 16;

/// The first record of a feature's long message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongHead<'a> {
    pub(crate) id: u32,
    pub(crate) arguments: &'a [u8],
    /// Bytes of the message, and of its first piece.
    pub(crate) total: u64,
    pub(crate) piece: u64,
}

/// A feature of a messenger: its records, its long messages, and its work in polls. `messenger.rs`
/// lists the features. Returned numbers count the handlers that were run.
pub(crate) trait Extension<S> {
    /// Whether records of this tag and long messages of this id belong to the feature.
    fn takes(tag: u32) -> bool;

    /// Takes a record, which is the first `len` bytes of the messenger's buffer.
    ///
    /// # Errors
    /// [`Malformed`], and the sender's connection ends.
    fn on_record(
        messenger: &mut Messenger<S>,
        state: &mut S,
        from: (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed>;

    /// Whether a long message may begin with this record.
    fn admits(_long: &LongHead<'_>) -> bool {
        false
    }

    /// Takes a long message of one piece, which stays in its sender's landing until this returns.
    ///
    /// # Errors
    /// The errors of [`Extension::on_record`].
    fn on_landed(
        messenger: &mut Messenger<S>,
        state: &mut S,
        source: PeerId,
        long: &LongHead<'_>,
        piece: Piece,
    ) -> Result<usize, Malformed> {
        let mut payload = vec![0; piece.len as usize];
        messenger.out.read_landing(source, piece.offset, &mut payload);
        Self::on_long(messenger, state, source, (long.id, long.arguments), payload)
    }

    /// Takes a long message of several pieces.
    ///
    /// # Errors
    /// The errors of [`Extension::on_record`].
    fn on_long(
        _messenger: &mut Messenger<S>,
        _state: &mut S,
        _source: PeerId,
        (_id, _arguments): (u32, &[u8]),
        _payload: Vec<u8>,
    ) -> Result<usize, Malformed> {
        Err(Malformed)
    }

    /// Continues the feature's work, and runs handlers of arrived messages.
    fn advance(_messenger: &mut Messenger<S>, _state: &mut S) -> usize {
        0
    }

    /// Whether the next poll must call `advance`, even if no message arrives.
    fn is_due(_messenger: &Messenger<S>) -> bool {
        false
    }

    /// A peer has died, and everything that it had sent was taken.
    fn on_death(_messenger: &mut Messenger<S>, _peer: PeerId) {}
}

/// All features.
pub(super) type Features<S> = <S as Assembly>::Features;

/// A port that carries active messages. `S` is the program's state, which handlers change.
///
/// Handlers run in [`Messenger::poll`] and in calls that wait, on the caller's thread.
///
/// Four features are views of the messenger: [`collectives`](Messenger::collectives),
/// [`channels`](Messenger::channels), [`streams`](Messenger::streams) and
/// [`multicast`](Messenger::multicast).
// spec: AM-6
pub struct Messenger<S> {
    pub(super) handlers: Handlers<S>,
    pub(crate) out: Outgoing,
    pub(crate) features: Features<S>,
    pub(crate) buffer: Box<[u8; EAGER_MAX]>,
    pub(crate) deaths: VecDeque<PeerId>,
    /// The last poll has found a message in the lane of the message before.
    has_found: bool,
    /// The number of consecutive waits for room.
    pauses: u32,
    /// The count of begun and ended connections at the last wait.
    peer_changes: u64,
    syncs: u64,
}

impl<S> std::fmt::Debug for Messenger<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.handlers.entries().iter().map(|entry| (&entry.name, entry.id));
        f.debug_struct("Messenger").field("handlers", &names.collect::<Vec<_>>()).finish()
    }
}

impl<S> AsRef<Port> for Messenger<S> {
    fn as_ref(&self) -> &Port {
        &self.out.port
    }
}

impl<S> Messenger<S> {
    /// Makes a messenger of a port. The port's short messages belong to the messenger from now on.
    pub fn new(port: Port) -> Self {
        Self {
            handlers: Handlers::default(),
            out: Outgoing::new(port, MessengerOptions::new()),
            features: Features::<S>::default(),
            buffer: Box::new([0; EAGER_MAX]),
            deaths: VecDeque::new(),
            has_found: false,
            pauses: 0,
            peer_changes: 0,
            syncs: 0,
        }
    }

    /// Makes a messenger with other limits than the defaults.
    ///
    /// # Errors
    /// The errors of [`MessengerOptions::check`].
    pub fn with_options(port: Port, options: MessengerOptions) -> Result<Self, SetupError> {
        options.check()?;
        let mut messenger = Self::new(port);
        messenger.out.options = options;
        Ok(messenger)
    }

    /// Returns the port, for everything but short messages.
    pub fn port(&mut self) -> &mut Port {
        &mut self.out.port
    }

    /// Gives the port back. Messages that were kept for peers are lost; [`Messenger::flush`] sends
    /// them before.
    pub fn into_port(mut self) -> Port {
        self.out.leave_to_peers();
        self.out.port
    }

    /// Registers a handler under a name of 1 to 64 bytes. Each peer is told of it before the next
    /// message.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for a name that is empty, too long or taken, or whose id is taken.
    // spec: AM-1, AM-2, AM-3
    pub fn register<const N: usize>(
        &mut self,
        name: &str,
        run: impl FnMut(&mut S, &mut Call<'_>, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        let handler = Handler::named(name);
        self.handlers.add(Some(name), handler, run)?;
        let (id, name) = (handler.id(), name.into());
        self.out.add_name(Name { id, arguments: N as u8, name });
        Ok(handler)
    }

    /// Registers a handler under an id from 32 to 255, on which the processes have agreed. Peers
    /// can call it before any name is announced.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for an id out of the range, or one that is taken.
    // spec: AM-1, AM-2
    pub fn register_static<const N: usize>(
        &mut self,
        id: u32,
        run: impl FnMut(&mut S, &mut Call<'_>, [u64; N], &[u8]) + Send + 'static,
    ) -> Result<Handler<N>, SetupError> {
        let is_static = |handler: &Handler<N>| STATIC_IDS.contains(&handler.id());
        let handler = Handler::with_id(id).filter(is_static);
        let handler = handler.ok_or_else(|| {
            SetupError::invalid(format!("the static id {id}; ids are from 32 to 255"))
        })?;
        self.handlers.add(None, handler, run)?;
        Ok(handler)
    }

    /// Whether a peer has announced a handler of this name and these arguments.
    // spec: AM-4
    pub fn is_announced<const N: usize>(&mut self, peer: PeerId, handler: Handler<N>) -> bool {
        let is_it = |name: &Name| name.id == handler.id() && usize::from(name.arguments) == N;
        self.out.peer(peer).announced.iter().any(is_it)
    }

    /// Waits until all living peers have begun as many syncs as this process. Then their handlers
    /// that were registered before the sync are known here, and the messages that they sent before
    /// it have been run. Runs handlers meanwhile.
    ///
    /// # Errors
    /// The [`Fault`]s of [`Messenger::call`], except for the death of a peer. After
    /// [`Fault::Interrupted`] the next call goes on with this sync.
    // spec: AM-4
    pub fn sync(&mut self, state: &mut S) -> Result<(), Fault> {
        let (round, own) = (self.syncs + 1, self.out.port.id);
        let peers: Vec<_> = self.out.port.peers().filter(|peer| *peer != own).collect();
        for peer in &peers {
            if self.out.peer(*peer).synced == round {
                continue;
            }
            match self.post_until(state, |out| {
                out.announce(*peer)?;
                if out.peer(*peer).is_busy() {
                    return Err(Busy::MessageLaneFull.into());
                }
                say(&mut out.port, *peer, &Record::Sync(round))
            }) {
                Err(Fault::PeerDead) | Ok(()) => self.out.peer(*peer).synced = round,
                Err(fault) => return Err(fault),
            }
        }
        // All messages of a peer that has gone are taken first.
        while peers
            .iter()
            .any(|peer| !self.out.port.is_silent(*peer) && self.out.peer(*peer).syncs < round)
        {
            match self.step(state, None) {
                Ok(_) => {}
                Err(ReceiveError::PeerDied(peer)) => self.deaths.push_back(peer),
                Err(_) => return Err(Fault::Interrupted),
            }
        }
        self.syncs = round;
        Ok(())
    }

    /// Sends a message. Waits until there is room for all of it, and runs handlers meanwhile.
    ///
    /// # Errors
    /// [`Fault::TooLong`] for a payload of more than [`LONGEST`] bytes;
    /// [`Fault::PeerDead`]; [`Fault::ForeignHandle`] for an unknown peer. [`Fault::Interrupted`]: a
    /// message of more than 1024 bytes may still be sent.
    // spec: AM-5, AM-9
    #[inline]
    pub fn call<const N: usize>(
        &mut self,
        state: &mut S,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), Fault> {
        if 8 * N + payload.len() > EAGER_MAX {
            return self.call_long(state, to, (handler.id(), &arguments), payload);
        }
        match self.out.post(to, handler, arguments, payload) {
            Ok(()) => Ok(()),
            Err(PostError::Fault(fault)) => Err(fault),
            Err(PostError::Busy(_)) => self.post_until(state, |out| {
                out.want(to);
                out.post(to, handler, arguments, payload)
            }),
        }
    }

    /// Sends a message of at most 1024 bytes, arguments included, if there is room. Never blocks,
    /// and runs no handler.
    ///
    /// # Errors
    /// [`Busy`] with nothing done; the [`Fault`]s of [`Messenger::call`].
    // spec: AM-9
    #[inline]
    pub fn try_call<const N: usize>(
        &mut self,
        to: PeerId,
        handler: Handler<N>,
        arguments: [u64; N],
        payload: &[u8],
    ) -> Result<(), PostError> {
        if 8 * N + payload.len() > EAGER_MAX {
            return Err(Fault::TooLong.into());
        }
        let posted = self.out.post(to, handler, arguments, payload);
        if let Err(PostError::Busy(_)) = posted {
            self.out.want(to);
        }
        posted
    }

    // spec: AM-9, AM-12
    #[inline(never)]
    fn call_long(
        &mut self,
        state: &mut S,
        to: PeerId,
        (id, arguments): (u32, &[u64]),
        payload: &[u8],
    ) -> Result<(), Fault> {
        if payload.len() > LONGEST {
            return Err(Fault::TooLong);
        }
        let arguments = bytes_of(arguments);
        self.post_until(state, |out| {
            out.announce(to)?;
            let is_free = !out.peer(to).is_busy();
            if is_free { Ok(()) } else { Err(Busy::MessageLaneFull.into()) }
        })?;
        // Messages of handlers to the peer wait until this one is sent whole.
        self.out.peer(to).outward.hold(true);
        let (mut sent, mut done, mut rounds) = (0, false, 0);
        let ended = loop {
            let ended = self.post_until(state, |out| {
                done = out.advance(to, (id, &arguments), payload, &mut sent)?;
                Ok(())
            });
            if ended.is_err() || done {
                break ended;
            }
            if self.poll(state) == 0 {
                self.out.port.pause(&mut rounds);
            }
            if self.out.port.is_interrupted() {
                break Err(Fault::Interrupted);
            }
        };
        debug_assert!(sent <= payload.len(), "no more is sent than there is");
        self.out.peer(to).outward.hold(false);
        if ended == Err(Fault::Interrupted) && sent > 0 {
            // Its peer takes no other message before its end.
            self.out.keep_rest(to, id, payload, sent);
        }
        self.out.stir();
        ended
    }

    /// Repeats `post` until there is room, and runs handlers meanwhile.
    pub(crate) fn post_until(
        &mut self,
        state: &mut S,
        mut post: impl FnMut(&mut Outgoing) -> Result<(), PostError>,
    ) -> Result<(), Fault> {
        let mut rounds = 0;
        loop {
            match post(&mut self.out) {
                Ok(()) => return Ok(()),
                Err(PostError::Fault(fault)) => return Err(fault),
                Err(PostError::Busy(_)) => {}
            }
            if self.poll(state) == 0 {
                self.out.port.pause(&mut rounds);
            }
            if self.out.port.is_interrupted() {
                return Err(Fault::Interrupted);
            }
        }
    }

    /// Takes arrived messages, and runs their handlers. Never blocks. Returns the number of
    /// handlers that were run.
    // spec: AM-6
    #[inline]
    pub fn poll(&mut self, state: &mut S) -> usize {
        if self.out.owes {
            self.out.drain();
        }
        let ran = match self.out.port.try_recv_hot(&mut self.buffer[..]) {
            Probe::Taken(first) => {
                let ran = usize::from(self.take(state, &first));
                // Reading a line slows down a peer that is about to write it.
                let in_a_row = std::mem::replace(&mut self.has_found, true);
                if in_a_row { ran + self.take_more(state) } else { ran }
            }
            probe => {
                self.has_found = false;
                // The buffer has room for the longest.
                match self.out.port.try_recv_rest(&probe, &mut self.buffer[..]) {
                    Ok(Some(message)) => self.take_other(state, &message),
                    _ => 0,
                }
            }
        };
        if self.out.has_more() { ran + self.go_on(state) } else { ran }
    }

    /// Takes further messages of the same lane. It is called if two polls in a row find messages.
    #[inline(always)]
    fn take_more(&mut self, state: &mut S) -> usize {
        let mut ran = 0;
        for _ in 1..POLL_MAX {
            let found = self.out.port.try_recv_hot(&mut self.buffer[..]);
            let Probe::Taken(next) = found else { break };
            ran += usize::from(self.take(state, &next));
        }
        ran
    }

    /// Takes a message from another lane than the message before.
    #[inline(never)]
    fn take_other(&mut self, state: &mut S, message: &Message) -> usize {
        usize::from(self.take(state, message))
    }

    /// Continues the work of features. Returns the number of handlers that were run.
    #[inline(never)]
    fn go_on(&mut self, state: &mut S) -> usize {
        let ran = Features::<S>::advance(self, state);
        self.out.heed_peers();
        self.out.has_more = self.out.owes || Features::<S>::is_due(self);
        debug_assert!(self.out.has_more || !self.out.is_restless, "polls go on for who waits");
        ran
    }

    /// Waits until handlers have run, at most for `timeout`, or without a limit for `None`. Sleeps
    /// if that takes long. Returns the number of handlers that were run.
    ///
    /// # Errors
    /// [`ReceiveError::TimedOut`]; [`ReceiveError::PeerDied`], once for each peer.
    // spec: AM-6, AM-11, NET-17
    pub fn wait(
        &mut self,
        state: &mut S,
        timeout: Option<Duration>,
    ) -> Result<usize, ReceiveError> {
        let until = self.out.port.clock.deadline(timeout);
        // Polls and waits for room look at the network, too.
        let _waiting = self.out.port.clock.wait(until);
        loop {
            if let Some(peer) = self.deaths.pop_front() {
                return Err(ReceiveError::PeerDied(peer));
            }
            let ran = self.step(state, until)?;
            if ran > 0 {
                return Ok(ran);
            }
        }
    }

    /// The count of begun and ended connections at the last wait, which becomes the present one.
    pub(super) fn note_peer_changes(&mut self) -> u64 {
        let changes = self.out.port.peers.changes();
        let seen = std::mem::replace(&mut self.peer_changes, changes);
        debug_assert!(seen <= changes, "changes are counted, and none is taken back");
        seen
    }

    /// Waits and runs handlers as long as a condition holds.
    ///
    /// # Errors
    /// [`ReceiveError::PeerDied`], once for each peer. [`ReceiveError::TimedOut`] where the program
    /// interrupts the call.
    pub fn serve_while(
        &mut self,
        state: &mut S,
        mut holds: impl FnMut(&S) -> bool,
    ) -> Result<(), ReceiveError> {
        while holds(state) {
            self.wait(state, None)?;
        }
        Ok(())
    }

    /// Polls and sleeps until a condition holds. The condition is not called again after it was
    /// true, because it may have side effects. Returns false if the program interrupts the wait.
    #[must_use]
    pub(crate) fn wait_until(
        &mut self,
        state: &mut S,
        mut holds: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        loop {
            if holds(self) {
                return true;
            }
            if self.poll(state) > 0 {
                continue;
            }
            if holds(self) {
                return true;
            }
            if !self.sleep_or_bury(state) {
                return false;
            }
        }
    }

    /// Sleeps until a message or a death, which a later wait reports. Returns false if the program
    /// interrupts the wait.
    pub(crate) fn sleep_or_bury(&mut self, state: &mut S) -> bool {
        match self.sleep(state, None) {
            Ok(_) => true,
            Err(ReceiveError::PeerDied(peer)) => {
                self.deaths.push_back(peer);
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until all kept messages are sent: those of handlers and those by channels. A program
    /// that will not poll for a while calls it first. Runs handlers meanwhile. Returns early where
    /// the program interrupts it.
    // spec: AM-8
    pub fn flush(&mut self, state: &mut S) {
        loop {
            // A poll may send the last message. Then no event would end the wait.
            self.poll(state);
            if !self.out.has_kept() || !self.sleep_or_bury(state) {
                return;
            }
        }
    }

    /// Polls, or sleeps until a message or an end of the wait. Returns the number of handlers that
    /// were run.
    fn step(&mut self, state: &mut S, until: Option<Deadline>) -> Result<usize, ReceiveError> {
        match self.poll(state) {
            0 => self.sleep(state, until),
            ran => Ok(ran),
        }
    }

    /// Sleeps until a message or an end of the wait, after a poll that has run nothing.
    pub(crate) fn sleep(
        &mut self,
        state: &mut S,
        until: Option<Deadline>,
    ) -> Result<usize, ReceiveError> {
        let clock = &self.out.port.clock;
        let is_over = until.is_some_and(|until| clock.is_over(until));
        let is_restless = self.out.is_restless;
        // No event tells of room.
        let until = if is_restless { Some(clock.within(Duration::ZERO)) } else { until };
        // Callers look after each change whether the peer that they wait for has gone.
        let seen = self.note_peer_changes();
        let Outgoing { port, outbound, .. } = &mut self.out;
        let has_news = |port: &Port| port.peers.changes() != seen || outbound.has_news();
        match port.recv_or_news(&mut self.buffer[..], until, has_news) {
            Ok(message) => {
                self.pauses = 0;
                Ok(usize::from(self.take(state, &message)))
            }
            Err(ReceiveError::PeerDied(peer)) => {
                self.forget(peer);
                self.out.heed_peers();
                Err(ReceiveError::PeerDied(peer))
            }
            Err(ReceiveError::TimedOut) if !is_over && !self.out.port.is_interrupted() => {
                if is_restless {
                    self.out.port.pause(&mut self.pauses);
                }
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes messages whose handlers were not run, here or at peers, the oldest first. Those that
    /// the iterator has not returned are kept, at most 1024.
    // spec: AM-7
    pub fn failures(&mut self) -> impl Iterator<Item = DroppedCall> {
        self.out.failures.take()
    }

    /// Ends a connection, as [`Port::disconnect`] does, and forgets the peer's names.
    ///
    /// # Errors
    /// The errors of [`Port::disconnect`].
    pub fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        self.forget(peer);
        self.out.port.disconnect(peer)?;
        self.out.heed_peers();
        Ok(())
    }

    fn forget(&mut self, peer: PeerId) {
        self.out.forget(peer);
        Features::<S>::on_death(self, peer);
        self.out.has_more = true;
    }
}
