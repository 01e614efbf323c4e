//! Groups that choose their schedules by the load of their links.
//!
//! ```text
//!   links of each member --> its row --> allgather --> table, the same at all --> forecast
//!   at each call            message, byte               of the links              of each schedule
//! ```
//!
//! One call starts the allgather, and a later one takes its result, so that no member waits for it.
//! The allgather avoids loaded links, too. The estimate of a link that is not used decays, so that
//! the link is tried again.
use super::group::PendingCollective;
use super::recorder::Recorder;
use crate::link::LinkLoad;
use crate::port::Port;
use ayre_proto::collective::forecast::{Cost, Forecast, Volume};
use ayre_proto::collective::portion::chunk_of;
use ayre_proto::collective::{Collective, Place, Schedule, Task};
use ayre_proto::units::PeerId;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Instant;

/// The cost of a portion at its sender and at its receiver.
const ENDS: Cost = Cost { message_ns: 1000, byte_ps: 200 };
/// The cost of a link through memory of this host. It has no counters, and so the cost is fixed.
const MEMORY: Cost = Cost { message_ns: 300, byte_ps: 100 };
/// The round trip of a link that has not been used yet.
const ROUND_TRIP_NS: u64 = 100_000;
/// With each row, the estimate of an unused link moves by this fraction towards the unloaded one.
const FORGET: u64 = 4;
/// The parts of a frame in which the smoothed number of waiting frames is kept.
const PARTS: u64 = 256;
const _: () = assert!(FORGET > 1 && PARTS > 0, "a part is forgotten, and not more");

/// The watch of a group at one of its members: for adapting, for a recording, or both.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last seen loads of the links to the members; none for this member.
    loads: Vec<Option<LinkLoad>>,
    /// The loads when the last call began.
    before: Vec<Option<LinkLoad>>,
    /// The smoothed number of waiting frames on each link, in parts of a frame.
    waiting: Vec<u64>,
    /// For each link, the sent frames and the estimated round trip at the time of the last row.
    told: Vec<(u64, u64)>,
    adaptive: Option<Adaptive>,
    pub(super) recorder: Option<Recorder>,
    /// The collective that was begun last, and its bytes.
    begun: Option<(Task, usize)>,
}

#[derive(Debug)]
struct Adaptive {
    every: NonZeroU32,
    /// Calls until the table is renewed.
    left: u32,
    forecast: Forecast,
    place: Place,
    /// The schedules chosen since then, by powers of two of bytes.
    chosen: HashMap<(Collective, usize, bool, u32), Schedule>,
    /// The allgather of rows that is under way.
    exchange: Option<PendingCollective<u32>>,
}

impl Watch {
    pub(super) fn new(members: usize) -> Self {
        let (loads, waiting) = (vec![None; members], vec![0; members]);
        Self { loads, waiting, told: vec![(0, 0); members], ..Self::default() }
    }

    pub(super) fn look(&mut self, port: &Port, members: &[PeerId]) {
        debug_assert!(members.len() == self.loads.len(), "there is a link to each member");
        port.link_loads(members, &mut self.loads);
    }

    /// Whether the group neither adapts nor is recorded.
    pub(super) const fn is_idle(&self) -> bool {
        self.adaptive.is_none() && self.recorder.is_none()
    }

    /// Begins or ends choosing schedules by the load of links. Returns whether they are chosen so,
    /// which is not possible with too many members.
    pub(super) fn set_adaptive(&mut self, every: Option<NonZeroU32>, place: Place) -> bool {
        let is_told = self.adaptive.as_ref().is_none_or(|adaptive| adaptive.exchange.is_none());
        assert!(is_told, "rows that are under way are waited for");
        self.adaptive = every.and_then(|every| Adaptive::new(every, place));
        self.adaptive.is_some()
    }

    /// Notes the allgather of rows that was started.
    pub(super) fn set_exchange(&mut self, begun: PendingCollective<u32>) {
        if let Some(adaptive) = &mut self.adaptive {
            assert!(adaptive.exchange.is_none(), "one table is told at a time");
            adaptive.exchange = Some(begun);
        }
    }

