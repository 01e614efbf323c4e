//! Streams: pipelines of stages at several ports, which items pass in order.
use crate::active::Messenger;
use crate::buffer::Room;
use crate::error::{Failure, Outcome, of_stream};
use crate::signals::Signals;
use crate::value::{Peer, Word};
use ayre::stream::{Entry, Flow, Hop, ITEM_MAX, Input, Stage, StreamEnd, StreamName};
use ayre::{Fault, PeerId};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream that a stage runs for, by which it emits items.
#[pyclass(frozen, module = "ayre", name = "Flow")]
#[derive(Debug)]
pub(crate) struct Run {
    /// The stream here: the port that feeds it, and its number. It is unique at this port while
    /// the stream exists.
    #[pyo3(get)]
    name: (u16, u32),
    /// The four numbers of the entry that leads to the stage.
    #[pyo3(get)]
    arguments: [u64; 4],
    end: Option<StreamEnd>,
    emitted: Mutex<Option<Vec<Vec<u8>>>>,
}

#[pymethods]
impl Run {
    /// Why the stream has ended: "closed" if all items have come, "cut" if an entry was cleared or
    /// replaced, "failed"; None for an item.
    #[getter]
    fn end(&self) -> Option<&'static str> {
        Some(match self.end? {
            StreamEnd::Closed => "closed",
            StreamEnd::Cut => "cut",
            StreamEnd::Failed(_) => "failed",
        })
    }

    /// The failure of the stream, as an exception to look at or to raise; None if it has none.
    #[getter]
    fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        match self.end? {
            StreamEnd::Failed(why) => Some(of_stream(py, why)),
            _ => None,
        }
    }

    /// Sends an item of at most 1 MiB on, to the next stage, when this stage returns. Does not
    /// block: items wait for room in order. Items behind a failure are lost.
    ///
    /// Raises ClosedError after the stage has returned.
    fn emit(&self, item: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let item = short(room.bytes(item)?)?;
        let mut emitted = self.emitted.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || Failure::closed("the stage has returned: a flow is valid until then");
        emitted.as_mut().ok_or_else(ended)?.push(item.to_vec());
        Ok(())
    }
}

fn short(item: &[u8]) -> Outcome<&[u8]> {
    if item.len() > ITEM_MAX { Err(Fault::TooLong.into()) } else { Ok(item) }
}

/// The function that the engine runs with the input of a stage.
fn running(
    function: Py<PyAny>,
    signals: Arc<Signals>,
) -> impl FnMut(&mut (), &mut Flow<'_>, Input<'_>) + Send + 'static {
    move |(), flow, input| {
        let ran = Python::try_attach(|py| {
            let function = function.bind(py);
            let ran = run(function, flow, input);
            ran.map_err(|failure| signals.keep(py, failure.into(), function)).is_ok()
        });
        if ran != Some(true) {
            // The engine takes it for a panic of a stage. No hook speaks of it.
            resume_unwind(Box::new("the stage has raised an exception"));
        }
    }
}

fn run(function: &Bound<'_, PyAny>, flow: &mut Flow<'_>, input: Input<'_>) -> Outcome<()> {
    let py = function.py();
    let (item, end) = match input {
        Input::Item(item) => (Some(PyBytes::new(py, item)), None),
        Input::End(end) => (None, Some(end)),
    };
    let StreamName { peer, number } = flow.name();
    let (name, arguments) = ((peer.0, number), flow.arguments());
    let emitted = Mutex::new(Some(Vec::new()));
    let token = Bound::new(py, Run { name, arguments, end, emitted })?;
    let ran = function.call1((&token, item));
    let emitted = token.get().emitted.lock().unwrap_or_else(PoisonError::into_inner).take();
    ran?;
    emitted.into_iter().flatten().for_each(|item| flow.emit(item));
    Ok(())
}

/// A stage of a pipeline, as a caller gives it: the port, the stage's name, and its numbers.
#[derive(Debug)]
struct Station(Hop);

