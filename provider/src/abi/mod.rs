//! The binary interface of libfabric, declared by hand from its manual pages and headers: what a
//! provider answers to, and what a caller calls.
//!
//! One set of declarations serves every generation of the library. Structures have only ever grown
//! at their ends, so each is declared with all members so far. Every appended member names the
//! version that added it: it may be accessed only if the version of the call is no older. Functions
//! in tables are optional, because a foreign table may have gaps; ours begin with `REFUSING` and
//! have none.
//!
//! | file | subject, from the bottom to the top |
//! |---|---|
//! | `errno.rs`, `flags.rs`, `tables.rs` | numbers, and how tables are declared |
//! | `fid.rs`, `messages.rs`, `attributes.rs` | what objects begin with, operations, endpoints |
//! | `events.rs`, `endpoint.rs` | what tells of ends, what moves data: objects and their tables |
//! | `objects.rs` | what these are opened on, and by |
//! | `provider.rs` | what a provider and the library's core hand to each other |

#![allow(missing_docs, reason = "the manual pages of libfabric document them, by these names")]

pub mod attributes;
pub mod endpoint;
pub mod errno;
pub mod events;
pub mod fid;
pub mod flags;
pub mod messages;
pub mod objects;
pub mod provider;
mod tables;

pub use attributes::*;
pub use endpoint::*;
pub use events::*;
pub use fid::*;
pub use flags::*;
pub use messages::*;
pub use objects::*;
pub use provider::*;

use ayre_guest::layout::Layout;

/// Everything that is declared, for the tests that compare it with a C compiler's view.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    [
        FIDS,
        FID_TABLES,
        ATTRIBUTES,
        MESSAGES,
        EVENTS,
        EVENT_TABLES,
        ENDPOINTS,
        ENDPOINT_TABLES,
        OBJECTS,
        OBJECT_TABLES,
        PROVIDER,
    ]
    .into_iter()
    .flatten()
}
