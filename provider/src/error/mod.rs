//! Errors: as numbers, which calls return, and in words.

mod code;
pub(crate) mod trouble;

pub(crate) use code::{Code, Outcome, counted, posted, status};
