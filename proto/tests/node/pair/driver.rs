//! Two ports that work on each other's memory, with an oracle for each; everything that may happen
//! does at random moments: commands wait, are served, are told of, notifications are read.
use super::oracle::{Expected, Oracle};
use super::port::{Call, LEN, NOTHING, Port};
use super::way::{Channel, Reply};
use crate::dice::Dice;
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{Form, Instruction, Mask, Message};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Fault;
use ayre_proto::limits::{NOTES_UNREAD_MAX, PENDING_MAX};
use ayre_proto::node::initiator::{Awaited, Begun, Bounds, Commands, Refused};
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use std::collections::VecDeque;

/// Of the keys, the one that allows no notifications.
const UNHEARD: usize = 3;

/// An operation as its poster sees it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) command: Command,
    pub(crate) shape: Shape,
    /// The source of a put, or the destination of a get.
    pub(crate) local: Vec<u8>,
}

/// What an operation left behind that is under way.
#[derive(Debug)]
struct UnderWay {
    expected: Expected,
    /// Where its data lands, if it does.
    lands: Lands,
}

#[derive(Clone, Copy, Debug)]
enum Lands {
    Nowhere,
    Buffer(usize),
    Call,
    Reply,
}

/// One direction: from an initiator to its target.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) oracle: Oracle,
    pub(crate) requests: Channel,
    pub(crate) answers: Channel,
    under_way: VecDeque<UnderWay>,
    notes: VecDeque<Notification>,
    /// Notifications that the target's program may not have taken.
    noted: u64,
    unpushed: Option<(Commands, Vec<u8>)>,
    pub(crate) ended: usize,
    pub(crate) refused: usize,
}

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) dice: Dice,
    pub(crate) ports: [Port; 2],
    pub(crate) sides: [Side; 2],
    bounds: Bounds,
}

impl Pair {
    /// With lanes of so many lines, or a link of so many frames.
    pub(crate) fn new(seed: u64, is_lane: bool, room: u64, bounds: Bounds) -> Self {
        let mut ports = [0, 1].map(Port::new);
        let side = |own: usize| Side {
            oracle: Oracle::new(PeerId(own as u16)),
            requests: Channel::new(is_lane, room),
            answers: Channel::new(is_lane, room),
            under_way: VecDeque::new(),
            notes: VecDeque::new(),
            noted: 0,
            unpushed: None,
            ended: 0,
            refused: 0,
        };
        let mut sides = [0, 1].map(side);
        for (own, side) in sides.iter_mut().enumerate() {
            let (holder, port) = (PeerId(own as u16), &mut ports[1 - own]);
            let reading = Rights::READ | Rights::NOTIFY;
            let unheard = Rights::all() - Rights::NOTIFY;
            for rights in [Rights::all(), Rights::all(), reading, unheard] {
                side.oracle.keys.push((port.share(holder, rights), Ok(rights)));
            }
            let stale = port.share(holder, Rights::all());
            port.table.revoke(stale).expect("it is alive");
            side.oracle.keys.push((stale, Err(Fault::StaleKey)));
            let foreign = port.share(PeerId(9), Rights::all());
            side.oracle.keys.push((foreign, Err(Fault::UnknownKey)));
            let unknown = Key { slot: 900, generation: 0 };
            side.oracle.keys.push((unknown, Err(Fault::UnknownKey)));
        }
        Self { dice: Dice(seed), ports, sides, bounds }
    }

    fn key(&mut self, own: usize) -> Key {
        let keys = &self.sides[own].oracle.keys;
        let most = if self.dice.percent(85) { 2 } else { keys.len() as u64 };
        keys[self.dice.below(most) as usize].0
    }

    fn command(&mut self, own: usize, action: Action, offset: u64, len: u64) -> Command {
        let claim = Claim { key: self.key(own), offset, len };
        let classes = Classes::from_bits_truncate(self.dice.word() as u8);
        let (tag, value) = (self.dice.word() as u32, self.dice.word());
        Command { action, classes, tag, value, claim }
    }

