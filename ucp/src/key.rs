//! Keys of mapped memory as bytes, which programs hand on.
//!
//! ```text
//!     0  mark: 4   4  form: 1   5  rights: 1   6  zeros: 2   8  key: 8   16  address: 8
//!    24  length: 8   32  home: 8   40  process: 4   44  descriptor and one, or 0: 4   48
//! ```
//!
//! Programs hand them on without their length, at any address, and with other bytes behind them.

use ayre::Rights;

/// Bytes of a key.
pub(crate) const BYTES: usize = 48;

/// How the bytes of a key begin.
pub(crate) const MARK: [u8; 4] = *b"ayrk";
const FORM: u8 = 1;

/// The key of a piece of mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// As the engine knows the memory.
    pub(crate) key: u64,
    /// Where it lies in its own process.
    pub(crate) address: u64,
    pub(crate) length: u64,
    /// The rights of peers.
    pub(crate) rights: Rights,
    /// A random number of the context that it belongs to.
    pub(crate) home: u64,
    /// The number of its process.
    pub(crate) process: u32,
    /// The descriptor of its memory file there, if it lies in one.
    pub(crate) file: Option<u32>,
}

impl Key {
    pub(crate) fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MARK);
        (bytes[4], bytes[5]) = (FORM, self.rights.bits());
        for (index, word) in [self.key, self.address, self.length, self.home].iter().enumerate() {
            bytes[8 + 8 * index..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[40..44].copy_from_slice(&self.process.to_le_bytes());
        bytes[44..].copy_from_slice(&self.file.map_or(0, |file| file + 1).to_le_bytes());
        bytes
    }

    /// The key in these bytes. None where they are another library's, or of another version.
    pub(crate) fn of_bytes(bytes: &[u8; BYTES]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?));
        if !is_ours(bytes) || bytes[4] != FORM || bytes[6..8] != [0; 2] {
            return None;
        }
        Some(Self {
            key: word(8)?,
            address: word(16)?,
            length: word(24)?,
            rights: Rights::from_bits(bytes[5])?,
            home: word(32)?,
            process: half(40)?,
            file: half(44)?.checked_sub(1),
        })
    }

    /// Stands in the memory file behind the memory, so that nobody takes another file for it.
    pub(crate) fn label(&self) -> [u8; 16] {
        (u128::from(self.home) << 64 | u128::from(self.key)).to_le_bytes()
    }

    /// How far behind the beginning a range lies, if it lies within the memory.
    #[inline]
    pub(crate) fn offset_of(&self, address: u64, len: usize) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        (offset <= self.length && len as u64 <= self.length - offset).then_some(offset as usize)
    }
}

/// Whether these bytes begin as those of a key.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        key: 7,
        address: 0x7000_0000_1000,
        length: 100,
        rights: Rights::READ,
        home: 0x0123_4567_89AB_CDEF,
        process: 4711,
        file: Some(0),
    };

    #[test]
    fn a_key_comes_back_and_others_are_told_from_it() {
        for key in [KEY, Key { file: None, ..KEY }, Key { rights: Rights::all(), ..KEY }] {
            assert_eq!(Key::of_bytes(&key.to_bytes()), Some(key));
        }
        for place in 0..BYTES {
            let mut spoilt = KEY.to_bytes();
            spoilt[place] ^= 0x80;
            assert_ne!(Key::of_bytes(&spoilt), Some(KEY), "byte {place}");
        }
        let label = KEY.label();
        assert!(Key { home: 0, ..KEY }.label() != label && Key { key: 8, ..KEY }.label() != label);
    }

    #[test]
    fn ranges_lie_within_the_memory() {
        let start = KEY.address;
        for (address, len, offset) in [
            (start, 100, Some(0)),
            (start + 92, 8, Some(92)),
            (start + 100, 0, Some(100)),
            (start + 93, 8, None),
            (start + 101, 0, None),
            (start - 1, 8, None),
            (u64::MAX, 8, None),
            (start + 8, usize::MAX, None),
        ] {
            assert_eq!(KEY.offset_of(address, len), offset, "{address:x} {len}");
        }
    }
}
