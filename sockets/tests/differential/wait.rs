//! Waits until a descriptor is ready, by each call that there is for it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::call::{Outcome, close, poll};
use crate::program::{Side, Wait};
use crate::setting::Setting;

const EVENTS: usize = 16;

/// Epoll descriptors of the whole process, and threads that wait on them. One is for ends that
/// read, one for ends that write: a descriptor has one registration in each.
pub(crate) struct Dispatcher {
    epolls: [c_int; 2],
    /// The events that have been reported of each end.
    slots: [AtomicU32; 16],
}

impl Dispatcher {
    pub(crate) fn start(setting: &'static Setting, threads: usize) -> &'static Self {
        let epoll =
            || call!(epoll_create1(libc::EPOLL_CLOEXEC)).expect("an epoll descriptor") as c_int;
        let slots = [const { AtomicU32::new(0) }; 16];
        let epolls = [epoll(), epoll()];
        let this: &'static Self = Box::leak(Box::new(Self { epolls, slots }));
        for epoll in epolls {
            for _ in 0..threads {
                std::thread::spawn(move || this.serve(setting, epoll));
            }
        }
        this
    }

    fn serve(&self, setting: &Setting, epoll: c_int) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            let most = EVENTS as c_int;
            let count = match call!(epoll_wait(epoll, events.as_mut_ptr(), most, -1)) {
                Ok(count) => count,
                Err(libc::EINTR) => continue,
                Err(error) => setting.violation(&format!("epoll_wait of a thread: error {error}")),
            };
            for event in &events[..count] {
                let (slot, events) = (event.u64 as usize, event.events);
                self.slots[slot].fetch_or(events, Ordering::SeqCst);
            }
            setting.shared.ring();
        }
    }
}

/// How a descriptor is registered.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Registered {
    fd: c_int,
    events: u32,
}

/// The means with which an end waits.
pub(crate) struct Waiter {
    setting: &'static Setting,
    dispatcher: &'static Dispatcher,
    slot: usize,
    epoll: Option<c_int>,
    own: Option<Registered>,
    shared: Option<Registered>,
}

/// Which direction a wait is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Read,
    Write,
}

impl For {
    fn poll_events(self) -> i16 {
        if self == Self::Read { libc::POLLIN } else { libc::POLLOUT }
    }

    fn epoll_events(self) -> u32 {
        if self == Self::Read { libc::EPOLLIN as u32 } else { libc::EPOLLOUT as u32 }
    }
}

const GONE: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
const BOTH: u32 = (libc::EPOLLIN | libc::EPOLLOUT) as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const ONCE: u32 = libc::EPOLLONESHOT as u32;

impl Waiter {
    pub(crate) fn new(
        setting: &'static Setting,
        dispatcher: &'static Dispatcher,
        connection: usize,
        side: Side,
        direction: For,
    ) -> Self {
        let slot = 4 * connection + 2 * (side as usize) + direction as usize;
        Self { setting, dispatcher, slot, epoll: None, own: None, shared: None }
    }

    /// Waits until the descriptor is ready; or a little, where `short`: then it may not be.
    pub(crate) fn wait(&mut self, fd: c_int, how: Wait, direction: For, short: bool) {
        if self.setting.fault == Some(crate::setting::Fault::Deaf) && self.setting.is_due() {
            self.setting.shared.wait(|_| false);
        }
        if self.setting.fault == Some(crate::setting::Fault::Untrue) && direction == For::Read {
            return;
        }
        let ready = match how {
            Wait::Block | Wait::Timeout | Wait::Poll => self.wait_by_poll(fd, direction, short),
            Wait::Select => self.wait_by_select(fd, direction, short),
            Wait::Level => self.wait_by_epoll(fd, direction.epoll_events(), direction, short),
            Wait::Edge => self.wait_by_epoll(fd, BOTH | EDGE, direction, short),
            Wait::OneShot => {
                self.wait_by_epoll(fd, direction.epoll_events() | ONCE, direction, short)
            }
            Wait::Shared => self.wait_by_threads(fd, BOTH | EDGE, direction),
            Wait::SharedOneShot => {
                self.wait_by_threads(fd, direction.epoll_events() | ONCE, direction)
            }
        };
        if let Err(error) = ready {
            let error = crate::common::call::error_name(error);
            self.setting.violation(&format!("a wait by {how:?} for {direction:?} told {error}"));
        }
    }

