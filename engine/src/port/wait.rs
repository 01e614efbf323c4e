//! Blocking waits: poll, then yield, then sleep until a sender wakes the port.
//!
//! A sleeper announces itself in its page, executes a fence, looks once more, and sleeps in epoll
//! on its control channels and the bells of this process. Senders publish, execute a fence, and
//! ring if the page shows a sleeper. A port that is awake gets no rings.
//!
//! No wake-up is lost. Either the last look sees a record, or, by the two fences, its sender sees
//! the sleeper. The sender then rings, unless the channel holds a ring already. A ring stays in the
//! channel until it is taken, so it ends a sleep that begins later, too. A thread that takes rings
//! looks again before it sleeps again, after a fence. It also has the other thread that sleeps on
//! the channel look, so that both see all that was published before.
use super::connection::Connection;
use crate::clock::{self, poll_until};
use crate::error::{A_PEER, SetupError};
use crate::mem::fence;
use crate::mem::page::Sleeper;
use crate::net::clock::Deadline;
use crate::peer::contact::Link;
use crate::peer::control::Heard;
use crate::port::Port;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::bell::Bell;
use crate::sys::descriptor::Descriptor;
use crate::sys::descriptor::{self, wait_at};
use crate::sys::fork;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Polls between two reads of the clock, each of which costs as much as several polls.
const ROUNDS_PER_CLOCK: u32 = 256;
/// A poll of links is a system call, which takes as long as this number of polls of memory.
const POLLS_OF_LINKS: u32 = 64;
/// A longer yield has met a thread that computes and gets the processor for long. Sleeping is
/// better then: a thread that is woken runs at once.
const YIELD_MAX: Duration = Duration::from_micros(100);
/// Yields that are left out after one of those.
const YIELDS_LEFT_OUT: u32 = 1024;
/// The longest sleep of a call that waits for room, because some peers give room without a ring.
const NAP: Duration = Duration::from_micros(250);
const CONTROL: u64 = 0;
const OWN: u64 = 1;
/// The number of the first peer's channel.
const FIRST_CHANNEL: u64 = 2;
/// The most events that are taken at a time.
const EVENTS: usize = 16;
const _: () = assert!(CONTROL < FIRST_CHANNEL, "no channel is taken for what is read elsewhere");
const _: () = assert!(OWN < FIRST_CHANNEL && OWN != CONTROL, "no channel is taken for a bell");
const _: () = assert!(ROUNDS_PER_CLOCK.is_power_of_two(), "a poll does not divide");

/// The descriptors on which a port, or its engine thread, sleeps.
#[derive(Debug)]
pub(crate) struct Sleep {
    epoll: Descriptor,
    /// The bell by which other threads of this process wake the sleeper.
    bell: Arc<Bell>,
    /// The process that has made it; forked children share the epoll with it.
    generation: u64,
    is_lost: AtomicBool,
    /// Locked by the sleeper, and by the port's thread when connections begin or end.
    channels: Mutex<Watched>,
}

/// The channels in an epoll, by numbers that are never reused: a late event of a forgotten channel
/// names no other one.
#[derive(Debug)]
struct Watched {
    channels: BTreeMap<u64, Arc<Link>>,
    next: u64,
}

/// The events that a look has found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitOutcome {
    /// A channel was rung, or has brought something: the port's other thread must look, too.
    pub(crate) rung: bool,
    /// There is something for [`Port::service_control`].
    pub(crate) mail: bool,
    /// Any event was taken.
    pub(crate) any: bool,
}

impl Sleep {
    pub(crate) fn new() -> Result<Self, SetupError> {
        let epoll = descriptor::epoll().map_err(SetupError::os("epoll_create"))?;
        let bell = Bell::new().map_err(SetupError::os("eventfd"))?;
        let watched = Watched { channels: BTreeMap::new(), next: FIRST_CHANNEL };
        fork::count();
        let is_lost = AtomicBool::new(false);
        let (channels, bell) = (Mutex::new(watched), Arc::new(bell));
        let sleep = Self { epoll, bell, generation: fork::generation(), is_lost, channels };
        sleep.add(sleep.bell.as_fd(), OWN, sleep.bell.events())?;
        Ok(sleep)
    }

