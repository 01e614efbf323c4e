//! Taking a datagram: to the link, the opening or the listener that it is for.
use super::super::Pumped;
use super::super::handshake::Protection;
use super::super::opening::Refused;
use super::super::seal::sealed_for;
use super::{Links, Slot};
use crate::error::Fault;
use crate::net::crc::crc32c;
use crate::net::routes::Way;
use ayre_proto::lane::Malformed;
use ayre_proto::link::frame::{HEADER_BYTES, Header, Kind};

impl Links {
    /// A datagram has come. A wrong datagram is counted, and has no other effect.
    // spec: FRAME-6, SEAL-1, LINK-15
    pub(in crate::link) fn on_datagram(
        &mut self,
        (from, datagram_max): (Way, impl Fn() -> usize),
        datagram: &mut [u8],
        now: u64,
    ) -> Pumped {
        debug_assert!(from.net < self.outboxes.len(), "it has come by a net of ours");
        let done = match sealed_for(datagram) {
            Some(index) => self.on_sealed(index as usize, from, datagram, now),
            None => self.on_bare((from, datagram_max), datagram, now),
        };
        done.unwrap_or_else(|Refused| {
            self.counters.refused += 1;
            Pumped::default()
        })
    }

    fn on_sealed(
        &mut self,
        index: usize,
        from: Way,
        datagram: &mut [u8],
        now: u64,
    ) -> Result<Pumped, Refused> {
        let frame: &[u8] = match self.slots.get_mut(index) {
            Some(Slot::Open(link)) => link.keys().ok_or(Refused)?.open(datagram)?,
            Some(Slot::HalfOpen(place)) => {
                let answered = self.acceptor.answered(*place).ok_or(Refused)?;
                answered.keys.as_mut().ok_or(Refused)?.open(datagram)?
            }
            _ => return Err(Refused),
        };
        if let Some(taps) = &self.taps {
            taps[from.net].opened(from.to, frame, now);
        }
        let header = Header::parse(frame, crc32c)?;
        if header.to as usize != index {
            return Err(Refused);
        }
        self.on_frame(from, frame, &header, now)
    }

    fn on_bare(
        &mut self,
        (from, datagram_max): (Way, impl Fn() -> usize),
        frame: &[u8],
        now: u64,
    ) -> Result<Pumped, Refused> {
        let header = Header::parse(frame, crc32c)?;
        match header.kind {
            Kind::Open => self.on_open((from, datagram_max), frame, &header, now),
            Kind::Accept | Kind::Reset => {
                let payload = &frame[HEADER_BYTES..];
                header.check_payload(payload, crc32c)?;
                match header.kind {
                    Kind::Accept => self.on_accept(from, &header, payload, now),
                    _ => self.on_reset(from, &header, payload, now),
                }
            }
            _ if matches!(self.identity.protection, Protection::Sealed(_)) => Err(Refused),
            _ => self.on_frame(from, frame, &header, now),
        }
    }

    /// A frame of a link, as far as its header tells.
    fn on_frame(
        &mut self,
        from: Way,
        frame: &[u8],
        header: &Header,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let index = header.to as usize;
        let is_new = matches!(self.slots.get(index), Some(Slot::HalfOpen(_)));
        if is_new {
            self.confirm(from, header, now)?;
        }
        let Some(link) = self.slots.open_mut(index) else {
            self.answer_with_reset(from, header, now);
            return Err(Refused);
        };
        let heard = link.on_frame(from, frame, header, &self.looks, &mut self.outboxes);
        let peer = link.peer;
        if let Err(Malformed) = heard {
            self.end_malformed(index, now);
            return Ok(Pumped { from: None, changed: true });
        }
        let from = (heard == Ok(true)).then_some(peer);
        if from.is_some() {
            self.hot = index;
        }
        Ok(Pumped { from, changed: is_new | self.look_for_end(index, now) })
    }

    /// A peer that says what no correct one says is spoken with no more.
    // spec: LIFE-18
    pub(super) fn end_malformed(&mut self, index: usize, now: u64) {
        self.counters.malformed += 1;
        if let Some(Slot::Open(link)) = self.slots.get(index) {
            link.mail().close(Fault::Malformed, None);
        }
        self.retire(index, now);
        debug_assert!(self.slots.open_mut(index).is_none(), "nothing more is taken of it");
    }
}
