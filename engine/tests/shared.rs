//! Queues, locks and memory that processes share without ports.
use ayre::shared::{LockMisuse, SharedLock, SharedQueue, Taken};
use ayre::{Busy, Fault, PostError, ReceiveError, Region, SetupError};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_millis(5));

/// Opens the queue as another process does.
fn again(queue: &SharedQueue) -> SharedQueue {
    SharedQueue::of_file(queue.to_file().unwrap()).unwrap()
}

/// Runs `f` in a forked child, which must not return; returns the child's number.
fn fork(f: impl FnOnce()) -> libc::pid_t {
    // SAFETY: what the child does takes no lock of this process's but the allocator's.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        f();
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(1) };
    }
    child
}

fn kill(child: libc::pid_t) {
    // SAFETY: it is our child, which nobody has reaped.
    unsafe {
        assert_eq!(libc::kill(child, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
    }
}

/// Has a child come to a point and stay there, and kills it.
fn die_at(f: impl FnOnce(&dyn Fn())) {
    let (here, there) = UnixStream::pair().unwrap();
    let child = fork(|| {
        f(&|| {
            std::io::Write::write_all(&mut &there, b".").unwrap();
            let _ = (&there).read(&mut [0; 1]);
        });
    });
    (&here).read_exact(&mut [0; 1]).unwrap();
    kill(child);
}

#[test]
fn each_record_goes_to_one_consumer_in_its_producers_order() {
    const PRODUCERS: u64 = 4;
    const RECORDS: u64 = 20_000;
    for most in [None, Some(3)] {
        let queue = SharedQueue::new(1 << 16, most).unwrap();
        let taken = std::thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let queue = again(&queue);
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        let filler = vec![number as u8; (number % 500) as usize];
                        let head = [producer.to_ne_bytes(), number.to_ne_bytes()].concat();
                        queue.enqueue_wait(&[&head, &filler], None).unwrap();
                    }
                });
            }
            let consume = || {
                let queue = again(&queue);
                scope.spawn(move || {
                    let mut taken: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
                    loop {
                        let record = queue.dequeue_wait(None, |record| record.to_vec()).unwrap();
                        let Some((head, filler)) = record.split_at_checked(16) else { break };
                        let word = |at| u64::from_ne_bytes(*head[at..].first_chunk().unwrap());
                        assert_eq!(filler.len() as u64, word(8) % 500);
                        assert!(filler.iter().all(|byte| *byte == word(8) as u8));
                        taken.entry(word(0)).or_default().push(word(8));
                    }
                    // The end is for the next one, too.
                    queue.enqueue_wait(&[b"end"], None).unwrap();
                    taken
                })
            };
            let consumers = [(); 3].map(|()| consume());
            let count = || queue.unfinished() as u64;
            while count() < PRODUCERS * RECORDS {
                std::thread::yield_now();
            }
            queue.enqueue_wait(&[b"end"], None).unwrap();
            consumers.map(|consumer| consumer.join().unwrap())
        });
        for producer in 0..PRODUCERS {
            let of = |taken: &BTreeMap<u64, Vec<u64>>| taken.get(&producer).cloned();
            let each: Vec<_> = taken.iter().filter_map(of).collect();
            assert!(each.iter().all(|numbers| numbers.is_sorted()));
            let mut all = each.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..RECORDS));
        }
    }
}

#[test]
fn records_stay_apart_on_all_ways_round_the_ring() {
    // The sizes take the ring through all its blocks, with and without anything in it.
    let queue = SharedQueue::new(256 << 20, None).unwrap();
    let text = |number: usize| vec![number as u8; 100_000 * (1 + number % 40)];
    let (mut put, mut taken) = (0, 0);
    for burst in [1, 30, 2, 31, 7, 1, 1, 33, 12, 5] {
        for _ in 0..burst {
            queue.enqueue_wait(&[&text(put)], SOON).unwrap();
            put += 1;
        }
        let stays = burst % 3;
        while put - taken > stays {
            let record = queue.dequeue_wait(SOON, |record| record.to_vec()).unwrap();
            assert!(record == text(taken), "record {taken}");
            taken += 1;
        }
    }
    assert_eq!(queue.len(), put - taken);
}

