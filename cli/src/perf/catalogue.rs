//! Everything that `ayre perf` measures, in the order of the report, and by how many ranks.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use anyhow::Result;
use ayre::deposit::Deposit;
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{Port, PostOptions, RemoteRegion};

use super::case::RawKind;
use super::case::{Case, Metric, Path};
use super::ops::active::{Answers, Beside, Calls, Talk, Urgent};
use super::ops::carrier::{
    Carrier, ImmediatePut, Message, NotificationPut, Put, PutNotify, QueueRecord,
};
use super::ops::collective::{Everybody, Together};
use super::ops::crowd::{AllToAll, Barrier, FanIn, Ring};
use super::ops::deposit::{AppendIn, endless};
use super::ops::multicast::{Audience, ToAll, Until};
use super::ops::pair::{Member, Pair, place};
use super::ops::poll::Poll;
use super::ops::single::OneSided;
use super::ops::two_sided::{Loopback, PingPong, Stream};
use super::ops::wake::Wake;
use super::ops::{Label, posted};
use super::side::shared::LARGEST;
use super::{Args, Mode};

/// Ranks that measure together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Two: what most cases take.
    Pair,
    /// The producers of one queue, and its consumer.
    Producers(usize),
    /// As many as the user likes.
    Crowd(usize),
}

type Cases = Vec<Box<dyn Case>>;

/// Whether a case is asked for in which one rank tells all others.
fn tells_all(args: &Args) -> bool {
    TO_ALL.iter().any(|case| args.asks_for(case))
}

/// The names of the cases of the producers: their jobs need not start where none is asked for.
const QUEUE_RATE: &str = "queue-rate";
const FAN_IN: &str = "raw-fan-in";
const APPEND_RATE: &str = "append-shared-rate";
const LOCKED: &str = "raw-locked-queue";
/// Of the cases where one rank tells all others.
pub(super) const TO_ALL: [&str; 4] =
    ["multicast-sent", "unicasts-sent", "multicast-answered", "unicasts-answered"];

impl Job {
    /// Those that the user asked for, one after the other.
    pub(crate) fn all(args: &Args) -> Vec<Self> {
        match args.procs {
            Some(2) => vec![Self::Crowd(2)],
            Some(procs) => vec![Self::Crowd(2), Self::Crowd(procs)],
            None if args.net.is_on() => vec![Self::Pair],
            None if tells_all(args) => {
                let audiences = [4, 8, 16].map(Self::Crowd);
                [Self::Pair].into_iter().chain(audiences).collect()
            }
            None if args.asks_for(APPEND_RATE) || args.asks_for(LOCKED) => {
                let producers = [2, 4, 8].map(Self::Producers);
                [Self::Pair].into_iter().chain(producers).collect()
            }
            None if args.names(QUEUE_RATE) || args.names(FAN_IN) => {
                vec![Self::Pair, Self::Producers(2), Self::Producers(4)]
            }
            None => vec![Self::Pair],
        }
    }

    /// The one that a rank finds itself in.
    pub(crate) fn of_rank(args: &Args, ranks: usize) -> Self {
        match (args.procs, ranks) {
            (Some(_), _) => Self::Crowd(ranks),
            (None, 2) => Self::Pair,
            (None, _) if tells_all(args) => Self::Crowd(ranks),
            (None, _) => Self::Producers(ranks - 1),
        }
    }

