//! The values of collectives: vectors of plain numbers, lent or owned.
use ayre_proto::combine::Number;
use std::any::Any;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type of values that collectives carry: a plain type without padding, of which any bytes are a
/// value.
pub trait Value: FromBytes + IntoBytes + Immutable + Send + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Send + 'static> Value for T {}

/// A type of numbers that collectives combine.
pub trait Summand: Value {
    /// The number format.
    const NUMBER: Number;
}

macro_rules! summands {
    ($($number:ty => $name:ident),*) => {
        $(impl Summand for $number {
            const NUMBER: Number = Number::$name;
        })*
    };
}

summands!(
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f32 => F32, f64 => F64
);

/// Values that a collective changes: `&mut [T]`, or a `Vec<T>` that it gives back.
#[derive(Debug)]
pub struct Values<'a, T>(pub(super) Changed<'a>, PhantomData<T>);

/// Values that a collective reads: `&[T]`, or a `Vec<T>`.
#[derive(Debug)]
pub struct ReadValues<'a, T>(pub(super) Read<'a>, PhantomData<T>);

/// Values of any type that a collective changes.
#[derive(Debug)]
pub(super) enum Changed<'a> {
    Lent(&'a mut [u8]),
    Owned(Box<dyn Owned>),
}

/// Values of any type that a collective reads.
#[derive(Debug)]
pub(super) enum Read<'a> {
    Lent(&'a [u8]),
    Owned(Box<dyn Owned>),
}

/// A vector of values of any type.
pub(super) trait Owned: Send + std::fmt::Debug {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A vector that is `Debug`, although its values need not be.
struct Vector<T>(Vec<T>);

impl<T> std::fmt::Debug for Vector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

impl<T: Value> Owned for Vector<T> {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice().as_mut_bytes()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.0)
    }
}

impl<'a, T: Value> From<&'a mut [T]> for Values<'a, T> {
    fn from(values: &'a mut [T]) -> Self {
        Self(Changed::Lent(values.as_mut_bytes()), PhantomData)
    }
}

impl<T: Value> From<Vec<T>> for Values<'static, T> {
    fn from(values: Vec<T>) -> Self {
        Self(Changed::Owned(Box::new(Vector(values))), PhantomData)
    }
}

impl<'a, T: Value> From<&'a [T]> for ReadValues<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self(Read::Lent(values.as_bytes()), PhantomData)
    }
}

impl<T: Value> From<Vec<T>> for ReadValues<'static, T> {
    fn from(values: Vec<T>) -> Self {
        Self(Read::Owned(Box::new(Vector(values))), PhantomData)
    }
}

impl Changed<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Owned(values) => values.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Owned(values) => values.bytes_mut(),
        }
    }

    /// Returns the vector of the request, or none if the values were lent or are of another type.
    pub(super) fn into_vec<T: Value>(self) -> Option<Vec<T>> {
        match self {
            Self::Lent(_) => None,
            Self::Owned(values) => values.into_any().downcast().ok().map(|values| *values),
        }
    }
}

impl Read<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Owned(values) => values.bytes(),
        }
    }
}
