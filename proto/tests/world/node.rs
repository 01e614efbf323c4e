//! A node of the simulated world: a port with its links, openings and half-open links.
use crate::dice::Dice;
use crate::link::{Link, Sides};
use crate::net::{Datagram, MICROSECOND, MILLISECOND, NODES, Network, crc};
use ayre_proto::link::answer::{Answer, answer_header, reset_header};
use ayre_proto::link::end::{Agreement, Drive};
use ayre_proto::link::frame::{Digest, HEADER_BYTES, Header, Kind};
use ayre_proto::link::half_open::{HALF_OPEN_MAX, HalfOpenTable, OpenRequest};
use ayre_proto::link::life::{State, Why};
use ayre_proto::link::open::{By, Opener, Opening, SetUp, Trust};
use ayre_proto::link::race::Pace;
use ayre_proto::link::token_bucket::{TokenBucket, TokenBuckets};
use ayre_proto::link::{Repair, WINDOW};

/// The counts of events in a world, to show that nothing was left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) openings: u64,
    pub(crate) links: u64,
    pub(crate) refused: u64,
    pub(crate) given_up: u64,
    pub(crate) void: u64,
    pub(crate) resets: u64,
    /// Openings that were asked to come again with a cookie.
    pub(crate) cookies: u64,
    pub(crate) hints: u64,
    /// Ends of links, by why: local, peer, silent, reset, replaced.
    pub(crate) ends: [u64; 5],
    pub(crate) foreign: u64,
    pub(crate) repeated: u64,
    pub(crate) resynced: u64,
    pub(crate) malformed: u64,
}

impl Seen {
    /// Links that were given up because nothing was heard.
    pub(crate) const fn silent(&self) -> u64 {
        self.ends[2]
    }

    /// Links that were given up after a reset.
    pub(crate) const fn reset(&self) -> u64 {
        self.ends[3]
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            openings: self.openings + other.openings,
            links: self.links + other.links,
            refused: self.refused + other.refused,
            given_up: self.given_up + other.given_up,
            void: self.void + other.void,
            resets: self.resets + other.resets,
            cookies: self.cookies + other.cookies,
            hints: self.hints + other.hints,
            ends: std::array::from_fn(|why| self.ends[why] + other.ends[why]),
            foreign: self.foreign + other.foreign,
            repeated: self.repeated + other.repeated,
            resynced: self.resynced + other.resynced,
            malformed: self.malformed + other.malformed,
        }
    }
}

/// The rules that all nodes of a world have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) drive: Drive,
    pub(crate) pace: Pace,
    pub(crate) repair: Repair,
    pub(crate) paths: u8,
    /// How long an opening, and a half-open link, may take.
    pub(crate) timeout: u64,
    /// The node that lies, if there is one.
    pub(crate) liar: Option<usize>,
}

/// An opening of a node.
#[derive(Debug)]
struct Asked {
    peer: usize,
    opener: Opener,
    give_up: u64,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    number: usize,
    dice: Dice,
    rules: Rules,
    incarnation: u64,
    pub(crate) links: Vec<Link>,
    asked: Vec<Asked>,
    door: HalfOpenTable,
    ration: TokenBucket,
    answers: TokenBuckets,
    /// By peer: generation of the last link.
    generations: [u32; NODES],
    next_index: u32,
    /// Peers to which this node opens, and when it may do so next.
    opens_to: Vec<(usize, u64)>,
    /// It takes no datagram before this time.
    pub(crate) down_until: u64,
    /// It does not want opens before this time.
    pub(crate) refuses_until: u64,
    /// Its program does nothing before this time.
    pub(crate) stalls_until: u64,
    /// Records of each channel of each link that it sends.
    pub(crate) quota: u64,
    /// Buffers that it gives a channel at a time, at most.
    most: u32,
    /// When its program looks again; none while all is calm, where it looks at all that comes.
    pub(crate) looks_at: Option<u64>,
    pub(crate) seen: Seen,
}

impl Node {
    pub(crate) fn new(number: usize, seed: u64, rules: Rules, opens_to: Vec<usize>) -> Self {
        let mut dice = Dice(seed);
        let quota = 4 + if dice.percent(10) { dice.below(160) } else { dice.below(30) };
        let most = if dice.percent(30) { 2 } else { WINDOW };
        Self {
            number,
            incarnation: dice.word() | 1,
            rules,
            links: vec![],
            asked: vec![],
            door: HalfOpenTable::new(rules.timeout, TokenBucket::new(4, 5_000_000, 0)),
            ration: TokenBucket::rack(0),
            answers: TokenBuckets::rack(0),
            generations: [0; NODES],
            next_index: dice.word() as u32,
            opens_to: opens_to.into_iter().map(|peer| (peer, 0)).collect(),
            down_until: 0,
            refuses_until: 0,
            stalls_until: 0,
            quota,
            most,
            looks_at: Some(0),
            seen: Seen::default(),
            dice,
        }
    }

