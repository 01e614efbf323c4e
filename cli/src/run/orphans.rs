//! Processes that ranks left behind: a wrapper script that is told to end leaves its program
//! running.
//!
//! The launcher asks to inherit such orphans, so that it can end them with a job that has failed.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

use super::ranks::Ranks;

/// The orphans that have been told to end and have not been reaped.
#[derive(Default)]
pub(super) struct Orphans {
    told: HashSet<Pid>,
}

impl Orphans {
    /// Has orphans of this process's descendants become its children.
    pub(super) fn inherit() -> Self {
        // A kernel that refuses gives the orphans to init, as without a launcher.
        let _ = set_child_subreaper(Some(getpid()));
        Self::default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    pub(super) fn reaped(&mut self, process: Pid) {
        self.told.remove(&process);
    }

    /// Asks those inherited since the last call to end. One that cannot be signalled is let go:
    /// it belongs to another user.
    pub(super) fn end_new(&mut self, ranks: &Ranks) {
        for process in children() {
            if !ranks.contains(process) && !self.told.contains(&process) {
                if kill_process(process, Signal::TERM).is_ok() {
                    self.told.insert(process);
                }
                // A stopped process acts on a signal when it is continued.
                let _ = kill_process(process, Signal::CONT);
            }
        }
    }

    /// Kills all that are inherited by now.
    pub(super) fn kill(&mut self, ranks: &Ranks) {
        for process in children() {
            if !ranks.contains(process) && kill_process(process, Signal::KILL).is_ok() {
                self.told.insert(process);
            }
        }
    }
}

/// The children of this process, read from every process's own record: the kernel's list by parent
/// is an option that many kernels lack.
fn children() -> Vec<Pid> {
    let own = getpid();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok().and_then(Pid::from_raw))
        .filter(|process| parent_of(*process) == Some(own))
        .collect()
}

fn parent_of(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name, in parentheses, may itself contain parentheses and blanks.
    let (_, after_name) = stat.rsplit_once(") ")?;
    Pid::from_raw(after_name.split(' ').nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_from_the_record() {
        assert_eq!(parent_of(getpid()), rustix::process::getppid());
    }
}
