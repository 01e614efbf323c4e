//! Vectors of what updates do to numbers.
use super::script::{Fields, Machine, Script};
use ayre_proto::combine::{Combine, Number};

pub(crate) const HEADER: &str = "\
Updates of one number (proto/src/combine.rs, spec/46). Codes and bytes are hexadecimal; bytes in the
order of their addresses.

apply OP NUMBER MEMORY OPERAND COMPARAND -> MEMORY      or undefined";

struct Unit;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Unit)
}

fn bytes(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect()
}

fn show(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Machine for Unit {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        assert_eq!(step, "apply");
        let op = Combine::from_code(inputs.number()).expect("an op");
        let number = Number::from_code(inputs.number()).expect("a number");
        let [mut memory, operand, comparand] = [0; 3].map(|_| bytes(inputs.text()));
        if !op.is_defined(number) {
            return "undefined".to_owned();
        }
        op.apply(number, &mut memory, &operand, &comparand);
        show(&memory)
    }
}

/// Bytes of a number that says something: integers at edges, halves, infinities.
fn some(s: &mut Script, number: Number) -> Vec<u8> {
    let floats = [0.0, -0.0, 1.0, -1.5, 2.0, 1e30, f64::INFINITY, f64::NEG_INFINITY];
    match number {
        Number::F32 => (s.random.pick(&floats) as f32).to_le_bytes().to_vec(),
        Number::F64 => s.random.pick(&floats).to_le_bytes().to_vec(),
        // Without infinities, whose products say nothing.
        Number::C32 => {
            let parts = [0; 2].map(|_| (s.random.pick(&floats[..5]) as f32).to_le_bytes());
            parts.concat()
        }
        Number::C64 => [0; 2].map(|_| s.random.pick(&floats[..5]).to_le_bytes()).concat(),
        _ => s.random.edge().to_le_bytes()[..number.size()].to_vec(),
    }
}

pub(crate) fn script(s: &mut Script) {
    for number in Number::ALL {
        s.section(&format!("{number:?}"));
        for op in Combine::ALL {
            for round in 0..4 {
                let memory = some(s, number);
                let operand = if round == 1 { memory.clone() } else { some(s, number) };
                let comparand = if round < 2 { memory.clone() } else { some(s, number) };
                let (memory, operand) = (show(&memory), show(&operand));
                let (op, number, comparand) = (op.code(), number.code(), show(&comparand));
                s.run(format!("apply {op:x} {number:x} {memory} {operand} {comparand}"));
            }
        }
    }
    s.section("what cannot be compared");
    let nan = show(&f64::NAN.to_le_bytes());
    let one = show(&1.0_f64.to_le_bytes());
    for op in [Combine::Min, Combine::Max].into_iter().chain(Combine::ALL[12..18].to_vec()) {
        s.run(format!("apply {:x} a {nan} {one} {one}", op.code()));
        s.run(format!("apply {:x} a {one} {nan} {nan}", op.code()));
    }
}
