//! The attempts of a hostile sender: each is refused, and nothing has changed.
use crate::place::{Place, message};
use Register::{At, FromMessage};
use ayre_proto::deposit::program::{ALWAYS, OPERAND, Program, Register, X, Y, Z};
use ayre_proto::deposit::{
    AddressMode, DepositMessage, Form, Instruction, Mask, Protection, Window,
};
use ayre_proto::fault::Fault;
use ayre_proto::units::Rights;

/// A place with a private tail in register 0, and registers 8 to 11 that messages may name: 8 to
/// read, 9 to write, 10 for both, 11 for nothing.
fn guarded() -> Place {
    let append =
        Program::new().write(AddressMode::Indirect).then(X.add(Y)).store([At(0), At(1), At(255)]);
    let peek = Program::new().then(X.set(OPERAND)).give(X).store([FromMessage, At(0), At(0)]);
    let mut place = Place::closed(256, &[append, peek]);
    place.registers[..2].copy_from_slice(&[64, 32]);
    place.inlet.rights |= Rights::PROGRAM;
    place.inlet.registers = Window { base: 8, len: 4 };
    place.inlet.entries = Window { base: 0, len: 2 };
    place.inlet.longest = 32;
    let may = [Protection::READ, Protection::WRITE, Protection::all(), Protection::empty()];
    place.protections[8..12].copy_from_slice(&may);
    place
}

fn refused(fault: Fault, message: &DepositMessage, data: &[u8]) {
    let mut place = guarded();
    assert_eq!(place.deliver(message, data), Err(fault), "{message:?}");
    assert_eq!(place, guarded(), "{message:?}");
}

fn carried(instruction: Instruction, len: usize) -> DepositMessage {
    message(Form::Carried(instruction), 0, len)
}

// spec: DEP-3, DEP-15, DEP-18
#[test]
fn private_registers_are_neither_read_nor_changed() {
    let set = |slot: u8| Program::new().then(X.set(OPERAND)).carry([slot, 0, 0]);
    let get = |slot: u8| Program::new().give(X).carry([slot, 0, 0]);
    for (slot, reads, writes) in
        [(0, true, false), (1, false, true), (2, true, true), (3, false, false)]
    {
        for (allowed, instruction) in [(writes, set(slot)), (reads, get(slot))] {
            match allowed {
                true => assert!(guarded().deliver(&carried(instruction, 0), &[]).is_ok()),
                false => refused(Fault::Rights, &carried(instruction, 0), &[]),
            }
        }
    }
    // No number reaches beyond the window, and none wraps to what is before it.
    for slot in 4..=255 {
        refused(Fault::Bounds, &carried(set(slot), 0), &[]);
        refused(Fault::Bounds, &carried(get(slot), 0), &[]);
    }
}

// spec: DEP-15
#[test]
fn hidden_registers_do_not_leak_through_computation() {
    let hidden = 3;
    for instruction in [
        Program::new().write(AddressMode::Indirect).carry([hidden, 0, 0]),
        Program::new().read(AddressMode::Indexed).carry([hidden, 0, 0]),
        Program::new().then(X.set(Y)).carry([2, hidden, 0]),
        Program::new().then(X.add(OPERAND)).carry([hidden, 0, 0]),
        Program::new().decline_if(X.gt(OPERAND)).carry([hidden, 0, 0]),
    ] {
        refused(Fault::Rights, &carried(instruction, 0), &[]);
    }
}

