//! The target's engine for mediated connections: takes commands from lanes and frames, and has
//! [`ayre_proto::node::target`] perform them on the port's memory.
//!
//! It runs within the port's `progress`, or in a thread of its own. A connection without room for
//! answers or notifications waits with its next command, and delays no other connection.
mod messages;

use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::map::Mapping;
use crate::mem::page::Sleeper;
use crate::mem::word::Word;
use crate::peer::contact::Link;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::command::{COMMAND_BYTES, Head, Words};
use ayre_proto::deposit::message::Posted;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::{RECORD_MAX, TABLE_SLOTS};
use ayre_proto::node::notes::Notes;
use ayre_proto::node::target::{CommandLane, Delivery, Exchange, Exposed, Resources, Target};
use ayre_proto::notify::{Notification, Packed};
use ayre_proto::units::{Extent, PeerId};
use ayre_proto::xlate::Table;
use messages::Inlets;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most commands of one connection that are served before the next connection's turn.
// spec: PROG-4
const BURST: usize = 32;

/// One mediated connection, at its target.
#[derive(Debug)]
pub(crate) struct Served {
    link: Arc<Link>,
    /// None where a carrier brings the commands and takes the answers.
    lanes: Option<Lanes>,
    account: Account,
}

/// The lanes for a peer's commands and their answers, on one host.
#[derive(Debug)]
struct Lanes {
    requests: LaneReceiver,
    responses: LaneSender,
}

/// The progress of a peer's commands, and the words that show it to the peer.
#[derive(Debug)]
struct Account {
    target: Target,
    /// Shows the initiator how many commands were executed.
    done: Word,
    /// How many of the notifications raised for this peer the program has taken.
    taken: Arc<AtomicU64>,
    /// Shows the initiator how many notifications were taken.
    noted: Word,
}

impl Served {
    pub(crate) fn new(
        peer: PeerId,
        link: Arc<Link>,
        (inward, out): (&Direction, &Direction),
        taken: Arc<AtomicU64>,
    ) -> Self {
        let lanes =
            Lanes { requests: inward.requests().receiver(), responses: out.responses().sender() };
        Self { lanes: Some(lanes), ..Self::carried(peer, link, inward, taken) }
    }

    /// A connection with a peer of another host.
    pub(crate) fn carried(
        peer: PeerId,
        link: Arc<Link>,
        inward: &Direction,
        taken: Arc<AtomicU64>,
    ) -> Self {
        let (done, noted) = (inward.control(Control::Done), inward.control(Control::Noted));
        let account = Account { target: Target::new(peer), done, taken, noted };
        Self { link, lanes: None, account }
    }
}

/// The replies and notifications of a connection with lanes.
struct OverLanes<'a> {
    lanes: &'a mut Lanes,
    staging: &'a mut [u8; RECORD_MAX],
}

impl CommandLane for OverLanes<'_> {
    #[inline]
    fn peek(&self) -> Option<Result<Status, Malformed>> {
        self.lanes.requests.peek()
    }

    #[inline]
    fn head(&self) -> Words {
        self.lanes.requests.head()
    }

    #[inline]
    fn consume(&mut self, record: &Status) {
        self.lanes.requests.consume(record);
    }
}

impl Exchange for OverLanes<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        self.lanes.requests.copy(COMMAND_BYTES / 8, into);
    }

    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        let data = &mut self.staging[..len];
        self.lanes.requests.copy(COMMAND_BYTES / 8, data);
        write(data);
    }

    fn longest(&self) -> usize {
        RECORD_MAX.min(self.lanes.responses.capacity())
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.lanes.responses.reserve(len).is_ok()
    }

    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let data = &mut self.staging[..len];
        fill(data);
        let pushed = self.lanes.responses.push((Kind::Response, 0), head, data);
        debug_assert!(pushed.is_ok(), "has_room() came first");
    }
}

/// A port's regions and translation table, and the mediated connections that use them.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) table: Table,
    /// Registered memory, by region number.
    pub(crate) regions: Vec<Option<Arc<Mapping>>>,
    /// Inlets into depots, by the slots of their keys.
    inlets: Inlets,
    /// The connections by peer number.
    served: Vec<Option<Served>>,
    news: News,
    /// A copy of bytes on the way between a lane and a region, to which no reference may point.
    staging: Box<[u8; RECORD_MAX]>,
}

/// The news that the port has not taken yet.
#[derive(Debug)]
struct News {
    /// Notifications for the port's queue; the initiators' credits bound their number.
    notes: VecDeque<Packed>,
    malformed: Vec<PeerId>,
    /// Whether there is news: changed under the responder's lock, read without it.
    any: Arc<AtomicBool>,
}

