//! Quantities as text: numbers with their units, read without rounding.
use crate::time::Time;
use std::fmt;
use thiserror::Error;

/// A span of time, as a file gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// In picoseconds.
    Picos(u64),
    /// In cycles of the links, of which each moves a phit.
    Cycles(u64),
}

/// How fast a link is, as a file gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bits in a second.
    Bits(u64),
    /// Phits in a second: the frequency of a link's clock.
    Phits(u64),
}

/// Why a text is no quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// It does not begin with a number.
    #[error("there is no number; write it like {0}")]
    NoNumber(&'static str),
    /// The unit is missing or unknown.
    #[error("`{unit}` is no unit of {of}; the units are {units}")]
    Unit {
        /// The text behind the number.
        unit: String,
        /// The kind of quantity.
        of: &'static str,
        /// The units that there are.
        units: String,
    },
    /// The smallest unit is not fine enough.
    #[error("it is no whole number of {0}")]
    NotWhole(&'static str),
    /// The number is too large.
    #[error("the number is too large")]
    TooLarge,
    /// A link that is too fast for whole picoseconds.
    #[error("a phit of {width} B would take less than 1 ps; a larger `width` takes longer")]
    TooFast {
        /// Bytes of a phit.
        width: u32,
    },
}

/// Units of one kind of quantity, each with what it has of the smallest one.
type Units = &'static [(&'static str, u64)];

const BYTES: Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const TIMES: Units =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const BIT_RATES: Units = &[
    ("b/s", 1),
    ("kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
    ("MiB/s", 8 << 20),
    ("GiB/s", 8 << 30),
];
const FREQUENCIES: Units = &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];

/// A decimal number: `digits` divided by ten to the power of `decimals`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: u128,
    decimals: u32,
}

/// Digits at most, so that no product exceeds 128 bits.
const DIGITS_MAX: usize = 20;

impl Decimal {
    /// This number of a unit, in the smallest one.
    fn times(self, factor: u64, smallest: &'static str) -> Result<u64, UnitError> {
        let product = self.digits * u128::from(factor);
        let divisor = 10_u128.pow(self.decimals);
        if !product.is_multiple_of(divisor) {
            return Err(UnitError::NotWhole(smallest));
        }
        u64::try_from(product / divisor).map_err(|_| UnitError::TooLarge)
    }
}

/// Parts a text into its number and its unit.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(Decimal, &'a str), UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(UnitError::NoNumber(example));
    }
    if whole.len() + fraction.len() > DIGITS_MAX {
        return Err(UnitError::TooLarge);
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| UnitError::TooLarge)?;
    Ok((Decimal { digits, decimals: fraction.len() as u32 }, unit.trim()))
}

fn factor(units: Units, unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn unknown(unit: &str, of: &'static str, units: &[Units], more: &[&'static str]) -> UnitError {
    let names = units.iter().flat_map(|units| units.iter().map(|(name, _)| *name));
    let units = names.chain(more.iter().copied()).collect::<Vec<_>>().join(", ");
    UnitError::Unit { unit: unit.to_owned(), of, units }
}

/// Reads a length such as `64 KiB`, in bytes.
///
/// # Errors
/// See [`UnitError`].
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, "`64 KiB`")?;
    let factor = factor(BYTES, unit).ok_or_else(|| unknown(unit, "lengths", &[BYTES], &[]))?;
    number.times(factor, "bytes")
}

/// Reads a span of time such as `300 ns`, `0.64 us` or `4 cycles`.
///
/// # Errors
/// See [`UnitError`].
pub fn span(text: &str) -> Result<Span, UnitError> {
    let (number, unit) = split(text, "`300 ns` or `4 cycles`")?;
    if matches!(unit, "cycle" | "cycles") {
        return Ok(Span::Cycles(number.times(1, "cycles")?));
    }
    let factor = factor(TIMES, unit).ok_or_else(|| unknown(unit, "time", &[TIMES], &["cycles"]))?;
    Ok(Span::Picos(number.times(factor, "picoseconds")?))
}

/// Reads the rate of a link, such as `2.5 Gb/s` or `10 GB/s`; a frequency such as `156.25 MHz` is
/// that of its phits.
///
/// # Errors
/// See [`UnitError`].
pub fn rate(text: &str) -> Result<Rate, UnitError> {
    let (number, unit) = split(text, "`2.5 Gb/s` or `156.25 MHz`")?;
    if let Some(factor) = factor(FREQUENCIES, unit) {
        return Ok(Rate::Phits(number.times(factor, "hertz")?));
    }
    let factor = factor(BIT_RATES, unit)
        .ok_or_else(|| unknown(unit, "rates", &[BIT_RATES, FREQUENCIES], &[]))?;
    Ok(Rate::Bits(number.times(factor, "bits in a second")?))
}

