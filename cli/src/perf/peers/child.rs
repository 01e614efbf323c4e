//! Programs of others: started on a core, waited for, and never left running.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::run::Pinned;

/// The longest time that a program may run; a machine that others use as well is slow.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time that it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Whether a program of this name is found.
pub(super) fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// A line of what a program says of itself.
pub(super) fn line_of(program: &str, arguments: &[&str], begins: &str) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find(|line| line.starts_with(begins)).map(|line| line.trim().to_owned())
}

/// Runs a program to its end; returns what it wrote.
pub(in crate::perf) fn run(command: &mut Command) -> Result<String> {
    Running::start(command, None)?.wait(Instant::now() + TIMEOUT)
}

/// Runs a server that listens at `port` on the first core, then a client on the second one; returns
/// what the client wrote.
pub(super) fn run_pair(
    server: &mut Command,
    client: &mut Command,
    port: u16,
    cores: &[usize],
) -> Result<String> {
    let end = Instant::now() + TIMEOUT;
    let core = |number: usize| cores.get(number % cores.len().max(1)).copied();
    let mut server = Running::start(server, core(0))?;
    server.listens(port, end)?;
    let said = Running::start(client, core(1))?.wait(end)?;
    server.wait(end)?;
    Ok(said)
}

/// A port of TCP that nobody has.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A program, which goes with this.
struct Running {
    child: Child,
    name: String,
    output: File,
}

impl Running {
    fn start(command: &mut Command, core: Option<usize>) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        // Memory takes all that it writes, also while nobody reads.
        let output = File::from(memfd_create("ayre-perf-peer", MemfdFlags::CLOEXEC)?);
        let _pinned = core.map(Pinned::to).transpose()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
            .with_context(|| name.clone())?;
        Ok(Self { child, name, output })
    }

    /// Waits until it listens. Nothing tells when another program does, but the kernel's tables.
    #[expect(clippy::disallowed_methods, reason = "no event tells that another program listens")]
    fn listens(&mut self, port: u16, end: Instant) -> Result<()> {
        while !is_listened_to(port) {
            if self.child.try_wait()?.is_some() {
                bail!("{} has ended: {}", self.name, self.said()?);
            }
            ensure!(Instant::now() < end, "{} does not listen", self.name);
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits for its end; returns what it wrote.
    fn wait(&mut self, end: Instant) -> Result<String> {
        ensure!(self.ends(end)?, "{} takes too long: {}", self.name, self.said()?);
        let status = self.child.wait()?;
        let said = self.said()?;
        ensure!(status.success(), "{}: {status}: {said}", self.name);
        Ok(said)
    }

    /// Whether it has ended by then.
    fn ends(&self, end: Instant) -> Result<bool> {
        let pid = Pid::from_child(&self.child);
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let mut watched = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left)?;
        Ok(poll(&mut watched, Some(&left))? > 0)
    }

    /// Its output so far.
    fn said(&self) -> Result<String> {
        let bytes = fs::read(format!("/proc/self/fd/{}", self.output.as_raw_fd()))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // One that has started others, as `mpirun` does, ends them when it is asked.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if !matches!(self.ends(Instant::now() + GRACE), Ok(true)) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn is_listened_to(port: u16) -> bool {
    const LISTENING: &str = "0A";
    let suffix = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    tables.iter().flatten().flat_map(|table| table.lines()).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().is_some_and(|local| local.ends_with(&suffix));
        local && words.nth(1) == Some(LISTENING)
    })
}

/// A folder that goes with this.
pub(in crate::perf) struct Folder(PathBuf);

impl Folder {
    pub(in crate::perf) fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("ayre-perf-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    pub(in crate::perf) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_awaited_and_their_output_is_kept() {
        assert!(is_installed("sh") && !is_installed("no-program-of-this-name"));
        let said = run(Command::new("sh").args(["-c", "echo out; echo err >&2"])).unwrap();
        assert_eq!(said, "out\nerr");
        let error = run(Command::new("sh").args(["-c", "echo why; exit 3"])).unwrap_err();
        assert!(error.to_string().ends_with("exit status: 3: why"), "{error}");
    }

    #[test]
    fn a_program_that_stays_goes_with_its_owner() {
        let running = Running::start(Command::new("sleep").arg("1000"), None).unwrap();
        assert!(!running.ends(Instant::now()).unwrap());
        let pid = Pid::from_child(&running.child);
        drop(running);
        assert!(pidfd_open(pid, PidfdFlags::empty()).is_err());
    }

    #[test]
    fn a_port_is_listened_to_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listened_to(port));
        let error = run_pair(
            Command::new("sh").args(["-c", "echo no; exit 1"]),
            &mut Command::new("true"),
            free_port().unwrap(),
            &[],
        );
        assert!(error.unwrap_err().to_string().contains("has ended: no"));
    }
}