// spec: DEP-13, DEP-17
#[test]
fn a_queue_is_not_overrun() {
    let enter = |entry| Form::Pointer { entry, registers: [0, 0, 0] };
    refused(Fault::TooLong, &message(enter(0), 0, 33), &[1; 33]);
    let mut full = guarded();
    full.registers[0] = 240;
    let before = full.clone();
    assert_eq!(full.enter(0, 0, &[1; 32]), Err(Fault::Bounds));
    assert_eq!(full, before);
    // The operand and the registers that it offers make no difference to a stored instruction.
    let mut place = guarded();
    let form = Form::Pointer { entry: 0, registers: [2, 2, 2] };
    place.deliver(&message(form, u64::MAX, 32), &[1; 32]).unwrap();
    assert_eq!((place.registers[0], &place.memory[64..96]), (96, [1; 32].as_slice()));
    // Nor can it leave out words of a record, and so publish what was there before.
    let mut place = guarded();
    let sly = DepositMessage { mask: Mask(0), ..message(enter(0), 0, 32) };
    place.deliver(&sly, &[1; 32]).unwrap();
    assert_eq!(place.memory[64..96], [1; 32]);
}

// spec: DEP-4, DEP-17
#[test]
fn only_entries_are_entered() {
    let enter = |entry, registers| message(Form::Pointer { entry, registers }, 0, 0);
    for entry in 2..=u16::MAX {
        refused(Fault::Bounds, &enter(entry, [0; 3]), &[]);
    }
    refused(Fault::Rights, &enter(1, [3, 0, 0]), &[]);
    refused(Fault::Bounds, &enter(1, [4, 0, 0]), &[]);
    let mut place = guarded();
    place.inlet.entries = Window { base: 300, len: u16::MAX };
    for entry in [0, 65_235, 65_236, 65_534] {
        let form = Form::Pointer { entry, registers: [0; 3] };
        let found = place.deliver(&message(form, 0, 0), &[]);
        // The owner's window may be as senseless as it likes: it is still a window.
        assert!(found.is_ok() == (entry == 65_236), "{entry}: {found:?}");
    }
}

// spec: DEP-16
#[test]
fn a_notification_without_the_right_is_refused() {
    refused(Fault::Rights, &carried(Program::new().notify().carry([0; 3]), 0), &[]);
    let always = Program::new().notify_if(ALWAYS).then(Z.set(OPERAND)).carry([2, 2, 2]);
    refused(Fault::Rights, &carried(always, 0), &[]);
    let mut place = guarded();
    place.inlet.rights.remove(Rights::PROGRAM);
    let nothing = carried(Program::new().carry([0; 3]), 0);
    assert_eq!(place.deliver(&nothing, &[]), Err(Fault::Rights), "only pointers are let in");
}

// spec: DEP-5
#[test]
fn addresses_stay_in_the_range() {
    let direct = Program::new().write(AddressMode::Direct).carry([0; 3]);
    let indexed = Program::new().write(AddressMode::Indexed).carry([2, 0, 0]);
    for operand in [249, 256, 257, u64::MAX, u64::MAX - 7, 1 << 63] {
        for instruction in [direct, indexed] {
            let message = message(Form::Carried(instruction), operand, 8);
            refused(Fault::Bounds, &message, &[1; 8]);
        }
    }
}

// spec: DEP-8, DEP-14
#[test]
fn undefined_instruction_bits_are_malformed() {
    for word in 0..1 << 9_u64 {
        let order = word >> 5 & 15;
        assert_eq!(Instruction::parse(word).is_ok(), order < 12);
    }
    for at in [9, 17] {
        let word = 1 << at | 3 << (at + 4);
        assert_eq!(Instruction::parse(word), Err(Fault::Malformed));
    }
    let read = Program::new().read(AddressMode::Direct).carry([0; 3]);
    refused(Fault::Malformed, &carried(read, 8), &[1; 8]);
    let write = Program::new().write(AddressMode::Direct).carry([0; 3]);
    refused(Fault::Malformed, &DepositMessage { brings: false, ..carried(write, 8) }, &[]);
    refused(Fault::Malformed, &carried(Program::new().carry([0; 3]), 8), &[1; 8]);
    refused(Fault::Exception, &carried(Program::new().exception().carry([0; 3]), 8), &[1; 8]);
    let odd = DepositMessage { mask: Mask(1), ..carried(write, 6) };
    refused(Fault::Malformed, &odd, &[1; 6]);
}
