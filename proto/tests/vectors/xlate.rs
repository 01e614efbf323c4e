//! Vectors of the translation table, and of windows.
use super::names::fault;
use super::script::{Fields, Machine, Script};
use ayre_proto::units::{Claim, Key, PeerId, Rights, RmaClaim};
use ayre_proto::xlate::memory_regions::{ExposeError, Exposure, MemoryRegions};
use ayre_proto::xlate::{Cover, Table};

pub(crate) const HEADER: &str = "\
The translation table: from a peer's claim to an extent of memory (proto/src/xlate.rs, spec/20);
and a set of windows (proto/src/xlate/windows.rs, spec/46), in which each is known by its number.
Numbers are hexadecimal. RIGHTS are bits: 1 read, 2 write, 4 atomic, 8 enqueue, 10 notify.

table SLOTS -> ok                                   a new, empty table
insert HOLDER RIGHTS REGION BASE LEN -> SLOT GENERATION            or full
check HOLDER SLOT GENERATION OFFSET LEN RIGHTS -> REGION OFFSET    the extent, or a fault
revoke SLOT GENERATION -> GENERATION                the slot's new generation, or a fault

windows -> ok                                       a new set, none of which is open
expose KEY BASE LEN RIGHTS NUMBER -> ok             or taken, or long
withdraw KEY -> NUMBER                              or none
touch KEY ADDRESS LEN RIGHTS -> NUMBER OFFSET       where in which window it begins, or a fault";

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Memory { table: Table::new(1), windows: MemoryRegions::default() })
}

struct Memory {
    table: Table,
    windows: MemoryRegions<u64>,
}

fn key(inputs: &mut Fields<'_>) -> Key {
    Key { slot: inputs.number(), generation: inputs.number() }
}

fn rights(inputs: &mut Fields<'_>) -> Rights {
    Rights::from_bits_truncate(inputs.number())
}

impl Machine for Memory {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "table" => {
                self.table = Table::new(inputs.number());
                "ok".to_owned()
            }
            "insert" => {
                let (holder, rights) = (PeerId(inputs.number()), rights(inputs));
                let (region, base, len) = (inputs.number(), inputs.number(), inputs.number());
                match self.table.insert(Cover { holder, rights, region, base, len }) {
                    None => "full".to_owned(),
                    Some(Key { slot, generation }) => format!("{slot:x} {generation:x}"),
                }
            }
            "check" => {
                let (holder, key) = (PeerId(inputs.number()), key(inputs));
                let claim = Claim { key, offset: inputs.number(), len: inputs.number() };
                match self.table.check(holder, &claim, rights(inputs)) {
                    Err(found) => fault(found).to_owned(),
                    Ok(extent) => {
                        assert_eq!(extent.len(), claim.len);
                        format!("{:x} {:x}", extent.region(), extent.offset())
                    }
                }
            }
            "revoke" => match self.table.revoke(key(inputs)) {
                Err(found) => fault(found).to_owned(),
                Ok(generation) => format!("{generation:x}"),
            },
            _ => self.step_of_windows(name, inputs),
        }
    }
}

