//! Collectives: operations that all members of a group do together.
//!
//! ```no_run
//! use ayre::active::Messenger;
//! use ayre::Port;
//! use ayre::collective::Combine;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut messenger = Messenger::new(Port::join()?); // started by `ayre run -n 4 -- program`
//! let all = messenger.collectives().group_of_all("all")?;
//! let mut sums = [1.0, messenger.port().rank() as f64];
//! messenger.collectives().allreduce(&mut (), all, Combine::Sum, &mut sums)?;
//! println!("{} processes, the sum of their numbers is {}", sums[0], sums[1]);
//! # Ok(())
//! # }
//! ```
//!
//! A member's part is a [`Plan`](ayre_proto::collective::Plan) of sends and receives. A `Running`
//! carries it out on the program's buffers. Messages that arrive early wait at the group.
mod calls;
mod choose;
mod group;
mod incoming;
mod layout;
mod member;
mod portions;
mod recorder;
mod request;
mod running;
mod short;
mod state;
mod values;
mod watch;
mod watching;
mod work;

pub use ayre_proto::collective::call::{CallMismatch, CallShape};
pub use ayre_proto::collective::{Collective, MEMBERS_MAX, Schedule, Task};
pub use ayre_proto::combine::{Combine, Number};
pub use calls::Collectives;
pub use group::{Group, GroupError, PendingCollective};
pub use recorder::{LinkUse, RecordedCall};
pub use request::Request;
pub(crate) use state::Groups;
pub use values::{ReadValues, Summand, Value, Values};
