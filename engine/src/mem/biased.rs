//! A lock that costs its program next to nothing, and a guest that comes seldom much.
//!
//! The program uses a value by one call at a time; it has promised that. Now and then another
//! thread of ours, the *guest*, is to use it in the program's absence. The program pays two stores
//! and a load for each call, none of which waits for anything; the guest pays for the fence between
//! the program's store and its load.
//!
//! ```text
//!   program                            guest, which holds `turn`
//!     inside = 1                         wanted = 1
//!     (compiler fence)                   membarrier: a full fence in all threads
//!     wanted? then wait for `turn`       inside for long? then it has come in vain
//!     ... uses the value ...             ... uses the value ...
//!     inside = 0                         wanted = 0
//! ```
//!
//! Of the two, one at least sees the other. The barrier makes the program's thread execute a full
//! fence at some instruction. If that is after the program's store, the guest sees `inside`, and
//! leaves; if it is before, then it is before the load, too, which sees `wanted`, and the program
//! waits for the lock `turn`, which the guest holds until it has left. A guest that takes the lock
//! after the program has had it sees `inside`, by the lock. What was done to the value is visible
//! to whoever comes next: by the lock, or by a release of the flag that it has looked at.
//!
//! The guest looks some times whether the program has left, as most calls are short, and then gives
//! up: a program that has left a call by a signal's handler harms itself only. While the program
//! waits for the lock, its flag says so, and it is as good as out. It waits for one visit at the
//! most: the next guest sees the flag and lets the program go first.
//!
//! Where the system has no membarrier, or a sandbox refuses it, `wanted` is set for good, and each
//! call takes the lock for a moment; guests come once a call has done so, as from then on all do.
//! Where it is refused later, no guest comes in any more.
use super::fence;
use crate::sync::{AtomicU64, ModelledMutex, Ordering, compiler_fence};
use std::cell::UnsafeCell;
use std::sync::{OnceLock, PoisonError};

/// Looks of a guest whether the program has left: some microseconds.
const LOOKS: u32 = if cfg!(loom) { 2 } else { 100 };

/// Where the program is.
const OUT: u64 = 0;
const INSIDE: u64 = 1;
const WAITS: u64 = 2;

/// A value that the program uses by one call at a time, and now and then a guest.
#[derive(Debug)]
#[repr(C)]
pub struct Biased<T> {
    /// First, so that it is found where all of this is.
    value: UnsafeCell<T>,
    bias: Bias,
    /// Whether guests' barriers reach the program; none before guests are to come.
    barriers: OnceLock<bool>,
}

// SAFETY: the value is used inside only, where one thread is at a time: the program's by its
// promise to `Biased::new`, and a guest by the module's argument. It is `Send`, so it may be each
// time another thread.
unsafe impl<T: Send> Sync for Biased<T> {}

impl<T> Biased<T> {
    /// # Safety
    /// No two calls of [`Biased::with`] are made at a time, and one happens before the next.
    pub unsafe fn new(value: T) -> Self {
        let bias = Bias::over(AtomicU64::new(0), AtomicU64::new(0));
        Self { value: UnsafeCell::new(value), bias, barriers: OnceLock::new() }
    }

    /// The program's use, which must not come back to the same value.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // FENCE-R1: keeps the compiler from reordering; a guest's barrier fences this processor.
        self.bias.enter(|| compiler_fence(Ordering::SeqCst));
        // SAFETY: this thread is inside.
        let result = f(unsafe { &mut *self.value.get() });
        self.bias.leave();
        result
    }

    /// Guests may come from here on. By any thread, whatever the program does meanwhile.
    pub fn admit(&self) {
        self.admit_by(fence::expedited_own);
    }

    fn admit_by(&self, expedited: impl FnOnce() -> bool) {
        self.barriers.get_or_init(|| {
            let has_barriers = expedited();
            if !has_barriers {
                self.bias.have_all_locked();
            }
            has_barriers
        });
    }

    /// A guest's use; none while the program is inside, or before guests are admitted.
    pub fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let has_barriers = *self.barriers.get()?;
        let heavy = |is_locked| if has_barriers { fence::heavy_own() } else { is_locked };
        // SAFETY: this thread is inside.
        self.bias.visit(heavy, || f(unsafe { &mut *self.value.get() }))
    }
}

/// Which of the two threads is inside.
#[derive(Debug)]
pub(super) struct Bias {
    inside: AtomicU64,
    wanted: AtomicU64,
    /// Whether the program has found that it is wanted: where that is for good, it does each time
    /// from then on.
    turn: ModelledMutex<bool>,
}

