//! An endpoint: a port whose peers are found by address, and whose messages go to the receives
//! that they match.
//!
//! The protocol stands in [`ayre_proto::endpoint`]. This room has the lanes, rings and memory under
//! it, connections that come about meanwhile, and the order in which polls look at peers.
//!
//! | file | subject |
//! |---|---|
//! | `address.rs`, `places.rs` | where an endpoint is found |
//! | `options.rs`, `key.rs` | how one is opened |
//! | `numbers.rs` | by which names remotes are known |
//! | `remotes.rs` | the endpoints that this one knows |
//! | `meet.rs`, `room.rs` | connections that come about meanwhile, and room for them |
//! | `latest.rs`, `stuck.rs` | why there is none, and remotes that live and take nothing |
//! | `owned.rs` | the endpoint of programs that own their buffers, over the raw one |
//! | `send.rs`, `posted.rs`, `touch.rs` | what a program posts |
//! | `receive.rs` | what comes |
//! | `ways.rs` | lanes, rings and memory, as the protocol sees them |
//! | `kept.rs` | how much is kept |
//! | `windows.rs` | memory that remotes may touch, by key |
//! | `rest.rs`, `lease.rs` | letting others run, sleeping until something comes, and being away |
//! | `links.rs` | when links with other hosts are looked at |
//! | `polls.rs` | where polls look |
//! | `company.rs`, `crowd.rs` | who else wants this host's processors, and how many do |
mod address;
mod company;
mod crowd;
pub(crate) use crowd::watch_forks;
mod kept;
mod key;
mod latest;
mod lease;
mod links;
mod meet;
mod memory_regions;
mod numbers;
mod options;
mod owned;
mod places;
mod polls;
mod posted;
mod receive;
mod remotes;
mod rest;
mod rma;
mod room;
mod send;
mod stuck;
mod ways;

pub use address::Address;
pub use ayre_proto::endpoint::{REMOTES_MAX, Received, RemoteId};
pub use options::EndpointOptions;
pub use owned::{Endpoint, Finished, NotPosted, Outcome, Pattern, RequestId};

/// Endpoints whose programs vouch for the memory of operations: for skins such as the libfabric
/// provider.
#[doc(hidden)]
pub mod raw {
    pub use super::latest::LatestFailure;
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
use company::Company;
use kept::Allowance;
use latest::LatestFailure;
use lease::Lease;
use memory_regions::MemoryRegions;
use numbers::RemoteNames;
use polls::Polls;
use remotes::{ConnectionState, Remote, Remotes};
use rustix::io::Errno;
use ways::Around;

/// A message to be sent.
pub type OutgoingMessage = protocol::OutgoingMessage<Spans>;
/// A receive to be posted.
pub type PostedReceive = protocol::PostedReceive<Spans>;
/// A write to be posted.
pub type RmaWrite = protocol::RmaWrite<Spans>;
/// An update to be posted.
pub type RmaUpdate = protocol::RmaUpdate<Spans>;

/// Polls, of those that find nothing and of the others, between two looks at who calls.
const POLLS_PER_MEETING: u32 = 512;
/// The same while this endpoint calls somebody.
const POLLS_PER_CALL: u32 = 16;
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
/// Other connections that a poll looks at, and one of a crowd: where a processor is shared, a poll
/// may be all that an endpoint does in its time, and to look at them all takes less than to yield.
const TURNS: usize = 8;
const TURNS_OF_CROWD: usize = 64;
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
    /// What it takes besides addresses to call others of its job, and to be called.
    key: Option<JobKey>,
    protocol: Protocol<Spans>,
    allowance: Allowance,
    choices: Choices,
    windows: Option<MemoryRegions>,
    remotes: Remotes,
    polls: Polls,
    company: Company,
    latest_end: LatestFailure,
    /// From [`RawEndpoint::rest`] to [`RawEndpoint::wake`].
    rests: bool,
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

