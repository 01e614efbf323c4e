//! Deposit messages at their sender.
use crate::error::Fault;
use ayre_proto::deposit::{DATA_MAX, DepositMessage, Form, Instruction, Mask};

/// A deposit message: the instruction that it enters or carries, an operand, and data.
#[derive(Clone, Copy, Debug)]
pub struct Deposit<'a> {
    form: Form,
    operand: u64,
    mask: Mask,
    data: &'a [u8],
}

impl<'a> Deposit<'a> {
    /// Enters a stored instruction: 0 is the first of the inlet's entries.
    #[inline(always)]
    pub const fn enter(entry: u16) -> Self {
        let form = Form::Pointer { entry, registers: [0; 3] };
        Self { form, operand: 0, mask: Mask::ALL, data: &[] }
    }

    /// Carries an instruction, whose registers are those of the inlet.
    #[inline(always)]
    pub const fn carry(instruction: Instruction) -> Self {
        Self { form: Form::Carried(instruction), operand: 0, mask: Mask::ALL, data: &[] }
    }

    /// Sets the registers that a stored instruction leaves to the message: 0 is the first of the
    /// inlet's.
    #[inline(always)]
    pub const fn registers(mut self, numbers: [u8; 3]) -> Self {
        if let Form::Pointer { registers, .. } = &mut self.form {
            *registers = numbers;
        }
        self
    }

    /// Sets the operand. The default is 0.
    #[inline(always)]
    pub const fn operand(mut self, operand: u64) -> Self {
        self.operand = operand;
        self
    }

    /// Sets the data to write: up to 1024 bytes.
    #[inline(always)]
    pub const fn data(mut self, data: &'a [u8]) -> Self {
        self.data = data;
        self
    }

    /// Selects the words of the data that are written or read: bit i stands for the bytes 4 i to 4
    /// i + 3. By default all are selected.
    // spec: DEP-12
    #[inline(always)]
    pub const fn mask(mut self, words: u64) -> Self {
        self.mask = Mask(words);
        self
    }

    #[inline(always)]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.data
    }

    pub(super) const fn brings(&self) -> bool {
        !self.data.is_empty()
    }

    /// The form of a reply, which brings the data of an answer.
    pub(super) fn reply(&self, len: usize) -> Result<DepositMessage, Fault> {
        let Self { form, operand, mask, .. } = *self;
        let brings = len > 0;
        let message =
            DepositMessage { form, operand, mask, len: len as u16, brings, is_answered: false };
        message.check()?;
        Ok(message)
    }

    /// The message in the form in which it travels; it asks for `wanted` bytes.
    #[inline(always)]
    pub(super) fn message(
        &self,
        wanted: usize,
        is_answered: bool,
    ) -> Result<DepositMessage, Fault> {
        let Self { form, operand, mask, data } = *self;
        if !data.is_empty() && wanted > 0 {
            return Err(Fault::Malformed);
        }
        let brings = !data.is_empty();
        let len = if brings { data.len() } else { wanted };
        if len > DATA_MAX {
            return Err(Fault::TooLong);
        }
        let message = DepositMessage { form, operand, mask, len: len as u16, brings, is_answered };
        message.check()?;
        debug_assert!(!brings || usize::from(message.len) == data.len(), "it brings all of it");
        Ok(message)
    }
}
