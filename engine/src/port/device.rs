//! What carries a connection's traffic: the seam for executors.
//!
//! A port publishes messages, records of queues and offers in the lanes of a connection. Whoever
//! brings them to the peer is a device, which is chosen when the connection is made. A new one is a
//! file here and a line of [`devices`].
//!
//! | device | file | who reads the lanes |
//! |---|---|---|
//! | [`Here`] | `here.rs` | the peer's process, on this host |
//! | [`Away`] | `away.rs` | the carrier of a link with another host |
mod away;
mod here;

pub(crate) use away::Away;
pub(crate) use here::Here;

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

    /// What was published goes at once, whatever is under way: it is set-up, and somebody may wait
    /// for it.
    fn push_out(&self) {}

    /// Agrees anew with the other side on where the traffic stands. False where there is nothing to
    /// agree on.
    fn resync(&self) -> bool {
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
    /// In shared memory.
    Here,
    /// By a link.
    Away,
);
