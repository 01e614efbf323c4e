//! Handles of handlers.
use ayre_proto::active::record::is_handler;
use ayre_proto::active::{ARGUMENTS_MAX, id_of};

/// A handle of a handler that takes `N` arguments, valid at every process. Its id may be sent in a
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler<const N: usize> {
    id: u32,
}

impl<const N: usize> Handler<N> {
    const FITS: () = assert!(N <= ARGUMENTS_MAX, "a message has at most 8 arguments");

    /// Returns the handle of a name, whether or not a handler is registered under it.
    // spec: AM-1
    pub const fn named(name: &str) -> Self {
        let () = Self::FITS;
        Self { id: id_of(name) }
    }

    /// Returns the handle of an id, of a static handler or from a message. Returns `None` for an id
    /// that no handler can have.
    pub const fn with_id(id: u32) -> Option<Self> {
        let () = Self::FITS;
        if is_handler(id) { Some(Self { id }) } else { None }
    }

    /// Returns the id.
    pub const fn id(self) -> u32 {
        self.id
    }
}
