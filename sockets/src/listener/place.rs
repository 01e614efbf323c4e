//! Places where sockets listen, and the doors by which others with this library are found there.
use crate::far;
use crate::policy;
use crate::table::Family;
use ayre::socket::policy::Place as Judged;
use rustix::fd::BorrowedFd;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, getsockname};
use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// An address of TCP.
    Tcp(SocketAddr),
    /// The path of a Unix socket, or `@` and its abstract name.
    Unix(Arc<str>),
}

/// The address of a socket of TCP.
pub(super) fn address(of: SocketAddrAny) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(of).ok()?;
    // An IPv4 address looks the same at a socket of either family.
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

impl Place {
    /// The place of a Unix socket with this address, behind its family. None: it has no name.
    pub(crate) fn unix(address: &[u8]) -> Option<Self> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match address.split_first()? {
            (0, name) => Some(Self::Unix(format!("@{}", text(name)).into())),
            _ => Some(Self::Unix(text(address.split(|byte| *byte == 0).next()?).into())),
        }
    }

    /// The place of a socket that listens, or was accepted there.
    pub(super) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let at = getsockname(socket).ok()?;
        if at.address_family() != AddressFamily::UNIX {
            return address(at).map(Self::Tcp);
        }
        let at = SocketAddrUnix::try_from(at).ok()?;
        match (at.abstract_name(), at.path_bytes()) {
            (Some(name), _) => Self::unix(&[b"\0", name].concat()),
            (_, path) => Self::unix(path?),
        }
    }

    /// The family of the sockets there.
    pub(super) fn family(&self) -> Family {
        match self {
            Self::Tcp(_) => Family::Tcp,
            Self::Unix(_) => Family::Unix,
        }
    }

    /// As a policy sees it.
    pub(crate) fn judged(&self) -> Judged<'_> {
        match self {
            Self::Tcp(at) => Judged::Tcp(*at),
            Self::Unix(name) => Judged::Unix(name),
        }
    }

    /// Whether connections to it may go to another host, by a link.
    pub(super) fn may_be_far(&self) -> bool {
        matches!(self, Self::Tcp(at) if far::may_carry(at.ip()))
    }

    /// Whether it is all addresses of this host.
    pub(super) fn is_any(&self) -> bool {
        matches!(self, Self::Tcp(at) if at.ip().is_unspecified())
    }
}

/// The name of a door, in the space of names of this network namespace.
fn door_name(address: SocketAddr, is_any: bool) -> Option<SocketAddrUnix> {
    abstract_door(&match (is_any, address.ip()) {
        (false, ip) => format!("{}/{ip}", address.port()),
        (true, IpAddr::V4(_)) => format!("{}/any4", address.port()),
        (true, IpAddr::V6(_)) => format!("{}/any6", address.port()),
    })
}

fn abstract_door(name: &str) -> Option<SocketAddrUnix> {
    SocketAddrUnix::new_abstract_name(format!("ayre-sockets/{name}").as_bytes()).ok()
}

/// The door for processes of other network namespaces: a file in the folder where all meet.
fn door_file(name: &str) -> Option<SocketAddrUnix> {
    SocketAddrUnix::new(policy::meeting_folder()?.join(name)).ok()
}

fn door_file_at(address: SocketAddr) -> Option<SocketAddrUnix> {
    let is_shared = !address.ip().is_loopback();
    if is_shared { door_file(&format!("{}-{}", address.ip(), address.port())) } else { None }
}

/// The doors of a Unix socket. The file of its path says which one it is: there may be other paths
/// to that, and other files at that path.
fn unix_doors(name: &str) -> Vec<SocketAddrUnix> {
    if name.starts_with('@') {
        return abstract_door(name).into_iter().collect();
    }
    let Ok(file) = std::fs::metadata(Path::new(OsStr::from_bytes(name.as_bytes()))) else {
        return Vec::new();
    };
    let name = format!("file-{:x}-{:x}", file.dev(), file.ino());
    abstract_door(&name).into_iter().chain(door_file(&name)).collect()
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

/// The doors that a listener at this place opens.
pub(super) fn own_doors(place: &Place) -> Vec<SocketAddrUnix> {
    let address = match place {
        Place::Tcp(_) if far::is_apart() => return Vec::new(),
        Place::Tcp(address) => *address,
        Place::Unix(name) => return unix_doors(name),
    };
    let named = door_name(address, address.ip().is_unspecified());
    let files = match policy::meeting_folder() {
        Some(_) => reached_at(address).into_iter().filter_map(door_file_at).collect(),
        None => Vec::new(),
    };
    named.into_iter().chain(files).collect()
}

/// The doors behind which a listener at this place may be.
pub(super) fn doors_of(place: &Place) -> Vec<SocketAddrUnix> {
    let address = match place {
        Place::Tcp(_) if far::is_apart() => return Vec::new(),
        Place::Tcp(address) => *address,
        Place::Unix(name) => return unix_doors(name),
    };
    let six = SocketAddr::new(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), address.port());
    let exact = door_name(address, false);
    let any = door_name(address, true);
    let any_six = if address.is_ipv4() { door_name(six, true) } else { None };
    exact.into_iter().chain(any).chain(any_six).chain(door_file_at(address)).collect()
}