    pub(crate) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Whether the program has left its descriptors open.
    // spec: LIFE-40
    pub(crate) fn is_there(&self) -> bool {
        self.epoll.is_there() && self.bell.is_there()
    }

    /// Whether it is the parent process's: then this process must not use it.
    pub(crate) fn is_inherited(&self) -> bool {
        fork::generation() != self.generation
    }

    /// A descriptor that is readable while there are events that were not taken.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Watches a listener, or a peer's process: readable once a caller waits, or the process has
    /// ended.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>) -> Result<(), SetupError> {
        self.add(fd, CONTROL, EventFlags::IN)
    }

    /// Watches the channel of a peer of this host, and its process.
    // spec: LIFE-10
    pub(crate) fn watch_control(&self, link: &Arc<Link>) -> Result<(), SetupError> {
        self.watch_channel(link)?;
        let life = link.control.life();
        let watched = life.map_or(Ok(()), |life| self.watch(life.as_fd()));
        if watched.is_err() {
            self.forget_channel(link);
        }
        watched
    }

    pub(crate) fn forget_control(&self, link: &Arc<Link>) {
        self.forget_channel(link);
        link.control.life().into_iter().for_each(|life| self.forget(life.as_fd()));
    }

    /// Watches the channel alone, which brings rings and packets.
    pub(crate) fn watch_channel(&self, link: &Arc<Link>) -> Result<(), SetupError> {
        let Some(socket) = link.control.socket() else { return Ok(()) };
        let mut watched = self.watched();
        let number = watched.next;
        self.add(socket, number, EventFlags::IN)?;
        watched.next += 1;
        debug_assert!(
            watched.channels.values().all(|other| !Arc::ptr_eq(link, other)),
            "a channel is watched once"
        );
        let last = watched.channels.insert(number, link.clone());
        debug_assert!(last.is_none(), "numbers are never used again");
        Ok(())
    }

    /// Removes a channel, if it is watched here: one that has ended may have been removed.
    pub(crate) fn forget_channel(&self, link: &Arc<Link>) {
        let mut watched = self.watched();
        let found = watched.channels.iter().find(|(_, other)| Arc::ptr_eq(link, other));
        if let Some(number) = found.map(|(number, _)| *number) {
            self.forget_number(&mut watched, number);
        }
    }

    /// Watches a network socket, readable while datagrams were not taken; or an alarm, readable
    /// from its time on.
    pub(crate) fn watch_net(&self, fd: BorrowedFd<'_>) -> Result<(), SetupError> {
        self.add(fd, OWN, EventFlags::IN)
    }

    fn add(&self, fd: BorrowedFd<'_>, what: u64, flags: EventFlags) -> Result<(), SetupError> {
        epoll::add(&self.epoll, fd, EventData::new_u64(what), flags)
            .map_err(SetupError::os("epoll_ctl"))
    }

    /// Removes a control channel before it is closed. Closing alone does not end the watch, as the
    /// peer may hold the same file.
    pub(crate) fn forget(&self, fd: BorrowedFd<'_>) {
        if self.is_inherited() {
            return;
        }
        let removed = epoll::delete(&self.epoll, fd);
        let is_closed = matches!(removed, Err(Errno::BADF | Errno::INVAL | Errno::NOENT));
        debug_assert!(removed.is_ok() || is_closed, "what was watched can be forgotten");
    }

    fn forget_number(&self, watched: &mut Watched, number: u64) {
        let link = watched.channels.remove(&number);
        debug_assert!(link.is_some(), "a channel is forgotten once");
        let socket = link.as_ref().and_then(|link| link.control.socket());
        socket.into_iter().for_each(|socket| self.forget(socket));
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.channels.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sleeps until an event, at most until `deadline`, and takes the events. For a thread that is
    /// not the port's own: it sets `any_mail` for events that the port must handle. A channel that
    /// has ended is removed, as it would wake this thread until the port looks.
    pub(crate) fn sleep(&self, deadline: Option<Instant>, any_mail: &AtomicBool) -> WaitOutcome {
        self.doze(deadline);
        let mut events = [MaybeUninit::uninit(); EVENTS];
        self.take(self.happened(&mut events), |watched, number, heard| {
            if heard.mail {
                // Relaxed: the lock orders what the flag stands for.
                any_mail.store(true, Ordering::Relaxed);
            }
            if heard.is_over {
                self.forget_number(watched, number);
            }
        })
    }

    /// Sets `any_mail` for the events that the sleeper has taken so far.
    pub(crate) fn settle(&self) {
        drop(self.watched());
    }

    /// Takes the events, without sleeping. It takes them in turn, so that the events of one channel
    /// are found even where all others are rung all the time.
    // spec: LIFE-10
    pub(crate) fn look(&self) -> WaitOutcome {
        let looks = (self.watched().channels.len() + 2).div_ceil(EVENTS);
        let mut events = [MaybeUninit::uninit(); EVENTS];
        let mut all = WaitOutcome::default();
        for _ in 0..looks {
            let happened = self.happened(&mut events);
            let WaitOutcome { rung, mail, any } = self.take(happened, |_, _, _| {});
            all = WaitOutcome { rung: all.rung | rung, mail: all.mail | mail, any: all.any | any };
            if mail || happened.len() < EVENTS {
                break;
            }
        }
        all
    }

    /// Sleeps, but takes no events: the next sleep ends at once, unless somebody has taken them by
    /// then.
    ///
    /// It uses poll(2), because epoll_wait(2) only has whole milliseconds and rounds up: a timer of
    /// a link after 20 us would wait fifty times as long.
    // spec: WAIT-4
    pub(crate) fn doze(&self, deadline: Option<Instant>) {
        let timeout = deadline.map(clock::left_until);
        let _ = wait_at(&mut [PollFd::new(&self.epoll, PollFlags::IN)], timeout.as_ref());
    }

    /// Events that were not taken, at most as many as there is room for.
    fn happened<'a>(&self, events: &'a mut [MaybeUninit<Event>]) -> &'a [Event] {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, events, Some(&AT_ONCE)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &[],
            // The program has closed it, and may have another descriptor of this number.
            Err(_) => {
                // Relaxed: a later look reports it at the latest.
                self.is_lost.store(true, Ordering::Relaxed);
                &[]
            }
        }
    }

    /// Whether the program has closed the descriptors on which this sleeps.
    // spec: LIFE-40
    pub(crate) fn is_lost(&self) -> bool {
        // Relaxed: a later look reports it at the latest.
        self.is_lost.load(Ordering::Relaxed)
    }

    fn take(
        &self,
        events: &[Event],
        mut then: impl FnMut(&mut Watched, u64, Heard),
    ) -> WaitOutcome {
        let mut all = WaitOutcome { any: !events.is_empty(), ..WaitOutcome::default() };
        for event in events {
            match event.data.u64() {
                CONTROL => all.mail = true,
                OWN => self.bell.was_heard(),
                number => {
                    let mut watched = self.watched();
                    let heard = watched.channels.get(&number).map(|link| link.control.hear());
                    let heard = heard.unwrap_or_default();
                    all.rung |= heard.any;
                    all.mail |= heard.mail;
                    then(&mut watched, number, heard);
                }
            }
        }
        all
    }
}

