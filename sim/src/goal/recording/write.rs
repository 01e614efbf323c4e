//! The schedule of recordings, as GOAL text.
use super::{EventKind, Kind, Message, Operation, Rank, Recordings};
use std::fmt::{self, Write};

/// Bytes of the question of a read.
const QUESTION: u64 = 1;

impl Recordings {
    /// Writes the schedule.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write(&self, out: &mut impl Write) -> fmt::Result {
        let (ranks, left_out) = (self.ranks(), self.left_out());
        writeln!(out, "// Recorded: {ranks} ranks took {} ns.", self.took().0 / 1000)?;
        writeln!(out, "// Operations without a partner or an end, left out: {left_out}.")?;
        writeln!(out, "num_ranks {ranks}")?;
        for (number, rank) in self.ranks.iter().enumerate() {
            writeln!(out, "\nrank {number} {{")?;
            Writer { out, rank, before: None, ended: Vec::new() }.write()?;
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}

/// Writes a rank.
///
/// ```text
///   program   c0 ----------> c3 ----------> c7       c: its own time, one after the other
///               \            ^ \
///   operations   o0 ---------+  o1                   o0: its end was read before c3 began
/// ```
struct Writer<'a, W> {
    out: &'a mut W,
    rank: &'a Rank,
    /// The last computation.
    before: Option<usize>,
    /// Operations whose ends were read since.
    ended: Vec<u32>,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self) -> fmt::Result {
        let mut order = self.rank.order.iter().peekable();
        let operations = &self.rank.operations;
        for (place, event) in self.rank.events.iter().enumerate() {
            // Ends that are read at once need no computation between them.
            let is_post = event.kind == EventKind::Posted;
            if event.calc > 0 || is_post && !self.ended.is_empty() {
                self.calc(place, event.calc)?;
            }
            if let EventKind::Ended(number) = event.kind
                && operations[number as usize].message.is_some()
            {
                self.ended.push(number);
            }
            let is_here = |number: &&u32| operations[**number as usize].posted as usize <= place;
            while let Some(number) = order.next_if(is_here) {
                let operation = &operations[*number as usize];
                if let Some(message) = operation.message {
                    self.operation(*number, operation, message)?;
                }
            }
        }
        self.accesses()
    }

    fn calc(&mut self, place: usize, nanos: u64) -> fmt::Result {
        writeln!(self.out, "c{place}: calc {nanos}")?;
        if let Some(before) = self.before {
            writeln!(self.out, "c{place} requires c{before}")?;
        }
        for number in self.ended.drain(..) {
            writeln!(self.out, "c{place} requires o{number}")?;
        }
        self.before = Some(place);
        Ok(())
    }

    fn operation(&mut self, number: u32, operation: &Operation, message: Message) -> fmt::Result {
        let (bytes, Message { peer, number: tag, answer }) = (operation.bytes, message);
        match operation.kind {
            Kind::Send { .. } | Kind::Write => {
                writeln!(self.out, "o{number}: send {bytes}b to {peer} tag {tag}")?;
            }
            Kind::Receive { .. } | Kind::Many => {
                writeln!(self.out, "o{number}: recv {bytes}b from {peer} tag {tag}")?;
            }
            Kind::Read => {
                writeln!(self.out, "q{number}: send {QUESTION}b to {peer} tag {tag}")?;
                self.requires('q', number)?;
                writeln!(self.out, "o{number}: recv {bytes}b from {peer} tag {answer}")?;
            }
        }
        self.requires('o', number)
    }

    /// An operation is posted after the last computation.
    fn requires(&mut self, letter: char, number: u32) -> fmt::Result {
        match self.before {
            Some(before) => writeln!(self.out, "{letter}{number} requires c{before}"),
            None => Ok(()),
        }
    }

    /// Accesses of others come when they come: the program does not wait for them.
    fn accesses(&mut self) -> fmt::Result {
        for (number, access) in self.rank.accesses.iter().enumerate() {
            let Message { peer, number: tag, answer } = access.message;
            let bytes = if access.is_read { QUESTION } else { access.bytes };
            writeln!(self.out, "x{number}: recv {bytes}b from {peer} tag {tag}")?;
            if access.is_read {
                writeln!(self.out, "y{number}: send {}b to {peer} tag {answer}", access.bytes)?;
                writeln!(self.out, "y{number} requires x{number}")?;
            }
        }
        Ok(())
    }
}
