//! The operations of one node's program at another node, and their expected results.
use super::program::Program;
use super::wire::LINES;
use crate::dice::Dice;
use crate::pair::oracle::{Expected, Lands, Oracle, UnderWay, frees_credit};
use crate::pair::port::LEN;
use crate::pair::random_op::{Known, RandomOp, RandomOps};
use crate::plain_memory::Heap;
use ayre_proto::deposit::message::Posted;
use ayre_proto::execute::Action;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::longest_of_queue;
use ayre_proto::limits::{NOTES_UNREAD_MAX, NOTIFICATIONS_MAX, PENDING_MAX};
use ayre_proto::node;
use ayre_proto::node::PostError;
use ayre_proto::node::initiator::{Ended, Refused};
use ayre_proto::node::peer::Peer;
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

pub(crate) type Node = node::Node<Heap, Program>;

/// Where operations begin that reach the same bytes.
const NARROW: u64 = 64;
/// Lines of the queue that each node offers each other one.
pub(crate) const QUEUE_LINES: u32 = 40;

/// One direction: from an initiator to its target.
#[derive(Debug)]
pub(crate) struct Traffic {
    initiator: usize,
    target: PeerId,
    pub(crate) oracle: Oracle,
    under_way: VecDeque<UnderWay>,
    /// Notifications that the target's program is going to see, and the initiator's.
    notes: VecDeque<Notification>,
    own_notes: VecDeque<Notification>,
    /// Notifications that the target's program may not have taken.
    noted: u64,
    /// Messages and records that have not been taken; each message with the commands before it.
    messages: VecDeque<(u64, u32, Vec<u8>)>,
    records: VecDeque<Vec<u8>>,
    /// The target's queue was offered.
    pub(crate) has_queue: bool,
    /// Operations reach the same bytes again and again.
    is_narrow: bool,
    /// The target has gone.
    pub(crate) gone: Option<Fault>,
    pub(crate) ended: usize,
    pub(crate) refused: usize,
    pub(crate) faulted: usize,
    pub(crate) received: u64,
    pub(crate) dequeued: u64,
}

impl Traffic {
    pub(crate) fn new(initiator: usize, target: usize, keys: Vec<Known>, seed: u64) -> Self {
        let mut oracle = Oracle::new(PeerId(initiator as u16));
        oracle.keys = keys;
        Self {
            initiator,
            target: PeerId(target as u16),
            oracle,
            under_way: VecDeque::new(),
            notes: VecDeque::new(),
            own_notes: VecDeque::new(),
            noted: 0,
            messages: VecDeque::new(),
            records: VecDeque::new(),
            has_queue: false,
            is_narrow: seed.is_multiple_of(2),
            gone: None,
            ended: 0,
            refused: 0,
            faulted: 0,
            received: 0,
            dequeued: 0,
        }
    }

    /// Checks that a refusal of `count` operations has a reason. Only the node knows how full
    /// frames and lanes are.
    fn refuse(&mut self, error: PostError, count: usize) {
        let reasons = match error {
            PostError::Refused(Refused::TooManyOutstanding) => {
                self.under_way.len() + count > PENDING_MAX
            }
            PostError::Refused(Refused::NoRoom) => true,
            PostError::Refused(Refused::TooLong) => false,
            PostError::NotificationsFull => self.own_notes.len() < NOTIFICATIONS_MAX,
            PostError::Fault(fault) => self.gone == Some(fault),
        };
        assert!(reasons, "{error:?} without a reason");
        self.refused += 1;
    }

    /// An operation was posted, and raises a notification at its target or may do so.
    fn began(&mut self, expected: Expected, lands: Lands, may_notify: bool) {
        assert_eq!(self.gone, None, "nothing is posted to who has gone");
        assert!(self.under_way.len() < PENDING_MAX, "so many operations are under way");
        self.noted += u64::from(may_notify);
        self.notes.extend(expected.note);
        self.under_way.push_back(UnderWay { expected, lands });
    }

    fn order(&self, op: &RandomOp, program: &mut Program) -> (node::Order<usize>, Lands) {
        let RandomOp { command, shape, local } = op;
        let has_end = matches!(command.action, Action::Put | Action::Get);
        let place = has_end.then_some(program.buffers.len());
        program.buffers.extend(place.map(|_| local.clone()));
        let lands = match place {
            Some(place) if command.action == Action::Get => Lands::Buffer(place),
            _ => Lands::Nowhere,
        };
        (node::Order { command: *command, shape: *shape, local: place }, lands)
    }

    fn next(&self, dice: &mut Dice) -> RandomOp {
        let mut op = RandomOps { dice, keys: &self.oracle.keys }.next();
        if self.is_narrow && op.command.claim.offset <= LEN {
            op.command.claim.offset %= NARROW;
        }
        op
    }

