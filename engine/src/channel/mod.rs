//! Logical channels: messages by one channel do not wait for messages by another.
//!
//! [`Messenger::channels`](crate::active::Messenger::channels) returns the view [`Channels`], which
//! opens and controls channels. [`Messenger::on`](crate::active::Messenger::on) sends by one.
//!
//! ```text
//!   On::call --> [queue] --> sending.rs: by priority --> record, or a piece of the landing
//!   handler <--- [queue] <-- receiving.rs: by priority <--'
//! ```
//!
//! Bulk data goes by one channel, and an urgent message by another:
//!
//! ```no_run
//! use ayre::Port;
//! use ayre::active::Messenger;
//! use ayre::channel::ChannelOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut messenger = Messenger::new(Port::join()?); // started by `ayre run -n 2 -- program`
//! let bulk = messenger.channels().open(1, ChannelOptions::new())?;
//! let urgent = messenger.channels().open(2, ChannelOptions::new().priority(7))?;
//! let store = messenger.register("store", |stored: &mut usize, _, [], data| {
//!     *stored += data.len();
//! })?;
//! let stop = messenger.register("stop", |stored: &mut usize, call, [], _| {
//!     println!("told by {:?} to stop at {stored}", call.source());
//! })?;
//! let mut stored = 0;
//! messenger.sync(&mut stored)?;
//! let other = messenger.port().rank() ^ 1;
//! let peer = messenger.port().peer(other).ok_or("start two ranks")?;
//! messenger.on(bulk).call(&mut stored, peer, store, [], &vec![0; 1 << 20])?;
//! messenger.on(urgent).call(&mut stored, peer, stop, [], &[])?;
//! messenger.flush(&mut stored);
//! messenger.sync(&mut stored)?;
//! # Ok(())
//! # }
//! ```
mod calls;
mod ends;
mod inbox;
mod receiving;
mod sending;

pub use calls::{Channel, ChannelOptions, Channels, On};
pub(crate) use ends::Logical;
pub(crate) use inbox::Inbox;
