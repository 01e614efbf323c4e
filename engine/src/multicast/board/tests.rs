//! A board between two ports, without their groups.
use super::*;
use crate::config::Config;

const ROOT: Member = Member(1 << 10);
const GROUP: u32 = 300;

/// A root's board, and a member's view of it.
fn pair() -> ((Board, Port), (Reading, Port)) {
    let config = |number| Config::new().number(number);
    let (mut root, mut member) = Port::pair(config(0), config(1)).expect("two ports");
    let board = Board::new(&mut root).expect("memory");
    assert!(board.share(&mut root, GROUP, Member(1 | 1 << 10)));
    let region = member.accept_region(port_of(ROOT), name_of(GROUP)).expect("it was offered");
    let reading = Reading::new(ROOT, region).expect("it is mapped");
    ((board, root), (reading, member))
}

fn label(ticket: u64) -> Label {
    Label { ticket, number: ticket + 7, sender: ROOT, origin: Member(9) }
}

fn content(ticket: u64, len: usize) -> Content {
    let bytes: Vec<_> = (0..len as u64).map(|at| (at * 3 + ticket) as u8).collect();
    Content::of([&bytes])
}

/// Messages of all lengths come as they were written, each once, over many rounds of slots and of
/// the memory for long ones.
// spec: GRP-25
#[test]
fn what_is_written_is_read_in_its_order() {
    let ((mut board, _root), (mut reading, _member)) = pair();
    let lens = [0, 1, 56, SHORT_MAX, SHORT_MAX + 1, 5000, 100_000, 64, 200_000];
    for ticket in 1..1000 {
        let len = lens[ticket as usize % lens.len()];
        reading.await_next(Some((ROOT, 2, ticket)));
        assert!(!reading.has_news(), "{ticket} is not written");
        assert!(board.write((2, ticket - 1), &label(ticket), &content(ticket, len)));
        let entry = reading.take().expect("no lie").expect("it is there");
        assert_eq!((entry.view, entry.stable), (2, ticket - 1));
        assert_eq!((entry.label, &entry.content), (label(ticket), &content(ticket, len)));
    }
    // From another one than the root of the board, nothing is awaited.
    reading.await_next(Some((Member(5), 2, 999)));
    assert!(!reading.has_news());
}

/// What somebody may lack is not written over: neither a slot nor a long content.
// spec: GRP-25
#[test]
fn what_somebody_lacks_stays() {
    let ((mut board, _root), (mut reading, _member)) = pair();
    for ticket in 1..=SLOTS {
        assert!(board.write((2, 0), &label(ticket), &content(ticket, 8)));
    }
    assert!(!board.write((2, 0), &label(SLOTS + 1), &content(0, 8)));
    assert!(board.write((2, 1), &label(SLOTS + 1), &content(0, 8)));
    assert!(!board.write((2, 1), &label(SLOTS + 2), &content(0, 8)));
    reading.await_next(Some((ROOT, 2, 2)));
    assert_eq!(reading.take().expect("no lie").expect("it is there").label, label(2));

    let (stable, quarter) = (SLOTS + 1, LONG as usize / 4);
    for ticket in stable + 1..=stable + 4 {
        assert!(board.write((2, stable), &label(ticket), &content(ticket, quarter)));
    }
    let next = stable + 5;
    assert!(!board.write((2, stable), &label(next), &content(next, quarter)));
    assert!(board.write((2, stable + 1), &label(next), &content(next, quarter)));
    for ticket in stable + 2..=next {
        reading.await_next(Some((ROOT, 2, ticket)));
        let entry = reading.take().expect("no lie").expect("it is there");
        assert_eq!(entry.content, content(ticket, quarter));
    }
    let longer = content(0, LONG as usize + 1);
    assert!(!board.write((2, next), &label(next + 1), &longer));
}

/// A root that writes nonsense is found out.
// spec: GRP-25
#[test]
fn nonsense_is_malformed() {
    let ((mut board, _root), (mut reading, _member)) = pair();
    let lies: [(u64, u64); 9] = [
        (1, 3),
        (2, 1 << 63),
        (3, 1 << 63),
        (5, 1 << 40),
        (5, SHORT_MAX as u64 + 1),
        (5, u64::MAX),
        (6, 0),
        (6, BYTES as u64 - 3),
        (6, u64::MAX - 2),
    ];
    for (ticket, (word, lie)) in (1..).zip(lies) {
        assert!(board.write((2, ticket - 1), &label(ticket), &content(ticket, 8)));
        board.region.store((slot_of(ticket) + 8 * word) as usize, lie);
        reading.await_next(Some((ROOT, 2, ticket)));
        assert!(reading.take().is_err(), "{word} says {lie}");
    }
}
