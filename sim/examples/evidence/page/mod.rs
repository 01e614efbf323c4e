//! The published numbers of the sources and ours, in the words in which pages show them.
mod drawing;
pub(crate) mod html;
pub(crate) mod markdown;

use ayre_sim::evidence::{Check, Role, Row, UNCHECKED, Value, checks, rows};
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

/// Packets that are measured for each of five seeds, where chance takes part.
pub(crate) const PACKETS: u64 = 400_000;

/// All rows, computed.
pub(crate) struct Evidence {
    pub(crate) lines: Vec<Line>,
}

/// A row and its outcome.
pub(crate) struct Line {
    pub(crate) row: Row,
    pub(crate) verdict: Verdict,
    /// Ours; none without a check.
    pub(crate) values: Vec<Value>,
    /// The reason for a difference, or anything that a reader has to know.
    pub(crate) note: &'static str,
}

/// The outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agrees,
    Differs,
    /// It could be judged, and its note says why it is not.
    Unchecked,
    Input,
    /// It is only told.
    NotJudged,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Unchecked => "no check",
            Self::Input => "input",
            Self::NotJudged => "not judged",
        }
    }
}

impl Evidence {
    /// Computes all rows that have a check, on all processors.
    pub(crate) fn compute(packets: u64) -> Self {
        let (rows, checks) = (rows(), checks());
        let checks: HashMap<_, _> = checks.iter().map(|check| (check.id, check)).collect();
        let (left, done) =
            (Mutex::new(rows.iter().enumerate()), Mutex::new(vec![None; rows.len()]));
        let work = || {
            loop {
                // A lock of its own statement, so that others go on while a row is computed.
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((at, row)) = next else { return };
                let values = checks.get(row.id).map(|check| check.run(packets));
                done.lock().unwrap_or_else(PoisonError::into_inner)[at] = values;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
                scope.spawn(work);
            }
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lines = rows.iter().zip(done);
        let lines = lines.map(|(row, values)| line(*row, checks.get(row.id).copied(), values));
        Self { lines: lines.collect() }
    }

    /// How many rows came out like this.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.lines.iter().filter(|line| line.verdict == verdict).count()
    }

    /// How many rows can be judged.
    pub(crate) fn judged(&self) -> usize {
        self.lines.iter().filter(|line| line.row.role.is_judged()).count()
    }
}

fn line(row: Row, check: Option<&Check>, values: Option<Vec<Value>>) -> Line {
    let reason = UNCHECKED.iter().find(|(id, _)| *id == row.id).map(|(_, reason)| *reason);
    let verdict = match &values {
        Some(values) if values.iter().all(Value::is_good) => Verdict::Agrees,
        Some(_) => Verdict::Differs,
        None if row.role.is_judged() => Verdict::Unchecked,
        None if row.role == Role::In => Verdict::Input,
        None => Verdict::NotJudged,
    };
    let note = check.map(|check| check.note).or(reason).unwrap_or_default();
    Line { row, verdict, values: values.unwrap_or_default(), note }
}

impl Line {
    /// Ours, with their intervals.
    pub(crate) fn ours(&self) -> String {
        self.values.iter().map(show).collect::<Vec<_>>().join(" ; ")
    }

    /// How far each is from the middle of the values that agree, or the range where it is wide.
    pub(crate) fn deviations(&self) -> String {
        self.values.iter().map(deviation).collect::<Vec<_>>().join(" ; ")
    }
}

fn show(value: &Value) -> String {
    let number = |number: f64| {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if value.half_width > 0.0 {
        format!("{} ± {}", number(value.ours), number(value.half_width))
    } else {
        number(value.ours)
    }
}

fn deviation(value: &Value) -> String {
    let (least, most) = value.agrees;
    let center = f64::midpoint(least, most);
    if (value.ours - center).abs() < 1e-6 {
        return "0".into();
    }
    if least <= 0.0 || most > 1.3 * least {
        return format!("{least:.1} to {most:.1}");
    }
    let share = 100.0 * (value.ours / center - 1.0);
    format!("{share:+.1} %")
}
