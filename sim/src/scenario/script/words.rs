//! The words of a statement, as numbers, nodes and options.
use super::super::units;
use super::collective::{COLLECTIVES, Joint};
use super::error::{OPERATIONS_MAX, ScriptFault};
use super::way::OWN;
use super::{Arguments, Nodes, Note, Statement, Who};
use ayre_proto::active::LONGEST;
use ayre_proto::collective::{Collective, Schedule};
use ayre_proto::combine::Combine;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::notify::Classes;

/// Nodes have smaller numbers.
pub(super) const NODES_MAX: u64 = 1024;
/// Bytes of a collective's vector, or of each of its blocks, at most.
const VECTOR_MAX: u64 = 1 << 26;
const COMBINES: [(&str, Combine); 7] = [
    ("sum", Combine::Sum),
    ("product", Combine::Prod),
    ("min", Combine::Min),
    ("max", Combine::Max),
    ("and", Combine::BAnd),
    ("or", Combine::BOr),
    ("xor", Combine::BXor),
];
const COMBINE_NAMES: &str = "sum, product, min, max, and, or, xor";
const SCHEDULES: [(&str, Schedule); Schedule::ALL.len()] = [
    ("star", Schedule::Star),
    ("tree", Schedule::Tree),
    ("doubling", Schedule::Doubling),
    ("spread", Schedule::Spread),
    ("ring", Schedule::Ring),
];

/// The words behind the first one, and the options `key=value` among them.
pub(super) struct Words<'a> {
    rest: std::vec::IntoIter<&'a str>,
    options: Vec<(&'a str, &'a str)>,
    form: &'static str,
}

impl<'a> Words<'a> {
    pub(super) fn new(words: &[&'a str], form: &'static str) -> Result<Self, ScriptFault> {
        let (mut rest, mut options) = (vec![], vec![]);
        for word in words {
            match word.split_once('=') {
                Some((key, _)) if options.iter().any(|(other, _)| *other == key) => {
                    return Err(ScriptFault::Form(form));
                }
                Some(option) => options.push(option),
                None => rest.push(*word),
            }
        }
        Ok(Self { rest: rest.into_iter(), options, form })
    }

    pub(super) fn next(&mut self) -> Result<&'a str, ScriptFault> {
        self.rest.next().ok_or(ScriptFault::Form(self.form))
    }

    /// Nothing is left.
    pub(super) fn end(mut self) -> Result<(), ScriptFault> {
        let is_left = self.rest.next().is_some() || !self.options.is_empty();
        if is_left { Err(ScriptFault::Form(self.form)) } else { Ok(()) }
    }