    /// How many ranks it has.
    pub(crate) fn ranks(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Producers(producers) => producers + 1,
            Self::Crowd(ranks) => ranks,
        }
    }

    /// The limits of the machine.
    pub(crate) fn limits(self) -> &'static [RawKind] {
        match self {
            Self::Pair => &[
                RawKind::PingPong,
                RawKind::Put,
                RawKind::Ring,
                RawKind::RingTwoWay,
                RawKind::Memcpy,
                RawKind::MemcpyTwoWay,
                RawKind::MemcpyOut,
                RawKind::MemcpyShared,
                RawKind::Atomic,
                RawKind::AtomicTwoWay,
                RawKind::Load,
                RawKind::Wake,
                RawKind::Barrier,
                RawKind::Locked,
            ],
            Self::Producers(_) => &[RawKind::FanIn, RawKind::Locked],
            Self::Crowd(_) => &[RawKind::Token, RawKind::Barrier, RawKind::AllToAll],
        }
    }

    /// The operations of Ayre. All ranks build the same list, so whatever the cases share (a port,
    /// a region of the peer) is set up here, by all in the same order.
    pub(crate) fn operations(self, mode: Mode) -> Result<Cases> {
        let path = mode.path();
        if self == Self::Pair {
            let pair = Rc::new(Pair::join(path)?);
            let groups = [
                two_sided_latencies(&pair)?,
                one_sided_latencies(&pair),
                atomics(&pair),
                loopbacks(&pair),
                rates(&pair)?,
                bandwidths(&pair),
                active(path)?,
                collectives(path)?,
                polls(path),
                vec![Box::new(Wake::join(WAKE.on(path))?) as Box<dyn Case>],
            ];
            return Ok(groups.into_iter().flatten().collect());
        }
        let member = Rc::new(RefCell::new(Port::join()?));
        match self {
            Self::Crowd(ranks) => {
                let mut cases = crowd(path, &member, ranks);
                cases.extend(collectives(path)?);
                cases.extend(multicasts(path)?);
                Ok(cases)
            }
            _ => Ok(vec![
                Box::new(FanIn::join(FANNED_IN.on(path), &member)?),
                Box::new(AppendIn::join(APPENDED_IN.on(path), &member)?),
            ]),
        }
    }
}

/// A line or less, and what takes several.
const WORD: &[usize] = &[8];
const MESSAGES: &[usize] = &[8, 16, 24, 32, 40, 48, 56, 64, 256, 1 << 10];
const NOTIFIED: &[usize] = &[8, 16, 24, 32, 40, 48, 56, 64, 1 << 10, 4 << 10];
const PUTS: &[usize] = &[8, 16, 32, 64, 256, 1 << 10, 4 << 10];
const BULK: &[usize] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, LARGEST];

const ACTIVE_BULK: &[usize] = &[1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

const LATENCY: Label = Label {
    name: "",
    path: Path::Direct,
    metric: Metric::Latency,
    sizes: WORD,
    raw: RawKind::PingPong,
    raw_steps: 1,
};
const WAKE: Label = Label { name: "wake-latency", raw: RawKind::Wake, ..LATENCY };
const BARRIER: Label =
    Label { name: "barrier-latency", sizes: &[0], raw: RawKind::Barrier, ..LATENCY };
const FANNED_IN: Label = Label {
    name: QUEUE_RATE,
    metric: Metric::Rate,
    sizes: &[8, 56],
    raw: RawKind::FanIn,
    ..LATENCY
};

const APPENDED_IN: Label = Label {
    name: APPEND_RATE,
    metric: Metric::Rate,
    sizes: &[8, 32, 56],
    raw: RawKind::Locked,
    ..LATENCY
};

fn two_sided_latencies(pair: &Rc<Pair>) -> Result<Cases> {
    fn case<C: Carrier + 'static>(pair: &Rc<Pair>, label: Label, carrier: C) -> Box<dyn Case> {
        Box::new(PingPong { label: label.on(pair.path), pair: pair.clone(), carrier })
    }
    let label = |name, sizes, raw| Label { name, sizes, raw, ..LATENCY };
    let (message, notified) = ("message-latency", "put-notify-latency");
    let (immediate, notification) = ("immediate-put-latency", "notification-put-latency");
    let queue = label("queue-latency", &[8, 56, 256], RawKind::PingPong);
    let other = &pair.other;
    let barrier = Barrier { label: BARRIER.on(pair.path), member: pair.member.clone() };
    Ok(vec![
        case(pair, label(message, MESSAGES, RawKind::PingPong), Message::new(other)),
        case(pair, label(notified, NOTIFIED, RawKind::PingPong), PutNotify::new(pair, other, 1)),
        case(pair, label("put-latency", PUTS, RawKind::Put), Put::new(pair)),
        case(pair, label(immediate, WORD, RawKind::Put), ImmediatePut::new(pair)),
        case(pair, label(notification, WORD, RawKind::PingPong), NotificationPut::new(other)),
        case(pair, queue, QueueRecord::new(pair, other)?),
        Box::new(barrier),
    ])
}

