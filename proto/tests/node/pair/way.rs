//! The ways between two ports: records in order, as far as there is room.
use ayre_proto::command::{COMMAND_BYTES, Head, RESPONSE_BYTES, Words};
use ayre_proto::lane::{Kind, Malformed, Status, lines_for};
use ayre_proto::limits::{LINE_PAYLOAD, RECORD_MAX};
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::node::initiator::{Bounds, Landing, Requests, ResponseLane};
use ayre_proto::node::target::{CommandLane, Exchange};
use ayre_proto::notify::Notification;
use std::collections::VecDeque;

/// A record in a lane or in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// Bytes of the whole record, as its status says.
    pub(crate) len: usize,
    pub(crate) words: Vec<u64>,
    pub(crate) data: Vec<u8>,
}

impl Record {
    pub(crate) fn new(kind: Kind, words: &[u64], data: &[u8]) -> Self {
        let len = words.len() * 8 + data.len();
        Self { kind, len, words: words.to_vec(), data: data.to_vec() }
    }

    pub(crate) fn command(words: Words, data: &[u8]) -> Self {
        Self::new(Kind::Command, &words, data)
    }

    pub(crate) fn answer(head: Head, data: &[u8]) -> Self {
        Self::new(Kind::Response, &head, data)
    }

    pub(crate) fn status(&self) -> Status {
        Status { sequence: 1, kind: self.kind, len: self.len as u32, tag: 0 }
    }

    /// The first words, and zeros where there are less.
    pub(crate) fn head<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|index| self.words.get(index).copied().unwrap_or(0))
    }
}

/// A lane of `room` lines, or a link with room for `room` frames.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) records: VecDeque<Record>,
    is_lane: bool,
    room: u64,
}

impl Channel {
    pub(crate) fn new(is_lane: bool, room: u64) -> Self {
        Self { records: VecDeque::new(), is_lane, room }
    }

    fn units(&self, len: usize) -> u64 {
        if self.is_lane { u64::from(lines_for(len)) } else { 1 }
    }

    fn left(&self) -> u64 {
        let used: u64 = self.records.iter().map(|record| self.units(record.len)).sum();
        self.room - used
    }

    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.units(len) <= self.left()
    }

    pub(crate) fn push(&mut self, record: Record) {
        assert!(self.has_room(record.len), "room was made sure of");
        assert!(record.len <= RECORD_MAX, "no record is longer");
        self.records.push_back(record);
    }

    /// Bytes of the longest record.
    fn longest(&self) -> usize {
        let lane = self.room as usize * LINE_PAYLOAD;
        if self.is_lane { lane.min(RECORD_MAX) } else { RECORD_MAX }
    }
}

/// From an initiator to its target.
pub(crate) struct Way<'a> {
    pub(crate) channel: &'a mut Channel,
    pub(crate) bounds: Bounds,
    /// Notifications that the target has said to be taken.
    pub(crate) taken: u64,
    /// The source of a put's data.
    pub(crate) source: &'a [u8],
}

impl Requests for Way<'_> {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn has_room(&mut self, _: bool, data: usize) -> bool {
        self.channel.has_room(COMMAND_BYTES + data)
    }

    fn push(&mut self, command: &impl CommandRecord, (at, len): (u64, usize)) {
        let data = if len > 0 { &self.source[at as usize..][..len] } else { &[] };
        self.channel.push(Record::command(command.words(), data));
    }

    fn reach(&self) -> u64 {
        self.channel.room
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        units <= self.channel.left()
    }
}

/// The data of a command that has come, and the way of its answer.
pub(crate) struct Incoming<'a> {
    pub(crate) data: &'a [u8],
    /// The data was put in place before the command's turn.
    pub(crate) is_placed: bool,
    pub(crate) answers: &'a mut Channel,
}

