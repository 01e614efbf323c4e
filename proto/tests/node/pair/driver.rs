//! Two ports work on each other's memory, with an oracle for each. All events happen at random
//! moments: commands wait, are served and reported, notifications are read.
use super::oracle::{Expected, Lands, Oracle, UnderWay, frees_credit};
use super::port::{Call, LEN, NOTHING, Port};
use super::random_op::{RandomOp, RandomOps, STALE, keys};
use super::way::{Channel, Reply};
use crate::dice::Dice;
use ayre_proto::deposit::DepositMessage;
use ayre_proto::execute::Action;
use ayre_proto::fault::Status;
use ayre_proto::limits::{NOTES_UNREAD_MAX, PENDING_MAX};
use ayre_proto::node::initiator::{Awaited, Begun, Bounds, Commands, Refused};
use ayre_proto::notify::Notification;
use ayre_proto::segment::Shape;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

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
    /// A pair with lanes of `room` lines, or a link of `room` frames.
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
            let port = &mut ports[1 - own];
            let share = |cover| port.table.insert(cover).expect("a free slot");
            side.oracle.keys = keys(PeerId(own as u16), (7, LEN), share);
            port.table.revoke(side.oracle.keys[STALE].0).expect("it is alive");
        }
        Self { dice: Dice(seed), ports, sides, bounds }
    }

    pub(crate) fn next(&mut self, own: usize) -> RandomOp {
        RandomOps { dice: &mut self.dice, keys: &self.sides[own].oracle.keys }.next()
    }

    pub(crate) fn is_busy(&self, own: usize) -> bool {
        self.ports[own].call.is_some() || self.sides[own].unpushed.is_some()
    }

    fn credit(&self, own: usize) -> u64 {
        NOTES_UNREAD_MAX - (self.sides[own].noted - self.ports[1 - own].told.1)
    }

    /// Posts an operation, if there is room for it.
    pub(crate) fn post(&mut self, own: usize, op: RandomOp, is_batch: bool) -> Result<(), Refused> {
        let RandomOp { command, shape, local } = op;
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
        let keys = &self.sides[own].oracle.keys;
        let (posted, data) = RandomOps { dice: &mut self.dice, keys }.message();
        let DepositMessage { len, brings, is_answered, .. } = posted.message;
        let wanted = if brings { 0 } else { usize::from(len) };
        let replies = is_answered && self.dice.percent(50);
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
        let lands = match (is_answered, replies) {
            // They come in the order of posting.
            (true, true) => Lands::Reply(0),
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
        let ops = std::iter::repeat_with(|| self.next(own)).take(count as usize);
        let fits = |op: &RandomOp| {
            op.shape.rows == 1 && !matches!(op.command.action, Action::Get | Action::Fetch(_))
        };
        let ops: Vec<_> = ops.filter(fits).collect();
        let taken = self.ports[1 - own].told.1;
        let (side, port) = (&mut self.sides[own], &self.ports[own]);
        let mut way = Port::way(&mut side.requests, self.bounds, taken, &[]);
        port.initiator.check_batch(ops.iter().map(|op| op.command), &mut way)?;
        for op in ops {
            let posted = self.post(own, op, true);
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
                let op = self.next(own);
                let _ = self.post(own, op, false);
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

    /// The peer serves the commands of this port. Returns false if there are none, or they wait.
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
            side.noted -= u64::from(frees_credit(&report, status));
            side.ended += 1;
            match lands {
                Lands::Buffer(index) => assert_eq!(Some(&port.buffers[index]), read.as_ref()),
                Lands::Call => {
                    let call = port.call.take().expect("it waits");
                    assert_eq!(call.awaited.outcome(), Some((status, value)));
                    assert_eq!(call.into, read.unwrap_or_default());
                }
                Lands::Reply(first) if status == Status::Ok => {
                    assert_eq!(port.replies.remove(first), (value, read.unwrap_or_default()));
                }
                Lands::Reply(_) | Lands::Nowhere => {}
            }
        }
    }

    /// The program of this port reads a notification of its peer.
    pub(crate) fn read_note(&mut self, own: usize) {
        let Some(note) = self.ports[own].read_note() else { return };
        assert_eq!(Some(note), self.sides[1 - own].notes.pop_front(), "in posted order, once");
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
