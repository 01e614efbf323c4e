//! Memory that remotes may work on, by key.
use crate::error::Fault;
use crate::mem::exposed::Exposed;
use crate::mem::span::Span;
use ayre_proto::touch::Access;
use std::collections::HashMap;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
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

/// Windows: memory that remotes may work on, by key. Clones are the same windows; several endpoints
/// may share them.
#[derive(Clone, Debug, Default)]
pub struct Windows(Arc<Mutex<Table>>);

/// What is open.
#[derive(Debug, Default)]
pub(super) struct Table {
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

impl Windows {
    /// No windows.
    pub fn new() -> Self {
        Self::default()
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
        let mut table = self.lock();
        if table.open.contains_key(&key) {
            return Err(ExposeError::KeyTaken);
        }
        if table.open.len() >= WINDOWS_MAX {
            return Err(ExposeError::TooMany);
        }
        table.open.insert(key, Open { base, memory, access });
        Ok(())
    }

    /// Closes a window. When this returns, no remote touches its memory any more. False where there
    /// is none of this key.
    // spec: ENV-22
    pub fn withdraw(&self, key: u64) -> bool {
        self.lock().open.remove(&key).is_some()
    }

    /// While this is held, no endpoint that shares them touches any of them, nor is one withdrawn.
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // Whoever panicked has left the table as it was, or with one entry more or less.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Translation: the memory of a claim, and where in it that begins.
    // spec: ENV-23
    pub(super) fn find(&self, claim: &Claim) -> Result<(&Exposed, u64), Fault> {
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
        Ok((&open.memory, at))
    }
}
