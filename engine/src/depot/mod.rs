//! The execution of deposit messages in memory, shared by holders of mapped depots, the target's
//! engine and owners of depots. It does not depend on ports.
pub(crate) mod carry;
pub(crate) mod expected;
pub(crate) mod instruction_cache;
pub(crate) mod served;
