//! Rows about the order in which an epoll tells of several connections.

use std::ffi::c_int;

use crate::common::call::{
    self, Family, connect_to, exit_now, family, fork, listen_at, pipe, set_option, wait_for,
};
use crate::end::{End, TIME};

/// More connections, beside the one of the row, in the order in which the client connects them. The
/// client does something in between.
fn more_with(end: &End, count: usize, mut each: impl FnMut(c_int)) -> Vec<c_int> {
    const PORT: usize = 9;
    if end.server {
        let fd = call::socket(family(), 0).expect("a socket");
        let port = listen_at(fd, 0).expect("a listener");
        end.shared.set(PORT, u64::from(port));
        let none = std::ptr::null_mut();
        let accept = || call!(accept(fd, none, std::ptr::null_mut())).expect("a connection");
        return (0..count).map(|_| accept() as c_int).inspect(|fd| each(*fd)).collect();
    }
    assert!(end.shared.wait(|shared| shared.get(PORT) != 0), "the server listens again");
    let port = end.shared.get(PORT) as u16;
    let connect = |_| {
        let fd = call::socket(family(), 0).expect("a socket");
        connect_to(fd, port).expect("it connects");
        fd
    };
    (0..count).map(connect).inspect(|fd| each(*fd)).collect()
}

fn more(end: &End, count: usize) -> Vec<c_int> {
    more_with(end, count, |_| {})
}

/// Requests and answers, so that bytes of the library go by rings from then on. Those of TCP go at
/// once from then on.
fn warm(end: &End, fd: c_int) {
    if family() == Family::Tcp {
        set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1).expect("it is set");
    }
    for _ in 0..20 {
        if end.server {
            assert_eq!(call::read(fd, &mut [0]), Ok(1), "a request");
            assert_eq!(call::write(fd, b"a"), Ok(1), "the answer goes");
        } else {
            assert_eq!(call::write(fd, b"r"), Ok(1), "the request goes");
            assert_eq!(call::read(fd, &mut [0]), Ok(1), "an answer");
        }
    }
}

/// An epoll that waits for bytes of these connections. Its data are their places.
fn epoll_of(fds: &[c_int], kind: c_int) -> c_int {
    let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    for (i, fd) in fds.iter().enumerate() {
        let events = (libc::EPOLLIN | kind) as u32;
        let mut event = libc::epoll_event { events, u64: i as u64 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, *fd, &mut event)).expect("it is added");
    }
    epoll
}

/// The data of the events of a wait.
fn wait(epoll: c_int, room: c_int, time: c_int) -> Vec<usize> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; MANY];
    let count = call!(epoll_wait(epoll, events.as_mut_ptr(), room, time)).expect("events");
    events[..count].iter().map(|event| event.u64 as usize).collect()
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
    let (busy, idle) = (end.fd, more(end, 1)[0]);
    if !end.server {
        stay_on_one_processor();
        for _ in 0..ROUNDS {
            let sent = [idle, busy].map(|fd| call::write(fd, b"b"));
            assert_eq!(sent, [Ok(1); 2], "both bytes go");
            end.read_exactly(&mut [0]);
        }
        return;
    }
    let epoll = epoll_of(&[busy, idle], 0);
    for round in 0..ROUNDS {
        let mut told = Vec::new();
        while !told.contains(&0) {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
            let count = call!(epoll_wait(epoll, events.as_mut_ptr(), 2, TIME)).expect("events");
            told.extend(events[..count].iter().map(|event| event.u64));
        }
        if !told.contains(&1) {
            end.say("told of the second byte alone in round", round);
        }
        for fd in [idle, busy] {
            assert_eq!(call::read(fd, &mut [0]), Ok(1), "the byte is there");
        }
        let told = call::write(busy, b"a");
        end.told("answer", told);
    }
}

/// Connections of a row about many.
const MANY: usize = 7;

const ROUNDS: usize = 200;

/// The order in which the connections are written to in a round.
fn order(round: usize) -> impl Iterator<Item = usize> {
    (0..MANY).map(move |i| (i * (1 + round % (MANY - 1)) + round) % MANY)
}

/// Waits for a byte of each connection, and says where their order is another one.
fn hear(end: &mut End, fds: &[c_int], kind: c_int) {
    let epoll = epoll_of(fds, kind);
    // A wait in vain asks the peers for bytes by rings.
    assert!(wait(epoll, MANY as c_int, 1).is_empty(), "nothing was written yet");
    end.meet();
    for round in 0..ROUNDS {
        let room = if round % 2 == 0 { MANY } else { 3 };
        let mut told = Vec::new();
        while told.len() < MANY {
            let some = wait(epoll, room as c_int, TIME);
            assert!(!some.is_empty(), "no event in round {round}");
            for i in some {
                assert_eq!(call::read(fds[i], &mut [0]), Ok(1), "the byte is there");
                told.push(i);
            }
        }
        // The kernel forgets those that it has told of.
        assert!(wait(epoll, MANY as c_int, 0).is_empty(), "all was read");
        if !told.iter().copied().eq(order(round)) {
            end.say("another order in round", (round, told));
        }
        let answered = call::write(end.fd, b"a");
        end.told("answer", answered);
    }
}

