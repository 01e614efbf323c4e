//! Memory of the program that remotes access at the same time as others, the program included.
//!
//! As with mappings, no reference points into it: bytes are copied in and out by address.
use super::bytes;
use super::map::Mapping;
use super::span::Span;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Consecutive ranges of memory, which stay valid until this value is dropped.
#[derive(Debug)]
pub(crate) struct Exposed {
    parts: Vec<Span>,
    len: u64,
}

impl Exposed {
    /// The ranges as one; None where the sum of their lengths overflows.
    pub(crate) fn new(parts: Vec<Span>) -> Option<Self> {
        let len = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len() as u64))?;
        Some(Self { parts, len })
    }

    /// The length in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Copies bytes into it.
    #[inline]
    pub(crate) fn write(&self, at: u64, from: &[u8]) {
        match self.in_first(at, from.len()) {
            // SAFETY: it has this number of bytes. They are writable: only writable memory is given
            // the right to write.
            Some(place) => unsafe { bytes::copy_any(from.as_ptr(), place, from.len()) },
            None => self.write_apart(at, from),
        }
    }

    /// Copies bytes out of it.
    #[inline]
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) {
        match self.in_first(at, into.len()) {
            // SAFETY: as in write, with the roles exchanged.
            Some(place) => unsafe { bytes::copy_any(place, into.as_mut_ptr(), into.len()) },
            None => self.read_apart(at, into),
        }
    }

    /// Makes something of a number of 4 or 8 bytes that lies aligned, in one step for all processes
    /// that have the memory mapped. `old` becomes what was there; what stays is not written. False
    /// where the number is no such one, and nothing was done.
    // spec: ENV-28
    #[inline]
    pub(crate) fn update_word(&self, at: u64, old: &mut [u8], make: impl Fn(&mut [u8])) -> bool {
        macro_rules! step {
            ($atomic:ty, $number:ty, $place:expr) => {{
                // SAFETY: as many bytes as the number has, and aligned. They are writable wherever
                // they are to change, and an atomic may be shared with anybody.
                let word = unsafe { &*$place.cast::<$atomic>() };
                let change = |before: $number| {
                    let mut number = before.to_le_bytes();
                    make(&mut number);
                    let after = <$number>::from_le_bytes(number);
                    (after != before).then_some(after)
                };
                // Every remote atomic both releases and acquires, LOCK-R1 and LOCK-A1 in one.
                let (Ok(before) | Err(before)) =
                    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
                old.copy_from_slice(&before.to_le_bytes());
                true
            }};
        }
        match (self.in_first(at, old.len()), old.len()) {
            (Some(place), 8) if place.addr().is_multiple_of(8) => step!(AtomicU64, u64, place),
            (Some(place), 4) if place.addr().is_multiple_of(4) => step!(AtomicU32, u32, place),
            _ => false,
        }
    }

    /// The address of a range that lies in the first part, as nearly all do.
    #[inline]
    fn in_first(&self, at: u64, len: usize) -> Option<*mut u8> {
        let first = self.parts.first()?;
        let end = at.checked_add(len as u64)?;
        (end <= first.len() as u64).then(|| first.address().wrapping_add(at as usize))
    }

    #[inline(never)]
    fn write_apart(&self, at: u64, from: &[u8]) {
        let mut from = from;
        self.each(at, from.len(), |part, len| {
            let (now, rest) = from.split_at(len);
            // SAFETY: the part has len bytes, which each() has found, writable ones as above.
            unsafe { bytes::copy_any(now.as_ptr(), part, len) };
            from = rest;
        });
    }

    #[inline(never)]
    fn read_apart(&self, at: u64, into: &mut [u8]) {
        let mut done = 0;
        self.each(at, into.len(), |part, len| {
            let now = &mut into[done..done + len];
            // SAFETY: as in write, with the roles exchanged.
            unsafe { bytes::copy_any(part, now.as_mut_ptr(), len) };
            done += len;
        });
    }

    /// Copies bytes from a mapping into it.
    pub(crate) fn write_from(&self, at: u64, from: &Mapping, offset: u64, len: usize) {
        let mut offset = offset;
        self.each(at, len, |part, len| {
            // SAFETY: the part has len bytes, as in write.
            unsafe { from.read_to(offset, part, len) };
            offset += len as u64;
        });
    }

    /// Copies bytes out of it into a mapping.
    pub(crate) fn read_to(&self, at: u64, to: &Mapping, offset: u64, len: usize) {
        let mut offset = offset;
        self.each(at, len, |part, len| {
            // SAFETY: the part has len bytes, as in write.
            unsafe { to.write_of(offset, part, len) };
            offset += len as u64;
        });
    }

    /// Calls `what` with each piece of a range: its address and its length.
    fn each(&self, at: u64, len: usize, mut what: impl FnMut(*mut u8, usize)) {
        assert!(at <= self.len && len as u64 <= self.len - at, "translation admits no other");
        let (mut at, mut left) = (at as usize, len);
        for part in &self.parts {
            if left == 0 {
                return;
            }
            if at >= part.len() {
                at -= part.len();
                continue;
            }
            let now = left.min(part.len() - at);
            what(part.address().wrapping_add(at), now);
            left -= now;
            at = 0;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Others count in the same words at the same time, by the processor's own atomics.
    // spec: ENV-28
    #[test]
    fn an_aligned_number_is_updated_in_one_step() {
        const ROUNDS: u64 = 100_000;
        let words: &'static [AtomicU64; 2] = Box::leak(Box::default());
        let start = words.as_ptr().cast_mut().cast::<u8>();
        // SAFETY: the memory is leaked, so it stays valid for ever.
        let memory = Exposed::new(vec![unsafe { Span::new(start, 16) }]).expect("not too long");
        let plus = |by: u8| {
            move |number: &mut [u8]| {
                let sum = number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                let sum = (sum + u64::from(by)).to_le_bytes();
                number.copy_from_slice(&sum[..number.len()]);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    // Relaxed: numbers are counted, and order nothing.
                    words[0].fetch_add(1, Ordering::Relaxed);
                    words[1].fetch_add(1 << 32, Ordering::Relaxed);
                }
            });
            for _ in 0..ROUNDS {
                assert!(memory.update_word(0, &mut [0; 8], plus(1)));
                assert!(memory.update_word(8, &mut [0; 4], plus(1)));
            }
        });
        // Relaxed: the other thread has been joined.
        let [whole, halves] = [0, 1].map(|at| words[at as usize].load(Ordering::Relaxed));
        assert_eq!((whole, halves), (2 * ROUNDS, ROUNDS << 32 | ROUNDS));
        let mut old = [0; 8];
        assert!(memory.update_word(0, &mut old, plus(0)));
        assert_eq!(u64::from_le_bytes(old), 2 * ROUNDS);
        // Not aligned, of another size, or beyond the end: nothing is done.
        for (at, len) in [(4, 8), (2, 4), (0, 2), (12, 8)] {
            assert!(!memory.update_word(at, &mut vec![0; len], plus(1)), "{at} {len}");
        }
    }

    /// Two parts of eight bytes, with eight bytes between them that are not exposed.
    #[test]
    fn a_range_continues_in_the_next_part_and_skips_the_gap() {
        let start = Box::leak(Box::new([0_u8; 24])).as_mut_ptr();
        // SAFETY: the memory is leaked, so it stays valid for ever.
        let part = |at: usize| unsafe { Span::new(start.add(at), 8) };
        let memory = Exposed::new(vec![part(0), part(16)]).expect("as long as can be");
        for at in 0..=12_u8 {
            let written: [u8; 4] = std::array::from_fn(|index| at + index as u8);
            memory.write(at.into(), &written);
            let mut read = [0; 4];
            memory.read(at.into(), &mut read);
            assert_eq!(read, written);
        }
        let mut all = [0; 16];
        memory.read(0, &mut all);
        assert_eq!(all, std::array::from_fn(|index| index as u8));
        // SAFETY: no other thread accesses it.
        let between = unsafe { std::slice::from_raw_parts(start.add(8), 8) };
        assert_eq!(between, [0; 8]);
    }
}
