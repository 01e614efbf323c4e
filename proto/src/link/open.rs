//! Opening a link: what the two sides tell each other, and the side that asks.
//!
//! ```text
//!   opener                                                   acceptor
//!     | open: SetUp, with a nonce of this attempt              |
//!     |------------------------------------------------------->| a half-open link: HalfOpenTable
//!     |             accept: SetUp that answers that nonce      |
//!     |<-------------------------------------------------------|
//!     | a data frame or a probe, with the token of the accept  |
//!     |------------------------------------------------------->| a link
//! ```
//!
//! An open is repeated until it is accepted, refused or given up. The opener's third frame proves
//! that the accept has reached it. So a sender that only pretends to have an address gets no link,
//! and neither does a recorded open that is sent again.
//!
//! An acceptor that has reason to doubt an open answers with a cookie. The open comes again with
//! it, as another attempt: the cookie shows that it was sent just now, and from that address. One
//! that will not says why.
//!
//! The machines see set-ups as they are meant. Their owner may wrap them, and keeps what it has
//! wrapped, so that what is repeated stays the same to the bit.
//!
//! ```text
//! set-up, 128 bytes, sixteen little-endian words
//!          63           48 47           32 31            16 15      8 7       0
//!          +--------------+---------------+----------------+---------+---------+
//!  word 0  | nonce 64                                                          |
//!  word 1  | answers 64                                                        |
//!  word 2  | incarnation 64                                                    |
//!  word 3  | token 64                                                          |
//!  word 4  | index 32                     | generation 32                      |
//!  word 5  | first of channel 1, 32       | first of channel 0, 32             |
//!  word 6  | number       | longest frame | first of channel 2, 32             |
//!  word 7  | 0                             | destination 16 | repair  |  paths  |
//!  word 8  | seven words of the owner's                                        |
//!  word 15 | cookie 64                                                         |
//!          +-------------------------------------------------------------------+
//! ```
use super::Repair;
use super::answer::Answer;
use super::end::Agreement;
use super::frame::{CHANNELS, Digest, HEAD_BYTES, HEADER_BYTES, Header, Kind, PATHS_MAX};
use super::race::{Pace, Race};
use crate::lane::Malformed;
use crate::limits::EAGER_MAX;
use crate::refusal::Refusal;
use core::array;

/// Of opening a link: changes with what opens and accepts say.
// spec: OPEN-1
pub const VERSION: u32 = 2;
/// In place of a port's number: any port at the address.
// spec: OPEN-20
pub const ANYBODY: u16 = u16::MAX;

/// Bytes of a set-up.
pub const SETUP_BYTES: usize = 128;
/// Words of a set-up that its owner uses as it likes.
pub const OWNER_WORDS: usize = 7;
/// Least length of the longest frame that an end takes: one with the longest short message.
pub const FRAME_LEAST: u16 = (HEADER_BYTES + HEAD_BYTES + 8 + EAGER_MAX) as u16;

const WORDS: usize = SETUP_BYTES / 8;
/// Where the owner's words begin, and where the cookie stands.
const OWNER: usize = 8;
const COOKIE: usize = OWNER + OWNER_WORDS;
const _: () = assert!(COOKIE + 1 == WORDS, "as drawn");

/// One side's description of itself and of the link that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// Of this attempt: random, not 0.
    pub nonce: u64,
    /// The nonce that is answered; 0 in an open.
    pub answers: u64,
    /// Of the port: random, not 0. A process that was restarted has another.
    pub incarnation: u64,
    /// The token that the other side's frames are to carry; nobody can guess it.
    pub token: u64,
    /// Proposed: one more than the last one that this side has had with the other; at least 1. In
    /// an accept: agreed.
    pub generation: u32,
    /// This side's index of the link.
    pub index: u32,
    /// Numbers of this side's first frames, by channel.
    pub first: [u32; CHANNELS],
    /// Longest frame that this side takes, in bytes, its header among them.
    pub frame_max: u16,
    /// Number of the port.
    pub number: u16,
    /// Number of the port that is meant, or [`ANYBODY`].
    pub destination: u16,
    /// How many paths this side can use.
    pub paths: u8,
    /// How this side would have what was lost sent again.
    pub repair: Repair,
    /// Words that the owners tell each other.
    pub owner: [u64; OWNER_WORDS],
    /// In an open, what its acceptor has asked it to repeat; else 0.
    pub cookie: u64,
}

