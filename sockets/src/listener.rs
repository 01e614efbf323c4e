//! How two programs with this library find each other: doors of listening sockets, codes in SYNs.
use crate::policy;
use crate::stream::Stream;
use crate::sys::memory;
use crate::table::{self, Entry};
use ayre::guest::fork::Shared;
use ayre::socket::policy::Act;
use ayre::socket::{
    Addresses, Connection, Door, Pair, Reason, keep_reason, owner_of, owner_of_listener,
};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{
    SocketAddrAny, SocketAddrUnix, SocketType, connect_unspec, getpeername, getsockname, ipproto,
    sockopt,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod syn;

/// Pairs of processes that have gone are looked for where there are more than twice as many pairs
/// as were of use, and these.
const UNUSED_MOST: usize = 4;

/// A listening socket of TCP. Others with this library find it, if it has a door.
#[derive(Debug)]
pub(crate) struct Listener {
    /// None where another socket has them.
    doors: Vec<Door>,
    /// The address of all that it accepts; None: one of several.
    address: Option<SocketAddr>,
    /// The program has set a size of its buffers, which the connections inherit.
    has_buffers: AtomicBool,
    /// The pairs of those that have knocked.
    pairs: Shared<Vec<Arc<Pair>>>,
    /// How many of them were of use when that was last looked at.
    used: AtomicUsize,
    /// Somebody has knocked whose user is not welcome.
    has_turned_away: AtomicBool,
}

fn address(of: Result<SocketAddrAny, Errno>) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(of.ok()?).ok()?;
    // An IPv4 address looks the same at a socket of either family.
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// Whether a socket is one of TCP.
fn is_tcp(socket: BorrowedFd<'_>) -> bool {
    if table::is_new(socket.as_raw_fd()) {
        return true;
    }
    let is_stream = sockopt::socket_type(socket) == Ok(SocketType::STREAM);
    is_stream && sockopt::socket_protocol(socket) == Ok(Some(ipproto::TCP))
}

/// The name of a door, in the space of names of this network namespace.
fn door_name(address: SocketAddr, is_any: bool) -> Option<SocketAddrUnix> {
    let name = match (is_any, address.ip()) {
        (false, ip) => format!("ayre-sockets/{}/{ip}", address.port()),
        (true, IpAddr::V4(_)) => format!("ayre-sockets/{}/any4", address.port()),
        (true, IpAddr::V6(_)) => format!("ayre-sockets/{}/any6", address.port()),
    };
    SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()
}

/// The door for processes of other network namespaces: a file in the folder where all meet.
fn door_file(address: SocketAddr) -> Option<SocketAddrUnix> {
    let folder = policy::meeting_folder().filter(|_| !address.ip().is_loopback())?;
    let name = format!("{}-{}", address.ip(), address.port());
    SocketAddrUnix::new(folder.join(name)).ok()
}

/// The addresses at which others reach a socket that listens at this one.
fn reached_at(address: SocketAddr) -> Vec<SocketAddr> {
    if !address.ip().is_unspecified() {
        return vec![address];
    }
    let of = |interface: nix::ifaddrs::InterfaceAddress| {
        let at = interface.address?;
        let four = at.as_sockaddr_in().map(|at| IpAddr::V4(at.ip()));
        four.or_else(|| at.as_sockaddr_in6().map(|at| IpAddr::V6(at.ip())))
    };
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(of);
    // A socket of IPv6 is reached by IPv4 as well, unless its program forbids that.
    let is_family = |ip: &IpAddr| address.is_ipv6() || ip.is_ipv4();
    all.filter(is_family).map(|ip| SocketAddr::new(ip, address.port())).collect()
}

/// The doors that a listener of this address opens.
fn own_doors(address: SocketAddr) -> Vec<SocketAddrUnix> {
    let named = door_name(address, address.ip().is_unspecified());
    let files = match policy::meeting_folder() {
        Some(_) => reached_at(address).into_iter().filter_map(door_file).collect(),
        None => Vec::new(),
    };
    named.into_iter().chain(files).collect()
}

/// The doors behind which a listener of this address may be.
fn doors_of(address: SocketAddr) -> Vec<SocketAddrUnix> {
    let six = SocketAddr::new(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), address.port());
    let exact = door_name(address, false);
    let any = door_name(address, true);
    let any_six = if address.is_ipv4() { door_name(six, true) } else { None };
    exact.into_iter().chain(any).chain(any_six).chain(door_file(address)).collect()
}