    /// Posts any operation.
    pub(crate) fn post(&mut self, dice: &mut Dice, node: &mut Node, program: &mut Program) {
        let op = self.next(dice);
        let (order, lands) = self.order(&op, program);
        // What no handle lets through is refused at once.
        let is_checked = op.command.check();
        match (node.post(self.target, order, program), is_checked) {
            (posted, Err(fault)) => assert_eq!(posted, Err(PostError::Fault(fault))),
            (Err(error), Ok(())) => self.refuse(error, 1),
            (Ok(_), Ok(())) => self.posted(&op, lands),
        }
    }

    fn posted(&mut self, op: &RandomOp, lands: Lands) {
        let RandomOp { command, shape, local } = op;
        let expected = self.oracle.apply(command, shape, local);
        self.began(expected, lands, command.notifies_target());
    }

    /// Several operations, all of them or none.
    pub(crate) fn batch(&mut self, dice: &mut Dice, node: &mut Node, program: &mut Program) {
        let count = 1 + dice.below(8) as usize;
        let ops = std::iter::repeat_with(|| self.next(dice)).take(count);
        let fits = |op: &RandomOp| {
            op.shape.rows == 1 && !op.command.action.answers() && op.command.check().is_ok()
        };
        let ops: Vec<_> = ops.filter(fits).collect();
        let orders = ops.iter().map(|op| self.order(op, program).0).collect();
        match node.batch(self.target, orders, program) {
            Ok(()) => ops.iter().for_each(|op| self.posted(op, Lands::Nowhere)),
            // It goes whole, or not at all.
            Err(PostError::Refused(Refused::TooLong)) => {
                let lines = ops.iter().map(|op| 2 + op.command.claim.len / 56);
                assert!(lines.sum::<u64>() > u64::from(LINES.commands) / 2, "it had to be long");
                self.refused += 1;
            }
            Err(error) => self.refuse(error, ops.len()),
        }
    }

    /// A deposit message, which may want an answer, and have it deposited.
    pub(crate) fn deposit(&mut self, dice: &mut Dice, node: &mut Node, program: &mut Program) {
        let keys = &self.oracle.keys;
        let (mut posted, data) = RandomOps { dice, keys }.message();
        let Posted { message, .. } = &mut posted;
        // What it reads goes somewhere.
        message.is_answered |= !message.brings && message.len > 0;
        let wanted = if message.brings { 0 } else { usize::from(message.len) };
        let replies = message.is_answered && (wanted > 0 || dice.percent(50));
        let place = replies.then_some(program.replies.len());
        program.replies.extend(place.map(|_| None));
        let reply = place.map(|place| (place, wanted));
        if let Err(error) = node.deposit(self.target, (&posted, &data), reply, program) {
            return self.refuse(error, 1);
        }
        let mut expected = self.oracle.deliver(&posted, &data, wanted);
        let is_done = expected.status == Status::Ok;
        expected.read = is_done.then(|| expected.read.unwrap_or_default());
        self.began(expected, place.map_or(Lands::Nowhere, Lands::Reply), true);
    }

    /// A short message.
    pub(crate) fn send(&mut self, dice: &mut Dice, node: &mut Node) {
        let most = if dice.percent(20) { 1024 } else { 200 };
        let (tag, byte) = (dice.word() as u32, dice.word() as u8);
        let bytes = vec![byte; 1 + dice.below(most) as usize];
        let before = node.peer(self.target).map_or(0, |peer| peer.initiator().posted());
        match node.send(self.target, tag, &bytes) {
            Ok(()) => self.messages.push_back((before, tag, bytes)),
            Err(error) => self.refuse(error, 1),
        }
    }

    /// A record of the target's queue.
    pub(crate) fn enqueue(&mut self, dice: &mut Dice, node: &mut Node) {
        if !self.has_queue {
            return;
        }
        let longest = longest_of_queue(QUEUE_LINES) as u64;
        let most = if dice.percent(20) { longest } else { 100 };
        let record = vec![dice.word() as u8; 1 + dice.below(most) as usize];
        match node.enqueue(self.target, 0, &record) {
            Ok(()) => self.records.push_back(record),
            Err(error) => self.refuse(error, 1),
        }
    }

    /// The target's program takes messages: each once, in order, whole, and after what was posted
    /// before.
    pub(crate) fn take_message(&mut self, message: &node::peer::Message, executed: u64) {
        let (before, tag, bytes) = self.messages.pop_front().expect("it was sent");
        assert!(before <= executed, "what was posted before it has been done");
        assert!((message.tag, &message.bytes) == (tag, &bytes), "each once, in order, whole");
        self.received += 1;
    }

