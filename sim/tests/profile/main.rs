//! Nodes of the protocol behind interfaces that differ from it.
//!
//! `mailbox` has messages, `locks` the lock space, `times` the times of operations that are alone,
//! and `pages` translation and fences.
mod locks;
mod mailbox;
mod pages;
mod times;

use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::node::Order;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use ayre_sim::cluster::{
    Cluster, ClusterError, Event, InterfaceTimes, Local, Lock, LockRequest, Locks, Mailboxes,
    Pages, Profile, ProfileError, Refusal,
};
use ayre_sim::extoll::{self, Operation, frame, prototype_clock};
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{NodeQueue, Parameters, Readout, Switching};
use ayre_sim::random::Random;
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Topology;

/// 10 GB/s, 8 bytes at a time, 20 ns of wire.
const LINK: LinkTiming = LinkTiming { phit: Time(800), width: 8, wire: Time::from_nanos(20) };

fn parameters(nodes: u32) -> Parameters {
    Parameters {
        link: LINK,
        wire_to_node: LINK.wire,
        pipeline: Time::from_nanos(40),
        injection: Time::ZERO,
        credit: Time::from_nanos(20),
        channels: nodes as u16,
        buffer: 8192,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    }
}

/// Nodes at one switch, the first one connected with all others.
fn star(nodes: u32, profile: Profile) -> Cluster {
    let topology = Topology::star(nodes).expect("a possible star");
    let cluster =
        Cluster::with_profile(&topology, parameters(nodes), InterfaceTimes::PCIE, profile);
    let mut cluster = cluster.expect("possible parameters");
    (1..nodes).for_each(|node| cluster.connect(0, node));
    cluster
}

/// Lets time go on to a time, and looks after each step.
fn advance(cluster: &mut Cluster, to: Time, mut look: impl FnMut(&mut Cluster)) {
    while cluster.now() < to {
        cluster.pass(to - cluster.now());
        look(cluster);
    }
}

/// Lets time go on until links have nothing to say for a while.
fn settle(cluster: &mut Cluster) {
    let soon = Time::from_nanos(100_000);
    while cluster.next_time().is_some_and(|at| at < cluster.now() + soon) {
        cluster.step();
    }
}

fn mailboxes(slots: u32) -> Profile {
    let mailbox = Profile::extoll().mailbox.map(|mailbox| Mailboxes { slots, ..mailbox });
    Profile { mailbox, ..Profile::extoll() }
}

const NODE: PeerId = PeerId(0);
const LOCK: Lock = Lock { process: 1, number: 7 };
const TAKE: LockRequest = LockRequest { lock: LOCK, limit: 0, addend: 1 };

/// The cycle of EXTOLL's core.
fn cycles(count: u64) -> Time {
    prototype_clock().span(count)
}

/// EXTOLL's nodes at a switch, with the trip of the shortest packet that the thesis gives.
fn extoll(nodes: u32, profile: Profile) -> Cluster {
    let times = profile.units.expect("it has units");
    let shortest = cycles(frame::cycles(8, false).into());
    let wire = Time((times.trip - shortest).0 / 2);
    let link = LinkTiming { phit: cycles(1), width: frame::PHIT, wire };
    let network =
        Parameters { link, wire_to_node: wire, pipeline: Time::ZERO, ..parameters(nodes) };
    let topology = Topology::star(nodes).expect("a possible star");
    let times = InterfaceTimes::of_units(&times);
    let mut cluster =
        Cluster::with_profile(&topology, network, times, profile).expect("possible parameters");
    (1..nodes).for_each(|node| cluster.connect(0, node));
    cluster
}

/// Memory of node 0, and the key that a peer has to it.
fn shared(cluster: &mut Cluster, holder: u32, len: u64) -> (u16, Key) {
    let region = cluster.program_mut(0).add_region(vec![0; len as usize]).expect("a number");
    let holder = PeerId(holder as u16);
    let key = cluster.share(0, Cover { holder, rights: Rights::all(), region, base: 0, len });
    (region, key.expect("a free slot"))
}

fn order(action: Action, claim: Claim, local: Option<Local>, classes: Classes) -> Order<Local> {
    let command = Command { action, classes, tag: 7, value: 9, claim };
    Order { command, shape: Shape::contiguous(claim.len), local }
}

#[test]
fn an_impossible_profile_is_an_error() {
    let topology = Topology::star(2).expect("a possible star");
    let made = |profile| {
        let times = InterfaceTimes::PCIE;
        Cluster::with_profile(&topology, parameters(2), times, profile).map(|_| ())
    };
    let locks = Profile { mailbox: None, ..Profile::extoll() };
    assert!(matches!(made(locks), Err(ClusterError::Profile(ProfileError::Locks))));
    let slots = Err(ProfileError::Slots { slots: 1, longest: 64 });
    assert_eq!(mailboxes(1).check(), slots);
    assert!(made(mailboxes(2)).is_ok());
}
