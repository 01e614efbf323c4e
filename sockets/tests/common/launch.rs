//! Processes of a test: the test binary once more, in a role, with the library or without it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The variable that names the role. The role's function runs before `main`, in the main thread,
/// as no test would.
pub(crate) const ROLE: &str = "AYRE_SOCKETS_TEST_ROLE";

/// The variable that names the library; `none` runs everything over plain TCP.
pub(crate) const LIBRARY: &str = "AYRE_SOCKETS_LIBRARY";

/// How the connections of a run are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    Plain,
    Library,
    /// By the library, which takes both processes for such of two hosts.
    Hosts {
        /// The link carries all, encrypted. A plain one leaves bulk to TCP.
        are_sealed: bool,
    },
}

/// The library, or none where a run without one was asked for.
pub(crate) fn library() -> Option<PathBuf> {
    let path = match std::env::var_os(LIBRARY) {
        Some(name) if name == "none" => return None,
        Some(name) => PathBuf::from(name),
        None => {
            let test = std::env::current_exe().expect("the test knows its path");
            // Cargo puts the library beside the tests, in deps/, when it builds them.
            test.parent().expect("a test lies in a folder").join("libayre_sockets.so")
        }
    };
    assert!(path.exists(), "{} is missing: build the package's library", path.display());
    Some(path)
}

/// A folder that goes when its test ends.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("ayre-sockets-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        Self { path }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file of the test's key.
    fn key(&self) -> PathBuf {
        let path = self.file("key");
        let options = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        if let Ok(mut file) = options {
            file.write_all("c0ffee00".repeat(8).as_bytes()).expect("a key of this test");
        }
        path
    }

    /// The text of a file, empty where there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// How the processes of a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Well,
    /// One process ended with another code than 0, or by a signal.
    Badly(String),
    /// The deadline passed.
    Hang,
}

/// Processes that one test has started, each in a group with its children.
pub(crate) struct Crew {
    groups: Vec<i32>,
    ends: Vec<Receiver<String>>,
}

impl Crew {
    pub(crate) fn new() -> Self {
        Self { groups: Vec::new(), ends: Vec::new() }
    }

    /// A command that runs this test binary in a role, whose errors go to the folder's `errors`.
    pub(crate) fn command(folder: &Folder, role: &str, net: Net) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("the test knows its path"));
        let errors = fs::OpenOptions::new().create(true).append(true).open(folder.file("errors"));
        command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.expect("the file of errors opens"));
        command.env_remove("LD_PRELOAD");
        if let (Net::Library | Net::Hosts { .. }, Some(library)) = (net, library()) {
            command.env("LD_PRELOAD", library);
            command.env("AYRE_SOCKETS_REPORT", folder.file("report"));
            if let Net::Hosts { are_sealed } = net {
                let key = folder.key();
                let how = if are_sealed { key.to_str().expect("a path") } else { "plain" };
                command.env("AYRE_SOCKETS_HOSTS", format!("{how},apart"));
            }
        }
        command
    }

    /// Starts a process.
    pub(crate) fn start(&mut self, command: &mut Command) {
        let mut child = command.process_group(0).spawn().expect("it starts");
        self.groups.push(child.id() as i32);
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(ending(&mut child)));
        self.ends.push(receiver);
    }

    /// Waits until all have ended, or one has ended badly, or the deadline has passed. Then ends
    /// all that are left.
    pub(crate) fn wait(self, seconds: u64) -> Ending {
        let mut left: Vec<_> = self.ends.iter().collect();
        let mut slices = seconds * 20;
        let mut worst = Ending::Well;
        while !left.is_empty() && worst == Ending::Well {
            if slices == 0 {
                worst = Ending::Hang;
                break;
            }
            let first = left[0].recv_timeout(Duration::from_millis(50));
            slices -= u64::from(first.is_err());
            let mut ended: Vec<String> = first.into_iter().collect();
            if !ended.is_empty() {
                left.remove(0);
            }
            left.retain(|end| end.try_recv().map(|text| ended.push(text)).is_err());
            if let Some(bad) = ended.into_iter().find(|text| !text.is_empty()) {
                worst = Ending::Badly(bad);
            }
        }
        // Children of the processes are members of the group, too.
        for group in &self.groups {
            let _ = call!(kill(-group, libc::SIGKILL));
        }
        for end in left {
            let _ = end.recv_timeout(Duration::from_secs(10));
        }
        worst
    }
}

/// How a process ended: nothing if well.
fn ending(child: &mut Child) -> String {
    match child.wait() {
        Ok(status) if status.success() => String::new(),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}
