//! The accepting side of an opening: links that are asked for and not yet confirmed.
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
//! Anybody can send an open, or one that he has seen: it takes a place in a table of fixed size for
//! a while, and nothing else. The token is chosen anew for each place, so that only who has got the
//! accept can make a link of it. A newer open takes no place from another as long as there is a
//! free one, not even one in the same name: whoever confirms is the one that was meant.
use super::end::Agreement;
use super::frame::{Header, Kind};
use super::open::{AgreedLimits, SetUp, agree, bare};
use crate::lane::Malformed;

/// Links that may be half-open at a time.
// spec: OPEN-9
pub const HALF_OPEN_MAX: usize = 64;
/// Of these, with one opener: its attempts, and those of its earlier incarnations.
// spec: OPEN-9
pub const HALF_OPEN_OF_ONE: usize = 4;
/// Bytes that a half-open link takes here, at most; what the owner has wrapped comes on top.
pub const HALF_OPEN_BYTES: usize = 384;

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

/// A link that was asked for and is not confirmed.
#[derive(Clone, Copy, Debug)]
pub struct HalfOpen {
    opener: u64,
    at: u64,
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

    /// What both come to.
    pub const fn agreed(&self) -> &(Agreement, AgreedLimits) {
        &self.agreed
    }

    const fn expires(&self, patience: u64) -> u64 {
        if self.is_void { self.at } else { self.at.saturating_add(patience) }
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
pub struct Door {
    /// Nanoseconds for which an opener may take to confirm.
    patience: u64,
    places: [Option<HalfOpen>; HALF_OPEN_MAX],
}

impl Door {
    /// For hosts of one rack: longer than an accept is repeated until it arrives, shorter than a
    /// flood of opens is kept.
    pub const PATIENCE: u64 = 5_000_000_000;

    /// An empty table, whose entries stay for so many nanoseconds.
    pub const fn new(patience: u64) -> Self {
        Self { patience, places: [None; HALF_OPEN_MAX] }
    }

    /// Whether an open, which is well formed, has come before: then the same accept is sent again.
    // spec: OPEN-8
    pub fn find(&self, theirs: &SetUp) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.theirs == *theirs)
    }

