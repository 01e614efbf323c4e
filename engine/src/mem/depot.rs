//! The memory of a depot: its owner's rules, and the state that messages change.
//!
//! ```text
//! rules, which the owner alone can write     state, which every direct holder of an inlet writes
//!       0  protections, 256 words                  0  lock: number of whoever is inside, or 0
//!    2048  instructions, 256 x 32 bytes           64  journal: how many writes count, the writes
//!   10240  inlets, 64 x 64 bytes                 256  registers, 256 words
//!                                               2304  standings of inlets, 64 x 64 bytes
//!                                               6400  held messages, 64 x 1088 bytes
//! ```
//!
//! The holder of the lock changes registers in a way that leaves all changes of a message or none
//! if it dies at any instruction. A single write is one store; several writes are put into the
//! journal first. Each holder has claimed its number at the state's file, and the claim dies with
//! it. A process that waits for long checks the claim, and takes over from a dead holder.
use super::file::{Pages, memory_file, round_to_pages, seal_seals, seal_writers};
use super::map::Mapping;
use super::word::Words;
use crate::error::SetupError;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::claim::Claims;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use ayre_proto::command::COMMAND_BYTES;
use ayre_proto::deposit::{
    DATA_MAX, INLETS, INSTRUCTIONS, Inlet, Protection, REGISTERS, Standing, Stored, WRITES_MAX,
    Window,
};
use ayre_proto::limits;
use ayre_proto::units::{Key, Rights};
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

/// Offsets and sizes in words.
const INSTRUCTIONS_AT: usize = 2048 / 8;
const INLETS_AT: usize = 10240 / 8;
const RULES: usize = INLETS_AT + INLETS * LINE;
const JOURNAL: usize = LINE;
const REGISTERS_AT: usize = 256 / 8;
const STANDINGS: usize = REGISTERS_AT + REGISTERS;
const HELD: usize = STANDINGS + LINE * INLETS;
const HELD_LEN: usize = 1088 / 8;
const STATE: usize = HELD + HELD_LEN * INLETS;
const LINE: usize = limits::LINE / 8;

/// The number of looks at the lock before a check whether its holder has died, and of rounds of
/// that.
const LOOKS: u32 = 200;
const ROUNDS: u32 = 100;

/// A process that may hold the lock, as the lock word names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder(u64);

impl Holder {
    /// The owner, also when it serves its mediated peers.
    pub(crate) const OWNER: Self = Self(1);
    /// The owner while its program has frozen the depot.
    pub(crate) const FROZEN: Self = Self(2);

    /// The holder of an inlet: its key belongs to no other one while the owner's port lives.
    // spec: KEY-1
    pub(crate) const fn of_key(key: Key) -> Self {
        Self(3 + (key.slot as u64 | (key.generation as u64) << 16))
    }
}

/// The owner's rules for an inlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InletRules {
    pub(crate) inlet: Inlet,
    /// Whether the inlet stops at a message that faults, and holds it.
    pub(crate) holds: bool,
}

/// The memory of a depot, at its owner or at the holder of an inlet.
#[derive(Debug)]
pub(crate) struct DepotMemory {
    rules: Words<RULES>,
    state: Words<STATE>,
    files: Mutex<Files>,
}

/// The owner's files are handed out; a holder's file only keeps its claim.
#[derive(Debug)]
enum Files {
    Owner { rules: Descriptor, state: Descriptor, claims: Claims },
    Holder { claims: Claims },
}

/// The depot's lock, held until this is dropped: no other process changes anything.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a DepotMemory);

impl DepotMemory {
    // spec: DEP-1
    pub(crate) fn new() -> Result<Self, SetupError> {
        let [rules_len, state_len] =
            [RULES, STATE].map(|words| round_to_pages(8 * words, Pages::Ordinary));
        let rules_file = memory_file(rules_len, Pages::Ordinary)?;
        let state_file = memory_file(state_len, Pages::Ordinary)?;
        let rules = Mapping::own(rules_file.as_fd(), rules_len)?;
        let state = Mapping::own(state_file.as_fd(), state_len)?;
        seal_writers(rules_file.as_fd())?;
        seal_seals(state_file.as_fd())?;
        let claims = claimed(state_file.as_fd(), &[Holder::OWNER, Holder::FROZEN])?;
        let files = Files::Owner { rules: rules_file, state: state_file, claims };
        Ok(Self { rules: Words::new(rules), state: Words::new(state), files: Mutex::new(files) })
    }

