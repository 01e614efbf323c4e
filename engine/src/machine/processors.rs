//! The processors that threads may use: by their affinity, and by the time limits of control
//! groups.
use super::cgroup::{Groups, number, said};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;

/// The most threads of another process that are asked.
const THREADS_MAX: usize = 64;

/// A set of processors, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processors(CpuSet);

impl Processors {
    pub(crate) fn none() -> Self {
        Self(CpuSet::new())
    }

    /// The processors of this thread; None where the system does not report them.
    pub(crate) fn of_this_thread() -> Option<Self> {
        sched_getaffinity(None).ok().map(Self)
    }

    /// The processors of all threads of a process together; None where the system does not report
    /// them.
    pub(crate) fn of_process(process: u32) -> Option<Self> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        let all = [process].into_iter().chain(threads.take(THREADS_MAX));
        let known = all.filter_map(|thread| {
            sched_getaffinity(Some(Pid::from_raw(i32::try_from(thread).ok()?)?)).ok()
        });
        known.map(Self).reduce(Self::or)
    }

    /// The union of two sets.
    pub(crate) fn or(mut self, other: Self) -> Self {
        if self == other {
            return self;
        }
        let added = (0..CpuSet::MAX_CPU).filter(|processor| other.0.is_set(*processor));
        added.for_each(|processor| self.0.set(processor));
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.0.count() as usize
    }
}

/// The processors whose time this process may use, rounded up; None where that is not limited.
pub(crate) fn quota() -> Option<usize> {
    least(&Groups::of("cpu"))
}

fn least(groups: &Groups) -> Option<usize> {
    let unified = groups.unified.iter().filter_map(|group| {
        let text = said(group, "cpu.max")?;
        let (quota, period) = text.split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?))
    });
    let first = groups.of_controller.iter().filter_map(|group| {
        Some((number(group, "cpu.cfs_quota_us")?, number(group, "cpu.cfs_period_us")?))
    });
    let all = unified.chain(first).filter(|(_, period): &(u64, u64)| *period > 0);
    let whole = all.map(|(quota, period)| quota.div_ceil(period).max(1));
    whole.min().and_then(|least| usize::try_from(least).ok())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::cgroup::tests::Mounted;
    use super::*;
    use rustix::thread::sched_setaffinity;

    // spec: ENV-5
    #[test]
    fn quotas_of_both_versions_are_rounded_up() {
        let files = [
            ("unified/a/cpu.max", "150000 100000\n"),
            ("unified/a/b/cpu.max", "max 100000\n"),
            ("cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let mounted = Mounted::new("cpu", &files);
        let of = |listed: &str| least(&mounted.groups(listed, "cpu"));
        assert_eq!(of("0::/a/b\n"), Some(2));
        assert_eq!(of("2:cpu:/a\n0::/\n"), Some(1));
        assert_eq!(of("2:cpu:/\n0::/\n"), None);
        assert_eq!(of(""), None);
    }

    // spec: ENV-5
    #[test]
    fn processors_are_those_that_threads_may_run_on() {
        let all = Processors::of_this_thread().unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|processor| all.0.is_set(*processor)).unwrap();
        let own = std::thread::spawn(move || {
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            Processors::of_this_thread().unwrap().count()
        });
        assert_eq!(own.join().unwrap(), 1);
        assert!(Processors::of_process(std::process::id()).unwrap().count() >= all.count());
        assert_eq!(Processors::none().or(all).count(), all.count());
    }
}