/// One process writes to many connections.
fn many_connections(end: &mut End, kind: c_int) {
    if !end.server {
        stay_on_one_processor();
    }
    let fds = more(end, MANY);
    fds.iter().for_each(|fd| warm(end, *fd));
    if end.server {
        return hear(end, &fds, kind);
    }
    end.meet();
    for round in 0..ROUNDS {
        for i in order(round) {
            assert_eq!(call::write(fds[i], b"b"), Ok(1), "the byte goes");
        }
        end.read_exactly(&mut [0]);
    }
}

// spec: SOCK-46
pub(crate) fn order_of_many_connections(end: &mut End) {
    many_connections(end, 0);
}

// spec: SOCK-46
pub(crate) fn order_of_many_edges(end: &mut End) {
    many_connections(end, libc::EPOLLET);
}

/// Connections of two processes, every second one of the child.
struct Writers {
    fds: Vec<c_int>,
    /// The pipe by which the child is told to write, and the one by which it says that it has.
    to_child: [c_int; 2],
    to_parent: [c_int; 2],
}

impl Writers {
    /// The child of a client: connects as it is told to, and writes as it is told to.
    fn serve(&self, end: &End) -> ! {
        let mut fds = Vec::new();
        let mut token = [0];
        while call::read(self.to_child[0], &mut token) == Ok(1) {
            match usize::from(token[0]) {
                CONNECT => {
                    fds.extend(more(end, 1));
                    warm(end, fds[fds.len() - 1]);
                }
                i => assert_eq!(call::write(fds[i / 2], b"b"), Ok(1), "the byte goes"),
            }
            assert_eq!(call::write(self.to_parent[1], &token), Ok(1), "the token goes back");
        }
        exit_now(0)
    }

    fn tell_child(&self, what: usize) {
        assert_eq!(call::write(self.to_child[1], &[what as u8]), Ok(1), "the token goes");
        assert_eq!(call::read(self.to_parent[0], &mut [0]), Ok(1), "the token comes back");
    }

    fn write(&self, i: usize) {
        match i % 2 {
            0 => assert_eq!(call::write(self.fds[i / 2], b"b"), Ok(1), "the byte goes"),
            _ => self.tell_child(i),
        }
    }
}

/// Tells the child to connect.
const CONNECT: usize = 255;

// spec: SOCK-46
/// Two processes write in turn: each waits for the other one's word.
pub(crate) fn order_of_two_processes(end: &mut End) {
    if end.server {
        let server: &End = end;
        let fds = more_with(server, MANY, |fd| warm(server, fd));
        return hear(end, &fds, libc::EPOLLET);
    }
    stay_on_one_processor();
    let [to_child, to_parent] = [pipe(), pipe()].map(|ends| ends.expect("a pipe"));
    let mut writers = Writers { fds: Vec::new(), to_child, to_parent };
    let child = fork().expect("a child");
    if child == 0 {
        call::close(to_child[1]).expect("it closes");
        writers.serve(end);
    }
    for i in 0..MANY {
        if i % 2 == 1 {
            writers.tell_child(CONNECT);
            continue;
        }
        let new = more(end, 1)[0];
        warm(end, new);
        writers.fds.push(new);
    }
    end.meet();
    for round in 0..ROUNDS {
        order(round).for_each(|i| writers.write(i));
        end.read_exactly(&mut [0]);
    }
    call::close(to_child[1]).expect("it closes");
    assert_eq!(wait_for(child), Ok(0), "the child ends well");
}

// spec: SOCK-46
/// The program leaves a byte unread, and has room for one event.
pub(crate) fn unread_connection_keeps_no_place(end: &mut End) {
    let fds = more(end, 2);
    fds.iter().for_each(|fd| warm(end, *fd));
    let epoll = if end.server { epoll_of(&fds, 0) } else { -1 };
    for fd in fds {
        if !end.server {
            assert_eq!(call::write(fd, b"b"), Ok(1), "the byte goes");
        }
        end.meet();
        if end.server {
            let told: Vec<_> = (0..6).map(|_| wait(epoll, 1, TIME)).collect();
            end.say("told of", told);
        }
        end.meet();
    }
}
