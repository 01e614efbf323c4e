//! A depot at its owner.
use crate::depot::carry::DepotEnd;
use crate::depot::memo::Memo;
use crate::error::{Busy, Fault, SetupError, Status};
use crate::mem::depot::{DepotMemory, Holder, Inside};
use crate::mem::region::Region;
use crate::port::capability::Grant;
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{
    Carried, DATA_MAX, DepositMessage, INLETS, INSTRUCTIONS, Protection, REGISTERS, Standing,
    Stored,
};
use ayre_proto::units::{Key, PeerId};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Registers and instructions that deposit messages find here. Cheap to clone; clones name the
/// same one.
///
/// Its owner reads and changes it at any time, between messages. Each call that changes something
/// is [`Busy::DepotLocked`] where somebody has been inside for long.
// spec: DEP-1
#[derive(Clone, Debug)]
pub struct Depot {
    memory: Arc<DepotMemory>,
    port: u64,
}

/// A message at which an inlet has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMessage {
    /// What is wrong with it.
    pub cause: Fault,
    /// What it says.
    pub message: DepositMessage,
    /// The user's, of its sender.
    pub tag: u32,
    /// The user's, of its sender.
    pub value: u64,
    /// What it brings.
    pub data: Vec<u8>,
}

/// One peer's way into a depot, at its owner.
///
/// Dropping it ends nothing, as with a [`Grant`]: the peer keeps its way in, and the depot has one
/// place less, until its region is deregistered or its peer disconnected.
#[derive(Debug)]
pub struct Inlet {
    grant: Grant,
    depot: Depot,
    number: u8,
    /// First byte in the region, and bytes.
    range: (u64, u64),
}

impl Depot {
    pub(crate) fn new(port: u64) -> Result<Self, SetupError> {
        Ok(Self { memory: Arc::new(DepotMemory::new()?), port })
    }

    /// Whether it was made by this port.
    pub(super) fn is_of(&self, port: u64) -> bool {
        self.port == port
    }

    pub(super) const fn memory(&self) -> &Arc<DepotMemory> {
        &self.memory
    }

    fn enter(&self) -> Result<Inside<'_>, Busy> {
        self.memory.enter(Holder::OWNER).ok_or(Busy::DepotLocked)
    }

    /// A register as it is now. What the message that wrote it has put into memory is visible.
    pub fn register(&self, index: u8) -> u64 {
        self.memory.peek(index)
    }

    /// Sets a register.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`].
    pub fn set_register(&self, index: u8, value: u64) -> Result<(), Busy> {
        self.enter()?.commit(&[(index, value)]);
        Ok(())
    }

    /// Says what messages may do with registers that they name.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`].
    // spec: DEP-15
    pub fn protect(
        &self,
        registers: RangeInclusive<u8>,
        protection: Protection,
    ) -> Result<(), Busy> {
        let inside = self.enter()?;
        registers.for_each(|index| inside.protect(index, protection));
        Ok(())
    }

    /// Stores instructions, one behind the other, from a place on.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where they leave the depot's places; [`SetupError::Exhausted`] where
    /// somebody has been inside for long.
    pub fn store(&self, at: u8, instructions: &[Stored]) -> Result<(), SetupError> {
        if usize::from(at) + instructions.len() > INSTRUCTIONS {
            return Err(SetupError::invalid("a depot has 256 places for instructions"));
        }
        let inside = self.enter().map_err(|_| SetupError::exhausted("depot"))?;
        debug_assert!((at..=u8::MAX).len() >= instructions.len(), "each has a place");
        for (index, stored) in (at..=u8::MAX).zip(instructions) {
            inside.store(index, Some(stored));
        }
        Ok(())
    }

    /// Empties places of instructions.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`].
    pub fn erase(&self, places: RangeInclusive<u8>) -> Result<(), Busy> {
        let inside = self.enter()?;
        places.for_each(|index| inside.store(index, None));
        Ok(())
    }

    /// Keeps all messages out until the value is dropped: registers and memory stay as one message
    /// has left them and no other has begun to change them.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`], also where it is frozen already.
    // spec: DEP-24
    pub fn freeze(&self) -> Result<Frozen<'_>, Busy> {
        let inside = self.memory.enter(Holder::FROZEN).ok_or(Busy::DepotLocked)?;
        Ok(Frozen { inside })
    }
}

/// A depot that no message changes.
#[derive(Debug)]
pub struct Frozen<'a> {
    inside: Inside<'a>,
}

impl Frozen<'_> {
    /// A register.
    pub fn register(&self, index: u8) -> u64 {
        self.inside.register(index)
    }

    /// Sets a register.
    pub fn set_register(&mut self, index: u8, value: u64) {
        self.inside.commit(&[(index, value)]);
    }
}

impl Inlet {
    /// Who holds it.
    pub fn peer(&self) -> PeerId {
        self.grant.peer()
    }

