//! Machines of units: each step of each item comes and begins when the reference says.
use ayre_sim::machine::{Hold, Machine, Part, Step, UnitId};
use ayre_sim::time::Time;
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Debug, Default)]
struct Unit {
    servers: u32,
    kept: u32,
    /// Items that wait, in order of arrival.
    waiting: Vec<usize>,
    /// Servers that will fall free, and when.
    returns: Vec<(u64, u32)>,
    /// Servers that were kept, summed over ticks; and up to the last change.
    sum: u64,
    busy: u64,
}

#[derive(Debug)]
struct Item {
    course: Vec<Step>,
    step: usize,
    /// When it comes to its step; nothing while it waits, or when it has ended.
    due: Option<u64>,
    came: u64,
    ended: Option<u64>,
}

/// A step that an item waits for or stays at: the item, its unit, and when it comes, begins and
/// goes on.
type Stay = (usize, Option<UnitId>, [u64; 3]);

#[derive(Debug, Default)]
struct Reference {
    units: Vec<Unit>,
    place: HashMap<UnitId, usize>,
    items: Vec<Item>,
    stays: Vec<Stay>,
}

impl Reference {
    /// All of a time, in rounds: servers fall free, and then items come to their steps.
    fn tick(&mut self, now: u64) {
        loop {
            while (0..self.units.len()).any(|unit| self.fall_free(unit, now)) {}
            let is_here = |item: &usize| self.items[*item].due == Some(now);
            let here: Vec<_> = (0..self.items.len()).filter(is_here).collect();
            if here.is_empty() {
                break;
            }
            here.into_iter().for_each(|item| self.come(item, now));
        }
        for unit in &mut self.units {
            unit.sum += u64::from(unit.kept);
        }
    }

    /// Servers that fall free now do so. False if there are none.
    fn fall_free(&mut self, unit: usize, now: u64) -> bool {
        let returns = &mut self.units[unit].returns;
        let Some(first) = returns.iter().position(|(at, _)| *at == now) else { return false };
        let (_, servers) = returns.remove(first);
        self.give(unit, servers, now);
        true
    }

    /// Servers are free: those that wait have them in order.
    fn give(&mut self, unit: usize, servers: u32, now: u64) {
        self.change(unit, -i64::from(servers));
        while let Some(&first) = self.units[unit].waiting.first() {
            let step = self.items[first].course[self.items[first].step];
            let Unit { servers, kept, .. } = self.units[unit];
            if kept + step.servers > servers {
                return;
            }
            self.units[unit].waiting.remove(0);
            self.begin(first, now);
        }
    }

    fn change(&mut self, unit: usize, servers: i64) {
        let unit = &mut self.units[unit];
        unit.busy = unit.sum;
        unit.kept = u32::try_from(i64::from(unit.kept) + servers).unwrap();
    }

    /// An item comes to its step.
    fn come(&mut self, number: usize, now: u64) {
        let item = &mut self.items[number];
        (item.due, item.came) = (None, now);
        let Some(&step) = item.course.get(item.step) else {
            item.ended = Some(now);
            return;
        };
        let Some(unit) = step.unit.map(|unit| self.place[&unit]) else {
            return self.begin(number, now);
        };
        match step.hold {
            Hold::End => {
                self.give(unit, step.servers, now);
                self.begin(number, now);
            }
            Hold::EndAfter(time) => {
                self.units[unit].returns.push((now + time.0, step.servers));
                self.begin(number, now);
            }
            Hold::For(_) | Hold::On => {
                let Unit { servers, kept, waiting, .. } = &mut self.units[unit];
                if waiting.is_empty() && *kept + step.servers <= *servers {
                    self.begin(number, now);
                } else {
                    waiting.push(number);
                }
            }
        }
    }

    /// An item has what its step needs. It goes on when the latency has passed.
    fn begin(&mut self, number: usize, now: u64) {
        let item = &mut self.items[number];
        let step = item.course[item.step];
        let goes_on = now + step.latency.0;
        item.step += 1;
        item.due = Some(goes_on);
        if !matches!(step.hold, Hold::For(_) | Hold::On) {
            return;
        }
        self.stays.push((number, step.unit, [item.came, now, goes_on]));
        if let Some(unit) = step.unit {
            let unit = self.place[&unit];
            self.change(unit, step.servers.into());
            if let Hold::For(time) = step.hold {
                self.units[unit].returns.push((now + time.0, step.servers));
            }
        }
    }

    /// Runs until nothing is left to happen.
    fn run(&mut self) {
        let mut now = 0;
        while self.items.iter().any(|item| item.due.is_some())
            || self.units.iter().any(|unit| !unit.returns.is_empty())
        {
            self.tick(now);
            now += 1;
        }
        self.stays.sort_by_key(|(item, _, times)| (*item, *times));
    }
}

