//! Channels between all pairs of some places: what is sent comes, once and in order, whenever its
//! owner wants it to. There is no time: which channel is next, dice say, or the owner does.
use crate::Dice;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// One channel for each way between two of the places, which are numbered from 0.
#[derive(Clone, Debug)]
pub struct Channels<T> {
    places: usize,
    channels: Vec<VecDeque<T>>,
    /// Channels with something in them, and where each stands in that list.
    busy: Vec<usize>,
    stands: Vec<usize>,
}

impl<T> Channels<T> {
    /// Empty channels between this number of places.
    pub fn new(places: usize) -> Self {
        let channels = (0..places * places).map(|_| VecDeque::new()).collect();
        Self { places, channels, busy: Vec::new(), stands: vec![usize::MAX; places * places] }
    }

    /// Something is sent.
    pub fn push(&mut self, from: usize, to: usize, item: T) {
        let channel = from * self.places + to;
        if self.channels[channel].is_empty() {
            self.stands[channel] = self.busy.len();
            self.busy.push(channel);
        }
        self.channels[channel].push_back(item);
    }

    /// Takes the first item of some channel; those to slow places come late.
    pub fn pop(
        &mut self,
        dice: &mut Dice,
        is_slow: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize, T)> {
        if self.busy.is_empty() {
            return None;
        }
        let mut channel = self.busy[dice.below(self.busy.len() as u64) as usize];
        if is_slow(channel % self.places) && dice.percent(95) {
            channel = self.busy[dice.below(self.busy.len() as u64) as usize];
        }
        let (from, to) = (channel / self.places, channel % self.places);
        self.take(channel).map(|item| (from, to, item))
    }

    /// Takes the first item of one channel.
    pub fn pop_from(&mut self, from: usize, to: usize) -> Option<T> {
        self.take(from * self.places + to)
    }

    /// The channels with something in them, by the places that they lead from and to.
    pub fn busy(&self) -> Vec<(usize, usize)> {
        let mut busy = self.busy.clone();
        busy.sort_unstable();
        busy.into_iter().map(|channel| (channel / self.places, channel % self.places)).collect()
    }

    fn take(&mut self, channel: usize) -> Option<T> {
        let item = self.channels[channel].pop_front()?;
        if self.channels[channel].is_empty() {
            let stands = self.stands[channel];
            self.busy.swap_remove(stands);
            if let Some(moved) = self.busy.get(stands) {
                self.stands[*moved] = stands;
            }
        }
        Some(item)
    }

    /// Of what this place has sent, the last may be lost: to each other one as much as the dice
    /// say.
    pub fn lose_from(&mut self, from: usize, dice: &mut Dice) {
        for to in 0..self.places {
            let channel = from * self.places + to;
            let len = self.channels[channel].len();
            if len > 0 && dice.percent(30) {
                let kept = dice.below(len as u64) as usize;
                let all: Vec<_> = (0..len).filter_map(|_| self.take(channel)).collect();
                all.into_iter().take(kept).for_each(|item| self.push(from, to, item));
            }
        }
    }

    /// Of what was sent to this place, nothing comes any more.
    pub fn lose_to(&mut self, to: usize) {
        for from in 0..self.places {
            while self.pop_from(from, to).is_some() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: usize = 4;

    /// Every place has sent some numbers to each other one.
    fn laden(count: u64) -> Channels<u64> {
        let mut channels = Channels::new(PLACES);
        for number in 0..count {
            for from in 0..PLACES {
                let others = (0..PLACES).filter(|to| *to != from);
                others.for_each(|to| channels.push(from, to, number));
            }
        }
        channels
    }

    /// The next item to arrive, chosen by the dice.
    fn all(mut channels: Channels<u64>, seed: u64) -> Vec<(usize, usize, u64)> {
        let mut dice = Dice(seed);
        core::iter::from_fn(|| channels.pop(&mut dice, |to| to == 2)).collect()
    }

    #[test]
    fn everything_comes_once_and_in_the_order_of_its_channel() {
        let came = all(laden(50), 1);
        assert_eq!(came.len(), 50 * PLACES * (PLACES - 1));
        for (from, to) in (0..PLACES).flat_map(|from| (0..PLACES).map(move |to| (from, to))) {
            let its = came.iter().filter(|one| (one.0, one.1) == (from, to)).map(|one| one.2);
            assert!(its.eq(0..if from == to { 0 } else { 50 }), "from {from} to {to}");
        }
        assert_eq!(all(laden(50), 1), came, "by the same seed");
        assert_ne!(all(laden(50), 2), came, "by another one");
    }

    #[test]
    fn messages_to_slow_places_arrive_late() {
        let came = all(laden(50), 1);
        let when = |place: usize| {
            let its = came.iter().enumerate().filter(|(_, one)| one.1 == place);
            its.map(|(at, _)| at).sum::<usize>()
        };
        assert!([0, 1, 3].into_iter().all(|place| when(place) < when(2)));
    }

    #[test]
    fn losses_take_the_tail_of_a_sender_or_all_to_a_place() {
        let mut channels = laden(50);
        channels.lose_to(3);
        assert!(channels.busy().iter().all(|(_, to)| *to != 3));
        assert_eq!(channels.busy().len(), (PLACES - 1) * (PLACES - 1));
        (0..20).for_each(|seed| channels.lose_from(1, &mut Dice(seed)));
        let came = all(channels, 1);
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
            let its: Vec<_> = came.iter().filter(|one| (one.0, one.1) == (from, to)).collect();
            assert!(its.iter().map(|one| one.2).eq(0..its.len() as u64), "the first of them");
            assert_eq!(its.len() < 50, from == 1, "from {from} to {to}: {}", its.len());
        }
    }
}
