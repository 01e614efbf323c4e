//! Vectors of a target: commands in, effects out.
use super::names::{ATOMICS, KINDS, STATUSES, WIDTHS, fault, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
use ayre_proto::command::{COMMAND_BYTES, Head, Request, Words};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{Carried, DepositMessage, Form, Mask};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::Fault;
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::node::target::{Delivery, Exchange, Exposed, Resources, Target, data_of};
use ayre_proto::notify::{Classes, Notification};
use ayre_proto::units::{Claim, Extent, Key, PeerId, Rights};
use ayre_proto::xlate::{Cover, Table};
use std::cell::RefCell;

pub(crate) const HEADER: &str = "\
A peer's commands as their target serves them (proto/src/node/target.rs, spec/20, 30 and 90).
Numbers are hexadecimal, `-` is none. RIGHTS and CLASSES are bits as in command.txt.

target -> ok                                the peer, 1, has posted nothing; no keys
share HOLDER RIGHTS BASE LEN -> SLOT GENERATION     a part of region 7, all of whose words are 5
revoke SLOT GENERATION -> ok
room ANSWERS LONGEST -> ok                  so many answers find room; bytes of the longest
taken COUNT -> ok                           notifications that the program has taken in all
depot STATUS GIVEN NOTIFIES -> ok           what becomes of deposit messages; or busy, or none
serve KIND LEN WORD0 WORD1 WORD2 WORD3 WORD4 WORD5 -> EXECUTED EFFECTS     or waits, or malformed
place DATA WORD0 WORD1 WORD2 WORD3 WORD4 WORD5 -> EFFECTS     its turn has not come; or -
spared -> COUNT                             notifications that were not raised, and count as taken
LEN are all bytes of the record, DATA those behind the words.
EFFECTS are in order, with `+` between them
  write OFFSET LEN                          the command's data, to memory
  store OFFSET VALUE
  read OFFSET LEN                           memory, for the answer that follows
  atomic OFFSET ATOMIC WIDTH OPERAND COMPARE
  carry-out SLOT BROUGHT                    a message, with so many bytes of data
  answer WORD0 WORD1 LEN                    with so many bytes behind its head
  notify WORD0 WORD1";

struct Bench {
    table: Table,
    target: Target,
    surroundings: Surroundings,
    room: (usize, usize),
}

struct Surroundings {
    taken: u64,
    delivery: Delivery,
    effects: RefCell<Vec<String>>,
}

struct Incoming<'a> {
    data: usize,
    room: &'a mut (usize, usize),
    answered: Vec<String>,
}

impl Exchange for Incoming<'_> {
    fn bring(&mut self, into: &mut [u8]) {
        assert_eq!(into.len(), self.data, "a message brings what it says");
    }

    fn deposit(&mut self, len: usize, write: impl FnOnce(&[u8])) {
        assert_eq!(len, self.data, "a put's data is all of its bytes");
        write(&vec![0; len]);
    }

    fn longest(&self) -> usize {
        self.room.1
    }

    fn has_room(&mut self, len: usize) -> bool {
        self.room.0 > 0 && len <= self.room.1
    }

    fn answer(&mut self, [first, second]: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        self.room.0 -= 1;
        fill(&mut vec![0; len]);
        self.answered.push(format!("answer {first:016x} {second:x} {len:x}"));
    }
}

impl Exposed for Surroundings {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.effects.borrow_mut().push(format!("write {:x} {:x}", to.offset(), data.len()));
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.effects.borrow_mut().push(format!("read {:x} {:x}", from.offset(), into.len()));
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.effects.borrow_mut().push(format!("store {:x} {value:x}", to.offset()));
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let Atomic { width, op, operand, compare } = atomic;
        let (offset, op, width) = (at.offset(), name(ATOMICS, op), name(WIDTHS, width));
        self.effects
            .borrow_mut()
            .push(format!("atomic {offset:x} {op} {width} {operand:x} {compare:x}"));
        atomic.fetched(5)
    }

    fn carry_out(&mut self, posted: &Posted, _: Extent, exchange: &mut impl Exchange) -> Delivery {
        let brought = if posted.message.brings { usize::from(posted.message.len) } else { 0 };
        exchange.bring(&mut vec![0; brought]);
        if matches!(self.delivery, Delivery::Carried(_)) {
            self.effects.borrow_mut().push(format!("carry-out {:x} {brought:x}", posted.key.slot));
        }
        self.delivery
    }

    fn give(&self, _: &mut [u8]) {}
}

impl Resources for Surroundings {
    fn notify(&mut self, notification: Notification) {
        let [first, second] = notification.encode();
        self.effects.borrow_mut().push(format!("notify {first:016x} {second:x}"));
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Bench::new())
}

