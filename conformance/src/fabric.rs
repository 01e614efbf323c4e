//! Fabrics, which make ports, connect them, and kill them.
use crate::port::Port;
use ayre::{Mode, PeerId};
use std::fmt::Debug;
use std::thread::yield_now;

/// An implementation of the contract under test: an executor of the engine, a model in a time of
/// its own, or a library of another language behind a driver.
pub trait Fabric: Copy + Debug + Send + Sync {
    /// Its ports.
    type Port: Port;
    /// Where a port waits for others to connect.
    type Door: Debug + Send + Sync;

    /// Its properties on which cases depend.
    fn traits(&self) -> Traits;

    /// Opens a port that is connected with nobody.
    fn open(&self, number: u16) -> Self::Port;

    /// Opens two ports that are connected with each other; or one, with itself, where it has only
    /// one.
    fn pair(&self, near: u16, far: u16) -> (Self::Port, Option<Self::Port>);

    /// Opens a port that others can connect with.
    fn listen(&self, number: u16) -> (Self::Port, Self::Door);

    /// Opens a port that is connected with one that listens.
    fn join(&self, door: &Self::Door, target: &mut Self::Port, number: u16) -> Self::Port;

    /// Opens `members` ports that are all connected with each other, numbered from 0.
    fn mesh(&self, members: u16) -> Vec<Self::Port>;

    /// A fabric of one port that is connected with itself. Results of other fabrics are compared
    /// with its results.
    fn loopback(&self) -> Self;

    /// A port dies: its program makes no further call.
    fn kill(&self, port: Self::Port) {
        drop(port);
    }

    /// One step of time, in which none of the ports that a case serves had anything to do; `round`
    /// counts those. In a time of its own it goes on; on a machine others get its processors, now
    /// and then.
    fn step(&self, round: u32) {
        give_way(round);
    }
}

/// Yields in one round of 16: a yield takes a whole time slice where another program computes.
pub(crate) fn give_way(round: u32) {
    if round.is_multiple_of(16) {
        yield_now();
    }
}

/// The properties of a fabric on which cases depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// How operations are carried out.
    pub mode: Mode,
    /// Initiator and target are the same port.
    pub is_loopback: bool,
    /// Operations take time to arrive: they may not be done when the call returns.
    pub is_wire: bool,
    /// The target is served in its own calls and nowhere else.
    pub is_inline: bool,
    /// A call that waits lets the other ports of its thread go on, as time does not pass otherwise.
    pub is_one_thread: bool,
    /// The longest messages ask to be read where they lie, in the memory of who sends them.
    pub pulls: bool,
}

/// Number of the initiating port; differs from its place in every table.
pub const INITIATOR: PeerId = PeerId(3);
/// Number of the target port.
pub const TARGET: PeerId = PeerId(1);
