//! Timed machines against references that are slow and obviously right.
//!
//! A reference has no events. It goes from one picosecond to the next, and asks each part whether
//! it has something to do there. It is written from the documented rules.
mod machine;
mod reliable;
mod retry;
