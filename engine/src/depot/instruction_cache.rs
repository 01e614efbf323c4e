//! A cache of parsed instructions. The instructions of a depot are words in shared memory, which
//! are read anew for each message.
use crate::mem::depot::Inside;
use ayre_proto::deposit::{Append, Depot, Instruction, Protection, Stored};
use std::cell::Cell;

/// The number of instructions that are cached.
const MEMORY: usize = 8;
const _: () = assert!(MEMORY.is_power_of_two(), "to find a place, nothing is divided");

/// The parsed instructions, found by their words.
#[derive(Debug)]
pub(crate) struct InstructionCache {
    instructions: [Cell<Instruction>; MEMORY],
    /// Appending instructions: the word, and the fast path.
    appends: [Cell<(u64, Option<Append>)>; MEMORY],
}

impl Default for InstructionCache {
    fn default() -> Self {
        let nothing = Instruction::parse(0).expect("nothing is an instruction");
        Self {
            instructions: std::array::from_fn(|_| Cell::new(nothing)),
            appends: std::array::from_fn(|_| Cell::new((0, None))),
        }
    }
}

#[inline(always)]
const fn place_of(word: u64) -> usize {
    (word ^ word >> 32) as usize % MEMORY
}

impl InstructionCache {
    #[inline(always)]
    fn find(&self, word: u64) -> Option<Instruction> {
        let place = &self.instructions[place_of(word)];
        let known = place.get();
        if known.word() == word {
            return Some(known);
        }
        let instruction = Instruction::parse(word).ok()?;
        debug_assert_eq!(instruction.word(), word, "it is found by what it was parsed from");
        place.set(instruction);
        Some(instruction)
    }

    /// The fast path of an instruction, if it has one.
    #[inline(always)]
    pub(super) fn append(&self, word: u64) -> Option<Append> {
        let (known, append) = self.appends[place_of(word)].get();
        if known == word { append } else { self.learn(word) }
    }

    #[cold]
    fn learn(&self, word: u64) -> Option<Append> {
        let append = self.find(word).and_then(|instruction| Append::of(&instruction));
        self.appends[place_of(word)].set((word, append));
        append
    }
}

/// The registers and instructions of a locked depot, for one message.
pub(super) struct View<'a> {
    pub(super) inside: &'a Inside<'a>,
    pub(super) instructions: &'a InstructionCache,
}

impl Depot for View<'_> {
    #[inline(always)]
    fn register(&self, index: u8) -> u64 {
        self.inside.register(index)
    }

    #[inline(always)]
    fn protection(&self, index: u8) -> Protection {
        self.inside.protection(index)
    }

    #[inline(always)]
    fn stored(&self, index: u16) -> Option<Stored> {
        let (word, operand, enters) = self.inside.stored(index)?;
        Some(Stored { instruction: self.instructions.find(word)?, operand, enters })
    }
}
