//! Sockets that connect: where this process has looked for others with the library, and the codes
//! that these sockets show.
use super::place::{self, Place};
use super::{family, name, reset, syn};
use crate::far;
use crate::policy;
use crate::stream::Stream;
use crate::sys::memory;
use crate::table::{self, Entry};
use ayre::guest::fork::Shared;
use ayre::socket::policy::Act;
use ayre::socket::{Addresses, Ends, Pair, Reason, keep_reason, owner_of_listener};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::getsockname;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
pub(super) fn unconnected(fd: i32) -> Option<Arc<Stream>> {
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
