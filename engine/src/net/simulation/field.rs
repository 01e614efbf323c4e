//! The state of a simulated network, and when its time goes on.
use super::Serve;
use crate::clock;
use crate::sys::bell::Bell;
use ayre_netsim::{Dice, Flights};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Time goes on by this at the least: where a port has something due that it does not do, nobody
/// may wait for it.
const TICK: u64 = 1000;
/// Looks of each other port, on average, after which one that has not looked is looked for.
const ABSENT_LOOKS: u64 = 16;
/// How long a sleeper waits for others that are about to look before it counts as one more look.
const NAP: Duration = Duration::from_micros(200);
/// Datagrams on their way, or not taken, at a time; what is sent beyond is lost.
pub(in crate::net) const FLIGHTS_MAX: usize = 1 << 16;
/// How often a wait asks whether it is over, once the network's time has come to its end: in
/// between it sleeps until the system's has.
const ASKED: u32 = 2;
/// The first port that is chosen where any will do.
const FIRST_PORT: u16 = 49152;

/// When a port has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// It has to look.
    Awake,
    /// It has looked, and has nothing to do before this time.
    Until(u64),
    /// Another thread than its own has looked for it, and it has nothing to do before this time.
    Tended(u64),
}

/// A call that waits at most until a time of the network's, and one of the system's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    until: u64,
    by_system: Instant,
    thread: ThreadId,
    /// How often it has asked, at its end, whether it is over.
    asked: u32,
    /// Another thread has done something since then, and may do more.
    is_disturbed: bool,
}

/// The wait around another one, if there is one.
pub(super) type Before = Option<Wait>;

/// A port, by the number of its seat.
#[derive(Debug)]
struct Member {
    rest: Rest,
    /// The time until which its program sleeps, if there is one.
    alarm: Option<u64>,
    /// The innermost wait of its program's that has an end.
    wait: Option<Wait>,
    /// It has sent or taken something since its last look.
    is_busy: bool,
    /// Datagrams that have arrived for it, and that it has not taken.
    waiting: usize,
    /// The looks of all until its own last one.
    looks: u64,
    /// The thread that polls it: that of its last look of its own.
    thread: Option<ThreadId>,
    /// Numbers that it was given by chance.
    given: u64,
    server: Option<Arc<dyn Serve>>,
    /// Wakes it where it sleeps.
    bell: Arc<Bell>,
    is_rung: bool,
}

impl Member {
    fn is_awake(&self) -> bool {
        self.rest == Rest::Awake || self.waiting > 0
    }

    /// It has something to do.
    fn wake(&mut self) {
        if !self.is_rung {
            self.bell.ring();
            self.is_rung = true;
        }
    }

    /// It was looked at; it has to be once more where that has done something.
    fn rest_as(&mut self, rest: Rest) {
        if self.is_rung && self.waiting == 0 {
            self.bell.hush();
            self.is_rung = false;
        }
        let was_busy = std::mem::take(&mut self.is_busy);
        self.rest = if was_busy { Rest::Awake } else { rest };
    }
}

/// An address, and what has arrived there.
#[derive(Debug)]
struct Place {
    member: usize,
    arrived: VecDeque<(SocketAddr, Vec<u8>)>,
}

/// A datagram on its way.
#[derive(Debug)]
struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// Everything that a simulated network knows.
#[derive(Debug)]
pub(super) struct Field {
    seed: u64,
    now: u64,
    /// When this moment began, by the system's clock.
    since: Instant,
    /// Looks of all ports.
    looks: u64,
    seats: usize,
    members: BTreeMap<usize, Member>,
    places: BTreeMap<SocketAddr, Place>,
    flights: Flights<Flight>,
    /// Datagrams on their way, or not taken.
    kept: usize,
    arrived: u64,
    course: u64,
}

