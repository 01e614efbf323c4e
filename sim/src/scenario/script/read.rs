//! The text form: a statement a line.
use super::super::nearest::nearest;
use super::super::units;
use super::collective::{COLLECTIVES, Joint};
use super::error::{OPERATIONS_MAX, STATEMENTS_MAX, ScriptError, ScriptFault};
use super::way::OWN;
use super::{
    Arguments, Block, Call, Handler, Line, Nodes, Note, Place, Queue, Region, Script, Statement,
    Who,
};
use ayre_proto::active::{LONGEST, STATIC_IDS};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::collective::{Collective, Schedule};
use ayre_proto::combine::Combine;
use ayre_proto::limits::{BATCH_MAX, EAGER_MAX, LANE_LINES_MAX, LANE_LINES_MIN, LINE_PAYLOAD};
use ayre_proto::lock::LockMode;
use ayre_proto::notify::Classes;

/// Bytes of all regions at most, each counted once.
const MEMORY_MAX: u64 = 1 << 30;
/// Bytes of a collective's vector, or of each of its blocks, at most.
const VECTOR_MAX: u64 = 1 << 26;
/// Handlers of a script: each has a number that the protocol leaves to programs.
const HANDLERS_MAX: usize = (*STATIC_IDS.end() - *STATIC_IDS.start() + 1) as usize;
/// Nodes have smaller numbers.
const NODES_MAX: u64 = 1024;

/// The form of each statement, by its first word.
const FORMS: [(&str, &str); 39] = [
    ("region", "region NAME LENGTH NODES"),
    ("queue", "queue NAME LENGTH NODE"),
    ("handler", "handler NAME"),
    ("node", "node NODES"),
    ("call", "call NODE HANDLER LENGTH [ARGUMENT ...] [fill=BYTE]"),
    ("called", "called LENGTH [ARGUMENT ...] [expect=BYTE]"),
    ("serve", "serve NUMBER"),
    ("put", "put PLACE OFFSET LENGTH [fill=BYTE] [notify=CLASSES] [tag=] [value=]"),
    ("get", "get PLACE OFFSET LENGTH [expect=BYTE] [notify=CLASSES] [tag=] [value=]"),
    ("immediate", "immediate PLACE OFFSET VALUE [notify=CLASSES] [tag=] [value=]"),
    ("atomic", "atomic OPERATION PLACE OFFSET OPERAND [compare=] [notify=CLASSES] [tag=]"),
    ("fetch", "fetch OPERATION PLACE OFFSET OPERAND [compare=] [expect=] [notify=CLASSES]"),
    ("notify", "notify NODE [tag=] [value=] [notify=CLASSES]"),
    ("await", "await [from=NODE] [tag=] [value=]"),
    ("send", "send NODE LENGTH [fill=BYTE] [tag=]"),
    ("receive", "receive NODE [tag=] [expect=BYTE]"),
    ("append", "append QUEUE LENGTH [fill=BYTE]"),
    ("take", "take QUEUE [from=NODE] [expect=BYTE]"),
    ("lock", "lock PLACE OFFSET [mode=shared]"),
    ("unlock", "unlock PLACE OFFSET [mode=shared]"),
    ("flush", "flush [NODE]"),
    ("compute", "compute TIME"),
    ("barrier", "barrier [schedule=]"),
    ("broadcast", "broadcast LENGTH [root=NUMBER] [schedule=]"),
    ("reduce", "reduce LENGTH OPERATION [root=NUMBER] [schedule=]"),
    ("allreduce", "allreduce LENGTH OPERATION [schedule=]"),
    ("gather", "gather LENGTH [root=NUMBER] [schedule=]"),
    ("scatter", "scatter LENGTH [root=NUMBER] [schedule=]"),
    ("allgather", "allgather LENGTH [schedule=]"),
    ("alltoall", "alltoall LENGTH [schedule=]"),
    ("scan", "scan LENGTH OPERATION [schedule=]"),
    ("reduce-scatter", "reduce-scatter LENGTH OPERATION [schedule=]"),
    ("wait", "wait PLACE OFFSET VALUE"),
    ("check", "check PLACE OFFSET VALUE"),
    ("kill", "kill NODE"),
    ("restart", "restart NODE"),
    ("repeat", "repeat NUMBER"),
    ("together", "together"),
    ("batch", "batch NODE"),
];
const END: &str = "end";

