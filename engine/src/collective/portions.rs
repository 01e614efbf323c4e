//! Sending portions: a header and some bytes, as a short or a long message.
use crate::active::outgoing::Outgoing;
use crate::error::{Busy, PostError};
use ayre_proto::collective::portion::{HEADER, Header, PORTION};
use ayre_proto::limits::{EAGER_MAX, LINE_PAYLOAD};
use ayre_proto::units::PeerId;
use std::array::from_fn;

/// Bytes of a portion that goes in one message with its header.
pub(super) const WHOLE_MAX: usize = EAGER_MAX - HEADER;
const _: () = assert!(HEADER.is_multiple_of(8), "a header is of words");
const _: () = assert!(HEADER < LINE_PAYLOAD, "what is least goes in one line");

impl Outgoing {
    /// Sends a portion, or as much of a long one as there is room for. Returns true when all of it
    /// is sent, and false while the rest waits for a record of the peer.
    // spec: COLL-12
    #[inline]
    pub(super) fn send_portion(
        &mut self,
        to: PeerId,
        header: Header,
        bytes: &[u8],
        half_sent: &mut Option<usize>,
    ) -> Result<bool, PostError> {
        if half_sent.is_none() && self.peer(to).is_busy() {
            return Err(Busy::MessageLaneFull.into());
        }
        let sent = self.post_portion(to, &header.encode(), bytes, half_sent);
        if let Err(PostError::Busy(_)) = sent {
            // No event tells of room in a lane.
            self.stir();
        }
        sent
    }

    #[inline]
    fn post_portion(
        &mut self,
        to: PeerId,
        header: &[u8; HEADER],
        bytes: &[u8],
        half_sent: &mut Option<usize>,
    ) -> Result<bool, PostError> {
        if bytes.len() <= WHOLE_MAX {
            debug_assert!(half_sent.is_none(), "what is one message is sent whole");
            return self.post_whole(to, header, bytes).map(|()| true);
        }
        let mut sent = half_sent.unwrap_or(0);
        let advanced = self.advance(to, (PORTION, header), bytes, &mut sent);
        debug_assert!(sent <= bytes.len(), "no more is sent than there is");
        *half_sent = (sent > 0 && !matches!(advanced, Ok(true))).then_some(sent);
        // Other messages to the peer wait until this one is sent whole.
        let is_held = half_sent.is_some();
        let outward = &mut self.peer(to).outward;
        if outward.is_held() != is_held {
            outward.hold(is_held);
            self.stir();
        }
        advanced
    }

    /// Sends a portion that fits one message.
    #[inline(always)]
    pub(super) fn post_whole(
        &mut self,
        to: PeerId,
        header: &[u8; HEADER],
        bytes: &[u8],
    ) -> Result<(), PostError> {
        debug_assert!(bytes.len() <= WHOLE_MAX, "it goes in one message");
        let (words, _) = header.as_chunks::<8>();
        let head: [u64; HEADER / 8] = from_fn(|at| u64::from_le_bytes(words[at]));
        let has_gone = match HEADER + bytes.len() <= LINE_PAYLOAD {
            true => self.port.send_line(to, PORTION, head, bytes),
            false => self.port.send_lines(to, PORTION, head, bytes),
        };
        if has_gone { Ok(()) } else { self.post_whole_slowly(to, header, bytes) }
    }

    /// Sends a portion of one message, also where the fast path above does not apply.
    ///
    /// # Errors
    /// The errors of [`Port::send`](crate::port::Port::send).
    #[inline(never)]
    fn post_whole_slowly(
        &mut self,
        to: PeerId,
        header: &[u8; HEADER],
        bytes: &[u8],
    ) -> Result<(), PostError> {
        let record = &mut [0; EAGER_MAX];
        self.port.send(to, PORTION, lay(record, header, bytes))
    }
}

/// Splits a portion into its header and its bytes.
#[inline(always)]
fn lay<'a>(record: &'a mut [u8], header: &[u8; HEADER], bytes: &[u8]) -> &'a [u8] {
    let len = HEADER + bytes.len();
    record[..HEADER].copy_from_slice(header);
    record[HEADER..len].copy_from_slice(bytes);
    &record[..len]
}
