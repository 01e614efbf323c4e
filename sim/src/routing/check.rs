//! Whether a routing may deadlock, by its channel dependency graph (Dally and Seitz 1987).
//!
//! A packet that holds a virtual channel of one link and asks for one of the next makes the first
//! depend on the second. Without a ring of such dependencies there is no deadlock.
use super::plan::{Plan, Step};
use super::{Hop, RoutingError};
use crate::packet::Packet;
use std::collections::VecDeque;

/// The most steps that are followed.
const STEPS_MAX: u64 = 1 << 29;

/// A virtual channel of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The link's place in the topology's list.
    pub link: usize,
    /// The channel's number.
    pub channel: u16,
}

/// The loads that all ways of a routing put on links, and whether they may deadlock.
///
/// A way that chance chooses counts as each of those that it may be. Adaptive ways stand for their
/// escape, by which they are free of deadlock if it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Ways over each link.
    pub loads: Vec<u64>,
    /// The number of ways.
    pub ways: u64,
    /// The links of the longest way.
    pub longest: u32,
    /// Pairs of source and target without a way.
    pub unreachable: Vec<(u32, u32)>,
    /// A shortest ring of channels, each of which depends on the next, if there is a ring.
    pub ring: Option<Vec<Channel>>,
}

impl Survey {
    /// Follows all ways of a plan.
    ///
    /// # Errors
    /// [`RoutingError::ManyWays`].
    pub fn new(plan: &Plan<'_>) -> Result<Self, RoutingError> {
        Search::new(plan).survey()
    }

    /// The links of all ways.
    pub fn hops(&self) -> u64 {
        self.loads.iter().sum()
    }
}

/// A link with the channels of it that a packet may hold.
type Held = (usize, Hop);

struct Search<'a> {
    plan: &'a Plan<'a>,
    survey: Survey,
    /// For each link, the holdings behind it that follow on a holding of it.
    after: Vec<Vec<(Hop, Held)>>,
    /// The links of the way that is followed.
    way: Vec<Held>,
    forks: Vec<Fork>,
    steps: u64,
}

/// A hop to be followed.
struct Fork {
    /// Links before it.
    behind: usize,
    router: u32,
    packet: Packet,
    hop: Hop,
}

impl<'a> Search<'a> {
    fn new(plan: &'a Plan<'a>) -> Self {
        let links = plan.topology.links.len();
        let survey = Survey {
            loads: vec![0; links],
            ways: 0,
            longest: 0,
            unreachable: Vec::new(),
            ring: None,
        };
        Self {
            plan,
            survey,
            after: vec![Vec::new(); links],
            way: Vec::new(),
            forks: Vec::new(),
            steps: 0,
        }
    }

    fn survey(mut self) -> Result<Survey, RoutingError> {
        let nodes = self.plan.nodes();
        for source in 0..nodes {
            for target in (0..nodes).filter(|target| *target != source) {
                if !self.plan.reaches(source, target) {
                    self.survey.unreachable.push((source, target));
                    continue;
                }
                for via in self.plan.routes.vias(source, target, nodes) {
                    let packet = self.plan.packet(source, target, via);
                    let router = self.plan.topology.nodes[source as usize].inject.router;
                    self.follow(router, packet)?;
                }
            }
        }
        self.survey.ring = Dependencies::new(self.plan.channels, &self.after).shortest_ring();
        Ok(self.survey)
    }

    /// Follows all ways of a packet from its router on.
    fn follow(&mut self, router: u32, packet: Packet) -> Result<(), RoutingError> {
        self.way.clear();
        self.fork(router, packet);
        while let Some(Fork { behind, router, packet, hop }) = self.forks.pop() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(RoutingError::ManyWays { limit: STEPS_MAX });
            }
            self.way.truncate(behind);
            if let Some(link) = self.plan.link(Step { router, hop }) {
                self.pass(link, hop);
                self.fork(self.plan.link_at(link).to.router, packet);
            } else {
                self.arrive();
            }
        }
        Ok(())
    }

    /// Notes all hops that a packet may take at a router.
    fn fork(&mut self, router: u32, mut packet: Packet) {
        let (behind, forks) = (self.way.len(), &mut self.forks);
        self.plan.routes.hops(router, &mut packet, |packet, hop| {
            forks.push(Fork { behind, router, packet: *packet, hop });
        });
    }

    fn pass(&mut self, link: usize, hop: Hop) {
        if let Some((before, before_hop)) = self.way.last() {
            let next = (*before_hop, (link, hop));
            let after = &mut self.after[*before];
            if !after.contains(&next) {
                after.push(next);
            }
        }
        self.way.push((link, hop));
    }

    fn arrive(&mut self) {
        self.survey.ways += 1;
        self.survey.longest = self.survey.longest.max(self.way.len() as u32);
        for (link, _) in &self.way {
            self.survey.loads[*link] += 1;
        }
    }
}

