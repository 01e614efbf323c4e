//! How two programs with this library find each other: doors of listening sockets, and codes that
//! connecting ones show.
use crate::far;
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

/// The outcome of a look at a place, at this time.
#[derive(Debug)]
enum Found {
    /// The peer lived.
    Pair(Arc<Pair>, Instant),
    /// There was no process with the library, or none that is welcome.
    Nobody(Missed, Instant),
}

/// For how long a look counts. So a process that connects all the time does not pay for a look each
/// time.
const LOOK_COUNTS_FOR: Duration = Duration::from_millis(5);

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

/// Whether a look at this time counts still.
fn counts(at: Instant) -> bool {
    at.elapsed() < LOOK_COUNTS_FOR
}

impl Found {
    fn is_of_use(&self) -> bool {
        match self {
            Self::Pair(pair, _) => !pair.is_hung_up(),
            Self::Nobody(_, at) => counts(*at),
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
        Found::Pair(pair, _) => Some(pair.clone()),
        Found::Nobody(..) => None,
    };
    PLACES.lock().found.values().filter_map(pair).collect()
}

/// Why there is no pair for this place, if a look has found nobody just now.
fn nobody_at(place: &Place) -> Option<Missed> {
    match PLACES.lock().found.get(place) {
        Some(Found::Nobody(missed, at)) if counts(*at) => Some(*missed),
        _ => None,
    }
}

/// A connection to a place was refused. The next one looks for a listener at once.
pub(crate) fn refused(place: &Place) {
    let found = &mut PLACES.lock().found;
    let is_over = match found.get(place) {
        Some(Found::Pair(pair, _)) => pair.is_hung_up(),
        Some(Found::Nobody(..)) => true,
        None => false,
    };
    if is_over {
        found.remove(place);
    }
}

/// Another process than that of a pair listens at this place now.
fn forget(place: &Place, pair: &Arc<Pair>) {
    let found = &mut PLACES.lock().found;
    if matches!(found.get(place), Some(Found::Pair(found, _)) if Arc::ptr_eq(found, pair)) {
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
    if let Some(Found::Pair(pair, looked)) = places.found.get_mut(place)
        && let Some(user) = pair.user().filter(|_| !pair.is_over())
        && (counts(*looked) || !pair.is_hung_up())
    {
        if !counts(*looked) {
            *looked = Instant::now();
        }
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
            places.keep(place, Found::Pair(pair.clone(), Instant::now()));
            return Ok(pair);
        }
    }
    places.keep(place, Found::Nobody(missed, Instant::now()));
    Err(missed)
}

/// The code that a connecting socket shows.
pub(crate) struct Connecting {
    /// None: the process at the place may be one of another host.
    pair: Option<Arc<Pair>>,
    stream: Arc<Stream>,
    to: Place,
    shown: Shown,
}

/// How it does that.
enum Shown {
    /// By its SYN, to this address. The packets behind it have the headers from before.
    Syn { to: SocketAddr, before: syn::Headers },
    /// By its name, which has this number. The connection is offered already.
    Name(u64),
}

/// The stream of a socket that has not connected yet, if it is one already.
fn unconnected(fd: i32) -> Option<Arc<Stream>> {
    table::stream(fd).filter(|stream| stream.is_unconnected())
}

/// A socket as the program has made it is about to be in an epoll, or to have another descriptor.
/// As those are to know when it connects by rings, it is a stream from now on.
// spec: SOCK-74
pub(crate) fn await_connect(fd: i32) -> Option<Arc<Stream>> {
    let family = table::new_family(fd).filter(|_| policy::is_on())?;
    let stream = Stream::unconnected(family, true)?;
    table::set(fd, Some(Arc::new(Entry::Stream(stream.clone()))));
    Some(stream)
}

/// The stream of a descriptor that the program adds to an epoll. All others stay with the kernel.
// spec: SOCK-74
pub(crate) fn added(fd: i32) -> Option<Arc<Stream>> {
    let stream = table::stream(fd).or_else(|| await_connect(fd));
    if stream.is_none() {
        table::leave(fd);
    }
    stream
}

/// A socket that is about to connect does so by the kernel.
fn stay(fd: i32, reason: Reason) {
    match unconnected(fd) {
        Some(stream) => stream.hand_over_all(fd, reason),
        None => keep_reason(memory::borrowed(fd), reason),
    }
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
    let known = unconnected(fd);
    let is_other = known.is_none() && table::entry(fd).is_some();
    if !policy::is_wanted() || is_other {
        return Ok(None);
    }
    let may_be_near = policy::is_empty() && !to.may_be_far();
    if let Some((reason, _)) = nobody_at(to).filter(|_| may_be_near) {
        stay(fd, reason);
        return Ok(None);
    }
    let family = known.as_ref().map(|stream| stream.family()).or_else(|| family(socket));
    if family != Some(to.family()) {
        return Ok(None);
    }
    match show(socket, to, known) {
        Ok(connecting) => Ok(Some(connecting)),
        Err((reason, user)) if policy::refuses(Act::Connect, to.judged(), user, reason) => {
            Err(Errno::CONNREFUSED)
        }
        Err((reason, _)) => {
            stay(fd, reason);
            Ok(None)
        }
    }
}

fn show(
    socket: BorrowedFd<'_>,
    to: &Place,
    known: Option<Arc<Stream>>,
) -> Result<Connecting, Missed> {
    if !policy::is_on() {
        return Err((Reason::IoUring, None));
    }
    if !policy::allows_some(Act::Connect, to.judged()) {
        return Err((Reason::Policy, None));
    }
    let refused = match &known {
        Some(stream) => stream.connection().is_refused(),
        None => table::is_left(socket.as_raw_fd()).then_some(Reason::Option),
    };
    if let Some(reason) = refused {
        return Err((reason, None));
    }
    let pair = match pair_to(to) {
        // Whether the other host will meet this process shows later: a policy's `must` is refused.
        Err((reason @ Reason::NoPeer, user))
            if to.may_be_far() && !policy::refuses(Act::Connect, to.judged(), user, reason) =>
        {
            None
        }
        found => Some(found?),
    };
    let missed = |reason| (reason, pair.as_ref().and_then(|pair| pair.user()));
    let code = pair.as_ref().map(|pair| pair.code()).or_else(far::code);
    let code = code.ok_or_else(|| missed(Reason::NoPeer))?;
    // All that the offer needs is there before the other end may look for it.
    let is_new = table::new_family(socket.as_raw_fd()).is_some();
    let stream = known.or_else(|| Stream::unconnected(to.family(), is_new));
    let stream = stream.ok_or_else(|| missed(Reason::NoRoom))?;
    let shown = match to {
        Place::Tcp(at) => {
            let before = syn::show(socket, *at, code, stream.is_new());
            Shown::Syn { to: *at, before: before.ok_or_else(|| missed(Reason::Option))? }
        }
        Place::Unix(_) => {
            let number = name::show(socket, code).ok_or_else(|| missed(Reason::Option))?;
            let ends = Ends::Unix(number);
            if !pair.as_ref().is_some_and(|pair| stream.offer(pair, &ends, socket)) {
                return Err(missed(Reason::NoRoom));
            }
            Shown::Name(number)
        }
    };
    Ok(Connecting { pair, stream, to: to.clone(), shown })
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
            Shown::Name(number) => self.keep_offer(socket, *number, was_sent),
        };
        if let Ok(Some(ends)) = &offered {
            let stream = self.stream;
            if !stream.is_new() {
                stream.keep_to_options(socket);
            }
            stream.be_connected();
            if !table::is(fd, &stream) {
                table::set(fd, Some(Arc::new(Entry::Stream(stream.clone()))));
            }
            if self.pair.is_none() {
                stream.await_invitation(ends, socket);
            }
            return Ok(());
        }
        let reason = offered.err();
        self.withdraw(fd, socket, reason);
        let Some(reason) = reason else { return Ok(()) };
        let user = self.pair.as_ref().and_then(|pair| pair.user());
        if policy::refuses(Act::Connect, self.to.judged(), user, reason) {
            reset(socket);
            return Err(Errno::CONNREFUSED);
        }
        Ok(())
    }

    /// Takes the offer back. A socket that has made none may connect later.
    fn withdraw(&self, fd: i32, socket: BorrowedFd<'_>, reason: Option<Reason>) {
        if reason.is_some() || self.stream.connection().has_offer() {
            self.stream.connection().close(socket);
            stay(fd, reason.unwrap_or_default());
        }
    }

    /// Offers the connection whose SYN was sent, if its peer is of this host, and has the packets
    /// behind it show nothing. The ends of the connection; none where there is none.
    fn offer(
        &self,
        (socket, taker): (BorrowedFd<'_>, SocketAddr),
        before: &syn::Headers,
        was_sent: bool,
    ) -> Result<Option<Ends>, Reason> {
        let maker = if was_sent { getsockname(socket).ok().and_then(place::address) } else { None };
        let ends = maker.map(|maker| Ends::Tcp(Addresses { maker, taker }));
        let is_offered = match (&self.pair, &ends) {
            (Some(pair), Some(ends)) => self.stream.offer(pair, ends, socket),
            _ => true,
        };
        before.restore(socket);
        if is_offered { Ok(ends) } else { Err(Reason::NoRoom) }
    }

    /// Whether the offer of a Unix socket stays, as it has connected to the process of the pair.
    // spec: SOCK-52
    fn keep_offer(
        &self,
        socket: BorrowedFd<'_>,
        number: u64,
        is_connected: bool,
    ) -> Result<Option<Ends>, Reason> {
        let Some(pair) = self.pair.as_ref().filter(|_| is_connected) else { return Ok(None) };
        if name::is_of(socket, pair.peer()) {
            return Ok(Some(Ends::Unix(number)));
        }
        forget(&self.to, pair);
        Err(Reason::NotOwner)
    }
}
