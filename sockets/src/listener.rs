//! How two programs with this library find each other: doors of listening sockets, and codes that
//! connecting ones show (`connecting.rs`).
use crate::far;
use crate::policy;
use crate::stream::Stream;
use crate::sys::memory;
use crate::table::{self, Entry, Family};
use ayre::guest::fork::Shared;
use ayre::socket::policy::Act;
use ayre::socket::{
    Addresses, Connection, Door, Ends, Pair, Process, Reason, keep_reason, owner_of, process_of,
};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::net::{
    AddressFamily, Shutdown, SocketType, connect_unspec, getpeername, getsockname, ipproto,
    shutdown, sockopt,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod connecting;
mod name;
mod place;
mod syn;

use self::connecting::unconnected;
pub(crate) use self::connecting::{
    added, await_connect, before_connect, lock, pairs, refused, unlock,
};
pub(crate) use self::name::is_shown;
pub(crate) use self::place::Place;

/// Pairs of processes that have gone are looked for where there are more than twice as many pairs
/// as were of use, and these.
const UNUSED_MOST: usize = 4;

/// A listening socket of streams. Others with this library find it, if it has a door.
#[derive(Debug)]
pub(crate) struct Listener {
    /// None where another socket has them.
    doors: Vec<Door>,
    /// The place of all that it accepts; None: one of several.
    place: Option<Place>,
    /// The program has set options that the connections inherit.
    has_options: AtomicBool,
    /// The connections may inherit limits of time.
    has_times: AtomicBool,
    /// The pairs of those that have knocked.
    pairs: Shared<Vec<Arc<Pair>>>,
    /// How many of them were of use when that was last looked at.
    used: AtomicUsize,
    /// Somebody has knocked whose user is not welcome.
    has_turned_away: AtomicBool,
}

/// The family of a socket, if it is one of streams that may go by rings.
fn family(socket: BorrowedFd<'_>) -> Option<Family> {
    let asked = || {
        let is_stream = sockopt::socket_type(socket) == Ok(SocketType::STREAM);
        let is_tcp = || sockopt::socket_protocol(socket) == Ok(Some(ipproto::TCP));
        let is_unix = || sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX);
        match is_stream {
            true if is_tcp() => Some(Family::Tcp),
            true if is_unix() => Some(Family::Unix),
            _ => None,
        }
    };
    table::new_family(socket.as_raw_fd()).or_else(asked)
}

/// Before a socket listens: has the kernel keep the SYNs. Whether others may find it.
pub(crate) fn before_listen(socket: BorrowedFd<'_>) -> bool {
    policy::is_on()
        && match family(socket) {
            Some(Family::Tcp) => syn::keep(socket),
            Some(Family::Unix) => true,
            None => false,
        }
}

/// Opens the door of a socket that listens now.
pub(crate) fn after_listen(fd: i32, socket: BorrowedFd<'_>) {
    if let Some(stream) = unconnected(fd) {
        stream.hand_over_all(fd, Reason::None);
    }
    if table::entry(fd).is_some() {
        return;
    }
    let Some(place) = Place::of(socket) else { return };
    if !place.is_any() && !policy::allows_some(Act::Accept, place.judged()) {
        return;
    }
    // Where another socket has a door, those who knock there do not find this one.
    let doors: Vec<Door> = place::own_doors(&place).iter().flat_map(Door::open).collect();
    let pairs = Shared::new(Vec::new());
    let (used, has_turned_away) = (AtomicUsize::new(UNUSED_MOST), AtomicBool::new(false));
    let has_buffers = memory::set_buffers(fd).iter().any(Option::is_some);
    let has_options = has_buffers || sockopt::socket_passcred(socket) == Ok(true);
    let has_options = has_options.into();
    let has_limit = |of| sockopt::socket_timeout(socket, of) != Ok(None);
    let has_times = [sockopt::Timeout::Recv, sockopt::Timeout::Send].into_iter().any(has_limit);
    let has_times = has_times.into();
    let place = Some(place).filter(|place| !place.is_any());
    let listener = Listener { doors, place, has_options, has_times, pairs, used, has_turned_away };
    table::set(fd, Some(Arc::new(Entry::Listener(Arc::new(listener)))));
}

