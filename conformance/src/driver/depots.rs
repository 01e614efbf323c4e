//! Depots and inlets of a port of another process.
use super::handles::DrivenRegion;
use super::port::{DrivenPort, Way, options};
use super::words::{Answer, Words, form, hex};
use crate::depot::{Deposit, Deposits, Depot, Frozen, Inlet, InletOptions, Reply};
use crate::port::Options;
use ayre::deposit::{DepositMessage, Form, HeldMessage, Mask, Protection, Stored};
use ayre::memory::{Fenced, Ticket};
use ayre::{Busy, Fault, PeerId, PostError, SetupError};
use std::ops::{Range, RangeInclusive};

/// A depot of the driver's process.
#[derive(Clone, Debug)]
pub struct DrivenDepot {
    way: Way,
    number: usize,
}

/// A depot that the driver keeps frozen.
#[derive(Debug)]
pub struct DrivenFrozen {
    way: Way,
    number: usize,
}

/// A way into a depot, at its owner or at its holder.
#[derive(Debug)]
pub struct DrivenInlet {
    way: Way,
    number: usize,
}

/// A message, as it is written in a call.
fn message(deposit: &Deposit<'_>) -> String {
    let Deposit { form: what, operand, mask, data } = deposit;
    assert_ne!(*what, Form::Probe, "no message of a program's");
    format!("{} {operand} {mask} {}", form(what), hex(data))
}

fn held(words: &str) -> HeldMessage {
    let mut words = Words::of(words);
    let cause = Fault::from_code(words.number());
    let (form, operand, mask) = (words.form(), words.number(), Mask(words.number()));
    let (len, brings, is_answered) = (words.number(), words.flag(), words.flag());
    let message = DepositMessage { form, operand, mask, len, brings, is_answered };
    HeldMessage { cause, message, tag: words.number(), value: words.number(), data: words.bytes() }
}

fn unlocked(answer: Answer) -> Result<String, Busy> {
    match answer {
        Answer::Busy(busy) => Err(busy),
        other => Ok(other.done()),
    }
}

impl Deposits for DrivenPort {
    type Depot = DrivenDepot;
    type Inlet = DrivenInlet;
    type RemoteInlet = DrivenInlet;

    fn create_depot(&mut self) -> Result<DrivenDepot, SetupError> {
        let words = self.ask("depot").set_up()?;
        Ok(DrivenDepot { way: self.way().clone(), number: Words::of(&words).number() })
    }

    fn share_inlet(
        &mut self,
        peer: PeerId,
        depot: &DrivenDepot,
        (region, part): (&DrivenRegion, Range<usize>),
        options: &InletOptions,
        name: u64,
    ) -> Result<DrivenInlet, SetupError> {
        let InletOptions { rights, registers, entries, longest, holds } = options;
        let depot = self.way().handle(&depot.way, depot.number);
        let region = self.way().handle(&region.way, region.number);
        let words = self.ask(&format!(
            "inlet {} {depot} {region} {} {} {} {} {} {} {} {longest} {} {name}",
            peer.0,
            part.start,
            part.end,
            rights.bits(),
            registers.start,
            registers.end,
            entries.start,
            entries.end,
            u8::from(*holds),
        ));
        let number = Words::of(&words.set_up()?).number();
        Ok(DrivenInlet { way: self.way().clone(), number })
    }

    fn accept_inlet(&mut self, peer: PeerId, name: u64) -> Result<DrivenInlet, SetupError> {
        let words = self.ask(&format!("enters {} {name}", peer.0)).set_up()?;
        Ok(DrivenInlet { way: self.way().clone(), number: Words::of(&words).number() })
    }

    fn revoke_inlet(&mut self, inlet: DrivenInlet) -> Result<Fenced, SetupError> {
        let inlet = self.way().handle(&inlet.way, inlet.number);
        let words = self.ask(&format!("shut {inlet}")).set_up()?;
        Ok(if Words::of(&words).flag() { Fenced::Moved } else { Fenced::Drained })
    }

    fn deposit(
        &mut self,
        to: &DrivenInlet,
        deposit: &Deposit<'_>,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let to = self.way().handle(&to.way, to.number);
        self.ticket(&format!("deposit {to} {} {}", message(deposit), options(with)))
    }

