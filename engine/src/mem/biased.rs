//! A lock that is nearly free for one thread, the program, and expensive for another one, the
//! guest.
//!
//! The program promises to use the value by one call at a time. Now and then another thread of this
//! library, the *guest*, uses it while the program is outside. The program pays two stores and a
//! load for each call, and waits for nothing; the guest pays for the fence between the program's
//! store and its load.
//!
//! ```text
//!   program                            guest, which holds `turn`
//!     inside = 1                         wanted = 1
//! (compiler fence)                   membarrier: a full fence in all threads
//!     wanted? then wait for `turn`       inside for long? then it has come in vain
//!     ... uses the value ...             ... uses the value ...
//!     inside = 0                         wanted = 0
//! ```
//!
//! At least one of the two sees the other. The barrier makes the program's thread execute a full
//! fence at some instruction. If that comes after the program's store, the guest sees `inside` and
//! leaves. If it comes before, it comes before the load, too. The load then sees `wanted`, and the
//! program waits for the lock `turn`, which the guest holds until it has left. A guest that takes
//! the lock after the program has had it sees `inside` by the lock. The value's changes are visible
//! to the next user by the lock, or by a release of the flag that it has loaded.
//!
//! The guest checks several times whether the program has left, as most calls are short, and then
//! gives up. A program that leaves a call by a signal handler harms only itself. While the program
//! waits for the lock, its flag shows that, and it counts as outside. It waits for one visit at
//! most: the next guest sees the flag and lets the program go first.
//!
//! Where the system has no membarrier, or a sandbox refuses it, `wanted` is set for ever, and each
//! call takes the lock for a moment. Guests come in once one call has done so, because all later
//! ones do. If membarrier is refused only later, no guest comes in any more.
use super::fence;
use crate::sync::{AtomicU64, ModelledMutex, Ordering, compiler_fence};
use std::cell::UnsafeCell;
use std::sync::{OnceLock, PoisonError};

/// The most checks by a guest whether the program has left: some microseconds.
const LOOKS: u32 = if cfg!(loom) { 2 } else { 100 };

/// The states of the program.
const OUT: u64 = 0;
const INSIDE: u64 = 1;
const WAITS: u64 = 2;

/// A value that the program uses by one call at a time, and a guest now and then.
#[derive(Debug)]
#[repr(C)]
pub struct Biased<T> {
    /// First, so that a pointer to this is a pointer to the value.
    value: UnsafeCell<T>,
    bias: Bias,
    /// Whether guests' barriers reach the program; empty before guests are admitted.
    barriers: OnceLock<bool>,
}

// SAFETY: the value is used inside only, where one thread is at a time: the program's by its
// promise to `Biased::new`, and a guest by the module's argument. It is `Send`, so that may be
// another thread each time.
unsafe impl<T: Send> Sync for Biased<T> {}

impl<T> Biased<T> {
    /// # Safety
    /// No two calls of [`Biased::with`] overlap, and one happens before the next.
    pub unsafe fn new(value: T) -> Self {
        let bias = Bias::over(AtomicU64::new(0), AtomicU64::new(0));
        Self { value: UnsafeCell::new(value), bias, barriers: OnceLock::new() }
    }

    /// The program's use. `f` must not use the same value again.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // FENCE-R1: keeps the compiler from reordering; a guest's barrier fences this processor.
        self.bias.enter(|| compiler_fence(Ordering::SeqCst));
        // SAFETY: this thread is inside.
        let result = f(unsafe { &mut *self.value.get() });
        self.bias.leave();
        result
    }

    /// Admits guests from now on. Any thread may call it, at any time.
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

    /// A guest's use; None while the program is inside, or before guests are admitted.
    pub fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let has_barriers = *self.barriers.get()?;
        let heavy = |is_locked| if has_barriers { fence::heavy_own() } else { is_locked };
        // SAFETY: this thread is inside.
        self.bias.visit(heavy, || f(unsafe { &mut *self.value.get() }))
    }
}

/// The flags that show which of the two threads is inside.
#[derive(Debug)]
pub(super) struct Bias {
    inside: AtomicU64,
    wanted: AtomicU64,
    /// Whether the program has seen `wanted`. Where that is set for ever, the program takes the
    /// lock in each call from then on.
    /// from then on.
    turn: ModelledMutex<bool>,
}

impl Bias {
    pub(super) fn over(inside: AtomicU64, wanted: AtomicU64) -> Self {
        Self { inside, wanted, turn: ModelledMutex::new(false) }
    }

    /// The program enters. `light` is a fence before all that follows.
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

    /// Has the program enter by the lock only, once it has seen this.
    pub(super) fn have_all_locked(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: the lock orders it for its reader.
        self.wanted.store(1, Ordering::Relaxed);
    }

    /// A guest's visit, if the program is not inside. `heavy` is a fence in the program's thread;
    /// where there is none, it tells whether the program enters by the lock.
    pub(super) fn visit<R>(
        &self,
        heavy: impl FnOnce(bool) -> bool,
        f: impl FnOnce() -> R,
    ) -> Option<R> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: it is the turn of the program, which has been waiting for the lock.
        if self.inside.load(Ordering::Relaxed) == WAITS {
            return None;
        }
        // Relaxed: only the holder of the lock changes it.
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
        // SAFETY: the promise is broken on purpose, which is noticed before the second call has the
        // value.
        let cell = unsafe { Biased::new(0) };
        cell.with(|_| cell.with(|value| *value = 1));
    }

    /// Both halves of a value are equal between uses, by either thread.
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
