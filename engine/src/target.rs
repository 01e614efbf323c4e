//! The target's engine on mediated connections: takes commands, checks them, performs them.
//!
//! Runs in the port's own `progress`, or in a thread of its own. A connection whose answers or
//! notifications find no room waits, command by command, and no other connection notices.
mod messages;

use crate::mem::lane::{LaneReceiver, LaneSender};
use crate::mem::layout::{Control, Direction};
use crate::mem::map::Mapping;
use crate::mem::page::Sleeper;
use crate::mem::word::Word;
use crate::peer::contact::Link;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES, Request, Response};
use ayre_proto::execute::{Action, Command, Effects, NOWHERE, execute};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::limits::{LINE_PAYLOAD, NOTES_UNREAD_MAX, RECORD_MAX, TABLE_SLOTS};
use ayre_proto::notify::{Notification, Operation, Packed};
use ayre_proto::units::{Extent, PeerId};
use ayre_proto::xlate::Table;
use messages::Inlets;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// Commands of one connection that are served before the next has its turn.
// spec: PROG-4
const BURST: usize = 32;

/// One mediated connection as its target serves it.
#[derive(Debug)]
pub(crate) struct Served {
    link: Arc<Link>,
    /// None where a carrier brings the commands and takes the answers.
    lanes: Option<Lanes>,
    account: Account,
}

/// Where a peer of this host writes its commands, and reads the answers.
#[derive(Debug)]
struct Lanes {
    requests: LaneReceiver,
    responses: LaneSender,
}

/// How far a peer's commands have come.
#[derive(Debug)]
struct Account {
    peer: PeerId,
    /// Tells the initiator how many commands were executed.
    done: Word,
    executed: u64,
    /// What the program has taken of the notifications raised for this peer.
    taken: Arc<AtomicU64>,
    /// Notifications raised for this peer's commands, or that might have been.
    noted: u64,
    /// Tells the initiator how many notifications are no more.
    gone: Word,
    /// Of those that might have been raised and were not, what has not been told yet.
    spared: u64,
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

    /// A peer of another host.
    pub(crate) fn carried(
        peer: PeerId,
        link: Arc<Link>,
        inward: &Direction,
        taken: Arc<AtomicU64>,
    ) -> Self {
        let (done, gone) = (inward.control(Control::Done), inward.control(Control::Noted));
        let account = Account { peer, done, executed: 0, taken, noted: 0, gone, spared: 0 };
        Self { link, lanes: None, account }
    }
}

/// How the data of a command comes, and how its answer goes.
pub(crate) trait Exchange {
    /// Copies the data of a command that is this long out.
    fn bring(&mut self, into: &mut [u8]);
    /// Puts the command's data in place.
    fn deposit(&mut self, into: &Mapping, offset: u64, len: usize);
    /// Bytes of the longest answer.
    fn longest(&self) -> usize;
    /// Whether an answer of `len` bytes can be given now.
    fn has_room(&mut self, len: usize) -> bool;
    /// Gives an answer, for which there is room; `fill` writes the data behind its head.
    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8]));
}

/// Of an answer.
pub(crate) type Head = [u64; RESPONSE_BYTES / 8];

/// Through lanes.
struct OverLanes<'a> {
    lanes: &'a mut Lanes,
    staging: &'a mut [u8; RECORD_MAX],
}

impl Exchange for OverLanes<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        self.lanes.requests.copy(COMMAND_BYTES / 8, into);
    }

    fn deposit(&mut self, into: &Mapping, offset: u64, len: usize) {
        let data = &mut self.staging[..len];
        self.lanes.requests.copy(COMMAND_BYTES / 8, data);
        into.write(offset, data);
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

/// A port's regions and translation table, and the mediated connections that reach them.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) table: Table,
    /// Registered memory, by region number.
    pub(crate) regions: Vec<Option<Arc<Mapping>>>,
    /// Ways into depots, by the slots of their keys.
    inlets: Inlets,
    /// By peer number.
    served: Vec<Option<Served>>,
    news: News,
    /// On the way between a lane and a region, to whose bytes no reference may point.
    staging: Box<[u8; RECORD_MAX]>,
}

