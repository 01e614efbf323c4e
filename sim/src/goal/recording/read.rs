//! The reader of one rank's recording.
use super::{Event, EventKind, Kind, Name, Operation, Rank, RecordingError};
use crate::goal::schedule::{BYTES_MAX, CALC_MAX, OPERATIONS_MAX};
use crate::time::Time;
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Read};
use std::str::{FromStr, SplitAsciiWhitespace};

/// The longest line, in bytes.
const LINE_MAX: u64 = 256;

/// The longest time of a recording, in nanoseconds: what has room in picoseconds.
const TOOK_MAX: u64 = CALC_MAX;

/// Reads a recording of up to `room` lines about operations.
pub(super) fn read(
    file: String,
    mut text: impl BufRead,
    room: u64,
) -> Result<Rank, RecordingError> {
    let mut reader = Reader {
        rank: Rank { file, ..Rank::default() },
        line: 0,
        room,
        peers: HashMap::new(),
        waiting: HashMap::new(),
        has_ended: false,
    };
    let mut bytes = Vec::new();
    loop {
        reader.line = reader.line.saturating_add(1);
        bytes.clear();
        let place = &reader.rank.file;
        let count =
            text.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes).map_err(|error| {
                RecordingError::Input { place: place.clone(), kind: error.kind() }
            })?;
        // The last line of a recording that is cut may look like a whole one.
        if bytes.last() != Some(&b'\n') {
            return match count as u64 {
                0 if reader.has_ended => Ok(reader.finish()),
                LINE_MAX => Err(reader.expected("a line of up to 255 bytes", "a longer one")),
                _ => Err(RecordingError::Cut { file: reader.rank.file, line: reader.line }),
            };
        }
        let line = str::from_utf8(&bytes).unwrap_or("\u{fffd}");
        reader.statement(&mut line.split_ascii_whitespace())?;
    }
}

/// The state of the reader.
struct Reader {
    rank: Rank,
    line: u32,
    /// Lines about operations that may still come.
    room: u64,
    /// The endpoints behind the program's numbers.
    peers: HashMap<u64, Name>,
    /// Operations whose end was not read yet, by their kind and context.
    waiting: HashMap<(Kind, u64), VecDeque<u32>>,
    has_ended: bool,
}

impl Reader {
    fn expected(&self, expected: &'static str, found: &str) -> RecordingError {
        let found = match found {
            "" => "the end of the line".to_owned(),
            word => format!("\"{}\"", word.chars().take(40).collect::<String>().escape_debug()),
        };
        RecordingError::Expected { file: self.rank.file.clone(), line: self.line, expected, found }
    }

    fn statement(&mut self, words: &mut SplitAsciiWhitespace<'_>) -> Result<(), RecordingError> {
        let word = words.next().unwrap_or_default();
        match word {
            _ if self.has_ended => return Err(self.expected("nothing after \"end\"", word)),
            "ayre" if self.line == 1 => {
                for expected in ["record", "1"] {
                    let word = words.next().unwrap_or_default();
                    if word != expected {
                        return Err(self.expected("\"ayre record 1\"", word));
                    }
                }
            }
            _ if self.line == 1 => return Err(self.expected("\"ayre record 1\"", word)),
            "endpoint" => {
                let name = self.name(words)?;
                self.rank.endpoints.push(name);
            }
            "peer" => {
                let number = self.number("the number of a peer", u64::MAX, words)?;
                let name = self.name(words)?;
                self.peers.insert(number, name);
            }
            "done" | "fail" => self.end(word == "done", words)?,
            "end" => {
                let nanos = self.number("the time in all", TOOK_MAX, words)?;
                self.rank.took = Time(nanos * 1000);
                self.has_ended = true;
            }
            word => match kind_of(word) {
                Some(kind) => self.posted(kind, words)?,
                None => return Err(self.expected("a word that begins a line", word)),
            },
        }
        let rest = words.next().unwrap_or_default();
        if rest.is_empty() { Ok(()) } else { Err(self.expected("the end of the line", rest)) }
    }

    /// Reads the rest of a line about an operation that is posted.
    fn posted(
        &mut self,
        kind: Kind,
        words: &mut SplitAsciiWhitespace<'_>,
    ) -> Result<(), RecordingError> {
        let posted = self.event(EventKind::Posted, words)?;
        let context = self.number_or_none("a context or -", words)?;
        let number = self.number_or_none("the number of a peer or -", words)?;
        let tag = self.number("a tag", u64::MAX, words)?;
        let bytes = self.number("the number of bytes", BYTES_MAX, words)?;
        let peer = match (kind, number) {
            (Kind::Receive { .. } | Kind::Many, _) => None,
            (_, number) => Some(self.peer(number)?),
        };
        let message = None;
        let operation = Operation { kind, posted, line: self.line, peer, tag, bytes, message };
        let number = self.add(operation);
        if let Some(context) = context {
            self.waiting.entry((class(kind), context)).or_default().push_back(number);
        }
        Ok(())
    }

