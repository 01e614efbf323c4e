//! Rows of the WHTRA collection's paper A: 2,000 calls over the twisted ladder.
//!
//! The planted background has the longest call, the share of short calls and the weight of the
//! slowest ones from the source. The cost of a copy is fitted to the median. So WH-A-F2-med,
//! WH-A-F2-max, WH-A-F3 and WH-A-tail are inputs here, and have no check.
use super::{Check, Value};
use crate::stats::{by_chance, spearman};
use crate::time::Time;
use crate::topology::Topology;
use crate::whtra::x4600::background::{Background, DAEMONS, planted_links};
use crate::whtra::x4600::{Call, LINKS, X4600};
use std::sync::OnceLock;

/// Calls of the published run (section 5.1).
const CALLS: u64 = 2_000;
/// The source's bound of the short calls.
const SHORT: Time = Time::from_nanos(500_000);

/// The calls of one seed, made once.
fn calls() -> &'static [Call] {
    static RUN: OnceLock<Vec<Call>> = OnceLock::new();
    RUN.get_or_init(|| {
        let call = |number| {
            let background = Background::planted(1, number);
            X4600::RUN.call(&background).expect("a sound background")
        };
        (0..CALLS).map(call).collect()
    })
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = times();
    all.extend(links());
    all
}

fn times() -> Vec<Check> {
    vec![Check::new(
        "WH-A-F5c",
        "Planted: daemons of 40, 80, 160 and 600 ms. Ours are the number of clusters and the \
             third one's time in ms.",
        |_| {
            let clusters = clusters();
            let third = clusters.get(2).map_or(0.0, |times| times[times.len() / 2] / 1e3);
            vec![Value::within(clusters.len() as f64, 3.0, 10.0), Value::near(third, 80.0, 0.2)]
        },
    )]
}

/// The times of all calls in microseconds, in order.
fn sorted() -> Vec<f64> {
    let mut times: Vec<_> = calls().iter().map(|call| call.time.nanos() / 1e3).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Times between which there is no gap of a quarter, with five calls at least.
fn clusters() -> Vec<Vec<f64>> {
    let times = sorted();
    let clusters = times.chunk_by(|one, other| other / one < 1.25);
    clusters.filter(|times| times.len() >= 5).map(<[f64]>::to_vec).collect()
}

fn links() -> Vec<Check> {
    vec![
        Check::new(
            "WH-A-F4",
            "The chance of a coefficient as large in unrelated numbers. Planted: streams between \
             two sockets outweigh the daemons' data.",
            |_| {
                let totals: Vec<_> =
                    calls().iter().map(|call| call.loads.iter().sum::<u64>() as f64).collect();
                vec![Value::within(by_chance(&times_of(calls()), &totals, 999, 1), 0.01, 1.0)]
            },
        ),
        Check::new(
            "WH-A-F5",
            "Planted: data come to the root's socket while its core is away. Ours are the \
             coefficient of that link, and the least share of a class told right.",
            |_| {
                let loads = loads_of(calls(), link(0, 1));
                let coefficient = spearman(&times_of(calls()), &loads);
                vec![
                    Value::within(coefficient, 0.5, 1.0),
                    Value::within(told_apart(link(0, 1)), 0.9, 1.0),
                ]
            },
        ),
        Check::new(
            "WH-A-F6",
            "Links whose load without background is that of a count by hand. The edges of the \
             ladder, the schedule and the ways are assumed.",
            |_| {
                let run = X4600::RUN;
                let quiet = run.call(&Background::default()).expect("no background");
                let right = (0..LINKS)
                    .filter(|number| quiet.loads[*number] == by_hand(*number) * run.on_a_link());
                vec![Value::exact(right.count() as f64, 22.0)]
            },
        ),
        Check::new(
            "WH-A-F7",
            "Planted: the daemon of 80 ms moves data along the side of the even sockets.",
            |_| {
                let short: Vec<_> =
                    calls().iter().copied().filter(|call| call.time < SHORT).collect();
                let near = |call: &&Call| (call.time.nanos() / 80e6 - 1.0).abs() < 0.2;
                let cluster: Vec<_> = calls().iter().filter(near).copied().collect();
                let loaded = (0..LINKS).map(|number| {
                    let usual = quantile(loads_of(&short, number), 0.95);
                    quantile(loads_of(&cluster, number), 0.5) > usual
                });
                vec![Value::holds(loaded.collect::<Vec<_>>() == planted_links(&DAEMONS[1]))]
            },
        ),
    ]
}

fn times_of(calls: &[Call]) -> Vec<f64> {
    calls.iter().map(|call| call.time.nanos()).collect()
}

fn loads_of(calls: &[Call], link: usize) -> Vec<f64> {
    calls.iter().map(|call| call.loads[link] as f64).collect()
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * share) as usize]
}

/// The number of a link.
fn link(from: u32, to: u32) -> usize {
    let topology = Topology::ladder(1).expect("a sound number of cores");
    let found =
        topology.links.iter().position(|link| (link.from.router, link.to.router) == (from, to));
    found.expect("an edge of the ladder")
}

/// Whether a call is short, medium or long.
fn class(call: &Call) -> usize {
    let bounds = [SHORT, Time::from_nanos(300_000_000)];
    bounds.iter().filter(|bound| call.time >= **bound).count()
}

/// Tells classes by the load of one link, with bounds halfway between the medians of the even
/// calls. The result is the least share of a class that is told right, among the odd calls.
fn told_apart(link: usize) -> f64 {
    let half = |rest| calls().iter().skip(rest).step_by(2).copied().collect::<Vec<_>>();
    let (learned, held_out) = (half(0), half(1));
    let of = |calls: &[Call], which| {
        let calls: Vec<_> = calls.iter().filter(|call| class(call) == which).copied().collect();
        loads_of(&calls, link)
    };
    let medians = [0, 1, 2].map(|which| quantile(of(&learned, which), 0.5));
    let bounds = [0, 1].map(|which| (medians[which] + medians[which + 1]) / 2.0);
    let right = [0, 1, 2].map(|which| {
        let loads = of(&held_out, which);
        let told = |load: &&f64| bounds.iter().filter(|bound| **load > **bound).count() == which;
        loads.iter().filter(told).count() as f64 / loads.len() as f64
    });
    right.into_iter().fold(1.0, f64::min)
}

/// Contributions over each link, counted by hand over the shortest ways. Gather: four ranks of each
/// socket to socket 1. Tree: from 1 four to 2, 3 and 5 each, from 2 four to 4 and 6 each, from 3
/// four to 7, from 4 four to 0.
const BY_HAND: [(u32, u32, u64); 15] = [
    (0, 1, 12 + 4),
    (2, 0, 8 + 4),
    (5, 2, 4),
    (3, 1, 8 + 8),
    (4, 3, 4 + 4),
    (6, 1, 8),
    (7, 6, 4),
    (1, 0, 12),
    (0, 2, 8),
    (2, 5, 4),
    (1, 3, 4),
    (2, 3, 4),
    (3, 4, 4),
    (1, 6, 8),
    (6, 7, 4),
];

fn by_hand(number: usize) -> u64 {
    let counted = BY_HAND.iter().find(|(from, to, _)| link(*from, *to) == number);
    counted.map_or(0, |(_, _, count)| *count)
}