/// Before a socket listens: has the kernel keep the SYNs.
pub(crate) fn before_listen(socket: BorrowedFd<'_>) -> bool {
    policy::is_on() && is_tcp(socket) && syn::keep(socket)
}

/// Opens the door of a socket that listens now.
pub(crate) fn after_listen(fd: i32, socket: BorrowedFd<'_>) {
    if table::entry(fd).is_some() {
        return;
    }
    let Some(address) = address(getsockname(socket)) else { return };
    if !address.ip().is_unspecified() && !policy::allows_some(Act::Accept, address) {
        return;
    }
    // Where another socket has a door, those who knock there do not find this one.
    let doors: Vec<Door> = own_doors(address).iter().flat_map(Door::open).collect();
    let pairs = Shared::new(Vec::new());
    let (used, has_turned_away) = (AtomicUsize::new(UNUSED_MOST), AtomicBool::new(false));
    let own = Some(address).filter(|address| !address.ip().is_unspecified());
    let has_buffers = memory::set_buffers(fd).iter().any(Option::is_some).into();
    let listener = Listener { doors, address: own, has_buffers, pairs, used, has_turned_away };
    table::set(fd, Some(Arc::new(Entry::Listener(Arc::new(listener)))));
}

impl Listener {
    /// A connection that was accepted: a stream, if its SYN shows a code.
    fn accepted(self: &Arc<Self>, socket: BorrowedFd<'_>) -> Result<Stream, Reason> {
        if self.doors.is_empty() {
            return Err(Reason::NoDoor);
        }
        let code = syn::code(socket).ok_or(Reason::NoPeer)?;
        let maker = address(getpeername(socket).and_then(|at| at.ok_or(Errno::NOTCONN)));
        let taker = self.address.or_else(|| address(getsockname(socket)));
        let of = maker.zip(taker).map(|(maker, taker)| Addresses { maker, taker });
        let of = of.ok_or(Reason::NoPeer)?;
        let stream = Stream::accepted(self, (&of, code), socket).ok_or(Reason::NoRoom)?;
        if self.has_buffers.load(Ordering::Relaxed) {
            stream.keep_to_buffers(socket);
        }
        Ok(stream)
    }

    /// The program has set a size of its buffers.
    pub(crate) fn has_set_buffers(&self) {
        self.has_buffers.store(true, Ordering::Relaxed);
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
    pub(crate) fn find(
        &self,
        code: u16,
        of: &Addresses,
        connection: &Connection,
    ) -> Result<(), Reason> {
        let mut pairs = self.pairs.lock();
        if pairs.len() > 2 * self.used.load(Ordering::Relaxed) {
            pairs.retain(|pair| Arc::strong_count(pair) > 1 || !pair.is_hung_up());
            self.used.store(pairs.len() + UNUSED_MOST, Ordering::Relaxed);
        }
        if !pairs.iter().any(|pair| pair.code() == code) {
            let callers = self.doors.iter().map(|door| door.callers(|user| self.welcomes(user)));
            pairs.extend(callers.flatten());
        }
        let may_be = |pair: &&Arc<Pair>| pair.code() == code || pair.code() == 0;
        let mut found = pairs.iter().filter(may_be).filter_map(|pair| Some((pair, pair.find(of)?)));
        let (pair, slot) = found.next().ok_or_else(|| self.why_not_found())?;
        check_maker(pair.user(), of)?;
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

/// A connection that was accepted by a socket, which is known to listen or not. Without a policy,
/// one that stays with the kernel costs at most the look at its SYN.
pub(crate) fn accepted(fd: i32, socket: BorrowedFd<'_>, by: Option<&Arc<Listener>>) {
    if !policy::is_wanted() || (by.is_none() && !is_tcp(socket)) {
        return;
    }
    let judged = if policy::is_empty() { None } else { address(getsockname(socket)) };
    let is_allowed = judged.is_none_or(|at| policy::allows_some(Act::Accept, at));
    let stream = match by {
        _ if !policy::is_on() => Err(Reason::IoUring),
        _ if !is_allowed => Err(Reason::Policy),
        None => Err(Reason::NoDoor),
        Some(listener) => listener.accepted(socket),
    };
    let is_refused =
        |reason| judged.is_some_and(|at| policy::refuses(Act::Accept, at, None, reason));
    match stream {
        Ok(stream) => drop(table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(stream)))))),
        Err(reason) if is_refused(reason) => reset(socket),
        Err(reason) => keep_reason(socket, reason),
    }
}

