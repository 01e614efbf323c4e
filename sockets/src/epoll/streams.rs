//! The streams of a set: which are hot, which have events, and the bells of the cold ones.
use super::registration::{Registration, flags};
use super::told::Told;
use super::{BELL_DATA, BELLS_DATA, LINKS_DATA, OUT};
use crate::stream::{Direction, Stream};
use crate::sys::{memory, wait};
use ayre::socket::{Bell, Pair, cycles};
use libc::{EPOLLERR, EPOLLET, EPOLLEXCLUSIVE, EPOLLHUP, EPOLLIN, EPOLLONESHOT, epoll_event};
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The streams of a set, and the bells by which their peers wake it.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) registrations: HashMap<i32, Registration>,
    /// Those that the program has removed, and that the kernel has still.
    pub(super) kept: HashMap<i32, Registration>,
    /// Descriptors by their data; a program that gives the same data twice does not care which.
    pub(super) by_data: HashMap<u64, i32>,
    /// Descriptors by the place of their connections: a pair's address, and a slot.
    pub(super) by_place: HashMap<(usize, u32), i32>,
    pub(super) hot: Vec<i32>,
    /// Cold streams that are looked at again at intervals.
    pub(super) unsure: Vec<i32>,
    /// For each place, which its data in the kernel's epoll names. Pairs end by themselves.
    pub(super) bells: Vec<Option<(Weak<Pair>, Arc<Bell>)>>,
    /// There was a bell for a process of another host.
    has_links: bool,
    /// The descriptor of the links with other hosts, if the kernel's epoll has it.
    links: Option<i32>,
    /// The process was forked, and the bells are its parent's.
    pub(super) has_foreign_bells: bool,
    /// The bells are to be rung, as a thread sleeps or is about to.
    is_asleep: bool,
    /// Threads that are in the kernel's epoll.
    pub(super) sleepers: u32,
    /// Events of rings have filled the last call, which has not asked the kernel.
    pub(super) owes_kernel: bool,
    /// Something else than this set's own calls waits for the epoll.
    pub(super) is_nested: bool,
}

/// A bell wakes this epoll no longer.
pub(super) fn leave_bell(epfd: i32, bell: &Bell) {
    let _ = wait::control(epfd, libc::EPOLL_CTL_DEL, bell.fd().as_raw_fd(), (0, 0));
}

impl Streams {
    pub(super) fn may_look(&self) -> bool {
        self.hot.iter().any(|fd| {
            let known = self.registrations.get(fd);
            known.is_some_and(|known| known.stream.connection().place().is_some())
        })
    }

    /// The descriptors by which the set has a stream.
    pub(super) fn names_of(&self, stream: &Stream) -> Vec<i32> {
        let of = |(_, known): &(&i32, &Registration)| std::ptr::eq(&*known.stream, stream);
        self.registrations.iter().filter(of).map(|(fd, _)| *fd).collect()
    }

    pub(super) fn heat(&mut self, fd: i32) {
        if let Some(known) = self.registrations.get_mut(&fd)
            && known.asleep.is_some()
        {
            known.get_up();
            self.hot.push(fd);
        }
    }

    /// Looks in the next call at the streams of which the set was not sure to hear.
    pub(super) fn look_again(&mut self) {
        std::mem::take(&mut self.unsure).into_iter().for_each(|fd| self.heat(fd));
    }

    /// A new registration. The kernel need not be asked if it has kept the last one of this stream.
    pub(super) fn register(
        &mut self,
        (epfd, fd): (i32, i32),
        stream: &Arc<Stream>,
        (wanted, data): (u32, u64),
    ) -> Result<Registration, Errno> {
        if let Some(mut kept) = self.kept.remove(&fd) {
            self.by_data.remove(&kept.data);
            let is_same = Arc::ptr_eq(&kept.stream, stream) && kept.data == data;
            let is_exclusive = wanted & EPOLLEXCLUSIVE as u32 != 0;
            if is_same && !is_exclusive && kept.want((epfd, fd), (wanted, data)).is_ok() {
                kept.asleep = Some(Vec::new());
                return Ok(kept);
            }
            let _ = wait::control(epfd, libc::EPOLL_CTL_DEL, fd, (0, 0));
        }
        self.free_data(epfd, data);
        wait::control(epfd, libc::EPOLL_CTL_ADD, fd, (wanted, data))?;
        Ok(Registration::new(stream, (wanted, data)))
    }

