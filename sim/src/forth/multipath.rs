//! Multipath: packets of one target over several links, and headers that are brought back into
//! order (section III.E).
//!
//! ```text
//!              .-- link 0 --.      data: to memory, in any order
//!   segments --+-- link 1 --+-->
//!   of 512 B   '-- link 2 --'      headers: 4 ? 2 -> wait for 3; a notification takes effect when
//!                                           all headers before it have come
//! ```
use super::network::{BYTE, FRAMING, PACKET};
use crate::machine::{Machine, Part, Step};
use crate::time::Time;
use std::collections::BTreeMap;
use thiserror::Error;

/// Puts headers back into order. Their data is in memory already.
#[derive(Clone, Debug, Default)]
pub struct Resequencer {
    /// The number of the header that comes next.
    next: u64,
    /// Headers that came before their turn, and whether they ask for a notification.
    early: BTreeMap<u64, bool>,
    most: usize,
}

impl Resequencer {
    /// A header comes. The result is the numbers of the notifications that take effect now.
    ///
    /// # Panics
    /// If it has come before: links neither lose nor repeat packets.
    pub fn take(&mut self, number: u64, notifies: bool) -> Vec<u64> {
        assert!(number >= self.next, "header {number} comes twice");
        assert!(self.early.insert(number, notifies).is_none(), "header {number} comes twice");
        let mut due = Vec::new();
        while let Some(notifies) = self.early.remove(&self.next) {
            due.extend(notifies.then_some(self.next));
            self.next += 1;
        }
        self.most = self.most.max(self.early.len());
        due
    }

    /// The most headers that waited at once: the places of the resequencing buffer.
    pub fn most(&self) -> usize {
        self.most
    }
}

/// Why nothing can be sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// There are no links.
    #[error("a bundle needs at least one link")]
    NoLink,
    /// There is nothing to send.
    #[error("a transfer of 0 B has no packets")]
    Empty,
}

/// A bundle of links to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The time of a byte on a link.
    pub byte: Time,
    /// The time of flight of each link.
    pub flights: Vec<Time>,
}

/// How a transfer came over a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// When its last packet was in memory: others may still be on their way.
    pub last: Time,
    /// When its notification took effect: all of it is in memory.
    pub notified: Time,
    /// The most headers that waited for their turn.
    pub early: usize,
}

const LINK: Part = Part("link");
const FLIGHT: Part = Part("flight");

impl Bundle {
    /// The published links, this number of them, with equal flights.
    pub fn forth(links: usize, flight: Time) -> Self {
        Self { byte: BYTE, flights: vec![flight; links] }
    }

    /// A transfer of `bytes` is cut into packets of up to 512 bytes, which take the links in turn.
    /// Its last packet asks for a notification.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn carry(&self, bytes: u32) -> Result<Carried, PathError> {
        if self.flights.is_empty() {
            return Err(PathError::NoLink);
        }
        let packets: Vec<u32> = segments(bytes).collect();
        let last = packets.len().checked_sub(1).ok_or(PathError::Empty)?;
        let mut machine = Machine::default();
        let links: Vec<_> = self.flights.iter().map(|_| machine.unit()).collect();
        let mut items = Vec::new();
        for (number, bytes) in packets.iter().enumerate() {
            let link = number % links.len();
            let time = Time(u64::from(bytes + FRAMING) * self.byte.0);
            let course =
                vec![Step::serve(LINK, links[link], time), Step::delay(FLIGHT, self.flights[link])];
            items.push(machine.add(course, [Time::ZERO]));
        }
        machine.run();
        let ends = items.iter().map(|item| machine.passage(*item).ended);
        let mut arrivals: Vec<_> = ends.zip(0_usize..).collect();
        arrivals.sort_unstable();
        let mut headers = Resequencer::default();
        let (mut last_came, mut notified) = (Time::NEVER, Time::NEVER);
        for (at, number) in &arrivals {
            if *number == last {
                last_came = *at;
            }
            if !headers.take(*number as u64, *number == last).is_empty() {
                notified = *at;
            }
        }
        Ok(Carried { last: last_came, notified, early: headers.most() })
    }
}

/// The packets of a transfer: as many of 512 bytes as there are, and the rest (section III.D).
pub fn segments(bytes: u32) -> impl Iterator<Item = u32> {
    (0..bytes).step_by(PACKET.1 as usize).map(move |first| PACKET.1.min(bytes - first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn headers_come_out_in_order_whatever_order_they_come_in() {
        for seed in 0..200 {
            let mut random = Random::new(seed, 0);
            let mut numbers: Vec<u64> = (0..64).collect();
            for at in (1..numbers.len()).rev() {
                numbers.swap(at, random.below(at as u32 + 1) as usize);
            }
            let notifies = |number: u64| number.is_multiple_of(3);
            let (mut headers, mut seen, mut due) = (Resequencer::default(), 0_u64, Vec::new());
            for number in numbers {
                seen |= 1 << number;
                let now = headers.take(number, notifies(number));
                let all_before = now.last().is_none_or(|last| seen.trailing_ones() > *last as u32);
                assert!(all_before, "a notification overtakes data");
                due.extend(now);
            }
            assert_eq!(due, (0..64).filter(|number| notifies(*number)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bandwidth_grows_with_links_and_equal_links_keep_the_order() {
        let bytes = 1 << 20;
        let time = |links| Bundle::forth(links, Time::ZERO).carry(bytes).expect("links").notified.0;
        let one = u64::from(bytes / PACKET.1 * (PACKET.1 + FRAMING)) * BYTE.0;
        for links in [1, 2, 4] {
            assert_eq!(time(links), one / links as u64);
            let carried = Bundle::forth(links, Time::from_nanos(640)).carry(bytes).expect("links");
            assert_eq!((carried.early, carried.notified), (0, carried.last));
        }
    }

    #[test]
    fn a_slow_link_delays_notifications_and_bounds_the_headers_that_wait() {
        let packet = u64::from(PACKET.1 + FRAMING) * BYTE.0;
        for links in 2..6_u64 {
            for skew in [1, 3 * packet / 2, 10 * packet] {
                let mut bundle = Bundle::forth(links as usize, Time::ZERO);
                bundle.flights[0] = Time(skew);
                // The last packet takes the last link, and the first link is late.
                let carried = bundle.carry(512 * 64 * links as u32).expect("links");
                let end = 64 * packet;
                assert_eq!((carried.last.0, carried.notified.0), (end, end + skew));
                let late = skew.div_ceil(packet);
                let bound = (links - 1) * (late + 1);
                assert!(carried.early as u64 <= bound, "{links} links, {skew}: {carried:?}");
                assert!(carried.early as u64 >= (links - 1) * (skew / packet).min(64));
            }
        }
    }

    #[test]
    fn packets_are_at_most_as_long_as_the_network_s_and_sum_to_the_transfer() {
        for bytes in [1, 511, 512, 513, 4096] {
            assert!(segments(bytes).all(|packet| (1..=PACKET.1).contains(&packet)));
            assert_eq!(segments(bytes).sum::<u32>(), bytes);
        }
        assert_eq!(Bundle::forth(0, Time::ZERO).carry(8), Err(PathError::NoLink));
        assert_eq!(Bundle::forth(1, Time::ZERO).carry(0), Err(PathError::Empty));
    }
}
