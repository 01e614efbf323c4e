//! Links that come up: what is asked, accepted, refused and confirmed.
use super::{Arrived, Links, Slot, random, send_bare};
use crate::connection::{Agreement, Link, Mode};
use crate::control::Channel;
use crate::mem::fence::{Fencing, expedited};
use crate::mem::layout::{Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::wire::Pumped;
use crate::wire::callee::Pass;
use crate::wire::carrier::{Carrier, Performer};
use crate::wire::crc::crc32c;
use crate::wire::drive::drive_frames;
use crate::wire::handshake;
use crate::wire::link_end::{LinkEnd, Way};
use crate::wire::mail::Mail;
use crate::wire::net::whole_lines;
use crate::wire::opening::{self, Entrance, Introduction, Protection, Refused};
use crate::wire::seal::{Keys, PREFIX_BYTES, TAG_BYTES};
use ayre_proto::link::Repair;
use ayre_proto::link::door::{Place, reset_header};
use ayre_proto::link::end::{self, End};
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, PATHS_MAX};
use ayre_proto::link::open::{AgreedLimits, FRAME_LEAST, SetUp};
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// What becomes of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    /// It changes nothing, and nothing is said.
    Ignored,
    Refused,
}

impl Links {
    /// What this side says of a link: its own index, bytes of the longest datagram, paths, and the
    /// pass of whom it calls.
    pub(super) fn set_up(
        &mut self,
        index: usize,
        datagram_max: usize,
        paths: usize,
        pass: Pass,
    ) -> SetUp {
        let endpoint = self.identity.endpoint.as_ref();
        let introduction = endpoint.map(|own| Introduction { name: own.name, pass });
        let sizes = match introduction {
            Some(_) => LaneSizes::carried_endpoint(self.ring_of_next()),
            None => LaneSizes::CARRIED,
        };
        self.generation = self.generation.wrapping_add(1).max(1);
        SetUp {
            nonce: random(),
            answers: 0,
            incarnation: self.incarnation,
            token: random(),
            generation: self.generation,
            index: index as u32,
            first: [random() as u32, random() as u32, random() as u32],
            frame_max: self.frame_max(datagram_max),
            number: self.identity.number,
            paths: paths as u8,
            repair: Repair::Selective,
            owner: opening::owner_words(sizes, introduction),
        }
    }

    /// Bytes of the ring that one more link is to have.
    // spec: LIM-1
    fn ring_of_next(&self) -> u32 {
        let others = self.slots.iter().filter(|slot| !matches!(slot, Slot::Free)).count();
        self.identity.ring.unwrap_or_else(|| LaneSizes::ring_of_link_beside(others))
    }

    /// Bytes of the longest frame in a datagram of so many.
    fn frame_max(&self, datagram_max: usize) -> u16 {
        let sealed = match self.identity.protection {
            Protection::Sealed(_) => PREFIX_BYTES + TAG_BYTES,
            Protection::Plain => 0,
        };
        let longest =
            whole_lines(datagram_max).saturating_sub(sealed).max(usize::from(FRAME_LEAST));
        longest.min(usize::from(u16::MAX)) as u16
    }

    /// Somebody asks for a link. Who does not hold the key has been refused before anything was
    /// made for him.
    // spec: OPEN-8, OPEN-9, SEAL-10
    pub(super) fn on_open(
        &mut self,
        (from, datagram_max): (Way, impl Fn() -> usize),
        frame: &[u8],
        header: &Header,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let payload = &frame[HEADER_BYTES..];
        header.check_payload(payload, crc32c)?;
        let (theirs, answer) = opening::unwrap_open(&self.identity.protection, payload)?;
        // What is under the key says who asks, and anybody can write around it.
        if answer.is_none() && theirs.nonce != header.token {
            return Err(Refused);
        }
        let verdict = match &self.identity.endpoint {
            Some(own) => self.judge_caller(own, &theirs),
            None => self.judge_port(&theirs, answer.is_some(), now),
        };
        match verdict {
            Verdict::Accepted => {}
            Verdict::Ignored => return Ok(Pumped::default()),
            Verdict::Refused => {
                self.refuse((from, header, now), &theirs, answer);
                return Err(Refused);
            }
        }
        let place = match self.entrance.door.find(&theirs) {
            Some(place) => place,
            None => self.admit(&theirs, answer, datagram_max(), now)?,
        };
        let half = self.entrance.door.get(place).ok_or(Refused)?;
        let ours = *half.ours();
        let answered = self.entrance.answered(place).ok_or(Refused)?;
        let digest = Digest::of(&answered.message, crc32c);
        let accept = ours.accept_header(&theirs, header.path, now, digest);
        send_bare(&mut self.outboxes, from, &accept, &answered.message);
        Ok(Pumped::default())
    }

