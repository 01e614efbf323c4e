//! What all objects have in common: how they are found and closed, and how they are waited for.

pub(crate) mod registry;
pub(crate) mod wait;
