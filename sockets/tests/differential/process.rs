//! A process of a program: it listens, connects, and starts a thread for each of its ends.

use std::ffi::c_int;

use crate::common::call::{
    self, ADDRESS_LENGTH, Family, close, connect_to, error_name, exit_now, listener, loopback,
    option, poll, port_of, set_nonblocking, set_option,
};
use crate::program::{Connection, Opening, Side};
use crate::setting::{CAME, Place, Setting};
use crate::strand::Strand;
use crate::wait::Dispatcher;

/// The role of a process with a number.
pub(crate) const BEGINS: &str = "begins";

/// The variable with the number.
pub(crate) const NUMBER: &str = "AYRE_SOCKETS_TEST_NUMBER";

/// Runs all ends of this process.
pub(crate) fn begin() -> ! {
    let setting = Setting::new();
    let number: u8 = std::env::var(NUMBER).expect("a number").parse().expect("a number");
    let connections = &setting.program.connections;
    let dispatcher = Dispatcher::start(setting, 2);
    let served = || connections.iter().enumerate().filter(|(_, c)| c.server == number);
    let mut threads = Vec::new();

    let shared: Vec<usize> =
        served().filter(|(_, c)| c.accept == Opening::Shared).map(|(i, _)| i).collect();
    if !shared.is_empty() {
        let (fd, port) = listen(setting, Family::Tcp, false);
        for connection in &shared {
            setting.shared.set(Place::of(*connection).port(), u64::from(port));
        }
        threads.push(std::thread::spawn(move || accept_all(setting, fd, &shared)));
    }
    for (i, connection) in served() {
        let own = (connection.accept != Opening::Shared).then(|| {
            let (fd, port) = listen(setting, connection.family(), connection.small);
            setting.shared.set(Place::of(i).port(), u64::from(port));
            fd
        });
        threads.push(std::thread::spawn(move || {
            let fd = accept_one(setting, i, own);
            run(setting, dispatcher, i, Side::Server, fd);
        }));
    }
    for (i, connection) in connections.iter().enumerate().filter(|(_, c)| c.client == number) {
        threads.push(std::thread::spawn(move || {
            let fd = connect_one(setting, i, connection);
            run(setting, dispatcher, i, Side::Client, fd);
        }));
    }
    for thread in threads {
        if thread.join().is_err() {
            exit_now(8);
        }
    }
    // As a program ends that has nothing to do: what the library does at exit is done.
    std::process::exit(0)
}

fn run(
    setting: &'static Setting,
    dispatcher: &'static Dispatcher,
    connection: usize,
    side: Side,
    fd: c_int,
) {
    let phases = setting.program.connections[connection].phases.len();
    Strand::new(setting, dispatcher, connection, side, fd).run(phases + 1);
}

fn or_fail<T>(setting: &Setting, what: &str, result: Result<T, i32>) -> T {
    result.unwrap_or_else(|error| setting.violation(&format!("{what} told {}", error_name(error))))
}

fn listen(setting: &Setting, family: Family, small: bool) -> (c_int, u16) {
    let (fd, port) = or_fail(setting, "listen", listener(family, libc::SOCK_CLOEXEC));
    if small {
        make_small(setting, fd);
    }
    (fd, port)
}

fn make_small(setting: &Setting, fd: c_int) {
    let bytes: c_int = 4096;
    for name in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        or_fail(setting, "SO_RCVBUF", set_option(fd, libc::SOL_SOCKET, name, &bytes));
    }
}

/// Waits until an epoll descriptor of its own tells an event.
fn wait_by_epoll(fd: c_int, events: c_int) -> call::Outcome {
    let epoll = call!(epoll_create1(libc::EPOLL_CLOEXEC))? as c_int;
    let mut event = libc::epoll_event { events: events as u32, u64: 9 };
    call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event))?;
    call!(epoll_wait(epoll, &mut event, 1, -1))?;
    close(epoll)
}

