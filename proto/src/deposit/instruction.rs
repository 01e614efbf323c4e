//! One instruction: a word that says which primitives run, in which order, and on what.
//!
//! ```text
//!   63 62  61    60    59      58-56    55-48 47-40 39-32   bits 31-0: see the constants below
//!  +------+-----+-----+-------+--------+-----+-----+-----+--------------------------------------+
//!  | give |next |mask |operand| named  |  z  |  y  |  x  | test | op 2 | op 1 | order | kind ... |
//!  +------+-----+-----+-------+--------+-----+-----+-----+--------------------------------------+
//! ```
//!
//! The same word is carried by a message and stored at a destination. `named`, `operand` and `mask`
//! matter in stored ones only: they say what the message supplies.
use super::primitive::{
    AddressMode, Condition, Kind, OpCode, Operand, Primitive, RegisterOp, Slot, Test,
};
use crate::fault::Fault;

/// The parts of a stored instruction that the message supplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supplied {
    /// By slot: whether the message supplies the register's number.
    pub registers: [bool; 3],
    /// The operand.
    pub operand: bool,
    /// The mask; without, all words are written or read.
    pub mask: bool,
}

/// An instruction that can be carried out: what cannot is refused by [`Instruction::parse`]. It is
/// taken apart once, and then cheap to run.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    word: u64,
    kind: Kind,
    address: AddressMode,
    order: &'static [Primitive; 4],
    ops: [Option<RegisterOp>; 2],
    test: Option<Test>,
    give: Option<Slot>,
    registers: [u8; 3],
    supplied: Supplied,
    reads: u8,
    writes: u8,
}

impl PartialEq for Instruction {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for Instruction {}

const KIND: u32 = 0;
const GUARDS: u32 = 2;
const ADDRESS: u32 = 3;
const ORDER: u32 = 5;
const OPS: [u32; 2] = [9, 17];
const TO: u32 = 4;
const FROM: u32 = 6;
const TEST: u32 = 25;
const LEFT: u32 = 28;
const RIGHT: u32 = 30;
const REGISTERS: u32 = 32;
const NAMED: u32 = 56;
const OPERAND: u32 = 59;
const MASK: u32 = 60;
const NEXT: u32 = 61;
const GIVE: u32 = 62;

const _: () = {
    let ends = [
        (KIND + 2, GUARDS),
        (GUARDS + 1, ADDRESS),
        (ADDRESS + 2, ORDER),
        (ORDER + 4, OPS[0]),
        (OPS[0] + FROM + 2, OPS[1]),
        (OPS[1] + FROM + 2, TEST),
        (TEST + 3, LEFT),
        (LEFT + 2, RIGHT),
        (RIGHT + 2, REGISTERS),
        (REGISTERS + 24, NAMED),
        (NAMED + 3, OPERAND),
        (OPERAND + 1, MASK),
        (MASK + 1, NEXT),
        (NEXT + 1, GIVE),
        (GIVE + 2, u64::BITS),
    ];
    let mut at = 0;
    while at < ends.len() {
        assert!(ends[at].0 == ends[at].1, "a field begins where the one before ends");
        at += 1;
    }
};

/// The primitives in their order, by code. A third of the code gives the place of the address; the
/// remainder gives the place of the test among the others. The operations fill the remaining
/// places.
// spec: DEP-7
static ORDERS: [[Primitive; 4]; 12] = {
    use Primitive::{Address as A, First as F, Second as S, Test as T};
    [
        [A, T, F, S],
        [A, F, T, S],
        [A, F, S, T],
        [T, A, F, S],
        [F, A, T, S],
        [F, A, S, T],
        [T, F, A, S],
        [F, T, A, S],
        [F, S, A, T],
        [T, F, S, A],
        [F, T, S, A],
        [F, S, T, A],
    ]
};

const _: () = {
    let mut code = 0;
    while code < ORDERS.len() {
        let (address, test) = (place(code, Primitive::Address), place(code, Primitive::Test));
        let (first, second) = (place(code, Primitive::First), place(code, Primitive::Second));
        assert!(first < second && second < 4, "operations keep their order");
        assert!(address < 4 && test < 4, "each primitive has a place");
        let among_others = if test > address { test - 1 } else { test };
        assert!(address * 3 + among_others == code, "a code says where address and test stand");
        code += 1;
    }
};

/// The place of a primitive in an order.
const fn place(code: usize, primitive: Primitive) -> usize {
    let mut at = 0;
    while at < 4 && ORDERS[code][at] as u8 != primitive as u8 {
        at += 1;
    }
    at
}

impl Instruction {
    /// Reads a word. Total; bits that the instruction has no use for are ignored.
    // spec: DEP-8
    pub const fn parse(word: u64) -> Result<Self, Fault> {
        let bits = Bits(word);
        let order = bits.get(ORDER, 4) as usize;
        let ops = [bits.op(OPS[0]), bits.op(OPS[1])];
        let bad = matches!(ops, [Err(_), _] | [_, Err(_)]);
        if order >= ORDERS.len() || bad {
            return Err(Fault::Malformed);
        }
        let [Ok(first), Ok(second)] = ops else { return Err(Fault::Malformed) };
        let (kind, address) = (bits.kind(), bits.address());
        let (test, give) = (bits.test(), bits.give());
        let ops = [first, second];
        Ok(Self {
            word,
            kind,
            address,
            order: &ORDERS[order],
            ops,
            test,
            give,
            registers: [
                bits.get(REGISTERS, 8) as u8,
                bits.get(REGISTERS + 8, 8) as u8,
                bits.get(REGISTERS + 16, 8) as u8,
            ],
            supplied: bits.supplied(),
            reads: reads(kind, address, &ops, test, give),
            writes: writes(&ops),
        })
    }

