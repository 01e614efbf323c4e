//! Endpoints: a program's ways to its peers.

use super::Worker;
use crate::abi::status::Status;
use crate::status::of_reason;
use crate::sys::handle::Place;
use crate::sys::handler::ErrorHandler;
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::RawEndpoint;
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
    /// Those that the program has made.
    programs: Vec<Known>,
    /// Those that were made for replies.
    #[allow(clippy::vec_box, reason = "the program knows them by their addresses")]
    ours: Vec<Box<Ep>>,
    /// Losses of the engine that were noted.
    losses: u64,
    /// Endpoints that have lost their peer, and whose functions are to be called.
    lost: Vec<Lost>,
}

/// An endpoint of the program's.
struct Known {
    remote: RemoteId,
    ep: Place<Ep>,
    /// It hears of the end of its peer, once.
    handler: Option<ErrorHandler>,
}

/// An endpoint that has lost its peer, its function, and why.
struct Lost(Place<Ep>, ErrorHandler, Status);

impl Eps {
    /// Notes endpoints that have lost their peer.
    #[inline(always)]
    pub(super) fn look(&mut self, endpoint: &RawEndpoint) {
        if endpoint.losses() != self.losses {
            self.note_losses(endpoint);
        }
    }

    #[cold]
    fn note_losses(&mut self, endpoint: &RawEndpoint) {
        self.losses = endpoint.losses();
        for Known { remote, ep, handler } in &mut self.programs {
            if let Some(reason) = endpoint.reason(*remote)
                && let Some(handler) = handler.take()
            {
                self.lost.push(Lost(Place(ep.0), handler, of_reason(reason)));
            }
        }
    }

    /// Whether functions are to be called.
    #[inline(always)]
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }
}

impl Worker {
    /// The program has made an endpoint.
    pub(crate) fn add_ep(&self, remote: RemoteId, ep: *const Ep, handler: Option<ErrorHandler>) {
        self.with(|state| {
            state.eps.programs.push(Known { remote, ep: Place(ep), handler });
        });
    }

    /// The program closes an endpoint: given back, if it is one of ours.
    pub(crate) fn remove_ep(&self, ep: *const Ep) -> Option<Box<Ep>> {
        self.with(|state| {
            let Eps { programs, ours, lost, .. } = &mut state.eps;
            programs.retain(|known| known.ep.0 != ep);
            lost.retain(|lost| lost.0.0 != ep);
            let is_it = ours.iter().position(|own| std::ptr::eq(&raw const **own, ep))?;
            Some(ours.swap_remove(is_it))
        })
    }

    /// Tells the program of peers that were lost. Its functions may close the endpoints.
    #[cold]
    pub(super) fn tell_losses(&self) {
        while let Some(Lost(ep, handler, status)) = self.with(|state| state.eps.lost.pop()) {
            handler.call(ep.0.cast_mut().cast(), status);
        }
    }

    /// An endpoint to the sender of a message: the program's, by which it knows the peer, or one
    /// that is made for that.
    pub(super) fn reply_to(&self, remote: RemoteId) -> *mut c_void {
        let known = self.with(|state| {
            let Eps { programs, ours, .. } = &state.eps;
            let own = ours.iter().find(|ep| ep.remote == remote).map(|ep| &raw const **ep);
            programs.iter().find(|known| known.remote == remote).map(|known| known.ep.0).or(own)
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
