//! Progress while the program does not call: our own thread serves peers in its stead.
//!
//! | file, upwards | subject |
//! |---|---|
//! | `served.rs` | an endpoint, as the thread sees it |
//! | `mover.rs` | the thread |
//! | `presence.rs` | who is there for peers: the program, awake or asleep, or the thread |
//! | `turns.rs` | how the program and the thread take turns |

mod mover;
mod presence;
mod served;
mod turns;

pub use mover::Mover;
pub use presence::{Presence, has_rung};
pub use served::{Served, Tended, Visitor};
pub use turns::{Turns, arm, come_back, tend};
