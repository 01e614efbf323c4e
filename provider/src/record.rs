//! A recording of what a program posts and of the ends that it reads, as lines of text.
//!
//! `ayre sim merge` makes a schedule of the recordings of all ranks. `sim/src/goal/README.md`
//! describes the lines.

use crate::abi::{ADDR_NOTAVAIL, LOG_EP_CTRL, MULTI_RECV, READ, RECV, SEND, TAGGED, WRITE, errno};
use crate::error::{Code, Outcome, trouble};
use crate::sys::core;
use ayre::{SetupError, guest};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shorter times between a call that found nothing and the next call count as waiting.
const POLLING: Duration = Duration::from_micros(10);

/// Bytes of lines that are kept until they are written.
const BUFFER: usize = 1 << 18;

/// The name that tells an endpoint from all others.
type Name = [u64; 2];

/// The recorder of a domain.
pub(crate) struct Recorder {
    folder: String,
    /// From the first endpoint on.
    recording: Mutex<Option<Recording>>,
}

/// An operation that is posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// The word for it.
    pub(crate) kind: &'static str,
    /// The program's number of the peer.
    pub(crate) to: u64,
    pub(crate) tag: u64,
    pub(crate) bytes: usize,
    /// The program's context, if the program is told of the end.
    pub(crate) context: Option<usize>,
}

/// An end that the program has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) source: u64,
    pub(crate) tag: u64,
    pub(crate) bytes: usize,
    /// The number of the error, or 0.
    pub(crate) err: i32,
}

impl Recorder {
    /// A recorder whose file will be in this folder.
    pub(crate) fn new(folder: String) -> Self {
        Self { folder, recording: Mutex::default() }
    }

    /// An endpoint is opened. The first one begins the file.
    ///
    /// # Errors
    /// `EINVAL` where no file can be made, or one is there; libfabric's log names it.
    pub(crate) fn opened(&self, name: Name) -> Outcome {
        let mut recording = self.lock();
        if recording.is_none() {
            *recording = Some(Recording::begin(&self.folder).map_err(|why| {
                let text = format!("FI_AYRE_RECORD={}: {why}", self.folder);
                trouble::of_setup("fi_endpoint", &SetupError::Environment(text))
            })?);
        }
        if let Some(recording) = &mut *recording {
            recording.write(format_args!("endpoint {}", Hex(name)));
        }
        Ok(())
    }

    /// The program has a number for an endpoint.
    pub(crate) fn named(&self, number: u64, name: Name) {
        if let Some(recording) = &mut *self.lock()
            && recording.names.insert(number, name) != Some(name)
        {
            recording.write(format_args!("peer {number} {}", Hex(name)));
        }
    }

    /// Makes a call that posts an operation, or one that only looks for messages.
    pub(crate) fn post(&self, posted: Option<&Posted>, call: impl FnOnce() -> Outcome) -> Outcome {
        let entered = Instant::now();
        let outcome = call();
        if let Some(recording) = &mut *self.lock() {
            recording.enter(entered);
            if let Some(posted) = posted.filter(|_| outcome.is_ok()) {
                recording.posted(posted, entered);
            }
            recording.leave(posted.is_none() || outcome == Err(Code::AGAIN));
        }
        outcome
    }

    /// Makes a call that reads ends: it adds them to the list.
    pub(crate) fn read<T>(&self, call: impl FnOnce(&mut Vec<Ended>) -> T) -> T {
        let (entered, mut ends) = (Instant::now(), Vec::new());
        let result = call(&mut ends);
        if let Some(recording) = &mut *self.lock() {
            recording.enter(entered);
            ends.iter().for_each(|ended| recording.ended(ended));
            recording.leave(ends.is_empty());
        }
        result
    }