    fn word(&mut self) -> (u64, Atomic) {
        let width = if self.dice.percent(50) { Width::W32 } else { Width::W64 };
        let op = AtomicOp::from_code(1 + self.dice.below(11) as u8).expect("an operation");
        let (operand, compare) = (self.dice.below(4), self.dice.below(4));
        let offset = self.dice.below(20) * 8 + self.dice.below(20) / 19;
        (offset, Atomic { width, op, operand, compare })
    }

    /// A put or a get of any shape.
    fn transfer(&mut self, own: usize, action: Action) -> Wish {
        let most = if self.dice.percent(20) { 6000 } else { 200 };
        let row_len = self.dice.below(most);
        let rows = if self.dice.percent(30) { 1 + self.dice.below(4) } else { 1 };
        let [local_stride, remote_stride] = [0, 1].map(|_| row_len + self.dice.below(50));
        let shape = match rows {
            1 => Shape::contiguous(row_len),
            _ => Shape { row_len, rows, local_stride, remote_stride },
        };
        let len = shape.remote_span().expect("it is short");
        // All of it lies in the capability's range, or nothing of it.
        let out = self.dice.percent(5);
        let offset = if out { LEN + 1 } else { self.dice.below(LEN - len) };
        let span = shape.local_span().expect("it is short") as usize;
        let local = match action {
            Action::Put => (0..span).map(|_| self.dice.word() as u8).collect(),
            _ => vec![NOTHING; span],
        };
        let mut command = self.command(own, action, offset, len);
        if command.claim.key == self.sides[own].oracle.keys[UNHEARD].0 {
            // Of several pieces the last one alone would fault. Handles refuse such an operation.
            command.classes &= Classes::REQUESTER;
        }
        Wish { command, shape, local }
    }

    pub(crate) fn wish(&mut self, own: usize) -> Wish {
        let (offset, atomic) = self.word();
        let (action, len) = match self.dice.below(8) {
            0..3 => return self.transfer(own, Action::Put),
            3 | 4 => return self.transfer(own, Action::Get),
            5 => (Action::Immediate(self.dice.word()), 8),
            6 => (Action::Notify, 0),
            _ if self.dice.percent(50) => (Action::Atomic(atomic), atomic.width.bytes()),
            _ => (Action::Fetch(atomic), atomic.width.bytes()),
        };
        let offset = if action == Action::Notify { 0 } else { offset };
        let command = self.command(own, action, offset, len);
        Wish { command, shape: Shape::contiguous(len), local: Vec::new() }
    }

    pub(crate) fn is_busy(&self, own: usize) -> bool {
        self.ports[own].call.is_some() || self.sides[own].unpushed.is_some()
    }

    fn credit(&self, own: usize) -> u64 {
        NOTES_UNREAD_MAX - (self.sides[own].noted - self.ports[1 - own].told.1)
    }

    /// Posts an operation, if there is room for it.
    pub(crate) fn post(&mut self, own: usize, wish: Wish, is_batch: bool) -> Result<(), Refused> {
        let Wish { command, shape, local } = wish;
        let (credit, taken) = (self.credit(own), self.ports[1 - own].told.1);
        let (side, port) = (&mut self.sides[own], &mut self.ports[own]);
        let notifies = command.note_at_target(port.number).is_some();
        let room = side.requests.has_room(48 + shape.row_len.min(4000) as usize);
        let mut way = Port::way(&mut side.requests, self.bounds, taken, &local);
        let limit = match port.initiator.check_room(&command, &shape, is_batch, &mut way) {
            Err(refused) => {
                let outstanding = side.under_way.len() == PENDING_MAX;
                let reasons = match refused {
                    Refused::TooManyOutstanding => outstanding,
                    Refused::NoRoom => notifies && credit == 0 || !room,
                    Refused::TooLong => false,
                };
                assert!(reasons, "{refused:?} without a reason");
                side.refused += 1;
                return Err(refused);
            }
            Ok(limit) => limit,
        };
        assert!(!notifies || credit > 0, "what notifies has credit");
        let is_get = command.action == Action::Get;
        let is_awaited = matches!(command.action, Action::Fetch(_))
            || is_get && (local.is_empty() || self.dice.percent(50));
        let lands = match is_awaited {
            true => Lands::Call,
            false if is_get => Lands::Buffer(port.buffers.len()),
            false => Lands::Nowhere,
        };
        let memory = matches!(lands, Lands::Buffer(_)).then_some(port.buffers.len());
        let Begun { place, ticket, mut commands } =
            port.initiator.begin(&command, &shape, limit, memory);
        side.noted += u64::from(notifies);
        let expected = side.oracle.apply(&command, &shape, &local);
        side.notes.extend(expected.note);
        side.under_way.push_back(UnderWay { expected, lands });
        let is_done = commands.push(&mut way);
        assert!(is_done || !is_batch, "a batch finds room for all of it");
        match lands {
            Lands::Call => {
                let awaited = Awaited::new((place, ticket), shape);
                port.call = Some(Call { awaited, into: local.clone() });
            }
            Lands::Buffer(_) => port.buffers.push(local.clone()),
            _ => {}
        }
        side.unpushed = (!is_done).then_some((commands, local));
        Ok(())
    }