impl Exchange for Incoming<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        into.copy_from_slice(&self.data[..into.len()]);
    }

    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        if !self.is_placed {
            write(&self.data[..len]);
        }
    }

    fn longest(&self) -> usize {
        self.answers.longest()
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.answers.has_room(len)
    }

    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let mut data = vec![0; len];
        fill(&mut data);
        assert_eq!(size_of_val(&head), RESPONSE_BYTES);
        self.answers.push(Record::answer(head, &data));
    }
}

/// A lane of commands, and one of answers.
pub(crate) struct Lanes<'a> {
    pub(crate) requests: &'a mut Channel,
    pub(crate) answers: &'a mut Channel,
}

impl Lanes<'_> {
    /// The one at the head, as it has come.
    fn came(&mut self) -> Incoming<'_> {
        let record = self.requests.records.front();
        let data = &record.expect("it stays until it was performed").data;
        Incoming { data, is_placed: false, answers: &mut *self.answers }
    }
}

impl CommandLane for Lanes<'_> {
    fn peek(&self) -> Option<Result<Status, Malformed>> {
        self.requests.records.front().map(|record| Ok(record.status()))
    }

    fn head(&self) -> Words {
        self.requests.records.front().map_or([0; 6], Record::head)
    }

    fn consume(&mut self, _: &Status) {
        assert!(self.requests.records.pop_front().is_some(), "it was there");
    }
}

impl Exchange for Lanes<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        self.came().bring(into);
    }

    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        self.came().deposit(len, write);
    }

    fn longest(&self) -> usize {
        self.answers.longest()
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.answers.has_room(len)
    }

    fn answer(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        self.came().answer(head, len, fill);
    }
}

/// A reply that expects a number of bytes, and the bytes that it got.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) got: Option<(u64, Vec<u8>)>,
}

/// A lane of answers, and where their data goes.
pub(crate) struct Lands<'a> {
    pub(crate) answers: &'a mut Channel,
    /// The buffer of the call that waits.
    pub(crate) call: &'a mut [u8],
    /// Memory for gets that no call waits for.
    pub(crate) buffers: &'a mut [Vec<u8>],
    /// The results of replies, in their order.
    pub(crate) replies: &'a mut Vec<(u64, Vec<u8>)>,
    pub(crate) is_depot_busy: bool,
    /// How a reply ends, and what it raises.
    pub(crate) outcome: (ayre_proto::fault::Status, Option<Notification>),
}

impl Lands<'_> {
    fn data(&self, len: usize) -> &[u8] {
        let record = self.answers.records.front();
        &record.expect("it stays until it was taken in").data[..len]
    }
}

impl ResponseLane<usize, Reply> for Lands<'_> {
    fn lines(&self) -> u32 {
        self.answers.records.len() as u32
    }

    fn peek(&self) -> Option<Result<Status, Malformed>> {
        self.answers.records.front().map(|record| Ok(record.status()))
    }

    fn head(&self) -> Head {
        self.answers.records.front().map_or([0; 2], Record::head)
    }

    fn consume(&mut self, _: &Status) {
        assert!(self.answers.records.pop_front().is_some(), "it was there");
    }
}

impl Landing<usize, Reply> for Lands<'_> {
    fn to_call(&mut self, offset: u64, len: usize) {
        let data = self.data(len).to_vec();
        self.call[offset as usize..][..len].copy_from_slice(&data);
    }

    fn to_memory(&mut self, memory: &usize, offset: u64, len: usize) {
        let data = self.data(len).to_vec();
        self.buffers[*memory][offset as usize..][..len].copy_from_slice(&data);
    }

    fn reply(
        &mut self,
        reply: &mut Reply,
        given: u64,
        len: usize,
    ) -> Option<(ayre_proto::fault::Status, Option<Notification>)> {
        if self.is_depot_busy {
            return None;
        }
        assert!(reply.got.is_none(), "a reply is carried out once");
        let got = (given, self.data(len).to_vec());
        reply.got = Some(got.clone());
        self.replies.push(got);
        Some(self.outcome)
    }
}
