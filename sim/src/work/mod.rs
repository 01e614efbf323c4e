//! The packets that nodes make: targets, lengths and times.
mod pattern;

use crate::link::LinkTiming;
use crate::random::Random;
use crate::time::Time;
use crate::topology::Topology;
pub use pattern::Pattern;
use thiserror::Error;

/// The lengths of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// All are equally long.
    Fixed(u32),
    /// Each length from the first to the second is equally likely.
    Uniform(u32, u32),
    /// Short ones and long ones.
    Bimodal {
        /// The short length.
        short: u32,
        /// The long length.
        long: u32,
        /// The share of long packets.
        share: f64,
    },
}

impl Sizes {
    /// The shortest length.
    pub fn least(&self) -> u32 {
        match *self {
            Self::Fixed(bytes) | Self::Uniform(bytes, _) => bytes,
            Self::Bimodal { short, long, .. } => short.min(long),
        }
    }

    /// The longest length.
    pub fn most(&self) -> u32 {
        match *self {
            Self::Fixed(bytes) | Self::Uniform(_, bytes) => bytes,
            Self::Bimodal { short, long, .. } => short.max(long),
        }
    }

    /// The mean time that a packet takes a link.
    pub fn mean_span(&self, link: &LinkTiming) -> f64 {
        let span = |bytes| link.span(bytes).0 as f64;
        match *self {
            Self::Fixed(bytes) => span(bytes),
            Self::Uniform(least, most) => {
                (least..=most).map(span).sum::<f64>() / f64::from(most - least + 1)
            }
            Self::Bimodal { short, long, share } => {
                (1.0 - share) * span(short) + share * span(long)
            }
        }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        match *self {
            Self::Fixed(bytes) => bytes,
            Self::Uniform(least, most) => least + random.below(most - least + 1),
            Self::Bimodal { short, long, share } => {
                if random.unit() < share {
                    long
                } else {
                    short
                }
            }
        }
    }
}

/// When a node makes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At any time, independently of the packets before.
    Poisson,
    /// In each cycle of the link's phit with the same chance.
    Bernoulli,
    /// One after the other, as they pass the node's link, with pauses that are exponentially
    /// distributed. So no packet waits for one that its own node made before.
    Paced,
    /// Likewise, with as many packets in a burst as this number in the mean. After each packet of a
    /// burst chance decides whether it was the last one; no pause is within a burst.
    Bursts(u32),
    /// A closed loop: a node has this number of packets under way. Some time after one of them has
    /// come to its target, the node makes the next one. The offered load decides on nothing.
    Window {
        /// Packets of each node.
        packets: u32,
        /// From the arrival of a packet at its target to the making of the next one: the way of an
        /// answer, and the time that the node thinks.
        think: Time,
    },
}

/// Why a load is impossible.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LoadError {
    /// The offered load is no share of the link's rate.
    #[error("an offered load of {0}: it has to be above 0 and at most 4 times the rate of a link")]
    Offered(f64),
    /// The lengths make no sense.
    #[error("packets of {least} B to {most} B: at least 1 B, and the least first")]
    Sizes {
        /// The least length.
        least: u32,
        /// The greatest length.
        most: u32,
    },
    /// There would be no packets.
    #[error("{0} of 0 packets: there has to be 1 at least")]
    NoPackets(&'static str),
    /// A share is not between 0 and 1.
    #[error("a share of {0}: it has to be from 0 to 1")]
    Share(f64),
    /// The pattern needs another number of nodes.
    #[error("{pattern} is made for {needs}, and there are {nodes} nodes")]
    Pattern {
        /// The pattern.
        pattern: &'static str,
        /// The number of nodes that it is made for.
        needs: &'static str,
        /// The nodes that there are.
        nodes: u32,
    },
    /// Nobody has this number.
    #[error("there is no node {node}: the {nodes} nodes are numbered from 0")]
    NoNode {
        /// The number.
        node: u32,
        /// The nodes that there are.
        nodes: u32,
    },
}

/// The packets that each node makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Their targets.
    pub pattern: Pattern,
    /// Their lengths.
    pub sizes: Sizes,
    /// Their times.
    pub arrivals: Arrivals,
    /// Picoseconds from packet to packet, in the mean.
    mean_gap: f64,
    /// Picoseconds of a packet, in the mean.
    mean_span: f64,
    link: LinkTiming,
    /// Picoseconds of a cycle.
    cycle: u64,
}

