//! Links that come up: what is asked, accepted, refused and confirmed.
use super::{Arrived, Links, NO_ANSWER, Slot, send_bare, token_of};
use crate::link::Pumped;
use crate::link::callee::Pass;
use crate::link::carrier::{FarSide, Performer};
use crate::link::drive::drive_frames;
use crate::link::half_open::{self, Acceptor};
use crate::link::handshake::{self, Protection};
use crate::link::link_end::{self, DATAGRAM_LEAST, LinkEnd};
use crate::link::opening::{self, Introduction, NO_NUMBER, Refused, Unopened};
use crate::link::seal::Keys;
use crate::mem::fence::{Fencing, expedited};
use crate::mem::layout::{Direction, LaneSizes};
use crate::mem::map::Mapping;
use crate::net::chance::Chance;
use crate::net::crc::crc32c;
use crate::net::datagram::whole_lines;
use crate::net::routes::Way;
use crate::peer::agreement::{Agreement, Cut};
use crate::peer::contact::{Link, Waker};
use crate::peer::control::Channel;
use crate::peer::mail::Mail;
use crate::settings::choice::Mode;
use ayre_proto::link::Repair;
use ayre_proto::link::answer::{Answer, answer_header, reset_header};
use ayre_proto::link::end::{self, End};
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, PATHS_MAX};
use ayre_proto::link::half_open::{AdmitError, OpenRequest, Place};
use ayre_proto::link::open::{ANYBODY, AgreedLimits, FRAME_LEAST, SetUp};
use ayre_proto::refusal::Refusal;
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// The verdict on an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    /// It changes nothing, and nothing is said.
    Ignored,
    Refused(Refusal),
}

/// An open that has come: by which way, and what its header says.
#[derive(Clone, Copy)]
struct OpenFrame<'a> {
    from: Way,
    header: &'a Header,
    payload: &'a [u8],
}

impl Links {
    /// This side's set-up of a link: its own index, bytes of the longest datagram, paths, and the
    /// destination: the number and the pass.
    pub(super) fn set_up(
        &mut self,
        index: usize,
        datagram_max: usize,
        paths: usize,
        (destination, pass): (u16, Pass),
    ) -> SetUp {
        let endpoint = self.identity.endpoint.as_ref();
        let introduction = endpoint.map(|own| Introduction { name: own.name, pass });
        let sizes = match introduction {
            Some(_) => LaneSizes::carried_endpoint(self.ring_of_next()),
            None => LaneSizes::CARRIED,
        };
        assert!((1..=usize::from(PATHS_MAX)).contains(&paths), "a link has some paths");
        assert!(index < super::LINKS_MAX, "a link has a place");
        self.generation = self.generation.wrapping_add(1).max(1);
        SetUp {
            nonce: self.chance.number(),
            answers: 0,
            incarnation: self.incarnation,
            token: self.chance.number(),
            generation: self.generation,
            index: index as u32,
            first: [0; 3].map(|_| self.chance.number() as u32),
            frame_max: self.frame_max(datagram_max),
            number: self.identity.number,
            destination,
            paths: paths as u8,
            repair: Repair::Selective,
            owner: opening::owner_words(sizes, introduction),
            cookie: 0,
        }
    }

    /// Bytes of the ring that one more link is to have.
    // spec: LIM-1
    fn ring_of_next(&self) -> u32 {
        let others = self.slots.iter().filter(|slot| !matches!(slot, Slot::Free)).count();
        let is_simulated = matches!(self.chance, Chance::Simulated(_));
        let usual = || LaneSizes::ring_of_link_beside(others, is_simulated);
        self.identity.ring.unwrap_or_else(usual)
    }

    /// Bytes that a frame of this port's takes in a datagram beside its own.
    fn sealing(&self) -> usize {
        link_end::sealing(matches!(self.identity.protection, Protection::Sealed(_)))
    }

