//! Progress, by a program's calls or by the domain's own thread.

pub(crate) mod mover;
pub(crate) mod source;
