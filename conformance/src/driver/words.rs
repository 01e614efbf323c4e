//! The words of a line, read and written.
use super::HOLDS;
use ayre::deposit::{Form, Instruction};
use ayre::error::Refusal;
use ayre::memory::LockMode;
use ayre::{Busy, Fault, PeerId, PostError, ReceiveError, SetupError};
use rustix::io::Errno;
use std::fmt::Display;
use std::str::{FromStr, SplitAsciiWhitespace};
use std::time::Duration;

/// Bytes as a word.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let mut word = String::with_capacity(1 + 2 * bytes.len());
    word.push('x');
    word.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    word
}

/// A time as a word.
pub(super) fn time(timeout: Option<Duration>) -> String {
    timeout.map_or_else(|| "-".into(), |time| time.as_micros().to_string())
}

/// Some numbers, and how many these are.
pub(super) fn list<T: Display>(numbers: impl ExactSizeIterator<Item = T>) -> String {
    std::iter::once(numbers.len().to_string())
        .chain(numbers.map(|number| number.to_string()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The contents of an active message.
pub(super) fn message(arguments: &[u64], payload: &[u8]) -> String {
    format!("{} {}", list(arguments.iter()), hex(payload))
}

/// A number that may be the usual one.
pub(super) fn limit<T: Display>(of: Option<T>) -> String {
    of.map_or_else(|| "-".into(), |of| of.to_string())
}

/// The form of a deposit message, as words: [`Words::form`] reads them.
pub(super) fn form(form: &Form) -> String {
    match form {
        Form::Carried(instruction) => format!("c {}", instruction.word()),
        Form::Pointer { entry, registers: [x, y, z] } => format!("e {entry} {x} {y} {z}"),
        Form::Probe => "p".into(),
    }
}

/// The word for a handle that a port has not given out.
pub(super) const FOREIGN: &str = "*";

pub(super) fn handle(word: &str) -> usize {
    if word == FOREIGN { 0 } else { word.parse().expect("a handle") }
}

/// The words of a line that were not read yet.
#[derive(Clone, Debug)]
pub(super) struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split_ascii_whitespace())
    }

    pub(super) fn word(&mut self) -> &'a str {
        self.0.next().expect("one more word")
    }

    /// The rest of the line, for people.
    pub(super) fn text(self) -> String {
        self.0.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn number<T: FromStr>(&mut self) -> T {
        let word = self.word();
        word.parse().unwrap_or_else(|_| panic!("`{word}` is no such number"))
    }

    /// A handle's number, of a kind of which another port has given one out: that one's is 0.
    pub(super) fn handle(&mut self) -> usize {
        handle(self.word())
    }

    /// The form of a deposit message, as [`form`] writes it.
    pub(super) fn form(&mut self) -> Form {
        match self.word() {
            "c" => Form::Carried(Instruction::parse(self.number()).expect("an instruction")),
            "e" => {
                Form::Pointer { entry: self.number(), registers: [(); 3].map(|()| self.number()) }
            }
            "p" => Form::Probe,
            other => panic!("`{other}` is no form of a message"),
        }
    }

    pub(super) fn numbers<T: FromStr>(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.0.clone().next().map(|_| self.number())).collect()
    }

    pub(super) fn list<T: FromStr>(&mut self) -> Vec<T> {
        let count = self.number();
        (0..count).map(|_: usize| self.number()).collect()
    }

    pub(super) fn peers(&mut self) -> Vec<PeerId> {
        self.list().into_iter().map(PeerId).collect()
    }

    /// The contents of an active message, as [`message`] writes them.
    pub(super) fn message(&mut self) -> (Vec<u64>, Vec<u8>) {
        (self.list(), self.bytes())
    }

    /// A number, as [`limit`] writes it.
    pub(super) fn limit<T: FromStr>(&mut self) -> Option<T> {
        let is_usual = self.0.clone().next() == Some("-");
        if is_usual {
            self.0.next();
            return None;
        }
        Some(self.number())
    }

    /// A name, as text.
    pub(super) fn name(&mut self) -> String {
        String::from_utf8(self.bytes()).expect("a name is text")
    }

    pub(super) fn flag(&mut self) -> bool {
        self.number::<u8>() == 1
    }

    pub(super) fn peer(&mut self) -> PeerId {
        PeerId(self.number())
    }

    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let word = self.word();
        let digits = word.strip_prefix('x').unwrap_or_else(|| panic!("`{word}` is no bytes"));
        let (pairs, _) = digits.as_bytes().as_chunks::<2>();
        let nibble = |digit: u8| (digit as char).to_digit(16).expect("a hexadecimal digit") as u8;
        pairs.iter().map(|[high, low]| nibble(*high) << 4 | nibble(*low)).collect()
    }

    pub(super) fn time(&mut self) -> Option<Duration> {
        let word = self.word();
        (word != "-").then(|| Duration::from_micros(word.parse().expect("microseconds")))
    }
}

