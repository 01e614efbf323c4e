//! The launcher's side of jobs over several hosts: one agent for each, and two threads that wait
//! for it, so that the launcher's loop waits for nothing else than events.

use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::guest::bell::Bell;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::super::crew::{Crew, Ended};
use super::super::job::{SIGNAL_BASE, describe};
use super::super::output::{Own, Sink, Taker};
use super::super::say;
use super::channel::{self, Address, Assignment, Order, Report};
use super::placement::Place;
use super::via::{Agent, Via};
use super::{Layout, here};

/// An agent's process that nobody talks with yet.
pub(super) struct Started {
    place: Place,
    child: Child,
    /// The program that was executed.
    program: String,
    /// Where the agent was looked for.
    path: String,
}

/// Starts an agent on each host, all at once; they wait for their assignments.
pub(super) fn start(layout: &Layout, agent: &Agent) -> Result<Vec<Started>> {
    let names: Vec<_> = layout.places.iter().map(|place| place.host.as_str()).collect();
    let are_here =
        if layout.is_own_way { vec![false; names.len()] } else { here::are_here(&names) };
    let command = |(place, is_here): (&Place, bool)| match is_here {
        true => start_one(place, agent.command(), agent),
        false => start_one(place, layout.via.command(&place.host, agent), agent),
    };
    layout.places.iter().zip(are_here).map(command).collect()
}

fn start_one(place: &Place, mut command: Command, agent: &Agent) -> Result<Started> {
    let program = command.get_program().display().to_string();
    // In a group of its own: what the terminal sends is for the launcher, which tells the agents.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let child = command.spawn().with_context(|| {
        let advice = Via::advice(&program, &place.host);
        let advice = advice.map(|advice| format!(" ({advice})")).unwrap_or_default();
        format!("host {}: {program}{advice}", place.host)
    })?;
    let path = agent.path.display().to_string();
    Ok(Started { place: place.clone(), child, program, path })
}

/// The agents of a job.
pub(super) struct Remote {
    hosts: Vec<Host>,
    /// Of each host, until all agents have answered.
    assignments: Vec<Assignment>,
    news: Receiver<(usize, News)>,
    bell: Arc<Bell>,
    /// A signal that ended the job before its ranks were started.
    cancelled: Option<Signal>,
    /// The ranks of hosts that do not answer, whose end was not reported yet.
    given_up: Vec<Ended>,
    /// How long the agents may take to answer, and until when that is.
    answer_in: Duration,
    answer_by: Instant,
}

/// One agent.
struct Host {
    name: String,
    program: String,
    path: String,
    ranks: Range<u16>,
    /// By place in `ranks`: whether that one has not ended.
    living: Vec<bool>,
    /// None: the agent can be told nothing more, and ends for that reason too.
    orders: Option<Sender<Order>>,
    /// How many orders it has had to end or kill.
    ends: u32,
    process: OwnedFd,
    /// It leads a process group.
    group: Pid,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Running,
    /// Its ranks have ended; it is there to be told that the job has failed.
    Idle,
    /// It has been let go.
    Done,
    Gone,
}

/// A message from one of the threads.
enum News {
    Greeted,
    Report(Report),
    /// Nobody reads this output of its ranks any more.
    Unread(Sink),
    /// The agent's message is not valid.
    Nonsense(anyhow::Error),
    Gone(ExitStatus),
}

impl Remote {
    /// Starts the threads. The ranks are started when all agents have answered.
    pub(super) fn attend(
        started: Vec<Started>,
        assignments: Vec<Assignment>,
        answer_in: Duration,
    ) -> Result<Self> {
        let bell = Arc::new(Bell::new().context("creating an eventfd")?);
        let (to_news, news) = mpsc::channel();
        let terminal = Arc::new(Mutex::new(Own));
        let mut hosts = Vec::new();
        for (index, started) in started.into_iter().enumerate() {
            let listener = Listener {
                index,
                host: started.place.host.clone(),
                news: to_news.clone(),
                bell: Arc::clone(&bell),
                terminal: Arc::clone(&terminal),
            };
            hosts.push(Host::attend(started, listener)?);
        }
        let answer_by = Instant::now() + answer_in;
        let (cancelled, given_up) = (None, Vec::new());
        Ok(Self { hosts, assignments, news, bell, cancelled, given_up, answer_in, answer_by })
    }

