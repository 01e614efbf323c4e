//! The common part of all objects: finding, closing and waiting.

pub(crate) mod registry;
pub(crate) mod wait;
