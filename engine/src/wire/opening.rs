//! Links that are being opened: those that this port asks for, and those that it is asked for.
//!
//! The machines are `proto::link::open` and `proto::link::door`. Here their set-ups are wrapped in
//! a handshake, unless the network is trusted, and what was wrapped is kept, so that what is
//! repeated is the same to the bit.
use super::callee::{Callee, Pass};
use super::handshake::{self, JobKey};
use super::link_end::Way;
use super::seal::{Forged, Keys};
use crate::connection::{Mode, Name, checked_sizes};
use crate::mem::layout::LaneSizes;
use crate::setup;
use ayre_proto::lane::Malformed;
use ayre_proto::link::door::{Door, HALF_OPEN_MAX, Place, Ration};
use ayre_proto::link::frame::{Digest, Header};
use ayre_proto::link::open::{Opener, Opening as State, Pace, SetUp};
use std::net::SocketAddr;

/// Spoken in set-ups; changes with what records say.
const VERSION: u64 = 1;
/// In place of a port's number, where it is an endpoint and has a name.
pub(crate) const NO_NUMBER: u16 = u16::MAX;
/// Stands in place of all words in an accept that refuses.
pub(crate) const REFUSAL: [u64; 8] = [0; 8];

/// How an open is repeated: a rank that starts later is found soon.
const PACE: Pace = Pace { first: 10_000_000, most: 250_000_000 };

/// What protects the links of a port.
#[derive(Clone, Debug)]
pub(crate) enum Protection {
    /// Every frame is encrypted and authenticated, with keys that only holders of this one get.
    Sealed(JobKey),
    /// For closed networks: nothing but tokens that nobody can guess.
    Plain,
}

/// A link that this port asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) opener: Opener,
    handshake: Option<handshake::Opening>,
    /// The open as it travels.
    message: Vec<u8>,
    pub(crate) ways: Vec<Way>,
    /// The ways are no paths, but lead to one port, if they do.
    is_race: bool,
    /// The endpoint that is called, if it is one.
    pub(crate) callee: Option<Name>,
    pub(crate) is_refused: bool,
}

impl Asked {
    /// Calls an endpoint, by any of these ways.
    // spec: OPEN-30
    pub(crate) fn call(ours: SetUp, callee: &Callee, ways: Vec<Way>, times: (u64, u64)) -> Self {
        let asked = Self::new(ours, &callee.protection, ways, times);
        let opener = asked.opener.among(asked.ways.len(), times.0);
        Self { opener, is_race: true, callee: Some(callee.name), ..asked }
    }

    pub(crate) fn new(
        ours: SetUp,
        protection: &Protection,
        ways: Vec<Way>,
        (now, give_up): (u64, u64),
    ) -> Self {
        let bytes = ours.encode();
        let (handshake, message) = match protection {
            Protection::Sealed(key) => {
                let (handshake, message) = handshake::Opening::begin(key, &bytes);
                (Some(handshake), message)
            }
            Protection::Plain => (None, bytes.to_vec()),
        };
        Self {
            opener: Opener::new(ours, PACE, give_up, now),
            handshake,
            message,
            ways,
            is_race: false,
            callee: None,
            is_refused: false,
        }
    }

    /// The open that is due, if one is, and where it goes.
    pub(crate) fn on_time(&mut self, now: u64) -> Option<(Way, Header, &[u8])> {
        let digest = Digest::of(&self.message, super::crc::crc32c);
        let header = self.opener.on_time(now, digest)?;
        let index = if self.is_race { self.opener.way() } else { usize::from(header.path) };
        let way = self.ways[index % self.ways.len()];
        Some((way, header, &self.message))
    }

    /// A reset has come: whether it refuses this attempt, or one way of it. Where there is a key,
    /// who refuses proves that he holds it.
    // spec: SEAL-10, OPEN-30
    pub(crate) fn on_reset(&mut self, from: Way, header: &Header, now: u64) -> bool {
        let by = match self.is_race {
            true => self.ways.iter().position(|way| *way == from).unwrap_or(usize::MAX),
            false => 0,
        };
        self.handshake.is_none() && self.opener.on_reset_by(by, header, now)
    }

    /// Where the paths of the link lead, of which there are so many; an accept has come from there.
    // spec: OPEN-30
    pub(crate) fn ways_of(&self, from: Way, paths: usize) -> Vec<Way> {
        if !self.is_race {
            return self.ways[..paths].to_vec();
        }
        // Who answers from elsewhere has been reached by what was sent to where he is not.
        let is_it = |way: &&Way| **way == from;
        let same_net = |way: &&Way| way.net == from.net;
        let all = || self.ways.iter();
        let way = all().find(is_it).or_else(|| all().find(same_net)).unwrap_or(&self.ways[0]);
        vec![*way; paths]
    }

    /// An accept has come: what the other side says, and the keys.
    pub(crate) fn unwrap(&mut self, payload: &[u8]) -> Result<(SetUp, Option<Keys>), Refused> {
        match &mut self.handshake {
            Some(handshake) => {
                let (bytes, keys) = handshake.finish(payload)?;
                Ok((SetUp::parse(&bytes)?, Some(keys)))
            }
            None => Ok((SetUp::parse(payload)?, None)),
        }
    }
}

/// What has come is nothing that a peer of ours says.
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

/// Links that this port is asked for and that are not confirmed.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) door: Door,
    /// By place.
    answers: Vec<Option<Answered>>,
    pub(crate) resets: Ration,
    /// The ports that may not open a link now; none may where this is none.
    pub(crate) taken: Option<Vec<u16>>,
    /// Those whose link has ended, as far as the port may not have forgotten them.
    pub(crate) gone: Vec<u16>,
}

