//! By which names an endpoint knows its remotes.
use super::RemoteId;
use crate::link::callee::Names;
use crate::peer::agreement::Name;
use std::sync::{Arc, Mutex, PoisonError};

/// By which names an endpoint knows its remotes: for those who are told of a remote by a closure,
/// in which the endpoint cannot be asked.
#[derive(Clone, Debug, Default)]
pub struct RemoteNames(Arc<Mutex<Vec<Known>>>);

/// The remote at a place.
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
