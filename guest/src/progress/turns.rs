//! How the program and our own thread take turns in being there for peers.
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

use super::presence::{Presence, Thread, has_rung};
use super::served::{Tended, Visitor};
use ayre::endpoint::raw::{Completion, RawEndpoint};
use rustix::fd::AsFd;
use rustix::thread::gettid;

/// The most ends that are kept until the program comes; then nothing more is taken from peers.
const LATE_MAX: usize = 1 << 16;

/// Rounds of one visit of our own thread, for which a call of the program's may have to wait.
const ROUNDS: usize = 16;

/// An endpoint of the engine with what a library keeps beside it: the state of which the program
/// and our own thread take turns.
pub trait Turns {
    /// The presence of the program and of our own thread.
    fn presence(&mut self) -> &mut Presence;

    /// The endpoint.
    fn endpoint(&mut self) -> &mut RawEndpoint;

    /// Has the program's next call ask [`Presence::is_missed`] before it does anything else, and
    /// call [`come_back`] if it is.
    fn look_again(&mut self);

    /// As [`RawEndpoint::rest`], and tells the program of all ends.
    fn rest(&mut self) -> bool;

    /// Tells the program of an end, late.
    fn tell(&mut self, end: Completion);

    /// Wakes threads of the program that sleep.
    fn ring(&self);

    /// The program has to come before more is taken from peers.
    fn is_full(&mut self) -> bool;

    /// As [`RawEndpoint::serve`] in the program's stead: ends that only the program may hear of are
    /// kept by [`Presence::keep`].
    fn serve(&mut self) -> bool;

    /// As [`RawEndpoint::rest`] in the program's stead.
    fn rest_in_its_stead(&mut self) -> bool;
}

/// A thread of the program's is about to sleep. False if it is not to.
pub fn arm(state: &mut impl Turns) -> bool {
    // Ends that came late are told by progress.
    if !state.presence().late.is_empty() || !state.rest() {
        return false;
    }
    let (own, presence) = (gettid(), state.presence());
    if !presence.sleepers.contains(&own) {
        presence.sleepers.push(own);
    }
    presence.is_missed = true;
    state.look_again();
    true
}

/// The program is awake, in this thread. Peers go on ringing for others of its threads that sleep;
/// our own thread leaves. Whether anything was told.
pub fn come_back(state: &mut impl Turns) -> bool {
    let (own, presence) = (gettid(), state.presence());
    presence.sleepers.retain(|sleeper| *sleeper != own);
    if presence.thread != Thread::Away
        && let Some(Visitor { wait, lease }) = &presence.visitor
    {
        wait.unwatch(presence.bell.as_fd());
        lease.renew();
        presence.thread = Thread::Away;
    }
    let others_sleep = !presence.sleepers.is_empty();
    (presence.is_warned, presence.is_missed) = (false, others_sleep);
    let late = std::mem::take(&mut presence.late);
    let any = !late.is_empty();
    late.into_iter().for_each(|end| state.tell(end));
    state.endpoint().wake();
    if others_sleep && !state.rest() {
        state.ring();
    }
    any
}

/// Our own thread is here: for [`Served::tend`](super::Served::tend).
// spec: ENV-41
pub fn tend(state: &mut impl Turns, visitor: &Visitor) -> Tended {
    if state.presence().visitor.is_none() {
        state.endpoint().hold(&visitor.lease);
        state.presence().visitor = Some(visitor.clone());
    }
    let polls = Some(state.endpoint().polls());
    if std::mem::replace(&mut state.presence().polls, polls) == polls {
        let tended = stand_in(state);
        if state.presence().is_missed {
            state.look_again();
        }
        return tended;
    }
    state.presence().is_warned = false;
    // It polls seldom. Rings that come while some of its threads sleep are theirs.
    if state.presence().sleepers.is_empty() {
        state.endpoint().progress_control();
    }
    Tended::Left
}

/// The program has not polled since our own thread was here last.
fn stand_in(state: &mut impl Turns) -> Tended {
    let presence = state.presence();
    let (has_rung, thread) = (has_rung(&presence.bell), presence.thread);
    if thread != Thread::Serves && !presence.sleepers.is_empty() {
        match (has_rung, presence.is_warned) {
            (false, _) => return presence.watch(Thread::Watches),
            (true, false) => {
                presence.is_warned = true;
                return Tended::Left;
            }
            (true, true) => {}
        }
    }
    if thread == Thread::Serves && state.endpoint().is_resting() && !has_rung {
        return state.presence().watch(Thread::Serves);
    }
    serve_all(state)
}

/// Our own thread serves, until nothing is under way or it has been here for long.
fn serve_all(state: &mut impl Turns) -> Tended {
    let presence = state.presence();
    (presence.thread, presence.is_missed) = (Thread::Serves, true);
    if let Some(Visitor { lease, .. }) = &presence.visitor {
        lease.end();
    }
    state.endpoint().wake();
    let mut any = false;
    for _ in 0..ROUNDS {
        if must_wait(state) {
            return Tended::Full;
        }
        if !state.serve() {
            break;
        }
        any = true;
    }
    // They may have looked at the bell before it was calmed.
    if any && !state.presence().sleepers.is_empty() {
        state.ring();
    }
    if any || !state.rest_in_its_stead() {
        Tended::Moved
    } else {
        state.presence().watch(Thread::Serves)
    }
}

/// Whether too much is kept for the program.
fn must_wait(state: &mut impl Turns) -> bool {
    state.is_full() || state.presence().late.len() >= LATE_MAX || state.endpoint().keeps_much()
}
