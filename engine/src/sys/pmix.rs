//! The client side of PMIx: the few calls of `libpmix` by which a rank meets the others.
//!
//! The library belongs to the launcher, and so does its version. It is opened when a launcher
//! speaks PMIx. These declarations fit versions 2 to 5 of the interface (`pmix.h`,
//! `pmix_common.h`). A value's payload had 16 bytes in version 2 and has 24 since. That makes no
//! difference to a caller that passes one information at a time and reads values in place.
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Names of the library; the number has been 2 since version 2 of the interface.
const LIBRARIES: [&str; 2] = ["libpmix.so.2", "libpmix.so"];

/// `PMIX_SUCCESS`.
const SUCCESS: c_int = 0;
/// `PMIX_ERR_TIMEOUT`.
const TIMED_OUT: c_int = -24;
/// `PMIX_OPERATION_SUCCEEDED`: complete at once, without a later call of the callback.
const DONE_AT_ONCE: c_int = -157;
/// `PMIX_GLOBAL`: processes of this host and of others may ask for it.
const GLOBAL: u8 = 3;
/// `PMIX_RANK_WILDCARD`: the job itself, or all of its ranks.
const ALL_RANKS: u32 = u32::MAX - 1;

/// Types of values: `PMIX_BOOL`, `PMIX_STRING`, `PMIX_INT` and `PMIX_UINT32`.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const INT: u16 = 6;
const UINT32: u16 = 14;

/// `PMIX_JOB_SIZE`, `PMIX_COLLECT_DATA` and `PMIX_TIMEOUT`.
const JOB_SIZE: &CStr = c"pmix.job.size";
const COLLECT_DATA: &CStr = c"pmix.collect";
const TIMEOUT: &CStr = c"pmix.timeout";

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    namespace: [c_char; 256],
    rank: u32,
}

/// `pmix_value_t`.
#[repr(C)]
struct Value {
    kind: u16,
    payload: Payload,
}

#[repr(C)]
union Payload {
    text: *mut c_char,
    flag: bool,
    number: u32,
    seconds: c_int,
    all: [u64; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: Value,
}

const _: () = {
    assert!(size_of::<Process>() == 260 && size_of::<Value>() == 32 && size_of::<Info>() == 552);
    assert!(std::mem::offset_of!(Value, payload) == 8 && std::mem::offset_of!(Info, value) == 520);
};

impl Info {
    fn new(key: &CStr, kind: u16, payload: Payload) -> Self {
        let mut name = [0; 512];
        for (to, from) in name.iter_mut().zip(key.to_bytes()) {
            *to = *from as c_char;
        }
        Self { key: name, flags: 0, value: Value { kind, payload } }
    }
}

/// The callback for the end of a fence.
type Told = unsafe extern "C" fn(c_int, *mut c_void);

/// The library's functions. The library is never closed: its threads may still be running.
struct Calls {
    init: unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence:
        unsafe extern "C" fn(*const Process, usize, *const Info, usize, Told, *mut c_void) -> c_int,
    get: unsafe extern "C" fn(
        *const Process,
        *const c_char,
        *const Info,
        usize,
        *mut *mut Value,
    ) -> c_int,
    describe: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Calls {
    fn load() -> Result<Self, Failure> {
        let open = |name: &&str| {
            // SAFETY: opening it runs what the launcher's own library runs in every program that is
            // linked with it.
            unsafe { Library::new(*name) }
        };
        let first = open(&LIBRARIES[0]);
        let library = first.or_else(|error| open(&LIBRARIES[1]).map_err(|_| error));
        let missing = |error: libloading::Error| Failure::Other(error.to_string());
        let library = ManuallyDrop::new(library.map_err(missing)?);
        // SAFETY: each function has the type that pmix.h declares, and stays where it is because
        // the library is never closed.
        unsafe {
            Ok(Self {
                init: *library.get(b"PMIx_Init\0").map_err(missing)?,
                finalize: *library.get(b"PMIx_Finalize\0").map_err(missing)?,
                put: *library.get(b"PMIx_Put\0").map_err(missing)?,
                commit: *library.get(b"PMIx_Commit\0").map_err(missing)?,
                fence: *library.get(b"PMIx_Fence_nb\0").map_err(missing)?,
                get: *library.get(b"PMIx_Get\0").map_err(missing)?,
                describe: *library.get(b"PMIx_Error_string\0").map_err(missing)?,
            })
        }
    }

    fn check(&self, status: c_int) -> Result<(), Failure> {
        match status {
            SUCCESS => return Ok(()),
            TIMED_OUT => return Err(Failure::TimedOut),
            _ => {}
        }
        // SAFETY: it takes any number and returns a constant string of the library's, or null.
        let text = unsafe { (self.describe)(status) };
        if text.is_null() {
            return Err(Failure::Other(format!("status {status}")));
        }
        // SAFETY: not null, see above.
        let text = unsafe { CStr::from_ptr(text) };
        Err(Failure::Other(text.to_string_lossy().into_owned()))
    }
}

/// The failure of a call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No answer came in time.
    TimedOut,
    /// The library's own text.
    Other(String),
}

/// This process as a client of the launcher's server, until it is dropped or has finished.
pub(crate) struct Client {
    calls: Calls,
    own: Process,
    is_running: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("rank", &self.own.rank).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects with the server that the environment names. The library limits the time of that.
    pub(crate) fn start() -> Result<Self, Failure> {
        let calls = Calls::load()?;
        let mut own = Process { namespace: [0; 256], rank: 0 };
        // SAFETY: it writes one Process; without information, none is read.
        let status = unsafe { (calls.init)(&mut own, null_mut(), 0) };
        calls.check(status)?;
        Ok(Self { calls, own, is_running: true })
    }

