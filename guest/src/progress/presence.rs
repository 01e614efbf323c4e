//! The server of an endpoint's peers: the program, awake or asleep, or our own thread in its stead.

use super::served::{Tended, Visitor};
use ayre::endpoint::raw::Completion;
use ayre::guest::descriptor::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::thread::Pid;
use std::sync::Arc;

/// The presence of the program, as our own thread knows it.
#[derive(Debug)]
pub struct Presence {
    /// Threads of the program's that may sleep until the bell rings.
    pub(super) sleepers: Vec<Pid>,
    /// The program's polls, when our own thread looked last.
    pub(super) polls: Option<(u32, u32)>,
    /// Somebody is to be told when the program comes.
    pub(super) is_missed: bool,
    /// The bell has rung for a program that sleeps, and it has the time of a lease to come.
    pub(super) is_warned: bool,
    pub(super) thread: Thread,
    /// Our own thread, if it has come once.
    pub(super) visitor: Option<Visitor>,
    pub(super) bell: Arc<Descriptor>,
    /// Completions that the thread has found. The program's next call reports them, where that is
    /// the program's alone.
    pub(super) late: Vec<Completion>,
}

/// Where our own thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Away,
    /// It sleeps in the bell beside the program.
    Watches,
    /// It is here in the program's stead.
    Serves,
}

impl Presence {
    /// The program is awake. The bell is the endpoint's.
    pub fn new(bell: &Arc<Descriptor>) -> Self {
        Self {
            sleepers: Vec::new(),
            polls: None,
            is_missed: false,
            is_warned: false,
            thread: Thread::Away,
            visitor: None,
            bell: Arc::clone(bell),
            late: Vec::new(),
        }
    }

    /// Somebody is to be told when the program comes.
    #[inline]
    pub fn is_missed(&self) -> bool {
        self.is_missed
    }

    /// Keeps an end that our own thread has found, until the program comes.
    #[inline]
    pub fn keep(&mut self, end: Completion) {
        self.late.push(end);
    }

    /// Our own thread is woken by the bell.
    pub(super) fn watch(&mut self, as_what: Thread) -> Tended {
        let Some(Visitor { wait, lease }) = &self.visitor else { return Tended::Left };
        if wait.watch(self.bell.as_fd()).is_err() {
            // It looks as often as the lease runs out.
            return Tended::Left;
        }
        lease.end();
        (self.thread, self.is_missed, self.is_warned) = (as_what, true, false);
        Tended::Waits
    }
}

/// Whether a bell has rung.
pub fn has_rung(bell: &Descriptor) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Who cannot be told looks.
    poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&at_once)) != Ok(0)
}
