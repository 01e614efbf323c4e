//! The sleepers of a stream, and what its peer is told of them.
//!
//! The peer rings one bell when bytes come by the ring, and one when the ring has room. So a
//! stream that two threads or epolls wait for goes back to the kernel, which wakes all of them.
//! Until the peer has seen that, bytes may still come by the ring. Then the first sleeper's bell
//! is rung, who wakes the others. A sleeper that cannot be sure of a bell looks again at
//! intervals: [`Watch::is_unsure`].
use crate::epoll::Set;
use crate::stream::Direction;
use ayre::guest::hidden::Hidden;
use ayre::socket::{Bell, Connection, Ready};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Weak};

/// The bell of a thread or an epoll that sleeps; None where the peer could not be given it.
pub(crate) type Sleeper = Option<Arc<Bell>>;

/// The sleepers of a stream.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// For each direction: threads, then epolls.
    sleepers: [Vec<Sleeper>; 2],
    /// The epolls that have the stream.
    sets: Vec<Weak<Set>>,
    /// The epolls that have it for the kernel only.
    keepers: Vec<Weak<Set>>,
    /// Bytes come by the kernel, for good.
    is_plain: bool,
    /// Calls that wait for the stream to read or write.
    calls: u32,
    /// The name of a stream whose descriptors the program has closed while there were calls.
    outlives: Option<Hidden>,
}

