//! Private memory to copy from and to.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;

/// Bytes that begin on a page, have been touched, and hold nothing but 0xa5: copies are faster
/// where both ends are aligned, and no measurement meets a page fault.
#[derive(Default)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` bytes.
    pub(crate) fn new(len: usize) -> Self {
        let memory = vec![0xa5; len + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        Self { memory, start, len }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn buffers_begin_on_a_page() {
        for len in [0, 8, 100_000] {
            let mut buffer = Buffer::new(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr().addr() % 4096, 0);
            buffer.fill(1);
        }
    }
}
