//! The execution of deposit messages: by the holder of an inlet in a mapped depot, by the owner's
//! responder, or by the owner for a held message.
use super::instruction_cache::{InstructionCache, View};
use crate::mem::depot::{DepotMemory, Holder, InletRules, Inside};
use crate::mem::map::Mapping;
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{
    Appended, Carried, DepositMessage, Form, INLETS, Kind, Mask, Outcome, Transfer, run,
};
use ayre_proto::fault::{Fault, Status};

/// The depot side of an inlet, and its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepotEnd<'a> {
    pub(crate) depot: &'a DepotMemory,
    pub(crate) number: u8,
    pub(crate) memory: &'a Mapping,
    /// The inlet's first byte in the memory, and the number of bytes by its capability.
    pub(crate) range: (u64, u64),
    /// The cache of the port that executes the message.
    pub(crate) instructions: &'a InstructionCache,
}

/// The data of a message, or room for the data that it reads, of the length that it states.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    Brought(&'a [u8]),
    Wanted(&'a mut [u8]),
}

impl Bytes<'_> {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Brought(data) => data.len(),
            Self::Wanted(into) => into.len(),
        }
    }
}

impl DepotEnd<'_> {
    /// Executes a message completely or not at all; None where the depot is locked for long.
    // spec: DEP-18, DEP-19, DEP-20, DEP-25
    #[inline(always)]
    pub(crate) fn carry_out(
        &self,
        holder: Holder,
        posted: &Posted,
        bytes: Bytes<'_>,
    ) -> Option<Carried> {
        let inside = self.depot.enter(holder)?;
        let standing = inside.standing(self.number);
        if matches!(posted.message.form, Form::Probe) {
            let status = match standing.is_stopped() {
                true => Status::Fault(Fault::Stopped),
                false => Status::Ok,
            };
            let given = u64::from(standing.epoch());
            return Some(Carried { status, given, notifies: false });
        }
        if let Err(fault) = standing.admit(posted.epoch) {
            return Some(Carried::fault(fault));
        }
        Some(match self.append(&inside, &posted.message, &bytes) {
            Some(carried) => carried,
            // Copies: a value whose address is passed on could not stay in registers.
            None => { *self }.attempt(&inside, &{ *posted }, bytes),
        })
    }

    /// The fast path, for a message that enters an appending instruction and does not fault.
    #[inline(always)]
    fn append(
        &self,
        inside: &Inside<'_>,
        message: &DepositMessage,
        bytes: &Bytes<'_>,
    ) -> Option<Carried> {
        let (Form::Pointer { entry, .. }, Bytes::Brought(data)) = (message.form, bytes) else {
            return None;
        };
        let rules = self.rules()?;
        let (word, _, enters) = inside.stored(rules.inlet.entries.find(entry).ok()?)?;
        let append = self.instructions.append(word).filter(|_| enters)?;
        let appended = append.apply(message, &rules.inlet, |index| inside.register(index))?;
        let status = match appended {
            Appended::Declined => Status::Declined,
            Appended::At { offset, tail } => {
                self.check(offset, data.len() as u64);
                self.memory.write(self.range.0 + offset, data);
                inside.commit(&[(append.tail, tail)]);
                Status::Ok
            }
        };
        Some(Carried { status, given: 0, notifies: false })
    }

    /// The owner's rules for the inlet, limited to its capability: on a direct connection they are
    /// in memory that the owner can change at any time.
    #[inline(always)]
    fn rules(&self) -> Option<InletRules> {
        let mut rules = self.depot.inlet(self.number)?;
        rules.inlet.len = rules.inlet.len.min(self.range.1);
        debug_assert!(usize::from(self.number) < INLETS, "a depot has {INLETS} inlets");
        Some(rules)
    }

    /// Executes a message that the inlet takes, with the depot locked.
    #[inline(never)]
    fn attempt(&self, inside: &Inside<'_>, posted: &Posted, bytes: Bytes<'_>) -> Carried {
        let Some(rules) = self.rules() else { return Carried::fault(Fault::StaleKey) };
        let view = View { inside, instructions: self.instructions };
        match run(&posted.message, &rules.inlet, &view) {
            Ok(outcome) => self.commit(inside, &outcome, bytes),
            Err(fault) if !rules.holds => Carried::fault(fault),
            Err(fault) => {
                let data = match bytes {
                    Bytes::Brought(data) => data,
                    Bytes::Wanted(_) => &[],
                };
                inside.hold(self.number, &posted.encode(), data);
                let stopped = inside.standing(self.number).stopped(fault);
                debug_assert!(stopped.is_stopped(), "what holds a message has stopped");
                inside.set_standing(self.number, stopped);
                Carried::fault(Fault::Held)
            }
        }
    }

    /// Executes the message at which the inlet has stopped, and lets the inlet run again.
    // spec: DEP-21
    pub(crate) fn resume(&self, inside: &Inside<'_>, posted: &Posted, data: &[u8]) -> Carried {
        inside.set_standing(self.number, inside.standing(self.number).running());
        let len = usize::from(posted.message.len);
        if posted.message.brings {
            return self.attempt(inside, posted, Bytes::Brought(&data[..len]));
        }
        // Its sender has gone on; the data that it wanted is discarded.
        self.attempt(inside, posted, Bytes::Wanted(&mut vec![0; len]))
    }

    #[inline]
    fn commit(&self, inside: &Inside<'_>, outcome: &Outcome, bytes: Bytes<'_>) -> Carried {
        let Outcome { transfer, writes, notifies, given, declined, .. } = outcome;
        if *declined {
            debug_assert!(writes.is_empty() && !notifies, "what is declined does nothing");
            return Carried { status: Status::Declined, given: *given, notifies: false };
        }
        if let Some(Transfer { kind, offset, mask }) = transfer {
            let at = self.range.0 + offset;
            self.check(*offset, bytes.len() as u64);
            match (kind, bytes) {
                (Kind::Write, Bytes::Brought(data)) => self.write(at, *mask, data),
                (Kind::Read, Bytes::Wanted(into)) => self.read(at, *mask, into),
                // A message without data.
                _ => {}
            }
        }
        inside.commit(writes);
        Carried { status: Status::Ok, given: *given, notifies: *notifies }
    }

    /// Checks that the accessed bytes lie within the inlet's range, and the range within the
    /// memory.
    #[inline(always)]
    fn check(&self, offset: u64, len: u64) {
        debug_assert!(offset + len <= self.range.1, "a message stays in the inlet's range");
        let end = self.range.0 + self.range.1;
        debug_assert!(end <= self.memory.len() as u64, "an inlet leads to a part of its region");
    }

    #[inline]
    fn write(&self, at: u64, mask: Mask, data: &[u8]) {
        if mask.is_all() {
            return self.memory.write(at, data);
        }
        for (from, len) in mask.runs(data.len() as u64) {
            self.memory.write(at + from, &data[from as usize..][..len as usize]);
        }
    }

    fn read(&self, at: u64, mask: Mask, into: &mut [u8]) {
        if mask.is_all() {
            return self.memory.read(at, into);
        }
        into.fill(0);
        for (from, len) in mask.runs(into.len() as u64) {
            self.memory.read(at + from, &mut into[from as usize..][..len as usize]);
        }
    }
}
