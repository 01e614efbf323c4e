//! Vectors of an initiator: operations, answers and counts in; commands, data and ends out.
use super::names::{KINDS, OPERATIONS, STATUSES, fault, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::command::{RESPONSE_BYTES, Response};
use ayre_proto::deposit::message::Posted;
use ayre_proto::deposit::{DepositMessage, Form, Mask};
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::{self, Malformed};
use ayre_proto::limits::PENDING_MAX;
use ayre_proto::node::command_record::CommandRecord;
use ayre_proto::node::initiator::{
    Awaited, Begun, Bounds, Commands, Ended, Initiator, Landing, Refused, Requests, data_of,
};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId};

pub(crate) const HEADER: &str = "\
Operations on a peer, as their initiator has them (proto/src/node/initiator.rs, spec/10, 30, 60).
Numbers are hexadecimal, `-` is none. CLASSES are bits: 1 requester, 2 completer, 4 responder.

initiator REQUESTS RESPONSES MOST WORTH -> ok     nothing is under way; bytes that lanes hold,
                                            and of the longest record, and of the longest one that
                                            goes whole; REQUESTS is - where commands go into frames
room COMMANDS -> ok                         so many commands find room
taken COUNT -> ok                           the target's count of notifications taken
post TO OPERATION CLASSES OFFSET ROWLEN ROWS LSTRIDE RSTRIDE -> TICKET COMMANDS
                                            or outstanding, no-room, too-long
push -> COMMANDS                            those of the last operation that had no room, or -
message TO LEN BRINGS ASKS -> TICKET COMMANDS
batch COUNT OPERATION CLASSES LEN -> ok     whether so many would find room together
replies STATUS NOTIFIES -> ok               how replies end from now on; or busy
answer KIND LEN WORD0 WORD1 -> LANDS        or waits, or malformed
done COUNT -> ENDED                         commands executed in all, or malformed
abandon FAULT -> ENDED                      the peer is gone
TO is who waits for what comes back: call, memory, reply, or -. The key is 2 of generation 1, tag 3,
value 4; atomics add 1; COMMANDS are their words, offset and length of their data, `+` between them.
LANDS is call OFFSET LEN, memory OFFSET LEN, reply GIVEN LEN, or -.
ENDED is TICKET STATUS VALUE NOTE, `+` between them, or -; NOTE is 1 where a reply notifies.";

struct Bench {
    initiator: Initiator<(), ()>,
    way: Way,
    unpushed: Option<Commands>,
    call: Option<Awaited>,
    replies: Option<(Status, Option<Notification>)>,
}

struct Way {
    bounds: Bounds,
    room: u64,
    taken: u64,
    pushed: Vec<String>,
}

impl Requests for Way {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn has_room(&mut self, _: bool, _: usize) -> bool {
        self.room > 0
    }

    fn push(&mut self, command: &impl CommandRecord, (at, len): (u64, usize)) {
        self.room -= 1;
        let words = command.words().map(|word| format!("{word:x}")).join(" ");
        self.pushed.push(format!("{words} {at:x} {len:x}"));
    }

    fn reach(&self) -> u64 {
        40
    }

    fn has_room_for_batch(&mut self, units: u64) -> bool {
        units <= self.room
    }
}

struct Lands {
    seen: String,
    replies: Option<(Status, Option<Notification>)>,
}

impl Landing<(), ()> for Lands {
    fn to_call(&mut self, offset: u64, len: usize) {
        self.seen = format!("call {offset:x} {len:x}");
    }

    fn to_memory(&mut self, (): &(), offset: u64, len: usize) {
        self.seen = format!("memory {offset:x} {len:x}");
    }

    fn reply(
        &mut self,
        (): &mut (),
        given: u64,
        len: usize,
    ) -> Option<(Status, Option<Notification>)> {
        self.seen = format!("reply {given:x} {len:x}");
        self.replies
    }
}

pub(crate) fn machine() -> Box<dyn Machine> {
    let bounds = Bounds { requests: None, responses: 1000, most: 500, worth: 500 };
    Box::new(Bench::new(bounds))
}

fn refused(refused: Refused) -> String {
    let name = match refused {
        Refused::TooManyOutstanding => "outstanding",
        Refused::NoRoom => "no-room",
        Refused::TooLong => "too-long",
    };
    name.to_owned()
}