    /// Maps the files that the owner has handed over, at the holder of an inlet.
    // spec: DEP-26
    pub(crate) fn foreign(
        rules: BorrowedFd<'_>,
        state: BorrowedFd<'_>,
        holder: Holder,
    ) -> Result<Self, SetupError> {
        let [rules_len, state_len] =
            [RULES, STATE].map(|words| round_to_pages(8 * words, Pages::Ordinary));
        let claims = claimed(state, &[holder])?;
        let rules = Mapping::foreign(rules, rules_len, false)?;
        let state = Mapping::foreign(state, state_len, true)?;
        let files = Mutex::new(Files::Holder { claims });
        Ok(Self { rules: Words::new(rules), state: Words::new(state), files })
    }

    /// The files that the holder of an inlet on a direct connection maps: rules and state. The
    /// descriptor of the rules is read-only.
    pub(crate) fn files(&self) -> Result<[Descriptor; 2], SetupError> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Files::Owner { rules, state, .. } = &*files else {
            return Err(SetupError::invalid("only the owner of a depot can share it"));
        };
        let copies = [rules, state].map(descriptor::copy);
        let [rules, state] = copies.map(|copy| copy.map_err(SetupError::os("dup")));
        Ok([rules?, state?])
    }

    /// Replaces the state by fresh memory, which is out of reach of processes that have mapped the
    /// old one.
    // spec: DEP-2
    pub(crate) fn replace_state(&self) -> Result<(), SetupError> {
        let state = self.state.mapping();
        let len = state.len();
        let file = memory_file(len, Pages::Ordinary)?;
        let fresh = Mapping::own(file.as_fd(), len)?;
        fresh.write_from(0, state, 0, len);
        seal_seals(file.as_fd())?;
        let fresh_claims = claimed(file.as_fd(), &[Holder::OWNER, Holder::FROZEN])?;
        state.replace(file.as_fd())?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Files::Owner { state, claims, .. } = &mut *files {
            (*state, *claims) = (file, fresh_claims);
        }
        Ok(())
    }

    fn lock(&self) -> &AtomicU64 {
        &self.state[0]
    }

    /// Takes the lock. None where a living process holds it for long.
    // spec: DEP-24, DEP-25, DEP-26
    #[inline(always)]
    pub(crate) fn enter(&self, holder: Holder) -> Option<Inside<'_>> {
        // DEPOT-A1: all that was done inside before (DEPOT-R1). Relaxed: a failure orders nothing.
        let taken = self.lock().compare_exchange(0, holder.0, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() { Some(Inside(self)) } else { self.wait_to_enter(holder) }
    }

    #[cold]
    fn wait_to_enter(&self, holder: Holder) -> Option<Inside<'_>> {
        for look in 1..=LOOKS * ROUNDS {
            // Relaxed: the exchange decides.
            let inside = self.lock().load(Ordering::Relaxed);
            if inside == Holder::FROZEN.0 {
                return None;
            }
            let is_due = look.is_multiple_of(LOOKS);
            if inside == 0 || is_due && self.is_gone(inside) {
                // DEPOT-A1: all changes made inside before; those of a dead holder are ordered by
                // the system's claim. Relaxed: a failure orders nothing.
                let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
                if self.lock().compare_exchange(inside, holder.0, success, failure).is_ok() {
                    self.recover();
                    return Some(Inside(self));
                }
            }
            if is_due {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// Whether no process claims the number, or none can.
    fn is_gone(&self, inside: u64) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (Files::Owner { claims, .. } | Files::Holder { claims }) = &*files;
        i64::try_from(inside).is_err() || claims.are_beside(inside) == Ok(false)
    }

    /// Executes the journal, if it counts: its writer may have died.
    // spec: DEP-26
    fn recover(&self) {
        // DEPOT-A2: the writes that the journal counts (DEPOT-R2).
        // DEPOT-A3: or that they were made (DEPOT-R3).
        let count = self.state[JOURNAL].load(Ordering::Acquire).min(WRITES_MAX as u64);
        for at in 0..count as usize {
            let [index, value] = [0, 1].map(|word| self.journal(at, word).load(Ordering::Relaxed));
            // Relaxed: the next holder of the lock takes DEPOT-A1.
            self.register_word(index as u8).store(value, Ordering::Relaxed);
        }
        // DEPOT-R3: the registers before the journal is void.
        self.state[JOURNAL].store(0, Ordering::Release);
    }

    #[inline(always)]
    fn journal(&self, at: usize, word: usize) -> &AtomicU64 {
        &self.state[JOURNAL + 1 + 2 * at + word]
    }

    #[inline(always)]
    fn register_word(&self, index: u8) -> &AtomicU64 {
        &self.state[REGISTERS_AT + usize::from(index)]
    }

    #[inline(always)]
    fn standing_word(&self, number: u8) -> &AtomicU64 {
        &self.state[STANDINGS + LINE * (usize::from(number) % INLETS)]
    }

    /// The owner's rules for an inlet.
    #[inline(always)]
    pub(crate) fn inlet(&self, number: u8) -> Option<InletRules> {
        let [first, len, windows] =
            // Relaxed: written and read by holders of the lock.
            [0, 1, 2].map(|at| self.rules[inlet_at(number) + at].load(Ordering::Relaxed));
        if first & 1 == 0 {
            return None;
        }
        let window =
            |at: u32| Window { base: (windows >> at) as u16, len: (windows >> (at + 16)) as u16 };
        let inlet = Inlet {
            rights: Rights::from_bits_truncate((first >> 8) as u8),
            len,
            registers: window(0),
            entries: window(32),
            longest: (first >> 16) as u16,
        };
        Some(InletRules { inlet, holds: first & 2 != 0 })
    }

    /// The present value of a register, for the owner, without the lock.
    pub(crate) fn peek(&self, index: u8) -> u64 {
        // DEPOT-A4: the data of the message that has written it (DEPOT-R4).
        self.register_word(index).load(Ordering::Acquire)
    }
}