    /// Bytes of the longest frame in a datagram of this length. Where that is too short for the
    /// longest message, the message goes in pieces.
    fn frame_max(&self, datagram_max: usize) -> u16 {
        let sealed = self.sealing();
        let longest =
            whole_lines(datagram_max).saturating_sub(sealed).max(usize::from(FRAME_LEAST));
        longest.min(usize::from(u16::MAX)) as u16
    }

    /// Somebody asks for a link. A frame of another length than an open's is not read. An open that
    /// has come before gets the same answer. An open without the key is refused before anything is
    /// made for its sender. No operation on the curve is for an open that may be a recording.
    // spec: OPEN-8, OPEN-9, OPEN-21, SEAL-9, SEAL-10
    pub(super) fn on_open(
        &mut self,
        (from, datagram_max): (Way, impl Fn() -> usize),
        frame: &[u8],
        header: &Header,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let payload = &frame[HEADER_BYTES..];
        let open = OpenFrame { from, header, payload };
        if let Some(why) = opening::misfit(&self.identity.protection, header.seq, payload.len()) {
            if let Some(why) = why {
                self.send_refusal(&open, (why, None), header.seq.into(), now);
            }
            return Err(Refused);
        }
        header.check_payload(payload, crc32c)?;
        if let Some(place) = self.acceptor.known(payload) {
            if self.acceptor.repeats(place, from.to, now) {
                self.accept(&open, place, now)?;
            }
            return Ok(Pumped::default());
        }
        let theirs = self.acceptor.read(payload).inspect_err(|_| {
            self.send_refusal(&open, (Refusal::Key, None), 0, now);
        })?;
        self.on_set_up(&open, &theirs, datagram_max, now)
    }

    /// An open that comes from a holder of the key, if there is a key.
    // spec: OPEN-20, OPEN-21, OPEN-27
    fn on_set_up(
        &mut self,
        open: &OpenFrame<'_>,
        theirs: &SetUp,
        datagram_max: impl Fn() -> usize,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let is_sealed = matches!(self.identity.protection, Protection::Sealed(_));
        // What is under the key says who asks, and anybody can write around it.
        let is_consistent = is_sealed || theirs.nonce == open.header.token;
        let is_meant = [ANYBODY, self.identity.number].contains(&theirs.destination);
        if !is_consistent || !is_meant || theirs.answers != 0 {
            return Err(Refused);
        }
        let verdict = match &self.identity.endpoint {
            Some(own) => self.judge_caller(own, theirs),
            None => self.judge_port(theirs, is_sealed, now),
        };
        match verdict {
            Verdict::Accepted => {}
            Verdict::Ignored => return Ok(Pumped::default()),
            Verdict::Refused(why) => return self.refuse(open, theirs, why, now),
        }
        let request = self.open_request(open, theirs, now);
        // Endpoints are named by their key, or by the pass.
        let is_named = self.identity.endpoint.is_some() || theirs.destination != ANYBODY;
        if !self.acceptor.table.may_enter(&request, is_named, now) {
            self.ask_again(open, theirs, now);
            return Ok(Pumped::default());
        }
        match self.admit(open, request, theirs, datagram_max(), now) {
            Ok(place) => self.accept(open, place, now)?,
            Err(Some(why)) => return self.refuse(open, theirs, why, now),
            Err(None) if request.is_proved => return Err(Refused),
            Err(None) => self.ask_again(open, theirs, now),
        }
        Ok(Pumped::default())
    }

    fn open_request(&self, open: &OpenFrame<'_>, theirs: &SetUp, now: u64) -> OpenRequest {
        let opener = match opening::introduction(theirs) {
            Some(caller) => caller.name[0],
            None => u64::from(theirs.number),
        };
        let is_proved = self.acceptor.is_proved(theirs.cookie, open.from.to, now);
        let (mark, host) = (half_open::mark(open.payload), half_open::host_of(open.from.to));
        OpenRequest { opener, mark, host, is_proved }
    }

