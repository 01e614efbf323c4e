//! The value behind a port's handle: a port, by itself or under a messenger.
use crate::error::{Failure, Outcome};
use ayre::active::{Messenger, MessengerOptions};
use ayre::{Fault, PeerId, Port};
use std::ops::{Deref, DerefMut};

/// An interface of a process. The state of handlers is the program's, behind its pointers.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "most are ports, and the place of one stays")]
pub enum Interface {
    /// A port by itself.
    Port(Port),
    /// A port under a messenger.
    Messenger(Box<Messenger<()>>),
}

impl Interface {
    /// The interface as a messenger, with these options, which are sound.
    pub(crate) fn into_messenger(self, options: MessengerOptions) -> Self {
        Self::Messenger(Box::new(match self {
            Self::Port(port) => match Messenger::with_options(port, options) {
                Ok(messenger) => messenger,
                Err(error) => panic!("the options were checked: {error}"),
            },
            Self::Messenger(messenger) => return Self::Messenger(messenger),
        }))
    }

    /// The port, without its messenger.
    pub(crate) fn into_port(self) -> Port {
        match self {
            Self::Port(port) => port,
            Self::Messenger(messenger) => messenger.into_port(),
        }
    }

    /// The messenger, for handlers and all that is built on them.
    #[inline]
    pub(crate) fn messenger(&mut self) -> Outcome<&mut Messenger<()>> {
        match self {
            Self::Messenger(messenger) => Ok(messenger),
            Self::Port(_) => Err(Failure::Argument("call ayre_messenger_start first")),
        }
    }

    /// The port, for short messages without handlers.
    #[inline]
    pub(crate) fn plain(&mut self) -> Outcome<&mut Port> {
        match self {
            Self::Port(port) => Ok(port),
            Self::Messenger(_) => Err(Failure::Argument(
                "the short messages of a messenger belong to its handlers: use ayre_call",
            )),
        }
    }

    /// Ends a connection.
    pub(crate) fn disconnect(&mut self, peer: PeerId) -> Result<(), Fault> {
        match self {
            Self::Port(port) => port.disconnect(peer),
            Self::Messenger(messenger) => messenger.disconnect(peer),
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
