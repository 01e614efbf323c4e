//! Runs: all replicas of all points on several threads, each with a seed of its own.
use super::plan::SEARCH_STEPS;
use super::{Plan, Scenario, work};
use crate::network::{Network, Outcome, Record};
use crate::report::{FORMAT, Point, Replica, Results, Trace, UnitTrace, gather, is_carried};
use crate::time::Time;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A look at a run from outside. It decides on nothing but the end.
pub trait Watch: Sync {
    /// This number of packets more have been delivered, those of the warm-up included.
    fn advanced(&self, packets: u64) {
        let _ = packets;
    }

    /// Whether the run is to end, with the results that there are.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nobody looks.
impl Watch for () {}

/// Packets between two looks of a [`Watch`].
const STEP: u64 = 10_000;
/// Outputs of a network whose links are recorded at most.
const RECORDED_MAX: usize = 1 << 18;

/// The replicas that threads take, and the results that they add.
struct Work {
    /// The next replica, counted over all points.
    next: usize,
    /// The replicas of each point that have run, until all of them have.
    open: Vec<Vec<Option<Replica>>>,
    points: Vec<Option<Point>>,
}

impl Scenario {
    /// Runs all points on as many threads as the machine has processors.
    pub fn run(&self) -> Results {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        self.run_watched("scenario", threads, &())
    }

    /// Runs all points on this many threads, while `watch` looks. A network in parts has a thread
    /// for each. The results depend neither on the number of threads nor on their speed, unless
    /// `watch` ends the run.
    pub fn run_watched(&self, name: &str, threads: usize, watch: &impl Watch) -> Results {
        let plans = (0..self.len()).map(|point| self.plan(point));
        let (replicas, parts): (Vec<_>, Vec<_>) = plans.map(|it| (it.replicas, it.parts)).unzip();
        let threads = threads / parts.into_iter().max().unwrap_or(1) as usize;
        let mut jobs = Vec::new();
        for (point, replicas) in replicas.iter().enumerate() {
            jobs.extend((0..*replicas).map(|replica| (point, replica)));
        }
        let none = |count: &u32| (0..*count).map(|_| None).collect();
        let work = Mutex::new(Work {
            next: 0,
            open: replicas.iter().map(none).collect(),
            points: vec![None; self.len()],
        });
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, jobs.len()) {
                scope.spawn(|| self.work(&work, &jobs, watch));
            }
        });
        let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
        let points: Vec<_> = work.points.into_iter().flatten().collect();
        let complete = !watch.is_stopped();
        Results { format: FORMAT, name: name.to_owned(), points, complete }
    }

    /// Takes replicas until none is left.
    fn work(&self, work: &Mutex<Work>, jobs: &[(usize, u32)], watch: &impl Watch) {
        loop {
            let mut open = lock(work);
            let Some((point, replica)) = jobs.get(open.next).copied() else { return };
            open.next += 1;
            drop(open);
            let plan = self.plan(point);
            let ran = run(&plan, replica, watch);
            let mut open = lock(work);
            let all = &mut open.open[point];
            all[replica as usize] = Some(ran);
            if all.iter().all(Option::is_some) {
                let replicas: Vec<_> = core::mem::take(all).into_iter().flatten().collect();
                drop(open);
                let gathered = self.gather(point, &plan, &replicas);
                lock(work).points[point] = Some(gathered);
            }
        }
    }

    fn gather(&self, point: usize, plan: &Plan, replicas: &[Replica]) -> Point {
        let mut gathered = gather(replicas, &plan.topology, &plan.parameters.link);
        let values = &self.points[point];
        let swept = self.swept.iter().map(|name| ((*name).to_owned(), values.text(name)));
        gathered.swept = swept.collect();
        gathered.settings = values.used();
        gathered.notes.extend(plan.notes.iter().cloned());
        gathered
    }

    /// The machine of the first operations of an interface, with a record; none, if the work of
    /// this point is another one.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn unit_trace(&self, point: usize, operations: usize) -> Option<UnitTrace> {
        let trial = self.plan(point).trial?;
        Some(UnitTrace::new(&trial.sound().trace(operations)))
    }

    /// The packets on links of the first replica of a point, after its warm-up: up to `slices`.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn trace(&self, point: usize, slices: usize, watch: &impl Watch) -> Trace {
        let plan = self.plan(point);
        if plan.script.is_some() {
            // A script's network is within its cluster, which records nothing.
            let record = Record::new(&plan.topology, Time::ZERO, 0);
            return Trace::new(plan.topology, Time::ZERO, &record);
        }
        if let Some(goal) = &plan.goal {
            let record = Record::new(&plan.topology, Time::ZERO, slices);
            let empty = record.clone();
            let network = goal.packets.map(|_| build(&plan, 0));
            let record = goal.run(network, Some(record)).record.unwrap_or(empty);
            return Trace::new(plan.topology, Time::ZERO, &record);
        }
        let mut network = build(&plan, 0);
        // So the first packets on links are those that a network of one part shows.
        network.divide(1);
        advance(&mut network, plan.warmup, watch);
        let start = network.time();
        network.record(Record::new(&plan.topology, start, slices));
        advance(&mut network, plan.packets, watch);
        let record = network.take_record().expect("it has just been given");
        Trace::new(plan.topology, start, &record)
    }
}

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