    /// Sends the accept of a half-open link to where its open came from.
    fn accept(&mut self, open: &OpenFrame<'_>, place: Place, now: u64) -> Result<(), Refused> {
        let half = self.acceptor.table.get(place).ok_or(Refused)?;
        let (ours, theirs) = (*half.ours(), *half.theirs());
        let answered = self.acceptor.answered(place).ok_or(Refused)?;
        let digest = Digest::of(&answered.message, crc32c);
        let accept = ours.accept_header(&theirs, open.header.path, now, digest);
        send_bare(&mut self.outboxes, open.from, &accept, &answered.message);
        Ok(())
    }

    /// A port may open while this one accepts, if its number is not taken.
    // spec: OPEN-13
    fn judge_port(&mut self, theirs: &SetUp, is_believed: bool, now: u64) -> Verdict {
        let is_sought = self.seek(theirs, is_believed, now);
        let Acceptor { taken: Some(taken), gone, .. } = &self.acceptor else {
            return Verdict::Ignored;
        };
        let number = &theirs.number;
        if *number == NO_NUMBER {
            return Verdict::Refused(Refusal::Kind);
        }
        if is_sought || (taken.contains(number) && gone.contains(number)) {
            return Verdict::Ignored;
        }
        if taken.contains(number) {
            return Verdict::Refused(Refusal::Taken);
        }
        Verdict::Accepted
    }

    /// Whether a peer in whose name an open comes is looked for, as it may have been restarted.
    // spec: LINK-25
    fn seek(&mut self, theirs: &SetUp, is_believed: bool, now: u64) -> bool {
        let index = self.index_of(PeerId(theirs.number));
        let link = self.slots.open_mut(index);
        link.is_some_and(|link| link.on_open(theirs.incarnation, is_believed, now))
    }

    /// Says no, and why, to an open that is authentic.
    // spec: OPEN-11, OPEN-27
    fn refuse(
        &mut self,
        open: &OpenFrame<'_>,
        theirs: &SetUp,
        why: Refusal,
        now: u64,
    ) -> Result<Pumped, Refused> {
        let records = opening::records_of(theirs);
        self.send_refusal(open, (why, Some(theirs.nonce)), records, now);
        Err(Refused)
    }

    /// Says no, and why; to an open of this nonce with proof. It speaks this version of that in
    /// which the two differ.
    // spec: OPEN-27
    fn send_refusal(
        &mut self,
        open: &OpenFrame<'_>,
        (why, nonce): (Refusal, Option<u64>),
        version: u64,
        now: u64,
    ) {
        if let Some(told) = Unopened::told(why, version) {
            self.acceptor.turn_away(open.from.to, told, now);
        }
        self.answer(open, (Answer::Refused(why), nonce), now);
    }

    /// Has an open come again with a cookie; a sender of recorded opens cannot do that.
    // spec: OPEN-21, OPEN-24
    fn ask_again(&mut self, open: &OpenFrame<'_>, theirs: &SetUp, now: u64) {
        let cookie = self.acceptor.cookie(open.from.to, now);
        self.answer(open, (Answer::Again(cookie), Some(theirs.nonce)), now);
    }

    /// Answers an open; with the proof of it for the one of this nonce, if that is a true one.
    // spec: OPEN-11, OPEN-22, OPEN-23
    fn answer(&mut self, open: &OpenFrame<'_>, (answer, nonce): (Answer, Option<u64>), now: u64) {
        if !self.acceptor.may_answer(open.from.to, now) {
            return;
        }
        let proof = match (&self.identity.protection, nonce) {
            (Protection::Sealed(terms), Some(nonce)) => {
                handshake::proof(terms.key(), nonce, answer.words())
            }
            _ => [0; 2],
        };
        let payload = answer.encode(proof);
        if let Some(header) = answer_header(open.header, now, Digest::of(&payload, crc32c)) {
            send_bare(&mut self.outboxes, open.from, &header, &payload);
        }
    }

