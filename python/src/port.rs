//! Ports: one thread at a time; the interpreter's lock is released while they wait.
use crate::error::{Failure, Misuse, Outcome};
use crate::interface::Interface;
use crate::signals::Signals;
use crate::value::{Peer, duration, named};
use ayre::active::{Messenger, MessengerOptions};
use ayre::guest::fork;
use ayre::{Config, Fault, Mode, NetOptions, Spin};
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A call that copies more bytes than this releases the interpreter's lock.
pub(crate) const LONG: usize = 4096;
/// Pauses between two looks for signals: 50 ms at most.
pub(crate) const PAUSES: u32 = 200;

/// One process's interface to its peers.
///
/// `mode` is "direct", where peers access this port's memory themselves, or "mediated", where this
/// port performs their operations and checks each. A connection is direct only where both ports
/// choose that. `number` is the one by which peers know the port. `spin` is "dedicated", "shared",
/// or the polls and the yields of a wait before it sleeps. Times are in seconds: the longest of a
/// set-up call, of a revocation, and of closing.
///
/// A port is used by one thread at a time: another one, or a signal handler that interrupts a call,
/// gets InUseError. A forked child opens a port of its own. As a context manager a port leaves its
/// peers at the end, and closes at once after an exception.
#[pyclass(frozen, module = "ayre", name = "Port")]
#[derive(Debug)]
pub(crate) struct Port {
    held: Mutex<Option<Interface>>,
    pub(crate) signals: Arc<Signals>,
    /// The process that has opened it.
    generation: u64,
    /// The object of `ayre.aio` that watches its descriptor, while tasks wait.
    watcher: Mutex<Option<Py<PyAny>>>,
}

impl Port {
    /// Makes a call of the port's, for which no other thread waits.
    #[inline]
    pub(crate) fn with<T, E>(
        &self,
        call: impl FnOnce(&mut ayre::Port) -> Result<T, E>,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        self.with_interface(|port| Ok(call(port)?))
    }

    /// Makes a call about short messages, which a messenger has for its handlers.
    #[inline]
    pub(crate) fn with_plain<T, E>(
        &self,
        call: impl FnOnce(&mut ayre::Port) -> Result<T, E>,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        self.with_interface(|port| Ok(call(port.plain()?)?))
    }

    /// Makes a call of the messenger's, which may run handlers. Raises what one of them, or a
    /// signal, has raised meanwhile.
    pub(crate) fn with_messenger<T, E>(
        &self,
        call: impl FnOnce(&mut Messenger<()>) -> Result<T, E>,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        self.with_interface(|port| {
            let done = call(port.messenger()?);
            self.signals.take()?;
            Ok::<_, Failure>(done?)
        })
    }