    fn has_started(&self) -> bool {
        self.assignments.is_empty()
    }

    fn on_news(&mut self, index: usize, news: News) -> Option<Ended> {
        let host = &mut self.hosts[index];
        match news {
            News::Greeted => {
                host.state = State::Ready;
                self.start_ranks_if_ready();
                None
            }
            News::Report(report) => self.on_report(index, report),
            News::Unread(sink) => {
                host.tell(Order::Unread(sink));
                None
            }
            News::Nonsense(error) => {
                host.kill();
                host.lose(format!("{error:#}"))
            }
            News::Gone(status) => {
                let (code, happened) = host.describe(status);
                let lost = match self.cancelled {
                    _ if matches!(host.state, State::Idle | State::Done) => None,
                    Some(signal) => {
                        let message = "the job was ended before its ranks were started".to_owned();
                        Some(Ended::NotStarted { message, code: code_of(signal) })
                    }
                    None => host.lose(happened).map(|ended| with_code(ended, code)),
                };
                host.end();
                host.state = State::Gone;
                self.let_go_if_idle();
                lost
            }
        }
    }

    /// All or none: no rank starts while a host may turn out not to be there.
    fn start_ranks_if_ready(&mut self) {
        let is_ready = self.hosts.iter().all(|host| host.state == State::Ready);
        if !is_ready || self.cancelled.is_some() {
            return;
        }
        for (host, assignment) in self.hosts.iter_mut().zip(self.assignments.drain(..)) {
            host.state = State::Running;
            host.tell(Order::Start(Box::new(assignment)));
        }
    }

    fn on_report(&mut self, index: usize, report: Report) -> Option<Ended> {
        let host = &mut self.hosts[index];
        if !matches!(host.state, State::Running) {
            return host.lose("it reports what it was not told to do".to_owned());
        }
        match report {
            Report::Address(address) => return self.on_address(index, address),
            Report::Output { .. } => unreachable!("the listener has relayed it"),
            Report::Ended { rank, status } => {
                if !host.ranks.contains(&rank) {
                    host.kill();
                    return host.lose(format!("it has no rank {rank}"));
                }
                host.living[usize::from(rank - host.ranks.start)] = false;
                return Some(Ended::Rank(rank, ExitStatus::from_raw(status)));
            }
            Report::Refused { code, message } => {
                host.living.fill(false);
                let message = format!("host {}: {message}", host.name);
                return Some(Ended::NotStarted { message, code });
            }
            Report::Done { obeyed } if host.living.contains(&true) || obeyed > host.ends => {
                host.kill();
                return host.lose("it says that it is done, and is not".to_owned());
            }
            Report::Done { obeyed } if obeyed < host.ends => {}
            Report::Done { .. } => {
                host.state = State::Idle;
                self.let_go_if_idle();
            }
        }
        None
    }

    /// The job is over when no agent has anything to do.
    fn let_go_if_idle(&mut self) {
        let is_idle = |host: &Host| matches!(host.state, State::Idle | State::Done | State::Gone);
        if self.hosts.iter().all(is_idle) {
            let idle = self.hosts.iter_mut().filter(|host| host.state == State::Idle);
            idle.for_each(Host::end);
        }
    }

    /// Hands the address of a rank on to all other hosts.
    fn on_address(&mut self, from: usize, address: Address) -> Option<Ended> {
        let host = &mut self.hosts[from];
        if !host.ranks.contains(&address.rank) || !address.is_valid() {
            host.kill();
            return host.lose(format!("an address of rank {} makes no sense", address.rank));
        }
        for (_, host) in self.hosts.iter_mut().enumerate().filter(|(index, _)| *index != from) {
            host.tell(Order::Address(address.clone()));
        }
        None
    }

    /// Ends agents that have nothing to do yet.
    fn cancel(&mut self, signal: Signal) {
        self.cancelled.get_or_insert(signal);
        self.hosts.iter_mut().for_each(|host| host.orders = None);
    }

