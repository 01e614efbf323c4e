//! Descriptors that a program's own calls cannot reach.
use ayre::guest::hidden::{Hidden, is_hidden, make_way, numbers};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_getfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The table of descriptors is the whole process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counter() -> OwnedFd {
    eventfd(0, EventfdFlags::NONBLOCK).unwrap()
}

fn add(counter: BorrowedFd<'_>, number: u64) {
    rustix::io::write(counter, &number.to_ne_bytes()).unwrap();
}

fn sum(counter: BorrowedFd<'_>) -> u64 {
    let mut sum = [0; 8];
    rustix::io::read(counter, &mut sum).unwrap();
    u64::from_ne_bytes(sum)
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: the kernel answers with an error where nothing is open.
    fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
}

/// Puts a file of the program at a number, as dup2 does.
fn put_at(fd: RawFd) -> OwnedFd {
    let file = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: it takes any numbers, and the test owns what was there.
    let made = unsafe { libc::dup2(file.as_raw_fd(), fd) };
    assert_eq!(made, fd);
    // SAFETY: it was just made, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn a_hidden_descriptor_has_a_high_number_until_it_is_dropped() {
    let _alone = alone();
    let plain = counter();
    let low = plain.as_raw_fd();
    let hidden = Hidden::new(plain).unwrap();
    let fd = hidden.number();
    assert!(fd > low && !is_open(low), "it was moved");
    assert!(is_hidden(fd) && !is_hidden(low));
    assert_eq!(numbers(), [fd]);
    assert_eq!(hidden.fd().as_raw_fd(), fd);
    assert!(fcntl_getfd(hidden.fd()).unwrap().contains(FdFlags::CLOEXEC));
    add(hidden.fd(), 3);
    assert_eq!(sum(hidden.fd()), 3);
    drop(hidden);
    assert!(!is_hidden(fd) && !is_open(fd) && numbers().is_empty());
}

#[test]
fn numbers_that_cannot_be_hidden_are_not() {
    for fd in [-1, RawFd::MIN, RawFd::MAX, 0, 1, 1 << 20, (1 << 20) - 1] {
        assert!(!is_hidden(fd), "{fd}");
        assert_eq!(make_way(fd), Ok(()));
    }
}

#[test]
fn a_hidden_descriptor_makes_way_for_the_programs_file() {
    let _alone = alone();
    let hidden = [(); 3].map(|()| Hidden::new(counter()).unwrap());
    let before: Vec<RawFd> = hidden.iter().map(Hidden::number).collect();
    assert_eq!(numbers(), before, "in order");
    make_way(before[1]).unwrap();
    let moved = hidden[1].number();
    assert!(!before.contains(&moved) && moved > before[1]);
    assert!(is_hidden(moved) && !is_hidden(before[1]));
    let file = put_at(before[1]);
    add(hidden[1].fd(), 5);
    assert_eq!(sum(hidden[1].fd()), 5, "it is the same file");
    assert_eq!((hidden[0].number(), hidden[2].number()), (before[0], before[2]));
    // The program has that number now.
    assert_eq!(make_way(before[1]), Ok(()));
    assert!(!is_hidden(file.as_raw_fd()));
    drop(hidden);
    assert!(is_open(before[1]), "the program's file stays");
    assert!(!is_open(moved) && numbers().is_empty());
}

#[test]
fn without_a_free_number_a_hidden_descriptor_stays_where_it_is() {
    let _alone = alone();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let hidden = Hidden::new(counter()).unwrap();
    let fd = hidden.number();
    assert!((48..64).contains(&fd), "below the limit: {fd}");
    let other = counter();
    let fill: Vec<OwnedFd> = std::iter::from_fn(|| fcntl_dupfd_cloexec(&other, 24).ok()).collect();
    let refused = [make_way(fd), Hidden::new(counter()).map(drop)];
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(!fill.is_empty());
    for refused in refused {
        assert!(matches!(refused, Err(Errno::MFILE | Errno::INVAL)), "{refused:?}");
    }
    assert!(is_hidden(fd) && hidden.number() == fd && numbers() == [fd]);
    add(hidden.fd(), 1);
    assert_eq!(sum(hidden.fd()), 1);
}
