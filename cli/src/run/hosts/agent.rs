//! The agent: runs the ranks of one host for a launcher on another one.
//!
//! It does what it is told and reports what happens; how a job goes on when something has failed is
//! the launcher's to decide. When it can be told nothing more, it kills its ranks.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::super::crew::{Crew, Ended, Local};
use super::super::directory::JobDirectory;
use super::super::job::{JobSignals, SIGNAL_BASE};
use super::super::orphans::Orphans;
use super::super::output::Output;
use super::super::ranks::{Ranks, Relay, Share, StartFailure};
use super::super::say;
use super::channel::{self, Arrived, Assignment, Order, Report};
use super::files::{self, AddressFiles};
use super::uplink::Uplink;

/// Bytes of the launcher's orders that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Serves the launcher at the other end of standard input and output.
pub(crate) fn run() -> Result<ExitCode> {
    crate::sys::keep_child_status();
    // Nothing may be read ahead of what is asked for, as the standard library's own handle does.
    let input = io::stdin().as_fd().try_clone_to_owned().context("the channel")?;
    let mut input = File::from(input);
    channel::greet(&mut io::stdout()).context("greeting the launcher")?;
    let assignment = match channel::read(&mut input)? {
        None => return Ok(ExitCode::SUCCESS),
        Some(Order::Start(assignment)) => *assignment,
        Some(order) => anyhow::bail!("{order:?} before there is anything to do"),
    };
    let signals = JobSignals::block().context("setting up signal handling")?;
    let uplink = Uplink::open()?;
    let ended = match Agent::start(assignment, signals, &uplink) {
        Ok(agent) => agent.run(&input, &uplink)?,
        Err(StartFailure { code, message }) => {
            uplink.report(&Report::Refused { code, message });
            AgentEnd::LauncherClosed
        }
    };
    uplink.close();
    Ok(match ended {
        AgentEnd::LauncherClosed => ExitCode::SUCCESS,
        AgentEnd::Signal(signal) => {
            ExitCode::from(SIGNAL_BASE.saturating_add(signal.as_raw() as u8))
        }
    })
}

/// Why an agent ends.
#[derive(Clone, Copy)]
enum AgentEnd {
    /// The launcher has nothing more to say, or is gone.
    LauncherClosed,
    Signal(Signal),
}

/// An agent whose ranks have been started.
struct Agent {
    local: Local,
    // Declared after the ranks, so that it is removed after they have ended.
    files: AddressFiles,
    _directory: JobDirectory,
    signals: JobSignals,
    orders: Arrived,
    /// Orders to end or kill.
    obeyed: u32,
    /// The number of orders after which the launcher was told that no process is left.
    reported: Option<u32>,
    /// Set when no order can come.
    ended: Option<AgentEnd>,
}

impl Agent {
    fn start(
        assignment: Assignment,
        signals: JobSignals,
        uplink: &Uplink,
    ) -> Result<Self, StartFailure> {
        let orphans = Orphans::inherit();
        let directory = JobDirectory::create(assignment.count.into())?;
        let (share, files) = prepare(assignment, &directory)?;
        let (ranks, streams) = Ranks::start(&share, directory.path(), &signals.0)?;
        let output = Output::relay(streams, uplink.taker())?;
        Ok(Self {
            local: Local::new(ranks, orphans, Some(output)),
            files,
            _directory: directory,
            signals,
            orders: Arrived::default(),
            obeyed: 0,
            reported: None,
            ended: None,
        })
    }

    /// Stays until nothing is left and the launcher lets it go.
    fn run(mut self, input: &File, uplink: &Uplink) -> Result<AgentEnd> {
        loop {
            let is_idle = self.is_idle(uplink)?;
            match self.ended {
                Some(why) if is_idle => return Ok(why),
                None if is_idle && self.reported != Some(self.obeyed) => {
                    self.reported = Some(self.obeyed);
                    uplink.report(&Report::Done { obeyed: self.obeyed });
                }
                _ => {}
            }
            let [has_orders, has_files] = self.wait(input)?;
            self.on_signals()?;
            if has_orders {
                self.on_input(input, uplink);
            }
            if has_files {
                self.on_files(uplink);
            }
        }
    }

    /// Hears of what has ended; whether nothing is left.
    fn is_idle(&mut self, uplink: &Uplink) -> Result<bool> {
        while let Some(ended) = self.local.next_end()? {
            match ended {
                Ended::Rank(rank, status) => {
                    uplink.report(&Report::Ended { rank, status: status.into_raw() });
                }
                Ended::Lost { .. } | Ended::NotStarted { .. } => {
                    unreachable!("the ranks are this process's own")
                }
            }
        }
        Ok(self.local.is_deserted() && self.local.is_finished())
    }

