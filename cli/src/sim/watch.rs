//! A run as its user sees it: a bar with the time that is left, and Ctrl-C as the end.

use std::io;
use std::sync::{Mutex, PoisonError};

use ayre_sim::scenario::Watch;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use rustix::process::Signal;

use crate::sys::SignalFd;

/// Watches a run. Until it is dropped, Ctrl-C ends the run only.
pub(super) struct Progress {
    /// It draws on standard error, and only if that is a terminal.
    bar: ProgressBar,
    signals: SignalFd,
    stopped: Mutex<bool>,
}

impl Progress {
    /// For a run of this number of packets.
    pub(super) fn new(packets: u64) -> io::Result<Self> {
        let style = "[{bar:40}] {percent} %, {eta} left (Ctrl-C: end with what there is)";
        let style = ProgressStyle::with_template(style).expect("the template is well-formed");
        let bar = ProgressBar::new(packets).with_style(style);
        Ok(Self {
            bar: bar.with_finish(ProgressFinish::AndClear),
            signals: SignalFd::new(&[Signal::INT, Signal::TERM])?,
            stopped: Mutex::new(false),
        })
    }
}

impl Watch for Progress {
    fn advanced(&self, packets: u64) {
        self.bar.inc(packets);
    }

    fn is_stopped(&self) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        *stopped |= matches!(self.signals.take(), Ok(Some(_)));
        *stopped
    }
}
