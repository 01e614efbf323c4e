//! The cases over the network, in the order of the report. Each runs plain and sealed, and plain
//! over Ethernet where that was asked for.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::Result;
use ayre::{Port, PostOptions as How, Spin};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::catalogue::fetch_add;
use super::super::ops::carrier::{Message, PutNotify};
use super::super::ops::pair::{Pair, place};
use super::super::ops::single::OneSided;
use super::super::ops::{Label, posted};
use super::super::side::Side;
use super::flood::Flood;
use super::limits::Limit;
use super::linked::{self, Protection};
use super::there_and_back::{Awake, MessageToSleeper, PutToSleeper, ThereAndBack, Way};
use super::{BULK, Options};

/// An operation of Ayre and its limit.
pub(super) struct Operation {
    pub(super) case: Box<dyn Case>,
    pub(super) limit: Limit,
    /// How the report says that it was executed.
    pub(super) path: &'static str,
}

const WORD: &[usize] = &[8];

/// Ports of one protection.
struct Ports {
    path: &'static str,
    /// They wait as long as it takes.
    awake: Rc<Pair>,
    /// They sleep at once.
    asleep: Rc<Pair>,
}

/// All operations. Collective: links are set up here.
pub(super) fn operations(side: &Side<'_>, options: &Options) -> Result<Vec<Operation>> {
    let udp = Options { ethernet: false, ..options.clone() };
    let mut kinds: Vec<_> =
        [Protection::Plain, Protection::Sealed].map(|kind| (kind.name(), &udp, kind)).into();
    if options.ethernet {
        kinds.push(("ethernet", options, Protection::Plain));
        kinds.push(("eth-sealed", options, Protection::Sealed));
    }
    let mut all = Vec::new();
    for (path, options, protection) in kinds {
        let join = |spin| linked::join(side, options, protection, spin);
        let (awake, asleep) = (join(Spin::DEDICATED)?, join(Spin { polls: 0, yields: 0 })?);
        all.push(of_ports(&Ports { path, awake, asleep }));
    }
    Ok(in_turn(all))
}

/// The same operation of all ports, then the next one.
fn in_turn(all: Vec<Vec<Operation>>) -> Vec<Operation> {
    let mut all: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
    let mut turns = Vec::new();
    while let Some(first) = all[0].next() {
        turns.push(first);
        turns.extend(all[1..].iter_mut().filter_map(Iterator::next));
    }
    turns
}

/// The label of cases that are measured as on one host, with another limit.
const LABEL: Label = Label {
    name: "",
    path: Path::Mediated,
    metric: Metric::Latency,
    sizes: WORD,
    raw: RawKind::PingPong,
    raw_steps: 1,
};

fn of_ports(ports: &Ports) -> Vec<Operation> {
    let Ports { path, awake, asleep } = ports;
    let operation = |limit, case| Operation { case, limit, path };
    let (message, put) = (Message::new(&awake.other), PutNotify::new(awake, &awake.other, 1));
    let (polling, waiting) = (Limit::UdpPolling, Limit::UdpWaiting);
    let (to_sleeper, put_to_sleeper) =
        (MessageToSleeper(asleep.clone()), PutToSleeper(asleep.clone()));
    vec![
        operation(polling, there_and_back("message-latency", awake, Awake(message))),
        operation(polling, there_and_back("put-notify-latency", awake, Awake(put))),
        operation(waiting, there_and_back("message-wait-latency", asleep, to_sleeper)),
        operation(waiting, there_and_back("put-notify-wait-latency", asleep, put_to_sleeper)),
        operation(Limit::TcpStream, puts(awake)),
        operation(Limit::UdpStream, Box::new(Flood::new(awake))),
        operation(polling, fetch_adds(awake)),
    ]
}

fn there_and_back<W: Way + 'static>(name: &'static str, pair: &Rc<Pair>, way: W) -> Box<dyn Case> {
    Box::new(ThereAndBack { name, pair: pair.clone(), way })
}

fn puts(pair: &Rc<Pair>) -> Box<dyn Case> {
    let (name, metric) = ("put-bandwidth", Metric::Bandwidth);
    let to = pair.other.memory.clone();
    let put = move |port: &mut Port, bytes: &mut [u8]| {
        posted(port.put(&to, place::BULK as u64, &*black_box(bytes), How::new()))
    };
    Box::new(OneSided::new(Label { name, metric, sizes: BULK, ..LABEL }, pair, put))
}

/// There and back takes two datagrams.
fn fetch_adds(pair: &Rc<Pair>) -> Box<dyn Case> {
    let label = Label { name: "fetch-add-latency", raw_steps: 2, ..LABEL };
    Box::new(OneSided::new(label, pair, fetch_add(&pair.other.memory, place::COUNTER)))
}
