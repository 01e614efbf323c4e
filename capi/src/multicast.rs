//! Multicast: groups whose members come and go, and get the same messages in the same order.
use crate::access::ayre_peer;
use crate::active::{ayre_token, with_arguments};
use crate::border::{self, Bytes, In, Out, Text, User};
use crate::error::{number, status};
use crate::interface::Made;
use crate::place::handle;
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::multicast::{Change, Membership, MulticastOptions};
use std::ffi::c_int;

/// A membership of a port in a group.
pub struct ayre_membership(#[allow(dead_code, reason = "opaque")] Made<Membership>);
handle!(ayre_membership of Made<Membership>);

/// The bounds of a group, which are equal at all members. NULL stands for 64 and 8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_multicast_options {
    /// Messages that a member may still lack, 1 or more. Further ones wait.
    pub window: u16,
    /// Messages of one member that have no place in the order yet, 1 or more.
    pub requests: u16,
}

/// A change of a group's members. All members get it at the same place among the messages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_change {
    /// 1 if this port is no member any more, or has not become one: the rest is zero then.
    pub is_ended: c_int,
    /// The number of the view in the group, from 1.
    pub number: u64,
    /// The place of the view among all messages and views of the group.
    pub ticket: u64,
    /// All members, in the order in which they joined.
    pub members: *const ayre_peer,
    /// Their number.
    pub members_count: usize,
    /// The members that were in no view before.
    pub joined: *const ayre_peer,
    /// Their number.
    pub joined_count: usize,
}

/// A function that runs at changes of a group's members, under the rules of an `ayre_handler`. The
/// change is valid until it returns. `user` is the pointer that was given with it; it is used until
/// the membership ends or the port closes.
pub type ayre_on_change = Option<extern "C-unwind" fn(user: User, change: *const ayre_change)>;

/// The function that the engine runs at changes.
fn watching(run: ayre_on_change, user: User) -> impl FnMut(&mut (), &Change) + Send + 'static {
    let numbers = |peers: &[PeerId]| peers.iter().map(|peer| peer.0).collect::<Vec<_>>();
    move |(), change| {
        let (is_ended, number, ticket, members, joined) = match change {
            Change::View { number, ticket, members, joined } => {
                (0, *number, *ticket, numbers(members), numbers(joined))
            }
            _ => (1, 0, 0, Vec::new(), Vec::new()),
        };
        let change = ayre_change {
            is_ended,
            number,
            ticket,
            members: members.as_ptr(),
            members_count: members.len(),
            joined: joined.as_ptr(),
            joined_count: joined.len(),
        };
        if let Some(run) = run {
            run(user, &raw const change);
        }
    }
}

fn options(given: In<ayre_multicast_options>) -> MulticastOptions {
    let usual = MulticastOptions::new();
    given.get().map_or(usual, |given| usual.window(given.window).requests(given.requests))
}

/// Founds a group, whose only member is this port, under a name of 1 to 64 bytes. Others join
/// through any member. Does not block. `on_change` may be NULL.
///
/// The port is a messenger. All processes know each other by the same numbers, as the ranks of a
/// job do. The handle is closed by `ayre_membership_close`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_found(
    port: Out<ayre_port>,
    name: Text,
    bounds: In<ayre_multicast_options>,
    on_change: ayre_on_change,
    user: User,
    membership: Out<*mut ayre_membership>,
) -> c_int {
    status(|| {
        membership.hand_out(|| {
            let (mut port, watch) = (port.held()?, watching(on_change, user));
            let mut groups = port.messenger()?.multicast();
            let made = groups.found(name.text()?, options(bounds), watch)?;
            Ok(port.made(made))
        })
    })
}