    /// Whether there is input, and whether files may have come.
    fn wait(&self, input: &File) -> Result<[bool; 2]> {
        let mut events = vec![
            PollFd::from_borrowed_fd(self.files.event(), PollFlags::IN),
            PollFd::new(&self.signals.0, PollFlags::IN),
        ];
        // Output that has been reported as out stays out.
        if self.reported.is_none() {
            self.local.events(&mut events);
        }
        // An end of the input that is known already would be told again and again.
        let hears = self.ended.is_none();
        if hears {
            events.push(PollFd::new(input, PollFlags::IN));
        }
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for events"),
        }
        let is_ready = |event: &PollFd<'_>| !event.revents().is_empty();
        Ok([hears && events.last().is_some_and(is_ready), is_ready(&events[0])])
    }

    fn on_signals(&mut self) -> Result<()> {
        while let Some(caught) = self.signals.0.take().context("reading a signal")? {
            match caught.signal {
                Signal::CHILD => {}
                // The launcher would have said so: somebody wants this host to be free.
                Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                    self.abandon(AgentEnd::Signal(caught.signal));
                }
                signal => self.local.signal(signal),
            }
        }
        Ok(())
    }

    fn on_input(&mut self, input: &File, uplink: &Uplink) {
        let mut chunk = vec![0; CHUNK_BYTES];
        match rustix::io::read(input, &mut chunk) {
            // With nothing to do, it is let go; what a job leaves behind that went well stays.
            Ok(0) if self.reported == Some(self.obeyed) => {
                self.ended = Some(AgentEnd::LauncherClosed)
            }
            Ok(0) => self.abandon(AgentEnd::LauncherClosed),
            Ok(count) => {
                self.orders.push(&chunk[..count]);
                if let Err(error) = self.obey(uplink) {
                    say(&format!("the launcher's orders make no sense: {error:#}"));
                    self.abandon(AgentEnd::LauncherClosed);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.abandon(AgentEnd::LauncherClosed),
        }
    }

    fn obey(&mut self, uplink: &Uplink) -> Result<()> {
        while let Some(order) = self.orders.next()? {
            match order {
                Order::Start(_) => anyhow::bail!("a second job"),
                Order::Address(address) => {
                    ensure!(address.is_valid(), "rank {} has no address", address.rank);
                    self.files.put(&address)?;
                }
                Order::Unread(sink) => uplink.refuse(sink),
                Order::Signal(number) => self.local.signal(signal_of(number)?),
                Order::End { by } => {
                    self.obeyed += 1;
                    self.local.end(by.map(signal_of).transpose()?);
                }
                Order::Kill => {
                    self.obeyed += 1;
                    self.local.kill();
                }
            }
        }
        Ok(())
    }

    fn on_files(&mut self, uplink: &Uplink) {
        match self.files.take() {
            Ok(addresses) => {
                addresses.into_iter().for_each(|address| uplink.report(&Report::Address(address)));
            }
            Err(error) => {
                let (code, message) = (crate::TOOL_FAILED, format!("{error:#}"));
                uplink.report(&Report::Refused { code, message });
                self.local.kill();
            }
        }
    }

    /// Ends without being told to.
    fn abandon(&mut self, why: AgentEnd) {
        self.ended.get_or_insert(why);
        self.local.kill();
        if let AgentEnd::LauncherClosed = why {
            self.local.drop_output();
        }
    }
}

fn signal_of(number: i32) -> Result<Signal> {
    Signal::from_named_raw(number).context("an unknown signal")
}

/// Everything before the first rank.
fn prepare(assignment: Assignment, directory: &JobDirectory) -> Result<(Share, AddressFiles)> {
    let Assignment { first, count, size, .. } = assignment;
    let last = first.checked_add(count).filter(|last| first < *last && *last <= size);
    let ranks = first..last.context("there are no such ranks")?;
    ensure!(usize::from(size) <= ayre::PEERS_MAX, "there are no jobs of {size} ranks");
    ensure!(!assignment.program.is_empty(), "there is no program");
    let at = PathBuf::from(OsString::from_vec(assignment.directory));
    env::set_current_dir(&at).with_context(|| format!("{}", at.display()))?;
    files::write_key(directory.path(), &assignment.key.0)?;
    let files = AddressFiles::watch(directory.path(), ranks.clone())?;
    let mut environment: Vec<(OsString, OsString)> = assignment
        .environment
        .0
        .into_iter()
        .map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value)))
        .collect();
    environment.push(("AYRE_HOST_RANKS".into(), format!("{}..{}", ranks.start, ranks.end).into()));
    if ranks.len() < usize::from(size) && !assignment.net.is_empty() {
        let addresses = ayre::network::host_addresses(&assignment.net)?;
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        environment.push(("AYRE_ADDRESSES".into(), addresses.join(",").into()));
    }
    let share = Share {
        program: assignment.program.into_iter().map(OsString::from_vec).collect(),
        ranks,
        size,
        bind: assignment.bind,
        mode: assignment.mode,
        relay: if assignment.prefix { Relay::PrefixedLines } else { Relay::Lines },
        has_input: false,
        environment,
    };
    Ok((share, files))
}
