//! Links that are being opened: those that this port asks for, and those that it is asked for.
//!
//! The machines are `proto::link::open` and `proto::link::half_open`. Here their set-ups are
//! wrapped in a handshake, unless the network is trusted. Wrapped set-ups are kept, so that a
//! repeated one is the same to the bit.
use super::attempts::AttemptLog;
use super::callee::{Callee, Pass};
use super::handshake::{self, Protection};
use super::seal::{Forged, Keys};
use crate::error::{AddressAttempt, CHECK, SetupError};
use crate::mem::layout::LaneSizes;
use crate::net::routes::Way;
use crate::peer::agreement::{self, Name, checked_sizes};
use crate::settings::choice::Mode;
use ayre_proto::lane::Malformed;
use ayre_proto::link::answer::Answer;
use ayre_proto::link::frame::{Digest, Header, PATHS_MAX};
use ayre_proto::link::open::{
    self, ANYBODY, By, Opener, Opening as State, SETUP_BYTES, SetUp, Trust,
};
use ayre_proto::link::race::Pace;
use ayre_proto::refusal::Refusal;
use std::net::SocketAddr;

/// Spoken in set-ups; changes with what records say.
const VERSION: u64 = 1;
/// Of opening a link, which each open says in the clear.
const VERSION_OF_OPENING: u64 = open::VERSION as u64;
/// In place of a port's number, where it is an endpoint and has a name.
pub(crate) const NO_NUMBER: u16 = u16::MAX;

/// How an open is repeated: a rank that starts later is found soon.
const PACE: Pace = Pace { first: 10_000_000, most: 250_000_000 };
const _: () = assert!(PACE.first < PACE.most, "opens become rarer");
const _: () = assert!(VERSION <= u32::MAX as u64, "versions are told in a half of a word");
const _: () = assert!(agreement::VERSION <= u32::MAX as u64, "so is that of endpoints");
const _: () = assert!(NO_NUMBER == ANYBODY, "no port has the number that stands for any");

/// The acceptor's part of a half-open link.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The accept as it travels.
    pub(crate) message: Vec<u8>,
    pub(crate) keys: Option<Keys>,
    /// The open as it came, and where it came from first.
    pub(crate) open: Vec<u8>,
    pub(crate) from: SocketAddr,
}

/// A request for a link: its destination, the ways to it, the bytes of the longest datagram, and
/// the time at which it is given up.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) destination: Destination,
    pub(crate) ways: Vec<Way>,
    /// The outcome of each way so far.
    pub(crate) attempts: Vec<AttemptLog>,
    /// The ways are no paths of the link: each may lead to the one that is asked, and the link goes
    /// by the first that does.
    pub(crate) is_race: bool,
    pub(crate) datagram_max: usize,
    pub(crate) give_up: u64,
}

/// The port or endpoint that is asked for a link.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// The port of this number, or whichever is there.
    Port(Option<u16>),
    Endpoint(Box<Callee>),
}

impl Request {
    pub(crate) fn new(
        destination: Destination,
        (ways, is_race): (Vec<Way>, bool),
        datagram_max: usize,
        give_up: u64,
    ) -> Self {
        assert!(!ways.is_empty(), "a link is asked for somewhere");
        assert!(is_race || ways.len() <= usize::from(PATHS_MAX), "each way is a path");
        let attempts = vec![AttemptLog::default(); ways.len()];
        Self { destination, ways, attempts, is_race, datagram_max, give_up }
    }

    /// The endpoint that is called, if it is one.
    pub(crate) fn callee(&self) -> Option<&Callee> {
        match &self.destination {
            Destination::Endpoint(callee) => Some(callee),
            Destination::Port(_) => None,
        }
    }

    /// The number in the set-up.
    // spec: OPEN-20
    pub(crate) fn number(&self) -> u16 {
        match self.destination {
            Destination::Port(Some(number)) => number,
            _ => ANYBODY,
        }
    }

    /// How many paths are asked for.
    // spec: OPEN-30
    pub(crate) fn paths(&self) -> usize {
        if self.is_race { 1 } else { self.ways.len() }
    }

    /// By which of several ways something has come.
    fn way_from(&self, from: Way) -> usize {
        match self.is_race {
            true => self.ways.iter().position(|way| *way == from).unwrap_or(usize::MAX),
            false => 0,
        }
    }