#[test]
fn a_full_queue_and_an_empty_one_say_so() {
    let queue = SharedQueue::new(4096, Some(2)).unwrap();
    assert_eq!(queue.try_dequeue(|_| ()), None);
    assert_eq!(queue.dequeue_wait(SOON, |_| ()), Err(ReceiveError::TimedOut));
    queue.try_enqueue(&[b"a"]).unwrap();
    assert!(!queue.is_full());
    queue.try_enqueue(&[b"b"]).unwrap();
    assert!(queue.is_full() && queue.len() == 2 && queue.most() == Some(2));
    assert_eq!(queue.try_enqueue(&[b"c"]), Err(Busy::QueueFull.into()));
    assert_eq!(queue.enqueue_wait(&[b"c"], SOON), Err(Busy::QueueFull.into()));
    let longest = queue.record_max();
    let too_long = queue.try_enqueue(&[&vec![0; longest], b"!"]);
    assert_eq!(too_long, Err(PostError::Fault(Fault::TooLong)));
    assert_eq!(queue.try_dequeue(|record| record.to_vec()), Some(b"a".to_vec()));
    queue.enqueue_wait(&[&vec![7; longest]], None).unwrap();
    assert_eq!(queue.try_dequeue(|record| record.len()), Some(1));
    assert_eq!(queue.try_dequeue(|record| record.len()), Some(longest));
    for (capacity, most) in [(0, None), (SharedQueue::CAPACITY_MAX + 1, None), (1, Some(0))] {
        let refused = SharedQueue::new(capacity, most);
        assert!(matches!(refused, Err(SetupError::Invalid(_))), "{refused:?}");
    }
}

#[test]
fn a_join_waits_for_records_that_are_not_done() {
    let queue = SharedQueue::new(4096, None).unwrap();
    assert!(queue.wait_done(None) && !queue.mark_done());
    queue.try_enqueue(&[b"a"]).unwrap();
    queue.try_enqueue(&[b"b"]).unwrap();
    assert!(!queue.wait_done(SOON));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| again(&queue).wait_done(None));
        assert!(queue.mark_done() && queue.unfinished() == 1 && queue.mark_done());
        assert!(waits.join().unwrap());
    });
    assert!(!queue.mark_done());
}

#[test]
fn a_consumer_that_dies_while_it_copies_leaves_the_record() {
    let queue = SharedQueue::new(4096, None).unwrap();
    queue.try_enqueue(&[b"a record"]).unwrap();
    die_at(|stay| {
        queue.dequeue_wait(None, |_| stay()).unwrap();
    });
    let record = queue.dequeue_wait(None, |record| record.to_vec()).unwrap();
    assert_eq!(record, b"a record");
}

#[test]
fn files_of_other_kinds_are_refused() {
    let memory = Region::shared(1 << 16).unwrap();
    let refused = SharedQueue::of_file(memory.to_file().unwrap());
    assert!(matches!(refused, Err(SetupError::Invalid(_))), "{refused:?}");
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let refused = Region::of_file(file.try_clone().unwrap().into());
    assert!(matches!(refused, Err(SetupError::UnsafeFile)), "{refused:?}");
    let refused = SharedQueue::of_file(file.into());
    assert!(matches!(refused, Err(SetupError::UnsafeFile)), "{refused:?}");
}

#[test]
fn memory_is_shared_with_those_that_have_the_file() {
    let here = Region::shared(100).unwrap();
    let there = Region::of_file(here.to_file().unwrap()).unwrap();
    here.write(10, b"hello");
    let mut text = [0; 5];
    there.read(10, &mut text);
    assert_eq!((&text, here.len()), (b"hello", 100));
    let child = fork(|| {
        here.write(10, b"child");
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(0) };
    });
    // SAFETY: it is our child.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    there.read(10, &mut text);
    assert_eq!(&text, b"child");
    let mut port = ayre::Port::open(ayre::Config::new()).unwrap();
    let own = port.connect_loopback().unwrap();
    let refused = port.share(own, &here, 0..64, ayre::Rights::all(), 0);
    assert!(refused.is_err(), "it is no port's");
}

#[test]
fn a_lock_excludes_threads_and_tells_of_its_holders_death() {
    let region = Region::shared(4096).unwrap();
    assert!(SharedLock::open(&region, 64).is_err(), "none was made there");
    let lock = SharedLock::new(&region, 64).unwrap();
    let theirs = SharedLock::open(&region, 64).unwrap();
    assert_eq!(lock.try_lock(), Ok(Some(Taken::Free)));
    assert_eq!(lock.try_lock(), Err(LockMisuse::Held));
    assert_eq!(lock.lock(None), Err(LockMisuse::Held));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| (theirs.try_lock(), theirs.lock(SOON), theirs.unlock()));
        let found = (Ok(None), Ok(None), Err(LockMisuse::NotHeld));
        assert_eq!(other.join().unwrap(), found);
        let waits = scope.spawn(|| (theirs.lock(None), theirs.unlock()));
        lock.unlock().unwrap();
        assert_eq!(waits.join().unwrap(), (Ok(Some(Taken::Free)), Ok(())));
    });
    assert_eq!(lock.unlock(), Err(LockMisuse::NotHeld));
    die_at(|stay| {
        lock.lock(None).unwrap();
        stay();
    });
    assert_eq!(lock.lock(None), Ok(Some(Taken::Abandoned)));
    lock.unlock().unwrap();
    assert_eq!(lock.lock(None), Ok(Some(Taken::Free)));
    for wrong in [4, 4096, 4096 - 56, usize::MAX - 7] {
        let refused = SharedLock::new(&region, wrong);
        assert!(matches!(refused, Err(SetupError::Invalid(_))), "{refused:?}");
    }
}
