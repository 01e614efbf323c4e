//! The half-open table: links that are asked for and not yet confirmed.
//!
//! ```text
//!              open: another nonce                 first good frame with its token
//!   nothing -----------------------> half-open --------------------------------------> a link
//!                                     |     ^ |
//!      expires, or makes room for     |     '-' open: the same again, same accept
//!      a newer one                    v
//!                                  nothing
//! ```
//!
//! Anybody can send an open, or a recorded one. It takes a place in a table of fixed size for a
//! while, and nothing else. The token is chosen anew for each place, so that only the receiver of
//! the accept can make a link of it. A link belongs to the opener that confirms it.
//!
//! An open is *proved* if it has a cookie that this side has given to its address just now. Others
//! get a place as long as they are few and name this port. Proved opens take their places if need
//! be. An unproved open never takes the place of another as long as that is young. No host keeps
//! others out: an open from a host with fewer places takes one from hosts with more. An open that
//! was answered is remembered by its mark, and is not answered as a new one again.
use super::end::Agreement;
use super::frame::{Header, Kind};
use super::open::{AgreedLimits, SetUp, agree};
use super::token_bucket::TokenBucket;
use crate::heap;
use crate::lane::Malformed;
use alloc::boxed::Box;
use alloc::vec;

/// Links that may be half-open at a time.
// spec: OPEN-9
pub const HALF_OPEN_MAX: usize = 64;
/// Of these, with one opener: its attempts, and those of its earlier incarnations.
// spec: OPEN-9
pub const HALF_OPEN_OF_ONE: usize = 4;
/// With this number of half-open links, an open has to be proved.
// spec: OPEN-21
pub const HALF_OPEN_CALM: usize = 16;
/// Bytes that a half-open link takes here, at most; the owner's wrapped messages come on top.
pub const HALF_OPEN_BYTES: usize = 424;
/// Opens that were answered, and are remembered.
// spec: OPEN-21
pub const ANSWERED_MAX: usize = 1024;
/// Nanoseconds for which a place is young: until then, who has got the accept has confirmed it.
// spec: OPEN-9
pub const YOUNG: u64 = 250_000_000;
/// Least nanoseconds from one sending of an accept to the next.
// spec: OPEN-8
const AGAIN: u64 = 4_000_000;

/// A place in the table of half-open links. It is a number below [`HALF_OPEN_MAX`], so that the
/// owner can keep what belongs to it in a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u8);

impl Place {
    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An open, as far as it is known before it is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The opener: attempts in one name compete for a few places only.
    pub opener: u64,
    /// The mark by which it is known again: bits of the open as it travels, which those of no other
    /// have.
    pub mark: u64,
    /// The host that its address is of: one number for all addresses of a host.
    pub host: u64,
    /// It has a cookie that this side has given to its address just now.
    pub is_proved: bool,
}

/// The reason why an open gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitError {
    /// No correct peer opens like that: it repeats what this port itself has said, or is an accept.
    Malformed,
    /// Others have all the places, and may still confirm theirs.
    Full,
}

impl From<Malformed> for AdmitError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// A link that was asked for and is not confirmed.
#[derive(Clone, Copy, Debug)]
pub struct HalfOpen {
    request: OpenRequest,
    at: u64,
    /// When its accept was sent last.
    said: u64,
    /// Another attempt of its opener has become a link.
    is_void: bool,
    theirs: SetUp,
    ours: SetUp,
    agreed: (Agreement, AgreedLimits),
}

const _: () = assert!(size_of::<Option<HalfOpen>>() <= HALF_OPEN_BYTES, "as stated");

impl HalfOpen {
    /// The open.
    pub const fn theirs(&self) -> &SetUp {
        &self.theirs
    }

    /// The accept.
    pub const fn ours(&self) -> &SetUp {
        &self.ours
    }

    /// The agreement of both.
    pub const fn agreed(&self) -> &(Agreement, AgreedLimits) {
        &self.agreed
    }

    const fn expires(&self, timeout: u64) -> u64 {
        if self.is_void { self.at } else { self.at.saturating_add(timeout) }
    }

    /// Whether it may have to leave for another one.
    // spec: OPEN-9
    const fn yields_to(&self, other: &OpenRequest, now: u64) -> bool {
        let is_young = now.saturating_sub(self.at) < YOUNG;
        let is_less = other.is_proved && !self.request.is_proved;
        let is_more = self.request.is_proved && !other.is_proved;
        self.is_void || is_less || (!is_young && !is_more)
    }