    /// Makes a call of the port's or the messenger's, for which no other thread waits.
    #[inline]
    pub(crate) fn with_interface<T>(
        &self,
        call: impl FnOnce(&mut Interface) -> Outcome<T>,
    ) -> Outcome<T> {
        if fork::generation() != self.generation {
            let what = "the port is the parent process's: a forked child opens one of its own";
            return Err(Failure::Misuse(Misuse::Inherited, what.into()));
        }
        let mut held = match self.held.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(in_use()),
        };
        let port = held.as_mut().ok_or_else(|| Failure::closed("the port was closed"))?;
        call(port)
    }

    /// Makes a call that may wait, without the interpreter's lock. Raises what a signal has raised
    /// meanwhile.
    pub(crate) fn wait<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut ayre::Port) -> Result<T, E> + Send,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        self.with::<_, Failure>(|port| {
            let done = py.detach(|| call(port));
            self.signals.take()?;
            Ok(done?)
        })
    }

    /// Makes a call that copies a number of bytes.
    #[inline]
    pub(crate) fn copy<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        len: usize,
        call: impl FnOnce(&mut ayre::Port) -> Result<T, E> + Send,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        if len > LONG { self.wait(py, call) } else { self.with(call) }
    }

    /// Makes a call that waits for the answer of a peer whose engine performs it, and copies a
    /// number of bytes.
    #[inline]
    pub(crate) fn fetch<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        (peer, len): (ayre::PeerId, usize),
        call: impl FnOnce(&mut ayre::Port) -> Result<T, E> + Send,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        self.with::<_, Failure>(|port| {
            if len <= LONG && port.mode(peer) == Ok(Mode::Direct) {
                return Ok(call(port)?);
            }
            let done = py.detach(|| call(port));
            self.signals.take()?;
            Ok(done?)
        })
    }

    /// Makes a call again and again until it returns something, and pauses between. Looks for
    /// signals meanwhile.
    pub(crate) fn retry<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        mut call: impl FnMut(&mut ayre::Port) -> Result<Option<T>, E> + Send,
    ) -> Outcome<T>
    where
        Failure: From<E>,
    {
        let mut rounds = 0;
        let mut some_rounds = |port: &mut ayre::Port| {
            for _ in 0..PAUSES {
                if let Some(done) = call(port)? {
                    return Ok(Some(done));
                }
                port.pause(&mut rounds);
            }
            Ok::<_, E>(None)
        };
        self.with::<_, Failure>(|port| {
            loop {
                if let Some(done) = py.detach(|| some_rounds(port))? {
                    return Ok(done);
                }
                py.check_signals()?;
            }
        })
    }

    /// Opens a port whose calls look for signals.
    fn opened(
        py: Python<'_>,
        config: Config,
        open: impl FnOnce(Config) -> Result<ayre::Port, ayre::SetupError> + Send,
    ) -> Outcome<Self> {
        let signals = Arc::new(Signals::default());
        let asked = signals.clone();
        let config = config.interrupt(move || asked.look());
        let opened = py.detach(|| open(config));
        signals.take()?;
        let held = Mutex::new(Some(Interface::Port(Box::new(opened?))));
        Ok(Self { held, signals, generation: fork::generation(), watcher: Mutex::default() })
    }

    pub(crate) fn watcher(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waits of tasks, before the descriptor goes.
    fn unwatch(&self, py: Python<'_>) -> PyResult<()> {
        if fork::generation() != self.generation {
            return Ok(());
        }
        let watcher = self.watcher().take();
        watcher.map_or(Ok(()), |watcher| watcher.call_method0(py, "end").map(drop))
    }

    /// Prepares for a sleep at the descriptor.
    pub(crate) fn rest_running_handlers(
        &self,
        messages: bool,
        notifications: bool,
    ) -> Outcome<bool> {
        self.with_interface(|port| {
            let rests = port.rest(messages, notifications);
            self.signals.take()?;
            Ok::<_, Failure>(rests)
        })
    }

    /// Makes a messenger of the port, if it is none.
    pub(crate) fn become_messenger(&self, options: MessengerOptions) -> Outcome<()> {
        options.check()?;
        self.with(|_| Ok::<_, Failure>(()))?;
        let Ok(mut held) = self.held.try_lock() else { return Err(in_use()) };
        let Some(port) = held.take() else { return Err(Failure::closed("the port was closed")) };
        *held = Some(port.into_messenger(options)?);
        Ok(())
    }

    /// Makes a port without a messenger of it.
    pub(crate) fn end_messenger(&self) -> Outcome<()> {
        self.with_interface(|port| port.messenger().map(|_| ()))?;
        let Ok(mut held) = self.held.try_lock() else { return Err(in_use()) };
        if let Some(port) = held.take() {
            *held = Some(Interface::Port(Box::new(port.into_port())));
        }
        Ok(())
    }

    /// Takes the port out, to end it.
    fn take(&self) -> Outcome<Option<Interface>> {
        match self.held.try_lock() {
            Ok(mut held) => Ok(held.take()),
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner().take()),
            // The thread that uses it stayed with the parent.
            Err(_) if fork::generation() != self.generation => Ok(None),
            Err(TryLockError::WouldBlock) => Err(in_use()),
        }
    }
}

fn in_use() -> Failure {
    let what = "the port is in use: one thread at a time calls it, and no handler that interrupts \
                a call";
    Failure::Misuse(Misuse::InUse, what.into())
}

/// How long a wait stays awake, as a caller gives it.
#[derive(Debug, FromPyObject)]
enum Awake {
    Name(String),
    Numbers((u32, u32)),
}

/// The options of a port, as a caller gives them.
fn config(mode: &str, spin: Option<Awake>, times: [f64; 3]) -> Outcome<Config> {
    let mode = match mode {
        "direct" => Mode::Direct,
        "mediated" => Mode::Mediated,
        _ => return Err(Failure::argument("the mode of a port is 'direct' or 'mediated'")),
    };
    let [setup, grace, linger] = times.map(duration);
    let config = Config::new().mode(mode).setup_timeout(setup?).revoke_grace(grace?);
    let config = config.linger(linger?);
    let spin = match spin {
        None => return Ok(config),
        Some(Awake::Numbers((polls, yields))) => Spin { polls, yields },
        Some(Awake::Name(name)) => match &*name {
            "dedicated" => Spin::DEDICATED,
            "shared" => Spin::SHARED,
            _ => return Err(Failure::argument("spin is 'dedicated', 'shared' or two numbers")),
        },
    };
    Ok(config.spin(spin))
}