fn claimed(file: BorrowedFd<'_>, holders: &[Holder]) -> Result<Claims, SetupError> {
    let claims = Claims::at(file).map_err(SetupError::os("open a depot's state"))?;
    for Holder(number) in holders {
        claims.claim(*number).map_err(SetupError::os("claim at a depot"))?;
    }
    Ok(claims)
}

#[inline(always)]
const fn inlet_at(number: u8) -> usize {
    INLETS_AT + LINE * (number as usize % INLETS)
}

impl Inside<'_> {
    /// Changes registers: all or none of them, even if this process dies. Memory that was written
    /// before is visible to a reader that sees any of the changes.
    // spec: DEP-26
    #[inline(always)]
    pub(crate) fn commit(&self, writes: &[(u8, u64)]) {
        let depot = self.0;
        if let [(index, value)] = writes {
            // DEPOT-R4: the message's data.
            return depot.register_word(*index).store(*value, Ordering::Release);
        }
        if writes.is_empty() {
            return;
        }
        for (at, (index, value)) in (0..).zip(writes) {
            // Relaxed: DEPOT-R2 below.
            depot.journal(at, 0).store(u64::from(*index), Ordering::Relaxed);
            depot.journal(at, 1).store(*value, Ordering::Relaxed);
        }
        // DEPOT-R2: from now on the journal counts.
        depot.state[JOURNAL].store(writes.len() as u64, Ordering::Release);
        for (index, value) in writes {
            // DEPOT-R4: the message's data; and the journal counts before any of it.
            depot.register_word(*index).store(*value, Ordering::Release);
        }
        // DEPOT-R3: the registers before the journal is void.
        depot.state[JOURNAL].store(0, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn standing(&self, number: u8) -> Standing {
        // Relaxed: here and below, DEPOT-A1 came before and DEPOT-R1 follows.
        Standing::from_word(self.0.standing_word(number).load(Ordering::Relaxed))
    }

    pub(crate) fn set_standing(&self, number: u8, standing: Standing) {
        // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
        self.0.standing_word(number).store(standing.word(), Ordering::Relaxed);
    }

    /// Stores a message at which an inlet stops.
    // spec: DEP-19
    pub(crate) fn hold(&self, number: u8, words: &[u64; COMMAND_BYTES / 8], data: &[u8]) {
        let at = held_at(number);
        for (index, word) in words.iter().enumerate() {
            // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
            self.0.state[at + index].store(*word, Ordering::Relaxed);
        }
        self.0.state.mapping().write(held_data_at(number), &data[..data.len().min(DATA_MAX)]);
    }

    /// The words of the message at which an inlet has stopped, not yet checked, and its data.
    pub(crate) fn held(&self, number: u8, data: &mut [u8; DATA_MAX]) -> [u64; COMMAND_BYTES / 8] {
        let at = held_at(number);
        self.0.state.mapping().read(held_data_at(number), data);
        // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
        std::array::from_fn(|index| self.0.state[at + index].load(Ordering::Relaxed))
    }

    pub(crate) fn set_inlet(&self, number: u8, rules: Option<&InletRules>) {
        let words = rules.map_or([0; 3], |InletRules { inlet, holds }| {
            let first = 1 | u64::from(*holds) << 1 | u64::from(inlet.rights.bits()) << 8;
            let window = |w: &Window| u64::from(w.base) | u64::from(w.len) << 16;
            let windows = window(&inlet.registers) | window(&inlet.entries) << 32;
            [first | u64::from(inlet.longest) << 16, inlet.len, windows]
        });
        for (at, word) in words.into_iter().enumerate() {
            // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
            self.0.rules[inlet_at(number) + at].store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn protect(&self, index: u8, protection: Protection) {
        // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
        self.0.rules[usize::from(index)].store(u64::from(protection.bits()), Ordering::Relaxed);
    }

    pub(crate) fn store(&self, index: u8, stored: Option<&Stored>) {
        let words = stored.map_or([0; 3], |Stored { instruction, operand, enters }| {
            [instruction.word(), *operand, 1 | u64::from(*enters) << 1]
        });
        for (at, word) in words.into_iter().enumerate() {
            let place = INSTRUCTIONS_AT + 4 * usize::from(index) + at;
            // Relaxed: DEPOT-A1 came before and DEPOT-R1 follows.
            self.0.rules[place].store(word, Ordering::Relaxed);
        }
    }
}

const fn held_at(number: u8) -> usize {
    HELD + HELD_LEN * (number as usize % INLETS)
}

/// The offset in bytes.
const fn held_data_at(number: u8) -> u64 {
    8 * held_at(number) as u64 + COMMAND_BYTES as u64
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // DEPOT-R1: all that was done inside.
        self.0.lock().store(0, Ordering::Release);
    }
}

/// Registers and instructions, for the holder of the lock.
impl Inside<'_> {
    #[inline(always)]
    pub(crate) fn register(&self, index: u8) -> u64 {
        // Relaxed: DEPOT-A1 came before.
        self.0.register_word(index).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn protection(&self, index: u8) -> Protection {
        // Relaxed: DEPOT-A1 came before.
        let bits = self.0.rules[usize::from(index)].load(Ordering::Relaxed);
        Protection::from_bits_truncate(bits as u8)
    }

    /// The word of a stored instruction, its operand, and whether messages may enter it.
    #[inline(always)]
    pub(crate) fn stored(&self, index: u16) -> Option<(u64, u64, bool)> {
        let index = usize::from(index);
        if index >= INSTRUCTIONS {
            return None;
        }
        let place = INSTRUCTIONS_AT + 4 * index;
        // Relaxed: DEPOT-A1 came before.
        let [word, operand, flags] =
            [0, 1, 2].map(|at| self.0.rules[place + at].load(Ordering::Relaxed));
        (flags & 1 == 1).then_some((word, operand, flags & 2 != 0))
    }
}