    /// The target's program takes a record of a queue: each once, in order, whole.
    pub(crate) fn take_record(&mut self, record: &[u8]) {
        let enqueued = self.records.pop_front().expect("it was enqueued");
        assert!(enqueued == record, "each once, in order, whole");
        self.dequeued += 1;
    }

    /// The target's program has read a notification of the initiator's.
    pub(crate) fn take_note(&mut self, note: &Notification) {
        assert_eq!(Some(note), self.notes.pop_front().as_ref(), "in posted order, once");
    }

    /// The initiator's program has read one of its own operations.
    pub(crate) fn take_own_note(&mut self, note: &Notification) {
        assert_eq!(Some(note), self.own_notes.pop_front().as_ref(), "as they ended, once");
    }

    /// An operation has ended.
    pub(crate) fn end(&mut self, ended: &Ended, program: &mut Program) {
        let UnderWay { expected, lands } = self.under_way.pop_front().expect("it was posted");
        let Expected { report, mut status, value, read, .. } = expected;
        let is_dead = matches!(ended.status, Status::Fault(Fault::PeerDead | Fault::PeerRestarted));
        if is_dead {
            status = ended.status;
            self.faulted += 1;
        } else {
            let found = (ended.report, ended.status, ended.value);
            assert_eq!(found, (report, status, value), "as if nothing else had been under way");
        }
        self.noted -= u64::from(frees_credit(&report, status));
        self.ended += 1;
        let value = if is_dead { ended.value } else { value };
        self.own_notes.extend(own_notes(&Ended { status, value, ..*ended }, self.target));
        match lands {
            _ if is_dead => {}
            Lands::Buffer(index) => assert_eq!(Some(&program.buffers[index]), read.as_ref()),
            Lands::Reply(place) if status == Status::Ok => {
                let got = program.replies[place].take();
                assert_eq!(got, Some((value, read.unwrap_or_default())));
            }
            Lands::Reply(_) | Lands::Nowhere => {}
            Lands::Call => panic!("no call of a node waits"),
        }
    }

    /// The target is forgotten: what the initiator's program has not read of its own operations.
    pub(crate) fn forget(&mut self) -> VecDeque<Notification> {
        assert!(self.under_way.is_empty(), "all has ended");
        std::mem::take(&mut self.own_notes)
    }

    /// This comes before anything else.
    pub(crate) fn remember(&mut self, own_notes: VecDeque<Notification>) {
        self.own_notes = own_notes;
    }

    /// Whether nothing is under way or was not taken.
    pub(crate) fn is_idle(&self) -> bool {
        let are_taken = self.messages.is_empty() && self.records.is_empty();
        self.under_way.is_empty() && self.notes.is_empty() && self.own_notes.is_empty() && are_taken
    }

    /// While it goes on, between the ends as they have it.
    pub(crate) fn check(&self, initiator: &Peer<Heap, Program>, target: &Peer<Heap, Program>) {
        let unread = self.noted.saturating_sub(target.here().noted);
        assert!(unread <= NOTES_UNREAD_MAX, "nobody's program is flooded");
        assert!(initiator.there().done <= target.target().executed(), "nothing is told too early");
        let (posted, executed) = (initiator.initiator().posted(), target.target().executed());
        assert!(executed <= posted, "what is executed was posted");
    }

    /// In the end: memory, credits and counts are what the oracle says.
    pub(crate) fn finish(
        &self,
        (initiator, target): (&Peer<Heap, Program>, &Peer<Heap, Program>),
        program: &Program,
    ) {
        assert!(self.is_idle(), "all has ended and was taken");
        assert_eq!(initiator.initiator().posted(), initiator.initiator().done());
        assert_eq!(initiator.there(), target.here(), "each knows how far the other is");
        assert_eq!(self.noted, target.here().noted, "credit is conserved");
        let memory = &program.shared[self.initiator].memory;
        assert!(self.oracle.memory == *memory, "memory is as if all were done one by one");
    }
}

/// The notifications of an operation at its initiator, by the tables of spec/30.
fn own_notes(ended: &Ended, source: PeerId) -> impl Iterator<Item = Notification> {
    use Operation::{Atomic, FetchAtomic, Get};
    let Ended { report, status, value, .. } = *ended;
    let completes = matches!(report.operation, Get | Atomic | FetchAtomic);
    let is_fault = matches!(status, Status::Fault(_));
    let asked = |class| report.classes.contains(class);
    let requester =
        (is_fault || asked(Classes::REQUESTER)).then_some((Classes::REQUESTER, report.value));
    let completer = (!is_fault && completes && asked(Classes::COMPLETER))
        .then_some((Classes::COMPLETER, value));
    let raised = requester.into_iter().chain(completer);
    let (operation, tag) = (report.operation, report.tag);
    raised.map(move |(class, value)| Notification { source, class, status, operation, tag, value })
}

const _: () = assert!(LINES.messages * 56 > 1032, "the longest message has room");