    /// Takes a registration out, which sleeps no longer.
    pub(super) fn take_out(&mut self, fd: i32) -> Option<Registration> {
        let mut gone = self.registrations.remove(&fd)?;
        gone.get_up();
        self.by_data.remove(&gone.data);
        self.hot.retain(|hot| *hot != fd);
        Some(gone)
    }

    /// Has the kernel forget what it has kept of a descriptor.
    pub(super) fn forget(&mut self, epfd: i32, fd: i32) {
        if let Some(gone) = self.kept.remove(&fd) {
            self.by_data.remove(&gone.data);
            let _ = wait::control(epfd, libc::EPOLL_CTL_DEL, fd, (0, 0));
        }
    }

    pub(super) fn forget_all(&mut self, epfd: i32) {
        let fds: Vec<i32> = self.kept.keys().copied().collect();
        fds.into_iter().for_each(|fd| self.forget(epfd, fd));
    }

    /// Something else is about to have these data: the kernel's events must not be taken for those
    /// of a descriptor that it has kept.
    pub(super) fn free_data(&mut self, epfd: i32, data: u64) {
        if !self.kept.is_empty()
            && let Some(fd) = self.by_data.get(&data).copied()
        {
            self.forget(epfd, fd);
        }
    }

    /// The kernel has just what the program has asked for, but for room that rings tell of.
    pub(super) fn settle(&mut self, epfd: i32) {
        self.forget_all(epfd);
        for (fd, known) in &mut self.registrations {
            if known.kernel & !known.wanted != 0 {
                known.ask_exactly(epfd, *fd);
            }
        }
    }

    /// A stream that is new, or of which something else is wanted.
    pub(super) fn take_up(&mut self, epfd: i32, fd: i32) {
        self.heat(fd);
        if self.sleepers > 0 || self.is_nested {
            self.cool(epfd);
        }
    }

    /// This set's bell for the peer of a pair.
    pub(super) fn bell_for(&mut self, epfd: i32, pair: &Arc<Pair>) -> Option<Arc<Bell>> {
        let is_of = |(of, _): &&(Weak<Pair>, _)| of.as_ptr() == Arc::as_ptr(pair);
        if let Some((_, bell)) = self.bells.iter().flatten().find(is_of) {
            return Some(bell.clone());
        }
        self.forget_gone(epfd);
        let bell = Arc::new(pair.bell()?);
        self.has_links |= pair.is_far();
        if !self.is_asleep {
            bell.wake_up();
        }
        let free = self.bells.iter().position(Option::is_none);
        let place = free.unwrap_or(self.bells.len());
        let (wanted, data) = ((EPOLLIN | EPOLLET) as u32, BELL_DATA + place as u64);
        wait::control(epfd, libc::EPOLL_CTL_ADD, bell.fd().as_raw_fd(), (wanted, data)).ok()?;
        self.bells.resize(self.bells.len().max(place + 1), None);
        self.bells[place] = Some((Arc::downgrade(pair), bell.clone()));
        Some(bell)
    }

    /// Before a thread sleeps, behind all looks: it serves the links with other hosts, if that is
    /// its matter. Otherwise they do not wake it.
    // spec: SOCK-71
    pub(super) fn rest(&mut self, epfd: i32) {
        let links = self.linked().and_then(|pair| pair.rest());
        if links == self.links {
            return;
        }
        self.leave_links(epfd);
        if let Some(fd) = links {
            let (wanted, data) = ((EPOLLIN | EPOLLET) as u32, LINKS_DATA);
            let added = wait::control(epfd, libc::EPOLL_CTL_ADD, fd, (wanted, data));
            match added {
                Ok(()) => self.links = links,
                Err(_) => self.end_looks(),
            }
        }
    }

    /// The links with other hosts do not wake those that sleep here.
    pub(super) fn leave_links(&mut self, epfd: i32) {
        if let Some(fd) = self.links.take() {
            let _ = wait::control(epfd, libc::EPOLL_CTL_DEL, fd, (0, 0));
        }
    }

    /// Others than this thread serve the links with other hosts.
    fn end_looks(&self) {
        self.linked().iter().for_each(|pair| pair.end_looks());
    }

