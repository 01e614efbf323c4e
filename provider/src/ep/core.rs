//! The state of an endpoint that calls and progress share.

use super::end::tell;
use super::peers::Peers;
use super::place;
use super::side::{Reported, Side};
use crate::abi::{
    DIRECTED_RECV, FENCE, FidCntr, FidCq, LOG_EP_CTRL, READ, RECV, REMOTE_READ, REMOTE_WRITE,
    RMA_EVENT, SEND, WRITE, errno,
};
use crate::domain::DomainObject;
use crate::domain::av::Watcher;
use crate::domain::memory::Addressing;
use crate::error::{Code, Outcome, trouble};
use crate::info::address::Address;
use crate::queue::cntr::Cntr;
use crate::queue::cq::Cq;
use crate::queue::sources::Source;
use crate::record::{Posted, Recorder};
use crate::sys::core;
use crate::sys::object::Object;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{LatestFailure, Probed};
use ayre::error::AddressAttempt;
use ayre::guest::descriptor;
use ayre::guest::descriptor::Descriptor;
use ayre::{Busy, Fault, PostError};
use ayre_guest::cell::{Guard, Policy, Visit as _};
use ayre_guest::error::Unanswered;
use ayre_guest::progress::{self, Presence, Served, Tended, Visitor, has_rung};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// Bytes that a receive of many messages must have left, unless the program says.
const MIN_MULTI_RECV: usize = 64;

/// The choices of a program for an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) caps: u64,
    pub(crate) tx_flags: u64,
    pub(crate) rx_flags: u64,
    pub(crate) source: Option<Address>,
    /// How its peers address memory.
    pub(crate) addressing: Addressing,
}

/// The state of an endpoint, under one lock, if there are locks.
pub(super) struct State<L: Policy> {
    pub(super) endpoint: ayre::endpoint::raw::RawEndpoint,
    pub(super) peers: Peers,
    /// Which peer has ended last, and why.
    pub(super) latest: LatestFailure,
    /// Calls that are not answered yet, by the numbers of the peers.
    unanswered: Unanswered,
    pub(super) tx: Side<L>,
    pub(super) rx: Side<L>,
    /// Messages that were found and set aside, by the program's contexts.
    pub(super) claimed: HashMap<usize, VecDeque<Probed>>,
    pub(super) min_multi_recv: usize,
    /// Receives may name whom they take messages from.
    pub(super) is_directed: bool,
    pub(super) is_enabled: bool,
    caps: u64,
    /// The domain whose regions count the accesses through this endpoint, if they do.
    pub(super) counting: Option<Arc<DomainObject<L>>>,
    pub(super) presence: Presence,
}

/// The state of an endpoint that calls, queues and address vectors use.
pub(crate) struct Core<L: Policy> {
    pub(super) state: L::Visited<State<L>>,
    /// Becomes readable when something comes and the endpoint rests.
    pub(super) bell: Arc<Descriptor>,
    /// Our own thread, once it is to come.
    visitor: OnceLock<Visitor>,
    pub(crate) address: Address,
    /// Of the policy that records.
    recorder: Option<Arc<Recorder>>,
}

impl<L: Policy> Core<L> {
    pub(super) fn new(
        mut endpoint: ayre::endpoint::raw::RawEndpoint,
        wishes: &Wishes,
        domain: &Arc<DomainObject<L>>,
    ) -> Outcome<Arc<Self>> {
        if wishes.caps & (REMOTE_READ | REMOTE_WRITE) != 0 {
            endpoint.share(domain.memory.of(wishes.addressing));
        }
        let counting = (wishes.caps & RMA_EVENT != 0).then(|| Arc::clone(domain));
        let bell = Arc::new(descriptor::copy(endpoint.as_fd())?);
        let address = Address::Of(endpoint.address());
        let (latest, names) = (endpoint.latest_failure(), endpoint.remote_names());
        let state = L::visited(State {
            endpoint,
            peers: Peers::new(names, domain.recorder.clone()),
            latest,
            unanswered: Unanswered::default(),
            tx: Side::new(wishes.tx_flags, [SEND, READ, WRITE]),
            rx: Side::new(wishes.rx_flags, [RECV, REMOTE_READ, REMOTE_WRITE]),
            claimed: HashMap::new(),
            min_multi_recv: MIN_MULTI_RECV,
            is_directed: wishes.caps & DIRECTED_RECV != 0,
            is_enabled: false,
            caps: wishes.caps,
            counting,
            presence: Presence::new(&bell),
        });
        Ok(Arc::new(Self {
            state,
            bell,
            visitor: OnceLock::new(),
            address,
            recorder: domain.recorder.clone(),
        }))
    }

