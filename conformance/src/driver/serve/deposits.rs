//! A driver's calls about depots.
use super::super::words::{Answer, Words, form, hex};
use super::{Held, Made, done, keep, nothing, options, ticket};
use ayre::deposit::{
    Deposit, Depot, Form, HeldMessage, InletOptions, Instruction, Protection, Reply, Stored,
};
use ayre::memory::Fenced;
use ayre::{Busy, Port, PostError, Rights};

/// A message, of which the data is read apart: the rest borrows it.
struct Said {
    form: Form,
    operand: u64,
    mask: u64,
    data: Vec<u8>,
}

impl Said {
    fn read(words: &mut Words<'_>) -> Self {
        let (form, operand, mask) = (words.form(), words.number(), words.number());
        Self { form, operand, mask, data: words.bytes() }
    }

    fn deposit(&self) -> Deposit<'_> {
        let deposit = match self.form {
            Form::Carried(instruction) => Deposit::carry(instruction),
            Form::Pointer { entry, registers } => Deposit::enter(entry).registers(registers),
            Form::Probe => panic!("no message of a program's"),
        };
        deposit.operand(self.operand).mask(self.mask).data(&self.data)
    }
}

fn stored(words: &mut Words<'_>) -> Stored {
    let instruction = Instruction::parse(words.number()).expect("an instruction");
    Stored { instruction, operand: words.number(), enters: words.flag() }
}

/// A message that has stopped, as it is written in an answer.
fn held(message: &HeldMessage) -> String {
    let HeldMessage { cause, message, tag, value, data } = message;
    let form = form(&message.form);
    let (len, brings, answered) =
        (message.len, u8::from(message.brings), u8::from(message.is_answered));
    let (operand, mask) = (message.operand, message.mask.0);
    let code = cause.code();
    format!("{code} {form} {operand} {mask} {len} {brings} {answered} {tag} {value} {}", hex(data))
}

impl From<Busy> for Answer {
    fn from(busy: Busy) -> Self {
        PostError::from(busy).into()
    }
}

pub(super) fn about_depots(held: &mut Held, call: &str, words: &mut Words<'_>) -> Made {
    let Held { depots, frozen, .. } = held;
    if ["kept", "keep", "thaw"].contains(&call) {
        let place = &mut frozen[words.number::<usize>()];
        let depot = place.as_mut().expect("it was not thawed");
        return match call {
            "kept" => done(depot.register(words.number())),
            "keep" => {
                depot.set_register(words.number(), words.number());
                nothing(())
            }
            _ => {
                *place = None;
                nothing(())
            }
        };
    }
    let depot: &'static Depot = depots[words.handle()];
    match call {
        "has" => done(depot.register(words.number())),
        "set" => nothing(depot.set_register(words.number(), words.number())?),
        "protect" => {
            let registers = words.number()..=words.number();
            let protection = Protection::from_bits_truncate(words.number());
            nothing(depot.protect(registers, protection)?)
        }
        "store" => {
            let (at, count) = (words.number(), words.number::<usize>());
            let instructions: Vec<_> = (0..count).map(|_| stored(words)).collect();
            nothing(depot.store(at, &instructions)?)
        }
        _ => done(keep(frozen, Some(depot.freeze()?))),
    }
}

pub(super) fn about_inlets(
    port: &mut Port,
    held_here: &mut Held,
    call: &str,
    words: &mut Words<'_>,
) -> Made {
    let Held { regions, depots, inlets, entered, .. } = held_here;
    match call {
        // The driver ends with its port, and its depots with both.
        "depot" => done(keep(depots, &*Box::leak(Box::new(port.create_depot()?)))),
        "inlet" => {
            let (peer, depot, region) = (words.peer(), words.handle(), words.handle());
            let part = (&regions[region], words.number()..words.number());
            let rights = Rights::from_bits_truncate(words.number());
            let options = InletOptions::new().rights(rights);
            let options = options.registers(words.number()..words.number());
            let options = options.entries(words.number()..words.number()).longest(words.number());
            let options = if words.flag() { options.holds() } else { options };
            let inlet = port.share_inlet(peer, depots[depot], part, &options, words.number())?;
            done(keep(inlets, Some(inlet)))
        }
        "enters" => done(keep(entered, port.accept_inlet(words.peer(), words.number())?)),
        "shut" => {
            let inlet = inlets[words.handle()].take().expect("it is revoked once");
            done(u8::from(port.revoke_inlet(inlet)? == Fenced::Moved))
        }
        "rejoin" => nothing(port.rejoin_inlet(&mut entered[words.handle()])?),
        "deposit" => {
            let (to, said) = (&entered[words.handle()], Said::read(words));
            ticket(port.deposit(to, &said.deposit(), options(words))?)
        }
        "reply" => {
            let (to, said) = (&entered[words.handle()], Said::read(words));
            let inlet = inlets[words.handle()].as_ref().expect("it was not revoked");
            let answer = Said::read(words);
            let mut reply = Reply::over(inlet, answer.deposit()).wants(words.number());
            if words.flag() {
                reply = reply.operand_given();
            }
            let reply = reply.noted_as(words.number(), words.number());
            ticket(port.deposit_reply(to, &said.deposit(), &reply, options(words))?)
        }
        "answer" => {
            let (to, said) = (&entered[words.handle()], Said::read(words));
            let mut into = words.bytes();
            let answer = port.deposit_fetch(to, &said.deposit(), &mut into)?;
            done(format!("{} {} {}", answer.value, u8::from(answer.declined), hex(&into)))
        }
        _ => {
            let inlet = inlets[words.handle()].as_ref().expect("it was not revoked");
            match call {
                "stopped" => match inlet.held()? {
                    Some(message) => done(held(&message)),
                    None => Ok(Answer::Nothing),
                },
                "resume" => done(u8::from(inlet.resume()?)),
                "skip" => nothing(inlet.skip()?),
                _ => nothing(inlet.reset()?),
            }
        }
    }
}
