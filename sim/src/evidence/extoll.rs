//! Rows of the EXTOLL thesis.
use super::{Check, Value};
use crate::extoll::issue::Method;
use crate::extoll::{Operation, Parameters, atu, frame, part, prototype_clock};
use crate::host::Host;
use crate::machine::{Machine, Part, visits};
use crate::routing::{Plan, Policy, RunLength};
use crate::time::Time;
use crate::topology::Topology;

const HOST: Host = Host::HT400;

pub(super) fn checks() -> Vec<Check> {
    let mut all = translation();
    all.extend(issue());
    all.extend(link());
    for (operation, row) in OPERATIONS.iter().zip(&TABLE_9_1) {
        all.extend(table_9_1(*operation, row));
    }
    all
}

fn nanos(time: Time) -> f64 {
    time.nanos()
}

fn translation() -> Vec<Check> {
    let clock = prototype_clock();
    let span = move |cycles| nanos(clock.span(cycles));
    vec![
        Check::new(
            "EX-5.2.1",
            "The text rounds up to 1.5 us; the sum of table 3-1 is shown.",
            |_| {
                let (least, most) = atu::by_interrupt(&HOST);
                vec![Value::exact(nanos(least), 1280.0), Value::exact(nanos(most), 1400.0)]
            },
        ),
        Check::new("EX-5.2.2-flat", "", |_| {
            vec![Value::exact(nanos(atu::before_flat(&HOST)), 310.0)]
        }),
        Check::new("EX-5.2.2-walk", "The text says about 1 us; table 3-1 gives less.", |_| {
            let (least, most) = atu::before_walk(&HOST);
            vec![Value::exact(nanos(least), 530.0), Value::exact(nanos(most), 770.0)]
        }),
        Check::new("EX-5.2.2-reg", "The walk is taken as 230 ns, within its bounds.", |_| {
            let walk = Time::from_nanos(230);
            vec![Value::exact(nanos(atu::register(&HOST, walk)), 470.0)]
        }),
        Check::new("EX-5.2.2-dereg", "", |_| {
            vec![Value::within(nanos(atu::deregister(&HOST)), 365.0, 375.0)]
        }),
        Check::new("EX-5.2.3-hit", "", move |_| vec![Value::near(span(atu::HIT), 60.0, 0.1)]),
        Check::new("EX-5.2.5", "", |_| vec![Value::exact(nanos(atu::full_walk(&HOST, 5)), 1400.0)]),
        Check::new("EX-5.2.9", "", move |_| {
            vec![Value::near(atu::ceiling(clock) / 1e6, 78.0, 0.005)]
        }),
        Check::new("EX-5.3-space", "", |_| {
            let giga = |bytes: u64| (bytes >> 30) as f64;
            vec![
                Value::exact(giga(atu::mappable(512)), 512.0),
                Value::exact(giga(atu::mappable(10 * 512)), 5.0 * 1024.0),
                Value::exact((atu::tables(1 << 30) >> 20) as f64, 2.0),
                Value::exact((atu::tables(32 << 30) >> 20) as f64, 64.0),
            ]
        }),
        Check::new("EX-5.7-ddr", "", move |_| {
            vec![Value::near(nanos(atu::miss(clock, Time::from_nanos(75))), 203.0, 0.005)]
        }),
        Check::new(
            "EX-5.6-lat",
            "The least time is 9 cycles, so 50 ns cannot be; the most needs a read of 200 ns, and \
             table 3-1 has 280 ns.",
            move |_| {
                let miss = nanos(atu::miss(clock, HOST.device_read));
                vec![Value::near(span(atu::HIT), 50.0, 0.15), Value::near(miss, 330.0, 0.15)]
            },
        ),
    ]
}

fn issue() -> Vec<Check> {
    let start = |method: Method| nanos(method.start(&HOST));
    vec![
        Check::new("EX-6.4.1-start", "", move |_| {
            vec![Value::exact(start(Method::TriggerPage), 380.0)]
        }),
        Check::new("EX-6.4.1-tx", "", move |_| {
            let rest = nanos(HOST.device_read);
            let whole = |translation: f64| start(Method::TriggerPage) + rest + translation;
            vec![Value::within(whole(50.0), 710.0, 720.0), Value::within(whole(60.0), 710.0, 720.0)]
        }),
        Check::new("EX-6.4.2", "", move |_| {
            let store = Time::from_nanos(20);
            let period = |method: Method| method.period(&HOST, store).0;
            vec![
                Value::near(start(Method::Transactional), 200.0, 0.1),
                Value::holds(period(Method::Transactional) == period(Method::TriggerPage)),
            ]
        }),
        Check::new(
            "EX-6.4.3",
            "A posted store is taken to hold the processor for 20 ns.",
            move |_| {
                let store = Time::from_nanos(20);
                let period = |method: Method| method.period(&HOST, store).0;
                vec![
                    Value::within(start(Method::FlowControlled), 0.0, 99.9),
                    Value::holds(period(Method::FlowControlled) < period(Method::Transactional)),
                ]
            },
        ),
        Check::new("EX-6.4.5", "", move |_| {
            let added = start(Method::ThroughKernel) - start(Method::FlowControlled);
            vec![Value::exact(added, 170.0)]
        }),
    ]
}

