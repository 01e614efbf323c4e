//! Pointers that C gives, and all that is done with them.
//!
//! No Rust code makes a value of these types: each comes from C, under the contract at the head of
//! the header. A pointer is NULL, or it is valid during the call. Memory is as long as the length
//! beside it says, text ends with a zero byte, and a handle is one that the library has given out.
use crate::error::{Failure, Outcome, status};
use crate::place::{self, Handle, Held};
use ayre::collective::Value;
use ayre::endpoint::raw::{Span, Spans};
use ayre::{Port, Region};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::ptr::NonNull;

/// A pointer to something that the library reads, or to a handle whose value never changes.
#[repr(transparent)]
pub struct In<T>(*const T);

/// A pointer to something that the library writes, or to a handle that one call at a time uses.
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// Bytes that the library reads. Their number comes beside them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes(*const c_void);

/// Bytes that the library writes. Their number comes beside them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer(*mut c_void);

/// Text that the library reads.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

/// Room for text that the library writes. Its length comes beside it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct TextBuffer(*mut c_char);

/// A piece of memory, as `<sys/uio.h>` has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct iovec {
    base: Buffer,
    len: usize,
}

/// A pointer of the program's, which the library hands back as it is.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct User(*mut c_void);

// SAFETY: the library does not follow it. It goes to the thread that calls the port, and a program
// that moves a port between threads orders that itself.
unsafe impl Send for User {}

impl<T> std::fmt::Debug for In<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> std::fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> In<T> {
    pub(crate) const fn none() -> Self {
        Self(std::ptr::null())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The value, if there is one.
    pub(crate) fn get<'a>(self) -> Option<&'a T> {
        // SAFETY: the contract of the header.
        unsafe { self.0.as_ref() }
    }

    /// The value, which has to be there.
    pub(crate) fn given<'a>(self) -> Outcome<&'a T> {
        match self.get() {
            Some(value) => Ok(value),
            None => Err(Failure::Argument("a pointer is NULL")),
        }
    }

    /// This number of values.
    pub(crate) fn array<'a>(self, count: usize) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let first = std::ptr::from_ref(self.given()?);
        // SAFETY: the contract of the header; no memory is longer.
        Ok(unsafe { std::slice::from_raw_parts(first, possible::<T>(count)?) })
    }
}

impl<H: Handle> In<H> {
    /// The value that a handle names.
    #[inline(always)]
    pub(crate) fn shared<'a>(self) -> Outcome<&'a H::Value> {
        // SAFETY: the contract of the header.
        unsafe { place::shared(self.0) }
    }
}

impl<T> Out<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// That it is there.
    pub(crate) fn given(self) -> Outcome<()> {
        match self.0.is_null() {
            false => Ok(()),
            true => Err(Failure::Argument("the pointer for a result is NULL")),
        }
    }

    /// Writes a value, if C wants it.
    pub(crate) fn fill(self, with: impl Into<T>) {
        if !self.0.is_null() {
            // SAFETY: the contract of the header.
            unsafe { self.0.write(with.into()) };
        }
    }

    /// Writes one of several values.
    pub(crate) fn fill_at(self, at: usize, with: impl Into<T>) -> Outcome<()> {
        self.given()?;
        // SAFETY: the contract of the header: there is room for as many as the caller counts.
        unsafe { self.0.add(at).write(with.into()) };
        Ok(())
    }

    /// Changes the value, which is there.
    pub(crate) fn change<R>(self, change: impl FnOnce(&mut T) -> R) -> Outcome<R> {
        // SAFETY: the contract of the header; nobody else has the value during the call.
        match unsafe { self.0.as_mut() } {
            Some(value) => Ok(change(value)),
            None => Err(Failure::Argument("a pointer is NULL")),
        }
    }
}

impl<H: Handle> Out<H> {
    /// The value that a handle names, for this call alone.
    #[inline(always)]
    pub(crate) fn held(self) -> Outcome<Held<H::Value>> {
        // SAFETY: the contract of the header.
        unsafe { place::held(self.0) }
    }

