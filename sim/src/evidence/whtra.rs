//! Rows of the WHTRA collection.
use super::{Check, Value};
use crate::link::LinkTiming;
use crate::random::Random;
use crate::time::Time;
use crate::whtra::ht3::HT1600_8;
use crate::whtra::ht3::credits::{Device, PAYLOAD, Split};
use crate::whtra::ht3::lanes::{self, LANES, LaneError, SKEW_MAX};
use crate::whtra::ht3::retry::{Limits, Noisy, Report};
use crate::whtra::memory::{Kind, Memory, paging, streams};
use crate::whtra::sharing::Centre;

pub(super) fn checks() -> Vec<Check> {
    let mut all = sharing();
    all.extend(emulated());
    all.extend(delays());
    all.extend(link());
    all.extend(super::ladder::checks());
    all
}

fn sharing() -> Vec<Check> {
    let centre = Centre::EXAMPLE;
    let dollars = move |kept: f64| centre.modules_saved(kept) * centre.module;
    let watts = "The power of a module is not in the source: the watts of the other row are taken \
                 as an input.";
    vec![
        Check::new("WH-B-save50", watts, move |_| {
            let watts = 12_750.0 * centre.modules_saved(0.5) / centre.modules_saved(0.25);
            vec![Value::exact(dollars(0.5), 750_000.0), Value::exact(watts, 8_500.0)]
        }),
        Check::new("WH-B-save75", watts, move |_| {
            let watts = 8_500.0 * centre.modules_saved(0.25) / centre.modules_saved(0.5);
            vec![Value::exact(dollars(0.25), 1_125_000.0), Value::exact(watts, 12_750.0)]
        }),
        Check::new("WH-B-gpu", "", |_| {
            let (dollars, watts, share) = Centre::EXAMPLE.accelerators_saved(2.0, 0.5);
            vec![
                Value::exact(dollars, 328_125.0),
                Value::exact(100.0 * share, 75.0),
                Value::exact(watts, 28_125.0),
            ]
        }),
    ]
}

/// Accesses of a stream.
const ACCESSES: u64 = 6_400;

/// Paper C's machine, with the latency of WH-C-lat.
fn xd1000() -> Memory {
    Memory::xd1000(Time::from_nanos(850))
}

fn rate(kind: Kind, threads: usize) -> f64 {
    xd1000().run(&streams(kind, threads, ACCESSES)).rate()
}

fn emulated() -> Vec<Check> {
    let write = "Nothing is fitted: a line costs its lookups, a fetch and a write back.";
    let both = |kind| [1, 2].map(|threads| rate(kind, threads));
    vec![
        Check::new("WH-C-T1-w32", write, |_| vec![Value::near(rate(Kind::WRITE_32, 1), 60.0, 0.2)]),
        Check::new("WH-C-T1-w64", write, |_| vec![Value::near(rate(Kind::WRITE_64, 1), 90.0, 0.2)]),
        Check::new("WH-C-T1-wc", write, |_| {
            vec![Value::near(rate(Kind::WRITE_COMBINED, 1), 120.0, 0.2)]
        }),
        Check::new(
            "WH-C-T1-r32",
            "The latency of one read is an input, WH-C-lat; that of two threads follows.",
            move |_| {
                let [one, two] = both(Kind::READ_32);
                vec![
                    Value::near(one, 5.5, 0.2),
                    Value::near(two, 11.0, 0.2),
                    Value::near(two / one, 2.0, 0.025),
                ]
            },
        ),
        Check::new(
            "WH-C-T1-r64",
            "Both threads read at the full rate of one. The source does not say where they meet: \
             DRAM and link are busy for a sixth of the time of a read only.",
            move |_| {
                let [one, two] = both(Kind::READ_CACHED);
                vec![
                    Value::near(one, 50.0, 0.35),
                    Value::near(two, 92.0, 0.35),
                    Value::within(two / one, 1.74, 1.94),
                ]
            },
        ),
        Check::new(
            "WH-C-T1-w2",
            "Two threads beside one, for the three kinds of writes.",
            move |_| {
                let kinds = [Kind::WRITE_32, Kind::WRITE_64, Kind::WRITE_COMBINED];
                let ratio = |kind| {
                    let [one, two] = both(kind);
                    Value::near(two / one, 1.0, 0.05)
                };
                kinds.map(ratio).to_vec()
            },
        ),
        Check::new("WH-C-bypass", "Ours in MB/s; the source gives none.", |_| {
            let memory = Memory { bypass: true, ..xd1000() };
            let ours = memory.run(&streams(Kind::WRITE_COMBINED, 1, ACCESSES)).rate();
            vec![Value::within(ours, 120.0_f64.max(rate(Kind::WRITE_COMBINED, 1)), 800.0)]
        }),
    ]
}

/// Delays of reads and writes in nanoseconds, of two memories that keep their contents. The source
/// gives none; these are in the order of a phase-change memory and a magnetic one.
const DELAYS: [(u64, u64); 2] = [(100, 1_000), (20, 60)];

