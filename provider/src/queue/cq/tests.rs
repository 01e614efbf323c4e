//! Queues with a source that stands for the engine.

use super::*;
use crate::abi::WAIT_FD;
use crate::object::registry::tests::owner;
use crate::object::wait::try_wait;
use crate::queue::sources::Source;
use crate::sys::threads::Serial;
use ayre_guest::cell::Shared;
use ayre_guest::layout::version;
use std::sync::Mutex;
use std::thread;

/// Milliseconds after which a sleeper that nobody has woken fails its test.
const PATIENCE: c_int = 60_000;

fn queue<L: Policy>(size: usize, is_managed: bool, wait: u32) -> Arc<Cq<L>> {
    let wait = Attachment::open(wait, std::ptr::null()).unwrap();
    let api = version(1, 17);
    Arc::new(Cq::new(owner(), Terms { size, is_managed, api }, wait))
}

fn some(context: usize) -> QueuedCompletion {
    QueuedCompletion::new(context, 0)
}

fn read<L: Policy>(cq: &Cq<L>, count: usize) -> Outcome<Vec<usize>> {
    let mut contexts = Vec::new();
    cq.read(count, |at, completion| {
        assert_eq!(at, contexts.len());
        contexts.push(completion.context);
    })?;
    Ok(contexts)
}

fn completions_come_in_order<L: Policy>() {
    let cq = queue::<L>(4, true, 0);
    assert_eq!(read(&cq, 4), Err(Code::AGAIN));
    (1..=3).for_each(|context| _ = cq.write(some(context)));
    assert_eq!(read(&cq, 2), Ok(vec![1, 2]));
    assert_eq!(read(&cq, 0), Err(Code::AGAIN));
    assert_eq!(read(&cq, 2), Ok(vec![3]));
}

#[test]
fn completions_come_in_order_under_both_policies() {
    completions_come_in_order::<Shared>();
    completions_come_in_order::<Serial>();
}

#[test]
fn a_managed_queue_keeps_all_completions() {
    let cq = queue::<Serial>(2, true, 0);
    cq.write(some(1));
    assert!(!cq.is_full());
    (2..=5).for_each(|context| _ = cq.write(some(context)));
    assert!(cq.is_full());
    assert_eq!(read(&cq, 9), Ok(vec![1, 2, 3, 4, 5]));
}

#[test]
fn an_unmanaged_queue_tells_that_it_was_overrun() {
    let cq = queue::<Serial>(2, false, 0);
    (1..=3).for_each(|context| _ = cq.write(some(context)));
    assert_eq!(read(&cq, 9), Ok(vec![1, 2]));
    cq.write(some(4));
    assert_eq!(read(&cq, 9), Err(Code(errno::EAVAIL)));
    assert_eq!(cq.read_failure(|failure| failure.err), Ok(errno::EOVERRUN));
    assert_eq!(read(&cq, 9), Err(Code(errno::EAVAIL)));
}

#[test]
fn a_failure_is_read_before_anything_else() {
    let cq = queue::<Shared>(4, true, 0);
    cq.write(some(1));
    let failure = Failure {
        completion: some(2),
        olen: 5,
        err: errno::ETRUNC,
        prov_errno: 7,
        data: vec![1, 2, 3],
    };
    cq.write_failure(failure.clone());
    assert_eq!(read(&cq, 1), Err(Code(errno::EAVAIL)));
    assert_eq!(cq.read_failure(Failure::clone), Ok(failure));
    assert_eq!(cq.read_failure(|_| ()), Err(Code::AGAIN));
    assert_eq!(read(&cq, 1), Ok(vec![1]));
}

/// Writes one completion each time it is given time, as long as it has some.
struct Feed {
    left: Mutex<usize>,
    to: std::sync::Weak<Cq<Shared>>,
}

impl Source for Feed {
    fn progress(&self) -> bool {
        let mut left = self.left.lock().unwrap();
        if let Some(next) = left.checked_sub(1) {
            self.to.upgrade().unwrap().write(some(*left));
            *left = next;
            return true;
        }
        false
    }
}

#[test]
fn reading_an_empty_queue_makes_progress() {
    let cq = queue::<Shared>(4, true, 0);
    let feed = Feed { left: Mutex::new(2), to: Arc::downgrade(&cq) };
    let source: Arc<dyn Source> = Arc::new(feed);
    cq.sources.add(&source, None).unwrap();
    cq.sources.add(&source, None).unwrap();
    assert_eq!(read(&cq, 4), Ok(vec![2]));
    assert_eq!(read(&cq, 4), Ok(vec![1]));
    assert_eq!(read(&cq, 4), Err(Code::AGAIN));
    cq.sources.remove(&source);
    assert_eq!(Arc::strong_count(&source), 1);
}

/// Finds something at each look; of one of them, something is told.
struct Unexpected {
    looks: Mutex<usize>,
    told: usize,
    to: std::sync::Weak<Cq<Shared>>,
}

impl Source for Unexpected {
    fn progress(&self) -> bool {
        let mut looks = self.looks.lock().unwrap();
        *looks += 1;
        if *looks == self.told {
            self.to.upgrade().unwrap().write(some(*looks));
        }
        true
    }
}

#[test]
fn reading_progresses_past_events_without_a_completion() {
    let cq = queue::<Shared>(4, true, 0);
    let to = Arc::downgrade(&cq);
    let feed = Arc::new(Unexpected { looks: Mutex::new(0), told: 9, to });
    let source: Arc<dyn Source> = feed.clone();
    cq.sources.add(&source, None).unwrap();
    assert_eq!(read(&cq, 4), Ok(vec![9]));
    assert_eq!(read(&cq, 4), Err(Code::AGAIN), "it finds more without end");
    let looks = *feed.looks.lock().unwrap() - 9;
    assert!((2..100).contains(&looks), "{looks} looks");
    assert_eq!(read(&cq, 0), Err(Code::AGAIN));
    cq.sources.remove(&source);
}