    /// Ends the handle.
    pub(crate) fn close(self) -> Outcome<H::Value> {
        // SAFETY: the contract of the header.
        unsafe { place::close(self.0) }
    }
}

impl<H: Handle> Out<*mut H> {
    /// Gives a new handle out, for what is made; NULL where that fails.
    pub(crate) fn hand_out(self, make: impl FnOnce() -> Outcome<H::Value>) -> Outcome<()> {
        self.given()?;
        let made = make().map(place::open);
        self.fill(*made.as_ref().unwrap_or(&std::ptr::null_mut()));
        made.map(|_| ())
    }
}

impl In<iovec> {
    /// Pieces that the library reads.
    pub(crate) fn slices<'a>(self, count: usize) -> Outcome<Vec<IoSlice<'a>>> {
        let bytes = |piece: &iovec| Bytes(piece.base.0).bytes(piece.len).map(IoSlice::new);
        self.array(count)?.iter().map(bytes).collect()
    }

    /// Pieces that the library writes, none of which overlaps another one.
    pub(crate) fn slices_mut<'a>(self, count: usize) -> Outcome<Vec<IoSliceMut<'a>>> {
        let pieces = self.array(count)?;
        let range =
            |piece: &iovec| (piece.base.0.addr(), piece.base.0.addr().saturating_add(piece.len));
        let mut ranges: Vec<_> = pieces.iter().filter(|piece| piece.len > 0).map(range).collect();
        ranges.sort_unstable();
        if ranges.windows(2).any(|two| two[1].0 < two[0].1) {
            return Err(Failure::Argument("two pieces overlap"));
        }
        pieces.iter().map(|piece| piece.base.buffer(piece.len).map(IoSliceMut::new)).collect()
    }

    /// Pieces of memory that nobody may write until the end of an operation.
    pub(crate) fn spans_read(self, count: usize) -> Outcome<Spans> {
        self.spans_of(count, |piece| Bytes(piece.base.0).span(piece.len))
    }

    /// Pieces of memory that belong to an operation until its end.
    pub(crate) fn spans(self, count: usize) -> Outcome<Spans> {
        self.spans_of(count, |piece| piece.base.span(piece.len))
    }

    fn spans_of(self, count: usize, of: impl Fn(&iovec) -> Outcome<Span>) -> Outcome<Spans> {
        let spans: Vec<_> = self.array(count)?.iter().map(of).collect::<Outcome<_>>()?;
        Spans::new(spans).ok_or(Failure::Argument("there are more pieces than AYRE_ENDPOINT_IOV"))
    }
}

/// Closes a handle; NULL is none.
pub(crate) fn closed<H: Handle>(handle: Out<H>) -> c_int {
    status(|| if handle.is_null() { Ok(()) } else { handle.close().map(drop) })
}

/// Values that the library reads, and values that it writes, which do not overlap.
pub(crate) fn apart<'a, T: Value>(
    (from, from_count): (Bytes, usize),
    (into, into_count): (Buffer, usize),
) -> Outcome<(&'a [T], &'a mut [T])> {
    let bytes = |count| Ok::<_, Failure>(possible::<T>(count)? * size_of::<T>());
    let (reads, writes) = (from.0.addr(), into.0.addr());
    let (reads_end, writes_end) =
        (reads.saturating_add(bytes(from_count)?), writes.saturating_add(bytes(into_count)?));
    if reads.max(writes) < reads_end.min(writes_end) {
        return Err(Failure::Argument("the values that are read and written overlap"));
    }
    Ok((from.values(from_count)?, into.values(into_count)?))
}