    /// Reads the rest of a line about an end.
    fn end(
        &mut self,
        is_done: bool,
        words: &mut SplitAsciiWhitespace<'_>,
    ) -> Result<(), RecordingError> {
        let event = self.event(EventKind::Other, words)?;
        let word = words.next().unwrap_or_default();
        let Some(kind) = kind_of(word) else {
            return Err(self.expected("the kind of an operation", word));
        };
        let context = self.number("a context", u64::MAX, words)?;
        let mut end = (None, 0, 0);
        if is_done {
            let source = self.number_or_none("the number of a peer or -", words)?;
            let tag = self.number("a tag", u64::MAX, words)?;
            end = (source, tag, self.number("the number of bytes", BYTES_MAX, words)?);
        }
        // The program also reads what it has found by looking, which is no operation.
        let Some(mut number) = self.waiting(kind, context, is_done) else { return Ok(()) };
        if !is_done {
            return Ok(());
        }
        let operation = self.rank.operations[number as usize];
        let (source, tag, bytes) = end;
        let peer = source.map(|source| self.peer(Some(source))).transpose()?;
        match operation.kind {
            Kind::Many => {
                let kind = Kind::Receive { tagged: false };
                number = self.add(Operation { kind, peer, tag, bytes, ..operation });
            }
            Kind::Receive { .. } => {
                let operation = &mut self.rank.operations[number as usize];
                (operation.peer, operation.tag, operation.bytes) = (peer, tag, bytes);
            }
            _ => {}
        }
        self.rank.events[event as usize].kind = EventKind::Ended(number);
        Ok(())
    }

    /// The oldest operation of a kind and a context that has not ended.
    fn waiting(&mut self, kind: Kind, context: u64, is_done: bool) -> Option<u32> {
        let waiting = self.waiting.get_mut(&(class(kind), context))?;
        let number = *waiting.front()?;
        // Memory for many messages stays until the word says so.
        let stays = self.rank.operations[number as usize].kind == Kind::Many && kind != Kind::Many;
        if !(is_done && stays) {
            waiting.pop_front();
        }
        Some(number)
    }

    fn add(&mut self, operation: Operation) -> u32 {
        self.rank.operations.push(operation);
        self.rank.operations.len() as u32 - 1
    }

    /// Adds an event with the rank's own time before it, which is the next word.
    fn event(
        &mut self,
        kind: EventKind,
        words: &mut SplitAsciiWhitespace<'_>,
    ) -> Result<u32, RecordingError> {
        let calc = self.number("nanoseconds", CALC_MAX, words)?;
        // An event makes an operation at most.
        let Some(room) = self.room.checked_sub(2) else {
            let (number, limit) = (OPERATIONS_MAX + 1, OPERATIONS_MAX);
            return Err(self.too_large("the number of operations and ends", number, limit));
        };
        self.room = room;
        self.rank.events.push(Event { calc, kind });
        Ok(self.rank.events.len() as u32 - 1)
    }

    /// The endpoint behind a number.
    fn peer(&self, number: Option<u64>) -> Result<Name, RecordingError> {
        let name = number.and_then(|number| self.peers.get(&number).copied());
        let shown = || number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        name.ok_or_else(|| self.expected("a peer that has a line above", &shown()))
    }

    fn name(&self, words: &mut SplitAsciiWhitespace<'_>) -> Result<Name, RecordingError> {
        let word = words.next().unwrap_or_default();
        let name = Name::from_str_radix(word, 16).ok().filter(|_| word.len() == 32);
        name.ok_or_else(|| self.expected("the 32 digits of an endpoint", word))
    }

    fn number(
        &self,
        what: &'static str,
        limit: u64,
        words: &mut SplitAsciiWhitespace<'_>,
    ) -> Result<u64, RecordingError> {
        let word = words.next().unwrap_or_default();
        let number = u64::from_str(word).map_err(|_| self.expected(what, word))?;
        if number > limit { Err(self.too_large(what, number, limit)) } else { Ok(number) }
    }

    fn number_or_none(
        &self,
        what: &'static str,
        words: &mut SplitAsciiWhitespace<'_>,
    ) -> Result<Option<u64>, RecordingError> {
        match words.clone().next() {
            Some("-") => {
                words.next();
                Ok(None)
            }
            _ => self.number(what, u64::MAX, words).map(Some),
        }
    }

    fn too_large(&self, what: &'static str, number: u64, limit: u64) -> RecordingError {
        let file = self.rank.file.clone();
        RecordingError::TooLarge { file, line: self.line, what, number, limit }
    }

    fn finish(mut self) -> Rank {
        let operations = &self.rank.operations;
        self.rank.order = (0..operations.len() as u32).collect();
        // Stable: receives of one memory stay in the order of their ends.
        self.rank.order.sort_by_key(|number| operations[*number as usize].posted);
        self.rank
    }
}

/// The kind of an operation by its word.
fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "send" => Kind::Send { tagged: false },
        "tsend" => Kind::Send { tagged: true },
        "recv" => Kind::Receive { tagged: false },
        "trecv" => Kind::Receive { tagged: true },
        "mrecv" => Kind::Many,
        "write" => Kind::Write,
        "read" => Kind::Read,
        _ => return None,
    })
}

/// Operations that end with one word: receives of one message and of many.
fn class(kind: Kind) -> Kind {
    if kind == Kind::Many { Kind::Receive { tagged: false } } else { kind }
}