    /// A cold reset: everything is lost, and what is there instead has another incarnation.
    pub(crate) fn restart(&mut self, down_until: u64, now: u64) {
        let opens_to = self.opens_to.iter().map(|(peer, _)| *peer).collect();
        let fresh = Self::new(self.number, self.dice.word(), self.rules, opens_to);
        let old = std::mem::replace(self, fresh);
        (self.seen, self.looks_at) = (old.seen, old.looks_at.map(|_| now));
        (self.down_until, self.ration) = (down_until, TokenBucket::rack(now));
        self.opens_to.iter_mut().for_each(|(_, at)| *at = down_until);
        old.links.iter().for_each(|link| self.count(link));
    }

    fn is_liar(&self, node: usize) -> bool {
        self.rules.liar == Some(node)
    }

    /// When this node has something to do.
    pub(crate) fn next(&self) -> u64 {
        let links = self.links.iter().map(|link| link.due);
        let asked = self.asked.iter().map(|asked| asked.opener.deadline());
        let others = [self.door.deadline(), self.looks_at.unwrap_or(u64::MAX)];
        let opens = self.opens_to.iter().filter(|(peer, _)| !self.has(*peer)).map(|(_, at)| *at);
        let next = links.chain(asked).chain(others).chain(opens).min();
        next.unwrap_or(u64::MAX).max(self.down_until)
    }

    fn has(&self, peer: usize) -> bool {
        self.links.iter().any(|link| link.peer == peer)
            || self.asked.iter().any(|asked| asked.peer == peer)
    }

    /// A datagram has come.
    pub(crate) fn on_datagram(&mut self, datagram: &Datagram, now: u64, net: &mut Network) {
        let bytes = &datagram.bytes;
        let Ok(header) = Header::parse(bytes, crc) else { return };
        let payload = &bytes[HEADER_BYTES..];
        let is_believed = match header.kind {
            Kind::Open => self.on_open(&header, payload, datagram.from, now, net),
            Kind::Accept => self.on_accept(&header, payload, now),
            Kind::Reset => self.on_reset(&header, payload, now),
            _ => self.on_frame(&header, payload, datagram.from, now, net),
        };
        assert!(!is_believed || !datagram.is_made_up, "{header:?} is believed");
        if self.looks_at.is_none() {
            self.work(now, net);
        }
    }

    fn on_open(
        &mut self,
        header: &Header,
        payload: &[u8],
        from: usize,
        now: u64,
        net: &mut Network,
    ) -> bool {
        if header.check_payload(payload, crc).is_err() {
            return false;
        }
        let Ok(open) = SetUp::parse(payload) else { return false };
        let is_wanted = usize::from(open.number) == from && now >= self.refuses_until;
        if !is_wanted {
            self.refuse(header, from, now, net);
            return false;
        }
        if self.door.find(&open).is_none() {
            // A cookie is one of this incarnation, for this address.
            let cookie = self.incarnation ^ from as u64;
            let is_proved = open.cookie == cookie;
            let asker =
                OpenRequest { opener: from as u64, mark: open.nonce, host: from as u64, is_proved };
            if !self.door.may_enter(&asker, usize::from(open.destination) == self.number, now) {
                self.answer(header, (from, Answer::Again(cookie)), now, net);
                return false;
            }
            let ours = self.set_up(from);
            let Ok((_, left)) = self.door.admit(asker, &open, ours, now) else {
                return false;
            };
            self.seen.void += u64::from(left.is_some());
            assert!(self.door.len() <= HALF_OPEN_MAX);
        }
        let place = self.door.find(&open).expect("it was admitted");
        let accept = *self.door.get(place).expect("it is there").ours();
        let payload = accept.encode();
        let header = accept.accept_header(&open, header.path, now, Digest::of(&payload, crc));
        net.send(Datagram::new((self.number, from), &header, &payload), now);
        // It has an answer, and nothing else so far.
        false
    }

