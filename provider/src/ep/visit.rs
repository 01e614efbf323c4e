//! The endpoint in the hands of our own thread, while the program stays away.

use super::core::State;
use super::end::{tell, way_of_touch};
use super::peers::Peers;
use super::side::Side;
use crate::domain::DomainObject;
use ayre::endpoint::raw::{Completion, CompletionKind, LatestFailure, RawEndpoint, RmaKind};
use ayre_guest::cell::Policy;
use ayre_guest::progress::{Presence, Turns, come_back};
use std::sync::Arc;

impl<L: Policy> State<L> {
    /// Progress where something is to be looked at first: whether the program was missed, or what
    /// is taken from peers would be too much for its queue.
    #[cold]
    pub(super) fn look_first(&mut self) -> bool {
        let is_told = self.presence.is_missed() && come_back(self);
        let is_flooded = self.rx.is_flooded();
        if self.presence.is_missed() {
            self.rx.look_again();
        }
        is_told || !is_flooded && !self.endpoint.finds_nothing() && self.advance_on()
    }

    fn in_its_stead<R>(&mut self, f: impl FnOnce(&mut RawEndpoint, &mut Told<'_, L>) -> R) -> R {
        let Self { endpoint, tx, rx, peers, latest, counting, presence, .. } = self;
        f(endpoint, &mut Told { tx, rx, peers, latest, counting: counting.as_ref(), presence })
    }
}

impl<L: Policy> Turns for State<L> {
    fn presence(&mut self) -> &mut Presence {
        &mut self.presence
    }

    fn endpoint(&mut self) -> &mut RawEndpoint {
        &mut self.endpoint
    }

    fn look_again(&mut self) {
        self.rx.look_again();
    }

    fn rest(&mut self) -> bool {
        let Self { endpoint, tx, rx, peers, latest, counting, .. } = self;
        endpoint.rest(|end| {
            tell(end, (&mut *tx, &mut *rx), (&mut *peers, latest), counting.as_ref());
        })
    }

    fn tell(&mut self, end: Completion) {
        let Self { tx, rx, peers, latest, counting, .. } = self;
        tell(end, (tx, rx), (peers, latest), counting.as_ref());
    }

    fn ring(&self) {
        self.tx.ring();
        self.rx.ring();
    }

    fn is_full(&mut self) -> bool {
        L::IS_SHARED && self.rx.is_flooded()
    }

    fn serve(&mut self) -> bool {
        self.in_its_stead(|endpoint, told| endpoint.serve(|end| told.hear(end)))
    }

    fn rest_in_its_stead(&mut self) -> bool {
        self.in_its_stead(|endpoint, told| endpoint.rest(|end| told.hear(end)))
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
    /// Tells at once, where our own thread may.
    fn hear(&mut self, end: Completion) {
        if L::IS_SHARED {
            tell(end, (self.tx, self.rx), (self.peers, self.latest), self.counting);
        } else if self.is_heard(&end.what) {
            self.presence.keep(end);
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
