//! Jobs of `ayre run`: the ranks meet in a folder.
//!
//! Each rank listens at `<rank>.sock` in the job's directory. The socket appears there by a rename
//! once it listens, so a rank that sees it can connect; ranks that come earlier wait by inotify.
//!
//! In a job of several hosts, each host has its own directory. There, a rank of another host has a
//! file `<rank>.addr` with the addresses of its port, and the file `key` has the key of the links.
use super::addresses::RankAddresses;
use super::choices::Choices;
use super::{Beginning, Job, Route, wrong, wrong_variable};
use crate::error::SetupError;
use crate::port::Port;
use crate::port::setup::{Begun, Listener};
use crate::settings::ADDRESSES;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use ayre_proto::limits::PEERS_MAX;
use rustix::fd::AsFd;
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The variables that give a rank of `ayre run` its place; all of them are required.
const NAMES: [&str; 3] = ["AYRE_JOB", "AYRE_RANK", "AYRE_SIZE"];

/// Whether the environment says that this process is a rank of `ayre run`.
pub(super) fn is_named() -> bool {
    NAMES.iter().any(|name| std::env::var_os(name).is_some())
}

// spec: LIFE-2, LIFE-21
pub(super) fn read(choices: Choices) -> Result<Job, SetupError> {
    let (rank, size) = (number("AYRE_RANK")?, number("AYRE_SIZE")?);
    check_rank(rank, size, "AYRE_RANK, AYRE_SIZE")?;
    let processors = number("AYRE_PROCESSORS").ok();
    let directory = PathBuf::from(variable("AYRE_JOB")?);
    let here = match std::env::var("AYRE_HOST_RANKS") {
        Ok(text) => {
            parse_range(&text, rank, size).ok_or_else(|| wrong_variable("AYRE_HOST_RANKS"))?
        }
        Err(_) => 0..size as u16,
    };
    let addresses = match variable(ADDRESSES) {
        Ok(text) => parse_addresses(&text).ok_or_else(|| wrong_variable(ADDRESSES))?,
        Err(_) => Vec::new(),
    };
    debug_assert!(here.contains(&(rank as u16)), "a rank is on its host");
    debug_assert!(usize::from(here.end) <= size, "a host has ranks of the job only");
    let (rank, count) = (rank as u16, here.len());
    let route = Route::Folder(Folder { directory, rank, here, addresses, arrivals: None });
    Ok(Job { rank, size, here: count, processors, choices, route })
}

/// Checks that the rank is one of the job's, and that a port can have this number of peers. The
/// error names the variables in `told_by`.
pub(super) fn check_rank(rank: usize, size: usize, told_by: &str) -> Result<(), SetupError> {
    if size > PEERS_MAX {
        return Err(wrong(format!(
            "a job of {size} ranks ({told_by}); it has {PEERS_MAX} at most"
        )));
    }
    if rank >= size {
        return Err(wrong(format!(
            "rank {rank} of {size} ranks ({told_by}), which are numbered from 0 on"
        )));
    }
    Ok(())
}

fn variable(name: &str) -> Result<String, SetupError> {
    let missing = |_| wrong(format!("{name} is not set; start the program with `ayre run`"));
    std::env::var(name).map_err(missing)
}

fn number(name: &str) -> Result<usize, SetupError> {
    let text = variable(name)?;
    text.parse().map_err(|_| wrong(format!("{name}={text} is no number")))
}

/// Parses the ranks `first..end` of a job, which must contain this one.
fn parse_range(text: &str, rank: usize, size: usize) -> Option<Range<u16>> {
    let (first, end) = text.split_once("..")?;
    let range = first.parse::<u16>().ok()?..end.parse::<u16>().ok()?;
    let valid = range.contains(&(rank as u16)) && usize::from(range.end) <= size;
    valid.then_some(range)
}

/// Parses IP addresses, one for each path.
fn parse_addresses(text: &str) -> Option<Vec<IpAddr>> {
    text.split(',').map(|address| address.parse().ok()).collect()
}

/// The directory of a job, or of one host's part of it.
#[derive(Debug)]
pub(super) struct Folder {
    directory: PathBuf,
    rank: u16,
    /// The ranks of this host.
    here: Range<u16>,
    /// The addresses for other hosts, if the launcher has found them.
    addresses: Vec<IpAddr>,
    arrivals: Option<Arrivals>,
}

