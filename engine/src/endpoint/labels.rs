//! Finding a receive that is to be taken back: by a label, the lower half of its context.
//!
//! Programs that take receives back are few, and so posting one costs nothing for it. The first to
//! be taken back is looked for among all; from then on those that are posted are noted, until so
//! many were posted and so few taken back that noting is no longer worth it.
use super::Context;
use super::posted::Incoming;
use super::slots::Slots;
use ayre_proto::matching::ReceiveId;
use std::collections::{HashMap, VecDeque};

/// Notes beyond twice the receives that there ever were.
const SPARE: usize = 1024;

/// Keys of receives by their labels, in the order of posting; some may be gone, or be others' now.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// None unless posted receives are noted.
    keys: Option<HashMap<u64, VecDeque<usize>>>,
    count: usize,
    max: usize,
}

const fn label(context: Context) -> u64 {
    context as u64
}

impl Labels {
    /// A receive was posted.
    #[inline(always)]
    pub(super) fn note(&mut self, receives: &Slots<Incoming>, key: usize) {
        // Its context is read only then: nothing of it is kept for this.
        if self.keys.is_some() {
            self.note_on(receives[key].context, key);
        }
    }

    #[cold]
    fn note_on(&mut self, context: Context, key: usize) {
        let Some(keys) = self.keys.as_mut().filter(|_| self.count < self.max) else {
            *self = Self::default();
            return;
        };
        keys.entry(label(context)).or_default().push_back(key);
        self.count += 1;
    }

    /// The receive with this label that waits longest, if one does.
    #[cold]
    pub(super) fn find(
        &mut self,
        receives: &Slots<Incoming>,
        of: u64,
    ) -> Option<(usize, ReceiveId)> {
        if self.keys.is_none() {
            self.note_all(receives);
        }
        let all = self.keys.as_mut()?;
        let keys = all.get_mut(&of)?;
        let mut found = None;
        while found.is_none()
            && let Some(key) = keys.pop_front()
        {
            self.count -= 1;
            let waits = receives.get(key).filter(|it| label(it.context) == of && !it.released);
            found = waits.and_then(|incoming| Some((key, incoming.id?)));
        }
        if keys.is_empty() {
            all.remove(&of);
        }
        found
    }

    #[cold]
    fn note_all(&mut self, receives: &Slots<Incoming>) {
        let mut waiting: Vec<_> = receives.iter().filter(|(_, it)| it.id.is_some()).collect();
        waiting.sort_unstable_by_key(|(_, incoming)| incoming.id);
        self.keys = Some(HashMap::new());
        self.max = 2 * receives.places() + SPARE;
        waiting.into_iter().for_each(|(key, incoming)| self.note_on(incoming.context, key));
    }
}
