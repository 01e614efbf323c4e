//! Vectors of the translation table.
use super::names::fault;
use super::script::{Fields, Machine, Script};
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::{Cover, Table};

pub(crate) const HEADER: &str = "\
The translation table: from a peer's claim to an extent of memory (proto/src/xlate.rs, spec/20).
Numbers are hexadecimal. RIGHTS are bits: 1 read, 2 write, 4 atomic, 8 enqueue, 10 notify.

table SLOTS -> ok                                   a new, empty table
insert HOLDER RIGHTS REGION BASE LEN -> SLOT GENERATION            or full
check HOLDER SLOT GENERATION OFFSET LEN RIGHTS -> REGION OFFSET    the extent, or a fault
revoke SLOT GENERATION -> GENERATION                the slot's new generation, or a fault";

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Table::new(1))
}

fn key(inputs: &mut Fields<'_>) -> Key {
    Key { slot: inputs.number(), generation: inputs.number() }
}

fn rights(inputs: &mut Fields<'_>) -> Rights {
    Rights::from_bits_truncate(inputs.number())
}

impl Machine for Table {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "table" => {
                *self = Self::new(inputs.number());
                "ok".to_owned()
            }
            "insert" => {
                let (holder, rights) = (PeerId(inputs.number()), rights(inputs));
                let (region, base, len) = (inputs.number(), inputs.number(), inputs.number());
                match self.insert(Cover { holder, rights, region, base, len }) {
                    None => "full".to_owned(),
                    Some(Key { slot, generation }) => format!("{slot:x} {generation:x}"),
                }
            }
            "check" => {
                let (holder, key) = (PeerId(inputs.number()), key(inputs));
                let claim = Claim { key, offset: inputs.number(), len: inputs.number() };
                match self.check(holder, &claim, rights(inputs)) {
                    Err(found) => fault(found).to_owned(),
                    Ok(extent) => {
                        assert_eq!(extent.len(), claim.len);
                        format!("{:x} {:x}", extent.region(), extent.offset())
                    }
                }
            }
            "revoke" => match self.revoke(key(inputs)) {
                Err(found) => fault(found).to_owned(),
                Ok(generation) => format!("{generation:x}"),
            },
            _ => panic!("{name} is no step of a table"),
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