const ATOMICS: [(&str, AtomicOp); 11] = [
    ("add", AtomicOp::Add),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
    ("min", AtomicOp::MinUnsigned),
    ("max", AtomicOp::MaxUnsigned),
    ("min-signed", AtomicOp::MinSigned),
    ("max-signed", AtomicOp::MaxSigned),
    ("swap", AtomicOp::Swap),
    ("compare-swap", AtomicOp::CompareSwap),
    ("fcaa", AtomicOp::Fcaa),
];
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
const ATOMIC_NAMES: &str =
    "add, and, or, xor, min, max, min-signed, max-signed, swap, compare-swap, fcaa";

pub(super) fn read(file: &str, text: &str) -> Result<Script, ScriptError> {
    let fail = |line, fault| ScriptError { file: file.to_owned(), line, fault };
    let (regions, queues, handlers, blocks) = (vec![], vec![], vec![], vec![]);
    let script = Script { file: file.to_owned(), regions, queues, handlers, blocks };
    let mut draft = Draft { script, open: vec![], is_handler: false, statements: 0 };
    let mut last = 1;
    for (number, content) in (1..).zip(text.lines()) {
        let statement = content.split('#').next().unwrap_or_default();
        let words: Vec<_> = statement.split_whitespace().collect();
        if let Some((first, rest)) = words.split_first() {
            last = number;
            draft.take(number, first, rest).map_err(|fault| fail(number, fault))?;
        }
    }
    draft.finish().map_err(|fault| fail(last, fault))
}

/// A script as it grows.
struct Draft {
    script: Script,
    /// The blocks within the last block of nodes that have not ended: where they begin.
    open: Vec<usize>,
    /// The last block is a handler.
    is_handler: bool,
    statements: usize,
}

impl Draft {
    /// Takes a statement.
    fn take(&mut self, number: usize, first: &str, rest: &[&str]) -> Result<(), ScriptFault> {
        self.statements += 1;
        if self.statements > STATEMENTS_MAX {
            return Err(ScriptFault::Statements);
        }
        let form = FORMS.iter().find(|(word, _)| *word == first).map(|(_, form)| *form);
        if form.is_none() && first != END {
            let nearest = nearest(first, FORMS.iter().map(|(word, _)| *word));
            return Err(ScriptFault::Statement { word: short(first), nearest });
        }
        let mut words = Words::new(rest, form.unwrap_or(END))?;
        match first {
            "region" => self.region(number, &mut words)?,
            "queue" => self.queue(number, &mut words)?,
            "handler" => self.handler(&mut words)?,
            "node" => self.block(number, &mut words)?,
            _ => {
                let is_fault = words.choice("ends", &[("fault", true)])?.unwrap_or(false);
                let statement = self.statement(first, &mut words)?;
                self.add(Line { number, statement, is_fault })?;
            }
        }
        words.end()
    }

