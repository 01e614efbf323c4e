//! Random programs, registers, inlets and messages: the machine and the interpreter agree on
//! everything, faults included.
use crate::oracle::{Clause, Letter, Line, interpret};
use crate::place::Place;
use ayre_proto::deposit::text::assemble;
use ayre_proto::deposit::{
    Append, Appended, DepositMessage, Depot, Form, Instruction, Kind, Mask, Protection, STEPS_MAX,
    Stored, Transfer, Window, run,
};
use ayre_proto::fault::Fault;
use ayre_proto::units::Rights;
use proptest::prelude::*;

/// Numbers that meet: small ones, ends of ranges, and any.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..40_u64, 1 => Just(u64::MAX), 1 => Just(1 << 63), 1 => any::<u64>()]
}

fn clauses() -> impl Strategy<Value = Vec<Clause>> {
    let transfer =
        (0..4_u64, 0..4_u64).prop_map(|(kind, address)| Clause::Transfer { kind, address });
    let op = || {
        (1..16_u64, 0..3_usize, 0..4_usize).prop_map(|(code, to, from)| Clause::Op {
            code,
            to,
            from,
        })
    };
    let test = (1..8_u64, 0..4_usize, 0..4_usize, prop::bool::weighted(0.3))
        .prop_map(|(code, left, right, guards)| Clause::Test { code, left, right, guards });
    let some = |clause| prop::option::weighted(0.7, clause);
    (
        some(transfer.boxed()),
        some(op().boxed()),
        some(op().boxed()),
        some(test.boxed()),
        0..4_usize,
        0..4_usize,
    )
        .prop_map(|(transfer, first, second, test, at, then)| {
            let mut clauses: Vec<_> = [first, second].into_iter().flatten().collect();
            for (clause, place) in [(transfer, at), (test, then)] {
                if let Some(clause) = clause {
                    clauses.insert(place.min(clauses.len()), clause);
                }
            }
            clauses
        })
}

fn line() -> impl Strategy<Value = Line> {
    let registers = prop::array::uniform3(0..6_u8);
    let named = prop::array::uniform3(prop::bool::weighted(0.4));
    let flags =
        (any::<bool>(), any::<bool>(), prop::bool::weighted(0.5), prop::bool::weighted(0.8));
    (clauses(), registers, named, flags, 0..4_usize, word()).prop_map(
        |(clauses, registers, named, flags, give, operand)| {
            let (takes_operand, takes_mask, continues, enters) = flags;
            Line {
                clauses,
                registers,
                named,
                takes_operand,
                takes_mask,
                continues,
                give,
                operand,
                enters,
            }
        },
    )
}

fn window(most: u16) -> impl Strategy<Value = Window> {
    (0..3_u16, 0..=most).prop_map(|(base, len)| Window { base, len })
}

fn rights() -> impl Strategy<Value = Rights> {
    let mostly = |right| {
        prop::bool::weighted(0.9).prop_map(move |has| if has { right } else { Rights::empty() })
    };
    (mostly(Rights::READ), mostly(Rights::WRITE), mostly(Rights::NOTIFY), mostly(Rights::PROGRAM))
        .prop_map(|(read, write, notify, program)| read | write | notify | program)
}

fn place() -> impl Strategy<Value = Place> {
    let protection = prop_oneof![6 => Just(3_u8), 1 => 0..3_u8];
    let registers = prop::collection::vec((word(), protection), 9);
    let memory = prop_oneof![3 => Just(64_usize), 1 => 1..80_usize, 1 => Just(2048)];
    (registers, window(7), window(6), rights(), memory, prop_oneof![Just(1024_u16), 0..64_u16])
        .prop_map(|(values, registers, entries, rights, memory, longest)| {
            let mut place = Place::open(memory);
            for (index, (value, protection)) in values.into_iter().enumerate() {
                place.registers[index] = value;
                place.protections[index] = Protection::from_bits_truncate(protection);
            }
            place.memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
            let inlet = &mut place.inlet;
            (inlet.rights, inlet.registers, inlet.entries) = (rights, registers, entries);
            inlet.longest = longest;
            place
        })
}

fn letter() -> impl Strategy<Value = Letter> {
    let len = prop_oneof![
        3 => Just(0_usize),
        4 => (0..9_usize).prop_map(|n| 4 * n),
        1 => 0..70_usize,
        1 => 200..1100_usize,
    ];
    let mask = prop_oneof![3 => Just(u64::MAX), 2 => any::<u64>(), 1 => Just(0)];
    let form = (prop::option::of(line()), 0..6_u16, prop::array::uniform3(0..8_u8));
    (form, word(), mask, len, prop::bool::weighted(0.7)).prop_map(
        |((carried, entry, registers), operand, mask, len, brings)| {
            let carried = carried.map(|line| Line { continues: false, ..line });
            let data = (0..len).map(|at| 0x80 | at as u8).collect();
            Letter { carried, entry, registers, operand, mask, len, brings, data }
        },
    )
}

fn stored(line: &Line) -> Stored {
    let instruction = Instruction::parse(line.word()).expect("the interpreter packs valid words");
    Stored { instruction, operand: line.operand, enters: line.enters }
}

fn message(letter: &Letter) -> DepositMessage {
    let form = match &letter.carried {
        Some(line) => Form::Carried(stored(line).instruction),
        None => Form::Pointer { entry: letter.entry, registers: letter.registers },
    };
    let Letter { operand, mask, len, brings, .. } = *letter;
    DepositMessage { form, operand, mask: Mask(mask), len: len as u16, brings, is_answered: true }
}