    /// The program makes no more calls: the recording is complete.
    pub(crate) fn finish(&self) {
        if let Some(mut recording) = self.lock().take() {
            recording.finish();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recording>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A recording that has begun.
struct Recording {
    /// None once a write has failed: the program goes on.
    file: Option<BufWriter<Box<dyn Write + Send>>>,
    names: HashMap<u64, Name>,
    /// None before the first operation.
    course: Option<Course>,
}

/// Where the program's time goes.
struct Course {
    /// When the first operation was posted.
    began: Instant,
    /// When the last call returned.
    left: Instant,
    /// The last call has found nothing.
    is_idle: bool,
    /// The program's own time since the last line.
    calc: Duration,
}

impl Recording {
    fn begin(folder: &str) -> Result<Self, String> {
        let file = guest::file_of_rank(&Path::new(folder).join("{rank}.record"))?;
        let file = BufWriter::with_capacity(BUFFER, Box::new(file) as Box<dyn Write + Send>);
        let mut recording = Self { file: Some(file), names: HashMap::new(), course: None };
        recording.write(format_args!("ayre record 1"));
        Ok(recording)
    }

    /// The program has come back with a call.
    fn enter(&mut self, now: Instant) {
        if let Some(course) = &mut self.course {
            // With several threads, another one may have been in a call.
            let outside = now.saturating_duration_since(course.left);
            if !course.is_idle || outside >= POLLING {
                course.calc += outside;
            }
        }
    }

    /// The call returns.
    fn leave(&mut self, is_idle: bool) {
        if let Some(course) = &mut self.course {
            (course.left, course.is_idle) = (Instant::now(), is_idle);
        }
    }

    fn posted(&mut self, posted: &Posted, entered: Instant) {
        let new = Course { began: entered, left: entered, is_idle: true, calc: Duration::ZERO };
        self.course.get_or_insert(new);
        let Posted { kind, to, tag, bytes, context } = *posted;
        let context = Optional(context.map(|context| context as u64));
        let (calc, to) = (self.take_calc(), Optional::number(to));
        self.write(format_args!("{kind} {calc} {context} {to} {tag} {bytes}"));
    }

    fn ended(&mut self, ended: &Ended) {
        let Ended { context, flags, source, tag, bytes, err } = *ended;
        let Some(kind) = kind(flags) else { return };
        let (calc, source) = (self.take_calc(), Optional::number(source));
        // A message that was longer than the memory for it was received all the same.
        if err == 0 || err == errno::ETRUNC {
            self.write(format_args!("done {calc} {kind} {context} {source} {tag} {bytes}"));
        } else {
            self.write(format_args!("fail {calc} {kind} {context}"));
        }
    }

    /// Nanoseconds of the program's own since the last line.
    fn take_calc(&mut self) -> u128 {
        self.course.as_mut().map_or(0, |course| std::mem::take(&mut course.calc).as_nanos())
    }

    fn finish(&mut self) {
        let taken =
            self.course.as_ref().map_or(Duration::ZERO, |course| course.left - course.began);
        self.write(format_args!("end {}", taken.as_nanos()));
        self.attempt(Write::flush);
    }

    fn write(&mut self, line: fmt::Arguments<'_>) {
        self.attempt(|file| writeln!(file, "{line}"));
    }

    fn attempt(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write + Send>>) -> io::Result<()>,
    ) {
        let Some(file) = &mut self.file else { return };
        if let Err(why) = write(file) {
            core::warn(LOG_EP_CTRL, format_args!("the recording (FI_AYRE_RECORD) ends: {why}"));
            // The rest of the buffer would fail, too.
            self.file.take().map(BufWriter::into_parts);
        }
    }
}

/// The word for an operation, by the flags of its end. Accesses of peers have none.
fn kind(flags: u64) -> Option<&'static str> {
    Some(match flags & (SEND | RECV | READ | WRITE) {
        SEND if flags & TAGGED != 0 => "tsend",
        SEND => "send",
        RECV if flags & TAGGED != 0 => "trecv",
        // The last message for this memory.
        RECV if flags & MULTI_RECV != 0 => "mrecv",
        RECV => "recv",
        READ => "read",
        WRITE => "write",
        _ => return None,
    })
}

/// A number, or a dash.
struct Optional(Option<u64>);

impl Optional {
    /// A program's number of a peer, if it has one.
    fn number(number: u64) -> Self {
        Self((number != ADDR_NOTAVAIL).then_some(number))
    }
}

impl fmt::Display for Optional {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(out, "{number}"),
            None => write!(out, "-"),
        }
    }
}

/// The name of an endpoint, as 32 digits.
struct Hex(Name);

impl fmt::Display for Hex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}
