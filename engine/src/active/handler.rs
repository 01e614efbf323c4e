//! Handlers, as every process names them.
use ayre_proto::active::record::is_handler;
use ayre_proto::active::{ARGUMENTS_MAX, id_of};

/// A handler that takes `N` arguments, as every process names it. Its id may travel in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handler<const N: usize> {
    id: u32,
}

impl<const N: usize> Handler<N> {
    const FITS: () = assert!(N <= ARGUMENTS_MAX, "a message has at most 8 arguments");

    /// The handler of this name, wherever it is registered.
    // spec: AM-1
    pub const fn named(name: &str) -> Self {
        let () = Self::FITS;
        Self { id: id_of(name) }
    }

    /// The handler of this id: a static one, or one that came in a message; none where no handler
    /// can have it.
    pub const fn with_id(id: u32) -> Option<Self> {
        let () = Self::FITS;
        if is_handler(id) { Some(Self { id }) } else { None }
    }

    /// Its id.
    pub const fn id(self) -> u32 {
        self.id
    }
}
