//! PendingRma remotes' windows, and opening our own to them.
use super::{Context, MemoryRegions, RawEndpoint, RemoteId, RmaUpdate, RmaWrite};
use crate::error::PostError;
use crate::mem::span::Spans;
use ayre_proto::combine::{Combine, Number};
use ayre_proto::endpoint::{RemoteAddress, SHORT_MAX, Sent};
use ayre_proto::rma::Calculation;
use ayre_proto::units::PeerId;

impl RawEndpoint {
    /// Numbers of the longest update with this operation and type.
    pub const fn update_max(op: Combine, number: Number) -> usize {
        Calculation::count_max(op, number)
    }

    /// Bytes of the longest read that is done in its turn, whole: see spec/46.
    pub const fn prompt_read_max() -> usize {
        SHORT_MAX
    }

    /// Writes to a remote's window. Its end is told, as
    /// [`CompletionKind::Written`](super::raw::CompletionKind::Written), when the target has done
    /// it or refused; what is returned says whether its memory is needed until then.
    ///
    /// Operations on one endpoint, messages included, are done in the order of posting.
    ///
    /// # Errors
    /// As [`RawEndpoint::send`]; [`Fault::TooLong`](crate::Fault::TooLong) for one that is to be
    /// injected and is too long for that.
    // spec: ENV-24, ENV-25
    pub fn write(&mut self, to: RemoteAddress, write: &RmaWrite) -> Result<Sent, PostError> {
        let peer = self.way_to(to.remote)?;
        let (protocol, mut around) = self.parts();
        protocol.write(&mut around, (peer, to), write)
    }

    /// Reads a remote's window, as much of it as there is room for. Its end is told as
    /// [`CompletionKind::Read`](super::raw::CompletionKind::Read).
    ///
    /// # Errors
    /// As [`RawEndpoint::send`].
    // spec: ENV-24, ENV-27
    pub fn read(
        &mut self,
        from: RemoteAddress,
        into: Spans,
        context: Context,
    ) -> Result<(), PostError> {
        let peer = self.way_to(from.remote)?;
        let (protocol, mut around) = self.parts();
        protocol.read(&mut around, (peer, from), into, context)
    }

    /// Updates numbers in a remote's window. Its end is told as
    /// [`CompletionKind::Updated`](super::raw::CompletionKind::Updated); its operands are the
    /// program's again at once.
    ///
    /// # Errors
    /// As [`RawEndpoint::send`]; [`Fault::Malformed`](crate::Fault::Malformed) where lengths do not
    /// agree or the operation is not defined for such numbers,
    /// [`Fault::TooLong`](crate::Fault::TooLong) beyond [`RawEndpoint::update_max`].
    // spec: ENV-24, ENV-28
    pub fn update(&mut self, at: RemoteAddress, update: &RmaUpdate) -> Result<(), PostError> {
        let peer = self.way_to(at.remote)?;
        let (protocol, mut around) = self.parts();
        protocol.update(&mut around, (peer, at), update)
    }

    /// Where something that is posted goes, and the remote is called if nobody has.
    #[inline]
    pub(super) fn way_to(&mut self, remote: RemoteId) -> Result<PeerId, PostError> {
        let peer = self.remotes.way(remote).map_or_else(|| self.reach(remote), Ok)?;
        debug_assert!(self.port.connection(peer).is_ok(), "it is connected");
        Ok(peer)
    }

    /// Lets remotes touch these windows from now on, in place of those they could touch before;
    /// without any, each key is unknown.
    pub fn share(&mut self, regions: &MemoryRegions) {
        self.regions = Some(regions.clone());
    }
}
