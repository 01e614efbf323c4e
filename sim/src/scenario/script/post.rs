//! Operations are posted, and what they have brought is checked.
use super::node::{Check, Pending};
use super::runner::Runner;
use super::{Line, Note, Place, ScriptError, ScriptFault, Statement};
use crate::cluster::{Local, Refusal};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::node::initiator::{Ended, Refused};
use ayre_proto::node::{Order, PostError};
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Ticket};

/// The result of a try to post.
pub(super) enum Tried {
    /// It is under way.
    Under(u32, Ticket, Check),
    /// It was handed over, and nothing more comes of it.
    Over,
    /// It ended at once.
    Fault(Fault),
    /// There is no room yet.
    Busy,
}

impl Runner<'_> {
    /// Posts the operation of a statement, if there is room. Returns whether it was posted.
    pub(super) fn post(&mut self, node: u32, line: &Line) -> Result<bool, ScriptError> {
        let begun = self.member(node).begun.unwrap_or_default();
        let tried = match line.statement {
            Statement::Send { to, len, fill, tag } => {
                let to = PeerId(to.resolve(node, self.world.nodes) as u16);
                let sent = self.world.cluster.send(node, to, tag, &vec![fill; len as usize]);
                over(sent)
            }
            Statement::Append { queue, len, fill } => self.append(node, queue, len, fill),
            Statement::Call(call) => self.call(node, &call),
            Statement::Deposit(deposit) => self.deposit(node, &deposit),
            _ => self.order(node, line),
        };
        match tried {
            Tried::Busy => return Ok(false),
            Tried::Over => self.count_since(line.statement.word(), begun),
            Tried::Fault(_) if line.is_fault => self.count_since(line.statement.word(), begun),
            Tried::Fault(fault) => return Err(self.unexpected(node, line, ended_in(fault))),
            Tried::Under(peer, ticket, check) => {
                let (word, number) = (line.statement.word(), line.number);
                let is_fault = line.is_fault;
                let pending = Pending { peer, ticket, begun, word, line: number, is_fault, check };
                self.member_mut(node).pending.push(pending);
            }
        }
        Ok(true)
    }

    fn append(&mut self, node: u32, queue: usize, len: u64, fill: u8) -> Tried {
        let home = PeerId(self.world.script.queues[queue].home as u16);
        let Some(number) = self.world.produced.get(&(node, queue)) else { return Tried::Busy };
        over(self.world.cluster.enqueue(node, home, *number, &vec![fill; len as usize]))
    }

    /// Posts an operation on memory, or a notification.
    fn order(&mut self, node: u32, line: &Line) -> Tried {
        let Some((peer, order, check)) = self.make(node, &line.statement) else {
            return Tried::Fault(Fault::ForeignHandle);
        };
        match self.world.cluster.post(node, PeerId(peer as u16), order) {
            Ok(ticket) => Tried::Under(peer, ticket, check),
            Err(error) => {
                if let Check::Data { buffer, .. } = check {
                    self.world.cluster.program_mut(node).take_buffer(buffer);
                }
                failed(error)
            }
        }
    }

    /// The peer and the order of a statement.
    pub(super) fn make(
        &mut self,
        node: u32,
        statement: &Statement,
    ) -> Option<(u32, Order<Local>, Check)> {
        let processes = self.world.nodes;
        let none = Note { classes: Classes::empty(), tag: 0, value: 0 };
        let (on, len, action, note, local, check) = match *statement {
            Statement::Put { to, len, fill, note } => {
                let bytes = vec![fill; len as usize];
                (Some(to), len, Action::Put, note, Some(Local::Bytes(bytes)), Check::Nothing)
            }
            Statement::Get { from, len, expect, note } => {
                let bytes = vec![0; len as usize];
                let buffer = self.world.cluster.program_mut(node).add_buffer(bytes);
                let check = Check::Data { buffer, expect };
                (Some(from), len, Action::Get, note, Some(Local::Buffer(buffer)), check)
            }
            Statement::Immediate { to, value, note } => {
                (Some(to), 8, Action::Immediate(value), note, None, Check::Nothing)
            }
            Statement::Atomic { on, atomic, note } => {
                (Some(on), 8, Action::Atomic(atomic), note, None, Check::Nothing)
            }
            Statement::Fetch { on, atomic, expect, note } => {
                (Some(on), 8, Action::Fetch(atomic), note, None, Check::Value(expect))
            }
            Statement::Lock { on, mode } => {
                (Some(on), 8, Action::Fetch(mode.lock(processes)), none, None, Check::Lock)
            }
            Statement::Unlock { on, mode } => {
                (Some(on), 8, Action::Fetch(mode.unlock(processes)), none, None, Check::Nothing)
            }
            Statement::Notify { note, .. } => (None, 0, Action::Notify, note, None, Check::Nothing),
            _ => return None,
        };
        let (peer, claim) = self.claim(node, statement, (on, len))?;
        let Note { classes, tag, value } = note;
        let command = Command { action, classes, tag, value, claim };
        Some((peer, Order { command, shape: Shape::contiguous(len), local }, check))
    }

    fn claim(
        &self,
        node: u32,
        statement: &Statement,
        (on, len): (Option<Place>, u64),
    ) -> Option<(u32, Claim)> {
        match on {
            Some(place) => {
                let (peer, key) = self.world.key(node, &place)?;
                Some((peer, Claim { key, offset: place.offset, len }))
            }
            None => {
                let key = Key { slot: 0, generation: 0 };
                let peer = statement.who()?.resolve(node, self.world.nodes);
                Some((peer, Claim { key, offset: 0, len: 0 }))
            }
        }
    }

    /// Posts a batch. Returns whether there was room.
    pub(super) fn post_batch(&mut self, node: u32, line: &Line) -> Result<bool, ScriptError> {
        let Some((peer, orders)) = self.member(node).batch.clone() else { return Ok(true) };
        if orders.is_empty() {
            return Ok(true);
        }
        match self.world.cluster.batch(node, PeerId(peer as u16), orders) {
            Ok(ticket) => {
                let begun = self.member(node).begun.unwrap_or_default();
                let check = Check::Nothing;
                let (number, is_fault) = (line.number, line.is_fault);
                let word = "batch";
                let pending = Pending { peer, ticket, begun, word, line: number, is_fault, check };
                self.member_mut(node).pending.push(pending);
                Ok(true)
            }
            Err(error) => match failed(error) {
                Tried::Fault(fault) => Err(self.unexpected(node, line, ended_in(fault))),
                _ => Ok(false),
            },
        }
    }

    /// An operation of a node has ended.
    pub(super) fn on_ended(
        &mut self,
        node: u32,
        peer: PeerId,
        ended: &Ended,
    ) -> Result<(), ScriptError> {
        let member = self.member_mut(node);
        member.ended_operations += 1;
        let is_it = |it: &Pending| it.peer == u32::from(peer.0) && it.ticket == ended.ticket;
        let Some(place) = member.pending.iter().position(is_it) else { return Ok(()) };
        let pending = member.pending.remove(place);
        let is_declined = ended.status != Status::Ok && ended.status.fault().is_none();
        if pending.check == Check::Lock && is_declined {
            // Somebody else has it: try again.
            member.is_posted = false;
            return Ok(());
        }
        let what = self.difference(node, &pending, ended);
        self.count_since(pending.word, pending.begun);
        what.map_or(Ok(()), |what| {
            let fault = ScriptFault::Unexpected { node, word: pending.word, what };
            Err(self.world.script.fail(pending.line, fault))
        })
    }

    /// How an operation has ended otherwise than is expected.
    fn difference(&mut self, node: u32, pending: &Pending, ended: &Ended) -> Option<String> {
        let data = match pending.check {
            Check::Data { buffer, .. } => self.world.cluster.program_mut(node).take_buffer(buffer),
            _ => None,
        };
        match (ended.status.fault(), pending.is_fault) {
            (Some(_), true) => return None,
            (Some(fault), false) => return Some(ended_in(fault)),
            (None, true) => return Some("ended well, and a fault is expected".to_owned()),
            (None, false) => {}
        }
        match pending.check {
            Check::Data { expect: Some(expect), .. } => bytes_differ(&data?, expect),
            Check::Deposit { is_declined, .. } if is_declined != (ended.status != Status::Ok) => {
                let what = if is_declined { "is not declined" } else { "is declined" };
                Some(what.to_owned())
            }
            Check::Value(Some(expect)) | Check::Deposit { expect: Some(expect), .. }
                if expect != ended.value =>
            {
                Some(format!("brought {}, and {expect} is expected", ended.value))
            }
            _ => None,
        }
    }
}

/// The first byte that is not as expected.
pub(super) fn bytes_differ(bytes: &[u8], expect: u8) -> Option<String> {
    let place = bytes.iter().position(|byte| *byte != expect)?;
    Some(format!("brought {} at byte {place}, and {expect} is expected", bytes[place]))
}

pub(super) fn ended_in(fault: Fault) -> String {
    format!("ended in a fault: {fault}")
}

fn over(done: Result<(), impl Into<Refusal>>) -> Tried {
    done.map_or_else(|error| failed(error.into()), |()| Tried::Over)
}

pub(super) fn failed(error: Refusal) -> Tried {
    let Refusal::Node(error) = error else { return Tried::Fault(Fault::Malformed) };
    match error {
        PostError::Fault(fault) => Tried::Fault(fault),
        PostError::Refused(Refused::TooLong) => Tried::Fault(Fault::TooLong),
        PostError::Refused(Refused::NoRoom | Refused::TooManyOutstanding)
        | PostError::NotificationsFull => Tried::Busy,
    }
}
