//! An endpoint: a port that finds its peers by address, and whose messages are matched messages.
//!
//! The protocol is in [`ayre_proto::endpoint`]. This folder has the lanes, rings and memory below
//! it, the connections, and the order in which polls look at peers.
//!
//! | file | subject |
//! |---|---|
//! | `address.rs`, `places.rs` | an endpoint's address |
//! | `options.rs`, `key.rs` | options, the job's key |
//! | `net_options.rs`, `reach.rs` | reachability from other hosts |
//! | `numbers.rs` | names of remotes |
//! | `remotes.rs` | the endpoints that this one knows |
//! | `connect.rs`, `capacity.rs` | connections, and room for them |
//! | `failure.rs`, `stall.rs` | reasons of failures, remotes that take nothing |
//! | `owned.rs` | the endpoint of programs that own their buffers, over the raw one |
//! | `send.rs`, `posted.rs`, `rma.rs` | operations that a program posts |
//! | `receive.rs` | incoming records |
//! | `transport.rs` | lanes, rings and memory, as the protocol uses them |
//! | `kept.rs` | the budget |
//! | `memory_regions.rs` | memory that remotes may access, by key |
//! | `sleep.rs`, `lease.rs` | yielding, sleeping, and service while the program is away |
//! | `links.rs` | polls of links with other hosts |
//! | `polls.rs` | the connection that a poll looks at |
//! | `sharing.rs`, `pollers.rs` | other users of this host's processors |
mod address;
mod pollers;
mod sharing;
pub(crate) use pollers::watch_forks;
mod capacity;
mod connect;
mod failure;
mod kept;
#[cfg(feature = "net")]
mod key;
mod lease;
mod links;
mod memory_regions;
#[cfg(feature = "net")]
mod net_options;
mod numbers;
mod options;
mod owned;
mod places;
mod polls;
mod posted;
#[cfg_attr(not(feature = "net"), path = "absent.rs")]
mod reach;
mod receive;
mod remotes;
mod rma;
mod send;
mod sleep;
mod stall;
mod transport;

pub use address::Address;
pub use ayre_proto::endpoint::{REMOTES_MAX, Received, RemoteId};
pub use options::EndpointOptions;
pub use owned::{Endpoint, Finished, NotPosted, Outcome, Pattern, RequestId};

/// Endpoints whose programs vouch for the memory of operations: for skins such as the libfabric
/// provider.
#[doc(hidden)]
pub mod raw {
    pub use super::failure::LatestFailure;
    pub use super::lease::Lease;
    pub use super::memory_regions::{
        ExposeError, MEMORY_REGION_SPANS_MAX, MEMORY_REGIONS_MAX, MemoryRegion, MemoryRegions,
    };
    pub use super::numbers::RemoteNames;
    pub use super::{OutgoingMessage, PostedReceive, RawEndpoint, RmaUpdate, RmaWrite};
    pub use crate::mem::span::{SPANS_MAX, Span, Spans};
    pub use ayre_proto::combine::Comparison;
    pub use ayre_proto::endpoint::{
        Completion, CompletionKind, Context, Probed, RemoteAddress, RmaEvent, RmaKind, Sent,
    };
}

use crate::error::{DisconnectReason, Fault, SetupError};
use crate::link::JobKey;
use crate::log::tell;
use crate::mem::span::Spans;
use crate::port::Port;
use crate::port::config::Spin;
use crate::port::connection::Connection;
use crate::port::counters::Counters;
use crate::settings;
use crate::tuning::Choices;
use ayre_proto::endpoint::{self as protocol, Completion, Context, Protocol, Sent};
use ayre_proto::limits::LANE_LINES_MAX;
use failure::LatestFailure;
use kept::Allowance;
use lease::Lease;
use memory_regions::MemoryRegions;
use numbers::RemoteNames;
use polls::Polls;
use remotes::{ConnectionState, Remote, Remotes};
use rustix::io::Errno;
use sharing::Sharing;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use transport::Surroundings;

/// A message to be sent.
pub type OutgoingMessage = protocol::OutgoingMessage<Spans>;
/// A receive to be posted.
pub type PostedReceive = protocol::PostedReceive<Spans>;
/// A write to be posted.
pub type RmaWrite = protocol::RmaWrite<Spans>;
/// An update to be posted.
pub type RmaUpdate = protocol::RmaUpdate<Spans>;

