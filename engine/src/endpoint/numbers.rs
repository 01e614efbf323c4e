//! Numbers of remotes: each has a place, which is another one's when it has gone, and a serial
//! number, which is never another one's.
use super::REMOTES_MAX;
use crate::link::callee::Names;
use crate::peer::agreement::Name;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Bits of a number that are its place.
const PLACE_BITS: u32 = 16;
const _: () = assert!(REMOTES_MAX <= 1 << PLACE_BITS, "a number has its place");

/// Names an endpoint that this one knows. A remote that has gone, or was never called, may have to
/// make room for another one (see [`super::Endpoint::remote`]); a number that has become stale so
/// names nobody from then on, and [`super::Endpoint::remote`] gives a new one.
// spec: ENV-40
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteId(NonZeroU64);

impl RemoteId {
    /// The remote of this serial number, which is not 0, at a place.
    pub(super) fn new(serial: u64, place: usize) -> Self {
        debug_assert!(place < REMOTES_MAX, "a number has its place");
        debug_assert!(serial < 1 << (u64::BITS - PLACE_BITS), "serial numbers do not come again");
        let number = NonZeroU64::new(serial << PLACE_BITS | place as u64);
        Self(number.expect("serial numbers are counted from 1"))
    }

    /// Its place, below [`REMOTES_MAX`]: no two remotes have the same at a time.
    pub const fn index(self) -> usize {
        self.source() as usize
    }

    /// The place as matchers know it: the source of a message.
    #[inline(always)]
    pub(super) const fn source(self) -> u32 {
        self.0.get() as u32 & ((1 << PLACE_BITS) - 1)
    }
}

/// By which names an endpoint knows its remotes: for those who are told of a remote by a closure,
/// in which the endpoint cannot be asked.
#[derive(Clone, Debug, Default)]
pub struct RemoteNames(Arc<Mutex<Vec<Known>>>);

/// What stands at a place.
type Known = Option<(RemoteId, Name)>;

impl Names for RemoteNames {
    fn has(&self, name: Name) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().flatten().any(|(_, known)| *known == name)
    }
}

impl RemoteNames {
    /// The name of a remote ([`super::Address::name`]), unless its number is stale.
    pub fn of(&self, remote: RemoteId) -> Option<[u64; 2]> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, name) = names.get(remote.index()).copied().flatten()?;
        (known == remote).then_some(name)
    }

    pub(super) fn set(&self, remote: RemoteId, name: Option<Name>) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() <= remote.index() {
            names.resize(remote.index() + 1, None);
        }
        let known = names[remote.index()];
        debug_assert!(known.is_none_or(|(it, _)| it == remote), "a place has one number");
        debug_assert!(
            known.is_some() != name.is_some(),
            "it is learned of once, and forgotten once"
        );
        names[remote.index()] = name.map(|name| (remote, name));
    }
}