    /// The word that travels.
    pub const fn word(self) -> u64 {
        self.word
    }

    /// The effect on memory.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The address mode.
    #[inline(always)]
    pub const fn address(&self) -> AddressMode {
        self.address
    }

    /// The four primitives in their order; what the instruction has not is nothing at its place.
    #[inline(always)]
    pub const fn order(&self) -> &'static [Primitive; 4] {
        self.order
    }

    /// One of the two register operations.
    #[inline(always)]
    pub const fn op(&self, which: usize) -> Option<RegisterOp> {
        self.ops[which]
    }

    /// The test.
    #[inline(always)]
    pub const fn test(&self) -> Option<Test> {
        self.test
    }

    /// The register whose value before the message is given back.
    #[inline(always)]
    pub const fn give(&self) -> Option<Slot> {
        self.give
    }

    /// The number of a register that it names.
    #[inline(always)]
    pub const fn register(&self, slot: Slot) -> u8 {
        self.registers[slot.index()]
    }

    /// Whether the instruction behind it follows.
    #[inline(always)]
    pub const fn continues(&self) -> bool {
        self.word >> NEXT & 1 == 1
    }

    /// The parts that the message supplies if the instruction is stored.
    #[inline(always)]
    pub const fn supplied(&self) -> Supplied {
        self.supplied
    }

    /// Slots whose registers it reads, as bits.
    #[inline(always)]
    pub const fn reads(&self) -> u8 {
        self.reads
    }

    /// Slots whose registers it writes, as bits.
    #[inline(always)]
    pub const fn writes(&self) -> u8 {
        self.writes
    }
}

const fn reads(
    kind: Kind,
    address: AddressMode,
    ops: &[Option<RegisterOp>; 2],
    test: Option<Test>,
    give: Option<Slot>,
) -> u8 {
    let mut slots = match (kind, address) {
        (Kind::Registers | Kind::Exception, _) | (_, AddressMode::Direct) => 0,
        _ => Slot::X.bit(),
    };
    let mut which = 0;
    while which < 2 {
        if let Some(RegisterOp { op, to, from }) = ops[which] {
            slots |= if op.reads_target() { to.bit() } else { 0 };
            slots |= if op.reads_source() { from.bit() } else { 0 };
        }
        which += 1;
    }
    match test {
        Some(Test { relation: Condition::Always, .. }) | None => {}
        Some(Test { left, right, .. }) => slots |= left.bit() | right.bit(),
    }
    match give {
        Some(slot) => slots | slot.bit(),
        None => slots,
    }
}

const fn writes(ops: &[Option<RegisterOp>; 2]) -> u8 {
    let first = match ops[0] {
        Some(op) => op.to.bit(),
        None => 0,
    };
    match ops[1] {
        Some(op) => first | op.to.bit(),
        None => first,
    }
}

/// The word as fields: what the parser takes apart, and the builder and the assembler put together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bits(u64);

impl Bits {
    /// Nothing yet.
    pub(super) const EMPTY: Self = Self(0);

    const fn get(self, at: u32, count: u32) -> u64 {
        self.0 >> at & ((1 << count) - 1)
    }

