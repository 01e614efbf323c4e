//! Memory that peers access: regions, grants, and remote regions.
use crate::access::{ayre_atomic_op, ayre_fetched, ayre_key, ayre_peer};
use crate::border::{self, Buffer, In, Out};
use crate::error::{self, Failure, number, status};
use crate::place::handle;
use crate::port::ayre_port;
use ayre::memory::{Fenced, Grant};
use ayre::{PeerId, Region, RegionOptions, RemoteRegion, Rights};
use std::ffi::{c_int, c_void};

/// Memory of this process that peers can access once it is shared.
pub struct ayre_region(#[allow(dead_code, reason = "opaque")] Region);
handle!(ayre_region of Region);

/// A part of a region that its owner has shared with a peer, and can revoke.
pub struct ayre_grant(#[allow(dead_code, reason = "opaque")] Grant);
handle!(ayre_grant of Grant);

/// Memory of a peer, as far as the peer has shared it.
pub struct ayre_remote_region(#[allow(dead_code, reason = "opaque")] RemoteRegion);
handle!(ayre_remote_region of RemoteRegion);

/// Get.
pub const AYRE_READ: u32 = 1;
/// Put.
pub const AYRE_WRITE: u32 = 2;
/// Atomics.
pub const AYRE_UPDATE: u32 = 4;
/// Notifications at the owner, along with an operation.
pub const AYRE_MAY_NOTIFY: u32 = 16;
/// All rights.
pub const AYRE_ALL_RIGHTS: u32 = 63;

/// The region is sealed: no other process will ever be able to write it.
pub const AYRE_SEALED: u32 = 1;

/// Allocates `len` bytes that are zero. `flags` is 0 or `AYRE_SEALED`. Close the region with
/// `ayre_region_close`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_alloc(
    port: Out<ayre_port>,
    len: usize,
    flags: u32,
    region: Out<*mut ayre_region>,
) -> c_int {
    status(|| {
        let options = match flags {
            0 => RegionOptions::new(),
            AYRE_SEALED => RegionOptions::new().sealed(),
            _ => return Err(Failure::Argument("the flags of a region are 0 or AYRE_SEALED")),
        };
        region.hand_out(|| Ok(port.held()?.alloc(len, options)?))
    })
}

/// Registers `len` bytes of the program's own memory, for peers of mediated connections. `base` is
/// a multiple of eight.
///
/// The memory has to stay until the region was deregistered.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_register(
    port: Out<ayre_port>,
    base: Buffer,
    len: usize,
    region: Out<*mut ayre_region>,
) -> c_int {
    status(|| region.hand_out(|| base.register(&mut *port.held()?, len)))
}

/// Revokes all grants of a region, and lets nobody use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_deregister(port: Out<ayre_port>, region: In<ayre_region>) -> c_int {
    status(|| Ok(port.held()?.deregister(region.shared()?)?))
}

/// Closes the handle of a region. Its memory goes when the port closes, or after
/// `ayre_deregister`, once no peer has it any more. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_region_close(region: Out<ayre_region>) -> c_int {
    border::closed(region)
}

/// The first byte of a region, or NULL if that is no region.
///
/// Peers may change the bytes at any time. The program orders such changes and its own accesses by
/// notifications, messages and atomics. Words that peers put or update are read with C's atomics.
/// The address holds until the region is closed, and while peers have the region.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_region_address(region: In<ayre_region>) -> *mut c_void {
    let region = region.shared();
    region.map_or(std::ptr::null_mut(), |region| region.address().as_ptr().cast())
}

/// The length of a region in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_region_len(region: In<ayre_region>) -> i64 {
    number(|| Ok(region.shared()?.len() as i64))
}

