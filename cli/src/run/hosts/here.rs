//! Which of the hosts is this machine: it needs neither `ssh` nor `srun` to run ranks.

use std::env;
use std::net::{ToSocketAddrs, UdpSocket};
use std::thread;

use rustix::system::uname;

/// Which names are this machine's. Names that are not its own are looked up, all at once, because
/// each may take seconds.
pub(super) fn are_here(names: &[&str]) -> Vec<bool> {
    thread::scope(|scope| {
        let one = |name: &str| is_own_name(name) || has_own_address(name);
        let asked: Vec<_> = names.iter().map(|name| scope.spawn(move || one(name))).collect();
        // A look-up that panics has found nothing.
        asked.into_iter().map(|asked| asked.join().unwrap_or(false)).collect()
    })
}

/// `localhost`, what this machine calls itself, with its domain or without, or what Slurm calls it.
/// `user@name` is not: another user may be meant, whom only `ssh` can become.
fn is_own_name(name: &str) -> bool {
    let node = env::var("SLURMD_NODENAME").ok();
    let system = uname();
    let host = system.nodename().to_str().unwrap_or_default();
    let is_short_for = |host: &str| {
        let start = host.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        start && matches!(host.as_bytes().get(name.len()), None | Some(b'.'))
    };
    is_short_for("localhost") || is_short_for(host) || node.is_some_and(|node| is_short_for(&node))
}

/// Whether a name, or an address, leads here: only an address of this machine can be bound to.
fn has_own_address(name: &str) -> bool {
    let Ok(mut addresses) = (name, 0).to_socket_addrs() else { return false };
    addresses.any(|address| UdpSocket::bind(address).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_and_addresses_are_here() {
        let system = uname();
        let host = system.nodename().to_str().unwrap();
        let own = ["localhost", "LOCALHOST", host, "127.0.0.1", "127.1.2.3"];
        assert_eq!(are_here(&own), [true; 5]);
        let not = ["192.0.2.7", "2001:db8::1", "root@localhost", "nowhere.invalid", "local"];
        assert_eq!(are_here(&not), [false; 5]);
    }
}
