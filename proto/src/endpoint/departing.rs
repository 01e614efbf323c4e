//! Messages of ours whose end is still to come.
use super::ends::Context;
use super::ledger::Entry;
use super::remote_id::RemoteId;
use super::ways::Memory;

/// A message whose end is still to come.
#[derive(Debug)]
pub(super) struct Departing<M> {
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
    Asked,
    /// So much of what is wanted has gone.
    Wanted { to: u64, at: usize, len: usize },
    /// All of it has gone.
    Gone,
}

impl<M> Entry for Departing<M> {
    #[inline]
    fn to(&self) -> RemoteId {
        self.to
    }
}

impl<M: Memory> Departing<M> {
    /// One that asks first.
    pub(super) fn asking(to: RemoteId, bytes: M, (context, answered): (Context, bool)) -> Self {
        Self { to, bytes, context, answered, stage: Stage::Asked }
    }

    /// One that has gone, and is to be answered.
    pub(super) fn gone(to: RemoteId, context: Context) -> Self {
        Self { to, bytes: M::default(), context, answered: true, stage: Stage::Gone }
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

    /// So many bytes of it are wanted, under this name. False where it has not asked for that.
    pub(super) fn want(&mut self, from: RemoteId, (to, len): (u64, u64)) -> bool {
        let is_asked = self.to == from && self.stage == Stage::Asked;
        let is_wanted = is_asked && len <= self.bytes.len() as u64;
        if is_wanted {
            self.stage = Stage::Wanted { to, at: 0, len: len as usize };
        }
        is_wanted
    }

    /// What is wanted of it: under which name, how many bytes have gone, and how many are to go.
    pub(super) const fn wanted(&self) -> Option<(u64, usize, usize)> {
        match self.stage {
            Stage::Wanted { to, at, len } => Some((to, at, len)),
            _ => None,
        }
    }

    /// So many more bytes have gone.
    pub(super) fn advance(&mut self, count: usize) {
        let Stage::Wanted { at, len, .. } = &mut self.stage else {
            debug_assert!(false, "what leaves is wanted");
            return;
        };
        debug_assert!(count > 0 && *at + count <= *len, "no more goes than is wanted");
        *at += count;
    }

    /// All of it has gone. Whether that is its end.
    pub(super) fn finish(&mut self) -> bool {
        let is_all = self.wanted().is_some_and(|(_, at, len)| at == len || len == 0);
        debug_assert!(is_all, "all that is wanted has gone");
        (self.stage, self.bytes) = (Stage::Gone, M::default());
        !self.answered
    }

    /// Whether this answer is its end.
    pub(super) fn is_due(&self, from: RemoteId) -> bool {
        self.to == from && self.answered && self.stage == Stage::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: ENV-4
    #[test]
    fn a_message_with_rts_is_sent_once_and_only_to_its_destination() {
        let [to, other] = [1, 2].map(|place| RemoteId::new(1, place));
        let mut asking = Departing::asking(to, alloc::vec::Vec::<u8>::default(), (7, true));
        assert!(!asking.is_due(to) && asking.wanted().is_none());
        assert!(!asking.want(other, (3, 0)), "another remote");
        assert!(!asking.want(to, (3, 1)), "more than there is");
        assert!(asking.want(to, (3, 0)) && !asking.want(to, (3, 0)), "once");
        assert_eq!(asking.wanted(), Some((3, 0, 0)));
        assert!(!asking.is_due(to), "it has not gone");
        assert!(!asking.finish(), "its end is an answer");
        assert!(asking.is_due(to) && !asking.is_due(other));
    }
}
