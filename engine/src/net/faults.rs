//! A network that errs on purpose, between a link and the real one.
use super::datagram::{Inbox, Net, NetCounters, Outbox, Tap};
use super::hints::Hints;
use super::simulation::FLIGHTS_MAX;
use crate::settings::plan::FaultPlan;
use crate::sync::{AtomicBool, Ordering};
use ayre_netsim::{self as netsim, Counters, Item, Way};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Datagrams that are held back at a time; what comes beyond is lost.
const HELD_MAX: usize = 1 << 14;
/// How far a rate may catch up, in time: as far as a sender is late that looks once in a while.
const BURST_NANOS: u64 = 1_000_000;
const _: () = assert!(HELD_MAX <= FLIGHTS_MAX, "a simulated network carries what is held back");

/// A network cable that can be unplugged while a program runs. Clones are the same cable.
#[derive(Clone, Debug)]
pub struct Partition {
    is_cut: Arc<AtomicBool>,
}

impl Partition {
    /// A cable that is plugged in.
    pub fn new() -> Self {
        Self { is_cut: Arc::new(AtomicBool::new(false)) }
    }

    /// Unplugs the cable: all later datagrams are lost. Datagrams under way still arrive.
    pub fn cut(&self) {
        // Relaxed: no data goes with it; soon is soon enough.
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Lets datagrams through again.
    pub fn heal(&self) {
        // Relaxed: as above.
        self.is_cut.store(false, Ordering::Relaxed);
    }

    /// Whether the cable is unplugged.
    pub fn is_cut(&self) -> bool {
        // Relaxed: as above.
        self.is_cut.load(Ordering::Relaxed)
    }
}

impl Default for Partition {
    fn default() -> Self {
        Self::new()
    }
}

/// Another network whose sending side goes wrong as a plan says.
// spec: NET-5
#[derive(Debug)]
pub(crate) struct Faults<N> {
    inner: N,
    partition: Partition,
    way: Way<Datagram>,
    /// Datagrams that have been on their way for long enough.
    ready: Outbox,
}

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Datagram {
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Item for Datagram {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn flip(&mut self, bit: u64) {
        assert!(bit / 8 < self.bytes.len() as u64, "a bit of the datagram's");
        self.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl<N: Net> Faults<N> {
    /// Puts a plan, and a cable, before a network.
    pub(crate) fn new(inner: N, plan: FaultPlan, partition: Partition) -> Self {
        Self { inner, partition, way: Way::new(way_of(&plan)), ready: Outbox::new() }
    }

    /// The number of faults so far, by kind.
    #[cfg(test)]
    pub(crate) const fn faults(&self) -> Counters {
        self.way.counters()
    }

    /// The network behind the faults.
    #[cfg(test)]
    pub(crate) const fn inner(&mut self) -> &mut N {
        &mut self.inner
    }

    /// Gives the inner network what has been on its way for long enough.
    fn release(&mut self, now: u64) {
        while let Some(Datagram { to, bytes }) = self.way.take(now) {
            self.ready.push(to, |buffer| buffer.extend_from_slice(&bytes));
        }
        self.inner.send(&mut self.ready, now);
    }
}

/// The faults of the way that a plan is for.
fn way_of(plan: &FaultPlan) -> netsim::Plan {
    netsim::Plan {
        loss: plan.loss,
        duplicate: plan.duplicate,
        reorder: plan.reorder,
        corrupt: plan.corrupt,
        delay: nanos(plan.delay),
        jitter: nanos(plan.jitter),
        rate: plan.rate,
        queue: plan.queue,
        burst: BURST_NANOS,
        room: HELD_MAX,
        seed: plan.seed,
        ..netsim::Plan::NONE
    }
}

impl<N: Net> Net for Faults<N> {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        self.release(now);
        // A network that takes no more keeps its sender waiting, with faults and without.
        if !self.ready.is_empty() {
            return;
        }
        self.way.is_cut = self.partition.is_cut();
        debug_assert!(self.way.due().is_none_or(|at| at > now), "what was due has left");
        for (to, bytes) in outbox.iter() {
            self.way.send(Datagram { to, bytes: bytes.to_vec() }, now);
        }
        outbox.clear();
        self.release(now);
        if self.ready.has_refused() {
            outbox.refused_by(&mut self.ready);
        }
    }

    fn receive(&mut self, inbox: &mut Inbox, now: u64) {
        self.release(now);
        self.inner.receive(inbox, now);
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        [self.way.due(), self.inner.deadline()].into_iter().flatten().min()
    }

    fn local(&self) -> SocketAddr {
        self.inner.local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        self.inner.datagram_max(to)
    }

    fn counters(&self) -> NetCounters {
        let Counters { lost, cut, overflowed, .. } = self.way.counters();
        let inner = self.inner.counters();
        NetCounters { dropped: inner.dropped + lost + cut + overflowed, ..inner }
    }

    fn check_address(&mut self, to: SocketAddr) {
        self.inner.check_address(to);
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        self.inner.tap()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::net::datagram::Echo;
    use ayre_netsim::{PASSED_MAX, PASSED_NANOS};

    const COUNT: u64 = 10_000;

    fn faults(plan: &str) -> Faults<Echo> {
        Faults::new(Echo::new(), plan.parse().unwrap(), Partition::new())
    }

    /// Sends numbers, each at its own time.
    fn send(net: &mut impl Net, numbers: impl IntoIterator<Item = u64>, now: u64) {
        let mut outbox = Outbox::new();
        for number in numbers {
            outbox.push(([10, 0, 0, 2], 1).into(), |bytes| {
                bytes.extend_from_slice(&number.to_le_bytes())
            });
        }
        net.send(&mut outbox, now);
        assert!(outbox.is_empty());
    }

    fn receive(net: &mut impl Net, now: u64) -> Vec<u64> {
        let number = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().unwrap());
        Echo::drain(net, now).into_iter().map(number).collect()
    }

    /// The arrivals of `count` numbers that are sent 10 us apart, the rest waited for.
    fn journey(net: &mut Faults<Echo>, count: u64) -> Vec<(u64, u64)> {
        let mut got = Vec::new();
        for number in 0..count {
            let now = number * 10_000;
            send(net, [number], now);
            got.extend(receive(net, now).into_iter().map(|number| (now, number)));
        }
        while let Some(now) = net.deadline() {
            got.extend(receive(net, now).into_iter().map(|number| (now, number)));
        }
        got
    }

    fn numbers(got: &[(u64, u64)]) -> Vec<u64> {
        got.iter().map(|&(_, number)| number).collect()
    }

    /// How many are missing, and how many come more than once.
    fn missing_and_twice(got: &[(u64, u64)]) -> (u64, u64) {
        let mut seen = vec![0_u64; COUNT as usize];
        numbers(got).into_iter().for_each(|number| seen[number as usize] += 1);
        let missing = seen.iter().filter(|&&times| times == 0).count();
        (missing as u64, seen.iter().map(|times| times.saturating_sub(1)).sum())
    }

    #[test]
    fn without_faults_datagrams_pass_unchanged() {
        let mut net = faults("");
        send(&mut net, 0..300, 5);
        assert_eq!(receive(&mut net, 5), (0..300).collect::<Vec<_>>());
        assert_eq!((net.deadline(), net.faults()), (None, Counters::default()));
    }

    // spec: NET-5
    #[test]
    fn a_seed_repeats_its_faults_and_another_one_does_not() {
        let plan = "loss=20%,dup=5%,reorder=5%,delay=20us,jitter=50us,rate=10Mbit";
        let run = |seed| journey(&mut faults(&format!("{plan},seed={seed}")), 1000);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    // spec: NET-5
    #[test]
    fn as_many_are_lost_and_doubled_as_the_plan_says() {
        let mut net = faults("loss=20%,dup=10%");
        let got = journey(&mut net, COUNT);
        let (missing, twice) = missing_and_twice(&got);
        assert_eq!((missing, twice), (net.faults().lost, net.faults().duplicated));
        assert!((1900..2100).contains(&missing), "{missing} of {COUNT} lost");
        assert!((720..880).contains(&twice), "{twice} of 8000 doubled");
        assert_eq!(net.counters().dropped, missing);
        assert!(journey(&mut faults("loss=100%"), 100).is_empty());
    }

    // spec: NET-5
    #[test]
    fn those_held_back_are_passed_by_one_to_eight() {
        let mut net = faults("reorder=5%");
        let got = journey(&mut net, COUNT);
        assert_eq!(missing_and_twice(&got), (0, 0));
        let late: Vec<_> = numbers(&got)
            .iter()
            .enumerate()
            .filter(|&(place, &number)| place as u64 > number)
            .map(|(place, &number)| place as u64 - number)
            .collect();
        assert!((400..600).contains(&net.faults().reordered));
        assert!(late.iter().all(|by| (1..=PASSED_MAX).contains(by)), "{late:?}");
        assert!(late.len() > 350, "{} came late", late.len());
    }

    #[test]
    fn a_reordered_datagram_is_sent_after_a_time_limit() {
        let mut net = faults("reorder=100%");
        send(&mut net, [1], 50);
        assert_eq!(net.deadline(), Some(50 + PASSED_NANOS));
        assert!(receive(&mut net, 49 + PASSED_NANOS).is_empty());
        assert_eq!(receive(&mut net, 50 + PASSED_NANOS), [1]);
        assert_eq!(net.deadline(), None);
    }

    // spec: NET-5
    #[test]
    fn a_damaged_one_differs_in_one_to_three_bits() {
        let mut net = faults("corrupt=100%");
        for _ in 0..200 {
            send(&mut net, [0], 0);
        }
        let flips: Vec<_> = receive(&mut net, 0).iter().map(|bits| bits.count_ones()).collect();
        assert_eq!((flips.len(), net.faults().corrupted), (200, 200));
        assert!(flips.iter().all(|count| (1..=3).contains(count)), "{flips:?}");
        assert!([1, 2, 3].iter().all(|count| flips.contains(count)), "{flips:?}");
    }

    // spec: NET-5
    #[test]
    fn a_delay_is_kept_to_the_nanosecond_and_jitter_within_its_bound() {
        let mut net = faults("delay=2ms");
        send(&mut net, [1, 2], 100);
        send(&mut net, [3], 200);
        assert_eq!(net.deadline(), Some(2_000_100));
        assert!(receive(&mut net, 2_000_099).is_empty());
        assert_eq!(receive(&mut net, 2_000_100), [1, 2]);
        assert_eq!(receive(&mut net, 2_000_200), [3]);

        let got = journey(&mut faults("delay=1ms,jitter=100us"), COUNT);
        assert_eq!(missing_and_twice(&got), (0, 0));
        // It is seen when the next one is sent, or at the deadline.
        let over = |(now, number)| now - number * 10_000 - 1_000_000;
        assert!(got.iter().all(|&got| over(got) <= 110_000));
        assert!(!numbers(&got).is_sorted(), "some overtake others");
    }

    // spec: NET-5
    #[test]
    fn a_rate_limit_passes_its_rate_and_drops_beyond_its_queue() {
        // 8 bytes take 64 us.
        let mut net = faults("rate=1Mbit,queue=800B");
        let start = 10 * BURST_NANOS;
        send(&mut net, 0..1000, start);
        let (mut got, mut now) = (receive(&mut net, start), start);
        while let Some(deadline) = net.deadline() {
            now = deadline;
            got.extend(receive(&mut net, now));
        }
        // What may catch up, what waits, and the one that finds the queue just full.
        let catches_up = BURST_NANOS / 64_000;
        assert_eq!(got.len() as u64, catches_up + 101);
        assert_eq!(net.faults().overflowed, 1000 - got.len() as u64);
        assert_eq!(now - start, got.len() as u64 * 64_000 - BURST_NANOS);
        assert!(got.is_sorted());
    }

    // spec: NET-5
    #[test]
    fn a_pulled_cable_loses_all_until_it_is_plugged_in_again() {
        let partition = Partition::new();
        let mut net = Faults::new(Echo::new(), "delay=1us".parse().unwrap(), partition.clone());
        send(&mut net, [1], 0);
        partition.cut();
        send(&mut net, [2, 3], 10);
        partition.heal();
        send(&mut net, [4], 20);
        assert_eq!(receive(&mut net, 5000), [1, 4]);
        assert_eq!((net.faults().cut, net.counters().dropped), (2, 2));
    }

    // spec: NET-3
    #[test]
    fn a_network_that_takes_no_more_keeps_the_outbox() {
        let mut net = faults("");
        net.inner().room = 2;
        send(&mut net, 0..4, 0);
        let mut outbox = Outbox::new();
        outbox
            .push(([10, 0, 0, 2], 1).into(), |bytes| bytes.extend_from_slice(&4_u64.to_le_bytes()));
        net.send(&mut outbox, 1);
        assert_eq!((outbox.len(), receive(&mut net, 1).len()), (1, 2));
        net.inner().room = 100;
        net.send(&mut outbox, 2);
        assert_eq!((outbox.len(), receive(&mut net, 2)), (0, vec![2, 3, 4]));
    }

    #[test]
    fn held_datagrams_are_bounded() {
        let mut net = faults("delay=1s");
        send(&mut net, 0..HELD_MAX as u64 + 5, 0);
        assert_eq!(net.faults().overflowed, 5);
    }
}