/// An operation that rank 0 waits for. Where the target's engine answers, it is a message there and
/// one back.
fn awaited(pair: &Pair, name: &'static str, sizes: &'static [usize], raw: RawKind) -> Label {
    let label = Label { name, sizes, raw, ..LATENCY }.on(pair.path);
    match pair.path {
        Path::Mediated => Label { raw: RawKind::PingPong, raw_steps: 2, ..label },
        _ => label,
    }
}

fn one_sided_latencies(pair: &Rc<Pair>) -> Cases {
    let get = {
        let from = pair.other.memory.clone();
        move |port: &mut Port, into: &mut [u8]| {
            let got = posted(port.get(&from, place::BULK as u64, &mut *into, PostOptions::new()));
            black_box(into);
            got
        }
    };
    let label = awaited(pair, "get-latency", &[8, 64, 1 << 10, 4 << 10], RawKind::MemcpyOut);
    vec![Box::new(OneSided::new(label, pair, get))]
}

/// Each takes the result of the one before, as the limit does.
fn atomics(pair: &Rc<Pair>) -> Cases {
    let label = |name| awaited(pair, name, WORD, RawKind::Atomic);
    let fetch_add = fetch_add(&pair.other.memory, place::COUNTER);
    let compare_swap = {
        let (on, mut value) = (pair.other.memory.clone(), 0);
        move |port: &mut Port, _: &mut [u8]| {
            let found = port.compare_swap(&on, place::SWAP as u64, value, value + 1)?;
            value = found.value + u64::from(found.success);
            Ok(true)
        }
    };
    let fcaa = {
        let (on, mut add) = (pair.other.memory.clone(), 1);
        move |port: &mut Port, _: &mut [u8]| {
            let found = port.fcaa(&on, place::LIMITED as u64, i64::MAX - 1, add)?;
            add = i64::from(found.success);
            Ok(true)
        }
    };
    let mut cases: Cases = vec![
        Box::new(OneSided::new(label("fetch-add-latency"), pair, fetch_add)),
        Box::new(OneSided::new(label("compare-swap-latency"), pair, compare_swap)),
        Box::new(OneSided::new(label("fcaa-latency"), pair, fcaa)),
    ];
    if pair.path == Path::Direct {
        let (name, raw) = ("fetch-add-contended", RawKind::AtomicTwoWay);
        let label = Label { name, sizes: WORD, raw, ..LATENCY };
        let owner = if pair.is_first() { &pair.own } else { &pair.other };
        let perform = self::fetch_add(&owner.memory, place::SHARED_COUNTER);
        cases.push(Box::new(OneSided::contended(label, pair, perform)));
    }
    cases
}

pub(super) fn fetch_add(
    on: &RemoteRegion,
    at: usize,
) -> impl FnMut(&mut Port, &mut [u8]) -> Result<bool> + use<> {
    let (on, mut operand) = (on.clone(), 0);
    move |port, _| {
        operand = port.fetch_add(&on, at as u64, operand | 1)? & 1;
        Ok(true)
    }
}

/// From rank 0 to itself: what the library costs without any other rank.
fn loopbacks(pair: &Rc<Pair>) -> Cases {
    fn case<C: Carrier + 'static>(pair: &Rc<Pair>, label: Label, carrier: C) -> Box<dyn Case> {
        Box::new(Loopback { label: label.on(Path::Loopback), pair: pair.clone(), carrier })
    }
    let label = |name, sizes, raw| Label { name, sizes, raw, ..LATENCY };
    let (message, notified) = ("message-latency", "put-notify-latency");
    let own = &pair.own;
    let add = label("fetch-add-latency", WORD, RawKind::Atomic).on(Path::Loopback);
    let fetch_add = fetch_add(&own.memory, place::COUNTER);
    vec![
        case(pair, label(message, &[8, 56, 1 << 10], RawKind::Memcpy), Message::new(own)),
        case(pair, label(notified, &[8, 4 << 10], RawKind::Memcpy), PutNotify::new(pair, own, 1)),
        Box::new(OneSided::new(add, pair, fetch_add)),
    ]
}

/// More than there may be notifications that nobody has taken.
const NOTIFIED_PLACES: usize = 64;