    fn is_confirmed_by(&self, header: &Header) -> bool {
        let Agreement { own, own_token, generation, .. } = self.agreed.0;
        let is_frame = matches!(header.kind, Kind::Data | Kind::Probe);
        let may_be = is_frame && !self.is_void;
        may_be && (header.to, header.token, header.generation) == (own, own_token, generation)
    }
}

/// The table of half-open links.
#[derive(Clone, Debug)]
pub struct HalfOpenTable {
    /// Nanoseconds for which an opener may take to confirm.
    timeout: u64,
    /// Not in the value itself, which is moved over the stack when a port is opened.
    places: Box<[Option<HalfOpen>; HALF_OPEN_MAX]>,
    answered: Answered,
    /// Of opens that have proved nothing.
    unproved: TokenBucket,
}

/// Marks of the opens that were answered last.
#[derive(Clone, Debug)]
struct Answered {
    marks: Box<[u64]>,
    next: usize,
}

impl Answered {
    fn add(&mut self, mark: u64) {
        self.marks[self.next] = mark;
        self.next = (self.next + 1) % ANSWERED_MAX;
    }
}

impl HalfOpenTable {
    /// For hosts of one rack: longer than an accept is repeated until it arrives, shorter than a
    /// flood of opens is kept.
    pub const TIMEOUT: u64 = 5_000_000_000;

    /// An empty table, whose entries stay for this number of nanoseconds. The bucket limits the
    /// opens that have proved nothing.
    pub fn new(timeout: u64, unproved: TokenBucket) -> Self {
        let answered = Answered { marks: vec![0; ANSWERED_MAX].into(), next: 0 };
        Self { timeout, places: heap::array(|_| None), answered, unproved }
    }

    /// For a port on a host of a rack. An open costs two operations on the curve, which is some
    /// hundredths of a processor at this rate.
    // spec: OPEN-21
    pub fn rack(now: u64) -> Self {
        Self::new(Self::TIMEOUT, TokenBucket::new(32, 5_000_000, now))
    }

    /// Asserts what holds between two steps, whatever was asked for.
    fn check(&self) {
        if cfg!(debug_assertions) {
            for entry in self.places.iter().flatten() {
                let others = self.places.iter().flatten();
                let own = others.filter(|other| other.request.opener == entry.request.opener);
                debug_assert!(own.count() <= HALF_OPEN_OF_ONE, "nobody has more than a few places");
                debug_assert!(entry.ours.answers == entry.theirs.nonce, "an accept is of its open");
            }
        }
    }

