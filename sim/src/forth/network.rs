//! The network: interfaces with a queue for each target around a buffered crossbar.
use crate::link::LinkTiming;
use crate::network::{NodeQueue, Parameters, Readout, Switching};
use crate::routing::Policy;
use crate::time::Time;

/// Bytes of a packet: the longest is stated (section III). The shortest is not; TCP's is taken.
pub const PACKET: (u32, u32) = (40, 512);
/// Bytes around each packet on the link: header, CRC and credits. Reconstructed: with packets of
/// uniform lengths they leave the 96 % that figure 6 ends at.
pub const FRAMING: u32 = 12;
/// Propagation from source to switch to destination (section V.B): SERDES and cables.
pub const PROPAGATION: Time = Time::from_nanos(640);
/// A link's byte: 2.5 Gb/s (section I).
pub const BYTE: Time = Time(3_200);
/// The pipeline of an interface, and that of a switch: 9.5 cycles of 12.8 ns. Reconstructed.
///
/// It is fitted to the 1.25 us of figure 6 under light load, which begin at the making of a packet
/// and end where it enters the other interface:
///
/// ```text
///   0.64 propagation + 0.35 storing + 0.02 waiting at 5 % load + 2 pipelines = 1.25 us
/// ```
///
/// The receiving interface is taken to be as deep as the sending one.
pub const PIPELINE: Time = Time(121_600);
/// The time in which the DMA engine brings 8 bytes into the interface: a cycle of PCI-X.
const WORD: Time = Time::from_nanos(10);

/// The time until a packet is in the queue of its target.
///
/// Reconstructed: the interface stores all of a packet before it sends the packet. A read from the
/// host may stop at any word, and a link has no pause within a packet.
pub fn stored(bytes: u32) -> Time {
    Time(u64::from(bytes.div_ceil(8)) * WORD.0)
}

/// The network with this number of nodes (sections III and IV): 2.5 Gb/s, 2 KiB at each
/// crosspoint. Packets are stored for the time of one of mean length.
pub fn network(nodes: u16) -> Parameters {
    let wire = Time(PROPAGATION.0 / 2);
    Parameters {
        link: LinkTiming { phit: BYTE, width: 1, wire },
        wire_to_node: wire,
        pipeline: PIPELINE,
        injection: PIPELINE + stored(u32::midpoint(PACKET.0, PACKET.1)),
        credit: wire,
        channels: nodes,
        buffer: 2048,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;
    use crate::topology::Topology;
    use core::num::NonZeroU32;

    const BYTES: u32 = PACKET.1 + FRAMING;

    /// The delay of a packet to an idle node that its source made after many for a congested one.
    fn behind_congestion(node_queue: NodeQueue) -> Time {
        let parameters = Parameters { node_queue, ..network(8) };
        let star = Topology::star(8).expect("a possible star");
        let mut network = Network::silent(&star, parameters).expect("a possible network");
        let tag = |number| NonZeroU32::new(number).expect("not zero");
        for source in [1, 2, 3, 0] {
            for _ in 0..100 {
                network.inject(Time::ZERO, source, 7, BYTES, tag(1)).expect("a possible packet");
            }
        }
        network.inject(Time::ZERO, 0, 6, BYTES, tag(2)).expect("a possible packet");
        network.run(401);
        let mut ends = network.deliveries().filter(|delivery| delivery.tag == tag(2));
        ends.next().expect("it is delivered").at
    }

    #[test]
    fn a_queue_for_each_target_keeps_congestion_away_from_others() {
        let parameters = network(8);
        let time = parameters.link.span(BYTES);
        let idle = parameters.injection + PROPAGATION + parameters.pipeline + time;
        let per_target = behind_congestion(NodeQueue::PerTarget);
        assert!(per_target <= idle + time, "{per_target}: one packet may be before it");
        // The congested output takes a packet of each source in turn: all but the last four
        // packets, which are at the switch, leave before.
        let one = behind_congestion(NodeQueue::One);
        assert!(one.0 > idle.0 + 380 * time.0, "{one}");
    }

    #[test]
    fn a_stored_packet_takes_a_cycle_of_the_bus_for_each_word() {
        assert_eq!(stored(512), Time::from_nanos(640));
        assert_eq!(stored(1), stored(8));
    }
}
