//! Active messages: names and their numbers, records, and long messages.
//!
//! ```text
//!   record                           landing
//!   a short message; its tag is a    a ring of memory at the receiver, for one sender, which puts
//!   handler's id, or one of Record   pieces there and is told how much of it was taken
//! ```
pub mod long;
pub mod record;

/// Bytes of the longest name.
// spec: AM-1
pub const NAME_MAX: usize = 64;
/// Arguments of a message.
// spec: AM-5
pub const ARGUMENTS_MAX: usize = 8;
/// Bytes of the longest payload.
// spec: AM-5
pub const LONGEST: usize = 1 << 26;
/// Static ids of handlers: chosen by programs, the same everywhere. They come from no name, and no
/// record uses them.
// spec: AM-1
pub const STATIC_IDS: core::ops::RangeInclusive<u32> = 32..=255;

/// The id of a name.
// spec: AM-1
pub const fn id_of(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash = 0x811c_9dc5_u32;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    if hash < 256 { hash + 256 } else { hash }
}

#[cfg(test)]
mod tests {
    use super::id_of;

    /// The test vectors of the hash's authors; no name has a static id.
    // spec: AM-1
    #[test]
    fn ids_are_fnv_1a() {
        assert_eq!(id_of("a"), 0xe40c_292c);
        assert_eq!(id_of("foobar"), 0xbf9c_f968);
        assert_eq!(id_of(""), 0x811c_9dc5);
        // Found by search: its hash is below 256.
        let low = (0..u32::MAX).map(LowName::new).find(LowName::is_low).expect("one in 2^24 is");
        assert_eq!(id_of(low.as_str()), low.hash() + 256);
    }

    /// A number as eight letters.
    struct LowName([u8; 8]);

    impl LowName {
        fn new(number: u32) -> Self {
            Self(core::array::from_fn(|at| b'a' + (number >> (4 * at) & 15) as u8))
        }

        fn as_str(&self) -> &str {
            core::str::from_utf8(&self.0).expect("letters")
        }

        fn hash(&self) -> u32 {
            self.0
                .iter()
                .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
        }

        fn is_low(&self) -> bool {
            self.hash() < 256
        }
    }
}
