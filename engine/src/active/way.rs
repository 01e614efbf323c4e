//! Long messages to a peer: records by its lane, and pieces by puts into its landing.
use super::peers::Peer;
use crate::error::{Busy, Fault, PostError};
use crate::mem::region::RemoteRegion;
use crate::peer::packet::PacketKind;
use crate::port::Port;
use crate::port::options::PostOptions;
use crate::settings::choice::Mode;
use crate::tuning::{Method, Use};
use ayre_proto::active::long::{LongSender, Message, UNASKED_MAX, Way};
use ayre_proto::active::record::Record;
use ayre_proto::units::PeerId;

/// The name under which landings are handed over.
// spec: AM-12
pub(super) const LANDING: u64 = 0x6179_7265_0000_0001;

/// The lane and the landing of one peer.
pub(crate) struct WayTo<'a> {
    port: &'a mut Port,
    to: PeerId,
    there: &'a mut Option<Box<RemoteRegion>>,
}

/// Returns the sending state of a known peer's long messages, and its lane and landing.
pub(crate) fn way_to<'a>(
    port: &'a mut Port,
    peers: &'a mut [Peer],
    to: PeerId,
) -> (&'a mut LongSender, WayTo<'a>) {
    let Peer { outward, there, .. } = &mut peers[to.index()];
    (outward, WayTo { port, to, there })
}

/// Sends a record to a peer, if its lane has room.
pub(super) fn say(port: &mut Port, to: PeerId, record: &Record<'_>) -> Result<(), PostError> {
    let (tag, bytes) = record.encode();
    port.send(to, tag, &bytes)
}

impl Way for WayTo<'_> {
    type Error = PostError;

    fn say(&mut self, record: &Record<'_>) -> Result<(), PostError> {
        say(self.port, self.to, record)
    }

    // spec: AM-12
    fn open(&mut self, bytes: u64) -> Result<(), PostError> {
        if !self.port.has_offer(self.to, PacketKind::OfferRegion, LANDING) {
            return Err(Busy::MessageLaneFull.into());
        }
        match self.port.accept_region(self.to, LANDING) {
            Ok(region) if region.len() == bytes => {
                *self.there = Some(Box::new(region));
                Ok(())
            }
            _ => {
                self.port.end_malformed_lane(self.to);
                Err(Fault::PeerDead.into())
            }
        }
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PostError> {
        let region = self.there.as_deref().ok_or(Fault::PeerDead)?;
        let end = offset + bytes.len() as u64;
        debug_assert!(end <= region.len(), "a piece lies in the landing");
        self.port.put(region, offset, bytes, PostOptions::new()).map(|_| ())
    }

    /// A poll never waits. So bytes that do not fit the room of the landing are put as further
    /// pieces.
    fn longest_put(&mut self) -> usize {
        usize::try_from(self.port.longest_put_at_once(self.to)).unwrap_or(usize::MAX)
    }

    // spec: INJ-2, INJ-8
    fn offers(&self, message: &Message<'_>) -> Option<u64> {
        let payload = message.payload;
        let is_direct = matches!(self.port.mode(self.to), Ok(Mode::Direct));
        let said = self.port.config.tuning.as_ref();
        let said = said.and_then(|tuning| tuning.said(Use::Message, payload.len() as u64));
        let asks = said.map_or(payload.len() > UNASKED_MAX, |by| by == Method::Kernel);
        // The call that has the payload may end early.
        let stays = self.port.config.interrupt.is_none();
        (is_direct && asks && stays).then(|| payload.as_ptr().addr() as u64)
    }
}
