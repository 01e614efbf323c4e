//! Where a port's numbers by chance come from.
use super::simulation::Seat;
use std::sync::Arc;

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) enum Chance {
    /// The system's: nobody can guess them.
    System,
    /// A simulation's, where this wire has a seat: they follow from its seed and the seat, so that
    /// a run takes the same course when it is repeated.
    Simulated(Arc<Seat>),
}

impl Chance {
    /// The next number, which is never 0.
    // spec: NET-9
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::System => u64::from_le_bytes(crate::random::bytes()),
            Self::Simulated(seat) => seat.chance(),
        }
        .max(1)
    }

    /// Fills with the next ones, of which any may be 0.
    // spec: NET-9
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        match self {
            Self::System => crate::random::fill(bytes),
            Self::Simulated(seat) => {
                for part in bytes.chunks_mut(8) {
                    part.copy_from_slice(&seat.chance().to_le_bytes()[..part.len()]);
                }
            }
        }
    }
}
