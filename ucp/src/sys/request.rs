//! Requests: what calls return for an operation that goes on.
//!
//! ```text
//!   memory of a pool, or of the program
//!   +-------------------------+----------------------------+
//!   | the head, 128 bytes     | the program's part         |
//!   +-------------------------+----------------------------+
//!                             ^ the request, as the program knows it
//! ```
//!
//! A request of the program's own has no program's part: not a byte of it may be touched.

use crate::abi::context::RequestInitFn;
use crate::abi::request::{EndFn, TagRecvInfo};
use crate::abi::status::Status;
use crate::sys::packing::Packing;
use ayre::endpoint::raw::{Context, Span, Spans};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI8, AtomicU8, Ordering};

/// Bytes of the head: `request_size` of the context's attributes.
pub(crate) const HEAD_BYTES: usize = 128;

/// The operation has ended, and its function was called.
const ENDED: u8 = 1;
/// The program has given the request back.
const GIVEN_BACK: u8 = 2;
/// It does not want to hear of the end any more.
const IS_DEAF: u8 = 4;

/// The program's function for an end, by what it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    Nobody,
    OfSend(EndFn),
    OfReceive(EndFn),
    /// Of data of an active message.
    OfData(EndFn),
}

#[repr(C, align(16))]
struct Head {
    /// How the operation stands, for the program.
    status: AtomicI8,
    state: AtomicU8,
    is_pooled: bool,
    /// How it has ended.
    outcome: Status,
    /// Bytes to unpack in the end.
    packing: Option<Box<Packing>>,
    told: Told,
    user: *mut c_void,
    info: TagRecvInfo,
    /// The worker that it belongs to.
    owner: *const c_void,
}

const _: () = assert!(size_of::<Head>() <= HEAD_BYTES && HEAD_BYTES.is_multiple_of(64));

/// A request. Its memory is there until its operation has ended and it was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(NonNull<Head>);

// SAFETY: its fields are the worker's that it belongs to, which one thread uses at a time. Others
// look at the status, and at the state, which are atomic.
unsafe impl Send for Request {}

/// The memory of requests that a pool makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Bytes of the program's part.
    pub(crate) size: usize,
    pub(crate) init: RequestInitFn,
    pub(crate) cleanup: RequestInitFn,
}

impl Kind {
    fn layout(&self) -> Layout {
        let size = HEAD_BYTES.checked_add(self.size);
        let size = size.and_then(|size| size.checked_next_multiple_of(64));
        let layout = size.and_then(|size| Layout::from_size_align(size, 64).ok());
        layout.expect("contexts refuse requests that are too large")
    }

    /// Makes a request, and has the program prepare its part.
    pub(crate) fn make(&self) -> Request {
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(self.layout()) };
        let Some(head) = NonNull::new(start.cast::<Head>()) else {
            handle_alloc_error(self.layout())
        };
        let request = Request(head);
        if let Some(init) = self.init {
            // SAFETY: the program's function for that, and its part of a request.
            unsafe { init(request.to_program()) };
        }
        request
    }

    /// Takes requests back that this has made, and that nobody uses any more: their worker has
    /// ended.
    pub(crate) fn unmake_all(&self, requests: Vec<Request>) {
        for request in requests {
            // SAFETY: the program's function for that, and its part of a request.
            self.cleanup.iter().for_each(|cleanup| unsafe { cleanup(request.to_program()) });
            // SAFETY: make() has made it, and it is given up here.
            unsafe { dealloc(request.0.as_ptr().cast(), self.layout()) };
        }
    }
}

impl Request {
    /// The request that the program knows by this address.
    ///
    /// # Safety
    /// A call has returned it, and the program has not given it back. Or an operation is about to
    /// begin, and [`HEAD_BYTES`] bytes before it are the program's for that, aligned to 16.
    #[inline(always)]
    pub(crate) unsafe fn of_program(request: *mut c_void) -> Self {
        debug_assert!(!request.is_null(), "requests are not null");
        // SAFETY: the head lies before the program's part.
        Self(unsafe { NonNull::new_unchecked(request.byte_sub(HEAD_BYTES).cast()) })
    }

    /// Its address for the program.
    #[inline(always)]
    pub(crate) fn to_program(self) -> *mut c_void {
        // SAFETY: the program's part lies behind the head.
        unsafe { self.0.as_ptr().byte_add(HEAD_BYTES).cast() }
    }

    /// The engine keeps this, and gives it back with the end.
    #[inline(always)]
    pub(crate) fn to_context(self) -> Context {
        self.label().into()
    }

