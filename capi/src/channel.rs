//! Logical channels: calls with an order and a priority of their own.
use crate::access::ayre_peer;
use crate::active::{ayre_token, with_arguments};
use crate::border::{Bytes, In, Out};
use crate::error::{Failure, Outcome, count, number, status};
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::channel::{Channel, ChannelOptions};
use std::ffi::c_int;

/// The options of a channel at this end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_channel_options {
    /// 0 to 7. Channels of higher priority always come first.
    pub priority: u8,
    /// The share among channels of the same priority, 1 to 16.
    pub weight: u8,
    /// Bytes of messages that may wait here for one peer. One message always fits.
    pub room: usize,
}

/// Opens a channel at this end, for all peers: a number from 1 to 255, which both ends know. Sends
/// nothing, and does not block. `options` replace those of an earlier call; NULL stands for
/// priority 0, weight 1 and 1 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_open(
    port: Out<ayre_port>,
    channel: u8,
    options: In<ayre_channel_options>,
) -> c_int {
    status(|| {
        let usual = ChannelOptions::new();
        let options = options.get().map_or(usual, |given| {
            usual.priority(given.priority).weight(given.weight).room(given.room)
        });
        port.held()?.messenger()?.channels().open(channel, options)?;
        Ok(())
    })
}

fn channel(number: u8) -> Outcome<Channel> {
    Channel::with_number(number).ok_or(Failure::Argument("a channel's number is 1 to 255"))
}

/// Calls a handler by a channel. Blocks until the message is sent or has room in the channel's
/// queue, and runs handlers meanwhile. The rest is as for `ayre_call`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_call(
    port: Out<ayre_port>,
    by: u8,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, by, payload) = (port.held()?, channel(by)?, payload.bytes(len)?);
        let mut on = port.messenger()?.on(by);
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(on.call(&mut (), PeerId(to), handler, arguments, payload)?)
        })
    })
}

/// Calls a handler by a channel, if the message can be sent or has room in the channel's queue:
/// else `AYRE_BUSY_CHANNEL`. Does not block, and runs no handler. A message may have any length.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_try_call(
    port: Out<ayre_port>,
    by: u8,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, by, payload) = (port.held()?, channel(by)?, payload.bytes(len)?);
        let mut on = port.messenger()?.on(by);
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(on.try_call(PeerId(to), handler, arguments, payload)?)
        })
    })
}

/// Calls a handler of any peer by a channel, out of a handler. Does not block. `AYRE_BUSY_CHANNEL`
/// if the channel's queue to that peer has no room.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_token_send_by(
    token: Out<ayre_token>,
    by: u8,
    to: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut call, by, payload) = (token.held()?, channel(by)?, payload.bytes(len)?);
        let mut on = call.on(by);
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(on.send(PeerId(to), handler, arguments, payload)?)
        })
    })
}

/// Stops running messages of a channel. When its window is full, further ones stay at their
/// senders. Other channels go on.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_hold(port: Out<ayre_port>, by: u8) -> c_int {
    status(|| {
        port.held()?.messenger()?.channels().hold(channel(by)?);
        Ok(())
    })
}

/// Runs messages of a held channel again, first those that have come meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_release(port: Out<ayre_port>, by: u8) -> c_int {
    status(|| {
        port.held()?.messenger()?.channels().release(channel(by)?);
        Ok(())
    })
}

/// Runs messages that have come by a channel, held or not, and those without a channel. Does not
/// block. Returns how many handlers have run.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_poll(port: Out<ayre_port>, by: u8) -> c_int {
    count(|| Ok(port.held()?.messenger()?.channels().poll_only(&mut (), channel(by)?)))
}

/// The bytes of messages that wait here for a peer by a channel.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_channel_backlog(port: Out<ayre_port>, by: u8, peer: ayre_peer) -> i64 {
    number(|| {
        let mut port = port.held()?;
        let backlog = port.messenger()?.channels().backlog(PeerId(peer), channel(by)?);
        Ok(backlog as i64)
    })
}
