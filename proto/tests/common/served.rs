//! A target in plain memory.
#![allow(dead_code, reason = "each test takes what it needs")]
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::command::Words;
use ayre_proto::deposit::message::Posted;
use ayre_proto::lane::Malformed;
use ayre_proto::node::carrier::Perform;
use ayre_proto::node::target::{Delivery, Exchange, Exposed, Resources, Target};
use ayre_proto::notify::Notification;
use ayre_proto::units::{Extent, PeerId};
use ayre_proto::xlate::Table;

/// Memory of a port, and what its program is told.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// By region.
    pub(crate) regions: Vec<Vec<u8>>,
    pub(crate) notifications: Vec<Notification>,
    /// Of these, what the program has taken.
    pub(crate) taken: u64,
}

impl Plain {
    fn at(&mut self, extent: Extent) -> &mut [u8] {
        let (from, len) = (extent.offset() as usize, extent.len() as usize);
        &mut self.regions[usize::from(extent.region())][from..][..len]
    }
}

impl Exposed for Plain {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.at(to).copy_from_slice(data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        let region = &self.regions[usize::from(from.region())];
        into.copy_from_slice(&region[from.offset() as usize..][..from.len() as usize]);
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.at(to).copy_from_slice(&value.to_le_bytes());
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let place = self.at(at);
        let mut word = [0; 8];
        word[..place.len()].copy_from_slice(place);
        let old = u64::from_le_bytes(word);
        if let Some(new) = atomic.apply(old) {
            place.copy_from_slice(&new.to_le_bytes()[..place.len()]);
        }
        atomic.fetched(old)
    }

    fn carry_out(&mut self, _: &Posted, _: Extent, _: &mut impl Exchange) -> Delivery {
        Delivery::NoInlet
    }

    fn give(&self, _: &mut [u8]) {}
}

impl Resources for Plain {
    fn notify(&mut self, notification: Notification) {
        self.notifications.push(notification);
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// One peer's commands at a port.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) target: Target,
    pub(crate) table: Table,
    pub(crate) plain: Plain,
    /// Whether the connection is served.
    pub(crate) is_served: bool,
}

impl Served {
    /// A port without memory.
    pub(crate) fn new(peer: PeerId) -> Self {
        let (target, table) = (Target::new(peer), Table::new(8));
        Self { target, table, plain: Plain::default(), is_served: true }
    }
}

impl Perform for Served {
    fn perform(
        &mut self,
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let Self { target, table, plain, is_served } = self;
        if *is_served { target.perform(command, table, plain, exchange) } else { Ok(false) }
    }

    fn place(&mut self, command: (&Words, &[u8])) -> bool {
        let Self { target, table, plain, is_served } = self;
        *is_served && target.place(command, table, plain)
    }
}
