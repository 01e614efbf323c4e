//! How the program and the domain's own thread take turns in being there for peers.
//!
//! ```text
//!              lease runs out                       nothing is under way
//!   program --------------------------> thread serves <--------------> thread sleeps in the bell
//!     ^  |                                  ^                                 |
//!     |  | sleeps, lease runs out           | bell rung, lease run out anew   |
//!     |  +--> thread watches the bell ------+                                 |
//!     |                  |                                                    |
//!     +------------------+----------------------------------------------------+
//!                            a call of the program's
//! ```

use super::core::State;
use super::end::{tell, way_of_touch};
use super::peers::Peers;
use super::presence::{Presence, Thread, has_rung};
use super::side::Side;
use crate::domain::DomainObject;
use crate::progress::source::{Tended, Visitor};
use crate::sys::cell::Policy;
use ayre::endpoint::raw::{Completion, CompletionKind, LatestFailure, RawEndpoint, RmaKind};
use rustix::fd::AsFd;
use rustix::thread::gettid;
use std::sync::Arc;

/// Ends that are kept until the program comes, who is to be told; while there are as many, nothing
/// more is taken from peers.
const LATE_MAX: usize = 1 << 16;

/// Rounds of one visit of the domain's thread, for which a call of the program's may have to wait.
const ROUNDS: usize = 16;

impl<L: Policy> State<L> {
    /// A thread of the program's is about to sleep. False if it is not to.
    pub(super) fn arm(&mut self) -> bool {
        // What is to be told is told by progress.
        if !self.presence.late.is_empty() || !self.rest() {
            return false;
        }
        let own = gettid();
        if !self.presence.sleepers.contains(&own) {
            self.presence.sleepers.push(own);
        }
        self.presence.is_missed = true;
        self.rx.look_again();
        true
    }

    /// Progress where something is to be looked at first: whether the program was missed, or what
    /// is taken from peers would be too much for its queue.
    #[cold]
    pub(super) fn look_first(&mut self) -> bool {
        let is_told = self.presence.is_missed && self.come_back();
        let is_flooded = self.rx.is_flooded();
        if self.presence.is_missed {
            self.rx.look_again();
        }
        is_told || !is_flooded && !self.endpoint.finds_nothing() && self.advance_on()
    }

    /// The program is awake, in this thread. Peers go on ringing for others of its threads that
    /// sleep; the domain's thread leaves. Whether anything was told.
    fn come_back(&mut self) -> bool {
        let (own, presence) = (gettid(), &mut self.presence);
        presence.sleepers.retain(|sleeper| *sleeper != own);
        if presence.thread != Thread::Away
            && let Some(Visitor { wait, lease }) = &presence.visitor
        {
            wait.unwatch(presence.bell.as_fd());
            lease.renew();
            presence.thread = Thread::Away;
        }
        (presence.is_warned, presence.is_missed) = (false, !presence.sleepers.is_empty());
        let late = std::mem::take(&mut presence.late);
        let any = !late.is_empty();
        late.into_iter().for_each(|end| self.tell(end));
        self.endpoint.wake();
        if !self.presence.sleepers.is_empty() && !self.rest() {
            self.ring();
        }
        any
    }

    /// The domain's thread is here.
    // spec: ENV-41
    pub(super) fn tend(&mut self, visitor: &Visitor) -> Tended {
        if self.presence.visitor.is_none() {
            self.endpoint.hold(&visitor.lease);
            self.presence.visitor = Some(visitor.clone());
        }
        let polls = Some(self.endpoint.polls());
        if std::mem::replace(&mut self.presence.polls, polls) == polls {
            let tended = self.stand_in();
            if self.presence.is_missed {
                self.rx.look_again();
            }
            return tended;
        }
        self.presence.is_warned = false;
        // It polls seldom. Rings that come while some of its threads sleep are theirs.
        if self.presence.sleepers.is_empty() {
            self.endpoint.progress_control();
        }
        Tended::Left
    }

    /// The program has not polled since the domain's thread was here last.
    fn stand_in(&mut self) -> Tended {
        let presence = &mut self.presence;
        let has_rung = has_rung(&presence.bell);
        if presence.thread != Thread::Serves && !presence.sleepers.is_empty() {
            match (has_rung, presence.is_warned) {
                (false, _) => return presence.watch(Thread::Watches),
                (true, false) => {
                    presence.is_warned = true;
                    return Tended::Left;
                }
                (true, true) => {}
            }
        }
        if presence.thread == Thread::Serves && self.endpoint.is_resting() && !has_rung {
            return presence.watch(Thread::Serves);
        }
        self.serve_all()
    }

    /// The domain's thread serves, until nothing is under way or it has been here for long.
    fn serve_all(&mut self) -> Tended {
        (self.presence.thread, self.presence.is_missed) = (Thread::Serves, true);
        if let Some(Visitor { lease, .. }) = &self.presence.visitor {
            lease.end();
        }
        self.endpoint.wake();
        let mut any = false;
        for _ in 0..ROUNDS {
            if self.is_full() {
                return Tended::Full;
            }
            if !self.serve() {
                break;
            }
            any = true;
        }
        // They may have looked at the bell before it was calmed.
        if any && !self.presence.sleepers.is_empty() {
            self.ring();
        }
        if any || !self.rest_in_its_stead() {
            Tended::Moved
        } else {
            self.presence.watch(Thread::Serves)
        }
    }

    /// Whether the program has to come before more is taken from peers.
    fn is_full(&mut self) -> bool {
        let is_flooded = L::IS_SHARED && self.rx.is_flooded();
        is_flooded || self.presence.late.len() >= LATE_MAX || self.endpoint.keeps_much()
    }

    fn serve(&mut self) -> bool {
        self.in_its_stead(|endpoint, told| endpoint.serve(|end| told.hear(end)))
    }

    /// Nothing is under way, and the bell rings for whatever comes.
    fn rest_in_its_stead(&mut self) -> bool {
        self.in_its_stead(|endpoint, told| endpoint.rest(|end| told.hear(end)))
    }

    fn in_its_stead<R>(&mut self, f: impl FnOnce(&mut RawEndpoint, &mut Told<'_, L>) -> R) -> R {
        let Self { endpoint, tx, rx, peers, latest, counting, presence, .. } = self;
        f(endpoint, &mut Told { tx, rx, peers, latest, counting: counting.as_ref(), presence })
    }
}

/// The receiver of completions that came in the program's absence.
struct Told<'a, L: Policy> {
    tx: &'a mut Side<L>,
    rx: &'a mut Side<L>,
    peers: &'a mut Peers,
    latest: &'a LatestFailure,
    counting: Option<&'a Arc<DomainObject<L>>>,
    presence: &'a mut Presence,
}

impl<L: Policy> Told<'_, L> {
    /// Tells at once, where the domain's thread may.
    fn hear(&mut self, end: Completion) {
        if L::IS_SHARED {
            tell(end, (self.tx, self.rx), (self.peers, self.latest), self.counting);
        } else if self.is_heard(&end.what) {
            self.presence.late.push(end);
        }
    }

    /// Most of what peers do to memory nobody wants to know of.
    fn is_heard(&self, what: &CompletionKind) -> bool {
        let CompletionKind::RmaEvent(touched) = what else { return true };
        let is_change = touched.kind != RmaKind::Read;
        touched.data.is_some()
            || is_change && self.counting.is_some()
            || self.rx.counts_way(way_of_touch(touched))
    }
}
