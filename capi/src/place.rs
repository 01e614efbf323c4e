//! Handles, and the places of what they name.
//!
//! ```text
//!   handle --> | mark | value |     a place: its memory is never given back
//!                 ^ of its kind while the handle is open, one more while a call uses it, else 0
//! ```
//!
//! A place outlives its handle. So a handle that was closed is an error, and no access to memory
//! that belongs to something else by now. Free places are used again in the order in which they
//! became free, and only while there are more than a few.
use crate::error::{Failure, Outcome};
use ayre::active::Call;
use ayre::stream::Flow;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Places that rest before one is used again. A handle is found out for as long after its end.
const RESTING: usize = 64;

/// A number that this process has not had before, from 1.
pub(crate) fn serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Where a value is that a handle names.
///
/// No ordering is needed: one thread at a time uses a handle, and threads that hand it over order
/// that themselves. The mark comes first, so that it is found where a handle of another kind is
/// given.
#[repr(C)]
#[derive(Debug)]
pub struct Place<T> {
    mark: AtomicU32,
    /// There is one unless the mark is 0.
    value: UnsafeCell<Option<T>>,
}

/// A kind of handle: the type is opaque in C.
///
/// # Safety
/// The type is a [`Place`] and nothing else.
pub unsafe trait Handle: Sized + 'static {
    /// The Rust value behind it.
    type Value: 'static;
    /// Its name in C.
    const NAME: &'static str;
    /// The mark of places whose handle is open.
    const MARK: u32 = mark(Self::NAME);

    /// The free places of this kind.
    fn pool() -> &'static Pool<Self::Value>;
}

/// Declares that an opaque type of C is a kind of handle.
macro_rules! handle {
    ($handle:ident of $value:ty) => {
        // SAFETY: the type is transparent, and has a place in it.
        unsafe impl $crate::place::Handle for $handle {
            type Value = $value;
            const NAME: &'static str = stringify!($handle);

            fn pool() -> &'static $crate::place::Pool<$value> {
                static POOL: $crate::place::Pool<$value> = $crate::place::Pool::new();
                &POOL
            }
        }
    };
}
pub(crate) use handle;

/// The mark of a place is this one more than that of its kind while a call uses it.
const IN_USE: u32 = 1;

/// An even number that memory hardly has by chance: FNV-1a of the name.
const fn mark(name: &str) -> u32 {
    let (bytes, mut mark, mut at) = (name.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        mark = (mark ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    mark & !IN_USE
}

/// The free places of one kind.
#[derive(Debug)]
pub struct Pool<T: 'static>(Mutex<VecDeque<Free<T>>>);

#[derive(Debug)]
struct Free<T: 'static>(&'static Place<T>);

// SAFETY: a free place has no value, and the pool alone has it.
unsafe impl<T> Send for Free<T> {}

impl<T> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    fn take(&self) -> &'static Place<T> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match free.pop_front() {
            Some(Free(place)) if free.len() >= RESTING => place,
            rested => {
                rested.into_iter().for_each(|place| free.push_front(place));
                let (mark, value) = (AtomicU32::new(0), UnsafeCell::new(None));
                Box::leak(Box::new(Place { mark, value }))
            }
        }
    }

    fn give(&self, place: &'static Place<T>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(Free(place));
    }
}

/// Gives a handle out.
pub(crate) fn open<H: Handle>(value: H::Value) -> *mut H {
    let place = H::pool().take();
    // SAFETY: nobody else has the place yet.
    unsafe { *place.value.get() = Some(value) };
    place.mark.store(H::MARK, Ordering::Relaxed);
    std::ptr::from_ref(place).cast_mut().cast()
}

/// Ends a handle. Returns what it named.
///
/// # Safety
/// The pointer is NULL, or was a handle once.
pub(crate) unsafe fn close<H: Handle>(handle: *mut H) -> Outcome<H::Value> {
    // SAFETY: the caller's promise.
    let mut held = unsafe { held(handle) }?;
    let place = held.place;
    held.mark = 0;
    // SAFETY: it is held.
    let value = unsafe { (*place.value.get()).take() };
    drop(held);
    H::pool().give(place);
    value.ok_or(Failure::Handle(H::NAME))
}

/// The value of a handle that functions only read.
///
/// # Safety
/// The pointer is NULL, or was a handle once, and no other thread closes it meanwhile.
#[inline(always)]
pub(crate) unsafe fn shared<'a, H: Handle>(handle: *const H) -> Outcome<&'a H::Value> {
    // SAFETY: the caller's promise.
    let (place, mark) = unsafe { place(handle) }?;
    if mark != H::MARK {
        return Err(Failure::Handle(H::NAME));
    }
    // SAFETY: values of such kinds are never changed while they are open, and the mark says so.
    Ok(unsafe { (*place.value.get()).as_ref().unwrap_unchecked() })
}

