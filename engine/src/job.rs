//! Parallel jobs: ranks that the launcher started find each other, and meet in barriers.
//!
//! Each rank listens at `<rank>.sock` in the job's directory. The socket appears there by a rename
//! once it listens, so whoever sees it can connect; ranks that come early are told by inotify.
//! Where the job has several hosts, the directory is that of one of them: a rank of another one has
//! a file `<rank>.addr` there, with the addresses at which its port is open to other hosts, and
//! `key` holds what protects the links.
use crate::config::{Config, Spin};
use crate::connection::Mode;
use crate::error::{Fault, SetupError};
use crate::mem::layout::Control;
use crate::mem::page::Sleeper;
use crate::port::Port;
use crate::setup::Begun;
use crate::sync::Ordering;
use crate::wire::{BegunLink, NetOptions, Plan};
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

/// In a barrier word: a rank is gone, so no barrier of this job will be complete again.
const BROKEN: u64 = u64::MAX;

/// What the launcher tells a rank.
#[derive(Debug)]
struct Environment {
    directory: PathBuf,
    rank: u16,
    size: usize,
    mode: Mode,
    /// Processors that the job's ranks share, as far as the launcher says.
    processors: Option<usize>,
    /// The ranks of this host.
    here: Range<u16>,
    /// Where this rank is open to other hosts.
    addresses: Vec<IpAddr>,
    /// What is done to what it sends there.
    faults: Option<Plan>,
}

/// A connection that was begun with a rank of this host or of another one.
enum Beginning {
    Here(Begun),
    Elsewhere(BegunLink),
}

impl Port {
    /// Joins the job that `ayre run` started: connects this rank with every other one, and with
    /// itself. Collective; waits for all ranks.
    ///
    /// # Errors
    /// [`SetupError::Environment`] where the program was not started by the launcher;
    /// [`SetupError::PeerLeft`], [`SetupError::TimedOut`] where a rank does not come.
    // spec: LIFE-2, LIFE-4
    pub fn join() -> Result<Self, SetupError> {
        Self::join_with(Config::new())
    }

    /// Joins the job with other than the default choices. The launcher's mode holds where it is
    /// the stricter one; where ranks outnumber processors, waits give way early.
    ///
    /// # Errors
    /// As [`Port::join`].
    pub fn join_with(config: Config) -> Result<Self, SetupError> {
        let job = Environment::read()?;
        let mut config = config.number(job.rank);
        if job.mode == Mode::Mediated {
            config = config.mode(Mode::Mediated);
        }
        let own = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if job.here.len() > job.processors.unwrap_or(own) {
            config = config.spin(Spin::SHARED);
        }
        let mut port = Self::open(config)?;
        port.size = job.size;
        port.mesh(&job)?;
        port.barrier()?;
        Ok(port)
    }

    /// Connects to all lower ranks and accepts all higher ones. Nobody waits for an answer before
    /// everybody has been asked, so no order of arrival can block.
    // spec: LIFE-3, LIFE-5
    fn mesh(&mut self, job: &Environment) -> Result<(), SetupError> {
        let arrivals = Arrivals::watch(job)?;
        self.listen(job.file(job.rank, "tmp"))?;
        std::fs::rename(job.file(job.rank, "tmp"), job.file(job.rank, "sock"))
            .map_err(in_directory)?;
        if job.here.len() < job.size {
            self.open_to_hosts(job)?;
        }
        let mut begun = Vec::new();
        for lower in 0..job.rank {
            begun.push(match job.here.contains(&lower) {
                true => {
                    Beginning::Here(self.connect_when_there(&arrivals, job.file(lower, "sock"))?)
                }
                false => {
                    let addresses = self.read_when_there(&arrivals, job.file(lower, "addr"))?;
                    Beginning::Elsewhere(self.begin_connect_net(&addresses)?)
                }
            });
        }
        for _ in usize::from(job.rank) + 1..job.size {
            self.accept()?;
        }
        for begun in begun {
            match begun {
                Beginning::Here(begun) => self.finish_connect(begun)?,
                Beginning::Elsewhere(begun) => self.finish_connect_net(begun)?,
            };
        }
        self.connect_loopback()?;
        self.listener = None;
        // The socket has served; the directory is the launcher's to remove.
        let _ = std::fs::remove_file(job.file(job.rank, "sock"));
        Ok(())
    }

