//! Who is there for peers: the program, awake or asleep, or the domain's own thread in its stead.
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

use super::core::{State, tell, way_of_touch};
use super::peers::Peers;
use super::side::Side;
use crate::domain::DomainObject;
use crate::source::{Tended, Visitor};
use crate::sys::cell::Policy;
use ayre::{End, LatestEnd, TouchKind, What};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::{Pid, gettid};
use std::sync::Arc;

/// Rounds of one visit of the domain's thread, for which a call of the program's may have to wait.
const ROUNDS: usize = 16;

/// Ends that are kept until the program comes, who is to be told; while there are as many, nothing
/// more is taken from peers.
const LATE_MAX: usize = 1 << 16;

/// Who is there.
pub(super) struct Visit {
    /// Threads of the program's that may sleep until the bell rings.
    sleepers: Vec<Pid>,
    /// The program's polls, when the domain's thread looked last.
    polls: Option<(u32, u32)>,
    /// Somebody is to be told when the program comes.
    is_missed: bool,
    /// The bell has rung for a program that sleeps, and it has the time of a lease to come.
    is_warned: bool,
    thread: Thread,
    /// The domain's thread, if it has come once.
    visitor: Option<Visitor>,
    bell: Arc<OwnedFd>,
    /// What that thread has ended, and the program is to be told by its next call: its queues and
    /// counters are its own.
    late: Vec<End>,
}

/// Where the domain's thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Away,
    /// It sleeps in the bell beside the program.
    Watches,
    /// It is here in the program's stead.
    Serves,
}

impl Visit {
    pub(super) fn new(bell: &Arc<OwnedFd>) -> Self {
        Self {
            sleepers: Vec::new(),
            polls: None,
            is_missed: false,
            is_warned: false,
            thread: Thread::Away,
            visitor: None,
            bell: Arc::clone(bell),
            late: Vec::new(),
        }
    }

    /// The domain's thread is woken by the bell.
    fn watch(&mut self, as_what: Thread) -> Tended {
        let Some(Visitor { wait, lease }) = &self.visitor else { return Tended::Left };
        if wait.watch(self.bell.as_fd()).is_err() {
            // It looks as often as the lease runs out.
            return Tended::Left;
        }
        lease.end();
        (self.thread, self.is_missed, self.is_warned) = (as_what, true, false);
        Tended::Waits
    }
}

