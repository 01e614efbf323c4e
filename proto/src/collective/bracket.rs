//! The brackets of a sum.
//!
//! ```text
//!   6 members      ((0 1) (2 3)) (4 5)
//!   7 members      ((0 1) (2 3)) ((4 5) 6)
//! ```
//!
//! A group is cut at the greatest power of two below its number of members, and each part is cut in
//! the same way. A member that combines in the order of the members keeps the parts that wait for
//! their other half on a stack.

/// The number of times that the two topmost parts are combined once this member's part is on top of
/// the stack. After the last member one part is left.
// spec: COLL-7
pub const fn closes(member: usize, members: usize) -> u32 {
    let closes = if member + 1 == members {
        // One part for each bit of the number of those before, and this one.
        member.count_ones()
    } else {
        member.trailing_ones()
    };
    debug_assert!(closes as usize <= depth(members), "what is combined has waited");
    closes
}

/// Parts that wait on the stack at most.
pub const fn depth(members: usize) -> usize {
    (usize::BITS - members.leading_zeros()) as usize
}