#[pymethods]
impl Port {
    #[new]
    #[pyo3(signature = (
        mode="direct", number=0, spin=None, setup_timeout=60.0, revoke_grace=0.1, linger=1.0
    ))]
    fn new(
        mode: &str,
        number: u16,
        spin: Option<Awake>,
        setup_timeout: f64,
        revoke_grace: f64,
        linger: f64,
    ) -> Outcome<Self> {
        let config = config(mode, spin, [setup_timeout, revoke_grace, linger])?.number(number);
        Python::attach(|py| Self::opened(py, config, ayre::Port::open))
    }

    /// Joins the job that `ayre run`, mpirun or Slurm has started this process in.
    ///
    /// Connects with all its ranks, and blocks until all have joined. The parameters are those of
    /// `Port`.
    #[staticmethod]
    #[pyo3(signature = (
        mode="direct", spin=None, setup_timeout=60.0, revoke_grace=0.1, linger=1.0
    ))]
    fn join(
        mode: &str,
        spin: Option<Awake>,
        setup_timeout: f64,
        revoke_grace: f64,
        linger: f64,
    ) -> Outcome<Self> {
        let config = config(mode, spin, [setup_timeout, revoke_grace, linger])?;
        Python::attach(|py| Self::opened(py, config, ayre::Port::join_with))
    }

    /// Closes the port at once: peers take it for dead. Closing twice is allowed.
    ///
    /// Blocks for at most the linger time, for operations on other hosts.
    fn close(&self, py: Python<'_>) -> Outcome<()> {
        self.unwatch(py)?;
        let port = self.take()?;
        py.detach(move || drop(port));
        Ok(())
    }

    /// Leaves all peers once what was posted to them has completed, and closes the port. Blocks.
    ///
    /// Raises the first fault of a pending operation. After an exception that a signal has raised,
    /// the port is still open.
    fn leave(&self, py: Python<'_>) -> Outcome<()> {
        let peers: Vec<_> = self.with(|port| {
            Ok::<_, Failure>(port.peers().filter(|peer| port.is_alive(*peer)).collect())
        })?;
        let mut outcome = Ok(());
        for peer in peers {
            match self.wait(py, |port| port.flush(peer)) {
                Err(interrupted @ Failure::Python(_)) => return Err(interrupted),
                flushed => outcome = outcome.and(flushed),
            }
        }
        self.unwatch(py)?;
        let port = self.take()?;
        let left = py.detach(move || port.map_or(Ok(()), |port| port.into_port().leave()));
        outcome.and_then(|()| Ok(left?))
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
        let py = kind.py();
        let is_closed = match self.with(|_| Ok::<_, Failure>(())) {
            Err(Failure::Misuse(Misuse::Closed | Misuse::Inherited, _)) => true,
            other => other.map(|()| false)?,
        };
        if !kind.is_none() || is_closed {
            return self.close(py);
        }
        let left = self.leave(py);
        self.close(py)?;
        left
    }

    /// Whether the port was closed, or has left.
    #[getter]
    fn is_closed(&self) -> bool {
        self.held.try_lock().is_ok_and(|held| held.is_none())
    }

    /// The number by which peers know this port; in a job, the rank.
    #[getter]
    fn rank(&self) -> Outcome<usize> {
        self.with(|port| Ok::<_, Failure>(port.rank()))
    }

    /// The number of ports of the job, this one included; 1 outside of jobs.
    #[getter]
    fn size(&self) -> Outcome<usize> {
        self.with(|port| Ok::<_, Failure>(port.size()))
    }

    /// The numbers of the connected peers, in ascending order.
    #[getter]
    fn peers(&self) -> Outcome<Vec<u16>> {
        self.with(|port| Ok::<_, Failure>(port.peers().map(|peer| peer.0).collect()))
    }

    /// Listens at a path, for peers of this host. Does not block.
    fn listen(&self, path: PathBuf) -> Outcome<()> {
        self.with(|port| port.listen(path))
    }

    /// Connects with the port that listens at a path. Blocks until it has accepted. Returns the
    /// peer's number.
    fn connect(&self, py: Python<'_>, path: PathBuf) -> Outcome<u16> {
        Ok(self.wait(py, |port| port.connect(path))?.0)
    }

    /// Accepts the next port that connects. Blocks. Returns the peer's number.
    fn accept(&self, py: Python<'_>) -> Outcome<u16> {
        Ok(self.wait(py, ayre::Port::accept)?.0)
    }

    /// Connects the port with itself. Returns its own number as the peer's.
    fn connect_loopback(&self) -> Outcome<u16> {
        Ok(self.with(ayre::Port::connect_loopback)?.0)
    }

    /// Opens the port to other hosts. Returns where it is found: a list of texts such as
    /// "192.0.2.1:7000".
    ///
    /// Links are encrypted by `key`, 64 hexadecimal digits that all ports share. Without one they
    /// are plain: for closed networks.
    #[pyo3(signature = (key=None))]
    fn open_net(&self, py: Python<'_>, key: Option<&str>) -> Outcome<Vec<String>> {
        let options = key.map_or_else(|| Ok(NetOptions::plain()), NetOptions::sealed)?;
        let found = self.wait(py, |port| port.open_net(&options))?;
        Ok(found.iter().map(SocketAddr::to_string).collect())
    }

    /// Connects with a port of another host, found at the addresses that `open_net` has given
    /// there. Blocks until it has accepted. Returns the peer's number.
    fn connect_net(&self, py: Python<'_>, addresses: Vec<String>) -> Outcome<u16> {
        let all: Result<Vec<SocketAddr>, _> = addresses.iter().map(|one| one.parse()).collect();
        let all = all.map_err(|_| {
            Failure::argument("an address has the form 192.0.2.1:7000 or [2001:db8::1]:7000")
        })?;
        Ok(self.wait(py, |port| port.connect_net(&all))?.0)
    }

    /// Ends a connection at once and forgets the peer, which is told.
    fn disconnect(&self, peer: Peer) -> Outcome<()> {
        self.with_interface(|port| Ok(port.disconnect(peer.0)?))
    }

    /// The mode of a connection: "direct" or "mediated".
    fn mode(&self, peer: Peer) -> Outcome<&'static str> {
        Ok(match self.with(|port| port.mode(peer.0))? {
            Mode::Direct => "direct",
            _ => "mediated",
        })
    }

    /// Whether a peer is alive, as far as this port knows. `progress` finds out.
    fn is_alive(&self, peer: Peer) -> Outcome<bool> {
        self.with(|port| Ok::<_, Failure>(port.is_alive(peer.0)))
    }

    /// Starts a thread of the library that performs the operations of mediated peers. Without it
    /// the port does so in its own calls.
    fn start_engine(&self) -> Outcome<()> {
        self.with(ayre::Port::start_engine)
    }

    /// Serves peers and takes in what has come. Does not block.
    fn progress(&self) -> Outcome<()> {
        self.with(|port| {
            port.progress();
            Ok::<_, Failure>(())
        })
    }

    /// Waits until all ranks of the job have come here. Blocks.
    ///
    /// After an exception that a signal has raised, the next call goes on with the same barrier.
    fn barrier(&self, py: Python<'_>) -> Outcome<()> {
        self.wait(py, ayre::Port::barrier)
    }

    /// Waits until all operations on a peer have completed there. Blocks.
    ///
    /// Raises the first fault since the last flush.
    fn flush(&self, py: Python<'_>, peer: Peer) -> Outcome<()> {
        self.wait(py, |port| port.flush(peer.0))
    }

    /// Whether all operations on a peer have completed there. Does not block.
    fn is_flushed(&self, peer: Peer) -> Outcome<bool> {
        self.with(|port| Ok::<_, Failure>(port.is_flushed(peer.0)))
    }

    /// How often calls were refused and operations have ended with faults.
    fn counters(&self) -> Outcome<Counters> {
        self.with(|port| Ok::<_, Failure>(Counters(port.counters())))
    }

    fn __repr__(&self) -> String {
        match self.with(|port| Ok::<_, Failure>((port.rank(), port.size(), port.peers().count()))) {
            Ok((rank, size, peers)) => format!("<ayre.Port {rank} of {size}, {peers} peers>"),
            Err(Failure::Misuse(Misuse::InUse, _)) => "<ayre.Port, in use>".into(),
            Err(_) => "<ayre.Port, closed>".into(),
        }
    }
}

/// How often calls of a port were refused, and operations have ended with faults.
#[pyclass(frozen, module = "ayre", name = "Counters")]
#[derive(Debug)]
pub(crate) struct Counters(ayre::Counters);

#[pymethods]
impl Counters {
    /// Calls that were refused for a reason, a `Busy`.
    fn busy(&self, why: usize) -> Outcome<u64> {
        let why = ayre::Busy::ALL.get(why);
        let why = why.ok_or_else(|| Failure::argument("no such reason: ayre.Busy"))?;
        Ok(self.0.busy(*why))
    }

    /// Operations that have ended with a fault, a `Fault`.
    fn faults(&self, py: Python<'_>, why: u8) -> Outcome<u64> {
        named(py, "Fault", why)?;
        Ok(self.0.faults(Fault::from_code(why)))
    }

    /// Malformed input of peers.
    #[getter]
    fn malformed(&self) -> u64 {
        self.0.malformed()
    }
}

/// Whether a launcher has started this process as a rank of a job.
#[pyfunction]
pub(crate) fn is_launched() -> bool {
    ayre::Port::is_launched()
}
