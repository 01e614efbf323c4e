//! Handles, and the places of what they name.
//!
//! ```text
//!   handle --> | mark | in use | value |     a place: its memory is never given back
//!                 ^ of its kind while the handle is open, else 0
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    mark: AtomicU64,
    is_in_use: AtomicBool,
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
    const MARK: u64 = mark(Self::NAME);

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

/// A number that memory hardly has by chance: FNV-1a of the name.
const fn mark(name: &str) -> u64 {
    let (bytes, mut mark, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        mark = (mark ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    mark
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
                let (mark, is_in_use) = (AtomicU64::new(0), AtomicBool::new(false));
                Box::leak(Box::new(Place { mark, is_in_use, value: UnsafeCell::new(None) }))
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
    let place = unsafe { place(handle) }?;
    let held = Held::new(place, H::NAME)?;
    place.mark.store(0, Ordering::Relaxed);
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
pub(crate) unsafe fn shared<'a, H: Handle>(handle: *const H) -> Outcome<&'a H::Value> {
    // SAFETY: the caller's promise.
    let place = unsafe { place(handle) }?;
    // SAFETY: values of such kinds are never changed while they are open.
    match unsafe { (*place.value.get()).as_ref() } {
        Some(value) => Ok(value),
        None => Err(Failure::Handle(H::NAME)),
    }
}

/// The value of a handle, for this call alone.
///
/// # Safety
/// The pointer is NULL, or was a handle once, and no other thread closes it meanwhile.
pub(crate) unsafe fn held<H: Handle>(handle: *mut H) -> Outcome<Held<H::Value>> {
    // SAFETY: the caller's promise.
    Held::new(unsafe { place(handle) }?, H::NAME)
}

/// The place of a handle.
///
/// # Safety
/// As for [`shared`].
unsafe fn place<H: Handle>(handle: *const H) -> Outcome<&'static Place<H::Value>> {
    let place = handle.cast::<Place<H::Value>>();
    if place.is_null() || !place.is_aligned() {
        return Err(Failure::Handle(H::NAME));
    }
    // SAFETY: the callers' promise; places are never freed.
    let place = unsafe { &*place };
    let is_open = place.mark.load(Ordering::Relaxed) == H::MARK;
    if is_open { Ok(place) } else { Err(Failure::Handle(H::NAME)) }
}

/// The value of a handle that is in use by one call.
#[derive(Debug)]
pub(crate) struct Held<T: 'static> {
    place: &'static Place<T>,
    value: NonNull<T>,
}

impl<T> Held<T> {
    /// Replaces the value by what is made of it.
    pub(crate) fn become_of(&mut self, make: impl FnOnce(T) -> T) {
        // SAFETY: it is held. Where `make` panics, the place has no value any more.
        let slot = unsafe { &mut *self.place.value.get() };
        self.value = match slot.take() {
            Some(value) => NonNull::from(slot.insert(make(value))),
            None => self.value,
        };
    }

    fn new(place: &'static Place<T>, name: &'static str) -> Outcome<Self> {
        // A program that uses a handle in two threads at once is found out in most cases, and one
        // that uses it in a function that the handle's own call has called, in all.
        if place.is_in_use.load(Ordering::Relaxed) {
            return Err(Failure::InUse(name));
        }
        // SAFETY: the place is not in use.
        let Some(value) = (unsafe { (*place.value.get()).as_mut() }) else {
            return Err(Failure::Handle(name));
        };
        let value = NonNull::from(value);
        place.is_in_use.store(true, Ordering::Relaxed);
        Ok(Self { place, value })
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.place.is_in_use.store(false, Ordering::Relaxed);
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is held, and its place is open.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.value.as_mut() }
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
        let place = H::pool().take();
        place.mark.store(H::MARK, Ordering::Relaxed);
        Self(place)
    }

    /// Runs a callback with a handle of a value.
    pub(crate) fn during<L: Lent, R>(&mut self, lent: &mut L, run: impl FnOnce(*mut H) -> R) -> R
    where
        H: Handle<Value = Loan<L::Forever>>,
    {
        // SAFETY: the place is this lender's, which lends one value at a time.
        unsafe { *self.0.value.get() = Some(Loan(NonNull::from(lent).cast())) };
        let _lending = Lending(self.0);
        run(std::ptr::from_ref(self.0).cast_mut().cast())
    }
}

impl<H: Handle> Drop for Lender<H> {
    fn drop(&mut self) {
        self.0.mark.store(0, Ordering::Relaxed);
        H::pool().give(self.0);
    }
}

/// The time of a loan: it ends also where a callback does not return.
struct Lending<T: 'static>(&'static Place<T>);

impl<T> Drop for Lending<T> {
    fn drop(&mut self) {
        // SAFETY: the place is a lender's, and no call uses it, as the callback has ended.
        unsafe { *self.0.value.get() = None };
    }
}
