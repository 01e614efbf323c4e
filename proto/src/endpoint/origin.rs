//! Where a message comes from.
use super::completions::Received;
use super::remote_id::RemoteId;
use crate::envelope::Envelope;
use crate::matching::Message;

/// Where a message comes from, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Its sender.
    pub source: RemoteId,
    /// Its tag and immediate data.
    pub envelope: Envelope,
    /// Bytes of the message.
    pub len: u64,
    /// Its sender waits for its end, under this name.
    pub answer: Option<u64>,
}

impl Origin {
    /// As the matcher sees it, its body under this key.
    #[inline(always)]
    pub(super) fn message(&self, body: usize, whole: bool) -> Message {
        let Self { source, envelope, len, .. } = *self;
        let (source, tag) = (Some(source.source()), envelope.tag.unwrap_or(0));
        Message { source, tag, len, handle: body as u64, whole }
    }

    /// The message as a program is told of it: where its bytes are, how many, and whether its
    /// receive is over.
    #[inline(always)]
    pub fn received(&self, (offset, placed): (u64, u64), released: bool) -> Received {
        let Self { source, envelope: Envelope { tag, data }, len, .. } = *self;
        debug_assert!(placed <= len, "no more is there than was sent");
        Received { source: Some(source), tag, data, len, placed, offset, released }
    }
}

/// Where a message is that waits for its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteBody {
    /// Its sender's name of it.
    pub(super) id: u64,
    /// Where it begins in the sender's memory; 0 where it is not to be read there.
    pub(super) address: u64,
}