impl Bench {
    fn new() -> Self {
        Self {
            table: Table::new(8),
            target: Target::new(PeerId(1)),
            surroundings: Surroundings {
                taken: 0,
                delivery: Delivery::NoInlet,
                effects: RefCell::default(),
            },
            room: (usize::MAX, 1000),
        }
    }

    fn serve(&mut self, record: &Status, words: &Words) -> Result<bool, Malformed> {
        let data = data_of(record)?;
        let mut came = Incoming { data: data as usize, room: &mut self.room, answered: Vec::new() };
        let Self { table, target, surroundings, .. } = self;
        let done = target.perform((words, data), table, surroundings, &mut came)?;
        // An answer goes before its notification, and behind everything else.
        let effects = surroundings.effects.get_mut();
        let is_note = |effect: &String| effect.starts_with("notify");
        let at = effects.iter().position(is_note).unwrap_or(effects.len());
        effects.splice(at..at, came.answered);
        Ok(done)
    }

    fn effects(&mut self) -> String {
        self.surroundings.effects.take().join(" + ")
    }
}

impl Machine for Bench {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "target" => *self = Self::new(),
            "share" => {
                let holder = PeerId(inputs.number());
                let rights = Rights::from_bits_truncate(inputs.number());
                let (base, len) = (inputs.number(), inputs.number());
                let cover = Cover { holder, rights, region: 7, base, len };
                let Key { slot, generation } = self.table.insert(cover).expect("a free slot");
                return format!("{slot:x} {generation:x}");
            }
            "revoke" => {
                let key = Key { slot: inputs.number(), generation: inputs.number() };
                self.table.revoke(key).expect("it is alive");
            }
            "room" => self.room = (inputs.number(), inputs.number()),
            "taken" => self.surroundings.taken = inputs.number(),
            "depot" => {
                self.surroundings.delivery = match inputs.text() {
                    "busy" => Delivery::Busy,
                    "none" => Delivery::NoInlet,
                    status => {
                        let (status, given) = (value(STATUSES, status), inputs.number());
                        let notifies = inputs.number::<u8>() == 1;
                        Delivery::Carried(Carried { status, given, notifies })
                    }
                };
            }
            "serve" => {
                let (kind, len) = (value(KINDS, inputs.text()), inputs.number());
                let words = std::array::from_fn(|_| inputs.number());
                let record = Status { sequence: 1, kind, len, tag: 0 };
                return match self.serve(&record, &words) {
                    Err(Malformed) => fault(Fault::Malformed).to_owned(),
                    Ok(false) => "waits".to_owned(),
                    Ok(true) => {
                        let executed = self.target.executed();
                        format!("{executed:x} {}", self.effects()).trim_end().to_owned()
                    }
                };
            }
            "place" => {
                let data = vec![0; inputs.number()];
                let words = std::array::from_fn(|_| inputs.number());
                let Self { table, target, surroundings, .. } = self;
                let is_placed = target.place((&words, &data), table, surroundings);
                return if is_placed { self.effects() } else { "-".to_owned() };
            }
            "spared" => return format!("{:x}", self.target.take_spared()),
            _ => panic!("{step} is no step of a target"),
        }
        "ok".to_owned()
    }
}

const ADD: Atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 2, compare: 0 };

fn words_of(words: Words) -> String {
    words.map(|word| format!("{word:x}")).join(" ")
}

fn command(action: Action, classes: u8, offset: u64, len: u64) -> String {
    let key = Key { slot: 0, generation: 0 };
    let classes = Classes::from_bits_truncate(classes);
    let len = match action {
        // Its length is its data's.
        Action::Put => 0,
        _ => len,
    };
    let claim = Claim { key, offset, len };
    let command = Command { action, classes, tag: 0x7a9, value: 0xfa1, claim };
    words_of(Request { command, cookie: 0x30 }.encode())
}

fn serve(s: &mut Script, data: usize, words: &str) -> String {
    s.run(format!("serve command {:x} {words}", COMMAND_BYTES + data))
}

fn message(len: u16, brings: bool, is_answered: bool) -> String {
    let (form, mask) = (Form::Probe, Mask::ALL);
    let message = DepositMessage { form, operand: 9, mask, len, brings, is_answered };
    let (key, classes) = (Key { slot: 0, generation: 0 }, Classes::REQUESTER);
    words_of(Posted { key, epoch: 1, classes, tag: 0x7a9, value: 0xfa1, message }.encode())
}

