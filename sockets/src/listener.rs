//! How two programs with this library find each other: doors of listening sockets, codes in SYNs.
use crate::policy;
use crate::stream::Stream;
use crate::table::{self, Entry};
use ayre::guest::fork::Shared;
use ayre::socket::{Addresses, Connection, Door, Pair};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{
    SocketAddrAny, SocketAddrUnix, SocketType, getpeername, getsockname, ipproto, sockopt,
};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod syn;

/// A listening socket that others with this library find.
#[derive(Debug)]
pub(crate) struct Listener {
    doors: Vec<Door>,
    /// The pairs of those that have knocked.
    pairs: Shared<Vec<Arc<Pair>>>,
    /// How many of them were of use when that was last looked at.
    used: AtomicUsize,
}

fn address(of: Result<SocketAddrAny, Errno>) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(of.ok()?).ok()?;
    // An IPv4 address looks the same at a socket of either family.
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// Whether a socket is one of TCP.
fn is_tcp(socket: BorrowedFd<'_>) -> bool {
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
    // Where another socket has a door, those who knock there do not find this one.
    let doors: Vec<Door> = own_doors(address).iter().flat_map(Door::open).collect();
    if !doors.is_empty() {
        let pairs = Shared::new(Vec::new());
        let listener = Listener { doors, pairs, used: AtomicUsize::new(16) };
        table::set(fd, Some(Arc::new(Entry::Listener(Arc::new(listener)))));
    }
}

impl Listener {
    /// A connection that was accepted: a stream, if its SYN shows a code.
    pub(crate) fn accepted(self: &Arc<Self>, fd: i32, socket: BorrowedFd<'_>) {
        let Some(code) = syn::code(socket) else { return };
        let (maker, taker) = (
            address(getpeername(socket).and_then(|at| at.ok_or(Errno::NOTCONN))),
            address(getsockname(socket)),
        );
        let (Some(maker), Some(taker)) = (maker, taker) else { return };
        let addresses = Addresses { maker, taker };
        if let Some(stream) = Stream::accepted(self, addresses, code) {
            stream.keep_to_buffers(fd);
            table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(stream)))));
        }
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

    /// Takes the offer of a connection, if its maker has made it by now.
    pub(crate) fn find(&self, code: u16, of: &Addresses, connection: &Connection) -> bool {
        let mut pairs = self.pairs.lock();
        if pairs.len() > 2 * self.used.load(Ordering::Relaxed) {
            pairs.retain(|pair| Arc::strong_count(pair) > 1 || !pair.is_hung_up());
            self.used.store(pairs.len() + 16, Ordering::Relaxed);
        }
        if !pairs.iter().any(|pair| pair.code() == code) {
            let callers = self.doors.iter().flat_map(Door::callers);
            pairs.extend(callers.filter(|caller| is_trusted(caller)));
        }
        let may_be = |pair: &&Arc<Pair>| pair.code() == code || pair.code() == 0;
        let mut found = pairs.iter().filter(may_be).filter_map(|pair| Some((pair, pair.find(of)?)));
        let Some((pair, slot)) = found.next() else { return false };
        // Two offers of one connection: one of them is a lie.
        if found.next().is_some() || !connection.take(pair, slot) {
            return false;
        }
        pair.set_code(code);
        true
    }
}

/// Whether a caller may be the end of a connection whose user is not known: it has the rights of
/// this process, or more.
fn is_trusted(caller: &Pair) -> bool {
    caller.user().is_some_and(|user| user == geteuid().as_raw() || user == 0)
}

/// The pairs of this process with listening ones, by address.
type Pairs = HashMap<SocketAddr, Arc<Pair>>;
static PAIRS: Shared<Option<Pairs>> = Shared::new(None);

/// Before a fork.
pub(crate) fn lock() {
    PAIRS.before_fork();
}

/// After a fork. A child makes pairs of its own.
pub(crate) fn unlock(is_child: bool) {
    PAIRS.after_fork(|pairs| {
        if is_child {
            *pairs = None;
        }
    });
}

/// All pairs of this process to listening ones.
pub(crate) fn pairs() -> Vec<Arc<Pair>> {
    PAIRS.lock().iter().flat_map(|pairs| pairs.values().cloned()).collect()
}

/// The pair for connections to this address. None where nobody with this library listens.
fn pair_to(address: SocketAddr) -> Option<Arc<Pair>> {
    let mut pairs = PAIRS.lock();
    let pairs = pairs.get_or_insert_with(HashMap::new);
    if let Some(pair) = pairs.get(&address) {
        if !pair.is_over() && !pair.is_hung_up() {
            return Some(pair.clone());
        }
        pairs.remove(&address);
    }
    let code = syn::new_code();
    let knock = |door: &SocketAddrUnix| Pair::knock(door, code).ok();
    let pair = doors_of(address).iter().find_map(knock).filter(|pair| is_trusted_or_own(pair))?;
    pairs.insert(address, pair.clone());
    Some(pair)
}

/// Whether a listener is of a user to whom this process's bytes may go.
fn is_trusted_or_own(listener: &Pair) -> bool {
    is_trusted(listener)
}

/// The code that a connecting socket shows.
pub(crate) struct Connecting {
    pair: Arc<Pair>,
    to: SocketAddr,
    shown: syn::Shown,
}

/// Before a socket connects: the code of its SYN, where somebody with this library listens.
pub(crate) fn before_connect(
    fd: i32,
    socket: BorrowedFd<'_>,
    to: SocketAddr,
) -> Option<Connecting> {
    if !policy::is_on() || table::entry(fd).is_some() || !is_tcp(socket) {
        return None;
    }
    let pair = pair_to(to)?;
    let shown = syn::show(socket, to, pair.code())?;
    Some(Connecting { pair, to, shown })
}

impl Connecting {
    /// The SYN was sent, or not: the socket shows nothing any more. Offers the connection.
    pub(crate) fn after(self, fd: i32, socket: BorrowedFd<'_>, was_sent: bool) {
        self.shown.hide(socket);
        let Some(maker) = address(getsockname(socket)).filter(|_| was_sent) else { return };
        let addresses = Addresses { maker, taker: self.to };
        if let Some(stream) = Stream::connected(&self.pair, &addresses) {
            stream.keep_to_buffers(fd);
            table::set(fd, Some(Arc::new(Entry::Stream(Arc::new(stream)))));
        }
    }
}
