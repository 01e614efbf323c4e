//! Address translation: the ATU, and the ways that the thesis compares it with (section 5.2).
//!
//! ```text
//!   unit --ATS channel--> request FIFO -> TLB ---hit----------------> responder --channel--> unit
//!                                          '-miss-> read of a table --> reorder ---^
//! ```
use super::part;
use crate::host::Host;
use crate::machine::{Course, Machine, Step, UnitId};
use crate::random::Random;
use crate::time::{Clock, Time};

/// Cycles from a request to its response if the TLB has the entry (table 5-8).
pub const HIT: u64 = 9;
/// Cycles from a request to the read of the table (table 5-8).
pub const TO_READ: u64 = 11;
/// Cycles from the table's entry to the response (table 5-8).
pub const FROM_READ: u64 = 9;
/// Cycles of an invalidation in the ATU: to the units, and back (table 5-8).
pub const INVALIDATION: [u64; 2] = [4, 3];
/// A packet passes the channel of translations every second cycle (section 5.2.9).
pub const CYCLES_PER_PACKET: u64 = 2;
/// Cycles of a packet on its way over that channel. Reconstructed: one at least.
const PACKET: u64 = 1;

/// A way of translating the addresses of an operation (section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An interrupt for each address (section 5.2.1).
    Interrupt,
    /// By the kernel before the command is issued, by a flat table of registered memory (5.2.2).
    FlatTable,
    /// By the kernel before the command is issued, by a walk of the page table (5.2.2).
    Walk,
    /// By a TLB that software fills when it is interrupted (5.2.3).
    ManagedTlb {
        /// Whether a flat table has the address, so that no page table is walked.
        registered: bool,
    },
    /// By a TLB that software fills, and that chooses the entry itself (5.2.4).
    AutonomousTlb,
    /// By a walk of all levels of the page table by the device (5.2.5).
    FullWalk {
        /// Levels, of which the first finds the process.
        levels: u64,
    },
    /// By a read of a table of one level: what was built (5.2.6).
    ReducedWalk,
}

/// A walk of four levels that all miss the cache, by a handler of an interrupt (section 5.2.3).
const LONG_WALK: Time = Time::from_nanos(500);
/// Choice of an entry of the TLB, if it needs an access to the device (section 5.2.3).
const LONG_CHOICE: Time = Time::from_nanos(200);

impl Way {
    /// All of them, in the order of section 5.2.
    pub const ALL: [Self; 8] = [
        Self::Interrupt,
        Self::FlatTable,
        Self::Walk,
        Self::ManagedTlb { registered: false },
        Self::ManagedTlb { registered: true },
        Self::AutonomousTlb,
        Self::FullWalk { levels: 5 },
        Self::ReducedWalk,
    ];

    /// Least and most time of this number of translations, one after the other, which no TLB has.
    pub fn miss(self, host: &Host, addresses: u64) -> (Time, Time) {
        let times = |time: Time| Time(time.0 * addresses);
        let same = |time| (time, time);
        // The entry is written with one transaction, or with two.
        let entry = (host.to_device, host.to_device + host.to_device);
        match self {
            Self::Interrupt => {
                let rest = host.interrupt + host.to_device;
                (times(rest + host.walk.0), times(rest + host.walk.1))
            }
            Self::FlatTable => same(host.system_call + times(host.memory)),
            Self::Walk => {
                (host.system_call + times(host.walk.0), host.system_call + times(host.walk.1))
            }
            Self::ManagedTlb { registered } => {
                let (least, most) =
                    if registered { same(host.memory) } else { (host.walk.0, LONG_WALK) };
                (
                    times(host.interrupt + least + host.cache + entry.0),
                    times(host.interrupt + most + LONG_CHOICE + entry.1),
                )
            }
            Self::AutonomousTlb => (
                times(host.interrupt + host.walk.0 + entry.0),
                times(host.interrupt + LONG_WALK + entry.1),
            ),
            Self::FullWalk { levels } => same(times(Time(host.device_read.0 * levels))),
            Self::ReducedWalk => same(times(host.device_read)),
        }
    }

    /// The time of a translation that a TLB has, where there is one.
    pub fn hit(self, clock: Clock) -> Option<Time> {
        let has_tlb = !matches!(self, Self::Interrupt | Self::FlatTable | Self::Walk);
        has_tlb.then(|| clock.span(HIT))
    }
}

/// Registering a page for a flat table (section 5.2.2), whose walk takes `walk`.
pub fn register(host: &Host, walk: Time) -> Time {
    host.system_call + walk + host.memory
}

/// Deregistering a page.
pub fn deregister(host: &Host) -> Time {
    host.system_call + host.unpin + host.memory
}

/// Registering this number of pages in one call: each is pinned, and its entry written. A walk
/// takes any time between its bounds.
pub fn register_pages(host: &Host, pages: u64, random: &mut Random) -> Time {
    let spread = (host.walk.1 - host.walk.0).0 as f64;
    let page = |random: &mut Random| Time((spread * random.unit()) as u64) + host.walk.0;
    (0..pages).fold(host.system_call, |time, _| time + page(random) + host.memory)
}

