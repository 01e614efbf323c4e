//! Endpoints: the engine's, with libfabric's queues, counters and numbers of peers around them.
//!
//! | file, upwards | subject |
//! |---|---|
//! | `op.rs` | an operation under way, as the engine keeps it |
//! | `peers.rs` | a program's numbers of its peers, and the engine's |
//! | `place.rs` | finding an endpoint by an IP address and a port |
//! | `side.rs` | what one direction reports to |
//! | `end.rs` | what becomes of ends |
//! | `core.rs` | what calls and progress share |
//! | `message.rs` | posting messages |
//! | `receive.rs` | posting receives, looking for messages |
//! | `remote.rs` | working on peers' memory |
//! | `handle.rs` | what calls go by: an endpoint, or an alias of one |
//! | `visit.rs` | what our own thread does here in the program's stead |

mod core;
mod end;
mod handle;
mod message;
mod op;
mod peers;
mod place;
mod receive;
mod remote;
mod side;
mod visit;

pub(crate) use self::core::{Core, Wishes};
pub(crate) use handle::{Alias, Handle};
pub(crate) use message::Message;
pub(crate) use receive::Wanted;
pub(crate) use remote::{Change, Target};
pub(crate) use side::{Note, Reported};

use crate::abi::{FidAv, FidCntr, FidCq, FidEp, FidEq, READ, RECV, REMOTE_READ};
use crate::abi::{REMOTE_WRITE, SELECTIVE_COMPLETION, SEND, WRITE, errno};
use crate::domain::DomainObject;
use crate::domain::av::{Av, Watcher};
use crate::error::trouble;
use crate::error::{Code, Outcome};
use crate::info::address::Address;
use crate::info::parameters::endpoint_options;
use crate::object::registry::{self, Body, Entity};
use crate::queue::cntr::Cntr;
use crate::queue::cq::Cq;
use crate::queue::eq::Eq;
use crate::queue::sources::{Source, Sources};
use crate::queue::wait_set::Attachment;
use crate::sys::object::Object;
use ayre::Spin;
use ayre_guest::cell::Policy;
use ayre_guest::progress::Served;
use place::Named;
use side::choice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An endpoint.
pub(crate) struct Ep<L: Policy> {
    pub(crate) core: Arc<Core<L>>,
    /// The name by which it is found, besides its address.
    _named: Option<Named>,
    bound: Mutex<Bound<L>>,
    domain: Arc<DomainObject<L>>,
}

/// The object of an endpoint.
pub(crate) type EpObject<L> = Object<FidEp, Ep<L>>;

/// The objects that are bound to an endpoint and are not on the data path.
struct Bound<L: Policy> {
    av: Option<Arc<Object<FidAv, Av<L>>>>,
    /// Nothing is reported there: such endpoints have no connections.
    eq: Option<Arc<Object<FidEq, Eq>>>,
    queues: Vec<Arc<Object<FidCq, Cq<L>>>>,
    counters: Vec<Arc<Object<FidCntr, Cntr<L>>>>,
    is_enabled: bool,
}

impl<L: Policy> Ep<L> {
    /// # Errors
    /// `EADDRINUSE` where another endpoint has the requested place. `EMFILE` and others where the
    /// system refuses a resource. `EADDRNOTAVAIL` for an address that only one endpoint ever has.
    pub(crate) fn open(domain: Arc<DomainObject<L>>, wishes: &Wishes) -> Outcome<Self> {
        let options = endpoint_options()?.spin(Spin::SHARED);
        let endpoint = ayre::endpoint::raw::RawEndpoint::open_with(&options);
        let endpoint = endpoint.map_err(|error| trouble::of_setup("fi_endpoint", &error))?;
        if let Some(recorder) = &domain.recorder {
            recorder.opened(endpoint.address().name())?;
        }
        let named = match wishes.source {
            None => None,
            Some(Address::At(place)) => Named::claim(&place, &endpoint.address())?,
            Some(Address::Of(_)) => return Err(Code(errno::EADDRNOTAVAIL)),
        };
        let bound = Bound {
            av: None,
            eq: None,
            queues: Vec::new(),
            counters: Vec::new(),
            is_enabled: false,
        };
        Ok(Self {
            core: Core::new(endpoint, wishes, &domain)?,
            _named: named,
            bound: Mutex::new(bound),
            domain,
        })
    }

