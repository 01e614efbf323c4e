//! CRC-32C.
use crate::sys;

/// The number of bytes from which on the library's code for wide registers is faster.
const LONG: usize = 1024;

/// The CRC that frames carry.
// spec: FRAME-4
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let own = if bytes.len() < LONG { sys::crc32c(bytes) } else { None };
    own.unwrap_or_else(|| crc_fast::crc32_iscsi(bytes))
}
