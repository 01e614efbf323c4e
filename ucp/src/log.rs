//! Lines for the user, on standard error, as `UCX_LOG_LEVEL` says.

use ayre_guest::error::is_new;
use std::sync::LazyLock;

/// The user's choice, of [`LEVELS`].
static LEVEL: LazyLock<usize> = LazyLock::new(|| {
    let chosen = std::env::var("UCX_LOG_LEVEL").unwrap_or_default().to_lowercase();
    LEVELS.iter().position(|level| *level == chosen).unwrap_or(WARN)
});

/// UCX's names, the most silent one first.
const LEVELS: [&str; 7] = ["none", "fatal", "error", "warn", "diag", "info", "debug"];
const WARN: usize = 3;
const INFO: usize = 5;

/// Tells the user of something that is in the way, once.
pub(crate) fn warn(text: &str) {
    tell(WARN, text);
}

/// Takes the engine's lines: programs go on in spite of them.
pub(crate) fn of_engine(_level: ayre::log::Level, text: &str) {
    tell(INFO, text);
}

fn tell(level: usize, text: &str) {
    if *LEVEL >= level && is_new(text) {
        eprintln!("ayre (libucp): {text}");
    }
}
