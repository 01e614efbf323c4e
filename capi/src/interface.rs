//! The value behind a port's handle, a port by itself or under a messenger, and what one messenger
//! has made.
use crate::error::{Failure, Outcome};
use crate::place::serial;
use ayre::active::{Messenger, MessengerOptions};
use ayre::{Fault, PeerId, Port};
use std::ops::{Deref, DerefMut};

/// An interface of a process. The state of handlers is the program's, behind its pointers.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "most are ports, and the place of one stays")]
pub enum Interface {
    /// A port by itself.
    Port(Port),
    /// A port under a messenger, with the number of the latter.
    Messenger(Box<Messenger<()>>, u64),
}

/// A thing that only the messenger takes that has made it.
#[derive(Debug)]
pub struct Made<T> {
    by: u64,
    thing: T,
}

impl<T> Made<T> {
    /// The thing, at the messenger that has made it.
    pub(crate) fn at(&self, by: &Interface) -> Outcome<&T> {
        match by {
            Interface::Messenger(_, serial) if *serial == self.by => Ok(&self.thing),
            _ => Err(Fault::ForeignHandle.into()),
        }
    }

    /// The thing, in a handler that the messenger runs.
    pub(crate) fn thing(&self) -> &T {
        &self.thing
    }

    pub(crate) fn into_thing(self) -> T {
        self.thing
    }
}

impl Interface {
    /// The interface as a messenger, with these options, which are sound.
    pub(crate) fn into_messenger(self, options: MessengerOptions) -> Self {
        let Self::Port(port) = self else { return self };
        match Messenger::with_options(port, options) {
            Ok(messenger) => Self::Messenger(Box::new(messenger), serial()),
            Err(error) => panic!("the options were checked: {error}"),
        }
    }

    /// Marks a thing as made by this messenger.
    pub(crate) fn made<T>(&self, thing: T) -> Made<T> {
        let by = match self {
            Self::Messenger(_, serial) => *serial,
            Self::Port(_) => 0,
        };
        Made { by, thing }
    }

    /// The port, without its messenger.
    pub(crate) fn into_port(self) -> Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger, _) => messenger.into_port(),
        }
    }

    /// The messenger, for handlers and all that is built on them.
    #[inline]
    pub(crate) fn messenger(&mut self) -> Outcome<&mut Messenger<()>> {
        match self {
            Self::Messenger(messenger, _) => Ok(messenger),
            Self::Port(_) => Err(Failure::Argument("call ayre_messenger_start first")),
        }
    }

    /// The port, for short messages without handlers.
    #[inline]
    pub(crate) fn plain(&mut self) -> Outcome<&mut Port> {
        match self {
            Self::Port(port) => Ok(port),
            Self::Messenger(..) => Err(Failure::Argument(
                "the short messages of a messenger belong to its handlers: use ayre_call",
            )),
        }
    }

    /// Prepares for a sleep in an event loop. A messenger runs the handlers of what has come.
    pub(crate) fn rest(&mut self) -> bool {
        match self {
            Self::Port(port) => port.rest(),
            Self::Messenger(messenger, _) => messenger.rest(&mut ()),
        }
    }

    /// Ends a connection.
    pub(crate) fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        match self {
            Self::Port(port) => port.disconnect(peer),
            Self::Messenger(messenger, _) => messenger.disconnect(peer),
        }
    }
}

impl Deref for Interface {
    type Target = Port;

    #[inline]
    fn deref(&self) -> &Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger, _) => (**messenger).as_ref(),
        }
    }
}

impl DerefMut for Interface {
    #[inline]
    fn deref_mut(&mut self) -> &mut Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger, _) => messenger.port(),
        }
    }
}
