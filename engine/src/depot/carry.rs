//! Carrying a message out, whoever does it: the holder of an inlet in a depot that it has mapped,
//! the owner's responder, or the owner for a message that it has held.
use super::memo::{Memo, View};
use crate::mem::depot::{DepotMemory, Holder, InletRules, Inside};
use crate::mem::map::Mapping;
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{
    Appended, Carried, DepositMessage, Form, INLETS, Kind, Mask, Outcome, Transfer, run,
};
use ayre_proto::fault::{Fault, Status};

/// An inlet's end at a depot, and the memory that it leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepotEnd<'a> {
    pub(crate) depot: &'a DepotMemory,
    pub(crate) number: u8,
    pub(crate) memory: &'a Mapping,
    /// Where the inlet's range begins in that, and its bytes as its capability says.
    pub(crate) range: (u64, u64),
    /// Of whoever carries messages out.
    pub(crate) memo: &'a Memo,
}

/// The data of a message, or where what it wants goes: as many bytes as it says.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    Brought(&'a [u8]),
    Wanted(&'a mut [u8]),
}

impl Bytes<'_> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Brought(data) => data.len(),
            Self::Wanted(into) => into.len(),
        }
    }
}

impl DepotEnd<'_> {
    /// Carries a message out, or nothing of it; none where somebody is inside the depot for long.
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
            // Copies: what may be looked at elsewhere could not stay in registers before.
            None => { *self }.attempt(&inside, &{ *posted }, bytes),
        })
    }

    /// The short way, where the message enters an instruction that appends, and does not fault.
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
        let append = self.memo.append(word).filter(|_| enters)?;
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

    /// What the owner says of the inlet, no more than its capability allows: on a direct connection
    /// it stands in memory that the owner can change at any time.
    #[inline(always)]
    fn rules(&self) -> Option<InletRules> {
        let mut rules = self.depot.inlet(self.number)?;
        rules.inlet.len = rules.inlet.len.min(self.range.1);
        debug_assert!(usize::from(self.number) < INLETS, "a depot has {INLETS} inlets");
        Some(rules)
    }

    /// The same for one who is inside, of a message that the inlet takes.
    #[inline(never)]
    fn attempt(&self, inside: &Inside<'_>, posted: &Posted, bytes: Bytes<'_>) -> Carried {
        let Some(rules) = self.rules() else { return Carried::fault(Fault::StaleKey) };
        let view = View { inside, memo: self.memo };
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

    /// Carries out the message at which the inlet has stopped, which runs again.
    // spec: DEP-21
    pub(crate) fn resume(&self, inside: &Inside<'_>, posted: &Posted, data: &[u8]) -> Carried {
        inside.set_standing(self.number, inside.standing(self.number).running());
        let len = usize::from(posted.message.len);
        if posted.message.brings {
            return self.attempt(inside, posted, Bytes::Brought(&data[..len]));
        }
        // Its sender has gone on; what it wanted is read to nowhere.
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
                // Nothing is brought, and nothing wanted.
                _ => {}
            }
        }
        inside.commit(writes);
        Carried { status: Status::Ok, given: *given, notifies: *notifies }
    }

    /// What is touched lies within the inlet's range, and that within the memory.
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
