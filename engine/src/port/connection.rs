//! One side of a connection: the lanes, the peer's page, and pending operations.
use super::device::{AnyDevice, Device};
use super::executor::Executor;
use crate::error::Fault;
use crate::machine::processors::Processors;
use crate::mem::inject::Process;
use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::page::Sleeper;
use crate::mem::word::Word;
use crate::peer::agreement::Agreement;
use crate::peer::contact::Link;
use crate::peer::control::Channel;
use crate::peer::packet::Packet;
use crate::settings::choice::Mode;
use crate::sync::{Ordering, StaticCounter};
use crate::sys::credentials;
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// One side of a connection.
// spec: MSG-5, MSG-6, LIFE-13
#[derive(Debug)]
pub(crate) struct Connection {
    /// Distinguishes this connection's handles from those of any other connection, also of earlier
    /// ones with the same peer.
    pub(crate) identity: u64,
    pub(crate) peer: PeerId,
    pub(crate) device: AnyDevice,
    pub(crate) link: Arc<Link>,
    pub(crate) messages_out: LaneSender,
    pub(crate) messages_in: LaneReceiver,
    pub(crate) executor: Executor,
    /// On a mediated connection: how many of the peer's commands our responder has executed.
    pub(crate) served: Word,
    /// On a direct connection: shows the peer which of its keys we are using.
    pub(crate) active: Word,
    /// Lanes from us to the peer.
    pub(crate) out: Direction,
    /// Lanes from the peer to us.
    pub(crate) inward: Direction,
    /// The number of operations posted on a direct connection.
    pub(crate) posted: u64,
    /// The first fault since the last flush.
    pub(crate) fault: Option<Fault>,
    /// The peer has announced that it leaves.
    pub(crate) left: bool,
    /// The reason why nothing can be sent any more.
    pub(crate) ended: Option<Fault>,
    /// Offers of the peer that the program has not accepted yet.
    pub(crate) offers: Vec<Packet>,
}

/// A number that no other port or connection of this process has.
pub(crate) fn identity() -> u64 {
    static NEXT: StaticCounter = StaticCounter::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Connection {
    pub(crate) fn new(agreed: Agreement, device: AnyDevice) -> Self {
        let Agreement { peer, mode, link, out, inward, cut } = agreed;
        let is_far = link.control.socket().is_none();
        debug_assert_eq!(device.is_driven_here(), is_far, "a link is driven by its port");
        let executor = Executor::new(mode, cut, (&out, &inward));
        Self {
            identity: identity(),
            peer,
            device,
            messages_out: out.messages().sender(),
            messages_in: inward.messages().receiver(),
            executor,
            link,
            served: inward.control(Control::Done),
            active: out.control(Control::Active),
            out,
            inward,
            posted: 0,
            fault: None,
            left: false,
            ended: None,
            offers: Vec::new(),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.executor.mode()
    }

    /// The peer's process, if the kernel may let us read its memory. None for a loopback, for a
    /// peer of another host, and for a peer that could not stop us anyway.
    pub(crate) fn process(&self) -> Option<Process> {
        let credentials = credentials::of_peer(self.control().socket()?).ok()?;
        Process::of_equal(credentials, self.control().life())
    }

    /// The processors on which a peer of this host may run, if its process is visible from here.
    pub(crate) fn processors(&self) -> Option<Processors> {
        let process = credentials::of_peer(self.control().socket()?).ok()?.pid;
        (process != 0).then(|| Processors::of_process(process)).flatten()
    }

    /// Whether operations access the peer's memory directly.
    #[inline(always)]
    pub(crate) fn is_open_direct(&self) -> bool {
        self.ended.is_none() && self.executor.is_direct()
    }

    pub(crate) fn control(&self) -> &Channel {
        &self.link.control
    }

    /// Tells the device that a message or a record was published for the peer.
    #[inline(always)]
    pub(crate) fn published(&self) {
        self.link.kick(Sleeper::Port);
        self.device.publish();
    }

    /// See [`Device::is_driven_here`].
    #[inline(always)]
    pub(crate) fn is_driven_here(&self) -> bool {
        self.device.is_driven_here()
    }

    /// Whether the peer of a direct connection is inside an operation with a key of `slot`.
    pub(crate) fn peer_is_using(&self, slot: u16) -> bool {
        // REV-A1: once the word has changed, the operation's stores are visible (REV-R1).
        self.inward.control(Control::Active).load(Ordering::Acquire) == active_word(slot)
    }
}

/// The word that an initiator shows while it uses a key of this slot.
#[inline]
pub(crate) fn active_word(slot: u16) -> u64 {
    u64::from(slot) + 1
}
