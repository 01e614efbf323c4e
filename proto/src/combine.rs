//! Operations and number types: the one table of them, under atomics on words ([`crate::alu`]),
//! updates of endpoints' memory regions ([`crate::rma`]) and collectives.
//!
//! `Combine::of` says how an operation combines two numbers; [`Combine::apply`] does it to the
//! numbers of a memory. There they lie one behind the other, little-endian, and need not be
//! aligned. Everything here is total: an undefined combination leaves the memory as it is.
use core::cmp::Ordering;

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Number {
    /// 8 bits, two's complement.
    I8 = 1,
    /// 8 bits, unsigned.
    U8 = 2,
    /// 16 bits, two's complement.
    I16 = 3,
    /// 16 bits, unsigned.
    U16 = 4,
    /// 32 bits, two's complement.
    I32 = 5,
    /// 32 bits, unsigned.
    U32 = 6,
    /// 64 bits, two's complement.
    I64 = 7,
    /// 64 bits, unsigned.
    U64 = 8,
    /// 32 bits, IEEE 754.
    F32 = 9,
    /// 64 bits, IEEE 754.
    F64 = 10,
    /// Complex, of two [`Number::F32`]: real part, imaginary part.
    C32 = 11,
    /// Complex, of two [`Number::F64`].
    C64 = 12,
}

impl Number {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::C32,
        Self::C64,
    ];

    /// The code that travels.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=12 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Bytes: a power of two, and said as one, so that dividing by it is a shift.
    pub const fn size(self) -> usize {
        1 << match self {
            Self::I8 | Self::U8 => 0,
            Self::I16 | Self::U16 => 1,
            Self::I32 | Self::U32 | Self::F32 => 2,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 => 3,
            Self::C64 => 4,
        }
    }

    const fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    const fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64 | Self::C32 | Self::C64)
    }
}

const _: () = {
    let mut at = 0;
    while at < Number::ALL.len() {
        assert!(Number::ALL[at].code() as usize == at + 1, "each once, in the order of the codes");
        at += 1;
    }
};

/// The condition on a comparand and the number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal to it.
    Eq,
    /// Not equal to it.
    Ne,
    /// Less, or equal.
    Le,
    /// Less.
    Lt,
    /// Greater, or equal.
    Ge,
    /// Greater.
    Gt,
}

impl Comparison {
    pub(crate) const fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Eq => matches!(order, Some(Ordering::Equal)),
            Self::Ne => !matches!(order, Some(Ordering::Equal)),
            Self::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Lt => matches!(order, Some(Ordering::Less)),
            Self::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Gt => matches!(order, Some(Ordering::Greater)),
        }
    }
}

/// The operation on a number in memory and an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The smaller one; what is in memory, where they cannot be compared.
    Min,
    /// The greater one; what is in memory, where they cannot be compared.
    Max,
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Prod,
    /// 1 if either is not 0, else 0.
    LOr,
    /// 1 if neither is 0, else 0.
    LAnd,
    /// Bitwise or.
    BOr,
    /// Bitwise and.
    BAnd,
    /// 1 if exactly one is not 0, else 0.
    LXor,
    /// Bitwise exclusive or.
    BXor,
    /// Leaves the number as it is; there is no operand.
    Read,
    /// The operand.
    Write,
    /// Stores the operand if this condition holds for the comparand and the number in memory.
    CompareSwap(Comparison),
    /// The operand's bits where the comparand's are 1; those in memory elsewhere.
    MaskedSwap,
}

impl Combine {
    /// Each once, in the order of their codes.
    pub const ALL: [Self; 19] = [
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Prod,
        Self::LOr,
        Self::LAnd,
        Self::BOr,
        Self::BAnd,
        Self::LXor,
        Self::BXor,
        Self::Read,
        Self::Write,
        Self::CompareSwap(Comparison::Eq),
        Self::CompareSwap(Comparison::Ne),
        Self::CompareSwap(Comparison::Le),
        Self::CompareSwap(Comparison::Lt),
        Self::CompareSwap(Comparison::Ge),
        Self::CompareSwap(Comparison::Gt),
        Self::MaskedSwap,
    ];

