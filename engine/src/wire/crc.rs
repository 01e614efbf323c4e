//! CRC-32C.

/// The CRC that frames carry.
// spec: FRAME-4
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}
