//! What goes on while ports are set up, connected and ended, for people to read.
//!
//! What is told goes to the program's own `tracing` subscriber, if it has one; else to standard
//! error, a line each, as `AYRE_LOG` says. Nothing on the way of data tells anything.
use crate::process::whose;
use crate::{clock, settings};
use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
pub use tracing::Level;
use tracing::dispatcher::has_been_set;
use tracing::level_filters::LevelFilter;

/// What takes the lines in place of standard error.
type Sink = fn(Level, &str);

static SINK: OnceLock<Sink> = OnceLock::new();

/// Tells something of a level: `tell!(WARN, "{peer} does not answer")`.
macro_rules! tell {
    ($level:ident, $($text:tt)+) => {
        $crate::log::write($crate::log::Level::$level, format_args!($($text)+))
    };
}
pub(crate) use tell;

/// Has lines go there as well, for libraries that have a log of their own: to standard error they
/// go only if the user has set `AYRE_LOG`. The first one counts.
pub fn set_sink(sink: fn(Level, &str)) {
    let _ = SINK.set(sink);
}

/// Up to which level lines go to standard error.
fn limit() -> LevelFilter {
    static LIMIT: OnceLock<LevelFilter> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        // What is wrong with it is told by the port that is opened.
        let asked = settings::log().ok().flatten();
        let usual = if SINK.get().is_some() { LevelFilter::OFF } else { LevelFilter::WARN };
        asked.unwrap_or(usual)
    })
}

/// Lines that peers may cause in a time: beyond these, nothing is told until it is over.
const LINES_MAX: u32 = 100;
const LINES_TIME: Duration = Duration::from_secs(10);

/// Whether a line is one of those that may be told now.
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
        // In one piece, because others write there too; who cannot be told is not.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    if let Some(sink) = SINK.get() {
        sink(level, &text.to_string());
    }
}
