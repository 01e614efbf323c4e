//! Long messages against a model of their landing, and records against anything.
use ayre_proto::active::long::{
    LANDING_MIN, LongReceiver, LongSender, Message, Piece, Taken, Way, cause_to_drop, is_landing,
};
use ayre_proto::active::record::{DropCause, Pulled, Record};
use ayre_proto::active::{ARGUMENTS_MAX, NAME_MAX, id_of};
use ayre_proto::lane::Malformed;
use ayre_proto::ring::asking::{ENOUGH, SPARED_MAX};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A sender and a receiver, the landing between them, and what is under way.
struct Pair {
    out: LongSender,
    inward: LongReceiver,
    landing: Vec<u8>,
    /// Records that have not been heard, with the id, the length of the message and of its piece.
    records: VecDeque<(u32, Vec<u8>)>,
    /// The address of a message that the receiver may read; `None` if it is not asked to.
    address: Option<u64>,
    longest: usize,
    /// Steps for which lane and puts still have room.
    room: usize,
    is_there: bool,
    /// The messages that have come whole.
    whole: Vec<(u32, Vec<u8>)>,
    coming: Vec<u8>,
    /// Where nobody has taken what was put.
    taken: Vec<bool>,
}

/// The way from one to the other.
struct Between<'a> {
    landing: &'a mut [u8],
    taken: &'a mut [bool],
    records: &'a mut VecDeque<(u32, Vec<u8>)>,
    address: Option<u64>,
    longest: usize,
    room: &'a mut usize,
    is_there: bool,
}

/// No room.
#[derive(Debug)]
struct Full;

impl Between<'_> {
    fn step(&mut self) -> Result<(), Full> {
        *self.room = self.room.checked_sub(1).ok_or(Full)?;
        Ok(())
    }
}

impl Way for Between<'_> {
    type Error = Full;

    fn say(&mut self, record: &Record<'_>) -> Result<(), Full> {
        self.step()?;
        let (tag, bytes) = record.encode();
        self.records.push_back((tag, bytes.to_vec()));
        Ok(())
    }

    fn open(&mut self, bytes: u64) -> Result<(), Full> {
        assert_eq!(bytes, self.landing.len() as u64);
        if self.is_there { Ok(()) } else { Err(Full) }
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Full> {
        self.step()?;
        let range = offset as usize..offset as usize + bytes.len();
        assert!(bytes.len() <= self.longest && bytes.len() <= self.landing.len() / 4);
        assert!(offset.is_multiple_of(64), "a piece begins with a line");
        assert!(self.taken[range.clone()].iter().all(|taken| *taken), "what lies there was taken");
        self.landing[range].copy_from_slice(bytes);
        Ok(())
    }

    fn longest_put(&mut self) -> usize {
        self.longest
    }

    fn offers(&self, _: &Message<'_>) -> Option<u64> {
        self.address
    }
}

const ID: u32 = 300;

impl Pair {
    fn new(bytes: u64) -> Self {
        Self {
            out: LongSender::default(),
            inward: LongReceiver::default(),
            landing: vec![0; bytes as usize],
            records: VecDeque::new(),
            address: None,
            longest: usize::MAX,
            room: usize::MAX,
            is_there: true,
            whole: vec![],
            coming: vec![],
            taken: vec![true; bytes as usize],
        }
    }

    /// The sender goes on with a message.
    fn advance(&mut self, payload: &[u8], sent: &mut usize) -> Result<bool, Full> {
        let Self { out, landing, records, taken, address, longest, room, is_there, .. } = self;
        let (address, longest, is_there) = (*address, *longest, *is_there);
        let mut way = Between { landing, taken, records, address, longest, room, is_there };
        out.advance(&mut way, Message { id: ID, arguments: &[], payload }, sent)
    }

    /// The receiver hears the next record.
    fn hear(&mut self) -> bool {
        let Some((tag, bytes)) = self.records.pop_front() else { return false };
        let piece = match Record::parse(tag, &bytes).expect("a record") {
            Record::Want => {
                self.inward.on_want().expect("once");
                return true;
            }
            Record::Long { id, total, piece, .. } => {
                self.inward.begin(id, total, None).expect("the one before is whole");
                piece
            }
            Record::Piece(piece) => piece,
            Record::Pull { id, total, .. } => {
                self.inward.on_pull(id, total, None).expect("nothing else is under way");
                return true;
            }
            other => panic!("a sender says no {other:?}"),
        };
        let Taken { piece, is_last } = self.inward.take(piece).expect("it may");
        let range = piece.offset as usize..(piece.offset + piece.len) as usize;
        self.coming.extend_from_slice(&self.landing[range.clone()]);
        self.taken[range].fill(true);
        if is_last {
            assert_eq!(self.inward.message(), (ID, None));
            self.whole.push((ID, std::mem::take(&mut self.coming)));
        }
        true
    }