pub(crate) fn lock(responder: &Mutex<Responder>) -> MutexGuard<'_, Responder> {
    responder.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Responder {
    /// `any_news` shows the port, without a lock, whether [`Responder::tell`] has anything.
    pub(crate) fn new(any_news: Arc<AtomicBool>) -> Self {
        Self {
            table: Table::new(TABLE_SLOTS),
            regions: Vec::new(),
            inlets: Inlets::default(),
            served: Vec::new(),
            news: News { notes: VecDeque::new(), malformed: Vec::new(), any: any_news },
            staging: Box::new([0; RECORD_MAX]),
        }
    }

    pub(crate) fn add(&mut self, served: Served) {
        let index = served.account.target.peer().index();
        if self.served.len() <= index {
            self.served.resize_with(index + 1, || None);
        }
        self.served[index] = Some(served);
    }

    /// Stops serving a peer, whose connection has ended.
    pub(crate) fn remove(&mut self, peer: PeerId) {
        if let Some(served) = self.served.get_mut(peer.index()) {
            *served = None;
        }
        // It would end a later connection of this number.
        self.news.malformed.retain(|malformed| *malformed != peer);
    }

    /// Performs the commands that a peer has posted, as far as there is room for its answers,
    /// before the peer is removed.
    // spec: LIFE-12
    pub(crate) fn serve_out(&mut self, peer: PeerId) {
        let Self { table, regions, inlets, served, news, staging } = self;
        let Some(Some(Served { lanes: Some(lanes), account, .. })) = served.get_mut(peer.index())
        else {
            return;
        };
        let mut reach = Reach { regions, inlets, news };
        for _ in 0..lanes.requests.lines() {
            if !matches!(account.serve_next((lanes, staging), table, &mut reach), Ok(true)) {
                break;
            }
        }
        account.publish();
    }

    /// Performs a command that a carrier has brought on a connection, with `len` bytes of data.
    /// False where there is no room for its answer now, or the connection is not served.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer sends this.
    pub(crate) fn perform(
        &mut self,
        (peer, link): (PeerId, &Arc<Link>),
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let Self { table, regions, inlets, served, news, .. } = self;
        let Some(Some(served)) = served.get_mut(peer.index()) else { return Ok(false) };
        if !Arc::ptr_eq(&served.link, link) {
            // The number belongs to another connection now.
            return Ok(false);
        }
        let mut reach = Reach { regions, inlets, news };
        let performed = served.account.perform(command, table, &mut reach, exchange)?;
        if performed {
            served.account.publish();
        }
        Ok(performed)
    }

    /// Writes the data of a put before its turn. The command has no other effect until its turn,
    /// and is then checked anew. False, without effect, where it is no put or would fault.
    // spec: WIRE-13
    pub(crate) fn place(
        &mut self,
        (peer, link): (PeerId, &Arc<Link>),
        command: (&Words, &[u8]),
    ) -> bool {
        let Self { table, regions, inlets, served, news, .. } = self;
        let Some(Some(Served { link: own, account, .. })) = served.get(peer.index()) else {
            return false;
        };
        let taken = &account.taken;
        let mut resources = PeerReach { reach: &mut Reach { regions, inlets, news }, taken };
        Arc::ptr_eq(own, link) && account.target.place(command, table, &mut resources)
    }

    /// Moves new notifications to the port's queue, whose room the initiators' credits guarantee.
    /// Returns the peers that have sent something malformed, which are not served any more.
    pub(crate) fn tell(&mut self, notes: &mut Notes) -> Vec<PeerId> {
        // Relaxed: under the lock, as all changes are.
        if !self.news.any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.news.any.store(false, Ordering::Relaxed);
        notes.hear(&mut self.news.notes);
        std::mem::take(&mut self.news.malformed)
    }

    /// Serves the commands that have arrived from any peer. Returns whether there were any.
    // spec: PROG-2
    pub(crate) fn serve_all(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.served.len() {
            any |= self.serve(index);
        }
        any | self.waits_for_depot()
    }

    /// Serves the commands that have arrived from the peer of a number, at most one burst. Returns
    /// whether there were any.
    // spec: PROG-2, PROG-4
    #[inline(always)]
    pub(crate) fn serve(&mut self, index: usize) -> bool {
        match self.served.get(index) {
            Some(Some(Served { lanes: Some(lanes), .. })) => {
                lanes.requests.peek().is_some() && self.serve_arrived(index)
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn serve_arrived(&mut self, index: usize) -> bool {
        let Self { table, regions, inlets, served, news, staging } = self;
        let slot = &mut served[index];
        let Some(one) = slot else { return false };
        let mut reach = Reach { regions, inlets, news };
        match one.serve(staging, table, &mut reach) {
            Ok(any) => any,
            Err(Malformed) => {
                news.add_malformed(one.account.target.peer());
                *slot = None;
                true
            }
        }
    }
}

impl News {
    fn add_note(&mut self, notification: Notification) {
        self.notes.push_back(notification.pack());
        // Relaxed: its reader takes the lock next. A reader that knows by DONE-A1 that the command
        // was executed also sees the flag, which precedes DONE-R1.
        self.any.store(true, Ordering::Relaxed);
    }

    #[cold]
    fn add_malformed(&mut self, peer: PeerId) {
        self.malformed.push(peer);
        // Relaxed: its reader takes the lock next.
        self.any.store(true, Ordering::Relaxed);
    }
}

/// The port's state that commands of all peers use.
struct Reach<'a> {
    regions: &'a [Option<Arc<Mapping>>],
    inlets: &'a mut Inlets,
    news: &'a mut News,
}

impl Served {
    // spec: ORD-7, ORD-9
    fn serve(
        &mut self,
        staging: &mut [u8; RECORD_MAX],
        table: &Table,
        reach: &mut Reach<'_>,
    ) -> Result<bool, Malformed> {
        let Self { link, lanes: Some(lanes), account } = self else { return Ok(false) };
        let before = account.target.executed();
        for _ in 0..BURST {
            if !account.serve_next((lanes, staging), table, reach)? {
                break;
            }
        }
        if account.target.executed() == before {
            return Ok(false);
        }
        account.publish();
        link.kick(Sleeper::Port);
        Ok(true)
    }
}

impl Account {
    fn publish(&mut self) {
        if self.target.has_spared() {
            self.give_back_spared();
        }
        // DONE-R1: the effects and answers of all commands counted.
        self.done.store(self.target.executed(), Ordering::Release);
    }

    /// The program takes others at the same time: the higher count is the later one.
    // spec: DEP-27
    #[cold]
    fn give_back_spared(&mut self) {
        let spared = self.target.take_spared();
        // Relaxed: as the program's.
        let taken = self.taken.fetch_add(spared, Ordering::Relaxed) + spared;
        // NOTE-R1: what we check is told before.
        self.noted.fetch_max(taken, Ordering::Release);
    }

    /// Serves the command at the head of the lane.
    fn serve_next(
        &mut self,
        (lanes, staging): (&mut Lanes, &mut [u8; RECORD_MAX]),
        table: &Table,
        reach: &mut Reach<'_>,
    ) -> Result<bool, Malformed> {
        let Self { target, taken, .. } = self;
        target.serve(table, &mut PeerReach { reach, taken }, &mut OverLanes { lanes, staging })
    }

    fn perform(
        &mut self,
        command: (&Words, u64),
        table: &Table,
        reach: &mut Reach<'_>,
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let Self { target, taken, .. } = self;
        target.perform(command, table, &mut PeerReach { reach, taken }, exchange)
    }
}

fn memory<'a>(regions: &'a [Option<Arc<Mapping>>], extent: &Extent) -> &'a Arc<Mapping> {
    let region = regions.get(extent.region() as usize).and_then(Option::as_ref);
    region.expect("a live key's region is registered")
}

