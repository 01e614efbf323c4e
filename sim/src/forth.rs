//! FORTH's prototype: interfaces with a queue for each target around a buffered crossbar.
//!
//! Source: Papaefstathiou et al., "Prototyping Efficient Interprocessor Communication Mechanisms".
use crate::link::LinkTiming;
use crate::network::{NodeQueue, Parameters, Readout, Switching};
use crate::routing::Policy;
use crate::time::Time;

/// Bytes of a packet: the longest is stated (section III). The shortest is not; TCP's is taken.
pub const PACKET: (u32, u32) = (40, 512);
/// Bytes around each packet on the link: header, CRC and credits. Reconstructed: with packets of
/// uniform lengths they leave the 96 % that figure 6 ends at.
pub const FRAMING: u32 = 12;
/// Propagation from source to switch to destination (section V.B).
const PROPAGATION: Time = Time::from_nanos(640);
/// The delay under light load less the propagation: pipelines of the interface and the switch,
/// 48 cycles of 12.8 ns. This one constant is fitted (figure 6 at light load).
const PIPELINES: Time = Time(48 * 12_800);

/// The network with this number of nodes (sections III and IV): 2.5 Gb/s, 2 KiB at each crosspoint.
pub fn network(nodes: u16) -> Parameters {
    let half = |time: Time| Time(time.0 / 2);
    Parameters {
        link: LinkTiming { phit: Time(3_200), width: 1, wire: half(PROPAGATION) },
        wire_to_node: half(PROPAGATION),
        pipeline: half(PIPELINES),
        injection: half(PIPELINES),
        credit: half(PROPAGATION),
        channels: nodes,
        buffer: 2048,
        readout: Readout::Channel,
        node_queue: NodeQueue::PerTarget,
        switching: Switching::CutThrough,
        policy: Policy::Direct,
    }
}