    /// A deposit message, which may want an answer, and have it deposited.
    pub(crate) fn message(&mut self, own: usize) -> Result<(), Refused> {
        let nothing = Form::Carried(Instruction::parse(0).expect("nothing is an instruction"));
        let (brings, asks) = (self.dice.percent(50), self.dice.percent(60));
        let len = if brings || asks { self.dice.below(1000) as u16 } else { 0 };
        let operand = self.dice.word();
        let message = Message { form: nothing, operand, mask: Mask::ALL, len, brings, asks };
        let (key, classes) = (self.key(own), Classes::REQUESTER);
        let (tag, value) = (self.dice.word() as u32, self.dice.word());
        let posted = Posted { key, epoch: 0, classes, tag, value, message };
        let data = vec![self.dice.word() as u8; if brings { usize::from(len) } else { 0 }];
        let wanted = if brings { 0 } else { usize::from(len) };
        let replies = asks && self.dice.percent(50);
        let (credit, taken) = (self.credit(own), self.ports[1 - own].told.1);
        let (side, port) = (&mut self.sides[own], &mut self.ports[own]);
        let mut way = Port::way(&mut side.requests, self.bounds, taken, &data);
        if let Err(refused) = port.initiator.check_message_room(&posted, data.len(), &mut way) {
            side.refused += 1;
            return Err(refused);
        }
        assert!(credit > 0, "every message needs credit");
        let reply = replies.then(|| (Reply::default(), wanted));
        let named = port.initiator.begin_message(&posted, data.len(), reply, &mut way);
        side.noted += 1;
        let expected = side.oracle.deliver(&posted, &data, wanted);
        side.notes.extend(expected.note);
        let lands = match (asks, replies) {
            (true, true) => Lands::Reply,
            (true, false) => Lands::Call,
            _ => Lands::Nowhere,
        };
        side.under_way.push_back(UnderWay { expected, lands });
        if matches!(lands, Lands::Call) {
            let awaited = Awaited::new(named, Shape::contiguous(wanted as u64));
            port.call = Some(Call { awaited, into: vec![NOTHING; wanted] });
        }
        Ok(())
    }

    /// Several operations, all of them or none.
    pub(crate) fn batch(&mut self, own: usize) -> Result<(), Refused> {
        let count = 1 + self.dice.below(8);
        let wishes = std::iter::repeat_with(|| self.wish(own)).take(count as usize);
        let fits = |wish: &Wish| {
            wish.shape.rows == 1 && !matches!(wish.command.action, Action::Get | Action::Fetch(_))
        };
        let wishes: Vec<_> = wishes.filter(fits).collect();
        let taken = self.ports[1 - own].told.1;
        let (side, port) = (&mut self.sides[own], &self.ports[own]);
        let mut way = Port::way(&mut side.requests, self.bounds, taken, &[]);
        port.initiator.check_batch(wishes.iter().map(|wish| wish.command), &mut way)?;
        for wish in wishes {
            let posted = self.post(own, wish, true);
            assert_eq!(posted, Ok(()), "what a batch releases finds room");
        }
        Ok(())
    }

