//! Instructions as text and back.
use ayre_proto::deposit::program::{OPERAND, Program, Register, X, Y, Z};
use ayre_proto::deposit::text::assemble;
use ayre_proto::deposit::{AddressMode, Instruction, Stored};
use proptest::prelude::*;

fn read(line: &str) -> Stored {
    assemble(line).unwrap_or_else(|error| panic!("{line}: {error}")).expect("an instruction")
}

#[test]
fn program_text_equals_the_built_program() {
    let at = [Register::At(3), Register::At(4), Register::At(5)];
    let append = Program::new().write(AddressMode::Indirect).then(X.add(Y)).store(at);
    assert_eq!(read("entry; write [r3]; r3 += r4").to_string(), "entry; write [r3]; r3 += r4");
    assert_eq!(append.to_string(), "entry; write [r3]; r3 += r4");
    let raise = Program::new()
        .write(AddressMode::Indirect)
        .then(X.add(Y))
        .notify_if(OPERAND.gt(Z))
        .then(Z.or(OPERAND))
        .store(at);
    let text = "entry; write [r3]; r3 += r4; notify if operand > r5; r5 |= operand";
    assert_eq!(raise.to_string(), text);
    assert_eq!(read(text), raise);
}

#[test]
fn every_clause_has_a_text() {
    for line in [
        "read [operand]; give r9; masked",
        "write [r1 + operand]; operand = 0x10; next",
        "entry; decline if r0 >= r3; write [r0 wrapped]; r0 += length; r3 = neg r0",
        "exception",
        "r1 = not operand; r2 &~= r1; notify",
        "r1 = r2 if r1 == operand; r2 <<= operand",
        "$x min= $y; $y max= $z; notify if $x != $y",
        "r7 >>= r7; r7 ^= r7; decline if r7 < operand",
    ] {
        assert_eq!(read(line).to_string(), line);
    }
}

#[test]
fn a_malformed_instruction_is_reported() {
    for (line, error) in [
        ("r1 += r2; r2 += r3; r3 += r1", "an instruction has two register operations"),
        ("write [r1]; read [r1]", "an instruction has one transfer"),
        ("notify; notify", "an instruction has one test"),
        ("r1 += r2; r3 += r4", "an instruction names three registers"),
        ("write [r1 + r2]", "only the operand is added to an address"),
        ("r256 = r1", "expected a register"),
        ("r1 *= r2", "no such operation"),
        ("r1", "no such clause"),
        ("notify if r1 ~ r2", "no such relation"),
        ("operand = twelve", "expected a number of 64 bits"),
        ("r1 = r2 if r3 == operand", "expected `rA = rB if rA == operand`"),
    ] {
        assert_eq!(assemble(line).map_err(|found| found.0), Err(error), "{line}");
    }
    assert_eq!(assemble("  # nothing but words"), Ok(None));
}

proptest! {
    #[test]
    fn text_gives_an_instruction_that_does_the_same(
        word in any::<u64>(), operand in any::<u64>(), enters in any::<bool>(),
    ) {
        let Ok(instruction) = Instruction::parse(word) else { return Ok(()) };
        let text = Stored { instruction, operand, enters }.to_string();
        let again = assemble(&text);
        prop_assume!(again != Ok(None), "an instruction without any clause");
        // Names that have moved to other places read the same.
        prop_assert_eq!(again.unwrap().unwrap().to_string(), text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9$ \\[\\];=+&|~<>!]{0,60}") {
        let _ = assemble(&text);
    }
}
