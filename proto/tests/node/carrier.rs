//! A carrier between the lanes of a port, which the tests write and read, and a sheet of paper.
use crate::paper::{Paper, paper};
use crate::plain_memory::frames;
use crate::port::PlainPort;
use crate::served::Served;
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::command::Request;
use ayre_proto::execute::{Action, Command};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::link::frame::{Channel, Flags, Full, Payload, Record, RecordKind};
use ayre_proto::node::carrier::counts::Counts;
use ayre_proto::node::carrier::frames::FRAMES_MAX;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::node::carrier::{About, COUNTS_DELAY, Carrier, Taken};
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;

const PEER: PeerId = PeerId(3);
/// Lines of the lanes: of messages, and of answers.
const LINES: [u32; 2] = [32, 32];

/// A carrier, the port whose lanes it stands at, and who performs commands there.
pub(crate) struct Stage {
    pub(crate) carrier: Carrier,
    pub(crate) port: PlainPort,
    target: Served,
}

impl Stage {
    /// A stage with rings of `lines` lines.
    fn with_rings(lines: u32) -> Self {
        let port = PlainPort::new([LINES[0], LINES[1], lines]);
        Self { carrier: Carrier::new(), port, target: Served::new(PEER) }
    }

    pub(crate) fn new() -> Self {
        Self::with_rings(0)
    }

    pub(crate) fn gather(&mut self, paper: &mut Paper) {
        self.carrier.gather(&mut self.port, paper);
    }

    fn take_onto(
        &mut self,
        (kind, tag, bytes): (RecordKind, u32, &[u8]),
        paper: &mut Paper,
    ) -> Result<Taken, Malformed> {
        let Self { carrier, port, target } = self;
        carrier.take(&Record { kind, tag, bytes }, port, target, paper)
    }

    /// Where no answer has room.
    pub(crate) fn take(
        &mut self,
        kind: RecordKind,
        tag: u32,
        bytes: &[u8],
    ) -> Result<Taken, Malformed> {
        self.take_onto((kind, tag, bytes), &mut paper(0))
    }

    /// A control record comes.
    pub(crate) fn hear(&mut self, about: About, words: &[u64]) -> Result<Taken, Malformed> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.take(RecordKind::Control, about as u32, &bytes)
    }

    fn hear_counts(&mut self, counts: Counts, serial: u32) -> Result<Taken, Malformed> {
        self.hear(About::Counts, &counts.encode(serial))
    }
}

fn request(action: Action) -> Request {
    let claim = Claim { key: Key { slot: 0, generation: 1 }, offset: 0, len: 8 };
    let classes = Classes::empty();
    Request { command: Command { action, classes, tag: 0, value: 0, claim }, cookie: 0 }
}

