//! Finding an endpoint by an IP address and a port.
//!
//! An endpoint that has a place binds a socket whose name says both the place and the address, of
//! which only what those of this host need: anybody can read names. Who looks for it reads those
//! that the system lists. So nobody needs to answer, and nothing is left behind when a process
//! dies. A second socket, named by the place alone, keeps others off.

use crate::abi::errno;
use crate::address::{self, Place};
use crate::code::{Code, Outcome};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::fs;

/// A place that is taken for as long as this is there.
#[derive(Debug)]
pub(crate) struct Named {
    _place: OwnedFd,
    _sign: OwnedFd,
}

/// What all names of places begin with.
const PREFIX: &str = "ayre-at-";

impl Named {
    /// Takes a place for an endpoint; port 0 is none.
    ///
    /// # Errors
    /// `EADDRINUSE` where another endpoint of this host has it.
    pub(crate) fn claim(place: &Place, endpoint: &ayre::Address) -> Outcome<Option<Self>> {
        if place.at().port() == 0 {
            return Ok(None);
        }
        let name = format!("{PREFIX}{}", place.at());
        let text = address::Address::Of(endpoint.local()).to_string();
        let digits = text.rsplit('/').next().unwrap_or_default();
        let sign = format!("{name}={digits}");
        Ok(Some(Self { _place: bound(&name)?, _sign: bound(&sign)? }))
    }
}

/// A socket of that name, which has no file.
fn bound(name: &str) -> Outcome<OwnedFd> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    match bind(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::ADDRINUSE) => Err(Code(errno::EADDRINUSE)),
        Err(error) => Err(error.into()),
    }
}

/// The endpoint at a place of this host, if there is one.
pub(crate) fn find(place: &Place) -> Option<ayre::Address> {
    let sign = format!("@{PREFIX}{}=", place.at());
    let names = fs::read_to_string("/proc/net/unix").ok()?;
    let digits = names.lines().find_map(|line| {
        let name = line.rsplit(' ').next()?;
        name.strip_prefix(&*sign)
    })?;
    match format!("fi_ayre://{digits}").parse().ok()? {
        address::Address::Of(endpoint) => Some(endpoint),
        address::Address::At(_) => None,
    }
}
