//! A carrier between the lanes of a port, which the tests write and read, and a sheet of paper.
use super::super::counts::Counts;
use super::super::queues::{Feed, Sink};
use super::*;
use crate::mem::layout::LaneSizes;
use crate::mem::map::Mapping;
use crate::sync::AtomicBool;
use ayre_proto::command::COMMAND_BYTES;
use std::sync::Arc;

/// Records that were packed, as many as there is room for.
#[derive(Default)]
struct Paper {
    records: Vec<(Channel, RecordKind, u32, Vec<u8>)>,
    room: usize,
    now: u64,
}

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

    fn begun(&self) -> Option<Channel> {
        None
    }

    fn now(&self) -> u64 {
        self.now
    }
}

struct Port {
    requests: LaneSender,
    messages: LaneSender,
    responses: LaneSender,
    came: LaneReceiver,
    done: Word,
}

const SIZES: LaneSizes = LaneSizes { paired: 32, response: 32 };

fn port() -> (Port, Carrier) {
    let mapping = Arc::new(Mapping::of_words(vec![0; SIZES.file_len() / 8]));
    let (out, inward) = Direction::pair(&mapping, SIZES);
    let port = Port {
        requests: out.requests().sender(),
        messages: out.messages().sender(),
        responses: out.responses().sender(),
        came: inward.messages().receiver(),
        done: out.control(Control::Done),
    };
    let mail = Mail::new(&Arc::new(AtomicBool::new(false)));
    (port, Carrier::new(&out, &inward, mail))
}

fn command(operation: Operation) -> [u64; COMMAND_BYTES / 8] {
    let mut words = [0; COMMAND_BYTES / 8];
    words[0] = operation as u64;
    words
}

fn record(kind: RecordKind, tag: u32, bytes: &[u8]) -> Record<'_> {
    Record { kind, tag, bytes }
}

fn counts_record(counts: Counts, serial: u32) -> Vec<u8> {
    counts.encode(serial).into_iter().flat_map(u64::to_le_bytes).collect()
}

// spec: WIRE-1
#[test]
fn what_is_published_goes_out_in_order_on_its_channel() {
    let (mut port, mut carrier) = port();
    for operation in [Operation::Put, Operation::Get, Operation::FetchAtomic, Operation::Atomic] {
        port.requests.push((Kind::Command, 0), command(operation), &[]).unwrap();
    }
    port.messages.push((Kind::GatedMessage, 9), [2], b"m").unwrap();
    port.responses.push((Kind::Response, 0), [1, 2], &[]).unwrap();
    let mut paper = Paper { room: 2, ..Paper::default() };
    carrier.gather(&mut paper);
    assert_eq!(paper.records.len(), 2, "as far as there is room");
    paper.room = 100;
    carrier.gather(&mut paper);
    let seen: Vec<_> = paper.records.iter().map(|(at, kind, tag, _)| (*at, *kind, *tag)).collect();
    use Channel::{NonPosted, Posted, Response};
    let expected = [
        (Response, RecordKind::Response, 0),
        (Posted, RecordKind::Command, 1),
        (NonPosted, RecordKind::Command, 2),
        (NonPosted, RecordKind::Command, 3),
        (Posted, RecordKind::Command, 4),
        (Posted, RecordKind::Message, 9),
    ];
    assert_eq!(seen, expected);
}

// spec: WIRE-2
#[test]
fn commands_come_in_the_order_of_their_numbers() {
    let (_port, mut carrier) = port();
    let bytes = [0; COMMAND_BYTES];
    let mut take = |number| carrier.take(&record(RecordKind::Command, number, &bytes));
    assert_eq!(take(2), Ok(Taken::NotYet));
    assert_eq!(take(1), Ok(Taken::Taken));
    assert_eq!(take(2), Ok(Taken::Taken));
    assert_eq!(take(2), Err(Malformed), "its turn is over");
    assert_eq!(take(u32::MAX), Err(Malformed), "and so is that of one long ago");
}

// spec: WIRE-3
#[test]
fn lines_come_back_when_the_other_side_gives_them_back() {
    let (mut port, mut carrier) = port();
    let mut send = || port.messages.push((Kind::GatedMessage, 0), [0], &[1]).is_ok();
    let sent = std::iter::repeat_with(&mut send).take_while(|sent| *sent).count();
    let mut paper = Paper { room: 1000, ..Paper::default() };
    carrier.gather(&mut paper);
    assert_eq!(paper.records.len(), sent);
    assert!(!send(), "passed on is not given back");
    let told = |lines| Counts { lines: [lines, 0, 0], ..Counts::default() };
    let mut hear = |lines, serial| {
        carrier.take(&record(RecordKind::Control, 1, &counts_record(told(lines), serial)))
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
    let mut take = || carrier.take(&record(RecordKind::Message, 0, &[0; 9]));
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
    let (mut port, mut carrier) = port();
    for _ in 0..3 {
        port.requests.push((Kind::Command, 0), command(Operation::Get), &[]).unwrap();
    }
    carrier.gather(&mut Paper { room: 100, ..Paper::default() });
    let mut hear = |responses, done, serial| {
        let counts = Counts { responses, done, ..Counts::default() };
        carrier.take(&record(RecordKind::Control, 1, &counts_record(counts, serial)))
    };
    assert_eq!(hear(1, 2, 1), Ok(Taken::Taken));
    // Relaxed: there is one thread.
    assert_eq!(port.done.load(Ordering::Relaxed), 0);
    assert_eq!(hear(1, 4, 2), Err(Malformed), "more than were posted");
    assert_eq!(carrier.take(&record(RecordKind::Response, 0, &[0; 16])), Ok(Taken::Taken));
    // Relaxed: as above.
    assert_eq!(port.done.load(Ordering::Relaxed), 2);
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
    let mut paper = Paper { room: 100, ..Paper::default() };
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