/// The state that commands of one peer use.
struct PeerReach<'a, 'b> {
    reach: &'a mut Reach<'b>,
    /// The number of notifications of this peer that the program has taken.
    taken: &'a AtomicU64,
}

impl Exposed for PeerReach<'_, '_> {
    fn write(&mut self, to: Extent, data: &[u8]) {
        memory(self.reach.regions, &to).write(to.offset(), data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        memory(self.reach.regions, &from).read(from.offset(), into);
    }

    fn store(&mut self, to: Extent, value: u64) {
        memory(self.reach.regions, &to).store(to.offset(), value);
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        memory(self.reach.regions, &at).atomic(at.offset(), atomic)
    }

    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery {
        let Reach { regions, inlets, .. } = &mut *self.reach;
        inlets.carry_out(posted, (at, memory(regions, &at)), exchange)
    }

    fn give(&self, into: &mut [u8]) {
        into.copy_from_slice(self.reach.inlets.read(into.len()));
    }
}

impl Resources for PeerReach<'_, '_> {
    fn notify(&mut self, notification: Notification) {
        self.reach.news.add_note(notification);
    }

    fn taken(&self) -> u64 {
        // Relaxed: NOTE-R1 came before the command at the head, which LANE-A1 has made visible.
        self.taken.load(Ordering::Relaxed)
    }
}
