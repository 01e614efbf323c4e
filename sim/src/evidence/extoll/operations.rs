//! Rows of chapter 9 about single operations: tables 9-1 and 9-2.
use super::super::{Check, Value};
use super::{HOST, nanos};
use crate::extoll::{Operation, Pair, Parameters, part, prototype_clock};
use crate::machine::{Machine, Part, visits};

/// The length of the operations whose start-up is measured.
const BYTES: u32 = 8;

pub(super) fn checks() -> Vec<Check> {
    OPERATIONS
        .iter()
        .zip(&TABLE_9_1)
        .flat_map(|(operation, row)| table_9_1(*operation, row))
        .collect()
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
}

const fn line(ids: [&'static str; 3], counts: [u32; 6], prognosis: f64, measured: f64) -> Line {
    Line { ids, counts, prognosis, measured }
}

const TABLE_9_1: [Line; 8] = [
    line(["EX-T9.1-velo-n", "EX-T9.1-velo-p", "EX-T9.1-velo-m"], [0, 0, 1, 1, 1, 0], 1300., 1300.),
    line(["EX-T9.1-nput-n", "EX-T9.1-nput-p", "EX-T9.1-nput-m"], [0, 0, 1, 1, 1, 2], 1400., 1400.),
    line(["EX-T9.1-imm-n", "EX-T9.1-imm-p", "EX-T9.1-imm-m"], [0, 1, 1, 1, 1, 2], 1470., 1470.),
    line(["EX-T9.1-immn-n", "EX-T9.1-immn-p", "EX-T9.1-immn-m"], [0, 1, 1, 2, 1, 2], 1670., 1670.),
    line(["EX-T9.1-put-n", "EX-T9.1-put-p", "EX-T9.1-put-m"], [1, 2, 1, 1, 1, 2], 1890., 1990.),
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
            let pair = Pair::new(&mut Machine::default(), Parameters::LISTED);
            let course = pair.course(operation, BYTES);
            let visited = COLUMNS.map(|part| visits(&course, part) as f64);
            let published = line.counts.map(f64::from);
            visited
                .iter()
                .zip(published)
                .map(|(ours, theirs)| Value::exact(*ours, theirs))
                .collect()
        }),
        Check::new(prognosis, "", move |_| {
            vec![Value::exact(nanos(Parameters::LISTED.alone(operation, BYTES)), line.prognosis)]
        }),
        Check::new(measured, "", move |_| {
            let times = Parameters::composed(&HOST, prototype_clock());
            vec![Value::near(nanos(times.alone(operation, BYTES)), line.measured, 0.05)]
        }),
    ]
}