/// Polls, of those that find nothing and of the others, between two looks at who calls.
const POLLS_PER_HANDSHAKE: u32 = 512;
/// Polls between two looks while this endpoint calls somebody.
const POLLS_PER_CALL: u32 = 16;
/// Time between two such looks at the least: polls may take less than a hundredth of what a look
/// takes.
const HANDSHAKE_PAUSE: Duration = Duration::from_micros(50);
/// Polls of an endpoint with several connections that find nothing, where something came last,
/// between two that look at others, too.
const POLLS_PER_TURN: u32 = 2;
/// Polls that find something where something came last between two that look at others, too.
const FINDS_PER_TURN: u32 = 16;
/// As [`POLLS_PER_TURN`], of an endpoint with one connection, which has nowhere else to look.
const POLLS_ALONE: u32 = 128;
/// Polls that find nothing between two looks at what need not be done at each, and between two at
/// which a crowded endpoint lets others run.
const POLLS_PER_PAUSE: u32 = 4;
/// And before it sleeps instead, if no other endpoint of its process has found something.
const POLLS_BEFORE_NAP: u32 = 1 << 14;
/// Other connections that a poll looks at, and the same when processors are scarce. There a poll
/// may be all that an endpoint does in its time slice, and looking at all takes less time than a
/// yield.
const TURNS: usize = 8;
const TURNS_WHEN_CROWDED: usize = 64;
/// Records of one peer that are taken in a row.
const TAKEN_MAX: usize = 16;

/// An endpoint; see the module.
///
/// It belongs to one thread at a time. No call blocks unless it says so; what was posted ends while
/// [`RawEndpoint::progress`] is called.
#[derive(Debug)]
pub struct RawEndpoint {
    port: Port,
    address: Address,
    /// The key that it shares with others of its job, to call and to be called.
    key: Option<JobKey>,
    protocol: Protocol<Spans>,
    allowance: Allowance,
    choices: Choices,
    regions: Option<MemoryRegions>,
    /// Plain messages that the program takes next, past all receives, if it wants them so.
    inbox: Option<VecDeque<(Received, Box<[u8]>)>>,
    remotes: Remotes,
    polls: Polls,
    /// When polls looked last at who calls.
    looked: Option<Instant>,
    sharing: Sharing,
    latest_failure: LatestFailure,
    /// How many remotes have ended so far.
    losses: u64,
    /// From [`RawEndpoint::rest`] to [`RawEndpoint::wake`].
    is_asleep: bool,
    /// Tells when the program has not polled for a while, if somebody wants to know.
    lease: Option<Lease>,
}

impl RawEndpoint {
    /// Opens an endpoint that others find at [`RawEndpoint::address`], as the user's variables say
    /// ([`EndpointOptions::of_variables`]).
    ///
    /// # Errors
    /// As [`RawEndpoint::open_with`].
    pub fn open(spin: Spin) -> Result<Self, SetupError> {
        Self::open_with(&EndpointOptions::of_variables()?.spin(spin))
    }

    /// Opens an endpoint with these options.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses what a port takes, or this host does not have
    /// the address that was chosen.
    pub fn open_with(options: &EndpointOptions) -> Result<Self, SetupError> {
        let (port, address, key) = options.open_port()?;
        let memory = options.memory.map_or_else(settings::memory, |chosen| Ok(Some(chosen)))?;
        let allowance = Allowance::new(memory);
        let sharing = Sharing::new(address.name(), port.clock.is_simulated());
        Ok(Self {
            port,
            address,
            key,
            protocol: Protocol::new(allowance.beside(0), address.name()[0]),
            allowance,
            choices: Choices::default(),
            regions: None,
            inbox: None,
            remotes: Remotes::new(),
            polls: Polls::default(),
            looked: None,
            sharing,
            latest_failure: LatestFailure::default(),
            losses: 0,
            is_asleep: false,
            lease: None,
        })
    }

    /// The protocol, and what it works with.
    #[inline(always)]
    fn parts(&mut self) -> (&mut Protocol<Spans>, Surroundings<'_>) {
        let Self { protocol, port, remotes, regions, choices, address, is_asleep, .. } = self;
        (
            protocol,
            Surroundings { port, remotes, regions, choices, own: address, is_asleep: *is_asleep },
        )
    }

