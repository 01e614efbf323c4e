//! The traffic of connections of programs with the sockets library between two samples.

use std::collections::HashMap;
use std::time::Instant;

use crate::info::tables::number;
use crate::sockets::list::{Address, Direction, Row, rows};

/// An end of a connection, as far as two looks can tell that it is the same.
type EndKey<'a> = (u32, [&'a Address; 2]);

/// Connections at a time.
pub(super) struct Sample {
    at: Instant,
    rows: Vec<Row>,
}

impl Sample {
    pub(super) fn take() -> Self {
        Self { at: Instant::now(), rows: rows() }
    }

    /// How many there are, and how many have the ring in a direction.
    pub(super) fn summary(&self) -> String {
        let has_ring = |row: &&Row| [row.out, row.inward].iter().any(|it| it.way == "ring");
        let rings = self.rows.iter().filter(has_ring).count();
        format!("connections {}  with rings {rings}", self.rows.len())
    }

    /// A line for each connection, below a line of heads, the busiest ones first. Those that were
    /// not there before have no rates yet.
    pub(super) fn table(&self, before: Option<&Self>) -> Vec<Vec<String>> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let seconds = before.map_or(0.0, |before| (self.at - before.at).as_secs_f64());
        let known: HashMap<EndKey<'_>, &Row> =
            before.iter().flat_map(|it| &it.rows).map(|row| (key(row), row)).collect();
        let mut lines: Vec<(u64, Vec<String>)> = self
            .rows
            .iter()
            .map(|row| {
                let old = known.get(&key(row));
                let rates = [
                    rate(row.out, old.map(|old| old.out), seconds),
                    rate(row.inward, old.map(|old| old.inward), seconds),
                ];
                (rates.iter().flatten().sum(), cells(row, rates))
            })
            .collect();
        lines.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let heads =
            ["process", "program", "local", "remote", "out B/s", "in B/s", "queued", "reason"];
        let heads = heads.map(str::to_owned).to_vec();
        [heads].into_iter().chain(lines.into_iter().map(|(_, cells)| cells)).collect()
    }
}

fn key(row: &Row) -> EndKey<'_> {
    (row.process, [&row.local, &row.remote])
}

/// Bytes a second, by both ways. The kernel's alone are not known of a connection without a seat.
fn rate(now: Direction, old: Option<Direction>, seconds: f64) -> Option<u64> {
    let bytes = |it: Direction| Some(it.ring_bytes? + it.tcp_bytes?);
    // Another connection with these addresses begins to count again.
    let moved = bytes(now)?.saturating_sub(bytes(old?)?);
    Some((moved as f64 / seconds).round() as u64)
}

fn cells(row: &Row, [out, inward]: [Option<u64>; 2]) -> Vec<String> {
    let told = |way: &str, rate: Option<u64>| {
        format!("{way} {}", rate.map_or_else(|| "-".to_owned(), number))
    };
    vec![
        row.process.to_string(),
        row.program.clone(),
        row.local.to_string(),
        row.remote.to_string(),
        told(row.out.way, out),
        told(row.inward.way, inward),
        row.queued(),
        row.reason.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sockets::list::tests::row_of;

    #[test]
    fn the_busiest_connection_is_first_and_a_new_one_has_no_rate() {
        let at = Instant::now();
        let then = at + Duration::from_secs(2);
        let before = Sample { at, rows: vec![row_of(1, 100, 0), row_of(2, 100, 0)] };
        let rows = vec![row_of(1, 300, 100), row_of(2, 4100, 0), row_of(3, 9000, 0)];
        let now = Sample { at: then, rows };
        let table = now.table(Some(&before));
        let column = |head: &str| table[0].iter().position(|name| name == head).unwrap();
        let told: Vec<_> =
            table[1..].iter().map(|line| (&*line[0], &*line[column("out B/s")])).collect();
        assert_eq!(told, [("2", "ring 2000"), ("1", "ring 150"), ("3", "ring -")]);
        assert_eq!(now.summary(), "connections 3  with rings 3");
        assert!(now.table(None)[1..].iter().all(|line| line[column("in B/s")] == "tcp -"));
    }

    #[test]
    fn no_connections_are_no_table() {
        let none = Sample { at: Instant::now(), rows: Vec::new() };
        assert!(none.table(Some(&none)).is_empty());
    }
}
