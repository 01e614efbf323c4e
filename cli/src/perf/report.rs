//! The output: an aligned table for people, or one JSON object per line for programs.

use std::io::{self, Write};

use serde::Serialize;

/// One figure. The field names are those of the JSON objects.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The operation.
    pub(crate) op: &'static str,
    /// How it was executed: "raw", "direct", "mediated", "loopback".
    pub(crate) path: &'static str,
    /// Bytes an operation; 0 where it carries none.
    pub(crate) size: usize,
    /// Processes, and the cores that they share: fewer where they take turns.
    pub(crate) ranks: usize,
    pub(crate) cores: usize,
    /// "latency", "rate" or "bandwidth".
    pub(crate) metric: &'static str,
    /// The unit of `value` and `raw`.
    pub(crate) unit: &'static str,
    /// The median over the repetitions.
    pub(crate) value: f64,
    /// The limit of the machine in the same unit, from the same minutes.
    pub(crate) raw: f64,
    /// The name of the limit.
    pub(crate) raw_op: &'static str,
    /// `value` / `raw`: the median of the ratios of single repetitions.
    pub(crate) ratio: f64,
    /// Nanoseconds an operation: of single operations for a latency, else of repetitions.
    pub(crate) p50_ns: f64,
    pub(crate) p90_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) p999_ns: f64,
    pub(crate) max_ns: f64,
    /// How many times the percentiles were taken of.
    pub(crate) samples: u64,
    /// How many repetitions of how many iterations `value` was taken of.
    pub(crate) repetitions: usize,
    pub(crate) iterations: u64,
}

/// The form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// An aligned table.
    Table,
    /// One JSON object a line.
    Json,
}

/// Prints rows as they come.
pub(crate) struct Report<W> {
    out: W,
    format: Format,
}

impl<W: Write> Report<W> {
    /// A report, or a further part of one.
    pub(crate) fn new(out: W, format: Format) -> Self {
        Self { out, format }
    }

    /// Prints what stands above the first figure.
    pub(crate) fn titles(&mut self) -> io::Result<()> {
        if self.format == Format::Table {
            writeln!(self.out, "{}", Columns::TITLES.line())?;
        }
        self.out.flush()
    }

    /// Prints one figure, and lets it be seen.
    pub(crate) fn row(&mut self, row: &Row) -> io::Result<()> {
        match self.format {
            Format::Table => writeln!(self.out, "{}", Columns::of(row).line())?,
            Format::Json => {
                serde_json::to_writer(&mut self.out, &rounded(row))?;
                writeln!(self.out)?;
            }
        }
        self.out.flush()
    }
}

/// The cells of one line of the table.
struct Columns<T> {
    words: [T; 4],
    figures: [T; 5],
    percentiles: [T; 4],
}

impl Columns<&'static str> {
    const TITLES: Self = Self {
        words: ["op", "path", "ranks", "size"],
        figures: ["value", "unit", "raw", "limit", "ratio"],
        percentiles: ["p50 ns", "p99 ns", "p99.9 ns", "max ns"],
    };
}

impl Columns<String> {
    fn of(row: &Row) -> Self {
        let percentiles = [row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns];
        Self {
            words: [row.op.to_owned(), row.path.to_owned(), ranks(row), human_size(row.size)],
            figures: [
                three_digits(row.value),
                row.unit.to_owned(),
                three_digits(row.raw),
                row.raw_op.trim_start_matches("raw-").to_owned(),
                format!("{:.2}", row.ratio),
            ],
            percentiles: percentiles.map(three_digits),
        }
    }
}

impl<T: AsRef<str>> Columns<T> {
    fn line(&self) -> String {
        let [op, path, ranks, size] = self.words.each_ref().map(T::as_ref);
        let [value, unit, raw, limit, ratio] = self.figures.each_ref().map(T::as_ref);
        let mut line = format!("{op:<24} {path:<8} {ranks:>7} {size:>5} {value:>9} {unit:<5}");
        line.push_str(&format!(" {raw:>9} {limit:<14} {ratio:>6}"));
        for percentile in &self.percentiles {
            line.push_str(&format!(" {:>9}", percentile.as_ref()));
        }
        line
    }
}

