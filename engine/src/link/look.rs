//! Looks at the ports of other processes through their windows.
use super::report::WireReport;
use super::stats_socket::{is_ours, stream, unfiled};
use crate::clock::{self, poll_until};
use crate::error::SetupError;
use crate::folder::Folder;
use crate::sys::descriptor::Descriptor;
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, read};
use rustix::net::{SocketAddrUnix, connect};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest report that is read: of as many links as a port can have, many times over.
const TEXT_MAX: usize = 1 << 26;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// The reports of the ports that this user's processes have open to other hosts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WireReports {
    /// By process, then by number of the port.
    pub reports: Vec<WireReport>,
    /// Ports that told nothing in time, or nothing that can be read: stopped processes, or ones of
    /// another version. By the names of their sockets, which begin with the process's number.
    pub silent: Vec<String>,
}

/// Looks at all ports that this user's processes on this machine have open to other hosts, without
/// disturbing them. Waits for at most `timeout`. Sockets of killed processes are removed.
///
/// # Errors
/// [`SetupError::Os`] where the system refuses to wait.
// spec: WIRE-8, WIRE-10
pub fn wire_reports(timeout: Duration) -> Result<WireReports, SetupError> {
    let until = clock::now() + timeout;
    let mut seen = WireReports::default();
    let folders = Folder::all();
    let mut views = Vec::new();
    for folder in &folders {
        for name in folder.ports() {
            match View::open(folder, &name) {
                Ok(socket) => views.push(View { name, socket, text: Vec::new(), is_done: false }),
                // There is nobody behind it any more.
                Err(Errno::CONNREFUSED) => folder.remove(&name),
                Err(Errno::NOENT) => {}
                Err(_) => seen.silent.push(name),
            }
        }
    }
    for name in unfiled_names() {
        // Whoever is no process of this user or of root has nothing to tell of this user's.
        match View::open_unfiled(&name) {
            Ok(socket) if !is_ours(&socket) => {}
            Ok(socket) => views.push(View { name, socket, text: Vec::new(), is_done: false }),
            Err(Errno::CONNREFUSED) => {}
            Err(_) => seen.silent.push(name),
        }
    }
    read_all(&mut views, until)?;
    for view in views {
        match view.report() {
            Some(report) => seen.reports.push(report),
            None => seen.silent.push(view.name),
        }
    }
    seen.reports.sort_by_key(|report| (report.process, report.number));
    Ok(seen)
}

/// Names without a file at which this user's endpoints can be looked at, as the system lists them.
fn unfiled_names() -> BTreeSet<String> {
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let start = unfiled();
    let names = listed.lines().filter_map(|line| line.rsplit_once('@').map(|(_, name)| name));
    names.filter(|name| name.starts_with(&start)).map(str::to_owned).collect()
}

/// Reads from all at once, since any may let the others wait.
fn read_all(views: &mut [View], until: Instant) -> Result<(), SetupError> {
    while clock::now() < until {
        let open = views.iter().filter(|view| !view.is_done);
        let mut fds: Vec<_> = open.map(|view| PollFd::new(&view.socket, PollFlags::IN)).collect();
        if fds.is_empty() {
            return Ok(());
        }
        poll_until(&mut fds, Some(until))?;
        views.iter_mut().filter(|view| !view.is_done).for_each(View::read);
    }
    Ok(())
}

/// A look at a port.
struct View {
    name: String,
    socket: Descriptor,
    text: Vec<u8>,
    is_done: bool,
}

impl View {
    fn open(folder: &Folder, name: &str) -> Result<Descriptor, Errno> {
        let socket = stream()?;
        connect(&socket, &folder.address(name)?)?;
        Ok(socket)
    }

    fn open_unfiled(name: &str) -> Result<Descriptor, Errno> {
        let socket = stream()?;
        connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(socket)
    }

    fn read(&mut self) {
        debug_assert!(!self.is_done, "what has ended is not read on");
        let mut chunk = [0; CHUNK];
        match read(&self.socket, &mut chunk) {
            Ok(0) => self.is_done = true,
            Ok(len) => self.text.extend_from_slice(&chunk[..len]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.is_done = true,
        }
        self.is_done |= self.text.len() > TEXT_MAX;
    }

    fn report(&self) -> Option<WireReport> {
        serde_json::from_slice(&self.text).ok()
    }
}
