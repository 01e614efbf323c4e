//! A peer, wherever it is: how it is reached and woken, what was agreed on with it, how it ends.
//!
//! ```text
//!   agreement    what both sides have agreed on; the version of the formats
//!   contact      the peer's page and its bell: waking it costs one load while it is awake
//!   packet       packets for set-up, capabilities and death; they go by
//!   control      a socket on one host, or
//!   mail         two queues in memory, where a link stands for a peer of another one
//!   loss         why a peer of another host is not heard any more
//! ```
pub(crate) mod agreement;
pub(crate) mod contact;
pub(crate) mod control;
pub(crate) mod loss;
pub(crate) mod mail;
pub(crate) mod packet;
