//! Landings: memory of this process, into which peers put the pieces of long messages.
use super::outgoing::Outgoing;
use super::peers::Landing;
use super::way::{LANDING, say};
use crate::error::{Busy, PostError, SetupError};
use crate::mem::region::RegionOptions;
use crate::port::connection::Connection;
use crate::settings::choice::Mode;
use crate::tuning::{Rings, Share, are_few, stream_width, width_in_turns};
use ayre_proto::active::long::is_landing;
use ayre_proto::active::record::Record;
use ayre_proto::units::{PeerId, Rights};

/// Bytes of a landing if there are many.
// spec: AM-12
const LANDING_NARROW: usize = 1 << 17;
const _: () = assert!(is_landing(LANDING_NARROW as u64), "many have one");

impl Outgoing {
    /// Makes the landing that a peer has asked for, if there is none yet, and hands it over.
    // spec: AM-12
    pub(super) fn make_landing(&mut self, peer: PeerId) -> Result<(), PostError> {
        let bytes = match &self.peer(peer).landing {
            Some(landing) => landing.region.len(),
            None => {
                let bytes = self.options.landing.unwrap_or_else(|| self.landing_for(peer));
                assert!(is_landing(bytes as u64), "{bytes} bytes are a landing's length");
                let landing = self.share_landing(peer, bytes);
                let landing = landing.map_err(|_| PostError::Busy(Busy::MessageLaneFull))?;
                let peer = self.peer(peer);
                peer.landing = Some(landing);
                peer.inward.make(bytes as u64);
                bytes
            }
        };
        say(&mut self.port, peer, &Record::Landing(bytes as u64))?;
        self.peer(peer).inward.gave();
        Ok(())
    }

    /// Returns the bytes of a new landing, given the landings that exist.
    // spec: AM-12, LIM-5, LIM-6
    fn landing_for(&self, peer: PeerId) -> usize {
        let is_near = |other: &&Connection| other.mode() == Mode::Direct;
        let takes_turns = self.port.config.spin.is_shared()
            && self.port.peers.at(peer.index()).filter(is_near).is_some();
        let others = self.peers.iter().filter(|peer| peer.landing.is_some()).count();
        let wanted = if takes_turns {
            width_in_turns(self.port.peers.living().filter(is_near).count())
        } else if are_few(others) {
            stream_width()
        } else {
            LANDING_NARROW
        };
        Rings::of_process().affordable(wanted, 1, self.port.clock.is_simulated())
    }

    fn share_landing(&mut self, peer: PeerId, bytes: usize) -> Result<Landing, SetupError> {
        let region = self.port.alloc(bytes, RegionOptions::new())?;
        let grant = self.port.share(peer, &region, 0..bytes, Rights::WRITE, LANDING)?;
        let _share = Share::taken(Rings::of_process(), bytes as u64);
        Ok(Landing { region, _grant: grant, _share })
    }
}
