//! Event queues: what control operations report, and what programs write themselves.

use crate::abi::errno;
use crate::error::{Code, Outcome};
use crate::object::registry::{Body, Entity};
use crate::object::wait::{Wait, Waitable, block, deadline};
use crate::queue::wait_set::Attachment;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An event: its number, and the bytes of its structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A control operation that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFailure {
    /// The object of the operation, by address.
    pub(crate) fid: usize,
    pub(crate) context: usize,
    pub(crate) data: u64,
    /// Positive.
    pub(crate) err: c_int,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    failures: VecDeque<EventFailure>,
    is_overrun: bool,
    is_armed: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.failures.is_empty() && !self.is_overrun
    }
}

/// An event queue.
pub(crate) struct Eq {
    state: Mutex<State>,
    size: usize,
    is_writable: bool,
    wait: Option<Attachment>,
    _fabric: Arc<dyn Entity>,
}

/// Events of a queue whose program does not say how many.
pub(crate) const EQ_SIZE: usize = 256;

impl Eq {
    pub(crate) fn new(
        fabric: Arc<dyn Entity>,
        size: usize,
        is_writable: bool,
        wait: Option<Attachment>,
    ) -> Self {
        let size = if size == 0 { EQ_SIZE } else { size };
        Self { state: Mutex::default(), size, is_writable, wait, _fabric: fabric }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    ///
    /// # Errors
    /// `EOVERRUN` from when there was no room on.
    pub(crate) fn push(&self, event: Event) -> Outcome {
        let mut state = self.state();
        state.is_overrun |= state.events.len() >= self.size;
        if state.is_overrun {
            return Err(Code(errno::EOVERRUN));
        }
        state.events.push_back(event);
        self.ring(state);
        Ok(())
    }

    /// Adds a failure.
    pub(crate) fn push_failure(&self, failure: EventFailure) {
        let mut state = self.state();
        if state.failures.len() >= self.size {
            state.is_overrun = true;
        } else {
            state.failures.push_back(failure);
        }
        self.ring(state);
    }

    /// The program adds an event of its own.
    ///
    /// # Errors
    /// `EINVAL` where the queue was not opened for that, `EOVERRUN`.
    pub(crate) fn write(&self, event: Event) -> Outcome<usize> {
        if !self.is_writable {
            return Err(Code::INVALID);
        }
        let count = event.bytes.len();
        self.push(event).map(|()| count)
    }

    fn ring(&self, mut state: MutexGuard<'_, State>) {
        let must_ring = std::mem::take(&mut state.is_armed);
        drop(state);
        if let (true, Some(wait)) = (must_ring, self.wait()) {
            wait.ring();
        }
    }

    /// The oldest event, which stays if the program only peeks.
    ///
    /// # Errors
    /// `EAVAIL` when a failure is to be read first, `ETOOSMALL` with an event of more than `room`
    /// bytes, `EAGAIN` without any, `EOVERRUN` when some were lost.
    pub(crate) fn read(&self, room: usize, peeks: bool) -> Outcome<Event> {
        let mut state = self.state();
        if !state.failures.is_empty() {
            return Err(Code(errno::EAVAIL));
        }
        match state.events.front() {
            Some(event) if event.bytes.len() > room => Err(Code(errno::ETOOSMALL)),
            Some(event) if peeks => Ok(event.clone()),
            Some(_) => state.events.pop_front().ok_or(Code::AGAIN),
            None if state.is_overrun => Err(Code(errno::EOVERRUN)),
            None => Err(Code::AGAIN),
        }
    }

    /// As [`Eq::read`], but waits.
    ///
    /// # Errors
    /// `EAGAIN` when time is up, `EINTR` when a signal has come, `EINVAL` where there is nothing to
    /// wait with.
    pub(crate) fn read_blocking(
        &self,
        room: usize,
        peeks: bool,
        milliseconds: c_int,
    ) -> Outcome<Event> {
        let wait = self.wait.as_ref().and_then(Attachment::own).ok_or(Code::INVALID)?;
        let attempt = || match self.read(room, peeks) {
            Err(Code::AGAIN) => None,
            outcome => Some(outcome),
        };
        block(wait, (deadline(milliseconds), Code::AGAIN), attempt, || self.arm())?
    }

    /// The oldest failure.
    ///
    /// # Errors
    /// `EAGAIN` without any.
    pub(crate) fn read_failure(&self, peeks: bool) -> Outcome<EventFailure> {
        let mut state = self.state();
        let failure =
            if peeks { state.failures.front().cloned() } else { state.failures.pop_front() };
        failure.ok_or(Code::AGAIN)
    }

    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.wait.as_ref()
    }
}

