//! How two programs with this library find each other: doors of listening sockets, and codes that
//! connecting ones show.
use crate::policy;
use crate::stream::Stream;
use crate::sys::memory;
use crate::table::{self, Entry, Family};
use ayre::guest::fork::Shared;
use ayre::socket::policy::Act;
use ayre::socket::{
    Addresses, Connection, Door, Ends, Pair, Process, Reason, keep_reason, owner_of,
    owner_of_listener, process_of,
};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketType, connect_unspec, getpeername, getsockname, ipproto,
    shutdown, sockopt,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod name;
mod place;
mod syn;

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
    let place = Some(place).filter(|place| !place.is_any());
    let listener = Listener { doors, place, has_options, pairs, used, has_turned_away };
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
    fn shown(at: Option<&Place>, socket: BorrowedFd<'_>, name: &[u8]) -> Option<Self> {
        if let Some(at @ Place::Unix(_)) = at {
            let (code, number) = name::shown(name)?;
            let (at, ends) = (at.clone(), Ends::Unix(number));
            return Some(Self { at, ends, code, maker: process_of(socket) });
        }
        let code = syn::code(socket)?;
        let maker = place::address(getpeername(socket).ok()??)?;
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
    fn accepted(self: &Arc<Self>, socket: BorrowedFd<'_>, name: &[u8]) -> Result<Stream, Reason> {
        if self.doors.is_empty() {
            return Err(Reason::NoDoor);
        }
        let offer = Offer::shown(self.place.as_ref(), socket, name).ok_or(Reason::NoPeer)?;
        let stream = Stream::accepted(self, offer, socket).ok_or(Reason::NoRoom)?;
        if self.has_options.load(Ordering::Relaxed) {
            stream.keep_to_options(socket);
        }
        Ok(stream)
    }

    /// Whether it is a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.place, Some(Place::Unix(_)))
    }

    /// The program has set options that the connections inherit.
    pub(crate) fn has_set_options(&self) {
        self.has_options.store(true, Ordering::Relaxed);
    }

    /// The pairs of those that have knocked.
    pub(crate) fn pairs(&self) -> Vec<Arc<Pair>> {
        self.pairs.lock().clone()
    }

    /// Locks what the listener has, before a fork.
    pub(crate) fn lock(&'static self) {
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

/// A connection that was accepted by a socket, which is known to listen or not. `name` is that of
/// the peer of a Unix socket. Without a policy, one that stays with the kernel costs at most the
/// look at its SYN.
pub(crate) fn accepted(fd: i32, by: Option<&Arc<Listener>>, name: &[u8]) {
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
        Some(listener) => listener.accepted(socket, name),
    };
    let is_refused = |reason| {
        judged.as_ref().is_some_and(|at| policy::refuses(Act::Accept, at.judged(), None, reason))
    };
    match stream {
        Ok(stream) => drop(table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(stream)))))),
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
    };
    if is_owner { Ok(()) } else { Err(Reason::NotOwner) }
}

/// Whether connections to a place may go by rings with a process of this user, which has the
/// door: its user is welcome, and has the socket that listens. The name of a door is free for all.
/// Of a Unix socket, only one that has connected tells which process listens.
// spec: SOCK-8, SOCK-34
fn check_taker(user: u32, at: &Place) -> Result<(), Reason> {
    let is_trusted = policy::check(Act::Connect, at.judged(), user)?;
    let is_owner = match at {
        Place::Tcp(at) => is_trusted || owner_of_listener(*at) == Some(user),
        Place::Unix(_) => true,
    };
    if is_owner { Ok(()) } else { Err(Reason::NotOwner) }
}

/// Why a connection goes by the kernel, and the user who has the door, if there is one.
type Missed = (Reason, Option<u32>);

/// The outcome of a look at a place.
#[derive(Debug)]
enum Found {
    Pair(Arc<Pair>),
    /// At this time there was no process with the library, or none that is welcome.
    Nobody(Missed, Instant),
}

/// For how long a look that has found nobody counts. So a process that connects all the time does
/// not pay for a look each time.
const NOBODY_FOR: Duration = Duration::from_millis(5);

/// Places of no use are looked for where there are more than twice as many as were of use, and
/// these.
const PLACES_MOST: usize = 16;