    /// The code that travels.
    pub const fn code(self) -> u8 {
        match self {
            Self::Min => 1,
            Self::Max => 2,
            Self::Sum => 3,
            Self::Prod => 4,
            Self::LOr => 5,
            Self::LAnd => 6,
            Self::BOr => 7,
            Self::BAnd => 8,
            Self::LXor => 9,
            Self::BXor => 10,
            Self::Read => 11,
            Self::Write => 12,
            Self::CompareSwap(relation) => 13 + relation as u8,
            Self::MaskedSwap => 19,
        }
    }

    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=19 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Whether there is an operand.
    pub const fn has_operand(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether there is a comparand.
    pub const fn has_comparand(self) -> bool {
        matches!(self, Self::CompareSwap(_) | Self::MaskedSwap)
    }

    /// Whether it is defined for such numbers: bits are of integers only, and complex numbers have
    /// no order.
    pub const fn is_defined(self, number: Number) -> bool {
        match self {
            Self::BOr | Self::BAnd | Self::BXor | Self::MaskedSwap => number.is_integer(),
            Self::Min | Self::Max => !number.is_complex(),
            Self::CompareSwap(Comparison::Eq | Comparison::Ne) => true,
            Self::CompareSwap(_) => !number.is_complex(),
            _ => true,
        }
    }

    /// Whether it makes one number of two, for such numbers.
    // spec: COLL-5
    #[inline]
    pub const fn is_operation(self, number: Number) -> bool {
        let takes_two = !matches!(self, Self::Read | Self::Write) && !self.has_comparand();
        takes_two && self.is_defined(number)
    }

    /// Makes of each number in memory what it says. Operand and comparand, where there are such,
    /// are as long as the memory; numbers for which there is none stay.
    // spec: ENV-29
    pub fn apply(self, number: Number, memory: &mut [u8], operand: &[u8], compare: &[u8]) {
        match self {
            _ if !self.is_defined(number) => {}
            Self::MaskedSwap => {
                for ((old, new), mask) in memory.iter_mut().zip(operand).zip(compare) {
                    *old = new & mask | *old & !mask;
                }
            }
            Self::CompareSwap(relation) => swap(relation, number, memory, (operand, compare)),
            _ => self.calculate(number, memory, operand),
        }
    }

    /// The new value of a number in memory, for the operations without a comparand.
    // spec: ATOM-1, ENV-29
    #[inline(always)]
    pub(crate) fn of<T: Element>(self, old: T, new: T) -> T {
        match self {
            Self::Min if new.order(old) == Some(Ordering::Less) => new,
            Self::Max if new.order(old) == Some(Ordering::Greater) => new,
            Self::Sum => old.sum(new),
            Self::Prod => old.product(new),
            Self::LOr => T::of_truth(old.truth() | new.truth()),
            Self::LAnd => T::of_truth(old.truth() & new.truth()),
            Self::LXor => T::of_truth(old.truth() ^ new.truth()),
            Self::BOr => old.bits(new, |old, new| old | new),
            Self::BAnd => old.bits(new, |old, new| old & new),
            Self::BXor => old.bits(new, |old, new| old ^ new),
            Self::Write => new,
            Self::Min | Self::Max | Self::Read | Self::CompareSwap(_) | Self::MaskedSwap => old,
        }
    }

    fn calculate(self, number: Number, memory: &mut [u8], operand: &[u8]) {
        match number {
            Number::I8 => self.on::<i8>(memory, operand),
            Number::U8 => self.on::<u8>(memory, operand),
            Number::I16 => self.on::<i16>(memory, operand),
            Number::U16 => self.on::<u16>(memory, operand),
            Number::I32 => self.on::<i32>(memory, operand),
            Number::U32 => self.on::<u32>(memory, operand),
            Number::I64 => self.on::<i64>(memory, operand),
            Number::U64 => self.on::<u64>(memory, operand),
            Number::F32 => self.on::<f32>(memory, operand),
            Number::F64 => self.on::<f64>(memory, operand),
            Number::C32 => self.on::<Complex<f32>>(memory, operand),
            Number::C64 => self.on::<Complex<f64>>(memory, operand),
        }
    }

    /// A loop for each, so that a processor does several numbers at a time.
    fn on<T: Element>(self, memory: &mut [u8], operand: &[u8]) {
        macro_rules! loops {
            ($($op:ident)*) => {
                match self {
                    $(Self::$op => each(memory, operand, |old: T, new| Self::$op.of(old, new)),)*
                    Self::Read | Self::CompareSwap(_) | Self::MaskedSwap => {}
                }
            };
        }
        loops!(Min Max Sum Prod LOr LAnd BOr BAnd LXor BXor Write);
    }
}

const _: () = {
    let mut at = 0;
    while at < Combine::ALL.len() {
        assert!(Combine::ALL[at].code() as usize == at + 1, "each once, in the order of the codes");
        at += 1;
    }
};

fn each<T: Element>(memory: &mut [u8], operand: &[u8], what: impl Fn(T, T) -> T) {
    debug_assert!(memory.len().is_multiple_of(T::SIZE), "numbers are whole");
    let pairs = memory.chunks_exact_mut(T::SIZE).zip(operand.chunks_exact(T::SIZE));
    pairs.for_each(|(old, new)| what(T::read(old), T::read(new)).write(old));
}

fn swap(relation: Comparison, number: Number, memory: &mut [u8], operands: (&[u8], &[u8])) {
    let order = match number {
        Number::I8 => order_of::<i8>,
        Number::U8 => order_of::<u8>,
        Number::I16 => order_of::<i16>,
        Number::U16 => order_of::<u16>,
        Number::I32 => order_of::<i32>,
        Number::U32 => order_of::<u32>,
        Number::I64 => order_of::<i64>,
        Number::U64 => order_of::<u64>,
        Number::F32 => order_of::<f32>,
        Number::F64 => order_of::<f64>,
        Number::C32 => order_of::<Complex<f32>>,
        Number::C64 => order_of::<Complex<f64>>,
    };
    let size = number.size();
    let pairs = operands.0.chunks_exact(size).zip(operands.1.chunks_exact(size));
    for (old, (new, compare)) in memory.chunks_exact_mut(size).zip(pairs) {
        if relation.holds(order(compare, old)) {
            old.copy_from_slice(new);
        }
    }
}

fn order_of<T: Element>(left: &[u8], right: &[u8]) -> Option<Ordering> {
    T::read(left).order(T::read(right))
}

/// A number; its slices are as long as it is.
pub(crate) trait Element: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    /// None where they cannot be compared.
    fn order(self, other: Self) -> Option<Ordering>;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn truth(self) -> bool;
    fn of_truth(truth: bool) -> Self;
    /// For integers only: other numbers stay.
    fn bits(self, _other: Self, _what: impl Fn(u64, u64) -> u64) -> Self {
        self
    }
}