/// The offer of a connection, as the accepted socket tells of it.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) at: Place,
    ends: Ends,
    code: u16,
    /// The process that has connected, where the kernel tells that.
    maker: Option<Process>,
}

impl Offer {
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.ends, Ends::Unix(_))
    }

    /// The offer of a connection that was accepted at this place, or at one of several, if it shows
    /// a code. The peer of a Unix socket does so by its name.
    fn shown(at: Option<&Place>, socket: BorrowedFd<'_>, peer: Option<&Place>) -> Option<Self> {
        if let Some(at @ Place::Unix(_)) = at {
            let Some(Place::Unix(name)) = peer else { return None };
            let (code, number) = name::shown(name.strip_prefix('@')?.as_bytes())?;
            let (at, ends) = (at.clone(), Ends::Unix(number));
            return Some(Self { at, ends, code, maker: process_of(socket) });
        }
        let code = syn::code(socket)?;
        let maker = match peer {
            Some(Place::Tcp(at)) => *at,
            _ => place::address(getpeername(socket).ok()??)?,
        };
        let taker = match at {
            Some(Place::Tcp(at)) => *at,
            _ => place::address(getsockname(socket).ok()?)?,
        };
        let ends = Ends::Tcp(Addresses { maker, taker });
        Some(Self { at: Place::Tcp(taker), ends, code, maker: None })
    }
}

impl Listener {
    /// A connection that was accepted: a stream, if it shows a code.
    fn accepted(
        self: &Arc<Self>,
        socket: BorrowedFd<'_>,
        peer: Option<&Place>,
    ) -> Result<Arc<Stream>, Reason> {
        if self.doors.is_empty() && !far::is_wanted() {
            return Err(Reason::NoDoor);
        }
        let offer = Offer::shown(self.place.as_ref(), socket, peer).ok_or(Reason::NoPeer)?;
        let (ends, code) = (offer.ends, offer.code);
        let stream = Stream::accepted(self, offer, socket).ok_or(Reason::NoRoom)?;
        if self.has_options.load(Ordering::Relaxed) {
            stream.keep_to_options(socket);
        }
        let stream = Arc::new(stream);
        if let Ends::Tcp(Addresses { maker, .. }) = ends
            && !stream.connection().has_offer()
        {
            far::invite(&ends, (maker, code), &stream);
        }
        Ok(stream)
    }

    /// The program has set options that the connections inherit.
    pub(crate) fn has_set_options(&self) {
        self.has_options.store(true, Ordering::Relaxed);
    }

    /// Whether the connections may inherit limits of time.
    pub(crate) fn has_times(&self) -> bool {
        self.has_times.load(Ordering::Relaxed)
    }

    /// The program has set a limit of time, or others may do so, unseen.
    pub(crate) fn may_have_times(&self) {
        self.has_times.store(true, Ordering::Relaxed);
    }

    /// The pairs of those that have knocked.
    pub(crate) fn pairs(&self) -> Vec<Arc<Pair>> {
        self.pairs.lock().clone()
    }

    /// Locks what the listener has, before a fork.
    pub(crate) fn lock(&'static self) {
        self.may_have_times();
        self.pairs.before_fork();
    }

    /// Unlocks it again, after the fork.
    pub(crate) fn unlock(&'static self) {
        self.pairs.after_fork(|_| {});
    }

