//! Multicast: groups whose members come and go, and get the same messages in the same order.
//!
//! [`Messenger::multicast`](crate::active::Messenger::multicast) returns the view [`Multicast`],
//! which founds and joins groups, and sends to their members.
//!
//! ```no_run
//! use ayre::Port;
//! use ayre::active::Messenger;
//! use ayre::multicast::{Change, MulticastOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut messenger = Messenger::new(Port::join()?); // started by `ayre run -n 4 -- program`
//! let price = messenger.register("price", |seen: &mut Vec<u64>, _, [price], _| seen.push(price))?;
//! let (mut seen, options) = (Vec::new(), MulticastOptions::new());
//! let mut prices = None;
//! if messenger.port().rank() == 0 {
//!     prices = Some(messenger.multicast().found("prices", options, |_, _| ())?);
//! }
//! messenger.sync(&mut seen)?; // the group exists, and can be joined
//! let prices = match (prices, messenger.port().peer(0)) {
//!     (Some(prices), _) => prices,
//!     (None, Some(founder)) => {
//!         messenger.multicast().join(&mut seen, "prices", founder, options, |_, change| {
//!             if let Change::View { members, .. } = change {
//!                 println!("we are {} now", members.len());
//!             }
//!         })?
//!     }
//!     _ => return Err("no job".into()),
//! };
//! messenger.multicast().send(&mut seen, prices, price, [42], &[])?;
//! messenger.serve_while(&mut seen, |seen| seen.is_empty())?; // it gets its own, too
//! messenger.multicast().leave(&mut seen, prices)?;
//! # Ok(())
//! # }
//! ```
//!
//! A member is a state machine, [`Group`](ayre_proto::group::Group). This module carries its
//! messages and runs the handlers of its deliveries.
//!
//! ```text
//!   multicast --> Group --> effects.rs --> short or long message to a member
//!   handler <-- due <-- Group <-- incoming.rs <--'
//! ```
//!
//! If all other members read the shared log of the root, the root's own messages go directly to the
//! log:
//!
//! ```text
//!   multicast --> Group, a ticket --> by_log.rs: the log --> handler, without a copy
//!   handler <-- buffer <-- by_log.rs, Group takes the ticket <--'
//! ```
mod by_log;
mod calls;
mod content;
mod due;
mod effects;
mod incoming;
mod member;
mod names;
mod shared_log;
#[cfg(all(test, not(loom)))]
mod tests;

pub use calls::{Membership, Multicast, MulticastError, MulticastOptions};
pub use due::Change;
pub(crate) use due::Watchers;
pub(crate) use member::GroupMembers;

/// The most bytes of a payload, arguments included.
// spec: GRP-23
pub const PAYLOAD_MAX: usize = 1 << 20;
