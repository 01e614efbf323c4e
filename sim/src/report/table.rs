//! Results as CSV: a line for each point.
use super::{Point, ReportError, Results, Verdict, part_names};

/// The columns behind those of the parameters.
const COLUMNS: [&str; 22] = [
    "verdict",
    "replicas",
    "packets",
    "delay_ns",
    "delay_within_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99.9_ns",
    "p99.99_ns",
    "max_ns",
    "offered",
    "accepted",
    "accepted_within",
    "gigabits_per_node",
    "queued_ns",
    "waited_ns",
    "moved_ns",
    "busiest_link",
    "mean_queue_bytes",
    "longest_queue_bytes",
    "end_ns",
];

impl Results {
    /// As CSV: a line for each point, with the parameters that have several values first.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub fn to_csv(&self) -> Result<String, ReportError> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        let swept = self.points.first().map_or(&[][..], |point| &point.swept);
        let interfaces = interface_columns(&self.points);
        let names = swept.iter().map(|(name, _)| name.clone());
        let columns = COLUMNS.iter().map(|name| (*name).to_owned());
        csv.write_record(names.chain(columns).chain(interfaces.clone()))?;
        for point in &self.points {
            let values = point.swept.iter().map(|(_, value)| value.clone());
            let more = interfaces.iter().map(|column| interface_cell(point, column));
            csv.write_record(values.chain(cells(point)).chain(more))?;
        }
        let bytes = csv.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn cells(point: &Point) -> Vec<String> {
    let mut cells = vec![
        point.verdict.word().to_owned(),
        point.replicas.to_string(),
        point.packets.to_string(),
        number(point.delay_ns.mean),
        number(point.delay_ns.half_width),
    ];
    let percentiles = COLUMNS.iter().filter(|name| name.starts_with('p') && name.contains("_ns"));
    for at in 0..=percentiles.count() {
        cells.push(point.percentiles_ns.get(at).map_or(String::new(), |(_, ns)| number(*ns)));
    }
    let [queued, waited, moved] = point.parts.mean_ns(point.packets);
    let rest = [
        point.offered.mean,
        point.accepted.mean,
        point.accepted.half_width,
        point.gigabits,
        queued,
        waited,
        moved,
        point.links.most,
        point.queues.mean,
        point.queues.most as f64,
    ];
    cells.extend(rest.map(number));
    // Of the schedule or the script, if there was one.
    let schedule = point.schedule.as_ref().map(|schedule| schedule.end_ns.mean);
    let end = schedule.or_else(|| point.script.as_ref().map(|script| script.end_ns));
    cells.push(end.map_or(String::new(), number));
    cells
}

/// Further columns of single interfaces, if there are some. The last ones are the parts.
fn interface_columns(points: &[Point]) -> Vec<String> {
    let mut columns =
        ["latency_ps", "operations_per_second", "bytes_per_second"].map(str::to_owned).to_vec();
    let parts = part_names(points);
    if parts.is_empty() {
        return vec![];
    }
    columns.extend(parts.iter().map(|name| format!("{name} ps")));
    columns
}

fn interface_cell(point: &Point, column: &str) -> String {
    let Some(interface) = &point.interface else { return String::new() };
    match column {
        "latency_ps" => interface.latency_ps.to_string(),
        "operations_per_second" => number(interface.rate),
        "bytes_per_second" => number(interface.bandwidth),
        _ => interface.part_ps(column.trim_end_matches(" ps")).to_string(),
    }
}

/// Empty, if it is not known.
fn number(number: f64) -> String {
    if number.is_finite() { format!("{number:.6}") } else { String::new() }
}

impl super::Parts {
    /// Nanoseconds of each packet in the mean: in its source's queue, waiting in the network, and
    /// moving.
    pub fn mean_ns(&self, packets: u64) -> [f64; 3] {
        [self.queued_ps, self.waited_ps, self.moved_ps]
            .map(|picos| picos as f64 / 1e3 / packets.max(1) as f64)
    }
}

impl Verdict {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Unstable => "unstable",
            Self::Deadlocked => "deadlocked",
            Self::NotRun => "not run",
            Self::Failed => "failed",
        }
    }
}