    /// Takes the offer of a connection, if its maker has made it by now, and is welcome.
    // spec: SOCK-7
    pub(crate) fn find(&self, offer: &Offer, connection: &Connection) -> Result<(), Reason> {
        let code = offer.code;
        let mut pairs = self.pairs.lock();
        if pairs.len() > 2 * self.used.load(Ordering::Relaxed) {
            pairs.retain(|pair| Arc::strong_count(pair) > 1 || !pair.is_hung_up());
            self.used.store(pairs.len() + UNUSED_MOST, Ordering::Relaxed);
        }
        let is_known = |pairs: &[Arc<Pair>]| pairs.iter().any(|pair| pair.code() == code);
        if !is_known(&pairs) {
            // Its maker has knocked at a socket that listened at this place before.
            pairs.extend(Pair::with_code(code));
        }
        if !is_known(&pairs) {
            let callers = self.doors.iter().map(|door| door.callers(|user| self.welcomes(user)));
            pairs.extend(callers.flatten());
        }
        let may_be = |pair: &&Arc<Pair>| pair.code() == code || pair.code() == 0;
        let find = |pair: &Arc<Pair>| pair.find(&offer.ends);
        let mut found = pairs.iter().filter(may_be).filter_map(|pair| Some((pair, find(pair)?)));
        let (pair, slot) = found.next().ok_or_else(|| self.why_not_found())?;
        check_maker(pair, offer)?;
        // Two offers of one connection: one of them is a lie.
        if found.next().is_some() || !connection.take(pair, slot) {
            return Err(Reason::NoOffer);
        }
        pair.set_code(code);
        Ok(())
    }

    /// Whether processes of a user may offer connections.
    // spec: SOCK-8
    fn welcomes(&self, user: u32) -> bool {
        let is_welcome = policy::is_trusted(user) || policy::is_named(user);
        if !is_welcome {
            self.has_turned_away.store(true, Ordering::Relaxed);
        }
        is_welcome
    }

    fn why_not_found(&self) -> Reason {
        match self.has_turned_away.load(Ordering::Relaxed) {
            true => Reason::OtherUser,
            false => Reason::NoOffer,
        }
    }
}

/// A connection that was accepted by a socket, which is known to listen or not. `peer` is the other
/// end's address, where the kernel has told that. Without a policy, one that stays with the kernel
/// costs at most the look at its SYN.
pub(crate) fn accepted(fd: i32, by: Option<&Arc<Listener>>, peer: Option<&Place>) {
    let socket = memory::borrowed(fd);
    if !policy::is_wanted() || (by.is_none() && family(socket).is_none()) {
        return;
    }
    let judged = if policy::is_empty() { None } else { Place::of(socket) };
    let is_allowed = judged.as_ref().is_none_or(|at| policy::allows_some(Act::Accept, at.judged()));
    let stream = match by {
        _ if !policy::is_on() => Err(Reason::IoUring),
        _ if !is_allowed => Err(Reason::Policy),
        None => Err(Reason::NoDoor),
        Some(listener) => listener.accepted(socket, peer),
    };
    let is_refused = |reason| {
        judged.as_ref().is_some_and(|at| policy::refuses(Act::Accept, at.judged(), None, reason))
    };
    match stream {
        Ok(stream) => drop(table::set(fd, Some(Arc::new(Entry::Stream(stream))))),
        Err(reason) if is_refused(reason) => reset(socket),
        Err(reason) => keep_reason(socket, reason),
    }
}

/// Ends a connection at once, with a reset where it is TCP's, and leaves its descriptor open.
// spec: SOCK-31
pub(crate) fn reset(socket: BorrowedFd<'_>) {
    if connect_unspec(socket).is_err() {
        let _ = shutdown(socket, Shutdown::Both);
    }
}

/// Whether the peer of a pair may have offered a connection: its user is welcome, and has the
/// socket that has connected. Of a Unix socket, the kernel tells the process itself.
// spec: SOCK-8, SOCK-34, SOCK-52
fn check_maker(pair: &Pair, offer: &Offer) -> Result<(), Reason> {
    let user = pair.user().ok_or(Reason::OtherUser)?;
    let is_trusted = policy::check(Act::Accept, offer.at.judged(), user)?;
    let is_owner = match offer.ends {
        Ends::Tcp(Addresses { maker, taker }) => is_trusted || owner_of(maker, taker) == Some(user),
        Ends::Unix(_) => offer.maker.is_some() && pair.peer() == offer.maker,
        Ends::Far(_) => false,
    };
    if is_owner { Ok(()) } else { Err(Reason::NotOwner) }
}