    /// A place for a link that is wanted; why there can be none, or nothing where there will be.
    // spec: OPEN-9, OPEN-27
    fn admit(
        &mut self,
        open: &OpenFrame<'_>,
        request: OpenRequest,
        theirs: &SetUp,
        datagram_max: usize,
        now: u64,
    ) -> Result<Place, Option<Refusal>> {
        // spec: OPEN-31
        if datagram_max < DATAGRAM_LEAST {
            return Err(Some(Refusal::PathMtu(datagram_max as u32)));
        }
        let index = self.free_index().map_err(|_| Refusal::Full(super::LINKS_MAX as u64))?;
        debug_assert!(matches!(self.slots[index], Slot::Free), "nothing stands there");
        let paths = usize::from(theirs.paths).min(usize::from(PATHS_MAX));
        let ours = self.set_up(index, datagram_max, paths, (theirs.number, Pass::default()));
        if let Some(why) = opening::difference(theirs, &ours) {
            return Err(Some(why));
        }
        let ours = opening::with_ring_of_both(ours, theirs);
        opening::agreed_sizes(theirs, &ours).map_err(|_| Refusal::Unknown)?;
        let admitted = self.acceptor.table.admit(request, theirs, ours, now);
        let (place, evicted) = admitted.map_err(|unfit| match unfit {
            AdmitError::Full => None,
            AdmitError::Malformed => Some(Refusal::Unknown),
        })?;
        if let Some(evicted) = evicted {
            assert_ne!(evicted.ours().index as usize, index, "it stood elsewhere");
            self.free(evicted.ours().index as usize);
        }
        let half = self.acceptor.table.get(place).ok_or(Refusal::Unknown)?;
        let received = (open.payload, open.from.to);
        let answered = opening::wrap_accept(&self.identity.protection, received, half.ours());
        debug_assert_eq!(half.ours().index as usize, index, "it says where it stands");
        self.acceptor.keep(place, answered.map_err(|_| Refusal::Unknown)?);
        self.put(index, Slot::HalfOpen(place));
        Ok(place)
    }

    /// The opener has shown that it has got the accept: there is a link.
    // spec: OPEN-10
    pub(super) fn confirm(&mut self, from: Way, header: &Header, now: u64) -> Result<(), Refused> {
        let name = self.caller_at(header.to);
        if name.is_some_and(|name| !self.may_come(name)) {
            return Err(Refused);
        }
        let (place, half) = self.acceptor.table.confirm(header, now).ok_or(Refused)?;
        if let Some(name) = name {
            self.give_way(name);
        }
        let answered = self.acceptor.take(place).ok_or(Refused)?;
        let (agreement, limits) = *half.agreed();
        let ways = vec![from; usize::from(agreement.paths)];
        let number = PeerId(half.theirs().number);
        let index = half.ours().index as usize;
        let agreed = (agreement, limits, opening::agreed_sizes(half.theirs(), half.ours())?);
        let connection = self.make_link(number, agreed, (answered.keys, ways), (index, now));
        self.bring(Arrived { index, connection, name, request: None, answer_by: u64::MAX });
        Ok(())
    }

