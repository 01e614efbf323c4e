//! The form of Debian's control files (deb822): stanzas of fields, one stanza after another.
//!
//! A stanza ends at an empty line; a field is `Name: value` and goes on in the lines that start
//! with a blank. Reading is by line and keeps the fields that matter for dependencies. So a file
//! of any size needs no more memory than its largest stanza may take, which is limited.
//! Any sequence of bytes is accepted: one that is not a stanza comes out as [`Malformed`].

use std::fmt;
use std::io::{self, BufRead};

/// The fields that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Package,
    PreDepends,
    Depends,
    Recommends,
    Provides,
}

/// The names of the fields, in the order of `Field`.
const NAMES: [&str; 5] = ["Package", "Pre-Depends", "Depends", "Recommends", "Provides"];

const FIELDS: [Field; 5] =
    [Field::Package, Field::PreDepends, Field::Depends, Field::Recommends, Field::Provides];

/// Limits both a line and a field that is kept; the longest line of bookworm has 75 649 bytes.
const LIMIT: usize = 1 << 20;

/// Why a stanza is no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A line is neither a field nor the continuation of one.
    NotAField,
    /// A field that may stand once stands twice.
    Repeated(Field),
    /// A line or a field exceeds the limit.
    TooLong,
    /// A field is not UTF-8.
    NotText(Field),
    /// There is no `Package`, or it is not a package name.
    NoPackage,
    /// A dependency is not of the form that Debian's policy gives.
    BadRelation(Field),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotAField => write!(f, "a line is not a field"),
            Self::Repeated(field) => write!(f, "{} stands twice", NAMES[field as usize]),
            Self::TooLong => write!(f, "a line or field is longer than {LIMIT} bytes"),
            Self::NotText(field) => write!(f, "{} is not UTF-8", NAMES[field as usize]),
            Self::NoPackage => write!(f, "no package is named"),
            Self::BadRelation(field) => write!(f, "{} is no relation", NAMES[field as usize]),
        }
    }
}

/// A stanza's kept fields.
#[derive(Debug, Default)]
pub(crate) struct Stanza {
    values: [Option<String>; NAMES.len()],
}

impl Stanza {
    /// The value of a field; empty when the stanza has no such field.
    pub(crate) fn get(&self, field: Field) -> &str {
        self.values[field as usize].as_deref().unwrap_or_default()
    }
}

/// Reads stanzas one by one.
pub(crate) struct Reader<R> {
    input: R,
    line: Vec<u8>,
    /// The number of the line that was read last.
    line_number: u64,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, line: Vec::new(), line_number: 0 }
    }

    /// The number of the last line of the stanza that was read last.
    pub(crate) fn line_number(&self) -> u64 {
        self.line_number
    }

    /// The next stanza; `None` at the end of the input.
    pub(crate) fn read(&mut self) -> io::Result<Option<Result<Stanza, Malformed>>> {
        let mut draft = Draft::default();
        let mut started = false;
        loop {
            let line = read_line(&mut self.input, &mut self.line)?;
            if let Line::End = line {
                return Ok(started.then(|| draft.finish()));
            }
            self.line_number += 1;
            if self.line.trim_ascii().is_empty() {
                if started {
                    return Ok(Some(draft.finish()));
                }
                continue;
            }
            started = true;
            match line {
                Line::Whole => draft.line(&self.line),
                Line::TooLong | Line::End => draft.fail(Malformed::TooLong),
            }
        }
    }
}

/// A stanza of which some lines have been read.
#[derive(Default)]
struct Draft {
    values: [Option<Vec<u8>>; NAMES.len()],
    /// The field that a continuation belongs to.
    current: Current,
    malformed: Option<Malformed>,
}

#[derive(Default)]
enum Current {
    #[default]
    Nothing,
    Kept(Field),
    Other,
}

