//! Receiving: portions of members, short and long, and notices.
use super::state::Groups;
use crate::active::outgoing::Outgoing;
use crate::active::{Extension, LongHead, Messenger};
use ayre_proto::active::long::Piece;
use ayre_proto::collective::portion::{HEADER, PORTION, PORTION_MAX, TAGS};
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;

impl<S> Messenger<S> {
    #[inline(always)]
    pub(super) fn groups(&mut self) -> &mut Groups {
        self.features.as_mut()
    }

    /// The groups, and the sending side.
    #[inline(always)]
    pub(super) fn groups_and_out(&mut self) -> (&mut Groups, &mut Outgoing) {
        (self.features.as_mut(), &mut self.out)
    }
}

impl<S> Extension<S> for Groups {
    fn takes(tag: u32) -> bool {
        TAGS.contains(&tag)
    }

    // spec: COLL-12
    #[inline]
    fn on_record(
        messenger: &mut Messenger<S>,
        _: &mut S,
        (source, tag): (PeerId, u32),
        len: usize,
    ) -> Result<usize, Malformed> {
        let Messenger { features, buffer, out, .. } = messenger;
        let groups: &mut Self = features.as_mut();
        if tag == PORTION {
            groups.take(source, &buffer[..len])?;
        } else {
            groups.on_notice(source, tag, &buffer[..len])?;
            out.stir();
        }
        Ok(0)
    }

    fn admits(long: &LongHead<'_>) -> bool {
        let fits = long.total <= PORTION_MAX as u64 && long.arguments.len() == HEADER;
        long.id == PORTION && fits
    }

    fn on_landed(
        messenger: &mut Messenger<S>,
        _: &mut S,
        source: PeerId,
        long: &LongHead<'_>,
        piece: Piece,
    ) -> Result<usize, Malformed> {
        let (groups, out) = messenger.groups_and_out();
        if !groups.take_landed(source, long.arguments, piece)? {
            let mut bytes = vec![0; piece.len as usize];
            out.read_landing(source, piece.offset, &mut bytes);
            groups.take_long(source, long.arguments, bytes)?;
        }
        Ok(0)
    }

    fn on_long(
        messenger: &mut Messenger<S>,
        _: &mut S,
        source: PeerId,
        (_, header): (u32, &[u8]),
        bytes: Vec<u8>,
    ) -> Result<usize, Malformed> {
        messenger.groups().take_long(source, header, bytes)?;
        Ok(0)
    }

    #[inline(always)]
    fn advance(messenger: &mut Messenger<S>, _: &mut S) -> usize {
        messenger.advance_started();
        0
    }

    fn is_due(messenger: &Messenger<S>) -> bool {
        let groups: &Self = messenger.features.as_ref();
        groups.has_started
    }

    fn on_death(messenger: &mut Messenger<S>, peer: PeerId) {
        messenger.groups().on_death(peer);
    }
}
