//! The compounds that the paper works out, each by the program that says it.
use crate::place::Place;
use Register::{At, FromMessage};
use ayre_proto::deposit::program::{OPERAND, Program, Register, X, Y, Z};
use ayre_proto::deposit::{AddressMode, DepositMessage, Form, Mask, Stored};
use ayre_proto::fault::Fault;

/// Registers of these tests.
const TAIL: Register = At(0);
const SIZE: Register = At(1);
const LEVEL: Register = At(2);
const NONE: Register = At(255);

#[test]
fn many_senders_append_with_one_message_each() {
    let append =
        Program::new().write(AddressMode::Indirect).then(X.add(Y)).store([TAIL, SIZE, NONE]);
    let mut place = Place::closed(256, &[append]);
    place.registers[1] = 32;
    for sender in 1..=8 {
        place.enter(0, 0, &[sender; 32]).unwrap();
    }
    let expected: Vec<_> = (1..=8).flat_map(|sender| [sender; 32]).collect();
    assert_eq!((place.memory.as_slice(), place.registers[0]), (expected.as_slice(), 256));
    assert_eq!(place.enter(0, 0, &[9; 32]), Err(Fault::Bounds));
}

#[test]
fn strides_are_constant_or_vary() {
    let constant = Program::new().write(AddressMode::Indirect).then(X.add(Y)).carry([0, 1, 0]);
    let mut place = Place::open(64);
    place.registers[1] = 16;
    for row in 1..=4 {
        place.carry(constant, 0, &[row; 4]).unwrap();
    }
    let rows: Vec<_> =
        (1..=4_u8).flat_map(|row| [[row; 4], [0; 4], [0; 4], [0; 4]].concat()).collect();
    assert_eq!(place.memory, rows);

    let varying = Program::new().write(AddressMode::Indirect).then(X.add(OPERAND)).carry([0; 3]);
    let mut place = Place::open(64);
    for (row, stride) in [(1, 8), (2, 24), (3, 4)] {
        place.carry(varying, stride, &[row; 4]).unwrap();
    }
    let starts: Vec<_> = (0..64).filter(|at| place.memory[*at] != 0).step_by(4).collect();
    assert_eq!((starts, place.registers[0]), (vec![0, 8, 32], 36));
}

/// One queue for each priority, and a notification only where a message's is above all pending.
#[test]
fn priorities_notify_exactly_where_they_rise() {
    let append = Program::new()
        .write(AddressMode::Indirect)
        .then(X.add(Y))
        .notify_if(OPERAND.gt(Z))
        .then(Z.or(OPERAND))
        .store([FromMessage, SIZE, LEVEL]);
    let mut place = Place::closed(1024, &[append]);
    place.inlet.registers.len = 16;
    place.inlet.registers.base = 16;
    for queue in 16..32 {
        place.protections[queue] = ayre_proto::deposit::Protection::all();
        place.registers[queue] = 64 * (queue as u64 - 16);
    }
    place.registers[1] = 8;
    let send = |place: &mut Place, priority: u8| {
        let form = Form::Pointer { entry: 0, registers: [priority, 0, 0] };
        let operand = 1 << priority;
        let message = DepositMessage {
            form,
            operand,
            mask: Mask::ALL,
            len: 8,
            brings: true,
            is_answered: false,
        };
        place.deliver(&message, &[priority + 1; 8]).unwrap();
        place.notified
    };
    let notified: Vec<_> = [3, 1, 3, 5, 4, 9, 0].map(|p| send(&mut place, p)).into();
    assert_eq!(notified, [1, 1, 1, 2, 2, 3, 3]);
    assert_eq!(place.registers[2], 0b10_0011_1011);
    assert_eq!(place.registers[16 + 3], 64 * 3 + 16);
    // With the top bit set nobody is notified, and the vector of queues that are not empty grows.
    place.registers[2] = 1 << 63;
    assert_eq!(send(&mut place, 12), 3);
    assert_eq!(place.registers[2], 1 << 63 | 1 << 12);
}