    /// The receiver tells what is due.
    fn tell(&mut self) {
        if self.inward.is_wanted() {
            self.inward.make(self.landing.len() as u64);
            self.inward.gave();
            self.out.on_landing(self.landing.len() as u64).expect("it is wanted");
        }
        if let Some(taken) = self.inward.room_due() {
            self.out.on_room(taken).expect("it was put");
            self.inward.told(taken);
            assert_eq!(self.inward.room_due(), None);
        }
        if let Some(pulled) = self.inward.pulled_due() {
            self.out.on_pulled(pulled).expect("it was asked");
            self.inward.told_pulled();
        }
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 256 + seed * 7) as u8).collect()
}

proptest! {
    /// Messages arrive as they were sent, in any order of steps, and however little room lane and
    /// puts have. No piece lies on bytes that were not taken. Once everything is taken and
    /// reported, the sender gets on.
    // spec: AM-12, AM-13
    #[test]
    fn messages_come_out_as_they_went_in(
        lens in vec(1..20_000_usize, 1..8),
        longest in prop_oneof![Just(usize::MAX), 1..3000_usize],
        steps in vec((0..4_u8, 0..6_usize), 1..300),
    ) {
        let mut pair = Pair::new(LANDING_MIN);
        pair.longest = longest;
        let messages: Vec<_> =
            lens.iter().enumerate().map(|(seed, len)| bytes(*len, seed)).collect();
        let (mut next, mut sent) = (0, 0);
        let all = [(0, usize::MAX), (1, 99), (2, 0)].repeat(2 * 20_000 * 8);
        for (what, count) in steps.into_iter().chain(all) {
            match what {
                0 => {
                    let Some(payload) = messages.get(next) else { break };
                    pair.room = count;
                    if let Ok(true) = pair.advance(payload, &mut sent) {
                        prop_assert_eq!(sent, payload.len());
                        (next, sent) = (next + 1, 0);
                    }
                }
                1 => (0..count).for_each(|_| _ = pair.hear()),
                2 => pair.tell(),
                _ => pair.is_there ^= true,
            }
            if what == 0 && count == usize::MAX {
                pair.is_there = true;
            }
        }
        while pair.hear() {}
        let came: Vec<_> = pair.whole.into_iter().map(|(_, payload)| payload).collect();
        prop_assert_eq!(came.len(), messages.len(), "nobody waits for what nobody tells");
        prop_assert!(came == messages);
    }

    /// A receiver finds what a sender may not do, and stays as it is.
    // spec: AM-15, AM-13, INJ-7
    #[test]
    fn receivers_refuse_bad_records(words in vec((0..6_u8, any::<u64>(), 0..9000_u64), 1..80)) {
        let mut inward = LongReceiver::default();
        let (mut left, mut taken, mut is_made, mut is_wanted) = (0_u64, 0_u64, false, false);
        let mut answer = None;
        for (what, wild, tame) in words {
            let number = if wild % 8 == 0 { wild } else { tame };
            match what {
                0 => {
                    let sound = is_made && left == 0 && number > 0;
                    prop_assert_eq!(inward.begin(ID, number, None).is_ok(), sound);
                    left = if sound { number } else { left };
                }
                1 => {
                    let place = taken % LANDING_MIN;
                    let padded = number.next_multiple_of(64);
                    let gap = if place + padded > LANDING_MIN { LANDING_MIN - place } else { 0 };
                    let sound = is_made && number > 0 && number <= left.min(LANDING_MIN / 4);
                    let piece = Piece { offset: (taken + gap) % LANDING_MIN, len: number };
                    let expected = Taken { piece, is_last: left == number };
                    let expected = if sound { Ok(expected) } else { Err(Malformed) };
                    prop_assert_eq!(inward.take(number), expected);
                    left -= if sound { number } else { 0 };
                    taken += if sound { gap + padded } else { 0 };
                }
                2 => {
                    let sound = left == 0 && number > 0 && answer.is_none();
                    prop_assert_eq!(inward.on_pull(ID, number, None).is_ok(), sound);
                    if sound {
                        let all = [Pulled::Never, Pulled::Whole, Pulled::NotNow];
                        answer = Some(all[number as usize % 3]);
                        answer.into_iter().for_each(|pulled| inward.answer(pulled));
                    }
                }
                3 => {
                    prop_assert_eq!(inward.on_want().is_ok(), !is_made && !is_wanted);
                    is_wanted |= !is_made;
                }
                4 if is_wanted => {
                    inward.make(LANDING_MIN);
                    inward.gave();
                    (is_made, is_wanted) = (true, false);
                }
                4 => {}
                _ if inward.pulled_due().is_some() => {
                    inward.told_pulled();
                    answer = None;
                }
                _ => {}
            }
            prop_assert_eq!(inward.pulled_due(), answer);
            prop_assert_eq!(inward.is_wanted(), is_wanted);
        }
    }

    /// A sender finds what a receiver may not say, and stays as it is.
    // spec: AM-15, AM-13, INJ-7
    #[test]
    fn senders_refuse_bad_answers(words in vec((0..5_u8, any::<u64>(), 0..9000_u64), 1..60)) {
        let mut pair = Pair::new(LANDING_MIN);
        pair.address = Some(4096);
        let payload = bytes(9000, 0);
        let (mut is_wanted, mut is_asked, mut is_refused) = (false, false, false);
        for (what, wild, tame) in words {
            let number = if wild % 8 == 0 { wild } else { tame };
            match what {
                0 => {
                    let advanced = pair.advance(&payload, &mut 0);
                    prop_assert!(matches!(advanced, Ok(false)), "the first landing is waited for");
                    is_asked |= !is_refused;
                    is_wanted |= is_refused;
                }
                1 => prop_assert!(pair.out.on_room(number).is_err(), "no landing is open"),
                2 => {
                    let is_whole = number % 2 == 0;
                    if is_asked && is_whole {
                        // What was read is sent, and the next one asks again.
                        pair.out.on_pulled(Pulled::Whole).expect("it was asked");
                        let mut sent = 0;
                        prop_assert!(matches!(pair.advance(&payload, &mut sent), Ok(true)));
                        prop_assert_eq!(sent, payload.len());
                        is_asked = false;
                    } else {
                        prop_assert_eq!(pair.out.on_pulled(Pulled::Never).is_ok(), is_asked);
                        is_refused |= is_asked;
                        is_asked = false;
                    }
                }
                3 if !is_wanted => prop_assert!(pair.out.on_landing(LANDING_MIN).is_err()),
                3 if !is_landing(number) => prop_assert!(pair.out.on_landing(number).is_err()),
                3 => {}
                _ => prop_assert_eq!(pair.out.is_being_read(), is_asked),
            }
        }
    }

    /// A record is what its bytes say; of any other bytes, nothing is made.
    // spec: AM-15
    #[test]
    fn records_are_read_as_written(tag in 0..20_u32, bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(record) = Record::parse(tag, &bytes) {
            let (again, written) = record.encode();
            prop_assert_eq!((again, &written[..]), (tag, &bytes[..]));
        }
    }
}