impl Draft {
    fn line(&mut self, line: &[u8]) {
        if self.malformed.is_some() {
            return;
        }
        if line[0] == b' ' || line[0] == b'\t' {
            match self.current {
                Current::Nothing => self.fail(Malformed::NotAField),
                Current::Kept(field) => self.append(field, line),
                Current::Other => {}
            }
            return;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return self.fail(Malformed::NotAField);
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || name.starts_with(b"#") || !name.iter().all(u8::is_ascii_graphic) {
            return self.fail(Malformed::NotAField);
        }
        self.current = Current::Other;
        for field in FIELDS {
            if name.eq_ignore_ascii_case(NAMES[field as usize].as_bytes()) {
                self.current = Current::Kept(field);
                if self.values[field as usize].replace(Vec::new()).is_some() {
                    self.fail(Malformed::Repeated(field));
                }
                self.append(field, value);
            }
        }
    }

    fn append(&mut self, field: Field, text: &[u8]) {
        let value = self.values[field as usize].get_or_insert_default();
        if value.len() + text.len() > LIMIT {
            self.fail(Malformed::TooLong);
        } else {
            value.extend_from_slice(text);
        }
    }

    /// Keeps the first reason; later lines may only suffer from it.
    fn fail(&mut self, why: Malformed) {
        self.malformed.get_or_insert(why);
    }

    fn finish(self) -> Result<Stanza, Malformed> {
        if let Some(why) = self.malformed {
            return Err(why);
        }
        let mut stanza = Stanza::default();
        for (field, value) in FIELDS.into_iter().zip(self.values) {
            let text = value.map(String::from_utf8).transpose();
            stanza.values[field as usize] = text.map_err(|_| Malformed::NotText(field))?;
        }
        Ok(stanza)
    }
}

#[derive(Clone, Copy)]
enum Line {
    Whole,
    /// The line was read to its end, but only its beginning is kept.
    TooLong,
    End,
}

/// Reads up to the next newline, which `line` keeps, and keeps no more than `LIMIT` bytes.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let newline = buffer.iter().position(|&byte| byte == b'\n');
        let taken = newline.map_or(buffer.len(), |position| position + 1);
        let room = LIMIT.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..taken.min(room)]);
        length += taken;
        let at_end = buffer.is_empty();
        input.consume(taken);
        if newline.is_some() || at_end {
            return Ok(match length {
                0 => Line::End,
                length if length > line.len() => Line::TooLong,
                _ => Line::Whole,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parsed = Result<(String, String), Malformed>;

    /// Each stanza as its package and its dependencies, or the reason why there is none.
    fn parse(text: &[u8]) -> Vec<Parsed> {
        // A tiny buffer makes lines straddle it.
        let mut reader = Reader::new(io::BufReader::with_capacity(7, text));
        let mut stanzas = Vec::new();
        while let Some(stanza) = reader.read().unwrap() {
            let fields = |stanza: Stanza| {
                let get =
                    |field| stanza.get(field).split_whitespace().collect::<Vec<_>>().join(" ");
                (get(Field::Package), get(Field::Depends))
            };
            stanzas.push(stanza.map(fields));
        }
        stanzas
    }

    fn ok(package: &str, depends: &str) -> Parsed {
        Ok((package.to_owned(), depends.to_owned()))
    }

    #[test]
    fn stanzas() {
        let table: [(&[u8], Vec<Parsed>); 7] = [
            (b"", vec![]),
            (b"\n\n \n", vec![]),
            (b"Package: a", vec![ok("a", "")]),
            (b"Package: a\n\n\n\t\nPackage: b\n\n", vec![ok("a", ""), ok("b", "")]),
            (
                b"package:a\r\nDEPENDS: b,\r\n c\r\n\r\nPackage: d\r\n",
                vec![ok("a", "b, c"), ok("d", "")],
            ),
            (b"Package: a\nDescription: long\n Depends: x\n .\nDepends: b\n", vec![ok("a", "b")]),
            (b"Version: 1\nDepends: b\n", vec![ok("", "b")]),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn malformed_stanzas_leave_the_others_alone() {
        let table: [(&[u8], Malformed); 9] = [
            (b" starts with a continuation\nPackage: x", Malformed::NotAField),
            (b"Package: x\nno colon", Malformed::NotAField),
            (b"Package: x\n: no name", Malformed::NotAField),
            (b"Package: x\ntwo words: y", Malformed::NotAField),
            (b"# comment: y\nPackage: x", Malformed::NotAField),
            (b"Package: x\nPackage: y", Malformed::Repeated(Field::Package)),
            (b"Depends: x\nPackage: x\ndepends: y", Malformed::Repeated(Field::Depends)),
            (b"Package: x\nDepends: \xff", Malformed::NotText(Field::Depends)),
            (b"Package: x\0\nDepends\xc3: y", Malformed::NotAField),
        ];
        for (stanza, why) in table {
            let text = [b"Package: before\n\n", stanza, b"\n\nPackage: after\n"].concat();
            let expected = [ok("before", ""), Err(why), ok("after", "")];
            assert_eq!(parse(&text), expected, "{}", stanza.escape_ascii());
        }
    }

    #[test]
    fn fields_that_are_not_kept_may_hold_anything() {
        assert_eq!(parse(b"Maintainer: \xff\xfe\nPackage: a\n"), [ok("a", "")]);
    }

    #[test]
    fn long_lines_and_fields_are_refused() {
        let line = [b"Package: a\nTag: ", &vec![b'x'; LIMIT][..], b"\n\nPackage: b\n"].concat();
        assert_eq!(parse(&line), [Err(Malformed::TooLong), ok("b", "")]);
        let folded = b" x,\n".repeat(LIMIT / 4 + 1);
        let field = [b"Package: a\nDepends:\n", &folded[..], b"\nPackage: b\n"].concat();
        assert_eq!(parse(&field), [Err(Malformed::TooLong), ok("b", "")]);
    }

    #[test]
    fn any_bytes_are_accepted() {
        let mut numbers = crate::testing::Numbers(1);
        let alphabet = b"Package: Depends:\n\n\n \t,|()\xff\0ab";
        for length in 0..2000 {
            let pick = |_| alphabet[numbers.below(alphabet.len() as u32) as usize];
            let text: Vec<u8> = (0..length % 200).map(pick).collect();
            parse(&text);
        }
    }

    #[test]
    fn line_numbers() {
        let mut reader = Reader::new(&b"Package: a\nDepends: b\n\n\nPackage: c\n"[..]);
        reader.read().unwrap();
        assert_eq!(reader.line_number(), 3);
        reader.read().unwrap();
        assert_eq!(reader.line_number(), 5);
    }
}