    pub(super) fn on_accept(
        &mut self,
        from: Way,
        header: &Header,
        payload: &[u8],
        now: u64,
    ) -> Result<Pumped, Refused> {
        let index = header.to as usize;
        let Some(Slot::Asked(asked)) = self.slots.get_mut(index) else { return Err(Refused) };
        if header.token != asked.opener.ours().nonce {
            return Err(Refused);
        }
        let (theirs, keys) = asked.unwrap(payload)?;
        let sizes = opening::agreed_sizes(asked.opener.ours(), &theirs)?;
        let name = opening::introduction(&theirs).map(|callee| callee.name);
        if name != asked.request.callee().map(|callee| callee.name) {
            return Err(Refused);
        }
        let (agreement, limits) = asked.opener.on_accept(&theirs)?.ok_or(Refused)?;
        asked.request.answered(from);
        let request = Box::new(asked.request.clone());
        let ways = request.ways_of(from, usize::from(agreement.paths));
        let peer = PeerId(theirs.number);
        let agreed = (agreement, limits, sizes);
        let connection = self.make_link(peer, agreed, (keys, ways), (index, now));
        if let Some(link) = self.slots.open_mut(index) {
            link.know_ways(if request.is_race { request.ways.clone() } else { Vec::new() });
        }
        let answer_by = now.saturating_add(NO_ANSWER);
        self.bring(Arrived { index, connection, name, request: Some(request), answer_by });
        Ok(Pumped { from: None, changed: true })
    }

    /// A link has come up.
    fn bring(&mut self, arrived: Arrived) {
        if let Some(link) = self.slots.open_mut(arrived.index) {
            link.name = arrived.name;
        }
        self.arrived.push_back(arrived);
    }

    /// A reset has come, which repeats what only its link's frames, or the open, have said.
    // spec: OPEN-12
    pub(super) fn on_reset(
        &mut self,
        from: Way,
        header: &Header,
        payload: &[u8],
        now: u64,
    ) -> Result<Pumped, Refused> {
        let index = *self.by_token.get(&header.token).ok_or(Refused)?;
        let is_meant = match self.slots.get_mut(index) {
            Some(Slot::Asked(asked)) => {
                asked.on_answer(from, header, payload, (self.chance.number(), now))
            }
            Some(Slot::Open(link)) => link.on_reset(header, now),
            _ => false,
        };
        if !is_meant {
            return Err(Refused);
        }
        if token_of(&self.slots[index]) != Some(header.token) {
            // It is another attempt from here on.
            self.by_token.remove(&header.token);
            self.index_token(index);
        }
        Ok(Pumped { from: None, changed: true })
    }

    // spec: OPEN-11
    pub(super) fn answer_with_reset(&mut self, to: Way, unwanted: &Header, now: u64) {
        if let Some(header) = reset_header(unwanted, now)
            && self.acceptor.reset_limit.take(now)
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
        assert!(!matches!(self.slots[index], Slot::Open(_)), "a link comes up once");
        assert_eq!(ways.len(), usize::from(agreement.paths), "each path leads somewhere");
        assert!(sizes.file_len().is_multiple_of(8), "lanes are made of words");
        let mapping = Arc::new(Mapping::of_words(vec![0; sizes.file_len() / 8]));
        let (out, inward) = Direction::pair(&mapping, sizes);
        let mail = Mail::new(&self.identity.any_mail);
        let fencing = if expedited() { Fencing::Asymmetric } else { Fencing::Symmetric };
        let (page, waker) = (self.page_of_peers.clone(), Waker::Bell(self.identity.bell.clone()));
        let link = Arc::new(Link { control: Channel::Mail(mail.clone()), page, waker, fencing });
        let responder = self.identity.responder.clone();
        let performer = Performer { peer, link: link.clone(), responder };
        let lanes = FarSide::new((&out, &inward), mail);
        let drive = drive_frames(&self.identity.drive, limits.frame_max);
        let machine = End::new(agreement, &drive, now);
        let frames = (limits.frame_max.into(), &self.pool);
        let mut end = LinkEnd::new(machine, (lanes, performer), (keys, ways), frames);
        end.token = agreement.token;
        if let Some(taps) = &self.taps {
            end.write_down(taps.clone());
        }
        let cut = Cut { most: end.record_max(), whole: Some(end.record_whole()) };
        self.put(index, Slot::Open(Box::new(end)));
        // Until its host is asked, it sends nothing long.
        self.has_questions = true;
        Agreement { peer, mode: Mode::Mediated, link, out, inward, cut }
    }
}