    /// A pair with another host whose process has met this one: all go by one endpoint.
    fn linked(&self) -> Option<Arc<Pair>> {
        if !self.has_links || self.has_foreign_bells {
            return None;
        }
        let mut pairs = self.bells.iter().flatten().filter_map(|(pair, _)| pair.upgrade());
        pairs.find(|pair| pair.is_met())
    }

    /// Forgets the bells of pairs that have ended: peers come and go.
    pub(super) fn forget_gone(&mut self, epfd: i32) {
        let is_gone = |known: &mut (Weak<Pair>, _)| known.0.strong_count() == 0;
        for (pair, bell) in self.bells.iter_mut().filter_map(|known| known.take_if(is_gone)) {
            leave_bell(epfd, &bell);
            self.by_place.retain(|(of, _), _| *of != pair.as_ptr().addr());
        }
    }

    /// A thread sleeps in the kernel's epoll, or is about to: bells are to be rung. Whether one
    /// has marks already.
    pub(super) fn lie_down(&mut self) -> bool {
        self.is_asleep = true;
        self.own_bells().for_each(|bell| bell.lie_down());
        self.is_marked()
    }

    /// A thread has slept. If it was the last one, the next call finds marks by itself.
    pub(super) fn get_up(&mut self) {
        self.sleepers -= 1;
        if self.is_asleep && self.sleepers == 0 && !self.is_nested {
            self.is_asleep = false;
            self.own_bells().for_each(|bell| bell.wake_up());
        }
    }

    /// The bells, but not those of a parent.
    pub(super) fn own_bells(&self) -> impl Iterator<Item = &Arc<Bell>> {
        let bells = self.bells.iter().flatten().filter(|_| !self.has_foreign_bells);
        bells.map(|(_, bell)| bell)
    }

    /// Whether a bell has marks.
    pub(super) fn is_marked(&self) -> bool {
        self.own_bells().any(|bell| bell.is_marked())
    }

    /// Asks the peers of all hot streams to ring. Where a stream is ready already, and threads
    /// sleep, its bell is rung here. Whether one is ready while nobody sleeps.
    pub(super) fn cool(&mut self, epfd: i32) -> bool {
        let mut ready = Vec::new();
        if self.sleepers > 0 || self.is_nested {
            self.wake_sleepers();
        }
        if self.is_nested {
            self.end_looks();
        }
        for fd in std::mem::take(&mut self.hot) {
            let Some(known) = self.registrations.get(&fd) else { continue };
            let stream = known.stream.clone();
            stream.search();
            let place = stream.connection().place();
            let bell = place.and_then(|(pair, slot)| {
                self.by_place.insert((Arc::as_ptr(pair).addr(), slot), fd);
                self.bell_for(epfd, pair)
            });
            let Some(known) = self.registrations.get_mut(&fd) else { continue };
            known.lie_down(&bell);
            let Some((_, slot)) = place else { continue };
            let _ = stream.connection().settle(memory::borrowed(fd));
            known.ask_kernel(epfd, fd);
            if known.is_unsure() {
                self.unsure.push(fd);
            }
            if known.told() != 0 {
                match bell {
                    Some(bell) if self.sleepers > 0 || self.is_nested => bell.ring(slot),
                    _ => ready.push(fd),
                }
            }
        }
        let is_ready = !ready.is_empty();
        ready.into_iter().for_each(|fd| self.heat(fd));
        is_ready
    }

    /// Bells are to be rung for threads that sleep. A bell that has marks meanwhile is rung here.
    fn wake_sleepers(&mut self) {
        self.lie_down();
        for bell in self.own_bells().filter(|bell| bell.is_marked()) {
            bell.ring_again();
        }
    }

    /// Before events are returned: other threads that sleep hear of what comes meanwhile.
    pub(super) fn leave(&mut self, epfd: i32) {
        if self.sleepers > 0 || self.is_nested {
            self.cool(epfd);
        }
    }

    /// Looks at the hot streams, and at those whose bells were rung. The time of the look, and the
    /// descriptors of the streams with events that come by rings, the oldest event first.
    fn find_ready(&mut self) -> (u64, Vec<(u64, i32, u32)>) {
        loop {
            let look = cycles();
            self.take_rings();
            let mut is_late = false;
            let mut ready = Vec::new();
            for fd in &self.hot {
                let Some(known) = self.registrations.get_mut(fd) else { continue };
                ready.extend(known.ready(look).map(|(since, told)| (since, *fd, told)));
                is_late |= known.is_late;
            }
            if !ready.is_empty() || !is_late {
                ready.sort_unstable();
                return (look, ready);
            }
        }
    }

