//! One process of the job: its port, and waiting for what the others do.

use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use ayre::error::Status;
use ayre::{Notification, PeerId, Port, PostError};

/// The subject of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Tag {
    /// A message of a round with an even number.
    Even,
    /// A message of a round with an odd number.
    Odd,
    /// Something that comes before the first round.
    Setup,
    /// A process's ranks are where they are gathered.
    Gathered,
}

const TAGS: usize = 4;

/// One process of the job.
pub(crate) struct Process {
    pub(crate) port: Port,
    /// Notifications that have come and that nobody has waited for yet, by tag: one process may be
    /// a step ahead of another.
    arrived: [usize; TAGS],
}

impl Process {
    pub(crate) fn join() -> Result<Self> {
        Ok(Self { port: Port::join()?, arrived: [0; TAGS] })
    }

    /// This process's number; process 0 leads.
    pub(crate) fn number(&self) -> usize {
        self.port.rank()
    }

    /// How many processes the job has.
    pub(crate) fn count(&self) -> usize {
        self.port.size()
    }

    pub(crate) fn peer(&self, number: usize) -> PeerId {
        self.port.peer(number).expect("a job connects all its processes")
    }

    /// The numbers of all other processes, from the next one on, so that not all processes turn
    /// to the same one first.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (own, count) = (self.number(), self.count());
        (own + 1..count).chain(0..own)
    }

    /// Posts an operation on `to`. Where there is no room, waits until what was posted before has
    /// ended, serving the others meanwhile.
    #[inline]
    pub(crate) fn post<T>(
        &mut self,
        to: PeerId,
        mut operation: impl FnMut(&mut Port) -> Result<T, PostError>,
    ) -> Result<T> {
        loop {
            match operation(&mut self.port) {
                Ok(done) => return Ok(done),
                Err(PostError::Fault(fault)) => {
                    return Err(anyhow!(fault).context(format!("process {}", to.index())));
                }
                Err(PostError::Busy(_)) => self.make_room(to)?,
            }
        }
    }

    #[cold]
    fn make_room(&mut self, to: PeerId) -> Result<()> {
        self.port.flush(to).with_context(|| format!("process {}", to.index()))?;
        self.port.progress();
        thread::yield_now();
        Ok(())
    }

    /// Waits for `count` notifications with `tag`.
    pub(crate) fn wait(&mut self, tag: Tag, count: usize) -> Result<()> {
        while self.arrived[tag as usize] < count {
            let Notification { source, tag, status, .. } = self.port.wait_notification(None)?;
            ensure!(status == Status::Ok, "process {}: {status:?}", source.index());
            let arrived = self.arrived.get_mut(tag as usize);
            *arrived.with_context(|| format!("a notification with tag {tag}"))? += 1;
        }
        self.arrived[tag as usize] -= count;
        Ok(())
    }

    /// Tells every other process a number and returns what the others told this one, by process.
    /// All take part.
    pub(crate) fn tell_all(&mut self, number_for: impl Fn(usize) -> u32) -> Result<Vec<u32>> {
        for other in self.others() {
            let peer = self.peer(other);
            self.port.send_wait(peer, 0, &number_for(other).to_le_bytes())?;
        }
        let mut told = vec![0; self.count()];
        for _ in self.others() {
            let mut number = [0; 4];
            let message = self.port.recv(&mut number, None)?;
            told[message.source.index()] = u32::from_le_bytes(number);
        }
        self.barrier()?;
        Ok(told)
    }

    /// Waits for all processes.
    pub(crate) fn barrier(&mut self) -> Result<()> {
        self.port.barrier().context("barrier")
    }
}