/// The result of a call, and its text.
#[derive(Debug)]
pub(super) enum Answer {
    Done(String),
    Nothing,
    Busy(Busy),
    Fault(Fault),
    Long(usize),
    Died(PeerId),
    Late,
    Failed(String),
}

impl Answer {
    pub(super) fn write(&self) -> String {
        match self {
            Self::Done(words) => format!("ok {words}"),
            Self::Nothing => "none".into(),
            Self::Busy(busy) => format!("busy {}", place(*busy)),
            Self::Fault(fault) => format!("fault {}", fault.code()),
            Self::Long(len) => format!("long {len}"),
            Self::Died(peer) => format!("died {}", peer.0),
            Self::Late => "late".into(),
            Self::Failed(why) => format!("error {why}"),
        }
    }

    pub(super) fn read(line: &str) -> Self {
        let mut words = Words::of(line);
        match words.word() {
            "ok" => Self::Done(words.text()),
            "none" => Self::Nothing,
            "busy" => Self::Busy(Busy::ALL[words.number::<usize>()]),
            "fault" => Self::Fault(Fault::from_code(words.number())),
            "long" => Self::Long(words.number()),
            "died" => Self::Died(words.peer()),
            "late" => Self::Late,
            "error" => Self::Failed(words.text()),
            other => panic!("no driver answers `{other}`"),
        }
    }

    /// Of a call that always works.
    pub(super) fn done(self) -> String {
        match self {
            Self::Done(words) => words,
            other => panic!("the driver answers {other:?}"),
        }
    }

    pub(super) fn posted(self) -> Result<String, PostError> {
        match self {
            Self::Busy(busy) => Err(busy.into()),
            Self::Fault(fault) => Err(fault.into()),
            other => Ok(other.done()),
        }
    }

    pub(super) fn ended(self) -> Result<String, Fault> {
        match self {
            Self::Fault(fault) => Err(fault),
            other => Ok(other.done()),
        }
    }

    pub(super) fn set_up(self) -> Result<String, SetupError> {
        match self {
            Self::Fault(fault) => Err(fault.into()),
            Self::Failed(why) => Err(failed(&why)),
            other => Ok(other.done()),
        }
    }

    pub(super) fn received(self) -> Result<Option<String>, ReceiveError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Long(len) => Err(ReceiveError::TooLong(len)),
            Self::Died(peer) => Err(ReceiveError::PeerDied(peer)),
            Self::Late => Err(ReceiveError::TimedOut),
            other => Ok(Some(other.done())),
        }
    }
}

/// The error of these words: the first one says of which kind it is.
fn failed(why: &str) -> SetupError {
    let mut words = Words::of(why);
    match words.word() {
        "system" => {
            let errno = Errno::from_raw_os_error(words.number());
            SetupError::Os { call: "a call of the driver's", errno }
        }
        "exhausted" => SetupError::Exhausted(words.text().into()),
        "left" => SetupError::PeerLeft { peer: words.text() },
        "rejected" => SetupError::Rejected { peer: words.text(), why: Refusal::Unknown },
        _ => SetupError::Invalid(words.text().into()),
    }
}

pub(super) fn place(busy: Busy) -> usize {
    Busy::ALL.iter().position(|one| *one == busy).expect("all have a place")
}

/// How a lock is held, by the number that travels.
pub(super) fn kind(hold: LockMode) -> usize {
    HOLDS.iter().position(|one| *one == hold).expect("both have a place")
}

impl From<PostError> for Answer {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Busy(busy) => Self::Busy(busy),
            PostError::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ReceiveError> for Answer {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::TooLong(len) => Self::Long(len),
            ReceiveError::PeerDied(peer) => Self::Died(peer),
            ReceiveError::TimedOut => Self::Late,
        }
    }
}

impl From<SetupError> for Answer {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Fault(fault) => Self::Fault(fault),
            SetupError::Os { errno, .. } => {
                Self::Failed(format!("system {} {error}", errno.raw_os_error()))
            }
            SetupError::PeerLeft { .. } => Self::Failed(format!("left {error}")),
            SetupError::Exhausted(_) => Self::Failed(format!("exhausted {error}")),
            SetupError::Rejected { .. } => Self::Failed(format!("rejected {error}")),
            other => Self::Failed(format!("invalid {other}")),
        }
    }
}
