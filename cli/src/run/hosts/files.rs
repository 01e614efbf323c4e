//! The addresses of ranks, as files of a job directory.
//!
//! A rank that others reach over a network writes `<rank>.addr` under another name and renames it.
//! The file has one address and port per line, after a line `any` if each may lead there or
//! nowhere. The agents carry these files to the directories of all other hosts. So a rank finds all
//! of its peers in its own directory: `<rank>.sock` or `<rank>.addr`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use super::channel::{ADDRESSES_MAX, Address};

/// More than all addresses take.
const FILE_BYTES_MAX: u64 = 1024;
/// Before addresses of which any may lead to the rank.
const ANY: &str = "any";

/// The address files of a job directory.
pub(super) struct AddressFiles {
    directory: PathBuf,
    /// Ranks of this host whose file has not come.
    awaited: BTreeSet<u16>,
    watch: OwnedFd,
}

impl AddressFiles {
    /// Waits for those of the host's own ranks.
    pub(super) fn watch(directory: &Path, own: Range<u16>) -> Result<Self> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let watch = inotify::init(flags).context("watching the job directory")?;
        inotify::add_watch(&watch, directory, WatchFlags::MOVED_TO)
            .context("watching the job directory")?;
        Ok(Self { directory: directory.to_owned(), awaited: own.collect(), watch })
    }

    /// Becomes readable when a file may have come.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// The addresses that have come since the last call.
    pub(super) fn take(&mut self) -> Result<Vec<Address>> {
        self.drain()?;
        let mut taken = Vec::new();
        for rank in &self.awaited {
            match File::open(self.path(*rank, "addr")) {
                Ok(file) => taken.push(read(*rank, file)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => bail!("the address of rank {rank}: {error}"),
            }
        }
        for address in &taken {
            self.awaited.remove(&address.rank);
        }
        Ok(taken)
    }

    /// Writes that of a rank of another host.
    pub(super) fn put(&self, address: &Address) -> Result<()> {
        let any = address.is_any.then(|| format!("{ANY}\n"));
        let lines = address.at.iter().map(|at| format!("{at}\n"));
        let lines: String = any.into_iter().chain(lines).collect();
        let new = self.path(address.rank, "addr-new");
        fs::write(&new, lines)
            .and_then(|()| fs::rename(&new, self.path(address.rank, "addr")))
            .with_context(|| format!("writing the address of rank {}", address.rank))
    }

    /// Discards the events, as the directory is read again after each.
    fn drain(&self) -> Result<()> {
        let mut events = [0; 4096];
        loop {
            match rustix::io::read(&self.watch, &mut events) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => bail!("watching the job directory: {error}"),
            }
        }
    }

    fn path(&self, rank: u16, what: &str) -> PathBuf {
        self.directory.join(format!("{rank}.{what}"))
    }
}

fn read(rank: u16, file: File) -> Result<Address> {
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.with_context(|| format!("the address of rank {rank}"))?;
    let mut lines = text.lines().peekable();
    let is_any = lines.next_if_eq(&ANY).is_some();
    let at = lines.map(str::parse).collect::<Result<_, _>>();
    let at = at.with_context(|| format!("rank {rank} has no address"))?;
    let address = Address { rank, is_any, at };
    ensure!(address.is_valid(), "rank {rank} has no address, or more than {ADDRESSES_MAX}");
    Ok(address)
}

/// Writes the job's key, as hexadecimal digits, into its directory.
pub(super) fn write_key(directory: &Path, key: &[u8; 32]) -> Result<()> {
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(directory.join("key"))
        .and_then(|mut file| io::Write::write_all(&mut file, digits.as_bytes()))
        .context("writing the job's key")
}
