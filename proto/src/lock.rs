//! Lock and epoch words: which atomic makes which transition.
//!
//! The shared/exclusive lock is EXTOLL's, built on FCAA, for at most `n` processes that hold it at
//! most once each:
//!
//! ```text
//!   0 free   1..=n that many readers   n+1 a writer
//!   lock exclusive    if w <= 0 then w += n+1        unlock exclusive   w -= n+1
//!   lock shared       if w <= n-1 then w += 1        unlock shared      w -= 1
//! ```
//!
//! The thesis lets a reader in while `w <= n`, which n readers and one more would turn into a
//! writer's value; with `n-1` no count can become n+1.
//!
//! The thesis builds post/start/complete/wait on FCAA too; but its `<=` admits callers out of turn
//! (a second start finds 1 <= 2). Here each step is a compare-swap of exactly the state before it.
use crate::alu::{Atomic, AtomicOp, Width};

const fn fcaa(compare: i64, add: i64) -> Atomic {
    Atomic { width: Width::W64, op: AtomicOp::Fcaa, operand: add as u64, compare: compare as u64 }
}

/// The mode in which a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Any number of processes may hold it in this mode.
    Shared,
    /// One process alone holds it.
    Exclusive,
}

impl LockMode {
    /// Takes a lock of at most `n` processes in this mode; it declines where others exclude that.
    // spec: LOCK-1, LOCK-2
    pub const fn lock(self, n: u32) -> Atomic {
        match self {
            Self::Shared => fcaa(n as i64 - 1, 1),
            Self::Exclusive => fcaa(0, n as i64 + 1),
        }
    }

    /// Gives up a lock that is held in this mode.
    pub const fn unlock(self, n: u32) -> Atomic {
        match self {
            Self::Shared => fcaa(i64::MAX, -1),
            Self::Exclusive => fcaa(i64::MAX, -(n as i64 + 1)),
        }
    }
}

/// Steps of an access epoch between the owner of a window and one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochStep {
    /// The owner opens the window: idle to posted.
    Post,
    /// The origin begins: posted to started.
    Start,
    /// The origin ends: started to completed.
    Complete,
    /// The owner closes: completed to idle.
    Wait,
}

impl EpochStep {
    /// State before and after; a new word is 0, idle.
    // spec: EPOCH-1
    pub const fn transition(self) -> (u64, u64) {
        match self {
            Self::Post => (0, 1),
            Self::Start => (1, 2),
            Self::Complete => (2, 3),
            Self::Wait => (3, 0),
        }
    }

    /// The step as an atomic; it declines out of turn.
    pub const fn atomic(self) -> Atomic {
        let (compare, operand) = self.transition();
        Atomic { width: Width::W64, op: AtomicOp::CompareSwap, operand, compare }
    }
}
