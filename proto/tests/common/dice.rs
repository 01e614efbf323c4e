//! The random numbers of the tests: everything follows from one seed.
#![allow(unused_imports, dead_code, reason = "each test takes what it needs")]
pub(crate) use ayre_netsim::Dice;

/// How many networks a test tries: `SEEDS` in the environment, or the test's own number.
pub(crate) fn seeds(default: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