impl Bytes {
    /// Values that the library reads.
    fn values<'a, T: Value>(self, count: usize) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let first = checked(self.0, count)?;
        // SAFETY: the contract of the header; no memory is longer, and any bytes are values.
        Ok(unsafe { std::slice::from_raw_parts(first, count) })
    }

    pub(crate) const fn none() -> Self {
        Self(std::ptr::null())
    }

    pub(crate) fn bytes<'a>(self, len: usize) -> Outcome<&'a [u8]> {
        match len {
            0 => Ok(&[]),
            _ if self.0.is_null() => Err(Failure::Argument("the buffer is NULL")),
            // SAFETY: the contract of the header; no memory is longer.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), possible::<u8>(len)?) }),
        }
    }

    /// A few bytes; nothing where it is none, or more than `most`.
    #[inline(always)]
    pub(crate) fn few<'a>(self, len: usize, most: usize) -> Option<&'a [u8]> {
        if len.wrapping_sub(1) >= most || self.0.is_null() {
            return None;
        }
        // SAFETY: the contract of the header.
        Some(unsafe { std::slice::from_raw_parts(self.0.cast(), len) })
    }

    /// Memory that nobody may write until the end of an operation.
    pub(crate) fn span(self, len: usize) -> Outcome<Span> {
        self.bytes(len)?;
        // SAFETY: the contract of the endpoints' functions.
        Ok(unsafe { Span::read_only(self.0.cast(), len) })
    }
}

impl User {
    pub(crate) fn number(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    pub(crate) fn with_number(number: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(number as usize))
    }
}

impl Buffer {
    pub(crate) const fn none() -> Self {
        Self(std::ptr::null_mut())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Values that the library writes.
    pub(crate) fn values<'a, T: Value>(self, count: usize) -> Outcome<&'a mut [T]> {
        if count == 0 {
            return Ok(&mut []);
        }
        let first = checked::<T>(self.0, count)?.cast_mut();
        // SAFETY: the contract of the header; no memory is longer, and any bytes are values.
        Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
    }

    pub(crate) fn buffer<'a>(self, len: usize) -> Outcome<&'a mut [u8]> {
        match len {
            0 => Ok(&mut []),
            _ if self.0.is_null() => Err(Failure::Argument("the buffer is NULL")),
            // SAFETY: the contract of the header; no memory is longer, and bytes that were never
            // written are only written.
            _ => Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), possible::<u8>(len)?) }),
        }
    }

    /// Memory that belongs to an operation until its end.
    pub(crate) fn span(self, len: usize) -> Outcome<Span> {
        self.buffer(len)?;
        // SAFETY: the contract of the endpoints' functions.
        Ok(unsafe { Span::new(self.0.cast(), len) })
    }

    /// Registers memory that stays.
    pub(crate) fn register(self, port: &mut Port, len: usize) -> Outcome<Region> {
        let base = NonNull::new(self.0.cast()).ok_or(Failure::Argument("the memory is NULL"))?;
        // SAFETY: the contract of `ayre_register`.
        Ok(unsafe { port.register_raw(base, len) }?)
    }
}

impl Text {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn text<'a>(self) -> Outcome<&'a str> {
        if self.0.is_null() {
            return Err(Failure::Argument("the text is NULL"));
        }
        // SAFETY: the contract of the header.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Failure::Argument("the text is no UTF-8"))
    }
}

impl TextBuffer {
    /// Writes text, cut where there is too little room.
    pub(crate) fn say(self, text: &str, room: usize) -> Outcome<()> {
        if let Some(last) = room.checked_sub(1) {
            let into = Buffer(self.0.cast()).buffer(room)?;
            let len = text.len().min(last);
            into[..len].copy_from_slice(&text.as_bytes()[..len]);
            into[len] = 0;
        }
        Ok(())
    }
}

/// The first of some values of a type.
fn checked<T>(first: *const c_void, count: usize) -> Outcome<*const T> {
    possible::<T>(count)?;
    let first = first.cast::<T>();
    match first.is_aligned() {
        _ if first.is_null() => Err(Failure::Argument("the pointer to the values is NULL")),
        false => Err(Failure::Argument("the values do not lie as their type has to")),
        true => Ok(first),
    }
}

/// A number of values that memory can have.
fn possible<T>(count: usize) -> Outcome<usize> {
    let bytes = count.checked_mul(size_of::<T>());
    match bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
        true => Ok(count),
        false => Err(Failure::Argument("no memory is that long")),
    }
}
