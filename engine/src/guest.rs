//! What a library owes to the program whose process it is in, for the skins over this crate:
//! threads in which no signal is handled, and descriptors that are none of the standard streams.
pub use crate::sys::{descriptor, thread};