impl Field {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            now: 0,
            since: clock::now(),
            looks: 0,
            seats: 0,
            members: BTreeMap::new(),
            places: BTreeMap::new(),
            flights: Flights::default(),
            kept: 0,
            arrived: 0,
            course: 0,
        }
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let arrived: usize = self.places.values().map(|place| place.arrived.len()).sum();
            debug_assert!(arrived <= self.kept, "what was not taken is kept");
            let waiting: usize = self.members.values().map(|member| member.waiting).sum();
            debug_assert_eq!(arrived, waiting, "what has arrived waits for somebody");
            let is_known = |place: &Place| self.members.contains_key(&place.member);
            debug_assert!(self.places.values().all(is_known), "an address is a port's");
        }
        debug_assert!(self.kept <= FLIGHTS_MAX, "no more are kept than may be");
        debug_assert!(self.members.len() <= self.seats, "each port has a seat");
        debug_assert!(self.flights.due().is_none_or(|at| at > self.now), "what is due arrives");
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Datagrams that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn course(&self) -> u64 {
        self.course
    }

    /// Makes a new seat, with a bell that wakes its port: its number.
    pub(super) fn seat(&mut self, bell: Arc<Bell>) -> usize {
        self.seats += 1;
        let member = Member {
            rest: Rest::Awake,
            alarm: None,
            wait: None,
            is_busy: false,
            waiting: 0,
            looks: self.looks,
            thread: None,
            given: 0,
            server: None,
            bell,
            is_rung: false,
        };
        self.members.insert(self.seats, member);
        self.seats
    }

    /// The next number of a port's that looks like one by chance.
    // spec: NET-9
    pub(super) fn chance(&mut self, seat: usize) -> u64 {
        let Some(member) = self.members.get_mut(&seat) else { return 0 };
        member.given += 1;
        Dice([self.seed, seat as u64, member.given].into_iter().fold(0, mixed)).word()
    }

    /// A port goes, and its addresses.
    pub(super) fn leave(&mut self, seat: usize) -> Option<Arc<dyn Serve>> {
        let (kept, places) = (&mut self.kept, &mut self.places);
        places.retain(|_, place| {
            let stays = place.member != seat;
            *kept -= if stays { 0 } else { place.arrived.len() };
            stays
        });
        self.members.remove(&seat)?.server
    }

    /// Sets the server of a port's links; returns the one before.
    pub(super) fn serve(
        &mut self,
        seat: usize,
        by: Option<Arc<dyn Serve>>,
    ) -> Option<Arc<dyn Serve>> {
        let member = self.members.get_mut(&seat)?;
        std::mem::replace(&mut member.server, by)
    }

    /// Gives a port an address, if it is free.
    pub(super) fn bind(&mut self, seat: usize, mut at: SocketAddr) -> Option<SocketAddr> {
        if at.port() == 0 {
            let is_free = |port: &u16| !self.places.contains_key(&SocketAddr::new(at.ip(), *port));
            at.set_port((FIRST_PORT..=u16::MAX).find(is_free)?);
        }
        if self.places.contains_key(&at) {
            return None;
        }
        self.places.insert(at, Place { member: seat, arrived: VecDeque::new() });
        Some(at)
    }

    /// Sends a datagram on its way; false where too many are.
    pub(super) fn launch(
        &mut self,
        seat: usize,
        latency: u64,
        (from, to): (SocketAddr, SocketAddr),
        bytes: &[u8],
    ) -> bool {
        if self.kept >= FLIGHTS_MAX {
            return false;
        }
        self.kept += 1;
        self.disturb(thread::current().id());
        if let Some(member) = self.members.get_mut(&seat) {
            member.is_busy = true;
        }
        let flight = Flight { from, to, bytes: bytes.to_vec() };
        self.flights.push(self.now.saturating_add(latency), flight);
        self.deliver();
        true
    }

    /// The next datagram that has arrived at an address.
    pub(super) fn take(&mut self, at: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        let place = self.places.get_mut(&at)?;
        let taken = place.arrived.pop_front()?;
        self.kept -= 1;
        if let Some(member) = self.members.get_mut(&place.member) {
            member.waiting -= 1;
            member.is_busy = true;
        }
        Some(taken)
    }

    /// A port has looked, and has nothing to do before `due`.
    pub(super) fn looked(&mut self, seat: usize, due: Option<u64>) {
        self.looks += 1;
        let (looks, until, thread) = (self.looks, self.until(due), thread::current().id());
        self.disturb(thread);
        if let Some(member) = self.members.get_mut(&seat) {
            member.looks = looks;
            member.thread = Some(thread);
            member.rest_as(Rest::Until(until));
        }
    }

    /// Another port has looked for this one. Where one thread polls both, it could not have polled
    /// this port meanwhile, so this port counts as polled. The system's clock, which differs from
    /// run to run, does not matter.
    // spec: NET-9, NET-10
    pub(super) fn tended(&mut self, seat: usize, due: Option<u64>) {
        let until = self.until(due);
        if let Some(member) = self.members.get_mut(&seat) {
            let is_own = member.thread == Some(thread::current().id());
            member.rest_as(if is_own { Rest::Until(until) } else { Rest::Tended(until) });
        }
    }

    fn until(&self, due: Option<u64>) -> u64 {
        due.unwrap_or(u64::MAX).max(self.now + TICK)
    }

    /// The port's program waits from here on: at most until `until` of this clock and `by_system`
    /// of the system's. Returns the wait that this one replaces, for [`Field::end_wait`]; none
    /// where `until` has come already.
    pub(super) fn wait(&mut self, seat: usize, until: u64, by_system: Instant) -> Option<Before> {
        let member = self.members.get_mut(&seat).filter(|_| until > self.now)?;
        let thread = thread::current().id();
        let wait = Wait { until, by_system, thread, asked: 0, is_disturbed: false };
        Some(member.wait.replace(wait))
    }

    /// A wait has ended.
    pub(super) fn end_wait(&mut self, seat: usize, before: Before) {
        if let Some(member) = self.members.get_mut(&seat) {
            debug_assert!(member.wait.is_some(), "a wait ends once");
            member.wait = before;
        }
    }

    /// Whether a wait of the port's has come to its end by this clock, and its thread polls all
    /// ports: nothing can come any more.
    // spec: NET-9, NET-17
    pub(super) fn is_in_vain(&self, seat: usize) -> bool {
        self.members.get(&seat).is_some_and(|member| self.holds(member))
    }

    /// Whether a port's wait keeps time from going on.
    fn holds(&self, member: &Member) -> bool {
        let is_alone = |thread| {
            let mut members = self.members.values();
            members.all(|other| other.thread.is_none_or(|other| other == thread))
        };
        let has_end = |wait: &Wait| wait.until <= self.now && !wait.is_disturbed;
        member.wait.filter(has_end).is_some_and(|wait| is_alone(wait.thread))
    }

    /// This thread does something: a wait of another one may not be in vain.
    fn disturb(&mut self, thread: ThreadId) {
        for member in self.members.values_mut() {
            let Some(wait) = &mut member.wait else { continue };
            if wait.until <= self.now && wait.thread != thread && !wait.is_disturbed {
                wait.is_disturbed = true;
                member.wake();
            }
        }
    }

    /// Whether a time has come by this clock, and by the system's. A wait in vain is over when it
    /// has asked for the second time, so that it does the same however fast the system's goes.
    // spec: NET-9, NET-17
    pub(super) fn is_over(&mut self, seat: usize, at: u64, by_system: Instant) -> bool {
        if self.now < at {
            return false;
        }
        let is_in_vain = self.is_in_vain(seat);
        let wait = self.members.get_mut(&seat).and_then(|member| member.wait.as_mut());
        let asked = wait.filter(|_| is_in_vain).map(|wait| {
            wait.asked = wait.asked.saturating_add(1);
            wait.asked
        });
        clock::now() >= by_system && asked.is_none_or(|asked| asked >= ASKED)
    }

    /// Goes on to the next moment, if time may.
    // spec: NET-9
    pub(super) fn go_on(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        assert!(next > self.now, "time goes on");
        let moment = self.now + 1..=next;
        self.now = next;
        self.since = clock::now();
        for member in self.members.values_mut() {
            let is_due = matches!(member.rest, Rest::Until(at) | Rest::Tended(at) if at <= next)
                || member.wait.is_some_and(|wait| moment.contains(&wait.until));
            if is_due || member.alarm.is_some_and(|at| at <= next) {
                (member.rest, member.alarm) = (Rest::Awake, None);
                member.wake();
            }
        }
        self.deliver();
        true
    }

    /// The next moment, if time may go on to it. Where a port was looked for, as much time as lies
    /// between must have gone by for the system, too.
    // spec: NET-9, NET-10
    fn next(&self) -> Option<u64> {
        let (next, is_served) = self.due()?;
        let is_time = || clock::now() - self.since >= Duration::from_nanos(next - self.now);
        (!is_served || is_time()).then_some(next)
    }

    /// When something is due next, and whether a port was looked for; none while one has to look
    /// or waits in vain, and where nothing ever is.
    fn due(&self) -> Option<(u64, bool)> {
        let due = self.flights.due().unwrap_or(u64::MAX);
        let (mut next, mut is_served) = (due, false);
        for member in self.members.values() {
            if self.holds(member) {
                return None;
            }
            let until = match member.rest {
                Rest::Until(until) if member.waiting == 0 => until,
                Rest::Tended(until) if member.waiting == 0 => {
                    is_served = true;
                    until
                }
                _ => return None,
            };
            let wait = member.wait.map(|wait| wait.until);
            let waits = [member.alarm, wait].into_iter().flatten().filter(|at| *at > self.now);
            next = waits.fold(next.min(until), u64::min);
        }
        (next != u64::MAX).then_some((next, is_served))
    }

    /// Until when a port may sleep, which is woken when it has something to do. Others that sleep
    /// are woken, too; those that do not have been waited for for long enough. It has something to
    /// do at the time of its alarm as well, and at one of the system's once that has come. Where it
    /// waits in vain, nothing but the end of that is left.
    // spec: NET-9, NET-10
    pub(super) fn wake_by(&mut self, seat: usize, alarm: Option<(u64, Instant)>) -> Instant {
        let member = self.members.get(&seat).filter(|member| self.holds(member));
        if let Some(wait) = member.and_then(|member| member.wait) {
            return wait.by_system;
        }
        if let (Some((alarm, _)), Some(member)) = (alarm, self.members.get_mut(&seat)) {
            member.alarm = Some(alarm);
        }
        let latest = alarm.filter(|(at, _)| *at <= self.now).map(|(_, by_system)| by_system);
        let (looks, absent_looks) = (self.looks, self.absent_looks());
        let mut is_pressing = false;
        for (number, member) in self.members.iter_mut().filter(|(_, member)| member.is_awake()) {
            let will_look = || member.server.as_ref().is_none_or(|server| server.is_asleep());
            if *number == seat {
                is_pressing = true;
            } else if !will_look() {
                is_pressing = true;
                member.looks = member.looks.min(looks.saturating_sub(absent_looks));
            }
        }
        let wakes = match self.due() {
            _ if is_pressing => clock::now(),
            Some((next, true)) => self.since + Duration::from_nanos(next - self.now),
            Some((_, false)) => clock::now(),
            None => clock::now() + NAP,
        };
        latest.map_or(wakes, |latest| wakes.min(latest))
    }

    /// A port that has looked does not sleep, or says anew until when.
    pub(super) fn clear_alarm(&mut self, seat: usize) {
        if let Some(member) = self.members.get_mut(&seat) {
            member.alarm = None;
        }
    }

    /// Ports for which somebody has to look, as they have not for long.
    // spec: NET-10
    pub(super) fn neglected(&self) -> Vec<Arc<dyn Serve>> {
        let absent_looks = self.absent_looks();
        let is_neglected =
            |member: &&Member| member.is_awake() && self.looks - member.looks >= absent_looks;
        let neglected = self.members.values().filter(is_neglected);
        neglected.filter_map(|member| member.server.clone()).collect()
    }

    fn absent_looks(&self) -> u64 {
        ABSENT_LOOKS * self.members.len() as u64
    }

    /// Datagrams that are due arrive, where there is a port.
    fn deliver(&mut self) {
        while let Some(Flight { from, to, bytes }) = self.flights.take(self.now) {
            let Some(place) = self.places.get_mut(&to) else {
                // Nobody is there.
                self.kept -= 1;
                continue;
            };
            if let Some(member) = self.members.get_mut(&place.member) {
                member.waiting += 1;
                member.wake();
            }
            self.arrived += 1;
            let words = [self.now, number(from), number(to), bytes.len() as u64];
            self.course = words.into_iter().fold(self.course, mixed);
            place.arrived.push_back((from, bytes));
        }
        self.check();
    }
}

/// An address as a number, for the course.
fn number(at: SocketAddr) -> u64 {
    let octets = match at.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(ip) => ip.octets(),
    };
    octets.iter().fold(u64::from(at.port()), |sum, byte| mixed(sum, u64::from(*byte)))
}

/// A step of FNV-1a, a word at a time.
fn mixed(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
}
