//! A shared log between two ports, without groups.
use super::super::content::copy_of;
use super::*;
use crate::port::config::Config;

const ROOT: Member = Member(1 << 10);
const GROUP: u32 = 300;

/// A root's shared log, and a member's view of it.
fn pair() -> ((SharedLog, Port), (Reading, Port)) {
    let config = |number| Config::new().number(number);
    let (mut root, mut member) = Port::pair(config(0), config(1)).expect("two ports");
    let log = SharedLog::new(&mut root).expect("memory");
    assert!(log.share(&mut root, GROUP, Member(1 | 1 << 10)));
    let region = member.accept_region(port_of(ROOT), name_of(GROUP)).expect("it was offered");
    let reading = Reading::new(ROOT, &region).expect("it is mapped");
    ((log, root), (reading, member))
}

impl SharedLog {
    /// Writes a ticket without its message.
    pub(in super::super) fn scribble(&mut self, ticket: u64) {
        let line = line_of(ticket) as usize;
        (0..HEAD).step_by(8).rev().for_each(|at| self.region.store(line + at, u64::MAX));
        self.region.store(line, ticket);
    }
}

fn label(ticket: u64) -> Label {
    Label { ticket, number: ticket + 7, sender: ROOT, origin: Member(9) }
}

fn content(ticket: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at * 3 + ticket) as u8).collect()
}

/// Writes a message in three parts. Returns false if there is no room.
fn write(log: &mut SharedLog, stable: u64, ticket: u64, len: usize) -> bool {
    let content = content(ticket, len);
    let (one, rest) = content.split_at(len.min(4));
    let (two, three) = rest.split_at(rest.len() / 3);
    log.write((2, stable), &label(ticket), [one, two, three]).is_some()
}

/// Returns the next message and its bytes.
fn read(reading: &mut Reading, ticket: u64) -> (Entry, Vec<u8>) {
    reading.await_next(Some((ROOT, 2, ticket)));
    let entry = reading.next().expect("no lie").expect("it is there");
    (entry, copy_of(reading.memory(), entry.place).to_vec())
}

/// Messages of all lengths are read as they were written, each once. Lines and the memory for long
/// contents are reused many times.
// spec: GRP-25
#[test]
fn the_shared_log_is_read_in_the_order_of_writing() {
    let ((mut log, _root), (mut reading, _member)) = pair();
    let lens =
        [0, 1, SHORT_MAX, SHORT_MAX + 1, 300, PART_MAX, PART_MAX + 1, 5000, 100_000, 64, 800_000];
    for ticket in 1..1000 {
        let len = lens[ticket as usize % lens.len()];
        reading.await_next(Some((ROOT, 2, ticket)));
        assert!(!reading.has_news(), "{ticket} is not written");
        assert!(write(&mut log, ticket - 1, ticket, len));
        let (entry, bytes) = read(&mut reading, ticket);
        assert_eq!((entry.view, entry.stable), (2, ticket - 1));
        assert_eq!((entry.label, bytes), (label(ticket), content(ticket, len)));
    }
    // No message is awaited from a member that is not the root of the log.
    reading.await_next(Some((Member(5), 2, 999)));
    assert!(!reading.has_news());
}

/// A line or a long content that a member may lack is not overwritten.
// spec: GRP-25
#[test]
fn unread_entries_are_not_overwritten() {
    let ((mut log, _root), (mut reading, _member)) = pair();
    for ticket in 1..=LINES {
        assert!(write(&mut log, 0, ticket, 8));
    }
    assert!(!write(&mut log, 0, LINES + 1, 8));
    assert!(write(&mut log, 1, LINES + 1, 8));
    assert!(!write(&mut log, 1, LINES + 2, 8));
    assert_eq!(read(&mut reading, 2).0.label, label(2));

    let (stable, quarter) = (LINES + 1, QUARTER as usize - LINE);
    for ticket in stable + 1..=stable + 4 {
        assert!(write(&mut log, stable, ticket, quarter));
    }
    let next = stable + 5;
    assert!(!write(&mut log, stable, next, quarter));
    assert!(write(&mut log, stable + 1, next, quarter));
    for ticket in stable + 2..=next {
        assert_eq!(read(&mut reading, ticket).1, content(ticket, quarter));
    }
    assert!(!write(&mut log, next, next + 1, LONG as usize + 1));
}

/// If a member has read all messages, and has acknowledged those that it must, every message that
/// waits for room finds it.
// spec: GRP-26
#[test]
fn acknowledged_entries_free_their_room() {
    let ((mut log, _root), (mut reading, _member)) = pair();
    let (mut stable, mut dice) = (0, 7_u64);
    let mut below = |most: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) % most
    };
    let mut early = 0;
    for ticket in 1..5000 {
        let len = match below(4) {
            0 => QUARTER - below(3) * 64,
            1 => below(QUARTER + 1),
            _ => below(40_000),
        };
        assert!(write(&mut log, stable, ticket, len as usize), "{len} bytes at {ticket}");
        let (entry, _) = read(&mut reading, ticket);
        if reading.fills_quarter(entry.place) {
            (stable, early) = (ticket, early + 1);
        }
        stable = stable.max(ticket.saturating_sub(15));
    }
    assert!((1000..4000).contains(&early), "some are acknowledged: {early}");
}

/// A root that writes a malformed log is detected.
// spec: GRP-25
#[test]
fn nonsense_is_malformed() {
    let ((mut log, _root), (mut reading, _member)) = pair();
    let (long, good) = (5000, 2 << 48 | 1 << 32);
    let lies: [(u64, u64, usize); 11] = [
        (1, 1 << 63, 8),
        (3, good | (SHORT_MAX as u64 + 1), 32),
        (3, good | u64::from(u32::MAX), 8),
        (3, (good & !(1 << 32)) | 8, 8),
        (3, 2 << 48 | 100 << 32 | 8, 8),
        (3, 3 << 48 | 1 << 32 | 8, 8),
        (3, good | (LONG + 1), long),
        (4, 0, long),
        (4, PARTS_START - 1, 100),
        (4, BYTES as u64 - 4999, long),
        (4, u64::MAX - 2, long),
    ];
    for (ticket, (word, lie, len)) in (1..).zip(lies) {
        assert!(write(&mut log, ticket - 1, ticket, len));
        log.region.store((line_of(ticket) + 8 * word) as usize, lie);
        reading.await_next(Some((ROOT, 2, ticket)));
        assert!(reading.next().is_err(), "{word} says {lie}");
    }
}