fn list(parts: &[String]) -> String {
    if parts.is_empty() { "-".to_owned() } else { parts.join(" + ") }
}

impl Bench {
    fn new(bounds: Bounds) -> Self {
        let way = Way { bounds, room: u64::MAX, taken: 0, pushed: Vec::new() };
        let replies = Some((Status::Ok, None));
        Self { initiator: Initiator::new(), way, unpushed: None, call: None, replies }
    }

    fn command(inputs: &mut Fields<'_>) -> (Command, Shape) {
        let operation = value(OPERATIONS, inputs.text());
        let classes = Classes::from_bits_truncate(inputs.number());
        let offset = inputs.number();
        let (row_len, rows) = (inputs.number(), inputs.number());
        let (local_stride, remote_stride) = (inputs.number(), inputs.number());
        let shape = Shape { row_len, rows, local_stride, remote_stride };
        let len = shape.remote_span().expect("a short transfer");
        (command(operation, classes, offset, len), shape)
    }

    fn post(&mut self, inputs: &mut Fields<'_>) -> String {
        let to = inputs.text();
        let (command, shape) = Self::command(inputs);
        let Self { initiator, way, .. } = self;
        let limit = match initiator.check_room(&command, &shape, false, way) {
            Ok(limit) => limit,
            Err(why) => return refused(why),
        };
        let memory = (to == "memory").then_some(());
        let Begun { place, ticket, mut commands } =
            initiator.begin(&command, &shape, limit, memory);
        let is_done = commands.push(way);
        self.unpushed = (!is_done).then_some(commands);
        if to == "call" {
            self.call = Some(Awaited::new((place, ticket), shape));
        }
        format!("{:x} {}", ticket.0, list(&std::mem::take(&mut self.way.pushed)))
    }

    fn message(&mut self, inputs: &mut Fields<'_>) -> String {
        let (to, len) = (inputs.text(), inputs.number::<u16>());
        let [brings, is_answered] = [0, 1].map(|_| inputs.number::<u8>() == 1);
        let (form, mask) = (Form::Probe, Mask::ALL);
        let message = DepositMessage { form, operand: 0, mask, len, brings, is_answered };
        let (key, classes) = (Key { slot: 2, generation: 1 }, Classes::REQUESTER);
        let posted = Posted { key, epoch: 0, classes, tag: 3, value: 4, message };
        let (data, wanted) = if brings { (len, 0) } else { (0, len) };
        let Self { initiator, way, .. } = self;
        if let Err(why) = initiator.check_message_room(&posted, usize::from(data), way) {
            return refused(why);
        }
        let reply = (to == "reply").then_some(((), usize::from(wanted)));
        let named = initiator.begin_message(&posted, usize::from(data), reply, way);
        if to == "call" {
            self.call = Some(Awaited::new(named, Shape::contiguous(u64::from(wanted))));
        }
        format!("{:x} {}", named.1.0, list(&std::mem::take(&mut self.way.pushed)))
    }

    fn answer(&mut self, inputs: &mut Fields<'_>) -> Result<String, Malformed> {
        let (kind, len) = (value(KINDS, inputs.text()), inputs.number());
        let response = Response::parse(&[inputs.number(), inputs.number()]);
        let len = data_of(&lane::Status { sequence: 1, kind, len, tag: 0 })?;
        let mut lands = Lands { seen: "-".to_owned(), replies: self.replies };
        let taken = self.initiator.take(&response, len, self.call.as_ref(), &mut lands)?;
        Ok(if taken { lands.seen } else { "waits".to_owned() })
    }

    fn ended(&mut self, next: impl Fn(&mut Initiator<(), ()>) -> Option<Ended>) -> String {
        let mut all = Vec::new();
        while let Some(ended) = next(&mut self.initiator) {
            if let Some(call) = &mut self.call {
                call.hear(&ended);
            }
            let Ended { ticket, status, value, note, .. } = ended;
            let note = u8::from(note.is_some());
            all.push(format!("{:x} {} {value:x} {note}", ticket.0, name(STATUSES, &status)));
        }
        self.call.take_if(|call| call.outcome().is_some());
        list(&all)
    }
}