    /// Orders that are answered when nothing is left.
    fn tell_to_end(&mut self, order: impl Fn() -> Order) {
        for host in &mut self.hosts {
            host.tell(order());
            host.ends += 1;
            if host.state == State::Idle {
                host.state = State::Running;
            }
        }
    }
}

/// The exit code of a job that was ended by a signal.
fn code_of(signal: Signal) -> u8 {
    SIGNAL_BASE.saturating_add(signal.as_raw() as u8)
}

fn with_code(ended: Ended, code: u8) -> Ended {
    match ended {
        Ended::Lost { message, .. } => Ended::Lost { message, code },
        Ended::NotStarted { message, .. } => Ended::NotStarted { message, code },
        rank => rank,
    }
}

impl Crew for Remote {
    fn next_end(&mut self) -> Result<Option<Ended>> {
        // It only wakes; what there is to hear is asked for in any case.
        self.bell.hush();
        while let Ok((index, news)) = self.news.try_recv() {
            if let Some(ended) = self.on_news(index, news) {
                return Ok(Some(ended));
            }
        }
        Ok(self.given_up.pop())
    }

    fn living(&self) -> usize {
        if !self.has_started() {
            return 0;
        }
        self.hosts.iter().flat_map(|host| &host.living).filter(|lives| **lives).count()
    }

    fn is_deserted(&self) -> bool {
        self.hosts.iter().all(|host| host.state == State::Gone)
    }

    fn is_finished(&mut self) -> bool {
        // Output is relayed before the news that its agent is gone.
        true
    }

    fn events<'a>(&'a self, events: &mut Vec<PollFd<'a>>) {
        events.push(PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN));
    }

    fn next_deadline(&self) -> Option<Instant> {
        let is_waiting = !self.has_started() && self.cancelled.is_none();
        let is_silent = self.hosts.iter().any(|host| host.state == State::Starting);
        (is_waiting && is_silent).then_some(self.answer_by)
    }

    fn on_time(&mut self, now: Instant) {
        if self.next_deadline().is_none_or(|at| now < at) {
            return;
        }
        let (waited, given_up) = (self.answer_in, &mut self.given_up);
        for host in self.hosts.iter_mut().filter(|host| host.state == State::Starting) {
            host.kill();
            given_up.extend(host.tell_silent(waited));
        }
    }

    fn is_on_terminal(&self) -> bool {
        false
    }

    fn signal(&mut self, signal: Signal) {
        if self.has_started() {
            let order = || Order::Signal(signal.as_raw());
            self.hosts.iter_mut().for_each(|host| host.tell(order()));
        }
    }

    fn end(&mut self, by: Option<Signal>) {
        if self.has_started() {
            self.tell_to_end(|| Order::End { by: by.map(Signal::as_raw) });
        } else {
            self.cancel(by.unwrap_or(Signal::TERM));
        }
    }

    fn kill(&mut self) {
        if self.has_started() {
            self.tell_to_end(|| Order::Kill);
        } else {
            self.hosts.iter().for_each(Host::kill);
        }
    }

    fn give_up(&mut self) {
        let code = self.cancelled.map_or(crate::TOOL_FAILED, code_of);
        for host in self.hosts.iter_mut().filter(|host| host.state != State::Gone) {
            say(&format!("host {} does not answer; letting go of it", host.name));
            // An agent whose launcher is gone still cleans up, which a killed one does not.
            if matches!(host.state, State::Starting | State::Ready) {
                host.kill();
            }
            let lost = host.lose("its ranks are lost".to_owned());
            self.given_up.extend(lost.map(|ended| with_code(ended, code)));
            host.state = State::Gone;
        }
    }

    fn drop_output(&mut self) {}
}

impl Host {
    fn attend(started: Started, listener: Listener) -> Result<Self> {
        let Started { place, mut child, program, path } = started;
        let group = Pid::from_child(&child);
        let process = pidfd_open(group, PidfdFlags::empty());
        let process = process.context("opening an agent's process")?;
        let input = child.stdin.take().context("an agent has no input")?;
        let (orders, to_send) = mpsc::channel();
        spawn("orders", move || send(input, &to_send))?;
        spawn("agent", move || listener.listen(child))?;
        Ok(Self {
            name: place.host,
            program,
            path,
            living: vec![true; place.ranks.len()],
            ranks: place.ranks,
            orders: Some(orders),
            ends: 0,
            process,
            group,
            state: State::Starting,
        })
    }

