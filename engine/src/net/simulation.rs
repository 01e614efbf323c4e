//! Simulated networks: ports of one process, and a clock that only their polls drive.
//!
//! ```text
//!   port a        port b         each sends and polls as over any network
//!     |  seat       |  seat
//!     v             v
//!   field: now, flights by when they are due, what has arrived and was not taken
//! ```
//!
//! Time stands still while any port has work. When a poll of each port has found nothing, time
//! jumps to the next event: a datagram arrives, or a timer of a link expires. So the computation of
//! a program takes no time. The same polls, plans and seeds give the same course, however busy the
//! machine is.
//!
//! A port whose program does not poll would stop time for all others. If a program has not polled
//! for a long time, other ports poll in its place (WIRE-7). Time then goes no faster than the
//! system's clock. So no port is taken for dead only because the program of another port is fast.
mod field;

pub(super) use self::field::FLIGHTS_MAX;
use self::field::{Before, Field};
use super::datagram::{DATAGRAM_MAX, Inbox, Net, NetCounters, Outbox};
use crate::clock;
use crate::error::SetupError;
use crate::sys::bell::Bell;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// A network in this process's memory, with a clock of its own. Clones are the same network.
///
/// Ports join it by [`NetOptions::simulated`](crate::NetOptions::simulated), or all at once by
/// [`Simulation::mesh`]; endpoints by
/// [`EndpointOptions::simulated`](crate::EndpointOptions::simulated). They use the same links,
/// frames, repair and encryption as over a real network. A datagram arrives a fixed time after it
/// was sent. The plan of a port ([`NetOptions::faults`](crate::NetOptions::faults)) adds losses,
/// jitter and rates.
///
/// Time stands still while a port has work, and jumps to the next event when a poll of each port
/// has found nothing. If one thread polls all ports, the same program with the same seeds takes the
/// same course, which [`Simulation::course`] shows. Several threads work too, but the system
/// decides their order. The timeout of a call counts on this clock and on the system's, because the
/// call may wait for another thread.
// spec: NET-8, NET-9, NET-10, NET-17
#[derive(Clone)]
pub struct Simulation {
    world: Arc<World>,
}

struct World {
    latency: u64,
    /// The start of its time.
    began: Instant,
    field: Mutex<Field>,
}

impl World {
    fn field(&self) -> MutexGuard<'_, Field> {
        self.field.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Simulation {
    /// Makes a network in which a datagram takes this time. Ports may add faults.
    pub fn new(latency: Duration) -> Self {
        Self::with_seed(latency, 0)
    }

    /// Makes a network with a seed for the random numbers of its ports: the numbers of links, of
    /// their first frames, and of members of groups.
    pub fn with_seed(latency: Duration, seed: u64) -> Self {
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let (began, field) = (clock::now(), Mutex::new(Field::new(seed)));
        Self { world: Arc::new(World { latency, began, field }) }
    }

    /// The time since the network began, by its clock.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.field().now())
    }

    /// Datagrams that have arrived.
    pub fn datagrams(&self) -> u64 {
        self.world.field().arrived()
    }

    /// A fingerprint of the arrivals of datagrams: time, source, destination and length of each. If
    /// two runs of one program have the same fingerprint, their links have done the same.
    pub fn course(&self) -> u64 {
        self.world.field().course()
    }

