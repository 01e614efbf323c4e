//! Memory that several processes share. The engine's unsafe code is here and in [`crate::sys`].
//!
//! Rules:
//! - No reference (`&T`, `&[u8]`) ever points into memory that a peer may write, atomics excepted:
//!   bytes are copied in or out by [`bytes`], words are atomics.
//! - No pointer crosses a process; offsets do, and only after translation.
//! - A mapping never moves and is never shorter than its length says: the files behind it are
//!   sealed against shrinking before they are mapped.
//!
//! Release stores and the acquire loads that read them:
//!
//! | release | acquire | what becomes visible |
//! |---|---|---|
//! | LANE-R1 status word of a record | LANE-A1 reader's poll | the record, and the writer's puts |
//! | LANE-R2 reader's cursor | LANE-A2 writer short of room | those lines were copied out |
//! | DONE-R1 count of commands | DONE-A1 initiator's poll | the commands' effects and answers |
//! | NOTE-R1 notifications taken | NOTE-A1 initiator's credit | the responder's count of them |
//! | BAR-R1 barrier word | BAR-A1 barrier wait | all before the peer's barrier call |
//! | REV-R1 leaving an operation | REV-A1 revoking owner | the operation's stores |
//! | LOCK-R1 remote atomic | LOCK-A1 remote atomic, load | all before the atomic |
//! | PIPE-R1 bytes of the ring taken | PIPE-A1 writer short of room | those bytes were copied out |
//! | RING-R1 slot given back | RING-A1 slot looked at | the frame; other halves: the system |
//! | DEPOT-R1 leaving a depot | DEPOT-A1 entering it | all that was done inside |
//! | DEPOT-R2 journal counts | DEPOT-A2 taking over | the writes in it |
//! | DEPOT-R3 journal is void | DEPOT-A3 taking over | those writes were made |
//! | DEPOT-R4 register written | DEPOT-A4 owner's look | the message's data |
//! | BIAS-R1 program's leaving | BIAS-A1 guest's look | all that was done inside |
//! | BIAS-R2 guest's leaving | BIAS-A2 program's entering | all that was done inside |
//! | SHARE-R1 mark of a mutex | SHARE-A1 opening it | the mutex is made |
//! | SHARE-R2 tail of a shared queue | SHARE-A2 a consumer's look | the records before it |
//! | SHARE-R3 head, free pages | SHARE-A3 a producer's look | those records were copied out |
//! | SHARE-R4 record marked as done | SHARE-A4 wait for all | the work on it |
//! | SOCK-R1 position of a stream | SOCK-A1 its reader | the bytes before it, marks and origin |
//! | SOCK-R2 position of its reader | SOCK-A2 its writer | those bytes were copied out |
//! | SOCK-R3 state of a slot, its number | SOCK-A3 the other side's look | offer, or proof |
//! | SOCK-R4 mark of a rung slot | SOCK-A4 the woken side | all before the bell was rung |
//! | SOCK-R5 slot or seat given back | SOCK-A5 claimed | all use of it |
//! | SOCK-R6 what an end wants | SOCK-A6 the other end | its positions, if it has gone |
//! | SOCK-R7 a bell's owner sleeps | SOCK-A7 one that rings | which counter the bell has |
//! | FAMILY-R1 lock released | FAMILY-A1 lock taken | all that was done while it was held |
//! | FENCE-R1 light fence | FENCE-A1 heavy fence | store-then-load on both sides, below |
//!
//! In some pairs each side stores and then loads, and at least one must see the other's store. They
//! use [`fence`]:
//!
//! | one side | the other one |
//! |---|---|
//! | a sender publishes, then reads `asleep` | a sleeper sets `asleep`, then reads its lanes |
//! | an initiator sets `active`, then reads the generation | an owner does the reverse |
//! | an end of a stream publishes, then looks at a doorbell | the other end does the reverse |
//! | a program's call sets `inside`, then reads `wanted` | a guest ([`biased`]) does the reverse |
pub(crate) mod biased;
#[cfg(not(loom))]
pub(crate) mod bits;
pub(crate) mod bytes;
pub(crate) mod depot;
#[cfg_attr(loom, allow(dead_code, reason = "models know no sockets"))]
pub(crate) mod doorbell;
pub(crate) mod exposed;
#[cfg(not(loom))]
pub(crate) mod family;
pub(crate) mod fence;
pub(crate) mod file;
pub(crate) mod inject;
pub(crate) mod lane;
pub(crate) mod layout;
pub(crate) mod map;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, loom))]
mod model_bell;
#[cfg(all(test, loom))]
mod model_biased;
#[cfg(all(test, loom))]
mod model_depot;
#[cfg(all(test, loom))]
mod model_doorbell;
#[cfg(all(test, loom))]
mod model_kick;
pub(crate) mod page;
#[cfg(not(loom))]
pub(crate) mod part;
mod private;
pub(crate) use private::{Instead, watch_forks};
pub(crate) mod queue;
pub(crate) mod region;
pub(crate) mod ring;
#[cfg(not(loom))]
pub(crate) mod robust;
#[cfg(not(loom))]
pub(crate) mod seat;
#[cfg(not(loom))]
pub(crate) mod socket;
pub(crate) mod span;
pub(crate) mod word;

/// Prefetches the line at an address, for a read. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing that a program can see, and never faults.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches a line for a write: its present owner gives it up.
#[inline(always)]
pub(crate) fn prefetch_to_write(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in prefetch; processors that lack the instruction treat it as one without effect.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
