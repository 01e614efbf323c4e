//! Links between endpoints, which know each other by name: who is let in, and which one stays where
//! two of them open links to each other.
//!
//! The endpoint of the greater name decides. It takes the link that is complete at its side first:
//! its own when that is accepted, or the other one's when that is confirmed. The other endpoint has
//! a link of its own only when that has been answered, and gives it up for one that is confirmed
//! before. So both take the same one, and what is recorded and sent again decides nothing.
use super::accept::Verdict;
use super::{Links, Slot};
use crate::link::callee::Callee;
use crate::link::opening;
use crate::peer::agreement::Name;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::link::open::SetUp;
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;

impl Links {
    /// An endpoint may open at any time, if it knows our address and has no connection with us that
    /// is not forgotten.
    // spec: OPEN-14, OPEN-15, ENV-40
    pub(super) fn judge_caller(&self, own: &Callee, theirs: &SetUp) -> Verdict {
        match opening::introduction(theirs) {
            None => Verdict::Refused(Refusal::Kind),
            Some(caller) if caller.pass != own.pass => Verdict::Refused(Refusal::Key),
            Some(caller) if caller.name == own.name => Verdict::Refused(Refusal::Taken),
            Some(caller) if self.knows(caller.name) => Verdict::Ignored,
            Some(caller) if self.only.as_ref().is_some_and(|only| !only.has(caller.name)) => {
                Verdict::Refused(Refusal::Full(PEERS_MAX as u64))
            }
            Some(_) => Verdict::Accepted,
        }
    }

    /// Whether there is a link with an endpoint that both know of, or that its port is yet to hear
    /// the end of.
    fn knows(&self, name: Name) -> bool {
        let is_held = self.held.iter().any(|(_, held)| *held == name);
        let mut arrived = self.arrived.iter().filter(|arrived| arrived.name == Some(name));
        is_held || arrived.any(|arrived| !arrived.is_ours() || self.is_answered(arrived.index))
    }

    fn is_answered(&self, index: usize) -> bool {
        matches!(&self.slots[index], Slot::Open(link) if link.is_confirmed())
    }

    /// The endpoint that has opened the half-open link of this index.
    pub(super) fn caller_at(&self, index: u32) -> Option<Name> {
        let door = &self.acceptor.table;
        let half = door.with_index(index).and_then(|place| door.get(place))?;
        opening::introduction(half.theirs()).map(|caller| caller.name)
    }

    /// Whether a link that an endpoint has opened, and now confirms, is to stay.
    // spec: OPEN-16
    pub(super) fn may_come(&self, name: Name) -> bool {
        let decides = self.identity.endpoint.as_ref().is_some_and(|own| own.name > name);
        let is_decided = decides && self.opened(name).is_some();
        !self.knows(name) && !is_decided
    }

    /// This endpoint's own request to another one is void: the other one's link stays.
    // spec: OPEN-16
    pub(super) fn give_way(&mut self, name: Name) {
        let asked = |slot: &Slot| matches!(slot, Slot::Asked(asked) if asked.calls(name));
        let opened = self.opened(name).inspect(|index| drop(self.take_opened(*index)));
        debug_assert!(self.opened(name).is_none(), "one link at most was asked for");
        if let Some(index) = opened.or_else(|| self.slots.iter().position(asked)) {
            self.put(index, Slot::Superseded);
        }
    }

    /// The link that this endpoint has opened to another one, and that its port has not taken.
    fn opened(&self, name: Name) -> Option<usize> {
        let is_it = |arrived: &&super::Arrived| arrived.is_ours() && arrived.name == Some(name);
        self.arrived.iter().find(is_it).map(|arrived| arrived.index)
    }

    /// The port has forgotten its connection with a peer.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.held.retain(|(held, _)| *held != peer);
    }
}