/// Joins a group through one of its members, `door`. Blocks until this port is a member or is
/// refused, and runs handlers meanwhile. `on_change` first gets the view that adds this port; all
/// later messages of the group follow.
///
/// Errors: `AYRE_REFUSED`, `AYRE_UNREACHABLE`, `AYRE_INVALID`. The rest is as for
/// `ayre_multicast_found`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_join(
    port: Out<ayre_port>,
    name: Text,
    door: ayre_peer,
    bounds: In<ayre_multicast_options>,
    on_change: ayre_on_change,
    user: User,
    membership: Out<*mut ayre_membership>,
) -> c_int {
    status(|| {
        membership.hand_out(|| {
            let (mut port, watch) = (port.held()?, watching(on_change, user));
            let mut groups = port.messenger()?.multicast();
            let (name, door) = (name.text()?, PeerId(door));
            let made = groups.join(&mut (), name, door, options(bounds), watch)?;
            Ok(port.made(made))
        })
    })
}

/// Calls a handler at all members, this port among them, with at most 1 MiB, arguments included.
/// Blocks for room, and runs handlers meanwhile. All members run the messages and changes of the
/// group in the same order.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_send(
    port: Out<ayre_port>,
    to: In<ayre_membership>,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, payload) = (port.held()?, payload.bytes(len)?);
        let to = *to.shared()?.at(&port)?;
        let mut groups = port.messenger()?.multicast();
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(groups.send(&mut (), to, handler, arguments, payload)?)
        })
    })
}

/// Calls a handler at all members as `ayre_multicast_send` does, if there is room: else
/// `AYRE_BUSY_MULTICAST`. Does not block, and runs no handler.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_try_send(
    port: Out<ayre_port>,
    to: In<ayre_membership>,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, payload) = (port.held()?, payload.bytes(len)?);
        let to = *to.shared()?.at(&port)?;
        let mut groups = port.messenger()?.multicast();
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(groups.try_send(to, handler, arguments, payload)?)
        })
    })
}

/// Calls a handler at all members of a group of which this port is none, through a member, `door`.
/// Blocks until the message has its place in the order, and runs handlers meanwhile.
///
/// `AYRE_REFUSED` without effect; `AYRE_UNREACHABLE`; `AYRE_UNKNOWN_OUTCOME` where the door has
/// gone meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_send_through(
    port: Out<ayre_port>,
    name: Text,
    door: ayre_peer,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut port, payload) = (port.held()?, payload.bytes(len)?);
        let to = (name.text()?, PeerId(door));
        let mut groups = port.messenger()?.multicast();
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(groups.send_through(&mut (), to, handler, arguments, payload)?)
        })
    })
}

/// Calls a handler at all members of a group of this port, out of a handler. Does not block.
/// `AYRE_BUSY_MULTICAST` where there is no room.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_token_multicast(
    token: Out<ayre_token>,
    to: In<ayre_membership>,
    handler: u32,
    arguments: In<u64>,
    count: usize,
    payload: Bytes,
    len: usize,
) -> c_int {
    status(|| {
        let (mut call, payload) = (token.held()?, payload.bytes(len)?);
        let to = *to.shared()?.thing();
        with_arguments!((arguments, count, handler), |handler, arguments| {
            Ok(call.multicast(to, handler, arguments, payload)?)
        })
    })
}

/// Leaves a group, behind all messages of this port. Blocks until no member needs this port any
/// more, and runs handlers meanwhile. The handle stays, and names no member.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_leave(
    port: Out<ayre_port>,
    membership: In<ayre_membership>,
) -> c_int {
    status(|| {
        let mut port = port.held()?;
        let membership = *membership.shared()?.at(&port)?;
        Ok(port.messenger()?.multicast().leave(&mut (), membership)?)
    })
}

/// Lists the members of a group in the order in which they joined, as this port knows them, at most
/// `room` of them. Returns how many there are: none if this port is no member.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_multicast_members(
    port: Out<ayre_port>,
    membership: In<ayre_membership>,
    peers: Out<ayre_peer>,
    room: usize,
) -> i64 {
    number(|| {
        let mut port = port.held()?;
        let membership = *membership.shared()?.at(&port)?;
        let members = port.messenger()?.multicast().members(membership);
        peers.list(members.into_iter(), room)
    })
}

/// Closes the handle of a membership. The port stays a member. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_membership_close(membership: Out<ayre_membership>) -> c_int {
    border::closed(membership)
}
