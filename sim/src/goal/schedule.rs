//! A schedule in memory: operations, and who waits for whom, in a few flat arrays.
use std::collections::HashMap;
use thiserror::Error;

/// Stands for any source, and for any tag, in a receive.
pub(super) const ANY: u32 = u32::MAX;

/// The largest number of ranks.
pub(super) const RANKS_MAX: u64 = 1 << 22;
/// The largest number of operations, and of requirements.
pub(super) const OPERATIONS_MAX: u64 = 1 << 28;
/// The largest product of ranks, CPUs and network interfaces of a host.
pub(super) const UNITS_MAX: u64 = 1 << 22;
/// The longest message, in bytes.
pub(super) const BYTES_MAX: u64 = 1 << 40;
/// The longest computation, in nanoseconds.
pub(super) const CALC_MAX: u64 = 1 << 50;

/// The kind of an operation. The order decides between operations that become ready at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sends a message.
    Send,
    /// Receives a message.
    Receive,
    /// Takes the CPU for a time.
    Calc,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Bytes of the message, or nanoseconds of the computation.
    pub size: u64,
    /// The rank that it is of.
    pub rank: u32,
    /// The messages that it belongs to: see [`Channel`].
    pub(super) channel: u32,
    /// The line of the file that it stands in.
    pub line: u32,
    /// Its kind.
    pub kind: Kind,
    /// The CPU that it needs.
    pub cpu: u8,
    /// The network interface that it needs.
    pub nic: u8,
}

/// Messages that match each other: equal receivers, sources and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    pub(super) target: u32,
    /// The sending rank, or [`ANY`].
    pub(super) source: u32,
    /// The tag, or [`ANY`].
    pub(super) tag: u32,
}

/// Lists of operations, one for each operation, in one array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// The list of operation `n` begins at `first[n]` and ends at `first[n + 1]`.
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    /// The lists of pairs of an operation and a member of its list, in the order of the pairs.
    fn new(operations: usize, pairs: &[(u32, u32)]) -> Self {
        let mut first = vec![0; operations + 1];
        for (of, _) in pairs {
            first[*of as usize + 1] += 1;
        }
        for number in 0..operations {
            first[number + 1] += first[number];
        }
        let mut next = first.clone();
        let mut all = vec![0; pairs.len()];
        for (of, member) in pairs {
            let place = &mut next[*of as usize];
            all[*place as usize] = *member;
            *place += 1;
        }
        Self { first, all }
    }

    pub(super) fn range(&self, of: u32) -> core::ops::Range<u32> {
        self.first[of as usize]..self.first[of as usize + 1]
    }

    pub(super) fn at(&self, place: u32) -> u32 {
        self.all[place as usize]
    }

    fn of(&self, operation: u32) -> &[u32] {
        let range = self.range(operation);
        &self.all[range.start as usize..range.end as usize]
    }
}

/// The operations of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub(super) ranks: u32,
    /// CPUs and network interfaces of each host.
    pub(super) cpus: u32,
    pub(super) nics: u32,
    pub(super) operations: Vec<Operation>,
    pub(super) channels: Vec<Channel>,
    /// The operations of rank `n`, by their numbers.
    pub(super) of_rank: Vec<(u32, u32)>,
    /// For each operation the number of operations that it waits for.
    pub(super) waits: Vec<u32>,
    /// The operations that wait for the beginning of each operation, and for its end.
    pub(super) on_start: Lists,
    pub(super) on_end: Lists,
}

impl Schedule {
    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// All operations, in the order of the file.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The number of requirements.
    pub fn requirements(&self) -> usize {
        self.on_start.all.len() + self.on_end.all.len()
    }

    /// The rank that gets a message, or that receives it.
    pub(super) fn target(&self, operation: &Operation) -> u32 {
        self.channels[operation.channel as usize].target
    }
}