/// A command, as it travels.
fn command(action: Action) -> Vec<u8> {
    request(action).encode().into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A message, with the count of commands before it.
fn message(text: &[u8]) -> Vec<u8> {
    [&2_u64.to_le_bytes(), text].concat()
}

// spec: WIRE-1
#[test]
fn messages_go_out_in_order_as_far_as_there_is_room() {
    let mut stage = Stage::new();
    for tag in 0..4 {
        assert!(stage.port.messages.push(Kind::GatedMessage, tag, &message(b"m")));
    }
    let mut paper = paper(2);
    stage.gather(&mut paper);
    assert_eq!(paper.records.len(), 2);
    paper.room = 100;
    stage.gather(&mut paper);
    let seen: Vec<_> = paper.records.iter().map(|(at, kind, tag, _)| (*at, *kind, *tag)).collect();
    assert_eq!(seen, [0, 1, 2, 3].map(|tag| (Channel::Posted, RecordKind::Message, tag)));
    assert!(paper.records.iter().all(|(.., bytes)| *bytes == message(b"m")));
}

// spec: WIRE-1, WIRE-2
#[test]
fn commands_are_numbered_as_they_are_posted_and_wait_where_frames_are_full() {
    let mut carrier = Carrier::new();
    let mut frames = frames(256);
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let actions = [Action::Put, Action::Get, Action::Fetch(add), Action::Atomic(add)];
    for action in actions {
        carrier.post(&request(action), (0, |_| {}), &mut frames).unwrap();
    }
    let mut sent = |channel| {
        let (digest, _) = frames.depart((channel, 0), 0);
        let payload = Payload::parse(frames.sent(channel, 0).payload()).unwrap();
        assert_eq!(payload_len(payload), usize::from(digest.len));
        payload.records().map(|record| record.tag).collect::<Vec<_>>()
    };
    assert_eq!((sent(Channel::Posted), sent(Channel::NonPosted)), (vec![1, 4], vec![2, 3]));
    let mut post = || carrier.post(&request(Action::Put), (100, |data| data.fill(7)), &mut frames);
    let posted = std::iter::repeat_with(&mut post).take_while(Result::is_ok).count();
    assert_eq!(posted, FRAMES_MAX + 1, "those that are ready, and the one that is filled");
    assert_eq!(post(), Err(Full));
    frames.depart((Channel::Posted, 1), 0);
    assert_eq!(carrier.post(&request(Action::Put), (100, |_| {}), &mut frames), Ok(()));
}

fn payload_len(payload: Payload<'_>) -> usize {
    payload.records().map(|record| 8 + record.bytes.len().next_multiple_of(8)).sum()
}

// spec: WIRE-13
#[test]
fn a_frame_is_early_where_all_before_its_puts_is_known_to_be_executed() {
    let mut carrier = Carrier::new();
    let mut frames = frames(256);
    let mut post = |action, offset| {
        let mut request = request(action);
        request.command.claim.offset = offset;
        // Two fit no frame.
        let len = if action == Action::Put { 150 } else { 0 };
        carrier.post(&request, (len, |_| {}), &mut frames).unwrap();
    };
    for (action, offset) in [(Action::Put, 0), (Action::Put, 8), (Action::Put, 8)] {
        post(action, offset);
    }
    post(Action::Get, 100);
    post(Action::Put, 16);
    let mut departs = |seq, executed| frames.depart((Channel::Posted, seq), executed).1;
    assert_eq!(departs(0, 0), Flags::EARLY, "nothing was posted before");
    assert_eq!(departs(1, 0), Flags::EARLY, "what was reaches other bytes");
    assert_eq!(departs(2, 1), Flags::empty(), "the same bytes were written before");
    assert_eq!(departs(3, 3), Flags::empty(), "the get may not have been executed");
    assert_eq!(frames.depart((Channel::NonPosted, 0), 9).1, Flags::empty(), "a get");
    let mut post = |offset| {
        let mut request = request(Action::Put);
        request.command.claim.offset = offset;
        carrier.post(&request, (150, |_| {}), &mut frames).unwrap();
    };
    post(16);
    assert_eq!(frames.depart((Channel::Posted, 4), 5).1, Flags::EARLY, "all was executed");
}

// spec: WIRE-2
#[test]
fn commands_are_performed_in_the_order_of_their_numbers() {
    let mut stage = Stage::new();
    let (bytes, mut paper) = (command(Action::Immediate(1)), paper(100));
    let mut take = |number| stage.take_onto((RecordKind::Command, number, &bytes), &mut paper);
    assert_eq!(take(2), Ok(Taken::NotYet));
    assert_eq!(take(1), Ok(Taken::Taken));
    assert_eq!(take(2), Ok(Taken::Taken));
    assert_eq!(take(2), Err(Malformed), "its turn is over");
    assert_eq!(take(u32::MAX), Err(Malformed), "and so is that of one long ago");
    let answers: Vec<_> = paper.records.iter().map(|(_, kind, ..)| *kind).collect();
    assert_eq!(answers, [RecordKind::Response; 2], "there is no memory to reach");
}

// spec: WIRE-2
#[test]
fn a_command_waits_for_room_for_its_answer_and_until_it_is_served() {
    let mut stage = Stage::new();
    let bytes = command(Action::Immediate(1));
    let first = (RecordKind::Command, 1, &bytes[..]);
    assert_eq!(stage.take_onto(first, &mut paper(0)), Ok(Taken::NotYet));
    stage.target.is_served = false;
    assert_eq!(stage.take_onto(first, &mut paper(1)), Ok(Taken::NotYet));
    stage.target.is_served = true;
    assert_eq!(stage.take_onto(first, &mut paper(1)), Ok(Taken::Taken));
}

/// A port with a region of 64 bytes that the peer may write, and the claim that reaches it.
fn with_memory() -> (Stage, Claim) {
    let mut stage = Stage::new();
    let cover = Cover { holder: PEER, rights: Rights::WRITE, region: 0, base: 0, len: 64 };
    let key = stage.target.table.insert(cover).unwrap();
    stage.target.plain.regions.push(vec![0; 64]);
    (stage, Claim { key, offset: 0, len: 8 })
}

/// A put to this claim with its data, as it travels.
fn put(claim: Claim, data: &[u8]) -> Vec<u8> {
    let mut request = request(Action::Put);
    request.command.claim = claim;
    let head: Vec<u8> = request.encode().into_iter().flat_map(u64::to_le_bytes).collect();
    [&head, data].concat()
}

/// A payload of these commands, numbered from `first` on.
fn payload_of(commands: &[Vec<u8>], first: u32) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let mut packer = ayre_proto::link::frame::Packer::new(&mut bytes);
    for (number, command) in (first..).zip(commands) {
        packer.push((RecordKind::Command, number), [], command).unwrap();
    }
    packer.payload().to_vec()
}