    /// Tells the events that come by rings: the oldest ones, where there is no room for all. Leaves
    /// this number of places.
    // spec: SOCK-46
    pub(super) fn tell_rings(&mut self, left: usize, events: &mut Told) {
        let (look, ready) = self.find_ready();
        for (since, fd, told) in ready {
            let Some(known) = self.registrations.get_mut(&fd) else { continue };
            if events.room() <= left {
                break;
            }
            let may_be_there = known.told_at >= events.begun();
            known.was_told(told, look);
            match may_be_there {
                true => events.join(since, (told, known.data)),
                false => events.push(since, (told, known.data)),
            }
        }
    }

    /// Makes all streams hot whose bells were rung.
    fn take_rings(&mut self) {
        for place in 0..self.bells.len() {
            self.on_rung(place);
        }
    }

    /// Takes in what the kernel tells: rings of bells, and events, of which those of streams are
    /// checked. They are told in the kernel's order. An event behind a bell is told behind the
    /// first stream for which that was rung, and others before all that came by rings.
    pub(super) fn take_in(&mut self, epfd: i32, told: &[epoll_event], events: &mut Told) {
        let mut since = 0;
        for event in told {
            let data = event.u64;
            if data == LINKS_DATA {
                self.linked().iter().for_each(|pair| pair.serve());
                continue;
            }
            let place = data.wrapping_sub(BELL_DATA);
            if place < BELLS_DATA {
                since = since.max(self.on_rung(place as usize).unwrap_or(0));
                continue;
            }
            match self.by_data.get(&data).copied() {
                Some(fd) if self.kept.contains_key(&fd) => self.forget(epfd, fd),
                Some(fd) => self.on_kernel((epfd, fd), (since, event.events), events),
                None => events.push(since, (event.events, data)),
            }
        }
    }

    /// Makes the streams hot for which a bell was rung. From when on the first of them has bytes.
    fn on_rung(&mut self, place: usize) -> Option<u64> {
        let (pair, bell) = self.bells.get(place).filter(|_| !self.has_foreign_bells)?.as_ref()?;
        let pair = pair.as_ptr().addr();
        let mut rung = Vec::new();
        bell.take_marks(|slot| rung.push(slot));
        let mut first = None;
        for slot in rung {
            // A descriptor that was closed since may be another stream's now, which only is looked
            // at in vain.
            if let Some(fd) = self.by_place.get(&(pair, slot)).copied() {
                self.heat(fd);
                let known = self.registrations.get(&fd);
                let since = known.map(|known| known.stream.connection().since());
                first = [first, since].into_iter().flatten().min();
            }
        }
        first
    }

    fn on_kernel(
        &mut self,
        (epfd, fd): (i32, i32),
        (since, mut told): (u64, u32),
        events: &mut Told,
    ) {
        self.heat(fd);
        let Some(known) = self.registrations.get_mut(&fd) else { return };
        known.is_fired_in_kernel |= known.wanted & EPOLLONESHOT as u32 != 0;
        let wanted = told & (known.wanted | (EPOLLERR | EPOLLHUP) as u32);
        if wanted != told {
            told = wanted;
            known.ask_exactly(epfd, fd);
        }
        if told & OUT != 0 && !known.stream.ready(Direction::Out).1 {
            told &= !OUT;
            known.owes_room = true;
            let mask = known.mask(fd, known.wanted);
            let level = (EPOLLET | EPOLLONESHOT) as u32;
            if known.wanted & level == 0 {
                let changed = wait::control(epfd, libc::EPOLL_CTL_MOD, fd, (mask, known.data));
                known.kernel = if changed.is_ok() { mask } else { known.kernel };
            }
        }
        let in_turn = known.stream.in_turn(fd, (flags(known.wanted), flags(told)));
        let in_turn = u32::from(in_turn.bits());
        if told & !in_turn != 0 {
            known.put_off(epfd, fd);
        }
        told = in_turn;
        if known.is_fired || told == 0 {
            return;
        }
        told |= known.told();
        known.was_told(told, cycles());
        events.join(since, (told, known.data));
    }
}