impl<'py> FromPyObject<'_, 'py> for Station {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let all: Vec<Bound<'py, PyAny>> = object.try_iter()?.collect::<PyResult<_>>()?;
        let [peer, stage, rest @ ..] = &all[..] else {
            let what = "a station is (peer, stage) and up to four numbers";
            return Err(Failure::argument(what).into());
        };
        let (peer, stage): (Peer, String) = (peer.extract()?, stage.extract()?);
        let words = rest.iter().map(|word| word.extract()).collect::<PyResult<Vec<Word>>>()?;
        Ok(Self(Hop::new(peer.0, Stage::named(&stage)).arguments(four(&words)?)))
    }
}

/// An entry of a forwarding directory: the next port of a stream, and the stage there.
///
/// At the port `peer` the stream has the number `number`, and the stage of this name gets up to
/// four `arguments`. The stage is the last one unless the stream `goes_on`: then it fails without
/// an entry there. With `once` the entry is removed after the first stream that has used it.
#[pyclass(frozen, module = "ayre", name = "Entry")]
#[derive(Debug)]
pub(crate) struct DirectoryEntry(Entry);

#[pymethods]
impl DirectoryEntry {
    #[new]
    #[pyo3(signature = (peer, number, stage, arguments=vec![], *, goes_on=false, once=false))]
    fn new(
        peer: Peer,
        number: u32,
        stage: &str,
        arguments: Vec<Word>,
        goes_on: bool,
        once: bool,
    ) -> Outcome<Self> {
        let entry = Entry::new(peer.0, number, Stage::named(stage)).arguments(four(&arguments)?);
        let entry = if goes_on { entry.goes_on() } else { entry };
        Ok(Self(if once { entry.once() } else { entry }))
    }
}

/// The numbers of a stage. Those that are not given are 0.
fn four(words: &[Word]) -> Outcome<[u64; 4]> {
    if words.len() > 4 {
        return Err(Failure::argument("a stage has up to four numbers"));
    }
    Ok(std::array::from_fn(|at| words.get(at).map_or(0, |word| word.0)))
}

/// The source of a stream: `messenger.stream` lays it. As a context manager it closes the stream at
/// the end, and cancels it after an exception.
#[pyclass(frozen, module = "ayre", name = "Stream")]
#[derive(Debug)]
pub(crate) struct Stream {
    /// The messenger that feeds it.
    #[pyo3(get)]
    messenger: Py<Messenger>,
    stream: Mutex<Option<ayre::stream::Stream>>,
}

impl Stream {
    fn new(messenger: &Bound<'_, Messenger>, stream: ayre::stream::Stream) -> Self {
        Self { messenger: messenger.clone().unbind(), stream: Mutex::new(Some(stream)) }
    }

    fn held(&self) -> MutexGuard<'_, Option<ayre::stream::Stream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call about the stream, which is not over.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut ayre::Messenger<()>, &ayre::stream::Stream) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let port = self.messenger.get().port.get();
        port.with_messenger(|messenger| {
            // Behind the port, which one thread at a time uses: so the lock is free.
            let held = self.held();
            let stream = held.as_ref().ok_or_else(over)?;
            py.detach(|| call(messenger, stream))
        })
    }

    /// Makes a call that ends the stream.
    fn end(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut ayre::Messenger<()>, ayre::stream::Stream) -> Outcome<()> + Send,
    ) -> Outcome<()> {
        let port = self.messenger.get().port.get();
        port.with_messenger(|messenger| {
            let stream = self.held().take();
            let Some(stream) = stream else { return Ok(()) };
            py.detach(|| call(messenger, stream))
        })
    }
}

fn over() -> Failure {
    Failure::closed("the stream was closed or cancelled")
}

#[pymethods]
impl Stream {
    /// Pushes an item of at most 1 MiB: bytes, an array or another buffer. Blocks for room, and
    /// runs handlers and stages meanwhile.
    ///
    /// Raises StreamFailedError once the stream has failed.
    fn push(&self, item: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = short(room.bytes(item)?)?;
        self.with(item.py(), |messenger, stream| {
            Ok(messenger.streams().push(&mut (), stream, bytes)?)
        })
    }

    /// Pushes an item as `push` does, if there is room. Does not block. Runs stages of this port,
    /// but no handlers. Raises BusyError where there is no room.
    fn try_push(&self, item: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = short(room.bytes(item)?)?;
        self.with(item.py(), |messenger, stream| {
            Ok(messenger.streams().try_push(&mut (), stream, bytes)?)
        })
    }