    /// The half-open link whose open has this nonce, which its frame's header says: where opens are
    /// encrypted, the owner compares what has come with what it keeps, instead of deciphering it
    /// once more.
    pub fn with_nonce(&self, nonce: u64) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.theirs.nonce == nonce)
    }

    /// Takes in an open that has not come before, and that the owner wants. `ours` is what it
    /// proposes itself, with an index and a token that no other link has; the entry's
    /// [`HalfOpen::ours`] is the accept to be sent. `opener` names whoever asks: attempts in one
    /// name compete for a few places only. With the place comes the entry that had to leave it.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where no correct peer opens like that: it repeats what
    /// this port itself has said, or is an accept.
    // spec: OPEN-8, OPEN-9
    pub fn admit(
        &mut self,
        opener: u64,
        theirs: &SetUp,
        ours: SetUp,
        now: u64,
    ) -> Result<(Place, Option<HalfOpen>), Malformed> {
        let ours = ours.answering(theirs);
        let agreed = agree(&ours, theirs)?;
        let place = self.place_for(opener);
        let entry = HalfOpen { opener, at: now, is_void: false, theirs: *theirs, ours, agreed };
        Ok((place, self.places[place.index()].replace(entry)))
    }

    /// What is kept at a place.
    pub const fn get(&self, place: Place) -> Option<&HalfOpen> {
        self.places[place.index()].as_ref()
    }

    /// The half-open link to which frames with this index go, if it is one: where frames are
    /// encrypted, whose keys are needed before [`Door::confirm`] can be asked.
    pub fn with_index(&self, index: u32) -> Option<Place> {
        self.position(|entry| !entry.is_void && entry.ours.index == index)
    }

    /// A frame has come that belongs to no link. If it is a good one of a half-open link, that is a
    /// link from here on: its end is told of this very frame first. All other attempts of its
    /// opener are void: [`Door::expire`] names them next.
    // spec: OPEN-10
    pub fn confirm(&mut self, header: &Header) -> Option<(Place, HalfOpen)> {
        let place = self.position(|entry| entry.is_confirmed_by(header))?;
        let confirmed = self.places[place.index()].take()?;
        let others = self.places.iter_mut().flatten();
        for other in others.filter(|entry| entry.opener == confirmed.opener) {
            other.is_void = true;
        }
        Some((place, confirmed))
    }

    /// Forgets one entry that is void or whose time is over; the owner asks until there is none.
    // spec: OPEN-9
    pub fn expire(&mut self, now: u64) -> Option<(Place, HalfOpen)> {
        let patience = self.patience;
        let place = self.position(|entry| entry.expires(patience) <= now)?;
        Some((place, self.places[place.index()].take()?))
    }

    /// When [`Door::expire`] has something to do next.
    pub fn deadline(&self) -> u64 {
        let entries = self.places.iter().flatten();
        entries.map(|entry| entry.expires(self.patience)).min().unwrap_or(u64::MAX)
    }

    /// How many links are half-open.
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A free place, or the oldest one: of the opener's own if it has all that it may have.
    // spec: OPEN-9
    fn place_for(&self, opener: u64) -> Place {
        let own = |entry: &HalfOpen| entry.opener == opener;
        let is_greedy =
            self.places.iter().flatten().filter(|entry| own(entry)).count() >= HALF_OPEN_OF_ONE;
        let age = |(_, entry): &(usize, &Option<HalfOpen>)| {
            // A free place is older than any.
            entry.as_ref().map(|entry| entry.at)
        };
        let places = self.places.iter().enumerate();
        let may_take =
            |(_, entry): &(usize, &Option<HalfOpen>)| !is_greedy || entry.as_ref().is_some_and(own);
        let oldest = places.filter(may_take).min_by_key(age);
        Place(oldest.expect("a table has places").0 as u8)
    }

    fn position(&self, is_meant: impl Fn(&HalfOpen) -> bool) -> Option<Place> {
        let at = self.places.iter().position(|entry| entry.as_ref().is_some_and(&is_meant))?;
        Some(Place(at as u8))
    }
}

/// A reset that answers a frame which belongs to nothing here: an open that is not wanted, or a
/// frame of a link that is no more. It repeats what only that frame's sender knows. There is none
/// for what is itself an answer, so that two that do not know each other soon fall silent.
// spec: OPEN-11
pub const fn reset_header(unwanted: &Header, now: u64) -> Option<Header> {
    if matches!(unwanted.kind, Kind::Accept | Kind::Reset) {
        return None;
    }
    let header = bare(Kind::Reset, unwanted.generation, unwanted.token);
    let (packet, seq) = (unwanted.packet, unwanted.to);
    Some(Header { path: unwanted.path, packet, seq, stamp: now as u32, ..header })
}

/// How many resets may be sent: so many at once, and one more in each interval. A flood of strange
/// frames causes few answers.
// spec: OPEN-11
#[derive(Clone, Debug)]
pub struct Ration {
    burst: u32,
    interval: u64,
    left: u32,
    /// When the last one was added.
    at: u64,
}

impl Ration {
    /// All of the burst is there.
    pub const fn new(burst: u32, interval: u64, now: u64) -> Self {
        assert!(burst > 0 && interval > 0, "something may be sent, now and then");
        Self { burst, interval, left: burst, at: now }
    }

    /// For a port on a host of a rack: 16 at once, a thousand in a second.
    pub const fn rack(now: u64) -> Self {
        Self::new(16, 1_000_000, now)
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, now: u64) -> bool {
        let more = now.saturating_sub(self.at) / self.interval;
        if more >= u64::from(self.burst - self.left) {
            (self.left, self.at) = (self.burst, now);
        } else {
            self.left += more as u32;
            self.at += more * self.interval;
        }
        let is_there = self.left > 0;
        self.left -= u32::from(is_there);
        is_there
    }
}
