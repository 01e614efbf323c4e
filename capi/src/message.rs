//! Short messages.
use crate::access::{ayre_peer, timeout};
use crate::border::{Buffer, Bytes, In, Out, iovec};
use crate::error::{self, Outcome, quickly, status, taken};
use crate::port::ayre_port;
use ayre::message::Untaken;
use ayre::{Message, PeerId, Port, ReceiveError};
use std::ffi::c_int;

/// The longest message in bytes. Up to 56 bytes travel in one cache line.
pub const AYRE_MESSAGE_MAX: usize = 1024;
/// Bytes of a message in one line.
const IN_LINE: usize = 56;
const _: () = assert!(AYRE_MESSAGE_MAX == ayre::message::EAGER_MAX);

/// A message that was received; its bytes are in the buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_message {
    /// The sender. After `AYRE_PEER_DIED` it is the peer that has died.
    pub source: ayre_peer,
    /// The sender's tag.
    pub tag: u32,
    /// The length in bytes. After `AYRE_TOO_LONG` it is the length of the next message.
    pub len: usize,
}

/// Sends a message of 1 to `AYRE_MESSAGE_MAX` bytes. Does not block: the buffer may be used again
/// when the call returns. `AYRE_BUSY_MESSAGES` where the receiver has to take earlier ones first.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_send(
    port: Out<ayre_port>,
    to: ayre_peer,
    tag: u32,
    data: Bytes,
    len: usize,
) -> c_int {
    let at_once = || {
        let data = data.few(len, IN_LINE)?;
        let is_sent = port.held().ok()?.plain().ok()?.send_quick(PeerId(to), tag, data);
        is_sent.then_some(error::AYRE_OK)
    };
    quickly(at_once).unwrap_or_else(|| send(port, to, tag, data, len))
}

#[inline(never)]
fn send(port: Out<ayre_port>, to: ayre_peer, tag: u32, data: Bytes, len: usize) -> c_int {
    status(|| Ok(port.held()?.plain()?.send(PeerId(to), tag, data.bytes(len)?)?))
}

/// Sends `count` pieces of memory, one behind the other, as one message. The rest is as for
/// `ayre_send`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_sendv(
    port: Out<ayre_port>,
    to: ayre_peer,
    tag: u32,
    data: In<iovec>,
    count: usize,
) -> c_int {
    status(|| Ok(port.held()?.plain()?.send_vectored(PeerId(to), tag, &data.slices(count)?)?))
}

/// Sends a message as `ayre_send` does, and waits for room. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_send_wait(
    port: Out<ayre_port>,
    to: ayre_peer,
    tag: u32,
    data: Bytes,
    len: usize,
) -> c_int {
    status(|| Ok(port.held()?.plain()?.send_wait(PeerId(to), tag, data.bytes(len)?)?))
}

/// Takes the next message into a buffer of `room` bytes. Returns 1 if there was one, else 0. Does
/// not block. A message that is longer than the buffer stays: `AYRE_TOO_LONG`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_try_recv(
    port: Out<ayre_port>,
    into: Buffer,
    room: usize,
    message: Out<ayre_message>,
) -> c_int {
    let mut untaken = Untaken::default();
    let at_once = || {
        message.given().ok()?;
        let into = into.buffer(room).ok()?;
        match port.held().ok()?.plain().ok()?.try_recv_quick(into) {
            Ok(found) => {
                message.fill(found);
                Some(1)
            }
            Err(why) => {
                untaken = why;
                None
            }
        }
    };
    quickly(at_once).unwrap_or_else(|| try_recv(port, into, room, message, untaken))
}

#[inline(never)]
fn try_recv(
    port: Out<ayre_port>,
    into: Buffer,
    room: usize,
    message: Out<ayre_message>,
    untaken: Untaken,
) -> c_int {
    receive(port, into, room, message, |port, into| port.try_recv_slow(untaken, into))
}

/// Takes the next message. Waits for it for `timeout_us` microseconds; for ever if that is
/// negative. Returns 1. The rest is as for `ayre_try_recv`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_recv(
    port: Out<ayre_port>,
    into: Buffer,
    room: usize,
    message: Out<ayre_message>,
    timeout_us: i64,
) -> c_int {
    let until = timeout(timeout_us);
    receive(port, into, room, message, |port, into| port.recv(into, until).map(Some))
}

fn receive(
    port: Out<ayre_port>,
    into: Buffer,
    room: usize,
    message: Out<ayre_message>,
    take: impl FnOnce(&mut Port, &mut [u8]) -> Result<Option<Message>, ReceiveError>,
) -> c_int {
    let receive = || -> Outcome<bool> {
        message.given()?;
        let found = take(port.held()?.plain()?, into.buffer(room)?)?;
        Ok(found.map(|found| message.fill(found)).is_some())
    };
    taken(receive, |also| {
        let _ = message.change(|message| match also {
            Ok(len) => message.len = len,
            Err(died) => message.source = died.0,
        });
    })
}

impl From<Message> for ayre_message {
    fn from(Message { source, tag, len }: Message) -> Self {
        Self { source: source.0, tag, len }
    }
}
