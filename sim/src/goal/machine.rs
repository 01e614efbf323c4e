//! The course of a schedule: who begins when.
//!
//! An operation becomes ready when all that it requires is done. It begins when its CPU is free; a
//! send and the arrival of a message need a network interface, too. Until then it waits in a line
//! with all that need the same. Only the first of a line has an event.
//!
//! Events of one time are taken in the order in which they were created, which is LogGOPSim's
//! rule. It decides who gets a CPU that two want.
use super::matching::Matching;
use super::schedule::{Kind, Schedule};
use super::trail::{Trail, activity};
use super::{BYTE_TIME_MAX, END, Hosts, LogGops, MESSAGE_TIME_MAX, Report, RunError, Start};
use crate::calendar::{Calendar, Event};
use crate::time::Time;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs a schedule in the LogGOPS model. With `path`, the report has the critical path, which
/// costs memory: 24 bytes for each operation.
///
/// # Errors
/// See [`RunError`].
pub fn run(schedule: &Schedule, model: &LogGops, path: bool) -> Result<Report, RunError> {
    bounded("the latency", model.latency, MESSAGE_TIME_MAX)?;
    bounded("the gap per byte", model.gap_per_byte, BYTE_TIME_MAX)?;
    let mut machine = Machine::new(schedule, &model.hosts, Latency(*model), path)?;
    machine.run()?;
    machine.report()
}

fn bounded(what: &'static str, time: Time, limit: Time) -> Result<(), RunError> {
    if time > limit { Err(RunError::Parameter { what, time, limit }) } else { Ok(()) }
}

/// The way of messages from host to host.
pub(super) trait Wire {
    /// The time of a receiving interface and CPU for each further byte.
    fn gap_per_byte(&self) -> Time;
    /// The message of the send with this number departs. The result is when it arrives, if that
    /// is known.
    fn depart(&mut self, at: Time, number: u32) -> Result<Option<Time>, RunError>;
    /// Moves messages until some have arrived, which are added to `arrived` with their times, or
    /// until `before`, if that is given.
    fn advance(
        &mut self,
        before: Option<Time>,
        arrived: &mut Vec<(Time, u32)>,
    ) -> Result<(), RunError>;
}

/// A network in which all messages take equally long.
struct Latency(LogGops);

impl Wire for Latency {
    fn gap_per_byte(&self) -> Time {
        self.0.gap_per_byte
    }

    fn depart(&mut self, at: Time, _: u32) -> Result<Option<Time>, RunError> {
        Ok(Some(at + self.0.latency))
    }

    fn advance(&mut self, _: Option<Time>, _: &mut Vec<(Time, u32)>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Kinds of events. An event has the number of its creation in its upper half, then the number of
/// an operation, and its kind in the last bit.
const OPERATION: u64 = 0;
const ARRIVAL: u64 = 1;

fn kind_of(what: u64) -> u64 {
    what & 1
}

fn number_of(what: u64) -> u32 {
    what as u32 >> 1
}

/// The number of requirements of an operation that is done.
const DONE: u32 = u32::MAX;

/// The state of an operation.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The earliest time that its requirements allow.
    ready: Time,
    /// How many of its requirements are not done.
    waits: u32,
}

/// Events that need the same units, in the order of their creation.
#[derive(Clone, Debug, Default)]
struct Line {
    /// The event of the first, which is in the calendar.
    first: Option<u64>,
    others: BinaryHeap<Reverse<u64>>,
}

/// The units of a host that something needs: their places in `free`.
#[derive(Clone, Copy)]
struct Units {
    cpu: usize,
    /// The sending or receiving side of a network interface.
    side: Option<usize>,
}

pub(super) struct Machine<'a, W> {
    schedule: &'a Schedule,
    hosts: Hosts,
    pub(super) wire: W,
    calendar: Calendar,
    /// Events of the time `now`, those from `taken` on still to come, in the order of creation.
    batch: Vec<u64>,
    taken: usize,
    now: Time,
    /// Events before `now`: see [`Start::WhenCpuFree`].
    back: BinaryHeap<Reverse<Event>>,
    created: u64,
    states: Vec<State>,
    /// From when on each unit is free: the CPUs of all hosts, then the sending sides of all their
    /// interfaces, then the receiving sides.
    free: Vec<Time>,
    /// Whether events wait in lines. They do not where time may go back: then each has to be tried
    /// at the times at which LogGOPSim tries it.
    in_lines: bool,
    lines: Vec<Line>,
    matching: Matching,
    /// Operations that became ready in this event.
    freed: Vec<u32>,
    arrived: Vec<(Time, u32)>,
    done: usize,
    trail: Option<Trail>,
}