/// What the port has not heard of yet.
#[derive(Debug)]
struct News {
    /// On their way to the port's notification queue; bounded by the initiators' credits.
    notes: VecDeque<Packed>,
    malformed: Vec<PeerId>,
    /// Whether there is any: changed under the responder's lock, read without it.
    any: Arc<AtomicBool>,
}

pub(crate) fn lock(responder: &Mutex<Responder>) -> MutexGuard<'_, Responder> {
    responder.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Responder {
    /// `any_news` tells the port, without a lock, whether [`Responder::tell`] has anything.
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
        let index = served.account.peer.index();
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

    /// Performs what a peer has posted, as far as its answers find room, before it is removed.
    // spec: LIFE-12
    pub(crate) fn serve_out(&mut self, peer: PeerId) {
        let Self { table, regions, inlets, served, news, staging } = self;
        let Some(Some(Served { lanes: Some(lanes), account, .. })) = served.get_mut(peer.index())
        else {
            return;
        };
        let mut target = Target { table, regions, inlets, news };
        for _ in 0..lanes.requests.lines() {
            if !matches!(account.serve_next(lanes, staging, &mut target), Ok(true)) {
                break;
            }
        }
        account.count_done();
    }

    /// Performs the command that a carrier has brought on a connection, with so many bytes of data.
    /// False where it finds no room for its answer now, or the connection is not served.
    ///
    /// # Errors
    /// [`Malformed`] where no correct peer writes that.
    pub(crate) fn perform(
        &mut self,
        (peer, link): (PeerId, &Arc<Link>),
        (head, data): (&[u8; COMMAND_BYTES], u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let Self { table, regions, inlets, served, news, .. } = self;
        let Some(Some(served)) = served.get_mut(peer.index()) else { return Ok(false) };
        if !Arc::ptr_eq(&served.link, link) {
            // The number belongs to another connection now, or still.
            return Ok(false);
        }
        let words = words_of(head);
        let mut target = Target { table, regions, inlets, news };
        let performed = served.account.perform_one((&words, data), exchange, &mut target)?;
        if performed {
            served.account.count_done();
        }
        Ok(performed)
    }

    /// Puts the data of a put in place, whose turn has not come. Nothing else of the command
    /// happens before that, and then all is checked anew. False, and nothing has changed, where it
    /// is no put or would be a fault.
    // spec: WIRE-13
    pub(crate) fn place(
        &mut self,
        (peer, link): (PeerId, &Arc<Link>),
        head: &[u8; COMMAND_BYTES],
        data: &[u8],
    ) -> bool {
        let Self { table, regions, inlets, served, news, .. } = self;
        let Some(Some(served)) = served.get(peer.index()) else { return false };
        let parsed = Request::parse(&words_of(head), data.len() as u64);
        let Ok(Request { command, .. }) = parsed else { return false };
        if !Arc::ptr_eq(&served.link, link) || command.action != Action::Put {
            return false;
        }
        let translated = Target { table, regions, inlets, news }.translate(peer, &command);
        let Ok(extent) = translated else { return false };
        memory(regions, &extent).write(extent.offset(), data);
        true
    }

    /// Moves new notifications to the port's queue, whose room is bounded by the credit that each
    /// initiator has. Returns the peers that wrote what no correct peer writes; they are served no
    /// more.
    pub(crate) fn tell(&mut self, notifications: &mut VecDeque<Packed>) -> Vec<PeerId> {
        // Relaxed: under the lock, as all changes are.
        if !self.news.any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.news.any.store(false, Ordering::Relaxed);
        notifications.append(&mut self.news.notes);
        std::mem::take(&mut self.news.malformed)
    }

    /// Serves what has arrived from any peer. Returns whether there was anything.
    // spec: PROG-2
    pub(crate) fn serve_all(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.served.len() {
            any |= self.serve(index);
        }
        any | self.waits_for_depot()
    }

    /// Serves what has arrived from the peer of a number, as far as its turn goes. Returns whether
    /// there was anything.
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
        let mut target = Target { table, regions, inlets, news };
        match one.serve(staging, &mut target) {
            Ok(any) => any,
            Err(Malformed) => {
                news.add_malformed(one.account.peer);
                *slot = None;
                true
            }
        }
    }
}

