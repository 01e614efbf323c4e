//! Random numbers that nobody can guess.
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
#[cfg(feature = "net")]
use zeroize::Zeroizing;

/// The number of bytes that the system returns in one call, and completely.
const BYTES_MAX: usize = 256;

/// Fills the bytes from the system's generator. A generator in this process would have to gather
/// entropy first, which takes longer than the rest of opening an endpoint.
pub(crate) fn fill(bytes: &mut [u8]) {
    for part in bytes.chunks_mut(BYTES_MAX) {
        let got = loop {
            match getrandom(&mut *part, GetRandomFlags::empty()) {
                // Happens only shortly after the system has started, while it has no entropy.
                Err(Errno::INTR) => (),
                got => break got,
            }
        };
        assert_eq!(got, Ok(part.len()), "the system gives random numbers");
    }
}

/// An array of random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// Random words.
pub(crate) fn words<const N: usize>() -> [u64; N] {
    std::array::from_fn(|_| u64::from_ne_bytes(bytes()))
}

/// A secret of `N` bytes in hexadecimal digits, erased from memory when it is dropped.
#[cfg(feature = "net")]
pub(crate) fn secret<const N: usize>() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; N]);
    fill(&mut *bytes);
    Zeroizing::new(hex(&*bytes))
}

/// The bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).expect("four bits are a digit"));
        }
    }
    text
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_new() {
        let (first, second) = (bytes::<1000>(), bytes::<1000>());
        let news = |part: &[u8]| part.iter().any(|byte| *byte != 0);
        assert!(first.chunks(20).all(news) && first != second);
    }
}