/// Where this process has looked.
#[derive(Debug)]
struct Places {
    found: BTreeMap<Place, Found>,
    /// How many were of use when that was last looked at.
    used: usize,
}

static PLACES: Shared<Places> = Shared::new(Places { found: BTreeMap::new(), used: 0 });

impl Found {
    fn is_of_use(&self) -> bool {
        match self {
            Self::Pair(pair) => !pair.is_hung_up(),
            Self::Nobody(_, at) => at.elapsed() < NOBODY_FOR,
        }
    }
}

impl Places {
    fn keep(&mut self, place: &Place, found: Found) {
        if self.found.len() > 2 * self.used + PLACES_MOST {
            self.found.retain(|_, found| found.is_of_use());
            self.used = self.found.len();
        }
        self.found.insert(place.clone(), found);
    }
}

/// Before a fork.
pub(crate) fn lock() {
    PLACES.before_fork();
}

/// After a fork. A child makes pairs of its own.
pub(crate) fn unlock(is_child: bool) {
    PLACES.after_fork(|places| {
        if is_child {
            places.found.clear();
            name::forget();
        }
    });
}

/// All pairs of this process to listening ones.
pub(crate) fn pairs() -> Vec<Arc<Pair>> {
    let pair = |found: &Found| match found {
        Found::Pair(pair) => Some(pair.clone()),
        Found::Nobody(..) => None,
    };
    PLACES.lock().found.values().filter_map(pair).collect()
}

/// Why there is no pair for this place, if a look has found nobody just now.
fn nobody_at(place: &Place) -> Option<Missed> {
    match PLACES.lock().found.get(place) {
        Some(Found::Nobody(missed, at)) if at.elapsed() < NOBODY_FOR => Some(*missed),
        _ => None,
    }
}

/// A connection to a place was refused. The next one looks for a listener at once.
pub(crate) fn refused(place: &Place) {
    let found = &mut PLACES.lock().found;
    if matches!(found.get(place), Some(Found::Nobody(..))) {
        found.remove(place);
    }
}

/// Another process than that of a pair listens at this place now.
fn forget(place: &Place, pair: &Arc<Pair>) {
    let found = &mut PLACES.lock().found;
    if matches!(found.get(place), Some(Found::Pair(found)) if Arc::ptr_eq(found, pair)) {
        found.remove(place);
    }
}

/// The pair for connections to this place.
fn pair_to(place: &Place) -> Result<Arc<Pair>, Missed> {
    if let Some(missed) = nobody_at(place) {
        return Err(missed);
    }
    let mut places = PLACES.lock();
    let check = |user| check_taker(user, place).map_err(|reason| (reason, Some(user)));
    if let Some(Found::Pair(pair)) = places.found.get(place)
        && let Some(user) = pair.user().filter(|_| !pair.is_over() && !pair.is_hung_up())
    {
        return check(user).map(|()| pair.clone());
    }
    let code = syn::new_code();
    let mut missed = (Reason::NoPeer, None);
    for door in place::doors_of(place) {
        let is_welcome = |user| {
            // Behind the door of one that is welcome, only memory or descriptors can be missing.
            let found = check(user);
            missed = found.err().unwrap_or((Reason::NoRoom, Some(user)));
            found.is_ok()
        };
        if let Ok(pair) = Pair::knock(&door, code, is_welcome) {
            places.keep(place, Found::Pair(pair.clone()));
            return Ok(pair);
        }
    }
    places.keep(place, Found::Nobody(missed, Instant::now()));
    Err(missed)
}

/// The code that a connecting socket shows.
pub(crate) struct Connecting {
    pair: Arc<Pair>,
    stream: Stream,
    to: Place,
    shown: Shown,
    /// The socket was as the program has made it.
    was_new: bool,
}

/// How it does that.
enum Shown {
    /// By its SYN, to this address. The packets behind it have the headers from before.
    Syn { to: SocketAddr, before: syn::Headers },
    /// By its name. The connection is offered already.
    Name,
}

