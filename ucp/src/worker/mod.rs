//! Workers: an endpoint of the engine, and what goes on by it.
//!
//! | file | subject |
//! |---|---|
//! | `ends.rs` | operations that have ended |
//! | `waiting.rs` | posts that wait for room, or behind a fence |
//! | `state.rs` | the state that one thread uses at a time: these, and progress |
//! | `arrivals.rs` | active messages that have come |
//! | `ep.rs` | endpoints |
//! | `tag.rs`, `active.rs` | tagged messages; active messages |
//! | `rma.rs` | accesses to memory of peers |
//! | `wakeup.rs` | sleeping until something comes |
//! | `flush.rs` | waiting until all has ended that goes to a peer |

mod active;
mod arrivals;
mod ends;
mod ep;
mod flush;
mod rma;
mod state;
mod tag;
mod waiting;
mod wakeup;

pub(crate) use self::arrivals::{Data, HEADER_MAX, Kept, Note, WHOLE_MAX};
pub(crate) use self::ep::Ep;
pub(crate) use self::tag::{Found, Memory};

use self::ends::NO_INFO;
use self::state::{Closed, State};
use self::waiting::Stand;
use self::wakeup::Wakeup;
use crate::abi::request::TagRecvInfo;
use crate::abi::status::Status;
use crate::context::Context;
use crate::status::of_fault;
use crate::sys::request::{Request, Told};
use crate::sys::threads::Serial;
use ayre::Fault;
use ayre::endpoint::raw::RawEndpoint;
use ayre::endpoint::{Address, RemoteId};
use ayre::error::SetupError;
use ayre_guest::cell::{Guard as _, Policy, Shared};
use std::ffi::c_void;
use std::sync::Arc;

/// Requests that are made at a time.
const MADE_AT_ONCE: usize = 16;

/// How a program uses threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One call at a time.
    Serial,
    /// Any call at any time.
    Several,
}

enum Cell {
    Serial(<Serial as Policy>::Visited<State>),
    Several(<Shared as Policy>::Visited<State>),
}

/// A worker.
pub(crate) struct Worker {
    cell: Cell,
    context: Arc<Context>,
    address: Address,
    /// Of data of active messages.
    alignment: usize,
    wakeup: Option<Wakeup>,
    pub(crate) name: String,
}

/// How the program wants an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Its own request.
    pub(crate) request: Option<Request>,
    /// The function for its end, and what that gets from the program.
    pub(crate) told: (Told, *mut c_void),
    /// Its end is told by the function, also where it comes in the call.
    pub(crate) never_at_once: bool,
    /// It must end in the call.
    pub(crate) only_at_once: bool,
}

/// How an operation stands behind its call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Posted {
    /// It has ended well, and nobody is told.
    Done,
    /// A receive has ended well, and this is told of it.
    Received(TagRecvInfo),
    Failed(Status),
    Pending(Request),
}

impl Worker {
    pub(crate) fn new(
        context: &Arc<Context>,
        threads: Threads,
        (name, alignment, is_edge): (String, usize, bool),
    ) -> Result<Self, SetupError> {
        let mut endpoint = RawEndpoint::open_with(&context.options)?;
        endpoint.share(&context.regions);
        if context.has_active_messages {
            endpoint.hand_over_plain();
        }
        let address = endpoint.address();
        let wakeup = match context.has_wakeup {
            true => Some(
                Wakeup::new(&endpoint).map_err(|errno| SetupError::Os { call: "epoll", errno })?,
            ),
            false => None,
        };
        let mut state = State::new(endpoint);
        state.active.is_on = context.has_active_messages;
        state.arms_itself = is_edge && wakeup.is_some();
        let cell = match threads {
            Threads::Serial => Cell::Serial(Serial::visited(state)),
            Threads::Several => Cell::Several(Shared::visited(state)),
        };
        Ok(Self { cell, context: context.clone(), address, alignment, wakeup, name })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }

    pub(crate) fn threads(&self) -> Threads {
        match self.cell {
            Cell::Serial(_) => Threads::Serial,
            Cell::Several(_) => Threads::Several,
        }
    }

