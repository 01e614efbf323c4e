//! A range of UDP ports that a firewall lets pass.
use std::fmt;
use std::str::FromStr;

/// A range of UDP ports. Its text is `first-last`, or a single number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// The range from `first` to `last`, both included. `None` if `first` exceeds `last` or is port
    /// 0.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first > 0 && first <= last { Some(Self { first, last }) } else { None }
    }

    /// All ports of the range.
    pub(super) fn all(self) -> impl Iterator<Item = u16> {
        self.first..=self.last
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}

/// The text does not name a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a range of UDP ports is first-last, from 1 to 65535")]
pub struct PortRangeError;

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().map_err(|_| PortRangeError);
        Self::new(number(first)?, number(last)?).ok_or(PortRangeError)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers_or_one() {
        let range = |text: &str| text.parse::<PortRange>().map(|range| range.to_string());
        assert_eq!(range("7000-7010").as_deref(), Ok("7000-7010"));
        assert_eq!(range(" 7000 - 7000 ").as_deref(), Ok("7000-7000"));
        assert_eq!(range("65535").as_deref(), Ok("65535-65535"));
        for wrong in ["", "-", "0-5", "7010-7000", "7000-", "7000-65536", "a", "1-2-3", "-1"] {
            assert_eq!(range(wrong), Err(PortRangeError), "{wrong:?}");
        }
        assert_eq!(PortRange::new(3, 5).unwrap().all().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