/// Why there is no such schedule.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// Something is larger than the simulator's limit.
    #[error("line {line}: {what} is {number}, and the limit is {limit}")]
    TooLarge {
        /// The line of the file.
        line: u32,
        /// The thing that is too large.
        what: &'static str,
        /// How large it is; the largest number stands for all that are larger.
        number: u64,
        /// The limit.
        limit: u64,
    },
    /// A rank that does not exist.
    #[error("line {line}: there is no rank {rank}: num_ranks is {ranks}")]
    NoRank {
        /// The line of the file.
        line: u32,
        /// The rank.
        rank: u64,
        /// The number of ranks.
        ranks: u32,
    },
    /// A rank is described twice.
    #[error("line {line}: rank {rank} has been described before")]
    RankTwice {
        /// The line of the file.
        line: u32,
        /// The rank.
        rank: u32,
    },
    /// A rank is not described.
    #[error("rank {rank} is missing: num_ranks is {ranks}")]
    RankMissing {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// Operations wait for each other.
    #[error("the operations in lines {line} and {other} of rank {rank} wait for each other")]
    Cycle {
        /// The line of an operation.
        line: u32,
        /// The line of another one, or of the same.
        other: u32,
        /// Their rank.
        rank: u32,
    },
}

/// The number, if it does not exceed the limit.
pub(super) fn bounded(
    line: u32,
    what: &'static str,
    number: u64,
    limit: u64,
) -> Result<u64, ScheduleError> {
    if number > limit {
        return Err(ScheduleError::TooLarge { line, what, number, limit });
    }
    Ok(number)
}

/// Collects a schedule.
#[derive(Debug)]
pub(super) struct Builder {
    ranks: u32,
    cpus: u32,
    nics: u32,
    operations: Vec<Operation>,
    channels: Vec<Channel>,
    numbers: HashMap<Channel, u32>,
    of_rank: Vec<Option<(u32, u32)>>,
    /// Pairs of an operation and another one that waits for its beginning, or its end.
    on_start: Vec<(u32, u32)>,
    on_end: Vec<(u32, u32)>,
}

impl Builder {
    pub(super) fn new(line: u32, ranks: u64) -> Result<Self, ScheduleError> {
        let ranks = bounded(line, "num_ranks", ranks, RANKS_MAX)? as u32;
        Ok(Self {
            ranks,
            cpus: 1,
            nics: 1,
            operations: Vec::new(),
            channels: Vec::new(),
            numbers: HashMap::new(),
            of_rank: vec![None; ranks as usize],
            on_start: Vec::new(),
            on_end: Vec::new(),
        })
    }

    /// Checks the number of a rank.
    pub(super) fn rank(&self, line: u32, rank: u64) -> Result<u32, ScheduleError> {
        if rank >= u64::from(self.ranks) {
            return Err(ScheduleError::NoRank { line, rank, ranks: self.ranks });
        }
        Ok(rank as u32)
    }

    /// The description of a rank begins.
    pub(super) fn begin(&mut self, line: u32, rank: u64) -> Result<u32, ScheduleError> {
        let rank = self.rank(line, rank)?;
        let first = self.operations.len() as u32;
        let entry = &mut self.of_rank[rank as usize];
        if entry.is_some() {
            return Err(ScheduleError::RankTwice { line, rank });
        }
        *entry = Some((first, first));
        Ok(rank)
    }

    /// The description of a rank ends.
    pub(super) fn end(&mut self, rank: u32) {
        if let Some((_, end)) = &mut self.of_rank[rank as usize] {
            *end = self.operations.len() as u32;
        }
    }