    /// Whether an open, which is well formed, has come before: then the same accept is sent again.
    // spec: OPEN-8
    pub fn find(&self, theirs: &SetUp) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.theirs == *theirs)
    }

    /// The half-open link whose open has this mark: where opens are encrypted, the owner compares
    /// what has come with what it keeps, instead of deciphering it once more.
    // spec: OPEN-8
    pub fn with_mark(&self, mark: u64) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.request.mark == mark)
    }

    /// Whether the accept of this place may be sent again to where it was sent first.
    // spec: OPEN-8
    pub fn repeat(&mut self, place: Place, now: u64) -> bool {
        let Some(entry) = &mut self.places[place.index()] else { return false };
        let may = now.saturating_sub(entry.said) >= AGAIN;
        if may {
            entry.said = now;
        }
        may
    }

    /// Whether an open of this mark was answered lately: it was recorded, or its opener's place has
    /// gone.
    // spec: OPEN-21
    pub fn was_answered(&self, mark: u64) -> bool {
        self.answered.marks.contains(&mark)
    }

    /// Whether an open that has no place may have one; otherwise it is to come again with a cookie.
    /// An open that was answered is a recording, or its place has gone. An open that has proved
    /// nothing must name this port, and be one of few.
    // spec: OPEN-20, OPEN-21
    pub fn may_enter(&mut self, request: &OpenRequest, is_named: bool, now: u64) -> bool {
        let is_new = !self.was_answered(request.mark);
        let is_few = self.len() < HALF_OPEN_CALM;
        is_new && (request.is_proved || (is_named && is_few && self.unproved.take(now)))
    }

    /// Takes in an open that has not come before, and that the owner wants. `ours` is what it
    /// proposes itself, with an index and a token that no other link has; the entry's
    /// [`HalfOpen::ours`] is the accept to be sent. With the place comes the entry that had to
    /// leave it.
    ///
    /// # Errors
    /// [`AdmitError`], and nothing changes.
    // spec: OPEN-8, OPEN-9
    pub fn admit(
        &mut self,
        request: OpenRequest,
        theirs: &SetUp,
        ours: SetUp,
        now: u64,
    ) -> Result<(Place, Option<HalfOpen>), AdmitError> {
        let ours = ours.answering(theirs);
        let agreed = agree(&ours, theirs)?;
        let place = self.place_for(&request, now).ok_or(AdmitError::Full)?;
        self.answered.add(request.mark);
        let (at, said, theirs) = (now, now, *theirs);
        let entry = HalfOpen { request, at, said, is_void: false, theirs, ours, agreed };
        let before = self.places[place.index()].replace(entry);
        debug_assert!(self.was_answered(request.mark), "a recording of it is known again");
        self.check();
        Ok((place, before))
    }

    /// The entry at a place.
    pub fn get(&self, place: Place) -> Option<&HalfOpen> {
        self.places[place.index()].as_ref()
    }

    /// The half-open link to which frames with this index go, if it is one: where frames are
    /// encrypted, whose keys are needed before [`HalfOpenTable::confirm`] can be asked.
    pub fn with_index(&self, index: u32) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.ours.index == index)
    }

    /// A frame has come that belongs to no link. If it confirms a half-open link, that is a link
    /// from here on: its end is told of this very frame first. All other attempts of its opener
    /// are void: [`HalfOpenTable::expire`] names them next. A half-open link whose time is over is
    /// not confirmed, so that an opener knows from when on it has to ask again.
    // spec: OPEN-10
    pub fn confirm(&mut self, header: &Header, now: u64) -> Option<(Place, HalfOpen)> {
        let timeout = self.timeout;
        let is_it =
            |entry: &HalfOpen| entry.is_confirmed_by(header) && now < entry.expires(timeout);
        let place = self.position(is_it)?;
        let confirmed = self.places[place.index()].take()?;
        let others = self.places.iter_mut().flatten();
        for other in others.filter(|entry| entry.request.opener == confirmed.request.opener) {
            other.is_void = true;
        }
        debug_assert!(!confirmed.is_void, "one of several attempts becomes a link");
        self.check();
        Some((place, confirmed))
    }

    /// Forgets one entry that is void or whose time is over; the owner asks until there is none.
    // spec: OPEN-9
    pub fn expire(&mut self, now: u64) -> Option<(Place, HalfOpen)> {
        let timeout = self.timeout;
        let place = self.position(|entry| entry.expires(timeout) <= now)?;
        Some((place, self.places[place.index()].take()?))
    }

    /// When [`HalfOpenTable::expire`] has something to do next.
    pub fn deadline(&self) -> u64 {
        let entries = self.places.iter().flatten();
        entries.map(|entry| entry.expires(self.timeout)).min().unwrap_or(u64::MAX)
    }

    /// How many links are half-open.
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A free place, or one that has to leave: of the opener's own if it has all that it may have.
    /// Those that have proved nothing leave before others, then those of hosts that have many, and
    /// then the oldest.
    // spec: OPEN-9
    fn place_for(&self, request: &OpenRequest, now: u64) -> Option<Place> {
        let own = |entry: &HalfOpen| entry.request.opener == request.opener;
        let is_greedy =
            self.places.iter().flatten().filter(|entry| own(entry)).count() >= HALF_OPEN_OF_ONE;
        if !is_greedy && let Some(free) = self.places.iter().position(Option::is_none) {
            return Some(Place(free as u8));
        }
        let own_host = self.of_host(request.host);
        let is_of_greedy_host =
            |entry: &HalfOpen| request.is_proved && self.of_host(entry.request.host) > own_host + 1;
        let may = |entry: &HalfOpen| match is_greedy {
            true => own(entry) && entry.yields_to(request, now),
            false => entry.yields_to(request, now) || is_of_greedy_host(entry),
        };
        let places = self.places.iter().enumerate();
        let entries = places.filter_map(|(at, entry)| Some((at, entry.as_ref()?)));
        let first = entries.filter(|(_, entry)| may(entry)).min_by_key(|(_, entry)| {
            (entry.request.is_proved, !is_of_greedy_host(entry), entry.at)
        })?;
        Some(Place(first.0 as u8))
    }

    /// Links that are half-open with a host.
    fn of_host(&self, host: u64) -> usize {
        self.places.iter().flatten().filter(|entry| entry.request.host == host).count()
    }

    fn position(&self, is_meant: impl Fn(&HalfOpen) -> bool) -> Option<Place> {
        let at = self.places.iter().position(|entry| entry.as_ref().is_some_and(&is_meant))?;
        Some(Place(at as u8))
    }
}