    fn on_accept(&mut self, header: &Header, payload: &[u8], now: u64) -> bool {
        if header.check_payload(payload, crc).is_err() {
            return false;
        }
        let Ok(accept) = SetUp::parse(payload) else { return false };
        for place in 0..self.asked.len() {
            let Asked { peer, opener, .. } = &mut self.asked[place];
            // One that answers and is not sound comes from a stranger who has heard the open.
            if let Ok(Some((agreed, _))) = opener.on_accept(&accept) {
                let (peer, ours) = (*peer, *opener.ours());
                self.asked.remove(place);
                self.join(peer, agreed, (&ours, &accept), now);
                return true;
            }
        }
        false
    }

    fn on_reset(&mut self, header: &Header, payload: &[u8], now: u64) -> bool {
        let mut is_believed = false;
        let answer = header.check_payload(payload, crc).and_then(|()| Answer::parse(payload));
        for asked in self.asked.iter_mut().filter(|asked| asked.opener.is_answered_by(header)) {
            if let Ok((answer, _)) = answer {
                let (fresh, by) = (self.dice.word() | 1, By { path: header.path, way: 0 });
                is_believed |= asked.opener.on_answer((answer, by), Trust::Anybody, fresh, now);
                self.seen.cookies += u64::from(matches!(answer, Answer::Again(_)));
            }
        }
        let hints = self.links.iter_mut().filter_map(|link| {
            let is_believed = link.end.on_reset(header, now);
            is_believed.then(|| link.due = now)
        });
        let hints = hints.count() as u64;
        self.seen.hints += hints;
        self.end_openings(now);
        self.forget(now);
        is_believed || hints > 0
    }

    fn on_frame(
        &mut self,
        header: &Header,
        payload: &[u8],
        from: usize,
        now: u64,
        net: &mut Network,
    ) -> bool {
        if let Some((_, entry)) = self.door.confirm(header, now) {
            // What this peer has had before is over.
            while let Some(place) = self.links.iter().position(|link| link.peer == from) {
                let old = self.links.remove(place);
                self.seen.ends[4] += 1;
                self.count(&old);
            }
            self.join(from, entry.agreed().0, (entry.ours(), entry.theirs()), now);
        }
        let link = self.links.iter_mut().find(|link| link.agreed.own == header.to);
        let is_known = link.is_some_and(|link| {
            let is_known = link.on_frame(header, payload, now, net);
            link.due = link.end.deadline(now);
            is_known
        });
        if !is_known {
            self.refuse(header, from, now, net);
        }
        self.forget(now);
        is_known
    }

    fn answer(
        &mut self,
        header: &Header,
        (from, answer): (usize, Answer),
        now: u64,
        net: &mut Network,
    ) {
        let payload = answer.encode([0; 2]);
        if let Some(reset) = answer_header(header, now, Digest::of(&payload, crc))
            && self.answers.take(from as u64, now)
        {
            net.send(Datagram::new((self.number, from), &reset, &payload), now);
        }
    }

    fn refuse(&mut self, header: &Header, from: usize, now: u64, net: &mut Network) {
        if let Some(reset) = reset_header(header, now)
            && self.ration.take(now)
        {
            self.seen.resets += 1;
            net.send(Datagram::new((self.number, from), &reset, &[]), now);
        }
    }

    fn join(&mut self, peer: usize, agreed: Agreement, set_ups: (&SetUp, &SetUp), now: u64) {
        assert!(agreed.generation > self.generations[peer], "it grows");
        self.generations[peer] = agreed.generation;
        let lies = self.is_liar(self.number);
        let is_honest = !lies && !self.is_liar(peer);
        let sides = Sides { own: self.number, peer, is_honest, lies };
        let mut link = Link::new(sides, agreed, set_ups, &self.rules.drive, now);
        link.due = now;
        self.links.push(link);
        self.seen.links += 1;
    }

    fn set_up(&mut self, peer: usize) -> SetUp {
        self.next_index = self.next_index.wrapping_add(1);
        let dice = &mut self.dice;
        SetUp {
            nonce: dice.word() | 1,
            answers: 0,
            incarnation: self.incarnation,
            token: dice.word() | 1,
            generation: self.generations[peer] + 1,
            index: self.next_index,
            first: [0; 3].map(|_| dice.word() as u32),
            frame_max: 1472,
            number: self.number as u16,
            destination: peer as u16,
            paths: self.rules.paths,
            repair: self.rules.repair,
            owner: [0; 7],
            cookie: 0,
        }
    }