/// The channel dependency graph: number `link * channels + channel` is a channel.
struct Dependencies {
    channels: usize,
    next: Vec<Vec<usize>>,
}

impl Dependencies {
    fn new(channels: u16, after: &[Vec<(Hop, Held)>]) -> Self {
        let channels = usize::from(channels);
        let mut next = vec![Vec::new(); after.len() * channels];
        let range = |link: usize, hop: &Hop| {
            let first = link * channels + usize::from(hop.first);
            first..first + usize::from(hop.count)
        };
        for (link, dependencies) in after.iter().enumerate() {
            for (hop, (behind, behind_hop)) in dependencies {
                for from in range(link, hop) {
                    next[from].extend(range(*behind, behind_hop));
                }
            }
        }
        for list in &mut next {
            list.sort_unstable();
            list.dedup();
        }
        Self { channels, next }
    }

    fn shortest_ring(&self) -> Option<Vec<Channel>> {
        let mut best: Option<Vec<usize>> = None;
        let mut search = RingSearch {
            next: &self.next,
            before: vec![None; self.next.len()],
            far: vec![0; self.next.len()],
            seen: Vec::new(),
        };
        for start in self.in_rings() {
            let limit = best.as_ref().map_or(usize::MAX, Vec::len);
            best = search.ring_from(start, limit).or(best);
        }
        let channel = |number| Channel {
            link: number / self.channels,
            channel: (number % self.channels) as u16,
        };
        best.map(|ring| ring.into_iter().map(channel).collect())
    }

    /// The channels that are left when those on which none depends, or which depend on none, are
    /// taken away again and again. All rings are among them.
    fn in_rings(&self) -> Vec<usize> {
        let mut left = vec![true; self.next.len()];
        let mut back = vec![Vec::new(); self.next.len()];
        for (from, list) in self.next.iter().enumerate() {
            for to in list {
                back[*to].push(from);
            }
        }
        for (forth, back) in [(&self.next, &back), (&back, &self.next)] {
            let mut counts: Vec<_> = back.iter().map(Vec::len).collect();
            for (from, list) in forth.iter().enumerate() {
                if !left[from] {
                    list.iter().for_each(|to| counts[*to] -= 1);
                }
            }
            let mut free: Vec<_> =
                (0..left.len()).filter(|number| left[*number] && counts[*number] == 0).collect();
            while let Some(number) = free.pop() {
                left[number] = false;
                for to in &forth[number] {
                    counts[*to] -= 1;
                    if counts[*to] == 0 && left[*to] {
                        free.push(*to);
                    }
                }
            }
        }
        (0..left.len()).filter(|number| left[*number]).collect()
    }
}

/// A search in breadth, whose memory serves again.
struct RingSearch<'a> {
    next: &'a [Vec<usize>],
    before: Vec<Option<usize>>,
    far: Vec<usize>,
    seen: Vec<usize>,
}

impl RingSearch<'_> {
    /// A shortest ring through `start` with fewer than `limit` channels.
    fn ring_from(&mut self, start: usize, limit: usize) -> Option<Vec<usize>> {
        for number in self.seen.drain(..) {
            self.before[number] = None;
        }
        let mut queue = VecDeque::from([start]);
        self.far[start] = 1;
        while let Some(number) = queue.pop_front() {
            if self.far[number] >= limit {
                return None;
            }
            for to in &self.next[number] {
                if *to == start {
                    return Some(self.trace(start, number));
                }
                if self.before[*to].is_none() {
                    self.before[*to] = Some(number);
                    self.far[*to] = self.far[number] + 1;
                    self.seen.push(*to);
                    queue.push_back(*to);
                }
            }
        }
        None
    }

    fn trace(&self, start: usize, last: usize) -> Vec<usize> {
        let mut ring = vec![last];
        let mut number = last;
        while number != start
            && let Some(before) = self.before[number]
        {
            ring.push(before);
            number = before;
        }
        ring.reverse();
        ring
    }
}
