//! One port: what it lets its peer reach, and what it has under way.
use super::way::{Channel, Lands, Lanes, Reply, Way};
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{Carried, DATA_MAX, DepositMessage, Form, Mask};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::RECORD_MAX;
use ayre_proto::node::initiator::{Awaited, Begun, Bounds, Commands, Ended, Initiator, Refused};
use ayre_proto::node::target::{Delivery, Exchange, Exposed, Resources, Target};
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Extent, Key, PeerId, Rights, Ticket};
use ayre_proto::xlate::{Cover, Table};
use std::collections::VecDeque;

/// Bytes of a port's memory, of which its peer may reach those from `BASE` on.
pub(crate) const MEMORY: usize = 1 << 15;
pub(crate) const BASE: u64 = 1024;
pub(crate) const LEN: u64 = 30_000;
/// The byte of unwritten memory.
pub(crate) const NOTHING: u8 = 0xee;

/// The memory that a port lets its peer reach.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The number of its region.
    region: u16,
    pub(crate) memory: Vec<u8>,
    pub(crate) notes: VecDeque<Notification>,
    /// Of the peer's notifications, how many the program has taken or nobody has raised.
    pub(crate) taken: u64,
    /// The bytes that a message has read.
    read: Vec<u8>,
    pub(crate) is_depot_busy: bool,
    pub(crate) has_inlets: bool,
}

impl Shared {
    pub(crate) fn new(region: u16) -> Self {
        Self {
            region,
            memory: vec![NOTHING; MEMORY],
            notes: VecDeque::new(),
            taken: 0,
            read: vec![0; DATA_MAX],
            is_depot_busy: false,
            has_inlets: true,
        }
    }

    fn place(&self, extent: Extent) -> std::ops::Range<usize> {
        assert_eq!(extent.region(), self.region, "the key is one of this region");
        extent.offset() as usize..(extent.offset() + extent.len()) as usize
    }

    fn word(&self, at: Extent) -> u64 {
        let mut word = [0; 8];
        let bytes = &self.memory[self.place(at)];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }
}

/// The result of a message follows from its operand.
pub(crate) fn carried(posted: &Posted) -> Carried {
    let given = posted.message.operand.rotate_left(7);
    let (status, notifies) = match posted.message.operand % 5 {
        0 => (Status::Ok, false),
        1 => (Status::Ok, true),
        2 => (Status::Declined, false),
        3 => (Status::Fault(Fault::Held), false),
        _ => (Status::Fault(Fault::Stopped), false),
    };
    Carried { status, given, notifies }
}

impl Exposed for Shared {
    fn write(&mut self, to: Extent, data: &[u8]) {
        let place = self.place(to);
        self.memory[place].copy_from_slice(data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        into.copy_from_slice(&self.memory[self.place(from)]);
    }

    fn store(&mut self, to: Extent, value: u64) {
        let place = self.place(to);
        self.memory[place].copy_from_slice(&value.to_le_bytes());
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let old = self.word(at);
        if let Some(new) = atomic.apply(old) {
            let place = self.place(at);
            let len = place.len();
            self.memory[place].copy_from_slice(&new.to_le_bytes()[..len]);
        }
        atomic.fetched(old)
    }

    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery {
        if !self.has_inlets {
            return Delivery::NoInlet;
        }
        if self.is_depot_busy {
            return Delivery::Busy;
        }
        let carried = carried(posted);
        let (base, len) = (at.offset() as usize, usize::from(posted.message.len));
        let memory = &mut self.memory[base..][..len];
        if posted.message.brings {
            let mut data = vec![0; len];
            exchange.bring(&mut data);
            if carried.status == Status::Ok {
                memory.copy_from_slice(&data);
            }
        } else {
            self.read = memory.to_vec();
        }
        Delivery::Carried(carried)
    }

    fn give(&self, into: &mut [u8]) {
        into.copy_from_slice(&self.read[..into.len()]);
    }
}

impl Resources for Shared {
    fn notify(&mut self, notification: Notification) {
        self.notes.push_back(notification);
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// A call that waits, and its buffer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) awaited: Awaited,
    pub(crate) into: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: PeerId,
    pub(crate) table: Table,
    pub(crate) shared: Shared,
    pub(crate) target: Target,
    /// The counts that the peer was told: commands executed, notifications taken.
    pub(crate) told: (u64, u64),
    pub(crate) initiator: Initiator<usize, Reply>,
    /// Of gets that no call waits for.
    pub(crate) buffers: Vec<Vec<u8>>,
    pub(crate) replies: Vec<(u64, Vec<u8>)>,
    pub(crate) are_replies_held_up: bool,
    /// How replies end.
    pub(crate) reply_outcome: (Status, Option<Notification>),
    pub(crate) call: Option<Call>,
}

impl Port {
    pub(crate) fn new(number: u16) -> Self {
        let (number, peer) = (PeerId(number), PeerId(1 - number));
        Self {
            number,
            table: Table::new(16),
            shared: Shared::new(7),
            target: Target::new(peer),
            told: (0, 0),
            initiator: Initiator::new(),
            buffers: Vec::new(),
            replies: Vec::new(),
            are_replies_held_up: false,
            reply_outcome: (Status::Ok, None),
            call: None,
        }
    }