    /// Counters of refused and malformed inputs.
    pub fn counters(&self) -> Counters {
        self.port.counters()
    }

    /// Where peers find this endpoint.
    pub fn address(&self) -> Address {
        self.address
    }

    /// How many remotes have ended so far: by death, by a refusal, by leaving. A program that
    /// wants to hear of each looks at this behind polls.
    // spec: ENV-34
    #[inline(always)]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Why nothing goes to a remote any more; none while something does, or may.
    // spec: ENV-34
    pub fn reason(&self, remote: RemoteId) -> Option<&DisconnectReason> {
        match self.remotes.known(remote)?.state() {
            ConnectionState::Ended(why) => Some(why),
            _ => None,
        }
    }

    /// Why what goes to a remote of this host goes over the network, where it does: the reason for
    /// which memory could not be shared.
    // spec: ENV-38
    pub fn detour(&self, remote: RemoteId) -> Option<&DisconnectReason> {
        self.remotes.known(remote)?.detour()
    }

    /// Gets on with everything that is under way, and tells what has ended. Returns whether
    /// anything was done.
    ///
    /// Where this host has more endpoints that know each other than processors, an idle endpoint
    /// yields its processor. After many idle polls it sleeps for up to 250 µs, or until something
    /// comes. A program with work of its own between polls loses at most half of its time by that.
    /// An endpoint that waits for other hosts, without other work, also sleeps so where other
    /// programs compute on its processor.
    // spec: ENV-5
    #[inline(always)]
    pub fn progress(&mut self, tell: impl FnMut(Completion)) -> bool {
        !self.finds_nothing() && self.progress_on(tell)
    }

    /// The first part of [`RawEndpoint::progress`], for programs that poll all the time. True if
    /// the whole poll is done: nothing has come, nothing waits here, and no other connection has
    /// its turn. After true the caller must not call [`RawEndpoint::progress`] for this poll; after
    /// false it calls [`RawEndpoint::progress_on`].
    #[inline(always)]
    pub fn finds_nothing(&mut self) -> bool {
        let idle = self.polls.next_idle();
        let waits = self.protocol.waits();
        if self.polls.scans(idle) || waits > 0 {
            return false;
        }
        match self.has_come(self.polls.hot()) {
            Some(true) => return false,
            // Others may be elsewhere, unless there are none at all.
            None if self.port.peers.count() > 0 => return false,
            // A second look at once takes the line from its writer. A wait at each look is late in
            // a program that does much else in between, as MPI does.
            Some(false) if idle & 1 == 0 => std::hint::spin_loop(),
            Some(false) | None => {}
        }
        self.polls.has_found_none(idle);
        true
    }

    /// The rest of [`RawEndpoint::progress`].
    #[inline(never)]
    pub fn progress_on(&mut self, mut tell: impl FnMut(Completion)) -> bool {
        let tell = &mut tell;
        // What has ended before what comes now.
        let mut any = self.protocol.has_completions() && self.tell_completions(tell);
        // Here, not in a call: it is what is waited for.
        let has_come = self.take_all(self.polls.hot(), tell);
        any |= self.poll_on(has_come, tell);
        if !any && self.port.remote.is_in_use() {
            any = self.look_at_links(tell);
        }
        if any {
            self.polls.has_found();
            let finds = self.sharing.find();
            if finds.is_multiple_of(FINDS_PER_TURN) {
                self.look_elsewhere(finds, tell);
            }
        } else {
            self.prefetch_lines();
            let idle = self.polls.next_idle();
            self.polls.has_found_none(idle);
            if idle.is_multiple_of(POLLS_PER_PAUSE) {
                self.pause();
            }
        }
        any |= self.protocol.has_completions() && self.tell_completions(tell);
        debug_assert!(!self.protocol.has_completions(), "all ends were told");
        any
    }

    /// However much comes where something came last, others are looked at, too.
    // spec: ENV-14
    #[inline(never)]
    fn look_elsewhere(&mut self, finds: u32, tell: &mut impl FnMut(Completion)) {
        self.take_turns(tell);
        if let Some(peer) = self.port.pump() {
            self.take_some(peer.index(), tell);
        }
        if finds.is_multiple_of(POLLS_PER_HANDSHAKE) && self.is_time_to_look(self.port.clock.now())
        {
            self.progress_control();
        }
    }

