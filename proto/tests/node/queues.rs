//! Remote queues on their way between two hosts.
use crate::carrier::Stage;
use crate::paper::{Paper, WHOLE, paper};
use ayre_proto::lane::{Kind, Malformed};
use ayre_proto::link::frame::RecordKind;
use ayre_proto::node::carrier::lanes::{Offer, OfferKind};
use ayre_proto::node::carrier::{About, LINES_MAX, QUEUES_MAX, Taken};

/// A queue of `lines` lines, under an arbitrary name.
const fn offer(lines: u64, number: u64) -> Offer {
    Offer { kind: OfferKind::Queue, words: [7, lines, number, 0, 0, 0, 0] }
}

/// A producer's port and a consumer's, and a queue of 64 lines between them.
fn joined() -> [Stage; 2] {
    let [mut producer, mut consumer] = [(); 2].map(|()| Stage::new());
    consumer.port.offers.push_back(offer(64, 99));
    let mut paper = paper(9);
    consumer.gather(&mut paper);
    carry(&paper, &mut producer);
    assert_eq!(producer.port.offered, [offer(64, 0)], "by its number among these queues");
    [producer, consumer]
}

fn carry(paper: &Paper, to: &mut Stage) {
    for (_, kind, tag, bytes) in &paper.records {
        assert_eq!(to.take(*kind, *tag, bytes), Ok(Taken::Taken));
    }
}

/// It is enqueued whole, and its parts fill up frames.
// spec: MTU-8, WIRE-5
#[test]
fn a_record_of_a_queue_that_does_not_go_whole_goes_in_parts() {
    let [mut producer, mut consumer] = joined();
    for (len, parts) in [(90, 1), (WHOLE, 1), (WHOLE + 1, 6), (1000, 11)] {
        let record = vec![len as u8; len];
        assert!(producer.port.feeds[0].push(Kind::Record, 0, &record));
        let mut paper = paper(100);
        producer.gather(&mut paper);
        assert_eq!(paper.records.len(), parts, "{len} bytes");
        assert!(producer.carrier.is_drained(&producer.port));
        for (index, (_, kind, tag, bytes)) in (1..).zip(&paper.records) {
            assert!(consumer.port.sinks[0].take().is_none(), "it is not whole");
            let is_last = index == parts;
            assert_eq!(*kind == RecordKind::Queue, is_last);
            assert_eq!(consumer.take(*kind, *tag, bytes), Ok(Taken::Taken));
        }
        assert_eq!(consumer.port.sinks[0].take().unwrap().bytes, record);
        let mut paper = crate::paper::paper(9);
        consumer.gather(&mut paper);
        carry(&paper, &mut producer);
    }
}

// spec: WIRE-5, WIRE-9
#[test]
fn a_record_in_parts_waits_for_room_where_it_stands() {
    let [mut producer, mut consumer] = joined();
    assert!(producer.port.feeds[0].push(Kind::Record, 0, &[6; 1000]));
    assert!(producer.port.feeds[0].push(Kind::Record, 0, &[7; 3]));
    for step in 1..=12 {
        assert!(!producer.carrier.is_drained(&producer.port), "step {step}");
        let mut paper = paper(1);
        producer.gather(&mut paper);
        carry(&paper, &mut consumer);
    }
    assert!(producer.carrier.is_drained(&producer.port));
    let taken = [1000, 3].map(|_| consumer.port.sinks[0].take().unwrap().bytes.len());
    assert_eq!(taken, [1000, 3]);
}