impl Memory {
    fn step_of_windows(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "windows" => {
                self.windows = MemoryRegions::default();
                "ok".to_owned()
            }
            "expose" => {
                let (key, base, len) = (inputs.number(), inputs.number(), inputs.number());
                let seen = Exposure { base, len, rights: rights(inputs) };
                match self.windows.expose(key, seen, inputs.number()) {
                    Ok(()) => "ok",
                    Err(ExposeError::KeyTaken) => "taken",
                    Err(ExposeError::TooLong) => "long",
                    Err(other) => panic!("{other}"),
                }
                .to_owned()
            }
            "withdraw" => match self.windows.withdraw(inputs.number()) {
                None => "none".to_owned(),
                Some(number) => format!("{number:x}"),
            },
            "touch" => {
                let (key, address, len) = (inputs.number(), inputs.number(), inputs.number());
                let claim = RmaClaim { key, address, len, rights: rights(inputs) };
                match self.windows.translate(&claim) {
                    Err(found) => fault(found).to_owned(),
                    Ok((number, offset)) => format!("{number:x} {offset:x}"),
                }
            }
            _ => panic!("{name} is no step of a table, nor of windows"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("a key lives, dies, and its slot comes back under the next generation");
    s.run("table 1");
    let first = s.run("insert 3 7 5 1000 40");
    s.run("insert 3 7 5 1000 40");
    for rest in ["0 40 3", "3f 1 1", "40 0 1", "40 1 1", "0 41 1", "0 8 8", "0 8 10"] {
        s.run(format!("check 3 {first} {rest}"));
    }
    s.run(format!("check 4 {first} 0 8 1"));
    s.run(format!("revoke {first}"));
    s.run(format!("revoke {first}"));
    s.run(format!("check 3 {first} 0 8 1"));
    let second = s.run("insert 4 1 6 0 8");
    for key in [&first, &second] {
        s.run(format!("check 4 {key} 0 8 1"));
    }
    for key in ["0 ffffffff", "1 0", "ffff 0"] {
        s.run(format!("check 4 {key} 0 8 1"));
        s.run(format!("revoke {key}"));
    }
    s.section("ranges at the edges of 64 bits");
    s.run("table 2");
    let top = s.run(format!("insert 0 1 0 {:x} f", u64::MAX - 15));
    let all = s.run(format!("insert 0 1 1 0 {:x}", u64::MAX));
    for (key, offset, len) in [
        (&top, 15, 0),
        (&top, 14, 1),
        (&top, 15, 1),
        (&top, 1, u64::MAX),
        (&all, u64::MAX, 0),
        (&all, u64::MAX, 1),
        (&all, 1, u64::MAX),
        (&all, 0, u64::MAX),
    ] {
        s.run(format!("check 0 {key} {offset:x} {len:x} 1"));
    }
    s.section("several holders and slots, at random");
    traffic(s);
    windows(s);
}

fn windows(s: &mut Script) {
    s.section("a window is open, and is withdrawn");
    for step in ["windows", "expose 7 1000 40 3 1", "expose 7 0 1 1 2", "expose ffff 0 8 0 3"] {
        s.run(step);
    }
    for rest in ["1000 40 3", "103f 1 1", "1040 0 1", "1040 1 1", "fff 1 1", "fff 41 1", "1000 8 4"]
    {
        s.run(format!("touch 7 {rest}"));
    }
    for step in ["touch ffff 0 8 0", "touch ffff 0 0 1", "touch 8 1000 1 1", "withdraw 8"] {
        s.run(step);
    }
    for step in
        ["withdraw 7", "touch 7 1000 1 1", "withdraw 7", "expose 7 0 1 1 4", "touch 7 0 1 1"]
    {
        s.run(step);
    }
    s.section("windows at the edges of 64 bits");
    let last = u64::MAX;
    s.run("windows");
    s.run(format!("expose 0 {:x} f 1 1", last - 15));
    s.run(format!("expose 1 {:x} 10 1 2", last - 15));
    s.run(format!("expose 2 0 {last:x} 1 3"));
    s.run(format!("expose 3 1 {last:x} 1 4"));
    let top = last - 15;
    for (key, address, len) in [
        (0, last, 0),
        (0, last - 1, 1),
        (0, last, 1),
        (0, top + 1, last),
        (0, top - 1, 1),
        (2, last, 0),
        (2, last, 1),
        (2, 1, last),
        (2, 0, last),
    ] {
        s.run(format!("touch {key} {address:x} {len:x} 1"));
    }
    s.section("windows, at random");
    s.run("windows");
    for number in 0..100 {
        let (key, rights) = (s.random.below(4), s.random.below(4));
        match s.random.below(8) {
            0 | 1 => {
                let (base, len) = (s.random.below(64), s.random.below(100));
                s.run(format!("expose {key:x} {base:x} {len:x} {rights:x} {number:x}"));
            }
            2 => {
                s.run(format!("withdraw {key:x}"));
            }
            _ => {
                let (address, len) = (s.random.below(120), s.random.below(60));
                s.run(format!("touch {key:x} {address:x} {len:x} {rights:x}"));
            }
        }
    }
}

fn traffic(s: &mut Script) {
    let mut keys = vec!["0 0".to_owned()];
    s.run("table 4");
    for _ in 0..120 {
        let key = keys[s.random.below(keys.len() as u64) as usize].clone();
        let (holder, rights) = (s.random.below(2), s.random.below(32));
        match s.random.below(8) {
            0 | 1 => {
                let (base, len) = (s.random.below(1 << 20), s.random.below(100));
                let region = s.random.below(8);
                let made =
                    s.run(format!("insert {holder:x} {rights:x} {region:x} {base:x} {len:x}"));
                if made != "full" {
                    keys.push(made);
                }
            }
            2 => {
                s.run(format!("revoke {key}"));
            }
            _ => {
                let (offset, len) = (s.random.below(50), s.random.below(60));
                let needed = rights & 3;
                s.run(format!("check {holder:x} {key} {offset:x} {len:x} {needed:x}"));
            }
        }
    }
}
