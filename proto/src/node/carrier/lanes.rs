//! The far side of the lanes, rings and words of a connection, as a carrier sees it.
use crate::lane::{Kind, Malformed, Status};
use crate::limits::{LANE_LINES_MAX, LANE_LINES_MIN};

/// A lane that the port writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxLane {
    /// The lane of short messages.
    Messages,
    /// The lane of a queue of the peer, which has this number among its queues.
    Queue(usize),
}

/// A lane that the port reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxLane {
    /// The lane of short messages.
    Messages,
    /// The lane of answers to commands.
    Responses,
    /// The lane of a queue of the port, which has this number among the queues with records of the
    /// peer.
    Queue(usize),
}

/// A lane has no room for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// An offer of a port to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The kind.
    pub kind: OfferKind,
    /// The description of the offered thing.
    pub words: [u64; OFFER_WORDS],
}

/// Words of an offer.
pub const OFFER_WORDS: usize = 7;

/// The kinds of offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferKind {
    /// A region of its memory.
    Region,
    /// A queue, to enqueue records into.
    Queue,
    /// A way into a depot.
    Inlet,
}

impl Offer {
    /// Whether it is a queue.
    pub const fn is_queue(&self) -> bool {
        matches!(self.kind, OfferKind::Queue)
    }

    /// Lines of the lane of a queue that is offered; `None` if no lane may have this number.
    pub(in crate::node) fn lines(&self) -> Option<u32> {
        let lines = self.words[1];
        let valid = (LANE_LINES_MIN as u64..=LANE_LINES_MAX as u64).contains(&lines);
        valid.then_some(lines as u32)
    }
}

/// The far side of a connection's lanes, as a carrier needs it. The carrier reads the records of
/// its own program there, and writes the records that a peer of the same host would write.
pub trait Lanes {
    /// The record at the head of a lane that the port writes, if there is one.
    fn head(&self, lane: TxLane) -> Option<Result<Status, Malformed>>;
    /// Copies that record.
    fn copy(&self, lane: TxLane, into: &mut [u8]);
    /// The record was passed on. Its lines are not given back yet.
    fn pass(&mut self, lane: TxLane, status: &Status);
    /// Gives lines of passed-on records back to the port. `consumed` is their number in all, modulo
    /// 2^32.
    ///
    /// # Errors
    /// [`Malformed`] if fewer were passed on, or more were given back before.
    fn give_back(&mut self, lane: TxLane, consumed: u32) -> Result<(), Malformed>;
    /// Publishes a record in a lane that the port reads, whole or not at all.
    ///
    /// # Errors
    /// [`NoRoom`] where it has to wait until the port has taken some.
    fn publish(&mut self, lane: RxLane, head: (Kind, u32), bytes: &[u8]) -> Result<(), NoRoom>;
    /// Lines of this lane that the port has given back in all, modulo 2^32.
    fn given_back(&self, lane: RxLane) -> u32;

    /// Lines of each of the two rings; 0 where there are none.
    fn ring_lines(&self) -> u32;
    /// Bytes that the port has written to its ring and that were not passed on, of those that lie
    /// in one piece. All that records name which were seen in the lane are among them.
    fn ring_left(&self) -> usize;
    /// Copies the next of these bytes out, as many as are left at most.
    fn pass_ring(&mut self, into: &mut [u8]);
    /// Gives lines of the ring back to the port. `lines` is their number in all, modulo 2^32.
    ///
    /// # Errors
    /// [`Malformed`] if fewer were passed on, or more were given back before.
    fn give_back_ring(&mut self, lines: u32) -> Result<(), Malformed>;
    /// Places bytes that have come in the ring that the port reads.
    ///
    /// # Errors
    /// [`Malformed`] where there is no room for them.
    fn place_ring(&mut self, bytes: &[u8]) -> Result<(), Malformed>;
    /// Lines of that ring which the port has taken in all, modulo 2^32.
    fn ring_given_back(&self) -> u32;

    /// Commands of the peer that were executed here in all. The answers of all that are counted
    /// have been given before.
    fn done(&self) -> u64;
    /// Notifications of the peer's commands that were taken here in all.
    fn noted(&self) -> u64;
    /// The barrier that the port has reached: all that it did before can be seen.
    fn barrier(&self) -> u64;
    /// Commands of the port that its peer has executed; their answers were published before.
    fn set_done(&mut self, done: u64);
    /// Notifications of the port's commands that were taken at its peer.
    fn set_noted(&mut self, noted: u64);
    /// The barrier that the peer has reached; all that it did before was published.
    fn set_barrier(&mut self, reached: u64);

    /// The next offer of the port to its peer, which stays until it is passed on.
    fn offer(&mut self) -> Option<Offer>;
    /// The offer was passed on, or cannot be.
    fn pass_offer(&mut self);
    /// The lane of the queue that is offered becomes that of this number. False where there is no
    /// memory for that.
    fn join_queue(&mut self, number: usize) -> bool;
    /// Hands the port what its peer offers.
    fn deliver(&mut self, offer: Offer);
    /// Makes the lane of a queue that the peer offers, in which the port is going to enqueue, and
    /// hands the port both. False where there is no memory for it.
    fn make_queue(&mut self, number: usize, offer: Offer) -> bool;
}
