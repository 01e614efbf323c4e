//! Channels between all pairs: what is sent comes, in order, whenever the dice say so.
use super::dice::Dice;
use std::collections::VecDeque;

/// What comes.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// The bytes of a message, its payload behind it.
    Message(Vec<u8>),
    /// Who is at the other end is dead.
    Death,
}

pub(crate) struct Net {
    nodes: usize,
    channels: Vec<VecDeque<Packet>>,
    /// Channels with something in them, and where each stands in that list.
    busy: Vec<usize>,
    place: Vec<usize>,
}

impl Net {
    pub(crate) fn new(nodes: usize) -> Self {
        let channels = vec![VecDeque::new(); nodes * nodes];
        Self { nodes, channels, busy: Vec::new(), place: vec![usize::MAX; nodes * nodes] }
    }

    pub(crate) fn push(&mut self, from: usize, to: usize, packet: Packet) {
        let channel = from * self.nodes + to;
        if self.channels[channel].is_empty() {
            self.place[channel] = self.busy.len();
            self.busy.push(channel);
        }
        self.channels[channel].push_back(packet);
    }

    /// Takes the first packet of some channel; those to slow ones come late.
    pub(crate) fn pop(
        &mut self,
        dice: &mut Dice,
        is_slow: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize, Packet)> {
        if self.busy.is_empty() {
            return None;
        }
        let mut channel = self.busy[dice.below(self.busy.len() as u64) as usize];
        if is_slow(channel % self.nodes) && dice.percent(95) {
            channel = self.busy[dice.below(self.busy.len() as u64) as usize];
        }
        let (from, to) = (channel / self.nodes, channel % self.nodes);
        Some((from, to, self.take(channel)))
    }

    /// Takes the first packet of one channel.
    pub(crate) fn pop_from(&mut self, from: usize, to: usize) -> Option<Packet> {
        let channel = from * self.nodes + to;
        if self.channels[channel].is_empty() { None } else { Some(self.take(channel)) }
    }

    fn take(&mut self, channel: usize) -> Packet {
        let packet = self.channels[channel].pop_front().expect("it is not empty");
        if self.channels[channel].is_empty() {
            let place = self.place[channel];
            self.busy.swap_remove(place);
            if let Some(moved) = self.busy.get(place) {
                self.place[*moved] = place;
            }
        }
        packet
    }

    /// Of what this one has sent, the last may be lost: to each other as much as the dice say.
    pub(crate) fn lose_from(&mut self, from: usize, dice: &mut Dice) {
        for to in 0..self.nodes {
            let channel = from * self.nodes + to;
            let len = self.channels[channel].len();
            if len > 0 && dice.percent(30) {
                let kept = dice.below(len as u64) as usize;
                let last = self.take_all(channel);
                last.into_iter().take(kept).for_each(|packet| self.push(from, to, packet));
            }
        }
    }

    fn take_all(&mut self, channel: usize) -> Vec<Packet> {
        (0..self.channels[channel].len()).map(|_| self.take(channel)).collect()
    }

    /// Nothing comes to this one any more.
    pub(crate) fn drop_to(&mut self, to: usize) {
        for from in 0..self.nodes {
            while self.pop_from(from, to).is_some() {}
        }
    }
}
