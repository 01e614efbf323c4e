//! Numbers as bytes, little-endian, as they stand in regions and records.

/// Appends numbers.
pub(crate) fn extend_u32(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    bytes.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
}

/// The numbers that `bytes` hold; an incomplete one at the end is left out.
pub(crate) fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|chunk| u32::from_le_bytes(*chunk))
}

/// As `u32s`.
pub(crate) fn u64s(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Makes `bytes` hold these numbers and nothing else.
pub(crate) fn set_u64(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.clear();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_through_bytes() {
        let mut bytes = Vec::new();
        extend_u32(&mut bytes, [1, u32::MAX]);
        assert_eq!(bytes, [1, 0, 0, 0, 255, 255, 255, 255]);
        bytes.push(9);
        assert_eq!(u32s(&bytes).collect::<Vec<_>>(), [1, u32::MAX]);
        set_u64(&mut bytes, &[7, u64::MAX - 1]);
        assert_eq!(u64s(&bytes).collect::<Vec<_>>(), [7, u64::MAX - 1]);
    }
}
