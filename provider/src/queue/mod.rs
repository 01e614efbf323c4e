//! Where programs hear of what has happened: queues and counters, and sets of them.

pub(crate) mod cntr;
pub(crate) mod cq;
pub(crate) mod eq;
pub(crate) mod poll;
pub(crate) mod sources;
pub(crate) mod wait_set;