    /// Does what is due.
    pub(crate) fn on_time(&mut self, now: u64, net: &mut Network) {
        if now < self.down_until {
            return;
        }
        while self.door.expire(now).is_some() {
            self.seen.void += 1;
        }
        self.open(now);
        self.ask(now, net);
        for link in self.links.iter_mut().filter(|link| link.due <= now) {
            link.on_time(now, net);
        }
        self.forget(now);
        match self.looks_at {
            None => self.work(now, net),
            Some(at) if at <= now => {
                self.work(now, net);
                self.looks_at = Some(now + 1 + self.dice.below(800 * MICROSECOND));
            }
            Some(_) => {}
        }
    }

    /// Opens to those that this node should have a link with, and has not.
    fn open(&mut self, now: u64) {
        for place in 0..self.opens_to.len() {
            let (peer, at) = self.opens_to[place];
            if at <= now && !self.has(peer) {
                let give_up = now + self.rules.timeout;
                let opener = Opener::new(self.set_up(peer), self.rules.pace, give_up, now);
                self.asked.push(Asked { peer, opener, give_up });
                self.seen.openings += 1;
            }
        }
    }

    fn ask(&mut self, now: u64, net: &mut Network) {
        for Asked { peer, opener, give_up } in &mut self.asked {
            let payload = opener.ours().encode();
            if let Some(header) = opener.on_time(now, Digest::of(&payload, crc)) {
                net.send(Datagram::new((self.number, *peer), &header, &payload), now);
            }
            assert!(opener.state() != Opening::Asking || now < *give_up, "it ends in time");
        }
        self.end_openings(now);
    }

    fn end_openings(&mut self, now: u64) {
        let seen = &mut self.seen;
        let mut over = vec![];
        self.asked.retain(|Asked { peer, opener, .. }| {
            match opener.state() {
                Opening::Asking => return true,
                Opening::Refused => seen.refused += 1,
                Opening::GivenUp => seen.given_up += 1,
                Opening::Accepted => unreachable!("it has become a link"),
            }
            over.push(*peer);
            false
        });
        over.into_iter().for_each(|peer| self.open_later(peer, now));
    }

    fn open_later(&mut self, peer: usize, now: u64) {
        let later = now + self.dice.below(3 * MILLISECOND);
        let entry = self.opens_to.iter_mut().find(|(to, _)| *to == peer);
        entry.into_iter().for_each(|(_, at)| *at = later);
    }

    /// Drops links that have ended.
    fn forget(&mut self, now: u64) {
        while let Some(place) = self.links.iter().position(Self::has_ended) {
            let link = self.links.remove(place);
            let (silent, life) = (now - link.end.heard_at(), self.rules.drive.life);
            let (why, least) = match link.end.state() {
                State::Closed(Why::Local) => (0, 0),
                State::Closed(Why::Peer) => (1, 0),
                State::Closed(Why::Silent) => (2, life.dead_after),
                // It is heard: what it does not take is data, for as long.
                State::Closed(Why::NoData) => (3, 0),
                _ => (3, life.silence / 4),
            };
            assert!(silent >= least, "given up after {silent} ns: {}", link.summary());
            self.seen.ends[why] += 1;
            self.count(&link);
            self.open_later(link.peer, now);
        }
    }

    fn has_ended(link: &Link) -> bool {
        matches!(link.end.state(), State::Closed(_))
    }

    fn count(&mut self, link: &Link) {
        let counters = link.end.counters();
        self.seen.foreign += counters.foreign;
        self.seen.repeated += counters.repeated;
        self.seen.resynced += counters.resynced;
        self.seen.malformed += counters.malformed;
    }

    /// The program's turn.
    fn work(&mut self, now: u64, net: &mut Network) {
        if now < self.stalls_until {
            return;
        }
        let is_calm = self.looks_at.is_none();
        for link in &mut self.links {
            let dice = (!is_calm).then_some(&mut self.dice);
            link.work((self.quota, self.most), dice, now, net);
        }
    }

    /// Counts what the links that are still there have seen.
    pub(crate) fn finish(&mut self) -> Seen {
        for link in std::mem::take(&mut self.links) {
            self.count(&link);
        }
        self.seen
    }

    /// The state, for a reader who searches the fault.
    pub(crate) fn summary(&self) -> String {
        let asked = self.asked.iter().map(|asked| (asked.peer, asked.opener.state()));
        let links = self.links.iter().map(Link::summary).collect::<Vec<_>>().join("\n ");
        let (asked, half_open) = (asked.collect::<Vec<_>>(), self.door.len());
        format!("{} asks {asked:?}, {half_open} half-open\n {links}", self.number)
    }

    /// Whether nothing is being opened and nothing half-open.
    pub(crate) fn has_settled(&self) -> bool {
        self.asked.is_empty() && self.door.is_empty()
    }
}