impl Bias {
    pub(super) fn over(inside: AtomicU64, wanted: AtomicU64) -> Self {
        Self { inside, wanted, turn: ModelledMutex::new(false) }
    }

    /// The program comes in. The fence is before all that follows.
    #[inline(always)]
    pub(super) fn enter(&self, light: impl FnOnce()) {
        // Relaxed: this thread's own.
        debug_assert!(self.inside.load(Ordering::Relaxed) == OUT, "two uses at a time");
        // Relaxed: the fence orders it.
        self.inside.store(INSIDE, Ordering::Relaxed);
        light();
        // BIAS-A2: what guests have done.
        if self.wanted.load(Ordering::Acquire) != 0 {
            self.take_turn();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_turn(&self) {
        // BIAS-R1: what was done before this call.
        self.inside.store(WAITS, Ordering::Release);
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn = true;
        // Relaxed: guests look while they hold the lock.
        self.inside.store(INSIDE, Ordering::Relaxed);
    }

    /// The program leaves.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // BIAS-R1: what was done inside.
        self.inside.store(OUT, Ordering::Release);
    }

    /// From when it notices, the program comes in by the lock only.
    pub(super) fn have_all_locked(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: the lock orders it for who notices.
        self.wanted.store(1, Ordering::Relaxed);
    }

    /// A guest's visit, if the program is not inside. The fence is one in the program's thread;
    /// where there is none, whether the program comes in by the lock.
    pub(super) fn visit<R>(
        &self,
        heavy: impl FnOnce(bool) -> bool,
        f: impl FnOnce() -> R,
    ) -> Option<R> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: it is the program's turn, which has been waiting for the lock.
        if self.inside.load(Ordering::Relaxed) == WAITS {
            return None;
        }
        // Relaxed: who changes it holds the lock.
        let before = self.wanted.load(Ordering::Relaxed);
        // Relaxed: the fence orders it.
        self.wanted.store(1, Ordering::Relaxed);
        let has_left = || {
            std::hint::spin_loop();
            // BIAS-A1: what the program has done.
            self.inside.load(Ordering::Acquire) != INSIDE
        };
        let is_free = heavy(*turn) && (0..LOOKS).any(|_| has_left());
        let result = is_free.then(f);
        // BIAS-R2: what was done inside.
        self.wanted.store(before, Ordering::Release);
        result
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_guest_comes_in_while_the_program_is_out_and_not_before_it_is_admitted() {
        // SAFETY: one call is made at a time.
        let cell = unsafe { Biased::new(1) };
        assert_eq!(cell.visit(|value| *value), None);
        cell.admit();
        assert_eq!(cell.visit(|value| std::mem::replace(value, 2)), Some(1));
        assert_eq!(cell.with(|value| (*value, cell.visit(|value| *value))), (2, None));
        assert_eq!(cell.visit(|value| *value), Some(2));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "two uses at a time")]
    fn a_second_use_inside_the_first_is_noticed() {
        // SAFETY: not so, as is to be noticed, before the second one has the value.
        let cell = unsafe { Biased::new(0) };
        cell.with(|_| cell.with(|value| *value = 1));
    }

    /// Both halves of a value are the same in between, whoever has changed them.
    fn shares(has_barriers: bool) {
        const VISITS: u32 = 50;
        // SAFETY: this thread alone makes the program's calls.
        let cell = unsafe { Biased::new([0_u64; 2]) };
        cell.admit_by(|| has_barriers && fence::expedited_own());
        let change = |halves: &mut [u64; 2]| {
            assert_eq!(halves[0], halves[1]);
            halves[0] += 1;
            std::hint::spin_loop();
            halves[1] += 1;
        };
        thread::scope(|scope| {
            let guest = scope.spawn(|| {
                let mut visits = 0;
                while visits < VISITS {
                    visits += u32::from(cell.visit(change).is_some());
                    thread::yield_now();
                }
            });
            let mut calls = 0;
            while !guest.is_finished() {
                cell.with(change);
                calls += 1;
            }
            assert_eq!(cell.with(|halves| *halves), [calls + u64::from(VISITS); 2]);
        });
    }

    #[test]
    fn no_update_of_either_side_is_lost() {
        shares(true);
    }

    #[test]
    fn without_barriers_a_lock_does_it() {
        shares(false);
    }
}
