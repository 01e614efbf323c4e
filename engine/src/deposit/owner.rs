//! A depot at its owner.
use crate::depot::carry::DepotEnd;
use crate::depot::instruction_cache::InstructionCache;
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

/// A depot: registers and stored instructions for deposit messages. Cheap to clone; all clones
/// refer to the same depot.
///
/// Its owner can read and change it at any time, between messages. Calls that change it return
/// [`Busy::DepotLocked`] where a message or another call has held it for long.
// spec: DEP-1
#[derive(Clone, Debug)]
pub struct Depot {
    memory: Arc<DepotMemory>,
    port: u64,
}

/// A message at which an inlet has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMessage {
    /// The fault of the message.
    pub cause: Fault,
    /// Its contents.
    pub message: DepositMessage,
    /// The tag that its sender gave it.
    pub tag: u32,
    /// The value that its sender gave it.
    pub value: u64,
    /// Its data.
    pub data: Vec<u8>,
}

/// One peer's access to a depot, at the depot's owner.
///
/// Dropping it does not revoke the access, as with a [`Grant`]. The inlet exists, and counts for
/// the depot's limit, until its region is deregistered or its peer disconnected.
#[derive(Debug)]
pub struct Inlet {
    grant: Grant,
    depot: Depot,
    number: u8,
    /// The first byte in the region, and the number of bytes.
    range: (u64, u64),
}

impl Depot {
    pub(crate) fn new(port: u64) -> Result<Self, SetupError> {
        Ok(Self { memory: Arc::new(DepotMemory::new()?), port })
    }

    /// Whether this port has made it.
    pub(super) fn is_of(&self, port: u64) -> bool {
        self.port == port
    }

    pub(super) const fn memory(&self) -> &Arc<DepotMemory> {
        &self.memory
    }

    fn enter(&self) -> Result<Inside<'_>, Busy> {
        self.memory.enter(Holder::OWNER).ok_or(Busy::DepotLocked)
    }

    /// Returns the value of a register. The memory that was written by the message that set the
    /// register is visible.
    pub fn register(&self, index: u8) -> u64 {
        self.memory.peek(index)
    }

    /// Sets a register.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again.
    pub fn set_register(&self, index: u8, value: u64) -> Result<(), Busy> {
        self.enter()?.commit(&[(index, value)]);
        Ok(())
    }

    /// Sets how messages may use the registers that they name.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again.
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

    /// Stores consecutive instructions, the first one at place `at`.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where they do not fit the depot's places; [`SetupError::Exhausted`]
    /// where the depot was locked for long.
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

    /// Removes the instructions at these places.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again.
    pub fn erase(&self, places: RangeInclusive<u8>) -> Result<(), Busy> {
        let inside = self.enter()?;
        places.for_each(|index| inside.store(index, None));
        Ok(())
    }

    /// Keeps all messages out until the value is dropped: registers and memory stay as the last
    /// message has left them.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again. Also where the depot is frozen already.
    // spec: DEP-24
    pub fn freeze(&self) -> Result<Frozen<'_>, Busy> {
        let inside = self.memory.enter(Holder::FROZEN).ok_or(Busy::DepotLocked)?;
        Ok(Frozen { inside })
    }
}

/// A depot that is frozen: no message changes it.
#[derive(Debug)]
pub struct Frozen<'a> {
    inside: Inside<'a>,
}

impl Frozen<'_> {
    /// The value of a register.
    pub fn register(&self, index: u8) -> u64 {
        self.inside.register(index)
    }

    /// Sets a register.
    pub fn set_register(&mut self, index: u8, value: u64) {
        self.inside.commit(&[(index, value)]);
    }
}

impl Inlet {
    /// The peer that holds the inlet.
    pub fn peer(&self) -> PeerId {
        self.grant.peer()
    }

    /// The key of the inlet.
    pub fn key(&self) -> Key {
        self.grant.key()
    }

    /// A new inlet, which runs.
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

    /// The grant and the depot, for its revocation.
    pub(super) fn into_parts(self) -> (Grant, Depot) {
        (self.grant, self.depot)
    }

    pub(super) const fn depot(&self) -> &Depot {
        &self.depot
    }

    pub(super) const fn number(&self) -> u8 {
        self.number
    }

    /// The first byte in the region, and the number of bytes.
    pub(super) const fn range(&self) -> (u64, u64) {
        self.range
    }

    pub(super) fn region(&self) -> &Region {
        self.grant.region()
    }

    fn end<'a>(&'a self, instructions: &'a InstructionCache) -> DepotEnd<'a> {
        let (depot, memory) = (&*self.depot.memory, &**self.region().mapping());
        DepotEnd { depot, number: self.number, memory, range: self.range, instructions }
    }

    /// The message at which the inlet has stopped; `None` while it runs.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again.
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

    /// Executes the held message and lets the inlet run again, unless that message faults again.
    /// Returns true if a test of the message holds: this answer replaces the test's notification.
    ///
    /// # Errors
    /// [`Fault::Held`] where the inlet has stopped again; [`Fault::Stopped`] where it had not
    /// stopped; [`Fault::Malformed`] where the held record is no valid message;
    /// [`Busy::DepotLocked`].
    // spec: DEP-21
    pub fn resume(&self) -> Result<bool, crate::PostError> {
        let inside = self.depot.enter()?;
        if !inside.standing(self.number).is_stopped() {
            return Err(Fault::Stopped.into());
        }
        let mut data = [0; DATA_MAX];
        let posted = self.read_held(&inside, &mut data)?;
        let instructions = InstructionCache::default();
        let Carried { status, notifies, .. } =
            self.end(&instructions).resume(&inside, &posted, &data);
        match status {
            Status::Fault(fault) => Err(fault.into()),
            _ => Ok(notifies),
        }
    }

    /// Discards the held message, and lets the inlet run again.
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

    /// Discards the held message, if there is one, sets the registers of the inlet that messages
    /// may write to 0, and lets the inlet run again.
    ///
    /// # Errors
    /// [`Busy::DepotLocked`]: try again.
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

    /// Copies the message first, then parses it: on a direct connection its holder has written it.
    fn read_held(&self, inside: &Inside<'_>, data: &mut [u8; DATA_MAX]) -> Result<Posted, Fault> {
        let words = inside.held(self.number, data);
        let posted = Posted::parse(&words, Posted::brought(&words))?;
        posted.message.check()?;
        Ok(posted)
    }
}
