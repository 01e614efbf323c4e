//! Memory of a program in a test.
use ayre_proto::endpoint::Memory;
use std::cell::RefCell;
use std::rc::Rc;

/// Memory that outlives the operations on it.
pub(crate) type Home = Rc<RefCell<Vec<u8>>>;

/// An operation's hold of it: what is written comes home when the operation is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Option<Home>,
    /// Where the second of two ranges begins; 0 where there is one.
    cut: usize,
}

impl Buffer {
    /// Memory that is read.
    pub(crate) fn of(bytes: Vec<u8>, cut: usize) -> Self {
        Self { cut: if cut < bytes.len() { cut } else { 0 }, bytes, home: None }
    }

    /// Memory that is written.
    pub(crate) fn at(home: &Home, cut: usize) -> Self {
        let bytes = home.borrow().clone();
        let mut buffer = Self::of(bytes, cut);
        buffer.home = Some(Rc::clone(home));
        buffer
    }

    fn end(&self, offset: usize, max: usize) -> usize {
        let end = if offset < self.cut { self.cut } else { self.bytes.len() };
        end.min(offset + max)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.borrow_mut().copy_from_slice(&self.bytes);
        }
    }
}

impl Memory for Buffer {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn whole(&self) -> Option<&[u8]> {
        (self.cut == 0).then_some(&self.bytes)
    }

    fn piece(&self, offset: usize, max: usize) -> &[u8] {
        self.bytes.get(offset..self.end(offset, max)).unwrap_or_default()
    }

    fn piece_mut(&mut self, offset: usize, max: usize) -> &mut [u8] {
        let end = self.end(offset, max);
        self.bytes.get_mut(offset..end).unwrap_or_default()
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes[offset..offset + into.len()]);
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        let room = self.bytes.len().saturating_sub(offset).min(from.len());
        self.bytes[offset..offset + room].copy_from_slice(&from[..room]);
    }
}
