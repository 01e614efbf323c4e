//! A port's page: what it tells all its peers, which map it read-only.
//!
//! ```text
//!   0      asleep: 1 while the port sleeps, so senders must kick it
//!   64     engine asleep: the same for the thread that serves mediated commands
//!   1024   generation of each slot of the port's translation table, 8 bytes each
//! ```
//!
//! Only the owner can write it (the file is sealed against other writers), so no peer can disturb
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

/// Who sleeps.
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

/// The owner's side.
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

    /// Whether the program has not closed it.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_there()
    }

    /// Says whether senders must kick. The caller fences before it looks at its lanes.
    // spec: LANE-12
    pub(crate) fn set_asleep(&self, sleeper: Sleeper, asleep: bool) {
        // Relaxed: ordered by the fences around the sleep, see mem::fence.
        self.mapping.word(sleeper.offset()).store(u64::from(asleep), Ordering::Relaxed);
    }

    /// Whether we said that senders must kick. For a thread of the same process, which fences by
    /// the lock under which it raised what it kicks for.
    pub(crate) fn is_asleep(&self, sleeper: Sleeper) -> bool {
        // A full fence, not a label: heavy() on the sleeper's side is its partner.
        crate::mem::fence::Fencing::Symmetric.light();
        // Relaxed: as PeerPage::is_asleep.
        self.mapping.word(sleeper.offset()).load(Ordering::Relaxed) != 0
    }

    /// Raises a slot's generation. The caller fences before it looks for users of the old one.
    pub(crate) fn set_generation(&self, slot: u16, generation: u32) {
        // Relaxed: ordered by the heavy fence of revocation.
        self.mapping.word(generation_at(slot)).store(u64::from(generation), Ordering::Relaxed);
    }
}

fn generation_at(slot: u16) -> u64 {
    GENERATIONS + 8 * (u64::from(slot) % TABLE_SLOTS as u64)
}

/// A peer's side.
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

    /// The word that holds a slot's generation.
    pub(crate) fn generation(&self, slot: u16) -> Word {
        Word::new(&self.mapping, generation_at(slot))
    }
}
