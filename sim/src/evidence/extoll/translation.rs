//! Rows of chapter 5 about address translation.
use super::super::{Check, Value};
use super::{HOST, nanos};
use crate::extoll::atu::{self, Way};
use crate::extoll::prototype_clock;
use crate::random::Random;
use crate::stats::fit;
use crate::time::Time;

pub(super) fn checks() -> Vec<Check> {
    let mut all = ways();
    all.extend(unit());
    all.extend(memory());
    all
}

/// Least and most time of a miss, in nanoseconds.
fn miss(way: Way, addresses: u64) -> [f64; 2] {
    let (least, most) = way.miss(&HOST, addresses);
    [nanos(least), nanos(most)]
}

/// The alternatives of section 5.2.
fn ways() -> Vec<Check> {
    let clock = prototype_clock();
    let both = |ours: [f64; 2], theirs: [f64; 2], tolerance: f64| {
        ours.iter()
            .zip(theirs)
            .map(|(ours, theirs)| Value::near(*ours, theirs, tolerance))
            .collect()
    };
    vec![
        Check::new(
            "EX-5.2.1",
            "The text rounds up to 1.5 us; the sum of table 3-1 is shown.",
            move |_| both(miss(Way::Interrupt, 1), [1280.0, 1400.0], 1e-9),
        ),
        Check::new("EX-5.2.2-flat", "", |_| vec![Value::exact(miss(Way::FlatTable, 2)[0], 310.0)]),
        Check::new("EX-5.2.2-walk", "The text says about 1 us; table 3-1 gives less.", move |_| {
            both(miss(Way::Walk, 2), [530.0, 770.0], 1e-9)
        }),
        Check::new("EX-5.2.2-reg", "The walk is taken as 230 ns, within its bounds.", |_| {
            let walk = Time::from_nanos(230);
            vec![Value::exact(nanos(atu::register(&HOST, walk)), 470.0)]
        }),
        Check::new("EX-5.2.2-dereg", "", |_| {
            vec![Value::within(nanos(atu::deregister(&HOST)), 365.0, 375.0)]
        }),
        Check::new("EX-5.2.3-hit", "", move |_| {
            let hit = Way::ManagedTlb { registered: false }.hit(clock).expect("it has a TLB");
            vec![Value::near(nanos(hit), 60.0, 0.1)]
        }),
        Check::new(
            "EX-5.2.3-miss",
            "The section's own least parts (interrupt, a walk of 180 ns, a store) sum to 1.3 us.",
            move |_| both(miss(Way::ManagedTlb { registered: false }, 1), [1600.0, 2000.0], 0.1),
        ),
        Check::new(
            "EX-5.2.3-missreg",
            "Ours are the sums of the least and the most parts.",
            move |_| both(miss(Way::ManagedTlb { registered: true }, 1), [1300.0, 1600.0], 0.1),
        ),
        Check::new("EX-5.2.5", "", |_| {
            vec![Value::exact(miss(Way::FullWalk { levels: 5 }, 1)[0], 1400.0)]
        }),
        Check::new(
            "EX-5.2.6",
            "Two reads of 280 ns are 560 ns; the text rounds down.",
            move |_| {
                let [one, two] = [1, 2].map(|addresses| miss(Way::ReducedWalk, addresses)[0]);
                both([one, two], [280.0, 500.0], 0.1)
            },
        ),
    ]
}

/// The ATU itself.
fn unit() -> Vec<Check> {
    let clock = prototype_clock();
    let span = move |cycles| nanos(clock.span(cycles));
    let cycle = span(1);
    vec![
        Check::new("EX-5.2.9", "", move |_| {
            vec![Value::near(atu::ceiling(clock) / 1e6, 78.0, 0.005)]
        }),
        Check::new(
            "EX-T5.8-miss",
            "The two stages of table 5-8 are inputs; the read of the table takes no time here.",
            move |_| {
                let miss = nanos(atu::miss(clock, Time::ZERO));
                vec![Value::exact(miss / cycle, 20.0), Value::near(miss, 128.0, 0.005)]
            },
        ),
        Check::new(
            "EX-5.6-lat",
            "The least time is 9 cycles, so 50 ns cannot be; the most needs a read of 200 ns, and \
             table 3-1 has 280 ns.",
            move |_| {
                let miss = nanos(atu::miss(clock, HOST.device_read));
                vec![Value::near(span(atu::HIT), 50.0, 0.15), Value::near(miss, 330.0, 0.15)]
            },
        ),
        Check::new(
            "EX-5.6-rhit",
            "A unit that asks for one translation after the other.",
            move |_| {
                let rate = atu::rate(clock, HOST.device_read, 1, true);
                vec![Value::within(rate / 1e6, 10.0, atu::ceiling(clock) / 1e6)]
            },
        ),
        Check::new(
            "EX-5.6-rmiss",
            "One outstanding read of 280 ns. The measured system has four sockets, whose reads are \
             not stated: 1.2 M/s needs one of 680 ns.",
            move |_| {
                let rate = atu::rate(clock, HOST.device_read, 1, false);
                vec![Value::near(rate / 1e6, 1.2, 0.25)]
            },
        ),
        Check::new("EX-5.6-flush", "Flushes leave over the channel of translations.", move |_| {
            vec![Value::exact(1e9 / atu::flushes(clock) / cycle, 2.0)]
        }),
        Check::new("EX-5.7-ddr", "", move |_| {
            vec![Value::near(nanos(atu::miss(clock, Time::from_nanos(75))), 203.0, 0.005)]
        }),
    ]
}

/// Memory that is mapped, registered and deregistered.
fn memory() -> Vec<Check> {
    let note = "One to 64 pages; each is walked in 180 to 300 ns by chance. ConnectX never takes \
                less than 50 us.";
    vec![
        Check::new("EX-5.3-space", "", |_| {
            let giga = |bytes: u64| (bytes >> 30) as f64;
            vec![
                Value::exact(giga(atu::mappable(512)), 512.0),
                Value::exact(giga(atu::mappable(10 * 512)), 5.0 * 1024.0),
                Value::exact((atu::tables(1 << 30) >> 20) as f64, 2.0),
                Value::exact((atu::tables(32 << 30) >> 20) as f64, 64.0),
            ]
        }),
        Check::new("EX-F5.13", note, |_| {
            let mut random = Random::new(1, 0);
            registration(|pages| atu::register_pages(&HOST, pages, &mut random))
        }),
        Check::new("EX-F5.14", note, |_| {
            registration(|pages| atu::deregister_pages(&HOST, prototype_clock(), pages))
        }),
    ]
}

/// The time of one page, how straight the times of 1 to 64 pages are, and the greatest.
fn registration(mut time: impl FnMut(u64) -> Time) -> Vec<Value> {
    let micros: Vec<_> = (1..=64).map(|pages| nanos(time(pages)) / 1e3).collect();
    let points: Vec<_> =
        (1..).zip(&micros).map(|(pages, time)| (f64::from(pages), *time)).collect();
    let most = micros.iter().copied().fold(0.0, f64::max);
    vec![
        Value::within(micros[0], 0.0, 2.0),
        Value::within(fit(&points).determination, 0.98, 1.0),
        Value::within(most, 0.0, 50.0),
    ]
}