    const fn with(self, at: u32, count: u32, value: u64) -> Self {
        debug_assert!(value < 1 << count, "a field holds its value");
        let mask = ((1 << count) - 1) << at;
        Self(self.0 & !mask | value << at & mask)
    }

    const fn kind(self) -> Kind {
        match self.get(KIND, 2) {
            0 => Kind::Registers,
            1 => Kind::Write,
            2 => Kind::Read,
            _ => Kind::Exception,
        }
    }

    const fn address(self) -> AddressMode {
        match self.get(ADDRESS, 2) {
            0 => AddressMode::Direct,
            1 => AddressMode::Indirect,
            2 => AddressMode::Indexed,
            _ => AddressMode::Wrapped,
        }
    }

    const fn op(self, at: u32) -> Result<Option<RegisterOp>, Fault> {
        let (code, to) = (self.get(at, 4) as usize, self.get(at + TO, 2) as usize);
        match code {
            0 => Ok(None),
            _ if to == 3 => Err(Fault::Malformed),
            _ => {
                let from = Operand::from_code(self.get(at + FROM, 2));
                Ok(Some(RegisterOp { op: OpCode::ALL[code - 1], to: Slot::ALL[to], from }))
            }
        }
    }

    const fn test(self) -> Option<Test> {
        let code = self.get(TEST, 3) as usize;
        if code == 0 {
            return None;
        }
        Some(Test {
            relation: Condition::ALL[code - 1],
            left: Operand::from_code(self.get(LEFT, 2)),
            right: Operand::from_code(self.get(RIGHT, 2)),
            guards: self.get(GUARDS, 1) == 1,
        })
    }

    const fn give(self) -> Option<Slot> {
        match self.get(GIVE, 2) {
            0 => None,
            code => Some(Slot::ALL[code as usize - 1]),
        }
    }

    const fn supplied(self) -> Supplied {
        let named = self.get(NAMED, 3);
        Supplied {
            registers: [named & 1 != 0, named & 2 != 0, named & 4 != 0],
            operand: self.get(OPERAND, 1) == 1,
            mask: self.get(MASK, 1) == 1,
        }
    }

    pub(super) const fn transferring(self, kind: Kind, address: AddressMode) -> Self {
        self.with(KIND, 2, kind as u64).with(ADDRESS, 2, address as u64)
    }

    pub(super) const fn operating(self, which: usize, op: &RegisterOp) -> Self {
        let at = OPS[which];
        self.with(at, 4, op.op as u64).with(at + TO, 2, op.to as u64).with(
            at + FROM,
            2,
            op.from.code(),
        )
    }

    pub(super) const fn testing(self, test: &Test) -> Self {
        self.with(TEST, 3, test.relation as u64)
            .with(LEFT, 2, test.left.code())
            .with(RIGHT, 2, test.right.code())
            .with(GUARDS, 1, test.guards as u64)
    }

    /// With the address and the test at these places, of 0 to 3, which differ.
    pub(super) const fn ordered(self, address: u64, test: u64) -> Self {
        debug_assert!(address < 4 && test < 4, "an instruction has four places");
        debug_assert!(address != test, "two primitives have two places");
        self.with(ORDER, 4, address * 3 + test - (test > address) as u64)
    }

    pub(super) const fn giving(self, slot: Slot) -> Self {
        self.with(GIVE, 2, slot as u64 + 1)
    }

    pub(super) const fn naming(self, slot: Slot, register: u8) -> Self {
        self.with(REGISTERS + 8 * slot as u32, 8, register as u64)
    }

    pub(super) const fn supplied_with(self, supplied: &Supplied) -> Self {
        let [x, y, z] = supplied.registers;
        self.with(NAMED, 3, x as u64 | (y as u64) << 1 | (z as u64) << 2)
            .with(OPERAND, 1, supplied.operand as u64)
            .with(MASK, 1, supplied.mask as u64)
    }

    pub(super) const fn continuing(self) -> Self {
        self.with(NEXT, 1, 1)
    }

    /// The name in the word of an instruction.
    pub(super) const fn of(instruction: &Instruction) -> Self {
        Self(instruction.word)
    }

    /// Returns the instruction that the functions above have put together.
    pub(super) const fn finish(self) -> Instruction {
        match Instruction::parse(self.0) {
            Ok(instruction) => {
                debug_assert!((instruction.reads | instruction.writes) < 8, "it names registers");
                instruction
            }
            Err(_) => panic!("operations have registers, and orders are permutations"),
        }
    }
}