    /// The outcome of the way by which something has come.
    fn attempt_of(&mut self, from: Way) -> Option<&mut AttemptLog> {
        let place = self.ways.iter().position(|way| *way == from)?;
        self.attempts.get_mut(place)
    }

    /// An accept has come.
    // spec: OPEN-32
    pub(crate) fn answered(&mut self, from: Way) {
        self.attempt_of(from).into_iter().for_each(AttemptLog::answered);
    }

    /// The ways of the link's `paths` paths; an accept has come from there.
    // spec: OPEN-30
    pub(crate) fn ways_of(&self, from: Way, paths: usize) -> Vec<Way> {
        if !self.is_race {
            assert!(paths <= self.ways.len(), "no more paths are agreed on than were asked for");
            return self.ways[..paths].to_vec();
        }
        // Who answers from elsewhere has been reached by what was sent to where he is not.
        let is_it = |way: &&Way| **way == from;
        let same_net = |way: &&Way| way.net == from.net;
        let all = || self.ways.iter();
        let way = all().find(is_it).or_else(|| all().find(same_net)).unwrap_or(&self.ways[0]);
        vec![*way; paths]
    }

    /// The pass that it takes.
    pub(crate) fn pass(&self) -> Pass {
        self.callee().map_or_else(Pass::default, |callee| callee.pass)
    }
}

/// A link that this port asks for.
#[derive(Debug)]
pub(crate) struct OpenAttempt {
    pub(crate) opener: Opener,
    pub(crate) request: Request,
    protection: Protection,
    handshake: Option<handshake::Opening>,
    /// The open as it travels.
    message: Vec<u8>,
}

impl OpenAttempt {
    /// Asks for a link, with this protection, and on the terms of the endpoint that is called.
    // spec: OPEN-30
    pub(crate) fn new(ours: SetUp, request: Request, own: &Protection, now: u64) -> Self {
        let protection = match request.callee() {
            Some(callee) => callee.protection_for(own),
            None => own.clone(),
        };
        let (handshake, message) = wrap_open(&protection, &ours);
        let opener = Opener::new(ours, PACE, request.give_up, now);
        let opener = match request.is_race {
            true => opener.among(request.ways.len(), now),
            false => opener,
        };
        Self { opener, request, protection, handshake, message }
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        let is_sealed = matches!(self.protection, Protection::Sealed(_));
        debug_assert_eq!(self.handshake.is_some(), is_sealed, "what is sealed has a handshake");
        let bytes = match &self.protection {
            Protection::Sealed(terms) => terms.message_bytes(),
            Protection::Plain => SETUP_BYTES,
        };
        debug_assert_eq!(self.message.len(), bytes, "an open has its length");
    }

    /// Whether an endpoint of this name is called.
    pub(crate) fn calls(&self, name: Name) -> bool {
        self.request.callee().is_some_and(|callee| callee.name == name)
    }

    /// The open that is due, if one is, and where it goes.
    pub(crate) fn on_time(&mut self, now: u64) -> Option<(Way, Header, &[u8])> {
        let digest = Digest::of(&self.message, crate::net::crc::crc32c);
        let header = self.opener.on_time(now, digest)?;
        let index = if self.request.is_race { self.opener.way() } else { usize::from(header.path) };
        let Request { ways, attempts, .. } = &mut self.request;
        let index = index % ways.len();
        debug_assert_eq!(attempts.len(), ways.len(), "each way has its attempt");
        attempts[index].ask(now);
        Some((ways[index], header, &self.message))
    }

    /// An answer has come: whether it changes anything. Where there is a key, it counts only with
    /// the proof that it comes from a holder of it. An open that is made anew has this number.
    // spec: SEAL-10, OPEN-24, OPEN-25, OPEN-30, OPEN-32
    pub(crate) fn on_answer(
        &mut self,
        from: Way,
        header: &Header,
        payload: &[u8],
        (fresh, now): (u64, u64),
    ) -> bool {
        let Ok((answer, proof)) = Answer::parse(payload) else { return false };
        if !self.opener.is_answered_by(header) {
            return false;
        }
        self.check();
        let nonce = self.opener.ours().nonce;
        let trust = match &self.protection {
            Protection::Plain => Trust::Anybody,
            Protection::Sealed(terms) => {
                match handshake::proof(terms.key(), nonce, answer.words()) == proof {
                    true => Trust::Holder,
                    false => Trust::Nobody,
                }
            }
        };
        match answer {
            Answer::Refused(why) => {
                self.request.attempt_of(from).into_iter().for_each(|attempt| attempt.refused(why));
            }
            Answer::Again(_) if trust != Trust::Nobody => self.request.answered(from),
            Answer::Again(_) => {}
        }
        let by = By { path: header.path, way: self.request.way_from(from) };
        let changed = self.opener.on_answer((answer, by), trust, fresh, now);
        if self.opener.ours().nonce != nonce {
            (self.handshake, self.message) = wrap_open(&self.protection, self.opener.ours());
        }
        changed
    }