/// Whether a bell has rung.
pub(super) fn has_rung(bell: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Who cannot be told looks.
    poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

impl<L: Policy> State<L> {
    /// A thread of the program's is about to sleep. False if it is not to.
    pub(super) fn arm(&mut self) -> bool {
        // What is to be told is told by progress.
        if !self.visit.late.is_empty() || !self.rest() {
            return false;
        }
        let own = gettid();
        if !self.visit.sleepers.contains(&own) {
            self.visit.sleepers.push(own);
        }
        self.visit.is_missed = true;
        self.rx.look_again();
        true
    }

    /// Progress where something is to be looked at first: whether the program was missed, or what
    /// is taken from peers would be too much for its queue.
    #[cold]
    pub(super) fn look_first(&mut self) -> bool {
        let is_told = self.visit.is_missed && self.come_back();
        let is_flooded = self.rx.is_flooded();
        if self.visit.is_missed {
            self.rx.look_again();
        }
        is_told || !is_flooded && !self.endpoint.finds_nothing() && self.advance_on()
    }

    /// The program is awake, in this thread. Peers go on ringing for others of its threads that
    /// sleep; the domain's thread leaves. Whether anything was told.
    fn come_back(&mut self) -> bool {
        let (own, visit) = (gettid(), &mut self.visit);
        visit.sleepers.retain(|sleeper| *sleeper != own);
        if visit.thread != Thread::Away
            && let Some(Visitor { wait, lease }) = &visit.visitor
        {
            wait.unwatch(visit.bell.as_fd());
            lease.renew();
            visit.thread = Thread::Away;
        }
        (visit.is_warned, visit.is_missed) = (false, !visit.sleepers.is_empty());
        let late = std::mem::take(&mut visit.late);
        let any = !late.is_empty();
        late.into_iter().for_each(|end| self.tell(end));
        self.endpoint.wake();
        if !self.visit.sleepers.is_empty() && !self.rest() {
            self.ring();
        }
        any
    }

    /// The domain's thread is here.
    // spec: ENV-41
    pub(super) fn tend(&mut self, visitor: &Visitor) -> Tended {
        if self.visit.visitor.is_none() {
            self.endpoint.hold(&visitor.lease);
            self.visit.visitor = Some(visitor.clone());
        }
        let polls = Some(self.endpoint.polls());
        if std::mem::replace(&mut self.visit.polls, polls) == polls {
            let tended = self.stand_in();
            if self.visit.is_missed {
                self.rx.look_again();
            }
            return tended;
        }
        self.visit.is_warned = false;
        // It polls seldom. Rings that come while some of its threads sleep are theirs.
        if self.visit.sleepers.is_empty() {
            self.endpoint.attend();
        }
        Tended::Left
    }

    /// The program has not polled since the domain's thread was here last.
    fn stand_in(&mut self) -> Tended {
        let visit = &mut self.visit;
        let has_rung = has_rung(&visit.bell);
        if visit.thread != Thread::Serves && !visit.sleepers.is_empty() {
            match (has_rung, visit.is_warned) {
                (false, _) => return visit.watch(Thread::Watches),
                (true, false) => {
                    visit.is_warned = true;
                    return Tended::Left;
                }
                (true, true) => {}
            }
        }
        if visit.thread == Thread::Serves && self.endpoint.is_resting() && !has_rung {
            return visit.watch(Thread::Serves);
        }
        self.serve_all()
    }

    /// The domain's thread serves, until nothing is under way or it has been here for long.
    fn serve_all(&mut self) -> Tended {
        (self.visit.thread, self.visit.is_missed) = (Thread::Serves, true);
        if let Some(Visitor { lease, .. }) = &self.visit.visitor {
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
        if any && !self.visit.sleepers.is_empty() {
            self.ring();
        }
        if any || !self.rest_in_its_stead() {
            Tended::Moved
        } else {
            self.visit.watch(Thread::Serves)
        }
    }

    /// Whether the program has to come before more is taken from peers.
    fn is_full(&mut self) -> bool {
        let is_flooded = L::IS_SHARED && self.rx.is_flooded();
        is_flooded || self.visit.late.len() >= LATE_MAX || self.endpoint.keeps_much()
    }

    fn serve(&mut self) -> bool {
        let Self { endpoint, tx, rx, peers, latest, counting, visit, .. } = self;
        let mut told = Told { tx, rx, peers, latest, counting: counting.as_ref(), visit };
        endpoint.serve(|end| told.hear(end))
    }

    /// Nothing is under way, and the bell rings for whatever comes.
    fn rest_in_its_stead(&mut self) -> bool {
        let Self { endpoint, tx, rx, peers, latest, counting, visit, .. } = self;
        let mut told = Told { tx, rx, peers, latest, counting: counting.as_ref(), visit };
        endpoint.rest(|end| told.hear(end))
    }
}

/// Who is to be told of what has ended in the program's absence.
struct Told<'a, L: Policy> {
    tx: &'a mut Side<L>,
    rx: &'a mut Side<L>,
    peers: &'a mut Peers,
    latest: &'a LatestEnd,
    counting: Option<&'a Arc<DomainObject<L>>>,
    visit: &'a mut Visit,
}

impl<L: Policy> Told<'_, L> {
    /// Tells at once, where the domain's thread may.
    fn hear(&mut self, end: End) {
        if L::IS_SHARED {
            tell(end, (self.tx, self.rx), (self.peers, self.latest), self.counting);
        } else if self.is_heard(&end.what) {
            self.visit.late.push(end);
        }
    }

    /// Most of what peers do to memory nobody wants to know of.
    fn is_heard(&self, what: &What) -> bool {
        let What::Touched(touched) = what else { return true };
        let is_change = touched.kind != TouchKind::Read;
        touched.data.is_some()
            || is_change && self.counting.is_some()
            || self.rx.counts_way(way_of_touch(touched))
    }
}