// spec: WIRE-13
#[test]
fn puts_that_are_placed_early_are_performed_in_their_turn_without_their_data() {
    let (mut stage, claim) = with_memory();
    let second = Claim { offset: 8, ..claim };
    let bytes = payload_of(&[put(claim, &[7; 8]), put(second, &[8; 8])], 2);
    let Stage { carrier, target, .. } = &mut stage;
    let left = carrier.place(&Payload::parse(&bytes).unwrap(), target).unwrap();
    assert_eq!(target.plain.regions[0][..16], [[7; 8], [8; 8]].concat());
    assert_eq!(target.target.executed(), 0, "their turn has not come");
    target.plain.regions[0].fill(0);
    let records: Vec<_> = Payload::parse(&left).unwrap().records().collect();
    let take = |stage: &mut Stage, record| {
        let Stage { carrier, port, target } = stage;
        carrier.take_placed(record, port, target, &mut paper(9))
    };
    assert_eq!(take(&mut stage, &records[0]), Ok(Taken::NotYet), "another one comes first");
    let first = (RecordKind::Command, 1, &command(Action::Notify)[..]);
    assert_eq!(stage.take_onto(first, &mut paper(9)), Ok(Taken::Taken));
    for record in &records {
        assert_eq!(take(&mut stage, record), Ok(Taken::Taken));
    }
    let Served { target, plain, .. } = &stage.target;
    assert_eq!((target.executed(), &plain.regions[0]), (3, &vec![0; 64]), "not written again");
}

// spec: WIRE-13
#[test]
fn only_frames_of_valid_puts_are_placed_directly() {
    let (mut stage, claim) = with_memory();
    let Stage { carrier, target, .. } = &mut stage;
    let outside = Claim { offset: 60, ..claim };
    for other in [put(outside, &[9; 8]), command(Action::Get)] {
        let bytes = payload_of(&[put(claim, &[7; 8]), other], 2);
        assert_eq!(carrier.place(&Payload::parse(&bytes).unwrap(), target), None);
    }
}