    fn deposit_reply(
        &mut self,
        to: &DrivenInlet,
        deposit: &Deposit<'_>,
        reply: &Reply<'_, DrivenInlet>,
        with: Options,
    ) -> Result<Ticket, PostError> {
        let Reply { inlet, deposit: answer, len, takes_value, tag, value } = reply;
        let to = self.way().handle(&to.way, to.number);
        let inlet = self.way().handle(&inlet.way, inlet.number);
        self.ticket(&format!(
            "reply {to} {} {inlet} {} {len} {} {tag} {value} {}",
            message(deposit),
            message(answer),
            u8::from(*takes_value),
            options(with)
        ))
    }

    fn deposit_fetch(
        &mut self,
        to: &DrivenInlet,
        deposit: &Deposit<'_>,
        into: &mut [u8],
    ) -> Result<ayre::deposit::DepositReply, PostError> {
        let to = self.way().handle(&to.way, to.number);
        let words =
            self.ask(&format!("answer {to} {} {}", message(deposit), hex(into))).posted()?;
        let mut words = Words::of(&words);
        let (value, declined) = (words.number(), words.flag());
        into.copy_from_slice(&words.bytes());
        Ok(ayre::deposit::DepositReply { value, declined })
    }

    fn rejoin_inlet(&mut self, inlet: &mut DrivenInlet) -> Result<(), PostError> {
        let inlet = self.way().handle(&inlet.way, inlet.number);
        self.ask(&format!("rejoin {inlet}")).posted().map(drop)
    }
}

impl Depot for DrivenDepot {
    type Frozen<'a> = DrivenFrozen;

    fn register(&self, index: u8) -> u64 {
        Words::of(&self.way.ask(&format!("has {} {index}", self.number)).done()).number()
    }

    fn set_register(&self, index: u8, value: u64) -> Result<(), Busy> {
        unlocked(self.way.ask(&format!("set {} {index} {value}", self.number))).map(drop)
    }

    fn protect(&self, registers: RangeInclusive<u8>, protection: Protection) -> Result<(), Busy> {
        let (first, last, bits) = (registers.start(), registers.end(), protection.bits());
        unlocked(self.way.ask(&format!("protect {} {first} {last} {bits}", self.number))).map(drop)
    }

    fn store(&self, at: u8, instructions: &[Stored]) -> Result<(), SetupError> {
        let word = |Stored { instruction, operand, enters }: &Stored| {
            format!("{} {operand} {}", instruction.word(), u8::from(*enters))
        };
        let words: Vec<_> = instructions.iter().map(word).collect();
        let call = format!("store {} {at} {} {}", self.number, words.len(), words.join(" "));
        self.way.ask(&call).set_up().map(drop)
    }

    fn freeze(&self) -> Result<DrivenFrozen, Busy> {
        let words = unlocked(self.way.ask(&format!("freeze {}", self.number)))?;
        Ok(DrivenFrozen { way: self.way.clone(), number: Words::of(&words).number() })
    }
}

impl Frozen for DrivenFrozen {
    fn register(&self, index: u8) -> u64 {
        Words::of(&self.way.ask(&format!("kept {} {index}", self.number)).done()).number()
    }

    fn set_register(&mut self, index: u8, value: u64) {
        self.way.ask(&format!("keep {} {index} {value}", self.number)).done();
    }
}

impl Drop for DrivenFrozen {
    fn drop(&mut self) {
        self.way.ask(&format!("thaw {}", self.number)).done();
    }
}

impl Inlet for DrivenInlet {
    fn held(&self) -> Result<Option<HeldMessage>, Busy> {
        match self.way.ask(&format!("stopped {}", self.number)) {
            Answer::Nothing => Ok(None),
            other => Ok(Some(held(&unlocked(other)?))),
        }
    }

    fn resume(&self) -> Result<bool, PostError> {
        Ok(Words::of(&self.way.ask(&format!("resume {}", self.number)).posted()?).flag())
    }

    fn skip(&self) -> Result<(), PostError> {
        self.way.ask(&format!("skip {}", self.number)).posted().map(drop)
    }

    fn reset(&self) -> Result<(), Busy> {
        unlocked(self.way.ask(&format!("reset {}", self.number))).map(drop)
    }
}
