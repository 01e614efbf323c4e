//! Bytes that can be told apart, and memory beside what is known of it.
use crate::port::Region;

/// `len` bytes that depend on `salt` and on their place, none of them [`CANARY`].
pub fn pattern(salt: u64, len: usize) -> Vec<u8> {
    let start = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..len as u64).map(|i| (start.wrapping_add(i.wrapping_mul(37)) % 251) as u8).collect()
}

/// The content of memory where nothing was written.
pub const CANARY: u8 = 0xfe;

/// Fills a whole region.
pub fn fill(region: &impl Region, bytes: &[u8]) {
    region.write(0, bytes);
}

/// Copies a whole region out.
pub fn contents(region: &impl Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.read(0, &mut bytes);
    bytes
}

/// Says where two byte strings differ first; the strings themselves are too long to print.
///
/// # Panics
/// Where they differ.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], what: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), expected.len(), "lengths, {what:?}");
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        let (found, expected) = (found[at], expected[at]);
        panic!("byte {at} is {found:#04x} instead of {expected:#04x}, {what:?}");
    }
}