impl Folder {
    /// Listens in the directory. The socket's file is removed with the listener; the launcher
    /// removes the directory.
    // spec: LIFE-3
    pub(super) fn listen(&mut self) -> Result<Listener, SetupError> {
        debug_assert!(self.arrivals.is_none(), "a rank listens once");
        self.arrivals = Some(Arrivals::watch(self)?);
        let (tmp, file) = (self.file(self.rank, "tmp"), self.file(self.rank, "sock"));
        let mut listener = Listener::at_path(&tmp)?;
        listener.rename(file).map_err(in_directory)?;
        Ok(listener)
    }

    pub(super) fn key(&self) -> Result<Zeroizing<String>, SetupError> {
        let file = std::fs::read_to_string(self.directory.join("key")).map_err(in_directory)?;
        Ok(Zeroizing::new(Zeroizing::new(file).trim().to_owned()))
    }

    /// The addresses at which the launcher has this rank open to other hosts, if it gives any.
    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Has the launcher tell the other hosts this rank's addresses.
    // spec: LIFE-36
    pub(super) fn publish(&self, own: &RankAddresses) -> Result<(), SetupError> {
        let lines: String = own.words().iter().map(|word| format!("{word}\n")).collect();
        let (tmp, file) = (self.file(self.rank, "addr.tmp"), self.file(self.rank, "addr"));
        std::fs::write(&tmp, lines).map_err(in_directory)?;
        std::fs::rename(tmp, file).map_err(in_directory)
    }

    fn file(&self, rank: u16, what: &str) -> PathBuf {
        self.directory.join(format!("{rank}.{what}"))
    }
}

impl Port {
    pub(super) fn begin_in_folder(
        &mut self,
        folder: &Folder,
        rank: u16,
    ) -> Result<Beginning, SetupError> {
        debug_assert!(rank < folder.rank, "a rank calls those below");
        Ok(match folder.here.contains(&rank) {
            true => Beginning::Here(self.connect_when_there(folder, rank)?),
            false => {
                let RankAddresses { is_any, at } = self.read_when_there(folder, rank)?;
                Beginning::Elsewhere(self.begin_connect_by((&at, is_any), Some(rank))?)
            }
        })
    }

    fn connect_when_there(&mut self, folder: &Folder, rank: u16) -> Result<Begun, SetupError> {
        let path = folder.file(rank, "sock");
        loop {
            match self.begin_connect(&path) {
                Err(SetupError::Os { errno: Errno::NOENT, .. }) => self.wait_arrival(folder)?,
                other => return other,
            }
        }
    }

    /// The addresses of a rank of another host; waits until the launcher has written them.
    // spec: LIFE-36
    fn read_when_there(&mut self, folder: &Folder, rank: u16) -> Result<RankAddresses, SetupError> {
        let path = folder.file(rank, "addr");
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let read = RankAddresses::of_words(text.lines());
                    let wrong = || wrong(format!("{} has no addresses", path.display()));
                    return read.filter(|read| !read.at.is_empty()).ok_or_else(wrong);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => self.wait_arrival(folder)?,
                Err(error) => return Err(in_directory(error)),
            }
        }
    }

    fn wait_arrival(&mut self, folder: &Folder) -> Result<(), SetupError> {
        let arrivals = folder.arrivals.as_ref().expect("a rank listens before it connects");
        let deadline = self.clock.within(self.config.setup_timeout);
        self.wait_readable(arrivals.watch.as_fd(), deadline)?;
        arrivals.take();
        Ok(())
    }
}

fn in_directory(error: std::io::Error) -> SetupError {
    wrong(format!("job directory: {error}"))
}

/// A watch for sockets that appear in the job's directory.
#[derive(Debug)]
struct Arrivals {
    watch: Descriptor,
}

impl Arrivals {
    /// Starts the watch before the first look, so that no socket is missed.
    fn watch(folder: &Folder) -> Result<Self, SetupError> {
        let watch = descriptor::watcher().map_err(SetupError::os("inotify"))?;
        inotify::add_watch(&watch, &folder.directory, WatchFlags::MOVED_TO)
            .map_err(SetupError::os("watch the job directory"))?;
        Ok(Self { watch })
    }

    /// Discards the events: the caller looks for itself.
    fn take(&self) {
        let mut events = [MaybeUninit::uninit(); 1024];
        while rustix::io::read(&self.watch, &mut events[..]).is_ok_and(|(read, _)| !read.is_empty())
        {
        }
    }
}