fn connect_one(setting: &Setting, number: usize, connection: &Connection) -> c_int {
    let place = Place::of(number);
    let fd = or_fail(setting, "socket", call::socket(connection.family(), libc::SOCK_CLOEXEC));
    if connection.small {
        make_small(setting, fd);
    }
    if !setting.shared.wait(|shared| shared.get(place.port()) != 0) {
        setting.violation("the port of a listener did not come");
    }
    let port = setting.shared.get(place.port()) as u16;
    let waits = matches!(connection.connect, Opening::Poll | Opening::Level);
    if waits {
        or_fail(setting, "O_NONBLOCK", set_nonblocking(fd, true));
    }
    match connect_to(fd, port) {
        Ok(_) => {}
        Err(libc::EINPROGRESS) if waits => {
            let told = if connection.connect == Opening::Poll {
                poll(fd, libc::POLLOUT, -1).map(|events| events as usize)
            } else {
                wait_by_epoll(fd, libc::EPOLLOUT)
            };
            or_fail(setting, "a wait for connect", told);
        }
        Err(error) => setting.violation(&format!("connect told {}", error_name(error))),
    }
    let error = option(fd, libc::SOL_SOCKET, libc::SO_ERROR);
    if error != Ok(0) {
        setting.violation(&format!("SO_ERROR after connect is {error:?}"));
    }
    let own = or_fail(setting, "getsockname", port_of(fd, false));
    setting.shared.set(place.client_port(), CAME | u64::from(own));
    if waits {
        or_fail(setting, "O_NONBLOCK", set_nonblocking(fd, false));
    }
    fd
}

fn accept_one(setting: &Setting, number: usize, own: Option<c_int>) -> c_int {
    let place = Place::of(number);
    let connection = &setting.program.connections[number];
    let Some(listener) = own else {
        if !setting.shared.wait(|shared| shared.get(place.accepted()) != 0) {
            setting.violation("no connection came to the listener of all");
        }
        return setting.shared.get(place.accepted()) as c_int - 1;
    };
    let mut flags = libc::SOCK_CLOEXEC;
    match connection.accept {
        Opening::Poll => {
            or_fail(setting, "O_NONBLOCK", set_nonblocking(listener, true));
            or_fail(setting, "poll of a listener", poll(listener, libc::POLLIN, -1));
            flags |= libc::SOCK_NONBLOCK;
        }
        Opening::Level => {
            or_fail(setting, "epoll of a listener", wait_by_epoll(listener, libc::EPOLLIN));
        }
        Opening::Block | Opening::Shared => {}
    }
    let mut address = loopback(0);
    let mut length = ADDRESS_LENGTH;
    let place = (&raw mut address).cast();
    let fd = if number.is_multiple_of(2) {
        call!(accept4(listener, place, &mut length, flags))
    } else {
        call!(accept(listener, place, &mut length))
    };
    let fd = or_fail(setting, "accept", fd) as c_int;
    or_fail(setting, "O_NONBLOCK", set_nonblocking(fd, false));
    or_fail(setting, "FD_CLOEXEC", call!(fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC)));
    or_fail(setting, "close of a listener", close(listener));
    fd
}

/// Accepts connections of several ends, and hands each to its own by the port of its client. Those
/// of other listeners may have clients of this port, too.
fn accept_all(setting: &'static Setting, listener: c_int, all: &[usize]) {
    for _ in all {
        let none = std::ptr::null_mut();
        let fd = call!(accept4(listener, none, std::ptr::null_mut(), libc::SOCK_CLOEXEC));
        let fd = or_fail(setting, "accept4", fd) as c_int;
        let peer = CAME | u64::from(or_fail(setting, "getpeername", port_of(fd, true)));
        let owner = |shared: &crate::common::shared::Shared| {
            all.iter().copied().find(|i| shared.get(Place::of(*i).client_port()) == peer)
        };
        if !setting.shared.wait(|shared| owner(shared).is_some()) {
            setting.violation("a client with the port of a connection is missing");
        }
        let owner = owner(&setting.shared).expect("it was there");
        setting.shared.set(Place::of(owner).accepted(), fd as u64 + 1);
    }
}
