//! Items pass through their units.
use super::{Course, Item, Machine, Part, Step};
use crate::calendar::Event;
use crate::time::Time;

/// Kinds of events: an item comes to its next step, or a unit has served one.
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
    pub fn add(&mut self, course: Course, begins: impl IntoIterator<Item = Time>) -> usize {
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

    /// Runs until all items have ended.
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
        let unit = &mut self.units[about as usize];
        unit.serving -= 1;
        // It had come before those that come now.
        if let Some(next) = unit.waiting.pop_front() {
            self.serve(next, now);
        }
    }

    /// An item is at its next step, or at the end of its course.
    fn arrive(&mut self, number: u32, now: Time) {
        let item = &mut self.items[number as usize];
        let Some(step) = self.courses[item.course as usize].get(item.step as usize) else {
            item.ended = Some(now);
            return;
        };
        match step.unit {
            Some(unit) => {
                let unit = &mut self.units[unit.0 as usize];
                if unit.serving == unit.servers {
                    unit.waiting.push_back(number);
                } else {
                    self.serve(number, now);
                }
            }
            None => self.go_on(number, now, step.latency),
        }
    }

    /// A unit serves an item from now on.
    fn serve(&mut self, number: u32, now: Time) {
        let item = &mut self.items[number as usize];
        let step = self.courses[item.course as usize][item.step as usize];
        item.waited += now - item.came;
        if let Some(unit) = step.unit {
            let state = &mut self.units[unit.0 as usize];
            state.serving += 1;
            state.busy += step.hold;
            self.calendar
                .insert(Event { at: now + step.hold, what: FREE << 32 | u64::from(unit.0) });
        }
        self.go_on(number, now, step.latency);
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