fn build(plan: &Plan, replica: u32) -> Network {
    plan.network(replica).expect("it was built when the scenario was read")
}

/// Runs a replica.
fn run(plan: &Plan, replica: u32, watch: &impl Watch) -> Replica {
    if let Some(trial) = &plan.trial {
        return Replica::of_interface(trial.run());
    }
    if let Some(work) = &plan.script {
        return work::run(work, &plan.topology, plan.parameters);
    }
    if let Some(goal) = &plan.goal {
        let network = goal.packets.map(|_| build(plan, replica));
        let record = (replica == 0).then(|| Record::new(&plan.topology, Time::ZERO, 0));
        return goal.run(network, record);
    }
    if !plan.search {
        return measure(plan, replica, watch);
    }
    // A full load first, then the middle between loads that are carried and those that are not.
    let (mut low, mut high) = (0.0, 1.0);
    let mut plan = plan.clone();
    let mut best = measure(&plan, replica, watch);
    if is_carried(&best) {
        return Replica { saturation: Some(high), ..best };
    }
    for _ in 1..SEARCH_STEPS {
        let middle = (low + high) / 2.0;
        plan.load = plan.load.at(middle).expect("a load between 0 and 1");
        let tried = measure(&plan, replica, watch);
        if watch.is_stopped() {
            return tried;
        }
        if is_carried(&tried) {
            (low, best) = (middle, tried);
        } else {
            high = middle;
        }
    }
    Replica { saturation: Some(low), ..best }
}

/// Runs a replica with the plan's load.
fn measure(plan: &Plan, replica: u32, watch: &impl Watch) -> Replica {
    let mut network = build(plan, replica);
    let mut outcome = advance(&mut network, plan.warmup, watch);
    network.discard();
    let (start, made, packets_made) = (network.time(), network.bytes_made(), network.made());
    let outputs = plan.topology.ports.iter().map(|ports| usize::from(*ports)).sum::<usize>();
    if replica == 0 && outputs <= RECORDED_MAX {
        network.record(Record::new(&plan.topology, start, 0));
    }
    let mut backlog = [network.backlog(); 3];
    let first_half = plan.packets / 2;
    for (half, packets) in [(1, first_half), (2, plan.packets - first_half)] {
        if outcome == Some(Outcome::Measured) {
            outcome = advance(&mut network, packets, watch);
        }
        backlog[half] = network.backlog();
    }
    // Few packets may be stuck while others move.
    if outcome == Some(Outcome::Measured) && network.ring().is_some() {
        outcome = Some(Outcome::Deadlocked);
    }
    let has_ended = network.next_time().is_none();
    let span = if has_ended { network.tally().span() } else { network.time() - start };
    Replica {
        outcome,
        tally: network.tally().clone(),
        course: network.course(),
        made: network.bytes_made() - made,
        span,
        backlog,
        packets_made: network.made() - packets_made,
        record: network.take_record(),
        saturation: None,
        script: None,
        timeline: None,
        interface: None,
    }
}

/// Runs until `packets` more packets have been delivered, in steps. The result is nothing if the
/// watch has ended it.
fn advance(network: &mut Network, packets: u64, watch: &impl Watch) -> Option<Outcome> {
    let mut before = network.tally().delivered();
    let goal = before + packets;
    while before < goal {
        if watch.is_stopped() {
            return None;
        }
        let outcome = network.run(STEP.min(goal - before));
        let now = network.tally().delivered();
        watch.advanced(now - before);
        before = now;
        if outcome != Outcome::Measured {
            return Some(outcome);
        }
    }
    Some(Outcome::Measured)
}