    fn bound(&self) -> MutexGuard<'_, Bound<L>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn source(&self) -> Arc<dyn Source> {
        self.core.clone()
    }

    fn served(&self) -> Arc<dyn Served> {
        self.core.clone()
    }

    fn watcher(&self) -> Arc<dyn Watcher> {
        self.core.clone()
    }

    fn bind_cq(&self, cq: Arc<Object<FidCq, Cq<L>>>, flags: u64) -> Outcome {
        if flags & !(SEND | RECV | SELECTIVE_COMPLETION) != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let mut bound = self.bound();
        if flags & (SEND | RECV) == 0 || bound.is_enabled {
            return Err(Code::INVALID);
        }
        self.core.bind_cq(&cq, flags)?;
        cq.sources.add(&self.source(), cq.attachment().map(Attachment::wait))?;
        bound.queues.push(cq);
        Ok(())
    }

    fn bind_cntr(&self, cntr: Arc<Object<FidCntr, Cntr<L>>>, flags: u64) -> Outcome {
        let all = SEND | RECV | READ | WRITE | REMOTE_READ | REMOTE_WRITE;
        if flags & !all != 0 {
            return Err(Code::BAD_FLAGS);
        }
        if flags == 0 {
            return Err(Code::INVALID);
        }
        let mut bound = self.bound();
        self.core.bind_cntr(&cntr, flags)?;
        cntr.sources.add(&self.source(), cntr.attachment().map(Attachment::wait))?;
        bound.counters.push(cntr);
        Ok(())
    }
}

impl<L: Policy> Body for Ep<L> {
    fn bind(&self, other: &Arc<dyn Entity>, flags: u64) -> Outcome {
        if let Some(cq) = registry::typed::<FidCq, Cq<L>>(other) {
            return self.bind_cq(cq, flags);
        }
        if let Some(cntr) = registry::typed::<FidCntr, Cntr<L>>(other) {
            return self.bind_cntr(cntr, flags);
        }
        if flags != 0 {
            return Err(Code::BAD_FLAGS);
        }
        let mut bound = self.bound();
        if let Some(av) = registry::typed::<FidAv, Av<L>>(other) {
            return set(&mut bound.av, av);
        }
        set(&mut bound.eq, registry::typed::<FidEq, Eq>(other).ok_or(Code::INVALID)?)
    }

    fn enable(&self) -> Outcome {
        let av = {
            let mut bound = self.bound();
            if bound.is_enabled {
                return Ok(());
            }
            self.core.check_queues()?;
            let av = bound.av.clone().ok_or(Code(errno::ENOAV))?;
            self.domain.enable(&self.served(), self.core.is_open_to_work())?;
            bound.is_enabled = true;
            av
        };
        self.core.enable();
        av.watch(&self.watcher());
        Ok(())
    }

    fn op_flags(&self, direction: u64) -> Outcome<u64> {
        self.core.op_flags(direction)
    }

    fn set_op_flags(&self, flags: u64) -> Outcome {
        let (direction, chosen) = choice(flags)?;
        self.core.set_op_flags(direction, chosen)
    }

    fn close(&self) -> Outcome {
        self.domain.disable(&self.served());
        let source = self.source();
        let bound = self.bound();
        if let Some(av) = &bound.av {
            av.unwatch(&self.watcher());
        }
        let queues = bound.queues.iter().map(|cq| &cq.sources);
        let counters = bound.counters.iter().map(|cntr| &cntr.sources);
        queues.chain(counters).for_each(|sources: &Sources<L>| sources.remove(&source));
        Ok(())
    }
}

/// Binds what can be bound once.
fn set<T>(slot: &mut Option<T>, value: T) -> Outcome {
    match slot {
        Some(_) => Err(Code::INVALID),
        None => {
            *slot = Some(value);
            Ok(())
        }
    }
}
