//! Queues, counters, and waiting for them, through libfabric's tables.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ffi::{CStr, c_char, c_void};
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Milliseconds after which a sleeper that nobody has woken fails its test.
const PATIENCE: i32 = 60_000;

const AGAIN: isize = -(errno::EAGAIN as isize);

/// Whether a descriptor is readable now.
fn is_readable(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is there.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}

#[test]
fn an_empty_queue_says_so_in_all_forms() {
    for opened in Opened::of_each_kind() {
        for format in CQ_FORMAT_UNSPEC..=CQ_FORMAT_TAGGED {
            let set = |attr: &mut CqAttr| (attr.format, attr.wait_obj) = (format, WAIT_UNSPEC);
            let cq = open_cq(&opened, set).unwrap();
            let (mut room, mut peers) = ([blank::<CqTaggedEntry>(); 4], [0u64; 4]);
            let place = room.as_mut_ptr().cast::<c_void>();
            assert_eq!(call!(cq, ops.read(place, 4)), AGAIN);
            assert_eq!(call!(cq, ops.read(null_mut(), 0)), AGAIN);
            assert_eq!(call!(cq, ops.readfrom(place, 4, peers.as_mut_ptr())), AGAIN);
            assert_eq!(call!(cq, ops.sread(place, 4, null(), 1)), AGAIN);
            assert_eq!(call!(cq, ops.sreadfrom(place, 4, peers.as_mut_ptr(), null(), 0)), AGAIN);
            assert_eq!(call!(cq, ops.readerr(&mut blank(), 0)), AGAIN);
            assert_eq!(call!(cq, ops.readerr(null_mut(), 0)), -(errno::EINVAL as isize));
            assert_eq!(close(cq), 0);
        }
    }
}

#[test]
fn a_signal_wakes_a_blocked_read() {
    let opened = Opened::new(&Infos::hints());
    let cq = open_cq(&opened, |attr| attr.wait_obj = WAIT_FD).unwrap();
    let address = cq as usize;
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let cq = address as *mut FidCq;
            call!(cq, ops.sread(null_mut(), 0, null(), PATIENCE))
        });
        assert_eq!(call!(cq, ops.signal()), 0);
        assert_eq!(sleeper.join().unwrap(), AGAIN);
    });
    assert_eq!(close(cq), 0);
    let cq = open_cq(&opened, |_| ()).unwrap();
    assert_eq!(call!(cq, ops.signal()), -errno::EINVAL);
    assert_eq!(call!(cq, ops.sread(null_mut(), 0, null(), 0)), -(errno::EINVAL as isize));
    assert_eq!(close(cq), 0);
}

/// The processor time that this thread has used.
fn used() -> Duration {
    let mut usage: libc::rusage = blank();
    // SAFETY: there is a place for the answer.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) }, 0);
    let length = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    length(usage.ru_utime) + length(usage.ru_stime)
}

#[test]
fn a_blocked_wait_uses_no_processor_time() {
    for wait_obj in [WAIT_UNSPEC, WAIT_FD, WAIT_POLLFD] {
        let wishes = Wishes { wait_obj, ..Wishes::default() };
        let opened = wishes.opened();
        let ends = End::pair(&opened, &wishes);
        let (cq, cntr) = (ends[0].cq, open_cntr(&opened, wait_obj));
        assert_eq!(bind(ends[0].ep, cntr, SEND), 0);
        let before = used();
        assert_eq!(call!(cq, ops.sread(null_mut(), 0, null(), 400)), AGAIN);
        assert_eq!(call!(cntr, ops.wait(1, 400)), -errno::ETIMEDOUT);
        assert!(used() - before < Duration::from_millis(400), "of 800 ms");
        ends.into_iter().for_each(End::close);
        assert_eq!(close(cntr), 0);
    }
}

#[test]
fn a_yielding_queue_gives_up_in_time() {
    let opened = Opened::new(&Infos::hints());
    let cq = open_cq(&opened, |attr| attr.wait_obj = WAIT_YIELD).unwrap();
    assert_eq!(call!(cq, ops.sread(null_mut(), 0, null(), 1)), AGAIN);
    let mut fd = -1;
    assert_eq!(control(cq, GETWAIT, &mut fd), -errno::EINVAL);
    assert_eq!(close(cq), 0);
}

#[test]
fn sizes_and_forms_that_are_left_to_us_are_told() {
    let opened = Opened::new(&Infos::hints());
    let (mut attr, mut cq) = (blank::<CqAttr>(), null_mut());
    assert_eq!(call!(opened.domain, ops.cq_open(&mut attr, &mut cq, null_mut())), 0);
    assert_eq!((attr.size, attr.format), (1024, CQ_FORMAT_CONTEXT));
    assert_eq!(close(cq), 0);
}

