//! Barriers of which each arrival is one deposit message to each other rank, beside a barrier of
//! plain operations and the one that a port has.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/barrier [TIMES]
//! ```
//!
//! A rank has one bit in a register of each other rank. Its message toggles the bit, and notifies
//! where all bits have been toggled. Each rank is told once, when the last one has come, and sleeps
//! until then. A barrier takes the time of one message, and a rank can toggle only its own bit.
//!
//! With plain operations a fetch-and-add on rank 0 tells which rank is last, and that rank tells
//! the rest. These are three messages one after the other, all by way of one rank. Ranks poll
//! meanwhile, and take the processor from those that they wait for. Where each rank of one host has
//! a processor, that is no loss. It is even quicker there: an atomic is an instruction, and a
//! message takes a lock and runs a program.
//!
//! The barrier of a port ([`Port::barrier`]) stores a word at log2 of the ranks, one after the
//! other, and needs neither. It is for all ranks of a job; this one is for any ranks that share
//! inlets.
mod insist;

use ayre::deposit::{Deposit, InletOptions, OPERAND, Program, Register, RemoteInlet, X, Y};
use ayre::error::Status;
use ayre::{PeerId, Port, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use insist::insist;
use std::error::Error;
use std::time::{Duration, Instant};

/// A rank has a bit of a register, and four of a depot's 256 instructions.
const RANKS_MAX: usize = 64;
/// Barriers of each kind by default; figures to be believed take more.
const BARRIERS: u64 = 500;
/// One of this number of barriers is looked at.
const LOOK_EVERY: u64 = 7;
const NAME: u64 = 1;

/// Two registers: bits of the others at even and at odd barriers. One rank may come to the next
/// barrier before another one has sent all messages of this one.
const BITS: u8 = 0;
/// The value of a register of bits when all have been set.
const SET: u8 = 2;
/// The value when all have been cleared again.
const CLEARED: u8 = 3;
/// Bits are set at two barriers, and cleared at the next two: an instruction for each.
const PHASES: u8 = 4;

/// A word in the memory of each rank: how many barriers it has come to.
const CAME: usize = 0;
/// A word in the memory of each rank: how many plain barriers are complete.
const COMPLETED: usize = 8;
/// A word in the memory of rank 0: how many arrivals there were.
const ARRIVALS: usize = 16;
const MEMORY: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let barriers = std::env::args().nth(1).map_or(Ok(BARRIERS), |number| number.parse())?;
    let mut port = Port::join()?;
    if !(2..=RANKS_MAX).contains(&port.size()) {
        return Err(format!("start 2 to {RANKS_MAX} ranks, not {}", port.size()).into());
    }
    let peers = (0..port.size()).map(|rank| port.peer(rank).ok_or("a rank of the job"));
    let peers = peers.collect::<Result<Vec<_>, _>>()?;
    let mut job = Job::open(&mut port, &peers)?;
    let inlets = open(&mut port, &job.memory, &peers)?;
    let deposited =
        job.time(&mut port, barriers, |port, _, count| deposit(port, &inlets, count))?;
    let plain = job.time(&mut port, barriers, plain)?;
    let own = job.time(&mut port, barriers, |port, _, _| Ok(port.barrier()?))?;
    if port.rank() == 0 {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / barriers as f64;
        println!("a deposit message to each:     {:8.2} us", each(deposited));
        println!("fetch-and-add, then polling:   {:8.2} us", each(plain));
        println!("the port's own:                {:8.2} us", each(own));
        println!("{} ranks, {barriers} barriers of each kind, none early", peers.len());
    }
    Ok(())
}