    pub(super) fn bind_cq(&self, cq: &Arc<Object<FidCq, Cq<L>>>, flags: u64) -> Outcome {
        self.state.with(|State { tx, rx, .. }| {
            if flags & SEND != 0 {
                tx.bind_cq(cq, flags)?;
            }
            if flags & RECV != 0 {
                rx.bind_cq(cq, flags)?;
            }
            Ok(())
        })
    }

    /// # Errors
    /// `EINVAL` where there is a counter of one of these already.
    pub(super) fn bind_cntr(&self, cntr: &Arc<Object<FidCntr, Cntr<L>>>, flags: u64) -> Outcome {
        self.state.with(|State { tx, rx, .. }| {
            if tx.counts(flags) || rx.counts(flags) {
                return Err(Code::INVALID);
            }
            tx.bind_cntr(cntr, flags);
            rx.bind_cntr(cntr, flags);
            Ok(())
        })
    }

    /// # Errors
    /// `ENOCQ` for a direction that reports nowhere.
    pub(super) fn check_queues(&self) -> Outcome {
        self.state.with(|State { tx, rx, caps, .. }| {
            let sends = *caps & SEND == 0 || tx.has_cq();
            let works = *caps & (READ | WRITE) == 0 || tx.has_cq() || tx.counts(READ | WRITE);
            let receives = *caps & RECV == 0 || rx.has_cq();
            if sends && works && receives { Ok(()) } else { Err(Code(errno::ENOCQ)) }
        })
    }

    pub(super) fn enable(&self) {
        self.state.with(|state| state.is_enabled = true);
    }

    /// Bytes that a receive of many messages must have left.
    pub(crate) fn min_multi_recv(&self) -> usize {
        self.state.with(|state| state.min_multi_recv)
    }

    pub(crate) fn set_min_multi_recv(&self, bytes: usize) {
        self.state.with(|state| state.min_multi_recv = bytes);
    }

    /// The flags of calls without any, in one direction.
    ///
    /// # Errors
    /// `EINVAL` unless one is named.
    pub(super) fn op_flags(&self, direction: u64) -> Outcome<u64> {
        self.state.with(|state| Ok(state.side(direction)?.chosen()))
    }

    /// # Errors
    /// `EINVAL` unless one direction is named.
    pub(super) fn set_op_flags(&self, direction: u64, flags: u64) -> Outcome {
        self.state.with(|state| {
            state.side(direction)?.choose(flags);
            Ok(())
        })
    }

    /// The capabilities that the program has asked for.
    pub(crate) fn caps(&self) -> u64 {
        self.state.with(|state| state.caps)
    }

    /// Whether peers may work on memory by this endpoint.
    pub(super) fn is_open_to_work(&self) -> bool {
        self.state.with(|state| state.caps & (REMOTE_READ | REMOTE_WRITE) != 0)
    }

    /// Makes a call that posts something; `posted` describes it for a recording.
    #[inline(always)]
    pub(super) fn posting<T>(
        &self,
        what: T,
        posted: impl FnOnce(&T, &State<L>) -> Option<Posted>,
        call: impl FnOnce(T) -> Outcome,
    ) -> Outcome {
        match &self.recorder {
            Some(recorder) if L::IS_RECORDED => {
                let posted = self.state.with(|state| posted(&what, state));
                recorder.post(posted.as_ref(), || call(what))
            }
            _ => call(what),
        }
    }

    /// Operations under way.
    pub(crate) fn under_way(&self) -> usize {
        self.state.with(|state| state.endpoint.under_way())
    }
}

impl<L: Policy> State<L> {
    #[inline(always)]
    pub(super) fn progress(&mut self) -> bool {
        if self.rx.must_look() {
            return self.look_first();
        }
        !self.endpoint.finds_nothing() && self.advance_on()
    }

    /// Not a part of what finds nothing, so that that is short.
    #[inline(never)]
    pub(super) fn advance_on(&mut self) -> bool {
        let Self { endpoint, tx, rx, peers, latest, counting, .. } = self;
        endpoint.progress_on(
            #[inline(always)]
            |end| tell(end, (&mut *tx, &mut *rx), (&mut *peers, latest), counting.as_ref()),
        )
    }

    fn side(&mut self, direction: u64) -> Outcome<&mut Side<L>> {
        match direction {
            SEND => Ok(&mut self.tx),
            RECV => Ok(&mut self.rx),
            _ => Err(Code::INVALID),
        }
    }