#[test]
fn errors_have_a_text() {
    let opened = Opened::new(&Infos::hints());
    let (cq, eq) = (open_cq(&opened, |_| ()).unwrap(), open_eq(&opened, 0, WAIT_NONE));
    let mut room = [0x55 as c_char; 12];
    let texts = [
        call!(cq, ops.strerror(5000, null(), room.as_mut_ptr(), room.len())),
        call!(eq, ops.strerror(5000, null(), room.as_mut_ptr(), room.len())),
    ];
    for text in texts {
        assert_eq!(text, room.as_ptr());
        // SAFETY: it was cut to the room, with an end.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"error 5000 ");
    }
    // Without room, it is a text that stays.
    let lasting = call!(cq, ops.strerror(errno::ENOTCONN, null(), null_mut(), 0));
    // SAFETY: it has an end.
    let lasting = unsafe { CStr::from_ptr(lasting) };
    assert_eq!(lasting, c"ayre: the peer has left or died");
    assert_eq!((close(cq), close(eq)), (0, 0));
}

#[test]
fn counters_count() {
    for opened in Opened::of_each_kind() {
        let cntr = open_cntr(&opened, WAIT_UNSPEC);
        assert_eq!(call!(cntr, ops.add(3)), 0);
        assert_eq!(call!(cntr, ops.adderr(2)), 0);
        assert_eq!((call!(cntr, ops.read()), call!(cntr, ops.readerr())), (3, 2));
        assert_eq!(call!(cntr, ops.wait(3, -1)), 0);
        assert_eq!(call!(cntr, ops.wait(4, 2)), -errno::ETIMEDOUT);
        assert_eq!((call!(cntr, ops.set(9)), call!(cntr, ops.seterr(1))), (0, 0));
        assert_eq!((call!(cntr, ops.read()), call!(cntr, ops.readerr())), (9, 1));
        assert_eq!(close(cntr), 0);
        let cntr = open_cntr(&opened, WAIT_NONE);
        assert_eq!(call!(cntr, ops.wait(0, 0)), 0, "it is polled");
        assert_eq!(call!(cntr, ops.wait(1, 1)), -errno::ETIMEDOUT);
        assert_eq!(close(cntr), 0);
    }
}

#[test]
fn a_counter_wakes_its_waiters() {
    let opened = Opened::new(&Infos::hints());
    let cntr = open_cntr(&opened, WAIT_UNSPEC);
    let address = cntr as usize;
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || call!(address as *mut FidCntr, ops.wait(100, PATIENCE)));
        (0..100).for_each(|_| assert_eq!(call!(cntr, ops.add(1)), 0));
        assert_eq!(sleeper.join().unwrap(), 0);
    });
    assert_eq!(close(cntr), 0);
}

fn write(eq: *mut FidEq, number: u32, bytes: &[u8]) -> isize {
    call!(eq, ops.write(number, bytes.as_ptr().cast(), bytes.len(), 0))
}

fn read(eq: *mut FidEq, room: usize, flags: u64) -> (isize, u32, Vec<u8>) {
    let (mut number, mut bytes) = (0, vec![0u8; room]);
    let count = call!(eq, ops.read(&mut number, bytes.as_mut_ptr().cast(), room, flags));
    bytes.truncate(usize::try_from(count).unwrap_or(0));
    (count, number, bytes)
}

#[test]
fn events_are_written_and_read() {
    let opened = Opened::new(&Infos::hints());
    let eq = open_eq(&opened, WRITE, WAIT_FD);
    assert_eq!(read(eq, 8, 0).0, AGAIN);
    assert_eq!(write(eq, NOTIFY, &[1, 2, 3]), 3);
    assert_eq!(read(eq, 2, 0).0, -(errno::ETOOSMALL as isize));
    assert_eq!(read(eq, 8, PEEK), (3, NOTIFY, vec![1, 2, 3]));
    assert_eq!(read(eq, 8, 1), (-(errno::EBADFLAGS as isize), 0, vec![]));
    assert_eq!(read(eq, 8, 0), (3, NOTIFY, vec![1, 2, 3]));
    assert_eq!(write(eq, 77, &[4]), 1);
    let (mut number, mut byte) = (0, 0u8);
    let place = (&raw mut byte).cast();
    assert_eq!(call!(eq, ops.sread(&mut number, place, 1, -1, 0)), 1);
    assert_eq!((number, byte), (77, 4));
    assert_eq!(call!(eq, ops.sread(&mut number, place, 1, 1, 0)), AGAIN);
    assert_eq!(call!(eq, ops.readerr(&mut blank(), 0)), AGAIN);
    assert_eq!(call!(eq, ops.readerr(null_mut(), 0)), -(errno::EINVAL as isize));
    assert_eq!(call!(eq, ops.write(1, null(), 4, 0)), -(errno::EINVAL as isize));
    assert_eq!(call!(eq, ops.write(1, null(), 0, 4)), -(errno::EBADFLAGS as isize));
    assert_eq!(close(eq), 0);
    let eq = open_eq(&opened, 0, WAIT_NONE);
    assert_eq!(write(eq, 1, &[1]), -(errno::EINVAL as isize));
    assert_eq!(call!(eq, ops.sread(&mut number, place, 1, 1, 0)), -(errno::EINVAL as isize));
    assert_eq!(close(eq), 0);
}

