//! Waking a receiver that sleeps: rank 1 has a port that never waits awake.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::{Config, PeerId, Port, Spin};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::super::side::spin::let_fall_asleep;
use super::{Label, labelled, poll_until};

/// A message of eight bytes to a sleeper, which answers; the time ends with the answer, for which
/// rank 0 waits awake.
pub(crate) struct Wake {
    label: Label,
    port: Port,
    peer: PeerId,
}

impl Wake {
    /// Joins the job with a port that sleeps at once. Collective.
    pub(crate) fn join(label: Label) -> Result<Self> {
        let port = Port::join_with(Config::new().spin(Spin { polls: 0, yields: 0 }))?;
        let peer = port.peer(1 - port.rank()).context("there are two ranks")?;
        Ok(Self { label, port, peer })
    }
}

impl Case for Wake {
    labelled!();

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (port, mut sink) = (&mut self.port, [0; 8]);
        let mut time = Duration::ZERO;
        for _ in 0..iterations {
            if side.measures() {
                let_fall_asleep();
                let start = Instant::now();
                port.send_wait(self.peer, 0, &[0xa5; 8])?;
                poll_until(|| Ok(port.try_recv(&mut sink)?.is_some()))?;
                time += start.elapsed();
            } else {
                port.recv(&mut sink, None)?;
                port.send_wait(self.peer, 0, &[0xa5; 8])?;
            }
        }
        Ok(time)
    }
}
