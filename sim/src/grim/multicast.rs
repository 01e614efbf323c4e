//! Messages to a group: copies by interfaces along a tree, or one message for each host (8.1).
//!
//! ```text
//!   host 0 --> interface 0 --copy--> recycle queue --> interface 1 --copy--> ... --> interface 3
//!                                                 '--> interface 2             '--> interface 4
//! ```
//!
//! The interfaces form a binary tree in which numbers only grow, so that one recycle queue cannot
//! lock up (section 8.1.3). An interface copies a message within its memory, by its processor, and
//! sends it to its children one after the other. Each host answers host 0 by a message without a
//! payload.
//!
//! An item of the machine cannot become two. So a message that arrives gives *permits*, for which
//! the items behind it wait.
use super::HEADER;
use super::path::part;
use super::platform::Platform;
use crate::machine::{Course, Machine, Step, UnitId};
use crate::time::Time;

/// How a message comes to all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Interfaces copy it along the tree.
    Tree,
    /// The program injects it for each host.
    Repeated,
}

/// The times of a multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Until host 0 has injected all.
    pub injection: Time,
    /// Until host 0 has the answers of all others.
    pub round_trip: Time,
}

/// The units of a host with its interface.
struct Station {
    host: UnitId,
    processor: UnitId,
    link: UnitId,
    /// Memory for a message that arrives.
    room: UnitId,
    eject: UnitId,
}

/// A group of hosts, of which host 0 sends.
struct Group<'a> {
    platform: &'a Platform,
    machine: Machine,
    stations: Vec<Station>,
    /// Items that end with an answer at host 0.
    answers: Vec<usize>,
}

/// A message of this many bytes to a group of `hosts`, the sender included, in fragments.
///
/// # Panics
/// If there are fewer than two hosts.
pub fn run(platform: &Platform, spread: Spread, hosts: usize, fragments: &[u32]) -> Times {
    assert!(hosts >= 2, "nobody to send to");
    let mut machine = Machine::default();
    let station = |machine: &mut Machine| {
        let [host, processor, link, eject] = core::array::from_fn(|_| machine.unit());
        // One place is given back by the host's copy, the other one by the recycle queue's.
        Station { host, processor, link, eject, room: machine.units_of(2) }
    };
    let stations = (0..hosts).map(|_| station(&mut machine)).collect();
    let mut group = Group { platform, machine, stations, answers: Vec::new() };
    for (number, &bytes) in fragments.iter().enumerate() {
        let is_last = number + 1 == fragments.len();
        match spread {
            Spread::Tree => group.tree(bytes, is_last),
            Spread::Repeated => group.repeat(bytes, is_last),
        }
    }
    let done = vec![Step::serve(part::SOFTWARE, group.stations[0].host, Time::ZERO)];
    // It comes behind all that is there from the begin.
    let done = group.machine.add(done, [Time(1)]);
    group.machine.run();
    let ends = group.answers.iter().map(|&item| group.machine.passage(item).ended);
    Times {
        injection: group.machine.passage(done).ended,
        round_trip: ends.max().unwrap_or(Time::ZERO),
    }
}

/// The children of an interface in the tree of a group.
pub fn children(number: usize, hosts: usize) -> impl Iterator<Item = usize> {
    (2 * number + 1..=2 * number + 2).filter(move |&child| child < hosts)
}