#[test]
fn a_descriptor_is_readable_when_there_is_something() {
    let opened = Opened::new(&Infos::hints());
    let eq = open_eq(&opened, WRITE, WAIT_FD);
    let (mut fd, mut kind) = (-1, 0u32);
    assert_eq!(control(eq, GETWAIT, &mut fd), 0);
    assert_eq!(control(eq, GETWAITOBJ, &mut kind), 0);
    assert_eq!(kind, WAIT_FD);
    let mut fids = [fid(eq)];
    let mut try_wait = || call!(opened.fabric, ops.trywait(fids.as_mut_ptr(), 1));
    for _ in 0..3 {
        assert_eq!((try_wait(), is_readable(fd)), (0, false));
        assert_eq!(write(eq, 1, &[1]), 1);
        assert!(is_readable(fd));
        assert_eq!(try_wait(), -errno::EAGAIN);
        assert_eq!(read(eq, 1, 0).0, 1);
    }
    assert_eq!(close(eq), 0);
    let cq = open_cq(&opened, |attr| attr.wait_obj = WAIT_POLLFD).unwrap();
    let mut polled = libc::pollfd { fd: -1, events: 0, revents: 0 };
    let mut list = WaitPollFd { change_index: 0, nfds: 0, fd: &mut polled };
    assert_eq!(control(cq, GETWAIT, &mut list), -errno::ETOOSMALL);
    assert_eq!((list.nfds, control(cq, GETWAIT, &mut list)), (1, 0));
    assert!(polled.fd >= 0 && polled.events == libc::POLLIN);
    assert_eq!(close(cq), 0);
}

#[test]
fn a_wait_set_waits_for_all_its_members() {
    let opened = Opened::new(&Infos::hints());
    let (mut attr, mut set) = (WaitAttr { wait_obj: WAIT_UNSPEC, flags: 0 }, null_mut());
    assert_eq!(call!(opened.fabric, ops.wait_open(&mut attr, &mut set)), 0);
    let join = |attr: &mut CqAttr| (attr.wait_obj, attr.wait_set) = (WAIT_SET, set);
    let cq = open_cq(&opened, join).unwrap();
    let (mut attr, mut eq) = (blank::<EqAttr>(), null_mut());
    (attr.flags, attr.wait_obj, attr.wait_set) = (WRITE, WAIT_SET, set);
    assert_eq!(call!(opened.fabric, ops.eq_open(&mut attr, &mut eq, null_mut())), 0);
    assert_eq!(close(set), -errno::EBUSY);
    assert_eq!(call!(set, ops.wait(1)), -errno::ETIMEDOUT);
    assert_eq!(call!(cq, ops.sread(null_mut(), 0, null(), 0)), -(errno::EINVAL as isize));
    let address = set as usize;
    for _ in 0..50 {
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || call!(address as *mut FidWait, ops.wait(PATIENCE)));
            assert_eq!(write(eq, 1, &[1]), 1);
            assert_eq!(sleeper.join().unwrap(), 0);
        });
        assert_eq!(read(eq, 1, 0).0, 1);
    }
    assert_eq!((close(cq), close(eq), close(set)), (0, 0, 0));
}

#[test]
fn a_poll_set_lists_objects_with_events() {
    for opened in Opened::of_each_kind() {
        let mut set = null_mut();
        assert_eq!(call!(opened.domain, ops.poll_open(&mut blank(), &mut set)), 0);
        let (cq, cntr) = (open_cq(&opened, |_| ()).unwrap(), open_cntr(&opened, WAIT_NONE));
        let av = open_av(&opened, 0);
        assert_eq!(call!(set, ops.poll_add(fid(cq), 0)), 0);
        assert_eq!(call!(set, ops.poll_add(fid(cntr), 0)), 0);
        assert_eq!(call!(set, ops.poll_add(fid(cntr), 1)), -errno::EBADFLAGS);
        assert_eq!(call!(set, ops.poll_add(fid(av), 0)), -errno::EINVAL);
        let mut found = [null_mut(); 2];
        assert_eq!(call!(set, ops.poll(found.as_mut_ptr(), 2)), 0);
        assert_eq!(call!(set, ops.poll(found.as_mut_ptr(), -1)), -errno::EINVAL);
        assert_eq!((close(set), close(cq)), (-errno::EBUSY, -errno::EBUSY));
        assert_eq!(call!(set, ops.poll_del(fid(cq), 0)), 0);
        assert_eq!(call!(set, ops.poll_del(fid(cq), 0)), -errno::EINVAL);
        assert_eq!(call!(set, ops.poll_del(fid(cntr), 0)), 0);
        assert_eq!((close(set), close(cq), close(cntr), close(av)), (0, 0, 0, 0));
    }
}
