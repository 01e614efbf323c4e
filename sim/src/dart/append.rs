//! Messages that it takes to append to a shared queue (section 2).
//!
//! ```text
//!   sender-based:  fetch the tail and move it -->      hybrid:  record -->
//!                  <-- the tail                                 the destination finds the place
//!                  record, at this address -->
//! ```
//!
//! The machine of `ayre_proto::deposit` decides each message, and [`Destination`] counts those that
//! travel.
use ayre_proto::deposit::program::{OPERAND, Program, Register, X, Y};
use ayre_proto::deposit::{
    AddressMode, DepositMessage, Depot, Form, Inlet, Instruction, Mask, Outcome, Protection,
    Stored, Window, run,
};
use ayre_proto::fault::Fault;
use ayre_proto::units::Rights;

/// Bytes of a record: the data of a cell.
pub const RECORD: u16 = 32;
/// The register with the place of the next record.
const TAIL: u8 = 0;
/// The register with the distance of two records.
const STEP: u8 = 1;

/// The destination of messages: a queue in memory, and the registers beside it.
#[derive(Clone, Debug)]
pub struct Destination {
    registers: [u64; 2],
    stored: Stored,
    inlet: Inlet,
    /// Places of records in the order in which they came.
    places: Vec<u64>,
    messages: u32,
}

impl Depot for Destination {
    fn register(&self, index: u8) -> u64 {
        self.registers[usize::from(index)]
    }

    fn protection(&self, _: u8) -> Protection {
        Protection::all()
    }

    fn stored(&self, index: u16) -> Option<Stored> {
        (index == 0).then_some(self.stored)
    }
}

impl Destination {
    /// A queue with room for this number of records.
    pub fn new(records: u64) -> Self {
        let append = Program::new().write(AddressMode::Indirect).then(X.add(Y));
        Self {
            registers: [0, RECORD.into()],
            stored: append.store([Register::At(TAIL), Register::At(STEP), Register::At(0)]),
            inlet: Inlet {
                rights: Rights::READ | Rights::WRITE | Rights::PROGRAM,
                len: records * u64::from(RECORD),
                registers: Window { base: 0, len: 2 },
                entries: Window { base: 0, len: 1 },
                longest: RECORD,
            },
            places: Vec::new(),
            messages: 0,
        }
    }

    /// Messages that have travelled, answers included.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Where records were written.
    pub fn places(&self) -> &[u64] {
        &self.places
    }

    /// A message comes: what it amounts to happens. An answer is a message, too.
    fn deliver(&mut self, message: &DepositMessage) -> Result<Outcome, Fault> {
        self.messages += 1 + u32::from(message.is_answered);
        let outcome = run(message, &self.inlet, self)?;
        for (register, value) in &outcome.writes {
            self.registers[usize::from(*register)] = *value;
        }
        self.places.extend(outcome.transfer.iter().map(|transfer| transfer.offset));
        Ok(outcome)
    }

    /// The first message of a sender that has to know the address: it gets the tail, and moves it.
    ///
    /// # Errors
    /// The fault of the message.
    pub fn reserve(&mut self) -> Result<u64, Fault> {
        let fetch = Program::new().then(X.add(OPERAND)).give(X).carry([TAIL, 0, 0]);
        let message = DepositMessage {
            form: Form::Carried(fetch),
            operand: RECORD.into(),
            is_answered: true,
            ..record(fetch)
        };
        let message = DepositMessage { len: 0, brings: false, ..message };
        Ok(self.deliver(&message)?.given)
    }

    /// Its second message: the record, for this address.
    ///
    /// # Errors
    /// The fault of the message.
    pub fn write(&mut self, at: u64) -> Result<(), Fault> {
        let write = Program::new().write(AddressMode::Direct).carry([0; 3]);
        self.deliver(&DepositMessage { operand: at, ..record(write) })?;
        Ok(())
    }

    /// The message of a sender that names the stored instruction.
    ///
    /// # Errors
    /// The fault of the message.
    pub fn append(&mut self) -> Result<(), Fault> {
        let form = Form::Pointer { entry: 0, registers: [0; 3] };
        self.deliver(&DepositMessage { form, ..record(self.stored.instruction) })?;
        Ok(())
    }
}

/// A message that brings a record.
fn record(instruction: Instruction) -> DepositMessage {
    DepositMessage {
        form: Form::Carried(instruction),
        operand: 0,
        mask: Mask::ALL,
        len: RECORD,
        brings: true,
        is_answered: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Places that are right: each record has its own, without gaps.
    fn is_sound(destination: &Destination, records: u64) -> bool {
        let mut places = destination.places().to_vec();
        places.sort_unstable();
        places == (0..records).map(|number| number * u64::from(RECORD)).collect::<Vec<_>>()
    }

    #[test]
    fn both_ways_give_each_record_a_place_whatever_senders_overtake() {
        for seed in 0..50 {
            let mut random = Random::new(seed, 0);
            let (mut pure, mut hybrid) = (Destination::new(64), Destination::new(64));
            let mut reserved = Vec::new();
            for _ in 0..64 {
                reserved.push(pure.reserve().expect("a possible message"));
                if random.below(2) == 0 {
                    let at = reserved.swap_remove(random.below(reserved.len() as u32) as usize);
                    pure.write(at).expect("a possible message");
                }
                hybrid.append().expect("a possible message");
            }
            for at in reserved {
                pure.write(at).expect("a possible message");
            }
            assert!(is_sound(&pure, 64) && is_sound(&hybrid, 64));
            assert_eq!((pure.messages(), hybrid.messages()), (3 * 64, 64));
        }
    }

    #[test]
    fn a_full_queue_refuses_a_record_and_keeps_its_state() {
        let mut destination = Destination::new(1);
        destination.append().expect("room for one");
        let before = destination.registers;
        assert_eq!(destination.append(), Err(Fault::Bounds));
        assert_eq!(destination.registers, before);
        assert!(is_sound(&destination, 1));
    }
}