impl News {
    fn add_note(&mut self, notification: Notification) {
        self.notes.push_back(notification.pack());
        // Relaxed: whoever reads it takes the lock next. One who knows by DONE-A1 that the command
        // was executed also sees the flag, which precedes DONE-R1.
        self.any.store(true, Ordering::Relaxed);
    }

    #[cold]
    fn add_malformed(&mut self, peer: PeerId) {
        self.malformed.push(peer);
        // Relaxed: as above.
        self.any.store(true, Ordering::Relaxed);
    }
}

struct Target<'a> {
    table: &'a Table,
    regions: &'a [Option<Arc<Mapping>>],
    inlets: &'a mut Inlets,
    news: &'a mut News,
}

impl Served {
    // spec: ORD-7, ORD-9
    fn serve(
        &mut self,
        staging: &mut [u8; RECORD_MAX],
        target: &mut Target<'_>,
    ) -> Result<bool, Malformed> {
        let Self { link, lanes: Some(lanes), account } = self else { return Ok(false) };
        let before = account.executed;
        for _ in 0..BURST {
            if !account.serve_next(lanes, staging, target)? {
                break;
            }
        }
        if account.executed == before {
            return Ok(false);
        }
        account.count_done();
        link.kick(Sleeper::Port);
        Ok(true)
    }
}

impl Account {
    fn count_done(&mut self) {
        if self.spared > 0 {
            self.give_back_spared();
        }
        // DONE-R1: the effects and answers of all commands counted.
        self.done.store(self.executed, Ordering::Release);
    }

    /// The program here takes others meanwhile: the higher count is the later one.
    // spec: DEP-27
    #[cold]
    fn give_back_spared(&mut self) {
        // Relaxed: as the program's.
        let taken = self.taken.fetch_add(self.spared, Ordering::Relaxed) + self.spared;
        self.spared = 0;
        // NOTE-R1: what we check is told before.
        self.gone.fetch_max(taken, Ordering::Release);
    }

    /// Serves the command at the head of the lane. False where there is none, or no room for what
    /// it causes.
    // spec: ORD-1, ERR-5
    fn serve_next(
        &mut self,
        lanes: &mut Lanes,
        staging: &mut [u8; RECORD_MAX],
        target: &mut Target<'_>,
    ) -> Result<bool, Malformed> {
        let Some(status) = lanes.requests.peek() else { return Ok(false) };
        let status = status?;
        let data = (status.len as usize).checked_sub(COMMAND_BYTES).ok_or(Malformed)?;
        if status.kind != Kind::Command {
            return Err(Malformed);
        }
        let words = lanes.requests.head();
        if !self.perform_one((&words, data as u64), &mut OverLanes { lanes, staging }, target)? {
            return Ok(false);
        }
        lanes.requests.consume(&status);
        Ok(true)
    }

    /// Performs a command unless what it causes has no room.
    fn perform_one(
        &mut self,
        (words, data): (&[u64; COMMAND_BYTES / 8], u64),
        exchange: &mut impl Exchange,
        target: &mut Target<'_>,
    ) -> Result<bool, Malformed> {
        if words[0] as u8 == Operation::Deposit as u8 {
            return self.perform_message(words, data, exchange, target);
        }
        let request = Request::parse(words, data);
        if !self.has_room(&request, exchange)? {
            return Ok(false);
        }
        self.perform(request, exchange, target);
        self.executed += 1;
        Ok(true)
    }

