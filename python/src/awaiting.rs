//! Waits in an event loop of Python's: the loop watches the descriptor of a port.
//!
//! The waits themselves are coroutines, in `ayre/aio.py`.
use crate::error::{Failure, Outcome};
use crate::message::{Messages, Notifications};
use crate::port::Port;
use crate::queue::Queue;
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd};

/// Makes a coroutine by a function of `ayre.aio`.
fn coroutine<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("ayre.aio")?.getattr(function)?.call1(arguments)
}

#[pymethods]
impl Port {
    /// The descriptor of the port, for `select` and event loops. It is readable when something has
    /// come while the port rests. Nobody but the port reads it.
    fn fileno(&self) -> Outcome<i32> {
        self.with(|port| Ok::<_, Failure>(port.as_fd().as_raw_fd()))
    }

    /// Prepares for a sleep at the port's descriptor. True if the program may sleep: then the
    /// descriptor is readable as soon as something comes, until `wake` ends the rest. Does not
    /// block.
    ///
    /// False if messages, notifications or deaths are to be taken, deaths by a `recv` or
    /// `wait_notification` with a timeout of 0. Without `messages` or `notifications` the program
    /// awaits none, and those that have come may lie untaken. A messenger runs handlers.
    ///
    /// The port does not know the program's queues, nor a messenger notifications: look at them
    /// after `rest`. In asyncio the methods that are awaited do all this.
    #[pyo3(signature = (messages=true, notifications=true))]
    fn rest(&self, messages: bool, notifications: bool) -> Outcome<bool> {
        self.rest_running_handlers(messages, notifications)
    }

    /// Ends a rest. Does not block.
    fn wake(&self) -> Outcome<()> {
        self.with(|port| {
            port.wake();
            Ok::<_, Failure>(())
        })
    }

    /// Awaits the next message, in the running loop of asyncio.
    ///
    /// Several tasks may wait: each message goes to one of them. A task that is cancelled has taken
    /// nothing. Raises PeerDiedError once for each peer that has died.
    fn recv_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        coroutine(slf.py(), "recv", (slf,))
    }

    /// Awaits the next notification. The rest is as for `recv_async`.
    fn notification<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        coroutine(slf.py(), "notification", (slf,))
    }

    /// Awaits the next record of a queue. The rest is as for `recv_async`.
    fn dequeue_async<'py>(
        slf: &Bound<'py, Self>,
        queue: &Bound<'py, Queue>,
    ) -> PyResult<Bound<'py, PyAny>> {
        coroutine(slf.py(), "dequeue", (slf, queue))
    }

    /// The object of `ayre.aio` that watches the descriptor.
    #[getter(_watcher)]
    fn watched_by(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.watcher().as_ref().map(|watcher| watcher.clone_ref(py))
    }

    #[setter(_watcher)]
    fn set_watcher(&self, watcher: Option<Py<PyAny>>) {
        let former = std::mem::replace(&mut *self.watcher(), watcher);
        drop(former);
    }
}

#[pymethods]
impl Messages {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let until = self.until.map(|until| until.as_secs_f64());
        coroutine(py, "next_message", (&self.port, until))
    }
}

#[pymethods]
impl Notifications {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let until = self.until.map(|until| until.as_secs_f64());
        coroutine(py, "next_notification", (&self.port, until))
    }
}
