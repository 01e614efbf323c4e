//! The agent's way to the launcher: a thread writes, so that neither a slow network nor a launcher
//! that is stopped keeps the agent from hearing what it is told.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};

use super::super::output::{Sink, Taker};
use super::channel::{self, Report};

/// Bytes that wait to be written before the ranks' output waits too.
const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// The reports that have not been written.
pub(super) struct Uplink {
    queue: Arc<Queue>,
    writer: JoinHandle<()>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Nothing more will come.
    is_closing: bool,
    /// The launcher reads no more.
    is_broken: bool,
    /// The ranks' output streams that nobody reads.
    unread: Vec<Sink>,
}

impl Uplink {
    /// Starts the thread.
    pub(super) fn open() -> Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned().context("the channel")?;
        let mut output = File::from(output);
        let queue = Arc::new(Queue::default());
        let of_writer = Arc::clone(&queue);
        let body = move || of_writer.write_all(&mut output);
        let writer = thread::Builder::new().name("uplink".to_owned()).spawn(body);
        Ok(Self { queue, writer: writer.context("starting the thread that reports")? })
    }

    /// Reports something, without waiting.
    pub(super) fn report(&self, report: &Report) {
        self.queue.push(channel::encode(report));
    }

    /// Takes no more of this output: ranks that go on writing find that nobody reads it.
    pub(super) fn refuse(&self, sink: Sink) {
        self.queue.lock().unread.push(sink);
    }

    /// The receiver of the ranks' output.
    pub(super) fn taker(&self) -> impl Taker + use<> {
        OutputTaker(Arc::clone(&self.queue))
    }

    /// Waits until everything is written, or nobody reads it.
    pub(super) fn close(self) {
        self.queue.lock().is_closing = true;
        self.queue.changed.notify_all();
        // A panic of the thread has been printed, and then there is nobody to report to.
        let _ = self.writer.join();
    }
}

struct OutputTaker(Arc<Queue>);

impl Taker for OutputTaker {
    fn take(&mut self, sink: Sink, lines: &[u8]) -> bool {
        self.0.wait_for_room();
        !self.0.lock().unread.contains(&sink)
            && self.0.push(channel::encode(&Report::Output { sink, text: lines.to_vec() }))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// False when nobody reads any more.
    fn push(&self, message: Vec<u8>) -> bool {
        let mut state = self.lock();
        if !state.is_broken {
            state.bytes += message.len();
            state.messages.push_back(message);
            self.changed.notify_all();
        }
        !state.is_broken
    }

    fn wait_for_room(&self) {
        let is_full = |state: &mut State| state.bytes > BACKLOG_BYTES_MAX && !state.is_broken;
        drop(self.changed.wait_while(self.lock(), is_full));
    }

    /// The writer: until everything is written, or nobody reads any more.
    fn write_all(&self, output: &mut File) {
        while let Some(message) = self.next() {
            if output.write_all(&message).is_err() {
                let mut state = self.lock();
                (state.is_broken, state.bytes) = (true, 0);
                state.messages.clear();
                self.changed.notify_all();
                return;
            }
        }
    }

    fn next(&self) -> Option<Vec<u8>> {
        let is_idle = |state: &mut State| state.messages.is_empty() && !state.is_closing;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        let mut state = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        let message = state.messages.pop_front()?;
        state.bytes -= message.len();
        self.changed.notify_all();
        Some(message)
    }
}
