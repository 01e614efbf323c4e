//! The processes that carry out a job: ranks of this machine, or agents that have ranks on theirs.

use std::process::ExitStatus;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::orphans::Orphans;
use super::output::Output;
use super::ranks::{Ranks, Reaped};

/// The end of a process.
pub(super) enum Ended {
    Rank(u16, ExitStatus),
    /// Ranks are lost: what happened, and the code for it.
    Lost {
        message: String,
        code: u8,
    },
    /// Ranks could not be started, so there is no job.
    NotStarted {
        message: String,
        code: u8,
    },
}

/// The operations on a crew that the launcher's loop needs. Nothing here blocks.
pub(super) trait Crew {
    /// The next end of a process since the last call.
    fn next_end(&mut self) -> Result<Option<Ended>>;

    /// Ranks that have not ended.
    fn living(&self) -> usize;

    /// Whether no process is left; there may still be output.
    fn is_deserted(&self) -> bool;

    /// Whether all output is out. Asked when no process is left.
    fn is_finished(&mut self) -> bool;

    /// The descriptors that become readable when there is something to ask for.
    fn events<'a>(&'a self, events: &mut Vec<PollFd<'a>>);

    /// When to ask [`Crew::on_time`], if ever.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Time has passed: what has been waited for in vain is among what has ended.
    fn on_time(&mut self, _now: Instant) {}

    /// Whether the processes get the signals of the terminal by themselves.
    fn is_on_terminal(&self) -> bool;

    /// Sends a signal to every rank.
    fn signal(&mut self, signal: Signal);

    /// Has the ranks end, by a signal unless they have got one: stopped ones are continued, so that
    /// they can, and what they leave behind ends with them.
    fn end(&mut self, by: Option<Signal>);

    /// Kills everything.
    fn kill(&mut self);

    /// Lets go of what was killed long ago and is still not seen to have ended.
    fn give_up(&mut self);

    /// Lets go of output that nobody takes.
    fn drop_output(&mut self);
}

/// How much the ranks have been told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signalled {
    Nothing,
    End,
    Killed,
}

/// Ranks of this machine, which are children of this process.
pub(super) struct Local {
    ranks: Ranks,
    orphans: Orphans,
    output: Option<Output>,
    signalled: Signalled,
    /// There may be processes that have been left behind since they were looked for.
    may_have_orphans: bool,
}

impl Local {
    pub(super) fn new(ranks: Ranks, orphans: Orphans, output: Option<Output>) -> Self {
        Self { ranks, orphans, output, signalled: Signalled::Nothing, may_have_orphans: false }
    }
}

impl Crew for Local {
    fn next_end(&mut self) -> Result<Option<Ended>> {
        while let Some(reaped) = self.ranks.reap().context("reaping a rank")? {
            self.may_have_orphans = true;
            match reaped {
                Reaped::Rank(rank, status) => return Ok(Some(Ended::Rank(rank, status))),
                Reaped::Stray(process) => self.orphans.reaped(process),
            }
        }
        if std::mem::take(&mut self.may_have_orphans) {
            match self.signalled {
                Signalled::Nothing => {}
                Signalled::End => self.orphans.end_new(&self.ranks),
                Signalled::Killed => self.orphans.kill(&self.ranks),
            }
        }
        Ok(None)
    }

    fn living(&self) -> usize {
        self.ranks.len()
    }

    fn is_deserted(&self) -> bool {
        self.ranks.is_empty() && self.orphans.is_empty()
    }

    fn is_finished(&mut self) -> bool {
        self.output.as_mut().is_none_or(Output::finish)
    }

    fn events<'a>(&'a self, events: &mut Vec<PollFd<'a>>) {
        if let (Some(output), true) = (&self.output, self.is_deserted()) {
            events.push(PollFd::from_borrowed_fd(output.ended(), PollFlags::IN));
        }
    }

    fn is_on_terminal(&self) -> bool {
        true
    }

    fn signal(&mut self, signal: Signal) {
        self.ranks.signal(signal);
    }

    fn end(&mut self, by: Option<Signal>) {
        self.signalled = Signalled::End;
        self.may_have_orphans = true;
        by.into_iter().chain([Signal::CONT]).for_each(|signal| self.ranks.signal(signal));
    }

    fn kill(&mut self) {
        self.signalled = Signalled::Killed;
        self.ranks.signal(Signal::KILL);
        self.orphans.kill(&self.ranks);
    }

    fn give_up(&mut self) {
        // What the kernel has not ended yet it will end.
    }

    fn drop_output(&mut self) {
        self.output = None;
    }
}