fn command(operation: Operation, classes: Classes, offset: u64, len: u64) -> Command {
    let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let action = match operation {
        Operation::Put => Action::Put,
        Operation::Get => Action::Get,
        Operation::ImmediatePut => Action::Immediate(9),
        Operation::NotificationPut => Action::Notify,
        Operation::Atomic => Action::Atomic(add),
        Operation::FetchAtomic => Action::Fetch(add),
        Operation::Deposit | Operation::Reply => panic!("no command says so"),
    };
    let claim = Claim { key: Key { slot: 2, generation: 1 }, offset, len };
    Command { action, classes, tag: 3, value: 4, claim }
}

impl Machine for Bench {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "initiator" => {
                let (requests, responses) = (inputs.maybe(), inputs.number());
                let (most, worth) = (inputs.number(), inputs.number());
                *self = Self::new(Bounds { requests, responses, most, worth });
            }
            "room" => self.way.room = inputs.number(),
            "taken" => self.way.taken = inputs.number(),
            "post" => return self.post(inputs),
            "push" => {
                let Some(commands) = &mut self.unpushed else { return "-".to_owned() };
                if commands.push(&mut self.way) {
                    self.unpushed = None;
                }
                return list(&std::mem::take(&mut self.way.pushed));
            }
            "message" => return self.message(inputs),
            "batch" => {
                let (count, operation) = (inputs.number(), value(OPERATIONS, inputs.text()));
                let classes = Classes::from_bits_truncate(inputs.number());
                let one = command(operation, classes, 0, inputs.number());
                let all = std::iter::repeat_n(one, count);
                if let Err(why) = self.initiator.check_batch(all, &mut self.way) {
                    return refused(why);
                }
            }
            "replies" => {
                self.replies = Some(inputs.text()).filter(|text| *text != "busy").map(|status| {
                    let status = value(STATUSES, status);
                    let (source, class) = (PeerId(1), Classes::COMPLETER);
                    let (operation, tag, value) = (Operation::Reply, 0, 0);
                    let note = Notification { source, class, status, operation, tag, value };
                    (status, (inputs.number::<u8>() == 1).then_some(note))
                });
            }
            "answer" => {
                let taken = self.answer(inputs);
                return taken.unwrap_or_else(|Malformed| fault(Fault::Malformed).to_owned());
            }
            "done" => {
                if self.initiator.on_done(inputs.number()).is_err() {
                    return fault(Fault::Malformed).to_owned();
                }
                return self.ended(Initiator::pop);
            }
            "abandon" => {
                let why = value(STATUSES, inputs.text()).fault().expect("a fault");
                return self.ended(|initiator| initiator.abandon(why));
            }
            _ => panic!("{step} is no step of an initiator"),
        }
        "ok".to_owned()
    }
}

/// An answer with `data` bytes of data.
fn answer(s: &mut Script, number: u32, status: &str, back: u64, data: usize) -> String {
    let response = Response { number, status: value(STATUSES, status), value: back };
    let [first, second] = response.encode();
    s.run(format!("answer response {:x} {first:x} {second:x}", RESPONSE_BYTES + data))
}

pub(crate) fn script(s: &mut Script) {
    s.section("each operation, and how it ends");
    s.run("initiator a80 a80 fff fff");
    for step in [
        "post - put 7 40 20 1 0 0",
        "post - immediate-put 0 40 8 1 0 0",
        "post - notification-put 0 0 0 1 0 0",
        "post - atomic 4 40 8 1 0 0",
        "done 3",
        "post call fetch-atomic 0 40 8 1 0 0",
        "post call get 5 40 20 1 0 0",
    ] {
        s.run(step);
    }
    answer(s, 5, "ok", 0x1234, 0);
    answer(s, 6, "ok", 0, 0x20);
    s.run("done 6");
    s.run("post call fetch-atomic 0 40 8 1 0 0");
    answer(s, 7, "declined", 0x1234, 0);
    s.run("post memory get 0 40 20 1 0 0");
    answer(s, 8, "ok", 8, 0x18);
    s.run("post - put 2 40 0 1 0 0");
    answer(s, 9, "bounds", 0, 0);
    s.run("done 9");
    cutting(s);
    room(s);
    messages(s);
    malformed(s);
}

