//! Peers that write anything: memory that they may not reach stays as it is, and counts as they
//! were.
use super::port::{BASE, Call, LEN, NOTHING, OneWay};
use super::way::Record;
use crate::dice::{Dice, seeds};
use ayre_proto::command::{Request, Response, Words};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Kind;
use ayre_proto::limits::{NOTES_UNREAD_MAX, RECORD_MAX};
use ayre_proto::node::initiator::Awaited;
use ayre_proto::notify::Classes;
use ayre_proto::segment::Shape;
use ayre_proto::units::Rights;

const STEPS: usize = 400;

/// Words of a command that is nearly right.
fn words(dice: &mut Dice, two: &OneWay) -> Words {
    let actions = [Action::Put, Action::Get, Action::Immediate(1), Action::Notify];
    let action = actions[dice.below(4) as usize];
    let offset = if dice.percent(80) { dice.below(LEN) } else { dice.word() };
    let len = if dice.percent(90) { dice.below(600) } else { dice.word() };
    let classes = Classes::from_bits_truncate(dice.word() as u8);
    let command = Command { classes, ..two.command(action, offset, len) };
    // What a put's length is, its data says.
    let command = match action {
        Action::Immediate(_) => {
            Command { claim: ayre_proto::units::Claim { len: 8, ..command.claim }, ..command }
        }
        _ => command,
    };
    let request = Request { command, cookie: dice.word() };
    let mut words = if action == Action::Put {
        let zero = ayre_proto::units::Claim { len: 0, ..command.claim };
        Request { command: Command { claim: zero, ..command }, ..request }.encode()
    } else {
        request.encode()
    };
    if dice.percent(30) {
        words[dice.below(6) as usize] ^= 1 << dice.below(64);
    }
    if dice.percent(10) {
        words[0] = words[0] & !0xff | dice.below(9);
    }
    words
}

// spec: ERR-5, ERR-6, CAP-2, NOTI-11, LANE-10
#[test]
fn a_hostile_initiator_reaches_only_granted_memory() {
    for seed in 0..seeds(100) {
        let mut dice = Dice(seed);
        let mut two = OneWay::new(48);
        two.far.share(two.near.number, Rights::READ);
        for _ in 0..STEPS {
            let words = words(&mut dice, &two);
            let data = vec![0x55; if dice.percent(50) { dice.below(700) as usize } else { 0 }];
            let kind = if dice.percent(95) { Kind::Command } else { Kind::Message };
            two.requests.records.clear();
            two.requests.records.push_back(Record { kind, ..Record::command(words, &data) });
            let before = two.far.target.executed();
            let served = two.serve();
            let executed = two.far.target.executed() - before;
            assert_eq!(executed, u64::from(served == Ok(true)), "{served:?}");
            if dice.percent(10) || served == Ok(false) {
                two.answers.records.clear();
            }
            if dice.percent(20) {
                two.far.read_note();
                two.far.tell();
            }
            let unread = two.far.shared.notes.len() as u64;
            assert!(unread <= NOTES_UNREAD_MAX, "nobody's program is flooded");
        }
        let memory = &two.far.shared.memory;
        let (first, last) = (&memory[..BASE as usize], &memory[(BASE + LEN) as usize..]);
        assert!(first.iter().chain(last).all(|byte| *byte == NOTHING), "seed {seed}");
    }
}

/// An answer that is nearly right.
fn answer(dice: &mut Dice, posted: u64, done: u64) -> Record {
    let number = (done + dice.below(posted - done + 3)) as u32;
    let statuses = [Status::Ok, Status::Declined, Status::Fault(Fault::Bounds)];
    let status = statuses[dice.below(3) as usize];
    let value = if dice.percent(80) { dice.below(90) } else { dice.word() };
    let data = vec![0x77; dice.below(80) as usize];
    let kind = if dice.percent(97) { Kind::Response } else { Kind::Command };
    let mut words = Response { number, status, value }.encode();
    if dice.percent(10) {
        words[0] ^= 1 << dice.below(64);
    }
    Record { kind, ..Record::answer(words, &data) }
}

// spec: ERR-5, ERR-6, GET-1, LANE-10
#[test]
fn a_hostile_target_writes_only_into_requested_buffers() {
    let shape = Shape { row_len: 30, rows: 2, local_stride: 50, remote_stride: 30 };
    for seed in 0..seeds(300) {
        let mut dice = Dice(seed);
        let mut two = OneWay::new(480);
        let (mut last, mut is_sound) = (0, true);
        while is_sound && two.near.initiator.posted() < 1000 {
            let action = if dice.percent(60) { Action::Get } else { Action::Immediate(1) };
            let is_get = action == Action::Get;
            let (shape, len) = if is_get { (shape, 60) } else { (Shape::contiguous(8), 8) };
            let command = two.command(action, 0, len);
            let is_called = is_get && two.near.call.is_none() && dice.percent(30);
            let index = two.near.buffers.len();
            let memory = (is_get && !is_called).then_some(index);
            if let Ok((place, ticket, _)) = two.post(&command, &shape, &[], memory) {
                two.near.buffers.extend(memory.map(|_| vec![NOTHING; 100]));
                if is_called {
                    let awaited = Awaited::new((place, ticket), shape);
                    two.near.call = Some(Call { awaited, into: vec![NOTHING; 80] });
                }
            }
            let (posted, done) = (two.near.initiator.posted(), two.near.initiator.done());
            two.answers.push(answer(&mut dice, posted, done));
            two.far.told.0 = done + dice.below(posted - done + 1);
            match two.take() {
                Ok(ended) => {
                    for ended in ended {
                        assert!(ended.ticket.0 > last, "operations end in order");
                        last = ended.ticket.0;
                    }
                }
                // The connection ends.
                Err(_) => is_sound = false,
            }
            if two.near.call.as_ref().is_some_and(|call| call.awaited.outcome().is_some()) {
                two.near.call = None;
            }
            two.requests.records.clear();
            assert!(two.answers.records.is_empty() || !is_sound);
        }
        for buffer in &two.near.buffers {
            let outside = buffer[30..50].iter().chain(&buffer[80..]);
            assert!(outside.copied().all(|byte| byte == NOTHING), "seed {seed}");
        }
    }
}

const _: () = assert!(48 + 700 <= RECORD_MAX, "each record is possible");
