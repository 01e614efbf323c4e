//! Active messages: a message names a handler, which its destination runs with the message.
//!
//! A [`Messenger`] is built on a [`Port`](crate::Port). It sends and runs active messages. Its
//! features are views, each with a module of its own:
//!
//! | view | what it does | module |
//! |---|---|---|
//! | [`Messenger::collectives`] | collectives of groups | [`collective`](crate::collective) |
//! | [`Messenger::channels`] | logical channels, with priorities | [`channel`](crate::channel) |
//! | [`Messenger::streams`] | pipelines of stages | [`stream`](crate::stream) |
//! | [`Messenger::multicast`] | ordered messages to a group | [`multicast`](crate::multicast) |
//!
//! ```text
//!   call, Call::reply --> outgoing.rs --> short message, or puts to the peer's landing,
//!                               or read by the peer from the sender's memory (pulling.rs)
//!   poll <-- handler <-- incoming.rs <--'
//! ```
//!
//! Two ranks count each other's words:
//!
//! ```no_run
//! use ayre::Port;
//! use ayre::active::Messenger;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #[derive(Default)]
//! struct Words {
//!     heard: u64,
//!     told: u64,
//! }
//!
//! let mut messenger = Messenger::new(Port::join()?); // started by `ayre run -n 2 -- program`
//! let told = messenger.register("told", |words: &mut Words, _, [count], _| words.told += count)?;
//! let count = messenger.register("count", move |words: &mut Words, call, [], text| {
//!     let count = String::from_utf8_lossy(text).split_whitespace().count() as u64;
//!     words.heard += count;
//!     // A handler does not wait: a reply without room is kept and sent later.
//!     let _ = call.reply(told, [count], &[]);
//! })?;
//! let mut words = Words::default();
//! messenger.sync(&mut words)?;
//! let other = messenger.port().rank() ^ 1;
//! let peer = messenger.port().peer(other).ok_or("start two ranks")?;
//! messenger.call(&mut words, peer, count, [], b"four words of text")?;
//! messenger.serve_while(&mut words, |words| words.told < 4 || words.heard < 4)?;
//! # Ok(())
//! # }
//! ```
mod assembly;
mod call;
mod failures;
mod handler;
mod handlers;
mod incoming;
mod landing;
mod messenger;
mod options;
pub(crate) mod outgoing;
mod peers;
mod pulling;
mod rest;
pub(crate) mod way;

pub(crate) use assembly::Assembly;
pub use ayre_proto::active::record::DropCause;
pub use ayre_proto::active::{ARGUMENTS_MAX, LONGEST, NAME_MAX, STATIC_IDS, id_of};
pub use call::Call;
pub use failures::DroppedCall;
pub use handler::Handler;
pub use messenger::Messenger;
pub(crate) use messenger::{Extension, LongHead};
pub use options::MessengerOptions;
