//! The cost of loss, on a network that is nothing but memory and a clock: two ports in one thread,
//! and 32 MiB from one to the other. Each row is run twice and takes the same course both times,
//! however busy the machine is.
//!
//! ```sh
//! cargo run --release -p ayre --example simulated
//! ```
use ayre::network::FaultPlan;
use ayre::{
    Config, NetOptions, PeerId, Port, PostError, PostOptions, RegionOptions, Rights, Simulation,
};
use std::error::Error;
use std::time::Duration;

const LATENCY: Duration = Duration::from_micros(10);
const RATE: u64 = 10_000_000_000;
const BYTES: usize = 32 << 20;
/// Bytes of a put.
const PIECE: usize = 64 << 10;
/// Polls of both ports in which what was handed over arrives, on any of these networks.
const SET_UP: usize = 1000;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    time: Duration,
    datagrams: u64,
    course: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("10 Gbit/s, 10 us: {} MiB in puts of {} KiB", BYTES >> 20, PIECE >> 10);
    println!("{:>6} {:>12} {:>9} {:>10}  course", "loss", "time", "Gbit/s", "datagrams");
    for percent in [0, 1, 2, 5, 10, 20] {
        let outcome = run(f64::from(percent) / 100.0)?;
        assert_eq!(run(f64::from(percent) / 100.0)?, outcome, "a run can be repeated");
        let Outcome { time, datagrams, course } = outcome;
        let rate = 8.0 * BYTES as f64 / time.as_secs_f64() / 1e9;
        let time = format!("{:.1} us", time.as_secs_f64() * 1e6);
        println!("{percent:>5}% {time:>12} {rate:>9.2} {datagrams:>10}  {course:016x}");
    }
    Ok(())
}

fn run(loss: f64) -> Result<Outcome, Box<dyn Error>> {
    let simulation = Simulation::new(LATENCY);
    let plan = FaultPlan { loss, rate: Some(RATE), queue: 1 << 20, seed: 1, ..FaultPlan::new() };
    let configs = [0, 1].map(|number| Config::new().number(number));
    let ports = simulation.mesh(&NetOptions::plain().faults(plan), configs)?;
    let [mut near, mut far]: [Port; 2] = ports.try_into().map_err(|_| "two ports")?;

    let region = far.alloc(BYTES, RegionOptions::new())?;
    far.share(PeerId(0), &region, 0..BYTES, Rights::all(), 0)?;
    // A call that waits would leave it to the system when which port looks.
    (0..SET_UP).for_each(|_| serve(&mut near, &mut far));
    let remote = near.accept_region(PeerId(1), 0)?;

    let data: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let (begin, before) = (simulation.now(), simulation.datagrams());
    for (number, piece) in data.chunks(PIECE).enumerate() {
        while let Err(error) = near.put(&remote, (number * PIECE) as u64, piece, PostOptions::new())
        {
            match error {
                PostError::Busy(_) => serve(&mut near, &mut far),
                fault => return Err(fault.into()),
            }
        }
    }
    while !near.is_flushed(PeerId(1)) {
        serve(&mut near, &mut far);
    }
    let time = simulation.now() - begin;
    let mut got = vec![0; BYTES];
    region.read(0, &mut got);
    assert_eq!(got, data, "all of it arrives");
    Ok(Outcome { time, datagrams: simulation.datagrams() - before, course: simulation.course() })
}

fn serve(near: &mut Port, far: &mut Port) {
    near.progress();
    far.progress();
}
