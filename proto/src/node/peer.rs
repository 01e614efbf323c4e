//! A peer as its node has it: operations on it, its commands, and the connection.
//!
//! ```text
//!   operation --> initiator --> way ==== frames of a link, or lanes of this host ==== peer
//!   ended     <--           <-- responses <--
//!   memory    <-- target    <-- commands  <--
//! ```
use super::carrier::Perform;
use super::connection::{Connection, Lines, Progress};
use super::effects::{Landed, LaneName, Line, Program, Reach, Shared, Wire, WordName};
use super::initiator::{Begun, Commands, Initiator, Refused};
use super::lane::Entry;
use super::linked::{Linked, StepContext};
use super::message;
use super::posting::{Order, Posting, Source, Way};
use super::ring::Rings;
use super::same_host::SameHost;
use super::target::{Exchange, Target};
use crate::command::Words;
use crate::deposit::message::Posted;
use crate::execute::{Action, Command};
use crate::fault::Fault;
use crate::lane::{Kind, Malformed, longest_of_queue};
use crate::limits::{LANE_LINES_MAX, LANE_LINES_MIN};
use crate::link::frame::Header;
use crate::link::life::State;
use crate::link::looks::Looks;
use crate::node::carrier::frames::Memory;
use crate::node::carrier::lanes::{Offer, OfferKind, RxLane, TxLane};
use crate::node::carrier::{LINES_MAX, QUEUES_MAX};
use crate::units::{PeerId, Ticket};
use crate::xlate::Table;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A program's operations on a peer.
type Operations<P> = Initiator<<P as Program>::Local, <P as Program>::Reply>;

/// A short message that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its sender's type tag.
    pub tag: u32,
    /// The bytes of the message.
    pub bytes: Vec<u8>,
}

/// A peer: what is under way to it, and how far its commands have come.
#[derive(Debug)]
pub struct Peer<M: Memory, P: Program> {
    number: PeerId,
    initiator: Operations<P>,
    target: Target,
    connection: Connection,
    way: Way<M>,
    /// The rest of the last operation that has found no room yet, and the memory of its data.
    unpushed: Option<(Commands, Option<P::Local>)>,
    /// Lines of all queues that were offered to it.
    queue_lines: u32,
    ended: Option<Fault>,
}

impl<M: Memory, P: Program> Peer<M, P> {
    /// A peer of another host, by an open link.
    pub(super) fn linked(number: PeerId, lines: &Lines, linked: Linked<M>) -> Self {
        Self::new(number, lines, Way::Linked(Box::new(linked)))
    }

    /// A peer of this host.
    pub(super) fn of_same_host(number: PeerId, lines: &Lines) -> Self {
        Self::new(number, lines, Way::SameHost(Box::new(SameHost::new(lines))))
    }

    fn new(number: PeerId, lines: &Lines, way: Way<M>) -> Self {
        Self {
            number,
            initiator: Initiator::new(),
            target: Target::new(number),
            connection: Connection::new(lines),
            way,
            unpushed: None,
            queue_lines: 0,
            ended: None,
        }
    }

    /// Invariants that hold between two steps, for all input of the peer.
    fn check(&self) {
        let is_over = self.ended.is_some();
        debug_assert!(
            !is_over || self.initiator.is_empty(),
            "what is under way ends with the peer"
        );
        debug_assert!(!is_over || self.unpushed.is_none(), "and nothing of it is posted any more");
        let is_under_way = self.unpushed.is_none() || !self.initiator.is_empty();
        debug_assert!(is_under_way, "what was not pushed is under way");
        let Progress { done, .. } = self.connection.here;
        debug_assert!(done <= self.target.executed(), "only what was executed is told of");
        debug_assert!(self.queue_lines <= LINES_MAX, "queues have a bound together");
    }

    /// Our operations on it.
    pub const fn initiator(&self) -> &Operations<P> {
        &self.initiator
    }

    /// Its commands here.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Progress on the peer's commands, as reported to it or about to be.
    pub const fn here(&self) -> Progress {
        self.connection.here
    }

    /// Progress on this node's commands, as the peer has reported it.
    pub const fn there(&self) -> Progress {
        self.connection.there
    }

    /// Whether all commands of what was posted have found room. If not, nothing more can be posted.
    pub const fn has_room(&self) -> bool {
        self.unpushed.is_none()
    }

    /// The reason why the connection has ended, if it has.
    pub const fn ended(&self) -> Option<Fault> {
        self.ended
    }