impl Waitable for Eq {
    fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref().map(Attachment::wait)
    }

    fn look(&self) -> bool {
        !self.state().is_empty()
    }

    fn arm(&self) -> bool {
        let mut state = self.state();
        let is_idle = state.is_empty();
        state.is_armed |= is_idle;
        is_idle
    }
}

impl Body for Eq {
    fn waitable(&self) -> Option<&dyn Waitable> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::WAIT_FD;
    use crate::object::registry::tests::owner;

    fn queue(size: usize, is_writable: bool) -> Eq {
        let wait = Attachment::open(WAIT_FD, std::ptr::null()).unwrap();
        Eq::new(owner(), size, is_writable, wait)
    }

    fn event(number: u32, length: usize) -> Event {
        Event { number, bytes: vec![number as u8; length] }
    }

    #[test]
    fn events_come_in_order_and_can_be_peeked_at() {
        let eq = queue(0, true);
        assert_eq!(eq.write(event(1, 3)), Ok(3));
        assert_eq!(eq.write(event(2, 5)), Ok(5));
        assert_eq!(eq.read(2, false), Err(Code(errno::ETOOSMALL)));
        assert_eq!(eq.read(3, true), Ok(event(1, 3)));
        assert_eq!(eq.read(3, false), Ok(event(1, 3)));
        assert_eq!(eq.read(9, false), Ok(event(2, 5)));
        assert_eq!(eq.read(9, false), Err(Code::AGAIN));
        assert_eq!(queue(0, false).write(event(1, 3)), Err(Code::INVALID));
    }

    #[test]
    fn failures_come_first() {
        let eq = queue(0, true);
        eq.push(event(1, 1)).unwrap();
        let failure = EventFailure { fid: 1, context: 2, data: 3, err: 4 };
        eq.push_failure(failure.clone());
        assert_eq!(eq.read(9, false), Err(Code(errno::EAVAIL)));
        assert_eq!(eq.read_failure(true), Ok(failure.clone()));
        assert_eq!(eq.read_failure(false), Ok(failure));
        assert_eq!(eq.read_failure(false), Err(Code::AGAIN));
        assert_eq!(eq.read(9, false), Ok(event(1, 1)));
    }

    #[test]
    fn an_overrun_queue_returns_its_events_and_then_the_overrun() {
        let eq = queue(2, true);
        assert_eq!([1, 2, 3].map(|n| eq.write(event(n, 1)).is_ok()), [true, true, false]);
        assert_eq!(eq.read(9, false), Ok(event(1, 1)));
        assert_eq!(eq.write(event(4, 1)), Err(Code(errno::EOVERRUN)));
        assert_eq!(eq.read(9, false), Ok(event(2, 1)));
        assert_eq!(eq.read(9, false), Err(Code(errno::EOVERRUN)));
    }

    #[test]
    fn a_sleeper_is_woken() {
        let eq = queue(0, true);
        assert_eq!(eq.read_blocking(9, false, 2), Err(Code::AGAIN));
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| eq.read_blocking(9, false, 60_000));
            eq.push(event(7, 1)).unwrap();
            assert_eq!(sleeper.join().unwrap(), Ok(event(7, 1)));
        });
    }
}
