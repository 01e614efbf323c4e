//! Axes: where a number stands on one, which of them are marked, and how they are written.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// A direction of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) unit: Unit,
}

/// The unit of the numbers on an axis, by which they are placed and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Powers of two.
    Bytes,
    /// Decades.
    Nanoseconds,
    /// 10^9 bytes a second; decades.
    Bandwidth,
    /// Million operations a second; decades.
    Rate,
    /// Evenly.
    Count,
}

/// An axis that is laid out for numbers.
///
/// The logarithmic axis of plotters marks whole powers of its base only. So it has one mark or none
/// where all numbers lie within a decade.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    unit: Unit,
    pub(super) ends: [f64; 2],
    marks: Vec<f64>,
}

/// Marks at most.
const MARKS_MAX: usize = 7;
/// The room beyond the least and the greatest size, as a factor.
const ROOM: f64 = 1.25;

impl Axis {
    /// An axis of this name.
    pub(crate) fn new(name: &str, unit: Unit) -> Self {
        Self { name: name.to_owned(), unit }
    }

    /// Laid out so that all of `numbers` have a place.
    pub(super) fn scale(&self, numbers: impl Iterator<Item = f64>) -> Scale {
        let unit = self.unit;
        let numbers = numbers.filter(|number| unit == Unit::Count || *number > 0.0);
        let (least, most) = numbers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| {
                (least.min(number), most.max(number))
            });
        let (least, most) = if least <= most { (least, most) } else { (1.0, 1.0) };
        let (ends, marks) = match unit {
            Unit::Count => even(least, most),
            Unit::Bytes => powers_of_two(least, most),
            _ => decades(least, most),
        };
        Scale { unit, ends, marks }
    }
}