    /// An accept has come: what the other side says, and the keys.
    pub(crate) fn unwrap(&mut self, payload: &[u8]) -> Result<(SetUp, Option<Keys>), Refused> {
        self.check();
        match &mut self.handshake {
            Some(handshake) => {
                let (bytes, keys) = handshake.finish(payload)?;
                Ok((SetUp::parse(&bytes)?, Some(keys)))
            }
            None => Ok((SetUp::parse(payload)?, None)),
        }
    }
}

/// Makes an open ready to travel.
fn wrap_open(protection: &Protection, open: &SetUp) -> (Option<handshake::Opening>, Vec<u8>) {
    let bytes = open.encode();
    match protection {
        Protection::Sealed(terms) => {
            let (handshake, message) = handshake::Opening::begin(terms, &bytes);
            (Some(handshake), message)
        }
        Protection::Plain => (None, bytes.to_vec()),
    }
}

/// Why there is no link that was asked for.
// spec: OPEN-25
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// The other side has said so.
    Refused(Refusal),
    /// The two sides speak different versions.
    Version { theirs: u64, ours: u64 },
    /// Its time is over; the reason that somebody has given, who has not proved who he is; and
    /// what came of each address.
    InVain { why: Option<Refusal>, tried: Vec<AddressAttempt> },
    /// It was there, and has ended.
    Left,
}

impl Unopened {
    /// How an opening has ended, the last reason that was given, and what came of each address.
    pub(crate) fn of(
        (ended, why): (State, Option<Refusal>),
        tried: Vec<AddressAttempt>,
        is_endpoint: bool,
    ) -> Self {
        match (ended, why) {
            (State::Refused, Some(Refusal::Version(said))) => match halves(said) {
                [theirs, 0] => Self::Version { theirs, ours: VERSION_OF_OPENING },
                [_, theirs] if is_endpoint => Self::Version { theirs, ours: agreement::VERSION },
                [_, theirs] => Self::Version { theirs, ours: VERSION },
            },
            (State::Refused, why) => Self::Refused(why.unwrap_or(Refusal::Unknown)),
            (_, why) => Self::InVain { why, tried },
        }
    }

    /// How an opener is turned away that speaks this version of what the two differ in, if its own
    /// user has to change something.
    // spec: OPEN-27
    pub(crate) fn told(why: Refusal, theirs: u64) -> Option<Self> {
        match why {
            Refusal::Version(own) => {
                let [low, high] = halves(own);
                Some(Self::Version { theirs, ours: low.max(high) })
            }
            Refusal::Key | Refusal::Kind | Refusal::Protection | Refusal::Full(_) => {
                Some(Self::Refused(why))
            }
            _ => None,
        }
    }

    /// The error for a caller at this address that could not be let in.
    pub(crate) fn rejection(&self, at: SocketAddr) -> Option<SetupError> {
        match self {
            Self::Refused(why) => Some(SetupError::rejected(*why).of(at.to_string())),
            Self::Version { theirs, ours } => {
                Some(SetupError::version(*theirs, *ours).of(at.to_string()))
            }
            Self::InVain { .. } | Self::Left => None,
        }
    }

    /// The error for a peer at these addresses.
    pub(crate) fn error(self, at: &[SocketAddr]) -> SetupError {
        let at: Vec<_> = at.iter().map(SocketAddr::to_string).collect();
        let at = at.join(", ");
        match self {
            Self::Refused(why) => SetupError::refused(why).of(at),
            Self::Version { theirs, ours } => SetupError::version(theirs, ours).of(at),
            Self::InVain { why: Some(why), tried } => {
                let tried = AddressAttempt::in_words(&tried);
                SetupError::refused(why).of(format!("whoever answers at {tried}"))
            }
            Self::InVain { why: None, tried } => {
                let tried = AddressAttempt::in_words(&tried);
                SetupError::timed_out(format!("a peer at {tried}; {CHECK}"))
            }
            Self::Left => SetupError::peer_left(),
        }
    }
}