    /// The link with it, where it is of another host.
    pub fn link(&self) -> Option<&Linked<M>> {
        match &self.way {
            Way::Linked(linked) => Some(linked),
            Way::SameHost(_) => None,
        }
    }

    pub(super) fn link_mut(&mut self) -> Option<&mut Linked<M>> {
        match &mut self.way {
            Way::Linked(linked) => Some(linked),
            Way::SameHost(_) => None,
        }
    }

    /// Whether everything that was posted and sent has arrived, and progress on the peer's commands
    /// was reported.
    pub fn is_idle(&self) -> bool {
        let is_passed = match &self.way {
            Way::Linked(linked) => linked.is_idle(&self.connection),
            Way::SameHost(same_host) => !same_host.has_news(),
        };
        is_passed && self.unpushed.is_none() && self.initiator.is_empty()
    }

    /// The time when there is something to do, if nothing happens before.
    pub(super) fn deadline(&self) -> u64 {
        match &self.way {
            _ if self.is_over() => u64::MAX,
            Way::Linked(linked) => linked.deadline(),
            Way::SameHost(same_host) if same_host.has_news() => 0,
            Way::SameHost(_) => u64::MAX,
        }
    }

    /// Whether the connection has ended, and its link, which may have to say so, too.
    fn is_over(&self) -> bool {
        let is_closed = |link: &Linked<M>| matches!(link.end().state(), State::Closed(_));
        self.ended.is_some() && self.link().is_none_or(is_closed)
    }

    /// There may be something to do now.
    pub(super) const fn wake(&mut self) {
        match &mut self.way {
            Way::Linked(linked) => linked.wake(0),
            Way::SameHost(same_host) => same_host.wake(),
        }
    }
}

