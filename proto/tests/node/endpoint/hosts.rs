//! Nodes under endpoints: what goes to another host goes as messages of theirs, and by their rings,
//! in frames over a network that errs, in virtual time.
use super::ways::{Entry, Wire};
use crate::dice::Dice;
use crate::world::program::Program;
use crate::world::traffic::Node;
use crate::world::wire::{LINES, LONGEST, MICROSECOND, Net, PATHS, Sending, link};
use crate::world::{id, plan};
use ayre_netsim::Network;
use ayre_proto::lane::Malformed;
use ayre_proto::limits::TABLE_SLOTS;
use ayre_proto::link::looks::Looks;
use ayre_proto::node::connection::Lines;
use ayre_proto::node::effects::Host;

/// Of each endpoint the node that is under it.
pub(crate) struct Hosts {
    nodes: Vec<(Node, Program)>,
    net: Net,
    now: u64,
    ringed: u64,
}

impl Hosts {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0xface);
        // Of 16 to 128 KiB.
        let lines = Lines { ring: 1 << dice.between(8, 11), ..LINES };
        let mut nodes: Vec<_> =
            (0..count).map(|_| (Node::new(count, TABLE_SLOTS), Program::new(count))).collect();
        for (own, (node, _)) in nodes.iter_mut().enumerate() {
            for peer in (0..count).filter(|peer| *peer != own) {
                node.connect(id(peer), &lines, link(own, peer, [1, 1], 0));
            }
        }
        let ways = Network::new([(); PATHS].map(|()| plan(&mut dice, false)));
        Self { nodes, net: Net::new(ways, [LONGEST; PATHS], dice), now: 0, ringed: 0 }
    }

    /// Records leave, time goes on to what is next, and records come. Whether any are on their way.
    pub(crate) fn carry(&mut self, wires: &mut [Vec<Wire>]) -> bool {
        let mut any = self.leave(wires);
        any |= !self.is_idle();
        self.go_on();
        self.arrive(wires) || any
    }

    pub(crate) fn longest_piece(&self, own: usize, to: usize) -> Option<usize> {
        self.nodes[own].0.peer(id(to)).expect("connected").longest_piece()
    }

    pub(crate) fn write_ring(&mut self, own: usize, to: usize, piece: &[u8]) -> Option<u64> {
        let at = self.nodes[own].0.write_ring(id(to), piece).expect("it lives")?;
        self.ringed += piece.len() as u64;
        Some(at)
    }

    pub(crate) fn check_ring(
        &self,
        own: usize,
        from: usize,
        (at, len): (u64, usize),
    ) -> Result<(), Malformed> {
        self.nodes[own].0.peer(id(from)).expect("connected").check_ring(at, len)
    }

    pub(crate) fn take_ring(
        &mut self,
        own: usize,
        from: usize,
        piece: (u64, usize),
        into: &mut [u8],
    ) {
        self.nodes[own].0.take_ring(id(from), piece, into).expect("it was checked");
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.nodes.len();
        let all = (0..count).flat_map(move |own| (0..count).map(move |peer| (own, peer)));
        all.filter(|(own, peer)| own != peer)
    }

    fn with<R>(
        &mut self,
        own: usize,
        act: impl FnOnce(&mut Node, &mut Host<'_, Program, Sending<'_>>) -> R,
    ) -> R {
        let (node, program) = &mut self.nodes[own];
        let wire = &mut self.net.at(own, self.now);
        act(node, &mut Host { program, wire })
    }

    fn leave(&mut self, wires: &mut [Vec<Wire>]) -> bool {
        let mut any = false;
        for (own, to) in self.pairs() {
            let leaving = &mut wires[own][to].leaving;
            while let Some(entry) = leaving.front() {
                any = true;
                let (tag, bytes) = entry.message();
                if self.nodes[own].0.send(id(to), tag, &bytes).is_err() {
                    break;
                }
                leaving.pop_front();
            }
            let now = self.now;
            self.with(own, |node, host| node.serve(id(to), now, host));
        }
        any
    }

    fn arrive(&mut self, wires: &mut [Vec<Wire>]) -> bool {
        let mut any = false;
        for (own, from) in self.pairs() {
            while let Some(message) = self.with(own, |node, host| node.receive(id(from), host)) {
                any = true;
                let entry = Entry::brought(message.tag, message.bytes);
                wires[from][own].lane.push_back(entry);
            }
        }
        any
    }

    fn go_on(&mut self) {
        let due = self.nodes.iter().map(|(node, _)| node.deadline());
        // What is due and has no room waits for something else.
        let next = due.filter(|due| *due > self.now).min().unwrap_or(u64::MAX);
        self.now = next.min(self.net.due()).clamp(self.now, self.now + 100 * MICROSECOND);
        let now = self.now;
        while let Some(datagram) = self.net.ways.take(now) {
            let Some((header, payload)) = datagram.open() else { continue };
            let looks = Looks::all_the_time(now);
            self.with(datagram.to, |node, host| node.on_frame((&header, payload), &looks, host));
        }
        for own in 0..self.nodes.len() {
            self.with(own, |node, host| node.on_time(now, host));
        }
    }

    fn is_idle(&self) -> bool {
        self.pairs().all(|(own, peer)| {
            let peer_of = |own: usize, peer: usize| self.nodes[own].0.peer(id(peer));
            let (near, far) = (peer_of(own, peer), peer_of(peer, own));
            let (near, far) = (near.expect("connected"), far.expect("connected"));
            near.is_idle() && near.there() == far.here()
        })
    }

    /// Frames that went again.
    pub(crate) fn again(&self) -> u64 {
        let links = self.pairs().filter_map(|(own, peer)| self.nodes[own].0.peer(id(peer))?.link());
        let counters = links.map(|link| *link.end().counters());
        counters.map(|of| of.overtaken + of.asked_for + of.timed_out).sum()
    }

    /// Bytes that went through rings.
    pub(crate) fn ringed(&self) -> u64 {
        self.ringed
    }
}
