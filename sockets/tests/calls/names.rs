//! Rows about descriptors: duplicates of an epoll, and files that are put anywhere.

use std::ffi::c_int;

use crate::common::call::{self, close};
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
    if told == Ok(1) {
        end.say("event", (event.events, event.u64));
    }
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

pub(crate) fn epoll() -> c_int {
    call!(epoll_create1(0)).expect("an epoll descriptor") as c_int
}

pub(crate) fn duplicate(fd: c_int) -> c_int {
    call!(dup(fd)).expect("another name") as c_int
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

fn remove(end: &mut End, epoll: c_int) {
    let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_DEL, end.fd, std::ptr::null_mut()));
    end.told("EPOLL_CTL_DEL", told);
}

// spec: SOCK-47
/// An epoll tells nothing of what was removed, whatever comes there, and tells it when it is added
/// again. It may have had two names meanwhile.
pub(crate) fn removed_from_an_epoll(end: &mut End) {
    let first = epoll();
    add(end, first);
    by_both_names(end, [first; 2]);
    if !end.server {
        end.meet();
        call!(shutdown(end.fd, libc::SHUT_WR)).expect("it ends");
        return end.meet();
    }
    remove(end, first);
    remove(end, first);
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
    let told = call!(epoll_ctl(first, libc::EPOLL_CTL_MOD, end.fd, &mut event));
    end.told("EPOLL_CTL_MOD", told);
    end.meet();
    end.meet();
    wait(end, first, 1);
    add(end, first);
    add(end, first);
    wait(end, first, TIME);
    remove(end, first);
    let copy = duplicate(end.fd);
    close(end.fd).expect("it closes");
    end.fd = copy;
    wait(end, first, 1);
    add(end, first);
    wait(end, first, TIME);
}

// spec: SOCK-47
/// Something else has the data of a connection that was removed.
pub(crate) fn removed_and_replaced(end: &mut End) {
    let first = epoll();
    add(end, first);
    by_both_names(end, [first; 2]);
    remove(end, first);
    let [output, input] = call::pipe().expect("a pipe");
    let (socket, kind) = (end.fd, (libc::EPOLLIN | libc::EPOLLET) as u32);
    let mut event = libc::epoll_event { events: kind, u64: 3 };
    call!(epoll_ctl(first, libc::EPOLL_CTL_ADD, output, &mut event)).expect("it is added");
    assert_eq!(call::write(input, b"b"), Ok(1), "the byte goes");
    wait(end, first, TIME);
    wait(end, first, 1);
    // The pipe comes to the connection's number.
    add(end, first);
    end.fd = duplicate(socket);
    call!(dup2(output, socket)).expect("it is put there");
    remove(end, first);
    let told = call!(epoll_ctl(first, libc::EPOLL_CTL_DEL, socket, std::ptr::null_mut()));
    end.told("EPOLL_CTL_DEL", told);
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

// spec: SOCK-56
/// One read has all that is there, whatever way each part came.
pub(crate) fn read_over_marks(end: &mut End) {
    // TCP would hold the second part back. Unix sockets have no such option.
    let _ = call::set_option(end.fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1);
    let epolls = [epoll(), epoll()];
    for (round, epoll) in epolls.into_iter().enumerate() {
        // The first part comes while the reader was not seen to wait in any epoll, or in one; the
        // second one behind that.
        for part in 0..2 {
            if !end.server {
                let told = call::write(end.fd, &vec![b'a'; 10 + round]);
                end.told("part", told);
            }
            end.meet();
            if end.server && part == 0 {
                add(end, epoll);
                wait(end, epoll, TIME);
            }
            end.meet();
        }
        if end.server {
            let told = call::ioctl_number(end.fd, libc::FIONREAD);
            end.say("FIONREAD", told);
            let told = call::read(end.fd, &mut [0; 100]);
            end.told("both parts", told);
        }
        end.meet();
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
