//! The forwarding directory: entries are set and cleared while items flow.
use super::{Effects, Entry, EntryAnswer, Message, Row, StreamEnd, StreamName, Streams};
use crate::units::PeerId;

impl Streams {
    /// Sets an entry, or replaces one. Items sent before take the old way, all others the new one.
    // spec: PIPE-4, PIPE-6, PIPE-7, PIPE-16
    pub fn set(
        &mut self,
        by: PeerId,
        name: StreamName,
        entry: Entry,
        fx: &mut impl Effects,
    ) -> EntryAnswer {
        let old = self.directory.get(name);
        if !self.may_change(by, old) {
            return EntryAnswer::Denied;
        }
        let leads = |other: &&(StreamName, Row)| other.0 != name && other.1.entry.to == entry.to;
        let is_led_to = self.leads.get(entry.to).is_some();
        if is_led_to || self.directory.rows().any(|row| leads(&row)) {
            return EntryAnswer::Taken;
        }
        let has = self.directory.rows().filter(|(_, row)| row.by == by).count();
        if old.is_none() && !self.admits(by, has, self.directory.free()) {
            return EntryAnswer::Full;
        }
        self.directory.put(name, Row { entry, by });
        self.cut(name, fx);
        let mut rows = self.directory.rows();
        debug_assert!(rows.all(|other| !leads(&other)), "one entry leads to a stream");
        self.check();
        EntryAnswer::Done
    }

    /// Clears an entry, or clears it only if no stream uses it. Items sent before are not affected.
    // spec: PIPE-6, PIPE-7
    pub fn unset(
        &mut self,
        by: PeerId,
        name: StreamName,
        if_unused: bool,
        fx: &mut impl Effects,
    ) -> EntryAnswer {
        let old = self.directory.get(name);
        if !self.may_change(by, old) {
            return EntryAnswer::Denied;
        }
        if old.is_none() {
            return EntryAnswer::Unknown;
        }
        if if_unused && self.fed.get(name).is_some() {
            return EntryAnswer::Taken;
        }
        self.directory.remove(name);
        self.cut(name, fx);
        EntryAnswer::Done
    }

    /// Clears an entry of the port's own, if no stream uses it.
    // spec: PIPE-6
    pub fn unset_unused(&mut self, name: StreamName) {
        if self.fed.get(name).is_none() {
            self.directory.remove(name);
        }
    }

    // spec: PIPE-6
    fn may_change(&self, by: PeerId, old: Option<Row>) -> bool {
        by == self.me || self.is_open && old.is_none_or(|row| row.by == by)
    }

    /// Nothing more goes the way that a stream has had.
    // spec: PIPE-7
    fn cut(&mut self, name: StreamName, fx: &mut impl Effects) {
        let Some(place) = self.fed.get(name) else { return };
        let Some(stream) = self.streams.get_mut(place) else { return };
        if let Some(hop) = stream.hop
            && self.hops.get(hop).is_some_and(|hop| !hop.has_ended)
        {
            stream.hop = None;
            self.end_hop(hop, StreamEnd::Cut, fx);
        }
        self.ready.push(place);
    }

    /// Says behind the last item of a hop how it ends.
    // spec: PIPE-13
    pub(super) fn end_hop(&mut self, hop: u16, end: StreamEnd, fx: &mut impl Effects) {
        let Some(hop) = self.hops.get_mut(hop) else { return };
        debug_assert!(!hop.has_ended, "the next stage is told of one end");
        hop.has_ended = true;
        match hop.target {
            None => fx.tell(hop.to.peer, Message::End { number: hop.to.number, end }),
            Some(target) => {
                if let Some(stream) = self.streams.get_mut(target) {
                    stream.end = Some(end);
                    self.ready.push(target);
                }
            }
        }
    }
}