    /// Hands a capability over.
    pub(crate) fn share(&mut self, holder: PeerId, rights: Rights) -> Key {
        let cover = Cover { holder, rights, region: 7, base: BASE, len: LEN };
        self.table.insert(cover).expect("a free slot")
    }

    /// Serves the record whose turn it is. False where it waits.
    pub(crate) fn serve(
        &mut self,
        requests: &mut Channel,
        answers: &mut Channel,
    ) -> Result<bool, Malformed> {
        let Self { target, table, shared, .. } = self;
        target.serve(table, shared, &mut Lanes { requests, answers })
    }

    /// Tells the peer how far its commands have come, and what its program has read.
    pub(crate) fn tell(&mut self) {
        if self.target.has_spared() {
            self.shared.taken += self.target.take_spared();
        }
        self.told = (self.target.executed(), self.shared.taken);
    }

    /// The program here takes a notification.
    pub(crate) fn read_note(&mut self) -> Option<Notification> {
        let note = self.shared.notes.pop_front()?;
        self.shared.taken += 1;
        Some(note)
    }

    /// Takes in the answers that have come, and that `done` commands were executed; returns what
    /// has ended.
    pub(crate) fn take(
        &mut self,
        answers: &mut Channel,
        done: u64,
    ) -> Result<Vec<Ended>, Malformed> {
        let (awaited, call) = match &mut self.call {
            Some(Call { awaited, into }) => (Some(&*awaited), &mut into[..]),
            None => (None, &mut [][..]),
        };
        let mut lands = Lands {
            answers,
            call,
            buffers: &mut self.buffers,
            replies: &mut self.replies,
            is_depot_busy: self.are_replies_held_up,
            outcome: self.reply_outcome,
        };
        self.initiator.take_in(done, awaited, &mut lands)?;
        let mut ended = Vec::new();
        while let Some(one) = self.initiator.pop() {
            if let Some(call) = &mut self.call {
                call.awaited.hear(&one);
            }
            ended.push(one);
        }
        Ok(ended)
    }

    /// The way to a peer that has told so much.
    pub(crate) fn way<'a>(
        channel: &'a mut Channel,
        bounds: Bounds,
        taken: u64,
        source: &'a [u8],
    ) -> Way<'a> {
        Way { channel, bounds, taken, source }
    }
}

/// Lanes of `lines` lines.
pub(crate) fn lanes(lines: usize) -> Bounds {
    let room = lines * ayre_proto::limits::LINE_PAYLOAD;
    Bounds { requests: Some(room), responses: room, most: RECORD_MAX, worth: RECORD_MAX }
}

