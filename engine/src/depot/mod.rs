//! Carrying deposit messages out, in memory: what holders of mapped depots, the target's engine and
//! owners of depots have in common. It knows of no port.
pub(crate) mod carry;
pub(crate) mod expected;
pub(crate) mod memo;
pub(crate) mod served;
