//! Numbers as text.

use ayre_sim::report::Interface;

use crate::page::Unit;

/// A share, with as few digits as tell it from others.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let text = format!("{percent:.2}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Picoseconds in the unit that they ask for.
pub(super) fn picos(ps: u64) -> String {
    Unit::Nanoseconds.label(ps as f64 / 1e3)
}

/// Operations in a second, in thousands or millions.
pub(super) fn rate(interface: &Interface) -> String {
    match interface.rate {
        rate if rate >= 1e6 => format!("{:.3} M", rate / 1e6),
        rate => format!("{:.3} k", rate / 1e3),
    }
}

pub(super) fn bandwidth(interface: &Interface) -> String {
    match interface.bandwidth {
        bytes if bytes >= 1e9 => format!("{:.3} GB/s", bytes / 1e9),
        bytes => format!("{:.3} MB/s", bytes / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_no_noughts_at_their_end() {
        assert_eq!([0.5, 0.9999, 1.0, 0.0].map(percent), ["50 %", "99.99 %", "100 %", "0 %"]);
    }
}