impl Group<'_> {
    /// A number of permits, all kept by the item that is added next.
    fn permits(&mut self, count: usize) -> (UnitId, Step) {
        let unit = self.machine.units_of(count as u32);
        (unit, Step::take(part::SOFTWARE, unit, count as u32))
    }

    fn add(&mut self, course: Course) -> usize {
        self.machine.add(course, [Time::ZERO])
    }

    fn tree(&mut self, bytes: u32, is_last: bool) {
        let hosts = self.stations.len();
        let mut permits = Vec::new();
        for number in 0..hosts {
            let ahead = children(number, hosts).count();
            let (permit, taken) = self.permits(ahead.max(1));
            permits.push(permit);
            let copied = Step::give(part::SEND, permit, ahead as u32);
            if number == 0 {
                let mut course = vec![taken];
                course.extend(self.inject(0, bytes));
                course.push(self.recycle(0, bytes));
                course.push(copied);
                self.add(course);
                continue;
            }
            let (arrived, kept) = self.permits(2);
            let mut course = vec![kept];
            // The parent's item was added before, and has taken its permits.
            let parent = (number - 1) / 2;
            course.push(Step::take(part::SEND, permits[parent], 1));
            course.push(self.find(parent));
            course.extend(self.cross(parent, number, bytes));
            course.push(Step::give(part::RECEIVE, arrived, 2));
            self.add(course);
            self.deliver(number, bytes, Some(arrived), is_last);
            let mut course = vec![taken, Step::take(part::SEND, arrived, 1)];
            if ahead > 0 {
                course.push(self.recycle(number, bytes));
            }
            course.push(Step::give(part::SEND, self.stations[number].room, 1));
            course.push(copied);
            self.add(course);
        }
    }

    fn repeat(&mut self, bytes: u32, is_last: bool) {
        for number in 1..self.stations.len() {
            let mut course = self.inject(0, bytes);
            course.extend(self.cross(0, number, bytes));
            course.push(Step::give(part::RECEIVE, self.stations[number].room, 1));
            let (arrived, kept) = self.permits(1);
            course.insert(0, kept);
            course.push(Step::give(part::RECEIVE, arrived, 1));
            self.add(course);
            self.deliver(number, bytes, Some(arrived), is_last);
        }
    }

    /// Into the interface of a host, and found there.
    fn inject(&self, number: usize, bytes: u32) -> Course {
        let Platform { inject, software, .. } = self.platform;
        let time = *software + inject.best(bytes + HEADER).1;
        vec![Step::serve(part::INJECT, self.stations[number].host, time), self.find(number)]
    }

    /// The interface finds a message in its channels, of which one is the recycle queue.
    fn find(&self, number: usize) -> Step {
        let scan = self.platform.firmware.scan(self.platform.channels + 1);
        Step::serve(part::SEND, self.stations[number].processor, scan)
    }

    /// A copy into the queue of the interface from which it is sent on.
    fn recycle(&self, number: usize, bytes: u32) -> Step {
        let copy = self.platform.copy.span(bytes + HEADER);
        Step::serve(part::COPY, self.stations[number].processor, copy)
    }

    /// From one interface to another one.
    fn cross(&self, from: usize, to: usize, bytes: u32) -> Course {
        let firmware = &self.platform.firmware;
        let (source, target) = (&self.stations[from], &self.stations[to]);
        // Beside the transfer: the scoreboard, and the answer that will come.
        let busy = firmware.mark + firmware.record + firmware.decode;
        let receive = firmware.decode + firmware.checks + firmware.pointer + firmware.answer;
        vec![
            Step::pipelined(part::SEND, source.processor, busy, firmware.mark),
            Step::take(part::LINK, source.link, 1),
            Step::take(part::LINK, target.room, 2),
            Step::delay(part::LINK, self.platform.link.time(bytes + HEADER)),
            Step::give(part::LINK, source.link, 1),
            Step::pipelined(part::RECEIVE, target.processor, receive, firmware.decode),
        ]
    }

    /// To the host; after the last fragment the host answers.
    fn deliver(&mut self, number: usize, bytes: u32, arrived: Option<UnitId>, is_last: bool) {
        let mut course: Course =
            arrived.map(|arrived| Step::take(part::RECEIVE, arrived, 1)).into_iter().collect();
        course.extend(self.eject(number, bytes));
        if !is_last {
            self.add(course);
            return;
        }
        course.extend(self.inject(number, 0));
        course.extend(self.cross(number, 0, 0));
        course.push(Step::give(part::RECEIVE, self.stations[0].room, 1));
        course.extend(self.eject(0, 0));
        let answer = self.add(course);
        self.answers.push(answer);
    }

    fn eject(&self, number: usize, bytes: u32) -> Course {
        let station = &self.stations[number];
        vec![
            Step::serve(part::EJECT, station.eject, self.platform.eject.time(bytes + HEADER)),
            Step::give(part::EJECT, station.room, 1),
            Step::serve(part::NOTIFY, station.eject, self.platform.firmware.move_pointer),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_along_the_tree_and_each_host_has_one_parent() {
        for hosts in 2..40 {
            let mut all: Vec<_> = (0..hosts)
                .flat_map(|number| {
                    children(number, hosts).inspect(move |&child| assert!(child > number))
                })
                .collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(1..hosts));
        }
    }

    #[test]
    fn to_one_host_the_tree_costs_a_copy_and_a_scan_more() {
        let platform = Platform::p4_lanai4();
        for bytes in [0, 1000, 16_384] {
            let time = |spread| run(&platform, spread, 2, &[bytes]);
            let (tree, single) = (time(Spread::Tree), time(Spread::Repeated));
            let copy = platform.copy.span(bytes + HEADER);
            let scan = platform.firmware.scan(platform.channels + 1);
            assert_eq!(tree.round_trip, single.round_trip + copy + scan);
            assert_eq!(tree.injection, single.injection);
        }
    }

    #[test]
    fn repeated_messages_are_injected_one_after_the_other() {
        let platform = Platform::p4_lanai4();
        let one = run(&platform, Spread::Repeated, 2, &[4096]).injection;
        let seven = run(&platform, Spread::Repeated, 8, &[4096]).injection;
        assert_eq!(seven, Time(7 * one.0));
        assert_eq!(run(&platform, Spread::Tree, 8, &[4096]).injection, one);
    }
}