    /// Opens the port to the job's other hosts, and says where.
    // spec: LIFE-21
    fn open_to_hosts(&mut self, job: &Environment) -> Result<(), SetupError> {
        let key = std::fs::read_to_string(job.directory.join("key")).map_err(in_directory)?;
        let mut options = NetOptions::sealed(key.trim())?;
        for address in &job.addresses {
            options = options.at(SocketAddr::new(*address, 0));
        }
        if let Some(plan) = job.faults {
            options = options.faults(plan);
        }
        let addresses = self.open_net(&options)?;
        let lines: String = addresses.iter().map(|address| format!("{address}\n")).collect();
        let (tmp, file) = (job.file(job.rank, "addr.tmp"), job.file(job.rank, "addr"));
        std::fs::write(&tmp, lines).map_err(in_directory)?;
        std::fs::rename(tmp, file).map_err(in_directory)
    }

    /// The addresses of a rank on another host, once the launcher has brought them.
    fn read_when_there(
        &mut self,
        arrivals: &Arrivals,
        path: PathBuf,
    ) -> Result<Vec<SocketAddr>, SetupError> {
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let addresses = text.lines().map(str::parse).collect::<Result<_, _>>();
                    return addresses.map_err(|_| {
                        SetupError::Environment(format!("{} has no addresses", path.display()))
                    });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => self.wait_arrival(arrivals)?,
                Err(error) => return Err(in_directory(error)),
            }
        }
    }

    fn wait_arrival(&mut self, arrivals: &Arrivals) -> Result<(), SetupError> {
        let deadline = Instant::now() + self.config.setup_timeout;
        self.wait_readable(arrivals.watch.as_fd(), deadline)?;
        arrivals.take();
        Ok(())
    }

    fn connect_when_there(
        &mut self,
        arrivals: &Arrivals,
        path: PathBuf,
    ) -> Result<Begun, SetupError> {
        loop {
            match self.begin_connect(&path) {
                Err(SetupError::Os { errno: Errno::NOENT, .. }) => self.wait_arrival(arrivals)?,
                other => return other,
            }
        }
    }

    /// Waits until every rank of the job has come here, everything that it posted before has ended
    /// and is visible. Sleeps where it takes long; makes progress meanwhile. Faults of what was
    /// posted stay for [`Port::flush`].
    ///
    /// A dissemination barrier: in round k each rank tells the one 2^k above it.
    ///
    /// # Errors
    /// [`Fault::PeerDead`] where a rank has left or died.
    // spec: BAR-1, BAR-2, BAR-3, BAR-4
    pub fn barrier(&mut self) -> Result<(), Fault> {
        for peer in self.peers().collect::<Vec<_>>() {
            self.wait_flushed(peer);
        }
        self.barriers += 1;
        let met = self.meet(self.barriers);
        if met.is_err() {
            // Those who wait for us, or for whom we waited, must not wait for ever.
            self.tell_barrier(|_| true, BROKEN);
        }
        met
    }

    fn meet(&mut self, count: u64) -> Result<(), Fault> {
        let (rank, size) = (self.rank(), self.size);
        let mut distance = 1;
        while distance < size {
            let to = self.peer((rank + distance) % size).ok_or(Fault::PeerDead)?;
            let from = self.peer((rank + size - distance) % size).ok_or(Fault::PeerDead)?;
            self.tell_barrier(|peer| peer == to, count);
            self.wait_for(None, |port| port.barrier_reached(from, count))
                .unwrap_or(Err(Fault::PeerDead))?;
            distance *= 2;
        }
        Ok(())
    }

    fn tell_barrier(&self, tell: impl Fn(PeerId) -> bool, count: u64) {
        for connection in self.connections.iter().flatten().filter(|c| tell(c.peer)) {
            // BAR-R1: everything that this rank did before.
            connection.out.control(Control::Barrier).store(count, Ordering::Release);
            connection.link.kick(Sleeper::Port);
            if connection.is_carried() {
                self.nudge(connection.peer);
            }
        }
    }

    fn barrier_reached(&self, from: PeerId, count: u64) -> Option<Result<(), Fault>> {
        let Ok(connection) = self.connection(from) else { return Some(Err(Fault::PeerDead)) };
        // BAR-A1: everything that the peer did before (BAR-R1).
        match connection.inward.control(Control::Barrier).load(Ordering::Acquire) {
            BROKEN => Some(Err(Fault::PeerDead)),
            reached if reached >= count => Some(Ok(())),
            _ => connection.ended.map(Err),
        }
    }
}

