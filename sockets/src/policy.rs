//! Which connections may go by rings. The environment is read before the program has threads: a
//! child that one forks while another one reads it would wait for ever.
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads the environment.
pub(crate) fn prepare() {
    if std::env::var_os("AYRE_SOCKETS").is_some_and(|value| value == "off") {
        turn_off();
    }
    let _ = meeting_folder();
}

/// Whether anything may.
pub(crate) fn is_on() -> bool {
    !IS_OFF.load(Ordering::Relaxed)
}

static IS_OFF: AtomicBool = AtomicBool::new(false);

/// New connections of this process go by the kernel from now on.
pub(crate) fn turn_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// The folder where programs of several network namespaces meet, if the user has named one.
pub(crate) fn meeting_folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os("AYRE_SOCKETS_MEET").map(PathBuf::from);
    FOLDER.get_or_init(named).as_deref()
}