    /// Adds an operation, and returns its number. A computation has no channel.
    pub(super) fn add(
        &mut self,
        mut operation: Operation,
        channel: Option<Channel>,
    ) -> Result<u32, ScheduleError> {
        let number = self.operations.len() as u64;
        bounded(operation.line, "the number of operations", number + 1, OPERATIONS_MAX)?;
        self.cpus = self.cpus.max(u32::from(operation.cpu) + 1);
        self.nics = self.nics.max(u32::from(operation.nic) + 1);
        let units = u64::from(self.ranks) * u64::from(self.cpus) * u64::from(self.nics);
        let what = "the number of ranks times CPUs times network interfaces";
        bounded(operation.line, what, units, UNITS_MAX)?;
        if let Some(channel) = channel {
            let new = self.channels.len() as u32;
            operation.channel = *self.numbers.entry(channel).or_insert(new);
            if operation.channel == new {
                self.channels.push(channel);
            }
        }
        self.operations.push(operation);
        Ok(number as u32)
    }

    /// An operation waits until another one has begun or, if `ended`, until it has ended.
    pub(super) fn require(
        &mut self,
        line: u32,
        operation: u32,
        other: u32,
        ended: bool,
    ) -> Result<(), ScheduleError> {
        let pairs = if ended { &mut self.on_end } else { &mut self.on_start };
        bounded(line, "the number of requirements", pairs.len() as u64 + 1, OPERATIONS_MAX)?;
        pairs.push((other, operation));
        Ok(())
    }

    /// The schedule, if all ranks are described and no operations wait for each other.
    pub(super) fn finish(self) -> Result<Schedule, ScheduleError> {
        let missing =
            |rank: usize| ScheduleError::RankMissing { rank: rank as u32, ranks: self.ranks };
        let of_rank = self
            .of_rank
            .iter()
            .enumerate()
            .map(|(rank, range)| range.ok_or_else(|| missing(rank)))
            .collect::<Result<Vec<_>, _>>()?;
        let count = self.operations.len();
        let mut waits = vec![0; count];
        for (_, operation) in self.on_start.iter().chain(&self.on_end) {
            waits[*operation as usize] += 1;
        }
        let schedule = Schedule {
            ranks: self.ranks,
            cpus: self.cpus,
            nics: self.nics,
            operations: self.operations,
            channels: self.channels,
            of_rank,
            waits,
            on_start: Lists::new(count, &self.on_start),
            on_end: Lists::new(count, &self.on_end),
        };
        schedule.check_order(self.on_start.iter().chain(&self.on_end))?;
        Ok(schedule)
    }
}

impl Schedule {
    /// Takes away operations that wait for nothing until none is left: an operation that cannot be
    /// taken away waits for itself, or for one that does.
    fn check_order<'a>(
        &self,
        pairs: impl Iterator<Item = &'a (u32, u32)>,
    ) -> Result<(), ScheduleError> {
        let mut waits = self.waits.clone();
        let all = 0..self.operations.len() as u32;
        let mut ready: Vec<u32> = all.clone().filter(|op| waits[*op as usize] == 0).collect();
        let mut taken = 0;
        while let Some(operation) = ready.pop() {
            taken += 1;
            for other in self.on_start.of(operation).iter().chain(self.on_end.of(operation)) {
                waits[*other as usize] -= 1;
                if waits[*other as usize] == 0 {
                    ready.push(*other);
                }
            }
        }
        let Some(left) = all.clone().find(|op| waits[*op as usize] > 0) else {
            debug_assert_eq!(taken, self.operations.len());
            return Ok(());
        };
        // Each of those that are left waits for another one of them. From one to the next, the
        // way leads into a ring after at most as many steps as there are operations.
        let mut before: Vec<u32> = all.collect();
        for (other, operation) in pairs.filter(|(other, _)| waits[*other as usize] > 0) {
            before[*operation as usize] = *other;
        }
        let mut operation = left;
        for _ in 0..self.operations.len() {
            operation = before[operation as usize];
        }
        let other = before[operation as usize];
        let line = |number: u32| self.operations[number as usize].line;
        let rank = self.operations[operation as usize].rank;
        Err(ScheduleError::Cycle { line: line(operation), other: line(other), rank })
    }
}
