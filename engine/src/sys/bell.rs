//! Bells, by which threads of this process wake a sleeping one. Peers wake a port by the control
//! channel, see `control.rs`.
use super::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, read, write};

/// Bytes of a pipe that are read at a time.
const TAKEN: usize = 512;

/// A bell between threads of this process, which no other process has: readable once it was rung.
#[derive(Debug)]
pub struct Bell {
    /// The kernel's counter (eventfd), or the read end of a pipe.
    rung: Descriptor,
    /// The write end of the pipe.
    pipe: Option<Descriptor>,
}

impl Bell {
    /// Makes a bell of the kernel's counter (eventfd), or of a pipe where the system refuses that.
    ///
    /// # Errors
    /// The system's error for the counter.
    // spec: LIFE-41
    pub fn new() -> Result<Self, Errno> {
        descriptor::event().map(|rung| Self { rung, pipe: None }).or_else(|errno| {
            let (rung, begin) = descriptor::pipe().map_err(|_| errno)?;
            Ok(Self { rung, pipe: Some(begin) })
        })
    }

    /// Wakes the thread that sleeps at the bell, now or later. Never blocks.
    pub fn ring(&self) {
        let _ = match &self.pipe {
            // Otherwise the program has closed it; the present file of that number is not ours.
            _ if !self.rung.is_there() => return,
            // A full counter wakes as well.
            None => write(&self.rung, &1u64.to_ne_bytes()),
            // A full pipe wakes as well, as somebody has yet to empty it.
            Some(pipe) => write(pipe, &[1]),
        };
    }

    /// Whether the program has not closed the bell. If it has, nobody is woken any more, and the
    /// present file of that number must not be written to.
    // spec: LIFE-40
    pub fn is_own(&self) -> bool {
        self.rung.is_own() && self.pipe.as_ref().is_none_or(Descriptor::is_own)
    }

    /// Whether its descriptors refer to files of the right kind.
    pub(crate) fn is_there(&self) -> bool {
        self.rung.is_there() && self.pipe.as_ref().is_none_or(Descriptor::is_there)
    }

    /// Clears all rings.
    pub fn hush(&self) {
        while let Ok(TAKEN) = read(&self.rung, &mut [0; TAKEN]) {}
    }

    /// The events for which an epoll watches it, so that each ring counts once. The woken thread
    /// calls [`Bell::was_heard`] before it looks for work.
    pub(crate) fn events(&self) -> EventFlags {
        match self.pipe {
            None => EventFlags::IN | EventFlags::ET,
            // A full pipe reports no further rings.
            Some(_) => EventFlags::IN,
        }
    }

    pub(crate) fn was_heard(&self) {
        if self.pipe.is_some() {
            self.hush();
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::descriptor::{copy, epoll, pipe};
    use super::*;
    use rustix::buffer::spare_capacity;
    use rustix::event::Timespec;
    use rustix::event::epoll::{EventData, add, wait};

    // spec: LIFE-41
    #[test]
    fn each_ring_of_a_bell_wakes_once_despite_unread_rings() {
        let (rung, begin) = pipe().unwrap();
        for bell in [Bell::new().unwrap(), Bell { rung, pipe: Some(begin) }] {
            let sleeper = epoll().unwrap();
            add(&sleeper, &bell, EventData::new_u64(0), bell.events()).unwrap();
            let is_woken = || {
                let mut events = Vec::with_capacity(1);
                wait(&sleeper, spare_capacity(&mut events), Some(&Timespec::default())).unwrap();
                events.pop().inspect(|_| bell.was_heard()).is_some()
            };
            assert!(!is_woken());
            // More than a pipe holds.
            for rings in [1, 100_000, 1] {
                (0..rings).for_each(|_| bell.ring());
                assert!(is_woken() && !is_woken(), "{bell:?}");
            }
            bell.ring();
            assert_ne!(read(copy(&bell).unwrap(), &mut [0; 8]), Err(Errno::AGAIN));
            bell.hush();
            assert_eq!(read(copy(&bell).unwrap(), &mut [0; 8]), Err(Errno::AGAIN));
        }
    }
}