impl SetUp {
    /// The bytes that travel.
    // spec: OPEN-2
    pub fn encode(&self) -> [u8; SETUP_BYTES] {
        let mut bytes = [0; SETUP_BYTES];
        let (places, _) = bytes.as_chunks_mut();
        for (place, word) in places.iter_mut().zip(self.words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    fn words(&self) -> [u64; WORDS] {
        let [first0, first1, first2] = self.first.map(u64::from);
        let repair = match self.repair {
            Repair::GoBackN => 1,
            Repair::Selective => 2,
        };
        let mut words = [0; WORDS];
        words[0] = self.nonce;
        words[1] = self.answers;
        words[2] = self.incarnation;
        words[3] = self.token;
        words[4] = u64::from(self.generation) | u64::from(self.index) << 32;
        words[5] = first0 | first1 << 32;
        words[6] = first2 | u64::from(self.frame_max) << 32 | u64::from(self.number) << 48;
        words[7] = u64::from(self.paths) | repair << 8 | u64::from(self.destination) << 16;
        words[OWNER..COOKIE].copy_from_slice(&self.owner);
        words[COOKIE] = self.cookie;
        words
    }

    /// Reads what came. Total.
    ///
    /// # Errors
    /// [`Malformed`] where it is no set-up.
    // spec: OPEN-2, OPEN-3
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; SETUP_BYTES] = bytes.try_into().map_err(|_| Malformed)?;
        let (places, _) = bytes.as_chunks();
        let words: [u64; WORDS] = array::from_fn(|index| u64::from_le_bytes(places[index]));
        let repair = match (words[7] >> 8) as u8 {
            1 => Repair::GoBackN,
            2 => Repair::Selective,
            _ => return Err(Malformed),
        };
        let read = Self {
            nonce: words[0],
            answers: words[1],
            incarnation: words[2],
            token: words[3],
            generation: words[4] as u32,
            index: (words[4] >> 32) as u32,
            first: [words[5] as u32, (words[5] >> 32) as u32, words[6] as u32],
            frame_max: (words[6] >> 32) as u16,
            number: (words[6] >> 48) as u16,
            destination: (words[7] >> 16) as u16,
            paths: words[7] as u8,
            repair,
            owner: array::from_fn(|index| words[OWNER + index]),
            cookie: words[COOKIE],
        };
        if read.is_sound() { Ok(read) } else { Err(Malformed) }
    }

    const fn is_sound(&self) -> bool {
        let is_named = self.nonce != 0 && self.incarnation != 0 && self.token != 0;
        let has_paths = 1 <= self.paths && self.paths <= PATHS_MAX;
        is_named && has_paths && self.generation > 0 && self.frame_max >= FRAME_LEAST
    }

    /// Makes the accept of an open: this side's own proposal, as an answer to it.
    // spec: OPEN-4
    pub fn answering(self, open: &Self) -> Self {
        let generation = self.generation.max(open.generation);
        Self { answers: open.nonce, generation, destination: open.number, cookie: 0, ..self }
    }

    /// The header of the n-th frame that carries this open, counted from 1, on one of its paths in
    /// turn. The payload is the open as it travels.
    // spec: OPEN-1
    pub const fn open_header(&self, nth: u32, now: u64, payload: Digest) -> Header {
        let path = (nth.saturating_sub(1) % self.paths as u32) as u8;
        let header = Header::bare(Kind::Open, self.generation, self.nonce);
        let (packet, stamp) = (nth as u64, now as u32);
        Header { path, packet, seq: VERSION, stamp, payload, ..header }
    }

    /// The header of a frame that carries this accept, on the path by which the open came.
    // spec: OPEN-1
    pub const fn accept_header(&self, open: &Self, path: u8, now: u64, payload: Digest) -> Header {
        let header = Header::bare(Kind::Accept, self.generation, self.answers);
        let (to, stamp) = (open.index, now as u32);
        Header { to, path, packet: 1, seq: VERSION, stamp, payload, ..header }
    }
}

/// The limits that follow from both set-ups, besides the [`Agreement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedLimits {
    /// Longest frame in either direction, in bytes, its header among them.
    pub frame_max: u16,
}