/// A datagram that no correct peer sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused;

impl From<Forged> for Refused {
    fn from(_: Forged) -> Self {
        Self
    }
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Self {
        Self
    }
}

/// The reason why an open of `len` bytes cannot be one of this port's kind, as far as its length
/// and its header tell.
// spec: OPEN-3, OPEN-27
pub(crate) fn misfit(protection: &Protection, version: u32, len: usize) -> Option<Option<Refusal>> {
    if u64::from(version) != VERSION_OF_OPENING {
        return Some(Some(Refusal::Version(VERSION_OF_OPENING)));
    }
    let is_sealed = [handshake::MESSAGE_BYTES, handshake::MUTUAL_BYTES].contains(&len);
    match protection {
        Protection::Sealed(terms) if len == terms.message_bytes() => None,
        Protection::Plain if len == SETUP_BYTES => None,
        Protection::Sealed(_) if is_sealed => Some(Some(Refusal::Kind)),
        _ => Some((is_sealed || len == SETUP_BYTES).then_some(Refusal::Protection)),
    }
}

/// Makes an accept ready to travel, in answer to this open.
pub(crate) fn wrap_accept(
    protection: &Protection,
    (open, from): (&[u8], SocketAddr),
    accept: &SetUp,
) -> Result<Answered, Refused> {
    let bytes = accept.encode();
    let (message, keys) = match protection {
        Protection::Sealed(terms) => {
            let (_, answer) = handshake::respond(terms, open)?;
            let (message, keys) = answer.answer(&bytes);
            (message, Some(keys))
        }
        Protection::Plain => (bytes.to_vec(), None),
    };
    Ok(Answered { message, keys, open: open.to_vec(), from })
}

/// An endpoint's introduction in a set-up, and in an open to the endpoint that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Introduction {
    pub(crate) name: Name,
    /// The callee's.
    pub(crate) pass: Pass,
}

/// The words from engine to engine in a set-up.
// spec: OPEN-14
pub(crate) fn owner_words(sizes: LaneSizes, endpoint: Option<Introduction>) -> [u64; 7] {
    let paired = u64::from(sizes.paired);
    let response = u64::from(sizes.response) | u64::from(sizes.ring) << 32;
    let Some(Introduction { name: [low, high], pass: Pass([first, second]) }) = endpoint else {
        return [VERSION, paired, response, 0, 0, 0, 0];
    };
    // Endpoints' records have a version of their own.
    let version = VERSION | agreement::VERSION << 32;
    [version, paired, response, low, high, first, second]
}

/// The introduction of the endpoint that has sent a set-up; none if it is no endpoint.
pub(crate) fn introduction(theirs: &SetUp) -> Option<Introduction> {
    let [_, _, _, low, high, first, second] = theirs.owner;
    let introduction = Introduction { name: [low, high], pass: Pass([first, second]) };
    (theirs.number == NO_NUMBER).then_some(introduction)
}

/// The acceptor's answer: the shorter one of the two rings.
// spec: OPEN-14
pub(crate) fn with_ring_of_both(ours: SetUp, opener: &SetUp) -> SetUp {
    let [response, ring] = halves(ours.owner[2]);
    let [_, asked] = halves(opener.owner[2]);
    let mut owner = ours.owner;
    owner[2] = response | ring.min(asked) << 32;
    debug_assert_eq!(halves(owner[2])[0], response, "the lanes stay");
    SetUp { owner, ..ours }
}

/// Why the two cannot have a link, if they cannot: they speak different versions of records, or
/// one of them is an endpoint and the other one is none.
// spec: OPEN-14, OPEN-27
pub(crate) fn difference(opener: &SetUp, ours: &SetUp) -> Option<Refusal> {
    let is_endpoint = |set_up: &SetUp| introduction(set_up).is_some();
    if is_endpoint(opener) != is_endpoint(ours) {
        return Some(Refusal::Kind);
    }
    let own = records_of(ours) << 32;
    (opener.owner[0] != ours.owner[0]).then_some(Refusal::Version(own))
}

/// The version of records that a set-up speaks of.
pub(crate) const fn records_of(set_up: &SetUp) -> u64 {
    let [version, of_endpoints] = halves(set_up.owner[0]);
    if of_endpoints > 0 { of_endpoints } else { version }
}

