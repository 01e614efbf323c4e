//! Ayre as a provider of libfabric.

pub mod abi;