// spec: AM-15, AM-1
#[test]
fn every_record_survives() {
    let name = "a".repeat(NAME_MAX);
    let arguments = [7; 8 * ARGUMENTS_MAX];
    let records = [
        Record::Announce { id: id_of(&name), arguments: 8, name: &name },
        Record::Long { id: 300, total: 1 << 26, piece: 32_768, arguments: &arguments },
        Record::Piece(1),
        Record::Room(u64::MAX),
        Record::Want,
        Record::Landing(1 << 17),
        Record::Failed(32, DropCause::Unknown),
        Record::Failed(32, DropCause::Malformed),
        Record::Failed(u32::MAX, DropCause::Panicked),
        Record::Sync(1),
        Record::Empty(255),
        Record::Pull { id: 300, total: 1, address: u64::MAX, arguments: &arguments },
        Record::Pulled(Pulled::Whole),
        Record::Pulled(Pulled::NotNow),
        Record::Pulled(Pulled::Never),
    ];
    for record in records {
        let (tag, bytes) = record.encode();
        assert_eq!(Record::parse(tag, &bytes), Ok(record));
        assert_eq!(Record::parse(tag, &bytes[..7]), Err(Malformed));
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Record::parse(tag, &longer), Err(Malformed), "{record:?}");
    }
    let wrong = Record::Announce { id: 1000, arguments: 0, name: "other" }.encode();
    assert_eq!(Record::parse(wrong.0, &wrong.1), Err(Malformed), "an id is its name's");
}

