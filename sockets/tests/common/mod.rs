//! Tests of the library run programs of their own with it and without it. This module starts
//! those programs, gives them memory to meet in, and makes their calls.

// Each test binary uses its own part.
#![allow(dead_code)]

/// Runs statements before `main`: a process of a test is the test's binary once more, and takes its
/// role there.
macro_rules! before_main {
    ($($statement:tt)*) => {
        #[used]
        #[allow(clippy::unnecessary_safety_comment, reason = "the attribute is unsafe")]
        // SAFETY: the section holds functions that the C library calls before `main`.
        #[unsafe(link_section = ".init_array")]
        static BEFORE_MAIN: extern "C" fn() = {
            extern "C" fn take_role() {
                $($statement)*
            }
            take_role
        };
    };
}

#[macro_use]
pub(crate) mod call;
pub(crate) mod launch;
pub(crate) mod seen;
pub(crate) mod shared;
pub(crate) mod tracer;

/// The byte at a position of a stream: no two places nearby look alike.
pub(crate) fn byte_at(stream: u32, position: u64) -> u8 {
    let mixed = (position ^ u64::from(stream) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8 ^ (mixed >> 24) as u8
}

/// The bytes of a stream from a position on.
pub(crate) fn bytes_from(stream: u32, position: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| byte_at(stream, position + i)).collect()
}