impl<'a, W: Wire> Machine<'a, W> {
    pub(super) fn new(
        schedule: &'a Schedule,
        hosts: &Hosts,
        wire: W,
        path: bool,
    ) -> Result<Self, RunError> {
        bounded("the overhead", hosts.overhead, MESSAGE_TIME_MAX)?;
        bounded("the overhead per byte", hosts.overhead_per_byte, BYTE_TIME_MAX)?;
        bounded("the gap", hosts.gap, MESSAGE_TIME_MAX)?;
        let (cpus, nics) = (schedule.cpus as usize, schedule.nics as usize);
        let ranks = schedule.ranks as usize;
        let units = ranks * (cpus + 2 * nics);
        let in_lines = hosts.start == Start::WhenEnded || cpus == 1;
        let lines = if in_lines { ranks * cpus * (1 + 2 * nics) } else { 0 };
        let count = schedule.operations.len();
        let state = |waits: &u32| State { ready: Time::ZERO, waits: *waits };
        Ok(Self {
            schedule,
            hosts: *hosts,
            wire,
            calendar: Calendar::new(Time((hosts.overhead + hosts.gap).0 / 128)),
            batch: Vec::new(),
            taken: 0,
            now: Time::ZERO,
            back: BinaryHeap::new(),
            created: 0,
            states: schedule.waits.iter().map(state).collect(),
            free: vec![Time::ZERO; units],
            in_lines,
            lines: vec![Line::default(); lines],
            matching: Matching::new(schedule),
            freed: Vec::new(),
            arrived: Vec::new(),
            done: 0,
            trail: path.then(|| Trail::new(count, units)),
        })
    }

    pub(super) fn run(&mut self) -> Result<(), RunError> {
        let schedule = self.schedule;
        for (first, end) in &schedule.of_rank {
            let free = (*first..*end).filter(|number| schedule.waits[*number as usize] == 0);
            self.freed.extend(free);
            self.begin_freed();
        }
        while let Some((what, at)) = self.next()? {
            self.act(what, at)?;
            self.begin_freed();
        }
        Ok(())
    }

    /// Takes the next event.
    #[inline]
    fn next(&mut self) -> Result<Option<(u64, Time)>, RunError> {
        if let Some(Reverse(event)) = self.back.pop() {
            return Ok(Some((event.what, event.at)));
        }
        if self.taken == self.batch.len() && !self.next_batch()? {
            return Ok(None);
        }
        self.taken += 1;
        Ok(Some((self.batch[self.taken - 1], self.now)))
    }

    /// Takes all events of the next time.
    fn next_batch(&mut self) -> Result<bool, RunError> {
        self.batch.clear();
        self.taken = 0;
        let at = loop {
            let at = self.calendar.next_time();
            self.wire.advance(at, &mut self.arrived)?;
            if self.arrived.is_empty() {
                break at;
            }
            let mut arrived = core::mem::take(&mut self.arrived);
            for (at, number) in arrived.drain(..) {
                self.create(at, number, ARRIVAL);
            }
            self.arrived = arrived;
        };
        let Some(at) = at else {
            return Ok(false);
        };
        self.now = at;
        while let Some(what) = self.calendar.take_at(at) {
            self.batch.push(what);
        }
        self.batch.sort_unstable();
        Ok(true)
    }

