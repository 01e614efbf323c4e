//! Endpoints: messages of any length by address and tag.
use crate::buffer::Room;
use crate::error::{Failure, Misuse, Outcome};
use crate::value::timeout;
use ayre::endpoint::{Address, Finished, Outcome as FinishedAs, Pattern, RequestId};
use ayre::guest::fork;
use ayre::{EndpointOptions, PostError, ReceiveError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The longest part of a wait: then the call looks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// A port that others find by its address, and whose messages go to the receives that match them.
///
/// It is opened as the user's variables `AYRE_*` say. A `local` one is reached by endpoints of this
/// host only. It is used by one thread at a time: another one gets InUseError. It makes progress in
/// its calls only. As a context manager it is closed at the end.
#[pyclass(frozen, module = "ayre", name = "Endpoint")]
#[derive(Debug)]
pub(crate) struct Endpoint {
    held: Mutex<Option<Held>>,
    /// The process that has opened it.
    generation: u64,
    /// Requests for which nobody will wait.
    forgotten: Mutex<Vec<RequestId>>,
    /// The object of `ayre.aio` that watches its descriptor, while tasks wait.
    watcher: Mutex<Option<Py<PyAny>>>,
}

/// An endpoint, and the requests that have finished and were not waited for yet.
#[derive(Debug)]
struct Held {
    endpoint: ayre::Endpoint,
    finished: HashMap<RequestId, Finished>,
    /// Requests under way for which nobody will wait.
    forgotten: HashSet<RequestId>,
}

impl Held {
    /// Makes progress, and keeps what has finished.
    fn progress(&mut self) {
        while let Some(finished) = self.endpoint.poll() {
            self.keep(finished);
        }
    }

    /// Sleeps until a request has finished, or the time is over.
    fn sleep(&mut self, at_most: Duration) {
        if let Some(finished) = self.endpoint.wait(Some(at_most)) {
            self.keep(finished);
        }
    }

    fn keep(&mut self, finished: Finished) {
        if !self.forgotten.remove(&finished.request) {
            self.finished.insert(finished.request, finished);
        }
    }

    /// Drops what these requests bring, now or later.
    fn forget(&mut self, requests: Vec<RequestId>) {
        for request in requests {
            if self.finished.remove(&request).is_none() {
                self.forgotten.insert(request);
            }
        }
    }
}

/// Another endpoint, as this one names it: `endpoint.remote` gives it.
#[pyclass(frozen, eq, hash, from_py_object, module = "ayre", name = "Remote")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Remote(ayre::endpoint::RemoteId);

#[pymethods]
impl Remote {
    fn __repr__(&self) -> String {
        format!("<ayre.Remote {}>", self.0.number())
    }
}

/// A message of an endpoint that was received, or waits to be.
#[pyclass(frozen, get_all, module = "ayre", name = "Received")]
#[derive(Debug)]
pub(crate) struct Received {
    /// The sender; None for one that this endpoint does not name.
    source: Option<Remote>,
    /// Its tag.
    tag: u64,
    /// The length of the message in bytes.
    length: u64,
    /// Its bytes, as far as there was room; None for a message that waits.
    data: Option<Py<PyBytes>>,
}

impl Received {
    fn new(found: ayre::endpoint::Received, data: Option<Py<PyBytes>>) -> Self {
        let tag = found.tag.unwrap_or_default();
        Self { source: found.source.map(Remote), tag, length: found.len, data }
    }
}

/// A send or a receive that was posted. `await request` waits in the running loop of asyncio, as
/// `wait` does. The endpoint keeps its bytes until it has finished; nobody has to wait for it.
#[pyclass(frozen, module = "ayre", name = "Posted")]
#[derive(Debug)]
pub(crate) struct Posted {
    /// The endpoint that has posted it.
    #[pyo3(get)]
    endpoint: Py<Endpoint>,
    /// None once it was waited for.
    request: Mutex<Option<RequestId>>,
}

impl Drop for Posted {
    fn drop(&mut self) {
        let request = self.request.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(request) = request {
            locked(&self.endpoint.get().forgotten).push(request);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint {
    fn with<T>(&self, call: impl FnOnce(&mut Held) -> Outcome<T>) -> Outcome<T> {
        if fork::generation() != self.generation {
            let what = "the endpoint is the parent process's: a forked child opens one of its own";
            return Err(Failure::Misuse(Misuse::Inherited, what.into()));
        }
        let mut held = match self.held.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let what = "the endpoint is in use: one thread at a time calls it";
                return Err(Failure::Misuse(Misuse::InUse, what.into()));
            }
        };
        let held = held.as_mut().ok_or_else(|| Failure::closed("the endpoint was closed"))?;
        held.forget(std::mem::take(&mut *locked(&self.forgotten)));
        call(held)
    }

    /// Makes a call again and again until it returns something, and sleeps between. Looks for
    /// signals meanwhile. None when the time is over.
    fn until<T: Send>(
        &self,
        py: Python<'_>,
        time: Option<Duration>,
        mut call: impl FnMut(&mut Held) -> Outcome<Option<T>> + Send,
    ) -> Outcome<Option<T>> {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        self.with(|held| {
            loop {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let found = py.detach(|| {
                    held.progress();
                    let found = call(held)?;
                    let time = left.map_or(SLICE, |left| left.min(SLICE));
                    if found.is_none() && !time.is_zero() {
                        held.sleep(time);
                        return call(held);
                    }
                    Ok(found)
                })?;
                if found.is_some() || left.is_some_and(|left| left.is_zero()) {
                    return Ok(found);
                }
                py.check_signals()?;
            }
        })
    }
}

/// The messages that a receive takes, as a caller gives them.
fn pattern(tag: Option<u64>, ignored: u64, source: Option<Remote>) -> Pattern {
    let pattern = tag.map_or_else(Pattern::any, Pattern::tag);
    let pattern = if tag.is_some() { pattern.ignoring(ignored) } else { pattern };
    source.map_or(pattern, |source| pattern.from(source.0))
}

fn late() -> Failure {
    Failure::Receive(ReceiveError::TimedOut)
}

impl Endpoint {
    fn post_send(
        slf: &Bound<'_, Self>,
        to: Remote,
        (data, tag): (&Bound<'_, PyAny>, u64),
        time: Option<Duration>,
    ) -> Outcome<Posted> {
        let mut room = Room::new();
        let mut buffer = room.bytes(data)?.to_vec();
        let posted = slf.get().until(slf.py(), time, |held| {
            match held.endpoint.post_send(to.0, tag, std::mem::take(&mut buffer)) {
                Ok(request) => Ok(Some(request)),
                Err(refused) => {
                    buffer = refused.buffer;
                    match refused.error {
                        PostError::Busy(_) => Ok(None),
                        fault => Err(fault.into()),
                    }
                }
            }
        })?;
        Ok(Posted::new(slf, posted.ok_or_else(late)?))
    }

    fn post_receive(slf: &Bound<'_, Self>, length: usize, pattern: Pattern) -> Outcome<Posted> {
        let request = slf.get().with(|held| {
            let posted = held.endpoint.post_receive(pattern, vec![0; length]);
            Ok(posted.map_err(|refused| refused.error)?)
        })?;
        Ok(Posted::new(slf, request))
    }

    /// Ends the waits of tasks, before the descriptor goes.
    fn unwatch(&self, py: Python<'_>) -> PyResult<()> {
        let watcher = locked(&self.watcher).take();
        watcher.map_or(Ok(()), |watcher| watcher.call_method0(py, "end").map(drop))
    }
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (local=false))]
    fn new(local: bool) -> Outcome<Self> {
        let options = EndpointOptions::of_variables()?;
        let options = if local { options.local() } else { options };
        let endpoint = Python::attach(|py| py.detach(|| ayre::Endpoint::open_with(&options)))?;
        let (finished, forgotten) = (HashMap::new(), HashSet::new());
        let held = Mutex::new(Some(Held { endpoint, finished, forgotten }));
        let (forgotten, watcher) = (Mutex::default(), Mutex::default());
        Ok(Self { held, generation: fork::generation(), forgotten, watcher })
    }

    /// Closes the endpoint. Blocks for a second at most, while messages to other hosts are
    /// delivered. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        if fork::generation() == self.generation {
            self.unwatch(py)?;
        }
        let held = match self.held.try_lock() {
            Ok(mut held) => held.take(),
            Err(TryLockError::Poisoned(held)) => held.into_inner().take(),
            Err(TryLockError::WouldBlock) => return self.with(|_| Ok(())),
        };
        py.detach(move || drop(held));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        self.close(kind.py())
    }

    /// Where others find the endpoint: text, to be passed on by any means. A process that knows it
    /// may send to the endpoint.
    #[getter]
    fn address(&self) -> Outcome<String> {
        self.with(|held| Ok(held.endpoint.address().to_text()))
    }

    /// Names the endpoint at an address, and begins to connect with it. Does not block.
    fn remote(&self, address: &str) -> Outcome<Remote> {
        let address = Address::from_text(address)
            .ok_or_else(|| Failure::argument("the text is no `address` of an endpoint"))?;
        self.with(|held| Ok(Remote(held.endpoint.remote(&address)?)))
    }

    /// Forgets a remote. Returns False if requests under way use it, or if it is unknown.
    fn forget(&self, remote: Remote) -> Outcome<bool> {
        self.with(|held| Ok(held.endpoint.forget(remote.0)))
    }

    /// Why a remote cannot be reached any more, as text; None while it can, or might.
    fn reason(&self, remote: Remote) -> Outcome<Option<String>> {
        self.with(|held| Ok(held.endpoint.reason(remote.0).map(ToString::to_string)))
    }

    /// Posts a message of any length. Messages to one endpoint arrive in order. Blocks while there
    /// is no room or the connection is being made, for `timeout` seconds; for ever without one.
    ///
    /// `data` is bytes, an array or another buffer: it is copied, and may be used again when the
    /// call returns. Raises PeerDeadError where the remote has gone, and TimedOutError.
    #[pyo3(name = "post_send", signature = (to, data, tag=0, timeout=None))]
    fn begin_send(
        slf: &Bound<'_, Self>,
        to: Remote,
        data: &Bound<'_, PyAny>,
        tag: u64,
        timeout: Option<f64>,
    ) -> Outcome<Posted> {
        Self::post_send(slf, to, (data, tag), self::timeout(timeout)?)
    }

    /// Posts a receive of at most `length` bytes. Does not block.
    ///
    /// It takes the oldest message with this tag, but for the bits that are `ignored`, from
    /// `source`. Without a tag it takes any, and without a source those of all endpoints. A part of
    /// the message for which there is no room is lost.
    #[pyo3(name = "post_receive", signature = (length, tag=None, ignored=0, source=None))]
    fn begin_receive(
        slf: &Bound<'_, Self>,
        length: usize,
        tag: Option<u64>,
        ignored: u64,
        source: Option<Remote>,
    ) -> Outcome<Posted> {
        Self::post_receive(slf, length, pattern(tag, ignored, source))
    }

    /// Sends a message as `post_send` does, and waits until its bytes have left the endpoint.
    #[pyo3(signature = (to, data, tag=0))]
    fn send(slf: &Bound<'_, Self>, to: Remote, data: &Bound<'_, PyAny>, tag: u64) -> Outcome<()> {
        let posted = Self::post_send(slf, to, (data, tag), None)?;
        posted.finish(slf.py(), None)?;
        Ok(())
    }

    /// Receives a message of at most `length` bytes, as `post_receive` does. Waits for it for
    /// `timeout` seconds; for ever without one. Raises TimedOutError: then it takes none.
    #[pyo3(signature = (length, tag=None, ignored=0, source=None, timeout=None))]
    fn recv(
        slf: &Bound<'_, Self>,
        length: usize,
        tag: Option<u64>,
        ignored: u64,
        source: Option<Remote>,
        timeout: Option<f64>,
    ) -> Outcome<Received> {
        let (py, time) = (slf.py(), self::timeout(timeout)?);
        let posted = Self::post_receive(slf, length, pattern(tag, ignored, source))?;
        let found = match posted.finish(py, time) {
            // A message that has come meanwhile is not lost.
            Err(_) if !posted.cancel()? => posted.finish(py, None),
            found => found,
        };
        found?.ok_or_else(late)
    }

    /// Looks for the oldest message that matches and that no receive has taken, and leaves it
    /// there. Returns it without its bytes, or None. Makes progress. Does not block.
    #[pyo3(signature = (tag=None, ignored=0, source=None))]
    fn probe(
        &self,
        tag: Option<u64>,
        ignored: u64,
        source: Option<Remote>,
    ) -> Outcome<Option<Received>> {
        let pattern = pattern(tag, ignored, source);
        self.with(|held| {
            held.progress();
            Ok(held.endpoint.probe(pattern).map(|found| Received::new(found, None)))
        })
    }

    /// Makes progress: sends and takes what it can. Does not block.
    fn progress(&self) -> Outcome<()> {
        self.with(|held| {
            held.progress();
            Ok(())
        })
    }

    /// The descriptor of the endpoint, for `select` and event loops. It is readable when something
    /// has come while the endpoint rests. Nobody but the endpoint reads it.
    fn fileno(&self) -> Outcome<i32> {
        self.with(|held| Ok(held.endpoint.as_fd().as_raw_fd()))
    }

    /// Prepares for a sleep at the descriptor. True if the program may sleep: then the descriptor
    /// is readable as soon as something comes, until `wake`. False if requests may have finished:
    /// test them. Does not block.
    fn rest(&self) -> Outcome<bool> {
        self.with(|held| {
            held.progress();
            Ok(held.endpoint.rest())
        })
    }

    /// Ends a rest. Does not block.
    fn wake(&self) -> Outcome<()> {
        self.with(|held| {
            held.endpoint.wake();
            Ok(())
        })
    }

    /// The object of `ayre.aio` that watches the descriptor.
    #[getter(_watcher)]
    fn watched_by(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        locked(&self.watcher).as_ref().map(|watcher| watcher.clone_ref(py))
    }

    #[setter(_watcher)]
    fn set_watcher(&self, watcher: Option<Py<PyAny>>) {
        let former = std::mem::replace(&mut *locked(&self.watcher), watcher);
        drop(former);
    }

    fn __repr__(&self) -> String {
        match self.with(|_| Ok(())) {
            Ok(()) => "<ayre.Endpoint>".into(),
            Err(Failure::Misuse(Misuse::InUse, _)) => "<ayre.Endpoint, in use>".into(),
            Err(_) => "<ayre.Endpoint, closed>".into(),
        }
    }
}

