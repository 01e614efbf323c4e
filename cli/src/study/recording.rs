//! Recordings of the members of a group, and their calls put together.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// How a recording begins, with the version of its form.
const MARK: &str = "# ayre recording 1:";
/// Columns that are not of links.
const FIXED: [&str; 6] = ["number", "begin_ns", "time_ns", "collective", "schedule", "bytes"];

/// The recording of one member.
#[derive(Debug)]
pub(super) struct Recording {
    name: String,
    /// Which member of how many, if it says so.
    member: Option<(usize, usize)>,
    /// Names of the loads: `what:from>to`.
    columns: Vec<String>,
    calls: BTreeMap<u64, Line>,
}

#[derive(Debug)]
struct Line {
    time: f64,
    collective: String,
    schedule: String,
    bytes: u64,
    loads: Vec<f64>,
}

/// Calls that are comparable with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    collective: String,
    bytes: u64,
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.collective.to_lowercase(), self.bytes)
    }
}

/// A kind of calls, and how many there are.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) kind: Kind,
    pub(super) schedules: BTreeMap<String, Vec<f64>>,
    pub(super) total: f64,
}

/// A call, put together of what all members have recorded.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The longest of any member's, in nanoseconds.
    pub(super) time: f64,
    pub(super) schedule: String,
    /// In the order of the columns.
    pub(super) loads: Vec<f64>,
    kind: Kind,
}

/// Calls that all members have recorded, in their order.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) columns: Vec<String>,
    pub(super) calls: Vec<Call>,
    /// Calls that some member has not recorded.
    pub(super) left_out: usize,
}

impl Recording {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        Self::parse(name, &text)
    }

    pub(super) fn parse(name: String, text: &str) -> Result<Self> {
        let mut lines = (1..).zip(text.lines());
        let mark = lines.next().and_then(|(_, first)| first.strip_prefix(MARK));
        let Some(mark) = mark else {
            bail!("{name}: is no recording: its first line is not `{MARK} ...`");
        };
        let (_, heads) = lines.next().with_context(|| format!("{name}: names no columns"))?;
        let heads: Vec<_> = heads.split('\t').collect();
        let fixed = heads.get(..FIXED.len()).unwrap_or_default();
        ensure!(fixed == FIXED, "{name}:2: the first columns are not {}", FIXED.join(", "));
        let columns: Vec<_> = heads[FIXED.len()..].iter().map(|head| (*head).to_owned()).collect();
        if let Some(column) = columns.iter().find(|column| parts(column).is_none()) {
            bail!("{name}:2: `{column}` is not `what:from>to`");
        }
        let mut calls = BTreeMap::new();
        for (at, text) in lines {
            let place = || format!("{name}:{at}");
            let (number, line) = Line::parse(text, heads.len()).with_context(place)?;
            ensure!(calls.insert(number, line).is_none(), "{name}:{at}: call {number} again");
        }
        Ok(Self { name, member: member(mark), columns, calls })
    }
}

