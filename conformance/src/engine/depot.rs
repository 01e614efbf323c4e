//! The engine's depots, as the suite's.
use crate::depot::{Deposit, Deposits, Depot, Frozen, Inlet, InletOptions, Reply};
use crate::port::Options;
use ayre::deposit::{DepositReply, Form, HeldMessage, Protection, Stored};
use ayre::memory::{Fenced, Ticket};
use ayre::{Busy, PeerId, Port, PostError, Region, SetupError};
use std::ops::{Range, RangeInclusive};

impl From<&InletOptions> for ayre::deposit::InletOptions {
    fn from(options: &InletOptions) -> Self {
        let InletOptions { rights, registers, entries, longest, holds } = options.clone();
        let engines = Self::new().rights(rights).registers(registers).entries(entries);
        let engines = engines.longest(longest);
        if holds { engines.holds() } else { engines }
    }
}

impl<'a> From<&Deposit<'a>> for ayre::deposit::Deposit<'a> {
    fn from(deposit: &Deposit<'a>) -> Self {
        let engines = match deposit.form {
            Form::Pointer { entry, registers } => Self::enter(entry).registers(registers),
            Form::Carried(instruction) => Self::carry(instruction),
            Form::Probe => panic!("no message of a program's"),
        };
        engines.operand(deposit.operand).mask(deposit.mask).data(deposit.data)
    }
}

impl Deposits for Port {
    type Depot = ayre::deposit::Depot;
    type Inlet = ayre::deposit::Inlet;
    type RemoteInlet = ayre::deposit::RemoteInlet;

    fn create_depot(&mut self) -> Result<Self::Depot, SetupError> {
        Self::create_depot(self)
    }

    fn share_inlet(
        &mut self,
        peer: PeerId,
        depot: &Self::Depot,
        part: (&Region, Range<usize>),
        options: &InletOptions,
        name: u64,
    ) -> Result<Self::Inlet, SetupError> {
        Self::share_inlet(self, peer, depot, part, &options.into(), name)
    }

    fn accept_inlet(&mut self, peer: PeerId, name: u64) -> Result<Self::RemoteInlet, SetupError> {
        Self::accept_inlet(self, peer, name)
    }

    fn revoke_inlet(&mut self, inlet: Self::Inlet) -> Result<Fenced, SetupError> {
        Self::revoke_inlet(self, inlet)
    }

    fn deposit(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        Self::deposit(self, to, &deposit.into(), options.into())
    }

    fn deposit_reply(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        reply: &Reply<'_, Self::Inlet>,
        options: Options,
    ) -> Result<Ticket, PostError> {
        let mut engines = ayre::deposit::Reply::over(reply.inlet, (&reply.deposit).into());
        engines = engines.wants(reply.len).noted_as(reply.tag, reply.value);
        if reply.takes_value {
            engines = engines.operand_given();
        }
        Self::deposit_reply(self, to, &deposit.into(), &engines, options.into())
    }

    fn deposit_fetch(
        &mut self,
        to: &Self::RemoteInlet,
        deposit: &Deposit<'_>,
        into: &mut [u8],
    ) -> Result<DepositReply, PostError> {
        Self::deposit_fetch(self, to, &deposit.into(), into)
    }

    fn rejoin_inlet(&mut self, inlet: &mut Self::RemoteInlet) -> Result<(), PostError> {
        Self::rejoin_inlet(self, inlet)
    }
}

impl Depot for ayre::deposit::Depot {
    type Frozen<'a> = ayre::deposit::Frozen<'a>;

    fn register(&self, index: u8) -> u64 {
        Self::register(self, index)
    }

    fn set_register(&self, index: u8, value: u64) -> Result<(), Busy> {
        Self::set_register(self, index, value)
    }

    fn protect(&self, registers: RangeInclusive<u8>, protection: Protection) -> Result<(), Busy> {
        Self::protect(self, registers, protection)
    }

    fn store(&self, at: u8, instructions: &[Stored]) -> Result<(), SetupError> {
        Self::store(self, at, instructions)
    }

    fn freeze(&self) -> Result<Self::Frozen<'_>, Busy> {
        Self::freeze(self)
    }
}

impl Frozen for ayre::deposit::Frozen<'_> {
    fn register(&self, index: u8) -> u64 {
        Self::register(self, index)
    }

    fn set_register(&mut self, index: u8, value: u64) {
        Self::set_register(self, index, value);
    }
}

impl Inlet for ayre::deposit::Inlet {
    fn held(&self) -> Result<Option<HeldMessage>, Busy> {
        Self::held(self)
    }

    fn resume(&self) -> Result<bool, PostError> {
        Self::resume(self)
    }

    fn skip(&self) -> Result<(), PostError> {
        Self::skip(self)
    }

    fn reset(&self) -> Result<(), Busy> {
        Self::reset(self)
    }
}
