//! CRC-32C by the processor's instructions.
//!
//! One instruction takes eight bytes and returns its result after three cycles, and another one can
//! begin in each cycle. So three parts of the bytes are summed side by side, and the sums are
//! combined by a multiplication each.
//!
//! ```text
//!   |---- first ----|---- second ----|---- third ----|- rest -|
//!     sum * x^(2n)  +   sum * x^n    +      sum                    of n bits each, modulo P
//! ```

/// The sum, on processors with the instructions; None on others.
pub(crate) fn crc32c(bytes: &[u8]) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    {
        let is_able = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
        // SAFETY: the processor has what the function needs.
        is_able.then(|| unsafe { x86::crc32c(bytes) })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = bytes;
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    };

    /// The polynomial without its highest power; the lowest power is in the highest bit.
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    /// Words of the longest part.
    const PART_MAX: usize = 128;
    /// Words of the shortest part: for shorter ones, combining the sums takes longer than it saves.
    const PART_MIN: usize = 8;
    /// For each n, x^(64 n - 33) modulo the polynomial. A product lies one bit lower than its
    /// factors, and the instruction multiplies it by x^32.
    const SHIFTS: [u32; 2 * PART_MAX + 1] = shifts();

    const fn shifts() -> [u32; 2 * PART_MAX + 1] {
        let mut shifts = [0; 2 * PART_MAX + 1];
        // x^31, then x^(31 + 64), and so on.
        let mut power = 1;
        let mut words = 1;
        while words < shifts.len() {
            shifts[words] = power;
            let mut bit = 0;
            while bit < 64 {
                let carry = if power & 1 == 1 { POLYNOMIAL } else { 0 };
                power = power >> 1 ^ carry;
                bit += 1;
            }
            words += 1;
        }
        shifts
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        let (mut words, rest) = bytes.as_chunks();
        let mut sum = u64::from(u32::MAX);
        while words.len() >= 3 * PART_MIN {
            let part = (words.len() / 3).min(PART_MAX);
            let (parts, behind) = words.split_at(3 * part);
            sum = sum_of_three(sum, parts, part);
            words = behind;
        }
        for word in words {
            sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
        }
        let sum = rest.iter().fold(sum as u32, |sum, byte| _mm_crc32_u8(sum, *byte));
        !sum
    }

    /// The sum of three parts of `part` words each.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn sum_of_three(before: u64, words: &[[u8; 8]], part: usize) -> u64 {
        let (first, others) = words.split_at(part);
        let (second, third) = others.split_at(part);
        let (mut a, mut b, mut c) = (before, 0, 0);
        for ((x, y), z) in first.iter().zip(second).zip(third) {
            a = _mm_crc32_u64(a, u64::from_le_bytes(*x));
            b = _mm_crc32_u64(b, u64::from_le_bytes(*y));
            c = _mm_crc32_u64(c, u64::from_le_bytes(*z));
        }
        c ^ _mm_crc32_u64(0, product(a, SHIFTS[2 * part]) ^ product(b, SHIFTS[part]))
    }

    #[target_feature(enable = "pclmulqdq")]
    fn product(a: u64, b: u32) -> u64 {
        let (a, b) = (_mm_cvtsi64_si128(a as i64), _mm_cvtsi64_si128(i64::from(b)));
        _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(a, b)) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    // spec: FRAME-4
    #[test]
    fn the_nine_characters_have_their_sum() {
        let sum = super::crc32c(b"123456789");
        assert!(sum.is_none_or(|sum| sum == 0xE306_9283), "{sum:x?}");
        assert!(super::crc32c(b"").is_none_or(|sum| sum == 0));
    }

    proptest! {
        // spec: FRAME-4
        #[test]
        fn sums_equal_an_independent_implementation(
            bytes in prop::collection::vec(any::<u8>(), 0..9000),
            skipped in 0..16_usize,
        ) {
            let bytes = &bytes[skipped.min(bytes.len())..];
            if let Some(sum) = super::crc32c(bytes) {
                prop_assert_eq!(sum, crc_fast::crc32_iscsi(bytes));
            }
        }
    }
}