    /// Creates an event.
    #[inline]
    fn create(&mut self, at: Time, number: u32, kind: u64) {
        let what = self.created << 32 | u64::from(number) << 1 | kind;
        self.created += 1;
        self.insert(at, what);
    }

    #[inline]
    fn insert(&mut self, at: Time, what: u64) {
        if at > self.now {
            self.calendar.insert(Event { at, what });
        } else if at < self.now {
            self.back.push(Reverse(Event { at, what }));
        } else if self.batch.last().is_none_or(|last| *last < what) {
            self.batch.push(what);
        } else {
            let rest = &self.batch[self.taken..];
            let place = self.taken + rest.partition_point(|other| *other < what);
            self.batch.insert(place, what);
        }
    }

    fn act(&mut self, what: u64, now: Time) -> Result<(), RunError> {
        let number = number_of(what);
        let operation = &self.schedule.operations[number as usize];
        if now > END {
            return Err(RunError::TooLong { line: operation.line });
        }
        match (kind_of(what), operation.kind) {
            (OPERATION, Kind::Receive) => self.receive(number, now),
            (kind, _) => {
                let arrival = kind == ARRIVAL;
                let units = self.units(number, arrival);
                let line = self.line(number, arrival);
                let from = self.free_from(units);
                if from > now {
                    self.wait(line, what, from);
                    return Ok(());
                }
                self.trace_begin(number, arrival, units, now);
                match (arrival, operation.kind) {
                    (true, _) => self.arrive(number, units, now),
                    (false, Kind::Send) => self.send(number, units, now)?,
                    (false, _) => self.calc(number, units, now),
                }
                self.call_next(line, what, units, now);
            }
        }
        Ok(())
    }

    /// The units that an operation needs, or the arrival of its message: that takes the CPU and
    /// the interface of the numbers that the sender used, as in LogGOPSim.
    #[inline]
    fn units(&self, number: u32, arrival: bool) -> Units {
        let operation = &self.schedule.operations[number as usize];
        let (cpu, nic) = (usize::from(operation.cpu), usize::from(operation.nic));
        if arrival {
            let target = self.schedule.target(operation);
            return Units { cpu: self.cpu(target, cpu), side: Some(self.receiving(target, nic)) };
        }
        let side = (operation.kind == Kind::Send).then(|| self.sending(operation.rank, nic));
        Units { cpu: self.cpu(operation.rank, cpu), side }
    }

    #[inline]
    fn cpu(&self, rank: u32, cpu: usize) -> usize {
        rank as usize * self.schedule.cpus as usize + cpu
    }

    #[inline]
    fn sending(&self, rank: u32, nic: usize) -> usize {
        let (cpus, nics) = (self.schedule.cpus as usize, self.schedule.nics as usize);
        self.schedule.ranks as usize * cpus + rank as usize * nics + nic
    }

    #[inline]
    fn receiving(&self, rank: u32, nic: usize) -> usize {
        self.sending(rank, nic) + self.schedule.ranks as usize * self.schedule.nics as usize
    }

    #[inline]
    fn free_from(&self, units: Units) -> Time {
        let side = units.side.map_or(Time::ZERO, |side| self.free[side]);
        self.free[units.cpu].max(side)
    }

    /// The line of all that need the same units.
    #[inline]
    fn line(&self, number: u32, arrival: bool) -> usize {
        let operation = &self.schedule.operations[number as usize];
        let nics = self.schedule.nics as usize;
        let (cpu, nic) = (usize::from(operation.cpu), usize::from(operation.nic));
        let (rank, class) = match (arrival, operation.kind) {
            (true, _) => (self.schedule.target(operation), 1 + 2 * nic),
            (false, Kind::Send) => (operation.rank, 2 + 2 * nic),
            (false, _) => (operation.rank, 0),
        };
        self.cpu(rank, cpu) * (1 + 2 * nics) + class
    }

