//! Ports and the channels between them.
use super::dice::Dice;
use super::node::{Node, Packet};
use ayre_netsim::Channels;
use ayre_proto::lane::Malformed;
use ayre_proto::stream::{Effects, Entry, EntryAnswer, Message, Options, StreamName};
use ayre_proto::units::PeerId;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) dice: Dice,
    /// Those that live.
    pub(crate) nodes: BTreeMap<PeerId, Node>,
    channels: Channels<Packet>,
    /// The results of requests.
    pub(crate) answers: BTreeMap<u32, EntryAnswer>,
    requests: u32,
}

impl World {
    pub(crate) fn new(seed: u64, ports: u16, options: Options) -> Self {
        let nodes = (0..ports).map(|port| (PeerId(port), Node::new(PeerId(port), options)));
        Self {
            dice: Dice(seed),
            nodes: nodes.collect(),
            channels: Channels::new(ports.into()),
            answers: BTreeMap::new(),
            requests: 0,
        }
    }

    pub(crate) fn node(&mut self, port: PeerId) -> &mut Node {
        self.nodes.get_mut(&port).expect("it lives")
    }

    /// Puts the messages of a port under way.
    pub(crate) fn post(&mut self, from: PeerId) {
        let Some(node) = self.nodes.get_mut(&from) else { return };
        for (to, packet) in std::mem::take(&mut node.side.out) {
            assert_ne!(from, to, "no port sends anything to itself");
            if self.nodes.contains_key(&to) {
                self.channels.push(from.index(), to.index(), packet);
            }
        }
    }

    pub(crate) fn advance(&mut self, port: PeerId, turns: usize) -> bool {
        let is_due = self.nodes.get_mut(&port).is_some_and(|node| node.advance(turns));
        self.post(port);
        is_due
    }

    /// An entry is to be set, or cleared, by a port that may be the one itself; at once, or if no
    /// stream uses it.
    pub(crate) fn ask(
        &mut self,
        by: PeerId,
        at: PeerId,
        name: StreamName,
        entry: Result<Entry, bool>,
    ) -> u32 {
        self.requests += 1;
        let request = self.requests;
        let message = match entry {
            Ok(entry) => Message::Set { request, name, entry },
            Err(if_unused) => Message::Clear { request, name, if_unused },
        };
        let Some(node) = self.nodes.get_mut(&by) else { return request };
        if by == at {
            let answer = match entry {
                Ok(entry) => node.streams.set(by, name, entry, &mut node.side),
                Err(if_unused) => node.streams.unset(by, name, if_unused, &mut node.side),
            };
            self.answers.insert(request, answer);
        } else {
            node.side.tell(at, message);
        }
        self.post(by);
        request
    }

    /// The next packet of a channel comes.
    pub(crate) fn deliver(&mut self, from: PeerId, to: PeerId) -> Result<(), Malformed> {
        let Some(packet) = self.channels.pop_from(from.index(), to.index()) else { return Ok(()) };
        let Some(Node { streams, side }) = self.nodes.get_mut(&to) else { return Ok(()) };
        match packet {
            Packet::Item(number, item) => {
                if let Some(place) = streams.on_item(from, number, item.weight)? {
                    side.arrive(place, item);
                }
            }
            Packet::Message(bytes) => match Message::parse(&bytes)? {
                Message::Answer { request, answer } => {
                    self.answers.insert(request, answer);
                }
                message => streams.on_message(from, message, side)?,
            },
            Packet::Death => {
                side.gone.insert(from);
                streams.on_death(from, side);
            }
        }
        self.post(to);
        Ok(())
    }

    /// Channels that something is under way on.
    pub(crate) fn busy(&self) -> Vec<(PeerId, PeerId)> {
        let peers = |(from, to)| (PeerId(from as u16), PeerId(to as u16));
        self.channels.busy().into_iter().map(peers).collect()
    }

    /// A port dies: nothing goes to it, and of what it has sent last, each other one may get more
    /// or less.
    pub(crate) fn kill(&mut self, port: PeerId) {
        self.nodes.remove(&port);
        self.channels.lose_to(port.index());
        self.channels.lose_from(port.index(), &mut self.dice);
        for to in self.nodes.keys() {
            self.channels.push(port.index(), to.index(), Packet::Death);
        }
    }

    /// Delivers and advances until nothing happens any more; says how many rounds that took.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let ports: Vec<_> = self.nodes.keys().copied().collect();
            let mut is_due = false;
            for port in ports {
                is_due |= self.advance(port, 8);
            }
            let busy = self.busy();
            if busy.is_empty() && !is_due {
                return;
            }
            for (from, to) in busy {
                self.deliver(from, to).expect("nobody lies");
            }
        }
        panic!("it does not settle");
    }
}
