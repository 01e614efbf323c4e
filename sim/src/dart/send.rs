//! The sending side: six registers for each connection, in the application's page (section 6.3).
//!
//! ```text
//!   0 opcode | 1 operand | 2 index     control of the next cell
//!   3 go                               offset of the data: sends it
//!   4 size                             units of 16 bytes, 2 or more; 0 when the last cell has gone
//!   5 mode                             bit 0: operand from go; bit 1: fault while one is sent
//! ```
use super::cell;
use thiserror::Error;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// The operation.
    Opcode,
    /// The immediate operand.
    Operand,
    /// The indices of the destination's registers.
    Index,
    /// Sends the data at the offset that is written.
    Go,
    /// Units of 16 bytes to send.
    Size,
    /// Bits of [`Registers`]: the operand is that of go; fault while cells are being sent.
    Mode,
}

/// The bit of the mode by which the operand is the value that is written to go.
pub const OPERAND_FROM_GO: u32 = 1;
/// The bit of the mode by which a send faults while another one goes on.
pub const FAULT_WHILE_SENDING: u32 = 2;
/// The least size: the data of a cell.
const SIZE_MIN: u32 = cell::DATA / cell::UNIT;

/// Why a write to a register faults.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// The data does not begin at a block.
    #[error("the offset {0} is no multiple of 32 B")]
    Offset(u32),
    /// Too little.
    #[error("a size of {0}: it has to be at least {SIZE_MIN} units of 16 B")]
    Size(u32),
    /// Others are being sent, and the mode forbids to send meanwhile.
    #[error("{0} units of the block before are still to be sent")]
    Sending(u32),
}

/// A block to be sent: its control and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Opcode, operand and index of its first cell.
    pub control: [u32; 3],
    /// The offset of its data in the endpoint.
    pub offset: u32,
    /// Bytes of its data.
    pub bytes: u32,
    /// Cells that it takes.
    pub cells: u32,
}

/// The registers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    control: [u32; 3],
    size: u32,
    mode: u32,
    /// Units of the block that is being sent.
    sending: u32,
}

impl Default for Registers {
    fn default() -> Self {
        Self { control: [0; 3], size: SIZE_MIN, mode: 0, sending: 0 }
    }
}

impl Registers {
    /// A program writes a register. A write to [`Register::Go`] returns the block that it sends.
    ///
    /// # Errors
    /// See [`SendError`]; nothing changes then.
    pub fn write(&mut self, register: Register, value: u32) -> Result<Option<Block>, SendError> {
        match register {
            Register::Opcode => self.control[0] = value,
            Register::Operand => self.control[1] = value,
            Register::Index => self.control[2] = value,
            Register::Mode => self.mode = value,
            Register::Size if value < SIZE_MIN => return Err(SendError::Size(value)),
            Register::Size => self.size = value,
            Register::Go => return self.go(value).map(Some),
        }
        Ok(None)
    }

    /// The value of the size register to a program that reads it: the units of a block that has not
    /// gone completely.
    pub fn unsent(&self) -> u32 {
        self.sending
    }

    /// The last cell has gone.
    pub fn sent(&mut self) {
        self.sending = 0;
    }

    fn go(&mut self, offset: u32) -> Result<Block, SendError> {
        if !offset.is_multiple_of(cell::DATA) {
            return Err(SendError::Offset(offset));
        }
        if self.mode & FAULT_WHILE_SENDING != 0 && self.sending > 0 {
            return Err(SendError::Sending(self.sending));
        }
        let mut control = self.control;
        if self.mode & OPERAND_FROM_GO != 0 {
            control[1] = offset;
        }
        self.sending = self.size;
        let (bytes, cells) = (self.size * cell::UNIT, cell::cells(self.size));
        Ok(Block { control, offset, bytes, cells })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_go_sends_what_the_other_registers_say() {
        let mut registers = Registers::default();
        for (register, value) in
            [(Register::Opcode, 3), (Register::Operand, 70), (Register::Index, 9)]
        {
            assert_eq!(registers.write(register, value), Ok(None));
        }
        let block = registers.write(Register::Go, 64).expect("sound").expect("a block");
        assert_eq!(block, Block { control: [3, 70, 9], offset: 64, bytes: 32, cells: 1 });
        registers.write(Register::Mode, OPERAND_FROM_GO).expect("sound");
        let block = registers.write(Register::Go, 96).expect("sound").expect("a block");
        assert_eq!(block.control, [3, 96, 9]);
    }

    #[test]
    fn the_size_tells_when_the_last_cell_has_gone() {
        let mut registers = Registers::default();
        registers.write(Register::Size, 8).expect("sound");
        registers.write(Register::Mode, FAULT_WHILE_SENDING).expect("sound");
        assert_eq!(registers.unsent(), 0);
        let block = registers.write(Register::Go, 0).expect("sound").expect("a block");
        assert_eq!((block.bytes, block.cells, registers.unsent()), (128, 3, 8));
        let before = registers;
        assert_eq!(registers.write(Register::Go, 0), Err(SendError::Sending(8)));
        assert_eq!(registers.write(Register::Go, 16), Err(SendError::Offset(16)));
        assert_eq!(registers.write(Register::Size, 1), Err(SendError::Size(1)));
        assert_eq!(registers, before);
        registers.sent();
        assert!(registers.write(Register::Go, 0).is_ok());
    }
}
