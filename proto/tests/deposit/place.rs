//! A destination in ordinary memory: registers, instructions, one inlet, and what was notified.
use ayre_proto::deposit::{
    DepositMessage, Depot, Form, Inlet, Instruction, Kind, Mask, Outcome, Protection, REGISTERS,
    Stored, Transfer, Window, run,
};
use ayre_proto::fault::Fault;
use ayre_proto::units::Rights;

/// A destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) registers: [u64; REGISTERS],
    pub(crate) protections: [Protection; REGISTERS],
    pub(crate) instructions: Vec<Option<Stored>>,
    pub(crate) inlet: Inlet,
    pub(crate) memory: Vec<u8>,
    pub(crate) notified: u32,
}

/// The result of a message that did not fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) given: u64,
    pub(crate) declined: bool,
    /// The bytes that were read.
    pub(crate) data: Vec<u8>,
}

impl Depot for Place {
    fn register(&self, index: u8) -> u64 {
        self.registers[usize::from(index)]
    }

    fn protection(&self, index: u8) -> Protection {
        self.protections[usize::from(index)]
    }

    fn stored(&self, index: u16) -> Option<Stored> {
        self.instructions.get(usize::from(index)).copied().flatten()
    }
}

impl Place {
    /// A place with `len` bytes of memory, all rights, all registers, no instruction.
    pub(crate) fn open(len: usize) -> Self {
        let inlet = Inlet {
            rights: Rights::all(),
            len: len as u64,
            registers: Window { base: 0, len: REGISTERS as u16 },
            entries: Window { base: 0, len: 256 },
            longest: 1024,
        };
        Self {
            registers: [0; REGISTERS],
            protections: [Protection::all(); REGISTERS],
            instructions: Vec::new(),
            inlet,
            memory: vec![0; len],
            notified: 0,
        }
    }

    /// A place whose sender can do nothing but enter the stored instructions.
    pub(crate) fn closed(len: usize, instructions: &[Stored]) -> Self {
        let mut place = Self::open(len);
        place.protections = [Protection::empty(); REGISTERS];
        place.inlet.rights = Rights::READ | Rights::WRITE;
        place.inlet.registers.len = 0;
        place.instructions = instructions.iter().copied().map(Some).collect();
        place
    }

    /// Carries a message out, or nothing of it.
    pub(crate) fn deliver(&mut self, message: &DepositMessage, data: &[u8]) -> Result<Done, Fault> {
        let outcome = run(message, &self.inlet, self)?;
        let Outcome { transfer, writes, notifies, given, declined, .. } = outcome;
        let mut read = Vec::new();
        if let Some(Transfer { kind, offset, mask }) = transfer {
            let len = u64::from(message.len);
            if kind == Kind::Read {
                read = vec![0; usize::from(message.len)];
            }
            for (at, count) in mask.runs(len) {
                let (local, count) = (at as usize, count as usize);
                let memory = &mut self.memory[(offset + at) as usize..][..count];
                match kind {
                    Kind::Write => memory.copy_from_slice(&data[local..][..count]),
                    _ => read[local..][..count].copy_from_slice(memory),
                }
            }
        }
        for (index, value) in writes {
            self.registers[usize::from(index)] = value;
        }
        self.notified += u32::from(notifies);
        Ok(Done { given, declined, data: read })
    }

    /// Sends data with an instruction of the sender's.
    pub(crate) fn carry(
        &mut self,
        instruction: Instruction,
        operand: u64,
        data: &[u8],
    ) -> Result<Done, Fault> {
        self.deliver(&message(Form::Carried(instruction), operand, data.len()), data)
    }

    /// Sends data to a stored instruction.
    pub(crate) fn enter(&mut self, entry: u16, operand: u64, data: &[u8]) -> Result<Done, Fault> {
        let form = Form::Pointer { entry, registers: [0; 3] };
        self.deliver(&message(form, operand, data.len()), data)
    }
}

/// A message that brings `len` bytes.
pub(crate) fn message(form: Form, operand: u64, len: usize) -> DepositMessage {
    DepositMessage {
        form,
        operand,
        mask: Mask::ALL,
        len: len as u16,
        brings: len > 0,
        is_answered: true,
    }
}
