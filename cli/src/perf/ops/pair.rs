//! The common parts of cases of two ranks: a port, memory of both, and the peer.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use ayre::error::Status;
use ayre::{
    Notification, PeerId, Port, Queue, Region, RegionOptions, RemoteQueue, RemoteRegion, Rights,
};

use super::super::case::Path;
use super::super::side::Side;
use super::super::side::shared::{LARGEST, LINE};
use super::super::side::spin::spin_until;

/// Where things lie in the region of each rank. Words lie two lines apart. The bulk lies as it does
/// in the raw programs' memory, a line behind the start of a page, so that copies compare.
pub(crate) mod place {
    use super::LINE;

    pub(crate) const IMMEDIATE: usize = 0;
    pub(crate) const COUNTER: usize = 2 * LINE;
    pub(crate) const SWAP: usize = 4 * LINE;
    pub(crate) const LIMITED: usize = 6 * LINE;
    pub(crate) const SHARED_COUNTER: usize = 8 * LINE;
    pub(crate) const BULK: usize = 4096 + LINE;
}

/// Names of what is handed over.
const MEMORY: u64 = 1;
const QUEUE: u64 = 2;

/// Bytes of records that a queue holds for each producer: as many lines as a raw ring has.
pub(crate) const QUEUE_BYTES: usize = 128 * 56;

/// One end that operations go to.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) peer: PeerId,
    pub(crate) memory: RemoteRegion,
}

/// A port that several cases use, one at a time.
pub(crate) type Member = Rc<RefCell<Port>>;

/// This rank of two.
pub(crate) struct Pair {
    pub(crate) member: Member,
    /// How operations on the other rank are executed.
    pub(crate) path: Path,
    /// This rank's memory, which both ends reach.
    pub(crate) region: Region,
    /// The other rank.
    pub(crate) other: End,
    /// This rank itself.
    pub(crate) own: End,
}

impl Pair {
    /// Joins the job and exchanges memory. Collective.
    pub(crate) fn join(path: Path) -> Result<Self> {
        let mut port = Port::join()?;
        let region = port.alloc(place::BULK + LARGEST, RegionOptions::new())?;
        let own = port.peer(port.rank()).context("a port of a job has a loopback")?;
        let other = port.peer(1 - port.rank()).context("there are two ranks")?;
        for peer in [own, other] {
            port.share(peer, &region, 0..region.len(), Rights::all(), MEMORY)?;
        }
        let mut end =
            |peer| -> Result<End> { Ok(End { peer, memory: port.accept_region(peer, MEMORY)? }) };
        let (own, other) = (end(own)?, end(other)?);
        Ok(Self { member: Rc::new(RefCell::new(port)), path, region, other, own })
    }

    /// Whether this is rank 0.
    pub(crate) fn is_first(&self) -> bool {
        self.own.peer.index() == 0
    }

    /// This rank's port.
    pub(crate) fn port(&self) -> RefMut<'_, Port> {
        self.member.borrow_mut()
    }

    /// A queue of this rank whose producer is `end`, and the like of `end`. Collective.
    pub(crate) fn queues(&self, end: &End) -> Result<(Queue, RemoteQueue)> {
        let mut port = self.port();
        let mut queue = port.create_queue(QUEUE_BYTES)?;
        port.share_queue(end.peer, &mut queue, QUEUE)?;
        let remote = port.accept_queue(end.peer, QUEUE)?;
        Ok((queue, remote))
    }

    /// Comes to a barrier and makes progress there until the other rank comes too. A target whose
    /// engine performs the operations waits like this for the initiator.
    pub(crate) fn serve(&self, side: &Side<'_>) {
        let mut port = self.port();
        let round = side.arrive();
        spin_until(|| {
            port.poll_notification();
            side.all_arrived(round)
        });
    }
}

/// A notification of something that went well.
#[inline(always)]
pub(crate) fn good(notification: &Notification) -> Result<()> {
    ensure!(notification.status == Status::Ok, "{notification:?}");
    Ok(())
}
