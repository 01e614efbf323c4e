//! Ends that are told to programs, each held against what was expected, and how worlds end.
use super::memory::Home;
use super::oracle::{Message, Pattern, Placed};
use super::ways::{Around, KEY, id};
use super::world::{Posted, REGION, World, content};
use ayre_proto::endpoint::{Completion, CompletionKind, Received, RmaEvent, RmaKind};
use ayre_proto::fault::Fault;

/// Rounds after which a world is taken to hang.
const ROUNDS: u32 = 1_000_000;

impl World {
    /// An end is told: it is what was expected.
    pub(super) fn ended(&mut self, own: usize, end: Completion) {
        if let CompletionKind::RmaEvent(touched) = end.what {
            return self.on_touched(own, touched);
        }
        let place = &mut self.places[own];
        let posted = place.posted.remove(&end.context);
        let posted = posted.unwrap_or_else(|| panic!("{end:?} was not posted, or has ended"));
        let is_alive = |around: &Around, with: usize| around.wires[own][with].is_open;
        match (posted, end.what) {
            (Posted::Send { to, lent }, CompletionKind::Sent) => {
                assert!(end.result.is_ok() || !is_alive(&self.around, to), "{end:?}");
                lent.map(|address| self.around.lent.remove(&(own, address)));
            }
            (Posted::Write { to }, CompletionKind::Written) => {
                assert!(end.result.is_ok() || !is_alive(&self.around, to), "{end:?}");
            }
            (Posted::Read { from, into, expected, written }, CompletionKind::Read) => {
                let is_short = into.borrow().len() <= 512;
                let is_known = is_short || written == place.written[from];
                if end.result.is_ok() && is_known {
                    assert!(into.take() == expected, "it has what was there");
                }
                assert!(end.result.is_ok() || !is_alive(&self.around, from), "{end:?}");
            }
            (Posted::Update { at, into, expected }, CompletionKind::Updated) => {
                if let (Some(into), Ok(())) = (into, end.result) {
                    assert_eq!(into.take(), expected.to_le_bytes(), "what was there before");
                }
                assert!(end.result.is_ok() || !is_alive(&self.around, at), "{end:?}");
            }
            (Posted::Receive { into, placed, source, .. }, CompletionKind::Cancelled) => {
                assert_eq!(end.result, Ok(()));
                // What it has taken before still comes.
                if !placed.is_empty() {
                    let posted = Posted::Receive { into, placed, source, is_over: true };
                    place.posted.insert(end.context, posted);
                }
            }
            (
                Posted::Receive { into, placed, source, is_over },
                CompletionKind::Received(received),
            ) => {
                self.on_received(own, end, (into, placed, source, is_over), received);
            }
            (posted, what) => panic!("{posted:?} ends as {what:?}"),
        }
    }

    fn on_received(
        &mut self,
        own: usize,
        end: Completion,
        (into, mut placed, source, is_over): (Home, Vec<Placed>, Option<usize>, bool),
        received: Received,
    ) {
        if let Err(why) = end.result {
            self.seen.dead += 1;
            assert_eq!(why, Fault::PeerDead);
            let of = received.source.map(|of| of.index()).or(source).expect("somebody died");
            assert!(!self.around.wires[own][of].is_open, "it is dead");
            if let Some(from) = received.source {
                let is_it =
                    |it: &Placed| (id(it.message.source), it.offset) == (from, received.offset);
                placed.remove(placed.iter().position(is_it).expect("it was coming"));
            }
        } else {
            let is_it = |it: &Placed| {
                let Message { source, tag, data, len, .. } = it.message;
                let told = (received.source, received.tag, received.data, received.len);
                told == (Some(id(source)), tag, data, len)
                    && (received.offset, received.placed) == (it.offset, it.len)
            };
            let at = placed.iter().position(is_it);
            let at = at.unwrap_or_else(|| panic!("{received:?} is none of {placed:?}"));
            let Placed { message, offset, len, .. } = placed.remove(at);
            self.seen.received += 1;
            self.seen.cut += u64::from(len < message.len);
            if received.released {
                let (from, to) = (offset as usize, (offset + len) as usize);
                let bytes = content(&message, own);
                assert!(into.borrow()[from..to] == bytes[..len as usize], "{message:?}");
            }
        }
        if received.released {
            assert!(placed.is_empty(), "{received:?} is the last one, {placed:?} are not");
        } else {
            let posted = Posted::Receive { into, placed, source, is_over };
            self.places[own].posted.insert(end.context, posted);
        }
    }

    fn on_touched(&mut self, own: usize, touched: RmaEvent) {
        let RmaEvent { source, key, kind, len, data } = touched;
        assert_eq!(key, KEY);
        assert!(self.around.wires[own].len() > source.index());
        match kind {
            RmaKind::Wrote => assert_eq!(data, Some(len), "what came along"),
            RmaKind::Updated | RmaKind::Fetched => assert_eq!(len, 8),
            RmaKind::Read => assert!(len <= REGION as u64),
        }
        self.seen.touched += 1;
    }

    /// Everything goes on until nothing more happens.
    pub(crate) fn settle(&mut self) {
        let count = self.count();
        for _ in 0..ROUNDS {
            let mut any = self.carry();
            for own in 0..count {
                any |= self.push_waiting(own);
                for from in 0..count {
                    while self.take(own, from) {
                        any = true;
                    }
                }
            }
            if !any {
                return;
            }
        }
        panic!("something goes on for ever");
    }

    /// Receives for all that has come are posted; then nothing is under way, and all windows are as
    /// they are to be.
    pub(crate) fn finish(&mut self) {
        self.settle();
        for own in 0..self.count() {
            for tag in [Some((0, u64::MAX)), None] {
                while self.places[own].oracle(tag.is_some()).messages() > 0 {
                    self.receive_of(own, Pattern { source: None, tag }, (100_000, None, 0));
                }
            }
            while !self.places[own].tagged.receives().is_empty()
                || !self.places[own].plain.receives().is_empty()
            {
                self.cancel(own);
                self.settle();
            }
        }
        self.settle();
        assert!(self.around.lent.is_empty(), "each message that asked has ended");
        assert_eq!(self.around.trials, 0, "each that was timed was told of");
        for own in 0..self.count() {
            let place = &self.places[own];
            let left: Vec<_> = place.posted.iter().take(3).collect();
            assert!(left.is_empty(), "{own}: {left:?}");
            assert_eq!(place.protocol.under_way(), 0);
            assert!(!place.protocol.waits_for_room());
            assert_eq!(place.protocol.throttled(), 0);
            for to in (0..self.count()).filter(|to| self.around.wires[own][*to].is_open) {
                let there = &self.around.windows[to][own * REGION..(own + 1) * REGION];
                assert!(place.there[to] == there, "{own} has written to {to}");
                assert_eq!(self.places[to].protocol.kept_of(id(own)), 0);
            }
        }
    }
}