    fn tell(&mut self, order: Order) {
        // A thread that takes no orders has an agent that is gone, which is told elsewhere.
        self.orders.as_ref().map(|orders| orders.send(order));
    }

    /// It has been waited for long enough.
    fn tell_silent(&mut self, waited: Duration) -> Option<Ended> {
        let advice = Via::advice(&self.program, &self.name).unwrap_or_else(|| {
            format!("{} must start {} there and hand on its output", self.program, self.path)
        });
        let limit = "--connect-timeout SECONDS allows for more";
        self.lose(format!("no agent has answered for {waited:?}; {advice}; {limit}"))
    }

    /// It has nothing more to do.
    fn end(&mut self) {
        self.living.fill(false);
        self.orders = None;
        self.state = State::Done;
    }

    /// Kills what connects to the agent, which then ends by itself, and what that has started.
    fn kill(&self) {
        // Nobody else can have the number while the process is there. One that has ended needs no
        // signal.
        if pidfd_send_signal(&self.process, Signal::KILL).is_ok() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }

    /// Its ranks are lost; tells so, once.
    fn lose(&mut self, happened: String) -> Option<Ended> {
        if self.state == State::Done || self.state == State::Gone {
            return None;
        }
        let has_started = !matches!(self.state, State::Starting | State::Ready);
        self.end();
        let (message, code) = (format!("host {}: {happened}", self.name), crate::TOOL_FAILED);
        Some(match has_started {
            true => Ended::Lost { message, code },
            false => Ended::NotStarted { message, code },
        })
    }

    /// The end of a process that should have lived, with the code for it.
    fn describe(&self, status: ExitStatus) -> (u8, String) {
        let how = describe(status).1;
        let program = &self.program;
        let happened = match self.state {
            State::Starting => {
                let advice = Via::advice(program, &self.name);
                let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
                format!(
                    "no agent answers: {program} {how}; is {} there, and of this version? \
                     (--agent names another one){advice}",
                    self.path
                )
            }
            _ => format!("its agent is gone: {program} {how}"),
        };
        (crate::TOOL_FAILED, happened)
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(body).context("starting a thread")?;
    Ok(())
}

/// Writes orders until there are none to come, or nobody takes them.
fn send(mut input: ChildStdin, orders: &Receiver<Order>) {
    for order in orders {
        if input.write_all(&channel::encode(&order)).is_err() {
            return;
        }
    }
}

/// A receiver of one agent's reports.
struct Listener {
    index: usize,
    host: String,
    news: Sender<(usize, News)>,
    bell: Arc<Bell>,
    terminal: Arc<Mutex<Own>>,
}

impl Listener {
    fn listen(self, mut child: Child) {
        if let Some(output) = child.stdout.take()
            && let Err(error) = self.relay(&mut BufReader::new(output))
        {
            self.tell(News::Nonsense(error));
        }
        if let Ok(status) = child.wait() {
            self.tell(News::Gone(status));
        }
    }

    fn relay(&self, output: &mut BufReader<impl Read>) -> Result<()> {
        // Its end is told with the process's, which says why.
        let banner = |line: &str| say(&format!("host {}: {line}", self.host));
        if !channel::expect_greeting(output, banner)? {
            return Ok(());
        }
        self.tell(News::Greeted);
        let mut unread = Vec::new();
        while let Some(report) = channel::read(output)? {
            match report {
                Report::Output { sink, .. } if unread.contains(&sink) => {}
                Report::Output { sink, text } => {
                    if !self.write(sink, &text) {
                        unread.push(sink);
                        self.tell(News::Unread(sink));
                    }
                }
                report => self.tell(News::Report(report)),
            }
        }
        Ok(())
    }

    /// Writes lines of one agent with none of another in between; false if nobody reads them.
    fn write(&self, sink: Sink, text: &[u8]) -> bool {
        let mut terminal = self.terminal.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        terminal.take(sink, text)
    }

    fn tell(&self, news: News) {
        // Without a receiver, the job has ended.
        let _ = self.news.send((self.index, news));
        self.bell.ring();
    }
}