impl Posted {
    fn new(endpoint: &Bound<'_, Endpoint>, request: RequestId) -> Self {
        Self { endpoint: endpoint.clone().unbind(), request: Mutex::new(Some(request)) }
    }

    fn request(&self) -> Outcome<RequestId> {
        let what = "the request was waited for already";
        locked(&self.request).ok_or_else(|| Failure::closed(what))
    }

    /// Waits for the end of the request. A receive gives its message.
    fn finish(&self, py: Python<'_>, time: Option<Duration>) -> Outcome<Option<Received>> {
        let request = self.request()?;
        let take = |held: &mut Held| Ok(held.finished.remove(&request));
        let finished = self.endpoint.get().until(py, time, take)?.ok_or_else(late)?;
        *locked(&self.request) = None;
        match finished.outcome {
            FinishedAs::Sent => Ok(None),
            FinishedAs::Received(found) => {
                let data = PyBytes::new(py, &finished.buffer[..found.placed as usize]).unbind();
                Ok(Some(Received::new(found, Some(data))))
            }
            FinishedAs::Cancelled => Err(Failure::closed("the receive was cancelled")),
            FinishedAs::Failed(why) => Err(why.into()),
        }
    }
}

#[pymethods]
impl Posted {
    /// Whether the request has finished. Makes progress. Does not block.
    fn test(&self) -> Outcome<bool> {
        let request = self.request()?;
        self.endpoint.get().with(|held| {
            held.progress();
            Ok(held.finished.contains_key(&request))
        })
    }

    /// Waits until the request has finished, for `timeout` seconds; for ever without one. Blocks.
    /// Once for each request. Gives the message of a receive, and None for a send.
    ///
    /// Raises TimedOutError, the fault of the request, and ClosedError after `cancel`.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Outcome<Option<Received>> {
        self.finish(py, self::timeout(timeout)?)
    }

    /// Cancels a receive that has no message yet. Returns False if it has one or has finished, and
    /// for a send. Does not block.
    fn cancel(&self) -> Outcome<bool> {
        let request = self.request()?;
        self.endpoint.get().with(|held| Ok(held.endpoint.cancel(request)))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let finish = slf.py().import("ayre.aio")?.getattr("finish")?;
        finish.call1((slf,))?.call_method0("__await__")
    }
}
