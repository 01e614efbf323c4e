//! Rows that add a socket to an epoll before it connects.

use std::ffi::c_int;

use crate::common::call::{self, close, connect_to, family, poll, set_nonblocking};
use crate::end::{End, TIME};
use crate::names::{duplicate, epoll};
use crate::starts::{read_all_written, write_all_there_is_room_for};

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const ONCE: u32 = libc::EPOLLONESHOT as u32;

/// The data of the socket, and of others.
const DATA: u64 = 3;
const OTHER: u64 = 4;

fn control(epoll: c_int, op: c_int, fd: c_int, (events, data): (u32, u64)) {
    let mut event = libc::epoll_event { events, u64: data };
    call!(epoll_ctl(epoll, op, fd, &mut event)).expect("the epoll is told");
}

fn add(epoll: c_int, fd: c_int, wanted: u32) {
    control(epoll, libc::EPOLL_CTL_ADD, fd, (wanted, DATA));
}

/// Opens the connection. The client's socket does not block, and something is done with it before.
fn open(end: &mut End, prepare: impl FnOnce(c_int)) {
    let server = end.server;
    let prepare = |fd| {
        if !server {
            set_nonblocking(fd, true).expect("it may");
            prepare(fd);
        }
    };
    end.open(prepare, |_| {});
    if !server {
        let told = poll(end.fd, libc::POLLOUT, TIME);
        end.say("it has connected", told);
        let _ = set_nonblocking(end.fd, false);
    }
    end.warm_up();
    let _ = set_nonblocking(end.fd, !server);
    end.meet();
}

/// An epoll that has the client's socket before that connects.
fn open_added(end: &mut End, wanted: u32) -> c_int {
    let epoll = epoll();
    open(end, |fd| add(epoll, fd, wanted));
    epoll
}

/// Waits until an event with this bit is told. The kernel may tell others before.
fn wait_for(end: &mut End, epoll: c_int, bit: u32) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    loop {
        let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
        if told != Ok(1) || event.events & bit != 0 {
            let data = event.u64;
            end.told("epoll_wait", told);
            return end.say("data", data);
        }
    }
}

/// The client fills the way to the server, which then makes room.
fn fill(end: &mut End) {
    if end.server {
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        end.meet();
        read_all_written(end);
    } else {
        write_all_there_is_room_for(end);
        end.meet();
    }
}

/// The client hears of room where there was none.
fn hear_of_room(end: &mut End, epoll: c_int) {
    fill(end);
    if !end.server {
        wait_for(end, epoll, OUT);
    }
    end.meet();
}

/// The client hears of bytes, which come while its last wait has shown that it reads.
fn hear_of_bytes(end: &mut End, epoll: c_int, times: u8) {
    show_waiting(end);
    for i in 0..times {
        let mut bytes = [i; 10];
        if end.server {
            let told = call::write(end.fd, &bytes);
            end.told("write", told);
        } else {
            wait_for(end, epoll, IN);
            let told = call::read(end.fd, &mut bytes);
            end.told("read", told);
            end.say("bytes", bytes);
        }
        end.meet();
    }
}

/// The client waits for bytes in another way than by its epoll.
fn show_waiting(end: &mut End) {
    for _ in 0..10 {
        if end.server {
            let told = call::write(end.fd, &[0]);
            end.told("write", told);
        } else {
            let told = poll(end.fd, libc::POLLIN, TIME);
            end.say("poll", told);
            let told = call::read(end.fd, &mut [0; 2]);
            end.told("read", told);
        }
        end.meet();
    }
}

// spec: SOCK-74
pub(crate) fn added_for_edges(end: &mut End) {
    let epoll = open_added(end, IN | OUT | EDGE);
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
    hear_of_room(end, epoll);
}

/// No other wait than that of the epoll shows that the client reads.
pub(crate) fn added_for_answers(end: &mut End) {
    let epoll = epoll();
    let server = end.server;
    let prepare = |fd| {
        if !server {
            set_nonblocking(fd, true).expect("it may");
            add(epoll, fd, IN | OUT | EDGE);
        }
    };
    end.open(prepare, |_| {});
    if !end.server {
        wait_for(end, epoll, OUT);
    }
    let mut bytes = [0; 10];
    for i in 0..50 {
        if end.server {
            end.read_exactly(&mut bytes);
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, &[i; 10]);
            end.told("request", told);
            wait_for(end, epoll, IN);
            let told = call::read(end.fd, &mut bytes);
            end.told("read", told);
            end.say("answer", bytes);
        }
    }
    hear_of_room(end, epoll);
}

pub(crate) fn added_for_levels(end: &mut End) {
    let epoll = open_added(end, IN | OUT);
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

pub(crate) fn added_for_bytes(end: &mut End) {
    let epoll = open_added(end, IN);
    hear_of_bytes(end, epoll, 10);
}

pub(crate) fn added_for_one_event(end: &mut End) {
    let epoll = open_added(end, IN | ONCE);
    hear_of_bytes(end, epoll, 1);
    if !end.server {
        hear_nothing(end, epoll);
        control(epoll, libc::EPOLL_CTL_MOD, end.fd, (OUT | ONCE, OTHER));
    }
    hear_of_room(end, epoll);
}

/// Says that an epoll tells nothing.
fn hear_nothing(end: &mut End, epoll: c_int) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let told = call!(epoll_wait(epoll, &mut event, 1, 10));
    end.told("epoll_wait", told);
}