/// Ends a connection with a reset, at once, and leaves its descriptor open.
// spec: SOCK-31
pub(crate) fn reset(socket: BorrowedFd<'_>) {
    let _ = connect_unspec(socket);
}

/// Whether the process of this user may have offered a connection: its user is welcome, and has
/// the socket that has connected.
// spec: SOCK-8, SOCK-34
fn check_maker(user: Option<u32>, of: &Addresses) -> Result<(), Reason> {
    let user = user.ok_or(Reason::OtherUser)?;
    let is_trusted = policy::check(Act::Accept, of.taker, user)?;
    match is_trusted || owner_of(of.maker, of.taker) == Some(user) {
        true => Ok(()),
        false => Err(Reason::NotOwner),
    }
}

/// Whether connections to an address may go by rings with a process of this user, which has the
/// door: its user is welcome, and has the socket that listens. The name of a door is free for all.
// spec: SOCK-8, SOCK-34
fn check_taker(user: u32, at: SocketAddr) -> Result<(), Reason> {
    let is_trusted = policy::check(Act::Connect, at, user)?;
    match is_trusted || owner_of_listener(at) == Some(user) {
        true => Ok(()),
        false => Err(Reason::NotOwner),
    }
}

/// Why a connection goes by the kernel, and the user who has the door, if there is one.
type Missed = (Reason, Option<u32>);

/// The outcome of a look at an address.
#[derive(Debug)]
enum Found {
    Pair(Arc<Pair>),
    /// No process with the library was there, at this time.
    Nobody(Missed, Instant),
}

/// For how long a look that has found nobody counts. So a process that connects all the time does
/// not pay for a look each time.
const NOBODY_FOR: Duration = Duration::from_millis(5);

/// Addresses without a pair that are kept at a time.
const NOBODY_MOST: usize = 256;

static FOUND: Shared<BTreeMap<SocketAddr, Found>> = Shared::new(BTreeMap::new());

/// Before a fork.
pub(crate) fn lock() {
    FOUND.before_fork();
}

/// After a fork. A child makes pairs of its own.
pub(crate) fn unlock(is_child: bool) {
    FOUND.after_fork(|found| {
        if is_child {
            found.clear();
        }
    });
}

/// All pairs of this process to listening ones.
pub(crate) fn pairs() -> Vec<Arc<Pair>> {
    let pair = |found: &Found| match found {
        Found::Pair(pair) => Some(pair.clone()),
        Found::Nobody(..) => None,
    };
    FOUND.lock().values().filter_map(pair).collect()
}

/// Why there is no pair for this address, if a look has found nobody just now.
fn nobody_at(address: SocketAddr) -> Option<Missed> {
    match FOUND.lock().get(&address) {
        Some(Found::Nobody(missed, at)) if at.elapsed() < NOBODY_FOR => Some(*missed),
        _ => None,
    }
}

/// A connection to an address was refused. The next one looks for a listener at once.
pub(crate) fn refused(address: SocketAddr) {
    let mut found = FOUND.lock();
    if matches!(found.get(&address), Some(Found::Nobody(..))) {
        found.remove(&address);
    }
}

