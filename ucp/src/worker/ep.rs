//! Endpoints: a program's ways to its peers.

use super::Worker;
use crate::sys::handle::Place;
use ayre::endpoint::RemoteId;
use std::ffi::c_void;

/// An endpoint.
pub(crate) struct Ep {
    /// The worker that it belongs to, which lives longer.
    pub(crate) worker: Place<Worker>,
    pub(crate) remote: RemoteId,
    pub(crate) name: String,
    /// The program's.
    pub(crate) user_data: Place<c_void>,
}

/// The endpoints of a worker.
#[derive(Default)]
pub(super) struct Eps {
    /// Those that the program has made, by where it knows them.
    programs: Vec<(RemoteId, Place<Ep>)>,
    /// Those that were made for replies.
    #[allow(clippy::vec_box, reason = "the program knows them by their addresses")]
    ours: Vec<Box<Ep>>,
}

impl Worker {
    /// The program has made an endpoint.
    pub(crate) fn add_ep(&self, remote: RemoteId, ep: *const Ep) {
        self.with(|state| state.eps.programs.push((remote, Place(ep))));
    }

    /// The program closes an endpoint: given back, if it is one of ours.
    pub(crate) fn remove_ep(&self, ep: *const Ep) -> Option<Box<Ep>> {
        self.with(|state| {
            state.eps.programs.retain(|(_, known)| known.0 != ep);
            let mut ours = state.eps.ours.iter();
            let ours = ours.position(|own| std::ptr::eq(&raw const **own, ep))?;
            Some(state.eps.ours.swap_remove(ours))
        })
    }

    /// An endpoint to the sender of a message: the program's, by which it knows the peer, or one
    /// that is made for that.
    pub(super) fn reply_to(&self, remote: RemoteId) -> *mut c_void {
        let known = self.with(|state| {
            let Eps { programs, ours } = &state.eps;
            let own = ours.iter().find(|ep| ep.remote == remote).map(|ep| &raw const **ep);
            programs.iter().find(|(to, _)| *to == remote).map(|(_, ep)| ep.0).or(own)
        });
        let ep = known.unwrap_or_else(|| {
            let (name, user_data) = (String::new(), Place(std::ptr::null()));
            let made = Box::new(Ep { worker: Place(self), remote, name, user_data });
            let ep = &raw const *made;
            self.with(|state| {
                state.know(remote);
                state.eps.ours.push(made);
            });
            ep
        });
        ep.cast_mut().cast()
    }
}
