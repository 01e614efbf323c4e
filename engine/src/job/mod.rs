//! Parallel jobs: ranks that a launcher started find each other, and meet in barriers.
//!
//! | started by | the ranks meet | |
//! |---|---|---|
//! | `ayre run` | in a folder, the job directory | [`folder`] |
//! | MPICH's `mpiexec`, Slurm | at the launcher's *board*, by PMI | [`pmi`] |
//! | Open MPI's `mpirun`, PRRTE, Slurm | at the launcher's board, by PMIx | [`pmix`] |
//!
//! A board takes a text of each rank and hands all of them to each. What ranks tell each other
//! there is [`meeting`]'s subject; after that no launcher is needed.
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
use addresses::Whereabouts;
use choices::Choices;
use folder::Folder;
use meeting::Meeting;
use std::net::IpAddr;
use std::time::Duration;
use zeroize::Zeroizing;

/// What a rank is told of its job, or has found out.
#[derive(Debug)]
struct Job {
    rank: u16,
    size: usize,
    /// Ranks of this host.
    here: usize,
    /// Processors that these share, as far as that is known.
    processors: Option<usize>,
    choices: Choices,
    route: Route,
}

/// By what the ranks find each other.
#[derive(Debug)]
enum Route {
    Folder(Folder),
    Meeting(Box<Meeting>),
}

/// A connection that was begun with a rank of this host or of another one.
enum Beginning {
    Here(Begun),
    Elsewhere(BegunLink),
}

impl Port {
    /// Joins the job that a launcher started (`ayre run`, or one that speaks PMIx or PMI): connects
    /// this rank with every other one, and with itself. Collective; waits for all ranks.
    ///
    /// A launcher other than `ayre run` is asked once: a process joins one job.
    ///
    /// # Errors
    /// [`SetupError::Environment`] where the program was not started by a launcher, or that one
    /// does not do what it should; [`SetupError::PeerLeft`], [`SetupError::TimedOut`] where a rank
    /// does not come.
    // spec: LIFE-2, LIFE-4
    pub fn join() -> Result<Self, SetupError> {
        Self::join_with(Config::new())
    }

    /// Whether a launcher has started this process as a rank of a job, so that it can join it: what
    /// a program asks that also works alone.
    // spec: LIFE-23
    pub fn is_launched() -> bool {
        folder::is_named() || launcher::is_named()
    }

    /// Joins the job with other than the default choices. The launcher's mode holds where it is
    /// the stricter one; where ranks outnumber processors, waits give way early.
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

    /// Connects to all lower ranks and accepts all higher ones. Nobody waits for an answer before
    /// everybody has been asked, so no order of arrival can block.
    // spec: LIFE-3, LIFE-5
    fn mesh(&mut self, job: &mut Job) -> Result<(), SetupError> {
        self.doors.open(job.route.listen()?);
        self.doors.let_in_ranks(job.rank, job.size);
        if job.here < job.size {
            let own = match self.open_to_hosts(job) {
                // It may be that all can be called here: that is found by trying.
                Err(_) if job.route.has_unknown_hosts() => Whereabouts::default(),
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
        self.doors.close();
        Ok(())
    }

    /// Says which ranks have not come, where waiting for them has taken too long.
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

    /// Opens the port to the job's other hosts; where it is then. Collective.
    // spec: LIFE-21, LIFE-36, SEAL-12
    fn open_to_hosts(&mut self, job: &mut Job) -> Result<Whereabouts, SetupError> {
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
        Ok(Whereabouts { is_any: self.remote.is_at_any(), at })
    }
}

impl Job {
    /// Asks the environment which launcher there is. The innermost one counts, where one was
    /// started by another.
    // spec: LIFE-2, LIFE-23
    fn of_launcher(patience: Duration) -> Result<Self, SetupError> {
        let choices = Choices::read()?;
        if folder::is_named() {
            return folder::read(choices);
        }
        match launcher::find(patience)? {
            Some(board) => meeting::hold(board, choices),
            None => Err(launcher::none()),
        }
    }
}

impl Route {
    /// Takes calls from ranks of this host.
    fn listen(&mut self) -> Result<Listener, SetupError> {
        match self {
            Self::Folder(folder) => folder.listen(),
            Self::Meeting(meeting) => meeting.listen(),
        }
    }

    /// The job's key. Collective; waits for rank 0.
    fn key(&mut self) -> Result<Zeroizing<String>, SetupError> {
        match self {
            Self::Folder(folder) => folder.key(),
            Self::Meeting(meeting) => meeting.key(),
        }
    }

    /// Where the launcher has this rank be open to other hosts, if it says so.
    fn addresses(&self) -> &[IpAddr] {
        match self {
            Self::Folder(folder) => folder.addresses(),
            Self::Meeting(_) => &[],
        }
    }

    /// Tells the ranks of other hosts where this one is.
    fn publish(&mut self, own: &Whereabouts) -> Result<(), SetupError> {
        match self {
            Self::Folder(folder) => folder.publish(own),
            Self::Meeting(meeting) => meeting.publish(own),
        }
    }

    /// Whether some ranks cannot tell on which host they are.
    fn has_unknown_hosts(&self) -> bool {
        match self {
            Self::Folder(_) => false,
            Self::Meeting(meeting) => meeting.has_unknown_hosts(),
        }
    }

    /// What there was to ask the launcher has been asked.
    fn finish(&mut self) {
        if let Self::Meeting(meeting) = self {
            meeting.finish();
        }
    }
}

/// The environment, or the launcher behind it, is wrong.
fn wrong(what: impl Into<String>) -> SetupError {
    SetupError::Environment(what.into())
}

/// A variable is wrong.
fn wrong_variable(name: &str) -> SetupError {
    let text = std::env::var(name).unwrap_or_default();
    wrong(format!("{name}={text}"))
}