/// Reads the rate of a clock such as `156.25 MHz`, in hertz.
///
/// # Errors
/// See [`UnitError`].
pub fn frequency(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, "`156.25 MHz`")?;
    let factor =
        factor(FREQUENCIES, unit).ok_or_else(|| unknown(unit, "clocks", &[FREQUENCIES], &[]))?;
    number.times(factor, "hertz")
}

/// Reads a share such as `10 %` or `0.1`.
///
/// # Errors
/// See [`UnitError`].
pub fn share(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let begins = number.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let number = number.parse::<f64>().ok().filter(|number| begins && number.is_finite());
    Ok(number.ok_or(UnitError::NoNumber("`10 %` or `0.1`"))? / whole)
}

impl Span {
    /// In picoseconds, where a cycle takes this time.
    pub fn time(self, cycle: Time) -> Time {
        match self {
            Self::Picos(picos) => Time(picos),
            Self::Cycles(cycles) => Time(cycles.saturating_mul(cycle.0)),
        }
    }
}

impl Rate {
    /// The time of a phit of `width` bytes, and how far it is off: times are whole picoseconds, so
    /// the nearest one stands for the exact time. The error is a share of that.
    ///
    /// # Errors
    /// See [`UnitError::TooFast`].
    pub fn phit(self, width: u32) -> Result<(Time, f64), UnitError> {
        const PICOS: u128 = 1_000_000_000_000;
        let (dividend, divisor) = match self {
            Self::Bits(bits) => (u128::from(width) * 8 * PICOS, u128::from(bits)),
            Self::Phits(phits) => (PICOS, u128::from(phits)),
        };
        if divisor == 0 {
            return Err(UnitError::NoNumber("a rate above zero"));
        }
        if dividend < divisor {
            return Err(UnitError::TooFast { width });
        }
        let picos = (2 * dividend + divisor) / (2 * divisor);
        let picos = u64::try_from(picos).map_err(|_| UnitError::TooLarge)?;
        let exact = dividend as f64 / divisor as f64;
        Ok((Time(picos), picos as f64 / exact - 1.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Picos(picos) => Time(*picos).fmt(f),
            Self::Cycles(cycles) => write!(f, "{cycles} cycles"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(bytes("64 KiB"), Ok(65_536));
        assert_eq!(bytes("2.5kB"), Ok(2_500));
        assert_eq!(span("0.64 us"), Ok(Span::Picos(640_000)));
        assert_eq!(span("12 cycles"), Ok(Span::Cycles(12)));
        assert_eq!(rate("156.25 MHz"), Ok(Rate::Phits(156_250_000)));
        assert_eq!(frequency("156.25 MHz"), Ok(156_250_000));
        assert_eq!(rate("10 GB/s"), rate("80 Gb/s"));
        assert_eq!(share("10 %"), Ok(0.1));
        assert_eq!(share("0.25"), Ok(0.25));
    }

    #[test]
    fn rates_become_whole_picoseconds() {
        let phit = |text, width| rate(text).and_then(|rate| rate.phit(width));
        assert_eq!(phit("2.5 Gb/s", 1), Ok((Time(3_200), 0.0)));
        assert_eq!(phit("156.25 MHz", 16), Ok((Time(6_400), 0.0)));
        let (third, error) = phit("3 Gb/s", 1).unwrap();
        assert_eq!(third, Time(2_667));
        assert!((error - 0.000_125).abs() < 1e-9, "{error}");
        assert_eq!(phit("100 Tb/s", 1), Err(UnitError::TooFast { width: 1 }));
        assert_eq!(phit("100 Tb/s", 16).map(|(time, _)| time), Ok(Time(1)));
        assert!(phit("0 b/s", 1).is_err());
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        assert_eq!(bytes("0.3 B"), Err(UnitError::NotWhole("bytes")));
        assert_eq!(span("0.5 ps"), Err(UnitError::NotWhole("picoseconds")));
        assert!(matches!(span("300"), Err(UnitError::Unit { .. })));
        assert!(matches!(bytes("ten B"), Err(UnitError::NoNumber(_))));
        assert!(matches!(bytes("1.2.3 B"), Err(UnitError::NoNumber(_))));
        assert!(matches!(bytes("-1 B"), Err(UnitError::NoNumber(_))));
        assert_eq!(bytes("99999999999999999999 GiB"), Err(UnitError::TooLarge));
        for text in ["nan", "inf", "1e999", "", "%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_of_picoseconds_comes_back(picos in any::<u64>()) {
            let text = format!("{}.{:03} ns", picos / 1000, picos % 1000);
            prop_assert_eq!(span(&text), Ok(Span::Picos(picos)));
        }

        #[test]
        fn no_text_is_too_much(text in ".{0,40}") {
            let _ = (bytes(&text), span(&text), rate(&text), frequency(&text), share(&text));
        }
    }
}