// spec: WIRE-3
#[test]
fn an_answer_waits_until_the_port_takes_some() {
    let mut stage = Stage::new();
    let take = |stage: &mut Stage| stage.take(RecordKind::Response, 0, &[0; 16]);
    for _ in 0..LINES[1] {
        assert_eq!(take(&mut stage), Ok(Taken::Taken));
    }
    assert_eq!(take(&mut stage), Ok(Taken::NotYet));
    for _ in 0..LINES[1] / 4 {
        stage.port.answers.take().unwrap();
    }
    assert_eq!(take(&mut stage), Ok(Taken::Taken));
}

// spec: WIRE-3
#[test]
fn lines_come_back_when_the_other_side_gives_them_back() {
    let mut stage = Stage::new();
    let send = |stage: &mut Stage| stage.port.messages.push(Kind::GatedMessage, 0, &message(&[1]));
    let sent = std::iter::repeat_with(|| send(&mut stage)).take_while(|sent| *sent).count();
    let mut sheet = paper(1000);
    stage.gather(&mut sheet);
    assert_eq!(sheet.records.len(), sent);
    assert!(!send(&mut stage), "passed on is not given back");
    let told = |lines| Counts { lines, ..Counts::default() };
    assert_eq!(stage.hear_counts(told(8), 1), Ok(Taken::Taken));
    let again = std::iter::repeat_with(|| send(&mut stage)).take(9).filter(|sent| *sent);
    assert_eq!(again.count(), 8);
    assert_eq!(stage.hear_counts(told(4), 1), Ok(Taken::Taken), "an old one says nothing");
    assert_eq!(stage.hear_counts(told(4), 2), Err(Malformed), "what was given stays given");
}

// spec: WIRE-3
#[test]
fn a_record_without_room_is_malformed() {
    let mut stage = Stage::new();
    let take = |stage: &mut Stage| stage.take(RecordKind::Message, 0, &[0; 9]);
    for _ in 0..LINES[0] {
        assert_eq!(take(&mut stage), Ok(Taken::Taken));
    }
    assert_eq!(take(&mut stage), Err(Malformed));
    assert!(stage.port.came.take().is_some(), "what had room is there");
}

// spec: WIRE-4
#[test]
fn commands_count_as_executed_once_their_responses_have_come() {
    let mut stage = Stage::new();
    let mut frames = frames(1024);
    for _ in 0..3 {
        stage.carrier.post(&request(Action::Get), (0, |_| {}), &mut frames).unwrap();
    }
    let counts = |responses, done| Counts { responses, done, ..Counts::default() };
    assert_eq!(stage.hear_counts(counts(1, 2), 1), Ok(Taken::Taken));
    assert_eq!(stage.port.done_there, 0);
    assert_eq!(stage.hear_counts(counts(1, 4), 2), Err(Malformed), "more than were posted");
    assert_eq!(stage.take(RecordKind::Response, 0, &[0; 16]), Ok(Taken::Taken));
    assert_eq!((stage.port.done_there, stage.carrier.executed_there()), (2, 2));
    assert_eq!(stage.hear_counts(counts(1, 1), 3), Err(Malformed), "fewer than before");
}

// spec: WIRE-4
#[test]
fn counts_are_sent_at_once_if_a_peer_waits_and_otherwise_soon() {
    let mut stage = Stage::new();
    let mut paper = paper(100);
    stage.gather(&mut paper);
    assert_eq!((paper.records.len(), stage.carrier.deadline()), (0, None), "nothing to tell");
    stage.carrier.ask();
    stage.gather(&mut paper);
    let (channel, kind, tag, _) = &paper.records[0];
    let asking = (Channel::Response, RecordKind::Control, About::CountsAsking as u32);
    assert_eq!((*channel, *kind, *tag), asking);
    stage.port.noted = 1;
    stage.gather(&mut paper);
    assert_eq!((paper.records.len(), stage.carrier.deadline()), (1, Some(COUNTS_DELAY)));
    paper.now = COUNTS_DELAY;
    stage.gather(&mut paper);
    assert_eq!((paper.records.len(), stage.carrier.deadline()), (2, None));
}