impl Environment {
    fn read() -> Result<Self, SetupError> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                let hint = "start the program with `ayre run`";
                SetupError::Environment(format!("{name} is not set; {hint}"))
            })
        };
        let number = |name: &str| {
            let text = variable(name)?;
            text.parse::<usize>()
                .map_err(|_| SetupError::Environment(format!("{name}={text} is no number")))
        };
        let (rank, size) = (number("AYRE_RANK")?, number("AYRE_SIZE")?);
        if rank >= size || size > PEERS_MAX {
            let wrong = format!("rank {rank} of {size}, where a job has at most {PEERS_MAX}");
            return Err(SetupError::Environment(wrong));
        }
        let mode = match variable("AYRE_MODE").as_deref() {
            Err(_) | Ok("direct") => Mode::Direct,
            Ok("mediated") => Mode::Mediated,
            Ok(other) => return Err(SetupError::Environment(format!("AYRE_MODE={other}"))),
        };
        let processors = number("AYRE_PROCESSORS").ok();
        let directory = PathBuf::from(variable("AYRE_JOB")?);
        let here = match std::env::var("AYRE_HOST_RANKS") {
            Ok(text) => parse_range(&text, rank, size).ok_or_else(|| wrong("AYRE_HOST_RANKS"))?,
            Err(_) => 0..size as u16,
        };
        let addresses = std::env::var("AYRE_NET").unwrap_or_default();
        let addresses = addresses.split(',').filter(|text| !text.is_empty()).map(str::parse);
        let addresses = addresses.collect::<Result<_, _>>().map_err(|_| wrong("AYRE_NET"))?;
        let faults = std::env::var("AYRE_FAULTS").ok().map(|text| text.parse()).transpose();
        let faults = faults.map_err(|_| wrong("AYRE_FAULTS"))?;
        let rank = rank as u16;
        Ok(Self { directory, rank, size, mode, processors, here, addresses, faults })
    }

    fn file(&self, rank: u16, what: &str) -> PathBuf {
        self.directory.join(format!("{rank}.{what}"))
    }
}

/// Ranks `first..end` of a job, this one among them.
fn parse_range(text: &str, rank: usize, size: usize) -> Option<Range<u16>> {
    let (first, end) = text.split_once("..")?;
    let range = first.parse::<u16>().ok()?..end.parse::<u16>().ok()?;
    let valid = range.contains(&(rank as u16)) && usize::from(range.end) <= size;
    valid.then_some(range)
}

fn wrong(name: &str) -> SetupError {
    let text = std::env::var(name).unwrap_or_default();
    SetupError::Environment(format!("{name}={text}"))
}

fn in_directory(error: std::io::Error) -> SetupError {
    SetupError::Environment(format!("job directory: {error}"))
}

/// Sockets that appear in the job's directory.
struct Arrivals {
    watch: OwnedFd,
}

impl Arrivals {
    /// Watches from before the first look, so that no arrival is missed.
    fn watch(job: &Environment) -> Result<Self, SetupError> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(SetupError::os("inotify"))?;
        inotify::add_watch(&watch, &job.directory, WatchFlags::MOVED_TO)
            .map_err(SetupError::os("watch the job directory"))?;
        Ok(Self { watch })
    }

    /// What arrived does not matter: the caller looks for itself.
    fn take(&self) {
        let mut events = [MaybeUninit::uninit(); 1024];
        while rustix::io::read(&self.watch, &mut events[..]).is_ok_and(|(read, _)| !read.is_empty())
        {
        }
    }
}