    /// The same, as the options say.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses what a port takes, or this host does not have
    /// the address that was chosen.
    pub fn open_with(options: &EndpointOptions) -> Result<Self, SetupError> {
        let (port, address, key) = options.open_port()?;
        let memory = options.memory.map_or_else(settings::memory, |chosen| Ok(Some(chosen)))?;
        let allowance = Allowance::new(memory);
        let company = Company::new(address.name(), port.clock.is_simulated());
        Ok(Self {
            port,
            address,
            key,
            protocol: Protocol::new(allowance.beside(0), address.name()[0]),
            allowance,
            choices: Choices::default(),
            windows: None,
            remotes: Remotes::new(),
            polls: Polls::default(),
            company,
            latest_end: LatestFailure::default(),
            rests: false,
            lease: None,
        })
    }

    /// The protocol, and what it works with.
    #[inline(always)]
    fn parts(&mut self) -> (&mut Protocol<Spans>, Around<'_>) {
        let Self { protocol, port, remotes, windows, choices, address, rests, .. } = self;
        (protocol, Around { port, remotes, windows, choices, own: address, rests: *rests })
    }

    /// What has been refused or found wrong so far.
    pub fn counters(&self) -> Counters {
        self.port.counters()
    }

    /// Where peers find this endpoint.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Why nothing goes to a remote any more; none while something does, or may.
    // spec: ENV-34
    pub fn reason(&self, remote: RemoteId) -> Option<&DisconnectReason> {
        match self.remotes.known(remote)?.standing() {
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
    /// Where this host has more endpoints that know each other than processors, one whose polls
    /// find nothing yields its processor, and after long sleeps for up to a quarter of a
    /// millisecond, until something comes: what it waits for is to be done there. A program that
    /// has work of its own between polls loses at most half of its time by that. One that waits for
    /// other hosts, and has none, sleeps so where other programs compute on its processor.
    // spec: ENV-5
    #[inline(always)]
    pub fn progress(&mut self, tell: impl FnMut(Completion)) -> bool {
        !self.finds_nothing() && self.progress_on(tell)
    }

    /// The beginning of [`RawEndpoint::progress`], for those who poll all the time: whether a call
    /// of it would be over already. Nothing has come where something came last, nothing waits here,
    /// and it is not the turn of anything else. Who is told so must not call it for this poll; who
    /// is not calls [`RawEndpoint::progress_on`].
    #[inline(always)]
    pub fn finds_nothing(&mut self) -> bool {
        let idle = self.polls.next_idle();
        let waits = self.protocol.waits();
        let hot = self.polls.hot();
        if self.polls.looks_about(idle) || waits > 0 || self.has_come(hot) != Some(false) {
            return false;
        }
        self.polls.has_found_none(idle);
        // Who looks again at once takes the line from under the hands of whoever is writing it; who
        // waits at each look, and does much else in between, as MPI does, is late.
        if idle & 1 == 0 {
            std::hint::spin_loop();
        }
        true
    }

    /// The rest of [`RawEndpoint::progress`].
    #[inline(never)]
    pub fn progress_on(&mut self, mut tell: impl FnMut(Completion)) -> bool {
        let tell = &mut tell;
        // What has ended before what comes now.
        let mut any = self.protocol.has_ended() && self.tell_ended(tell);
        // Here, not in a call: it is what is waited for.
        let has_come = self.take_all(self.polls.hot(), tell);
        any |= self.poll_on(has_come, tell);
        if !any && self.port.remote.is_in_use() {
            any = self.look_at_links(tell);
        }
        if any {
            self.polls.has_found();
            let finds = self.company.find();
            if finds.is_multiple_of(FINDS_PER_TURN) {
                self.look_elsewhere(finds, tell);
            }
        } else {
            self.send_for_lines();
            let idle = self.polls.next_idle();
            self.polls.has_found_none(idle);
            if idle.is_multiple_of(POLLS_PER_PAUSE) {
                self.pause();
            }
        }
        any |= self.protocol.has_ended() && self.tell_ended(tell);
        debug_assert!(!self.protocol.has_ended(), "all ends were told");
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
        if finds.is_multiple_of(POLLS_PER_MEETING) {
            self.attend();
        }
    }

    /// Something has changed by which an endpoint decides how often it looks elsewhere than where
    /// something came last.
    // spec: ENV-5
    #[inline(never)]
    fn look_about(&mut self) {
        let neighbours = self.remotes.neighbours();
        if self.company.set_neighbours(neighbours) {
            self.protocol.set_budget(self.allowance.beside(neighbours));
        }
        let connections = self.port.peers().count();
        let hot = self.polls.hot();
        self.polls.set_patience(if connections > 1 {
            self.patience_of_many(hot)
        } else if self.is_linked(hot) {
            0
        } else if self.company.is_crowded()
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
        self.company.count_sharers(self.remotes.iter().filter_map(Remote::processors));
    }

    /// Something has come from another one than before.
    #[inline]
    fn heat(&mut self, index: usize) {
        self.polls.expect_at(index);
        self.polls.set_patience(self.patience_of_many(index));
    }

    /// With several connections, this one hot. In a crowd all are looked at each time: what is not
    /// seen by this poll waits until all others have run.
    // spec: ENV-5
    fn patience_of_many(&self, hot: usize) -> u32 {
        if self.is_linked(hot) || self.company.is_crowded() { 0 } else { POLLS_PER_TURN - 1 }
    }

    fn is_linked(&self, index: usize) -> bool {
        let connection = self.port.peers.at(index);
        connection.is_some_and(Connection::is_driven_here)
    }

    #[inline(never)]
    fn tell_ended(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        self.protocol.tell_ended(tell);
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
            any |= protocol.push_on(&mut around, &mut tell);
        }
        any
    }

    /// Whether something has come from a peer; of none where nobody has that number.
    #[inline(always)]
    fn has_come(&self, index: usize) -> Option<bool> {
        let connection = self.port.peers.at(index)?;
        Some(connection.messages_in.has_come())
    }

    /// Sends for all lines of the next message where something came last, if it is likely to have
    /// several: they come as soon as the one that a poll looks at.
    #[inline(always)]
    fn send_for_lines(&self) {
        if let Some(connection) = self.port.peers.at(self.polls.hot()) {
            connection.messages_in.send_for_rest();
        }
    }

    #[inline(never)]
    fn take_turns(&mut self, tell: &mut impl FnMut(Completion)) -> bool {
        let turns = if self.company.is_crowded() { TURNS_OF_CROWD } else { TURNS };
        for _ in 0..turns.min(self.port.peers.count()) {
            let turn = self.polls.next_turn(self.port.peers.count());
            if turn != self.polls.hot()
                && self.has_come(turn) == Some(true)
                && self.take_some(turn, tell)
            {
                self.heat(turn);
                return true;
            }
        }
        false
    }

    /// Nothing has come for some polls.
    #[inline(never)]
    fn pause(&mut self) {
        let between = if self.remotes.calls() > 0 { POLLS_PER_CALL } else { POLLS_PER_MEETING };
        if self.polls.idle().is_multiple_of(between) {
            if self.company.poll(self.port.clock.now()) {
                self.look_about();
            }
            self.attend();
        } else if self.port.peers.has_dead() {
            self.mourn();
        }
        if self.polls.empty() >= POLLS_PER_PAUSE {
            self.make_way();
        }
    }

    /// What [`RawEndpoint::progress`] does only now and then, however much comes: hears who calls,
    /// who has answered, and who has died. For those who know that a program polls seldom. What
    /// ends by it is told by the next poll.
    // spec: ENV-14
    pub fn attend(&mut self) {
        if let Some(lease) = &self.lease {
            lease.renew_in_time();
        }
        self.port.progress_lanes();
        self.port.service_control();
        // Who has gone and comes again is let in at once.
        if self.port.peers.has_dead() {
            self.mourn();
        }
        self.meet();
        self.look_about();
        if self.port.peers.has_dead() {
            self.mourn();
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
    fn mourn(&mut self) {
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
            self.look_for_room();
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
        self.tell_end(remote, &reason);
        self.hang_up(remote);
        let (protocol, mut around) = self.parts();
        protocol.end(&mut around, remote, why);
        tell!(INFO, "endpoint {} of {}: {reason}", remote.index(), self.address.socket_name());
        if self.remotes.end(remote, reason) {
            self.count_sharers();
            debug_assert!(self.has_ended_all(remote), "nothing is under way with it");
            debug_assert!(self.remotes.way(remote).is_none(), "nothing goes to it any more");
        }
    }
}