pub(crate) fn script(s: &mut Script) {
    s.section("each operation: quiet, and with all notifications");
    s.run("target");
    s.run("share 1 13 100 1000");
    s.run("revoke 0 0");
    s.run("target");
    s.run("share 1 3f 100 1000");
    let actions = [
        (Action::Put, 0x20),
        (Action::Get, 0x20),
        (Action::Immediate(0xabcd), 8),
        (Action::Notify, 0),
        (Action::Atomic(ADD), 8),
        (Action::Fetch(ADD), 8),
        (Action::Fetch(Atomic { op: AtomicOp::CompareSwap, ..ADD }), 8),
    ];
    for (action, len) in actions {
        for classes in [0, 7] {
            let data = if action == Action::Put { len as usize } else { 0 };
            serve(s, data, &command(action, classes, 0x40, len));
        }
    }
    faults(s);
    waiting(s);
    messages(s);
    early(s);
}

fn faults(s: &mut Script) {
    s.section("faults are answered, and have no other effect");
    serve(s, 8, &command(Action::Put, 7, 0xff9, 8));
    serve(s, 0, &command(Action::Get, 7, 0x1001, 0));
    serve(s, 0, &command(Action::Immediate(1), 7, 0x44, 8));
    serve(s, 4, &command(Action::Immediate(1), 7, 0x40, 8));
    serve(s, 0, "0 0 0 0 0 0");
    serve(s, 0, "8 0 0 0 0 0");
    s.run("revoke 0 0");
    serve(s, 8, &command(Action::Put, 7, 0x40, 8));
    s.run("share 2 3f 100 1000");
    serve(s, 0, "3 1 40 0 0 0");
    serve(s, 0, "300000003 0 40 0 0 0");
    s.section("no command at all");
    for kind in KINDS.iter().filter(|(_, kind)| *kind != Kind::Command) {
        s.run(format!("serve {} 38 1 0 0 0 0 0", kind.0));
    }
    s.run("serve command 2f 1 0 0 0 0 0");
    s.section("a get that no answer has room for");
    s.run("target");
    s.run("share 1 3f 100 1000");
    serve(s, 0, &command(Action::Get, 0, 0, 1000 - 16));
    s.run("room 5 1000");
    serve(s, 0, &command(Action::Get, 0, 0, 0x1000 - 16));
    serve(s, 0, &command(Action::Get, 0, 0, 0x1000 - 15));
}

fn waiting(s: &mut Script) {
    s.section("a command waits for room for an answer, also one that has none if all goes well");
    s.run("room 1 100");
    serve(s, 0, &command(Action::Get, 0, 0, 8));
    serve(s, 8, &command(Action::Put, 0, 0, 8));
    s.run("room 1 100");
    serve(s, 8, &command(Action::Put, 0, 0, 8));
    s.section("notifications up to the credit, and one more");
    s.run("target");
    s.run("share 1 3f 100 1000");
    let note = command(Action::Notify, 0, 0, 0);
    while serve(s, 0, &note) != "malformed" {}
    serve(s, 8, &command(Action::Put, 2, 0, 8));
    serve(s, 8, &command(Action::Put, 5, 0, 8));
    s.run("taken 1");
    serve(s, 8, &command(Action::Put, 2, 0, 8));
    serve(s, 0, &note);
}

fn messages(s: &mut Script) {
    s.section("deposit messages, by what becomes of them");
    s.run("target");
    s.run("share 1 3f 100 1000");
    let kinds = [(0x10, true, false), (0x10, true, true), (0x20, false, true), (0, false, false)];
    let outcomes =
        ["none", "ok 77 0", "ok 77 1", "declined 77 0", "held 0 0", "stopped 0 0", "busy"];
    for outcome in outcomes {
        s.run(format!("depot {outcome}"));
        for (len, brings, is_answered) in kinds {
            let data = if brings { usize::from(len) } else { 0 };
            serve(s, data, &message(len, brings, is_answered));
        }
        s.run("spared");
    }
    s.section("messages that are refused before, or wait for room");
    s.run("depot ok 77 0");
    serve(s, 0xf, &message(0x10, true, true));
    serve(s, 0, &message(0x20, false, false));
    s.run("room 1 2f");
    serve(s, 0, &message(0x20, false, true));
    serve(s, 0, &message(0x1f, false, true));
    serve(s, 0, &message(0, false, false));
    s.run("room 2 30");
    s.run("revoke 0 0");
    serve(s, 0, &message(0x20, false, true));
    s.run("spared");
}

fn early(s: &mut Script) {
    s.section("data in place before its turn");
    s.run("target");
    s.run("share 1 3f 100 1000");
    s.run(format!("place 20 {}", command(Action::Put, 7, 0x40, 0x20)));
    s.run(format!("place 20 {}", command(Action::Put, 7, 0xff0, 0x20)));
    s.run(format!("place 0 {}", command(Action::Get, 7, 0x40, 0x20)));
    s.run(format!("place 0 {}", command(Action::Notify, 7, 0, 0)));
    s.run(format!("place 10 {}", message(0x10, true, false)));
    serve(s, 0x20, &command(Action::Put, 7, 0x40, 0x20));
}