    /// Ends the stream behind its last item. Blocks until all its stages have run with the end, and
    /// runs handlers and stages meanwhile. Closing twice is allowed.
    ///
    /// Raises StreamFailedError if not all items have reached the last stage. After an exception
    /// that a signal has raised, the stream is cancelled.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        self.end(py, |messenger, stream| Ok(messenger.streams().close(&mut (), stream)?))
    }

    /// Cancels the stream: all its stages get the end with a failure. Does not block.
    fn cancel(&self, py: Python<'_>) -> Outcome<()> {
        self.end(py, |messenger, stream| {
            messenger.streams().cancel(&mut (), stream);
            Ok(())
        })
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
        if kind.is_none() { self.close(kind.py()) } else { self.cancel(kind.py()) }
    }
}

#[pymethods]
impl Messenger {
    /// Registers a function as the stage of a name of 1 to 64 bytes. Returns its id. `stage` is the
    /// decorator for it.
    ///
    /// The function gets the flow and an item as bytes; at the end of a stream None, and `flow.end`
    /// says why. It runs where handlers run, under their rules. One that raises ends the stream.
    fn register_stage(&self, name: &str, function: Py<PyAny>) -> Outcome<u32> {
        let port = self.port.get();
        let run = running(function, port.signals.clone());
        Ok(port.with_messenger(|messenger| messenger.streams().stage(name, run))?.id())
    }

    /// Lays a pipeline and opens its stream. Blocks until all ports have answered, and runs
    /// handlers meanwhile.
    ///
    /// A station is `(peer, stage)` and up to four numbers, which the stage gets. The port of the
    /// stage may be this one; the name is that under which the stage is registered there. Raises
    /// EntryRefusedError where a port refuses, and StreamFailedError.
    #[pyo3(signature = (*stations))]
    fn stream(slf: &Bound<'_, Self>, stations: Vec<Station>) -> Outcome<Stream> {
        let py = slf.py();
        let hops: Vec<_> = stations.iter().map(|station| station.0).collect();
        let stream =
            slf.get().port.get().with_messenger(|messenger| {
                py.detach(|| messenger.streams().lay(&mut (), &hops))
            })?;
        Ok(Stream::new(slf, stream))
    }

    /// Opens a stream at its source, whose entry is in this port's directory, under this port and
    /// this number. Does not block.
    fn open_stream(slf: &Bound<'_, Self>, number: u32) -> Outcome<Stream> {
        let stream = slf
            .get()
            .port
            .get()
            .with_messenger(|messenger| messenger.streams().open(&mut (), number))?;
        Ok(Stream::new(slf, stream))
    }

    /// Sets or replaces an entry of the directory of the port `at`, for the stream of a name there:
    /// a pair of the port that feeds it, and a number. Blocks for the answer, and runs handlers and
    /// stages meanwhile. Items that were sent before go the old way.
    ///
    /// Raises EntryRefusedError and StreamFailedError.
    fn set_entry(
        &self,
        py: Python<'_>,
        at: Peer,
        name: (u16, u32),
        entry: &DirectoryEntry,
    ) -> Outcome<()> {
        let name = named(name);
        self.port.get().with_messenger(|messenger| {
            py.detach(|| messenger.streams().set_entry(&mut (), at.0, name, entry.0))
        })
    }

    /// Clears an entry of the directory of the port `at`. The rest is as for `set_entry`.
    fn clear_entry(&self, py: Python<'_>, at: Peer, name: (u16, u32)) -> Outcome<()> {
        let name = named(name);
        self.port.get().with_messenger(|messenger| {
            py.detach(|| messenger.streams().clear_entry(&mut (), at.0, name))
        })
    }

    /// Sets whether peers may set and clear entries here, as they may at first.
    fn let_peers_set_entries(&self, may: bool) -> Outcome<()> {
        self.port.get().with_messenger(|messenger| {
            messenger.streams().let_peers_set_entries(may);
            Ok::<_, Failure>(())
        })
    }
}

fn named((peer, number): (u16, u32)) -> StreamName {
    StreamName { peer: PeerId(peer), number }
}
