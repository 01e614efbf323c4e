//! Sleep in a program's event loop.
use crate::border::Out;
use crate::error::{count, flag, status};
use crate::port::ayre_port;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};

/// The port's descriptor for `poll`, `epoll` and event loops. It is readable when something has
/// come while the port rests. It belongs to the port: neither read, write nor close it.
///
/// ```c
/// for (;;) {
///     // Take everything: messages, notifications, records of queues.
///     if (ayre_port_rest(port) == 1) {
///         // The descriptor is in the epoll, with EPOLLIN.
///         epoll_wait(loop, events, 8, -1);
///         ayre_port_wake(port);
///     }
/// }
/// ```
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_fd(port: Out<ayre_port>) -> c_int {
    count(|| Ok(port.held()?.as_fd().as_raw_fd() as usize))
}

/// Prepares for the program's sleep at the port's descriptor. Returns 1 if the program may sleep:
/// then the descriptor is readable as soon as something comes, until `ayre_port_wake`. Returns 0 if
/// messages, notifications or deaths are to be taken, or the port has worked for its peers.
///
/// A messenger first runs the handlers of messages that have come. It does not look for
/// notifications: look at them, too, before the sleep.
///
/// `ayre_recv` and `ayre_wait_notification` tell of deaths, also with a timeout of 0. The port does
/// not know the program's queues and depots: look at them after this call, before the sleep. All
/// functions may be called while the port rests.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_rest(port: Out<ayre_port>) -> c_int {
    flag(|| Ok(port.held()?.rest()))
}

/// Ends a rest: the program takes what has come. Does nothing to a port that does not rest.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_port_wake(port: Out<ayre_port>) -> c_int {
    status(|| {
        port.held()?.wake();
        Ok(())
    })
}
