//! Operations on memory of peers: put, get, atomics, notifications.
use crate::access::{ayre_atomic_op, ayre_fetched, ayre_options, ayre_peer, ayre_rows};
use crate::border::{Buffer, Bytes, In, Out, iovec};
use crate::error::{self, Failure, Outcome, posted, quickly, status};
use crate::memory::{ayre_region, ayre_remote_region};
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::memory::LocalSlice;
use std::ffi::c_int;

/// A part of a region of this process, as the local end of an operation. Its data is not copied on
/// its way.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_part {
    /// The region.
    pub region: In<ayre_region>,
    /// The first byte.
    pub offset: usize,
    /// How many bytes.
    pub len: usize,
}

impl In<ayre_part> {
    fn slice<'a>(self) -> Outcome<LocalSlice<'a>> {
        self.given()?.slice()
    }
}

impl ayre_part {
    /// The part, as the engine has it.
    pub(crate) fn slice<'a>(&self) -> Outcome<LocalSlice<'a>> {
        let region = self.region.shared()?;
        let end = self.offset.checked_add(self.len).filter(|end| *end <= region.len());
        let end = end.ok_or(Failure::Argument("the part is not inside its region"))?;
        Ok(region.slice(self.offset..end))
    }
}

/// Puts `len` bytes to the place at `offset` in a remote region. Does not block: the buffer may be
/// used again when the call returns.
///
/// Returns the ticket of the operation, which is at least 0, or an error: busy, without effect, or
/// a fault. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_put(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    from: Bytes,
    len: usize,
    with: In<ayre_options>,
) -> i64 {
    let at_once = || {
        if !with.is_null() {
            return None;
        }
        let from = from.few(len, AT_ONCE)?;
        let ticket = port.held().ok()?.put_quick(remote.shared().ok()?, offset, from)?;
        Some(ticket.0 as i64)
    };
    quickly(at_once).unwrap_or_else(|| put(port, remote, offset, (from, len), with))
}

/// The most bytes for which a put is compiled into its function: a line of the caches.
const AT_ONCE: usize = 64;

#[inline(never)]
fn put(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    (from, len): (Bytes, usize),
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.put(remote.shared()?, offset, from.bytes(len)?, with.options())?))
}

/// Puts `count` pieces of memory, one behind the other, as one operation. The rest is as for
/// `ayre_put`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_putv(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    from: In<iovec>,
    count: usize,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let from = from.slices(count)?;
        Ok(port.held()?.put(remote.shared()?, offset, &from[..], with.options())?)
    })
}

/// Puts a part of a region. The part is read until the operation has completed: do not change it
/// before a requester notification or `ayre_flush`. The rest is as for `ayre_put`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_put_part(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    from: In<ayre_part>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.put(remote.shared()?, offset, from.slice()?, with.options())?))
}

/// Puts rows of a matrix, which lie in `len` bytes from `from` on. The rest is as for `ayre_put`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_put_rows(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    from: Bytes,
    len: usize,
    rows: In<ayre_rows>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let (from, rows) = (from.bytes(len)?, rows.rows()?);
        Ok(port.held()?.put_strided(remote.shared()?, offset, from, rows, with.options())?)
    })
}

/// Puts rows of a matrix in a part of a region. The rest is as for `ayre_put_part`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_put_part_rows(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    from: In<ayre_part>,
    rows: In<ayre_rows>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let (from, rows) = (from.slice()?, rows.rows()?);
        Ok(port.held()?.put_strided(remote.shared()?, offset, from, rows, with.options())?)
    })
}

/// Gets `len` bytes from the place at `offset` in a remote region. Blocks until they are there.
/// Returns the ticket, or an error. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_get(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    into: Buffer,
    len: usize,
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.get(remote.shared()?, offset, into.buffer(len)?, with.options())?))
}

/// Gets into `count` pieces of memory, one behind the other, as one operation. They do not overlap.
/// The rest is as for `ayre_get`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_getv(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    into: In<iovec>,
    count: usize,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let mut into = into.slices_mut(count)?;
        Ok(port.held()?.get(remote.shared()?, offset, &mut into[..], with.options())?)
    })
}

/// Gets into a part of a region. Does not block: the data is there with the completer notification,
/// or after `ayre_flush`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_get_part(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    into: In<ayre_part>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.get(remote.shared()?, offset, into.slice()?, with.options())?))
}

/// Gets rows of a matrix into `len` bytes from `into` on. The rest is as for `ayre_get`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_get_rows(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    into: Buffer,
    len: usize,
    rows: In<ayre_rows>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let (into, rows) = (into.buffer(len)?, rows.rows()?);
        Ok(port.held()?.get_strided(remote.shared()?, offset, into, rows, with.options())?)
    })
}

/// Gets rows of a matrix into a part of a region. The rest is as for `ayre_get_part`.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_get_part_rows(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    into: In<ayre_part>,
    rows: In<ayre_rows>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let (into, rows) = (into.slice()?, rows.rows()?);
        Ok(port.held()?.get_strided(remote.shared()?, offset, into, rows, with.options())?)
    })
}

/// Puts a word of eight bytes, which is never seen in part. `offset` is a multiple of eight. Does
/// not block. Returns the ticket, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_put_word(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    value: u64,
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.put_immediate(remote.shared()?, offset, value, with.options())?))
}

/// Notifies a peer, behind all operations on it that were posted before. Does not block. Returns
/// the ticket, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_notify(
    port: Out<ayre_port>,
    peer: ayre_peer,
    with: In<ayre_options>,
) -> i64 {
    posted(|| Ok(port.held()?.notify(PeerId(peer), with.options())?))
}

/// Performs an atomic without a result. Does not block. Returns the ticket, or an error.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_update(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    what: In<ayre_atomic_op>,
    with: In<ayre_options>,
) -> i64 {
    posted(|| {
        let what = what.given()?.atomic()?;
        Ok(port.held()?.atomic(remote.shared()?, offset, what, with.options())?)
    })
}

/// Performs an atomic, and brings its result. Blocks until it is there. `result` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_fetch(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    what: In<ayre_atomic_op>,
    with: In<ayre_options>,
    result: Out<ayre_fetched>,
) -> c_int {
    status(|| {
        let (what, remote) = (what.given()?.atomic()?, remote.shared()?);
        result.fill(port.held()?.fetch(remote, offset, what, with.options())?);
        Ok(())
    })
}

/// Adds to a word of eight bytes, and brings the word before. Blocks until it is there. `before`
/// may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_fetch_add(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    addend: u64,
    before: Out<u64>,
) -> c_int {
    let at_once = || {
        let word = port.held().ok()?.fetch_add_quick(remote.shared().ok()?, offset, addend)?;
        before.fill(word);
        Some(error::AYRE_OK)
    };
    quickly(at_once).unwrap_or_else(|| fetch_add(port, remote, offset, addend, before))
}

#[inline(never)]
fn fetch_add(
    port: Out<ayre_port>,
    remote: In<ayre_remote_region>,
    offset: u64,
    addend: u64,
    before: Out<u64>,
) -> c_int {
    status(|| {
        before.fill(port.held()?.fetch_add(remote.shared()?, offset, addend)?);
        Ok(())
    })
}
