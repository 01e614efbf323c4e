//! The offers of the provider and the hints of programs, for `fi_getinfo`.

pub(crate) mod address;
pub(crate) mod atomic;
pub(crate) mod hints;
pub(crate) mod offer;
pub(crate) mod parameters;