    /// As the engine knows it, to take it back.
    #[inline(always)]
    pub(crate) fn label(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The request of an end. None where the engine tells of something that was not posted.
    #[inline(always)]
    pub(crate) fn of_context(context: Context) -> Option<Self> {
        // The engine has it from to_context(), and the memory is there until this end is noted.
        NonNull::new(std::ptr::with_exposed_provenance_mut(context as usize)).map(Self)
    }

    #[inline(always)]
    fn head<'a>(self) -> &'a Head {
        // SAFETY: the memory is there, and `begin` has written it.
        unsafe { self.0.as_ref() }
    }

    /// An operation begins.
    #[inline(always)]
    pub(crate) fn begin<T>(self, owner: &T, is_pooled: bool, (told, user): (Told, *mut c_void)) {
        let (status, state) = (AtomicI8::new(Status::IN_PROGRESS.0), AtomicU8::new(0));
        let (outcome, packing) = (Status::IN_PROGRESS, None);
        let info = TagRecvInfo { sender_tag: 0, length: 0 };
        let owner = (&raw const *owner).cast();
        let head = Head { status, state, is_pooled, outcome, packing, told, user, info, owner };
        // SAFETY: no operation uses it yet.
        unsafe { self.0.write(head) };
    }

    /// How the operation stands.
    #[inline(always)]
    pub(crate) fn status(self) -> Status {
        Status(self.head().status.load(Ordering::Acquire))
    }

    /// Tag and length of a receive that has ended.
    #[inline(always)]
    pub(crate) fn info(self) -> TagRecvInfo {
        self.head().info
    }

    /// The worker that it belongs to, as `begin` got it.
    pub(crate) fn owner<T>(self) -> *const T {
        self.head().owner.cast()
    }

    /// The operation is over these bytes. Where they lie in memory.
    pub(crate) fn keep(self, packing: Packing) -> Spans {
        // SAFETY: the operation has not begun, so the worker alone uses this.
        let kept = unsafe { &mut (*self.0.as_ptr()).packing };
        kept.insert(Box::new(packing)).spans()
    }

    /// As [`Self::keep`], in two parts.
    pub(crate) fn keep_parts(self, packing: Packing, first: usize) -> (Span, Span) {
        // SAFETY: the operation has not begun, so the worker alone uses this.
        let kept = unsafe { &mut (*self.0.as_ptr()).packing };
        kept.insert(Box::new(packing)).parts(first)
    }

    /// The operation has ended so. The program does not see that yet.
    #[inline(always)]
    pub(crate) fn conclude(self, outcome: Status, info: TagRecvInfo) {
        // SAFETY: until the status says that it has ended, the worker alone uses these.
        unsafe {
            (&raw mut (*self.0.as_ptr()).info).write(info);
            (&raw mut (*self.0.as_ptr()).outcome).write(outcome);
        }
    }

    /// Whether [`Self::conclude`] was called.
    #[inline(always)]
    pub(crate) fn is_concluded(self) -> bool {
        self.head().outcome != Status::IN_PROGRESS
    }

    /// The program sees how the operation has ended. From here on, a request of the program's own
    /// may be gone: another thread may have looked.
    #[inline(always)]
    pub(crate) fn publish(self) {
        // Release: what was received, tag and length. Acquire is in status().
        self.head().status.store(self.head().outcome.0, Ordering::Release);
    }

    /// Whether functions of the program's are to be called in the end.
    #[inline(always)]
    pub(crate) fn has_calls(self) -> bool {
        !matches!(self.head().told, Told::Nobody) || self.head().packing.is_some()
    }

    /// Unpacks what has come, before the end is published. No state of ours may be in use.
    pub(crate) fn unpack(self) {
        // SAFETY: until the status says that it has ended, this call alone uses these.
        let (packing, outcome) =
            unsafe { (&mut (*self.0.as_ptr()).packing, &mut (*self.0.as_ptr()).outcome) };
        if let Some(packing) = packing.take() {
            let has_come = matches!(*outcome, Status::OK | Status::MESSAGE_TRUNCATED);
            let unpacked = packing.unpack(if has_come { self.info().length } else { 0 });
            if *outcome == Status::OK {
                *outcome = unpacked;
            }
        }
    }

    /// Publishes the end, and calls the program's function, unless the program does not want to
    /// hear of it any more. No state of ours may be in use. Returns as [`Self::end`].
    pub(crate) fn tell(self) -> bool {
        self.unpack();
        let Head { is_pooled, outcome, told, user, info, .. } = *self.head();
        self.publish();
        if is_pooled && self.head().state.load(Ordering::Acquire) & IS_DEAF != 0 {
            return self.end();
        }
        let request = self.to_program();
        // SAFETY: functions of the program for ends of that kind.
        unsafe {
            match told {
                Told::OfSend(EndFn { send: Some(call) }) => call(request, outcome, user),
                Told::OfReceive(EndFn { recv: Some(call) }) => {
                    call(request, outcome, &raw const info, user);
                }
                Told::OfData(EndFn { recv_bytes: Some(call) }) => {
                    call(request, outcome, info.length, user);
                }
                _ => {}
            }
        }
        is_pooled && self.end()
    }

    /// Of a request of a pool, nothing of the operation is left to do. Whether the memory goes back
    /// to the pool: then nobody else has it.
    #[inline(always)]
    pub(crate) fn end(self) -> bool {
        debug_assert!(self.is_pooled(), "one of the program's may be gone");
        // AcqRel, as in give_back(): the later one of both sees all that the other one did.
        self.head().state.fetch_or(ENDED, Ordering::AcqRel) & GIVEN_BACK != 0
    }

    /// The program gives it back; a deaf one does not hear of its end. Whether the memory goes back
    /// to the pool at once.
    pub(crate) fn give_back(self, is_deaf: bool) -> bool {
        let Head { state, is_pooled, .. } = self.head();
        let how = if is_deaf { GIVEN_BACK | IS_DEAF } else { GIVEN_BACK };
        state.fetch_or(how, Ordering::AcqRel) & ENDED != 0 && *is_pooled
    }

    /// Whether its memory is a pool's.
    #[inline(always)]
    pub(crate) fn is_pooled(self) -> bool {
        self.head().is_pooled
    }
}
