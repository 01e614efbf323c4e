//! The values of collectives, as words.
use super::words::{Words, hex};
use crate::messenger::Values;
use ayre::collective::Number;
use ayre::collective::{Collective, Value};
use zerocopy::IntoBytes;

/// The type of values that are not combined: only their length counts.
pub(super) const fn opaque<T>() -> Number {
    match size_of::<T>() {
        1 => Number::U8,
        2 => Number::U16,
        4 => Number::U32,
        8 => Number::U64,
        _ => panic!("a value has the size of a number"),
    }
}

/// A request, which [`Asked::read`] reads.
pub(super) fn request<T: Value>(
    (collective, root): (Collective, usize),
    number: Number,
    values: &Values<impl AsRef<[T]>, impl AsRef<[T]>>,
) -> String {
    let (combine, read, changed): (_, &[T], &[T]) = match values {
        Values::None => (0, &[], &[]),
        Values::One(changed) => (0, &[], changed.as_ref()),
        Values::Combined(combine, changed) => (combine.code(), &[], changed.as_ref()),
        Values::Two(read, changed) => (0, read.as_ref(), changed.as_ref()),
    };
    let (read, changed) = (hex(read.as_bytes()), hex(changed.as_bytes()));
    format!("{} {root} {} {combine} {read} {changed}", collective as u8, number.code())
}

/// Values of these bytes.
pub(super) fn values<T: Value>(bytes: &[u8]) -> Vec<T> {
    let values = bytes.chunks_exact(size_of::<T>());
    values.map(|bytes| T::read_from_bytes(bytes).expect("as long as one")).collect()
}

/// A request, as it has come.
pub(super) struct Asked {
    pub(super) collective: Collective,
    pub(super) root: usize,
    pub(super) number: Number,
    combine: u8,
    read: Vec<u8>,
    changed: Vec<u8>,
}

impl Asked {
    pub(super) fn read(words: &mut Words<'_>) -> Self {
        Self {
            collective: words.collective(),
            root: words.number(),
            number: Number::from_code(words.number()).expect("a type of number"),
            combine: words.number(),
            read: words.bytes(),
            changed: words.bytes(),
        }
    }

    pub(super) fn values<T: Value>(&self) -> Values<Vec<T>, Vec<T>> {
        let (read, changed) = (values(&self.read), values(&self.changed));
        match (self.collective, ayre::collective::Combine::from_code(self.combine)) {
            (Collective::Barrier, _) => Values::None,
            (Collective::Broadcast, _) => Values::One(changed),
            (_, Some(combine)) => Values::Combined(combine, changed),
            (_, None) => Values::Two(read, changed),
        }
    }
}
