//! A queue for each priority, into which deposit messages put tasks.
//!
//! Each queue is a ring with two registers: its tail, and the limit up to which its consumer lets
//! it go. One more register has a bit for each queue that is not empty.
use ayre::deposit::{
    AddressMode, Depot, InletOptions, OPERAND, Program, Register, Stored, X, Y, Z,
};
use ayre::{Busy, PeerId, Port, Region, RegionOptions};
use std::error::Error;

pub(crate) const PRIORITIES: usize = 8;
/// Bytes of a task: two words.
const TASK: usize = 16;
const RING: usize = 16 * TASK;

/// Registers: bits of the queues that are not empty, bytes of a task; then tails, then limits.
const PENDING: u8 = 0;
const SIZE: u8 = 1;
const TAILS: u8 = 8;
const LIMITS: u8 = 16;

/// A priority, and the two words of a task.
pub(crate) type Task = (usize, [u64; 2]);

/// All queues, at their consumer.
pub(crate) struct RankedQueue {
    depot: Depot,
    rings: Region,
    heads: [u64; PRIORITIES],
}

impl RankedQueue {
    /// Stores a program for each priority, and gives each peer an inlet for each.
    pub(crate) fn open(port: &mut Port) -> Result<Self, Box<dyn Error>> {
        let rings = port.alloc(PRIORITIES * RING, RegionOptions::new())?;
        let depot = port.create_depot()?;
        depot.set_register(SIZE, TASK as u64)?;
        let producers: Vec<_> = port.peers().filter(|peer| *peer != PeerId(0)).collect();
        for priority in 0..PRIORITIES as u8 {
            let [tail, limit] = [TAILS + priority, LIMITS + priority].map(Register::At);
            let [pending, size, unused] = [PENDING, SIZE, 255].map(Register::At);
            let put = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
            // Tells the consumer unless a task as urgent is pending.
            let raise = Program::new().notify_if(OPERAND.gt(X)).then(X.or(OPERAND));
            let program = Stored::sequence([
                put.store([tail, size, limit]),
                raise.store([pending, unused, unused]).with_operand(1 << priority),
            ])?;
            depot.store(2 * priority, &program)?;
            depot.set_register(LIMITS + priority, RING as u64)?;
            let (entry, ring) = (2 * u16::from(priority), usize::from(priority) * RING);
            for peer in &producers {
                let options = InletOptions::new().entries(entry..entry + 1).longest(TASK as u16);
                let part = (&rings, ring..ring + RING);
                port.share_inlet(*peer, &depot, part, &options, u64::from(priority))?;
            }
        }
        Ok(Self { depot, rings, heads: [0; PRIORITIES] })
    }

    /// Takes the most urgent task.
    pub(crate) fn take(&mut self) -> Option<Task> {
        while let Some(priority) = self.depot.register(PENDING).checked_ilog2() {
            let (queue, register) = (priority as usize, priority as u8);
            let head = &mut self.heads[queue];
            if self.depot.register(TAILS + register) == *head {
                // No message changes registers that are frozen: one may have come meanwhile.
                let mut frozen = until_unlocked(|| self.depot.freeze());
                if frozen.register(TAILS + register) == *head {
                    let left = frozen.register(PENDING) & !(1 << priority);
                    frozen.set_register(PENDING, left);
                }
                continue;
            }
            let at = queue * RING + *head as usize % RING;
            let task = [self.rings.load(at), self.rings.load(at + 8)];
            *head += TASK as u64;
            let limit = *head + RING as u64;
            until_unlocked(|| self.depot.set_register(LIMITS + register, limit));
            return Some((queue, task));
        }
        None
    }
}

/// Asks again while a message holds the depot: its sender may be waiting for its processor.
fn until_unlocked<T>(mut ask: impl FnMut() -> Result<T, Busy>) -> T {
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(_) => std::thread::yield_now(),
        }
    }
}
