//! The launcher's loop: ranks that end, signals that arrive and deadlines that pass, one at a time.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::crew::{Crew, Ended};
use super::{Args, say};
use crate::sys::{self, Caught, SignalFd};

const TIMED_OUT: u8 = 124;
pub(super) const SIGNAL_BASE: u8 = 128;

/// How long the other ranks have to notice a failure, and to say so, before they are asked to end.
const TO_SAY_SO: Duration = Duration::from_secs(1);

/// How long the news of a kill may take beyond the grace, which may be nothing.
const TO_HEAR_OF_IT: Duration = Duration::from_secs(2);

/// The signals that the launcher handles; it must hold them before it starts the first rank.
pub(super) struct JobSignals(pub(super) SignalFd);

impl JobSignals {
    /// Blocks the signals, except those that this process was started to ignore (`nohup`): the
    /// ranks ignore them too.
    pub(super) fn block() -> io::Result<Self> {
        let passed_on = [
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::TSTP,
            Signal::CONT,
        ];
        let mut handled: Vec<_> =
            passed_on.into_iter().filter(|signal| !sys::is_ignored(*signal)).collect();
        handled.push(Signal::CHILD);
        SignalFd::new(&handled).map(Self)
    }
}

/// How far the job's end has come.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// A rank has failed; the others will be asked to end.
    Failed {
        end_at: Instant,
    },
    /// The ranks have been asked to end and have until then to do so.
    Ending {
        kill_at: Instant,
    },
    /// They have been killed, and there is that long to hear of it.
    Killed {
        give_up_at: Instant,
    },
    GivenUp,
}

/// A job whose ranks have been started.
pub(super) struct Job<C> {
    crew: C,
    signals: JobSignals,
    phase: Phase,
    deadline: Option<Instant>,
    grace: Duration,
    keeps_going: bool,
    /// The code of what went wrong first; of a job that keeps going, the highest one.
    failure: Option<u8>,
}

impl<C: Crew> Job<C> {
    pub(super) fn new(args: &Args, signals: JobSignals, crew: C) -> Self {
        Self {
            crew,
            signals,
            phase: Phase::Running,
            deadline: args.timeout.map(|timeout| Instant::now() + timeout),
            grace: args.grace,
            keeps_going: args.keep_going,
            failure: None,
        }
    }

    /// Stays until every rank has ended and its output is relayed; returns the job's exit code.
    pub(super) fn run(mut self) -> Result<u8> {
        while !self.is_over()? {
            self.wait()?;
            // Signals first: a rank that a signal has ended is then known to have been told to end.
            while let Some(caught) = self.signals.0.take().context("reading a signal")? {
                self.on_signal(&caught)?;
            }
            self.on_time(Instant::now());
        }
        Ok(self.failure.unwrap_or(0))
    }

    /// Hears of what has ended and tells whether anything is left to wait for.
    fn is_over(&mut self) -> Result<bool> {
        while let Some(ended) = self.crew.next_end()? {
            self.on_end(ended);
        }
        Ok(self.crew.is_deserted() && self.crew.is_finished())
    }

    fn wait(&self) -> Result<()> {
        let mut events = Vec::with_capacity(2);
        events.push(PollFd::new(&self.signals.0, PollFlags::IN));
        self.crew.events(&mut events);
        let next = match self.phase {
            _ if self.crew.is_deserted() => None,
            Phase::Running => self.deadline.into_iter().chain(self.crew.next_deadline()).min(),
            Phase::Failed { end_at } => Some(end_at),
            Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killed { give_up_at } => Some(give_up_at),
            Phase::GivenUp => None,
        };
        let left = next
            .map(|at| Timespec::try_from(at.saturating_duration_since(Instant::now())))
            .transpose()
            .context("a deadline beyond the kernel's clock")?;
        match poll(&mut events, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for events"),
        }
    }

    fn on_end(&mut self, ended: Ended) {
        match ended {
            Ended::Rank(_, status) if status.success() => {}
            Ended::Rank(rank, status) => {
                let (code, happened) = describe(status);
                self.on_failure(code, &format!("rank {rank} {happened}"));
            }
            Ended::Lost { message, code } => self.on_failure(code, &message),
            Ended::NotStarted { message, code } => {
                if self.failure.is_none() {
                    say(&format!("{message}{}", self.fate("ending")));
                }
                self.failure.get_or_insert(code);
                self.ask_to_end();
            }
        }
        // What the ranks of a failed job have left behind ends with the last of them.
        if self.failure.is_some() && self.crew.living() == 0 {
            self.ask_to_end();
        }
    }

