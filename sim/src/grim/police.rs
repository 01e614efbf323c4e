//! Bursts of messages without a payload, and limits on those under way (section 4.2.4).
//!
//! ```text
//!   host --> place --> interface --> link --> interface --> host
//!             ^                                               | returns it
//!             '------- given back <-- interface <-- link <----'
//! ```
//!
//! A host injects a burst, and the other host returns each message. A message needs a place. It is
//! the limit's, and given back when the message has returned. Or it is one in the queue of the
//! interface, and given back when the receiver's interface has accepted the message.
use super::HEADER;
use super::platform::Platform;
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::Time;

/// A store of the processor that the program waits for (section 5.2.1).
pub const STORE: Time = Time::from_nanos(2_000);

const OUT: Part = Part("out");
const BACK: Part = Part("back");

/// A limit on messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Messages that have not returned.
    Returned(u32),
    /// Messages in the queue of the sender's interface.
    Queued(u32),
}

/// The units at both ends.
struct Units {
    hosts: [UnitId; 2],
    processors: [UnitId; 2],
    links: [UnitId; 2],
    places: UnitId,
}

/// A host's time to inject a message without a payload: its header, and a store that tells of it.
pub fn injection(platform: &Platform) -> Time {
    platform.inject.best(HEADER).1 + STORE
}

/// The time of a message in the sender's processor, and in the receiver's.
pub fn processing(platform: &Platform) -> (Time, Time) {
    let firmware = &platform.firmware;
    // The answer is decoded as any message.
    let send = firmware.scan(platform.channels) + firmware.mark + firmware.record + firmware.decode;
    (send, firmware.decode + firmware.checks + firmware.pointer + firmware.answer)
}

/// The mean time in which the host injects a message of a burst.
pub fn mean_cost(platform: &Platform, limit: Limit, burst: u32) -> Time {
    let mut machine = Machine::default();
    let (Limit::Returned(places) | Limit::Queued(places)) = limit;
    let two = |machine: &mut Machine| [machine.unit(), machine.unit()];
    let units = Units {
        hosts: two(&mut machine),
        processors: two(&mut machine),
        links: two(&mut machine),
        places: machine.units_of(places.max(1)),
    };
    let course = course(platform, &units, limit);
    machine.add(course, core::iter::repeat_n(Time::ZERO, burst as usize));
    // The host is free when it has injected all.
    let last = machine.add(vec![Step::serve(OUT, units.hosts[0], Time::ZERO)], [Time::ZERO]);
    machine.run();
    Time(machine.passage(last).time().0 / u64::from(burst.max(1)))
}

fn course(platform: &Platform, units: &Units, limit: Limit) -> Course {
    let give = Step::give(OUT, units.places, 1);
    let mut course = vec![
        Step::take(OUT, units.hosts[0], 1),
        Step::take(OUT, units.places, 1),
        Step::delay(OUT, injection(platform)),
        Step::give(OUT, units.hosts[0], 1),
    ];
    course.extend(cross(platform, units, 0, OUT));
    if let Limit::Queued(_) = limit {
        course.push(give);
    }
    course.push(Step::serve(BACK, units.hosts[1], injection(platform)));
    course.extend(cross(platform, units, 1, BACK));
    if let Limit::Returned(_) = limit {
        course.push(give);
    }
    course
}

/// From one interface to the other and to its host.
fn cross(platform: &Platform, units: &Units, from: usize, part: Part) -> Course {
    let (send, receive) = processing(platform);
    let told = platform.eject.time(HEADER) + platform.firmware.move_pointer;
    vec![
        Step::serve(part, units.processors[from], send),
        Step::serve(part, units.links[from], platform.link.time(HEADER)),
        Step::serve(part, units.processors[1 - from], receive),
        Step::delay(part, told),
    ]
}

/// The largest burst of which no message waits for a place, up to `most`.
pub fn knee(platform: &Platform, limit: Limit, most: u32) -> u32 {
    let free = injection(platform);
    let (mut below, mut above) = (1, most + 1);
    while above - below > 1 {
        let middle = u32::midpoint(below, above);
        if mean_cost(platform, limit, middle) <= free { below = middle } else { above = middle }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_the_limit_nothing_waits() {
        let platform = Platform::p3_lanai4();
        for limit in [1, 4, 9, 32] {
            let cost = |burst| mean_cost(&platform, Limit::Returned(limit), burst);
            assert_eq!(cost(limit), injection(&platform));
        }
    }

    #[test]
    fn a_long_burst_goes_at_the_pace_of_the_busiest_processor() {
        let platform = Platform::p3_lanai4();
        let (send, receive) = processing(&platform);
        let pace = (send + receive).0 as f64;
        let cost = mean_cost(&platform, Limit::Returned(64), 20_000).0 as f64;
        assert!((cost / pace - 1.0).abs() < 0.01, "{cost} of {pace}");
    }

    #[test]
    fn a_limit_of_one_is_a_round_trip_for_each_message() {
        let platform = Platform::p3_lanai4();
        let (send, receive) = processing(&platform);
        let told = platform.eject.time(HEADER) + platform.firmware.move_pointer;
        let way = send + platform.link.time(HEADER) + receive + told;
        let round_trip = injection(&platform) + way + injection(&platform) + way;
        let cost = mean_cost(&platform, Limit::Returned(1), 1_001);
        assert!(cost.0.abs_diff(round_trip.0) < round_trip.0 / 900);
    }
}
