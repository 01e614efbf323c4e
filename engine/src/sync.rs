//! The only door to atomics: the real ones, or loom's when a model is checked.

#[cfg(loom)]
pub(crate) use self::modelled::{AtomicU64, Weak};
#[cfg(loom)]
pub(crate) use loom::sync::Mutex as ModelledMutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
// What the other side's membarrier makes of it: wherever that meets the thread, either every access
// before the compiler fence is visible to the other side, or every access after it sees what the
// other side did before. Two full fences promise just that, and so the models have them.
#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence as compiler_fence;
// For what lives longer than a run of a model, and orders nothing.
pub(crate) use std::sync::atomic::AtomicU64 as StaticCounter;
// A lock that models run through, where others lock nothing that a model looks at.
#[cfg(not(loom))]
pub(crate) use std::sync::Mutex as ModelledMutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

/// Words that a model can break.
#[cfg(loom)]
mod modelled {
    use super::Ordering;
    use std::ops::Deref;

    /// loom's word, possibly with weaker orderings than the code asks for: a model proves its worth
    /// by failing then.
    #[derive(Debug)]
    pub(crate) struct AtomicU64 {
        word: loom::sync::atomic::AtomicU64,
        weak: Option<Weak>,
    }

    /// Which accesses of a word are relaxed, whatever the code asks for.
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

    /// The accesses that no model weakens.
    impl Deref for AtomicU64 {
        type Target = loom::sync::atomic::AtomicU64;

        fn deref(&self) -> &Self::Target {
            &self.word
        }
    }
}
