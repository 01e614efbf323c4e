//! A network that errs on purpose, between a link and the real one.
use super::datagram::{Inbox, Net, NetCounters, Outbox, Tap};
use super::hints::Hints;
use crate::settings::plan::Plan;
use crate::sync::{AtomicBool, Ordering};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Datagrams that are held back at a time; what comes beyond is lost.
const HELD_MAX: usize = 1 << 14;
/// How many later datagrams pass one that is held back.
const PASSED_MAX: u64 = 8;
/// How long one is held back if not so many come.
const PASSED_NANOS: u64 = 1_000_000;
/// How far a rate may catch up, in time: as far as a sender is late that looks once in a while.
const BURST_NANOS: u64 = 1_000_000;
/// Bits that are inverted in a damaged datagram, at most.
const FLIPS_MAX: u64 = 3;

/// A cable that can be pulled while the network runs. Clones are the same cable.
#[derive(Clone, Debug)]
pub struct Partition {
    is_cut: Arc<AtomicBool>,
}

impl Partition {
    /// A cable that is plugged in.
    pub fn new() -> Self {
        Self { is_cut: Arc::new(AtomicBool::new(false)) }
    }

    /// Loses everything that is sent from now on. What is on its way still arrives.
    pub fn cut(&self) {
        // Relaxed: no data goes with it; soon is soon enough.
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Lets datagrams through again.
    pub fn heal(&self) {
        // Relaxed: as above.
        self.is_cut.store(false, Ordering::Relaxed);
    }

    /// Whether everything is lost.
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

/// What was done wrong so far, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultCounters {
    /// Lost by the dice.
    pub(crate) lost: u64,
    /// Lost while the cable was pulled.
    pub(crate) cut: u64,
    /// Lost because too much waited.
    pub(crate) overflowed: u64,
    /// Sent twice.
    pub(crate) duplicated: u64,
    /// Held back until others had passed.
    pub(crate) reordered: u64,
    /// Damaged.
    pub(crate) corrupted: u64,
}

/// Another network whose sending side goes wrong as a plan says.
// spec: NET-5
#[derive(Debug)]
pub(crate) struct Faults<N> {
    inner: N,
    plan: Plan,
    partition: Partition,
    dice: Pcg64Mcg,
    /// Datagrams on their way, the next to arrive on top.
    held: BinaryHeap<Reverse<Held>>,
    /// Datagrams that others are to pass.
    passed: Vec<Passed>,
    /// Datagrams that have been held for long enough.
    ready: Outbox,
    /// When the limited rate has sent all that it was given.
    free_at: u64,
    /// Counts datagrams, so that those of one time stay in order.
    order: u64,
    counters: FaultCounters,
}

/// A datagram on its way; the fields are in the order by which datagrams are compared.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: u64,
    order: u64,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// A datagram that waits for others to pass it.
#[derive(Debug)]
struct Passed {
    /// How many still have to.
    left: u64,
    /// When it goes in any case.
    latest: u64,
    held: Held,
}

impl<N: Net> Faults<N> {
    /// Puts a plan, and a cable, before a network.
    pub(crate) fn new(inner: N, plan: Plan, partition: Partition) -> Self {
        Self {
            inner,
            plan,
            partition,
            dice: Pcg64Mcg::seed_from_u64(plan.seed),
            held: BinaryHeap::new(),
            passed: Vec::new(),
            ready: Outbox::new(),
            free_at: 0,
            order: 0,
            counters: FaultCounters::default(),
        }
    }

    /// What was done wrong so far.
    #[cfg(test)]
    pub(crate) const fn faults(&self) -> FaultCounters {
        self.counters
    }

    /// The network behind the faults.
    #[cfg(test)]
    pub(crate) const fn inner(&mut self) -> &mut N {
        &mut self.inner
    }

    /// Decides what becomes of a datagram.
    fn admit(&mut self, to: SocketAddr, bytes: &[u8], now: u64) {
        if self.partition.is_cut() {
            self.counters.cut += 1;
            return;
        }
        if self.chance(self.plan.loss) {
            self.counters.lost += 1;
            return;
        }
        self.forward(to, bytes, now);
        if self.chance(self.plan.duplicate) {
            self.counters.duplicated += 1;
            self.forward(to, bytes, now);
        }
        self.let_pass(now);
    }

    /// Sends a datagram on its way.
    fn forward(&mut self, to: SocketAddr, bytes: &[u8], now: u64) {
        let Some(due) = self.arrival(bytes.len(), now) else {
            self.counters.overflowed += 1;
            return;
        };
        let mut bytes = bytes.to_vec();
        if self.chance(self.plan.corrupt) && !bytes.is_empty() {
            self.counters.corrupted += 1;
            self.damage(&mut bytes);
        }
        self.order += 1;
        let held = Held { due, order: self.order, to, bytes };
        if self.chance(self.plan.reorder) {
            self.counters.reordered += 1;
            // The one itself is counted as soon as it is there.
            let left = 1 + self.die(1, PASSED_MAX);
            self.passed.push(Passed { left, latest: due.saturating_add(PASSED_NANOS), held });
        } else {
            self.held.push(Reverse(held));
        }
    }

