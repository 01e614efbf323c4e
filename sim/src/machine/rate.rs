//! Rates of streams of items.
use super::{Course, Machine};
use crate::time::Time;

impl Machine {
    /// Items per second that end, if this number of items take the course and all are there at
    /// once. The second half is measured, for the first one fills the machine.
    ///
    /// # Panics
    /// If there are fewer than four items, or they do not all end.
    pub fn per_second(&mut self, course: Course, items: usize) -> f64 {
        assert!(items >= 4, "a rate needs a second half");
        let first = self.add(course, core::iter::repeat_n(Time::ZERO, items));
        self.run();
        let [begin, end] = [items / 2, items - 1].map(|item| self.passage(first + item).ended);
        (items - 1 - items / 2) as f64 * 1e12 / (end - begin).0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Part, Step};

    #[test]
    fn the_unit_that_is_held_longest_sets_the_rate() {
        const PART: Part = Part("part");
        let mut machine = Machine::default();
        let course = [30, 100, 20].map(|nanos| {
            Step::pipelined(PART, machine.unit(), Time::from_nanos(nanos), Time::from_nanos(500))
        });
        assert_eq!(machine.per_second(course.to_vec(), 1_000), 1e7);
    }

    #[test]
    fn a_unit_that_is_given_back_late_sets_the_rate_and_delays_nobody_alone() {
        const PART: Part = Part("part");
        let slow = || {
            let mut machine = Machine::default();
            let unit = machine.unit();
            let tail = Step::give_after(PART, unit, 1, Time::from_nanos(60));
            let pass = Step::delay(PART, Time::from_nanos(40));
            (machine, vec![Step::take(PART, unit, 1), pass, tail], unit)
        };
        let (mut machine, course, unit) = slow();
        let alone = machine.add(course, [Time::ZERO]);
        machine.run();
        assert_eq!(machine.passage(alone).time(), Time::from_nanos(40));
        assert_eq!(machine.kept(unit), 0);
        let (mut machine, course, _) = slow();
        assert_eq!(machine.per_second(course, 1_000), 1e7);
    }
}
