//! The table of TCP sockets that the kernel has for a network namespace: `/proc/PID/net/tcp`.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// A socket of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// The kernel's number of its state.
    pub(super) state: u8,
}

/// The names of states, as `ss` prints them, from number 1 on.
const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "SYN-RECV",
];
const CLOSED: u8 = 7;
const LISTEN: u8 = 10;

impl Socket {
    /// Whether it is, was or becomes connected.
    pub(super) fn is_connection(&self) -> bool {
        !matches!(self.state, CLOSED | LISTEN)
    }

    pub(super) fn state(&self) -> &'static str {
        let place = usize::from(self.state).checked_sub(1);
        place.and_then(|place| STATES.get(place)).copied().unwrap_or("-")
    }
}

/// All sockets of a process's network namespace, by their numbers.
pub(super) fn sockets(process: u32) -> HashMap<u64, Socket> {
    let text = |name| fs::read_to_string(format!("/proc/{process}/net/{name}"));
    let texts = ["tcp", "tcp6"].map(|name| text(name).unwrap_or_default());
    texts.iter().flat_map(|text| text.lines().filter_map(line)).collect()
}

/// The number of the socket of a line, and the socket.
fn line(text: &str) -> Option<(u64, Socket)> {
    let mut fields = text.split_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    Some((fields.nth(5)?.parse().ok()?, Socket { local, remote, state }))
}

/// An address: words in the processor's order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word =
        |i: usize| Some(u32::from_str_radix(ip.get(8 * i..8 * i + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for (i, place) in bytes.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(i)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    // An IPv4 address looks the same at a socket of either family.
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_families_are_read() {
        let four = "   2: 0100007F:1B58 0200000A:C350 01 00000000:00000000 00:00000000 00000000  \
                    1000        0 31337 1 0000000000000000 20 4 30 10 -1";
        let (number, socket) = line(four).unwrap();
        assert_eq!((number, socket.state(), socket.is_connection()), (31337, "ESTAB", true));
        assert_eq!(socket.local, "127.0.0.1:7000".parse().unwrap());
        assert_eq!(socket.remote, "10.0.0.2:50000".parse().unwrap());
        let six = "0: 00000000000000000000000001000000:0050 0000000000000000FFFF00000100007F:0051 \
                   0A 0:0 0:0 0 0 0 5";
        let (number, socket) = line(six).unwrap();
        assert_eq!((number, socket.is_connection()), (5, false));
        assert_eq!(socket.local, "[::1]:80".parse().unwrap());
        assert_eq!(socket.remote, "127.0.0.1:81".parse().unwrap());
    }

    #[test]
    fn heads_and_lines_that_are_cut_short_are_left_out() {
        assert_eq!(line("  sl  local_address rem_address   st tx_queue rx_queue tr"), None);
        assert_eq!(line("0: 0100007F:1B58 0200000A:C350 01"), None);
        assert_eq!(address("0100007:1"), None);
        assert_eq!(address("é100007F:1"), None);
    }
}