/// The agreement of two set-ups, one of which answers the other.
///
/// # Errors
/// [`Malformed`] where they are not those of an open and of its accept.
// spec: OPEN-3, OPEN-4, OPEN-5
pub fn agree(ours: &SetUp, theirs: &SetUp) -> Result<(Agreement, AgreedLimits), Malformed> {
    let is_ours = theirs.answers == ours.nonce;
    let (open, accept) = if is_ours { (ours, theirs) } else { (theirs, ours) };
    let is_pair = accept.answers == open.nonce && open.answers == 0;
    let is_itself = ours.incarnation == theirs.incarnation;
    if !is_pair || is_itself || accept.generation < open.generation {
        return Err(Malformed);
    }
    let both = [ours.repair, theirs.repair];
    let (repair, paths) = if both.contains(&Repair::GoBackN) {
        // Frames of several paths overtake each other, and going back keeps none of them.
        (Repair::GoBackN, 1)
    } else {
        (Repair::Selective, ours.paths.min(theirs.paths))
    };
    let agreement = Agreement {
        to: theirs.index,
        incarnation: theirs.incarnation,
        own: ours.index,
        generation: accept.generation,
        token: theirs.token,
        own_token: ours.token,
        first: [ours.first, theirs.first],
        repair,
        paths,
    };
    Ok((agreement, AgreedLimits { frame_max: ours.frame_max.min(theirs.frame_max) }))
}

/// How an opening stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The open is repeated.
    Asking,
    /// There is a link.
    Accepted,
    /// The other side does not want it.
    Refused,
    /// Its owner's time is over.
    GivenUp,
}

/// Where an answer has come from: by which path, and by which of several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By {
    /// As its header says.
    pub path: u8,
    /// Of a race; 0 of an opener that knows where to go.
    pub way: usize,
}

/// The possible senders of an answer.
// spec: OPEN-25
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It lacks the proof that it comes from a holder of the key.
    Nobody,
    /// There is no key.
    Anybody,
    /// A holder of the key.
    Holder,
}

/// How often an open goes at once because its acceptor has asked for it to come again. Beyond that
/// it keeps its pace, whatever the other side says.
// spec: OPEN-24
const AT_ONCE_MAX: u32 = 3;

/// The side that asks for a link.
#[derive(Clone, Debug)]
pub struct Opener {
    ours: SetUp,
    pace: Pace,
    state: Opening,
    /// When the open is to be sent next, and by which way.
    race: Race,
    /// By which it was sent last.
    way: usize,
    give_up: u64,
    sent: u32,
    /// How often it was asked to come again; when it had been sent so often, and on which path.
    again: u32,
    begun: (u32, u8),
    /// Why it was refused, or seems to be.
    refusal: Option<Refusal>,
}

impl Opener {
    /// Asks for a link until `give_up`.
    pub fn new(ours: SetUp, pace: Pace, give_up: u64, now: u64) -> Self {
        assert!(ours.is_sound() && ours.answers == 0, "an open is a set-up that answers none");
        assert!(0 < pace.first && pace.first <= pace.most, "intervals grow");
        let (state, race, refusal) = (Opening::Asking, Race::new(1, pace, now), None);
        let (way, sent, again, begun) = (0, 0, 0, (0, 0));
        Self { ours, pace, state, race, way, give_up, sent, again, begun, refusal }
    }

    /// Asks by this number of ways from now on; nobody knows which of them lead to the other side.
    // spec: OPEN-30
    pub fn among(self, ways: usize, now: u64) -> Self {
        Self { race: Race::new(ways, self.pace, now), ..self }
    }

    /// Asserts what holds between two steps, whatever was answered.
    fn check(&self) {
        let (before, path) = self.begun;
        debug_assert!(before <= self.sent, "opens are counted on from those before");
        debug_assert!(path < PATHS_MAX, "an answer comes by a path");
        let is_refused = self.state == Opening::Refused;
        debug_assert!(!is_refused || self.refusal.is_some(), "a refusal has a reason");
        debug_assert!(self.ours.answers == 0, "an open answers none");
    }

    /// By which of several ways the last open goes.
    pub const fn way(&self) -> usize {
        self.way
    }