    /// An event waits for its units until `from` at least.
    fn wait(&mut self, line: usize, what: u64, from: Time) {
        if !self.in_lines {
            self.insert(from, what);
            return;
        }
        let line = &mut self.lines[line];
        match line.first {
            Some(first) if first < what => line.others.push(Reverse(what)),
            // An earlier first one keeps its event, and finds another one before itself then.
            _ => {
                line.first = Some(what);
                self.insert(from, what);
            }
        }
    }

    /// The next in a line gets an event when one of it had its turn.
    #[inline]
    fn call_next(&mut self, line: usize, what: u64, units: Units, now: Time) {
        if !self.in_lines || self.lines[line].first != Some(what) {
            return;
        }
        let place = &mut self.lines[line];
        place.first = place.others.pop().map(|Reverse(next)| next);
        if let Some(next) = place.first {
            let from = self.free_from(units).max(now);
            self.insert(from, next);
        }
    }

    fn calc(&mut self, number: u32, units: Units, now: Time) {
        let operation = &self.schedule.operations[number as usize];
        let end = now + Time(operation.size * 1_000);
        self.take(units, end, now, activity(number, false));
        self.start(number, now);
        self.end(number, end, activity(number, false));
    }

    fn send(&mut self, number: u32, units: Units, now: Time) -> Result<(), RunError> {
        let hosts = self.hosts;
        let operation = &self.schedule.operations[number as usize];
        let further = operation.size.max(1) - 1;
        let own = activity(number, false);
        let end = now + hosts.overhead + times(hosts.overhead_per_byte, further);
        let gap = hosts.gap + times(self.wire.gap_per_byte(), further);
        self.take(units, end, now + gap, own);
        self.start(number, now);
        if let Some(at) = self.wire.depart(now + hosts.overhead, number)? {
            self.create(at, number, ARRIVAL);
        }
        if let Some(trail) = &mut self.trail {
            trail.allow(activity(number, true), own);
        }
        if operation.size <= hosts.eager {
            self.end(number, end, own);
        }
        Ok(())
    }

    fn receive(&mut self, number: u32, now: Time) {
        let operation = &self.schedule.operations[number as usize];
        let own = activity(number, false);
        if let Some(trail) = &mut self.trail {
            let unit = operation.rank as usize * self.schedule.cpus as usize;
            let unit = unit + usize::from(operation.cpu);
            trail.begin(own, now, (self.free[unit] == now).then_some(unit));
        }
        self.start(number, now);
        if let Some(message) = self.matching.find(self.schedule, number) {
            let (cpu, nic) = (operation.cpu, operation.nic);
            self.end_rendezvous(message, (cpu.into(), nic.into()), now, own);
            self.end(number, now, own);
        }
    }

    /// A message arrives, and is received if somebody asked for it.
    fn arrive(&mut self, number: u32, units: Units, now: Time) {
        let hosts = self.hosts;
        let operation = &self.schedule.operations[number as usize];
        let further = operation.size.max(1) - 1;
        let own = activity(number, true);
        let per_byte = hosts.overhead_per_byte.max(self.wire.gap_per_byte());
        let end = now + hosts.overhead + times(per_byte, further);
        let gap = hosts.gap + times(self.wire.gap_per_byte(), further);
        self.take(units, end, now + gap, own);
        if let Some(receive) = self.matching.find(self.schedule, number) {
            let (cpu, nic) = (operation.cpu, operation.nic);
            self.end_rendezvous(number, (cpu.into(), nic.into()), now, own);
            self.end(receive, end, own);
        }
    }

    /// The send of a long message ends when that is received. The sender's units are not free
    /// before, as in LogGOPSim.
    fn end_rendezvous(&mut self, number: u32, units: (usize, usize), now: Time, cause: u32) {
        let operation = &self.schedule.operations[number as usize];
        if operation.size <= self.hosts.eager {
            return;
        }
        let (cpu, nic) = units;
        for unit in [self.cpu(operation.rank, cpu), self.sending(operation.rank, nic)] {
            if self.free[unit] < now {
                self.free[unit] = now;
                if let Some(trail) = &mut self.trail {
                    trail.hold(unit, cause);
                }
            }
        }
        self.end(number, now, cause);
    }

