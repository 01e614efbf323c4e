//! Reports on a port's links.
use super::Port;
use crate::link::LinkLoad;
use crate::link::report::{LinkReport, Owner, WireReport, links};
use ayre_proto::units::PeerId;

impl Port {
    /// A report on each link with a port of another host; empty before the port is open to other
    /// hosts. It copies numbers under a lock, does not wait for peers, and changes nothing.
    // spec: WIRE-8
    pub fn links(&self) -> Vec<LinkReport> {
        self.remote.shared().get().map_or_else(Vec::new, links)
    }

    /// Writes the present load of the links with these peers into `into`: `None` where there is no
    /// link with a peer. Copies a few numbers of each under a lock.
    // spec: COLL-18
    pub fn link_loads(&self, peers: &[PeerId], into: &mut [Option<LinkLoad>]) {
        let wire = self.remote.wire();
        for (peer, load) in peers.iter().zip(into) {
            *load = wire.as_ref().and_then(|wire| wire.load(*peer));
        }
    }

    /// A report on the wire as a whole, apart from single links; `None` before the port is open to
    /// other hosts.
    // spec: WIRE-8
    pub fn wire_report(&self) -> Option<WireReport> {
        Some(Owner::this(self.id).report(self.remote.shared().get()?))
    }
}
