//! The usual schedules, written as GOAL text.
use std::fmt::{self, Write};
use thiserror::Error;

/// A schedule that is the same for any number of ranks. The first rank is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A barrier: in round `r` each rank sends to the one `2^r` above it.
    Dissemination,
    /// A broadcast: in round `r` the ranks below `2^r` send to those `2^r` above them.
    Broadcast,
    /// An allreduce by recursive doubling: each rank exchanges all bytes with the one whose number
    /// differs in bit `r`. The number of ranks is a power of two.
    Doubling,
    /// An allreduce in a ring: the bytes, divided among the ranks, pass the ring twice.
    Ring,
    /// Each rank sends to all others, beginning with the one above it.
    AllToAll,
    /// Each rank of a torus exchanges with its neighbours, two in each dimension.
    Halo {
        /// The ranks in each dimension.
        sides: Vec<u32>,
    },
}

/// Why a pattern cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatternError {
    /// The pattern is made for other numbers of ranks.
    #[error("{pattern} is made for {needs}, and there are {ranks} ranks")]
    Ranks {
        /// The pattern.
        pattern: &'static str,
        /// The numbers of ranks that it is made for.
        needs: &'static str,
        /// The ranks that there are.
        ranks: u32,
    },
    /// The output does not take the text.
    #[error("the schedule cannot be written")]
    Output(#[from] fmt::Error),
}

impl Pattern {
    /// Writes the schedule of `ranks` ranks and messages of `bytes` bytes.
    ///
    /// # Errors
    /// If the pattern is made for other numbers of ranks, or the output fails.
    pub fn write(&self, ranks: u32, bytes: u64, out: &mut impl Write) -> Result<(), PatternError> {
        self.check(ranks)?;
        writeln!(out, "num_ranks {ranks}")?;
        for rank in 0..ranks {
            writeln!(out, "\nrank {rank} {{")?;
            let mut writer = Writer { out, labels: 0 };
            match self {
                Self::Dissemination => writer.dissemination(rank, ranks, bytes)?,
                Self::Broadcast => writer.broadcast(rank, ranks, bytes)?,
                Self::Doubling => writer.doubling(rank, ranks, bytes)?,
                Self::Ring => writer.ring(rank, ranks, bytes)?,
                Self::AllToAll => writer.all_to_all(rank, ranks, bytes)?,
                Self::Halo { sides } => writer.halo(rank, sides, bytes)?,
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }

    fn check(&self, ranks: u32) -> Result<(), PatternError> {
        let error = |pattern, needs| Err(PatternError::Ranks { pattern, needs, ranks });
        match self {
            _ if ranks < 2 => error("a schedule", "2 ranks or more"),
            Self::Doubling if !ranks.is_power_of_two() => {
                error("recursive doubling", "a power of two")
            }
            Self::Halo { sides } => {
                let all = sides.iter().try_fold(1_u32, |all, side| all.checked_mul(*side));
                if sides.iter().any(|side| *side < 2) || all != Some(ranks) {
                    return error("a halo", "the product of its sides, each 2 or more");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Writes the operations of a rank.
struct Writer<'a, W> {
    out: &'a mut W,
    labels: u32,
}

impl<W: Write> Writer<'_, W> {
    fn send(&mut self, bytes: u64, to: u32, tag: u32) -> Result<u32, fmt::Error> {
        self.labels += 1;
        writeln!(self.out, "l{}: send {bytes}b to {to} tag {tag}", self.labels)?;
        Ok(self.labels)
    }

    fn receive(&mut self, bytes: u64, from: u32, tag: u32) -> Result<u32, fmt::Error> {
        self.labels += 1;
        writeln!(self.out, "l{}: recv {bytes}b from {from} tag {tag}", self.labels)?;
        Ok(self.labels)
    }

    fn require(&mut self, label: u32, other: Option<u32>) -> fmt::Result {
        other.map_or(Ok(()), |other| writeln!(self.out, "l{label} requires l{other}"))
    }

    /// A send that waits for the last receive, and the receive that comes with it.
    fn exchange(&mut self, bytes: u64, to: u32, from: u32, last: &mut Option<u32>) -> fmt::Result {
        let send = self.send(bytes, to, 0)?;
        self.require(send, *last)?;
        *last = Some(self.receive(bytes, from, 0)?);
        Ok(())
    }

    fn dissemination(&mut self, rank: u32, ranks: u32, bytes: u64) -> fmt::Result {
        let mut last = None;
        for distance in distances(ranks) {
            let (to, from) = (above(rank, distance, ranks), below(rank, distance, ranks));
            self.exchange(bytes, to, from, &mut last)?;
        }
        Ok(())
    }

    fn broadcast(&mut self, rank: u32, ranks: u32, bytes: u64) -> fmt::Result {
        let mut received = None;
        for distance in distances(ranks) {
            if rank < distance && rank + distance < ranks {
                let send = self.send(bytes, rank + distance, 0)?;
                self.require(send, received)?;
            } else if distance <= rank && rank - distance < distance {
                received = Some(self.receive(bytes, rank - distance, 0)?);
            }
        }
        Ok(())
    }

    fn doubling(&mut self, rank: u32, ranks: u32, bytes: u64) -> fmt::Result {
        let mut last = None;
        for distance in distances(ranks) {
            self.exchange(bytes, rank ^ distance, rank ^ distance, &mut last)?;
        }
        Ok(())
    }

    fn ring(&mut self, rank: u32, ranks: u32, bytes: u64) -> fmt::Result {
        let part = bytes.div_ceil(ranks.into());
        let mut last = None;
        for _ in 0..2 * (u64::from(ranks) - 1) {
            self.exchange(part, above(rank, 1, ranks), below(rank, 1, ranks), &mut last)?;
        }
        Ok(())
    }

    fn all_to_all(&mut self, rank: u32, ranks: u32, bytes: u64) -> fmt::Result {
        for distance in 1..ranks {
            self.send(bytes, above(rank, distance, ranks), 0)?;
            self.receive(bytes, below(rank, distance, ranks), 0)?;
        }
        Ok(())
    }

    fn halo(&mut self, rank: u32, sides: &[u32], bytes: u64) -> fmt::Result {
        let mut stride = 1;
        // The tag is the direction in which the message goes: in a row of two, both neighbours are
        // one rank.
        for (tag, side) in (0..).step_by(2).zip(sides) {
            let place = rank / stride % side;
            let up = rank - place * stride + above(place, 1, *side) * stride;
            let down = rank - place * stride + below(place, 1, *side) * stride;
            self.send(bytes, up, tag)?;
            self.send(bytes, down, tag + 1)?;
            self.receive(bytes, down, tag)?;
            self.receive(bytes, up, tag + 1)?;
            stride *= side;
        }
        Ok(())
    }
}

/// The powers of two below the number of ranks.
fn distances(ranks: u32) -> impl Iterator<Item = u32> {
    (0..32).map(|round| 1 << round).take_while(move |distance| *distance < ranks)
}

fn above(rank: u32, distance: u32, ranks: u32) -> u32 {
    ((u64::from(rank) + u64::from(distance)) % u64::from(ranks)) as u32
}

fn below(rank: u32, distance: u32, ranks: u32) -> u32 {
    above(rank, ranks - distance, ranks)
}