    pub(super) fn take_exchange(&mut self) -> Option<PendingCollective<u32>> {
        self.adaptive.as_mut()?.exchange.take()
    }

    /// Takes over the rows of all members.
    pub(super) fn learn_rows(&mut self, rows: &[u32]) {
        self.adaptive.iter_mut().for_each(|adaptive| adaptive.learn(rows));
    }

    /// Notes the loads of the links when a call begins.
    pub(super) fn begin_call(&mut self) {
        self.before.clone_from(&self.loads);
    }

    /// Records a call that has ended, by its number in the group.
    pub(super) fn note_call(&mut self, number: u32, times: (Instant, Instant)) {
        debug_assert!(self.begun.is_some(), "what has ended was begun");
        if let (Some(recorder), Some(begun)) = (&mut self.recorder, self.begun) {
            recorder.note((number, begun), times, (&self.before, &self.loads));
        }
    }

    /// Notes the frames that wait before a call begins. Its portions are sent behind them.
    pub(super) fn learn(&mut self) {
        debug_assert!(self.loads.len() == self.waiting.len(), "each link is smoothed");
        for (load, waiting) in self.loads.iter().zip(&mut self.waiting) {
            let now = load.map_or(0, |load| u64::from(load.waiting) * PARTS);
            *waiting = u64::midpoint(*waiting, now);
        }
    }

    /// Returns the costs of the links from this member as they are sent, two words for each member.
    // spec: COLL-17
    pub(super) fn row(&mut self, own: usize) -> Vec<u32> {
        let Self { loads, waiting, told, .. } = self;
        debug_assert!(own < loads.len(), "this process is a member");
        debug_assert!(told.len() == loads.len(), "each link is remembered");
        let of = |to: usize| match loads[to] {
            _ if to == own => Cost::default(),
            Some(load) => cost(&load.believed(&mut told[to]), waiting[to]),
            None => MEMORY,
        };
        (0..loads.len()).map(of).flat_map(|cost| [cost.message_ns, cost.byte_ps]).collect()
    }

    /// Whether the table is to be renewed before this call.
    pub(super) fn is_due(&mut self) -> bool {
        let Some(adaptive) = &mut self.adaptive else { return false };
        debug_assert!(adaptive.left > 0, "the table is renewed in time");
        adaptive.left -= 1;
        let is_due = adaptive.left == 0;
        if is_due {
            adaptive.left = adaptive.every.get();
        }
        is_due
    }

    /// Returns the schedule for a collective that begins now.
    // spec: COLL-17
    pub(super) fn choose(
        &mut self,
        usual: Task,
        (is_fixed, is_exact): (bool, bool),
        bytes: usize,
    ) -> Schedule {
        let schedule = match &mut self.adaptive {
            Some(adaptive) if !is_fixed => adaptive.choose(usual, is_exact, bytes),
            _ => usual.schedule,
        };
        self.begun = Some((Task { schedule, ..usual }, bytes));
        schedule
    }
}

impl Adaptive {
    fn new(every: NonZeroU32, place: Place) -> Option<Self> {
        let forecast = Forecast::new(place.members, ENDS)?;
        let (left, chosen, exchange) = (every.get(), HashMap::new(), None);
        Some(Self { every, left, forecast, place, chosen, exchange })
    }

    fn learn(&mut self, rows: &[u32]) {
        self.chosen.clear();
        let members = self.place.members;
        assert!(rows.len() == 2 * members * members, "all links of all members are told");
        for (at, [message_ns, byte_ps]) in rows.as_chunks().0.iter().enumerate() {
            let cost = Cost { message_ns: *message_ns, byte_ps: *byte_ps };
            self.forecast.set(at / members, at % members, cost);
        }
    }