impl Port {
    /// Polls `attempt` until it returns something or the deadline has passed; sleeps in a long
    /// wait. Makes progress for peers all the time. Ends early once the program interrupts it: a
    /// wait without a deadline returns nothing then.
    // spec: WAIT-1
    pub(crate) fn wait_for<T>(
        &mut self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let _waiting = self.clock.wait(deadline);
        let found = self.wait_awake(deadline, &mut attempt);
        found.or_else(|| self.wait_asking(deadline, attempt))
    }

    /// The first part of a wait: polls, then polls and yields, then gives up.
    pub(crate) fn wait_awake<T>(
        &mut self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let (polls, yields) = (self.polls_awake(), self.config.spin.yields);
        for round in 0..polls.saturating_add(yields) {
            if let Some(value) = attempt(self) {
                return Some(value);
            }
            self.progress_lanes();
            if round.is_multiple_of(ROUNDS_PER_CLOCK)
                && deadline.is_some_and(|at| self.clock.has_come(at))
            {
                return None;
            }
            if round < polls {
                std::hint::spin_loop();
            } else if !self.make_way() {
                return None;
            }
        }
        None
    }

    /// The number of polls before the first yield.
    pub(crate) fn polls_awake(&self) -> u32 {
        let polls = self.config.spin.polls;
        if self.looks_at_links() { polls.div_ceil(POLLS_OF_LINKS) } else { polls }
    }