    pub(super) fn option(&mut self, key: &str) -> Option<&'a str> {
        let place = self.options.iter().position(|(name, _)| *name == key)?;
        Some(self.options.remove(place).1)
    }

    pub(super) fn number(&mut self, least: u64, most: u64) -> Result<u64, ScriptFault> {
        number(self.next()?, least, most)
    }

    /// A length, with a unit or in bytes.
    pub(super) fn length(&mut self, most: u64) -> Result<u64, ScriptFault> {
        let word = self.next()?;
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return number(word, 0, most);
        }
        let bytes = units::bytes(word);
        let bytes = bytes.map_err(|why| ScriptFault::Unit { word: short(word), why })?;
        number(&bytes.to_string(), 0, most)
    }

    pub(super) fn value(&mut self) -> Result<u64, ScriptFault> {
        value(self.next()?)
    }

    pub(super) fn optional_value(&mut self, key: &str) -> Result<Option<u64>, ScriptFault> {
        self.option(key).map(value).transpose()
    }

    pub(super) fn byte(&mut self, key: &str) -> Result<Option<u8>, ScriptFault> {
        let byte = self.option(key).map(|word| number(word, 0, u8::MAX.into()));
        Ok(byte.transpose()?.map(|byte| byte as u8))
    }

    pub(super) fn tag(&mut self) -> Result<Option<u32>, ScriptFault> {
        let tag = self.option("tag").map(|word| number(word, 0, u32::MAX.into()));
        Ok(tag.transpose()?.map(|tag| tag as u32))
    }

    pub(super) fn from(&mut self) -> Result<Option<Who>, ScriptFault> {
        self.option("from").map(who).transpose()
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        all: &[(&str, T)],
    ) -> Result<Option<T>, ScriptFault> {
        let Some(word) = self.option(key) else { return Ok(None) };
        let found = all.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| Some(*value)).ok_or(ScriptFault::Form(self.form))
    }

    /// The notifications that an operation asks for, joined by commas.
    pub(super) fn note(&mut self) -> Result<Note, ScriptFault> {
        let allowed = "requester, completer, responder";
        let class = |word: &str| match word {
            "requester" => Ok(Classes::REQUESTER),
            "completer" => Ok(Classes::COMPLETER),
            "responder" => Ok(Classes::RESPONDER),
            _ => Err(ScriptFault::Choice { word: short(word), allowed }),
        };
        let words = self.option("notify").into_iter().flat_map(|words| words.split(','));
        let classes = words.map(class).try_fold(Classes::empty(), |all, one| Ok(all | one?))?;
        let tag = self.tag()?.unwrap_or(0);
        Ok(Note { classes, tag, value: self.optional_value("value")?.unwrap_or(0) })
    }

    pub(super) fn nodes(&mut self) -> Result<Nodes, ScriptFault> {
        let word = self.next()?;
        if word == "all" {
            return Ok(Nodes::All);
        }
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let first = number(first, 0, NODES_MAX - 1)?;
        let last = number(last, first, NODES_MAX - 1)?;
        Ok(Nodes::Range(first as u32, last as u32))
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments, ScriptFault> {
        let mut arguments = Arguments::default();
        for word in self.rest.by_ref() {
            let place = arguments.words.get_mut(arguments.count);
            *place.ok_or(ScriptFault::Form(self.form))? = value(word)?;
            arguments.count += 1;
        }
        Ok(arguments)
    }

    /// A statement that names nothing of the script.
    pub(super) fn statement(&mut self, first: &str) -> Result<Statement, ScriptFault> {
        Ok(match first {
            "await" => {
                let (from, tag) = (self.from()?, self.tag()?);
                Statement::Await { from, tag, value: self.optional_value("value")? }
            }
            "send" => {
                let (to, len) = (who(self.next()?)?, self.length(EAGER_MAX as u64)?);
                let fill = self.byte("fill")?.unwrap_or(0);
                let tag = self.option("tag").map(|word| number(word, 0, u64::from(OWN) - 1));
                let tag = tag.transpose()?.unwrap_or(0) as u32;
                Statement::Send { to, len, fill, tag }
            }
            "receive" => {
                let (from, tag) = (who(self.next()?)?, self.tag()?);
                Statement::Receive { from, tag, expect: self.byte("expect")? }
            }
            "called" => {
                let (len, expect) = (self.length(LONGEST as u64)?, self.byte("expect")?);
                Statement::Called { len, expect, arguments: self.arguments()? }
            }
            "serve" => Statement::Serve(self.number(1, OPERATIONS_MAX)? as u32),
            "flush" => Statement::Flush { to: self.rest.next().map(who).transpose()? },
            "compute" => {
                let word = self.rest.by_ref().collect::<Vec<_>>().join(" ");
                let span = units::span(&word);
                Statement::Compute(
                    span.map_err(|why| ScriptFault::Unit { word: short(&word), why })?,
                )
            }
            "kill" => Statement::Kill(who(self.next()?)?),
            "restart" => Statement::Restart(who(self.next()?)?),
            "repeat" => Statement::Repeat(self.number(1, OPERATIONS_MAX)? as u32),
            "together" => Statement::Together,
            "batch" => Statement::Batch(who(self.next()?)?),
            _ => match COLLECTIVES.iter().find(|(word, _)| *word == first) {
                Some((_, collective)) => Statement::Collective(self.collective(*collective)?),
                None => Statement::End(0),
            },
        })
    }

    pub(super) fn collective(&mut self, collective: Collective) -> Result<Joint, ScriptFault> {
        let is_barrier = collective == Collective::Barrier;
        let len = if is_barrier { 0 } else { self.length(VECTOR_MAX)? };
        let combine = if collective.combines() {
            let word = self.next()?;
            let found = COMBINES.iter().find(|(name, _)| *name == word);
            let none = || ScriptFault::Choice { word: short(word), allowed: COMBINE_NAMES };
            Some(found.map(|(_, combine)| *combine).ok_or_else(none)?)
        } else {
            None
        };
        if combine.is_some() && !len.is_multiple_of(8) {
            return Err(ScriptFault::Words(len));
        }
        let root = if collective.has_root() { self.option("root") } else { None };
        let root = root.map(|word| number(word, 0, NODES_MAX - 1)).transpose()?;
        let schedule = self.choice("schedule", &SCHEDULES)?;
        if let Some(schedule) = schedule.filter(|schedule| !schedule.can(collective)) {
            return Err(ScriptFault::Schedule(format!("{schedule:?}").to_lowercase()));
        }
        let root = root.map(|root| root as u32);
        Ok(Joint { collective, len, combine, root, schedule })
    }
}

pub(super) fn number(word: &str, least: u64, most: u64) -> Result<u64, ScriptFault> {
    let number = word.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| ScriptFault::Number { word: short(word), least, most })
}

/// A word of 64 bits, which may be negative.
pub(super) fn value(word: &str) -> Result<u64, ScriptFault> {
    let signed = word.parse::<i64>().map(|value| value as u64);
    signed.or_else(|_| number(word, 0, u64::MAX))
}

/// `NAME` or `NAME@NODE`.
pub(super) fn at_node(word: &str) -> Result<(&str, Option<Who>), ScriptFault> {
    let Some((name, node)) = word.split_once('@') else { return Ok((word, None)) };
    Ok((name, Some(who(node)?)))
}

pub(super) fn who(word: &str) -> Result<Who, ScriptFault> {
    Ok(match word {
        "self" => Who::Own,
        "next" => Who::Next,
        "previous" => Who::Previous,
        "source" => Who::Source,
        _ => Who::Number(number(word, 0, NODES_MAX - 1)? as u32),
    })
}

/// As much of a word as an error shows.
pub(super) fn short(word: &str) -> String {
    word.chars().take(32).collect()
}