    #[inline(always)]
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        match &self.cell {
            Cell::Serial(cell) => cell.with(act),
            Cell::Several(cell) => cell.with(act),
        }
    }

    /// Gets on with all that is under way, and calls the program's functions for what has ended.
    /// Whether anything was done.
    #[inline]
    pub(crate) fn progress(&self) -> bool {
        let any = self.with(State::progress);
        if any {
            self.tell_news();
        }
        any
    }

    #[inline]
    fn tell_news(&self) {
        let (ends, has_arrivals, has_lost) = self.with(
            #[inline(always)]
            |state| {
                let has_arrivals = state.active.begin_telling();
                (state.ends.take_due(), has_arrivals, state.eps.has_lost())
            },
        );
        if !ends.is_empty() {
            self.tell(ends);
        }
        if has_arrivals {
            self.tell_arrivals();
        }
        if has_lost {
            self.tell_losses();
        }
    }

    /// Calls the program's functions. These may make calls.
    #[cold]
    fn tell(&self, mut ends: Vec<Request>) {
        for request in ends.drain(..) {
            if request.tell() {
                self.recycle(request);
            }
        }
        self.with(|state| state.ends.keep_room(ends));
    }

    /// The memory of a request is free.
    pub(crate) fn recycle(&self, request: Request) {
        self.with(|state| state.ends.pool.push(request));
    }

    /// A request for the program, which is to have it as its own.
    pub(crate) fn lend_request(&self) -> Request {
        let (told, no) = ((Told::Nobody, std::ptr::null_mut()), false);
        let wish = Wish { request: None, told, never_at_once: no, only_at_once: no };
        self.with_request(&wish, |_, request| {
            request.conclude(Status::OK, NO_INFO);
            request.publish();
            request
        })
    }

    /// Begins an operation with a request: the program's, or one of the pool.
    #[inline(always)]
    fn with_request<T>(&self, wish: &Wish, post: impl FnOnce(&mut State, Request) -> T) -> T {
        let mut post = Some(post);
        loop {
            let posted = self.with(
                #[inline(always)]
                |state| {
                    let request = wish.request.or_else(|| state.ends.pool.pop())?;
                    request.begin(self, wish.request.is_none(), wish.told);
                    let post = post.take().expect("it is called once");
                    Some(post(state, request))
                },
            );
            match posted {
                Some(posted) => return posted,
                None => self.make_requests(),
            }
        }
    }

    /// The program prepares its part of each, so that no state of ours is in use.
    #[cold]
    fn make_requests(&self) {
        let made = std::array::from_fn::<_, MADE_AT_ONCE, _>(|_| self.context.requests.make());
        self.with(|state| state.add_requests(&made));
    }

    /// Finds the peer at an address.
    ///
    /// # Errors
    /// As [`RawEndpoint::remote`].
    pub(crate) fn find(&self, address: &Address) -> Result<RemoteId, SetupError> {
        self.with(|state| state.find(address))
    }

    /// The end of an operation that has ended in its call.
    fn at_once(&self, wish: &Wish, request: Request) -> Posted {
        if wish.never_at_once {
            if request.tell() {
                self.recycle(request);
            }
            return Posted::Pending(request);
        }
        request.unpack();
        request.publish();
        let posted = match request.status() {
            Status::OK => Posted::Received(request.info()),
            status => Posted::Failed(status),
        };
        if request.is_pooled() {
            self.recycle(request);
        }
        posted
    }

    /// The result of a call that has posted something.
    #[inline]
    fn stands(&self, wish: &Wish, request: Request, stand: Result<Stand, Fault>) -> Posted {
        let status = match stand {
            Ok(Stand::Posted | Stand::Waits) => return Posted::Pending(request),
            Ok(Stand::Done) => Status::OK,
            Err(fault) => of_fault(fault),
        };
        request.conclude(status, NO_INFO);
        self.at_once(wish, request)
    }

    /// The result of an operation that loads and stores have carried out.
    #[inline(always)]
    pub(crate) fn done(&self, wish: &Wish) -> Posted {
        if !wish.never_at_once {
            return Posted::Done;
        }
        let request = self.with_request(wish, |_, request| request);
        self.stands(wish, request, Ok(Stand::Done))
    }

    /// Closes an endpoint to a peer when all that goes there has ended; by force at once.
    pub(crate) fn close(
        &self,
        (remote, ep): (RemoteId, Closed),
        is_forced: bool,
        wish: &Wish,
    ) -> Posted {
        if is_forced {
            self.with(|state| state.waiting.give_up(remote, &mut state.ends));
            return Posted::Done;
        }
        self.flush(Some(remote), Some(ep), wish)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let made = self.with(State::take_requests);
        self.context.unmake(made);
    }
}
