//! Processes that a test starts from its own binary.
use super::directory::Directory;
use super::line::Line;
use super::system::{Watched, activity};
use super::watchdog::Watchdog;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid,
};
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// Says to a process of which test it is, and which number it has.
const CHILD: &str = "AYRE_TEST_CHILD";

/// Runs `test` here; it may start processes, in each of which `child` runs with its number.
///
/// To be called once, first, and directly by a test function: it is found again by its name.
pub fn with_processes<C: FnOnce(u64, Line)>(child: C, test: impl FnOnce(&Family)) {
    let name = function_of(&child);
    if let Some(number) = own_number(name) {
        // A test that dies, dies with its processes.
        set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal of the parent's end");
        super::container::enter();
        child(number, Line::to_parent());
        std::process::exit(0);
    }
    let rounds = super::random::soak_rounds().unwrap_or(0) as u32;
    let mut family = Family {
        name,
        directory: Directory::new(),
        started: Cell::new(0),
        watchdog: Watchdog::start(rounds),
    };
    test(&family);
    assert!(!family.watchdog.stop(), "the test ended only because its processes were killed");
}

/// The path of a test within its binary, from the type of a closure in it.
fn function_of<C>(_: &C) -> &'static str {
    let path = std::any::type_name::<C>();
    let path = path.trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, path)| path)
}

fn own_number(name: &str) -> Option<u64> {
    let value = std::env::var(CHILD).ok()?;
    let (test, number) = value.split_once(' ').expect("test and number");
    assert_eq!(test, name, "a process runs the test that it was started for");
    Some(number.parse().expect("a number"))
}

/// The processes of one test.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    directory: Directory,
    started: Cell<u64>,
    watchdog: Watchdog,
}

impl Family {
    /// A folder for the test's sockets and its job directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Starts a process; they are numbered from 0 on.
    pub fn start(&self) -> Process {
        self.start_with(|_| {})
    }

    /// Starts a process as a rank of a job in the test's folder.
    pub fn start_rank(&self, rank: usize, size: usize) -> Process {
        self.start_rank_with(rank, size, |_| {})
    }

    /// Starts a rank with more in its environment.
    pub fn start_rank_with(
        &self,
        rank: usize,
        size: usize,
        prepare: impl FnOnce(&mut Command),
    ) -> Process {
        self.start_with(|command| {
            command.env("AYRE_JOB", self.directory.path());
            command.env("AYRE_RANK", rank.to_string()).env("AYRE_SIZE", size.to_string());
            prepare(command);
        })
    }

    /// Starts all ranks of a job.
    pub fn start_job(&self, size: usize) -> Vec<Process> {
        (0..size).map(|rank| self.start_rank(rank, size)).collect()
    }

    /// Starts a process with more in its environment.
    pub fn start_with(&self, prepare: impl FnOnce(&mut Command)) -> Process {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.start_command(command, prepare)
    }

    /// The command that starts this program for this test alone.
    pub fn words(&self) -> Vec<String> {
        let program = std::env::current_exe().expect("this program");
        let program = program.into_os_string().into_string().expect("a path that is text");
        let options = [self.name, "--exact", "--nocapture", "--include-ignored"];
        [program].into_iter().chain(options.map(str::to_owned)).collect()
    }

    /// Starts a command, the last words of which start this program.
    pub fn start_command(
        &self,
        mut command: Command,
        prepare: impl FnOnce(&mut Command),
    ) -> Process {
        let number = self.started.replace(self.started.get() + 1);
        let (near, far) = Line::pair();
        for name in ["AYRE_JOB", "AYRE_RANK", "AYRE_SIZE", "AYRE_MODE", "AYRE_PROCESSORS"] {
            command.env_remove(name);
        }
        command.env(CHILD, format!("{} {number}", self.name));
        command.stdin(far.into_stdin()).stdout(Stdio::null());
        prepare(&mut command);
        let child = command.spawn().expect("a process of this test");
        let watched = Arc::new(Watched::new(Pid::from_child(&child)));
        self.watchdog.add(&watched);
        Process { number, child, line: near, ended: false, _watched: watched }
    }
}

/// A process of a test.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub number: u64,
    /// The line to it.
    pub line: Line,
    child: Child,
    ended: bool,
    _watched: Arc<Watched>,
}

impl Process {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it; when this returns, none of its instructions is executed any more.
    pub fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).expect("the process is there");
        let found = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("a child");
        assert!(found.expect("a state").1.stopped(), "the process ended instead of stopping");
    }

    /// Waits until it sleeps and stays asleep, many looks in a row.
    pub fn until_asleep(&self) {
        let mut before = activity(self.id());
        let mut looks = 0;
        while looks < 100 {
            std::thread::yield_now();
            let now = activity(self.id());
            looks = if now.asleep && now == before { looks + 1 } else { 0 };
            before = now;
        }
    }

    /// Lets it go on.
    pub fn resume(&self) {
        kill_process(self.pid(), Signal::CONT).expect("the process is there");
    }

    /// Kills it at whatever instruction it is; when this returns, it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process is there");
        let status = self.wait();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "it had ended before: {status}");
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        self.ended = true;
        self.child.wait().expect("a child")
    }

    /// Waits until it has ended well.
    #[track_caller]
    pub fn succeeds(&mut self) {
        let status = self.wait();
        assert!(status.success(), "process {} failed: {status}", self.number);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