    /// A port may open while this one accepts, if its number is not taken.
    // spec: OPEN-13
    fn judge_port(&mut self, theirs: &SetUp, is_believed: bool, now: u64) -> Verdict {
        let is_sought = self.seek(theirs, is_believed, now);
        let Entrance { taken: Some(taken), gone, .. } = &self.entrance else {
            return Verdict::Ignored;
        };
        let number = &theirs.number;
        if is_sought || (taken.contains(number) && gone.contains(number)) {
            return Verdict::Ignored;
        }
        if taken.contains(number) && self.entrance.door.find(theirs).is_none() {
            return Verdict::Refused;
        }
        Verdict::Accepted
    }

    /// Whether a peer in whose name somebody opens is looked for, as it may have been started anew.
    // spec: LINK-25
    fn seek(&mut self, theirs: &SetUp, is_believed: bool, now: u64) -> bool {
        let index = self.index_of(PeerId(theirs.number));
        match self.slots.get_mut(index) {
            Some(Slot::Open(link)) => link.on_open(theirs.incarnation, is_believed, now),
            _ => false,
        }
    }

    /// Says no: as a reset, which anybody could have sent; to holders of the key as an accept that
    /// agrees to nothing.
    // spec: OPEN-11, SEAL-10
    fn refuse(
        &mut self,
        (from, open, now): (Way, &Header, u64),
        theirs: &SetUp,
        answer: Option<handshake::Answer>,
    ) {
        let Some(answer) = answer else { return self.answer_with_reset(from, open, now) };
        if self.entrance.resets.take(now) {
            let ours = self.set_up(0, usize::from(FRAME_LEAST), 1, Pass::default());
            let ours = SetUp { owner: opening::REFUSAL, ..ours.answering(theirs) };
            let answered = opening::wrap_accept(Some(answer), &ours);
            let digest = Digest::of(&answered.message, crc32c);
            let accept = ours.accept_header(theirs, open.path, now, digest);
            send_bare(&mut self.outboxes, from, &accept, &answered.message);
        }
    }

    fn admit(
        &mut self,
        theirs: &SetUp,
        answer: Option<handshake::Answer>,
        datagram_max: usize,
        now: u64,
    ) -> Result<Place, Refused> {
        let index = self.free_index().map_err(|_| Refused)?;
        let paths = usize::from(theirs.paths).min(usize::from(PATHS_MAX));
        let ours = self.set_up(index, datagram_max, paths, Pass::default());
        let ours = opening::with_ring_of_both(ours, theirs);
        opening::agreed_sizes(theirs, &ours)?;
        let opener = match opening::introduction(theirs) {
            Some(caller) => caller.name[0],
            None => u64::from(theirs.number),
        };
        let (place, evicted) = self.entrance.door.admit(opener, theirs, ours, now)?;
        if let Some(evicted) = evicted {
            self.free(evicted.ours().index as usize);
        }
        let accept = *self.entrance.door.get(place).ok_or(Refused)?.ours();
        self.entrance.keep(place, opening::wrap_accept(answer, &accept));
        self.slots[index] = Slot::HalfOpen(place);
        Ok(place)
    }

    /// The opener has shown that it has got the accept: there is a link.
    // spec: OPEN-10
    pub(super) fn confirm(&mut self, from: Way, header: &Header, now: u64) -> Result<(), Refused> {
        let name = self.caller_at(header.to);
        if name.is_some_and(|name| !self.may_come(name)) {
            return Err(Refused);
        }
        let (place, half) = self.entrance.door.confirm(header).ok_or(Refused)?;
        if let Some(name) = name {
            self.give_way(name);
        }
        let answered = self.entrance.take(place).ok_or(Refused)?;
        let (agreement, limits) = *half.agreed();
        let ways = vec![from; usize::from(agreement.paths)];
        let number = PeerId(half.theirs().number);
        let index = half.ours().index as usize;
        let agreed = (agreement, limits, opening::agreed_sizes(half.theirs(), half.ours())?);
        let connection = self.make_link(number, agreed, (answered.keys, ways), (index, now));
        self.bring(Arrived { index, connection, name, is_ours: false });
        Ok(())
    }

