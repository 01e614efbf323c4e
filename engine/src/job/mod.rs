//! Parallel jobs: ranks that a launcher has started find each other, and meet in barriers.
//!
//! | started by | the ranks meet | |
//! |---|---|---|
//! | `ayre run` | in a folder, the job directory | [`folder`] |
//! | MPICH's `mpiexec`, Slurm | at the launcher's *board*, by PMI | [`pmi`] |
//! | Open MPI's `mpirun`, PRRTE, Slurm | at the launcher's board, by PMIx | [`pmix`] |
//!
//! A board takes a text from each rank and gives all texts to each. [`meeting`] has the texts;
//! after the meeting no launcher is needed.
mod addresses;
mod barrier;
mod board;
mod choices;
mod folder;
mod launcher;
mod meeting;
mod pmi;
mod pmix;
mod secret;

use crate::error::{A_PEER, SetupError};
use crate::link::NetOptions;
use crate::log::tell;
use crate::port::Port;
use crate::port::attach::BegunLink;
use crate::port::config::{Config, Spin};
use crate::port::setup::{Begun, Listener};
use crate::settings::choice::Mode;
use addresses::RankAddresses;
use choices::Choices;
use folder::Folder;
use meeting::Meeting;
use std::net::IpAddr;
use std::time::Duration;
use zeroize::Zeroizing;

/// A rank's knowledge of its job.
#[derive(Debug)]
struct Job {
    rank: u16,
    size: usize,
    /// The number of ranks of this host.
    here: usize,
    /// The number of processors that these share, if it is known.
    processors: Option<usize>,
    choices: Choices,
    route: Route,
}

/// The way by which the ranks find each other.
#[derive(Debug)]
enum Route {
    Folder(Folder),
    Meeting(Box<Meeting>),
}

/// A pending connection with a rank of this host or of another one.
enum Beginning {
    Here(Begun),
    Elsewhere(BegunLink),
}

impl Port {
    /// Joins the job that a launcher has started (`ayre run`, or one that speaks PMIx or PMI):
    /// connects this rank with every other one, and with itself. Collective: blocks until all ranks
    /// have joined, at most for the set-up time. It needs the Cargo feature `job`.
    ///
    /// A process can join one job only, once: launchers other than `ayre run` answer only the first
    /// time.
    ///
    /// # Errors
    /// [`SetupError::Environment`] where no launcher has started the program, or the launcher does
    /// not behave as it should; [`SetupError::PeerLeft`] and [`SetupError::TimedOut`] where a rank
    /// does not come.
    // spec: LIFE-2, LIFE-4
    pub fn join() -> Result<Self, SetupError> {
        Self::join_with(Config::new())
    }

    /// Whether a launcher has started this process as a rank of a job, so that it can join. For
    /// programs that also work alone.
    // spec: LIFE-23
    pub fn is_launched() -> bool {
        folder::is_named() || launcher::is_named()
    }

    /// Joins the job as [`Port::join`] does, with these options. Where the launcher sets another
    /// mode, the stricter one holds. Where ranks outnumber processors, waits yield early.
    ///
    /// # Errors
    /// As [`Port::join`].
    pub fn join_with(config: Config) -> Result<Self, SetupError> {
        let mut job = Job::of_launcher(config.setup_timeout)?;
        debug_assert!(usize::from(job.rank) < job.size, "a rank is one of the job's");
        debug_assert!((1..=job.size).contains(&job.here), "a rank is on its host");
        let mut config = config.number(job.rank);
        if job.choices.mode == Mode::Mediated {
            config = config.mode(Mode::Mediated);
        }
        let own = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if job.here > job.processors.unwrap_or(own) {
            config = config.spin(Spin::SHARED);
        }
        let mut port = Self::open(config)?;
        port.size = job.size;
        crate::process::set_rank(port.rank());
        port.mesh(&mut job).map_err(|error| port.who_is_missing(error))?;
        tell!(INFO, "joined a job of {} ranks, {} of them on this host", job.size, job.here);
        port.barrier()?;
        Ok(port)
    }

    /// Connects to all lower ranks and accepts all higher ones. No rank waits for an answer before
    /// it has sent all its requests, so no order of arrival can block.
    // spec: LIFE-3, LIFE-5
    fn mesh(&mut self, job: &mut Job) -> Result<(), SetupError> {
        self.accept_queue.open(job.route.listen()?);
        self.accept_queue.admit_ranks(job.rank, job.size);
        if job.here < job.size {
            let own = match self.open_to_hosts(job) {
                // It may be that all ranks can be called on this host: a try shows that.
                Err(_) if job.route.has_unknown_hosts() => RankAddresses::default(),
                opened => opened?,
            };
            job.route.publish(&own)?;
        }
        job.route.finish();
        let mut begun = Vec::new();
        for lower in 0..job.rank {
            let beginning = match &mut job.route {
                Route::Folder(folder) => self.begin_in_folder(folder, lower),
                Route::Meeting(meeting) => self.begin_after_meeting(meeting, lower),
            };
            begun.push(beginning.map_err(|error| error.of(format!("rank {lower}")))?);
        }
        for _ in usize::from(job.rank) + 1..job.size {
            self.accept_rank()?;
        }
        debug_assert_eq!(begun.len(), usize::from(job.rank), "all lower ranks were called");
        for (lower, begun) in begun.into_iter().enumerate() {
            let finished = match begun {
                Beginning::Here(begun) => self.finish_connect(begun),
                Beginning::Elsewhere(begun) => self.finish_connect_net(begun),
            };
            finished.map_err(|error| error.of(format!("rank {lower}")))?;
        }
        self.connect_loopback()?;
        self.accept_queue.close();
        Ok(())
    }

