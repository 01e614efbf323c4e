//! A cell of ATM by its parts, in bytes (section 4), and blocks of several cells.
//!
//! ```text
//!   control cell:  header 5 | control 12 | check 1 | reserved 1 | data 32 | CRC 2
//!   data cells:    header 5 | data 48 (AAL5)
//! ```
use crate::time::Time;

/// Header of ATM.
pub const HEADER: u32 = 5;
/// Opcode or instruction pointer, operand, register indices and mask.
pub const CONTROL: u32 = 12;
/// Check over the control bytes, so that decoding begins before the data has come.
pub const CHECK: u32 = 1;
/// Reserved, so that the data is a multiple of 16 bytes.
pub const RESERVED: u32 = 1;
/// CRC over the data.
pub const CRC: u32 = 2;
/// Data.
pub const DATA: u32 = 32;
/// All of it.
pub const ALL: u32 = HEADER + CONTROL + CHECK + RESERVED + CRC + DATA;
/// Data of each further cell of a block, as AAL5 has it.
pub const MORE: u32 = 48;
/// Blocks are multiples of this number of bytes.
pub const UNIT: u32 = 16;

/// Cells of a block of this number of units of 16 bytes. The first two units travel in its control
/// cell (sections 4 and 6.3).
pub fn cells(units: u32) -> u32 {
    1 + (units * UNIT).saturating_sub(DATA).div_ceil(MORE)
}

/// The time of a cell on a link of this rate.
pub fn time(bits_per_second: f64) -> Time {
    Time((f64::from(8 * ALL) / bits_per_second * 1e12).round() as u64)
}

/// The seconds in which data and CRC arrive at this rate. The operation logic works meanwhile
/// (section 6.6).
pub fn data_time(bits_per_second: f64) -> f64 {
    f64::from(8 * (DATA + CRC)) / bits_per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_cell_sum_to_it_and_long_blocks_are_data_but_for_headers() {
        assert_eq!(HEADER + CONTROL + CHECK + RESERVED + CRC + DATA, ALL);
        assert_eq!([2, 3, 5, 6].map(cells), [1, 2, 2, 3]);
        let units = 3 << 20;
        let share = f64::from(units * UNIT) / f64::from(cells(units) * ALL);
        assert!((share - f64::from(MORE) / f64::from(ALL)).abs() < 1e-6);
    }
}
