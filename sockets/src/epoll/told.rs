//! The events that a call tells.
use ayre::socket::cycles;
use libc::epoll_event;

/// Events that a call tells, each with the time from which on it holds.
pub(super) struct Told {
    most: usize,
    begun: u64,
    events: Vec<(u64, epoll_event)>,
}

impl Told {
    /// No events yet, of at most this number.
    pub(super) fn new(most: usize) -> Self {
        Self { most, begun: cycles(), events: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// When the call began.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// For how many more events there is room.
    pub(super) fn room(&self) -> usize {
        self.most.saturating_sub(self.events.len())
    }

    /// Adds events of something that was not told of yet.
    pub(super) fn push(&mut self, since: u64, (events, data): (u32, u64)) {
        self.events.push((since, epoll_event { events, u64: data }));
    }

    /// Adds events of a stream, of which this call may have told others.
    pub(super) fn join(&mut self, since: u64, (events, data): (u32, u64)) {
        match self.events.iter_mut().find(|(_, event)| { event.u64 } == data) {
            Some((_, event)) => event.events |= events,
            None => self.push(since, (events, data)),
        }
    }

    /// Puts the events into the program's memory, the oldest first. Returns their number.
    pub(super) fn put(mut self, room: &mut [epoll_event]) -> usize {
        self.events.sort_by_key(|(since, _)| *since);
        for (place, (_, event)) in room.iter_mut().zip(&self.events) {
            *place = *event;
        }
        self.events.len()
    }
}