/// Calls of the program.
impl<M: Memory, P: Program> Peer<M, P> {
    fn parts<'a>(
        &'a mut self,
        program: &'a P,
        source: Source<'a, P::Local>,
    ) -> (&'a mut Operations<P>, Posting<'a, M, P>) {
        let Self { initiator, way, connection, .. } = self;
        let (responses, taken) = (connection.responses.capacity(), connection.there.noted);
        (initiator, Posting { way, responses, taken, program, source, has_pushed: false })
    }

    /// Begins an operation, and pushes what finds room of it.
    // spec: POST-1, POST-2, POST-6, PUT-4
    pub(super) fn post(
        &mut self,
        order: Order<P::Local>,
        is_batch: bool,
        program: &P,
    ) -> Result<Ticket, Refused> {
        if self.unpushed.is_some() {
            return Err(Refused::NoRoom);
        }
        let Order { command, shape, local } = order;
        let (initiator, mut posting) = self.parts(program, Source::Nothing);
        let limit = initiator.check_room(&command, &shape, is_batch, &mut posting)?;
        let is_get = matches!(command.action, Action::Get);
        let (memory, source) = if is_get { (local, None) } else { (None, local) };
        let Begun { ticket, commands, .. } = initiator.begin(&command, &shape, limit, memory);
        self.unpushed = Some((commands, source));
        self.push_more(program);
        debug_assert!(self.unpushed.is_none() || !is_batch, "a batch finds room for all of it");
        self.check();
        Ok(ticket)
    }

    /// A deposit message, whole.
    // spec: DEP-13, DEP-27
    pub(super) fn deposit(
        &mut self,
        posted: &Posted,
        data: &[u8],
        reply: Option<(P::Reply, usize)>,
        program: &P,
    ) -> Result<Ticket, Refused> {
        if self.unpushed.is_some() {
            return Err(Refused::NoRoom);
        }
        let (initiator, mut posting) = self.parts(program, Source::Call(data));
        initiator.check_message_room(posted, data.len(), &mut posting)?;
        let (_, ticket) = initiator.begin_message(posted, data.len(), reply, &mut posting);
        self.wake();
        self.check();
        Ok(ticket)
    }

    /// Makes sure of room for all operations of a batch.
    // spec: BATCH-2
    pub(super) fn check_batch(
        &mut self,
        commands: impl Iterator<Item = Command>,
        program: &P,
    ) -> Result<(), Refused> {
        if self.unpushed.is_some() {
            return Err(Refused::NoRoom);
        }
        let (initiator, mut posting) = self.parts(program, Source::Nothing);
        initiator.check_batch(commands, &mut posting)
    }

    /// Pushes what has found no room yet.
    // spec: PUT-4, PUT-5, GET-3
    fn push_more(&mut self, program: &P) {
        let Some((mut commands, source)) = self.unpushed.take() else { return };
        let from = source.as_ref().map_or(Source::Nothing, Source::Local);
        let (_, mut posting) = self.parts(program, from);
        let is_done = commands.push(&mut posting);
        if posting.has_pushed {
            self.wake();
        }
        self.unpushed = (!is_done).then_some((commands, source));
    }

    /// Sends a short message, behind what was posted before. False where the lane has no room.
    // spec: MSG-2, ORD-3
    pub(super) fn send(&mut self, tag: u32, data: &[u8]) -> bool {
        let gate = [self.initiator.posted()];
        let rest = (data.len(), |into: &mut [u8]| into.copy_from_slice(data));
        let has_room = self.connection.messages.push_with((Kind::GatedMessage, tag), gate, rest);
        if has_room {
            self.wake();
        }
        has_room
    }

    /// Takes the next message, if there is one and what was posted before it was executed.
    // spec: MSG-7, MSG-8, MSG-10, ORD-3, LIFE-12
    pub(super) fn receive(&mut self) -> Result<Option<Message>, Malformed> {
        let lane = &mut self.connection.incoming;
        let Some(entry) = lane.peek() else { return Ok(None) };
        let data = message::data_of(&entry.status(), true)?;
        let (gate, bytes) = entry.bytes.split_first_chunk().ok_or(Malformed)?;
        debug_assert!(bytes.len() == data, "behind the gate lies the message");
        if !message::is_due(u64::from_le_bytes(*gate), self.target.executed()) {
            return Ok(None);
        }
        let message = Message { tag: entry.tag, bytes: bytes.to_vec() };
        lane.take();
        self.wake();
        Ok(Some(message))
    }

    /// Bytes of the longest piece that its ring may ever have room for; none where there is none.
    pub fn longest_piece(&self) -> Option<usize> {
        self.connection.rings.as_ref().map(Rings::longest)
    }

    /// Whether the peer's ring can have a piece of `len` bytes at a position.
    ///
    /// # Errors
    /// [`Malformed`] where it cannot, or there is none.
    // spec: ENV-12
    pub fn check_ring(&self, at: u64, len: usize) -> Result<(), Malformed> {
        self.connection.rings.as_ref().ok_or(Malformed)?.check(at, len)
    }

    /// Writes a piece to the ring, for a message that names it. None where there is no room.
    // spec: ENV-11, WIRE-14
    pub(super) fn write_ring(&mut self, piece: &[u8]) -> Option<u64> {
        self.connection.rings.as_mut()?.write(piece)
    }

    /// Takes a piece that a message has named.
    // spec: ENV-12, WIRE-14
    pub(super) fn take_ring(
        &mut self,
        piece: (u64, usize),
        into: &mut [u8],
    ) -> Result<(), Malformed> {
        self.connection.rings.as_mut().ok_or(Malformed)?.take(piece, into)?;
        self.wake();
        Ok(())
    }

    /// Offers a queue of `lines` lines under a name; returns its number among those offered.
    // spec: QUE-1, WIRE-9
    pub(super) fn offer_queue(&mut self, name: u64, lines: u32) -> Option<usize> {
        let is_possible = (LANE_LINES_MIN..=LANE_LINES_MAX).contains(&(lines as usize));
        let waiting = self.connection.offers.iter().filter(|offer| offer.is_queue()).count();
        let number = self.connection.sinks.len() + waiting;
        let has_room = number < QUEUES_MAX && lines <= LINES_MAX - self.queue_lines;
        let words = [name, u64::from(lines), number as u64, 0, 0, 0, 0];
        let offer = Offer { kind: OfferKind::Queue, words };
        let is_offered = is_possible && has_room && self.offer(offer);
        self.queue_lines += if is_offered { lines } else { 0 };
        is_offered.then_some(number)
    }

    /// Offers something to the peer, now or as soon as it can go. False where too many offers
    /// wait.
    // spec: LIM-1
    pub(super) fn offer(&mut self, offer: Offer) -> bool {
        let has_room = self.connection.offers.len() < QUEUES_MAX;
        if has_room {
            self.connection.offers.push_back(offer);
            self.wake();
        }
        has_room
    }

    /// Appends a record to a queue of the peer's. False where it has no room.
    // spec: QUE-3, QUE-4
    pub(super) fn enqueue(&mut self, queue: usize, record: &[u8]) -> Result<bool, Fault> {
        let lane = self.connection.tx_lane(TxLane::Queue(queue)).ok_or(Fault::ForeignHandle)?;
        message::check_record(record.len(), longest_of_queue(lane.lines()))?;
        let has_room = lane.push(Kind::Record, 0, record);
        if has_room {
            self.wake();
        }
        Ok(has_room)
    }

    /// Takes the next record that the peer has enqueued.
    /// After one that no correct peer writes, nothing more is taken.
    // spec: QUE-5, QUE-8, LIFE-12, ERR-6
    pub(super) fn dequeue(&mut self, queue: usize) -> Result<Option<Vec<u8>>, Malformed> {
        let Some(lane) = self.connection.rx_lane(RxLane::Queue(queue)) else { return Ok(None) };
        let Some(entry) = lane.peek() else { return Ok(None) };
        message::record_of(&entry.status(), longest_of_queue(lane.lines()))
            .inspect_err(|_| lane.close())?;
        let record = lane.take().map(|entry| entry.bytes);
        self.wake();
        Ok(record)
    }

    /// Whether everything that was posted has ended; if not, the peer is asked to say so soon.
    pub(super) fn flush(&mut self) -> bool {
        let is_flushed = self.initiator.is_empty();
        if let Some(linked) = self.link_mut().filter(|_| !is_flushed) {
            linked.carrier().ask();
            linked.wake(0);
        }
        is_flushed
    }

    /// The program has taken a notification that the peer has raised.
    // spec: NOTI-9
    pub(super) fn take_note(&mut self) {
        self.connection.here.noted += 1;
        self.wake();
    }
}