    pub(super) fn on_accept(
        &mut self,
        from: Way,
        frame: &[u8],
        header: &Header,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let payload = &frame[HEADER_BYTES..];
        header.check_payload(payload, crc32c)?;
        let index = header.to as usize;
        let Some(Slot::Asked(asked)) = self.slots.get_mut(index) else { return Err(Refused) };
        if header.token != asked.opener.ours().nonce {
            return Err(Refused);
        }
        let (theirs, keys) = asked.unwrap(payload)?;
        if theirs.owner == opening::REFUSAL {
            asked.is_refused = true;
            return Ok(Pumped { from: None, changed: true });
        }
        let sizes = opening::agreed_sizes(asked.opener.ours(), &theirs)?;
        let name = opening::introduction(&theirs).map(|callee| callee.name);
        if name != asked.callee {
            return Err(Refused);
        }
        let (agreement, limits) = asked.opener.on_accept(&theirs)?.ok_or(Refused)?;
        let ways = asked.ways_of(from, usize::from(agreement.paths));
        let peer = PeerId(theirs.number);
        let agreed = (agreement, limits, sizes);
        let connection = self.make_link(peer, agreed, (keys, ways), (index, now));
        if let Slot::Open(link) = &mut self.slots[index] {
            link.keep_ways();
        }
        self.bring(Arrived { index, connection, name, is_ours: true });
        Ok(Pumped { from: None, changed: true })
    }

    /// A link has come up.
    fn bring(&mut self, arrived: Arrived) {
        if let Some(Slot::Open(link)) = self.slots.get_mut(arrived.index) {
            link.name = arrived.name;
        }
        self.arrived.push_back(arrived);
    }

    pub(super) fn on_reset(
        &mut self,
        from: Way,
        header: &Header,
        now: u64,
    ) -> Result<Pumped, Refused> {
        for slot in &mut self.slots {
            let is_meant = match slot {
                Slot::Asked(asked) => asked.on_reset(from, header, now),
                Slot::Open(link) => link.on_reset(header, now),
                _ => false,
            };
            if is_meant {
                return Ok(Pumped { from: None, changed: true });
            }
        }
        Err(Refused)
    }

    // spec: OPEN-11
    pub(super) fn answer_with_reset(&mut self, to: Way, unwanted: &Header, now: u64) {
        if let Some(header) = reset_header(unwanted, now)
            && self.entrance.resets.take(now)
        {
            send_bare(&mut self.outboxes, to, &header, &[]);
        }
    }

    /// Makes one end of a link, with the lanes that it carries: what its port needs of it.
    fn make_link(
        &mut self,
        peer: PeerId,
        (agreement, limits, sizes): (end::Agreement, AgreedLimits, LaneSizes),
        (keys, ways): (Option<Keys>, Vec<Way>),
        (index, now): (usize, u64),
    ) -> Agreement {
        let mapping = Arc::new(Mapping::of_words(vec![0; sizes.file_len() / 8]));
        let (out, inward) = Direction::pair(&mapping, sizes);
        let mail = Mail::new(&self.identity.any_mail);
        let fencing = if expedited() { Fencing::Asymmetric } else { Fencing::Symmetric };
        let (page, bells) = (self.page_of_peers.clone(), self.bells.clone());
        let link = Arc::new(Link { control: Channel::Mail(mail.clone()), page, bells, fencing });
        let responder = self.identity.responder.clone();
        let performer = Performer { peer, link: link.clone(), responder };
        let carrier = Carrier::new((&out, &inward), mail, performer);
        let drive = drive_frames(&self.identity.drive, limits.frame_max);
        let machine = End::new(agreement, &drive, now);
        let frames = (limits.frame_max.into(), &self.pool);
        let mut end = LinkEnd::new((peer, machine), carrier, (keys, ways), frames);
        if let Some(taps) = &self.taps {
            end.write_down(taps.clone());
        }
        let record_max = end.record_max();
        self.slots[index] = Slot::Open(Box::new(end));
        Agreement { bells: None, peer, mode: Mode::Mediated, link, out, inward, record_max }
    }
}
