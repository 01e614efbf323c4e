//! Depots of a program: places for deposit messages, which the protocol's machine carries out.
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{
    Carried, Form, Inlet, Kind, Outcome, Protection, REGISTERS, Standing, Stored, Transfer, machine,
};
use ayre_proto::fault::Status;
use ayre_proto::units::Key;
use std::collections::HashMap;

/// A depot: its registers, and its stored instructions. Messages may read and change all
/// registers that an instruction lets them name.
#[derive(Clone, Debug)]
pub struct Depot {
    registers: [u64; REGISTERS],
    stored: Vec<Stored>,
}

impl Depot {
    /// A depot with these instructions, whose registers are zero.
    pub fn new(stored: Vec<Stored>) -> Self {
        Self { registers: [0; REGISTERS], stored }
    }

    /// The value of a register.
    pub fn register(&self, number: u8) -> u64 {
        self.registers[usize::from(number)]
    }

    /// Changes a register.
    pub fn set_register(&mut self, number: u8, value: u64) {
        self.registers[usize::from(number)] = value;
    }
}

impl machine::Depot for Depot {
    fn register(&self, index: u8) -> u64 {
        self.registers[usize::from(index)]
    }

    fn protection(&self, _: u8) -> Protection {
        Protection::all()
    }

    fn stored(&self, index: u16) -> Option<Stored> {
        self.stored.get(usize::from(index)).copied()
    }
}

/// The depots of a program, and its inlets by their keys.
#[derive(Debug, Default)]
pub(super) struct Depots {
    pub(super) depots: Vec<Depot>,
    pub(super) inlets: HashMap<Key, (usize, Inlet)>,
}

impl Depots {
    /// Carries out a message; `memory` begins where the inlet's does. Returns `None` where the key
    /// names no inlet.
    // spec: DEP-18, DEP-20
    pub(super) fn carry_out(
        &mut self,
        posted: &Posted,
        memory: &mut [u8],
        data: &[u8],
    ) -> Option<Carried> {
        let (depot, inlet) = self.inlets.get(&posted.key)?;
        let depot = self.depots.get_mut(*depot)?;
        let standing = Standing::NEW;
        if matches!(posted.message.form, Form::Probe) {
            let given = u64::from(standing.epoch());
            return Some(Carried { status: Status::Ok, given, notifies: false });
        }
        let admitted = standing.admit(posted.epoch);
        let outcome = admitted.and_then(|()| machine::run(&posted.message, inlet, depot));
        Some(match outcome {
            Ok(outcome) => depot.commit(&outcome, memory, data),
            Err(fault) => Carried::fault(fault),
        })
    }
}

impl Depot {
    fn commit(&mut self, outcome: &Outcome, memory: &mut [u8], data: &[u8]) -> Carried {
        let Outcome { transfer, writes, notifies, given, declined, .. } = outcome;
        if *declined {
            return Carried { status: Status::Declined, given: *given, notifies: false };
        }
        if let Some(Transfer { kind: Kind::Write, offset, mask }) = transfer {
            let place = &mut memory[*offset as usize..][..data.len()];
            for (from, len) in mask.runs(data.len() as u64) {
                let part = from as usize..(from + len) as usize;
                place[part.clone()].copy_from_slice(&data[part]);
            }
        }
        writes.iter().for_each(|(register, value)| self.set_register(*register, *value));
        Carried { status: Status::Ok, given: *given, notifies: *notifies }
    }
}
