//! A stream of the system: as many bytes as Ayre puts, in writes as long.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::case::{Case, Metric};
use super::super::side::Side;
use super::super::side::buffer::Buffer;

/// Rank 0 writes, rank 1 reads.
pub(super) struct Stream {
    stream: TcpStream,
    buffer: Buffer,
}

impl Stream {
    pub(super) fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Buffer::default() })
    }

    fn read(&mut self, mut bytes: usize) -> Result<()> {
        while bytes > 0 {
            let len = self.buffer.len().min(bytes);
            let read = self.stream.read(&mut self.buffer[..len])?;
            ensure!(read > 0, "the other rank has gone");
            black_box(&mut *self.buffer);
            bytes -= read;
        }
        Ok(())
    }
}

impl Case for Stream {
    fn name(&self) -> &'static str {
        "raw-tcp-stream"
    }

    fn sizes(&self) -> &'static [usize] {
        super::BULK
    }

    fn metric(&self) -> Metric {
        Metric::Bandwidth
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.buffer = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        if side.measures() {
            for _ in 0..iterations {
                self.stream.write_all(black_box(&self.buffer))?;
            }
        } else {
            self.read(size * iterations as usize)?;
        }
        // Everything has been read.
        side.barrier();
        Ok(start.elapsed())
    }
}