    /// A name that is free.
    fn name(&self, word: &str) -> Result<String, ScriptFault> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let regions = self.script.regions.iter().map(|region| &region.name);
        let queues = self.script.queues.iter().map(|queue| &queue.name);
        let handlers = self.script.handlers.iter().map(|handler| &handler.name);
        let mut taken = regions.chain(queues).chain(handlers);
        if word.len() > 64 || !word.chars().all(good) || taken.any(|name| name == word) {
            return Err(ScriptFault::Name(short(word)));
        }
        Ok(word.to_owned())
    }

    fn region(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), ScriptFault> {
        let name = self.name(words.next()?)?;
        let len = words.length(MEMORY_MAX)?.next_multiple_of(8).max(8);
        let homes = words.nodes()?;
        self.script.regions.push(Region { name, len, homes, line });
        let all = self.script.regions.iter().map(|region| region.len).sum::<u64>();
        if all > MEMORY_MAX {
            return Err(ScriptFault::Memory { limit: MEMORY_MAX });
        }
        Ok(())
    }

    fn queue(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), ScriptFault> {
        let name = self.name(words.next()?)?;
        let most = (LANE_LINES_MAX * LINE_PAYLOAD) as u64;
        let lines = words.length(most)?.div_ceil(LINE_PAYLOAD as u64).max(LANE_LINES_MIN as u64);
        let home = words.number(0, NODES_MAX - 1)? as u32;
        self.script.queues.push(Queue { name, lines: lines as u32, home, line });
        Ok(())
    }

    fn block(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), ScriptFault> {
        if !self.open.is_empty() {
            return Err(ScriptFault::End);
        }
        let nodes = words.nodes()?;
        self.is_handler = false;
        self.script.blocks.push(Block { nodes, body: vec![], line });
        Ok(())
    }

    fn handler(&mut self, words: &mut Words<'_>) -> Result<(), ScriptFault> {
        if !self.open.is_empty() {
            return Err(ScriptFault::End);
        }
        let name = self.name(words.next()?)?;
        if self.script.handlers.len() == HANDLERS_MAX {
            return Err(ScriptFault::Handlers(HANDLERS_MAX));
        }
        self.is_handler = true;
        self.script.handlers.push(Handler { name, body: vec![] });
        Ok(())
    }

    /// Adds a statement to the handler, or to the block of nodes.
    fn add(&mut self, line: Line) -> Result<(), ScriptFault> {
        use Statement::{Call, Called, Check, Compute};
        let word = line.statement.word();
        if let Some(handler) = self.script.handlers.last_mut().filter(|_| self.is_handler) {
            let is_good =
                matches!(line.statement, Call(_) | Called { .. } | Check { .. } | Compute(_));
            handler.body.push(line);
            let block = "handler";
            return if is_good { Ok(()) } else { Err(ScriptFault::Inside { word, block }) };
        }
        if matches!(line.statement, Called { .. }) {
            return Err(ScriptFault::OnlyHandlers(word));
        }
        if line.statement.who() == Some(Who::Source) {
            return Err(ScriptFault::OnlyHandlers("source"));
        }
        let block = self.script.blocks.last_mut().ok_or(ScriptFault::Outside(word))?;
        let around = self.open.last().map(|begin| &block.body[*begin].statement);
        let is_good = match around {
            _ if word == END => true,
            Some(Statement::Together) => line.statement.is_posted(),
            Some(Statement::Batch(_)) => line.statement.is_batched(),
            _ => true,
        };
        if !is_good {
            let block = around.map_or("", Statement::word);
            return Err(ScriptFault::Inside { word, block });
        }
        match line.statement {
            Statement::End(_) => {
                let begin = self.open.pop().ok_or(ScriptFault::End)?;
                let is_batch = matches!(block.body[begin].statement, Statement::Batch(_));
                if is_batch && block.body.len() - begin - 1 > BATCH_MAX {
                    let most = BATCH_MAX as u64;
                    let word = (block.body.len() - begin - 1).to_string();
                    return Err(ScriptFault::Number { word, least: 0, most });
                }
                block.body.push(Line { statement: Statement::End(begin), ..line });
            }
            Statement::Repeat(_) | Statement::Together | Statement::Batch(_) => {
                self.open.push(block.body.len());
                block.body.push(line);
            }
            _ => block.body.push(line),
        }
        Ok(())
    }

    fn find_region(&self, name: &str) -> Result<usize, ScriptFault> {
        let found = self.script.regions.iter().position(|region| region.name == name);
        found.ok_or_else(|| ScriptFault::Unknown { what: "region", name: short(name) })
    }

    fn find_queue(&self, name: &str) -> Result<usize, ScriptFault> {
        let found = self.script.queues.iter().position(|queue| queue.name == name);
        found.ok_or_else(|| ScriptFault::Unknown { what: "queue", name: short(name) })
    }

    fn find_handler(&self, name: &str) -> Result<usize, ScriptFault> {
        let found = self.script.handlers.iter().position(|handler| handler.name == name);
        found.ok_or_else(|| ScriptFault::Unknown { what: "handler", name: short(name) })
    }

    /// `REGION` or `REGION@NODE`, and an offset.
    fn place(&self, words: &mut Words<'_>) -> Result<Place, ScriptFault> {
        let word = words.next()?;
        let (name, node) = word.split_once('@').map_or((word, None), |(name, at)| (name, Some(at)));
        let (region, node) = (self.find_region(name)?, node.map(who).transpose()?);
        Ok(Place { region, node, offset: words.length(MEMORY_MAX)? })
    }

    /// A statement of nodes.
    fn statement(&self, first: &str, words: &mut Words<'_>) -> Result<Statement, ScriptFault> {
        Ok(match first {
            "put" => {
                let (to, len) = (self.place(words)?, words.length(MEMORY_MAX)?);
                Statement::Put {
                    to,
                    len,
                    fill: words.byte("fill")?.unwrap_or(0),
                    note: words.note()?,
                }
            }
            "get" => {
                let (from, len) = (self.place(words)?, words.length(MEMORY_MAX)?);
                Statement::Get { from, len, expect: words.byte("expect")?, note: words.note()? }
            }
            "immediate" => {
                let (to, value) = (self.place(words)?, words.value()?);
                Statement::Immediate { to, value, note: words.note()? }
            }
            "atomic" => {
                let (on, atomic) = self.atomic(words)?;
                Statement::Atomic { on, atomic, note: words.note()? }
            }
            "fetch" => {
                let (on, atomic) = self.atomic(words)?;
                let expect = words.optional_value("expect")?;
                Statement::Fetch { on, atomic, expect, note: words.note()? }
            }
            "notify" => {
                let mut note = words.note()?;
                note.classes |= Classes::COMPLETER;
                Statement::Notify { to: who(words.next()?)?, note }
            }
            "wait" => Statement::Wait { at: self.place(words)?, value: words.value()? },
            "check" => Statement::Check { at: self.place(words)?, value: words.value()? },
            "lock" | "unlock" => {
                let on = self.place(words)?;
                let mode = words.choice("mode", &[("shared", LockMode::Shared)])?;
                let mode = mode.unwrap_or(LockMode::Exclusive);
                match first {
                    "lock" => Statement::Lock { on, mode },
                    _ => Statement::Unlock { on, mode },
                }
            }
            "append" => {
                let queue = self.find_queue(words.next()?)?;
                let len = words.length(1 << 20)?;
                Statement::Append { queue, len, fill: words.byte("fill")?.unwrap_or(0) }
            }
            "take" => {
                let queue = self.find_queue(words.next()?)?;
                Statement::Take { queue, from: words.from()?, expect: words.byte("expect")? }
            }
            "call" => {
                let (to, handler) = (who(words.next()?)?, self.find_handler(words.next()?)?);
                let (len, fill) = (words.length(LONGEST as u64)?, words.byte("fill")?.unwrap_or(0));
                Statement::Call(Call { to, handler, len, fill, arguments: words.arguments()? })
            }
            _ => words.statement(first)?,
        })
    }

    fn atomic(&self, words: &mut Words<'_>) -> Result<(Place, Atomic), ScriptFault> {
        let word = words.next()?;
        let op = ATOMICS.iter().find(|(name, _)| *name == word).map(|(_, op)| *op);
        let op =
            op.ok_or_else(|| ScriptFault::Choice { word: short(word), allowed: ATOMIC_NAMES })?;
        let (on, operand) = (self.place(words)?, words.value()?);
        let compare = words.optional_value("compare")?.unwrap_or(0);
        Ok((on, Atomic { width: Width::W64, op, operand, compare }))
    }

    fn finish(self) -> Result<Script, ScriptFault> {
        let script = self.script;
        if !self.open.is_empty() {
            return Err(ScriptFault::End);
        }
        if script.blocks.iter().all(|block| block.body.is_empty()) {
            return Err(ScriptFault::Empty);
        }
        let mut operations = 0_u64;
        for block in &script.blocks {
            let mut factors = vec![1_u64];
            for line in &block.body {
                let factor = factors[factors.len() - 1];
                match line.statement {
                    Statement::Repeat(times) => factors.push(factor.saturating_mul(times.into())),
                    Statement::Together | Statement::Batch(_) => factors.push(factor),
                    Statement::End(_) => {
                        factors.pop();
                    }
                    _ => {}
                }
                operations = operations.saturating_add(factor);
            }
        }
        if operations > OPERATIONS_MAX {
            return Err(ScriptFault::Operations);
        }
        Ok(script)
    }
}