    /// Something has changed by which an endpoint decides how often it looks elsewhere than where
    /// something came last.
    // spec: ENV-5
    #[inline(never)]
    fn set_poll_rate(&mut self) {
        let neighbours = self.remotes.neighbours();
        if self.sharing.set_neighbours(neighbours) {
            self.protocol.set_budget(self.allowance.beside(neighbours));
        }
        let connections = self.port.peers().count();
        let hot = self.polls.hot();
        self.polls.set_poll_mask(if connections > 1 {
            self.poll_mask_of_many(hot)
        } else if self.is_linked(hot) {
            0
        } else if self.sharing.is_crowded()
            || self.port.remote.is_in_use()
            || self.remotes.calls() > 0
        {
            POLLS_PER_PAUSE - 1
        } else {
            POLLS_ALONE - 1
        });
    }

    /// A remote was connected, or is no more.
    // spec: ENV-5
    #[cold]
    fn count_sharers(&mut self) {
        self.sharing.count_sharers(self.remotes.iter().filter_map(Remote::processors));
    }

    /// Something has come from another one than before.
    #[inline]
    fn set_hot(&mut self, index: usize) {
        self.polls.expect_at(index);
        self.polls.set_poll_mask(self.poll_mask_of_many(index));
    }

    /// With several connections, this one hot. In a crowd all are looked at each time: what is not
    /// seen by this poll waits until all others have run.
    // spec: ENV-5
    fn poll_mask_of_many(&self, hot: usize) -> u32 {
        if self.is_linked(hot) || self.sharing.is_crowded() { 0 } else { POLLS_PER_TURN - 1 }
    }

    fn is_linked(&self, index: usize) -> bool {
        let connection = self.port.peers.at(index);
        connection.is_some_and(Connection::is_driven_here)
    }

    #[inline(never)]
    fn tell_completions(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        self.protocol.tell_completions(tell);
        true
    }

    /// Takes what has come from the connection where something came last, or from one of those
    /// whose turn it is, and sends what has been waiting for room.
    #[inline(never)]
    fn poll(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        let any = self.take_some(self.polls.hot(), tell);
        self.poll_on(any, tell)
    }

    /// The rest of a poll, when something has come where something came last, or has not.
    #[inline(always)]
    fn poll_on(&mut self, mut any: bool, tell: &mut impl FnMut(Completion)) -> bool {
        if !any && self.port.peers.count() > 1 {
            any = self.take_turns(tell);
        }
        if self.protocol.waits_for_room() {
            let mut tell: &mut dyn FnMut(Completion) = tell;
            let (protocol, mut around) = self.parts();
            any |= protocol.push_waiting(&mut around, &mut tell);
        }
        any
    }

    /// Whether something has come from a peer; of none where nobody has that number.
    #[inline(always)]
    fn has_come(&self, index: usize) -> Option<bool> {
        let connection = self.port.peers.at(index)?;
        Some(connection.messages_in.has_come())
    }

    /// Prefetches all lines of the next message where something came last, if it is likely to have
    /// several. They come as soon as the one that a poll looks at.
    #[inline(always)]
    fn prefetch_lines(&self) {
        if let Some(connection) = self.port.peers.at(self.polls.hot()) {
            connection.messages_in.send_for_rest();
        }
    }

    #[inline(never)]
    fn take_turns(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        let turns = if self.sharing.is_crowded() { TURNS_WHEN_CROWDED } else { TURNS };
        for _ in 0..turns.min(self.port.peers.count()) {
            let turn = self.polls.next_turn(self.port.peers.count());
            if turn != self.polls.hot()
                && self.has_come(turn) == Some(true)
                && self.take_some(turn, tell)
            {
                self.set_hot(turn);
                return true;
            }
        }
        false
    }

    /// Nothing has come for some polls.
    #[inline(never)]
    fn pause(&mut self) {
        let between = if self.remotes.calls() > 0 { POLLS_PER_CALL } else { POLLS_PER_HANDSHAKE };
        if self.polls.idle().is_multiple_of(between) {
            let now = self.port.clock.now();
            if self.sharing.poll(now) {
                self.set_poll_rate();
            }
            if self.is_time_to_look(now) {
                self.progress_control();
            }
        } else if self.port.peers.has_dead() {
            self.end_dead();
        }
        if self.polls.empty() >= POLLS_PER_PAUSE {
            self.yield_processor();
        }
    }