    fn choose(&mut self, usual: Task, is_exact: bool, bytes: usize) -> Schedule {
        let Task { collective, schedule, root } = usual;
        let bytes = bytes.next_power_of_two();
        let Self { forecast, place, chosen, .. } = self;
        let volume = |schedule| volume(Task { schedule, ..usual }, *place, bytes);
        let best = || forecast.best((collective, root), (schedule, is_exact), volume);
        *chosen.entry((collective, root, is_exact, bytes.ilog2())).or_insert_with(best)
    }
}

impl LinkLoad {
    /// Returns the load with an estimated round trip. It approaches the shortest one while nothing
    /// is sent.
    fn believed(self, (sent, round_trip): &mut (u64, u64)) -> Self {
        let is_used = self.sent != *sent || *round_trip == 0;
        let excess = round_trip.saturating_sub(self.shortest_ns);
        *round_trip = match is_used {
            true => self.round_trip_ns,
            false => self.shortest_ns + excess - excess / FORGET,
        };
        *sent = self.sent;
        Self { round_trip_ns: *round_trip, ..self }
    }
}

/// The cost of a message, and of each byte, on a link with waiting frames.
// spec: COLL-17
fn cost(load: &LinkLoad, waiting: u64) -> Cost {
    let round_trip = match load.round_trip_ns {
        0 => ROUND_TRIP_NS,
        known => known,
    };
    // Each window of frames takes one round trip.
    let window = u64::from(load.window.max(1));
    let queue = round_trip * waiting / (window * PARTS);
    let byte = round_trip * 1000 / (window * u64::from(load.frame.max(1)));
    let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Cost {
        message_ns: word(round_trip / 2 + queue),
        byte_ps: word(byte + byte * waiting / (window * PARTS)),
    }
}