// spec: WIRE-4
#[test]
fn counts_are_piggybacked_or_sent_at_once_if_asked_or_many() {
    let told = |change: &dyn Fn(&mut Stage, &mut Paper)| {
        let (mut stage, mut paper) = (Stage::new(), paper(9));
        stage.port.noted = 1;
        change(&mut stage, &mut paper);
        stage.gather(&mut paper);
        paper.records.first().map(|(channel, ..)| *channel)
    };
    assert_eq!(told(&|_, _| {}), None, "nobody waits");
    let along = |_: &mut Stage, paper: &mut Paper| paper.begun = Some(Channel::NonPosted);
    assert_eq!(told(&along), Some(Channel::NonPosted));
    let asked = |stage: &mut Stage, _: &mut Paper| {
        stage.hear(About::CountsAsking, &Counts::default().encode(1)).unwrap();
    };
    assert_eq!(told(&asked), Some(Channel::Response));
    assert_eq!(told(&|stage, _| stage.port.done = 15), None);
    assert_eq!(told(&|stage, _| stage.port.done = 16), Some(Channel::Response));
    let given_back = |stage: &mut Stage, _: &mut Paper| {
        for _ in 0..LINES[0] / 4 {
            stage.take(RecordKind::Message, 0, &[0; 9]).unwrap();
            stage.port.came.take();
        }
    };
    assert_eq!(told(&given_back), Some(Channel::Response));
    assert_eq!(told(&|stage, _| stage.carrier.tell_now()), Some(Channel::Response));
}

// spec: WIRE-1
#[test]
fn a_barrier_is_passed_on_behind_everything_that_was_posted_before_it() {
    let (mut stage, mut paper) = (Stage::new(), paper(1));
    stage.port.barrier = 5;
    for tag in 0..2 {
        assert!(stage.port.messages.push(Kind::GatedMessage, tag, &message(b"m")));
    }
    stage.gather(&mut paper);
    assert_eq!(paper.records.len(), 1, "a message, and no barrier before the other one");
    paper.room = 9;
    (0..2).for_each(|_| stage.gather(&mut paper));
    let kinds: Vec<_> = paper.records.iter().map(|(_, kind, tag, _)| (*kind, *tag)).collect();
    let barrier = (RecordKind::Control, About::Barrier as u32);
    assert_eq!(kinds, [(RecordKind::Message, 0), (RecordKind::Message, 1), barrier], "once");
    assert_eq!(stage.hear(About::Barrier, &[7]), Ok(Taken::Taken));
    assert_eq!(stage.port.barrier_there, 7);
}

// spec: WIRE-1
#[test]
fn offers_go_out_in_order_and_come_to_the_port() {
    let (mut stage, mut paper) = (Stage::new(), paper(1));
    let offer = |kind, word| Offer { kind, words: [word; 7] };
    let offers = [offer(OfferKind::Region, 1), offer(OfferKind::Inlet, 2)];
    stage.port.offers.extend(offers);
    stage.gather(&mut paper);
    assert_eq!(paper.records.len(), 1);
    paper.room = 9;
    stage.gather(&mut paper);
    let mut other = Stage::new();
    for (channel, kind, tag, bytes) in &paper.records {
        assert_eq!(*channel, Channel::Posted);
        assert_eq!(other.take(*kind, *tag, bytes), Ok(Taken::Taken));
    }
    assert_eq!(other.port.offered, offers);
}

#[test]
fn a_control_record_of_unknown_kind_or_length_is_malformed() {
    let mut stage = Stage::new();
    let lens = [(About::Counts, 4), (About::Region, 7), (About::Barrier, 1), (About::Inlet, 7)];
    for (about, len) in lens {
        for wrong in [len - 1, len + 1] {
            assert_eq!(stage.hear(about, &vec![0; wrong]), Err(Malformed), "{about:?} {wrong}");
        }
    }
    for tag in [0, 8, u32::MAX] {
        assert_eq!(stage.take(RecordKind::Control, tag, &[0; 8]), Err(Malformed));
    }
    assert_eq!(stage.hear(About::QueueCursor, &[0]), Err(Malformed), "there is no queue");
}

