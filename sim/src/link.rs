//! How fast a link is.
use crate::time::Time;

/// How fast links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Time of one phit, the unit that passes a link at once.
    pub phit: Time,
    /// Bytes of a phit.
    pub width: u32,
    /// Time of flight.
    pub wire: Time,
}

impl LinkTiming {
    /// The time for which a packet of this length takes the link.
    #[inline]
    pub fn span(&self, bytes: u32) -> Time {
        let phits = if self.width == 1 { bytes } else { bytes.div_ceil(self.width) };
        Time(u64::from(phits) * self.phit.0)
    }
}