    /// Whether this port's polls ask the system for datagrams of other hosts.
    fn looks_at_links(&self) -> bool {
        self.remote.is_in_use() && !self.engine.is_running()
    }

    /// Yields to other threads. False where a sleep would be better: a thread computes, and
    /// datagrams of other hosts wake sleepers.
    // spec: WAIT-5
    fn make_way(&mut self) -> bool {
        if !self.looks_at_links() {
            std::thread::yield_now();
            return true;
        }
        if self.clock.is_in_vain() {
            return false;
        }
        self.yield_in_turn().is_some_and(|lasted| lasted < YIELD_MAX)
    }

    /// Yields and returns the time that it took. Does nothing for some time after a thread that
    /// computes has had the processor.
    pub(crate) fn yield_in_turn(&mut self) -> Option<Duration> {
        debug_assert!(self.yields_in_vain <= YIELDS_LEFT_OUT, "they are counted down");
        if self.yields_in_vain > 0 {
            self.yields_in_vain -= 1;
            return None;
        }
        let before = self.clock.now();
        std::thread::yield_now();
        let lasted = self.clock.now() - before;
        self.yields_in_vain = if lasted >= YIELD_MAX { YIELDS_LEFT_OUT } else { 0 };
        Some(lasted)
    }

    /// Sleeps for a moment, or until something comes; does not sleep while a message waits to be
    /// taken.
    // spec: WAIT-3, WAIT-5
    fn nap(&mut self) {
        let until = self.clock.within(NAP);
        let mut has_message = |port: &mut Self| {
            let mut connections = port.peers.iter();
            connections.any(|connection| connection.messages_in.peek().is_some()).then_some(())
        };
        self.sleep_in_rest(|port| port.sleep_unless(Some(until), &mut has_message));
    }

    /// Waits for a moment while a peer works: polls, then yields, or sleeps for up to 250 us. It is
    /// for loops around calls that return `Busy`: `rounds` is 0 at first, and counts their rounds.
    pub fn pause(&mut self, rounds: &mut u32) {
        *rounds += 1;
        if *rounds < self.polls_awake() {
            self.progress_lanes();
            std::hint::spin_loop();
            return;
        }
        let has_come = self.progress_all();
        self.service_control();
        if !has_come && !self.make_way() {
            self.nap();
        }
    }

    /// Waits for an event on a control channel, where polling lanes would be useless.
    pub(crate) fn wait_for_control<T>(
        &mut self,
        deadline: Deadline,
        attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let _waiting = self.clock.wait(Some(deadline));
        self.wait_asking(Some(deadline), attempt)
    }