    fn wait_by_poll(&self, fd: c_int, direction: For, short: bool) -> Result<(), i32> {
        let time = if short { 7 } else { -1 };
        while poll(fd, direction.poll_events(), time)? == 0 {}
        Ok(())
    }

    fn wait_by_select(&self, fd: c_int, direction: For, short: bool) -> Result<(), i32> {
        loop {
            let mut set = zeroed!(libc::fd_set);
            // SAFETY: descriptors of these tests are far below FD_SETSIZE.
            unsafe { libc::FD_SET(fd, &mut set) };
            let none = std::ptr::null_mut();
            let mut time = libc::timeval { tv_sec: 0, tv_usec: 7000 };
            let time = if short { &raw mut time } else { std::ptr::null_mut() };
            let count = if direction == For::Read {
                call!(select(fd + 1, &mut set, none, none, time))?
            } else {
                call!(select(fd + 1, none, &mut set, none, time))?
            };
            // SAFETY: as above.
            if count == 1 && unsafe { libc::FD_ISSET(fd, &set) } {
                return Ok(());
            }
        }
    }

    fn wait_by_epoll(
        &mut self,
        fd: c_int,
        events: u32,
        direction: For,
        short: bool,
    ) -> Result<(), i32> {
        let epoll = match self.epoll {
            Some(epoll) => epoll,
            None => call!(epoll_create1(libc::EPOLL_CLOEXEC))? as c_int,
        };
        self.epoll = Some(epoll);
        register(epoll, &mut self.own, Registered { fd, events }, 7)?;
        let wanted = direction.epoll_events() | GONE;
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        loop {
            let time = if short { 7 } else { -1 };
            let count = call!(epoll_wait(epoll, &mut event, 1, time))?;
            let (events, data) = (event.events, event.u64);
            if count == 1 && data != 7 {
                self.setting.violation(&format!("epoll_wait told data {data:#x} in place of 7"));
            }
            if count == 1 && events & wanted != 0 {
                return Ok(());
            }
        }
    }

    fn shared_epoll(&self) -> c_int {
        // The slots of readers are even.
        self.dispatcher.epolls[self.slot % 2]
    }

    /// Forgets what the threads have told, before a try that may make this wait needless.
    pub(crate) fn forget(&self) {
        self.dispatcher.slots[self.slot].store(0, Ordering::SeqCst);
    }

    fn wait_by_threads(&mut self, fd: c_int, events: u32, direction: For) -> Result<(), i32> {
        let (epoll, data) = (self.shared_epoll(), self.slot as u64);
        register(epoll, &mut self.shared, Registered { fd, events }, data)?;
        let wanted = direction.epoll_events() | GONE;
        let slot = &self.dispatcher.slots[self.slot];
        if !self.setting.shared.wait(|_| slot.load(Ordering::SeqCst) & wanted != 0) {
            self.setting.violation(&format!("no thread was told of {direction:?} by epoll_wait"));
        }
        Ok(())
    }

    /// The descriptor is about to be closed here.
    pub(crate) fn leave(&mut self, fd: c_int) -> Outcome {
        let event = std::ptr::null_mut();
        if let (Some(epoll), Some(_)) = (self.epoll, self.own.take()) {
            call!(epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, event))?;
        }
        if self.shared.take().is_some() {
            call!(epoll_ctl(self.shared_epoll(), libc::EPOLL_CTL_DEL, fd, event))?;
        }
        Ok(0)
    }

    /// A child has only copies of the epoll descriptors of its parent: it makes its own.
    pub(crate) fn begin_in_child(&mut self, dispatcher: &'static Dispatcher) {
        if let Some(epoll) = self.epoll.take() {
            let _ = close(epoll);
        }
        let _ = close(self.shared_epoll());
        self.dispatcher = dispatcher;
        self.own = None;
        self.shared = None;
    }
}

/// Registers a descriptor, or changes how it is. One-shot registrations are armed anew each time.
fn register(epoll: c_int, now: &mut Option<Registered>, new: Registered, data: u64) -> Outcome {
    if *now == Some(new) && new.events & ONCE == 0 {
        return Ok(0);
    }
    let mut event = libc::epoll_event { events: new.events, u64: data };
    let how = if now.is_some() { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
    *now = Some(new);
    call!(epoll_ctl(epoll, how, new.fd, &mut event))
}
