//! Links that the port asks for, until it takes them.
use super::super::opening::{self, OpenAttempt, Request};
use super::{Arrived, Links, Slot};
use crate::error::SetupError;
use crate::error::tried::AddressAttempt;
use crate::net::routes::Way;
use ayre_proto::link::open::Opening;
use ayre_proto::refusal::Refusal;

impl Links {
    /// Asks for a link: its index.
    pub(in crate::link) fn ask_for(
        &mut self,
        request: Request,
        now: u64,
    ) -> Result<usize, SetupError> {
        let index = self.free_index()?;
        let has_net = |way: &Way| way.net < self.outboxes.len();
        assert!(request.ways.iter().all(has_net), "a way begins at a net of ours");
        // Hints about the addresses from earlier openings do not count for this one.
        request.ways.iter().for_each(|way| self.outboxes[way.net].hints.forget(way.to));
        self.repeat_request(index, request, now);
        Ok(index)
    }

    /// Each time it is another attempt, with a nonce of its own.
    pub(super) fn repeat_request(&mut self, index: usize, request: Request, now: u64) {
        let (paths, destination) = (request.paths(), (request.number(), request.pass()));
        let ours = self.set_up(index, request.datagram_max, paths, destination);
        let asked = OpenAttempt::new(ours, request, &self.identity.protection, now);
        assert_eq!(asked.opener.ours().index as usize, index, "it says where it stands");
        self.put(index, Slot::Asked(Box::new(asked)));
    }

    /// The links that this port has asked for, and of which nothing was heard: until when that has
    /// time.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (usize, u64)> {
        let ours = self.arrived.iter().filter(|arrived| arrived.is_ours());
        ours.filter_map(|Arrived { index, answer_by, .. }| match &self.slots[*index] {
            Slot::Open(link) if !link.is_confirmed() => Some((*index, *answer_by)),
            _ => None,
        })
    }

    // spec: OPEN-26
    pub(super) fn drop_unanswered(&mut self, now: u64) {
        loop {
            let late = self.unanswered().find(|(_, by)| *by <= now);
            let Some((index, _)) = late else { return };
            self.retire(index, now);
        }
    }

    /// Each address at which a link is asked for, and how the attempt there has gone so far.
    // spec: OPEN-32
    pub(in crate::link) fn tried(&self, index: usize, now: u64) -> Vec<AddressAttempt> {
        let request = match self.slots.get(index) {
            Some(Slot::Asked(asked)) => &asked.request,
            Some(Slot::Failed(request)) => request,
            _ => return Vec::new(),
        };
        let each = request.ways.iter().zip(&request.attempts);
        let tried =
            each.map(|(way, fate)| fate.told(way.to, self.outboxes[way.net].hints.of(way.to), now));
        tried.collect()
    }

    /// All such attempts, of all links that are asked for.
    pub(in crate::link) fn tried_of_all(&self, now: u64) -> Vec<AddressAttempt> {
        (0..self.slots.len()).flat_map(|index| self.tried(index, now)).collect()
    }

    /// Why an opening has ended, or seems to be in vain.
    // spec: OPEN-25
    pub(in crate::link) fn refusal(&self, index: usize) -> Option<Refusal> {
        match self.slots.get(index)? {
            Slot::Asked(asked) => asked.opener.refusal(),
            _ => None,
        }
    }

    /// How the opening of a link has ended, if it has.
    pub(in crate::link) fn outcome(&mut self, index: usize) -> Option<Opening> {
        match self.slots.get(index) {
            Some(Slot::Asked(asked)) => opening::outcome(asked),
            // Not before the other side knows it too, so that nothing is left to be done.
            Some(Slot::Open(link)) => link.is_confirmed().then_some(Opening::Accepted),
            Some(Slot::Superseded) => None,
            _ => Some(Opening::GivenUp),
        }
    }

    /// The link is not asked for any more.
    pub(crate) fn give_up(&mut self, index: usize) {
        let slot = self.slots.get(index);
        if matches!(slot, Some(Slot::Asked(_) | Slot::Failed(_) | Slot::Superseded)) {
            self.free(index);
        } else if self.take_opened(index).is_some() {
            self.leave(index);
        }
    }
}