/// Something that a sleeper should hear of.
type News = fn(&Cq<Shared>);

#[test]
fn a_sleeper_is_woken_by_each_kind_of_news() {
    let cq = queue::<Shared>(4, true, WAIT_FD);
    let news: [News; 3] = [
        |cq| _ = cq.write(some(1)),
        |cq| {
            let completion = some(0);
            let data = Vec::new();
            cq.write_failure(Failure { completion, olen: 0, err: 5, prov_errno: 0, data });
        },
        |cq| cq.signal().unwrap(),
    ];
    let wanted = [Ok(1), Err(Code(errno::EAVAIL)), Err(Code::AGAIN)];
    for (news, wanted) in news.into_iter().zip(wanted) {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| cq.read_blocking(1, PATIENCE, |_, _| ()));
            news(&cq);
            assert_eq!(sleeper.join().unwrap(), wanted);
        });
        let _ = cq.read_failure(|_| ());
    }
}

#[test]
fn as_many_sleepers_as_completions_are_woken() {
    let cq = queue::<Shared>(64, true, WAIT_FD);
    for _ in 0..200 {
        thread::scope(|scope| {
            let sleepers: Vec<_> =
                (0..3).map(|_| scope.spawn(|| cq.read_blocking(1, PATIENCE, |_, _| ()))).collect();
            (0..3).for_each(|context| _ = cq.write(some(context)));
            sleepers.into_iter().for_each(|sleeper| assert_eq!(sleeper.join().unwrap(), Ok(1)));
        });
    }
}

#[test]
fn waiting_ends_when_time_is_up_and_needs_something_to_wait_with() {
    let cq = queue::<Shared>(4, true, WAIT_FD);
    assert_eq!(cq.read_blocking(1, 0, |_, _| ()), Err(Code::AGAIN));
    assert_eq!(cq.read_blocking(1, 5, |_, _| ()), Err(Code::AGAIN));
    let cq = queue::<Shared>(4, true, 0);
    assert_eq!(cq.read_blocking(1, 5, |_, _| ()), Err(Code::INVALID));
    assert_eq!(cq.signal(), Err(Code::INVALID));
}

#[test]
fn trywait_permits_sleep_only_on_an_empty_queue() {
    let cq = queue::<Shared>(4, true, WAIT_FD);
    assert_eq!(try_wait(&*cq), Ok(()));
    cq.write(some(1));
    assert_eq!(try_wait(&*cq), Err(Code::AGAIN));
    assert_eq!(read(&cq, 1), Ok(vec![1]));
    assert_eq!(try_wait(&*cq), Ok(()));
}

/// Has data only for who sleeps until its descriptor is readable.
struct Line {
    bell: rustix::fd::OwnedFd,
    has_rung: Mutex<bool>,
    to: std::sync::Weak<Cq<Shared>>,
}

impl Source for Line {
    fn progress(&self) -> bool {
        let has_rung = std::mem::take(&mut *self.has_rung.lock().unwrap());
        if has_rung {
            rustix::io::read(&self.bell, &mut [0; 8]).unwrap();
            self.to.upgrade().unwrap().write(some(9));
        }
        has_rung
    }

    fn arm(&self) -> bool {
        !*self.has_rung.lock().unwrap()
    }

    fn descriptor(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.bell))
    }
}

#[test]
fn a_sleeper_is_woken_by_what_arrives() {
    let cq = queue::<Shared>(4, true, WAIT_FD);
    let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let line = Line { bell, has_rung: Mutex::new(false), to: Arc::downgrade(&cq) };
    let line = Arc::new(line);
    let source: Arc<dyn Source> = line.clone();
    cq.sources.add(&source, Waitable::wait(&*cq)).unwrap();
    for _ in 0..100 {
        thread::scope(|scope| {
            let sleeper =
                scope.spawn(|| cq.read_blocking(1, PATIENCE, |_, it| assert_eq!(it.context, 9)));
            rustix::io::write(&line.bell, &1u64.to_ne_bytes()).unwrap();
            *line.has_rung.lock().unwrap() = true;
            assert_eq!(sleeper.join().unwrap(), Ok(1));
        });
    }
}

#[test]
fn threads_read_each_completion_once() {
    const EACH: usize = 20_000;
    let cq = queue::<Shared>(16, true, WAIT_FD);
    let seen = Mutex::new(vec![0u8; 2 * EACH]);
    thread::scope(|scope| {
        for writer in 0..2 {
            let cq = &cq;
            scope.spawn(move || (0..EACH).for_each(|n| _ = cq.write(some(writer * EACH + n))));
        }
        let read = |blocks: bool| {
            let mut left = EACH;
            while left > 0 {
                let mut batch = Vec::new();
                let sink = |_, it: &QueuedCompletion| batch.push(it.context);
                let read = match blocks {
                    true => cq.read_blocking(left.min(7), PATIENCE, sink),
                    false => cq.read(left.min(7), sink),
                };
                assert!(read == Ok(batch.len()) || read == Err(Code::AGAIN) && !blocks);
                left -= batch.len();
                let mut seen = seen.lock().unwrap();
                batch.iter().for_each(|context| seen[*context] += 1);
            }
        };
        scope.spawn(move || read(true));
        scope.spawn(move || read(false));
    });
    assert!(seen.into_inner().unwrap().iter().all(|count| *count == 1));
}
