//! A cluster, and the state of the ports at its nodes. All ports of a world share it: each call
//! locks it for a moment.
use crate::port::Counted;
use ayre::memory::{Key, Ticket};
use ayre::{Busy, Fault, PeerId, SetupError};
use ayre_proto::fault::Status;
use ayre_proto::node::PostError;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::node::initiator::{Ended, Refused};
use ayre_proto::node::peer::Message;
use ayre_sim::cluster::{Cluster, Event, InterfaceTimes, Profile, Program, Refusal};
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{NodeQueue, Parameters, Readout, Switching};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a look that finds nothing takes, if nothing happens before. Long enough that the death
/// of a link is soon noticed, and short enough that no run reaches the end of time.
const LOOK: Time = Time::from_nanos(10_000);

/// 10 GB/s, 8 bytes at a time, 20 ns of wire.
const LINK: LinkTiming = LinkTiming { phit: Time(800), width: 8, wire: Time::from_nanos(20) };

const PARAMETERS: Parameters = Parameters {
    link: LINK,
    wire_to_node: LINK.wire,
    pipeline: Time::from_nanos(40),
    injection: Time::ZERO,
    credit: Time::from_nanos(20),
    channels: 2,
    buffer: 8192,
    readout: Readout::Port,
    node_queue: NodeQueue::One,
    switching: Switching::CutThrough,
    policy: Policy::DimensionOrder,
};

/// A number that no port or connection of this process had before.
fn identity() -> u64 {
    static LAST: Mutex<u64> = Mutex::new(0);
    let mut last = LAST.lock().expect("nobody panics while counting");
    *last += 1;
    *last
}

/// A world, in which ports are opened and connected.
#[derive(Clone, Debug)]
pub struct Door(Arc<Mutex<Shared>>);

impl Door {
    /// A world whose interfaces have a profile.
    pub(super) fn new(profile: Profile) -> Self {
        let topology = Topology::torus(&[4, 4]).expect("a possible torus");
        let times = profile.units.map_or(InterfaceTimes::PCIE, |it| InterfaceTimes::of_units(&it));
        let cluster = Cluster::with_profile(&topology, PARAMETERS, times, profile);
        let cluster = cluster.expect("possible parameters");
        let (ports, former) = (BTreeMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(Shared { cluster, ports, former })))
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        // A call that panicked leaves the cluster usable: its other ports can still be closed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A port of this number opens: its identity. Where there was one before, its node is started
    /// anew.
    pub(super) fn open(&self, number: u16) -> u64 {
        let (mut shared, identity) = (self.shared(), identity());
        let state = PortState { identity, is_open: true, ..PortState::default() };
        if let Some(last) = shared.ports.insert(number, state) {
            shared.cluster.kill(u32::from(number));
            let program = shared.cluster.restart(u32::from(number));
            shared.former.insert(last.identity, program);
        }
        identity
    }

    /// Connects two ports by their numbers.
    pub(super) fn connect(&self, one: u16, other: u16) {
        let mut shared = self.shared();
        shared.add(one, PeerId(other));
        shared.add(other, PeerId(one));
        shared.cluster.connect(u32::from(one), u32::from(other));
    }
}

/// A cluster, and its ports by number.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    ports: BTreeMap<u16, PortState>,
    /// Memory of ports whose numbers are others' now, by the ports' identities.
    former: HashMap<u64, Program>,
}

/// The state of a port.
#[derive(Debug, Default)]
pub(super) struct PortState {
    pub(super) identity: u64,
    pub(super) is_open: bool,
    /// The connections that have begun and are not forgotten.
    pub(super) connections: BTreeMap<PeerId, Connection>,
    offers: Vec<(PeerId, Offer)>,
    /// Peers whose death a wait has to report.
    pub(super) died: Vec<PeerId>,
    /// Operations that have ended.
    pub(super) ended: u64,
    awaited: Option<(PeerId, Ticket)>,
    outcome: Option<(Status, u64)>,
    counts: Vec<(Counted, u64)>,
    /// Numbers of regions, with whether they are sealed.
    pub(super) regions: BTreeMap<u16, bool>,
    /// Keys that were handed out, and their regions.
    pub(super) grants: Vec<(Key, u16)>,
    /// Fences that have ended.
    pub(super) fenced: Vec<(Key, Result<(), Fault>)>,
    /// Where the next look for messages begins.
    pub(super) turn: u16,
}