    /// An activity takes its units.
    #[inline]
    fn take(&mut self, units: Units, cpu_until: Time, side_until: Time, what: u32) {
        self.free[units.cpu] = cpu_until;
        if let Some(side) = units.side {
            self.free[side] = side_until;
        }
        if let Some(trail) = &mut self.trail {
            trail.hold(units.cpu, what);
            if let Some(side) = units.side {
                trail.hold(side, what);
            }
        }
    }

    /// An operation has begun.
    #[inline]
    fn start(&mut self, number: u32, now: Time) {
        for place in self.schedule.on_start.range(number) {
            self.meet(self.schedule.on_start.at(place), now, activity(number, false));
        }
    }

    /// An operation ends at `at`.
    #[inline]
    fn end(&mut self, number: u32, at: Time, cause: u32) {
        self.done += 1;
        self.states[number as usize].waits = DONE;
        for place in self.schedule.on_end.range(number) {
            self.meet(self.schedule.on_end.at(place), at, cause);
        }
    }

    /// A requirement of an operation is met at `at`.
    #[inline]
    fn meet(&mut self, number: u32, at: Time, cause: u32) {
        let state = &mut self.states[number as usize];
        state.waits -= 1;
        if at >= state.ready {
            state.ready = at;
            if let Some(trail) = &mut self.trail {
                trail.allow(activity(number, false), cause);
            }
        }
        if state.waits == 0 {
            self.freed.push(number);
        }
    }

    /// Operations that became ready get their events: by rank, then by kind, then in the order of
    /// becoming ready.
    #[inline]
    fn begin_freed(&mut self) {
        let schedule = self.schedule;
        let mut freed = core::mem::take(&mut self.freed);
        if freed.len() > 1 {
            freed.sort_by_key(|number| {
                let operation = &schedule.operations[*number as usize];
                (operation.rank, operation.kind)
            });
        }
        for number in freed.drain(..) {
            let mut at = self.free_from(self.units(number, false));
            if self.hosts.start == Start::WhenEnded {
                at = at.max(self.states[number as usize].ready);
            }
            self.create(at, number, OPERATION);
        }
        self.freed = freed;
    }

    fn trace_begin(&mut self, number: u32, arrival: bool, units: Units, now: Time) {
        if let Some(trail) = &mut self.trail {
            let freed = |unit: &usize| self.free[*unit] == now;
            let unit = Some(units.cpu).filter(freed).or_else(|| units.side.filter(freed));
            trail.begin(activity(number, arrival), now, unit);
        }
    }

    /// The result, if all operations are done and all messages received.
    pub(super) fn report(self) -> Result<Report, RunError> {
        let schedule = self.schedule;
        let at_fault = |number: usize| {
            let operation = &schedule.operations[number];
            (operation.line, operation.rank)
        };
        if self.done < schedule.operations.len() {
            let number = self.states.iter().position(|state| state.waits == 0).unwrap_or_default();
            let (line, rank) = at_fault(number);
            return Err(RunError::Stuck { line, rank });
        }
        if let Some(number) = self.matching.unreceived(schedule) {
            let (line, rank) = at_fault(number as usize);
            return Err(RunError::Unreceived { line, rank });
        }
        let cpus = schedule.cpus as usize;
        let of_rank = |cpus: &[Time]| cpus.iter().copied().max().unwrap_or_default();
        let all = &self.free[..schedule.ranks as usize * cpus];
        let last = (0..all.len()).rev().max_by_key(|cpu| all[*cpu]).unwrap_or_default();
        Ok(Report {
            finish: all.chunks(cpus).map(of_rank).collect(),
            events: self.created,
            path: self.trail.map_or_else(Vec::new, |trail| trail.path(schedule, last)),
        })
    }
}

/// The time of a number of bytes, each of which takes `each`: below 2^60 ps.
fn times(each: Time, bytes: u64) -> Time {
    Time(each.0 * bytes)
}
