//! Contexts: a program's choices for all of its workers, and its mapped memory.

use crate::key::Key;
use crate::sys::memory::Block;
use crate::sys::request::{Kind, Request};
use crate::sys::window::{At, Window};
use ayre::Rights;
use ayre::endpoint::EndpointOptions;
use ayre::endpoint::raw::{ExposeError, MemoryRegion, MemoryRegions};
use ayre::error::SetupError;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The largest part of a request that a program may ask for.
const REQUEST_MAX: usize = 1 << 20;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: EndpointOptions,
    /// The requests of its pools.
    pub(crate) requests: Kind,
    pub(crate) name: String,
    /// Several threads use workers of it.
    pub(crate) is_shared: bool,
    pub(crate) has_active_messages: bool,
    pub(crate) has_wakeup: bool,
    /// Its mapped memory, as peers of all its workers know it.
    pub(crate) regions: MemoryRegions,
    /// A random number by which its keys are known.
    home: u64,
    next_key: AtomicU64,
    /// The keys of all that is mapped. Nobody else can make one that seems to be ours.
    keys: Mutex<HashMap<u64, Key>>,
    /// Memory of peers that is mapped here, by its label.
    windows: Mutex<HashMap<[u8; 16], Weak<Window>>>,
}

/// The memory that a program wants to have mapped.
#[derive(Debug)]
pub(crate) enum Wanted {
    Nothing,
    OfProgram(Block),
    New(usize, At),
}

/// Mapped memory.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) block: Block,
    pub(crate) key: Key,
}

impl Context {
    /// # Errors
    /// [`SetupError::Environment`] for variables with wrong values, [`SetupError::Invalid`] for
    /// requests that are too large.
    pub(crate) fn new(
        requests: Kind,
        name: String,
        [is_shared, has_active_messages, has_wakeup]: [bool; 3],
    ) -> Result<Self, SetupError> {
        if requests.size > REQUEST_MAX {
            let why = "requests have at most 1 MiB for the program";
            return Err(SetupError::Invalid(why.into()));
        }
        Ok(Self {
            options: EndpointOptions::of_variables()?,
            requests,
            name,
            is_shared,
            has_active_messages,
            has_wakeup,
            regions: MemoryRegions::new(),
            home: RandomState::new().build_hasher().finish(),
            next_key: AtomicU64::new(1),
            keys: Mutex::default(),
            windows: Mutex::default(),
        })
    }

    /// Takes back the requests of a worker that has ended.
    pub(crate) fn unmake(&self, requests: Vec<Request>) {
        self.requests.unmake_all(requests);
    }

    /// Opens memory to peers. New memory is such that they can map it, where the system allows it.
    ///
    /// # Errors
    /// [`SetupError::Exhausted`] where too much is mapped; those of [`Block::new`].
    pub(crate) fn map(&self, wanted: Wanted, rights: Rights) -> Result<Mapped, SetupError> {
        // Relaxed: it is a number of its own, and orders nothing.
        let number = self.next_key.fetch_add(1, Ordering::Relaxed);
        let mut key = Key {
            key: number,
            address: 0,
            length: 0,
            rights,
            home: self.home,
            process: std::process::id(),
            file: None,
        };
        let block = match wanted {
            Wanted::Nothing => return Ok(Mapped { block: Block::empty(), key }),
            Wanted::OfProgram(block) => block,
            Wanted::New(length, at) => Block::new(length, at, key.label())?,
        };
        key.address = block.address.expose_provenance() as u64;
        (key.length, key.file) = (block.length as u64, block.file());
        let memory = vec![block.span()];
        let region = MemoryRegion { key: number, base: key.address, memory, rights };
        self.regions.expose(region).map_err(refused)?;
        locked(&self.keys).insert(number, key);
        Ok(Mapped { block, key })
    }

    /// Closes memory to peers. No engine touches it behind this.
    pub(crate) fn unmap(&self, mapped: &Mapped) {
        locked(&self.keys).remove(&mapped.key.key);
        self.regions.withdraw(mapped.key.key);
    }

    /// Whether memory with this key is mapped by this very context.
    pub(crate) fn is_own(&self, key: &Key) -> bool {
        key.process == std::process::id() && locked(&self.keys).get(&key.key) == Some(key)
    }

    /// The memory of another process of this host, if it can be mapped here.
    pub(crate) fn window(&self, key: &Key) -> Option<Arc<Window>> {
        let place = (key.process, key.file?);
        let (label, length) = (key.label(), usize::try_from(key.length).ok()?);
        let mut windows = locked(&self.windows);
        let is_writable = key.rights.contains(Rights::WRITE);
        // A peer may have changed a key that we have seen: what is mapped need not serve it.
        let known = windows.get(&label).and_then(Weak::upgrade);
        if let Some(window) = known.filter(|window| window.serves(length, is_writable)) {
            return Some(window);
        }
        let window = Arc::new(Window::of_peer(place, length, label, is_writable)?);
        windows.retain(|_, window| window.strong_count() > 0);
        windows.insert(label, Arc::downgrade(&window));
        Some(window)
    }
}

/// A thread that has panicked has left a table as it was, or with one entry more or less.
fn locked<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: ExposeError) -> SetupError {
    match why {
        ExposeError::TooLong => SetupError::Invalid("memory lies beyond the last address".into()),
        _ => SetupError::Exhausted("place for mapped memory".into()),
    }
}
