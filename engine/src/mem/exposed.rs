//! Memory of the program that remotes work on while others may, the program among them.
//!
//! As with mappings, no reference leads into it: bytes are copied in and out by address.
use super::bytes;
use super::map::Mapping;
use super::span::Span;

/// Ranges of memory, one behind the other, that are there until this value is gone.
#[derive(Debug)]
pub(crate) struct Exposed {
    parts: Vec<Span>,
    len: u64,
}

impl Exposed {
    /// None where they have more bytes than there can be.
    pub(crate) fn new(parts: Vec<Span>) -> Option<Self> {
        let len = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len() as u64))?;
        Some(Self { parts, len })
    }

    /// Bytes in all.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, at: u64, from: &[u8]) {
        let mut from = from;
        self.each(at, from.len(), |part, len| {
            let (now, rest) = from.split_at(len);
            // SAFETY: the part has len bytes, which each() has found; they are writable, as the
            // right to write is given to such only.
            unsafe { bytes::copy_any(now.as_ptr(), part, len) };
            from = rest;
        });
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) {
        let mut done = 0;
        self.each(at, into.len(), |part, len| {
            let now = &mut into[done..done + len];
            // SAFETY: as in write, with the roles exchanged.
            unsafe { bytes::copy_any(part, now.as_mut_ptr(), len) };
            done += len;
        });
    }

    /// Copies bytes in from a mapping.
    pub(crate) fn write_from(&self, at: u64, from: &Mapping, offset: u64, len: usize) {
        let mut offset = offset;
        self.each(at, len, |part, len| {
            // SAFETY: the part has len bytes, as in write.
            unsafe { from.read_to(offset, part, len) };
            offset += len as u64;
        });
    }

    /// Copies bytes out to a mapping.
    pub(crate) fn read_to(&self, at: u64, to: &Mapping, offset: u64, len: usize) {
        let mut offset = offset;
        self.each(at, len, |part, len| {
            // SAFETY: the part has len bytes, as in write.
            unsafe { to.write_of(offset, part, len) };
            offset += len as u64;
        });
    }

    /// The pieces of a range, each as an address and a length.
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