/// The pair for connections to this address.
fn pair_to(address: SocketAddr) -> Result<Arc<Pair>, Missed> {
    if let Some(missed) = nobody_at(address) {
        return Err(missed);
    }
    let mut found = FOUND.lock();
    let check = |user| check_taker(user, address).map_err(|reason| (reason, Some(user)));
    if let Some(Found::Pair(pair)) = found.get(&address)
        && let Some(user) = pair.user().filter(|_| !pair.is_over() && !pair.is_hung_up())
    {
        return check(user).map(|()| pair.clone());
    }
    let code = syn::new_code();
    let mut missed = (Reason::NoPeer, None);
    for door in doors_of(address) {
        let is_welcome = |user| {
            // Behind the door of one that is welcome, only memory or descriptors can be missing.
            let found = check(user);
            missed = found.err().unwrap_or((Reason::NoRoom, Some(user)));
            found.is_ok()
        };
        if let Ok(pair) = Pair::knock(&door, code, is_welcome) {
            found.insert(address, Found::Pair(pair.clone()));
            return Ok(pair);
        }
    }
    if found.len() >= NOBODY_MOST {
        found.retain(|_, found| matches!(found, Found::Pair(_)));
    }
    found.insert(address, Found::Nobody(missed, Instant::now()));
    Err(missed)
}

/// The code that a connecting socket shows.
pub(crate) struct Connecting {
    pair: Arc<Pair>,
    stream: Stream,
    to: SocketAddr,
    /// Of the packets behind the SYN.
    before: syn::Headers,
    /// The socket was as the program has made it.
    was_new: bool,
}

/// Before a socket connects: the code of its SYN, where somebody with this library listens.
///
/// # Errors
/// `ECONNREFUSED` where the connection must go by a ring, and cannot.
// spec: SOCK-5, SOCK-31
pub(crate) fn before_connect(
    fd: i32,
    socket: BorrowedFd<'_>,
    to: SocketAddr,
) -> Result<Option<Connecting>, Errno> {
    if !policy::is_wanted() || table::entry(fd).is_some() {
        return Ok(None);
    }
    if let Some((reason, _)) = nobody_at(to).filter(|_| policy::is_empty()) {
        keep_reason(socket, reason);
        return Ok(None);
    }
    if !is_tcp(socket) {
        return Ok(None);
    }
    match show(socket, to) {
        Ok(connecting) => Ok(Some(connecting)),
        Err((reason, user)) if policy::refuses(Act::Connect, to, user, reason) => {
            Err(Errno::CONNREFUSED)
        }
        Err((reason, _)) => {
            keep_reason(socket, reason);
            Ok(None)
        }
    }
}

fn show(socket: BorrowedFd<'_>, to: SocketAddr) -> Result<Connecting, Missed> {
    if !policy::is_on() {
        return Err((Reason::IoUring, None));
    }
    if !policy::allows_some(Act::Connect, to) {
        return Err((Reason::Policy, None));
    }
    let pair = pair_to(to)?;
    // All that the offer needs is there before the other end may look for it.
    let stream = Stream::connecting().ok_or_else(|| (Reason::NoRoom, pair.user()))?;
    let was_new = table::is_new(socket.as_raw_fd());
    let before = syn::show(socket, to, pair.code(), was_new);
    let before = before.ok_or_else(|| (Reason::Option, pair.user()))?;
    Ok(Connecting { pair, stream, to, before, was_new })
}

impl Connecting {
    /// The SYN was sent, or not: the socket shows nothing any more. Offers the connection.
    ///
    /// # Errors
    /// As [`before_connect`].
    pub(crate) fn after(
        self,
        fd: i32,
        socket: BorrowedFd<'_>,
        was_sent: bool,
    ) -> Result<(), Errno> {
        let maker = if was_sent { address(getsockname(socket)) } else { None };
        let addresses = maker.map(|maker| Addresses { maker, taker: self.to });
        let is_offered = addresses.map(|of| self.stream.offer(&self.pair, &of, socket));
        self.before.restore(socket);
        let Some(is_offered) = is_offered else { return Ok(()) };
        if is_offered {
            if !self.was_new {
                self.stream.keep_to_buffers(socket);
            }
            table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(self.stream)))));
            return Ok(());
        }
        if policy::refuses(Act::Connect, self.to, self.pair.user(), Reason::NoRoom) {
            reset(socket);
            return Err(Errno::CONNREFUSED);
        }
        keep_reason(socket, Reason::NoRoom);
        Ok(())
    }
}
