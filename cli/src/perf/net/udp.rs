//! Datagrams of the system, one for each message.

use std::hint::black_box;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::super::case::{Case, Metric};
use super::super::ops::poll_until;
use super::super::side::Side;

/// How a rank waits for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It asks again and again.
    Polling,
    /// The system wakes it.
    Sleeping,
}

/// A datagram there and back.
pub(super) struct PingPong {
    wait: Wait,
    end: End,
}

impl PingPong {
    pub(super) fn new(wait: Wait, ends: (UdpSocket, SocketAddr)) -> Result<Self> {
        Ok(Self { wait, end: End::new(wait, ends)? })
    }
}

impl Case for PingPong {
    fn name(&self) -> &'static str {
        match self.wait {
            Wait::Polling => "raw-udp-polling",
            Wait::Sleeping => "raw-udp-waiting",
        }
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        2
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..iterations {
            if side.measures() {
                self.end.send(0xa5)?;
            }
            black_box(self.end.receive()?);
            if !side.measures() {
                self.end.send(0xa5)?;
            }
        }
        Ok(start.elapsed())
    }
}

/// Datagrams as fast as they go: those that arrive count.
pub(super) struct Stream {
    end: End,
    round: u64,
}

impl Stream {
    pub(super) fn new(ends: (UdpSocket, SocketAddr)) -> Result<Self> {
        Ok(Self { end: End::new(Wait::Polling, ends)?, round: 0 })
    }

    /// How many arrive, until the other rank has sent all of them.
    fn count(&mut self, side: &Side<'_>) -> Result<u64> {
        let (arrivals, mut count) = (side.arrive(), 0);
        loop {
            // Looked at before the socket is: what was sent before is there.
            let is_all = side.all_arrived(arrivals);
            while let Some(round) = self.end.try_receive()? {
                // What was held up on its way is none of this round's.
                count += u64::from(round == self.round);
            }
            if is_all {
                return Ok(count);
            }
        }
    }
}

impl Case for Stream {
    fn name(&self) -> &'static str {
        "raw-udp-stream"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Rate
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        self.round += 1;
        if !side.measures() {
            let count = self.count(side)?;
            self.end.send(count)?;
            return Ok(Duration::ZERO);
        }
        let start = Instant::now();
        for _ in 0..iterations {
            self.end.send(self.round)?;
        }
        side.arrive();
        let received = self.end.receive()?;
        let time = start.elapsed();
        ensure!((1..=iterations).contains(&received), "{received} of {iterations} arrived");
        Ok(time.mul_f64(iterations as f64 / received as f64))
    }
}

/// A socket that carries words to the other rank's.
struct End {
    socket: UdpSocket,
    to: SocketAddr,
}

/// Fruitless looks, each a system call, after which a datagram is taken for lost: some seconds.
const LOOKS: u64 = 1 << 24;

impl End {
    fn new(wait: Wait, (socket, to): (UdpSocket, SocketAddr)) -> Result<Self> {
        socket.set_nonblocking(wait == Wait::Polling)?;
        Ok(Self { socket, to })
    }

    #[inline(always)]
    fn send(&self, word: u64) -> Result<()> {
        poll_until(|| would_block(self.socket.send_to(black_box(&word.to_le_bytes()), self.to)))
    }

    #[inline(always)]
    fn receive(&self) -> Result<u64> {
        let (mut word, mut looks) = (0, 0);
        poll_until(|| {
            looks += 1;
            match self.try_receive()? {
                Some(received) => word = received,
                None if looks < LOOKS => return Ok(false),
                None => bail!("a datagram was lost"),
            }
            Ok(true)
        })?;
        Ok(word)
    }

    #[inline(always)]
    fn try_receive(&self) -> Result<Option<u64>> {
        let mut bytes = [0; 8];
        let has_come = would_block(self.socket.recv_from(&mut bytes))?;
        Ok(has_come.then(|| u64::from_le_bytes(bytes)))
    }
}

/// False where there is nothing to do now.
#[inline(always)]
fn would_block<T>(outcome: io::Result<T>) -> Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