    /// A place for one more port.
    pub(crate) fn take_seat(&self) -> Result<Arc<Seat>, SetupError> {
        let bell = Arc::new(Bell::new().map_err(SetupError::os("eventfd"))?);
        let number = self.world.field().seat(bell.clone());
        assert_ne!(number, 0, "seats are numbered from one");
        Ok(Arc::new(Seat { world: self.world.clone(), number, bell }))
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Simulation").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The links of a port, served by others while its program does not poll.
pub(crate) trait Serve: fmt::Debug + Send + Sync {
    /// Looks, unless somebody does just now.
    fn serve(&self);

    /// Whether the port sleeps, and so will look when it is woken.
    fn is_asleep(&self) -> bool;
}

/// One port's place in a simulation; it is free again when this is dropped.
pub(crate) struct Seat {
    world: Arc<World>,
    number: usize,
    /// Rung when the port has something to do.
    bell: Arc<Bell>,
}

impl Seat {
    pub(super) fn now(&self) -> u64 {
        self.world.field().now()
    }

    /// The time now as an instant of the simulation's.
    pub(super) fn instant(&self) -> Instant {
        self.world.began + Duration::from_nanos(self.now())
    }

    fn nanos_of(&self, at: Instant) -> u64 {
        let at = at.saturating_duration_since(self.world.began).as_nanos();
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    /// The port's program waits at most until a time of the simulation's, and one of the system's,
    /// as long as what this returns lives.
    pub(super) fn wait(self: &Arc<Self>, at: Instant, by_system: Instant) -> Option<Waiting> {
        let at = self.nanos_of(at);
        let before = self.world.field().wait(self.number, at, by_system)?;
        Some(Waiting { seat: self.clone(), before })
    }

    /// Whether these times have come.
    pub(super) fn is_over(&self, at: Instant, by_system: Instant) -> bool {
        let at = self.nanos_of(at);
        self.world.field().is_over(self.number, at, by_system)
    }

    /// Whether the port's program waits, and nothing can come any more.
    pub(super) fn is_in_vain(&self) -> bool {
        self.world.field().is_in_vain(self.number)
    }

    /// When a sleeper is to look again, by the system's clock. It has something to do once a time
    /// of the simulation's has come, and one of the system's.
    pub(super) fn wake_by(&self, until: Option<(Instant, Instant)>) -> Instant {
        let alarm = until.map(|(at, by_system)| (self.nanos_of(at), by_system));
        self.world.field().wake_by(self.number, alarm)
    }

    /// The port has looked. Looks for those that have not for long, too.
    pub(super) fn looked(&self, due: Option<u64>) {
        let neglected = {
            let mut field = self.world.field();
            let before = field.now();
            field.looked(self.number, due);
            let goes_on = field.go_on();
            debug_assert_eq!(field.now() > before, goes_on, "time goes on, and never back");
            field.clear_alarm(self.number);
            if goes_on { Vec::new() } else { field.neglected() }
        };
        neglected.iter().for_each(|server| server.serve());
    }

    /// Somebody else has looked for the port.
    pub(super) fn tended(&self, due: Option<u64>) {
        self.world.field().tended(self.number, due);
    }

    /// A number that follows from the simulation's seed, the seat, and how many were asked for.
    pub(super) fn chance(&self) -> u64 {
        self.world.field().chance(self.number)
    }

    /// From here on others may look for the port.
    pub(crate) fn serve(&self, server: Arc<dyn Serve>) {
        self.world.field().serve(self.number, Some(server));
    }

    /// From here on nobody else does.
    pub(crate) fn serve_no_more(&self) {
        let server = self.world.field().serve(self.number, None);
        // Outside the lock, which the wire takes that may go with it.
        drop(server);
    }

    /// Takes an address; port 0 has a free one chosen.
    ///
    /// # Errors
    /// The address is taken.
    pub(crate) fn bind(self: &Arc<Self>, at: SocketAddr) -> io::Result<Simulated> {
        // Whoever watches several addresses of a port watches several descriptors.
        let bell = descriptor::copy(&*self.bell)?;
        let local = self.world.field().bind(self.number, at).ok_or(io::ErrorKind::AddrInUse)?;
        assert_ne!(local.port(), 0, "a port was chosen");
        Ok(Simulated { seat: self.clone(), local, bell, counters: NetCounters::default() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let gone = self.world.field().leave(self.number);
        drop(gone);
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Seat").field(&self.number).finish()
    }
}

/// A call that waits, as long as this lives.
#[derive(Debug)]
pub(crate) struct Waiting {
    seat: Arc<Seat>,
    before: Before,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.seat.world.field().end_wait(self.seat.number, self.before);
    }
}

/// An address in a simulated network.
#[derive(Debug)]
pub(crate) struct Simulated {
    seat: Arc<Seat>,
    local: SocketAddr,
    /// The port's.
    bell: Descriptor,
    counters: NetCounters,
}

impl Net for Simulated {
    fn send(&mut self, outbox: &mut Outbox, _now: u64) {
        let mut field = self.seat.world.field();
        let before = self.counters.sent + self.counters.dropped;
        for (to, bytes) in outbox.iter() {
            let is_sent =
                field.launch(self.seat.number, self.seat.world.latency, (self.local, to), bytes);
            self.counters.dropped += u64::from(!is_sent);
            self.counters.sent += u64::from(is_sent);
            self.counters.sent_bytes += if is_sent { bytes.len() as u64 } else { 0 };
        }
        let counted = self.counters.sent + self.counters.dropped - before;
        debug_assert_eq!(counted, outbox.len() as u64, "each was sent or lost");
        outbox.clear();
    }

    fn receive(&mut self, inbox: &mut Inbox, _now: u64) {
        let mut field = self.seat.world.field();
        while let Some(room) = inbox.room() {
            let Some((from, bytes)) = field.take(self.local) else { return };
            assert!(bytes.len() <= room.len(), "no datagram is longer than the longest");
            room[..bytes.len()].copy_from_slice(&bytes);
            inbox.accept(from, bytes.len(), bytes.len());
            self.counters.received += 1;
            self.counters.received_bytes += bytes.len() as u64;
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        None
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn datagram_max(&self, _to: SocketAddr) -> usize {
        DATAGRAM_MAX
    }

    fn counters(&self) -> NetCounters {
        self.counters
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::net::clock::Clock;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::collections::BTreeSet;

    const LATENCY: Duration = Duration::from_micros(3);
    const HOUR: u64 = 3_600_000_000_000;

    fn net(simulation: &Simulation) -> Simulated {
        let seat = simulation.take_seat().expect("a seat");
        seat.bind(([10, 0, 0, 1], 0).into()).expect("an address")
    }

    fn can_be_read(net: &Simulated) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(net.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("a descriptor");
        !fds[0].revents().is_empty()
    }

    fn send(net: &mut Simulated, to: SocketAddr) {
        let mut outbox = Outbox::new();
        outbox.push(to, |bytes| bytes.extend_from_slice(b"datagram"));
        net.send(&mut outbox, 0);
    }

    // spec: NET-8, NET-9, NET-10
    #[test]
    fn an_arrived_datagram_keeps_the_socket_readable_until_received() {
        let simulation = Simulation::new(LATENCY);
        let [mut near, mut far] = [net(&simulation), net(&simulation)];
        [&near, &far].into_iter().for_each(|net| net.seat.looked(None));
        send(&mut near, far.local());
        assert!(!can_be_read(&far), "it is on its way");
        // The first look ends what was done before.
        (0..2).for_each(|_| near.seat.looked(None));
        assert_eq!((simulation.now(), can_be_read(&far)), (LATENCY, true));
        let mut inbox = Inbox::new();
        far.receive(&mut inbox, 0);
        let (from, bytes) = inbox.get(0);
        assert_eq!((from, &*bytes), (near.local(), &b"datagram"[..]));
        far.seat.looked(None);
        assert!(!can_be_read(&far));
    }

    // spec: NET-9
    #[test]
    fn only_a_due_deadline_wakes_a_seat() {
        let simulation = Simulation::new(LATENCY);
        let [near, far] = [net(&simulation), net(&simulation)];
        far.seat.looked(Some(7000));
        near.seat.looked(Some(9000));
        assert_eq!(simulation.now(), Duration::from_nanos(7000));
        assert!(can_be_read(&far) && !can_be_read(&near));
        (0..8).for_each(|_| near.seat.looked(None));
        assert_eq!(simulation.now(), Duration::from_nanos(7000), "it waits for the far one");
        far.seat.looked(None);
        assert!(!can_be_read(&far));
    }

    // spec: NET-8
    #[test]
    fn datagrams_to_unknown_addresses_and_beyond_the_limit_are_lost() {
        let simulation = Simulation::new(LATENCY);
        let [mut near, far] = [net(&simulation), net(&simulation)];
        send(&mut near, ([10, 0, 0, 9], 9).into());
        (0..FLIGHTS_MAX).for_each(|_| send(&mut near, far.local()));
        assert_eq!(near.counters().dropped, 1, "one more than there is room for");
        [&far, &near, &near].into_iter().for_each(|net| net.seat.looked(None));
        send(&mut near, far.local());
        assert_eq!(near.counters().dropped, 1, "who is nobody leaves room");
        assert_eq!(simulation.datagrams(), FLIGHTS_MAX as u64 - 1);
        drop(far);
        send(&mut near, ([10, 0, 0, 9], 9).into());
        assert_eq!(near.counters().dropped, 1, "and so does who has gone");
    }

    // spec: NET-9, NET-10
    #[test]
    fn the_systems_clock_counts_only_where_another_thread_serves_a_port() {
        for (is_own, passed) in [(true, HOUR), (false, 0)] {
            let simulation = Simulation::new(LATENCY);
            let [near, far] = [net(&simulation), net(&simulation)];
            let look = || far.seat.looked(Some(HOUR));
            if is_own {
                look();
            } else {
                std::thread::scope(|scope| scope.spawn(look).join().expect("it looks"));
            }
            far.seat.tended(Some(HOUR));
            near.seat.looked(Some(2 * HOUR));
            assert_eq!(simulation.now(), Duration::from_nanos(passed));
        }
    }

    // spec: NET-17
    #[test]
    fn a_wait_is_over_by_the_clocks_of_the_network_and_of_the_system() {
        let simulation = Simulation::new(LATENCY);
        let [near, far] = [net(&simulation), net(&simulation)];
        let clock = Clock::Simulated(near.seat.clone());
        let (soon, hour) = (Duration::from_nanos(1), Duration::from_secs(3600));
        let [short, long] = [soon, hour].map(|time| clock.within(time));
        far.seat.looked(None);
        near.seat.looked(None);
        let begin = Instant::now();
        while Instant::now() <= begin + soon {}
        assert!(!clock.is_over(short), "the network's time stands still");
        for deadline in [short, long] {
            clock.wake_by(None, Some(deadline));
            (0..2).for_each(|_| near.seat.looked(None));
            far.seat.looked(None);
        }
        assert_eq!(simulation.now(), hour);
        assert!(clock.is_over(short) && clock.has_come(long));
        assert!(!clock.is_over(long), "another thread may do what is waited for");
    }

    /// Looks of both ports, which have nothing to do for two hours.
    fn look(ports: &[Simulated; 2]) {
        ports.iter().for_each(|port| port.seat.looked(Some(2 * HOUR)));
    }

    // spec: NET-9, NET-17
    #[test]
    fn time_stands_at_the_end_of_a_wait_as_long_as_its_thread_polls_all_ports() {
        let simulation = Simulation::new(LATENCY);
        let ports = [net(&simulation), net(&simulation)];
        let clock = Clock::Simulated(ports[0].seat.clone());
        let end = clock.within(Duration::from_nanos(HOUR));
        let waiting = clock.wait(Some(end));
        (0..8).for_each(|_| look(&ports));
        assert_eq!(simulation.now(), Duration::from_nanos(HOUR));
        assert!(clock.is_in_vain() && !clock.is_over(end), "the system's hour has not passed");
        let is_ended = clock.wait(Some(end)).is_none();
        assert!(is_ended, "what has come already is not waited for");
        std::thread::scope(|scope| scope.spawn(|| look(&ports)).join().expect("it looks"));
        (0..8).for_each(|_| ports[1].seat.looked(None));
        assert!(!clock.is_in_vain(), "another thread may send something");
        assert_eq!(simulation.now(), Duration::from_nanos(2 * HOUR));
        drop(waiting);
    }

    // spec: NET-9
    #[test]
    fn time_goes_on_when_a_wait_in_vain_has_ended() {
        let simulation = Simulation::new(LATENCY);
        let ports = [net(&simulation), net(&simulation)];
        let clock = Clock::Simulated(ports[0].seat.clone());
        let end = clock.within(LATENCY);
        let waiting = clock.wait(Some(end));
        (0..8).for_each(|_| look(&ports));
        let asked = (0..).position(|_| clock.is_over(end)).expect("3 us pass");
        assert!(asked > 0, "it sleeps before it gives up, however late it is");
        assert_eq!(simulation.now(), LATENCY);
        drop(waiting);
        look(&ports);
        assert_eq!(simulation.now(), Duration::from_nanos(2 * HOUR));
    }

    // spec: NET-9
    #[test]
    fn random_numbers_follow_from_the_seed_and_the_seat() {
        let numbers = |seed| {
            let simulation = Simulation::with_seed(LATENCY, seed);
            [net(&simulation), net(&simulation)].map(|net| [(); 3].map(|()| net.seat.chance()))
        };
        assert_eq!(numbers(1), numbers(1));
        let all: BTreeSet<_> = [numbers(1), numbers(2)].concat().concat().into_iter().collect();
        assert_eq!(all.len(), 12, "no two are equal");
    }
}
