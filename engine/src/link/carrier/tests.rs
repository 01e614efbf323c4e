//! A carrier between the lanes of a port, which the tests write and read, and a sheet of paper.
use super::super::counts::Counts;
use super::super::frames::FRAMES_MAX;
use super::super::queues::{Feed, Sink};
use super::tell::{About, PATIENCE};
use super::*;
use crate::mem::bell::own_bell;
use crate::mem::fence::Fencing;
use crate::mem::layout::LaneSizes;
use crate::mem::map::Mapping;
use crate::mem::page::{OwnPage, PeerPage};
use crate::mem::queue;
use crate::peer::packet::Packet;
use crate::sync::{AtomicBool, Ordering};
use crate::target::Served;
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::command::Request;
use ayre_proto::execute::{Action, Command};
use ayre_proto::link::frame::Flags;
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Key};
use rustix::fd::AsFd;

/// Records that were packed, as many as there is room for.
#[derive(Default)]
struct Paper {
    records: Vec<(Channel, RecordKind, u32, Vec<u8>)>,
    room: usize,
    now: u64,
}

/// Bytes of the longest record that goes whole.
const WHOLE: usize = 512;

impl Pack for Paper {
    fn pack(
        &mut self,
        channel: Channel,
        (kind, tag): (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full> {
        if self.records.len() == self.room {
            return Err(Full);
        }
        let mut bytes = vec![0; len];
        fill(&mut bytes);
        self.records.push((channel, kind, tag, bytes));
        Ok(())
    }

    fn longest(&self) -> usize {
        1024
    }

    fn whole(&self) -> usize {
        WHOLE
    }

    fn share(&self, _: Channel) -> usize {
        100
    }

    fn has_room(&self, _: Channel, _: usize) -> bool {
        self.records.len() < self.room
    }

    fn begun(&self) -> Option<Channel> {
        None
    }

    fn now(&self) -> u64 {
        self.now
    }
}

struct Port {
    messages: LaneSender,
    came: LaneReceiver,
    answers: LaneReceiver,
    done: Word,
    responder: Arc<Mutex<Responder>>,
}

const SIZES: LaneSizes = LaneSizes { paired: 32, response: 32, ring: 0 };
const PEER: PeerId = PeerId(3);

/// A port, whose responder knows the peer but no memory.
fn port() -> (Port, Carrier) {
    let mapping = Arc::new(Mapping::of_words(vec![0; SIZES.file_len() / 8]));
    let (out, inward) = Direction::pair(&mapping, SIZES);
    let mail = Mail::new(&Arc::new(AtomicBool::new(false)));
    let responder = Arc::new(Mutex::new(Responder::new(Arc::default())));
    let link = Arc::new(link(mail.clone()));
    let served = Served::carried(PEER, link.clone(), &inward, Arc::default());
    lock(&responder).add(served);
    let performer = Performer { peer: PEER, link, responder: responder.clone() };
    let port = Port {
        messages: out.messages().sender(),
        came: inward.messages().receiver(),
        answers: inward.responses().receiver(),
        done: out.control(Control::Done),
        responder,
    };
    (port, Carrier::new((&out, &inward), mail, performer))
}

fn link(mail: Mail) -> Link {
    let page = PeerPage::new(OwnPage::new().unwrap().file()).unwrap();
    let (control, bell) =
        (crate::peer::control::Channel::Mail(mail), Some(own_bell().unwrap().into()));
    Link { control, page, bell, fencing: Fencing::Symmetric }
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

fn paper(room: usize) -> Paper {
    Paper { room, ..Paper::default() }
}

fn record(kind: RecordKind, tag: u32, bytes: &[u8]) -> Record<'_> {
    Record { kind, tag, bytes }
}

fn counts_record(counts: Counts, serial: u32) -> Vec<u8> {
    counts.encode(serial).into_iter().flat_map(u64::to_le_bytes).collect()
}

// spec: WIRE-1
#[test]
fn messages_go_out_in_order_as_far_as_there_is_room() {
    let (mut port, mut carrier) = port();
    for tag in 0..4 {
        port.messages.push((Kind::GatedMessage, tag), [2], b"m").unwrap();
    }
    let mut paper = paper(2);
    carrier.gather(&mut paper);
    assert_eq!(paper.records.len(), 2);
    paper.room = 100;
    carrier.gather(&mut paper);
    let seen: Vec<_> = paper.records.iter().map(|(at, kind, tag, _)| (*at, *kind, *tag)).collect();
    assert_eq!(seen, [0, 1, 2, 3].map(|tag| (Channel::Posted, RecordKind::Message, tag)));
}

// spec: WIRE-1, WIRE-2
#[test]
fn commands_are_numbered_as_they_are_posted_and_wait_where_frames_are_full() {
    let (_port, mut carrier) = port();
    let mut frames = Frames::new(256);
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let actions = [Action::Put, Action::Get, Action::Fetch(add), Action::Atomic(add)];
    for action in actions {
        carrier.post(&request(action), (0, |_| {}), &mut frames).unwrap();
    }
    let mut sent = |channel| {
        let (digest, _) = frames.depart((channel, 0), 0);
        let payload = Payload::parse(frames.sent(channel, 0).payload()).unwrap();
        assert_eq!(frames_len(payload), usize::from(digest.len));
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

// spec: WIRE-13
#[test]
fn a_frame_is_early_where_all_before_its_puts_is_known_to_be_executed() {
    let (_port, mut carrier) = port();
    let mut frames = Frames::new(256);
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

fn frames_len(payload: Payload<'_>) -> usize {
    payload.records().map(|record| 8 + record.bytes.len().next_multiple_of(8)).sum()
}

// spec: WIRE-2
#[test]
fn commands_are_performed_in_the_order_of_their_numbers() {
    let (_port, mut carrier) = port();
    let (bytes, mut paper) = (command(Action::Immediate(1)), paper(100));
    let mut take = |number| carrier.take(&record(RecordKind::Command, number, &bytes), &mut paper);
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
fn a_command_waits_for_room_for_its_answer_and_for_its_port() {
    let (port, mut carrier) = port();
    let bytes = command(Action::Immediate(1));
    let first = record(RecordKind::Command, 1, &bytes);
    assert_eq!(carrier.take(&first, &mut paper(0)), Ok(Taken::NotYet));
    lock(&port.responder).remove(PEER);
    assert_eq!(carrier.take(&first, &mut paper(1)), Ok(Taken::NotYet));
    let other =
        Served::carried(PEER, Arc::new(link(carrier.mail.clone())), &inward(), Arc::default());
    lock(&port.responder).add(other);
    assert_eq!(carrier.take(&first, &mut paper(1)), Ok(Taken::NotYet), "another's number");
}

fn inward() -> Direction {
    let mapping = Arc::new(Mapping::of_words(vec![0; SIZES.file_len() / 8]));
    Direction::pair(&mapping, SIZES).1
}

// spec: WIRE-3
#[test]
fn an_answer_waits_until_the_port_takes_some() {
    let (mut port, mut carrier) = port();
    let mut take = || carrier.take(&record(RecordKind::Response, 0, &[0; 16]), &mut paper(0));
    for _ in 0..SIZES.response {
        assert_eq!(take(), Ok(Taken::Taken));
    }
    assert_eq!(take(), Ok(Taken::NotYet));
    for _ in 0..SIZES.response / 4 {
        let status = port.answers.peek().unwrap().unwrap();
        port.answers.consume(&status);
    }
    assert_eq!(take(), Ok(Taken::Taken));
}

// spec: WIRE-3
#[test]
fn lines_come_back_when_the_other_side_gives_them_back() {
    let (mut port, mut carrier) = port();
    let mut send = || port.messages.push((Kind::GatedMessage, 0), [0], &[1]).is_ok();
    let sent = std::iter::repeat_with(&mut send).take_while(|sent| *sent).count();
    let mut sheet = paper(1000);
    carrier.gather(&mut sheet);
    assert_eq!(sheet.records.len(), sent);
    assert!(!send(), "passed on is not given back");
    let told = |lines| Counts { lines, ..Counts::default() };
    let mut hear = |lines, serial| {
        let bytes = counts_record(told(lines), serial);
        carrier.take(&record(RecordKind::Control, 1, &bytes), &mut paper(0))
    };
    assert_eq!(hear(8, 1), Ok(Taken::Taken));
    assert_eq!(std::iter::repeat_with(&mut send).take(9).filter(|sent| *sent).count(), 8);
    assert_eq!(hear(4, 1), Ok(Taken::Taken), "an old one says nothing");
    assert_eq!(hear(4, 2), Err(Malformed), "what was given back is not taken away");
}

// spec: WIRE-3
#[test]
fn a_record_without_room_is_malformed() {
    let (mut port, mut carrier) = port();
    let mut take = || carrier.take(&record(RecordKind::Message, 0, &[0; 9]), &mut paper(0));
    for _ in 0..SIZES.paired {
        assert_eq!(take(), Ok(Taken::Taken));
    }
    assert_eq!(take(), Err(Malformed));
    assert!(matches!(port.came.peek(), Some(Ok(_))), "what had room is there");
    let status = port.came.peek().unwrap().unwrap();
    port.came.consume(&status);
}

// spec: WIRE-4
#[test]
fn commands_count_as_executed_once_their_responses_have_come() {
    let (port, mut carrier) = port();
    let mut frames = Frames::new(1024);
    for _ in 0..3 {
        carrier.post(&request(Action::Get), (0, |_| {}), &mut frames).unwrap();
    }
    let mut hear = |responses, done, serial| {
        let counts = Counts { responses, done, ..Counts::default() };
        let bytes = counts_record(counts, serial);
        carrier.take(&record(RecordKind::Control, 1, &bytes), &mut paper(0))
    };
    assert_eq!(hear(1, 2, 1), Ok(Taken::Taken));
    // Relaxed: there is one thread.
    assert_eq!(port.done.load(Ordering::Relaxed), 0);
    assert_eq!(hear(1, 4, 2), Err(Malformed), "more than were posted");
    assert_eq!(
        carrier.take(&record(RecordKind::Response, 0, &[0; 16]), &mut paper(0)),
        Ok(Taken::Taken)
    );
    // Relaxed: as above.
    assert_eq!(port.done.load(Ordering::Relaxed), 2);
}

/// It is enqueued whole, and its parts fill up frames.
// spec: MTU-8, WIRE-5
#[test]
fn a_record_of_a_queue_that_does_not_go_whole_goes_in_parts() {
    let offered = || Feed::offered([7, 64, 0, 0, 0, 0, 0], &[]).unwrap();
    let lane_of = |packet: &Packet| {
        let file = packet.fds.first().unwrap();
        let mapping = Mapping::foreign(file.as_fd(), queue::file_len(64), true).unwrap();
        queue::lane(&Arc::new(mapping), 64)
    };
    let ((mut feed, here), (_, there)) = (offered(), offered());
    let (mut producer, mut consumer) = (lane_of(&here).sender(), lane_of(&there).receiver());
    let mut sink = Sink::over(&there, &[]).unwrap();
    for (len, parts) in [(90, 1), (WHOLE, 1), (WHOLE + 1, 6), (1000, 11)] {
        producer.push((Kind::Record, 0), [], &vec![len as u8; len]).unwrap();
        let mut sheet = paper(100);
        feed.pass(&mut sheet).unwrap();
        assert_eq!(sheet.records.len(), parts, "{len} bytes");
        for (index, (_, kind, _, bytes)) in (1..).zip(&sheet.records) {
            assert!(consumer.peek().is_none(), "it is not whole");
            let is_last = index == parts;
            assert_eq!(*kind == RecordKind::Queue, is_last);
            sink.take(bytes, is_last).unwrap();
        }
        let status = consumer.peek().unwrap().unwrap();
        assert_eq!(status.len as usize, len);
        consumer.consume(&status);
    }
}

// spec: WIRE-5, WIRE-9
#[test]
fn a_queue_takes_parts_and_no_more_than_it_holds() {
    let lines = 32;
    let words = |number| [7, lines, number, 0, 0, 0, 0];
    let (_, packet) = Feed::offered(words(0), &[]).unwrap();
    let mut sink = Sink::over(&packet, &[]).unwrap();
    sink.take(&[1; 600], false).unwrap();
    assert_eq!(sink.news(), None, "it is not whole");
    sink.take(&[2; 100], true).unwrap();
    sink.take(&[1; 600], false).unwrap();
    assert_eq!(sink.take(&[2; 600], true), Err(Malformed), "longer than its longest record");
    let mut feeds = Vec::new();
    while let Ok((feed, _)) = Feed::offered(words(feeds.len() as u64), &feeds) {
        feeds.push(feed);
    }
    assert_eq!(feeds.len(), 256);
    assert!(Feed::offered(words(5), &[]).is_err(), "queues are numbered one by one");
}

// spec: WIRE-4
#[test]
fn counts_are_told_at_once_where_somebody_waits_and_otherwise_soon() {
    let (_port, mut carrier) = port();
    let mut paper = paper(100);
    carrier.gather(&mut paper);
    assert_eq!((paper.records.len(), carrier.deadline()), (0, None), "there is nothing to tell");
    carrier.ask();
    carrier.gather(&mut paper);
    let (channel, kind, tag, _) = &paper.records[0];
    let asking = (Channel::Response, RecordKind::Control, About::CountsAsking as u32);
    assert_eq!((*channel, *kind, *tag), asking);
    // Relaxed: there is one thread.
    carrier.noted.store(1, Ordering::Relaxed);
    carrier.gather(&mut paper);
    assert_eq!((paper.records.len(), carrier.deadline()), (1, Some(PATIENCE)));
    paper.now = PATIENCE;
    carrier.gather(&mut paper);
    assert_eq!((paper.records.len(), carrier.deadline()), (2, None));
}

/// The ring of the port's other end: what is written there, and what it hears.
const RING: LaneSizes = LaneSizes { ring: 4096, ..SIZES };

/// The two ends of a connection of endpoints, and who carries it.
fn endpoint() -> (Direction, Direction, Carrier) {
    let mapping = Arc::new(Mapping::of_words(vec![0; RING.file_len() / 8]));
    let (out, inward) = Direction::pair(&mapping, RING);
    let mail = Mail::new(&Arc::new(AtomicBool::new(false)));
    let responder = Arc::new(Mutex::new(Responder::new(Arc::default())));
    let link = Arc::new(link(mail.clone()));
    let carrier = Carrier::new((&out, &inward), mail, Performer { peer: PEER, link, responder });
    (out, inward, carrier)
}

// spec: WIRE-14
#[test]
fn what_was_written_to_the_ring_goes_before_the_message_that_names_it() {
    let (out, _, mut carrier) = endpoint();
    let mut ring = out.ring().unwrap().sender_of_all();
    let mut messages = out.messages().sender();
    assert_eq!(ring.write(&[7; 130]), Some(0));
    messages.push((Kind::GatedMessage, 5), [0], b"first").unwrap();
    assert_eq!(ring.write(&[8; 10]), Some(192));
    let mut paper = paper(2);
    carrier.gather(&mut paper);
    paper.room = 100;
    carrier.gather(&mut paper);
    messages.push((Kind::GatedMessage, 6), [0], b"second").unwrap();
    carrier.gather(&mut paper);
    let kinds: Vec<_> = paper.records.iter().map(|(_, kind, tag, _)| (*kind, *tag)).collect();
    let (bytes, message) = ((RecordKind::Ring, 0), |tag| (RecordKind::Message, tag));
    assert_eq!(kinds, [bytes, bytes, bytes, message(5), message(6)]);
    assert!(paper.records.iter().all(|(channel, ..)| *channel == Channel::Posted));
    let rings = paper.records.iter().filter(|record| record.1 == RecordKind::Ring);
    let passed: Vec<u8> = rings.flat_map(|record| record.3.clone()).collect();
    assert_eq!((passed.len(), &passed[..130]), (256, &[7; 130][..]), "each piece fills its lines");
    assert_eq!(passed[192..202], [8; 10]);
}

// spec: WIRE-14, WIRE-4
#[test]
fn a_ring_takes_what_there_is_room_for_and_tells_what_was_taken() {
    let (_, inward, mut carrier) = endpoint();
    let mut ring = inward.ring().unwrap().receiver();
    let take = |carrier: &mut Carrier, len: usize| {
        carrier.take(&record(RecordKind::Ring, 0, &vec![3; len]), &mut paper(0))
    };
    assert_eq!(take(&mut carrier, 4096), Ok(Taken::Taken));
    assert_eq!(take(&mut carrier, 1), Err(Malformed), "nothing was taken");
    let mut into = [0; 1024];
    ring.take(0, 1024, &mut into).unwrap();
    assert_eq!(into, [3; 1024]);
    let mut paper = paper(9);
    carrier.gather(&mut paper);
    let told: Vec<_> = paper.records.iter().filter_map(|(.., bytes)| bytes.get(24..32)).collect();
    assert_eq!(told, [&(16_u64 << 32).to_le_bytes()], "at once: it is a quarter");
    assert_eq!(take(&mut carrier, 1024), Ok(Taken::Taken));
}

// spec: WIRE-14
#[test]
fn a_peer_cannot_give_back_what_was_not_passed_on_nor_speak_of_a_ring_that_is_not_there() {
    let hear = |carrier: &mut Carrier, ring, serial| {
        let bytes = counts_record(Counts { ring, ..Counts::default() }, serial);
        carrier.take(&record(RecordKind::Control, 1, &bytes), &mut paper(0))
    };
    let (out, _, mut carrier) = endpoint();
    let mut ring = out.ring().unwrap().sender_of_all();
    assert!(ring.write(&[1; 2048]).is_some() && ring.write(&[1; 2048]).is_some());
    assert_eq!(ring.write(&[1; 64]), None, "it is full");
    out.messages().sender().push((Kind::GatedMessage, 5), [0], b"both").unwrap();
    carrier.gather(&mut paper(100));
    assert_eq!(hear(&mut carrier, 1, 1), Ok(Taken::Taken));
    assert_eq!(ring.write(&[1; 64]), Some(4096));
    assert_eq!(hear(&mut carrier, 65, 2), Err(Malformed), "that was not passed on");
    let (_, mut without) = port();
    assert_eq!(hear(&mut without, 1, 1), Err(Malformed));
    let bytes = without.take(&record(RecordKind::Ring, 0, &[1]), &mut paper(0));
    assert_eq!(bytes, Err(Malformed));
}