    pub(crate) fn rank(&self) -> u32 {
        self.own.rank
    }

    /// The number of ranks of the job.
    pub(crate) fn job_size(&self, timeout: Duration) -> Result<u32, Failure> {
        self.get_with(ALL_RANKS, JOB_SIZE, timeout, |value| match value.kind {
            // SAFETY: its type says which member is there.
            UINT32 => Some(unsafe { value.payload.number }),
            _ => None,
        })
    }

    /// Publishes a text, for others after the next fence.
    pub(crate) fn put(&self, key: &CStr, text: &str) -> Result<(), Failure> {
        let text = CString::new(text).map_err(|_| Failure::Other("a zero in a text".into()))?;
        let payload = Payload { text: text.as_ptr().cast_mut() };
        let mut value = Value { kind: STRING, payload };
        // SAFETY: key and value live until it returns, and it copies both.
        let status = unsafe { (self.calls.put)(GLOBAL, key.as_ptr(), &mut value) };
        self.calls.check(status)?;
        // SAFETY: it takes nothing.
        self.calls.check(unsafe { (self.calls.commit)() })
    }

    /// Waits until all ranks of the job have called it, and brings the texts that they have
    /// published.
    pub(crate) fn fence(&self, timeout: Duration) -> Result<(), Failure> {
        let (told, news) = channel();
        let all = Process { rank: ALL_RANKS, ..self.own };
        let collect = Info::new(COLLECT_DATA, BOOL, Payload { flag: true });
        let fence = Box::into_raw(Box::new(Fence { all, collect, told }));
        // SAFETY: the two arrays have one member each, in a box that lives until the callback.
        let status = unsafe {
            (self.calls.fence)(&(*fence).all, 1, &(*fence).collect, 1, tell, fence.cast())
        };
        if status != SUCCESS {
            // SAFETY: for a refused or immediate fence there is no callback: the box is still ours.
            drop(unsafe { Box::from_raw(fence) });
            return if status == DONE_AT_ONCE { Ok(()) } else { self.calls.check(status) };
        }
        let status = news.recv_timeout(timeout).map_err(|_| Failure::TimedOut)?;
        self.calls.check(status)
    }

    /// The text that a rank has published before a fence.
    pub(crate) fn get(&self, rank: u32, key: &CStr, timeout: Duration) -> Result<String, Failure> {
        self.get_with(rank, key, timeout, |value| {
            if value.kind != STRING {
                return None;
            }
            // SAFETY: its type says which member is there: null, or a string of the value's.
            unsafe {
                let text = value.payload.text;
                let text = if text.is_null() { return None } else { CStr::from_ptr(text) };
                text.to_str().ok().map(str::to_owned)
            }
        })
    }

    fn get_with<T>(
        &self,
        rank: u32,
        key: &CStr,
        timeout: Duration,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, Failure> {
        let of = Process { rank, ..self.own };
        let seconds = c_int::try_from(timeout.as_secs().max(1)).unwrap_or(c_int::MAX);
        let timeout = Info::new(TIMEOUT, INT, Payload { seconds });
        let mut value = null_mut();
        // SAFETY: all it reads lives until it returns, and it writes one pointer.
        let status = unsafe { (self.calls.get)(&of, key.as_ptr(), &timeout, 1, &mut value) };
        self.calls.check(status)?;
        if value.is_null() {
            return Err(Failure::Other("a value is missing".into()));
        }
        // SAFETY: the library has made this value for us, by malloc as its text. Only a value of
        // the expected type has nothing else to free; another one is leaked.
        let read = unsafe {
            let read = read(&*value);
            if read.is_some() {
                if (*value).kind == STRING {
                    libc::free((*value).payload.text.cast());
                }
                libc::free(value.cast());
            }
            read
        };
        read.ok_or_else(|| Failure::Other("a value has another type".into()))
    }

    /// Disconnects from the server.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.is_running) {
            // SAFETY: without information, none is read. Its result does not matter.
            let _ = unsafe { (self.calls.finalize)(null(), 0) };
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A fence that other ranks have yet to reach. It belongs to the library until the callback, which
/// may come after we have given up.
struct Fence {
    all: Process,
    collect: Info,
    told: Sender<c_int>,
}

/// The callback, on the library's thread, when a fence is over.
///
/// # Safety
/// `fence` is the pointer from [`Client::fence`], and comes back once.
unsafe extern "C" fn tell(status: c_int, fence: *mut c_void) {
    // SAFETY: a box was made into this pointer, and no other code makes it a box again.
    let fence = unsafe { Box::from_raw(fence.cast::<Fence>()) };
    // The waiting call may have given up.
    let _ = fence.told.send(status);
}