/// Whether two sleepers are one.
fn is_same(one: &Sleeper, other: &Sleeper) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl Watch {
    /// A call begins to wait.
    pub(crate) fn begin_call(&mut self) {
        self.calls += 1;
    }

    /// A call returns. The name of the stream, if that was all that it lived for.
    pub(crate) fn end_call(&mut self) -> Option<Hidden> {
        self.calls = self.calls.saturating_sub(1);
        if self.calls == 0 { self.outlives.take() } else { None }
    }

    /// The program closes the last descriptor. Whether the stream lives on, as there are calls.
    pub(crate) fn outlive(&mut self, socket: BorrowedFd<'_>) -> bool {
        if self.calls > 0 {
            let copy = socket.try_clone_to_owned().ok();
            self.outlives = copy.and_then(|copy| Hidden::new(copy).ok());
        }
        self.outlives.is_some()
    }

    /// The name of a stream that the program has closed.
    pub(crate) fn name(&self) -> Option<i32> {
        self.outlives.as_ref().map(|name| name.fd().as_raw_fd())
    }

    /// A thread is awake, and looks for bytes by itself.
    pub(crate) fn look(&self, connection: &Connection) {
        if !self.is_plain && self.sleepers[Direction::In as usize].is_empty() {
            connection.want_bytes(None);
        }
    }

    /// A thread or an epoll is about to sleep for a direction. Returns the others to wake, as they
    /// wait for the wrong thing now.
    pub(crate) fn lie_down(
        &mut self,
        connection: &Connection,
        (direction, sleeper): (Direction, &Sleeper),
        is_thread: bool,
    ) -> Vec<Sleeper> {
        let here = &mut self.sleepers[direction as usize];
        let place = if is_thread { 0 } else { here.len() };
        here.insert(place, sleeper.clone());
        let is_alone = here.len() == 1;
        let others = if is_alone { Vec::new() } else { self.be_plain(connection) };
        self.tell(connection, direction);
        others.into_iter().filter(|other| !is_same(other, sleeper)).collect()
    }

    /// The sleeper of [`Self::lie_down`] is awake. Returns the others to wake, as nobody else does.
    pub(crate) fn get_up(
        &mut self,
        connection: &Connection,
        (direction, sleeper): (Direction, &Sleeper),
    ) -> Vec<Sleeper> {
        let here = &mut self.sleepers[direction as usize];
        let Some(place) = here.iter().position(|other| is_same(other, sleeper)) else {
            return Vec::new();
        };
        here.remove(place);
        let others = here.clone();
        let was_rung = place == 0 && connection.bells()[direction as usize].is_none();
        self.tell(connection, direction);
        let is_news = match direction {
            // A link rings once to tell that the kernel has what comes next.
            Direction::In => connection.is_readable() || (was_rung && connection.is_far()),
            Direction::Out => was_rung && connection.writable() != Ready::No,
        };
        if is_news { others } else { Vec::new() }
    }

    /// Tells the peer which bell to ring for a direction. Without a bell, the kernel wakes.
    fn tell(&self, connection: &Connection, direction: Direction) {
        let was_awaited = connection.bells()[direction as usize].is_some();
        let first = self.sleepers[direction as usize].first().map(Option::as_deref);
        match (direction, first) {
            (Direction::In, _) if self.is_plain => connection.want_kernel(first.flatten()),
            (Direction::In, Some(None)) => connection.want_kernel(None),
            (Direction::In, Some(bell)) => connection.want_bytes(bell),
            (Direction::In, None) if was_awaited => connection.want_bytes(None),
            // Before both ends have the connection, its bytes go to the kernel anyway.
            (Direction::Out, Some(None)) if connection.place().is_none() => {}
            (Direction::Out, Some(None)) => connection.leave_writing(),
            (Direction::Out, Some(bell)) => connection.want_room(bell),
            (Direction::Out, None) if was_awaited => connection.want_room(None),
            (_, None) => {}
        }
    }

    /// From now on, all bytes that come, come by the kernel. Returns all sleepers, if that is new
    /// to them.
    pub(crate) fn read_by_kernel(&mut self, connection: &Connection) -> Vec<Sleeper> {
        if self.is_plain {
            return Vec::new();
        }
        self.is_plain = true;
        self.tell(connection, Direction::In);
        self.sleepers()
    }

    /// From now on, all bytes that come, come by the kernel, and all bytes go there.
    pub(crate) fn be_plain(&mut self, connection: &Connection) -> Vec<Sleeper> {
        connection.leave_writing();
        self.read_by_kernel(connection)
    }

    /// All sleepers.
    pub(crate) fn sleepers(&self) -> Vec<Sleeper> {
        self.sleepers.concat()
    }

    /// Another process is about to have the stream, too: for the time being, bytes come by the
    /// kernel. Returns the sleepers, who have to look again.
    pub(crate) fn pause(&self, connection: &Connection) -> Vec<Sleeper> {
        connection.want_kernel(None);
        self.sleepers()
    }

    /// Whether a sleeper has something to do of which it is not sure to hear. Something may come
    /// for this direction, or the kernel may have room for what it is owed.
    pub(crate) fn is_unsure(
        &self,
        connection: &Connection,
        (direction, sleeper): (Direction, &Sleeper),
    ) -> bool {
        let is_odd = self.is_plain || connection.is_shared() || sleeper.is_none();
        let may_come = || match direction {
            Direction::In => !connection.is_settled(),
            Direction::Out => connection.writable() == Ready::No,
        };
        connection.owes() || (is_odd && may_come())
    }

    /// In a forked child: nobody sleeps there yet.
    pub(crate) fn in_child(&mut self) {
        self.sleepers = Default::default();
        self.calls = 0;
    }

    /// An epoll has the stream. Whether another one has it, too.
    pub(crate) fn join(&mut self, set: &Arc<Set>) -> bool {
        self.part(set);
        self.sets.retain(|known| known.strong_count() > 0);
        if !self.sets.iter().any(|known| known.as_ptr() == Arc::as_ptr(set)) {
            self.sets.push(Arc::downgrade(set));
        }
        self.sets.len() > 1
    }

    /// An epoll has the stream no longer.
    pub(crate) fn part(&mut self, set: &Arc<Set>) {
        for known in [&mut self.sets, &mut self.keepers] {
            known.retain(|known| known.as_ptr() != Arc::as_ptr(set));
        }
    }

    /// The program has removed the stream from an epoll, whose kernel has it still.
    pub(crate) fn be_kept(&mut self, set: &Arc<Set>) {
        self.part(set);
        self.keepers.retain(|known| known.strong_count() > 0);
        self.keepers.push(Arc::downgrade(set));
    }

    /// The epolls that have the stream.
    pub(crate) fn sets(&self) -> Vec<Arc<Set>> {
        self.sets.iter().filter_map(Weak::upgrade).collect()
    }

    /// The epolls that have the stream for the kernel only.
    pub(crate) fn keepers(&self) -> Vec<Arc<Set>> {
        self.keepers.iter().filter_map(Weak::upgrade).collect()
    }
}
