//! A port's page, which all its peers map read-only.
//!
//! ```text
//!   0      asleep: 1 while the port sleeps, so senders must kick it
//!   64     engine asleep: the same for the thread that serves mediated commands
//!   1024   generation of each slot of the port's translation table, 8 bytes each
//! ```
//!
//! Only the owner can write it (the file is sealed against other writers), so no peer can change
//! what another one reads.
use super::Instead;
use super::file::{Pages, memory_file, round_to_pages, seal_writers};
use super::map::Mapping;
use super::word::Word;
use crate::error::SetupError;
use crate::sync::Ordering;
use crate::sys::descriptor::Descriptor;
use ayre_proto::limits::{LINE, TABLE_SLOTS};
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

const GENERATIONS: u64 = 1024;
const LEN: usize = GENERATIONS as usize + TABLE_SLOTS * 8;

/// A thread that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// The port's own thread.
    Port = 0,
    /// The thread that serves mediated commands.
    Engine = 1,
}

impl Sleeper {
    fn offset(self) -> u64 {
        self as u64 * LINE as u64
    }
}

/// The page at its owner.
#[derive(Debug)]
pub(crate) struct OwnPage {
    mapping: Mapping,
    file: Descriptor,
}

impl OwnPage {
    // spec: LANE-11
    pub(crate) fn new() -> Result<Self, SetupError> {
        let len = round_to_pages(LEN, Pages::Ordinary);
        let file = memory_file(len, Pages::Ordinary)?;
        let mapping = Mapping::own(file.as_fd(), len)?.private(Instead::Ones);
        seal_writers(file.as_fd())?;
        Ok(Self { mapping, file })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the program has not closed its descriptor.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_there()
    }

    /// Sets whether senders must kick. The caller executes a fence before it looks at its lanes.
    // spec: LANE-12
    pub(crate) fn set_asleep(&self, sleeper: Sleeper, asleep: bool) {
        // Relaxed: ordered by the fences around the sleep, see mem::fence.
        self.mapping.word(sleeper.offset()).store(u64::from(asleep), Ordering::Relaxed);
    }

    /// Whether senders must kick. For a thread of this process, which orders the flag with its
    /// event by a lock.
    pub(crate) fn is_asleep(&self, sleeper: Sleeper) -> bool {
        // A full fence, not a label: it pairs with heavy() on the sleeper's side.
        crate::mem::fence::Fencing::Symmetric.light();
        // Relaxed: as PeerPage::is_asleep.
        self.mapping.word(sleeper.offset()).load(Ordering::Relaxed) != 0
    }

    /// Sets a slot's generation. The caller executes a fence before it looks for users of the old
    /// one.
    pub(crate) fn set_generation(&self, slot: u16, generation: u32) {
        // Relaxed: ordered by the heavy fence of revocation.
        self.mapping.word(generation_at(slot)).store(u64::from(generation), Ordering::Relaxed);
    }
}

fn generation_at(slot: u16) -> u64 {
    GENERATIONS + 8 * (u64::from(slot) % TABLE_SLOTS as u64)
}

/// The page at a peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerPage {
    mapping: Arc<Mapping>,
    asleep: [Word; 2],
}

impl PeerPage {
    pub(crate) fn new(file: BorrowedFd<'_>) -> Result<Self, SetupError> {
        let len = round_to_pages(LEN, Pages::Ordinary);
        let mapping = Arc::new(Mapping::foreign(file, len, false)?.private(Instead::Ones));
        let asleep =
            [Sleeper::Port, Sleeper::Engine].map(|sleeper| Word::new(&mapping, sleeper.offset()));
        Ok(Self { mapping, asleep })
    }

    #[inline(always)]
    pub(crate) fn is_asleep(&self, sleeper: Sleeper) -> bool {
        // Relaxed: the caller has published and fenced, see mem::fence.
        self.asleep[sleeper as usize].load(Ordering::Relaxed) != 0
    }

    /// The word with a slot's generation.
    pub(crate) fn generation(&self, slot: u16) -> Word {
        Word::new(&self.mapping, generation_at(slot))
    }
}
