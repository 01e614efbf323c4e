//! Recordings: the times of a group's calls, and the load of its links meanwhile.
//!
//! A ring keeps the last calls. Its memory is allocated when the recording begins. A recording is
//! written as lines of columns, separated by tabs. `ayre study` reads the files of all members.
use crate::link::LinkLoad;
use ayre_proto::collective::{Collective, Schedule, Task};
use std::time::Instant;

/// Calls that a recorder keeps at most.
pub(super) const CALLS_MAX: usize = 1 << 24;

/// The load of the link from this member to another one during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkUse {
    /// Frames with a payload that the link sent during the call, for any user of the link.
    pub sent: u64,
    /// Frames that waited to be sent or acknowledged when the call began.
    pub waiting: u32,
    /// The smoothed round trip at the end of the call, in nanoseconds.
    pub round_trip_ns: u64,
}

/// A recorded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedCall<'a> {
    /// The number of the collective in its group, the same at all members.
    pub number: u32,
    /// The start of the call, in nanoseconds since the recording began.
    pub begin_ns: u64,
    /// The duration at this member, in nanoseconds.
    pub time_ns: u64,
    /// The collective.
    pub collective: Collective,
    /// The schedule by which it was done.
    pub schedule: Schedule,
    /// Bytes of the vector, or of a block.
    pub bytes: usize,
    /// The link to each member, in their order. The entries of this member and of those on this
    /// host are zero.
    pub links: &'a [LinkUse],
}

/// The last calls of a group.
#[derive(Debug)]
pub(super) struct Recorder {
    since: Instant,
    capacity: usize,
    /// The number of all noted calls.
    noted: usize,
    calls: Vec<Entry>,
    /// For each call, one entry for each member.
    links: Vec<LinkUse>,
    members: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u32,
    begin_ns: u64,
    time_ns: u64,
    task: Task,
    bytes: usize,
}

impl Recorder {
    pub(super) fn new(capacity: usize, members: usize, now: Instant) -> Self {
        assert!(0 < capacity && capacity <= CALLS_MAX, "a recording has some calls");
        Self {
            since: now,
            capacity,
            noted: 0,
            calls: Vec::with_capacity(capacity),
            links: vec![LinkUse::default(); capacity * members],
            members,
        }
    }

    /// Notes a call that has ended, with the loads of the links before and after it.
    // spec: COLL-18
    pub(super) fn note(
        &mut self,
        (number, (task, bytes)): (u32, (Task, usize)),
        (begin, end): (Instant, Instant),
        (before, after): (&[Option<LinkLoad>], &[Option<LinkLoad>]),
    ) {
        debug_assert!(begin <= end, "a call ends after it has begun");
        debug_assert!(before.len() == self.members, "there is a link to each member");
        debug_assert!(before.len() == after.len(), "the links are the same ones");
        debug_assert!(self.calls.len() == self.noted.min(self.capacity), "the last ones are kept");
        let place = self.noted % self.capacity;
        self.noted += 1;
        let begin_ns = (begin - self.since).as_nanos() as u64;
        let time_ns = (end - begin).as_nanos() as u64;
        let entry = Entry { number, begin_ns, time_ns, task, bytes };
        match self.calls.get_mut(place) {
            Some(old) => *old = entry,
            None => self.calls.push(entry),
        }
        let links = &mut self.links[place * self.members..][..self.members];
        for (link, loads) in links.iter_mut().zip(before.iter().zip(after)) {
            *link = match loads {
                (Some(before), Some(after)) => LinkUse {
                    sent: after.sent.saturating_sub(before.sent),
                    waiting: before.waiting,
                    round_trip_ns: after.round_trip_ns,
                },
                _ => LinkUse::default(),
            };
        }
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = RecordedCall<'_>> {
        let oldest = if self.noted > self.capacity { self.noted % self.capacity } else { 0 };
        let places = (oldest..self.calls.len()).chain(0..oldest);
        places.map(|place| {
            let Entry { number, begin_ns, time_ns, task, bytes } = self.calls[place];
            let Task { collective, schedule, .. } = task;
            let links = &self.links[place * self.members..][..self.members];
            RecordedCall { number, begin_ns, time_ns, collective, schedule, bytes, links }
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    const TASK: Task = Task { collective: Collective::Gather, schedule: Schedule::Tree, root: 1 };

    fn load(sent: u64, waiting: u32, round_trip_ns: u64) -> Option<LinkLoad> {
        Some(LinkLoad { sent, waiting, round_trip_ns, ..LinkLoad::default() })
    }

    /// Notes calls with these numbers. Each takes one microsecond and begins two behind the last.
    fn recorder(capacity: usize, numbers: std::ops::Range<u32>) -> Recorder {
        let mut recorder = Recorder::new(capacity, 2, Instant::now());
        for number in numbers {
            let begin = recorder.since + Duration::from_micros(u64::from(number) * 3);
            let of = (number, (TASK, number as usize * 10));
            let links = ([None, load(0, 0, 0)], [None, load(number.into(), 0, 0)]);
            recorder.note(of, (begin, begin + Duration::from_micros(1)), (&links.0, &links.1));
        }
        recorder
    }

    // spec: COLL-18
    #[test]
    fn the_last_calls_are_kept_in_their_order() {
        for count in 0..9 {
            let recorder = recorder(3, 0..count);
            let calls: Vec<_> = recorder.calls().collect();
            let numbers: Vec<_> = calls.iter().map(|call| call.number).collect();
            assert_eq!(numbers, (count.saturating_sub(3)..count).collect::<Vec<_>>());
            for call in calls {
                let number = u64::from(call.number);
                assert_eq!((call.begin_ns, call.time_ns), (number * 3000, 1000));
                assert_eq!(call.bytes, call.number as usize * 10);
                assert_eq!((call.collective, call.schedule), (TASK.collective, TASK.schedule));
                assert_eq!(call.links[1].sent, number, "what lies beside it is its own");
            }
        }
    }

    // spec: COLL-18
    #[test]
    fn a_call_records_the_traffic_of_its_links() {
        let mut recorder = Recorder::new(1, 3, Instant::now());
        let mut note = |before: [Option<LinkLoad>; 3], after: [Option<LinkLoad>; 3]| {
            let now = recorder.since;
            recorder.note((0, (TASK, 0)), (now, now), (&before, &after));
            recorder.calls().next().expect("it was noted").links.to_vec()
        };
        let of = |sent, waiting, round_trip_ns| LinkUse { sent, waiting, round_trip_ns };
        let found = note([None, load(5, 7, 100), load(9, 0, 0)], [None, load(8, 2, 300), None]);
        assert_eq!(found, [LinkUse::default(), of(3, 7, 300), LinkUse::default()]);
        // A link that was opened anew counts from nothing.
        let found = note([None, None, load(9, 1, 50)], [None, load(8, 2, 300), load(4, 0, 60)]);
        assert_eq!(found, [LinkUse::default(), LinkUse::default(), of(0, 1, 60)]);
    }
}