/// `member 2 of 4; ...`
fn member(mark: &str) -> Option<(usize, usize)> {
    let (member, rest) = mark.trim().strip_prefix("member ")?.split_once(" of ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((member.parse().ok()?, rest[..end].parse().ok()?))
}

impl Line {
    fn parse(text: &str, columns: usize) -> Result<(u64, Self)> {
        let words: Vec<_> = text.split('\t').collect();
        ensure!(words.len() == columns, "{} columns, where {columns} are named", words.len());
        let number = |at: usize| {
            words[at].parse::<u64>().with_context(|| format!("`{}` is no number", words[at]))
        };
        let loads = (FIXED.len()..columns).map(|at| number(at).map(|load| load as f64));
        let loads = loads.collect::<Result<_>>()?;
        let (collective, schedule) = (words[3].to_owned(), words[4].to_owned());
        number(1)?;
        let (time, bytes) = (number(2)?.max(1) as f64, number(5)?);
        Ok((number(0)?, Self { time, collective, schedule, bytes, loads }))
    }
}

/// The quantity of a column, and its link.
pub(super) fn parts(column: &str) -> Option<(&str, &str)> {
    let (what, link) = column.split_once(':')?;
    let (from, to) = link.split_once('>')?;
    (!what.is_empty() && !from.is_empty() && !to.is_empty()).then_some((what, link))
}

/// Of links whose recordings are missing, nothing would be found.
fn check_all_are_there(recordings: &[Recording]) -> Result<()> {
    let Some((_, members)) = recordings.first().and_then(|one| one.member) else { return Ok(()) };
    let is_there =
        |member: usize| recordings.iter().any(|one| one.member == Some((member, members)));
    let missing: Vec<_> = (0..members).filter(|member| !is_there(*member)).collect();
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    ensure!(
        missing.is_empty(),
        "{} of the group's {members} recordings {} missing: of member {}",
        missing.len(),
        if missing.len() == 1 { "is" } else { "are" },
        names.join(", ")
    );
    Ok(())
}

impl Calls {
    /// Puts together what the members have recorded of each call.
    pub(super) fn merge(recordings: &[Recording]) -> Result<Self> {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for recording in recordings {
            for column in &recording.columns {
                if let Some(other) = owners.insert(column, &recording.name) {
                    bail!("{other} and {} both tell of {column}", recording.name);
                }
            }
        }
        check_all_are_there(recordings)?;
        let columns = recordings.iter().flat_map(|one| one.columns.clone()).collect();
        let [first, others @ ..] = recordings else { bail!("no recordings") };
        let (mut calls, mut left_out) = (vec![], 0);
        for (number, line) in &first.calls {
            let theirs: Option<Vec<_>> = others.iter().map(|one| one.calls.get(number)).collect();
            let Some(theirs) = theirs else {
                left_out += 1;
                continue;
            };
            let mut call = Call {
                time: line.time,
                schedule: line.schedule.clone(),
                loads: line.loads.clone(),
                kind: Kind { collective: line.collective.clone(), bytes: line.bytes },
            };
            for (line, recording) in theirs.into_iter().zip(others) {
                let is_same =
                    (&line.collective, &line.schedule) == (&call.kind.collective, &call.schedule);
                let (one, other) = (&first.name, &recording.name);
                ensure!(is_same, "call {number} is another one in {one} than in {other}");
                call.time = call.time.max(line.time);
                call.kind.bytes = call.kind.bytes.max(line.bytes);
                call.loads.extend(&line.loads);
            }
            calls.push(call);
        }
        Ok(Self { columns, calls, left_out })
    }

    /// Kinds of calls, each with its times by schedule.
    pub(super) fn kinds(&self) -> Vec<Summary> {
        let mut kinds: BTreeMap<&Kind, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
        for call in &self.calls {
            let times = kinds.entry(&call.kind).or_default();
            times.entry(call.schedule.clone()).or_default().push(call.time);
        }
        let summary = |(kind, schedules): (&Kind, BTreeMap<String, Vec<f64>>)| {
            let total = schedules.values().flatten().sum();
            Summary { kind: kind.clone(), schedules, total }
        };
        kinds.into_iter().map(summary).collect()
    }

    /// Those of one kind, and the columns in which they differ.
    pub(super) fn of(&self, kind: &Kind) -> Self {
        let mut calls: Vec<_> = self.calls.iter().filter(|call| call.kind == *kind).collect();
        let first = calls.first().map_or(&[][..], |call| &call.loads);
        let differs = |at: &usize| calls.iter().any(|call| call.loads[*at] != first[*at]);
        let kept: Vec<_> = (0..self.columns.len()).filter(differs).collect();
        let part = |call: &Call| Call {
            loads: kept.iter().map(|at| call.loads[*at]).collect(),
            ..call.clone()
        };
        let columns = kept.iter().map(|at| self.columns[*at].clone()).collect();
        let calls = calls.drain(..).map(part).collect();
        Self { columns, calls, left_out: self.left_out }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn times(&self) -> Vec<f64> {
        self.calls.iter().map(|call| call.time).collect()
    }

    pub(super) fn column(&self, at: usize) -> Vec<f64> {
        self.calls.iter().map(|call| call.loads[at]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "number\tbegin_ns\ttime_ns\tcollective\tschedule\tbytes";

    fn parse(name: &str, columns: &str, lines: &str) -> Result<Recording> {
        Recording::parse(name.to_owned(), &format!("{MARK} member\n{HEAD}{columns}\n{lines}"))
    }

    fn message<T: fmt::Debug>(result: Result<T>) -> String {
        format!("{:#}", result.expect_err("it is malformed"))
    }

    #[test]
    fn calls_of_all_members_are_put_together() {
        let one = "1\t0\t50\tBarrier\tStar\t0\t7\n\
                   2\t9\t10\tScan\tRing\t8\t8\n3\t9\t1\tScan\tRing\t8\t8\n";
        let other = "2\t0\t70\tScan\tRing\t8\t1\n1\t0\t40\tBarrier\tStar\t0\t2\n";
        let one = parse("one", "\tsent:0>1", one).unwrap();
        let other = parse("other", "\tsent:1>0", other).unwrap();
        let calls = Calls::merge(&[one, other]).unwrap();
        assert_eq!((calls.columns.join(" "), calls.left_out), ("sent:0>1 sent:1>0".into(), 1));
        assert_eq!(calls.times(), [50.0, 70.0]);
        assert_eq!(calls.column(1), [2.0, 1.0]);
        let names: Vec<_> = calls.kinds().iter().map(|one| one.kind.to_string()).collect();
        assert_eq!(names, ["barrier-0", "scan-8"]);
        let scans = calls.of(&calls.kinds()[1].kind);
        assert_eq!((scans.len(), scans.columns.len()), (1, 0), "one call differs from no other");
    }

    #[test]
    fn a_malformed_recording_is_reported_with_its_line() {
        let no_mark = message(Recording::parse("a".into(), "number\ttime_ns\n"));
        assert!(no_mark.starts_with("a: is no recording"), "{no_mark}");
        assert!(message(Recording::parse("a".into(), "")).contains("is no recording"));
        assert_eq!(message(Recording::parse("a".into(), MARK)), "a: names no columns");
        let wrong = message(Recording::parse("a".into(), &format!("{MARK}\nnumber\ttime_ns\n")));
        assert!(wrong.starts_with("a:2: the first columns are not number, begin_ns"), "{wrong}");
        assert_eq!(message(parse("a", "\tsent", "")), "a:2: `sent` is not `what:from>to`");
        let few = message(parse("a", "\tsent:0>1", "1\t0\t5\tScan\tRing\t8\n"));
        assert_eq!(few, "a:3: 6 columns, where 7 are named");
        let word = message(parse("a", "", "1\t0\t5\tScan\tRing\t8\n2\t0\tlong\tScan\tRing\t8\n"));
        assert!(word.starts_with("a:4: `long` is no number"), "{word}");
        let twice = message(parse("a", "", "1\t0\t5\tScan\tRing\t8\n1\t0\t5\tScan\tRing\t8\n"));
        assert_eq!(twice, "a:4: call 1 again");
    }

    #[test]
    fn members_must_agree() {
        let one = || parse("a", "\tsent:0>1", "1\t0\t5\tScan\tRing\t8\t0\n").unwrap();
        let same = message(Calls::merge(&[one(), one()]));
        assert_eq!(same, "a and a both tell of sent:0>1");
        let other = parse("b", "", "1\t0\t5\tScan\tDoubling\t8\n").unwrap();
        let other = message(Calls::merge(&[one(), other]));
        assert_eq!(other, "call 1 is another one in a than in b");
    }

    #[test]
    fn a_member_whose_recording_is_missing_is_named() {
        let of = |member: usize| {
            let text = format!("{MARK} member {member} of 4; ns\n{HEAD}\n1\t0\t5\tScan\tRing\t8\n");
            Recording::parse(format!("of {member}"), &text).unwrap()
        };
        let some = message(Calls::merge(&[of(2)]));
        assert_eq!(some, "3 of the group's 4 recordings are missing: of member 0, 1, 3");
        let some = message(Calls::merge(&[of(0), of(1), of(2)]));
        assert_eq!(some, "1 of the group's 4 recordings is missing: of member 3");
        assert!(Calls::merge(&[of(3), of(0), of(1), of(2)]).is_ok());
    }
}
