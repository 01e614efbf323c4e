//! The value of a port object: a port by itself, or under a messenger.
use crate::error::{Failure, Outcome};
use ayre::active::{Messenger, MessengerOptions};
use ayre::{Fault, PeerId, Port, SetupError};
use std::ops::{Deref, DerefMut};

/// An interface of a process. The state of handlers is Python's.
#[derive(Debug)]
pub(crate) enum Interface {
    Port(Box<Port>),
    Messenger(Box<Messenger<()>>),
}

impl Interface {
    /// The interface as a messenger, with these options, which are sound.
    pub(crate) fn into_messenger(self, options: MessengerOptions) -> Result<Self, SetupError> {
        match self {
            Self::Port(port) => {
                Ok(Self::Messenger(Box::new(Messenger::with_options(*port, options)?)))
            }
            Self::Messenger(_) => Ok(self),
        }
    }

    /// The messenger, for handlers and all that is built on them.
    #[inline]
    pub(crate) fn messenger(&mut self) -> Outcome<&mut Messenger<()>> {
        match self {
            Self::Messenger(messenger) => Ok(messenger),
            Self::Port(_) => Err(Failure::argument("make an ayre.Messenger of the port first")),
        }
    }

    /// The port, for short messages without handlers.
    #[inline]
    pub(crate) fn plain(&mut self) -> Outcome<&mut Port> {
        match self {
            Self::Port(port) => Ok(port),
            Self::Messenger(_) => Err(Failure::argument(
                "the short messages of a messenger belong to its handlers: use Messenger.call",
            )),
        }
    }

    /// The port, without its messenger.
    pub(crate) fn into_port(self) -> Port {
        match self {
            Self::Port(port) => *port,
            Self::Messenger(messenger) => messenger.into_port(),
        }
    }

    /// Ends a connection.
    pub(crate) fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        match self {
            Self::Port(port) => port.disconnect(peer),
            Self::Messenger(messenger) => messenger.disconnect(peer),
        }
    }

    /// Prepares for a sleep at the descriptor, where messages or notifications are awaited. A
    /// messenger runs handlers.
    pub(crate) fn rest(&mut self, messages: bool, notifications: bool) -> bool {
        match self {
            Self::Port(port) => port.rest_for(messages, notifications),
            Self::Messenger(messenger) => messenger.rest(&mut ()),
        }
    }
}

impl Deref for Interface {
    type Target = Port;

    #[inline]
    fn deref(&self) -> &Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger) => (**messenger).as_ref(),
        }
    }
}

impl DerefMut for Interface {
    #[inline]
    fn deref_mut(&mut self) -> &mut Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger) => messenger.port(),
        }
    }
}
