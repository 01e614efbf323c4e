//! The messages of peers, and their deaths.
use super::{
    Effects, FailureReason, Feeder, Message, Phase, StreamEnd, StreamFailure, StreamName, Streams,
    Way,
};
use crate::lane::Malformed;
use crate::units::PeerId;

impl Streams {
    /// Takes what a peer says; an answer is its asker's to take.
    // spec: PIPE-6, PIPE-18
    pub fn on_message(
        &mut self,
        from: PeerId,
        message: Message,
        fx: &mut impl Effects,
    ) -> Result<(), Malformed> {
        self.check();
        let name = |number| StreamName { peer: from, number };
        match message {
            Message::Open { number, way } => self.on_open(name(number), way, fx),
            Message::Credit { number, units } => self.on_credit(name(number), units),
            Message::End { number, end } => self.on_end(name(number), end),
            Message::Stop { number, end } => self.on_stop(name(number), end, fx),
            Message::Set { request, name, entry } => {
                let answer = self.set(from, name, entry, fx);
                fx.tell(from, Message::Answer { request, answer });
                Ok(())
            }
            Message::Clear { request, name, if_unused } => {
                let answer = self.unset(from, name, if_unused, fx);
                fx.tell(from, Message::Answer { request, answer });
                Ok(())
            }
            Message::Answer { .. } => Err(Malformed),
        }
    }

    // spec: PIPE-5, PIPE-14, PIPE-16
    fn on_open(
        &mut self,
        name: StreamName,
        way: Way,
        fx: &mut impl Effects,
    ) -> Result<(), Malformed> {
        if self.fed.get(name).is_some() {
            return Err(Malformed);
        }
        let begun = match fx.has_stage(way.stage) {
            true => self.begin(name, way, Feeder::Peer),
            false => Err(FailureReason::UnknownStage),
        };
        if let Err(why) = begun {
            let end = StreamEnd::Failed(StreamFailure { why, at: self.me });
            fx.tell(name.peer, Message::Stop { number: name.number, end });
        }
        Ok(())
    }

    /// An item has come: where it is to be kept; nowhere, if its stream has been stopped.
    // spec: PIPE-8, PIPE-17
    pub fn on_item(
        &mut self,
        from: PeerId,
        number: u32,
        weight: u8,
    ) -> Result<Option<u16>, Malformed> {
        self.check();
        let Some(place) = self.fed.get(StreamName { peer: from, number }) else { return Ok(None) };
        let Some(stream) = self.streams.get_mut(place) else { return Ok(None) };
        let left = self.options.window - stream.taken;
        if stream.feeder != Feeder::Peer || stream.end.is_some() || weight > left {
            return Err(Malformed);
        }
        stream.taken += weight;
        self.ready.push(place);
        Ok(Some(place))
    }

    // spec: PIPE-13, PIPE-17
    fn on_end(&mut self, name: StreamName, end: StreamEnd) -> Result<(), Malformed> {
        let Some(place) = self.fed.get(name) else { return Ok(()) };
        let Some(stream) = self.streams.get_mut(place) else { return Ok(()) };
        if stream.feeder != Feeder::Peer || stream.end.is_some() {
            return Err(Malformed);
        }
        stream.end = Some(end);
        self.ready.push(place);
        Ok(())
    }

    // spec: PIPE-8, PIPE-17
    fn on_credit(&mut self, to: StreamName, units: u8) -> Result<(), Malformed> {
        let hop = self.remote_hop(to)?;
        let hop = self.hops.get_mut(hop).ok_or(Malformed)?;
        if units == 0 || units > self.options.window - hop.free {
            return Err(Malformed);
        }
        hop.free += units;
        hop.stream.into_iter().for_each(|place| self.ready.push(place));
        Ok(())
    }

    // spec: PIPE-13, PIPE-14, PIPE-17
    fn on_stop(
        &mut self,
        to: StreamName,
        end: StreamEnd,
        fx: &mut impl Effects,
    ) -> Result<(), Malformed> {
        let at = self.remote_hop(to)?;
        let hop = *self.hops.get(at).ok_or(Malformed)?;
        if end == StreamEnd::Closed && !hop.has_ended {
            return Err(Malformed);
        }
        let stream = self.drop_hop(at);
        match (stream, end) {
            (Some(place), StreamEnd::Failed(failure)) => self.fail(place, failure, fx),
            (Some(place), _) => self.ready.push(place),
            (None, _) => {}
        }
        Ok(())
    }

    fn remote_hop(&self, to: StreamName) -> Result<u16, Malformed> {
        let hop = if to.peer == self.me { None } else { self.leads.get(to) };
        hop.ok_or(Malformed)
    }

    /// A peer is gone: all that it has sent was taken before.
    // spec: PIPE-15
    pub fn on_death(&mut self, peer: PeerId, fx: &mut impl Effects) {
        let failure = StreamFailure { why: FailureReason::PeerDied, at: peer };
        for place in 0..self.options.streams {
            if self.leads_to(place, peer) {
                self.fail(place, failure, fx);
            }
            if let Some(stream) = self.streams.get_mut(place)
                && stream.feeder == Feeder::Peer
                && stream.name.peer == peer
            {
                stream.feeder = Feeder::Gone;
                stream.end.get_or_insert(StreamEnd::Failed(failure));
                self.fed.remove(stream.name);
                self.ready.push(place);
            }
        }
        for hop in 0..self.options.streams {
            if self.hops.get(hop).is_some_and(|hop| hop.to.peer == peer) {
                let place = self.drop_hop(hop);
                place.into_iter().for_each(|place| self.fail(place, failure, fx));
            }
        }
        let fed = &self.fed;
        self.directory.retain(|name, row| {
            let is_waiting = !row.entry.lasts && fed.get(name).is_none();
            let is_his = name.peer == peer || row.entry.to.peer == peer;
            !(is_his || row.by == peer && is_waiting)
        });
        let is_left = |hop: &super::Hop| hop.to.peer == peer;
        debug_assert!(!self.hops.iter().any(|(_, hop)| is_left(hop)), "no hop leads to the dead");
        self.check();
    }

    /// Whether a stream goes through a peer, or would.
    fn leads_to(&self, place: u16, peer: PeerId) -> bool {
        let Some(stream) = self.streams.get(place) else { return false };
        match stream.hop.and_then(|hop| self.hops.get(hop)) {
            Some(hop) => hop.to.peer == peer,
            None if stream.phase == Phase::Passed => false,
            None => self.entry_of(stream).is_some_and(|entry| entry.to.peer == peer),
        }
    }
}
