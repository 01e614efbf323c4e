//! The effects of an endpoint: on lanes and rings that lead to its remotes, and on memory.
use super::RemoteId;
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::units::RmaClaim;
use alloc::vec::Vec;

/// Memory of a program that one operation works on, in one range or several.
pub trait Memory: Default {
    /// Bytes.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, where they lie in one range.
    fn whole(&self) -> Option<&[u8]>;

    /// The longest piece that begins at an offset, of at most `max` bytes; empty behind the end.
    fn piece(&self, offset: usize, max: usize) -> &[u8];

    /// The longest piece that begins at an offset, of at most `max` bytes, to be written.
    fn piece_mut(&mut self, offset: usize, max: usize) -> &mut [u8];

    /// Copies bytes out, from an offset on. All of `into` is there.
    fn read(&self, offset: usize, into: &mut [u8]);

    /// Copies bytes in, from an offset on; what does not fit is left.
    fn write(&mut self, offset: usize, from: &[u8]);
}

/// Memory in one range, for those who keep what an operation works on elsewhere.
impl Memory for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn whole(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn piece(&self, offset: usize, max: usize) -> &[u8] {
        let rest = self.get(offset..).unwrap_or_default();
        &rest[..rest.len().min(max)]
    }

    fn piece_mut(&mut self, offset: usize, max: usize) -> &mut [u8] {
        let rest = self.get_mut(offset..).unwrap_or_default();
        let len = rest.len().min(max);
        &mut rest[..len]
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(self.piece(offset, into.len()));
    }

    fn write(&mut self, offset: usize, from: &[u8]) {
        let piece = self.piece_mut(offset, from.len());
        let len = piece.len();
        piece.copy_from_slice(&from[..len]);
    }
}

/// Where bytes lie that a record brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentPlace {
    /// In the ring, from this position on.
    Ring(u64),
    /// In the record, behind this many words.
    Lane(usize),
}

/// Lanes and rings that lead to remotes, windows of the program, and the memory of remotes.
///
/// A *lane* names the connection with a remote. An effect that finds no room has done nothing.
pub trait Transport {
    /// Memory of the program.
    type Memory: Memory;
    /// Where a remote is connected.
    type Lane: Copy;
    /// Why something was not posted.
    type Error: From<Fault>;

    /// Where a remote is connected; none where it is not, or is no more.
    fn lane(&self, of: RemoteId) -> Option<Self::Lane>;

    /// Appends a record, its head behind a word of the way's own (the first one).
    ///
    /// # Errors
    /// Where there is no room, or the connection has ended.
    fn push<const H: usize>(
        &mut self,
        lane: Self::Lane,
        tag: u32,
        head: [u64; H],
        bytes: &[u8],
    ) -> Result<(), Self::Error>;

    /// Makes sure that there is room for a record without bytes.
    ///
    /// # Errors
    /// As [`Transport::push`].
    fn reserve(&mut self, lane: Self::Lane) -> Result<(), Self::Error>;

    /// There is no room for what goes to a remote now.
    fn no_room(&mut self, lane: Self::Lane) -> Self::Error;

    /// Bytes of the longest piece that the ring to a remote takes when it is empty; none where
    /// there is no ring.
    fn longest_piece(&mut self, to: RemoteId) -> Option<usize>;

    /// Copies a piece into the ring to a remote: where it begins, if there is room.
    fn write_ring(&mut self, to: RemoteId, piece: &[u8]) -> Option<u64>;

    /// Checks that a piece of `len` bytes can lie at this position in the ring from a remote.
    ///
    /// # Errors
    /// [`Malformed`] where there cannot, or there is no ring.
    fn check_ring(&mut self, of: RemoteId, at: u64, len: usize) -> Result<(), Malformed>;

    /// Takes a checked piece (position, length) from the ring from a remote. Copies as many of its
    /// bytes as `into` has room for.
    fn take_ring(&mut self, of: RemoteId, piece: (u64, usize), into: &mut [u8]);

