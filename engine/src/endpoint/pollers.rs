//! Users of this host's processors, as far as an endpoint knows them: endpoints of other processes,
//! and threads of this process that poll endpoints.
//!
//! A thread counts for a while after it has polled, and once, however many endpoints it polls. So
//! an endpoint of this process is no neighbour: the thread that polls it is counted.
use crate::machine::processors::Processors;
use crate::peer::agreement::Name;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::fork::{self, Shared};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, MutexGuard, Once};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// For how long a thread counts. In a crowd its polls are far between.
const RECENTLY: Duration = Duration::from_millis(100);

/// State that the endpoints of a process share.
#[derive(Default)]
struct Pollers {
    finds: HashMap<Name, Arc<AtomicU32>>,
    threads: Threads,
}

/// Threads that have polled, the time of their last poll, and their processors.
#[derive(Default)]
struct Threads(Vec<(ThreadId, Instant, Option<Processors>)>);

impl Threads {
    /// One polls. How many do, and on which processors; none where one does not know its own.
    fn polls(
        &mut self,
        (thread, own): (ThreadId, Option<Processors>),
        now: Instant,
    ) -> (usize, Option<Processors>) {
        self.0.retain(|(other, at, _)| *other != thread && now - *at < RECENTLY);
        self.0.push((thread, now, own));
        debug_assert!(
            self.0.iter().filter(|(it, ..)| *it == thread).count() == 1,
            "it counts once"
        );
        let all = self.0.iter().map(|(_, _, own)| *own);
        (self.0.len(), all.reduce(|all, own| Some(all?.or(own?))).flatten())
    }
}

static POLLERS: LazyLock<Shared<Pollers>> = LazyLock::new(|| {
    watch_forks();
    Shared::new(Pollers::default())
});

pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| fork::around(Some(before_fork), Some(in_parent), Some(in_child)));
}

extern "C" fn before_fork() {
    POLLERS.before_fork();
}

extern "C" fn in_parent() {
    POLLERS.after_fork(|_| {});
}

/// A child has none of the endpoints and threads.
extern "C" fn in_child() {
    POLLERS.after_fork(|pollers| *pollers = Pollers::default());
}

fn pollers() -> MutexGuard<'static, Pollers> {
    POLLERS.lock()
}

/// An endpoint's place among those of its process.
#[derive(Debug)]
pub(super) struct Place {
    name: Name,
    /// Polls of the endpoint that found something: only it counts them.
    finds: Arc<AtomicU32>,
    /// Those of all others, when they were added up last.
    others: u32,
}

impl Place {
    pub(super) fn take(name: Name) -> Self {
        let finds = Arc::new(AtomicU32::new(0));
        pollers().finds.insert(name, Arc::clone(&finds));
        Self { name, finds, others: 0 }
    }

    /// A poll has found something: the how many-th.
    #[inline(always)]
    pub(super) fn find(&self) -> u32 {
        let finds = self.finds().wrapping_add(1);
        self.finds.store(finds, Ordering::Relaxed);
        finds
    }

    /// How many polls have found something.
    #[inline(always)]
    pub(super) fn finds(&self) -> u32 {
        self.finds.load(Ordering::Relaxed)
    }

    /// Whether other endpoints of this process have found something since this was asked last.
    pub(super) fn have_others_found(&mut self) -> bool {
        let pollers = pollers();
        let others = pollers.finds.iter().filter(|(name, _)| **name != self.name);
        let finds = others.map(|(_, finds)| finds.load(Ordering::Relaxed));
        let finds = finds.fold(0, u32::wrapping_add);
        std::mem::replace(&mut self.others, finds) != finds
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        pollers().finds.remove(&self.name);
    }
}

thread_local! {
    /// When this thread's last nap was over, at whichever endpoint.
    static NAPPED: Cell<Option<Instant>> = const { Cell::new(None) };
}

thread_local! {
    /// On which processors this thread may run, and when that was asked.
    static AFFINITY: Cell<Option<(Instant, Option<Processors>)>> = const { Cell::new(None) };
}

/// This thread's nap is over now.
pub(super) fn has_napped(now: Instant) {
    NAPPED.set(Some(now));
}

/// Whether this thread may nap for so long: it has been awake for as long.
pub(super) fn may_nap(nap: Duration, now: Instant) -> bool {
    NAPPED.get().is_none_or(|over| is_earned(over, now, nap))
}

fn is_earned(over: Instant, now: Instant, nap: Duration) -> bool {
    now.saturating_duration_since(over) >= nap
}

/// Whether an endpoint is one of this process.
pub(super) fn is_of_this_process(name: Name) -> bool {
    pollers().finds.contains_key(&name)
}

/// This thread polls. How many threads do, and on which processors.
pub(super) fn polls(now: Instant) -> (usize, Option<Processors>) {
    let known = AFFINITY.get().filter(|(asked, _)| now - *asked < RECENTLY);
    let (_, own) = known.unwrap_or_else(|| {
        let own = (now, Processors::of_this_thread());
        AFFINITY.set(Some(own));
        own
    });
    pollers().threads.polls((thread::current().id(), own), now)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ENV-5
    #[test]
    fn threads_count_once_each_and_not_for_ever() {
        let ids = [(); 3].map(|()| thread::spawn(|| thread::current().id()).join().unwrap());
        let (mut threads, start) = (Threads::default(), Instant::now());
        let mut at = |thread: usize, when: u32| {
            threads.polls((ids[thread], None), start + RECENTLY / 4 * when).0
        };
        assert_eq!([at(0, 0), at(0, 1), at(1, 1), at(0, 2), at(2, 3)], [1, 1, 2, 2, 3]);
        assert_eq!(at(2, 5), 2, "the second has not polled since");
        assert_eq!(at(2, 6), 1);
    }

    // spec: ENV-5
    #[test]
    fn a_thread_that_napped_stays_awake_as_long_at_any_endpoint() {
        let (nap, over) = (Duration::from_micros(250), Instant::now());
        assert!(!is_earned(over, over, nap) && !is_earned(over, over + nap * 99 / 100, nap));
        assert!(is_earned(over, over + nap, nap));
        let ages = Duration::from_secs(1 << 20);
        assert!(may_nap(ages, over), "it never has");
        has_napped(over);
        assert!(!may_nap(ages, over) && may_nap(Duration::ZERO, over));
        let other = move || assert!(may_nap(ages, over), "another thread never has");
        thread::spawn(other).join().unwrap();
    }
}