/// At least three digits, without a fraction where they are before the point.
pub(super) fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        value if value >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// How many ranks there are, and on how many cores where these are fewer.
fn ranks(row: &Row) -> String {
    match row.cores < row.ranks {
        true => format!("{} on {}", row.ranks, row.cores),
        false => row.ranks.to_string(),
    }
}

/// A size as people write it: 8, 4K, 1M.
pub(super) fn human_size(bytes: usize) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// Digits that mean something, and a few more.
const DIGITS: i32 = 6;

/// Without digits that mean nothing.
fn rounded(row: &Row) -> Row {
    let round = |value: f64| match value {
        0.0 => 0.0,
        _ => {
            let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
            (value * scale).round() / scale
        }
    };
    Row {
        value: round(row.value),
        raw: round(row.raw),
        ratio: round(row.ratio),
        p50_ns: round(row.p50_ns),
        p90_ns: round(row.p90_ns),
        p99_ns: round(row.p99_ns),
        p999_ns: round(row.p999_ns),
        max_ns: round(row.max_ns),
        ..*row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            op: "put-latency",
            path: "direct",
            size: 4096,
            ranks: 2,
            cores: 2,
            metric: "latency",
            unit: "ns",
            value: 143.04567,
            raw: 130.0,
            raw_op: "raw-put",
            ratio: 1.1003,
            p50_ns: 141.0,
            p90_ns: 150.0,
            p99_ns: 201.5,
            p999_ns: 9000.25,
            max_ns: 12345.0,
            samples: 20_000,
            repetitions: 31,
            iterations: 12_000,
        }
    }

    fn printed(format: Format, rows: &[Row]) -> String {
        let mut out = Vec::new();
        let mut report = Report::new(&mut out, format);
        report.titles().unwrap();
        for row in rows {
            report.row(row).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_is_one_object_a_line() {
        let text = printed(Format::Json, &[row(), row()]);
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(object["op"], "put-latency");
            assert_eq!(object["path"], "direct");
            assert_eq!(object["size"], 4096);
            assert_eq!(object["metric"], "latency");
            assert_eq!(object["value"], 143.046);
            assert_eq!(object["raw"], 130.0);
            assert_eq!(object["raw_op"], "raw-put");
            assert_eq!(object["ratio"], 1.1003);
            assert_eq!(object["p999_ns"], 9000.25);
        }
    }

    #[test]
    fn small_figures_keep_their_digits() {
        let small = Row { value: 0.000_123_456_78, raw: 0.0, ..row() };
        let object: serde_json::Value =
            serde_json::from_str(&printed(Format::Json, &[small])).unwrap();
        assert_eq!(object["value"], 0.000_123_457);
        assert_eq!(object["raw"], 0.0);
    }

    #[test]
    fn table_columns_are_aligned() {
        let small = Row { op: "raw-atomic", path: "raw", size: 8, value: 3.04, ..row() };
        let text = printed(Format::Table, &[row(), small]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert!(lines[1].contains("  2    4K "), "{text}");
        assert!(lines[1].contains(" 143 ns "), "{text}");
        assert!(lines[2].contains(" 3.04 ns "), "{text}");
        assert!(lines[1].contains(" 1.10 "), "{text}");
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!(human_size(0), "0");
        assert_eq!(human_size(56), "56");
        assert_eq!(human_size(1500), "1500");
        assert_eq!(human_size(64 << 10), "64K");
        assert_eq!(human_size(16 << 20), "16M");
    }

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(three_digits(2.947), "2.95");
        assert_eq!(three_digits(61.24), "61.2");
        assert_eq!(three_digits(5301.7), "5302");
        assert_eq!(three_digits(0.2737), "0.274");
        assert_eq!(three_digits(0.00513), "0.0051");
    }
}
