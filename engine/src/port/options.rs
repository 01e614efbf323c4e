//! Options of operations, and their local buffers.
use crate::mem::region::Region;
use ayre_proto::notify::Classes;
use std::io::{IoSlice, IoSliceMut};

/// Options of one operation: the notifications that it raises, their tag and their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostOptions {
    pub(crate) classes: Classes,
    pub(crate) tag: u32,
    pub(crate) value: u64,
}

impl PostOptions {
    /// No notification.
    pub const fn new() -> Self {
        Self { classes: Classes::empty(), tag: 0, value: 0 }
    }

    /// Raises notifications of these classes; those that do not apply to the operation are ignored.
    pub const fn notify(mut self, classes: Classes) -> Self {
        self.classes = self.classes.union(classes);
        self
    }

    /// Raises a requester notification: at this port, when the operation has completed.
    pub const fn requester(self) -> Self {
        self.notify(Classes::REQUESTER)
    }

    /// Raises a completer notification: at the port where the data lands.
    pub const fn completer(self) -> Self {
        self.notify(Classes::COMPLETER)
    }

    /// Raises a responder notification: at the port where data was read.
    pub const fn responder(self) -> Self {
        self.notify(Classes::RESPONDER)
    }

    /// Sets the tag of the notifications.
    pub const fn tag(mut self, tag: u32) -> Self {
        self.tag = tag;
        self
    }

    /// Sets the value of the notifications.
    pub const fn value(mut self, value: u64) -> Self {
        self.value = value;
        self
    }
}

impl Default for PostOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A part of a region of this port, as the local buffer of an operation.
#[derive(Clone, Copy, Debug)]
pub struct LocalSlice<'a> {
    pub(crate) region: &'a Region,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Region {
    /// A part of the region as a local buffer. Data is copied from region to region without an
    /// intermediate copy.
    ///
    /// # Panics
    /// Panics if the range exceeds the region.
    pub fn slice(&self, range: std::ops::Range<usize>) -> LocalSlice<'_> {
        let fits = range.start <= range.end && range.end <= self.len();
        assert!(fits, "{range:?} leaves a region of {} bytes", self.len());
        LocalSlice {
            region: self,
            offset: range.start as u64,
            len: (range.end - range.start) as u64,
        }
    }
}

/// The source of a put's data.
#[derive(Clone, Copy, Debug)]
pub enum PutSource<'a> {
    /// Private memory of the program.
    Bytes(&'a [u8]),
    /// Several pieces of private memory, which count as one, in their order.
    Slices(&'a [IoSlice<'a>]),
    /// Registered memory.
    Region(LocalSlice<'a>),
}

/// The destination of a get's data.
#[derive(Debug)]
pub enum GetDestination<'a> {
    /// Private memory of the program: the call returns when the data is there.
    Bytes(&'a mut [u8]),
    /// Several pieces of private memory, which count as one, in their order. The call returns when
    /// the data is there.
    Slices(&'a mut [IoSliceMut<'a>]),
    /// Registered memory: the call does not wait for the data.
    Region(LocalSlice<'a>),
}

impl<'a> From<&'a [u8]> for PutSource<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for PutSource<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for PutSource<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a [IoSlice<'a>]> for PutSource<'a> {
    fn from(slices: &'a [IoSlice<'a>]) -> Self {
        Self::Slices(slices)
    }
}

impl<'a> From<LocalSlice<'a>> for PutSource<'a> {
    fn from(slice: LocalSlice<'a>) -> Self {
        Self::Region(slice)
    }
}

impl<'a> From<&'a mut [u8]> for GetDestination<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a mut [u8; N]> for GetDestination<'a> {
    fn from(bytes: &'a mut [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a mut Vec<u8>> for GetDestination<'a> {
    fn from(bytes: &'a mut Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a mut [IoSliceMut<'a>]> for GetDestination<'a> {
    fn from(slices: &'a mut [IoSliceMut<'a>]) -> Self {
        Self::Slices(slices)
    }
}

impl<'a> From<LocalSlice<'a>> for GetDestination<'a> {
    fn from(slice: LocalSlice<'a>) -> Self {
        Self::Region(slice)
    }
}

impl PutSource<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Slices(slices) => sum(slices.iter().map(|slice| slice.len())),
            Self::Region(slice) => slice.len,
        }
    }
}

impl GetDestination<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Slices(slices) => sum(slices.iter().map(|slice| slice.len())),
            Self::Region(slice) => slice.len,
        }
    }
}

/// A sum of lengths. No memory is as long as the greatest number.
fn sum(lens: impl Iterator<Item = usize>) -> u64 {
    lens.fold(0, |sum: u64, len| sum.saturating_add(len as u64))
}
