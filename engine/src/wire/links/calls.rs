//! Links between endpoints, which know each other by name: who is let in, and which one stays where
//! two of them open links to each other.
//!
//! The endpoint of the greater name decides: it takes the link that is complete at its side first,
//! its own when it is accepted, or the other one's when that is confirmed. The other endpoint has a
//! link of its own only when that has been answered, and gives it up for one that is confirmed
//! before. So both take the same one, and what is recorded and sent again decides nothing.
use super::doorstep::Verdict;
use super::{Links, Slot};
use crate::connection::Name;
use crate::error::SetupError;
use crate::wire::callee::Callee;
use crate::wire::link_end::Way;
use crate::wire::opening::{self, Asked};
use ayre_proto::link::open::SetUp;
use ayre_proto::units::PeerId;
use std::net::SocketAddr;

impl Links {
    /// Asks an endpoint for a link until `give_up`, by any of these ways: its index.
    pub(crate) fn call(
        &mut self,
        callee: &Callee,
        ways: Vec<Way>,
        datagram_max: usize,
        times: (u64, u64),
    ) -> Result<usize, SetupError> {
        let index = self.free_index()?;
        let ours = self.set_up(index, datagram_max, 1, callee.pass);
        self.slots[index] = Slot::Asked(Box::new(Asked::call(ours, callee, ways, times)));
        Ok(index)
    }

    /// Where the other side of this link is asked for it.
    pub(crate) fn asked_at(&self, index: usize) -> Vec<SocketAddr> {
        match self.slots.get(index) {
            Some(Slot::Asked(asked)) => asked.ways.iter().map(|way| way.to).collect(),
            _ => Vec::new(),
        }
    }

    /// An endpoint may open at any time, if it knows our secret and has no connection with us that
    /// is not forgotten.
    // spec: OPEN-14, OPEN-15
    pub(super) fn judge_caller(&self, own: &Callee, theirs: &SetUp) -> Verdict {
        let caller = opening::introduction(theirs).filter(|caller| caller.pass == own.pass);
        match caller {
            Some(caller) if caller.name == own.name => Verdict::Refused,
            Some(caller) if self.knows(caller.name) => Verdict::Ignored,
            Some(_) => Verdict::Accepted,
            None => Verdict::Refused,
        }
    }

    /// Whether there is a link with an endpoint that both know of, or that its port is yet to hear
    /// the end of.
    fn knows(&self, name: Name) -> bool {
        let is_held = self.held.iter().any(|(_, held)| *held == name);
        let mut arrived = self.arrived.iter().filter(|arrived| arrived.name == Some(name));
        is_held || arrived.any(|arrived| !arrived.is_ours || self.is_answered(arrived.index))
    }

    fn is_answered(&self, index: usize) -> bool {
        matches!(&self.slots[index], Slot::Open(link) if link.is_confirmed())
    }

    /// The endpoint that has opened the half-open link of this index.
    pub(super) fn caller_at(&self, index: u32) -> Option<Name> {
        let door = &self.entrance.door;
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

    /// What this endpoint has asked another one for is void: the other one's link stays.
    // spec: OPEN-16
    pub(super) fn give_way(&mut self, name: Name) {
        let asked = |slot: &Slot| matches!(slot, Slot::Asked(asked) if asked.callee == Some(name));
        let opened = self.opened(name).inspect(|index| drop(self.take_opened(*index)));
        if let Some(index) = opened.or_else(|| self.slots.iter().position(asked)) {
            self.slots[index] = Slot::Superseded;
        }
    }

    /// The link that this endpoint has opened to another one, and that its port has not taken.
    fn opened(&self, name: Name) -> Option<usize> {
        let is_it = |arrived: &&super::Arrived| arrived.is_ours && arrived.name == Some(name);
        self.arrived.iter().find(is_it).map(|arrived| arrived.index)
    }

    /// The port has forgotten its connection with a peer.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.held.retain(|(held, _)| *held != peer);
    }
}
