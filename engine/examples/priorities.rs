//! A work queue with priorities, fed by several producers: one message a task, which the interface
//! of rank 0 puts into the queue of its priority, and which wakes rank 0 only if nothing as urgent
//! is pending.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 3 -- target/release/examples/priorities
//! ```
//!
//! This is the example with which the hybrid deposit paper begins. Each priority has a ring, its
//! tail, and how far its consumer lets it go; one register has the bits of all that are not empty.
//! With plain operations a task takes a compare-and-swap for its place, a put, an atomic on the
//! bits, and a notification always, because only who has seen the bits knows whether one is needed.
use ayre::deposit::{
    AddressMode, Deposit, Depot, InletOptions, OPERAND, Program, Register, RemoteInlet, Stored, X,
    Y, Z,
};
use ayre::{PeerId, Port, PostError, Region, RegionOptions};
use std::error::Error;

const PRIORITIES: usize = 8;
const TASKS: u64 = 2000;
/// Bytes of a task: who made it, and its number.
const TASK: usize = 16;
const RING: usize = 16 * TASK;

/// Registers: bits of the queues that are not empty, bytes of a task; then tails, then limits.
const PENDING: u8 = 0;
const SIZE: u8 = 1;
const TAILS: u8 = 8;
const LIMITS: u8 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut port = Port::join()?;
    let producers = port.size() - 1;
    if producers == 0 {
        return Err("start two ranks or more".into());
    }
    if port.rank() == 0 {
        let region = port.alloc(PRIORITIES * RING, RegionOptions::new())?;
        let depot = open(&mut port, &region)?;
        let wakes = consume(&mut port, &depot, &region, producers)?;
        println!("{} tasks of {producers} producers, {wakes} wakes", TASKS * producers as u64);
    } else {
        produce(&mut port)?;
    }
    port.barrier()?;
    Ok(())
}

/// The programs of all priorities, and a way in for each and each producer.
fn open(port: &mut Port, region: &Region) -> Result<Depot, Box<dyn Error>> {
    let depot = port.create_depot()?;
    depot.set_register(SIZE, TASK as u64)?;
    let producers: Vec<_> = port.peers().filter(|peer| *peer != PeerId(0)).collect();
    for priority in 0..PRIORITIES as u8 {
        let [tail, limit] = [TAILS + priority, LIMITS + priority].map(Register::At);
        let [pending, size, unused] = [PENDING, SIZE, 255].map(Register::At);
        let put = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
        let raise = Program::new().notify_if(OPERAND.gt(X)).then(X.or(OPERAND));
        let bit = 1 << priority;
        let program = Stored::sequence([
            put.store([tail, size, limit]),
            raise.store([pending, unused, unused]).with_operand(bit),
        ])?;
        depot.store(2 * priority, &program)?;
        depot.set_register(LIMITS + priority, RING as u64)?;
        let (entry, ring) = (2 * u16::from(priority), usize::from(priority) * RING);
        for peer in &producers {
            let options = InletOptions::new().entries(entry..entry + 1).longest(TASK as u16);
            let part = (region, ring..ring + RING);
            port.share_inlet(*peer, &depot, part, &options, u64::from(priority))?;
        }
    }
    Ok(depot)
}

/// Takes what is most urgent until all has been taken; how often it had to be woken.
fn consume(
    port: &mut Port,
    depot: &Depot,
    region: &Region,
    producers: usize,
) -> Result<u64, Box<dyn Error>> {
    let mut heads = [0; PRIORITIES];
    let mut next = vec![[0; PRIORITIES]; producers + 1];
    let (mut taken, mut wakes) = (0, 0);
    while taken < TASKS * producers as u64 {
        let pending = depot.register(PENDING);
        let Some(priority) = pending.checked_ilog2() else {
            port.wait_notification(None)?;
            wakes += 1;
            continue;
        };
        let (queue, register) = (priority as usize, priority as u8);
        if depot.register(TAILS + register) == heads[queue] {
            let mut frozen = depot.freeze()?;
            // Perhaps something has come meanwhile.
            if frozen.register(TAILS + register) == heads[queue] {
                let left = frozen.register(PENDING) & !(1 << priority);
                frozen.set_register(PENDING, left);
            }
            continue;
        }
        let at = queue * RING + heads[queue] as usize % RING;
        let (producer, number) = (region.load(at) as usize, region.load(at + 8));
        let expected = &mut next[producer][queue];
        assert!(number >= *expected, "tasks of one priority come in their producer's order");
        *expected = number + 1;
        heads[queue] += TASK as u64;
        taken += 1;
        depot.set_register(LIMITS + register, heads[queue] + RING as u64)?;
    }
    assert_eq!(heads.iter().sum::<u64>(), taken * TASK as u64, "each has come once");
    Ok(wakes)
}

fn produce(port: &mut Port) -> Result<(), Box<dyn Error>> {
    let inlets: Vec<RemoteInlet> = (0..PRIORITIES as u64)
        .map(|priority| port.accept_inlet(PeerId(0), priority))
        .collect::<Result<_, _>>()?;
    let rank = port.rank() as u64;
    for number in 0..TASKS {
        // Most tasks have time.
        let priority = (number * 0x9e37_79b9 + rank).trailing_zeros() as usize % PRIORITIES;
        let task = [rank, number].map(u64::to_le_bytes).concat();
        while !post(port, &inlets[priority], &task)? {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// False where the queue is full.
fn post(port: &mut Port, inlet: &RemoteInlet, task: &[u8]) -> Result<bool, PostError> {
    match port.deposit_fetch(inlet, &Deposit::enter(0).data(task), &mut []) {
        Ok(answer) => Ok(!answer.declined),
        Err(PostError::Busy(_)) => {
            port.progress();
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}
