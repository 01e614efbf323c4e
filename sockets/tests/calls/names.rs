//! Rows about descriptors: duplicates of an epoll, and files that are put anywhere.

use std::ffi::c_int;

use crate::common::call::{self, close, connect_to, family, listen_at};
use crate::end::{End, TIME};

fn add(end: &mut End, epoll: c_int) {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
    let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, end.fd, &mut event));
    end.told("EPOLL_CTL_ADD", told);
}

/// Says the result of a wait, and its event.
fn wait(end: &mut End, epoll: c_int, time: c_int) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let told = call!(epoll_wait(epoll, &mut event, 1, time));
    end.told("epoll_wait", told);
    end.say("event", (event.events, event.u64));
}

/// Requests and answers, of which the server hears by either name of its epoll.
fn by_both_names(end: &mut End, epolls: [c_int; 2]) {
    let mut bytes = [0; 10];
    for i in 0..10 {
        if end.server {
            wait(end, epolls[i % 2], TIME);
            end.read_exactly(&mut bytes);
            wait(end, epolls[i % 2], 0);
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, &bytes);
            end.told("request", told);
            end.read_exactly(&mut bytes);
        }
    }
}

fn epoll() -> c_int {
    call!(epoll_create1(0)).expect("an epoll descriptor") as c_int
}

fn duplicate(epoll: c_int) -> c_int {
    call!(dup(epoll)).expect("another name") as c_int
}

pub(crate) fn epoll_with_two_names(end: &mut End) {
    let first = epoll();
    add(end, first);
    let second = duplicate(first);
    by_both_names(end, [first, second]);
    let _ = close(first);
    by_both_names(end, [second; 2]);
}

/// A wait by one name tells of that which was added by the other.
pub(crate) fn epoll_with_two_names_at_first(end: &mut End) {
    let first = epoll();
    let second = duplicate(first);
    add(end, first);
    by_both_names(end, [second, first]);
    let told = call!(epoll_ctl(second, libc::EPOLL_CTL_DEL, end.fd, std::ptr::null_mut()));
    end.told("EPOLL_CTL_DEL", told);
    wait(end, first, 0);
}

/// A second connection, beside the one of the row.
fn another(end: &End) -> c_int {
    const PORT: usize = 9;
    let fd = call::socket(family(), 0).expect("a socket");
    if !end.server {
        assert!(end.shared.wait(|shared| shared.get(PORT) != 0), "the server listens again");
        connect_to(fd, end.shared.get(PORT) as u16).expect("it connects");
        return fd;
    }
    let port = listen_at(fd, 0).expect("a listener");
    end.shared.set(PORT, u64::from(port));
    let none = std::ptr::null_mut();
    call!(accept(fd, none, std::ptr::null_mut())).expect("a connection") as c_int
}

/// Has the kernel keep the order of this process's packets, which other processors would not.
fn stay_on_one_processor() {
    let mut set = zeroed!(libc::cpu_set_t);
    // SAFETY: the set lives, and has room for this processor.
    unsafe { libc::CPU_SET(libc::sched_getcpu() as usize, &mut set) };
    call!(sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)).expect("a processor");
}

// spec: SOCK-39
/// One byte goes by an idle connection, and then one by a busy one: no wait tells of the second
/// byte alone.
pub(crate) fn order_of_connections(end: &mut End) {
    const ROUNDS: usize = 50;
    let (busy, idle) = (end.fd, another(end));
    if !end.server {
        stay_on_one_processor();
        for _ in 0..ROUNDS {
            let sent = [idle, busy].map(|fd| call::write(fd, b"b"));
            assert_eq!(sent, [Ok(1); 2], "both bytes go");
            end.read_exactly(&mut [0]);
        }
        return;
    }
    let epoll = epoll();
    for fd in [busy, idle] {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)).expect("it is added");
    }
    for round in 0..ROUNDS {
        let mut told = Vec::new();
        while !told.contains(&busy) {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
            let count = call!(epoll_wait(epoll, events.as_mut_ptr(), 2, TIME)).expect("events");
            told.extend(events[..count].iter().map(|event| event.u64 as c_int));
        }
        if !told.contains(&idle) {
            end.say("told of the second byte alone in round", round);
        }
        for fd in [idle, busy] {
            assert_eq!(call::read(fd, &mut [0]), Ok(1), "the byte is there");
        }
        let told = call::write(busy, b"a");
        end.told("answer", told);
    }
}

// spec: SOCK-18
/// Both epolls tell of the same bytes.
pub(crate) fn two_epolls(end: &mut End) {
    let epolls = [epoll(), epoll()];
    epolls.iter().for_each(|epoll| add(end, *epoll));
    end.meet();
    let mut bytes = [0; 10];
    for _ in 0..10 {
        if end.server {
            epolls.iter().for_each(|epoll| wait(end, *epoll, TIME));
            end.read_exactly(&mut bytes);
            epolls.iter().for_each(|epoll| wait(end, *epoll, 0));
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, &bytes);
            end.told("request", told);
            end.read_exactly(&mut bytes);
        }
    }
}

/// A program may put its files at any number.
pub(crate) fn dup2_onto_all(end: &mut End) {
    let null = call!(open(c"/dev/null".as_ptr(), libc::O_RDONLY)).expect("a file") as c_int;
    let mut bytes = [0; 10];
    let open = std::fs::read_dir("/proc/self/fd").expect("the folder of descriptors");
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<c_int> = numbers.chain(3..200).filter(|n| *n > 2 && *n != end.fd).collect();
    for number in numbers.into_iter().filter(|number| *number != null) {
        assert_eq!(call!(dup2(null, number)), Ok(number as usize), "the file is put there");
    }
    for i in 0..10 {
        if end.server {
            end.read_exactly(&mut bytes);
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, &[i; 10]);
            end.told("request", told);
            end.read_exactly(&mut bytes);
            end.say("bytes", bytes);
        }
    }
}
