//! Ayre under the interface of UCX: the beginning of a `libucp` that programs load unchanged.
//!
//! Its files are its layers, from the bottom to the top; each imports only from those before it:
//!
//! | file | subject |
//! |---|---|
//! | [`abi`] | the binary interface of UCP, declared |
//! | [`status`] | the status for each error of the engine |

pub mod abi;
pub mod status;