/// The bytes for a forecast: of a vector, or of each block.
fn volume(task: Task, place: Place, bytes: usize) -> Volume {
    let chunk = chunk_of(task, place.members) as u64;
    debug_assert!(chunk > 0, "a collective goes on with each chunk");
    // A reduce-scatter works on a vector, but its chunks are parts of blocks.
    let is_cut = task.collective == Collective::ReduceScatter;
    let blocks = if is_cut { place.members as u64 } else { 1 };
    Volume { bytes: bytes as u64, chunk: chunk * blocks }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::state::State;
    use super::*;
    use ayre_proto::collective::MEMBERS_MAX;

    const IDLE: LinkLoad = LinkLoad {
        sent: 0,
        waiting: 0,
        window: 32,
        frame: 1000,
        round_trip_ns: 64_000,
        shortest_ns: 64_000,
    };

    fn watch(members: usize) -> Watch {
        let mut watch = Watch::new(members);
        watch.loads[1..].fill(Some(IDLE));
        watch
    }

    // spec: COLL-17
    #[test]
    fn waiting_messages_add_their_share_of_a_round_trip_to_the_cost() {
        let is = |load: &LinkLoad, waiting, message_ns, byte_ps| {
            assert_eq!(cost(load, waiting * PARTS), Cost { message_ns, byte_ps });
        };
        is(&IDLE, 0, 32_000, 2000);
        is(&IDLE, 32, 32_000 + 64_000, 4000);
        is(&IDLE, 160, 32_000 + 5 * 64_000, 12_000);
        is(&LinkLoad { round_trip_ns: 0, ..IDLE }, 0, 50_000, 3125);
        is(&LinkLoad { round_trip_ns: 60_000_000_000, ..IDLE }, 192, u32::MAX, u32::MAX);
        assert!(cost(&LinkLoad::default(), 1).message_ns > 0, "of no window there is one frame");
    }

    // spec: COLL-17
    #[test]
    fn a_row_has_two_words_for_each_member() {
        let mut watch = watch(4);
        watch.loads[2] = None;
        watch.waiting[3] = 8 * PARTS;
        assert_eq!(watch.row(0), [0, 0, 32_000, 2000, 300, 100, 48_000, 2500]);
    }

    // spec: COLL-17
    #[test]
    fn the_count_of_waiting_messages_is_smoothed() {
        let mut watch = watch(3);
        let mut learn = |waiting| {
            watch.loads[1] = Some(LinkLoad { waiting, ..IDLE });
            watch.learn();
            watch.waiting.clone()
        };
        assert_eq!(learn(8), [0, 4 * PARTS, 0]);
        assert_eq!(learn(8), [0, 6 * PARTS, 0]);
        assert_eq!(learn(0), [0, 3 * PARTS, 0]);
        watch.loads[1] = None;
        watch.learn();
        assert_eq!(watch.waiting[1], 3 * PARTS / 2, "nothing waits on what is no link");
    }

    /// The round trip of each link is the one at the time of the last row.
    // spec: COLL-17
    #[test]
    fn rows_forget_links_one_by_one() {
        let mut watch = watch(3);
        let busy = |sent| Some(LinkLoad { sent, round_trip_ns: 164_000, ..IDLE });
        let mut tell = |loads: [Option<LinkLoad>; 2]| {
            watch.loads[1..].copy_from_slice(&loads);
            let row = watch.row(0);
            [row[2], row[4]]
        };
        assert_eq!(tell([busy(1), busy(1)]), [82_000, 82_000]);
        assert_eq!(tell([busy(2), busy(1)]), [82_000, 69_500]);
        assert_eq!(tell([busy(2), busy(1)]), [69_500, 60_125]);
    }

    // spec: COLL-17
    #[test]
    fn the_load_of_an_unused_link_decays() {
        let mut told = (0, 0);
        let busy = LinkLoad { sent: 1, round_trip_ns: 164_000, ..IDLE };
        let mut believed = |load: LinkLoad| load.believed(&mut told).round_trip_ns;
        assert_eq!(believed(busy), 164_000);
        assert_eq!([believed(busy), believed(busy)], [139_000, 120_250]);
        assert_eq!(believed(LinkLoad { sent: 2, ..busy }), 164_000);
        assert!((0..40).map(|_| believed(LinkLoad { sent: 2, ..busy })).last() < Some(64_010));
        let unused = LinkLoad { sent: 0, ..busy };
        assert_eq!(unused.believed(&mut (0, 0)).round_trip_ns, 164_000, "it was not told before");
    }

    // spec: COLL-17
    #[test]
    fn the_load_table_is_due_every_nth_call() {
        let mut watch = watch(2);
        assert!((0..10).all(|_| !watch.is_due()), "it does not adapt");
        let place = Place { member: 0, members: 2 };
        watch.adaptive = NonZeroU32::new(3).and_then(|every| Adaptive::new(every, place));
        let due: Vec<_> = (0..9).map(|_| watch.is_due()).collect();
        assert_eq!(due, [false, false, true].repeat(3));
        let place = Place { member: 0, members: MEMBERS_MAX };
        assert!(Adaptive::new(NonZeroU32::MIN, place).is_none());
    }

    // spec: COLL-17, COLL-18
    #[test]
    fn a_watch_lasts_while_recording_or_adapting() {
        let mut state = State::new(1, None);
        state.watch_mut().recorder = Some(Recorder::new(1, 0, Instant::now()));
        state.unwatch();
        assert!(state.watch.is_some(), "it records");
        let place = Place { member: 0, members: 2 };
        state.watch_mut().adaptive = Adaptive::new(NonZeroU32::MIN, place);
        state.watch_mut().recorder = None;
        state.unwatch();
        assert!(state.watch.is_some(), "it adapts");
        state.watch_mut().adaptive = None;
        state.unwatch();
        assert!(state.watch.is_none());
    }

    /// Rows of four members, with one link on which frames wait.
    fn rows(busy: (usize, usize), waiting: u64) -> Vec<u32> {
        let row = |own: usize| {
            let mut watch = watch(4);
            watch.loads[0] = Some(IDLE);
            if own == busy.0 {
                watch.waiting[busy.1] = waiting * PARTS;
            }
            watch.row(own)
        };
        (0..4).flat_map(row).collect()
    }

    // spec: COLL-6, COLL-7, COLL-17
    #[test]
    fn schedules_do_without_a_link_while_it_is_busy() {
        use {Collective as C, Schedule as S};
        let mut watch = watch(4);
        let place = Place { member: 2, members: 4 };
        watch.adaptive = NonZeroU32::new(1).and_then(|every| Adaptive::new(every, place));
        let task = |collective, schedule| Task { collective, schedule, root: 0 };
        let learn = |watch: &mut Watch, busy, waiting| {
            watch.adaptive.as_mut().expect("it adapts").learn(&rows(busy, waiting));
        };
        let sum = task(C::Allreduce, S::Doubling);
        learn(&mut watch, (1, 3), 0);
        assert_eq!(watch.choose(sum, (false, true), 64), S::Doubling);
        learn(&mut watch, (1, 3), 64);
        assert_eq!(watch.choose(sum, (false, true), 64), S::Star);
        assert_eq!(watch.begun, Some((task(C::Allreduce, S::Star), 64)));
        assert_eq!(watch.choose(sum, (true, true), 64), S::Doubling, "the program has fixed it");
        learn(&mut watch, (2, 0), 400);
        assert_eq!(watch.choose(sum, (false, true), 64), S::Ring);
        assert_eq!(watch.choose(sum, (false, false), 64), S::Doubling, "the ring rounds otherwise");
        let gather = task(C::Gather, S::Tree);
        assert_eq!(watch.choose(gather, (false, true), 1000), S::Tree, "all need that link");
        learn(&mut watch, (3, 2), 400);
        assert_eq!(watch.choose(gather, (false, true), 1000), S::Star);
        learn(&mut watch, (3, 2), 0);
        assert_eq!(watch.choose(sum, (false, true), 0), S::Doubling);
        watch.adaptive = None;
        assert_eq!(watch.choose(sum, (false, true), 64), S::Doubling);
    }

    /// A chosen schedule stays until the table is renewed, for all numbers of bytes up to the same
    /// power of two, and for no others.
    // spec: COLL-7, COLL-17
    #[test]
    fn choices_are_remembered_apart() {
        use {Collective as C, Schedule as S};
        let place = Place { member: 2, members: 4 };
        let mut adaptive = Adaptive::new(NonZeroU32::MIN, place).expect("few members");
        let sum = Task { collective: C::Allreduce, schedule: S::Doubling, root: 0 };
        let gather = |root| Task { collective: C::Gather, schedule: S::Tree, root };
        adaptive.learn(&rows((3, 2), 400));
        assert_eq!(adaptive.choose(sum, true, 33), S::Star);
        assert_eq!(adaptive.choose(gather(0), true, 1000), S::Star);
        assert_eq!(adaptive.choose(gather(2), true, 1000), S::Tree, "all need that link");
        assert_eq!(adaptive.choose(Task { root: 2, ..sum }, true, 1000), S::Doubling);
        assert_eq!(adaptive.chosen.len(), 4);
        // The row has changed, but the members have not exchanged it.
        let rows = rows((3, 2), 0);
        for (at, cost) in rows.as_chunks().0.iter().enumerate() {
            let [message_ns, byte_ps] = *cost;
            adaptive.forecast.set(at / 4, at % 4, Cost { message_ns, byte_ps });
        }
        assert_eq!(adaptive.choose(sum, true, 64), S::Star, "as it was for 33 bytes");
        assert_eq!(adaptive.choose(sum, true, 65), S::Doubling);
        adaptive.learn(&rows);
        assert_eq!(adaptive.choose(sum, true, 64), S::Doubling);
    }

    // spec: COLL-15
    #[test]
    fn chunks_of_a_reduce_scatter_are_of_all_blocks() {
        let place = Place { member: 0, members: 4 };
        let of = |collective, schedule| volume(Task { collective, schedule, root: 0 }, place, 5);
        let whole = of(Collective::ReduceScatter, Schedule::Spread);
        assert_eq!(whole, Volume { bytes: 5, chunk: 32 << 15 });
        let block = of(Collective::Gather, Schedule::Star);
        assert_eq!(block, Volume { bytes: 5, chunk: 8 << 15 });
    }
}