/// Deregistering this number of pages in one call (section 5.3). The entry is cleared, the register
/// of flushes written, and read until no unit uses the page. Then it is unpinned.
pub fn deregister_pages(host: &Host, clock: Clock, pages: u64) -> Time {
    let poll = host.to_device + host.to_device;
    let flush = host.to_device + clock.span(INVALIDATION[0] + INVALIDATION[1] + 2 * PACKET) + poll;
    let page = host.memory + flush + host.unpin;
    host.system_call + Time(page.0 * pages)
}

/// The ATU in a machine: its channel, its TLB and its reads.
#[derive(Clone, Copy, Debug)]
pub struct Atu {
    clock: Clock,
    /// A read of the table.
    read: Time,
    request: UnitId,
    reads: UnitId,
    response: UnitId,
}

impl Atu {
    /// Adds an ATU whose reads of the table take `read`, of which `reads` may be under way.
    pub fn new(machine: &mut Machine, clock: Clock, read: Time, reads: u32) -> Self {
        let [request, response] = core::array::from_fn(|_| machine.unit());
        Self { clock, read, request, reads: machine.units_of(reads), response }
    }

    fn channel(&self, channel: UnitId) -> Step {
        let (hold, time) = (self.clock.span(CYCLES_PER_PACKET), self.clock.span(PACKET));
        Step::pipelined(part::TRANSLATION, channel, hold, time)
    }

    /// A translation, from a unit's request to the unit's response.
    pub fn translate(&self, hits: bool) -> Course {
        let cycles = |cycles| Step::delay(part::TRANSLATION, self.clock.span(cycles));
        let inside = if hits {
            vec![cycles(HIT)]
        } else {
            let read = Step::serve(part::TRANSLATION, self.reads, self.read);
            vec![cycles(TO_READ), read, cycles(FROM_READ)]
        };
        [vec![self.channel(self.request)], inside, vec![self.channel(self.response)]].concat()
    }

    /// The flush of an entry, from the ATU to the units and back.
    pub fn flush(&self) -> Course {
        vec![self.channel(self.response), self.channel(self.request)]
    }
}

/// Items that a rate is measured with.
const MANY: usize = 1_000;

/// Translations per second of a unit that has `in_flight` of them under way.
pub fn rate(clock: Clock, read: Time, in_flight: u32, hits: bool) -> f64 {
    let mut machine = Machine::default();
    let atu = Atu::new(&mut machine, clock, read, in_flight);
    let unit = machine.units_of(in_flight);
    let mut course = vec![Step::take(part::UNIT, unit, 1)];
    course.extend(atu.translate(hits));
    course.push(Step::give(part::UNIT, unit, 1));
    machine.per_second(course, MANY)
}

/// Flushes per second.
pub fn flushes(clock: Clock) -> f64 {
    let mut machine = Machine::default();
    let course = Atu::new(&mut machine, clock, Time::ZERO, 1).flush();
    machine.per_second(course, MANY)
}

/// A translation that misses, from the ATU's request to its response: one read of the table, which
/// takes `read`.
pub fn miss(clock: Clock, read: Time) -> Time {
    clock.span(TO_READ) + read + clock.span(FROM_READ)
}

/// Translations per second that the channel can carry.
pub fn ceiling(clock: Clock) -> f64 {
    1e12 / clock.span(CYCLES_PER_PACKET).0 as f64
}

/// Bits of a network logical address below the number of the table (section 5.3).
const BITS_IN_TABLE: u32 = 18 + 12;
/// Bytes of a table's entry.
const ENTRY: u64 = 8;

/// Bytes that can be mapped by so large an on-chip directory: `entries` tables of 2^18 pages.
pub fn mappable(entries: u64) -> u64 {
    entries << BITS_IN_TABLE
}

/// Bytes of tables for memory of this size.
pub fn tables(memory: u64) -> u64 {
    (memory >> 12) * ENTRY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extoll::prototype_clock;

    /// The time of one course alone.
    fn alone(course: impl Fn(&Atu) -> Course, read: Time) -> Time {
        let mut machine = Machine::default();
        let atu = Atu::new(&mut machine, prototype_clock(), read, 1);
        let item = machine.add(course(&atu), [Time::ZERO]);
        machine.run();
        machine.passage(item).time()
    }

    #[test]
    fn a_miss_costs_its_read_and_the_cycles_around_it() {
        let read = Time::from_nanos(280);
        let longer =
            alone(|atu| atu.translate(false), read) - alone(|atu| atu.translate(true), read);
        assert_eq!(longer, prototype_clock().span(TO_READ) + read);
    }

    #[test]
    fn the_rate_grows_with_the_requests_under_way_up_to_the_channel() {
        let clock = prototype_clock();
        let rate = |in_flight| rate(clock, Time::from_nanos(280), in_flight, false);
        let alone = alone(|atu| atu.translate(false), Time::from_nanos(280));
        assert!((rate(1) * alone.0 as f64 / 1e12 - 1.0).abs() < 1e-3);
        assert!((rate(8) / rate(1) / 8.0 - 1.0).abs() < 0.02);
        assert!((rate(64) / ceiling(clock) - 1.0).abs() < 0.03);
    }

    #[test]
    fn a_table_of_one_level_misses_fastest_where_memory_need_not_be_known_before() {
        let least = |way: Way| way.miss(&Host::HT400, 1).0;
        for way in Way::ALL.into_iter().filter(|way| way.hit(prototype_clock()).is_some()) {
            assert!(least(Way::ReducedWalk) <= least(way), "{way:?}");
        }
    }
}
