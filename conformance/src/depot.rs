//! The suite's interface to depots: the traits over which cases about deposit messages are written.
//!
//! Instructions are plain data: a program is made here, and crosses as its words.
use crate::fabric::Fabric;
use crate::port::{Options, Port};
use ayre::deposit::{DepositReply, Form, HeldMessage, Instruction, Protection, Stored};
use ayre::memory::{Fenced, Ticket};
use ayre::{Busy, PeerId, PostError, Rights, SetupError};
use std::fmt::Debug;
use std::ops::{Range, RangeInclusive};

/// A fabric whose ports have depots.
pub trait Depots: Fabric<Port: Deposits> {}

impl<F: Fabric<Port: Deposits>> Depots for F {}

/// A port that has depots, and sends messages to those of its peers.
pub trait Deposits: Port {
    /// A depot at its owner.
    type Depot: Depot + 'static;
    /// A peer's way into it, at its owner.
    type Inlet: Inlet;
    /// A holder's way into a depot of a peer.
    type RemoteInlet: Debug + Send + Sync;

    /// Makes a depot: registers of 0, and no instructions.
    fn create_depot(&mut self) -> Result<Self::Depot, SetupError>;
    /// Lets a peer in, under a name: to which depot, with which memory.
    fn share_inlet(
        &mut self,
        peer: PeerId,
        depot: &Self::Depot,
        part: (&Self::Region, Range<usize>),
        options: &InletOptions,
        name: u64,
    ) -> Result<Self::Inlet, SetupError>;
    /// Accepts that; waits for it.
    fn accept_inlet(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteInlet, SetupError>;
    /// Lets nothing in any more.
    fn revoke_inlet(&mut self, inlet: Self::Inlet) -> Result<Fenced, SetupError>;
    /// Sends a message.
    fn deposit(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Sends one whose answer is deposited here.
    fn deposit_reply(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        reply: &Reply<'_, Self::Inlet>,
        options: Options,
    ) -> Result<Ticket, PostError>;
    /// Sends one, and waits for its answer.
    fn deposit_fetch(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        into: &mut [u8],
    ) -> Result<DepositReply, PostError>;
    /// Goes on behind a stop.
    fn rejoin_inlet(&mut self, inlet: &mut Self::RemoteInlet) -> Result<(), PostError>;
}

/// A depot at its owner. Clones are the same depot.
pub trait Depot: Clone + Debug + Send + Sync {
    /// A lock that keeps messages out.
    type Frozen<'a>: Frozen
    where
        Self: 'a;

    /// The value of a register.
    fn register(&self, index: u8) -> u64;
    /// Sets it.
    fn set_register(&self, index: u8, value: u64) -> Result<(), Busy>;
    /// Says what messages may do with registers that they name.
    fn protect(&self, registers: RangeInclusive<u8>, protection: Protection) -> Result<(), Busy>;
    /// Stores instructions from a place on.
    fn store(&self, at: u8, instructions: &[Stored]) -> Result<(), SetupError>;
    /// Keeps messages out, as long as the value lives.
    fn freeze(&self) -> Result<Self::Frozen<'_>, Busy>;
}

/// A depot that no message changes.
pub trait Frozen: Debug {
    /// The value of a register.
    fn register(&self, index: u8) -> u64;
    /// Sets it.
    fn set_register(&mut self, index: u8, value: u64);
}

/// A way into a depot, at its owner.
pub trait Inlet: Debug + Send + Sync {
    /// The message at which it has stopped.
    fn held(&self) -> Result<Option<HeldMessage>, Busy>;
    /// Carries that out: whether a test of it holds.
    fn resume(&self) -> Result<bool, PostError>;
    /// Drops it.
    fn skip(&self) -> Result<(), PostError>;
    /// Drops it, and what messages have left in registers.
    fn reset(&self) -> Result<(), Busy>;
}

/// The options of an inlet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InletOptions {
    /// The rights of its holder.
    pub rights: Rights,
    /// Registers that messages can name.
    pub registers: Range<u16>,
    /// Stored instructions at which they can enter.
    pub entries: Range<u16>,
    /// Most bytes of a message's data.
    pub longest: u16,
    /// Whether it stops at a message that faults.
    pub holds: bool,
}

impl Default for InletOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl InletOptions {
    /// Nothing but stored instructions that write.
    pub fn new() -> Self {
        let (rights, longest) = (Rights::WRITE, 1024);
        Self { rights, registers: 0..0, entries: 0..0, longest, holds: false }
    }

    /// With these rights.
    pub fn rights(self, rights: Rights) -> Self {
        Self { rights, ..self }
    }

    /// With these registers.
    pub fn registers(self, registers: Range<u16>) -> Self {
        Self { registers, ..self }
    }

    /// With these entries.
    pub fn entries(self, entries: Range<u16>) -> Self {
        Self { entries, ..self }
    }

    /// Sets the longest data of a message, in bytes.
    pub fn longest(self, bytes: u16) -> Self {
        Self { longest: bytes, ..self }
    }

    /// It stops at a message that faults.
    pub fn holds(self) -> Self {
        Self { holds: true, ..self }
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Deposit<'a> {
    /// Which instruction it has carried out.
    pub form: Form,
    /// The operand.
    pub operand: u64,
    /// Which words are transferred.
    pub mask: u64,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Deposit<'a> {
    fn new(form: Form) -> Self {
        Self { form, operand: 0, mask: u64::MAX, data: &[] }
    }

    /// Of a stored instruction.
    pub fn enter(entry: u16) -> Self {
        Self::new(Form::Pointer { entry, registers: [0; 3] })
    }

    /// Of one that it brings.
    pub fn carry(instruction: Instruction) -> Self {
        Self::new(Form::Carried(instruction))
    }

    /// Of a stored one on these registers.
    pub fn registers(self, registers: [u8; 3]) -> Self {
        let form = match self.form {
            Form::Pointer { entry, .. } => Form::Pointer { entry, registers },
            other => other,
        };
        Self { form, ..self }
    }

    /// With an operand.
    pub fn operand(self, operand: u64) -> Self {
        Self { operand, ..self }
    }

    /// With words left out.
    pub fn mask(self, words: u64) -> Self {
        Self { mask: words, ..self }
    }

    /// With data.
    pub fn data(self, data: &'a [u8]) -> Self {
        Self { data, ..self }
    }
}

/// A message at home that brings the answer of another one.
#[derive(Debug)]
pub struct Reply<'a, I> {
    /// By which way it comes, of the asking port's own.
    pub inlet: &'a I,
    /// The message of the reply.
    pub deposit: Deposit<'a>,
    /// Bytes that are read for it.
    pub len: usize,
    /// Its operand is the value that the answer gives.
    pub takes_value: bool,
    /// The tag of the notification that its test raises.
    pub tag: u32,
    /// The value of that notification.
    pub value: u64,
}

impl<'a, I> Reply<'a, I> {
    /// Without data.
    pub fn over(inlet: &'a I, deposit: Deposit<'a>) -> Self {
        Self { inlet, deposit, len: 0, takes_value: false, tag: 0, value: 0 }
    }

    /// Sets the number of bytes that it wants.
    pub fn wants(self, len: usize) -> Self {
        Self { len, ..self }
    }

    /// With the value that the answer gives.
    pub fn operand_given(self) -> Self {
        Self { takes_value: true, ..self }
    }

    /// Notified of as this.
    pub fn noted_as(self, tag: u32, value: u64) -> Self {
        Self { tag, value, ..self }
    }
}