/// Input from the peer.
impl<M: Memory, P: Program> Peer<M, P> {
    /// Looks after everything: takes in what had no room, sends what there is.
    pub(super) fn serve<W: Wire>(
        &mut self,
        now: u64,
        shared: &mut Shared<'_, P, W>,
    ) -> Result<(), Malformed> {
        if self.is_over() {
            return Ok(());
        }
        match &mut self.way {
            Way::Linked(_) => {
                self.step(shared, |linked, context| {
                    let served = linked.serve(now, context)?;
                    while linked.has_more() {
                        linked.load(now, context.lanes, context.network);
                    }
                    Ok(served)
                })?;
            }
            Way::SameHost(_) => self.serve_same_host(shared)?,
        }
        self.take_in(shared)
    }

    fn serve_same_host<W: Wire>(&mut self, shared: &mut Shared<'_, P, W>) -> Result<(), Malformed> {
        let number = self.number;
        let Self { target, connection, way, .. } = self;
        let Way::SameHost(same_host) = way else { return Ok(()) };
        let Shared { table, notes, program, wire } = shared;
        let taken = connection.here.noted;
        let performed =
            same_host.perform(target, table, &mut Reach { program: *program, notes, taken });
        self.sync();
        let Self { connection, way, .. } = self;
        let Way::SameHost(same_host) = way else { return Ok(()) };
        same_host.offer(number, connection, *wire);
        same_host.store(number, connection, *wire);
        performed
    }

    /// A step of the link, with everything around it.
    fn step<W: Wire, R>(
        &mut self,
        shared: &mut Shared<'_, P, W>,
        step: impl FnOnce(
            &mut Linked<M>,
            &mut StepContext<'_, Connection, Serving<'_, P>, Line<'_, W>>,
        ) -> Result<R, Malformed>,
    ) -> Result<Option<R>, Malformed> {
        let Self { number, target, connection, way, ended, .. } = self;
        let is_served = ended.is_none();
        let Way::Linked(linked) = way else { return Ok(None) };
        let Shared { table, notes, program, wire } = shared;
        let reach = Reach { program: *program, notes, taken: connection.here.noted };
        let target = &mut Serving { target, table, reach, is_served };
        let network = &mut Line { peer: *number, wire: *wire };
        let done = step(linked, &mut StepContext { lanes: connection, target, network })?;
        self.sync();
        Ok(Some(done))
    }

    /// Reports progress on the peer's commands from now on.
    // spec: DEP-27
    fn sync(&mut self) {
        let Progress { done, noted } = self.connection.here;
        debug_assert!(done <= self.target.executed(), "what was executed stays executed");
        let noted = noted + self.target.take_spared();
        let here = Progress { done: self.target.executed(), noted };
        if here != self.connection.here {
            self.connection.here = here;
            self.wake();
        }
    }

