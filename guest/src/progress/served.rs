//! Endpoints as our own thread sees them.

use crate::wait::Wait;
use ayre::endpoint::raw::Lease;
use rustix::fd::BorrowedFd;
use std::sync::Arc;

/// An endpoint that our own thread serves while the program stays away.
pub trait Served: Send + Sync + 'static {
    /// The thread is to serve peers here from now on.
    fn admit(&self, visitor: Visitor);

    /// The thread comes, when the lease has expired, the bell has rung, or there is more to do.
    fn tend(&self) -> Tended;

    /// Whether the bell is readable.
    fn has_rung(&self) -> bool;

    /// The descriptor that becomes readable when something comes and the endpoint rests.
    fn bell(&self) -> BorrowedFd<'_>;
}

/// How our own thread and the program tell each other who is there.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The wait object of the thread.
    pub wait: Arc<Wait>,
    /// The program's on the endpoint.
    pub lease: Lease,
}

/// The result of a visit of our own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tended {
    /// There may be more to do.
    Moved,
    /// Nothing, until the bell rings.
    Waits,
    /// The program comes: there is nothing to do while the lease lasts.
    Left,
    /// Nothing, until the program has come.
    Full,
}
