//! Measuring: two threads on two processors, each with a port for every method of a use. Both go
//! through the same turns; the methods take turns too, so that whatever disturbs hits all.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use ayre::active::{Handler, Messenger};
use ayre::memory::Grant;
use ayre::message::EAGER_MAX;
use ayre::tuning::{Measured, Method, Step, Tuning, Use};
use ayre::{Config, PeerId, Port, PostOptions, Region, RegionOptions, RemoteRegion, Rights};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::perf::stats::median;

const NEAR: PeerId = PeerId(0);
const FAR: PeerId = PeerId(1);
/// Sizes: powers of two from here to there.
const SMALLEST: usize = 1 << 10;
const LARGEST: usize = 16 << 20;
/// Messages that follow each other before an answer is awaited.
const IN_A_ROW: usize = 4;
/// Turns whose times do not count.
const WARM: usize = 2;

/// How many times each is measured.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    turns: usize,
}

impl Effort {
    pub(super) const QUICK: Self = Self { turns: 5 };
    pub(super) const FULL: Self = Self { turns: 21 };
}

/// The median times of all methods of a use, by sizes.
pub(super) fn measure(of: Use, effort: Effort) -> Result<Vec<Measured>> {
    let cores = cores()?;
    let ends = of.methods().iter().map(|method| ends(of, *method));
    let (mut near, mut far): (Vec<_>, Vec<_>) =
        ends.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    thread::scope(|scope| {
        let serving = scope.spawn(move || -> Result<()> {
            sched_setaffinity(None, &cores[1])?;
            for size in sizes(of) {
                for _ in 0..WARM + effort.turns {
                    far.iter_mut().try_for_each(|end| end.serve(size))?;
                }
            }
            Ok(())
        });
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, &cores[0])?;
        let rows = sizes(of).map(|size| row(of, &mut near, size, effort)).collect::<Result<_>>();
        sched_setaffinity(None, &before)?;
        // A serving end that has failed is the reason why this one did.
        drop(near);
        serving.join().expect("it does not panic")?;
        rows
    })
}

fn row(of: Use, ends: &mut [Near], size: usize, effort: Effort) -> Result<Measured> {
    let mut times = vec![Vec::new(); ends.len()];
    for turn in 0..WARM + effort.turns {
        for (end, times) in ends.iter_mut().zip(&mut times) {
            let time = end.time(size)?;
            if turn >= WARM {
                times.push(time);
            }
        }
    }
    let times = of.methods().iter().zip(&times);
    let times = times.filter_map(|(method, times)| Some((*method, median(times)?))).collect();
    Ok(Measured { bytes: size as u64, times })
}

/// Messages that fit into a record are not long.
fn sizes(of: Use) -> impl Iterator<Item = usize> {
    let sizes = (SMALLEST.ilog2()..=LARGEST.ilog2()).map(|power| 1 << power);
    sizes.filter(move |size| of != Use::Message || *size > EAGER_MAX)
}

/// The first two processors that this process may use.
fn cores() -> Result<[CpuSet; 2]> {
    let all = sched_getaffinity(None)?;
    let usable: Vec<_> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
    ensure!(usable.len() > 1, "to measure takes two processors");
    Ok([usable[0], usable[1]].map(|core| {
        let mut set = CpuSet::new();
        set.set(core);
        set
    }))
}

/// The end that begins, and whose clock counts.
enum Near {
    Memory { port: Box<Port>, remote: RemoteRegion, bytes: Vec<u8>, is_put: bool },
    Messages { messenger: Box<Messenger<usize>>, keep: Handler<0>, ran: usize, bytes: Vec<u8> },
}

/// The end whose memory it is, or whose handlers run.
enum Far {
    Memory { port: Box<Port>, region: Region, _grant: Grant, bytes: Vec<u8>, is_put: bool },
    Messages { messenger: Box<Messenger<usize>>, ran: usize, awaited: usize },
}

