//! The text form: a statement a line.
use super::super::nearest::nearest;
use super::error::{OPERATIONS_MAX, STATEMENTS_MAX, ScriptError, ScriptFault};
use super::words::{NODES_MAX, Words, at_node, number, short, who};
use super::{
    Block, Call, Deposit, Depot, Handler, Line, Place, Queue, Region, Script, Statement, Who,
};
use ayre_proto::active::{LONGEST, STATIC_IDS};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::deposit::{DATA_MAX, INSTRUCTIONS, REGISTERS, text};
use ayre_proto::limits::{BATCH_MAX, LANE_LINES_MAX, LANE_LINES_MIN, LINE_PAYLOAD};
use ayre_proto::lock::LockMode;
use ayre_proto::notify::Classes;

/// Bytes of all regions at most, each counted once.
const MEMORY_MAX: u64 = 1 << 30;
/// Handlers of a script: each has a number that the protocol leaves to programs.
const HANDLERS_MAX: usize = (*STATIC_IDS.end() - *STATIC_IDS.start() + 1) as usize;

/// The form of each statement, by its first word.
const FORMS: [(&str, &str); 44] = [
    ("region", "region NAME LENGTH NODES"),
    ("queue", "queue NAME LENGTH NODE"),
    ("depot", "depot NAME REGION"),
    ("assemble", "assemble DEPOT INSTRUCTION"),
    ("register", "register DEPOT NUMBER VALUE"),
    ("until", "until DEPOT NUMBER VALUE"),
    (
        "deposit",
        "deposit DEPOT ENTRY LENGTH [fill=BYTE] [operand=] [x=] [y=] [z=] [expect=] \
         [ends=declined] [notify=requester] [tag=] [value=]",
    ),
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
const ATOMIC_NAMES: &str =
    "add, and, or, xor, min, max, min-signed, max-signed, swap, compare-swap, fcaa";

pub(super) fn read(file: &str, text: &str) -> Result<Script, ScriptError> {
    let fail = |line, fault| ScriptError { file: file.to_owned(), line, fault };
    let (regions, queues, depots, handlers) = (vec![], vec![], vec![], vec![]);
    let (file, blocks) = (file.to_owned(), vec![]);
    let script = Script { file, regions, queues, depots, handlers, blocks };
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
        let form = form.unwrap_or(END);
        if first == "assemble" {
            return self.assemble(form, rest);
        }
        let mut words = Words::new(rest, form)?;
        match first {
            "region" => self.region(number, &mut words)?,
            "queue" => self.queue(number, &mut words)?,
            "depot" => self.depot(number, &mut words)?,
            "register" if self.script.blocks.is_empty() && !self.is_handler => {
                let (depot, number, value) = self.in_depot(&mut words)?;
                self.script.depots[depot].registers.push((number, value));
            }
            "handler" => self.handler(&mut words)?,
            "node" => self.block(number, &mut words)?,
            _ => {
                let ends = [("fault", (true, false)), ("declined", (false, true))];
                let allowed = if first == "deposit" { &ends[..] } else { &ends[..1] };
                let ends = words.choice("ends", allowed)?;
                let (is_fault, is_declined) = ends.unwrap_or_default();
                let mut statement = self.statement(first, &mut words)?;
                if let Statement::Deposit(deposit) = &mut statement {
                    deposit.is_declined = is_declined;
                }
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
        let depots = self.script.depots.iter().map(|depot| &depot.name);
        let mut taken = regions.chain(queues).chain(handlers).chain(depots);
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

    fn depot(&mut self, line: usize, words: &mut Words<'_>) -> Result<(), ScriptFault> {
        let (name, region) = (self.name(words.next()?)?, self.find_region(words.next()?)?);
        let (stored, registers) = (vec![], vec![]);
        self.script.depots.push(Depot { name, region, stored, registers, line });
        Ok(())
    }

    /// The next instruction of a depot, in the form of `ayre asm`.
    fn assemble(&mut self, form: &'static str, words: &[&str]) -> Result<(), ScriptFault> {
        let (name, instruction) = words.split_first().ok_or(ScriptFault::Form(form))?;
        let depot = self.find_depot(name)?;
        let stored = text::assemble(&instruction.join(" "));
        let stored = stored.map_err(|error| ScriptFault::Instruction(error.0))?;
        let all = &mut self.script.depots[depot].stored;
        if all.len() == INSTRUCTIONS {
            return Err(ScriptFault::Stored(INSTRUCTIONS));
        }
        all.push(stored.ok_or(ScriptFault::Form(form))?);
        Ok(())
    }

    /// A depot, a register of it, and a value.
    fn in_depot(&self, words: &mut Words<'_>) -> Result<(usize, u8, u64), ScriptFault> {
        let depot = self.find_depot(words.next()?)?;
        Ok((depot, words.number(0, REGISTERS as u64 - 1)? as u8, words.value()?))
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

    fn find_depot(&self, name: &str) -> Result<usize, ScriptFault> {
        let found = self.script.depots.iter().position(|depot| depot.name == name);
        found.ok_or_else(|| ScriptFault::Unknown { what: "depot", name: short(name) })
    }

    fn deposit(&self, words: &mut Words<'_>) -> Result<Deposit, ScriptFault> {
        let (name, node) = at_node(words.next()?)?;
        let register = |word| number(word, 0, u8::MAX.into()).map(|number| number as u8);
        let mut registers = [0; 3];
        for (at, name) in ["x", "y", "z"].into_iter().enumerate() {
            registers[at] = words.option(name).map_or(Ok(0), register)?;
        }
        Ok(Deposit {
            depot: self.find_depot(name)?,
            node,
            entry: words.number(0, INSTRUCTIONS as u64 - 1)? as u16,
            len: words.length(DATA_MAX as u64)?,
            fill: words.byte("fill")?.unwrap_or(0),
            operand: words.optional_value("operand")?.unwrap_or(0),
            registers,
            expect: words.optional_value("expect")?,
            is_declined: false,
            note: words.note()?,
        })
    }

    fn find_handler(&self, name: &str) -> Result<usize, ScriptFault> {
        let found = self.script.handlers.iter().position(|handler| handler.name == name);
        found.ok_or_else(|| ScriptFault::Unknown { what: "handler", name: short(name) })
    }

    /// `REGION` or `REGION@NODE`, and an offset.
    fn place(&self, words: &mut Words<'_>) -> Result<Place, ScriptFault> {
        let (name, node) = at_node(words.next()?)?;
        let region = self.find_region(name)?;
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
            "deposit" => Statement::Deposit(self.deposit(words)?),
            "register" | "until" => {
                let (depot, number, value) = self.in_depot(words)?;
                Statement::Register { depot, number, value, waits: first == "until" }
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