fn rates(pair: &Rc<Pair>) -> Result<Cases> {
    fn case<C: Carrier + 'static>(
        pair: &Rc<Pair>,
        (name, two_way): (&'static str, bool),
        carrier: C,
    ) -> Box<dyn Case> {
        let raw = if two_way { RawKind::RingTwoWay } else { RawKind::Ring };
        let label = Label { name, metric: Metric::Rate, sizes: &[8, 56], raw, ..LATENCY };
        Box::new(Stream { label: label.on(pair.path), pair: pair.clone(), carrier, two_way })
    }
    let other = &pair.other;
    let add = {
        let on = other.memory.clone();
        let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
        move |port: &mut Port, _: &mut [u8]| {
            posted(port.atomic(&on, place::COUNTER as u64, atomic, PostOptions::new()))
        }
    };
    let (inlet, ring) = endless(pair, other)?;
    let append = move |port: &mut Port, bytes: &mut [u8]| {
        let _kept = &ring;
        let message = Deposit::enter(0).data(black_box(bytes));
        posted(port.deposit(&inlet, &message, PostOptions::new()))
    };
    let put = {
        let to = other.memory.clone();
        move |port: &mut Port, bytes: &mut [u8]| {
            posted(port.put(&to, place::BULK as u64, &*black_box(bytes), PostOptions::new()))
        }
    };
    let one_sided = |name| {
        let (metric, raw) = (Metric::Rate, RawKind::Ring);
        Label { name, metric, sizes: &[8, 32, 56], raw, ..LATENCY }.on(pair.path)
    };
    let raw = if pair.path == Path::Mediated { RawKind::Ring } else { RawKind::Atomic };
    let (name, metric) = ("atomic-rate", Metric::Rate);
    let atomics = Label { name, metric, sizes: WORD, raw, ..LATENCY }.on(pair.path);
    Ok(vec![
        case(pair, ("message-rate", false), Message::new(other)),
        case(pair, ("message-rate-two-way", true), Message::new(other)),
        case(pair, ("put-notify-rate", false), PutNotify::new(pair, other, NOTIFIED_PLACES)),
        case(pair, (QUEUE_RATE, false), QueueRecord::new(pair, other)?),
        Box::new(OneSided::new(atomics, pair, add)),
        Box::new(OneSided::new(one_sided("put-rate"), pair, put)),
        Box::new(OneSided::new(one_sided("append-rate"), pair, append)),
        Box::new(AppendIn::join(APPENDED_IN.on(pair.path), &pair.member)?),
    ])
}

/// Where the target's engine copies too, a stream of messages is the limit, not one copy.
fn bandwidths(pair: &Rc<Pair>) -> Cases {
    let label = |name, raw| {
        let raw = if pair.path == Path::Mediated { RawKind::Ring } else { raw };
        Label { name, metric: Metric::Bandwidth, sizes: BULK, raw, ..LATENCY }.on(pair.path)
    };
    let at = place::BULK as u64;
    let memory = || pair.other.memory.clone();
    let put = {
        let to = memory();
        move |port: &mut Port, bytes: &mut [u8]| {
            posted(port.put(&to, at, &*black_box(bytes), PostOptions::new()))
        }
    };
    let put_region = {
        let (to, region) = (memory(), pair.region.clone());
        move |port: &mut Port, bytes: &mut [u8]| {
            let slice = region.slice(place::BULK..place::BULK + bytes.len());
            posted(port.put(&to, at, slice, PostOptions::new()))
        }
    };
    let get = {
        let from = memory();
        move |port: &mut Port, bytes: &mut [u8]| {
            posted(port.get(&from, at, black_box(bytes), PostOptions::new()))
        }
    };
    let stream = Label { sizes: &[1 << 10], ..label("message-bandwidth", RawKind::Ring) };
    let carrier = Message::new(&pair.other);
    vec![
        Box::new(OneSided::new(label("put-bandwidth", RawKind::Memcpy), pair, put)),
        Box::new(OneSided::new(
            label("put-region-bandwidth", RawKind::MemcpyShared),
            pair,
            put_region,
        )),
        Box::new(OneSided::new(label("get-bandwidth", RawKind::MemcpyOut), pair, get)),
        Box::new(Stream { label: stream, pair: pair.clone(), carrier, two_way: false }),
    ]
}

