//! The watchdog: a test that hangs fails instead.
use super::system::Watched;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Until the processes of a test are killed.
const LIMIT: Duration = Duration::from_secs(180);
/// More for each round of a soak.
const ROUND: Duration = Duration::from_secs(3);
/// Then, until the test itself is.
const GRACE: Duration = Duration::from_secs(20);

/// Watches one test.
#[derive(Debug)]
pub struct Watchdog {
    watched: Arc<Mutex<Vec<Weak<Watched>>>>,
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<bool>>,
}

impl Watchdog {
    /// Starts to watch a test, for longer if it soaks for `rounds` rounds.
    pub fn start(rounds: u32) -> Self {
        let (done, asked) = channel();
        let watched = Arc::new(Mutex::new(Vec::new()));
        let theirs = watched.clone();
        let thread = std::thread::spawn(move || watch(&asked, LIMIT + ROUND * rounds, &theirs));
        Self { watched, done: Some(done), thread: Some(thread) }
    }

    /// Watches a process too, for as long as the test keeps it.
    pub fn add(&self, process: &Arc<Watched>) {
        let mut watched = self.watched.lock().expect("no panic under the lock");
        watched.retain(|process| process.strong_count() != 0);
        watched.push(Arc::downgrade(process));
    }

    /// Ends watching. Returns whether it had to bite.
    pub fn stop(&mut self) -> bool {
        drop(self.done.take());
        let thread = self.thread.take();
        thread.is_some_and(|thread| thread.join().expect("the watchdog does not panic"))
    }
}

fn watch(asked: &Receiver<()>, limit: Duration, watched: &Mutex<Vec<Weak<Watched>>>) -> bool {
    if asked.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected) {
        return false;
    }
    eprintln!("watchdog: the test does not end");
    for process in watched.lock().expect("no panic under the lock").iter() {
        process.upgrade().iter().for_each(|process| process.kill_hung());
    }
    if asked.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
        eprintln!("watchdog: nor does it without its processes");
        std::process::abort();
    }
    true
}
