//! The program of a node: memory that its peers reach, local ends of its own operations, and what
//! it was told.
use crate::pair::port::Shared;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::effects;
use ayre_proto::node::initiator::Ended;
use ayre_proto::node::target::{Delivery, Exchange, Exposed};
use ayre_proto::notify::Notification;
use ayre_proto::units::{Extent, PeerId};
use std::collections::VecDeque;

/// An event at a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Ended(PeerId, Ended),
    Offered(PeerId, Offer),
    Gone(PeerId, Fault),
}

#[derive(Debug)]
pub(crate) struct Program {
    /// By the number of who may reach it, which is that of its region.
    pub(crate) shared: Vec<Shared>,
    /// The sender of the message that was executed last.
    last: usize,
    /// Local ends of operations.
    pub(crate) buffers: Vec<Vec<u8>>,
    /// The results of replies that have one.
    pub(crate) replies: Vec<Option<(u64, Vec<u8>)>>,
    pub(crate) are_replies_held_up: bool,
    pub(crate) told: VecDeque<Told>,
}

impl Program {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            shared: (0..nodes as u16).map(Shared::new).collect(),
            last: 0,
            buffers: Vec::new(),
            replies: Vec::new(),
            are_replies_held_up: false,
            told: VecDeque::new(),
        }
    }
}

impl Exposed for Program {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.shared[usize::from(to.region())].write(to, data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.shared[usize::from(from.region())].read(from, into);
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.shared[usize::from(to.region())].store(to, value);
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        self.shared[usize::from(at.region())].atomic(at, atomic)
    }

    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery {
        self.last = usize::from(at.region());
        self.shared[self.last].carry_out(posted, at, exchange)
    }

    fn give(&self, into: &mut [u8]) {
        self.shared[self.last].give(into);
    }
}

impl effects::Program for Program {
    /// A buffer.
    type Local = usize;
    /// A place among the replies.
    type Reply = usize;

    fn load(&self, local: &usize, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.buffers[*local][offset as usize..][..into.len()]);
    }

    fn land(&mut self, local: &usize, offset: u64, data: &[u8]) {
        self.buffers[*local][offset as usize..][..data.len()].copy_from_slice(data);
    }

    fn reply(
        &mut self,
        reply: &mut usize,
        given: u64,
        data: &[u8],
    ) -> Option<(Status, Option<Notification>)> {
        if self.are_replies_held_up {
            return None;
        }
        let got = self.replies[*reply].replace((given, data.to_vec()));
        assert_eq!(got, None, "a reply is carried out once");
        Some((Status::Ok, None))
    }

    fn ended(&mut self, peer: PeerId, ended: &Ended) {
        self.told.push_back(Told::Ended(peer, *ended));
    }

    fn offered(&mut self, peer: PeerId, offer: Offer) {
        self.told.push_back(Told::Offered(peer, offer));
    }

    fn gone(&mut self, peer: PeerId, why: Fault) {
        self.told.push_back(Told::Gone(peer, why));
    }
}