/// An initiator at the first port, its target at the second, and a key to all of its memory.
#[derive(Debug)]
pub(crate) struct OneWay {
    pub(crate) near: Port,
    pub(crate) far: Port,
    pub(crate) requests: Channel,
    pub(crate) answers: Channel,
    pub(crate) bounds: Bounds,
    pub(crate) key: Key,
}

impl OneWay {
    /// A port with lanes of `lines` lines.
    pub(crate) fn new(lines: usize) -> Self {
        let (near, mut far) = (Port::new(0), Port::new(1));
        let key = far.share(near.number, Rights::all());
        let [requests, answers] = [0, 1].map(|_| Channel::new(true, lines as u64));
        Self { near, far, requests, answers, bounds: lanes(lines), key }
    }

    pub(crate) fn command(&self, action: Action, offset: u64, len: u64) -> Command {
        let claim = Claim { key: self.key, offset, len };
        Command { action, classes: Classes::empty(), tag: 5, value: 6, claim }
    }

    /// Posts an operation, and pushes what finds room of it.
    pub(crate) fn post(
        &mut self,
        command: &Command,
        shape: &Shape,
        source: &[u8],
        memory: Option<usize>,
    ) -> Result<(usize, Ticket, Commands), Refused> {
        let taken = self.far.told.1;
        let mut way = Port::way(&mut self.requests, self.bounds, taken, source);
        let initiator = &mut self.near.initiator;
        let limit = initiator.check_room(command, shape, false, &mut way)?;
        let Begun { place, ticket, mut commands } = initiator.begin(command, shape, limit, memory);
        commands.push(&mut way);
        Ok((place, ticket, commands))
    }

    /// Begins a put of these bytes.
    pub(crate) fn put(
        &mut self,
        offset: u64,
        data: &[u8],
        classes: Classes,
    ) -> Result<Ticket, Refused> {
        let len = data.len() as u64;
        let command = Command { classes, ..self.command(Action::Put, offset, len) };
        let posted = self.post(&command, &Shape::contiguous(len), data, None);
        posted.map(|(_, ticket, _)| ticket)
    }

    /// Posts a deposit message that brings these bytes, or expects a number of them.
    pub(crate) fn message(
        &mut self,
        operand: u64,
        data: &[u8],
        wanted: Option<usize>,
        reply: Option<(Reply, usize)>,
    ) -> Result<(usize, Ticket), Refused> {
        let message = DepositMessage {
            form: Form::Probe,
            operand,
            mask: Mask::ALL,
            len: wanted.unwrap_or(data.len()) as u16,
            brings: wanted.is_none(),
            is_answered: true,
        };
        let (key, classes) = (self.key, Classes::empty());
        let posted = Posted { key, epoch: 0, classes, tag: 1, value: 2, message };
        let taken = self.far.told.1;
        let mut way = Port::way(&mut self.requests, self.bounds, taken, data);
        self.near.initiator.check_message_room(&posted, data.len(), &mut way)?;
        Ok(self.near.initiator.begin_message(&posted, data.len(), reply, &mut way))
    }

    pub(crate) fn serve(&mut self) -> Result<bool, Malformed> {
        self.far.serve(&mut self.requests, &mut self.answers)
    }

    pub(crate) fn take(&mut self) -> Result<Vec<Ended>, Malformed> {
        self.near.take(&mut self.answers, self.far.told.0)
    }

    /// Everything that was pushed is performed, as far as it goes, and what has ended is told.
    pub(crate) fn settle(&mut self) -> Vec<Ended> {
        while self.serve().expect("an honest initiator") {}
        self.far.tell();
        self.take().expect("an honest target")
    }

    /// The target's memory from an offset of the capability on.
    pub(crate) fn there(&self, offset: u64, len: usize) -> &[u8] {
        &self.far.shared.memory[(BASE + offset) as usize..][..len]
    }
}