/// The machine and the interpreter must agree on a letter.
fn agree(mut place: Place, lines: &[Option<Line>], letter: &Letter) -> Result<(), TestCaseError> {
    place.instructions = lines.iter().map(|line| line.as_ref().map(stored)).collect();
    let expected = interpret(&place, lines, letter);
    let message = message(letter);
    if let Ok(outcome) = run(&message, &place.inlet, &place) {
        prop_assert!(outcome.steps <= STEPS_MAX, "{} steps", outcome.steps);
    }
    let before = place.clone();
    let found = place.deliver(&message, &letter.data);
    match (found, expected) {
        (Ok(done), Ok((after, expected))) => {
            prop_assert_eq!(done, expected);
            prop_assert_eq!(place, after);
        }
        (Err(found), Err(expected)) => {
            prop_assert_eq!(found, expected);
            prop_assert_eq!(place, before);
        }
        (found, expected) => {
            let expected: Result<_, Fault> = expected.map(|(_, done)| done);
            prop_assert_eq!(found, expected);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    // spec: DEP-3, DEP-4, DEP-5, DEP-7, DEP-9, DEP-10, DEP-11, DEP-12, DEP-14, DEP-15, DEP-16
    #[test]
    fn the_machine_equals_the_interpreter(
        place in place(),
        lines in prop::collection::vec(prop::option::weighted(0.9, line()), 0..8),
        letter in letter(),
    ) {
        agree(place, &lines, &letter)?;
    }
}

/// Instructions that append, and such that nearly do.
fn appending() -> impl Strategy<Value = Line> {
    let step = prop_oneof![
        3 => (0..3_usize).prop_map(|from| Clause::Op { code: 4, to: 0, from }),
        2 => Just(Clause::Op { code: 14, to: 0, from: 3 }),
        1 => (1..16_u64, 0..3_usize, 0..4_usize)
            .prop_map(|(code, to, from)| Clause::Op { code, to, from }),
    ];
    let guard =
        (prop_oneof![4 => Just(6_u64), 1 => 1..8_u64], 0..4_usize, prop::bool::weighted(0.8))
            .prop_map(|(code, right, guards)| Clause::Test { code, left: 0, right, guards });
    let address = prop_oneof![2 => Just(1_u64), 2 => Just(3_u64), 1 => 0..4_u64];
    let registers = prop::array::uniform3(0..4_u8);
    (step, prop::option::weighted(0.6, guard), address, registers, prop::bool::weighted(0.1))
        .prop_map(|(step, guard, address, registers, odd)| {
            let mut clauses: Vec<_> = guard.into_iter().collect();
            clauses.extend([Clause::Transfer { kind: 1, address }, step]);
            if odd {
                clauses.rotate_left(1);
            }
            Line { clauses, registers, enters: true, takes_operand: true, ..Line::default() }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    // spec: DEP-7, DEP-14, DEP-17
    #[test]
    fn the_short_way_decides_as_the_machine_does(
        place in place(),
        line in appending(),
        mut letter in letter(),
        full in any::<bool>(),
    ) {
        let mut place = place;
        place.inlet.entries = Window { base: 0, len: 1 };
        if full {
            place.inlet.rights = Rights::all();
            letter.mask = u64::MAX;
        }
        (letter.carried, letter.entry) = (None, 0);
        let message = message(&letter);
        let stored = stored(&line);
        place.instructions = vec![Some(stored)];
        let Some(append) = Append::of(&stored.instruction) else { return Ok(()) };
        let decided = append.apply(&message, &place.inlet, |index| place.register(index));
        match (decided, run(&message, &place.inlet, &place)) {
            // It leaves to the machine what faults, or would if no guard came first.
            (None, found) => prop_assert!(found.map_or(true, |outcome| outcome.declined)),
            (Some(Appended::Declined), found) => {
                prop_assert!(found.is_ok_and(|outcome| outcome.declined));
            }
            (Some(Appended::At { offset, tail }), found) => {
                let outcome = found.expect("it does not fault");
                let transfer = Transfer { kind: Kind::Write, offset, mask: Mask::ALL };
                prop_assert_eq!(outcome.transfer, Some(transfer));
                prop_assert_eq!(&outcome.writes[..], &[(append.tail, tail)]);
                let rest = (outcome.notifies, outcome.given, outcome.declined);
                prop_assert_eq!(rest, (false, 0, false));
            }
        }
    }
}

#[test]
fn append_programs_are_recognised() {
    for (line, known) in [
        ("entry; write [r0]; r0 += r1", true),
        ("entry; decline if r0 >= r2; write [r0 wrapped]; r0 += r1", true),
        ("entry; write [r0]; r0 += length", true),
        ("entry; write [r0]; r0 += operand", false),
        ("entry; write [r0]; r0 += r1; next", false),
        ("entry; write [$x]; $x += r1", false),
        ("entry; r0 += r1; write [r0]", false),
        ("entry; write [r0]; r0 += r1; notify", false),
        ("entry; write [r0]; r0 += r1; masked", false),
        ("entry; write [r0]; r0 += r1; give r0", false),
    ] {
        let stored = assemble(line).expect("a line").expect("an instruction");
        assert_eq!(Append::of(&stored.instruction).is_some(), known, "{line}");
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}
