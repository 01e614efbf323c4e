//! Turns of streams: running stages, passing items on, ending streams.
use super::{
    Effects, Entry, FailureReason, Feeder, Hop, Input, Message, Phase, Stream, StreamEnd,
    StreamFailure, Streams,
};

impl Streams {
    /// Makes up to `turns` turns; returns whether there is more to do. Messages that found no room
    /// at a peer are tried again.
    // spec: PIPE-9, PIPE-10
    pub fn advance(&mut self, turns: usize, fx: &mut impl Effects) -> bool {
        self.check();
        while let Some(place) = self.held.pop() {
            self.ready.push(place);
        }
        for _ in 0..turns {
            let Some(place) = self.current.take().or_else(|| self.ready.pop()) else { break };
            self.turn(place, fx);
        }
        self.check();
        self.is_due()
    }

    /// One item, or the end, of a stream, once all that it has emitted has left.
    // spec: PIPE-9, PIPE-10, PIPE-13
    fn turn(&mut self, place: u16, fx: &mut impl Effects) {
        if !self.flush(place, fx) {
            return;
        }
        let Some(stream) = self.streams.get(place) else { return };
        if fx.arrived(place).is_some() {
            self.run(place, fx);
            self.ready.push(place);
            self.flush(place, fx);
            return;
        }
        match (stream.phase, stream.end) {
            (Phase::Flows, Some(end)) => {
                self.hear(place, end, fx);
                self.ready.push(place);
            }
            (Phase::Heard, Some(end)) => self.pass_end(place, end, fx),
            (Phase::Passed, _) if stream.hops == 0 => self.finish(place, fx),
            _ => self.go_back(place, fx),
        }
    }

    /// Lets go what a stream has emitted. True when all of it has left, and it may be run again.
    // spec: PIPE-8, PIPE-9, PIPE-10
    fn flush(&mut self, place: u16, fx: &mut impl Effects) -> bool {
        while self.streams.get(place).is_some() {
            let Some(weight) = fx.emitted(place) else { return true };
            let at = match self.hop_of(place, fx) {
                Ok(at) => at,
                Err(why) => {
                    self.fail_here(place, why, fx);
                    return false;
                }
            };
            let Some(hop) = self.hops.get_mut(at) else { return false };
            if let Some(target) = hop.target {
                self.recycle(place, target, fx);
                return false;
            }
            if weight > hop.free {
                return false;
            }
            if !fx.has_room(hop.to.peer) {
                self.held.push(place);
                return false;
            }
            hop.free -= weight;
            fx.send(place, hop.to);
        }
        false
    }

    /// Makes an emitted item the next one of another stream of this port, if that stream has got
    /// rid of the one before.
    // spec: PIPE-10
    fn recycle(&mut self, place: u16, target: u16, fx: &mut impl Effects) {
        if fx.arrived(target).is_none() && fx.emitted(target).is_none() {
            fx.pass(place, target);
            self.current = Some(target);
            self.run(target, fx);
        }
    }

    /// A stream has nothing to do. The stream of this port that feeds it is next, if it has emitted
    /// more; otherwise others have their turn.
    // spec: PIPE-10
    fn go_back(&mut self, mut place: u16, fx: &mut impl Effects) {
        while let Some(Feeder::Hop(hop)) = self.streams.get(place).map(|stream| stream.feeder)
            && let Some(feeder) = self.hops.get(hop).and_then(|hop| hop.stream)
        {
            if fx.emitted(feeder).is_some() {
                self.current = Some(feeder);
                return;
            }
            self.ready.push(feeder);
            place = feeder;
        }
    }

    /// Runs a stage for the oldest item.
    // spec: PIPE-8, PIPE-14
    fn run(&mut self, place: u16, fx: &mut impl Effects) {
        let (Some(weight), Some(stream)) = (fx.arrived(place), self.streams.get_mut(place)) else {
            return;
        };
        if let Err(why) = fx.run(place, (stream.name, stream.way), Input::Item) {
            stream.phase = Phase::Heard;
            return self.fail_here(place, why, fx);
        }
        if stream.feeder == Feeder::Peer {
            debug_assert!(stream.owed + weight <= stream.taken, "what is run was sent with credit");
            stream.owed += weight;
            if stream.owed >= self.options.window / 2 {
                let units = core::mem::take(&mut stream.owed);
                stream.taken -= units;
                let (peer, number) = (stream.name.peer, stream.name.number);
                fx.tell(peer, Message::Credit { number, units });
            }
        }
    }