    /// One thing that may happen.
    pub(crate) fn step(&mut self) {
        let own = self.dice.below(2) as usize;
        match self.dice.below(12) {
            0..4 if self.is_busy(own) => self.push_more(own),
            0..2 => {
                let wish = self.wish(own);
                let _ = self.post(own, wish, false);
            }
            2 => {
                let _ = self.message(own);
            }
            3 => {
                let _ = self.batch(own);
            }
            4..7 => {
                self.serve(own);
            }
            7 => self.ports[own].tell(),
            8 | 9 => self.take(own),
            10 => self.ports[own].shared.is_depot_busy ^= true,
            _ if self.dice.percent(50) => self.ports[own].are_replies_held_up ^= true,
            _ => self.read_note(own),
        }
    }

    pub(crate) fn push_more(&mut self, own: usize) {
        let taken = self.ports[1 - own].told.1;
        let side = &mut self.sides[own];
        let Some((mut commands, source)) = side.unpushed.take() else { return };
        let mut way = Port::way(&mut side.requests, self.bounds, taken, &source);
        if !commands.push(&mut way) {
            side.unpushed = Some((commands, source));
        }
    }

    /// What this port has posted is served by its peer. False where nothing is, or waits.
    pub(crate) fn serve(&mut self, own: usize) -> bool {
        let Side { requests, answers, .. } = &mut self.sides[own];
        let served = self.ports[1 - own].serve(requests, answers);
        served.expect("an honest initiator is never malformed")
    }

    /// This port takes in what its peer has answered and told.
    pub(crate) fn take(&mut self, own: usize) {
        let done = self.ports[1 - own].told.0;
        let (side, port) = (&mut self.sides[own], &mut self.ports[own]);
        let ended = port.take(&mut side.answers, done);
        for ended in ended.expect("an honest target is never malformed") {
            let UnderWay { expected, lands } = side.under_way.pop_front().expect("it was posted");
            let Expected { report, status, value, read, .. } = expected;
            let found = (ended.report, ended.status, ended.value);
            assert_eq!(found, (report, status, value), "as if nothing else had been under way");
            let fault = status.fault().filter(|fault| *fault != Fault::Held);
            side.noted -=
                u64::from(fault.is_some() && report.operation.at_target(report.classes).is_some());
            side.ended += 1;
            match lands {
                Lands::Buffer(index) => assert_eq!(Some(&port.buffers[index]), read.as_ref()),
                Lands::Call => {
                    let call = port.call.take().expect("it waits");
                    assert_eq!(call.awaited.outcome(), Some((status, value)));
                    assert_eq!(call.into, read.unwrap_or_default());
                }
                Lands::Reply if fault.is_none() && status == ayre_proto::fault::Status::Ok => {
                    assert_eq!(port.replies.remove(0), (value, read.unwrap_or_default()));
                }
                Lands::Reply | Lands::Nowhere => {}
            }
        }
    }

    /// The program of this port reads a notification of its peer.
    pub(crate) fn read_note(&mut self, own: usize) {
        let Some(note) = self.ports[own].read_note() else { return };
        assert_eq!(Some(note), self.sides[1 - own].notes.pop_front(), "in posted order, once");
    }

    /// Whether nothing is under way or unread.
    pub(crate) fn is_idle(&self) -> bool {
        let is_read = |side: &Side| side.under_way.is_empty() && side.notes.is_empty();
        self.sides.iter().all(|side| side.unpushed.is_none() && is_read(side))
    }

    /// Until nothing is under way.
    pub(crate) fn drain(&mut self) {
        for own in [0, 1] {
            self.ports[own].shared.is_depot_busy = false;
            self.ports[own].are_replies_held_up = false;
        }
        for _ in 0..10_000 {
            for own in [0, 1] {
                self.push_more(own);
                while self.serve(own) {}
                self.ports[own].tell();
                self.take(own);
                self.read_note(own);
            }
        }
        for own in [0, 1] {
            let (side, port) = (&self.sides[own], &self.ports[own]);
            assert!(side.under_way.is_empty() && port.initiator.is_empty(), "all has ended");
            assert!(side.notes.is_empty() && self.ports[1 - own].shared.notes.is_empty());
            assert_eq!(side.noted, self.ports[1 - own].told.1, "credit is conserved");
            assert!(side.oracle.memory == self.ports[1 - own].shared.memory, "memory is as it was");
            assert_eq!(port.initiator.posted(), port.initiator.done());
        }
    }
}
