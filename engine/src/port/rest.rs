//! Sleep in an event loop of the program, at the port's descriptor.
//!
//! ```text
//!            rest: announce, fence, look once more
//!   awake ------------------------------------------> resting, descriptor watched
//!         <------------------------------------------
//!            wake: no longer announced, rings taken
//! ```
//!
//! No wake-up is lost. [`Port::rest`] takes the steps of a sleep in `wait.rs`, with the program in
//! the place of the last one. So a record that the last look has not seen brings a ring, and a
//! ring that nobody takes keeps the descriptor readable. Calls that take rings while the port
//! rests ring its own bell instead. So do calls that find something for which nobody rings: a
//! datagram, a death, or the notification of an operation that they have posted. A call that
//! sleeps takes the rest's place, and rings when it gives it back.
use super::connection::Connection;
use super::message::is_due;
use crate::mem::page::Sleeper;
use crate::port::Port;
use crate::settings::choice::Mode;
use rustix::fd::{AsFd, BorrowedFd};

/// The descriptor for an event loop. It is readable when something has come while the port
/// [rests](Port::rest). The program must neither read nor write it.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleep.as_fd()
    }
}

impl Port {
    /// Prepares for the program's sleep in an event loop, at the port's descriptor ([`AsFd`]). True
    /// if the program may sleep: then the descriptor is readable as soon as something comes, until
    /// [`Port::wake`] ends the rest. Never blocks.
    ///
    /// False if something has come or may have: messages, notifications or deaths are to be taken,
    /// or the port has worked for its peers. Then the port does not rest. The program takes
    /// everything, deaths by a [`Port::recv`] or [`Port::wait_notification`] with a timeout of 0.
    ///
    /// The port does not know the program's queues and depots. The program looks at them after
    /// `rest`, before it sleeps. All calls may be made while the port rests.
    ///
    /// ```no_run
    /// use rustix::event::{PollFd, PollFlags, poll};
    /// use std::os::fd::AsFd;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut port = ayre::Port::join()?;
    /// # let other = std::net::UdpSocket::bind("[::1]:0")?;
    /// let mut bytes = [0; 1024];
    /// loop {
    ///     while let Some(message) = port.try_recv(&mut bytes)? {
    ///         println!("{:?}", &bytes[..message.len]);
    ///     }
    ///     if port.rest() {
    ///         let watched = [port.as_fd(), other.as_fd()];
    ///         poll(&mut watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), None)?;
    ///         port.wake();
    ///     }
    /// }
    /// # }
    /// ```
    // spec: WAIT-6
    pub fn rest(&mut self) -> bool {
        self.rest_for(true, true)
    }

    /// Prepares for the program's sleep as [`Port::rest`] does, where the program awaits only
    /// messages, only notifications, or neither. The others may lie there untaken. The descriptor
    /// is readable whatever comes.
    // spec: WAIT-6
    pub fn rest_for(&mut self, messages: bool, notifications: bool) -> bool {
        self.rest_unless(|port| {
            (messages && port.has_message()) || (notifications && port.has_notification())
        })
    }

    /// Rests, unless there is a death, or what its caller looks for besides.
    // spec: WAIT-6, LANE-12
    pub(crate) fn rest_unless(&mut self, is_due: impl FnOnce(&Self) -> bool) -> bool {
        if self.sleep.is_inherited() {
            self.service_control();
            return false;
        }
        self.announce_sleep(true);
        self.fence_sleep();
        self.remote.forget_arrivals();
        let progressed = self.progress_all();
        if progressed || self.has_something() || is_due(self) {
            self.wake();
            return false;
        }
        self.set_alarm(true);
        debug_assert!(self.page.is_asleep(Sleeper::Port), "peers ring a port that rests");
        self.is_resting = true;
        true
    }

    /// Ends a rest: the program is awake, and takes what has come. Does nothing to a port that does
    /// not rest. Never blocks.
    // spec: WAIT-6
    pub fn wake(&mut self) {
        self.is_resting = false;
        self.announce_sleep(false);
        self.set_alarm(false);
        self.service_control();
    }

    /// Whether the program or the next poll has something to take besides messages and
    /// notifications.
    fn has_something(&self) -> bool {
        self.peers.has_dead() || self.remote.has_mail() || self.remote.has_come()
    }

    /// Whether a message can be taken.
    pub(crate) fn has_message(&self) -> bool {
        self.peers.iter().any(has_message)
    }

    fn has_notification(&self) -> bool {
        !self.notes.is_empty() || self.peers.iter().any(|it| it.executor.has_notes())
    }

    /// Wakes the program, where it sleeps in an event loop, for what nobody else rings.
    #[inline(always)]
    pub(crate) fn rouse(&self) {
        if self.is_resting && !self.sleep.is_inherited() {
            self.sleep.ring();
        }
    }

    /// Sleeps in a call. The port rests again behind it where it has rested before it, and the
    /// program looks again: the call may have taken rings.
    pub(super) fn sleep_in_rest<T>(&mut self, sleep: impl FnOnce(&mut Self) -> T) -> T {
        let rests = std::mem::take(&mut self.is_resting);
        if rests {
            self.set_alarm(false);
        }
        let slept = sleep(self);
        debug_assert!(!self.is_resting, "a call that sleeps begins no rest");
        if rests {
            self.is_resting = true;
            self.announce_sleep(true);
            self.rouse();
        }
        slept
    }
}

/// Whether a message can be taken, or a malformed one is to be found out.
fn has_message(connection: &Connection) -> bool {
    match connection.messages_in.peek() {
        None => false,
        Some(Ok(_)) if connection.mode() == Mode::Mediated => is_due(connection),
        Some(_) => true,
    }
}
