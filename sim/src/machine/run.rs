//! Items pass through their units.
use super::{Course, Hold, Item, Machine, Part, Step, UnitId};
use crate::calendar::Event;
use crate::time::Time;

/// Kinds of events: an item comes to its next step, or servers of a unit are free: the kind is
/// [`FREE`] and their number.
const COME: u64 = 0;
const FREE: u64 = 1;

/// The way of an item from its begin to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it began.
    pub begun: Time,
    /// When it ended.
    pub ended: Time,
    /// The time that it waited for units.
    pub waited: Time,
    /// The time of each part in the order of its first step. With the wait they sum to the whole.
    pub parts: Vec<(Part, Time)>,
}

impl Passage {
    /// The time from begin to end.
    pub fn time(&self) -> Time {
        self.ended - self.begun
    }
}

/// How many steps of a course belong to a part.
pub fn visits(course: &[Step], part: Part) -> usize {
    course.iter().filter(|step| step.part == part).count()
}

impl Machine {
    /// Adds items that take the same course, beginning at these times. The result is the number of
    /// the first one.
    ///
    /// # Panics
    /// If a step needs more servers than its unit has.
    pub fn add(&mut self, course: Course, begins: impl IntoIterator<Item = Time>) -> usize {
        let has = |unit: UnitId| self.units[unit.0 as usize].servers;
        let possible = |step: &Step| step.unit.is_none_or(|unit| step.servers <= has(unit));
        assert!(course.iter().all(possible), "a unit has fewer servers than a step needs");
        let number = self.courses.len() as u32;
        let first = self.items.len();
        self.courses.push(course);
        for begun in begins {
            let item = self.items.len() as u32;
            self.items.push(Item {
                course: number,
                step: 0,
                begun,
                came: begun,
                waited: Time::ZERO,
                ended: None,
            });
            self.calendar.insert(Event { at: begun, what: COME << 32 | u64::from(item) });
        }
        first
    }

    /// Runs until nothing happens any more. Then all items have ended, but for those that wait for
    /// servers which nobody gives back.
    pub fn run(&mut self) {
        while let Some(now) = self.calendar.next_time() {
            while let Some(event) = self.calendar.take_at(now) {
                self.note(event, now);
            }
            // Of items that come at the same time, the one that was added first is first.
            let mut arrived = core::mem::take(&mut self.arrived);
            arrived.sort_unstable();
            for item in arrived.drain(..) {
                self.arrive(item, now);
            }
            self.arrived = arrived;
        }
    }

    /// Notes an event. Units are given to items when all events of this time are known.
    fn note(&mut self, event: u64, now: Time) {
        let about = event as u32;
        if event >> 32 == COME {
            self.items[about as usize].came = now;
            self.arrived.push(about);
            return;
        }
        // Those that wait had come before those that come now.
        self.free(UnitId(about), (event >> 32) as u32 - FREE as u32, now);
    }

    /// Servers of a unit are free again: the first that wait for it go on.
    fn free(&mut self, id: UnitId, servers: u32, now: Time) {
        let unit = &mut self.units[id.0 as usize];
        let left = unit.serving.checked_sub(servers).expect("given back once");
        unit.change(left, now);
        while let Some(&first) = self.units[id.0 as usize].waiting.front() {
            if !self.has_room(id, self.step(first).servers) {
                return;
            }
            self.units[id.0 as usize].waiting.pop_front();
            self.serve(first, now);
        }
    }

    fn has_room(&self, unit: UnitId, servers: u32) -> bool {
        let unit = &self.units[unit.0 as usize];
        unit.servers - unit.serving >= servers
    }

    /// The step that an item is at.
    fn step(&self, number: u32) -> Step {
        let item = &self.items[number as usize];
        self.courses[item.course as usize][item.step as usize]
    }

    /// An item is at its next step, or at the end of its course.
    fn arrive(&mut self, number: u32, now: Time) {
        let item = &mut self.items[number as usize];
        if item.step as usize == self.courses[item.course as usize].len() {
            item.ended = Some(now);
            return;
        }
        let step = self.step(number);
        let Some(unit) = step.unit else {
            self.stay(number, &step, now, None);
            return self.go_on(number, now, step.latency);
        };
        match step.hold {
            Hold::End => {
                self.leave(number, unit, now);
                self.free(unit, step.servers, now);
                self.go_on(number, now, step.latency);
            }
            Hold::EndAfter(time) => {
                self.leave(number, unit, now + time);
                self.free_at(unit, step.servers, now + time);
                self.go_on(number, now, step.latency);
            }
            Hold::For(_) | Hold::On => {
                let none_waits = self.units[unit.0 as usize].waiting.is_empty();
                if none_waits && self.has_room(unit, step.servers) {
                    self.serve(number, now);
                } else {
                    self.units[unit.0 as usize].waiting.push_back(number);
                }
            }
        }
    }

    /// A unit serves an item from now on.
    fn serve(&mut self, number: u32, now: Time) {
        let step = self.step(number);
        let item = &mut self.items[number as usize];
        item.waited += now - item.came;
        let free = if let Hold::For(hold) = step.hold { Some(now + hold) } else { None };
        self.stay(number, &step, now, free);
        if let Some(id) = step.unit {
            let unit = &mut self.units[id.0 as usize];
            unit.change(unit.serving + step.servers, now);
            if let Hold::For(hold) = step.hold {
                self.free_at(id, step.servers, now + hold);
            }
        }
        self.go_on(number, now, step.latency);
    }

    /// Servers of a unit will be free.
    fn free_at(&mut self, unit: UnitId, servers: u32, at: Time) {
        let free = FREE + u64::from(servers);
        self.calendar.insert(Event { at, what: free << 32 | u64::from(unit.0) });
    }

    fn go_on(&mut self, number: u32, now: Time, latency: Time) {
        self.items[number as usize].step += 1;
        self.calendar.insert(Event { at: now + latency, what: COME << 32 | u64::from(number) });
    }

    /// The way of an item that has ended.
    ///
    /// # Panics
    /// If there is no such item, or it has not ended.
    pub fn passage(&self, number: usize) -> Passage {
        let item = &self.items[number];
        let mut parts: Vec<(Part, Time)> = Vec::new();
        for step in &self.courses[item.course as usize] {
            match parts.iter_mut().find(|(part, _)| *part == step.part) {
                Some((_, time)) => *time += step.latency,
                None => parts.push((step.part, step.latency)),
            }
        }
        Passage {
            begun: item.begun,
            ended: item.ended.expect("the machine has run"),
            waited: item.waited,
            parts,
        }
    }
}