    /// Adds the missing ranks to the error of a wait that was too long.
    #[cold]
    fn who_is_missing(&self, error: SetupError) -> SetupError {
        const NAMED_MAX: usize = 16;
        let SetupError::TimedOut(what) = error else { return error };
        let is_missing = |rank: &usize| *rank != self.rank() && self.peer(*rank).is_none();
        let missing: Vec<_> = (0..self.size).filter(is_missing).collect();
        let named: Vec<_> = missing.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = if missing.len() > NAMED_MAX { " and others" } else { "" };
        let called = match what == A_PEER {
            true => self.remote.unanswered().map(|what| format!(", among them {what}")),
            false => Some(format!(", among them {what}")),
        };
        let called = called.unwrap_or_default();
        match &named[..] {
            [] => SetupError::TimedOut(what),
            named => SetupError::timed_out(format!(
                "{} of the job's {} ranks: {}{more}; they have not come or do not answer{called}",
                missing.len(),
                self.size,
                named.join(", ")
            )),
        }
    }

    /// Opens the port to the job's other hosts; returns its addresses. Collective.
    // spec: LIFE-21, LIFE-36, SEAL-12
    fn open_to_hosts(&mut self, job: &mut Job) -> Result<RankAddresses, SetupError> {
        let mut options = match job.choices.plain {
            true => NetOptions::plain(),
            false => NetOptions::sealed(&job.route.key()?)?,
        };
        let told = job.route.addresses().iter();
        options = told.fold(options, |options, ip| options.at((*ip, 0).into()));
        options = options.ethernet(job.choices.ethernet);
        if let Some(plan) = job.choices.faults {
            options = options.faults(plan);
        }
        let at = self.open_net(&options)?;
        Ok(RankAddresses { is_any: self.remote.is_at_any(), at })
    }
}

impl Job {
    /// Finds the launcher by the environment. If one launcher has started another one, the inner
    /// one counts.
    // spec: LIFE-2, LIFE-23
    fn of_launcher(timeout: Duration) -> Result<Self, SetupError> {
        let choices = Choices::read()?;
        if folder::is_named() {
            return folder::read(choices);
        }
        match launcher::find(timeout)? {
            Some(board) => meeting::hold(board, choices),
            None => Err(launcher::none()),
        }
    }
}

impl Route {
    /// Listens for ranks of this host.
    fn listen(&mut self) -> Result<Listener, SetupError> {
        match self {
            Self::Folder(folder) => folder.listen(),
            Self::Meeting(meeting) => meeting.listen(),
        }
    }

    /// The job's key. Collective: blocks until rank 0 has published it.
    fn key(&mut self) -> Result<Zeroizing<String>, SetupError> {
        match self {
            Self::Folder(folder) => folder.key(),
            Self::Meeting(meeting) => meeting.key(),
        }
    }

    /// The addresses at which the launcher has this rank open to other hosts, if it gives any.
    fn addresses(&self) -> &[IpAddr] {
        match self {
            Self::Folder(folder) => folder.addresses(),
            Self::Meeting(_) => &[],
        }
    }

    /// Tells this rank's addresses to the ranks of other hosts.
    fn publish(&mut self, own: &RankAddresses) -> Result<(), SetupError> {
        match self {
            Self::Folder(folder) => folder.publish(own),
            Self::Meeting(meeting) => meeting.publish(own),
        }
    }

    /// Whether some ranks do not know their host.
    fn has_unknown_hosts(&self) -> bool {
        match self {
            Self::Folder(_) => false,
            Self::Meeting(meeting) => meeting.has_unknown_hosts(),
        }
    }

    /// Tells the launcher that no more requests follow.
    fn finish(&mut self) {
        if let Self::Meeting(meeting) = self {
            meeting.finish();
        }
    }
}

/// An error of the environment, or of the launcher behind it.
fn wrong(what: impl Into<String>) -> SetupError {
    SetupError::Environment(what.into())
}

/// An error: a variable has a wrong value.
fn wrong_variable(name: &str) -> SetupError {
    let text = std::env::var(name).unwrap_or_default();
    wrong(format!("{name}={text}"))
}