/// The words behind the first one, and the options `key=value` among them.
struct Words<'a> {
    rest: std::vec::IntoIter<&'a str>,
    options: Vec<(&'a str, &'a str)>,
    form: &'static str,
}

impl<'a> Words<'a> {
    fn new(words: &[&'a str], form: &'static str) -> Result<Self, ScriptFault> {
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

    fn next(&mut self) -> Result<&'a str, ScriptFault> {
        self.rest.next().ok_or(ScriptFault::Form(self.form))
    }

    /// Nothing is left.
    fn end(mut self) -> Result<(), ScriptFault> {
        let is_left = self.rest.next().is_some() || !self.options.is_empty();
        if is_left { Err(ScriptFault::Form(self.form)) } else { Ok(()) }
    }

    fn option(&mut self, key: &str) -> Option<&'a str> {
        let place = self.options.iter().position(|(name, _)| *name == key)?;
        Some(self.options.remove(place).1)
    }

    fn number(&mut self, least: u64, most: u64) -> Result<u64, ScriptFault> {
        number(self.next()?, least, most)
    }

    /// A length, with a unit or in bytes.
    fn length(&mut self, most: u64) -> Result<u64, ScriptFault> {
        let word = self.next()?;
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return number(word, 0, most);
        }
        let bytes = units::bytes(word);
        let bytes = bytes.map_err(|why| ScriptFault::Unit { word: short(word), why })?;
        number(&bytes.to_string(), 0, most)
    }

    fn value(&mut self) -> Result<u64, ScriptFault> {
        value(self.next()?)
    }

    fn optional_value(&mut self, key: &str) -> Result<Option<u64>, ScriptFault> {
        self.option(key).map(value).transpose()
    }

    fn byte(&mut self, key: &str) -> Result<Option<u8>, ScriptFault> {
        let byte = self.option(key).map(|word| number(word, 0, u8::MAX.into()));
        Ok(byte.transpose()?.map(|byte| byte as u8))
    }

    fn tag(&mut self) -> Result<Option<u32>, ScriptFault> {
        let tag = self.option("tag").map(|word| number(word, 0, u32::MAX.into()));
        Ok(tag.transpose()?.map(|tag| tag as u32))
    }

    fn from(&mut self) -> Result<Option<Who>, ScriptFault> {
        self.option("from").map(who).transpose()
    }

    fn choice<T: Copy>(&mut self, key: &str, all: &[(&str, T)]) -> Result<Option<T>, ScriptFault> {
        let Some(word) = self.option(key) else { return Ok(None) };
        let found = all.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| Some(*value)).ok_or(ScriptFault::Form(self.form))
    }

    /// The notifications that an operation asks for, joined by commas.
    fn note(&mut self) -> Result<Note, ScriptFault> {
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

    fn nodes(&mut self) -> Result<Nodes, ScriptFault> {
        let word = self.next()?;
        if word == "all" {
            return Ok(Nodes::All);
        }
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let first = number(first, 0, NODES_MAX - 1)?;
        let last = number(last, first, NODES_MAX - 1)?;
        Ok(Nodes::Range(first as u32, last as u32))
    }

    fn arguments(&mut self) -> Result<Arguments, ScriptFault> {
        let mut arguments = Arguments::default();
        for word in self.rest.by_ref() {
            let place = arguments.words.get_mut(arguments.count);
            *place.ok_or(ScriptFault::Form(self.form))? = value(word)?;
            arguments.count += 1;
        }
        Ok(arguments)
    }

    /// A statement that names nothing of the script.
    fn statement(&mut self, first: &str) -> Result<Statement, ScriptFault> {
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

    fn collective(&mut self, collective: Collective) -> Result<Joint, ScriptFault> {
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

fn number(word: &str, least: u64, most: u64) -> Result<u64, ScriptFault> {
    let number = word.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| ScriptFault::Number { word: short(word), least, most })
}

/// A word of 64 bits, which may be negative.
fn value(word: &str) -> Result<u64, ScriptFault> {
    let signed = word.parse::<i64>().map(|value| value as u64);
    signed.or_else(|_| number(word, 0, u64::MAX))
}

fn who(word: &str) -> Result<Who, ScriptFault> {
    Ok(match word {
        "self" => Who::Own,
        "next" => Who::Next,
        "previous" => Who::Previous,
        "source" => Who::Source,
        _ => Who::Number(number(word, 0, NODES_MAX - 1)? as u32),
    })
}

/// As much of a word as an error shows.
fn short(word: &str) -> String {
    word.chars().take(32).collect()
}