// spec: WIRE-14
#[test]
fn ring_bytes_are_sent_before_the_message_that_names_them() {
    let mut stage = Stage::with_rings(64);
    let write = |stage: &mut Stage, bytes: &[u8], tag| {
        assert!(stage.port.write_ring(bytes));
        assert!(stage.port.messages.push(Kind::GatedMessage, tag, &message(b"named")));
    };
    write(&mut stage, &[7; 192], 5);
    assert!(stage.port.write_ring(&[8; 64]));
    let mut paper = paper(2);
    stage.gather(&mut paper);
    paper.room = 100;
    stage.gather(&mut paper);
    write(&mut stage, &[9; 64], 6);
    stage.gather(&mut paper);
    let kinds: Vec<_> = paper.records.iter().map(|(_, kind, tag, _)| (*kind, *tag)).collect();
    let (bytes, message) = ((RecordKind::Ring, 0), |tag| (RecordKind::Message, tag));
    assert_eq!(kinds, [bytes, bytes, bytes, message(5), bytes, message(6)]);
    assert!(paper.records.iter().all(|(channel, ..)| *channel == Channel::Posted));
    let rings = paper.records.iter().filter(|record| record.1 == RecordKind::Ring);
    let passed: Vec<u8> = rings.flat_map(|record| record.3.clone()).collect();
    assert_eq!(passed, [&[7; 192][..], &[8; 64], &[9; 64]].concat());
}

// spec: WIRE-14, WIRE-4
#[test]
fn a_ring_accepts_bytes_up_to_its_room_and_reports_consumption() {
    let mut stage = Stage::with_rings(64);
    let take = |stage: &mut Stage, len: usize| stage.take(RecordKind::Ring, 0, &vec![3; len]);
    assert_eq!(take(&mut stage, 4096), Ok(Taken::Taken));
    assert_eq!(take(&mut stage, 1), Err(Malformed), "nothing was taken");
    let told = |stage: &mut Stage, taken: usize| {
        stage.port.ring_come.taken = taken;
        let mut paper = paper(9);
        stage.gather(&mut paper);
        let bytes = paper.records.into_iter().map(|(.., bytes)| bytes);
        bytes.filter_map(|bytes| bytes.get(24..32).map(<[u8]>::to_vec)).collect::<Vec<_>>()
    };
    assert!(told(&mut stage, 1023).is_empty(), "it is less than a quarter");
    assert_eq!(told(&mut stage, 1024), [(16_u64 << 32).to_le_bytes()], "at once: a quarter");
    assert_eq!(take(&mut stage, 1024), Ok(Taken::Taken));
}

// spec: WIRE-14
#[test]
fn ring_counts_beyond_sent_bytes_or_without_a_ring_are_malformed() {
    let mut stage = Stage::with_rings(64);
    let told = |ring| Counts { ring, ..Counts::default() };
    assert!(stage.port.write_ring(&[1; 2048]) && stage.port.write_ring(&[1; 2048]));
    assert!(!stage.port.write_ring(&[1; 64]), "it is full");
    assert!(stage.port.messages.push(Kind::GatedMessage, 5, &message(b"both")));
    stage.gather(&mut paper(100));
    assert_eq!(stage.hear_counts(told(1), 1), Ok(Taken::Taken));
    assert!(stage.port.write_ring(&[1; 64]));
    assert_eq!(stage.hear_counts(told(65), 2), Err(Malformed), "that was not passed on");
    let mut without = Stage::new();
    assert_eq!(without.hear_counts(told(1), 1), Err(Malformed));
    assert_eq!(without.take(RecordKind::Ring, 0, &[1]), Err(Malformed));
}
