//! Functions of libfabric's core, looked up at run time: parameters and the log.
//!
//! Nothing of libfabric is linked: the library, its symbol versions and the visibility of its names
//! differ from program to program. Functions that are not found are not used.

use crate::abi::{LOG_INFO, LOG_WARN, PARAM_STRING, Provider};
use ayre_guest::copy;
use libloading::os::unix::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

type Define =
    unsafe extern "C" fn(*const Provider, *const c_char, u32, *const c_char, ...) -> c_int;
type Get = unsafe extern "C" fn(*mut Provider, *const c_char, *mut c_void) -> c_int;
type IsEnabled = unsafe extern "C" fn(*const Provider, c_int, c_int) -> c_int;
type Log =
    unsafe extern "C" fn(*const Provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);

/// By what libfabric knows us, once it has been told.
static PROVIDER: OnceLock<Known> = OnceLock::new();

struct Known(*mut Provider);

// SAFETY: it is handed back to libfabric only, which guards its part of it itself.
unsafe impl Send for Known {}
// SAFETY: as above.
unsafe impl Sync for Known {}

/// By what libfabric is to know us in all that follows; before, it is neither told nor asked.
pub(crate) fn introduce(provider: *mut Provider) {
    PROVIDER.get_or_init(|| Known(provider));
}

fn provider() -> Option<*mut Provider> {
    PROVIDER.get().map(|known| known.0)
}

/// The functions that were found. The library is the one that has loaded us, so it outlives our
/// code.
struct Functions {
    define: Option<Define>,
    get: Option<Get>,
    is_enabled: Option<IsEnabled>,
    log: Option<Log>,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

fn functions() -> &'static Functions {
    FUNCTIONS.get_or_init(|| {
        let libraries = [loaded(), Some(ManuallyDrop::new(Library::this()))];
        let find = |name: &[u8]| {
            libraries.iter().flatten().find_map(|library| {
                // SAFETY: only the address is taken here; each caller below names the type that
                // libfabric's headers give to this function.
                let symbol = unsafe { library.get::<*mut c_void>(name) };
                symbol.ok().map(|symbol| symbol.into_raw()).filter(|at| !at.is_null())
            })
        };
        // SAFETY: the functions have these types in every version of the interface.
        unsafe {
            Functions {
                define: find(b"fi_param_define\0")
                    .map(|at| std::mem::transmute::<*mut c_void, Define>(at)),
                get: find(b"fi_param_get\0").map(|at| std::mem::transmute::<*mut c_void, Get>(at)),
                is_enabled: find(b"fi_log_enabled\0")
                    .map(|at| std::mem::transmute::<*mut c_void, IsEnabled>(at)),
                log: find(b"fi_log\0").map(|at| std::mem::transmute::<*mut c_void, Log>(at)),
            }
        }
    })
}

/// The libfabric that is in the process already, even where its names are hidden from others.
fn loaded() -> Option<ManuallyDrop<Library>> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: with RTLD_NOLOAD no code is loaded or run.
    let library = unsafe { Library::open(Some("libfabric.so.1"), flags) };
    // Never closed: that would be one use less than the program counts on.
    library.ok().map(ManuallyDrop::new)
}

/// Makes a parameter known that is a text, for `fi_info -e` to list and for [`text_parameter`] to
/// read.
pub(crate) fn define(name: &CStr, help: &CStr) {
    if let (Some(provider), Some(define)) = (provider(), functions().define) {
        // SAFETY: the core copies both texts. The help has no conversions, so nothing is taken
        // from the arguments that are not there.
        unsafe { define(provider, name.as_ptr(), PARAM_STRING, help.as_ptr()) };
    }
}

/// The user's value of a text parameter.
pub(crate) fn text_parameter(name: &CStr) -> Option<String> {
    let (provider, get) = (provider()?, functions().get?);
    let mut value: *const c_char = std::ptr::null();
    // SAFETY: the parameter was defined as a string, which is what the core writes: one of the
    // environment.
    let status = unsafe { get(provider, name.as_ptr(), (&raw mut value).cast()) };
    // SAFETY: null, or that string, which is copied before anybody changes the environment.
    let text = unsafe { copy::text(value) };
    text.filter(|_| status == 0).map(|text| text.to_string_lossy().into_owned())
}

/// Tells the user something, if he wants to know.
pub(crate) fn tell(area: c_int, what: fmt::Arguments<'_>) {
    log((LOG_INFO, area), what);
}

/// Tells the user of something that is in the way.
pub(crate) fn warn(area: c_int, what: fmt::Arguments<'_>) {
    log((LOG_WARN, area), what);
}

/// Tells the user something, where libfabric's log is on up to this level (`FI_LOG_LEVEL=warn`).
pub(crate) fn log((level, area): (c_int, c_int), what: fmt::Arguments<'_>) {
    let Some(provider) = provider() else { return };
    let Functions { is_enabled: Some(is_enabled), log: Some(log), .. } = functions() else {
        return;
    };
    // SAFETY: it takes any numbers and looks at its own settings.
    if unsafe { is_enabled(provider, level, area) } == 0 {
        return;
    }
    let Ok(text) = CString::new(what.to_string()) else { return };
    // SAFETY: a format with one conversion, and the string for it.
    unsafe {
        log(provider, level, area, c"ayre".as_ptr(), 0, c"%s\n".as_ptr(), text.as_ptr());
    }
}
