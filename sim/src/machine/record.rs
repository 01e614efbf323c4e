//! A record of all stays of items at their steps, and the names of units, for drawings.
use super::{Machine, Part, Step, UnitId};
use crate::time::Time;

/// The stay of an item at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The number of the item.
    pub item: usize,
    /// The part of its time.
    pub part: Part,
    /// The unit, if there is one.
    pub unit: Option<UnitId>,
    /// When it came to the step: until `begun`, it waits.
    pub came: Time,
    /// When the unit took it.
    pub begun: Time,
    /// When it goes on.
    pub goes_on: Time,
    /// When the unit is free of it; nothing, if it never is.
    pub free: Option<Time>,
}

/// The name of a unit: where it is, and what it is.
pub type Label = (&'static str, &'static str);

impl Machine {
    /// Adds a unit that serves one item at a time, with its name.
    pub fn named(&mut self, place: &'static str, name: &'static str) -> UnitId {
        self.named_of(place, name, 1)
    }

    /// Adds a unit of `servers` servers, with its name.
    pub fn named_of(&mut self, place: &'static str, name: &'static str, servers: u32) -> UnitId {
        let id = self.units_of(servers);
        self.units[id.0 as usize].label = (place, name);
        id
    }

    /// The units, each with its name and its servers.
    pub fn labels(&self) -> impl Iterator<Item = (UnitId, Label, u32)> {
        (0..).zip(&self.units).map(|(number, unit)| (UnitId(number), unit.label, unit.servers))
    }

    /// Keeps all stays from now on.
    pub fn record(&mut self) {
        self.stays = Some(Vec::new());
    }

    /// The stays that were kept, in the order in which they began.
    pub fn stays(&self) -> &[Stay] {
        self.stays.as_deref().unwrap_or_default()
    }

    /// An item begins its step, for which its unit is kept until `free`.
    pub(super) fn stay(&mut self, item: u32, step: &Step, now: Time, free: Option<Time>) {
        let came = self.items[item as usize].came;
        let Some(stays) = &mut self.stays else { return };
        stays.push(Stay {
            item: item as usize,
            part: step.part,
            unit: step.unit,
            came,
            begun: now,
            goes_on: now + step.latency,
            free,
        });
    }

    /// An item gives a unit back: what it took itself, or what was taken first.
    pub(super) fn leave(&mut self, item: u32, unit: UnitId, free: Time) {
        let stays = self.stays.as_deref_mut().unwrap_or_default();
        let open = |stay: &Stay| stay.unit == Some(unit) && stay.free.is_none();
        let own = stays.iter().position(|stay| open(stay) && stay.item == item as usize);
        if let Some(at) = own.or_else(|| stays.iter().position(open)) {
            stays[at].free = Some(free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part("part");

    #[test]
    fn the_stays_of_an_item_follow_each_other_and_fill_its_time() {
        let mut machine = Machine::default();
        let (one, tags) = (machine.named("here", "one"), machine.named_of("here", "tags", 2));
        let course = vec![
            Step::take(PART, tags, 1),
            Step::pipelined(PART, one, Time(50), Time(20)),
            Step::delay(PART, Time(30)),
            Step::give_after(PART, tags, 1, Time(7)),
        ];
        machine.record();
        let first = machine.add(course, [Time::ZERO; 3]);
        machine.run();
        for item in first..first + 3 {
            let passage = machine.passage(item);
            let stays: Vec<_> = machine.stays().iter().filter(|stay| stay.item == item).collect();
            assert_eq!((stays[0].came, stays[2].goes_on), (passage.begun, passage.ended));
            assert!(stays.windows(2).all(|pair| pair[0].goes_on == pair[1].came));
            let waited: u64 = stays.iter().map(|stay| (stay.begun - stay.came).0).sum();
            assert_eq!(Time(waited), passage.waited);
            assert_eq!(stays[0].free, Some(passage.ended + Time(7)));
        }
        let busy: u64 = machine
            .stays()
            .iter()
            .filter(|stay| stay.unit == Some(one))
            .map(|stay| (stay.free.unwrap() - stay.begun).0)
            .sum();
        assert_eq!(Time(busy), machine.busy(one));
    }
}
