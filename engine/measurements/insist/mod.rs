//! Posting again until there is room.
use ayre::{Port, PostError};

/// Repeats a call while it is refused with Busy, and makes progress meanwhile.
pub(crate) fn insist<T>(
    port: &mut Port,
    mut call: impl FnMut(&mut Port) -> Result<T, PostError>,
) -> Result<T, PostError> {
    loop {
        match call(port) {
            Err(PostError::Busy(_)) => port.progress(),
            result => return result,
        }
    }
}