fn link() -> Vec<Check> {
    vec![
        Check::new(
            "EX-7.3-velo",
            "13 phits around the payload: routing 4, header 4, start 1, CRC 2, credits 1, end 1.",
            |_| vec![Value::exact(frame::cycles(56, false).into(), 41.0)],
        ),
        Check::new(
            "EX-7.3-eff",
            "With the layout that gives 41 cycles, 4 KiB take 91 %; table 7-10 has 88 %.",
            |_| {
                vec![
                    Value::within(100.0 * frame::efficiency(56, false), 67.3, 69.3),
                    Value::within(100.0 * frame::efficiency(4096, true), 75.0, 85.0),
                ]
            },
        ),
        Check::new("EX-T7.7-bwv", "", |_| vec![Value::near(put_rate(4096), 275.0, 0.05)]),
        Check::new("EX-T7.10-156", "Start-up of VELO, bandwidth of puts.", |_| {
            let times = Parameters::composed(&HOST, prototype_clock());
            vec![
                Value::near(time_alone(Operation::Velo, &times), 1300.0, 0.05),
                Value::near(put_rate(4096), 274.0, 0.05),
            ]
        }),
        Check::new("EX-F9.5-max", "A put has 4 KiB at most.", |_| {
            let most = [512, 1024, 2048, 4096].map(put_rate).into_iter().fold(0.0, f64::max);
            vec![Value::within(100.0 * put_rate(4096) / most, 95.0, 100.0)]
        }),
        Check::new("EX-7.3-route", "All ways from one node are written as strings.", |_| {
            vec![Value::exact(f64::from(routes_that_fit(64)), 262_144.0)]
        }),
    ]
}

/// The nodes of a cubic torus whose ways from node 0 fit a routing string of 64 bits.
fn routes_that_fit(side: u32) -> u32 {
    let torus = Topology::torus(&[side; 3]).expect("a possible torus");
    let plan = Plan::new(&torus, Policy::DimensionOrder, 2).expect("a possible plan");
    let fits = |target| plan.way(0, target).is_some_and(|way| RunLength::new(&way).is_ok());
    (0..torus.nodes.len() as u32).map(|target| u32::from(fits(target))).sum()
}

/// Megabytes per second of puts in a row.
fn put_rate(bytes: u32) -> f64 {
    let clock = prototype_clock();
    Parameters::composed(&HOST, clock).put_rate(bytes, clock) / 1e6
}

/// The operations of table 9-1.
const OPERATIONS: [Operation; 8] = [
    Operation::Velo,
    Operation::NotificationPut,
    Operation::ImmediatePut { notified: false },
    Operation::ImmediatePut { notified: true },
    Operation::Put { notified: false },
    Operation::Put { notified: true },
    Operation::Get,
    Operation::Lock,
];

/// A line of table 9-1.
struct Line {
    /// The names of its rows: counts, prognosis, measurement.
    ids: [&'static str; 3],
    /// DMA reads, translations, trips, DMA writes, PIO writes, units.
    counts: [u32; 6],
    prognosis: f64,
    measured: f64,
    note: &'static str,
}

const fn line(ids: [&'static str; 3], counts: [u32; 6], prognosis: f64, measured: f64) -> Line {
    Line { ids, counts, prognosis, measured, note: "" }
}

const TABLE_9_1: [Line; 8] = [
    line(["EX-T9.1-velo-n", "EX-T9.1-velo-p", "EX-T9.1-velo-m"], [0, 0, 1, 1, 1, 0], 1300., 1300.),
    line(["EX-T9.1-nput-n", "EX-T9.1-nput-p", "EX-T9.1-nput-m"], [0, 0, 1, 1, 1, 2], 1400., 1400.),
    line(["EX-T9.1-imm-n", "EX-T9.1-imm-p", "EX-T9.1-imm-m"], [0, 1, 1, 1, 1, 2], 1470., 1470.),
    line(["EX-T9.1-immn-n", "EX-T9.1-immn-p", "EX-T9.1-immn-m"], [0, 1, 1, 2, 1, 2], 1670., 1670.),
    Line {
        note: "The thesis's own sum is 5 % below its measurement, too.",
        ..line(
            ["EX-T9.1-put-n", "EX-T9.1-put-p", "EX-T9.1-put-m"],
            [1, 2, 1, 1, 1, 2],
            1890.,
            1990.,
        )
    },
    line(["EX-T9.1-putn-n", "EX-T9.1-putn-p", "EX-T9.1-putn-m"], [1, 2, 1, 2, 1, 2], 2090., 2100.),
    line(["EX-T9.1-get-n", "EX-T9.1-get-p", "EX-T9.1-get-m"], [1, 2, 2, 2, 1, 3], 2790., 2820.),
    line(["EX-T9.1-lock-n", "EX-T9.1-lock-p", "EX-T9.1-lock-m"], [1, 0, 2, 2, 1, 3], 2650., 2700.),
];

/// The parts in the order of the table's columns.
const COLUMNS: [Part; 6] =
    [part::DMA_READ, part::TRANSLATION, part::TRIP, part::DMA_WRITE, part::PIO_WRITE, part::UNIT];

fn table_9_1(operation: Operation, line: &'static Line) -> [Check; 3] {
    let [counts, prognosis, measured] = line.ids;
    [
        Check::new(counts, "", move |_| {
            let course = operation.course(&Parameters::LISTED);
            let visited = COLUMNS.map(|part| visits(&course, part) as f64);
            let published = line.counts.map(f64::from);
            visited
                .iter()
                .zip(published)
                .map(|(ours, theirs)| Value::exact(*ours, theirs))
                .collect()
        }),
        Check::new(prognosis, "", move |_| {
            vec![Value::exact(time_alone(operation, &Parameters::LISTED), line.prognosis)]
        }),
        Check::new(measured, line.note, move |_| {
            let times = Parameters::composed(&HOST, prototype_clock());
            vec![Value::near(time_alone(operation, &times), line.measured, 0.05)]
        }),
    ]
}

/// The time of an operation that is alone in the machine.
fn time_alone(operation: Operation, times: &Parameters) -> f64 {
    let mut machine = Machine::default();
    let item = machine.add(operation.course(times), [Time::ZERO]);
    machine.run();
    nanos(machine.passage(item).time())
}