/// Stores an instruction for each phase and each other rank, hands out the ways in, and takes those
/// of the others.
fn open(
    port: &mut Port,
    memory: &Region,
    peers: &[PeerId],
) -> Result<Vec<RemoteInlet>, Box<dyn Error>> {
    let depot = port.create_depot()?;
    let toggle = Program::new().then(X.xor(OPERAND)).notify_if(X.eq(Y));
    let others: Vec<_> = (0..).zip(peers).filter(|(rank, _)| *rank != port.rank() as u8).collect();
    depot.set_register(SET, others.iter().map(|(rank, _)| 1 << rank).sum())?;
    for (rank, peer) in &others {
        let entry = PHASES * rank;
        for phase in 0..PHASES {
            let all = if phase < 2 { SET } else { CLEARED };
            let registers = [BITS + phase % 2, all, all].map(Register::At);
            depot.store(entry + phase, &[toggle.store(registers).with_operand(1 << rank)])?;
        }
        let entries = u16::from(entry)..u16::from(entry) + u16::from(PHASES);
        let options = InletOptions::new().rights(Rights::empty()).entries(entries).longest(0);
        port.share_inlet(**peer, &depot, (memory, 0..0), &options, NAME)?;
    }
    others.into_iter().map(|(_, peer)| Ok(port.accept_inlet(*peer, NAME)?)).collect()
}

/// Comes to a barrier, and waits for the others.
///
/// A notification is about one barrier. The order in which notifications are taken does not matter:
/// no barrier is complete before the one before it, so their number is that of complete barriers.
fn deposit(port: &mut Port, inlets: &[RemoteInlet], count: u64) -> Result<(), Box<dyn Error>> {
    let message = Deposit::enter((count % u64::from(PHASES)) as u16);
    for inlet in inlets {
        insist(port, |port| port.deposit(inlet, &message, PostOptions::new()))?;
    }
    assert_eq!(port.wait_notification(None)?.status, Status::Ok);
    Ok(())
}

/// The last one to be counted tells all.
fn plain(port: &mut Port, job: &Job, count: u64) -> Result<(), Box<dyn Error>> {
    let ranks = job.memories.len() as u64;
    let before = insist(port, |port| port.fetch_add(&job.memories[0], ARRIVALS as u64, 1))?;
    if before + 1 == ranks * (count + 1) {
        for memory in &job.memories {
            insist(port, |port| {
                port.put_immediate(memory, COMPLETED as u64, count + 1, PostOptions::new())
            })?;
        }
    }
    let mut polls = 0_u32;
    while job.memory.load(COMPLETED) <= count {
        port.progress();
        polls += 1;
        // Whoever is waited for may need the processor.
        if polls.is_multiple_of(64) {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// A rank's memory, and that of all.
struct Job {
    memory: Region,
    memories: Vec<RemoteRegion>,
    came: u64,
}

impl Job {
    fn open(port: &mut Port, peers: &[PeerId]) -> Result<Self, Box<dyn Error>> {
        let memory = port.alloc(MEMORY, RegionOptions::new())?;
        for peer in peers {
            port.share(*peer, &memory, 0..MEMORY, Rights::all(), NAME)?;
        }
        let memories = peers.iter().map(|peer| port.accept_region(*peer, NAME));
        Ok(Self { memories: memories.collect::<Result<_, _>>()?, memory, came: 0 })
    }

    /// Goes through a number of barriers, and looks whether all have come to those that let us go.
    fn time(
        &mut self,
        port: &mut Port,
        barriers: u64,
        mut barrier: impl FnMut(&mut Port, &Self, u64) -> Result<(), Box<dyn Error>>,
    ) -> Result<Duration, Box<dyn Error>> {
        // As many again as it takes until all are awake.
        let warm_up = barriers / 10;
        port.barrier()?;
        let mut start = Instant::now();
        for count in 0..barriers + warm_up {
            if count == warm_up {
                start = Instant::now();
            }
            self.came += 1;
            self.memory.store(CAME, self.came);
            barrier(port, self, count)?;
            if count % LOOK_EVERY == 0 {
                let turn = port.rank() + 1 + (count / LOOK_EVERY) as usize;
                let mut came = [0; 8];
                let other = &self.memories[turn % self.memories.len()];
                insist(port, |port| port.get(other, CAME as u64, &mut came, PostOptions::new()))?;
                assert!(u64::from_le_bytes(came) >= self.came, "a barrier let us go early");
            }
        }
        let time = start.elapsed();
        port.barrier()?;
        Ok(time)
    }
}
