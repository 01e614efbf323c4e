//! Messages of ours whose end is still to come.
use super::completions::Context;
use super::ledger::Entry;
use super::remote_id::RemoteId;
use super::transport::Memory;

/// A message whose end is still to come.
#[derive(Debug)]
pub(super) struct PendingSend<M> {
    to: RemoteId,
    /// None when all have gone.
    bytes: M,
    context: Context,
    answered: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for its receive.
    RtsSent,
    /// So much of what is wanted has gone.
    Cleared { to: u64, at: usize, len: usize },
    /// All of it has gone.
    Sent,
}

impl<M> Entry for PendingSend<M> {
    #[inline]
    fn to(&self) -> RemoteId {
        self.to
    }
}

impl<M: Memory> PendingSend<M> {
    /// One that asks first.
    pub(super) fn with_rts(to: RemoteId, bytes: M, (context, answered): (Context, bool)) -> Self {
        Self { to, bytes, context, answered, stage: Stage::RtsSent }
    }

    /// One that has gone, and is to be answered.
    pub(super) fn sent(to: RemoteId, context: Context) -> Self {
        Self { to, bytes: M::default(), context, answered: true, stage: Stage::Sent }
    }

    pub(super) const fn remote(&self) -> RemoteId {
        self.to
    }

    pub(super) const fn context(&self) -> Context {
        self.context
    }

    pub(super) const fn bytes(&self) -> &M {
        &self.bytes
    }

    /// Takes a CTS for `len` bytes under the receiver's name `to`. False where no RTS is open for
    /// it.
    pub(super) fn on_cts(&mut self, from: RemoteId, (to, len): (u64, u64)) -> bool {
        let is_announced = self.to == from && self.stage == Stage::RtsSent;
        let is_cleared = is_announced && len <= self.bytes.len() as u64;
        if is_cleared {
            self.stage = Stage::Cleared { to, at: 0, len: len as usize };
        }
        is_cleared
    }

    /// The receiver's name, the bytes that were sent, and the bytes to send; none before the CTS.
    pub(super) const fn cleared(&self) -> Option<(u64, usize, usize)> {
        match self.stage {
            Stage::Cleared { to, at, len } => Some((to, at, len)),
            _ => None,
        }
    }

    /// Counts `count` more bytes as sent.
    pub(super) fn advance(&mut self, count: usize) {
        let Stage::Cleared { at, len, .. } = &mut self.stage else {
            debug_assert!(false, "what leaves is wanted");
            return;
        };
        debug_assert!(count > 0 && *at + count <= *len, "no more goes than is wanted");
        *at += count;
    }

    /// All of it has gone. Whether that is its end.
    pub(super) fn finish(&mut self) -> bool {
        let is_all = self.cleared().is_some_and(|(_, at, len)| at == len || len == 0);
        debug_assert!(is_all, "all that is wanted has gone");
        (self.stage, self.bytes) = (Stage::Sent, M::default());
        !self.answered
    }

    /// Whether this answer is its end.
    pub(super) fn is_due(&self, from: RemoteId) -> bool {
        self.to == from && self.answered && self.stage == Stage::Sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: ENV-4
    #[test]
    fn a_message_with_rts_is_sent_once_and_only_to_its_destination() {
        let [to, other] = [1, 2].map(|place| RemoteId::new(1, place));
        let mut send = PendingSend::with_rts(to, alloc::vec::Vec::<u8>::default(), (7, true));
        assert!(!send.is_due(to) && send.cleared().is_none());
        assert!(!send.on_cts(other, (3, 0)), "another remote");
        assert!(!send.on_cts(to, (3, 1)), "more than there is");
        assert!(send.on_cts(to, (3, 0)) && !send.on_cts(to, (3, 0)), "once");
        assert_eq!(send.cleared(), Some((3, 0, 0)));
        assert!(!send.is_due(to), "it has not gone");
        assert!(!send.finish(), "its end is an answer");
        assert!(send.is_due(to) && !send.is_due(other));
    }
}
