//! Numbers of remotes: each has a place, which is another one's when it has gone, and a serial
//! number, which is never another one's.
use super::REMOTES_MAX;
use core::num::NonZeroU64;

/// Bits of a number that are its place.
const PLACE_BITS: u32 = 16;
const _: () = assert!(REMOTES_MAX <= 1 << PLACE_BITS, "a number has its place");

/// Names an endpoint that another one knows. A remote that has gone, or was never called, may have
/// to make room for another one; a number that has become stale so names nobody from then on.
// spec: ENV-40
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteId(NonZeroU64);

impl RemoteId {
    /// The remote of a serial number, which is not 0, at a place.
    ///
    /// # Panics
    /// Where the serial number is 0.
    pub fn new(serial: u64, place: usize) -> Self {
        debug_assert!(place < REMOTES_MAX, "a number has its place");
        debug_assert!(serial < 1 << (u64::BITS - PLACE_BITS), "serial numbers do not come again");
        let number = NonZeroU64::new(serial << PLACE_BITS | place as u64);
        Self(number.expect("serial numbers are counted from 1"))
    }

    /// The remote as a number, for programs in other languages.
    pub const fn number(self) -> u64 {
        self.0.get()
    }

    /// The remote of a number. None where [`RemoteId::number`] returns the number for no remote.
    pub fn with_number(number: u64) -> Option<Self> {
        let (serial, place) = (number >> PLACE_BITS, number & ((1 << PLACE_BITS) - 1));
        let is_one = serial != 0 && place < REMOTES_MAX as u64;
        is_one.then(|| Self::new(serial, place as usize))
    }

    /// Its place, below [`REMOTES_MAX`]: no two remotes have the same at a time.
    pub const fn index(self) -> usize {
        self.source() as usize
    }

    /// The place as matchers know it: the source of a message.
    #[inline(always)]
    pub(super) const fn source(self) -> u32 {
        self.0.get() as u32 & ((1 << PLACE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_one_remote_or_none() {
        for (serial, place) in [(1, 0), (1, REMOTES_MAX - 1), ((1 << 48) - 1, 7)] {
            let remote = RemoteId::new(serial, place);
            assert_eq!(RemoteId::with_number(remote.number()), Some(remote));
        }
        let above = REMOTES_MAX as u64 | 1 << PLACE_BITS;
        let numbers = [0, 1, (1 << PLACE_BITS) - 1, above];
        let named = numbers.map(|number| RemoteId::with_number(number).is_some());
        assert_eq!(named, [false, false, false, REMOTES_MAX == 1 << PLACE_BITS]);
    }
}