    /// Waits for an event on which the port does not sleep, as set-up does. `look` polls for it
    /// together with the port's `sleep`, for at most the given time, and returns its finding. Peers
    /// are served meanwhile: a peer that waits for us may delay the awaited one.
    // spec: PROG-2, WAIT-3, LANE-12
    pub(crate) fn wait_beside<T>(
        &mut self,
        deadline: Deadline,
        mut look: impl FnMut(&Self, Option<Instant>) -> Result<Option<T>, SetupError>,
    ) -> Result<T, SetupError> {
        let _waiting = self.clock.wait(Some(deadline));
        self.sleep_in_rest(|port| {
            loop {
                port.service_control();
                port.announce_sleep(true);
                port.fence_sleep();
                let until = match port.progress_all() {
                    true => clock::at_once(),
                    false => port.wake_by(port.next_question(Some(deadline))),
                };
                let found = look(port, until);
                port.announce_sleep(false);
                if let Some(found) = found.transpose() {
                    return found;
                }
                if port.clock.is_over(deadline) || port.is_interrupted() {
                    return Err(SetupError::timed_out(A_PEER));
                }
            }
        })
    }

    /// Waits until a descriptor is readable, at most until `deadline`; serves peers meanwhile.
    pub(crate) fn wait_readable(
        &mut self,
        fd: BorrowedFd<'_>,
        deadline: Deadline,
    ) -> Result<(), SetupError> {
        self.wait_beside(deadline, |port, until| {
            let own = port.sleep.as_fd();
            let mut fds = [&fd, &own].map(|fd| PollFd::new(fd, PollFlags::IN));
            poll_until(&mut fds, until)?;
            Ok((!fds[0].revents().is_empty()).then_some(()))
        })
    }

    /// The second part of a wait: sleeps between attempts. Any arrival wakes it, so an attempt must
    /// look at everything that it waits for. The caller has told the clock that it waits.
    pub(crate) fn wait_asleep<T>(
        &mut self,
        deadline: Option<Deadline>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.sleep_in_rest(|port| {
            loop {
                port.service_control();
                if let Some(value) = attempt(port) {
                    return Some(value);
                }
                if deadline.is_some_and(|at| port.clock.is_over(at)) {
                    return None;
                }
                if let Some(value) = port.sleep_unless(deadline, &mut attempt) {
                    return Some(value);
                }
            }
        })
    }

    /// Waits for this time, and serves peers meanwhile.
    pub(crate) fn let_go_by(&mut self, time: Duration) {
        let until = Some(self.clock.within(time));
        let _waiting = self.clock.wait(until);
        let never: Option<()> = self.wait_asleep(until, |_| None);
        debug_assert!(never.is_none(), "nothing was waited for");
    }

    /// Sleeps, unless `attempt` returns something after the sleep was announced.
    // spec: WAIT-3, LANE-12
    fn sleep_unless<T>(
        &mut self,
        deadline: Option<Deadline>,
        attempt: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.announce_sleep(true);
        self.fence_sleep();
        let progressed = self.progress_all();
        self.remote.forget_arrivals();
        let found = attempt(self);
        // An attempt makes progress, too. Records that this has brought from other hosts may have
        // come after the attempt looked, and no ring comes for them.
        if found.is_some() || progressed || self.remote.has_come() {
            self.announce_sleep(false);
            return found;
        }
        self.settle_wire();
        self.sleep.doze(self.wake_by(deadline));
        self.announce_sleep(false);
        // Before rings are taken: a wait looks for its own event first.
        attempt(self)
    }

    /// Orders the announcement of a sleep before the last looks. Only peers of this host count on
    /// more than a fence of this processor.
    pub(crate) fn fence_sleep(&self) {
        match self.peers.iter().all(Connection::is_driven_here) {
            true => fence::own(),
            false => fence::heavy(),
        }
    }

    /// Announces the sleep of the port's thread, which serves mediated commands, too, unless an
    /// engine thread does.
    pub(crate) fn announce_sleep(&self, asleep: bool) {
        self.page.set_asleep(Sleeper::Port, asleep);
        if !self.engine.is_running() {
            self.page.set_asleep(Sleeper::Engine, asleep);
        }
    }
}
