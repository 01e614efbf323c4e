//! Vectors of what an initiator waits for.
use super::names::{OPERATIONS, STATUSES, fault, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::Fetched;
use ayre_proto::execute::Report;
use ayre_proto::fault::Fault;
use ayre_proto::notify::Classes;
use ayre_proto::pending::{Outstanding, Pending};

pub(crate) const HEADER: &str = "\
Operations under way on a mediated connection (proto/src/pending.rs, spec/60).
Numbers are hexadecimal, `-` is none. CLASSES are bits: 1 requester, 2 completer, 4 responder.

pending -> ok                                   nothing under way, nothing posted yet
submit COMMANDS OPERATION CLASSES TAG VALUE -> PLACE TICKET   or full
find NUMBER -> PLACE                            whose command a response's number names, or -
fault PLACE FAULT -> ok                         a command of that operation faulted
fetched PLACE VALUE SUCCESS -> ok               the result of a fetching atomic
done COUNT -> ok                                commands executed in all, or malformed
pop -> PLACE TICKET STATUS VALUE OPERATION CLASSES TAG       the oldest, if it has ended, or -
abandon FAULT -> PLACE TICKET STATUS VALUE OPERATION CLASSES TAG  the oldest, as its peer is gone";

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Pending::new())
}

fn parse_fault(text: &str) -> Fault {
    value(STATUSES, text).fault().expect("a fault")
}

fn show(found: Option<(usize, Outstanding)>) -> String {
    let Some((place, outstanding)) = found else { return "-".to_owned() };
    let Report { operation, classes, tag, .. } = outstanding.report;
    let (ticket, status) = (outstanding.ticket().0, name(STATUSES, &outstanding.status));
    let (value, operation) = (outstanding.value, name(OPERATIONS, &operation));
    format!("{place:x} {ticket:x} {status} {value:x} {operation} {:x} {tag:x}", classes.bits())
}

impl Machine for Pending {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        match name {
            "pending" => *self = Self::new(),
            "submit" => {
                let commands = inputs.number();
                let operation = value(OPERATIONS, inputs.text());
                let classes = Classes::from_bits_truncate(inputs.number());
                let (tag, value) = (inputs.number(), inputs.number());
                if !self.has_room() {
                    return "full".to_owned();
                }
                let report = Report { operation, classes, tag, value };
                let (place, ticket) = self.submit(report, commands);
                return format!("{place:x} {:x}", ticket.0);
            }
            "find" => {
                let found = self.find(inputs.number());
                return found.map_or_else(|| "-".to_owned(), |(place, _)| format!("{place:x}"));
            }
            "fault" => self.on_fault(inputs.number(), parse_fault(inputs.text())),
            "fetched" => {
                let (place, value) = (inputs.number(), inputs.number());
                let success = inputs.number::<u8>() == 1;
                self.on_fetched(place, Fetched { value, success });
            }
            "done" if self.on_done(inputs.number()).is_err() => {
                return fault(Fault::Malformed).to_owned();
            }
            "done" => {}
            "pop" => return show(self.pop()),
            "abandon" => return show(self.abandon(parse_fault(inputs.text()))),
            _ => panic!("{name} is no step of what is pending"),
        }
        "ok".to_owned()
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("one after the other: data, results, faults, counts that cannot be");
    for step in [
        "pending",
        "pop",
        "done 1",
        "submit 1 put 1 7 0",
        "submit 3 get 2 8 0",
        "submit 1 fetch-atomic 2 9 0",
        "submit 1 fetch-atomic 0 a 0",
        "find 1",
        "find 4",
        "find 5",
        "find 0",
        "find 7",
        "done 3",
        "pop",
        "pop",
        "done 2",
        "done 7",
        "fault 1 stale-key",
        "fault 1 bounds",
        "fetched 2 1234 1",
        "fetched 3 5678 0",
        "done 6",
        "pop",
        "pop",
        "pop",
        "pop",
        "abandon peer-dead",
    ] {
        s.run(step);
    }
    s.section("full, then the peer dies");
    s.run("pending");
    for tag in 0..=ayre_proto::limits::PENDING_MAX {
        s.run(format!("submit 2 put 1 {tag:x} 0"));
    }
    s.run("done 3");
    s.run("pop");
    while s.run("abandon peer-dead") != "-" {}
    s.section("command numbers wrap at 32 bits");
    for step in
        ["pending", "submit fffffffd put 0 0 0", "done fffffffd", "pop", "submit 4 get 0 1 0"]
    {
        s.run(step);
    }
    for step in ["submit 2 put 0 2 0", "find fffffffd", "find fffffffe", "find ffffffff", "find 0"]
    {
        s.run(step);
    }
    for step in ["find 1", "find 2", "find 3", "find 4", "done 100000001", "pop", "pop"] {
        s.run(step);
    }
    s.section("at random");
    traffic(s);
}

fn traffic(s: &mut Script) {
    let (mut posted, mut done) = (0, 0);
    s.run("pending");
    for tag in 0..120 {
        let place = s.random.below(4);
        match s.random.below(8) {
            0 | 1 => {
                let (commands, operation) =
                    (1 + s.random.below(4), s.random.pick(&OPERATIONS[..6]).0);
                let classes = s.random.below(8);
                let made = s.run(format!("submit {commands:x} {operation} {classes:x} {tag:x} 0"));
                posted += if made == "full" { 0 } else { commands };
            }
            2 => {
                let number = done + s.random.below(8);
                s.run(format!("find {number:x}"));
            }
            3 => {
                let fault = s.random.pick(&STATUSES[2..]).0;
                s.run(format!("fault {place:x} {fault}"));
            }
            4 | 5 => {
                let count = done + s.random.below(4);
                s.run(format!("done {count:x}"));
                done = if count <= posted { count } else { done };
            }
            _ => {
                s.run("pop");
            }
        }
    }
}
