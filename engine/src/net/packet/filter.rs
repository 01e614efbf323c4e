//! The filter of a packet socket: it receives the frames for one port, and no other's.
//!
//! The system runs a program of ours (classic BPF) before it copies a frame. So ports of one host
//! cost each other nothing and do not fill each other's slots.
use super::{ETHERNET_BYTES, sixth};
use crate::sys::descriptor::Descriptor;
use libc::{sock_filter, sock_fprog};
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use std::io;
use std::net::SocketAddr;

/// Bytes of an address before its port.
const ADDRESS_BYTES: usize = 16;
/// Instructions of the filter: two for each check, and its two ends.
const STEPS: usize = 2 * CHECKS + 2;
const CHECKS: usize = ADDRESS_BYTES / 4 + 1;
const _: () = assert!(STEPS <= u8::MAX as usize, "a step leads as far as to the last one");

/// From now on the socket hears frames to this port only.
///
/// # Errors
///
/// The system has not the memory.
// spec: NET-6
pub(super) fn hear_only(socket: &Descriptor, local: SocketAddr) -> io::Result<()> {
    let mut steps = steps(local);
    let program = sock_fprog { len: STEPS as libc::c_ushort, filter: steps.as_mut_ptr() };
    Ok(setsockopt(socket, Filter, &program)?)
}

fn steps(local: SocketAddr) -> [sock_filter; STEPS] {
    let step = |code, k| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let drop = step(libc::BPF_RET | libc::BPF_K, 0);
    let mut steps = [drop; STEPS];
    for (index, (width, at, value)) in checks(local).into_iter().enumerate() {
        let at = (ETHERNET_BYTES + at) as u32;
        steps[2 * index] = step(libc::BPF_LD | width | libc::BPF_ABS, at);
        let equals = step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value);
        // Where it differs, on to the last step.
        let jf = (STEPS - 1 - (2 * index + 2)) as u8;
        steps[2 * index + 1] = sock_filter { jf, ..equals };
    }
    steps[STEPS - 2] = step(libc::BPF_RET | libc::BPF_K, u32::MAX);
    steps
}

/// The field that is compared: its width, its offset behind Ethernet's header, and its value, read
/// as big-endian. The port first: it is what ports of one host differ in.
fn checks(local: SocketAddr) -> [(u32, usize, u32); CHECKS] {
    let port = u16::from_be_bytes(local.port().to_le_bytes());
    let mut checks = [(libc::BPF_H, ADDRESS_BYTES, u32::from(port)); CHECKS];
    let octets = sixth(local.ip()).octets();
    for (index, word) in octets.as_chunks().0.iter().enumerate() {
        checks[1 + index] = (libc::BPF_W, 4 * index, u32::from_be_bytes(*word));
    }
    checks
}

sockopt_impl!(
    /// The program that is asked about each frame.
    Filter,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_ATTACH_FILTER,
    sock_fprog
);