    /// A frame of the link has come.
    pub(super) fn on_frame<W: Wire>(
        &mut self,
        (header, payload): (&Header, &[u8]),
        looks: &Looks,
        shared: &mut Shared<'_, P, W>,
    ) -> Result<(), Malformed> {
        self.step(shared, |linked, context| {
            let heard = linked.on_header(header, looks, context.network)?;
            linked.on_payload(heard, (header, payload), looks.now(), context)
        })?;
        self.take_in(shared)
    }

    /// A peer of this host has stored a record.
    pub(super) fn on_record(&mut self, lane: LaneName, record: &Entry) -> Result<(), Malformed> {
        match &mut self.way {
            Way::SameHost(same_host) => same_host.on_record(lane, record, &mut self.connection),
            Way::Linked(_) => Err(Malformed),
        }
    }

    /// The peer has stored a word.
    pub(super) fn on_word(&mut self, word: WordName, value: u64) -> Result<(), Malformed> {
        // A count of notifications that cannot be is no credit, and needs no look here.
        if word == WordName::Done && value > self.initiator.posted() {
            return Err(Malformed);
        }
        match &mut self.way {
            Way::SameHost(same_host) => same_host.on_word(word, value, &mut self.connection),
            Way::Linked(_) => Err(Malformed),
        }
    }

    /// The peer offers a queue or a capability.
    // spec: WIRE-9
    pub(super) fn on_offer(&mut self, offer: Offer) -> Result<(), Malformed> {
        match self.way {
            Way::SameHost(_) if self.ended.is_none() => self.connection.take_offer(offer),
            Way::SameHost(_) => Ok(()),
            Way::Linked(_) => Err(Malformed),
        }
    }

    /// Takes the peer's answers, reports and offers, and then pushes commands for which there is
    /// room.
    // spec: NOTI-3, NOTI-4, LANE-10
    pub(super) fn take_in<W>(&mut self, shared: &mut Shared<'_, P, W>) -> Result<(), Malformed> {
        if self.ended.is_some() {
            return Ok(());
        }
        let Self { initiator, connection, .. } = self;
        let done = connection.there.done;
        let responses = &mut connection.responses;
        let program = &mut *shared.program;
        let taken = initiator.take_in(done, None, &mut Landed { responses, program })?;
        if taken.has_room {
            // What had none in the lane may have it now.
            self.wake();
        }
        while let Some(ended) = self.initiator.pop() {
            shared.notes.end(self.number, &ended);
            shared.program.ended(self.number, &ended);
        }
        while let Some(offer) = self.connection.offered.pop_front() {
            shared.program.offered(self.number, offer);
        }
        self.push_more(shared.program);
        self.check();
        Ok(())
    }

    /// The reason why the link has ended, if it has and the connection has not.
    // spec: LIFE-11, LIFE-22
    pub(super) fn closed(&self) -> Option<Fault> {
        let State::Closed(why) = self.link()?.end().state() else { return None };
        self.ended.is_none().then(|| why.fault())
    }

    /// The connection has ended, and all operations under way with it. Records that have arrived
    /// can still be taken.
    // spec: LIFE-11, LIFE-12, LIFE-18, ERR-4
    pub(super) fn end<W>(&mut self, why: Fault, shared: &mut Shared<'_, P, W>) {
        debug_assert!(self.ended.is_none(), "a connection ends once");
        self.ended = Some(why);
        self.unpushed = None;
        while let Some(ended) = self.initiator.abandon(why) {
            shared.notes.end(self.number, &ended);
            shared.program.ended(self.number, &ended);
        }
        if let Some(linked) = self.link_mut() {
            linked.abort();
        }
        shared.program.gone(self.number, why);
        self.check();
    }
}

/// The target that performs the peer's commands.
struct Serving<'a, P> {
    target: &'a mut Target,
    table: &'a Table,
    reach: Reach<'a, P>,
    /// Whether its connection is alive.
    is_served: bool,
}

impl<P: Program> Perform for Serving<'_, P> {
    fn perform(
        &mut self,
        command: (&Words, u64),
        exchange: &mut impl Exchange,
    ) -> Result<bool, Malformed> {
        let Self { target, table, reach, is_served } = self;
        if *is_served { target.perform(command, table, reach, exchange) } else { Ok(false) }
    }

    fn place(&mut self, command: (&Words, &[u8])) -> bool {
        self.is_served && self.target.place(command, self.table, &mut self.reach)
    }
}