    /// Everything that the command may cause finds room before it begins.
    // spec: LANE-10
    fn has_room(
        &self,
        request: &Result<Request, Fault>,
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let answer = match request {
            Ok(Request { command: Command { action: Action::Get, claim, .. }, .. }) => {
                let most = exchange.longest() - RESPONSE_BYTES;
                let len = usize::try_from(claim.len).map_err(|_| Malformed)?;
                if len > most {
                    return Err(Malformed);
                }
                RESPONSE_BYTES + len
            }
            _ => RESPONSE_BYTES,
        };
        if request.as_ref().is_ok_and(|r| r.command.note_at_target(self.peer).is_some()) {
            self.check_note_credit()?;
        }
        Ok(exchange.has_room(answer))
    }

    /// An initiator keeps count of its notifications that the program here has not taken yet, so
    /// that they never stand in the way of commands. One that does not is malformed.
    // spec: NOTI-11
    fn check_note_credit(&self) -> Result<(), Malformed> {
        // Relaxed: NOTE-R1 came before the command at the head, which LANE-A1 has made visible.
        let taken = self.taken.load(Ordering::Relaxed);
        let unread = self.noted.wrapping_sub(taken);
        if unread < NOTES_UNREAD_MAX { Ok(()) } else { Err(Malformed) }
    }

    fn perform(
        &mut self,
        request: Result<Request, Fault>,
        exchange: &mut impl Exchange,
        target: &mut Target<'_>,
    ) {
        let number = (self.executed + 1) as u32;
        let checked = request.and_then(|request| {
            let extent = target.translate(self.peer, &request.command)?;
            Ok((request, extent))
        });
        match checked {
            Ok((request, extent)) => {
                let initiator = self.peer;
                let mut fx = ServedFx { account: self, exchange, target, request, number };
                execute(&request.command, extent, initiator, &mut fx);
            }
            Err(fault) => {
                let head = Response { number, status: Status::Fault(fault), value: 0 }.encode();
                exchange.answer(head, 0, |_| {});
            }
        }
    }
}

fn words_of(head: &[u8; COMMAND_BYTES]) -> [u64; COMMAND_BYTES / 8] {
    let (words, _) = head.as_chunks();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
}

impl Target<'_> {
    // spec: CAP-7, ERR-3
    fn translate(&self, peer: PeerId, command: &Command) -> Result<Extent, Fault> {
        command.check()?;
        if command.action == Action::Notify {
            return Ok(NOWHERE);
        }
        self.table.check(peer, &command.claim, command.rights())
    }
}

fn memory<'a>(regions: &'a [Option<Arc<Mapping>>], extent: &Extent) -> &'a Arc<Mapping> {
    let region = regions.get(extent.region() as usize).and_then(Option::as_ref);
    region.expect("a live key's region is registered")
}

/// Performs a command on the target's memory, at the target.
struct ServedFx<'a, 'b, X> {
    account: &'a mut Account,
    exchange: &'a mut X,
    target: &'a mut Target<'b>,
    request: Request,
    number: u32,
}

impl<X: Exchange> Effects for ServedFx<'_, '_, X> {
    fn deposit(&mut self, to: Extent) {
        let into = memory(self.target.regions, &to);
        self.exchange.deposit(into, to.offset(), to.len() as usize);
    }

    fn collect(&mut self, from: Extent) {
        let (number, value) = (self.number, self.request.cookie);
        let head = Response { number, status: Status::Ok, value }.encode();
        let memory = memory(self.target.regions, &from);
        let len = from.len() as usize;
        self.exchange.answer(head, len, |bytes| memory.read(from.offset(), bytes));
    }

    fn store(&mut self, to: Extent, value: u64) {
        memory(self.target.regions, &to).store(to.offset(), value);
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        memory(self.target.regions, &at).atomic(at.offset(), atomic)
    }

    // spec: FCAA-3
    fn answer(&mut self, fetched: Fetched) {
        let status = if fetched.success { Status::Ok } else { Status::Declined };
        let head = Response { number: self.number, status, value: fetched.value }.encode();
        self.exchange.answer(head, 0, |_| {});
    }

    fn notify(&mut self, notification: Notification) {
        self.target.news.add_note(notification);
        self.account.noted += 1;
    }
}

const _: () = assert!(COMMAND_BYTES <= LINE_PAYLOAD, "a command's head lies in one line");