fn active(path: Path) -> Result<Cases> {
    let talk = Talk::join()?;
    let label = |name, metric, sizes, raw| Label { name, metric, sizes, raw, ..LATENCY }.on(path);
    let latency = label("active-latency", Metric::Latency, MESSAGES, RawKind::PingPong);
    let rate = label("active-rate", Metric::Rate, &[8, 32, 56], RawKind::Ring);
    // The raw ring is a stream of two copies, in and out.
    let long = label("active-long-latency", Metric::Latency, ACTIVE_BULK, RawKind::PingPong);
    let bandwidth = label("active-bandwidth", Metric::Bandwidth, ACTIVE_BULK, RawKind::Ring);
    let called = label("active-long-call-latency", Metric::Latency, ACTIVE_BULK, RawKind::PingPong);
    let case = |label, answers| -> Box<dyn Case> {
        Box::new(Calls { label, talk: talk.clone(), answers })
    };
    let urgent = |name, beside| -> Box<dyn Case> {
        let label = label(name, Metric::Latency, WORD, RawKind::PingPong);
        Box::new(Urgent { label, talk: talk.clone(), beside })
    };
    Ok(vec![
        case(latency, Answers::Long),
        case(long, Answers::Long),
        case(called, Answers::Short),
        case(rate, Answers::Last),
        case(bandwidth, Answers::Last),
        urgent("channel-latency", Beside::Nothing),
        urgent("channel-beside-bulk", Beside::Bulk),
        urgent("channel-behind-bulk", Beside::Behind),
    ])
}

/// Collectives, beside an exchange of all ranks, which is the least time that they can take.
fn collectives(path: Path) -> Result<Cases> {
    let everybody = Everybody::join()?;
    let case = |name, sizes| -> Box<dyn Case> {
        let label = Label { name, sizes, raw: RawKind::Barrier, ..LATENCY }.on(path);
        Box::new(Together { label, everybody: everybody.clone(), values: vec![] })
    };
    let lens = &[8, 32, 1 << 10];
    Ok(vec![case("group-barrier-latency", &[0]), case("allreduce-latency", lens)])
}

/// Rank 0 tells all others, as a group and one by one.
fn multicasts(path: Path) -> Result<Cases> {
    let audience = Audience::join()?;
    let case = |name, is_to_group, until| -> Box<dyn Case> {
        let sizes = &[8, 1 << 10, 16 << 10, 64 << 10];
        let label = Label { name, sizes, raw: RawKind::Barrier, ..LATENCY }.on(path);
        Box::new(ToAll { label, audience: audience.clone(), is_to_group, until })
    };
    let [sent, sent_singly, answered, answered_singly] = TO_ALL;
    Ok(vec![
        case(sent, true, Until::Sent),
        case(sent_singly, false, Until::Sent),
        case(answered, true, Until::Answered),
        case(answered_singly, false, Until::Answered),
    ])
}

fn polls(path: Path) -> Cases {
    let label = |name| Label { name, sizes: &[0], raw: RawKind::Load, ..LATENCY }.on(path);
    let messages = |port: &mut Port| Ok(port.try_recv(&mut [0; 64])?.is_some());
    let notifications = |port: &mut Port| Ok(port.poll_notification().is_some());
    vec![
        Box::new(Poll::new(label("poll-messages-1"), 1, messages)),
        Box::new(Poll::new(label("poll-messages-64"), 64, messages)),
        Box::new(Poll::new(label("poll-notifications-1"), 1, notifications)),
        Box::new(Poll::new(label("poll-notifications-64"), 64, notifications)),
    ]
}

fn crowd(path: Path, member: &Member, ranks: usize) -> Cases {
    let label = |name, raw| Label { name, sizes: WORD, raw, ..LATENCY }.on(path);
    let ring = label("ring-latency", RawKind::Token);
    let all_to_all = label("all-to-all-latency", RawKind::AllToAll);
    let member = || member.clone();
    vec![
        Box::new(Barrier { label: BARRIER.on(path), member: member() }),
        Box::new(Ring { label: ring, member: member(), ranks }),
        Box::new(AllToAll { label: all_to_all, member: member(), ranks }),
    ]
}
