//! Handles of calls: an endpoint, or an alias of one. An alias is the same endpoint, with flags of
//! its own for calls that have none.

use super::core::Core;
use super::side::{Reported, choice};
use super::{Ep, EpObject};
use crate::abi::{FidEp, RECV, SEND};
use crate::error::{Code, Outcome};
use crate::object::registry::Body;
use crate::sys::object::Object;
use ayre_guest::cell::Policy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle of calls.
pub(crate) trait Handle: Body + Sized {
    type Policy: Policy;

    fn core(&self) -> &Core<Self::Policy>;

    /// How calls without flags report that send or work on memory, by the flags that mean something
    /// to them.
    fn sends(&self, meant: u64) -> Reported;

    /// How those report that receive.
    fn receives(&self, meant: u64) -> Reported;

    /// The endpoint.
    fn endpoint(this: &Arc<Object<FidEp, Self>>) -> &Arc<EpObject<Self::Policy>>;
}

impl<L: Policy> Handle for Ep<L> {
    type Policy = L;

    #[inline(always)]
    fn core(&self) -> &Core<L> {
        &self.core
    }

    #[inline(always)]
    fn sends(&self, _meant: u64) -> Reported {
        Reported::AsChosen
    }

    #[inline(always)]
    fn receives(&self, _meant: u64) -> Reported {
        Reported::AsChosen
    }

    fn endpoint(this: &Arc<EpObject<L>>) -> &Arc<EpObject<L>> {
        this
    }
}

/// An alias.
pub(crate) struct Alias<L: Policy> {
    flags: Mutex<Flags>,
    /// It is not closed before its aliases are.
    endpoint: Arc<EpObject<L>>,
}

/// Flags of calls without any, in each direction.
#[derive(Clone, Copy, Debug)]
struct Flags {
    tx: u64,
    rx: u64,
}

impl<L: Policy> Alias<L> {
    /// An alias of an endpoint, or of what another one is an alias of.
    ///
    /// # Errors
    /// `EINVAL` where both directions are named, or flags for none; `EBADFLAGS` for flags that no
    /// operation has by default.
    pub(crate) fn of<H>(handle: &Arc<Object<FidEp, H>>, wanted: u64) -> Outcome<Self>
    where
        H: Handle<Policy = L>,
    {
        let (tx, rx) = (handle.op_flags(SEND)?, handle.op_flags(RECV)?);
        let flags = match choice(wanted)? {
            (SEND, tx) => Flags { tx, rx },
            (RECV, rx) => Flags { tx, rx },
            (0, 0) => Flags { tx, rx },
            _ => return Err(Code::INVALID),
        };
        Ok(Self { flags: Mutex::new(flags), endpoint: Arc::clone(H::endpoint(handle)) })
    }

    fn flags(&self) -> MutexGuard<'_, Flags> {
        self.flags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flags {
    /// Those of a direction.
    ///
    /// # Errors
    /// `EINVAL` unless one is named.
    fn of(&mut self, direction: u64) -> Outcome<&mut u64> {
        match direction {
            SEND => Ok(&mut self.tx),
            RECV => Ok(&mut self.rx),
            _ => Err(Code::INVALID),
        }
    }
}

impl<L: Policy> Handle for Alias<L> {
    type Policy = L;

    fn core(&self) -> &Core<L> {
        &self.endpoint.core
    }

    fn sends(&self, meant: u64) -> Reported {
        Reported::By(self.flags().tx & meant)
    }

    fn receives(&self, meant: u64) -> Reported {
        Reported::By(self.flags().rx & meant)
    }

    fn endpoint(this: &Arc<Object<FidEp, Self>>) -> &Arc<EpObject<L>> {
        &this.endpoint
    }
}

impl<L: Policy> Body for Alias<L> {
    fn enable(&self) -> Outcome {
        self.endpoint.enable()
    }

    fn op_flags(&self, direction: u64) -> Outcome<u64> {
        Ok(*self.flags().of(direction)?)
    }

    fn set_op_flags(&self, flags: u64) -> Outcome {
        let (direction, chosen) = choice(flags)?;
        *self.flags().of(direction)? = chosen;
        Ok(())
    }
}
