//! The interpreter that the machine is held against: instructions as lists of clauses, registers as
//! an array, one clause after the other. It knows words only through [`Line::word`], which packs
//! them as the table of the specification says.
use crate::place::{Done, Place};
use ayre_proto::deposit::{Protection, SEQUENCE_MAX};
use ayre_proto::fault::Fault;
use ayre_proto::units::Rights;

/// A clause, by the codes of the specification; 3 as a side is the operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clause {
    Transfer { kind: u64, address: u64 },
    Op { code: u64, to: usize, from: usize },
    Test { code: u64, left: usize, right: usize, guards: bool },
}

/// An instruction: at most one transfer, two operations, one test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) clauses: Vec<Clause>,
    pub(crate) registers: [u8; 3],
    /// Which registers, whether the operand, whether the mask are the message's.
    pub(crate) named: [bool; 3],
    pub(crate) takes_operand: bool,
    pub(crate) takes_mask: bool,
    pub(crate) continues: bool,
    /// Register given back, counted from 1.
    pub(crate) give: usize,
    /// Of a stored one.
    pub(crate) operand: u64,
    pub(crate) enters: bool,
}

/// The contents of a message of either form.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    /// The instruction that it carries; none where it points to an entry.
    pub(crate) carried: Option<Line>,
    pub(crate) entry: u16,
    pub(crate) registers: [u8; 3],
    pub(crate) operand: u64,
    pub(crate) mask: u64,
    pub(crate) len: usize,
    pub(crate) brings: bool,
    pub(crate) data: Vec<u8>,
}

impl Line {
    /// The word. A missing primitive has code 0 and takes a remaining place.
    pub(crate) fn word(&self) -> u64 {
        let (mut word, mut ops) = (0, 0);
        let (mut address, mut test) = (None, None);
        for (place, clause) in self.clauses.iter().enumerate() {
            match *clause {
                Clause::Transfer { kind, address: how } => {
                    word |= kind | how << 3;
                    address = Some(place as u64);
                }
                Clause::Op { code, to, from } => {
                    word |= (code | (to as u64) << 4 | (from as u64) << 6) << (9 + 8 * ops);
                    ops += 1;
                }
                Clause::Test { code, left, right, guards } => {
                    word |= code << 25 | (left as u64) << 28 | (right as u64) << 30;
                    word |= u64::from(guards) << 2;
                    test = Some(place as u64);
                }
            }
        }
        let a = address.unwrap_or_else(|| 2 + u64::from(test.is_some()));
        let t = test.unwrap_or(3);
        word |= (3 * a + if t > a { t - 1 } else { t }) << 5;
        for slot in 0..3 {
            word |= u64::from(self.registers[slot]) << (32 + 8 * slot);
            word |= u64::from(self.named[slot]) << (56 + slot);
        }
        word | u64::from(self.takes_operand) << 59
            | u64::from(self.takes_mask) << 60
            | u64::from(self.continues) << 61
            | (self.give as u64) << 62
    }

    fn uses(&self, slot: usize) -> (bool, bool) {
        let (mut read, mut write) = (self.give == slot + 1, false);
        for clause in &self.clauses {
            match *clause {
                Clause::Transfer { kind, address } => {
                    read |= slot == 0 && (kind == 1 || kind == 2) && address != 0;
                }
                Clause::Op { code, to, from } => {
                    read |= to == slot && code > 3 || from == slot && code != 14;
                    write |= to == slot;
                }
                Clause::Test { code, left, right, .. } => {
                    read |= code != 7 && (left == slot || right == slot);
                }
            }
        }
        (read, write)
    }
}

/// Where an interpretation has got to: a copy of the place, that counts if all goes well.
struct State {
    place: Place,
    done: Done,
    transferred: bool,
    notified: bool,
}

/// The result of a letter at a place. `lines` are the place's stored instructions.
pub(crate) fn interpret(
    place: &Place,
    lines: &[Option<Line>],
    letter: &Letter,
) -> Result<(Place, Done), Fault> {
    let Place { inlet, .. } = place;
    let masked = letter.mask != u64::MAX;
    if masked && (letter.len > 256 || !letter.len.is_multiple_of(4)) {
        return Err(Fault::Malformed);
    }
    if letter.len > 1024 || letter.len > usize::from(inlet.longest) {
        return Err(Fault::TooLong);
    }
    let done = Done { given: 0, declined: false, data: Vec::new() };
    let mut state = State { place: place.clone(), done, transferred: false, notified: false };
    match &letter.carried {
        Some(line) => {
            let tests = |c: &Clause| matches!(c, Clause::Test { guards: false, .. });
            let notifies = line.clauses.iter().any(tests);
            if !inlet.rights.contains(Rights::PROGRAM)
                || notifies && !inlet.rights.contains(Rights::NOTIFY)
            {
                return Err(Fault::Rights);
            }
            if line.continues {
                return Err(Fault::Malformed);
            }
            let all =
                Line { named: [true; 3], takes_operand: true, takes_mask: true, ..line.clone() };
            state.line(&all, &Letter { registers: line.registers, ..letter.clone() })?;
        }
        None => state.sequence(lines, letter)?,
    }
    if state.done.declined {
        let Done { given, .. } = state.done;
        return Ok((place.clone(), Done { given, declined: true, data: Vec::new() }));
    }
    if letter.len > 0 && !state.transferred {
        return Err(Fault::Malformed);
    }
    state.place.notified += u32::from(state.notified);
    Ok((state.place, state.done))
}