/// The value of a handle, for this call alone.
///
/// # Safety
/// The pointer is NULL, or was a handle once, and no other thread closes it meanwhile.
#[inline(always)]
pub(crate) unsafe fn held<H: Handle>(handle: *mut H) -> Outcome<Held<H::Value>> {
    // SAFETY: the caller's promise.
    let (place, mark) = unsafe { place(handle) }?;
    // A program that uses a handle in two threads at once is found out in most cases, and one that
    // uses it in a function that the handle's own call has called, in all.
    if mark != H::MARK {
        let is_in_use = mark == H::MARK + IN_USE;
        return Err(if is_in_use { Failure::InUse(H::NAME) } else { Failure::Handle(H::NAME) });
    }
    place.mark.store(H::MARK + IN_USE, Ordering::Relaxed);
    Ok(Held { place, mark })
}

/// Whether an address is not 0, and aligned as a place is.
#[inline(always)]
fn can_be_at<H: Handle>(address: usize) -> bool {
    // One test instead of two, in each call: 0 less the alignment has the highest bit, which no
    // address of a process has.
    let aligned = align_of::<Place<H::Value>>();
    address.wrapping_sub(aligned).rotate_left(1) & (2 * aligned - 1) == 0
}

/// The place of a handle, and its mark.
///
/// # Safety
/// As for [`shared`].
#[inline(always)]
unsafe fn place<H: Handle>(handle: *const H) -> Outcome<(&'static Place<H::Value>, u32)> {
    let place = handle.cast::<Place<H::Value>>();
    if !can_be_at::<H>(place.addr()) {
        return Err(Failure::Handle(H::NAME));
    }
    // SAFETY: the callers' promise; places are never freed.
    let place = unsafe { &*place };
    Ok((place, place.mark.load(Ordering::Relaxed)))
}

/// The value of a handle that is in use by one call.
#[derive(Debug)]
pub(crate) struct Held<T: 'static> {
    place: &'static Place<T>,
    /// The mark that the place gets at the end.
    mark: u32,
}

impl<T> Held<T> {
    /// Replaces the value by what is made of it.
    pub(crate) fn become_of(&mut self, make: impl FnOnce(T) -> T) {
        // Where `make` panics, the handle is closed.
        let mark = std::mem::take(&mut self.mark);
        // SAFETY: it is held.
        let slot = unsafe { &mut *self.place.value.get() };
        *slot = slot.take().map(make);
        self.mark = mark;
    }
}

impl<T> Drop for Held<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.mark.store(self.mark, Ordering::Relaxed);
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is held, and its mark has said that there is a value.
        unsafe { (*self.place.value.get()).as_ref().unwrap_unchecked() }
    }
}

impl<T> DerefMut for Held<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { (*self.place.value.get()).as_mut().unwrap_unchecked() }
    }
}

/// A type whose values are lent to callbacks by handles.
///
/// # Safety
/// `Forever` is the type itself, with `'static` for its lifetimes.
pub(crate) unsafe trait Lent {
    /// The type of a loan.
    type Forever: 'static;
}

// SAFETY: it is the type itself.
unsafe impl Lent for Call<'_> {
    type Forever = Call<'static>;
}

// SAFETY: it is the type itself.
unsafe impl Lent for Flow<'_> {
    type Forever = Flow<'static>;
}

/// A value that belongs to the caller of a callback.
#[derive(Debug)]
pub struct Loan<T>(NonNull<T>);

impl<T> Deref for Loan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a place has a loan only while its value is lent: see `Lender::during`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Loan<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the place is in use by one call.
        unsafe { self.0.as_mut() }
    }
}

/// A handle that has a value only while a callback runs. Each run lends it another one.
#[derive(Debug)]
pub(crate) struct Lender<H: Handle>(&'static Place<H::Value>);

// SAFETY: the place has no value, except while `during` runs.
unsafe impl<H: Handle> Send for Lender<H> {}

impl<H: Handle> Lender<H> {
    pub(crate) fn new() -> Self {
        Self(H::pool().take())
    }

    /// Runs a callback with a handle of a value.
    pub(crate) fn during<L: Lent, R>(&mut self, lent: &mut L, run: impl FnOnce(*mut H) -> R) -> R
    where
        H: Handle<Value = Loan<L::Forever>>,
    {
        // SAFETY: the place is this lender's, which lends one value at a time.
        unsafe { *self.0.value.get() = Some(Loan(NonNull::from(lent).cast())) };
        self.0.mark.store(H::MARK, Ordering::Relaxed);
        let _lending = Lending(self.0);
        run(std::ptr::from_ref(self.0).cast_mut().cast())
    }
}

impl<H: Handle> Drop for Lender<H> {
    fn drop(&mut self) {
        H::pool().give(self.0);
    }
}

/// The time of a loan: it ends also where a callback does not return.
struct Lending<T: 'static>(&'static Place<T>);

impl<T> Drop for Lending<T> {
    fn drop(&mut self) {
        self.0.mark.store(0, Ordering::Relaxed);
        // SAFETY: the place is a lender's, and no call uses it, as the callback has ended.
        unsafe { *self.0.value.get() = None };
    }
}
