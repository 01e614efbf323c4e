//! Log messages for people, about set-up, connections and their ends.
//!
//! A message goes to the program's own `tracing` subscriber, if it has one; else to standard error,
//! one line each, by the level in `AYRE_LOG`. The data path logs nothing.
use crate::process::whose;
use crate::{clock, settings};
use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
pub use tracing::Level;
use tracing::dispatcher::has_been_set;
use tracing::level_filters::LevelFilter;

/// The function that takes lines in place of standard error.
type Sink = fn(Level, &str);

static SINK: OnceLock<Sink> = OnceLock::new();

/// Logs a message of a level: `tell!(WARN, "{peer} does not answer")`.
macro_rules! tell {
    ($level:ident, $($text:tt)+) => {
        $crate::log::write($crate::log::Level::$level, format_args!($($text)+))
    };
}
pub(crate) use tell;

/// Sends the lines to this function, too, for libraries that have a log of their own. Standard
/// error then gets them only if the user has set `AYRE_LOG`. Only the first call has an effect.
pub fn set_sink(sink: fn(Level, &str)) {
    let _ = SINK.set(sink);
}

/// The most detailed level that goes to standard error.
fn limit() -> LevelFilter {
    static LIMIT: OnceLock<LevelFilter> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        // The port that is being opened reports a wrong value.
        let asked = settings::log().ok().flatten();
        let usual = if SINK.get().is_some() { LevelFilter::OFF } else { LevelFilter::WARN };
        asked.unwrap_or(usual)
    })
}

/// The number of lines that peers may cause per period: further ones are dropped until the period
/// ends.
const LINES_MAX: u32 = 100;
const LINES_TIME: Duration = Duration::from_secs(10);

/// Whether a line may be written now, or is beyond the limit.
fn is_due(level: Level) -> bool {
    static TOLD: Mutex<Option<(Instant, u32)>> = Mutex::new(None);
    if level > Level::WARN {
        return true;
    }
    let (mut told, now) = (TOLD.lock().unwrap_or_else(PoisonError::into_inner), clock::now());
    let (since, lines) = told.filter(|(since, _)| now - *since < LINES_TIME).unwrap_or((now, 0));
    *told = Some((since, lines.saturating_add(1)));
    lines < LINES_MAX
}

#[cold]
pub(crate) fn write(level: Level, text: Arguments<'_>) {
    if !is_due(level) {
        return;
    }
    if has_been_set() {
        match level {
            Level::ERROR => tracing::error!(target: "ayre", "{text}"),
            Level::WARN => tracing::warn!(target: "ayre", "{text}"),
            Level::INFO => tracing::info!(target: "ayre", "{text}"),
            Level::DEBUG => tracing::debug!(target: "ayre", "{text}"),
            Level::TRACE => tracing::trace!(target: "ayre", "{text}"),
        }
    } else if level <= limit() {
        let (level, pid) = (level.as_str().to_ascii_lowercase(), std::process::id());
        let line = format!("ayre: {level}: {}{text} (process {pid})\n", whose());
        // One write, because other processes write there too. A line that cannot be written is
        // lost.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    if let Some(sink) = SINK.get() {
        sink(level, &text.to_string());
    }
}