/// Two ends that are connected, and use one method whatever the size.
fn ends(of: Use, method: Method) -> Result<(Near, Far)> {
    let tuning = Tuning::new().with_steps(of, vec![Step { from: 0, method }]);
    let tuning = tuning.expect("a method of this use");
    let config = |number| Config::new().number(number).tuning(tuning.clone());
    let (mut near, mut far) = Port::pair(config(NEAR.0), config(FAR.0))?;
    let bytes = vec![0xa5; LARGEST];
    if of == Use::Message {
        let (mut near, mut far) = (Messenger::new(near), Messenger::new(far));
        let done = near.register("done", |ran: &mut usize, _, [], _| *ran += 1)?;
        far.register("keep", move |ran: &mut usize, call, [], bytes| {
            black_box(bytes);
            *ran += 1;
            if ran.is_multiple_of(IN_A_ROW) {
                let answered = call.reply(done, [], &[]);
                debug_assert!(answered.is_ok(), "the other end waits for it");
            }
        })?;
        let keep = Handler::named("keep");
        let near = Near::Messages { messenger: Box::new(near), keep, ran: 0, bytes };
        return Ok((near, Far::Messages { messenger: Box::new(far), ran: 0, awaited: 0 }));
    }
    let is_put = of == Use::Put;
    let region = far.alloc(LARGEST, RegionOptions::new())?;
    let grant = far.share(NEAR, &region, 0..LARGEST, Rights::all(), 0)?;
    let remote = near.accept_region(FAR, 0)?;
    let near = Near::Memory { port: Box::new(near), remote, bytes: bytes.clone(), is_put };
    Ok((near, Far::Memory { port: Box::new(far), region, _grant: grant, bytes, is_put }))
}

impl Near {
    /// Nanoseconds of one operation: of a put, until the other end has read the bytes; of a get,
    /// until this one has.
    fn time(&mut self, size: usize) -> Result<f64> {
        match self {
            Self::Memory { port, remote, bytes, is_put } => {
                let bytes = &mut bytes[..size];
                if !*is_put {
                    // The other end has written them just now.
                    port.recv(&mut [0; 8], None)?;
                }
                let start = Instant::now();
                if *is_put {
                    port.put(remote, 0, &*bytes, PostOptions::new())?;
                    port.send_wait(FAR, 1, &[0])?;
                    port.recv(&mut [0; 8], None)?;
                } else {
                    port.get(remote, 0, &mut *bytes, PostOptions::new())?;
                    black_box(bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>());
                }
                let time = start.elapsed();
                if !*is_put {
                    port.send_wait(FAR, 1, &[0])?;
                }
                Ok(time.as_nanos() as f64)
            }
            Self::Messages { messenger, keep, ran, bytes } => {
                let (start, before) = (Instant::now(), *ran);
                for _ in 0..IN_A_ROW {
                    messenger.call(ran, FAR, *keep, [], &bytes[..size])?;
                }
                while *ran == before {
                    messenger.poll(ran);
                    ensure!(messenger.port().is_alive(FAR), "the other end has gone");
                }
                Ok(start.elapsed().as_nanos() as f64 / IN_A_ROW as f64)
            }
        }
    }
}

impl Far {
    /// The other half of one operation.
    fn serve(&mut self, size: usize) -> Result<()> {
        match self {
            Self::Memory { port, region, bytes, is_put, .. } => {
                let bytes = &mut bytes[..size];
                if *is_put {
                    port.recv(&mut [0; 8], None)?;
                    region.read(0, bytes);
                    black_box(&bytes);
                    port.send_wait(NEAR, 1, &[0])?;
                } else {
                    region.write(0, bytes);
                    port.send_wait(NEAR, 1, &[0])?;
                    port.recv(&mut [0; 8], None)?;
                }
            }
            Self::Messages { messenger, ran, awaited } => {
                *awaited += IN_A_ROW;
                while *ran < *awaited {
                    messenger.poll(ran);
                    ensure!(messenger.port().is_alive(NEAR), "the other end has gone");
                }
                messenger.flush(ran);
            }
        }
        Ok(())
    }
}