/// A connection, at one of its ends.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) identity: u64,
    /// The first fault since the last flush.
    pub(super) fault: Option<Fault>,
    /// A message that was too long for the buffer of who looked for it.
    pub(super) message: Option<Message>,
}

impl PortState {
    pub(super) fn connection(&self, peer: PeerId) -> Result<&Connection, Fault> {
        self.connections.get(&peer).ok_or(Fault::ForeignHandle)
    }

    pub(super) fn count(&self, what: Counted) -> u64 {
        self.counts.iter().find(|(of, _)| *of == what).map_or(0, |(_, count)| *count)
    }

    fn note(&mut self, what: Counted) {
        match self.counts.iter_mut().find(|(of, _)| *of == what) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((what, 1)),
        }
    }

    fn on_ended(&mut self, peer: PeerId, ended: &Ended) {
        self.ended += 1;
        if let Some(fault) = ended.status.fault() {
            self.note(Counted::Fault(fault));
            if let Some(connection) = self.connections.get_mut(&peer) {
                connection.fault.get_or_insert(fault);
            }
        }
        if self.awaited.take_if(|awaited| *awaited == (peer, ended.ticket)).is_some() {
            self.outcome = Some((ended.status, ended.value));
        }
    }

    /// From now on the outcome of this operation is kept.
    pub(super) fn expect(&mut self, peer: PeerId, ticket: Ticket) {
        debug_assert!(self.outcome.is_none(), "one call waits at a time");
        self.awaited = Some((peer, ticket));
    }

    /// Takes the outcome of the operation that is awaited.
    pub(super) fn outcome(&mut self) -> Option<(Status, u64)> {
        self.outcome.take()
    }

    /// Takes the first offer of a peer under a name.
    pub(super) fn take_offer(&mut self, from: PeerId, kind: OfferKind, name: u64) -> Option<Offer> {
        let is_meant = |(peer, offer): &(PeerId, Offer)| {
            (*peer, offer.kind, offer.words[0]) == (from, kind, name)
        };
        let place = self.offers.iter().position(is_meant)?;
        Some(self.offers.remove(place).1)
    }

    /// Forgets a connection.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.connections.remove(&peer);
        self.offers.retain(|(from, _)| *from != peer);
        self.died.retain(|died| *died != peer);
    }
}

impl Shared {
    pub(super) fn port(&self, number: u16) -> &PortState {
        &self.ports[&number]
    }

    pub(super) fn port_mut(&mut self, number: u16) -> &mut PortState {
        self.ports.get_mut(&number).expect("a port was opened")
    }

    /// The memory of a port, also of one that has closed.
    pub(super) fn program(&self, number: u16, identity: u64) -> &Program {
        match self.port(number).identity == identity {
            true => self.cluster.program(u32::from(number)),
            false => &self.former[&identity],
        }
    }

    pub(super) fn program_mut(&mut self, number: u16, identity: u64) -> &mut Program {
        match self.port(number).identity == identity {
            true => self.cluster.program_mut(u32::from(number)),
            false => self.former.get_mut(&identity).expect("a port of this world"),
        }
    }

    /// A port gets a connection. One of the number that has ended is forgotten.
    pub(super) fn add(&mut self, number: u16, peer: PeerId) {
        self.hear(number);
        if self.port(number).connections.contains_key(&peer) {
            let forgotten = self.cluster.forget(u32::from(number), peer);
            forgotten.expect("a number is one connection's");
            self.port_mut(number).forget(peer);
        }
        let connection = Connection { identity: identity(), fault: None, message: None };
        self.port_mut(number).connections.insert(peer, connection);
    }

