//! Long transfers that share links end when max-min fair shares let them, within some packets.
//!
//! ```text
//!   a, b, e --- r0 --- r1 --- r2 --- d, f
//!                      |
//!                   c, g, h
//! ```
//!
//! Packets take turns at each output, so transfers that come by as many inputs share it evenly. A
//! fluid model computes with just these shares.
use ayre_sim::link::LinkTiming;
use ayre_sim::network::{Network, NodeQueue, Parameters, Readout, Switching};
use ayre_sim::routing::Policy;
use ayre_sim::time::Time;
use ayre_sim::topology::Named;
use core::num::NonZeroU32;

const LINE: &str = "router r0\nrouter r1\nrouter r2\nlink r0 r1\nlink r1 r2\nnode a r0\nnode b r0\n\
                    node e r0\nnode c r1\nnode g r1\nnode h r1\nnode d r2\nnode f r2\nend\n";

const PACKET: u32 = 1000;
/// Time of a megabyte on a link that nobody else uses.
const ALONE: Time = Time::from_nanos(1_000_000);

/// A transfer: its source, its target, its megabytes, and when it begins, in times of a megabyte.
type Transfer = (&'static str, &'static str, u32, u64);

/// The time at which each transfer ends, in times of a megabyte.
fn ends(transfers: &[Transfer]) -> Vec<f64> {
    let named = Named::read("line.txt", LINE).unwrap();
    let node = |name: &str| named.nodes.iter().position(|node| node == name).unwrap() as u32;
    let parameters = Parameters {
        link: LinkTiming { phit: Time(1_000), width: 1, wire: Time::from_nanos(100) },
        wire_to_node: Time::from_nanos(100),
        pipeline: Time(1),
        injection: Time(0),
        credit: Time::from_nanos(100),
        channels: 8,
        buffer: 8 * PACKET,
        readout: Readout::Channel,
        node_queue: NodeQueue::One,
        switching: Switching::CutThrough,
        policy: Policy::UpDown,
    };
    let mut network = Network::silent(&named.topology, parameters).unwrap();
    for (tag, (source, target, megabytes, begin)) in (1..).zip(transfers) {
        let at = Time(begin * ALONE.0);
        for _ in 0..megabytes * 1_000_000 / PACKET {
            let tag = NonZeroU32::new(tag).unwrap();
            network.inject(at, node(source), node(target), PACKET, tag).unwrap();
        }
    }
    let mut ends = vec![Time::ZERO; transfers.len()];
    while network.next_time().is_some() {
        network.step();
        for delivery in network.deliveries() {
            let end = &mut ends[delivery.tag.get() as usize - 1];
            *end = delivery.at.max(*end);
        }
    }
    ends.into_iter().map(|end| end.0 as f64 / ALONE.0 as f64).collect()
}

/// Ends of transfers, within 1 %: ten packets of the shortest transfer.
fn check(transfers: &[Transfer], expected: &[f64]) {
    let ends = ends(transfers);
    println!("{ends:?} {expected:?}");
    for (end, expected) in ends.iter().zip(expected) {
        assert!((end / expected - 1.0).abs() < 0.01, "{ends:?} {expected:?}");
    }
}

#[test]
fn a_transfer_alone_takes_its_bytes_and_the_way() {
    // Four links' times of flight, and two routers of a picosecond more than that.
    let expected = 1.0 + (3.0 * 100.0 + 0.002) / 1e6;
    assert_eq!(ends(&[("a", "d", 1, 0)]), [expected]);
}

#[test]
fn two_transfers_halve_a_link_until_one_ends() {
    check(&[("a", "d", 1, 0), ("b", "f", 3, 0)], &[2.0, 4.0]);
    // The second one begins when the first one is half over.
    check(&[("a", "d", 2, 0), ("b", "f", 1, 1)], &[3.0, 3.0]);
}

#[test]
fn a_long_way_gets_as_much_as_short_ones() {
    check(&[("a", "d", 1, 0), ("b", "c", 1, 0), ("g", "f", 1, 0)], &[2.0, 2.0, 2.0]);
}

#[test]
fn what_one_link_leaves_goes_to_the_others() {
    // A third each on the first link. The second one has two thirds for the fourth transfer.
    let transfers = [("a", "d", 1, 0), ("b", "c", 1, 0), ("e", "h", 1, 0), ("g", "f", 3, 0)];
    check(&transfers, &[3.0, 3.0, 3.0, 4.0]);
}

#[test]
fn a_nearer_source_gets_more_of_a_target() {
    // Routers share by inputs, not by transfers: a half, and two quarters. A fluid gives thirds.
    check(&[("a", "d", 1, 0), ("b", "d", 1, 0), ("c", "d", 1, 0)], &[3.0, 3.0, 2.0]);
}