    /// When a datagram arrives that is sent now; `None` if it does not fit what waits.
    fn arrival(&mut self, len: usize, now: u64) -> Option<u64> {
        if self.held.len() + self.passed.len() >= HELD_MAX {
            return None;
        }
        let leaves = match self.plan.rate {
            Some(rate) => self.leaves(len, rate.max(1), now)?,
            None => now,
        };
        let jitter = match nanos(self.plan.jitter) {
            0 => 0,
            most => self.die(0, most),
        };
        Some(leaves.saturating_add(nanos(self.plan.delay)).saturating_add(jitter))
    }

    /// When the last bit of a datagram has passed the limited rate.
    fn leaves(&mut self, len: usize, rate: u64, now: u64) -> Option<u64> {
        let waiting = bytes_in(self.free_at.saturating_sub(now), rate);
        if waiting > u128::from(self.plan.queue) {
            return None;
        }
        let begins = self.free_at.max(now.saturating_sub(BURST_NANOS));
        self.free_at = begins.saturating_add(nanos_of(len, rate));
        Some(self.free_at.max(now))
    }

    /// Counts one more datagram that passes those which wait for it, and lets go whose count is
    /// full.
    fn let_pass(&mut self, now: u64) {
        for passed in &mut self.passed {
            passed.left = passed.left.saturating_sub(1);
        }
        self.let_go(now);
    }

    /// Puts those that others have passed, or that waited in vain, among the rest.
    fn let_go(&mut self, now: u64) {
        let go = self.passed.extract_if(.., |passed| passed.left == 0 || passed.latest <= now);
        self.held.extend(go.map(|passed| {
            let Held { due, to, bytes, .. } = passed.held;
            self.order += 1;
            Reverse(Held { due: due.max(now), order: self.order, to, bytes })
        }));
    }

    /// Gives the inner network what has been held for long enough.
    fn release(&mut self, now: u64) {
        self.let_go(now);
        while self.held.peek().is_some_and(|Reverse(held)| held.due <= now) {
            let Some(Reverse(held)) = self.held.pop() else { break };
            self.ready.push(held.to, |buffer| buffer.extend_from_slice(&held.bytes));
        }
        self.inner.send(&mut self.ready, now);
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        // So spread, they are different bits: twice the step is less than all.
        let bits = 8 * bytes.len() as u64;
        let (first, step) = (self.die(0, bits - 1), self.die(1, (bits - 1) / 2));
        for flip in 0..self.die(1, FLIPS_MAX) {
            let bit = (first + flip * step) % bits;
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }

    /// Whether something of this probability happens.
    fn chance(&mut self, share: f64) -> bool {
        const ONE: f64 = (1_u64 << 32) as f64;
        share > 0.0 && u64::from(self.dice.next_u32()) < (share * ONE) as u64
    }

    /// A number from `least` to `most`. (The last few of a range near 2^64 are a little rarer.)
    fn die(&mut self, least: u64, most: u64) -> u64 {
        let faces = u128::from(most - least) + 1;
        least + ((u128::from(self.dice.next_u64()) * faces) >> 64) as u64
    }
}

impl<N: Net> Net for Faults<N> {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        self.release(now);
        // A network that takes no more keeps its sender waiting, with faults and without.
        if !self.ready.is_empty() {
            return;
        }
        for (to, bytes) in outbox.iter() {
            self.admit(to, bytes, now);
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
        let held = self.held.peek().map(|Reverse(held)| held.due);
        let passed = self.passed.iter().map(|passed| passed.latest).min();
        [held, passed, self.inner.deadline()].into_iter().flatten().min()
    }

    fn local(&self) -> SocketAddr {
        self.inner.local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        self.inner.datagram_max(to)
    }

    fn counters(&self) -> NetCounters {
        let FaultCounters { lost, cut, overflowed, .. } = self.counters;
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

/// How long so many bytes take.
fn nanos_of(len: usize, rate: u64) -> u64 {
    u64::try_from(len as u128 * 8_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
}

/// How many bytes pass in this time.
fn bytes_in(nanos: u64, rate: u64) -> u128 {
    u128::from(nanos) * u128::from(rate) / 8_000_000_000
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::net::datagram::Echo;

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

    /// What comes of so many numbers that are sent 10 us apart, and of waiting for the rest.
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
    fn without_a_fault_nothing_changes() {
        let mut net = faults("");
        send(&mut net, 0..300, 5);
        assert_eq!(receive(&mut net, 5), (0..300).collect::<Vec<_>>());
        assert_eq!((net.deadline(), net.faults()), (None, FaultCounters::default()));
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
    fn one_that_nobody_passes_goes_in_the_end() {
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
    fn a_rate_lets_through_what_it_says_and_loses_what_does_not_fit_the_queue() {
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
    fn what_is_held_is_bounded() {
        let mut net = faults("delay=1s");
        send(&mut net, 0..HELD_MAX as u64 + 5, 0);
        assert_eq!(net.faults().overflowed, 5);
    }
}