    /// Its key.
    pub fn key(&self) -> Key {
        self.grant.key()
    }

    /// An inlet that has not carried anything yet: it runs.
    pub(super) fn open(
        grant: Grant,
        depot: &Depot,
        number: u8,
        range: (u64, u64),
    ) -> Result<Self, Busy> {
        let end = range.0.checked_add(range.1);
        let fits = end.is_some_and(|end| end <= grant.region().mapping().len() as u64);
        debug_assert!(fits, "an inlet leads to a part of its region");
        debug_assert!(usize::from(number) < INLETS, "a depot has {INLETS} inlets");
        let inlet = Self { grant, depot: depot.clone(), number, range };
        inlet.depot.enter()?.set_standing(number, Standing::NEW);
        Ok(inlet)
    }

    /// What is left when it ends.
    pub(super) fn into_parts(self) -> (Grant, Depot) {
        (self.grant, self.depot)
    }

    pub(super) const fn depot(&self) -> &Depot {
        &self.depot
    }

    pub(super) const fn number(&self) -> u8 {
        self.number
    }

    /// First byte in the region, and bytes.
    pub(super) const fn range(&self) -> (u64, u64) {
        self.range
    }

    pub(super) fn region(&self) -> &Region {
        self.grant.region()
    }

    fn end<'a>(&'a self, memo: &'a Memo) -> DepotEnd<'a> {
        let (depot, memory) = (&*self.depot.memory, &**self.region().mapping());
        DepotEnd { depot, number: self.number, memory, range: self.range, memo }
    }

    /// The message at which the inlet has stopped; none while it runs.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`].
    // spec: DEP-19
    pub fn held(&self) -> Result<Option<HeldMessage>, Busy> {
        let inside = self.depot.enter()?;
        let Some(cause) = inside.standing(self.number).cause() else { return Ok(None) };
        let mut data = [0; DATA_MAX];
        let Ok(posted) = self.read_held(&inside, &mut data) else { return Ok(None) };
        let Posted { tag, value, message, .. } = posted;
        let len = if message.brings { usize::from(message.len) } else { 0 };
        Ok(Some(HeldMessage { cause, message, tag, value, data: data[..len].to_vec() }))
    }

    /// Carries out the held message, and the inlet runs again; or stops again, if that faults. True
    /// where a test of it holds: its sender's notification is this answer.
    ///
    /// # Errors
    /// [`Fault::Held`] where it has stopped again; [`Fault::Stopped`] where it had not stopped;
    /// [`Fault::Malformed`] where what was held is no message; [`Busy::DepotLocked`].
    // spec: DEP-21
    pub fn resume(&self) -> Result<bool, crate::PostError> {
        let inside = self.depot.enter()?;
        if !inside.standing(self.number).is_stopped() {
            return Err(Fault::Stopped.into());
        }
        let mut data = [0; DATA_MAX];
        let posted = self.read_held(&inside, &mut data)?;
        let memo = Memo::default();
        let Carried { status, notifies, .. } = self.end(&memo).resume(&inside, &posted, &data);
        match status {
            Status::Fault(fault) => Err(fault.into()),
            _ => Ok(notifies),
        }
    }

    /// Drops the held message, and the inlet runs again.
    ///
    /// # Errors
    /// [`Fault::Stopped`] where it had not stopped; [`Busy::DepotLocked`].
    // spec: DEP-21
    pub fn skip(&self) -> Result<(), crate::PostError> {
        let inside = self.depot.enter()?;
        let standing = inside.standing(self.number);
        if !standing.is_stopped() {
            return Err(Fault::Stopped.into());
        }
        debug_assert!(!standing.running().is_stopped(), "it runs again");
        inside.set_standing(self.number, standing.running());
        Ok(())
    }

    /// Drops the held message, if there is one, and what messages have left in the registers of the
    /// inlet that they may write, and the inlet runs again.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`].
    // spec: DEP-21
    pub fn reset(&self) -> Result<(), Busy> {
        let inside = self.depot.enter()?;
        let standing = inside.standing(self.number);
        let rules = self.depot.memory.inlet(self.number);
        let window = rules.map(|rules| rules.inlet.registers).unwrap_or_default();
        for index in (0..window.len).filter_map(|index| window.find(index).ok()) {
            debug_assert!(usize::from(index) < REGISTERS, "a window lies within the depot");
            let index = index as u8;
            if inside.protection(index).contains(Protection::WRITE) {
                inside.commit(&[(index, 0)]);
            }
        }
        inside.set_standing(self.number, standing.stopped(Fault::Held).running());
        Ok(())
    }

    /// Copied out, then parsed: on a direct connection its holder has written it.
    fn read_held(&self, inside: &Inside<'_>, data: &mut [u8; DATA_MAX]) -> Result<Posted, Fault> {
        let words = inside.held(self.number, data);
        let posted = Posted::parse(&words, Posted::brought(&words))?;
        posted.message.check()?;
        Ok(posted)
    }
}
