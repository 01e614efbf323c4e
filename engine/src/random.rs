//! Numbers that nobody can guess.
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes come at once, and whole.
const BYTES_MAX: usize = 256;

/// Fills with bytes of the system's. A generator of our own would first gather entropy, for longer
/// than all else takes that an endpoint does to be opened.
pub(crate) fn fill(bytes: &mut [u8]) {
    for part in bytes.chunks_mut(BYTES_MAX) {
        let got = loop {
            match getrandom(&mut *part, GetRandomFlags::empty()) {
                // Only while the system has just been started, and has no entropy yet.
                Err(Errno::INTR) => (),
                got => break got,
            }
        };
        assert_eq!(got, Ok(part.len()), "the system gives random numbers");
    }
}

/// So many new ones.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
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
