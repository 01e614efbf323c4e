//! Random operations that programs may post: of any kind, on keys of every kind.
use super::port::{BASE, LEN, NOTHING};
use crate::dice::Dice;
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{DepositMessage, Form, Instruction, Mask};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Fault;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;

/// Of the keys, the one that allows no notifications.
const UNHEARD: usize = 3;
/// The one that its owner is to revoke.
pub(crate) const STALE: usize = 4;

/// The rights of a key, or its fault.
pub(crate) type Known = (Key, Result<Rights, Fault>);

/// Keys of one peer to a region from its base on: to everything, to less, and to nothing.
pub(crate) fn keys(
    holder: PeerId,
    (region, len): (u16, u64),
    mut share: impl FnMut(Cover) -> Key,
) -> Vec<Known> {
    let mut share = |holder, rights| share(Cover { holder, rights, region, base: BASE, len });
    let reading = Rights::READ | Rights::NOTIFY;
    let unheard = Rights::all() - Rights::NOTIFY;
    let all = [Rights::all(), Rights::all(), reading, unheard];
    let mut keys: Vec<Known> = all.map(|rights| (share(holder, rights), Ok(rights))).into();
    let [stale, foreign] = [holder, PeerId(9)].map(|holder| share(holder, Rights::all()));
    keys.push((stale, Err(Fault::StaleKey)));
    keys.push((foreign, Err(Fault::UnknownKey)));
    keys.push((Key { slot: 900, generation: 0 }, Err(Fault::UnknownKey)));
    keys
}

/// An operation as its poster sees it.
#[derive(Debug)]
pub(crate) struct RandomOp {
    pub(crate) command: Command,
    pub(crate) shape: Shape,
    /// The source of a put, or the destination of a get.
    pub(crate) local: Vec<u8>,
}

/// The source of random operations.
pub(crate) struct RandomOps<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) keys: &'a [Known],
}

impl RandomOps<'_> {
    fn key(&mut self) -> Key {
        let most = if self.dice.percent(85) { 2 } else { self.keys.len() as u64 };
        self.keys[self.dice.below(most) as usize].0
    }

    fn command(&mut self, action: Action, offset: u64, len: u64) -> Command {
        let claim = Claim { key: self.key(), offset, len };
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
    fn transfer(&mut self, action: Action) -> RandomOp {
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
        let mut command = self.command(action, offset, len);
        if command.claim.key == self.keys[UNHEARD].0 {
            // Of several pieces the last one alone would fault. Handles refuse such an operation.
            command.classes &= Classes::REQUESTER;
        }
        RandomOp { command, shape, local }
    }

    pub(crate) fn next(&mut self) -> RandomOp {
        let (offset, atomic) = self.word();
        let (action, len) = match self.dice.below(8) {
            0..3 => return self.transfer(Action::Put),
            3 | 4 => return self.transfer(Action::Get),
            5 => (Action::Immediate(self.dice.word()), 8),
            6 => (Action::Notify, 0),
            _ if self.dice.percent(50) => (Action::Atomic(atomic), atomic.width.bytes()),
            _ => (Action::Fetch(atomic), atomic.width.bytes()),
        };
        let offset = if action == Action::Notify { 0 } else { offset };
        let command = self.command(action, offset, len);
        RandomOp { command, shape: Shape::contiguous(len), local: Vec::new() }
    }

    /// A deposit message with its data, which may want an answer.
    pub(crate) fn message(&mut self) -> (Posted, Vec<u8>) {
        let nothing = Form::Carried(Instruction::parse(0).expect("nothing is an instruction"));
        let (brings, is_answered) = (self.dice.percent(50), self.dice.percent(60));
        let len = if brings || is_answered { self.dice.below(1000) as u16 } else { 0 };
        let operand = self.dice.word();
        let message =
            DepositMessage { form: nothing, operand, mask: Mask::ALL, len, brings, is_answered };
        let (key, classes) = (self.key(), Classes::REQUESTER);
        let (tag, value) = (self.dice.word() as u32, self.dice.word());
        let posted = Posted { key, epoch: 0, classes, tag, value, message };
        let data = vec![self.dice.word() as u8; if brings { usize::from(len) } else { 0 }];
        (posted, data)
    }
}