    /// By what the engine knows a peer.
    ///
    /// # Errors
    /// `EOPBADSTATE` before the endpoint is enabled; `EINVAL` for a number that is nobody's;
    /// `EHOSTUNREACH` and `EKEYREJECTED` for one of another host that cannot be reached; those of
    /// [`place::find`].
    #[cold]
    pub(super) fn look_up(&mut self, number: u64) -> Outcome<RemoteId> {
        if !self.is_enabled {
            return Err(Code(errno::EOPBADSTATE));
        }
        let address = match self.peers.address(number).ok_or(Code::INVALID)? {
            Address::Of(address) => address,
            Address::At(place) => place::find(&place)?,
        };
        let found = self.endpoint.remote(&address);
        let found =
            found.map_err(|error| trouble::of_setup(&format!("fi_addr {number}"), &error))?;
        self.peers.found(number, found, &address);
        Ok(found)
    }

    /// Waits for all earlier operations on the peer, for a call that asks for a fence.
    ///
    /// Operations that complete before they are done at the peer keep their order by themselves.
    ///
    /// # Errors
    /// `EAGAIN` while something is under way to the peer.
    #[inline(always)]
    pub(super) fn fence(&mut self, to: u64, reported: Reported) -> Outcome {
        match reported {
            Reported::By(flags) if flags & FENCE != 0 => self.end_all(to),
            _ => Ok(()),
        }
    }

    #[cold]
    fn end_all(&mut self, to: u64) -> Outcome {
        // One peer may have several numbers.
        let remote = match self.peers.remote(to) {
            Some(remote) => remote,
            None => self.look_up(to)?,
        };
        if self.endpoint.has_completed_all(remote) {
            return Ok(());
        }
        self.progress();
        Err(Code::AGAIN)
    }

    /// Whether peers have made room for others, which are found anew.
    #[cold]
    pub(super) fn forget_stale(&mut self) -> bool {
        self.peers.forget_stale(|remote| self.endpoint.knows(remote))
    }

    /// The code of a call whose operation for a peer the engine has refused.
    #[cold]
    pub(super) fn refused(&mut self, to: u64, error: PostError) -> Code {
        let remote = self.peers.remote(to);
        match error {
            PostError::Busy(busy) => {
                self.progress();
                if let (Busy::Connecting, Some(remote)) = (busy, remote) {
                    let endpoint = &self.endpoint;
                    let tried = || AddressAttempt::in_words(&endpoint.tried(remote));
                    let whom = || (endpoint.describe(remote), tried());
                    let how = "reads a completion queue";
                    if let Some(words) = self.unanswered.look(to, whom, how) {
                        core::warn(LOG_EP_CTRL, format_args!("fi_addr {to}, {words}"));
                    }
                }
                Code::AGAIN
            }
            // It had gone and made room for another one: the next call finds it anew.
            PostError::Fault(Fault::ForeignHandle) if self.forget_stale() => Code::AGAIN,
            PostError::Fault(fault) => {
                let reason = remote.and_then(|remote| self.endpoint.reason(remote));
                reason.map_or_else(|| trouble::of_fault(fault), trouble::of_reason)
            }
        }
    }
}

impl<L: Policy> Source for Core<L> {
    #[inline]
    fn progress(&self) -> bool {
        self.state.with(
            #[inline(always)]
            |state| state.progress(),
        )
    }

    fn arm(&self) -> bool {
        self.state.with(progress::arm)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }
}

impl<L: Policy> Served for Core<L> {
    fn admit(&self, visitor: Visitor) {
        // Not into the state: the program may be in a call, in another thread than this one.
        let _ = self.visitor.set(visitor);
        self.state.admit();
    }

    fn tend(&self) -> Tended {
        let Some(visitor) = self.visitor.get() else { return Tended::Left };
        // A program that is in a call comes.
        self.state.visit(|state| progress::tend(state, visitor)).unwrap_or(Tended::Left)
    }

    fn has_rung(&self) -> bool {
        has_rung(&self.bell)
    }

    fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<L: Policy> Watcher for Core<L> {
    fn inserted(&self, number: u64, address: &Address) {
        self.state.with(|state| {
            state.peers.insert(number, *address);
            // One that cannot be found yet is looked up when it is sent to.
            let _ = state.look_up(number);
        });
    }

    fn removed(&self, number: u64) {
        self.state.with(|state| {
            if let Some(remote) = state.peers.remove(number) {
                state.endpoint.forget(remote);
            }
        });
    }
}
