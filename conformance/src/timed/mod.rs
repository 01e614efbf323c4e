//! Nodes of the protocol in simulated time, behind the suite's traits.
//!
//! A port is the program of a node in a [`Cluster`](ayre_sim::cluster::Cluster): of `proto`'s node,
//! which has no engine around it. The nodes stand at a torus of routers. Their interfaces have the
//! times of [PCIe](ayre_sim::cluster::InterfaceTimes::PCIE), so operations take a microsecond or
//! more.
//!
//! Time passes while a program looks and finds nothing. A call that waits looks again and again, so
//! one thread gets on alone. Threads take turns by a lock, in any order. Interfaces act by
//! themselves: they serve peers while their programs do something else.
//!
//! The cases of the module [`oracle`](crate::oracle) draw lists of operations, the same for each
//! fabric. So nodes in simulated time and the engine give the same results, those of the oracle.
//!
//! Depots and messengers are the engine's, so their groups of cases do not apply. Nor does
//! `inline`, where nobody but a case serves the target.
mod handles;
mod lock;
mod port;
mod program;
mod shared;

pub use self::handles::{TimedGrant, TimedQueue, TimedRegion, TimedRemote, TimedRemoteQueue};
pub use self::lock::TimedLock;
pub use self::program::TimedPort;
pub use self::shared::Door;

use crate::fabric::{Fabric, Traits};
use crate::port::Port;
use ayre::Mode;
use ayre_sim::cluster::Profile;

/// Ports in simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Ports of different nodes. A port that is killed is a program that dies: its interface leaves
    /// in its name, as the system does for a process.
    Ports,
    /// One port, connected with itself by lanes.
    Loopback,
    /// Ports of different nodes. A port that is killed is a host that dies, and nobody says so: its
    /// peers hear nothing more.
    DyingHosts,
    /// Ports of different nodes, whose interfaces have the profile of EXTOLL. It refuses what some
    /// cases do.
    Extoll,
}

impl Timed {
    fn door(self) -> Door {
        Door::new(if self == Self::Extoll { Profile::extoll() } else { Profile::default() })
    }
}

impl Fabric for Timed {
    type Port = TimedPort;
    type Door = Door;

    fn traits(&self) -> Traits {
        Traits {
            mode: Mode::Mediated,
            is_loopback: *self == Self::Loopback,
            is_wire: true,
            is_inline: false,
            is_one_thread: false,
            pulls: false,
        }
    }

    fn open(&self, number: u16) -> TimedPort {
        TimedPort::open(&self.door(), number)
    }

    fn pair(&self, near: u16, far: u16) -> (TimedPort, Option<TimedPort>) {
        let (mut port, door) = self.listen(near);
        if *self == Self::Loopback {
            port.connect_loopback().expect("the first one");
            return (port, None);
        }
        let other = TimedPort::open(&door, far);
        door.connect(near, far);
        (port, Some(other))
    }

    fn listen(&self, number: u16) -> (TimedPort, Door) {
        let door = self.door();
        (TimedPort::open(&door, number), door)
    }

    fn join(&self, door: &Door, target: &mut TimedPort, number: u16) -> TimedPort {
        let port = TimedPort::open(door, number);
        door.connect(number, target.number);
        port
    }

    fn mesh(&self, members: u16) -> Vec<TimedPort> {
        let door = self.door();
        let ports = (0..members).map(|number| TimedPort::open(&door, number)).collect();
        for number in 0..members {
            (0..number).for_each(|other| door.connect(number, other));
        }
        ports
    }

    fn loopback(&self) -> Self {
        Self::Loopback
    }

    fn kill(&self, port: TimedPort) {
        match self {
            Self::DyingHosts => port.kill_host(),
            Self::Ports | Self::Loopback | Self::Extoll => drop(port),
        }
    }
}