    /// The open of this side.
    pub const fn ours(&self) -> &SetUp {
        &self.ours
    }

    /// How the opening stands.
    pub const fn state(&self) -> Opening {
        self.state
    }

    /// Why it was refused. Of one that goes on, or was given up: why it seems to be in vain, by
    /// what anybody can have said.
    // spec: OPEN-25
    pub const fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// The header of the open that is due now, if one is; its payload is the open as it travels.
    /// The owner asks when it begins, and at each [`Opener::deadline`].
    // spec: OPEN-6
    pub fn on_time(&mut self, now: u64, payload: Digest) -> Option<Header> {
        self.check();
        if self.state != Opening::Asking {
            return None;
        }
        if now >= self.give_up {
            self.state = Opening::GivenUp;
            return None;
        }
        self.way = self.race.on_time(now)?;
        self.sent = self.sent.saturating_add(1);
        let (before, path) = self.begun;
        let turn = self.sent - before - 1 + u32::from(path);
        let path = (turn % u32::from(self.ours.paths)) as u8;
        Some(Header { path, ..self.ours.open_header(self.sent, now, payload) })
    }

    /// When [`Opener::on_time`] has something to do next.
    pub fn deadline(&self) -> u64 {
        match self.state {
            Opening::Asking => self.race.deadline().min(self.give_up),
            _ => u64::MAX,
        }
    }

    /// An accept has come, well formed. If it answers this attempt and is the first to do so, there
    /// is a link: its end, which [`End::new`](super::end::End::new) makes, confirms it by itself.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where it answers this attempt as no correct peer does.
    // spec: OPEN-5, OPEN-7
    pub fn on_accept(
        &mut self,
        theirs: &SetUp,
    ) -> Result<Option<(Agreement, AgreedLimits)>, Malformed> {
        let is_meant = [ANYBODY, theirs.number].contains(&self.ours.destination);
        if self.state != Opening::Asking || theirs.answers != self.ours.nonce || !is_meant {
            return Ok(None);
        }
        let agreed = agree(&self.ours, theirs)?;
        self.state = Opening::Accepted;
        Ok(Some(agreed))
    }

    /// Whether a reset is an answer to this attempt.
    // spec: OPEN-12
    pub fn is_answered_by(&self, header: &Header) -> bool {
        let is_answer = header.kind == Kind::Reset && header.token == self.ours.nonce;
        self.state == Opening::Asking && is_answer
    }

    /// An answer to this attempt has come: whether that changes anything. `fresh` is the nonce of a
    /// new attempt. An open that is to come again is another attempt from here on
    /// ([`Opener::ours`]). It goes first to the address that the answer came from, because its
    /// cookie is good there.
    // spec: OPEN-12, OPEN-24, OPEN-25
    pub fn on_answer(
        &mut self,
        (answer, by): (Answer, By),
        trust: Trust,
        fresh: u64,
        now: u64,
    ) -> bool {
        self.check();
        if self.state != Opening::Asking {
            return false;
        }
        match answer {
            Answer::Refused(refusal) => {
                if refusal != Refusal::Unknown || self.refusal.is_none() {
                    self.refusal = Some(refusal);
                }
                self.on_refusal((refusal, by), trust, now)
            }
            Answer::Again(cookie) if trust != Trust::Nobody => {
                self.ours = SetUp { nonce: fresh, cookie, ..self.ours };
                self.race.prefer(by.way, self.again < AT_ONCE_MAX, now);
                self.again = self.again.saturating_add(1);
                self.begun = (self.sent, by.path);
                true
            }
            Answer::Again(_) => false,
        }
    }

    /// A holder of the key is the one that is asked. Where there is none, somebody else may be at
    /// the end of this way; and a way that is too short says nothing of the others.
    // spec: OPEN-25, OPEN-30
    fn on_refusal(&mut self, (why, by): (Refusal, By), trust: Trust, now: u64) -> bool {
        let is_of_all = trust == Trust::Holder && !matches!(why, Refusal::PathMtu(_));
        if trust != Trust::Nobody {
            self.race.refuse(by.way, now);
        }
        if is_of_all || self.race.is_lost() {
            self.state = Opening::Refused;
        }
        self.check();
        trust != Trust::Nobody
    }
}
