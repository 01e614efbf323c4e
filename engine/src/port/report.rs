//! What a port reports of its links.
use super::Port;
use crate::link::report::{LinkLoad, LinkReport, Owner, WireReport, links};
use ayre_proto::units::PeerId;

impl Port {
    /// Each link with a port of another host; none before the port is open to them. It does not
    /// block, costs what copying the numbers does, and changes nothing.
    // spec: WIRE-8
    pub fn links(&self) -> Vec<LinkReport> {
        self.remote.shared().get().map_or_else(Vec::new, links)
    }

    /// What is on the links with these peers at this moment: none where there is no link with one.
    /// It takes a lock and copies a few numbers of each.
    // spec: COLL-18
    pub fn link_loads(&self, peers: &[PeerId], into: &mut [Option<LinkLoad>]) {
        let wire = self.remote.wire();
        for (peer, load) in peers.iter().zip(into) {
            *load = wire.as_ref().and_then(|wire| wire.load(*peer));
        }
    }

    /// The same with what concerns no link; none before the port is open to other hosts.
    // spec: WIRE-8
    pub fn wire_report(&self) -> Option<WireReport> {
        Some(Owner::this(self.id).report(self.remote.shared().get()?))
    }
}