impl Load {
    /// A load of which each node offers `offered` times the rate of its link.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn new(
        pattern: Pattern,
        sizes: Sizes,
        arrivals: Arrivals,
        offered: f64,
        link: &LinkTiming,
    ) -> Result<Self, LoadError> {
        if !(offered > 0.0 && offered <= 4.0) {
            return Err(LoadError::Offered(offered));
        }
        let (least, most) = match sizes {
            Sizes::Uniform(least, most) => (least, most),
            _ => (sizes.least(), sizes.most()),
        };
        if least == 0 || least > most {
            return Err(LoadError::Sizes { least, most });
        }
        if let Sizes::Bimodal { share, .. } = sizes
            && !(0.0..=1.0).contains(&share)
        {
            return Err(LoadError::Share(share));
        }
        match arrivals {
            Arrivals::Paced | Arrivals::Bursts(_) if offered > 1.0 => {
                return Err(LoadError::Offered(offered));
            }
            Arrivals::Bursts(0) => return Err(LoadError::NoPackets("bursts")),
            Arrivals::Window { packets: 0, .. } => return Err(LoadError::NoPackets("a window")),
            _ => {}
        }
        let mean_span = sizes.mean_span(link);
        let mean_gap = mean_span / offered;
        let cycle = link.phit.0;
        Ok(Self { pattern, sizes, arrivals, mean_gap, mean_span, link: *link, cycle })
    }

    /// A width for the buckets of a calendar: a cycle, or the time in which some events come.
    pub(crate) fn step(&self, nodes: usize) -> Time {
        Time(self.cycle.max((self.mean_gap / (2.0 * nodes as f64)) as u64))
    }

    /// Checks that the pattern fits the topology.
    pub(crate) fn check(&self, topology: &Topology) -> Result<(), LoadError> {
        self.pattern.check(topology.nodes.len() as u32)
    }

    /// How many packets a node makes first.
    pub(crate) fn beginning(&self) -> u32 {
        if let Arrivals::Window { packets, .. } = self.arrivals { packets } else { 1 }
    }

    /// The time of a node's first packets.
    pub(crate) fn first(&self, random: &mut Random) -> Time {
        match self.arrivals {
            Arrivals::Poisson => self.gap(0, random),
            Arrivals::Paced | Arrivals::Bursts(_) => self.pause(random),
            // It may come in the first cycle.
            Arrivals::Bernoulli => self.gap(0, random) - Time(self.cycle),
            Arrivals::Window { .. } => Time::ZERO,
        }
    }

    /// The time from a node's packet of this length to its next one. In a window that is never: the
    /// next one follows from a delivery.
    pub(crate) fn gap(&self, bytes: u32, random: &mut Random) -> Time {
        match self.arrivals {
            Arrivals::Paced | Arrivals::Bursts(_) => {
                let burst = self.burst();
                let ends = burst == 1.0 || random.unit() * burst < 1.0;
                self.link.span(bytes) + if ends { self.pause(random) } else { Time::ZERO }
            }
            Arrivals::Poisson => Time((random.exponential() * self.mean_gap).round() as u64),
            Arrivals::Bernoulli => {
                let chance = self.cycle as f64 / self.mean_gap;
                Time(random.trials(chance) * self.cycle)
            }
            Arrivals::Window { .. } => Time::END,
        }
    }

    /// Packets of a burst in the mean.
    fn burst(&self) -> f64 {
        if let Arrivals::Bursts(packets) = self.arrivals { packets.into() } else { 1.0 }
    }

    /// The time from the end of a burst to the next one.
    fn pause(&self, random: &mut Random) -> Time {
        let mean = self.burst() * (self.mean_gap - self.mean_span);
        Time((random.exponential() * mean).round() as u64)
    }

    /// The time from a packet's arrival at its target to the next one of its source, in a window.
    #[inline]
    pub(crate) fn think(&self) -> Option<Time> {
        if let Arrivals::Window { think, .. } = self.arrivals { Some(think) } else { None }
    }

    /// This load, with another share of the links' rate.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn at(&self, offered: f64) -> Result<Self, LoadError> {
        Self::new(self.pattern.clone(), self.sizes, self.arrivals, offered, &self.link)
    }
}
