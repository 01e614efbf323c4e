//! Multicast: groups whose members come and go, and get the same messages in the same order.
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
//! messenger.sync(&mut seen)?; // it is there, and can be joined
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
//! messenger.serve_while(&mut seen, |seen| seen.is_empty())?; // its own messages come, too
//! messenger.multicast().leave(&mut seen, prices)?;
//! # Ok(())
//! # }
//! ```
//!
//! A member is a [`Group`](ayre_proto::group::Group), a machine; here are its messages, and the
//! handlers that run when it delivers.
//!
//! ```text
//!   multicast --> Group --> causes.rs --> short or long message to a member
//!   handler <-- due <-- Group <-- hear.rs <--'
//! ```
//!
//! Where a root has a board that all others read, its own messages go a shorter way.
//!
//! ```text
//!   multicast --> Group, a ticket --> by_board.rs: the board --> handler, where the message lies
//!   handler <-- buffer <-- by_board.rs, Group takes the ticket <--'
//! ```
mod by_board;
mod calls;
mod causes;
mod content;
mod due;
mod hear;
mod member;
mod names;
mod shared_log;
#[cfg(all(test, not(loom)))]
mod tests;

pub use calls::{Membership, Multicast, MulticastError, MulticastOptions};
pub use due::Change;
pub(crate) use due::Watchers;
pub(crate) use member::GroupMembers;

/// Bytes of a payload at most, arguments included.
// spec: GRP-23
pub const PAYLOAD_MAX: usize = 1 << 20;
