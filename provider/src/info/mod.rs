//! What there is, and what is wanted of it: what `fi_getinfo` answers by.

pub(crate) mod address;
pub(crate) mod atomic;
pub(crate) mod hints;
pub(crate) mod offer;
pub(crate) mod parameters;