/// A message is read where it lies, and its sender told; who is refused goes by the landing.
// spec: INJ-7
#[test]
fn a_receiver_that_cannot_read_memory_gets_one_rts() {
    let mut pair = Pair::new(LANDING_MIN);
    pair.address = Some(4096);
    let payload = bytes(5000, 1);
    let mut sent = 0;
    assert!(matches!(pair.advance(&payload, &mut sent), Ok(false)));
    assert!(pair.out.is_being_read() && pair.hear());
    pair.inward.answer(Pulled::Whole);
    pair.tell();
    assert!(matches!(pair.advance(&payload, &mut sent), Ok(true)));
    assert_eq!((sent, pair.records.len()), (5000, 0), "it was read");
    for round in 0..2 {
        sent = 0;
        for _ in 0..20 {
            if let Ok(true) = pair.advance(&payload, &mut sent) {
                break;
            }
            while pair.hear() {}
            if round == 0 && pair.out.is_being_read() {
                pair.inward.answer(Pulled::Never);
            }
            pair.tell();
        }
        while pair.hear() {}
        assert_eq!(pair.whole.len(), round + 1, "by the landing");
        assert!(pair.whole[round].1 == payload);
        assert!(!pair.out.is_being_read());
    }
}

/// A message that its receiver wants by the landing goes by that, and the next one asks again.
// spec: INJ-7
#[test]
fn a_sender_tries_rts_again_after_one_landing() {
    let mut pair = Pair::new(LANDING_MIN);
    pair.address = Some(4096);
    for round in 0..3 {
        let payload = bytes(9000, round);
        let (mut sent, mut asked) = (0, 0);
        for _ in 0..40 {
            if let Ok(true) = pair.advance(&payload, &mut sent) {
                break;
            }
            while pair.hear() {}
            if pair.out.is_being_read() {
                asked += 1;
                pair.inward.answer(Pulled::NotNow);
            }
            pair.tell();
        }
        while pair.hear() {}
        pair.tell();
        assert_eq!((pair.whole.len(), asked), (round + 1, 1));
        assert!(pair.whole[round].1 == payload);
    }
}

/// A receiver that has wanted enough messages by the landing is not asked for some time, and then
/// again.
// spec: INJ-7
#[test]
fn a_receiver_that_prefers_the_landing_is_tried_again_rarely() {
    let mut pair = Pair::new(LANDING_MIN);
    pair.address = Some(4096);
    let mut asked = vec![];
    for number in 0..2 * (ENOUGH + SPARED_MAX) {
        let mut sent = 0;
        while !matches!(pair.advance(&[7; 100], &mut sent), Ok(true)) {
            while pair.hear() {}
            if pair.out.is_being_read() {
                asked.push(number);
                pair.inward.answer(Pulled::NotNow);
            }
            pair.tell();
        }
        while pair.hear() {}
        pair.tell();
    }
    let again = ENOUGH + SPARED_MAX;
    let expected: Vec<_> = (0..ENOUGH).chain(again..again + ENOUGH).collect();
    assert_eq!(asked, expected);
    assert_eq!(pair.whole.len() as u32, 2 * again);
}

/// Other messages wait until a long message is sent whole.
// spec: AM-9
#[test]
fn a_hold_is_reported_until_it_is_released() {
    let mut out = LongSender::default();
    assert!(!out.is_held());
    out.hold(true);
    assert!(out.is_held());
    out.hold(false);
    assert!(!out.is_held());
}

// spec: AM-5, AM-7
#[test]
fn messages_that_their_handlers_do_not_accept_are_dropped() {
    let of = |takes, arguments: usize, total| {
        cause_to_drop(takes, &[0; 64][..8 * arguments], (total, 1 << 20))
    };
    assert_eq!(of(None, 0, 5000), Some(DropCause::Unknown));
    assert_eq!(of(Some(1), 0, 5000), Some(DropCause::Malformed));
    assert_eq!(of(Some(1), 2, 5000), Some(DropCause::Malformed));
    assert_eq!(of(Some(1), 1, (1 << 20) + 1), Some(DropCause::Malformed));
    assert_eq!([of(Some(1), 1, 1 << 20), of(Some(0), 0, 1), of(Some(8), 8, 2)], [None; 3]);
}
