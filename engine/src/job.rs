//! Parallel jobs: ranks that the launcher started find each other, and meet in barriers.
//!
//! Each rank listens at `<rank>.sock` in the job's directory. The socket appears there by a rename
//! once it listens, so whoever sees it can connect; ranks that come early are told by inotify.
use crate::config::{Config, Spin};
use crate::connection::Mode;
use crate::error::{Fault, SetupError};
use crate::mem::layout::Control;
use crate::mem::page::Sleeper;
use crate::port::Port;
use crate::setup::Begun;
use crate::sync::Ordering;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::units::PeerId;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
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
        if job.size > job.processors.unwrap_or(own) {
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
        let path = |rank: u16, what: &str| job.directory.join(format!("{rank}.{what}"));
        let arrivals = Arrivals::watch(job)?;
        self.listen(path(job.rank, "tmp"))?;
        std::fs::rename(path(job.rank, "tmp"), path(job.rank, "sock"))
            .map_err(|error| SetupError::Environment(format!("job directory: {error}")))?;
        let mut begun = Vec::new();
        for lower in 0..job.rank {
            begun.push(self.connect_when_there(&arrivals, path(lower, "sock"))?);
        }
        for _ in usize::from(job.rank) + 1..job.size {
            self.accept()?;
        }
        for begun in begun {
            self.finish_connect(begun)?;
        }
        self.connect_loopback()?;
        self.listener = None;
        // The socket has served; the directory is the launcher's to remove.
        let _ = std::fs::remove_file(path(job.rank, "sock"));
        Ok(())
    }

    fn connect_when_there(
        &mut self,
        arrivals: &Arrivals,
        path: PathBuf,
    ) -> Result<Begun, SetupError> {
        loop {
            match self.begin_connect(&path) {
                Err(SetupError::Os { errno: Errno::NOENT, .. }) => {
                    let deadline = Instant::now() + self.config.setup_timeout;
                    self.wait_readable(arrivals.watch.as_fd(), deadline)?;
                    arrivals.take();
                }
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
        Ok(Self { directory, rank: rank as u16, size, mode, processors })
    }
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