    /// Lets time pass for a program that has found nothing.
    pub(super) fn pass(&mut self, number: u16) {
        self.cluster.pass(LOOK);
        self.check_mailboxes();
        self.hear(number);
    }

    /// A mailbox drops what it has no room for, and tells nobody. A case that fills one would wait
    /// for ever, so it fails here.
    fn check_mailboxes(&self) {
        for (number, _) in self.ports.iter().filter(|(_, port)| port.is_open) {
            let Some(mailbox) = self.cluster.mailbox(u32::from(*number)) else { return };
            let discarded = mailbox.counts().discarded;
            assert_eq!(discarded, 0, "messages that port {number} had no room for: needs a lane");
        }
    }

    /// Takes the news of a node in.
    pub(super) fn hear(&mut self, number: u16) {
        let node = u32::from(number);
        while let Some(event) = self.cluster.event(node) {
            match event {
                Event::Ended(peer, ended) => self.port_mut(number).on_ended(peer, &ended),
                Event::Offered(peer, offer) => self.port_mut(number).offers.push((peer, offer)),
                Event::Gone(peer, _) => self.on_gone(number, peer),
                Event::Fenced(key, fenced) => self.port_mut(number).fenced.push((key, fenced)),
                // No case asks a lock unit, or waits for an interrupt.
                Event::Lock(..) | Event::Interrupt => {}
            }
        }
    }

    /// Waits hear of a peer that has died, and of the last one that has left.
    // spec: LIFE-11, LIFE-16
    fn on_gone(&mut self, number: u16, peer: PeerId) {
        let has_left = self.cluster.has_left(u32::from(number), peer);
        let is_alone = self.living(number).is_empty();
        if !has_left || is_alone {
            self.port_mut(number).died.push(peer);
        }
    }

    /// The peers of a port whose connections have not ended.
    pub(super) fn living(&self, number: u16) -> Vec<PeerId> {
        let lives = |peer: &PeerId| self.cluster.connection(u32::from(number), *peer).is_ok();
        self.port(number).connections.keys().copied().filter(lives).collect()
    }

    /// Refuses a peer that a port is not connected with any more.
    pub(super) fn check_peer(&self, number: u16, peer: PeerId) -> Result<(), SetupError> {
        self.port(number).connection(peer)?;
        match self.cluster.connection(u32::from(number), peer) {
            Ok(()) => Ok(()),
            Err(_) => Err(SetupError::PeerLeft { peer: format!("peer {}", peer.0) }),
        }
    }

    /// The port's program has ended: its interface leaves in its name, once all has arrived.
    pub(super) fn close(&mut self, number: u16) {
        self.port_mut(number).is_open = false;
        for peer in self.living(number) {
            self.cluster.leave(u32::from(number), peer);
        }
    }

    /// The suite's name for the reason of a refusal. `full` is that of a lane without room.
    pub(super) fn refuse(
        &mut self,
        number: u16,
        error: impl Into<Refusal>,
        full: Busy,
    ) -> ayre::PostError {
        let error = match error.into() {
            Refusal::Node(error) => error,
            Refusal::Message { .. } | Refusal::Page { .. } => return Fault::TooLong.into(),
            Refusal::Tag(_) | Refusal::Lock { .. } => return Fault::Malformed.into(),
        };
        let busy = match error {
            PostError::Fault(fault) => return fault.into(),
            PostError::Refused(Refused::TooLong) => return Fault::TooLong.into(),
            PostError::Refused(Refused::TooManyOutstanding) => Busy::TooManyOutstanding,
            PostError::Refused(Refused::NoRoom) => full,
            PostError::NotificationsFull => Busy::NotificationsFull,
        };
        self.port_mut(number).note(Counted::Busy(busy));
        // Posting again and again takes time, too.
        self.pass(number);
        busy.into()
    }
}