    /// Copies bytes of the record at the head of a lane, behind `skip` words.
    fn copy(&self, lane: Self::Lane, skip: usize, into: &mut [u8]);

    /// Copies bytes of the record at the head of a lane, which lies in one line: a shorter way for
    /// what is taken often.
    fn copy_short(&self, lane: Self::Lane, skip: usize, into: &mut [u8]);

    /// Whether a link leads there, so that nobody reads memory at the other end.
    fn is_linked(&self, lane: Self::Lane) -> bool;

    /// Where a remote may read this memory; 0 where nobody could.
    fn address_of(&mut self, lane: Self::Lane, memory: &Self::Memory) -> u64;

    /// Chooses the way of a message of `len` bytes that lies in its sender's memory.
    fn choose(&mut self, source: RemoteId, len: u64) -> Choice;

    /// A message that was chosen for, and timed, is here, or comes no more or not so.
    fn chosen(&mut self, choice: Choice, len: u64, is_here: bool);

    /// Reads memory of a remote: whether it has.
    fn read_remote(&mut self, source: RemoteId, address: u64, into: &mut [u8]) -> bool;

    /// Whether a remote is still connected, after what has come of it lately was heeded.
    fn is_still_connected(&mut self, remote: RemoteId) -> bool;

    /// Whether a claim may be worked on now.
    ///
    /// # Errors
    /// The fault of the claim.
    fn check_claim(&mut self, claim: &RmaClaim) -> Result<(), Fault>;

    /// Copies bytes into a memory region, `at` bytes behind the beginning of a claim.
    ///
    /// # Errors
    /// The fault of the claim.
    fn write_region(&mut self, claim: &RmaClaim, at: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Copies bytes out of a memory region, `at` bytes behind the beginning of a claim.
    ///
    /// # Errors
    /// The fault of the claim.
    fn read_region(&mut self, claim: &RmaClaim, at: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Takes a piece, which can be, from the ring from a remote, and copies it into a window.
    ///
    /// # Errors
    /// The fault of the claim; then the piece was not taken.
    fn ring_to_region(
        &mut self,
        of: RemoteId,
        piece: (u64, usize),
        claim: &RmaClaim,
        at: u64,
    ) -> Result<(), Fault>;

    /// Copies bytes out of a window into the ring to a remote: where they begin there, if there is
    /// room.
    ///
    /// # Errors
    /// The fault of the claim.
    fn region_to_ring(
        &mut self,
        to: RemoteId,
        len: usize,
        claim: &RmaClaim,
        at: u64,
    ) -> Result<Option<u64>, Fault>;

    /// Puts into a window what is made of what is there, which it gives back, while nobody else
    /// touches any window.
    ///
    /// # Errors
    /// The fault of the claim.
    fn update_region<A: AsMut<[u8]> + Clone + PartialEq>(
        &mut self,
        claim: &RmaClaim,
        place: A,
        make: impl Fn(&mut [u8]),
    ) -> Result<A, Fault>;

    /// Nothing may be posted to a remote until [`Transport::let_through`]: it would overtake what
    /// leaves.
    fn hold_back(&mut self, to: RemoteId);

    /// The long write has left: other operations may be posted again.
    fn let_through(&mut self, to: RemoteId);

    /// A remote has sent more than can be kept, and nothing more is taken of it. Whether it is the
    /// endpoint itself, which hears of it by that.
    fn shut_out(&mut self, remote: RemoteId) -> bool;

    /// A remote has no memory for what was sent to it: the connection ends.
    fn on_shut_out(&mut self, by: RemoteId);

    /// Something was put off to the next poll.
    fn request_poll(&self);
}

/// How a message comes that lies in its sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// It is read there; otherwise it comes by the ring.
    pub is_read: bool,
    /// When it was chosen, in nanoseconds of the way's own clock, where that is timed.
    pub since: Option<u64>,
}

impl Choice {
    /// By the ring, untimed.
    pub(super) const RING: Self = Self { is_read: false, since: None };
}