fn cutting(s: &mut Script) {
    s.section("cut to half a lane; what has no room is pushed later");
    s.run("initiator 540 540 fff fff");
    s.run("room 2");
    for step in ["post - put 7 0 600 1 0 0", "push", "room 1", "push", "push", "done 3"] {
        s.run(step);
    }
    s.run("room 20");
    s.run("post memory get 4 10 300 2 400 300");
    s.run("post - put 0 10 3 4 5 7");
    s.section("cut so that frames go whole by the paths of a link");
    s.run("initiator - 1000 800 200");
    s.run("post - put 0 0 500 1 0 0");
    s.run("post memory get 0 0 500 1 0 0");
    s.section("more commands than answers can tell apart");
    for step in ["room 0", "post - put 0 0 e800000000 1 0 0", "post - put 0 0 e800000001 1 0 0"] {
        s.run(step);
    }
}

fn room(s: &mut Script) {
    s.section("credit for notifications, given back by faults and by the target's count");
    s.run("initiator a80 a80 fff fff");
    for number in 1..=65 {
        s.run("post - notification-put 0 0 0 1 0 0");
        s.run(format!("done {number:x}"));
    }
    for step in ["post - put 5 0 8 1 0 0", "message - 0 0 0", "taken 1"] {
        s.run(step);
    }
    s.run("post - put 2 0 8 1 0 0");
    answer(s, 66, "stale-key", 0, 0);
    s.run("done 42");
    for step in ["post - put 2 0 8 1 0 0", "post - put 2 0 8 1 0 0", "taken ffffffffffffffff"] {
        s.run(step);
    }
    s.run("post - put 2 0 8 1 0 0");
    s.section("as many as the table holds, then the peer dies");
    s.run("initiator a80 a80 fff fff");
    for _ in 0..=PENDING_MAX {
        s.run("post - immediate-put 1 0 8 1 0 0");
    }
    s.run("batch 1 put 0 8");
    s.run("done 1f");
    s.run("batch 1 put 0 8");
    s.run("abandon peer-dead");
    s.section("batches: in lines, then in frames");
    for requests in ["a80", "-"] {
        s.run(format!("initiator {requests} a80 fff 400"));
        for step in ["batch 20 put 0 8", "batch 21 put 0 8", "batch 8 put 2 400"] {
            s.run(step);
        }
        for step in ["room 10", "batch 10 put 0 8", "batch 11 put 0 8", "batch 1 put 0 4000"] {
            s.run(step);
        }
    }
}

fn messages(s: &mut Script) {
    s.section("deposit messages, and replies to them");
    s.run("initiator a80 a80 fff fff");
    for step in ["message - 20 1 0", "message call 10 0 1", "message reply 10 0 1", "done 0"] {
        s.run(step);
    }
    answer(s, 2, "ok", 0x77, 0x10);
    s.run("replies busy");
    answer(s, 3, "ok", 0x78, 0x10);
    s.run("replies ok 1");
    answer(s, 3, "ok", 0x78, 0x10);
    s.run("done 3");
    for outcome in ["ok 0", "declined 0", "held 1", "exception 0"] {
        s.run(format!("replies {outcome}"));
        s.run("message reply 4 0 1");
        let number = 4 + ["ok 0", "declined 0", "held 1", "exception 0"]
            .iter()
            .position(|known| *known == outcome)
            .expect("it is one of them") as u32;
        answer(s, number, "ok", 1, 4);
        s.run(format!("done {number:x}"));
    }
    for (number, status) in [(8, "declined"), (9, "held"), (10, "stopped")] {
        s.run("message reply 4 0 1");
        answer(s, number, status, 1, 0);
        s.run(format!("done {number:x}"));
    }
    s.run("message reply 4 0 1");
    s.run("done b");
}

fn malformed(s: &mut Script) {
    s.section("what no correct target says");
    s.run("initiator a80 a80 fff fff");
    for step in [
        "post - put 0 0 8 1 0 0",
        "post memory get 0 0 8 2 20 8",
        "message - 8 1 0",
        "message reply 8 0 1",
    ] {
        s.run(step);
    }
    let wrong = [
        (0, 0, 0),
        (1, 0, 0),
        (6, 0, 0),
        (2, 1, 8),
        (2, 8, 8),
        (2, 0x20, 9),
        (2, 0x28, 1),
        (2, 8, 0),
        (4, 0, 1),
        (5, 0, 7),
        (5, 0, 9),
    ];
    for (number, back, data) in wrong {
        answer(s, number, "ok", back, data);
    }
    for step in ["answer response f 2 0", "answer command 18 2 0", "done 6", "done 3", "done 2"] {
        s.run(step);
    }
}
