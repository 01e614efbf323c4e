//! Devices, which carry a connection's traffic: the interface of executors.
//!
//! A port publishes messages, records of queues and offers in the lanes of a connection, and passes
//! the commands of its operations to the connection's device. The device brings them to the peer;
//! it is chosen when the connection is made. A new device is a file here and a line of `devices!`.
//!
//! | device | file | reader of the lanes |
//! |---|---|---|
//! | [`Direct`] | `direct.rs` | the peer's process, on this host; there are no commands |
//! | [`Lanes`] | `lanes.rs` | the peer's process, on this host |
//! | [`Linked`] | `linked.rs` | the carrier of a link with another host |
//! | [`Recorder`] | `recorder.rs` | the reader of another device, to which this one passes all
//! calls |
mod direct;
mod lanes;
#[cfg_attr(not(feature = "net"), path = "device/absent.rs")]
mod linked;
mod recorder;

pub use recorder::{Given, Trace, Traced};

use super::local::Piece;
use super::remote::SharedWire;
use crate::peer::agreement::Agreement;
use crate::settings::choice::Mode;
use crate::sync::AtomicBool;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::units::PeerId;
use direct::Direct;
use lanes::Lanes;
use linked::Linked;
use recorder::Recorder;
use std::sync::Arc;

/// A carrier of a connection's traffic. A method's default is for devices that have nothing to do.
pub(crate) trait Device {
    /// How the peer is reached, in words.
    fn how(&self) -> &'static str;

    /// Whether traffic moves only while this process makes progress. Polls then look for traffic,
    /// and progress makes room.
    fn is_driven_here(&self) -> bool {
        false
    }

    /// Something was published for the peer, which is awake or was kicked.
    fn publish(&self) {}

    /// The port waits for all operations that it has posted.
    fn hasten(&self) {}

    /// Sends all published records at once, whatever is pending: they belong to set-up, and the
    /// peer may wait for them.
    fn push_out(&self) {}

    /// Agrees anew with the other side on the state of the traffic. False where there is nothing to
    /// agree on.
    fn resync(&self) -> bool {
        false
    }

    /// Bytes of the lane for commands; None where each command has room of its own.
    fn command_lane(&self) -> Option<usize> {
        None
    }

    /// Whether there is room for a command of this length, data included. There is one channel for
    /// commands that are always answered, and one for all others.
    fn has_room(&mut self, _answered: bool, _len: usize) -> bool {
        false
    }

    /// Passes a command on. There must be room for it.
    fn push(&mut self, _command: &impl CommandRecord, _data: Piece<'_>) {
        debug_assert!(false, "a device without room for commands gets none");
    }

    /// The most units of room (lines, frames) that the commands of a batch may take.
    fn reach(&self) -> u64 {
        0
    }

    /// Whether this number of units is free.
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
        /// The device of one connection.
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
            fn push(&mut self, command: &impl CommandRecord, data: Piece<'_>) {
                match self { $(Self::$name(device) => device.push(command, data),)+ }
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
    /// This process accesses the peer's memory.
    Direct,
    /// The peer reads the lanes.
    Lanes,
    /// A link carries the contents of the lanes.
    Linked,
    /// Another device, with a recording of its calls.
    Recorder,
);

impl AnyDevice {
    /// The device for the agreement of two ports; `is_served` tells whether an engine thread serves
    /// the wire.
    pub(super) fn for_connection(
        agreed: &Agreement,
        wire: &SharedWire,
        is_served: &Arc<AtomicBool>,
    ) -> Self {
        match (agreed.link.control.socket(), agreed.mode) {
            (None, mode) => {
                debug_assert!(mode == Mode::Mediated, "another host's memory is not at hand");
                Self::Linked(Linked::new(agreed.peer, wire.clone(), is_served.clone()))
            }
            (Some(_), Mode::Direct) => Self::Direct(Direct),
            (Some(_), Mode::Mediated) => Self::Lanes(Lanes::new(agreed.out.requests().sender())),
        }
    }

    /// This device, with a recording of all its calls.
    pub(super) fn recorded(self, peer: PeerId, trace: &Trace) -> Self {
        Self::Recorder(Recorder::new(self, peer, trace.clone()))
    }
}