/// An act of an item, before its unit and servers are known.
#[derive(Clone, Copy, Debug)]
enum Act {
    Delay(u64),
    Serve {
        unit: usize,
        servers: u32,
        hold: u64,
        latency: u64,
    },
    Take {
        unit: usize,
        servers: u32,
    },
    /// Gives back what was taken: which of it, and after which time.
    Give {
        which: usize,
        after: Option<u64>,
    },
    /// Gives back a server that another item has taken.
    Repay,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u64..6).prop_map(Act::Delay),
        (any::<usize>(), any::<u32>(), 0_u64..6, 0_u64..6)
            .prop_map(|(unit, servers, hold, latency)| Act::Serve { unit, servers, hold, latency }),
        (any::<usize>(), any::<u32>()).prop_map(|(unit, servers)| Act::Take { unit, servers }),
        (any::<usize>(), prop::option::of(0_u64..6))
            .prop_map(|(which, after)| Act::Give { which, after }),
        Just(Act::Repay),
    ]
}

/// Units, and items that take and give, each with the times at which it begins.
#[derive(Clone, Debug)]
struct Case {
    servers: Vec<u32>,
    /// Servers of one more unit, all of which the first item takes. Others give them back.
    lent: u32,
    items: Vec<(Vec<u64>, Vec<Act>)>,
    /// Whether items give back at their end what they still have.
    is_tidy: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let item = (prop::collection::vec(0_u64..12, 1..4), prop::collection::vec(acts(), 0..8));
    let items = prop::collection::vec(item, 1..7);
    (prop::collection::vec(1_u32..4, 1..4), 1_u32..4, items, any::<bool>())
        .prop_map(|(servers, lent, items, is_tidy)| Case { servers, lent, items, is_tidy })
}

const PART: Part = Part("part");

/// The course of an item. Of `lent` servers it gives back as many as there are.
fn course(case: &Case, units: &[UnitId], acts: &[Act], times: u32, lent: &mut u32) -> Vec<Step> {
    let loan = units.len() - 1;
    let size = |unit: usize| case.servers.get(unit).copied().unwrap_or(case.lent);
    let mut taken = Vec::new();
    let mut course = Vec::new();
    for &act in acts {
        course.push(match act {
            Act::Delay(latency) => Step::delay(PART, Time(latency)),
            Act::Serve { unit, servers, hold, latency } => {
                let unit = unit % units.len();
                let step = Step::pipelined(PART, units[unit], Time(hold), Time(latency));
                Step { servers: 1 + servers % size(unit), ..step }
            }
            Act::Take { unit, servers } => {
                let unit = unit % units.len();
                let servers = 1 + servers % size(unit);
                taken.push((units[unit], servers));
                Step::take(PART, units[unit], servers)
            }
            Act::Give { .. } if taken.is_empty() => continue,
            Act::Give { which, after } => {
                let (unit, servers) = taken.swap_remove(which % taken.len());
                match after {
                    Some(time) => Step::give_after(PART, unit, servers, Time(time)),
                    None => Step::give(PART, unit, servers),
                }
            }
            Act::Repay if *lent < times => continue,
            Act::Repay => {
                *lent -= times;
                Step::give(PART, units[loan], 1)
            }
        });
    }
    if case.is_tidy {
        course.extend(taken.into_iter().map(|(unit, servers)| Step::give(PART, unit, servers)));
    }
    course
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn each_step_comes_and_begins_when_the_reference_says(case in cases()) {
        let mut machine = Machine::default();
        machine.record();
        let mut reference = Reference::default();
        let units: Vec<_> = case
            .servers
            .iter()
            .chain([&case.lent])
            .map(|&servers| {
                let unit = machine.units_of(servers);
                reference.place.insert(unit, reference.units.len());
                reference.units.push(Unit { servers, ..Unit::default() });
                unit
            })
            .collect();
        let mut add = |course: Vec<Step>, begins: &[u64]| {
            machine.add(course.clone(), begins.iter().copied().map(Time));
            let item = |at| {
                let course = course.clone();
                Item { course, step: 0, due: Some(at), came: 0, ended: None }
            };
            reference.items.extend(begins.iter().copied().map(item));
        };
        add(vec![Step::take(PART, units[units.len() - 1], case.lent)], &[0]);
        let mut lent = case.lent;
        for (begins, acts) in &case.items {
            add(course(&case, &units, acts, begins.len() as u32, &mut lent), begins);
        }
        machine.run();
        reference.run();
        let stay = |stay: &ayre_sim::machine::Stay| {
            (stay.item, stay.unit, [stay.came, stay.begun, stay.goes_on].map(|time| time.0))
        };
        let mut stays: Vec<_> = machine.stays().iter().map(stay).collect();
        // Steps of one item that take no time stay in their order.
        stays.sort_by_key(|(item, _, times)| (*item, *times));
        prop_assert_eq!(stays, reference.stays);
        for (number, item) in reference.items.iter().enumerate() {
            if let Some(ended) = item.ended {
                prop_assert_eq!(machine.passage(number).ended.0, ended);
            }
        }
        for (id, unit) in units.iter().zip(&reference.units) {
            prop_assert_eq!((machine.busy(*id).0, machine.kept(*id)), (unit.busy, unit.kept));
        }
    }
}
