//! The functions that programs call in place of the C library's. Each looks whether it is about a
//! stream, and is the C library's own otherwise.
//!
//! Their contracts are those of the C library: pointers that C passes are valid as its standard
//! says.
mod addresses;
mod bytes;
mod copies;
mod messages;
mod names;
mod numbered;
mod options;
mod processes;
mod set_up;
mod waits;

/// Runs when the library is loaded, before the program.
// SAFETY: the section holds functions that are called once, without a result.
#[allow(clippy::unnecessary_safety_comment, reason = "every unsafe attribute has one")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        crate::waiter::prepare();
        crate::sys::forks::watch();
        crate::policy::load();
        // SAFETY: the function is one of C, and needs nothing.
        unsafe { libc::atexit(at_exit) };
    }
    loaded
};

extern "C" fn at_exit() {
    crate::names::ending();
}
