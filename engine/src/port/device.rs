//! What carries a connection's traffic: the seam for executors.
//!
//! A port publishes messages, records of queues and offers in the lanes of a connection, and hands
//! the commands of its operations on. A device brings them to the peer; it is chosen when the
//! connection is made. A new one is a file here and a line of `devices!`.
//!
//! | device | file | who reads the lanes |
//! |---|---|---|
//! | [`Direct`] | `direct.rs` | the peer's process, on this host; there are no commands |
//! | [`Lanes`] | `lanes.rs` | the peer's process, on this host |
//! | [`Away`] | `away.rs` | the carrier of a link with another host |
//! | [`Recorder`] | `recorder.rs` | those of another device, which it passes everything on to |
mod away;
mod direct;
mod lanes;
mod recorder;

pub use recorder::{Given, Trace, Traced};

use super::local::Piece;
use super::remote::SharedWire;
use crate::peer::agreement::Agreement;
use crate::settings::choice::Mode;
use crate::sync::AtomicBool;
use away::Away;
use ayre_proto::node::ask::Ask;
use ayre_proto::units::PeerId;
use direct::Direct;
use lanes::Lanes;
use recorder::Recorder;
use std::sync::Arc;

/// What carries a connection's traffic. A device that has nothing to do leaves a method as it is.
pub(crate) trait Device {
    /// How the peer is reached, in words.
    fn how(&self) -> &'static str;

    /// Whether traffic moves only while this process makes progress: so polls look for it, and
    /// progress gives room.
    fn is_driven_here(&self) -> bool {
        false
    }

    /// Something was published for the peer, which is awake or was rung.
    fn publish(&self) {}

    /// The port waits for everything that it has posted.
    fn hasten(&self) {}

    /// Sends at once all that was published, whatever is under way: it is set-up, and the peer may
    /// wait for it.
    fn push_out(&self) {}

    /// Agrees anew with the other side on where the traffic stands. False where there is nothing to
    /// agree on.
    fn resync(&self) -> bool {
        false
    }

    /// Bytes of the lane that commands go through; none where each has room of its own.
    fn command_lane(&self) -> Option<usize> {
        None
    }

    /// Whether a command finds room that is so long with its data, on the channel of those that are
    /// answered in any case or of the others.
    fn has_room(&mut self, _answered: bool, _len: usize) -> bool {
        false
    }

    /// Passes a command on, for which there is room.
    fn push(&mut self, _ask: &impl Ask, _data: Piece<'_>) {
        debug_assert!(false, "a device without room for commands gets none");
    }

    /// Units of room (lines, frames) that the commands of a batch may take at most.
    fn reach(&self) -> u64 {
        0
    }

    /// Whether so many units are free.
    fn has_room_for_batch(&mut self, _units: u64) -> bool {
        false
    }

    /// The connection has ended: nothing goes to the peer any more.
    fn end(&self) {}

    /// The connection is forgotten, and its peer may begin another one.
    fn forget(&self) {}
}

macro_rules! devices {
    ($($(#[$about:meta])* $name:ident,)+) => {
        /// The device of a connection.
        #[derive(Debug)]
        pub(crate) enum AnyDevice {
            $($(#[$about])* $name($name),)+
        }

        impl Device for AnyDevice {
            fn how(&self) -> &'static str {
                match self { $(Self::$name(device) => device.how(),)+ }
            }

            #[inline(always)]
            fn is_driven_here(&self) -> bool {
                match self { $(Self::$name(device) => device.is_driven_here(),)+ }
            }

            #[inline(always)]
            fn publish(&self) {
                match self { $(Self::$name(device) => device.publish(),)+ }
            }

            fn hasten(&self) {
                match self { $(Self::$name(device) => device.hasten(),)+ }
            }

            fn push_out(&self) {
                match self { $(Self::$name(device) => device.push_out(),)+ }
            }

            fn resync(&self) -> bool {
                match self { $(Self::$name(device) => device.resync(),)+ }
            }

            #[inline]
            fn command_lane(&self) -> Option<usize> {
                match self { $(Self::$name(device) => device.command_lane(),)+ }
            }

            #[inline]
            fn has_room(&mut self, answered: bool, len: usize) -> bool {
                match self { $(Self::$name(device) => device.has_room(answered, len),)+ }
            }

            #[inline]
            fn push(&mut self, ask: &impl Ask, data: Piece<'_>) {
                match self { $(Self::$name(device) => device.push(ask, data),)+ }
            }

            fn reach(&self) -> u64 {
                match self { $(Self::$name(device) => device.reach(),)+ }
            }

            fn has_room_for_batch(&mut self, units: u64) -> bool {
                match self { $(Self::$name(device) => device.has_room_for_batch(units),)+ }
            }

            fn end(&self) {
                match self { $(Self::$name(device) => device.end(),)+ }
            }

            fn forget(&self) {
                match self { $(Self::$name(device) => device.forget(),)+ }
            }
        }
    };
}

devices!(
    /// The peer's memory is at hand.
    Direct,
    /// The peer reads the lanes.
    Lanes,
    /// A link has them.
    Away,
    /// Another device, and a trace.
    Recorder,
);

impl AnyDevice {
    /// The device for what two ports have agreed on; `is_tended` says whether an engine thread
    /// looks after the wire.
    pub(super) fn for_connection(
        agreed: &Agreement,
        wire: &SharedWire,
        is_tended: &Arc<AtomicBool>,
    ) -> Self {
        match (agreed.link.control.socket(), agreed.mode) {
            (None, mode) => {
                debug_assert!(mode == Mode::Mediated, "another host's memory is not at hand");
                Self::Away(Away::new(agreed.peer, wire.clone(), is_tended.clone()))
            }
            (Some(_), Mode::Direct) => Self::Direct(Direct),
            (Some(_), Mode::Mediated) => Self::Lanes(Lanes::new(agreed.out.requests().sender())),
        }
    }

    /// This device, with a trace of all that it is given.
    pub(super) fn recorded(self, peer: PeerId, trace: &Trace) -> Self {
        Self::Recorder(Recorder::new(self, peer, trace.clone()))
    }
}