/// The lane sizes of a link, as its acceptor has given them. They are those that its opener wants,
/// except that a ring may be shorter; endpoints always have one. A peer that names other sizes is
/// none of ours.
// spec: WIRE-3, OPEN-14
pub(crate) fn agreed_sizes(opener: &SetUp, acceptor: &SetUp) -> Result<LaneSizes, Refused> {
    let [_, paired, sizes, said @ ..] = acceptor.owner;
    let ([response, ring], [wanted, longest]) = (halves(sizes), halves(opener.owner[2]));
    let is_alike = acceptor.owner[..2] == opener.owner[..2] && response == wanted;
    // What endpoints say of themselves differs.
    let is_kind = match introduction(opener) {
        Some(_) => introduction(acceptor).is_some() && ring > 0,
        None => said == [0; 4] && opener.owner[3..] == [0; 4] && ring == longest,
    };
    if !is_alike || !is_kind || ring > longest {
        return Err(Refused);
    }
    checked_sizes(paired, (response, ring), Mode::Mediated).map_err(|_| Refused)
}

const fn halves(word: u64) -> [u64; 2] {
    [word & u32::MAX as u64, word >> 32]
}

/// Whether an opening goes on, and how it ended otherwise.
pub(crate) fn outcome(asked: &OpenAttempt) -> Option<State> {
    match asked.opener.state() {
        State::Asking => None,
        ended => Some(ended),
    }
}

/// The ways to a peer: each of our nets with each of its addresses in turn.
pub(crate) fn ways(nets: usize, to: &[SocketAddr]) -> Vec<Way> {
    let count = nets.max(to.len()).min(usize::from(PATHS_MAX));
    assert!(nets > 0 && !to.is_empty(), "both sides are somewhere");
    let way = |index: usize| Way { net: index % nets, to: to[index % to.len()] };
    (0..count).map(way).collect()
}

/// For tests: the set-up of an endpoint that wants a ring of this length.
#[cfg(all(test, not(loom)))]
pub(crate) fn sample(ring: u32, introduction: Introduction) -> SetUp {
    SetUp {
        nonce: 1,
        answers: 0,
        incarnation: 1,
        token: 1,
        generation: 1,
        index: 0,
        first: [0; 3],
        frame_max: 1472,
        number: NO_NUMBER,
        destination: ANYBODY,
        paths: 1,
        repair: ayre_proto::link::Repair::Selective,
        owner: owner_words(LaneSizes::carried_endpoint(ring), Some(introduction)),
        cookie: 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The lane sizes of an endpoint that wants a ring of this length.
    fn set_up(ring: u64) -> SetUp {
        let introduction = Introduction { name: [1, 2], pass: Pass::default() };
        sample(ring as u32, introduction)
    }

    // spec: OPEN-14, WIRE-3
    #[test]
    fn an_accept_has_the_shorter_ring_and_the_lanes_of_the_open() {
        let ring = |opener, acceptor| {
            let opener = set_up(opener);
            let accept = with_ring_of_both(set_up(acceptor), &opener);
            agreed_sizes(&opener, &accept).map(|sizes| sizes.ring).ok()
        };
        assert_eq!(ring(1 << 20, 1 << 18), Some(1 << 18));
        assert_eq!(ring(1 << 16, 1 << 18), Some(1 << 16));
        assert_eq!(ring((1 << 16) + 64, 1 << 18), None, "no power of two");
        assert_eq!(ring(0, 1 << 18), None, "endpoints have one");
        assert!(agreed_sizes(&set_up(1 << 18), &set_up(0)).is_err());
        assert!(agreed_sizes(&set_up(1 << 18), &set_up(1 << 20)).is_err(), "more than was asked");
        for word in 0..3 {
            let mut other = set_up(1 << 18);
            other.owner[word] ^= 1;
            assert!(agreed_sizes(&set_up(1 << 18), &other).is_err(), "word {word}");
        }
        let port =
            SetUp { number: 7, owner: owner_words(LaneSizes::CARRIED, None), ..set_up(1 << 18) };
        assert!(agreed_sizes(&port, &port).is_ok());
        assert!(agreed_sizes(&port, &set_up(0)).is_err(), "an endpoint");
        assert!(agreed_sizes(&set_up(1 << 18), &port).is_err(), "no endpoint");
        let mut with_ring = port;
        with_ring.owner[2] |= 1 << (32 + 18);
        assert!(agreed_sizes(&with_ring, &with_ring_of_both(port, &with_ring)).is_err());
    }
}