// spec: WIRE-5, WIRE-9
#[test]
fn a_queue_takes_parts_and_no_more_than_it_holds() {
    let mut stage = Stage::new();
    stage.port.offers.push_back(offer(32, 0));
    stage.gather(&mut paper(9));
    let take = |stage: &mut Stage, kind, bytes: &[u8]| stage.take(kind, 0, bytes);
    assert_eq!(take(&mut stage, RecordKind::QueuePart, &[1; 600]), Ok(Taken::Taken));
    assert!(stage.port.sinks[0].take().is_none(), "it is not whole");
    assert_eq!(take(&mut stage, RecordKind::Queue, &[2; 100]), Ok(Taken::Taken));
    assert_eq!(stage.port.sinks[0].take().unwrap().bytes.len(), 700);
    assert_eq!(take(&mut stage, RecordKind::QueuePart, &[1; 600]), Ok(Taken::Taken));
    let longer = take(&mut stage, RecordKind::Queue, &[2; 600]);
    assert_eq!(longer, Err(Malformed), "longer than its longest record");
    assert_eq!(stage.take(RecordKind::Queue, 1, &[1]), Err(Malformed), "there is one queue");
}

// spec: WIRE-9, LIM-1
#[test]
fn a_peer_offers_queues_one_by_one_and_no_more_than_there_may_be() {
    let mut stage = Stage::new();
    for number in 0..QUEUES_MAX as u64 {
        assert_eq!(stage.hear(About::Queue, &offer(32, number).words), Ok(Taken::Taken));
    }
    let next = QUEUES_MAX as u64;
    assert_eq!(stage.hear(About::Queue, &offer(32, next).words), Err(Malformed));
    let mut stage = Stage::new();
    let wrong = [(32, 1), (0, 0), (23, 0), (u64::from(LINES_MAX) + 1, 0), (1 << 32 | 32, 0)];
    for (lines, number) in wrong {
        assert_eq!(stage.hear(About::Queue, &offer(lines, number).words), Err(Malformed));
    }
    let long = 1 << 14;
    for number in 0..u64::from(LINES_MAX) / long {
        assert_eq!(stage.hear(About::Queue, &offer(long, number).words), Ok(Taken::Taken));
    }
    let number = u64::from(LINES_MAX) / long;
    assert_eq!(stage.hear(About::Queue, &offer(24, number).words), Err(Malformed));
    let mut stage = Stage::new();
    stage.port.has_memory = false;
    assert_eq!(stage.hear(About::Queue, &offer(32, 0).words), Err(Malformed));
}

// spec: WIRE-9
#[test]
fn an_invalid_queue_is_not_offered_and_does_not_block_others() {
    let mut stage = Stage::new();
    stage.port.has_memory = false;
    let region = Offer { kind: OfferKind::Region, words: [1; 7] };
    stage.port.offers.extend([offer(32, 0), region]);
    let mut paper = paper(9);
    stage.gather(&mut paper);
    let tags: Vec<_> = paper.records.iter().map(|(_, _, tag, _)| *tag).collect();
    assert_eq!(tags, [About::Region as u32]);
}

// spec: WIRE-3
#[test]
fn lines_of_a_queue_come_back_when_the_consumer_gives_them_back() {
    let [mut producer, mut consumer] = joined();
    let enqueue = |producer: &mut Stage| producer.port.feeds[0].push(Kind::Record, 0, &[1; 50]);
    let sent = std::iter::repeat_with(|| enqueue(&mut producer)).take_while(|sent| *sent).count();
    assert_eq!(sent, 64);
    let mut sheet = paper(100);
    producer.gather(&mut sheet);
    carry(&sheet, &mut consumer);
    assert!(!enqueue(&mut producer), "passed on is not given back");
    (0..16).for_each(|_| assert!(consumer.port.sinks[0].take().is_some()));
    let mut sheet = paper(9);
    consumer.gather(&mut sheet);
    consumer.gather(&mut sheet);
    assert_eq!(sheet.records.len(), 1, "it is told once");
    carry(&sheet, &mut producer);
    assert_eq!(
        std::iter::repeat_with(|| enqueue(&mut producer)).take(17).filter(|s| *s).count(),
        16
    );
    let beyond = u64::from(65_u32) << 32;
    assert_eq!(producer.hear(About::QueueCursor, &[beyond]), Err(Malformed));
}
