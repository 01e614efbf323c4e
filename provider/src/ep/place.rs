//! Finding an endpoint by an IP address and a port.
//!
//! An endpoint with a place binds a socket whose name has the place and the address. Anybody can
//! read names, so the address has only the part that this host needs. A program that looks for a
//! place reads the list of the system. So nobody needs to answer, and nothing is left behind when a
//! process dies. A second socket, named by the place alone, keeps others off.

use crate::abi::{LOG_EP_CTRL, errno};
use crate::error::{Code, Outcome};
use crate::info::address::{self, Place};
use crate::sys::core;
use ayre::guest::descriptor;
use ayre::guest::descriptor::Descriptor;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind};
use std::fs;

/// A place that is taken for as long as this is there.
#[derive(Debug)]
pub(crate) struct Named {
    _place: Descriptor,
    _sign: Descriptor,
}

/// The prefix of all names of places.
const PREFIX: &str = "ayre-at-";

impl Named {
    /// Takes a place for an endpoint; port 0 is none.
    ///
    /// # Errors
    /// `EADDRINUSE` where another endpoint of this host has it.
    pub(crate) fn claim(
        place: &Place,
        endpoint: &ayre::endpoint::Address,
    ) -> Outcome<Option<Self>> {
        if place.at().port() == 0 {
            return Ok(None);
        }
        let name = format!("{PREFIX}{}", place.at());
        let [host, low, high] = endpoint.local_words();
        let sign = format!("{name}={host:016x}{low:016x}{high:016x}");
        Ok(Some(Self { _place: bound(&name)?, _sign: bound(&sign)? }))
    }
}

/// A socket of that name, which has no file.
fn bound(name: &str) -> Outcome<Descriptor> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::empty());
    let socket = descriptor::socket(AddressFamily::UNIX, kind, flags, None)?;
    match bind(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::ADDRINUSE) => Err(Code(errno::EADDRINUSE)),
        Err(error) => Err(error.into()),
    }
}

/// The endpoint at a place of this host.
///
/// # Errors
/// `ECONNREFUSED` where nobody is; `EHOSTUNREACH` for a place of another host. There nobody
/// answers: by what other hosts need of an address, it lets those in who have it.
pub(crate) fn find(place: &Place) -> Outcome<ayre::endpoint::Address> {
    named(place).ok_or_else(|| {
        if address::Address::At(*place).is_here() {
            return Code(errno::ECONNREFUSED);
        }
        let what = "is of another host: exchange what fi_getname gives there";
        core::tell(LOG_EP_CTRL, format_args!("{} {what}", place.at()));
        Code(errno::EHOSTUNREACH)
    })
}

/// The endpoint that the names of this host's sockets give for a place.
fn named(place: &Place) -> Option<ayre::endpoint::Address> {
    let sign = format!("@{PREFIX}{}=", place.at());
    let names = fs::read_to_string("/proc/net/unix").ok()?;
    let digits = names.lines().find_map(|line| {
        let name = line.rsplit(' ').next()?;
        name.strip_prefix(&*sign)
    })?;
    let words: [&str; 3] = [digits.get(..16)?, digits.get(16..32)?, digits.get(32..)?];
    let [host, low, high] = words.map(|word| u64::from_str_radix(word, 16).ok());
    Some(ayre::endpoint::Address::of_local_words([host?, low?, high?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_found_at_the_longest_place() {
        let at = "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535".parse().unwrap();
        let (place, words) = (Place::new(at), [u64::MAX, 0, u64::MAX - 1]);
        let endpoint = ayre::endpoint::Address::of_local_words(words);
        assert_eq!(named(&place), None);
        let claimed = Named::claim(&place, &endpoint).unwrap();
        assert_eq!(find(&place), Ok(endpoint));
        assert_eq!(Named::claim(&place, &endpoint).err(), Some(Code(errno::EADDRINUSE)));
        drop(claimed);
        assert_eq!(named(&place), None);
    }
}
