//! Streams: pipelines of stages at several ports. Items pass them in order.
//!
//! [`Messenger::streams`](crate::active::Messenger::streams) returns the view [`Streams`], which
//! registers stages, lays pipelines and pushes items.
//!
//! ```text
//!   push --> [emitted] --> effects --> short message, or a long one --> [arrived] --> stage
//!                             ^                                                        |
//!                             '------------------ [emitted] <--------------------------'
//! ```
//!
//! One rank splits the lines of a text into words, and another counts them:
//!
//! ```no_run
//! use ayre::Port;
//! use ayre::active::Messenger;
//! use ayre::stream::{Flow, Hop, Input};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut messenger = Messenger::new(Port::join()?); // started by `ayre run -n 3 -- program`
//! let split = messenger.streams().stage("split", |_: &mut Option<u64>, flow, input| {
//!     if let Input::Item(line) = input {
//!         line.split(|byte| *byte == b' ').for_each(|word| flow.emit(word));
//!     }
//! })?;
//! let mut words = 0;
//! let count = move |all: &mut Option<u64>, _: &mut Flow<'_>, input: Input<'_>| match input {
//!     Input::Item(_) => words += 1,
//!     Input::End(_) => *all = Some(words),
//! };
//! let count = messenger.streams().stage("count", count)?;
//! let mut all = None;
//! messenger.sync(&mut all)?; // all ranks have registered their stages
//! let peer = |messenger: &mut Messenger<_>, rank| messenger.port().peer(rank);
//! match (messenger.port().rank(), peer(&mut messenger, 1), peer(&mut messenger, 2)) {
//!     (0, Some(first), Some(second)) => {
//!         let hops = [Hop::new(first, split), Hop::new(second, count)];
//!         let stream = messenger.streams().lay(&mut all, &hops)?;
//!         messenger.streams().push(&mut all, &stream, "four words of text")?;
//!         messenger.streams().close(&mut all, stream)?;
//!     }
//!     (2, ..) => messenger.serve_while(&mut all, Option::is_none)?,
//!     _ => {}
//! }
//! messenger.sync(&mut all)?;
//! # Ok(())
//! # }
//! ```
mod calls;
mod effects;
mod incoming;
mod laid;
mod lay;
mod queue;
mod state;

pub use ayre_proto::stream::{
    EntryAnswer, FailureReason, ITEM_MAX, StreamEnd, StreamFailure, StreamName,
};
pub use calls::{PushError, Stream, StreamError, Streams};
pub use effects::{Flow, Input, Stage};
pub use lay::{Entry, Hop};
pub(crate) use state::StreamTable;