/// What belongs to a half-open link.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The accept as it travels.
    pub(crate) message: Vec<u8>,
    pub(crate) keys: Option<Keys>,
}

impl Entrance {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            door: Door::new(Door::PATIENCE),
            answers: (0..HALF_OPEN_MAX).map(|_| None).collect(),
            resets: Ration::rack(now),
            taken: None,
            gone: Vec::new(),
        }
    }

    /// Ports of these numbers may not open a link from here on; none may where there is no list.
    pub(crate) fn accept_all_but(&mut self, taken: Option<Vec<u16>>) {
        if let Some(taken) = &taken {
            self.gone.retain(|number| taken.contains(number));
        }
        self.taken = taken;
    }

    /// The link with this port has ended.
    pub(crate) fn on_gone(&mut self, number: u16) {
        if !self.gone.contains(&number) {
            self.gone.push(number);
        }
    }

    pub(crate) fn keep(&mut self, place: Place, answered: Answered) {
        self.answers[place.index()] = Some(answered);
    }

    pub(crate) fn answered(&mut self, place: Place) -> Option<&mut Answered> {
        self.answers[place.index()].as_mut()
    }

    pub(crate) fn take(&mut self, place: Place) -> Option<Answered> {
        self.answers[place.index()].take()
    }
}

/// What an open says, and what it takes to answer it.
pub(crate) fn unwrap_open(
    protection: &Protection,
    payload: &[u8],
) -> Result<(SetUp, Option<handshake::Answer>), Refused> {
    match protection {
        Protection::Sealed(key) => {
            let (bytes, answer) = handshake::respond(key, payload)?;
            Ok((SetUp::parse(&bytes)?, Some(answer)))
        }
        Protection::Plain => Ok((SetUp::parse(payload)?, None)),
    }
}

/// Makes an accept ready to travel.
pub(crate) fn wrap_accept(answer: Option<handshake::Answer>, accept: &SetUp) -> Answered {
    let bytes = accept.encode();
    match answer {
        Some(answer) => {
            let (message, keys) = answer.answer(&bytes);
            Answered { message, keys: Some(keys) }
        }
        None => Answered { message: bytes.to_vec(), keys: None },
    }
}

/// What an endpoint says of itself in a set-up, and in an open of whom it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Introduction {
    pub(crate) name: Name,
    /// The callee's.
    pub(crate) pass: Pass,
}

/// What the engines tell each other in a set-up.
// spec: OPEN-14
pub(crate) fn owner_words(sizes: LaneSizes, endpoint: Option<Introduction>) -> [u64; 8] {
    let paired = u64::from(sizes.paired);
    let response = u64::from(sizes.response) | u64::from(sizes.ring) << 32;
    let Some(Introduction { name: [low, high], pass: Pass([first, second]) }) = endpoint else {
        return [VERSION, paired, response, 0, 0, 0, 0, 0];
    };
    // Endpoints' records have a version of their own.
    let version = VERSION | setup::VERSION << 32;
    [version, paired, response, low, high, first, second, 0]
}

/// What the endpoint that has sent a set-up says of itself; none if it is no endpoint.
pub(crate) fn introduction(theirs: &SetUp) -> Option<Introduction> {
    let [_, _, _, low, high, first, second, _] = theirs.owner;
    let introduction = Introduction { name: [low, high], pass: Pass([first, second]) };
    (theirs.number == NO_NUMBER).then_some(introduction)
}

/// What an acceptor answers: of the two rings, the shorter one.
// spec: OPEN-14
pub(crate) fn with_ring_of_both(ours: SetUp, opener: &SetUp) -> SetUp {
    let [response, ring] = halves(ours.owner[2]);
    let [_, asked] = halves(opener.owner[2]);
    let mut owner = ours.owner;
    owner[2] = response | ring.min(asked) << 32;
    SetUp { owner, ..ours }
}

/// The lane sizes of a link, as its acceptor has said them: those that its opener wants, but for a
/// ring that may be shorter, and that endpoints have in any case. Who speaks of others is none of
/// ours.
// spec: WIRE-3, OPEN-14
pub(crate) fn agreed_sizes(opener: &SetUp, acceptor: &SetUp) -> Result<LaneSizes, Refused> {
    let [_, paired, sizes, said @ ..] = acceptor.owner;
    let ([response, ring], [wanted, longest]) = (halves(sizes), halves(opener.owner[2]));
    let is_alike = acceptor.owner[..2] == opener.owner[..2] && response == wanted;
    // What endpoints say of themselves differs.
    let is_kind = match introduction(opener) {
        Some(_) => introduction(acceptor).is_some() && ring > 0,
        None => said == [0; 5] && opener.owner[3..] == [0; 5] && ring == longest,
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
pub(crate) fn outcome(asked: &Asked) -> Option<State> {
    match asked.opener.state() {
        _ if asked.is_refused => Some(State::Refused),
        State::Asking => None,
        ended => Some(ended),
    }
}

/// The ways to a peer: each of our nets with each of its addresses in turn.
pub(crate) fn ways(nets: usize, to: &[SocketAddr]) -> Vec<Way> {
    let count = nets.max(to.len()).min(usize::from(ayre_proto::link::frame::PATHS_MAX));
    let way = |index: usize| Way { net: index % nets, to: to[index % to.len()] };
    (0..count).map(way).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ayre_proto::link::Repair;

    /// Of an endpoint that wants such a ring.
    fn set_up(ring: u64) -> SetUp {
        let introduction = Introduction { name: [1, 2], pass: Pass::default() };
        let sizes = LaneSizes::carried_endpoint(ring as u32);
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
            paths: 1,
            repair: Repair::Selective,
            owner: owner_words(sizes, Some(introduction)),
        }
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
