//! The reader of the text format.
//!
//! The grammar is that of LogGOPSim's `txt2bin`, whose statements each take one line:
//!
//! ```text
//! num_ranks NUMBER                                            once, first
//! rank NUMBER { ... }                                         once for each rank
//!   [LABEL:] send NUMBER b to NUMBER [tag T] [cpu C] [nic N]
//!   [LABEL:] recv NUMBER b from NUMBER|-1 [tag T|-1] [cpu C] [nic N]
//!   [LABEL:] calc NUMBER [cpu C]
//!   LABEL requires LABEL
//!   LABEL irequires LABEL
//! ```
//!
//! A label begins with a letter and goes on with letters, digits and `_`. It is valid within its
//! rank, from its definition on. Comments are `//` to the end of the line and `/*` to `*/`.
use super::schedule::{ANY, BYTES_MAX, Builder, CALC_MAX, Channel, bounded};
use super::{Kind, Operation, Schedule, ScheduleError};
use std::collections::HashMap;
use std::io::{BufRead, ErrorKind, Read};
use thiserror::Error;

/// The longest line, in bytes.
const LINE_MAX: u64 = 4096;

/// Why a text is no schedule.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// The text cannot be read.
    #[error("line {line}: the schedule cannot be read: {kind}")]
    Input {
        /// The line that was to be read.
        line: u32,
        /// The system's reason.
        kind: ErrorKind,
    },
    /// A line is too long.
    #[error("line {0} is longer than {LINE_MAX} bytes")]
    LongLine(u32),
    /// Something else should stand there.
    #[error("line {line}: expected {expected}, and there is {found}")]
    Expected {
        /// The line.
        line: u32,
        /// The things that may stand there.
        expected: &'static str,
        /// The text that stands there.
        found: String,
    },
    /// A label is used before its definition, or without one.
    #[error("line {line}: the label {label} is not defined above")]
    UnknownLabel {
        /// The line.
        line: u32,
        /// The label.
        label: String,
    },
    /// A label is defined twice in a rank.
    #[error("line {line}: the label {label} is defined twice in this rank")]
    LabelTwice {
        /// The line of the second definition.
        line: u32,
        /// The label.
        label: String,
    },
    /// The text makes no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(mut text: impl BufRead) -> Result<Self, ReadError> {
        let mut reader = Reader { line: 0, builder: None, rank: None, labels: HashMap::new() };
        let mut in_comment = false;
        let mut bytes = Vec::new();
        loop {
            reader.line = reader.line.saturating_add(1);
            bytes.clear();
            let limit = LINE_MAX + 1;
            let input =
                |error: std::io::Error| ReadError::Input { line: reader.line, kind: error.kind() };
            let count = text.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(input)?;
            if count == 0 {
                return reader.finish(in_comment);
            }
            if count as u64 == limit {
                return Err(ReadError::LongLine(reader.line));
            }
            let mut words = Words { rest: &bytes, in_comment: &mut in_comment };
            while reader.statement(&mut words)? {}
        }
    }
}

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'a> {
    /// Letters, digits and `_`, the first of them a letter.
    Name(&'a [u8]),
    /// Digits.
    Number(&'a [u8]),
    /// Any other character.
    Sign(u8),
    /// The end of the line.
    End,
}

/// The words of a line.
struct Words<'a> {
    rest: &'a [u8],
    /// A comment goes on from line to line.
    in_comment: &'a mut bool,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Word<'a> {
        loop {
            if *self.in_comment {
                match self.rest.windows(2).position(|two| two == b"*/") {
                    Some(place) => self.rest = &self.rest[place + 2..],
                    None => return Word::End,
                }
                *self.in_comment = false;
            }
            self.rest = self.rest.trim_ascii_start();
            if self.rest.starts_with(b"/*") {
                self.rest = &self.rest[2..];
                *self.in_comment = true;
            } else if self.rest.starts_with(b"//") {
                self.rest = &[];
            } else {
                break;
            }
        }
        let part = |belongs: fn(&u8) -> bool| {
            let end = self.rest.iter().position(|byte| !belongs(byte));
            self.rest.split_at(end.unwrap_or(self.rest.len()))
        };
        let (word, rest) = match self.rest.first() {
            None => return Word::End,
            Some(byte) if byte.is_ascii_digit() => {
                let (digits, rest) = part(u8::is_ascii_digit);
                (Word::Number(digits), rest)
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                let (name, rest) = part(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                (Word::Name(name), rest)
            }
            Some(byte) => (Word::Sign(*byte), &self.rest[1..]),
        };
        self.rest = rest;
        word
    }
}

/// A text, for a message of an error.
fn shown(word: Word<'_>) -> String {
    let quoted = |bytes: &[u8]| {
        let short = &bytes[..bytes.len().min(40)];
        format!("\"{}\"", short.escape_ascii())
    };
    match word {
        Word::Name(bytes) | Word::Number(bytes) => quoted(bytes),
        Word::Sign(byte) => quoted(&[byte]),
        Word::End => "the end of the line".to_owned(),
    }
}

/// The value of digits; the largest number stands for all that are larger.
fn value(digits: &[u8]) -> u64 {
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    digits.iter().fold(0, add)
}

/// The state of the reader.
struct Reader {
    line: u32,
    builder: Option<Builder>,
    /// The rank that is being described.
    rank: Option<u32>,
    /// Its labels.
    labels: HashMap<Box<[u8]>, u32>,
}

impl Reader {
    fn expected(&self, expected: &'static str, found: Word<'_>) -> ReadError {
        ReadError::Expected { line: self.line, expected, found: shown(found) }
    }

    fn finish(self, in_comment: bool) -> Result<Schedule, ReadError> {
        let cut = |expected| ReadError::Expected {
            line: self.line,
            expected,
            found: "the end of the text".to_owned(),
        };
        if in_comment {
            return Err(cut("\"*/\""));
        }
        if self.rank.is_some() {
            return Err(cut("\"}\""));
        }
        Ok(self.builder.ok_or_else(|| cut("\"num_ranks\""))?.finish()?)
    }

    /// Reads a statement. The result is whether another one may follow in the same line.
    fn statement(&mut self, words: &mut Words<'_>) -> Result<bool, ReadError> {
        let word = words.next();
        if word == Word::End {
            return Ok(false);
        }
        let Some(rank) = self.rank else {
            self.outside(word, words)?;
            return Ok(true);
        };
        match word {
            Word::Sign(b'}') => {
                if let Some(builder) = &mut self.builder {
                    builder.end(rank);
                }
                self.rank = None;
                self.labels.clear();
                return Ok(true);
            }
            Word::Name(b"send" | b"recv" | b"calc") => self.operation(rank, word, None, words)?,
            Word::Name(label) if label != b"rank" && label != b"num_ranks" => {
                self.labelled(rank, label, words)?;
            }
            _ => return Err(self.expected("an operation, a label or \"}\"", word)),
        }
        Ok(false)
    }

    /// Reads a statement outside of ranks.
    fn outside(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<(), ReadError> {
        match (word, &mut self.builder) {
            (Word::Name(b"num_ranks"), None) => {
                let ranks = self.number("the number of ranks", words)?;
                if ranks == 0 {
                    return Err(self.expected("at least one rank", Word::Number(b"0")));
                }
                self.builder = Some(Builder::new(self.line, ranks)?);
                Ok(())
            }
            (_, None) => Err(self.expected("\"num_ranks\"", word)),
            (Word::Name(b"rank"), Some(_)) => {
                let rank = self.number("the number of a rank", words)?;
                self.sign(b'{', "\"{\"", words)?;
                let line = self.line;
                self.rank = Some(self.built()?.begin(line, rank)?);
                Ok(())
            }
            (_, Some(_)) => Err(self.expected("\"rank\"", word)),
        }
    }

    /// Reads the rest of a statement that begins with a label.
    fn labelled(
        &mut self,
        rank: u32,
        label: &[u8],
        words: &mut Words<'_>,
    ) -> Result<(), ReadError> {
        let ended = match words.next() {
            Word::Sign(b':') => {
                let word = words.next();
                return self.operation(rank, word, Some(label), words);
            }
            Word::Name(b"requires") => true,
            Word::Name(b"irequires") => false,
            word => return Err(self.expected("\":\", \"requires\" or \"irequires\"", word)),
        };
        let operation = self.known(label)?;
        let other = match words.next() {
            Word::Name(other) => self.known(other)?,
            word => return Err(self.expected("a label", word)),
        };
        self.line_end(words)?;
        let line = self.line;
        Ok(self.built()?.require(line, operation, other, ended)?)
    }

    /// Reads an operation from its first word on.
    fn operation(
        &mut self,
        rank: u32,
        word: Word<'_>,
        label: Option<&[u8]>,
        words: &mut Words<'_>,
    ) -> Result<(), ReadError> {
        let line = self.line;
        let (kind, what, limit) = match word {
            Word::Name(b"send") => (Kind::Send, "the size", BYTES_MAX),
            Word::Name(b"recv") => (Kind::Receive, "the size", BYTES_MAX),
            Word::Name(b"calc") => (Kind::Calc, "the time", CALC_MAX),
            _ => return Err(self.expected("\"send\", \"recv\" or \"calc\"", word)),
        };
        let size = bounded(line, what, self.number("a number", words)?, limit)?;
        let mut operation = Operation { size, rank, channel: 0, line, kind, cpu: 0, nic: 0 };
        let mut channel = None;
        if kind == Kind::Calc {
            self.options(&mut operation, None, words)?;
        } else {
            let mut messages = self.peer(rank, kind, words)?;
            self.options(&mut operation, Some(&mut messages), words)?;
            channel = Some(messages);
        }
        let number = self.built()?.add(operation, channel)?;
        if let Some(label) = label
            && self.labels.insert(label.into(), number).is_some()
        {
            let label = label.escape_ascii().to_string();
            return Err(ReadError::LabelTwice { line, label });
        }
        Ok(())
    }

    /// Reads the other end of a message.
    fn peer(&mut self, rank: u32, kind: Kind, words: &mut Words<'_>) -> Result<Channel, ReadError> {
        let word = words.next();
        if word != Word::Name(b"b") {
            return Err(self.expected("\"b\"", word));
        }
        let word = words.next();
        let line = self.line;
        match (kind, word) {
            (Kind::Send, Word::Name(b"to")) => {
                let target = self.number("the number of a rank", words)?;
                let target = self.built()?.rank(line, target)?;
                Ok(Channel { target, source: rank, tag: 0 })
            }
            (Kind::Receive, Word::Name(b"from")) => {
                let source = match self.number_or_any("the number of a rank or -1", words)? {
                    Some(source) => self.built()?.rank(line, source)?,
                    None => ANY,
                };
                Ok(Channel { target: rank, source, tag: 0 })
            }
            (Kind::Send, _) => Err(self.expected("\"to\"", word)),
            _ => Err(self.expected("\"from\"", word)),
        }
    }

    /// Reads the options of an operation, to the end of the line.
    fn options(
        &mut self,
        operation: &mut Operation,
        mut messages: Option<&mut Channel>,
        words: &mut Words<'_>,
    ) -> Result<(), ReadError> {
        let line = self.line;
        loop {
            match (words.next(), &mut messages) {
                (Word::Name(b"tag"), Some(messages)) => {
                    messages.tag = match self.number_or_any("a tag or -1", words)? {
                        Some(tag) => bounded(line, "the tag", tag, u64::from(ANY) - 1)? as u32,
                        None => ANY,
                    };
                }
                (Word::Name(b"cpu"), _) => {
                    let cpu = self.number("the number of a CPU", words)?;
                    operation.cpu = bounded(line, "the CPU", cpu, u8::MAX.into())? as u8;
                }
                (Word::Name(b"nic"), Some(_)) => {
                    let nic = self.number("the number of a network interface", words)?;
                    operation.nic = bounded(line, "the interface", nic, u8::MAX.into())? as u8;
                }
                (Word::End, _) => return Ok(()),
                (word, Some(_)) => {
                    let expected = "\"tag\", \"cpu\", \"nic\" or the end of the line";
                    return Err(self.expected(expected, word));
                }
                (word, None) => {
                    return Err(self.expected("\"cpu\" or the end of the line", word));
                }
            }
        }
    }

    fn built(&mut self) -> Result<&mut Builder, ReadError> {
        let missing = ReadError::Expected {
            line: self.line,
            expected: "\"num_ranks\"",
            found: "a rank".to_owned(),
        };
        self.builder.as_mut().ok_or(missing)
    }

    fn known(&self, label: &[u8]) -> Result<u32, ReadError> {
        self.labels.get(label).copied().ok_or_else(|| ReadError::UnknownLabel {
            line: self.line,
            label: label.escape_ascii().to_string(),
        })
    }

    fn sign(
        &self,
        sign: u8,
        expected: &'static str,
        words: &mut Words<'_>,
    ) -> Result<(), ReadError> {
        let word = words.next();
        if word == Word::Sign(sign) { Ok(()) } else { Err(self.expected(expected, word)) }
    }

    fn line_end(&self, words: &mut Words<'_>) -> Result<(), ReadError> {
        let word = words.next();
        if word == Word::End { Ok(()) } else { Err(self.expected("the end of the line", word)) }
    }

    fn number(&self, expected: &'static str, words: &mut Words<'_>) -> Result<u64, ReadError> {
        match words.next() {
            Word::Number(digits) => Ok(value(digits)),
            word => Err(self.expected(expected, word)),
        }
    }

    /// Reads a number, or -1 for any.
    fn number_or_any(
        &self,
        expected: &'static str,
        words: &mut Words<'_>,
    ) -> Result<Option<u64>, ReadError> {
        match words.next() {
            Word::Number(digits) => Ok(Some(value(digits))),
            Word::Sign(b'-') => match words.next() {
                Word::Number(b"1") => Ok(None),
                word => Err(self.expected(expected, word)),
            },
            word => Err(self.expected(expected, word)),
        }
    }
}