fn delays() -> Vec<Check> {
    let settings = || {
        DELAYS.map(|(read, write)| Memory {
            delays: (Time::from_nanos(read), Time::from_nanos(write)),
            ..xd1000()
        })
    };
    vec![
        Check::new(
            "WH-C-rel",
            "The ratio of the times of two settings, measured over computed: for reads, for \
             32-bit writes and for combined ones.",
            move |_| {
                let measured = |kind: Kind| {
                    let rate = |memory: Memory| memory.run(&streams(kind, 1, ACCESSES)).rate();
                    let [one, other] = settings().map(rate);
                    other / one
                };
                let computed = |time: &dyn Fn(&Memory) -> Time| {
                    let [one, other] = settings().map(|memory| time(&memory));
                    one.0 as f64 / other.0 as f64
                };
                let read = computed(&|memory| Time::from_nanos(850) + memory.delays.0);
                let write = |writes, bytes| {
                    computed(&move |memory: &Memory| memory.line_time(writes, bytes))
                };
                vec![
                    Value::near(measured(Kind::READ_32) / read, 1.0, 0.05),
                    Value::near(measured(Kind::WRITE_32) / write(32, 4), 1.0, 0.05),
                    Value::near(measured(Kind::WRITE_COMBINED) / write(2, 64), 1.0, 0.05),
                ]
            },
        ),
        Check::new(
            "WH-C-sls",
            "Faults of the device per fault of the operating system, for each trace: popular \
             pages, a loop, a scan and phases. The traces and the device's rule are ours.",
            |_| {
                let sizes = paging::Sizes { frames: 1024, translations: 64, cached: 4096 };
                let ratio = |program: paging::Program| {
                    let trace = program.trace(100_000, 1);
                    let device = paging::by_device(&trace, &sizes);
                    let system = paging::by_usage_bits(&trace, &sizes);
                    Value::within(device as f64 / system as f64, 0.0, 1.0 - 1e-9)
                };
                paging::Program::EXAMPLES.map(ratio).to_vec()
            },
        ),
    ]
}

/// Paper D's device. Its round trip is an input, so WH-D-rt has no check. The processor's share is
/// that of paper C's machine.
fn device() -> Device {
    Device::measured(Time::from_nanos(655), xd1000().host)
}

/// Megabytes per second of a direction.
const HT1600_RATE: f64 = 3_200.0;

fn link() -> Vec<Check> {
    let way = "The way through the FPGA follows from WH-D-rt, which is an input. The split of the \
               32 buffers is coreboot's, and the free ones go to the posted channel.";
    vec![
        Check::new("WH-D-half", way, |_| {
            let credits = Split::DEFAULT.posted;
            let ours = device().writes(credits);
            let line = f64::from(credits * PAYLOAD) * 1e6 / device().write_loop().0 as f64;
            vec![
                Value::within(100.0 * ours / HT1600_RATE, 0.0, 50.0),
                Value::near(ours / line, 1.0, 0.02),
            ]
        }),
        Check::new("WH-D-wr", way, |_| {
            let ours = device().writes(Split::DEFAULT.for_posted().posted);
            vec![Value::near(ours, 2_000.0, 0.1)]
        }),
        Check::new("WH-D-rd", way, |_| {
            let ours = device().reads(Split::DEFAULT.for_posted().nonposted);
            vec![Value::near(ours, 1_600.0, 0.1)]
        }),
        Check::new("WH-D-skew", "The bits of nine lanes, of which one is late.", |_| {
            let aligned = (0..=SKEW_MAX).map(|skew| count(|lane| aligns(lane, skew))).sum();
            let refused = count(|lane| !aligns(lane, SKEW_MAX + 1));
            vec![Value::exact(aligned, 81.0), Value::exact(refused, 9.0)]
        }),
        Check::new("WH-D-err", "Lost, doubled and undetected packets in 10^9 bits.", |_| {
            let mut all = Report::default();
            for seed in 1..=5 {
                let report = noisy().run(seed);
                all.bits += report.bits;
                all.lost += report.lost;
                all.doubled += report.doubled;
                all.undetected += report.undetected;
            }
            vec![
                Value::exact(all.lost as f64, 0.0),
                Value::exact(all.doubled as f64, 0.0),
                Value::exact(all.undetected as f64, 0.0),
                Value::within(all.bits as f64, 1e9, 1.1e9),
            ]
        }),
    ]
}

fn count(holds: impl Fn(usize) -> bool) -> f64 {
    (0..LANES).filter(|lane| holds(*lane)).count() as f64
}

/// Whether words are read as they were sent, with one lane late. Otherwise it has to be refused.
fn aligns(lane: usize, skew: usize) -> bool {
    let mut random = Random::new(skew as u64, lane as u64);
    let words: Vec<_> = (0..500).map(|_| random.below(1 << LANES) as u16).collect();
    let mut skews = [0; LANES];
    skews[lane] = skew;
    let late = lanes::delay(lanes::send(&words), skews, || random.below(2) == 1);
    match lanes::receive(&late) {
        Ok(read) => read == words,
        Err(error) => error != LaneError::Skew { lane, skew, limit: SKEW_MAX },
    }
}

/// A link on which one bit of a million is wrong. A fifth of 10^9 bits are 161,000 packets of 76
/// bytes each way, with a NOP for each four.
fn noisy() -> Noisy {
    Noisy {
        link: LinkTiming { wire: Time(device().fpga.0 / 2), ..HT1600_8 },
        training: Time::from_nanos(1_000),
        error: 1e-6,
        limits: Limits { buffer: 64, every: 4, packets: 161_000 },
    }
}