    /// Runs a stage for the end.
    // spec: PIPE-13
    fn hear(&mut self, place: u16, end: StreamEnd, fx: &mut impl Effects) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        stream.phase = Phase::Heard;
        if stream.feeder != Feeder::Program
            && let Err(why) = fx.run(place, (stream.name, stream.way), Input::End(end))
        {
            self.fail_here(place, why, fx);
        }
    }

    /// The next stage hears of the end, also where nothing was sent to it before.
    // spec: PIPE-13
    fn pass_end(&mut self, place: u16, end: StreamEnd, fx: &mut impl Effects) {
        let Some(stream) = self.streams.get(place) else { return };
        let has_way = stream.hop.is_some() || self.entry_of(stream).is_some();
        let is_told = stream.hop.is_some() || !matches!(end, StreamEnd::Failed(_));
        if is_told && (has_way || stream.way.goes_on) {
            match self.hop_of(place, fx) {
                Ok(hop) => self.end_hop(hop, end, fx),
                Err(why) => return self.fail_here(place, why, fx),
            }
        }
        if let Some(stream) = self.streams.get_mut(place) {
            stream.phase = Phase::Passed;
            self.ready.push(place);
        }
    }

    /// The entry of a stream. After its feeder has died, another stream may have the name.
    pub(super) fn entry_of(&self, stream: &Stream) -> Option<Entry> {
        let row = self.directory.get(stream.name).filter(|_| stream.feeder != Feeder::Gone);
        row.map(|row| row.entry)
    }

    /// The hop of a stream's items: the one before, or the one that the directory gives.
    // spec: PIPE-4, PIPE-5
    fn hop_of(&mut self, place: u16, fx: &mut impl Effects) -> Result<u16, FailureReason> {
        let stream = self.streams.get(place).ok_or(FailureReason::Nowhere)?;
        if let Some(hop) = stream.hop {
            return Ok(hop);
        }
        let Entry { to, way, .. } = self.entry_of(stream).ok_or(FailureReason::Nowhere)?;
        if self.leads.get(to).is_some() {
            return Err(FailureReason::Taken);
        }
        let has = self.hops.iter().filter(|(_, hop)| hop.to.peer == to.peer).count();
        let at = self.hops.next().ok_or(FailureReason::Full)?;
        if !self.admits(to.peer, has, self.hops.free()) {
            return Err(FailureReason::Full);
        }
        let target = match to.peer == self.me {
            true if fx.has_stage(way.stage) => Some(self.begin(to, way, Feeder::Hop(at))?),
            true => return Err(FailureReason::UnknownStage),
            false if fx.is_connected(to.peer) => None,
            false => return Err(FailureReason::Unreachable),
        };
        let (stream, free, has_ended) = (Some(place), self.options.window, false);
        self.hops.put(at, Hop { to, stream, target, free, has_ended });
        self.leads.put(to, at);
        if let Some(stream) = self.streams.get_mut(place) {
            stream.hop = Some(at);
            stream.hops += 1;
        }
        if target.is_none() {
            fx.tell(to.peer, Message::Open { number: to.number, way });
        }
        Ok(at)
    }

    /// A hop is over: the stream that it was one of.
    pub(super) fn drop_hop(&mut self, at: u16) -> Option<u16> {
        let hop = self.hops.take(at)?;
        self.leads.remove(hop.to);
        let place = hop.stream?;
        let stream = self.streams.get_mut(place)?;
        stream.hops -= 1;
        stream.hop = stream.hop.filter(|current| *current != at);
        Some(place)
    }

    /// All is done, here and behind: its feeder hears it.
    // spec: PIPE-13
    fn finish(&mut self, place: u16, fx: &mut impl Effects) {
        let Some(stream) = self.streams.get(place).copied() else { return };
        self.forget(place, fx);
        match stream.feeder {
            Feeder::Program => fx.over(stream.name.number, Ok(())),
            Feeder::Peer => {
                let (number, end) = (stream.name.number, StreamEnd::Closed);
                fx.tell(stream.name.peer, Message::Stop { number, end });
            }
            Feeder::Hop(hop) => {
                self.drop_hop(hop).into_iter().for_each(|feeder| self.ready.push(feeder));
            }
            Feeder::Gone => {}
        }
    }

    /// A stream goes wrong at this port; what went wrong before counts.
    fn fail_here(&mut self, place: u16, why: FailureReason, fx: &mut impl Effects) {
        let failure = match self.streams.get(place).and_then(|stream| stream.end) {
            Some(StreamEnd::Failed(failure)) => failure,
            _ => StreamFailure { why, at: self.me },
        };
        self.fail(place, failure, fx);
    }

    /// Ends a stream before its time, here, at all that feed it and at all that it feeds.
    // spec: PIPE-14, PIPE-15
    pub(super) fn fail(&mut self, place: u16, failure: StreamFailure, fx: &mut impl Effects) {
        let mut next = Some(place);
        while let Some(place) = next {
            next = self.fail_one(place, failure, fx);
        }
    }

    /// Fails one stream; the next one is the stream of this port that feeds it.
    fn fail_one(
        &mut self,
        place: u16,
        failure: StreamFailure,
        fx: &mut impl Effects,
    ) -> Option<u16> {
        let stream = *self.streams.get(place)?;
        let end = StreamEnd::Failed(failure);
        if stream.phase == Phase::Flows && stream.feeder != Feeder::Program {
            // It has failed already: that this end goes wrong, too, changes nothing.
            let _ = fx.run(place, (stream.name, stream.way), Input::End(end));
        }
        for at in 0..self.options.streams {
            if let Some(hop) = self.hops.get_mut(at)
                && hop.stream == Some(place)
            {
                hop.stream = None;
                if !hop.has_ended {
                    self.end_hop(at, end, fx);
                }
            }
        }
        self.forget(place, fx);
        match stream.feeder {
            Feeder::Program => fx.over(stream.name.number, Err(failure)),
            Feeder::Peer => {
                fx.tell(stream.name.peer, Message::Stop { number: stream.name.number, end });
            }
            Feeder::Hop(hop) => return self.drop_hop(hop),
            Feeder::Gone => {}
        }
        None
    }

    /// A stream's place is free, and so is the entry that was made for it alone.
    fn forget(&mut self, place: u16, fx: &mut impl Effects) {
        let Some(stream) = self.streams.take(place) else { return };
        let is_its = |hop: &Hop| hop.stream == Some(place);
        debug_assert!(!self.hops.iter().any(|(_, hop)| is_its(hop)), "its hops are over before");
        if self.fed.get(stream.name) == Some(place) {
            self.fed.remove(stream.name);
            if self.directory.get(stream.name).is_some_and(|row| !row.entry.lasts) {
                self.directory.remove(stream.name);
            }
        }
        self.current = self.current.filter(|current| *current != place);
        fx.clear(place);
    }
}