/// Performs an atomic on a word of a region of this process, atomic with respect to those of all
/// peers. `result` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_region_atomic(
    region: In<ayre_region>,
    offset: usize,
    what: In<ayre_atomic_op>,
    result: Out<ayre_fetched>,
) -> c_int {
    status(|| {
        let (region, what) = (region.shared()?, what.given()?.atomic()?);
        let width = what.width.bytes() as usize;
        let fits = region.len().checked_sub(width).is_some_and(|last| offset <= last);
        if !fits || !offset.is_multiple_of(width) {
            return Err(Failure::Argument("the word is not in the region, or not aligned"));
        }
        result.fill(region.atomic(offset, &what));
        Ok(())
    })
}

/// Shares the bytes from `start` to before `end` with a peer, under a name that it uses in
/// `ayre_accept_region`. `rights` are `AYRE_READ` and the others, or-ed. `grant` may be NULL: then
/// it cannot be revoked alone.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_share(
    port: Out<ayre_port>,
    peer: ayre_peer,
    region: In<ayre_region>,
    range: ayre_range,
    rights: u32,
    name: u64,
    grant: Out<*mut ayre_grant>,
) -> c_int {
    status(|| {
        let rights = Rights::from_bits_truncate(rights as u8);
        let (region, part) = (region.shared()?, range.start..range.end);
        let share = || Ok(port.held()?.share(PeerId(peer), region, part.clone(), rights, name)?);
        if grant.is_null() { share().map(drop) } else { grant.hand_out(share) }
    })
}

/// Bytes from `start` to before `end`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_range {
    /// The first one.
    pub start: usize,
    /// Behind the last one.
    pub end: usize,
}

/// The key of a grant.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_grant_key(grant: In<ayre_grant>, key: Out<ayre_key>) -> c_int {
    status(|| {
        key.fill(grant.shared()?.key());
        Ok(())
    })
}

/// Takes a grant back, and closes it. No operation that uses it lands after the call. Blocks for
/// peers inside an operation. Returns 1 if a peer did not let go, so that the region's contents
/// were moved to fresh memory at the old address, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_revoke(port: Out<ayre_port>, grant: Out<ayre_grant>) -> c_int {
    error::flag(|| {
        let mut port = port.held()?;
        Ok(port.revoke(grant.close()?)? == Fenced::Moved)
    })
}

/// Closes the handle of a grant. The peer keeps what it was granted. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_grant_close(grant: Out<ayre_grant>) -> c_int {
    border::closed(grant)
}

/// Accepts the region that a peer has shared, or shares soon, under a name. Blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_accept_region(
    port: Out<ayre_port>,
    peer: ayre_peer,
    name: u64,
    remote: Out<*mut ayre_remote_region>,
) -> c_int {
    status(|| remote.hand_out(|| Ok(port.held()?.accept_region(PeerId(peer), name)?)))
}

/// A capability for less: for the bytes of a range, with some of the rights.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_narrow(
    remote: In<ayre_remote_region>,
    range: ayre_range,
    rights: u32,
    narrow: Out<*mut ayre_remote_region>,
) -> c_int {
    status(|| {
        let part = range.start as u64..range.end as u64;
        let rights = Rights::from_bits_truncate(rights as u8);
        narrow.hand_out(|| Ok(remote.shared()?.narrow(part, rights)?))
    })
}

/// The length of a remote region in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_region_len(remote: In<ayre_remote_region>) -> i64 {
    number(|| Ok(remote.shared()?.len() as i64))
}

/// The rights on a remote region: `AYRE_READ` and the others, or-ed.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_region_rights(remote: In<ayre_remote_region>) -> c_int {
    error::count(|| Ok(remote.shared()?.rights().bits().into()))
}

/// The peer that has shared a remote region.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_region_peer(remote: In<ayre_remote_region>) -> c_int {
    error::peer(|| Ok(remote.shared()?.peer()))
}

/// The key of a remote region.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_region_key(
    remote: In<ayre_remote_region>,
    key: Out<ayre_key>,
) -> c_int {
    status(|| {
        key.fill(remote.shared()?.key());
        Ok(())
    })
}

/// Closes the handle of a remote region. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_remote_region_close(remote: Out<ayre_remote_region>) -> c_int {
    border::closed(remote)
}