#[test]
fn a_queue_that_is_full_declines() {
    // Register 3 is how far senders may go: its consumer adds what it has taken.
    let append = Program::new()
        .decline_if(X.ge(Z))
        .write(AddressMode::Wrapped)
        .then(X.add(Y))
        .store([TAIL, SIZE, At(3)]);
    let mut place = Place::closed(64, &[append]);
    (place.registers[1], place.registers[3]) = (32, 64);
    let append = |place: &mut Place, byte| place.enter(0, 0, &[byte; 32]).unwrap().declined;
    assert_eq!([1, 2, 3].map(|byte| append(&mut place, byte)), [false, false, true]);
    assert_eq!(place.memory[32..], [2; 32]);
    place.registers[3] += 32;
    assert!(!append(&mut place, 4));
    assert_eq!((place.memory[0], place.registers[0]), (4, 96));
}

#[test]
fn records_of_any_length_go_one_behind_the_other() {
    let append =
        Program::new().write(AddressMode::Indirect).then(X.advance()).store([TAIL, NONE, NONE]);
    let mut place = Place::closed(256, &[append]);
    for len in [1, 8, 9, 16, 0] {
        place.enter(0, 0, &vec![7; len]).unwrap();
    }
    assert_eq!(place.registers[0], 8 + 8 + 16 + 16);
}

#[test]
fn words_are_fetched_and_changed() {
    let count = Program::new().then(X.add(OPERAND)).give(X).carry([5, 0, 0]);
    let mut place = Place::open(8);
    let given: Vec<_> = (0..4).map(|_| place.carry(count, 3, &[]).unwrap().given).collect();
    assert_eq!((given, place.registers[5]), (vec![0, 3, 6, 9], 12));

    // Compare and swap: the new value is put into a register of the sender's first.
    let prepare = Program::new().then(X.set(OPERAND)).carry([6, 0, 0]);
    let swap = Program::new().then(X.replace(Y)).give(X).carry([5, 6, 0]);
    place.carry(prepare, 99, &[]).unwrap();
    assert_eq!(place.carry(swap, 11, &[]).unwrap().given, 12);
    assert_eq!(place.registers[5], 12);
    assert_eq!(place.carry(swap, 12, &[]).unwrap().given, 12);
    assert_eq!(place.registers[5], 99);
}

#[test]
fn a_barrier_notifies_once_all_bits_are_set() {
    // Register 0 has the bits, register 1 what they are when all have come.
    let enter = Program::new().then(X.xor(OPERAND)).notify_if(X.eq(Y)).store([At(0), At(1), NONE]);
    let mut place = Place::closed(8, &[enter]);
    for round in 0..4 {
        place.registers[1] = if round % 2 == 0 { 0b1111 } else { 0 };
        for process in [2, 0, 3, 1] {
            assert_eq!(place.notified, round, "never early");
            place.enter(0, 1 << process, &[]).unwrap();
        }
        assert_eq!(place.notified, round + 1);
    }
}

#[test]
fn a_sequence_is_one_message() {
    // A bounded queue that notifies whoever waits for its first record, and counts all.
    let first = Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
    let second = Program::new().notify_if(Y.eq(OPERAND)).then(Y.add(Z));
    let sequence = Stored::sequence([
        first.store([TAIL, SIZE, At(3)]),
        second.store([NONE, At(4), At(5)]).with_operand(0),
    ]);
    let mut place = Place::closed(64, &sequence.unwrap());
    (place.registers[1], place.registers[3], place.registers[5]) = (32, 64, 1);
    let declined: Vec<_> = (0..3).map(|_| place.enter(0, 77, &[1; 32]).unwrap().declined).collect();
    assert_eq!(declined, [false, false, true]);
    assert_eq!((place.notified, place.registers[4], place.registers[0]), (1, 2, 64));
    assert_eq!(place.enter(1, 0, &[]), Err(Fault::Rights), "the second is no entry");
}

#[test]
fn two_transfers_are_no_sequence() {
    let write = Program::new().write(AddressMode::Direct).store([NONE; 3]);
    assert_eq!(Stored::sequence([write, write]), Err(Fault::Malformed));
}

// spec: DEP-12
#[test]
fn a_mask_leaves_neighbours_alone() {
    let write = Program::new().write(AddressMode::Direct).carry([0; 3]);
    let mut place = Place::open(32);
    let message = DepositMessage {
        form: Form::Carried(write),
        operand: 8,
        mask: Mask(0b1010),
        len: 16,
        brings: true,
        is_answered: false,
    };
    place.deliver(&message, &[1; 16]).unwrap();
    let written: Vec<_> = (0..32).filter(|at| place.memory[*at] == 1).collect();
    assert_eq!(written, [12, 13, 14, 15, 20, 21, 22, 23]);
}