impl State {
    fn sequence(&mut self, lines: &[Option<Line>], letter: &Letter) -> Result<(), Fault> {
        let window = self.place.inlet.entries;
        if letter.entry >= window.len {
            return Err(Fault::Bounds);
        }
        let first = usize::from(window.base + letter.entry);
        for at in 0..SEQUENCE_MAX {
            let line = lines.get(first + at).and_then(Option::as_ref).ok_or(Fault::Malformed)?;
            if at == 0 && !line.enters {
                return Err(Fault::Rights);
            }
            self.line(line, letter)?;
            if !line.continues || self.done.declined {
                return Ok(());
            }
        }
        Err(Fault::Malformed)
    }

    fn line(&mut self, line: &Line, letter: &Letter) -> Result<(), Fault> {
        let mut r = [0; 3];
        for (slot, place) in r.iter_mut().enumerate() {
            let (reads, writes) = line.uses(slot);
            if !reads && !writes {
                continue;
            }
            *place = usize::from(line.registers[slot]);
            if line.named[slot] {
                let (name, window) = (letter.registers[slot], self.place.inlet.registers);
                if u16::from(name) >= window.len {
                    return Err(Fault::Bounds);
                }
                *place = usize::from(window.base + u16::from(name));
                let may = self.place.protections[*place];
                let reads_badly = reads && !may.contains(Protection::READ);
                if reads_badly || writes && !may.contains(Protection::WRITE) {
                    return Err(Fault::Rights);
                }
            }
        }
        if line.give > 0 {
            self.done.given = self.place.registers[r[line.give - 1]];
        }
        let operand = if line.takes_operand { letter.operand } else { line.operand };
        let mask = if line.takes_mask { letter.mask } else { u64::MAX };
        for clause in &line.clauses {
            let side = |s: usize| if s == 3 { operand } else { self.place.registers[r[s]] };
            match *clause {
                Clause::Transfer { kind: 0, .. } => {}
                Clause::Transfer { kind, address } => {
                    let x = self.place.registers[r[0]];
                    let at = [operand, x, x.wrapping_add(operand), x][address as usize];
                    self.transfer(kind, (at, address == 3), mask, letter)?;
                }
                Clause::Op { code, to, from } => {
                    let brought = if letter.brings { letter.len as u64 } else { 0 };
                    let new = op(code, self.place.registers[r[to]], side(from), operand, brought);
                    self.place.registers[r[to]] = new;
                }
                Clause::Test { code, left, right, guards } => {
                    let (l, r) = (side(left), side(right));
                    let holds = [false, l == r, l != r, l < r, l <= r, l > r, l >= r, true];
                    if holds[code as usize] && guards {
                        self.done.declined = true;
                        return Ok(());
                    }
                    self.notified |= holds[code as usize];
                }
            }
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        kind: u64,
        (at, wraps): (u64, bool),
        mask: u64,
        letter: &Letter,
    ) -> Result<(), Fault> {
        let inlet = self.place.inlet;
        let right = match kind {
            1 => Rights::WRITE,
            2 => Rights::READ,
            _ => return Err(Fault::Exception),
        };
        if !inlet.rights.contains(right) {
            return Err(Fault::Rights);
        }
        if self.transferred || letter.len > 0 && letter.brings != (kind == 1) {
            return Err(Fault::Malformed);
        }
        let mut at = u128::from(at);
        if wraps {
            if !inlet.len.is_power_of_two() {
                return Err(Fault::Malformed);
            }
            at %= u128::from(inlet.len);
        }
        if at + letter.len as u128 > u128::from(inlet.len) {
            return Err(Fault::Bounds);
        }
        self.transferred = true;
        if kind == 2 {
            self.done.data = vec![0; letter.len];
        }
        for byte in 0..letter.len {
            if mask == u64::MAX || mask >> (byte / 4) & 1 == 1 {
                match kind {
                    1 => self.place.memory[at as usize + byte] = letter.data[byte],
                    _ => self.done.data[byte] = self.place.memory[at as usize + byte],
                }
            }
        }
        Ok(())
    }
}

fn op(code: u64, old: u64, source: u64, operand: u64, len: u64) -> u64 {
    match code {
        1 => source,
        2 => !source,
        3 => 0_u64.wrapping_sub(source),
        4 => old.wrapping_add(source),
        5 => old.wrapping_sub(source),
        6 => old & source,
        7 => old | source,
        8 => old ^ source,
        9 => old & !source,
        10 => old.min(source),
        11 => old.max(source),
        12 => old << (source % 64),
        13 => old >> (source % 64),
        14 => old.wrapping_add(len.div_ceil(8) * 8),
        _ => {
            if old == operand {
                source
            } else {
                old
            }
        }
    }
}
