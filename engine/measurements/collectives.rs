//! The time of collectives. Each is checked against the result of one process, and then timed.
//!
//! ```sh
//! cargo build --release -p ayre-cli -p ayre --bins --examples
//! target/release/ayre run -n 4 -- target/release/examples/collectives [CALLS]
//! ```
//!
//! It prints a line for each: its name and bytes, the median of batches of `CALLS` calls (4), and
//! `us`. Batches of long calls have fewer. `bench/collectives.sh` puts the times beside an MPI's.
use ayre::Port;
use ayre::active::Messenger;
use ayre::collective::Combine;
use ayre::collective::{Group, GroupError};
use std::error::Error;
use std::time::Instant;

const BATCHES: usize = 5;
/// Bytes of vectors, and of blocks.
const SIZES: [usize; 5] = [8, 1024, 16 << 10, 64 << 10, 1 << 20];

/// A member of the group of all ranks.
struct Member {
    messenger: Messenger<()>,
    all: Group,
    rank: usize,
    size: usize,
    calls: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let calls = std::env::args().nth(1).map_or(Ok(4), |text| text.parse())?;
    let mut messenger = Messenger::new(Port::join()?);
    let (rank, size) = (messenger.port().rank(), messenger.port().size());
    let all = messenger.collectives().group_of_all("all")?;
    let mut member = Member { messenger, all, rank, size, calls };
    member
        .time("barrier", 0, |member| member.messenger.collectives().barrier(&mut (), member.all))?;
    for bytes in SIZES {
        member.vectors(bytes / 8)?;
        if bytes <= 64 << 10 {
            member.blocks(bytes / 8)?;
        }
    }
    if rank == 0 {
        println!("{size} ranks, all as computed alone");
    }
    Ok(())
}

impl Member {
    fn vectors(&mut self, len: usize) -> Result<(), GroupError> {
        let (rank, size) = (self.rank, self.size);
        let mut values = vec![rank as f64; len];
        self.messenger.collectives().allreduce(&mut (), self.all, Combine::Sum, &mut values)?;
        let sum = (0..size).map(|rank| rank as f64).sum::<f64>();
        assert!(values.iter().all(|value| *value == sum), "an allreduce of {len}");
        self.time("allreduce", 8 * len, |member| {
            member.messenger.collectives().allreduce(&mut (), member.all, Combine::Max, &mut values)
        })?;
        values.fill(rank as f64);
        self.messenger.collectives().broadcast(&mut (), self.all, size - 1, &mut values)?;
        assert!(values.iter().all(|value| *value == (size - 1) as f64), "a broadcast of {len}");
        self.time("broadcast", 8 * len, |member| {
            member.messenger.collectives().broadcast(&mut (), member.all, 0, &mut values)?;
            // So that the root does not run ahead.
            member.messenger.collectives().barrier(&mut (), member.all)
        })
    }

    fn blocks(&mut self, len: usize) -> Result<(), GroupError> {
        let (rank, size) = (self.rank, self.size);
        let own = vec![rank as f64; len];
        let mut all = vec![0.0; size * len];
        self.messenger.collectives().allgather(&mut (), self.all, &own, &mut all)?;
        let is_right = |(at, value): (usize, &f64)| *value == (at / len) as f64;
        assert!(all.iter().enumerate().all(is_right), "an allgather of {len}");
        self.time("allgather", 8 * len, |member| {
            member.messenger.collectives().allgather(&mut (), member.all, &own, &mut all)
        })?;
        let out: Vec<_> = (0..size * len).map(|at| (at / len * size + rank) as f64).collect();
        self.messenger.collectives().alltoall(&mut (), self.all, &out, &mut all)?;
        let is_right = |(at, value): (usize, &f64)| *value == (rank * size + at / len) as f64;
        assert!(all.iter().enumerate().all(is_right), "an alltoall of {len}");
        self.time("alltoall", 8 * len, |member| {
            member.messenger.collectives().alltoall(&mut (), member.all, &out, &mut all)
        })
    }

    /// The median of batches of calls, in microseconds.
    fn time(
        &mut self,
        name: &str,
        bytes: usize,
        mut once: impl FnMut(&mut Self) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        let count = self.calls.min(2 + (1 << 20) / bytes.max(1));
        let mut batches = [0.0; BATCHES];
        for batch in &mut batches {
            self.messenger.collectives().barrier(&mut (), self.all)?;
            let start = Instant::now();
            for _ in 0..count {
                once(self)?;
            }
            *batch = start.elapsed().as_secs_f64() * 1e6 / count as f64;
        }
        batches.sort_unstable_by(f64::total_cmp);
        if self.rank == 0 {
            println!("{name}-{bytes} {:.3} us", batches[BATCHES / 2]);
        }
        Ok(())
    }
}