impl Scale {
    /// Whether a number has a place: nought has no logarithm.
    pub(super) fn has(&self, number: f64) -> bool {
        self.unit.place(number).is_finite()
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, number: &f64, (first, last): (i32, i32)) -> i32 {
        let [least, most] = self.ends.map(|end| self.unit.place(end));
        let share = (self.unit.place(*number) - least) / (most - least);
        first + (share * f64::from(last - first)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        if hint.weight().allow_light_points() { vec![] } else { self.marks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.ends[0]..self.ends[1]
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(number: &f64) -> String {
        number.to_string()
    }

    fn format_ext(&self, number: &f64) -> String {
        self.unit.label(*number)
    }
}

impl Unit {
    fn place(self, number: f64) -> f64 {
        if self == Self::Count { number } else { number.ln() }
    }

    /// A number as people write it, with its unit.
    pub(crate) fn label(self, number: f64) -> String {
        let (powers, names): (f64, &[&str]) = match self {
            Self::Bytes => (1024.0, &["B", "KiB", "MiB", "GiB"]),
            Self::Nanoseconds => (1000.0, &["ns", "us", "ms", "s"]),
            // From thousandths on.
            Self::Bandwidth => (1000.0, &["KB/s", "MB/s", "GB/s", "TB/s"]),
            Self::Rate => (1000.0, &["op/s", "kop/s", "Mop/s", "Gop/s"]),
            Self::Count => (1000.0, &["", "k", "M", "G", "T"]),
        };
        let mut rest =
            number * if matches!(self, Self::Bandwidth | Self::Rate) { 1e6 } else { 1.0 };
        let mut names = names.iter().peekable();
        let mut name = *names.next().unwrap_or(&"");
        // 999.6 ns would be written as 1000 ns: it is 1 us.
        while rest.abs() >= powers * 0.9995 && names.peek().is_some() {
            rest /= powers;
            name = names.next().unwrap_or(&"");
        }
        let gap = if name.is_empty() || self == Self::Count { "" } else { " " };
        format!("{}{gap}{name}", three_digits(rest))
    }
}

/// Three digits that count, without noughts behind a point.
fn three_digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 || size == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

type Layout = ([f64; 2], Vec<f64>);

/// Every power, every second, and so on, with a little room at both ends.
fn powers_of_two(least: f64, most: f64) -> Layout {
    let ends = [least / ROOM, most * ROOM];
    let (first, last) = (ends[0].log2().ceil() as i32, ends[1].log2().floor() as i32);
    if last <= first {
        let below = least.log2().floor();
        let around = [below, (below + 1.0).max(most.log2().ceil())].map(f64::exp2);
        return (around, around.to_vec());
    }
    let span = last - first;
    let step = (1..).find(|step| span / step < MARKS_MAX as i32 - 1).unwrap_or(1);
    let marks = (0..=span / step).map(|mark| 2_f64.powi(first + mark * step));
    (ends, marks.collect())
}

/// Decades; where they are few, 2 and 5 of each too. The ends are marks.
fn decades(least: f64, most: f64) -> Layout {
    let steps = [1.0, 2.0, 5.0];
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let all: Vec<_> =
        (first..=last).flat_map(|decade| steps.map(|step| step * 10_f64.powi(decade))).collect();
    // A number may be a mark but for its last digit.
    let low = all.iter().rposition(|mark| *mark <= least * 1.001).unwrap_or(0);
    let mut high = all.iter().position(|mark| *mark >= most * 0.999).unwrap_or(all.len() - 1);
    if high == low {
        high = (high + 1).min(all.len() - 1);
    }
    let ends = [all[low], all[high]];
    let between = &all[low..=high];
    let is_decade = |mark: &&f64| (mark.log10() - mark.log10().round()).abs() < 1e-9;
    let marks: Vec<f64> = match between.len() {
        few if few <= MARKS_MAX => between.to_vec(),
        _ => between.iter().filter(is_decade).copied().collect(),
    };
    let step = marks.len().div_ceil(MARKS_MAX).max(1);
    (ends, marks.into_iter().step_by(step).collect())
}

/// Multiples of 1, 2 or 5 and a power of ten, from one below to one above all numbers, nought among
/// them.
fn even(least: f64, most: f64) -> Layout {
    let (least, most) = (least.min(0.0), most.max(0.0));
    let span = if most > least { most - least } else { 1.0 };
    let power = 10_f64.powf((span / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|step| step * power)
        .into_iter()
        .find(|step| span / step <= 5.0)
        .unwrap_or(10.0 * power);
    let (first, last) = ((least / step).floor() as i64, (most / step).ceil() as i64);
    let last = last.max(first + 1);
    let marks: Vec<_> = (first..=last).map(|mark| mark as f64 * step).collect();
    ([first as f64 * step, last as f64 * step], marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, numbers: &[f64]) -> Vec<String> {
        let scale = Axis::new("", unit).scale(numbers.iter().copied());
        scale.marks.iter().map(|mark| scale.format_ext(mark)).collect()
    }

    #[test]
    fn numbers_have_units() {
        let bytes = [8.0, 1000.0, 1024.0, 65536.0, 16_777_216.0].map(|n| Unit::Bytes.label(n));
        assert_eq!(bytes, ["8 B", "1000 B", "1 KiB", "64 KiB", "16 MiB"]);
        let times = [0.25, 71.04, 999.9, 25_300.0].map(|n| Unit::Nanoseconds.label(n));
        assert_eq!(times, ["0.25 ns", "71 ns", "1 us", "25.3 us"]);
        let speeds = [0.0005, 0.05, 12.34].map(|n| Unit::Bandwidth.label(n));
        assert_eq!(speeds, ["500 KB/s", "50 MB/s", "12.3 GB/s"]);
        assert_eq!([0.0, 1500.0].map(|n| Unit::Count.label(n)), ["0", "1.5k"]);
        assert_eq!(Unit::Rate.label(14.26), "14.3 Mop/s");
    }

    #[test]
    fn marks_are_few_and_round() {
        assert_eq!(
            labels(Unit::Bytes, &[8.0, 1_048_576.0]),
            ["8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB"]
        );
        assert_eq!(labels(Unit::Bytes, &[8.0, 56.0]), ["8 B", "16 B", "32 B", "64 B"]);
        assert_eq!(labels(Unit::Nanoseconds, &[64.0, 180.0]), ["50 ns", "100 ns", "200 ns"]);
        assert_eq!(
            labels(Unit::Nanoseconds, &[64.0, 64_000.0]),
            ["100 ns", "1 us", "10 us", "100 us"]
        );
        assert_eq!(labels(Unit::Nanoseconds, &[100.0]), ["100 ns", "200 ns"]);
        assert_eq!(labels(Unit::Count, &[3.0, 7.0]), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(Unit::Count, &[-0.5, 0.9]), ["-0.5", "0", "0.5", "1"]);
        assert_eq!(labels(Unit::Count, &[]).len(), 6);
    }

    #[test]
    fn all_numbers_have_a_place_between_the_ends() {
        for unit in [Unit::Bytes, Unit::Nanoseconds, Unit::Bandwidth, Unit::Count] {
            for numbers in [[0.003, 4.7], [99.99, 100.01], [1.0, 1e9], [1000.0, 1000.0]] {
                let scale = Axis::new("", unit).scale(numbers.into_iter());
                for number in numbers.iter().chain(&scale.marks) {
                    let pixel = scale.map(number, (0, 1000));
                    assert!((0..=1000).contains(&pixel), "{unit:?} {number} {scale:?}");
                }
                assert!(scale.marks.is_sorted() && scale.marks.len() <= MARKS_MAX + 1, "{scale:?}");
            }
        }
        let scale = Axis::new("", Unit::Bytes).scale([0.0].into_iter());
        assert!(scale.has(8.0) && !scale.has(0.0));
    }
}
