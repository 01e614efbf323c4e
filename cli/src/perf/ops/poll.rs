//! The cost of a poll that finds nothing, by the number of peers.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use ayre::{Config, Mode, Port};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::{Label, labelled};

/// Polls by rank 0 of a port of its own, whose peers live in the same process and send nothing.
pub(crate) struct Poll<F> {
    label: Label,
    peers: u16,
    poll: F,
    /// The polled one, then its peers.
    ports: Vec<Port>,
}

impl<F: FnMut(&mut Port) -> Result<bool>> Poll<F> {
    /// `poll` tells whether there was something.
    pub(crate) fn new(label: Label, peers: u16, poll: F) -> Self {
        Self { label, peers, poll, ports: Vec::new() }
    }
}

impl<F: FnMut(&mut Port) -> Result<bool>> Case for Poll<F> {
    labelled!();

    fn prepare(&mut self, side: &Side<'_>, _size: usize) -> Result<()> {
        if side.measures() && self.ports.is_empty() {
            let mode = match self.label.path {
                Path::Mediated => Mode::Mediated,
                _ => Mode::Direct,
            };
            self.ports = connected(self.label.name, mode, self.peers)?;
        }
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        if side.measures() {
            let port = self.ports.first_mut().context("run comes after prepare")?;
            for _ in 0..iterations {
                anyhow::ensure!(!(self.poll)(port)?, "something came from an idle peer");
            }
        }
        Ok(start.elapsed())
    }
}

/// A port and its peers, numbered from 1. They meet in the job's directory.
fn connected(name: &str, mode: Mode, peers: u16) -> Result<Vec<Port>> {
    let path = PathBuf::from(std::env::var_os("AYRE_JOB").context("AYRE_JOB is not set")?)
        .join(format!("{name}.sock"));
    let mut port = Port::open(Config::new().mode(mode))?;
    port.listen(&path)?;
    thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let connect = |number| -> Result<Port> {
                let mut peer = Port::open(Config::new().mode(mode).number(number))?;
                peer.connect(&path)?;
                Ok(peer)
            };
            (1..=peers).map(connect).collect::<Result<Vec<_>>>()
        });
        for _ in 0..peers {
            port.accept()?;
        }
        let peers = connecting.join().map_err(|_| anyhow!("connecting panicked"))??;
        Ok([port].into_iter().chain(peers).collect())
    })
}
