//! The only source of atomics: the real ones, or loom's when a model is checked.

#[cfg(loom)]
pub(crate) use self::modelled::{AtomicU64, Weak};
#[cfg(loom)]
pub(crate) use loom::sync::Mutex as ModelledMutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
// Stands for the other side's membarrier. Either every access before the compiler fence is visible
// to the other side, or every access after it sees what the other side did before. Two full fences
// promise just that, so the models use those.
#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence as compiler_fence;
// For counters that live longer than a run of a model and order nothing.
pub(crate) use std::sync::atomic::AtomicU64 as StaticCounter;
// A lock that models execute; elsewhere nothing that a model checks takes it.
#[cfg(not(loom))]
pub(crate) use std::sync::Mutex as ModelledMutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

/// Words whose orderings a model can weaken.
#[cfg(loom)]
mod modelled {
    use super::Ordering;
    use std::ops::Deref;

    /// loom's word, optionally with weaker orderings than the code asks for. A model must fail with
    /// those, which shows that it tests something.
    #[derive(Debug)]
    pub(crate) struct AtomicU64 {
        word: loom::sync::atomic::AtomicU64,
        weak: Option<Weak>,
    }

    /// The accesses of a word that are relaxed in place of what the code asks for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Weak {
        Stores,
        Loads,
    }

    impl AtomicU64 {
        pub(crate) fn new(value: u64) -> Self {
            Self::weakened(value, None)
        }

        pub(crate) fn weakened(value: u64, weak: Option<Weak>) -> Self {
            Self { word: loom::sync::atomic::AtomicU64::new(value), weak }
        }

        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.word.load(if self.weak == Some(Weak::Loads) { Ordering::Relaxed } else { order })
        }

        pub(crate) fn store(&self, value: u64, order: Ordering) {
            let order = if self.weak == Some(Weak::Stores) { Ordering::Relaxed } else { order };
            self.word.store(value, order);
        }
    }

    /// Accesses that no model weakens.
    impl Deref for AtomicU64 {
        type Target = loom::sync::atomic::AtomicU64;

        fn deref(&self) -> &Self::Target {
            &self.word
        }
    }
}