    /// Whether a look at who calls is due. On a simulated network polls take no time.
    fn is_time_to_look(&mut self, now: Instant) -> bool {
        let is_due = self.remotes.calls() > 0
            || self.port.clock.is_simulated()
            || self
                .looked
                .is_none_or(|last| now.saturating_duration_since(last) >= HANDSHAKE_PAUSE);
        if is_due {
            debug_assert!(self.looked.is_none_or(|last| last <= now), "time goes on");
            self.looked = Some(now);
        }
        is_due
    }

    /// The part of [`RawEndpoint::progress`] that is done only now and then, however much comes:
    /// callers, answers and deaths. A program that polls seldom calls it between polls. The next
    /// poll reports the completions.
    // spec: ENV-14
    pub fn progress_control(&mut self) {
        if let Some(lease) = &self.lease {
            lease.renew_in_time();
        }
        self.port.progress_lanes();
        self.port.service_control();
        // Who has gone and comes again is let in at once.
        if self.port.peers.has_dead() {
            self.end_dead();
        }
        self.handshake();
        self.set_poll_rate();
        if self.port.peers.has_dead() {
            self.end_dead();
        }
    }

    #[inline(never)]
    fn take_some(&mut self, index: usize, tell: &mut impl FnMut(Completion)) -> bool {
        self.take_all(index, tell)
    }

    /// Takes what has come from a peer, up to a bound.
    #[inline(always)]
    fn take_all(&mut self, index: usize, tell: &mut impl FnMut(Completion)) -> bool {
        let mut count = 0;
        while count < TAKEN_MAX && self.take(index, count > 0, tell) {
            count += 1;
        }
        count > 0
    }

    /// Peers that have died: everything with them ends.
    // spec: ENV-8, ENV-40
    #[cold]
    fn end_dead(&mut self) {
        while let Some(peer) = self.port.peers.next_dead() {
            let connection = self.port.connection(peer).ok();
            let (ended, has_left) = connection.map_or((None, false), |it| (it.ended, it.left));
            let loss = connection.and_then(|it| it.control().loss());
            if let Some(remote) = self.remotes.connected_at(peer) {
                let why =
                    match DisconnectReason::of_fault(ended.unwrap_or(Fault::PeerDead), has_left) {
                        DisconnectReason::Died if self.port.sleep.is_lost() => {
                            DisconnectReason::Os { call: "epoll_wait", errno: Errno::BADF }
                        }
                        DisconnectReason::Died => {
                            loss.map_or(DisconnectReason::Died, DisconnectReason::from)
                        }
                        why => why,
                    };
                self.end_remote(remote, why);
            }
            self.remotes.cut_off(peer.index());
            let forgotten = self.port.forget(peer);
            debug_assert!(forgotten.is_ok(), "it was connected");
            debug_assert!(self.remotes.connected_at(peer).is_none(), "its remote has ended");
        }
        // The next caller, who may be here before anything else is done, is let in.
        if self.remotes.is_full() {
            self.update_full();
        }
    }

    /// Everything that is under way with a remote ends.
    fn end_remote(&mut self, remote: RemoteId, reason: DisconnectReason) {
        // What it sent before it went can still be received.
        if let Some(peer) = self.remotes.get(remote).and_then(Remote::peer) {
            // One that goes on writing does not make it take longer.
            for _ in 0..LANE_LINES_MAX {
                if !self.take_last(peer.index()) {
                    break;
                }
            }
        }
        // Who is shut out hangs up: that is not why.
        let shut_out = self.remotes.get(remote).and_then(Remote::shut_out_for).cloned();
        let reason = match reason.fault() {
            Fault::PeerDead | Fault::NoMemory => shut_out.unwrap_or(reason),
            _ => reason,
        };
        let why = reason.fault();
        self.log_end(remote, &reason);
        self.losses += 1;
        self.hang_up(remote);
        let (protocol, mut around) = self.parts();
        protocol.end(&mut around, remote, why);
        tell!(INFO, "endpoint {} of {}: {reason}", remote.index(), self.address.socket_name());
        if self.remotes.end(remote, reason) {
            self.count_sharers();
            debug_assert!(self.has_completed_all(remote), "nothing is under way with it");
            debug_assert!(self.remotes.way(remote).is_none(), "nothing goes to it any more");
        }
    }
}