/// It is changed before it connects.
pub(crate) fn added_and_changed(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        add(epoll, fd, IN);
        control(epoll, libc::EPOLL_CTL_MOD, fd, (IN | OUT | EDGE, OTHER));
    });
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// It is removed before it connects, and added again behind that.
pub(crate) fn added_and_removed(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        add(epoll, fd, IN | OUT);
        control(epoll, libc::EPOLL_CTL_DEL, fd, (0, 0));
    });
    if !end.server {
        hear_nothing(end, epoll);
        add(epoll, end.fd, IN | OUT | EDGE);
    }
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// Another socket takes its number before that connects.
pub(crate) fn added_and_replaced(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        let other = call::socket(family(), libc::SOCK_NONBLOCK).expect("a socket");
        add(epoll, fd, IN | OUT | EDGE);
        call!(dup2(other, fd)).expect("it takes the number");
        close(other).expect("it closes");
    });
    if !end.server {
        hear_nothing(end, epoll);
        add(epoll, end.fd, IN | OUT | EDGE);
    }
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// It connects by another name than the one that the epoll has.
pub(crate) fn added_and_duplicated(end: &mut End) {
    let epoll = epoll();
    let server = end.server;
    let mut others = [-1; 2];
    end.open(
        |fd| {
            if !server {
                others[0] = duplicate(fd);
                add(epoll, others[0], IN | OUT | EDGE);
                others[1] = duplicate(fd);
            }
        },
        |_| {},
    );
    end.warm_up();
    end.meet();
    let names = if end.server { [end.fd; 2] } else { others };
    for fd in names {
        end.fd = fd;
        let _ = set_nonblocking(fd, !server);
        hear_of_room(end, epoll);
        hear_of_bytes(end, epoll, 10);
    }
}

/// Two epolls have it.
pub(crate) fn added_to_two_epolls(end: &mut End) {
    let epolls = [epoll(), epoll()];
    open(end, |fd| epolls.iter().for_each(|epoll| add(*epoll, fd, IN | OUT | EDGE)));
    fill(end);
    if !end.server {
        epolls.iter().for_each(|epoll| wait_for(end, *epoll, OUT));
    }
    end.meet();
    hear_of_bytes(end, epolls[0], 10);
}

/// The epoll has two names.
pub(crate) fn added_to_an_epoll_with_two_names(end: &mut End) {
    let epoll = epoll();
    let name = duplicate(epoll);
    open(end, |fd| {
        add(epoll, fd, IN | OUT | EDGE);
        close(epoll).expect("it closes");
    });
    hear_of_room(end, name);
    hear_of_bytes(end, name, 10);
}

/// The program forks while it has not connected.
pub(crate) fn added_before_a_fork(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        add(epoll, fd, IN | OUT | EDGE);
        let child = call::fork().expect("a child");
        if child == 0 {
            call::exit_now(0);
        }
        assert_eq!(call::wait_for(child), Ok(0));
    });
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// The epoll is the parent's.
pub(crate) fn added_by_a_child(end: &mut End) {
    let epoll = epoll();
    if !end.server {
        let child = call::fork().expect("a child");
        if child > 0 {
            assert_eq!(call::wait_for(child), Ok(0), "the child ends well");
            call::exit_now(0);
        }
    }
    open(end, |fd| add(epoll, fd, IN | OUT | EDGE));
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// Its first connect is refused, and its second one succeeds.
pub(crate) fn added_and_refused(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        let (listening, port) = call::listener(family(), 0).expect("a listener");
        close(listening).expect("it closes");
        add(epoll, fd, IN | OUT | EDGE);
        let _ = set_nonblocking(fd, false);
        assert!(connect_to(fd, port).is_err(), "nobody listens");
        let _ = set_nonblocking(fd, true);
    });
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// It has an option that was set before.
pub(crate) fn added_with_an_option(end: &mut End) {
    let epoll = epoll();
    open(end, |fd| {
        let _ = call::set_option(fd, libc::IPPROTO_IP, libc::IP_TOS, &0_i32);
        add(epoll, fd, IN | OUT | EDGE);
        let _ = call::set_option(fd, libc::IPPROTO_IP, libc::IP_TTL, &60_i32);
    });
    if !end.server {
        let told = call::option(end.fd, libc::IPPROTO_IP, libc::IP_TTL);
        end.say("IP_TTL", told);
    }
    hear_of_room(end, epoll);
    hear_of_bytes(end, epoll, 10);
}

/// It listens, and does not connect.
pub(crate) fn added_to_listen(end: &mut End) {
    let epoll = epoll();
    let server = end.server;
    let wait = |end: &mut End| {
        if end.server {
            wait_for(end, epoll, IN);
        }
    };
    end.open(
        |fd| {
            if server {
                add(epoll, fd, IN | EDGE)
            }
        },
        wait,
    );
    end.warm_up();
    end.meet();
    show_waiting(end);
}