    fn on_failure(&mut self, code: u8, happened: &str) {
        if self.keeps_going && matches!(self.phase, Phase::Running) {
            say(&format!("{happened}{}", self.fate("going on with")));
            self.failure = self.failure.max(Some(code));
            return;
        }
        // What follows the first failure follows from it, as a rule, and would only hide it.
        if self.failure.is_some() {
            return;
        }
        say(&format!("{happened}{}", self.fate("ending")));
        self.failure = Some(code);
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Failed { end_at: Instant::now() + TO_SAY_SO };
        }
    }

    /// A text about the fate of the remaining ranks.
    fn fate(&self, verb: &str) -> String {
        match (self.phase, self.crew.living()) {
            (Phase::Running, 1) => format!("; {verb} the other rank"),
            (Phase::Running, others @ 2..) => format!("; {verb} the other {others} ranks"),
            _ => String::new(),
        }
    }

    fn on_signal(&mut self, caught: &Caught) -> Result<()> {
        match caught.signal {
            Signal::CHILD => {}
            Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => self.on_end_request(caught),
            Signal::TSTP => {
                self.pass_on(caught);
                sys::stop_self().context("stopping")?;
            }
            Signal::CONT => self.crew.signal(Signal::CONT),
            _ => self.pass_on(caught),
        }
        Ok(())
    }

    /// Handles a signal by which somebody wants the job to end.
    fn on_end_request(&mut self, caught: &Caught) {
        if self.crew.is_deserted() {
            // Only output is left, and its reader does not take it.
            self.crew.drop_output();
        }
        match self.phase {
            Phase::Running | Phase::Failed { .. } => {
                self.end(self.needs_passing_on(caught).then_some(caught.signal));
            }
            Phase::Ending { .. } if caught.signal == Signal::INT => self.kill(),
            Phase::Ending { .. } | Phase::Killed { .. } | Phase::GivenUp => self.pass_on(caught),
        }
    }

    fn on_time(&mut self, now: Instant) {
        if self.crew.is_deserted() {
            return;
        }
        self.crew.on_time(now);
        match self.phase {
            Phase::Failed { end_at } if end_at <= now => self.ask_to_end(),
            Phase::Ending { kill_at } if kill_at <= now => {
                say(&format!("the grace of {:?} is over; killing what is left", self.grace));
                self.kill();
            }
            Phase::Running if self.deadline.is_some_and(|at| at <= now) => {
                say("the job has used up its time; ending it");
                self.failure.get_or_insert(TIMED_OUT);
                self.ask_to_end();
            }
            Phase::Killed { give_up_at } if give_up_at <= now => {
                self.phase = Phase::GivenUp;
                self.crew.give_up();
            }
            _ => {}
        }
    }

    /// Passes a signal on to the ranks, unless they have it already.
    fn pass_on(&mut self, caught: &Caught) {
        if self.needs_passing_on(caught) {
            self.crew.signal(caught.signal);
        }
    }

    /// Whether ranks get a signal only if it is passed on: what comes from the terminal goes to its
    /// whole process group.
    fn needs_passing_on(&self, caught: &Caught) -> bool {
        !caught.from_terminal || !self.crew.is_on_terminal()
    }

    fn ask_to_end(&mut self) {
        if matches!(self.phase, Phase::Running | Phase::Failed { .. }) {
            self.end(Some(Signal::TERM));
        }
    }

    fn end(&mut self, by: Option<Signal>) {
        self.crew.end(by);
        self.phase = Phase::Ending { kill_at: Instant::now() + self.grace };
    }

    fn kill(&mut self) {
        self.phase = Phase::Killed { give_up_at: Instant::now() + self.grace + TO_HEAR_OF_IT };
        self.crew.kill();
    }
}

/// The exit code for an end that is no success, and what it was.
pub(super) fn describe(status: ExitStatus) -> (u8, String) {
    match (status.code(), status.signal()) {
        (Some(code), _) => {
            (u8::try_from(code).unwrap_or(u8::MAX), format!("exited with code {code}"))
        }
        (None, signal) => describe_signal(signal.unwrap_or(0), status.core_dumped()),
    }
}

fn describe_signal(number: i32, core_dumped: bool) -> (u8, String) {
    let name = Signal::from_named_raw(number).map_or("unnamed", signal_name);
    let core = if core_dumped { ", core dumped" } else { "" };
    let code = u8::try_from(number).map_or(u8::MAX, |number| SIGNAL_BASE.saturating_add(number));
    (code, format!("was killed by signal {number} ({name}{core})"))
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        Signal::ILL => "SIGILL",
        Signal::TRAP => "SIGTRAP",
        Signal::ABORT => "SIGABRT",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::KILL => "SIGKILL",
        Signal::USR1 => "SIGUSR1",
        Signal::SEGV => "SIGSEGV",
        Signal::USR2 => "SIGUSR2",
        Signal::PIPE => "SIGPIPE",
        Signal::ALARM => "SIGALRM",
        Signal::TERM => "SIGTERM",
        Signal::XCPU => "SIGXCPU",
        Signal::XFSZ => "SIGXFSZ",
        Signal::SYS => "SIGSYS",
        _ => "no common signal",
    }
}
