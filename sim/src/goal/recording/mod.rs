//! Recordings of real runs, merged into one schedule.
//!
//! `README.md` beside this folder describes the files and the schedule.
mod join;
mod read;
mod write;

use super::schedule::{OPERATIONS_MAX, RANKS_MAX};
use crate::time::Time;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The name that tells an endpoint from all others.
type Name = u128;

/// The recordings of all ranks of a run.
#[derive(Clone, Debug)]
pub struct Recordings {
    ranks: Vec<Rank>,
}

/// The recording of a rank.
#[derive(Clone, Debug, Default)]
struct Rank {
    file: String,
    endpoints: Vec<Name>,
    events: Vec<Event>,
    operations: Vec<Operation>,
    /// The operations in the order in which they were posted.
    order: Vec<u32>,
    /// Accesses of other ranks to its memory.
    accesses: Vec<Access>,
    /// The time from the first operation to the last call.
    took: Time,
}

/// A line of a recording about an operation.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// The rank's own nanoseconds before it.
    calc: u64,
    kind: EventKind,
}

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    /// Operations are posted.
    Posted,
    /// The rank learns that this operation has ended.
    Ended(u32),
    /// The rank learns of something else.
    Other,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: Kind,
    /// The event that posted it.
    posted: u32,
    line: u32,
    /// The other end. That of a receive is known by its end.
    peer: Option<Name>,
    tag: u64,
    bytes: u64,
    message: Option<Message>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Send {
        tagged: bool,
    },
    Receive {
        tagged: bool,
    },
    /// A receive of many messages: each of them makes a receive of its own.
    Many,
    Write,
    Read,
}

/// A message of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    /// The rank at the other end.
    peer: u32,
    /// Its number among the messages of its sender to its receiver, which is its tag.
    number: u32,
    /// The number of the answer to a read.
    answer: u32,
}

/// An access of another rank.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// The other rank, and the number of its message.
    message: Message,
    bytes: u64,
    /// The bytes go back to it.
    is_read: bool,
}

/// Why there is no schedule of the recordings.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordingError {
    /// A file or the folder cannot be read.
    #[error("{place}: {kind}")]
    Input {
        /// Its name.
        place: String,
        /// The system's reason.
        kind: ErrorKind,
    },
    /// There is nothing to read.
    #[error("{0}: no file there has a name such as 0.record")]
    Empty(String),
    /// Something else should stand there.
    #[error("{file}, line {line}: expected {expected}, and there is {found}")]
    Expected {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The things that may stand there.
        expected: &'static str,
        /// The text that stands there.
        found: String,
    },
    /// Something is larger than the simulator's limit.
    #[error("{file}, line {line}: {what} is {number}, and the limit is {limit}")]
    TooLarge {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The thing that is too large.
        what: &'static str,
        /// How large it is.
        number: u64,
        /// The limit.
        limit: u64,
    },
    /// A recording has no end.
    #[error("{file}, line {line}: the recording is cut: its program did not close the domain")]
    Cut {
        /// The file.
        file: String,
        /// The line that is missing.
        line: u32,
    },
    /// Two recordings have one endpoint.
    #[error("{file} and {other} are of one endpoint: they are of one rank, or of several runs")]
    Twice {
        /// The file.
        file: String,
        /// The other file.
        other: String,
    },
    /// An operation's other end has no recording.
    #[error("{file}, line {line}: no file is of the endpoint at the other end: is one missing?")]
    NoRank {
        /// The file.
        file: String,
        /// The line of the operation.
        line: u32,
    },
}

impl Recordings {
    /// Reads the recordings in a folder: `0.record` is of rank 0. Further domains of a process,
    /// such as `0-2.record`, are ranks of their own if they post something.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn read_folder(folder: &Path) -> Result<Self, RecordingError> {
        let input = |place: &Path| {
            let place = place.display().to_string();
            move |error: io::Error| RecordingError::Input { place, kind: error.kind() }
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(input(folder))? {
            let path = entry.map_err(input(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "record") {
                files.push((place_of(&path), path));
            }
        }
        if files.is_empty() {
            return Err(RecordingError::Empty(folder.display().to_string()));
        }
        files.sort();
        let open = |(place, path): (Place, PathBuf)| {
            let text = BufReader::new(File::open(&path).map_err(input(&path))?);
            Ok((path.display().to_string(), place.1 > 1, text))
        };
        Self::join(files.into_iter().map(open))
    }

    /// Reads recordings, each with its name, in the order of their ranks.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn read<T: BufRead>(
        texts: impl IntoIterator<Item = (String, T)>,
    ) -> Result<Self, RecordingError> {
        Self::join(texts.into_iter().map(|(name, text)| Ok((name, false, text))))
    }

    /// Reads recordings with their names. Those that are only perhaps of ranks may be empty.
    fn join<T: BufRead>(
        texts: impl Iterator<Item = Result<(String, bool, T), RecordingError>>,
    ) -> Result<Self, RecordingError> {
        let (mut ranks, mut operations) = (Vec::new(), 0);
        for text in texts {
            let (name, is_further, text) = text?;
            let rank = read::read(name, text, OPERATIONS_MAX - operations)?;
            operations += (rank.operations.len() + rank.events.len()) as u64;
            if ranks.len() as u64 == RANKS_MAX {
                let (number, limit) = (RANKS_MAX + 1, RANKS_MAX);
                let what = "the number of ranks";
                return Err(RecordingError::TooLarge {
                    file: rank.file,
                    line: 1,
                    what,
                    number,
                    limit,
                });
            }
            if !is_further || !rank.operations.is_empty() {
                ranks.push(rank);
            }
        }
        join::join(&mut ranks)?;
        Ok(Self { ranks })
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// The longest time of a rank from its first operation to its last call.
    pub fn took(&self) -> Time {
        self.ranks.iter().map(|rank| rank.took).max().unwrap_or_default()
    }

    /// Operations that are not in the schedule: they have no partner, or did not end.
    pub fn left_out(&self) -> usize {
        let operations = self.ranks.iter().flat_map(|rank| &rank.operations);
        operations.filter(|it| it.kind != Kind::Many && it.message.is_none()).count()
    }
}

/// The rank in the name of a file and the number of the process's domain; other names come last.
type Place = (u64, u64);

fn place_of(path: &Path) -> Place {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (rank, domain) = stem.split_once('-').unwrap_or((stem, "1"));
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    (number(rank), number(domain))
}

#[cfg(test)]
mod tests;
