//! Finding a receive that is to be taken back: by a label, the lower half of its context.
//!
//! Few programs cancel receives, so posting one costs nothing for it. Among few receives the one to
//! cancel is searched for, and so is the first among many. From then on posted receives are noted,
//! until many were posted and few cancelled.
use super::completions::Context;
use super::incoming::Incoming;
use super::slots::Slots;
use super::transport::Memory;
use crate::keyed::Keyed;
use crate::matching::ReceiveId;
use core::hash::BuildHasherDefault;
use hashbrown::hash_map::Entry;

/// Places of receives that are looked through faster than a note is found.
const FEW: usize = 16;
/// Notes beyond twice the receives that there ever were.
const SPARE: usize = 1024;

/// Keys of receives by their labels, in the order of posting; some may be gone, or be others' now.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// First and last note of each; none unless posted receives are noted.
    chains: Option<Keyed<(usize, usize)>>,
    notes: Slots<Note>,
    max: usize,
}

/// The key of a receive, and the next note of the same label, if this is not the last.
#[derive(Clone, Copy, Debug)]
struct Note {
    key: usize,
    next: usize,
}

const fn label(context: Context) -> u64 {
    context as u64
}

/// The name of a receive, if it has this label and takes messages.
fn waits<M: Memory>(incoming: &Incoming<M>, of: u64) -> Option<ReceiveId> {
    incoming.id().filter(|_| label(incoming.context()) == of && !incoming.is_released())
}

impl Labels {
    /// A receive was posted.
    #[inline(always)]
    pub(super) fn note<M: Memory>(&mut self, receives: &Slots<Incoming<M>>, key: usize) {
        // Its context is read only then: nothing of it is kept for this.
        if self.chains.is_some() {
            self.note_on(receives[key].context(), key);
        }
    }

    #[cold]
    fn note_on(&mut self, context: Context, key: usize) {
        let Self { chains, notes, max } = self;
        let Some(chains) = chains.as_mut().filter(|_| notes.len() < *max) else {
            *self = Self::default();
            return;
        };
        let own = notes.insert(Note { key, next: 0 });
        debug_assert!(notes.len() <= *max, "there is a bound");
        match chains.entry(label(context)) {
            Entry::Vacant(none) => _ = none.insert((own, own)),
            Entry::Occupied(mut chain) => {
                let (_, last) = chain.get_mut();
                notes[core::mem::replace(last, own)].next = own;
            }
        }
    }

    /// The receive with this label that waits longest, if one does.
    #[cold]
    pub(super) fn find<M: Memory>(
        &mut self,
        receives: &Slots<Incoming<M>>,
        of: u64,
    ) -> Option<(usize, ReceiveId)> {
        if self.chains.is_none() {
            if receives.places() <= FEW {
                let all = receives.iter();
                let waiting = all.filter_map(|(key, it)| Some((key, waits(it, of)?)));
                return waiting.min_by_key(|(_, id)| *id);
            }
            self.note_all(receives);
        }
        let Self { chains, notes, .. } = self;
        let Entry::Occupied(mut chain) = chains.as_mut()?.entry(of) else { return None };
        loop {
            let (first, last) = chain.get_mut();
            let Note { key, next } = notes.take(*first);
            let is_last = *first == *last;
            *first = next;
            let found = receives.get(key).and_then(|it| Some((key, waits(it, of)?)));
            if is_last {
                chain.remove();
                return found;
            }
            if found.is_some() {
                return found;
            }
        }
    }

    #[cold]
    fn note_all<M: Memory>(&mut self, receives: &Slots<Incoming<M>>) {
        let mut waiting: alloc::vec::Vec<_> =
            receives.iter().filter(|(_, it)| it.id().is_some()).collect();
        waiting.sort_unstable_by_key(|(_, incoming)| incoming.id());
        let room = receives.places();
        self.chains = Some(Keyed::with_capacity_and_hasher(room, BuildHasherDefault::default()));
        (self.notes, self.max) = (Slots::with_capacity(room), 2 * room + SPARE);
        debug_assert!(waiting.len() <= room, "each has a place");
        waiting.into_iter().for_each(|(key, incoming)| self.note_on(incoming.context(), key));
    }
}