/// Before a socket connects: the code that it shows, where somebody with this library listens.
///
/// # Errors
/// `ECONNREFUSED` where the connection must go by a ring, and cannot.
// spec: SOCK-5, SOCK-31
pub(crate) fn before_connect(
    fd: i32,
    socket: BorrowedFd<'_>,
    to: &Place,
) -> Result<Option<Connecting>, Errno> {
    if !policy::is_wanted() || table::entry(fd).is_some() {
        return Ok(None);
    }
    if let Some((reason, _)) = nobody_at(to).filter(|_| policy::is_empty()) {
        keep_reason(socket, reason);
        return Ok(None);
    }
    if family(socket) != Some(to.family()) {
        return Ok(None);
    }
    match show(socket, to) {
        Ok(connecting) => Ok(Some(connecting)),
        Err((reason, user)) if policy::refuses(Act::Connect, to.judged(), user, reason) => {
            Err(Errno::CONNREFUSED)
        }
        Err((reason, _)) => {
            keep_reason(socket, reason);
            Ok(None)
        }
    }
}

fn show(socket: BorrowedFd<'_>, to: &Place) -> Result<Connecting, Missed> {
    if !policy::is_on() {
        return Err((Reason::IoUring, None));
    }
    if !policy::allows_some(Act::Connect, to.judged()) {
        return Err((Reason::Policy, None));
    }
    let pair = pair_to(to)?;
    let missed = |reason| (reason, pair.user());
    // All that the offer needs is there before the other end may look for it.
    let stream = Stream::connecting(to.family()).ok_or_else(|| missed(Reason::NoRoom))?;
    let was_new = table::new_family(socket.as_raw_fd()).is_some();
    let shown = match to {
        Place::Tcp(at) => {
            let before = syn::show(socket, *at, pair.code(), was_new);
            Shown::Syn { to: *at, before: before.ok_or_else(|| missed(Reason::Option))? }
        }
        Place::Unix(_) => {
            let number = name::show(socket, pair.code()).ok_or_else(|| missed(Reason::Option))?;
            if !stream.offer(&pair, &Ends::Unix(number), socket) {
                return Err(missed(Reason::NoRoom));
            }
            Shown::Name
        }
    };
    Ok(Connecting { pair, stream, to: to.clone(), shown, was_new })
}

impl Connecting {
    /// Whether a call that does not wait, or that a signal ends, has begun the connection.
    pub(crate) fn goes_on_by_itself(&self) -> bool {
        matches!(self.shown, Shown::Syn { .. })
    }

    /// The connection was begun, or not. A SYN shows nothing any more, and its connection is
    /// offered.
    ///
    /// # Errors
    /// As [`before_connect`].
    pub(crate) fn after(
        self,
        fd: i32,
        socket: BorrowedFd<'_>,
        was_sent: bool,
    ) -> Result<(), Errno> {
        let offered = match &self.shown {
            Shown::Syn { to, before } => self.offer((socket, *to), before, was_sent),
            Shown::Name => self.keep_offer(socket, was_sent),
        };
        if offered == Ok(true) {
            if !self.was_new {
                self.stream.keep_to_options(socket);
            }
            table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(self.stream)))));
            return Ok(());
        }
        self.stream.withdraw(socket);
        let Err(reason) = offered else { return Ok(()) };
        if policy::refuses(Act::Connect, self.to.judged(), self.pair.user(), reason) {
            reset(socket);
            return Err(Errno::CONNREFUSED);
        }
        keep_reason(socket, reason);
        Ok(())
    }

    /// Offers the connection whose SYN was sent, and has the packets behind it show nothing. False
    /// where there is none.
    fn offer(
        &self,
        (socket, taker): (BorrowedFd<'_>, SocketAddr),
        before: &syn::Headers,
        was_sent: bool,
    ) -> Result<bool, Reason> {
        let maker = if was_sent { getsockname(socket).ok().and_then(place::address) } else { None };
        let ends = maker.map(|maker| Ends::Tcp(Addresses { maker, taker }));
        let is_offered = ends.map(|ends| self.stream.offer(&self.pair, &ends, socket));
        before.restore(socket);
        match is_offered {
            Some(false) => Err(Reason::NoRoom),
            is_offered => Ok(is_offered.is_some()),
        }
    }

    /// Whether the offer of a Unix socket stays, as it has connected to the process of the pair.
    // spec: SOCK-52
    fn keep_offer(&self, socket: BorrowedFd<'_>, is_connected: bool) -> Result<bool, Reason> {
        if !is_connected || name::is_of(socket, self.pair.peer()) {
            return Ok(is_connected);
        }
        forget(&self.to, &self.pair);
        Err(Reason::NotOwner)
    }
}
