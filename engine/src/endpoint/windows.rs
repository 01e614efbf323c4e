//! Memory that remotes may work on, by key.
use crate::error::Fault;
use crate::mem::exposed::Exposed;
use crate::mem::span::Span;
use ayre_proto::touch::Access;
use foldhash::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Windows that are open at a time.
pub const WINDOWS_MAX: usize = 1 << 16;
/// Spans of a window.
pub const WINDOW_SPANS_MAX: usize = 16;

/// Memory to be opened for remotes.
///
/// Unlike that of a message, it may be read and written by others meanwhile, the program among
/// them. Whoever made its spans has promised that they stay until the window is withdrawn.
#[derive(Clone, Debug)]
pub struct Window {
    /// How remotes call it.
    pub key: u64,
    /// How they call its first byte.
    pub base: u64,
    /// Up to [`WINDOW_SPANS_MAX`] ranges, one behind the other; may be read-only without
    /// [`Access::WRITE`].
    pub memory: Vec<Span>,
    /// What they may do.
    pub access: Access,
}

/// A window was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ExposeError {
    /// There is one of this key.
    #[error("the key is taken")]
    KeyTaken,
    /// As many windows are open as may, [`WINDOWS_MAX`].
    #[error("too many windows")]
    TooMany,
    /// It has more than [`WINDOW_SPANS_MAX`] spans.
    #[error("too many spans")]
    TooManySpans,
    /// The address behind its last byte is beyond what an address can be.
    #[error("the window wraps around the end of the addresses")]
    TooLong,
}

crate::error::debug_is_display!(ExposeError);

/// Windows: memory that remotes may work on, by key. Clones are the same windows; several endpoints
/// may share them.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Of sets beside each other: one lock, as their memory may be the same.
    sets: Arc<Mutex<Vec<Table>>>,
    own: usize,
}

/// What is open in a set.
#[derive(Debug, Default)]
struct Table {
    /// Keys are the program's own choice, so that nobody else can make them meet.
    open: HashMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    base: u64,
    memory: Exposed,
    access: Access,
}

/// What a remote says it wants to touch. All of it is a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) key: u64,
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) access: Access,
}

impl Default for Windows {
    fn default() -> Self {
        Self::new()
    }
}

impl Windows {
    /// No windows.
    pub fn new() -> Self {
        Self { sets: Arc::new(Mutex::new(vec![Table::default()])), own: 0 }
    }

    /// Others, none of which is open yet, under keys of their own. Their memory may be the same:
    /// updates by way of either are whole to those by way of the other.
    // spec: ENV-21, ENV-28
    pub fn beside(&self) -> Self {
        let mut sets = self.lock();
        sets.push(Table::default());
        debug_assert!(self.own < sets.len() - 1, "each set is its own");
        Self { sets: Arc::clone(&self.sets), own: sets.len() - 1 }
    }

    /// Opens a window to the remotes of every endpoint that shares these windows.
    ///
    /// # Errors
    /// See [`ExposeError`].
    // spec: ENV-21
    pub fn expose(&self, window: Window) -> Result<(), ExposeError> {
        let Window { key, base, memory, access } = window;
        if memory.len() > WINDOW_SPANS_MAX {
            return Err(ExposeError::TooManySpans);
        }
        let memory = Exposed::new(memory).ok_or(ExposeError::TooLong)?;
        base.checked_add(memory.len()).ok_or(ExposeError::TooLong)?;
        let table = &mut self.lock()[self.own];
        if table.open.contains_key(&key) {
            return Err(ExposeError::KeyTaken);
        }
        if table.open.len() >= WINDOWS_MAX {
            return Err(ExposeError::TooMany);
        }
        table.open.insert(key, Open { base, memory, access });
        debug_assert!(table.open.len() <= WINDOWS_MAX, "no more are open");
        Ok(())
    }

    /// Closes a window. When this returns, no remote touches its memory any more. False where there
    /// is none of this key.
    // spec: ENV-22
    pub fn withdraw(&self, key: u64) -> bool {
        self.lock()[self.own].open.remove(&key).is_some()
    }

    /// Does something to the memory of a claim, while no endpoint touches any of these windows or
    /// of those beside them, nor is one withdrawn.
    // spec: ENV-22, ENV-23, ENV-28
    #[inline(always)]
    pub(super) fn perform<T>(
        &self,
        claim: &Claim,
        what: impl FnOnce(&Exposed, u64) -> T,
    ) -> Result<T, Fault> {
        let sets = self.lock();
        let (memory, at) = sets[self.own].find(claim)?;
        Ok(what(memory, at))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Table>> {
        // Whoever panicked has left each table as it was, or with one entry more or less.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Translation: the memory of a claim, and where in it that begins.
    // spec: ENV-23
    fn find(&self, claim: &Claim) -> Result<(&Exposed, u64), Fault> {
        let Claim { key, address, len, access } = *claim;
        let open = self.open.get(&key).ok_or(Fault::UnknownKey)?;
        if !open.access.contains(access) {
            return Err(Fault::Rights);
        }
        let at = address.checked_sub(open.base).ok_or(Fault::Bounds)?;
        let end = at.checked_add(len).ok_or(Fault::Bounds)?;
        if end > open.memory.len() {
            return Err(Fault::Bounds);
        }
        debug_assert!(open.base.checked_add(end).is_some(), "a window does not wrap around");
        Ok((&open.memory, at))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn claim(key: u64) -> Claim {
        Claim { key, address: 0, len: 1, access: Access::WRITE }
    }

    fn open(windows: &Windows, key: u64) {
        let memory = vec![Span::of_static(vec![0].leak())];
        windows.expose(Window { key, base: 0, memory, access: Access::WRITE }).unwrap();
    }

    // spec: ENV-21
    #[test]
    fn sets_beside_each_other_have_keys_of_their_own() {
        let one = Windows::new();
        let other = one.beside();
        open(&one, 1);
        open(&other, 2);
        assert_eq!(one.perform(&claim(2), |_, _| ()), Err(Fault::UnknownKey));
        assert_eq!(other.perform(&claim(1), |_, _| ()), Err(Fault::UnknownKey));
        assert!(!one.withdraw(2) && other.withdraw(2) && one.withdraw(1));
    }

    // spec: ENV-28
    #[test]
    fn nothing_is_done_to_a_set_while_something_is_to_one_beside_it() {
        let one = Windows::new();
        let other = one.clone().beside();
        open(&one, 1);
        let is_kept_off = |of: &Windows| of.sets.try_lock().is_err();
        let during = one.perform(&claim(1), |_, _| is_kept_off(&other) && is_kept_off(&one));
        assert_eq!((during, is_kept_off(&other)), (Ok(true), false));
        assert!(!is_kept_off(&Windows::new()));
    }
}
