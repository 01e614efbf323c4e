//! The binary interface of UCP, declared by hand from its headers: structures, masks, numbers and
//! statuses.
//!
//! One set of declarations serves every generation from 1.10 to 1.22. Structures have only ever
//! grown at their ends, and each has a mask of the members that the caller knows. A member may be
//! accessed only if its bit is set. Every one that came later names its version, for the tests.
//!
//! | file | subject, from the bottom to the top |
//! |---|---|
//! | `status.rs`, `numbers.rs` | statuses; masks, flags and other numbers |
//! | `handles.rs` | objects that programs know by their address |
//! | `context.rs`, `endpoint.rs`, `memory.rs`, `request.rs` | structures, by what they are about |

#![allow(missing_docs, reason = "the headers of UCP document them, by these names")]

pub mod context;
pub mod endpoint;
pub mod handles;
pub mod memory;
pub mod numbers;
pub mod request;
pub mod status;

use ayre_guest::layout::Layout;

/// Every structure, for the tests that compare them with a C compiler's view.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    [context::CONTEXTS, endpoint::ENDPOINTS, memory::MEMORIES, request::REQUESTS]
        .into_iter()
        .flatten()
}