macro_rules! element {
    ($number:ty, $zero:expr, $one:expr, $sum:expr, $product:expr $(, $more:item)?) => {
        impl Element for $number {
            const SIZE: usize = size_of::<Self>();

            fn read(bytes: &[u8]) -> Self {
                let mut whole = [0; Self::SIZE];
                whole.copy_from_slice(bytes);
                Self::from_le_bytes(whole)
            }

            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn order(self, other: Self) -> Option<Ordering> {
                self.partial_cmp(&other)
            }

            fn sum(self, other: Self) -> Self {
                $sum(self, other)
            }

            fn product(self, other: Self) -> Self {
                $product(self, other)
            }

            fn truth(self) -> bool {
                self != $zero
            }

            fn of_truth(truth: bool) -> Self {
                if truth { $one } else { $zero }
            }

            $($more)?
        }
    };
}

macro_rules! integers {
    ($($number:ident)*) => {
        $(element!($number, 0, 1, $number::wrapping_add, $number::wrapping_mul,
            fn bits(self, other: Self, what: impl Fn(u64, u64) -> u64) -> Self {
                what(self as u64, other as u64) as Self
            }
        );)*
    };
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);
element!(f32, 0.0, 1.0, |a, b| a + b, |a, b| a * b);
element!(f64, 0.0, 1.0, |a, b| a + b, |a, b| a * b);

#[derive(Clone, Copy)]
struct Complex<T> {
    real: T,
    imaginary: T,
}

macro_rules! complex {
    ($part:ty) => {
        impl Element for Complex<$part> {
            const SIZE: usize = 2 * size_of::<$part>();

            fn read(bytes: &[u8]) -> Self {
                let (real, imaginary) = bytes.split_at(size_of::<$part>());
                Self { real: <$part>::read(real), imaginary: <$part>::read(imaginary) }
            }

            fn write(self, bytes: &mut [u8]) {
                let (real, imaginary) = bytes.split_at_mut(size_of::<$part>());
                self.real.write(real);
                self.imaginary.write(imaginary);
            }

            fn order(self, other: Self) -> Option<Ordering> {
                let is_equal = self.real == other.real && self.imaginary == other.imaginary;
                is_equal.then_some(Ordering::Equal)
            }

            fn sum(self, other: Self) -> Self {
                let real = self.real + other.real;
                Self { real, imaginary: self.imaginary + other.imaginary }
            }

            fn product(self, other: Self) -> Self {
                let Self { real, imaginary } = self;
                Self {
                    real: real * other.real - imaginary * other.imaginary,
                    imaginary: real * other.imaginary + imaginary * other.real,
                }
            }

            fn truth(self) -> bool {
                self.real.truth() || self.imaginary.truth()
            }

            fn of_truth(truth: bool) -> Self {
                Self { real: <$part>::of_truth(truth), imaginary: 0.0 }
            }
        }
    };
}
complex!(f32);
complex!(f64);
