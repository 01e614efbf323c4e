//! Vectors of an endpoint: what is posted and what comes, and what it does for that.
mod ways;

use super::names::{STATUSES, name, value};
use super::script::{Fields, Machine, Script};
use ayre_proto::combine::{Combine, Number};
use ayre_proto::endpoint::{
    Completion, CompletionKind, Head, OutgoingMessage, PostedReceive, Protocol, RemoteAddress,
    RemoteId, RmaUpdate, RmaWrite, Sent, Taken,
};
use ayre_proto::envelope::{Envelope, Record};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Malformed;
use ayre_proto::rma::{Calculation, RMA_WORDS, RmaRecord};
use std::cell::RefCell;
use ways::{Around, NotPosted};

pub(crate) const HEADER: &str = "\
What an endpoint decides (proto/src/endpoint, spec/45 and 46), without the bytes of messages.
Numbers are hexadecimal, `-` is none. TAG and words of a record are those of envelope.txt and
touch.txt. REMOTE is a remote's place.

endpoint BUDGET -> ok                       it may keep so many bytes; it has remotes 0 to 2
room RECORDS RING -> ok                     so many records find room; bytes of a longest piece
come METHOD -> ok                           messages that may be read where they lie: read, ring,
                                            or refused, when they are to be read
claims STATUS -> ok                         what is said of claims to windows
send REMOTE TAG DATA LEN DELIVERED ADDRESS -> SENT EFFECTS     gone, under-way, full or a fault
receive REMOTE TAG IGNORE LEN LEAST CONTEXT -> EFFECTS         - as tag: plain; LEAST: of many
cancel LABEL -> EFFECTS
write REMOTE KEY ADDRESS LEN DATA INJECT CONTEXT -> SENT EFFECTS
read REMOTE KEY ADDRESS LEN CONTEXT -> SENT EFFECTS
add REMOTE KEY ADDRESS TELLS CONTEXT -> SENT EFFECTS           to a number of 64 bits
record REMOTE TAG LEN WORD0 WORD1 WORD2 WORD3 WORD4 WORD5 -> EFFECTS     or stays, or malformed
push -> EFFECTS                             what has waited goes, and what has ended is told
end REMOTE STATUS -> EFFECTS                nothing comes from there any more
EFFECTS are in order, with `+` between them; - where there are none
  out REMOTE TAG WORDS LEN                  a record, with so many bytes behind its head
  to-ring REMOTE LEN                        a piece is written; places are counted from 0
  from-ring REMOTE AT LEN                   a piece is taken
  fetch REMOTE ADDRESS LEN                  memory of the remote is read
  window REMOTE LEN, update REMOTE LEN      bytes of a window are written or read; numbers updated
  hold REMOTE, let REMOTE                   nothing may be posted there; it may again
  shut-out REMOTE, on-shut-out REMOTE       it is refused; it has refused us
  told CONTEXT WHAT LEN STATUS              an end; of a receive, bytes that are in place";

struct Bench {
    protocol: Protocol<Vec<u8>>,
    around: Around,
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Bench::new(1 << 30))
}

fn id(place: usize) -> RemoteId {
    RemoteId::new(1, place)
}

fn told(end: Completion) -> String {
    let (what, len) = match end.what {
        CompletionKind::Sent => ("sent", 0),
        CompletionKind::Received(received) => ("received", received.placed),
        CompletionKind::Cancelled => ("cancelled", 0),
        CompletionKind::Written => ("written", 0),
        CompletionKind::Read => ("read", 0),
        CompletionKind::Updated => ("updated", 0),
        CompletionKind::RmaEvent(touched) => ("touched", touched.len),
    };
    let status = match end.result {
        Ok(()) => "ok",
        Err(fault) => name(STATUSES, &Status::Fault(fault)),
    };
    format!("told {:x} {what} {len:x} {status}", end.context)
}

impl Bench {
    fn new(budget: u64) -> Self {
        let mut protocol = Protocol::new(budget, 1);
        (0..3).for_each(|place| protocol.connect(id(place)));
        let around = Around {
            room: usize::MAX,
            ring: Some(1 << 20),
            written: 0,
            address: 0,
            is_read: false,
            is_refused: false,
            claims: Ok(()),
            effects: RefCell::default(),
        };
        Self { protocol, around }
    }

    fn effects(&mut self) -> String {
        let effects = self.around.effects.take();
        if effects.is_empty() { "-".to_owned() } else { effects.join(" + ") }
    }

    fn posted(&mut self, sent: Result<Sent, NotPosted>) -> String {
        let sent = match sent {
            Ok(Sent::Completed) => "gone",
            Ok(Sent::Pending) => "under-way",
            Err(NotPosted::Full) => "full",
            Err(NotPosted::Fault(fault)) => name(STATUSES, &Status::Fault(fault)),
        };
        format!("{sent} {}", self.effects())
    }

    fn post(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let Self { protocol, around } = self;
        let remote: usize = inputs.number();
        let mut around = around;
        if step == "send" {
            let (tag, data, len) = (inputs.maybe(), inputs.maybe(), inputs.number());
            let delivered = inputs.number::<u8>() == 1;
            around.address = inputs.number();
            let (bytes, context) = (vec![0; len], 0x5e);
            let message = OutgoingMessage { tag, data, bytes, context, delivered };
            let sent = protocol.send(&mut around, (id(remote), remote), &message);
            return self.posted(sent);
        }
        let spot =
            RemoteAddress { remote: id(remote), key: inputs.number(), address: inputs.number() };
        let to = (remote, spot);
        let sent = match step {
            "write" => {
                let (len, data) = (inputs.number(), inputs.maybe());
                let (inject, context) = (inputs.number::<u8>() == 1, inputs.number());
                let bytes = vec![0; len];
                protocol.write(&mut around, to, &RmaWrite { bytes, data, context, inject })
            }
            "read" => {
                let (into, context) = (vec![0; inputs.number()], inputs.number());
                protocol.read(&mut around, to, into, context).map(|()| Sent::Pending)
            }
            _ => {
                let (tells, context) = (inputs.number::<u8>() == 1, inputs.number());
                let update = RmaUpdate {
                    op: Combine::Sum,
                    number: Number::U64,
                    operand: vec![1; 8],
                    compare: Vec::new(),
                    result: tells.then(|| vec![0; 8]),
                    data: None,
                    context,
                };
                protocol.update(&mut around, to, &update).map(|()| Sent::Pending)
            }
        };
        self.posted(sent)
    }

    fn receive(&mut self, inputs: &mut Fields<'_>) -> String {
        let (source, tag) = (inputs.maybe().map(id), inputs.maybe());
        let (ignore, len): (u64, usize) = (inputs.number(), inputs.number());
        let (many, context) = (inputs.maybe(), inputs.number());
        let (tag, into) = (tag.map(|tag| (tag, ignore)), vec![0; len]);
        let receive = PostedReceive { source, tag, into, context, many };
        if let Err(fault) = self.protocol.receive(receive, || &mut self.around) {
            self.around.note(name(STATUSES, &Status::Fault(fault)).to_owned());
        }
        self.effects()
    }

    fn record(&mut self, inputs: &mut Fields<'_>) -> String {
        let remote = inputs.number();
        let (tag, len) = (inputs.number(), inputs.number());
        let head = Head { tag, words: std::array::from_fn(|_| inputs.number()), len };
        let mut ends = Vec::new();
        let Self { protocol, around } = self;
        let from = (remote, id(remote));
        match protocol.on_record(&mut &mut *around, from, &head, &mut |end| ends.push(told(end))) {
            Ok(Taken::Yes) => {
                self.around.effects.borrow_mut().extend(ends);
                self.effects()
            }
            Ok(Taken::NotYet) => "stays".to_owned(),
            Err(Malformed) => "malformed".to_owned(),
        }
    }

    fn push(&mut self) -> String {
        let mut ends = Vec::new();
        let Self { protocol, around } = self;
        let mut tell = |end| ends.push(told(end));
        protocol.push_waiting(&mut &mut *around, &mut tell);
        protocol.tell_completions(&mut tell);
        self.around.effects.borrow_mut().extend(ends);
        self.effects()
    }
}

impl Machine for Bench {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "endpoint" => *self = Self::new(inputs.number()),
            "room" => (self.around.room, self.around.ring) = (inputs.number(), inputs.maybe()),
            "come" => {
                let method = inputs.text();
                self.around.is_read = method != "ring";
                self.around.is_refused = method == "refused";
            }
            "claims" => {
                let status = value(STATUSES, inputs.text());
                self.around.claims = match status {
                    Status::Fault(fault) => Err(fault),
                    _ => Ok(()),
                };
            }
            "send" | "write" | "read" | "add" => return self.post(step, inputs),
            "receive" => return self.receive(inputs),
            "record" => return self.record(inputs),
            "push" => return self.push(),
            "cancel" => {
                let end = self.protocol.cancel(inputs.number());
                end.into_iter().for_each(|end| self.around.note(told(end)));
                return self.effects();
            }
            "end" => {
                let (remote, status) = (id(inputs.number()), inputs.text());
                let Status::Fault(why) = value(STATUSES, status) else {
                    panic!("a remote ends with a fault");
                };
                self.protocol.end(&mut &mut self.around, remote, why);
                return self.push();
            }
            _ => panic!("{step} is no step of an endpoint"),
        }
        "ok".to_owned()
    }
}

/// A remote sends a record, with `bytes` bytes behind it.
fn say(s: &mut Script, remote: usize, record: Record, bytes: usize) -> String {
    let (tag, head, words) = record.encode();
    let mut all = [0; RMA_WORDS];
    all[..head.len()].copy_from_slice(&head);
    run_record(s, remote, tag, 8 * words + bytes, all)
}

fn touch(s: &mut Script, touch: RmaRecord, bytes: usize) -> String {
    let (tag, head, words) = touch.encode();
    run_record(s, 1, tag, 8 * words + bytes, head)
}

fn run_record(
    s: &mut Script,
    remote: usize,
    tag: u32,
    len: usize,
    words: [u64; RMA_WORDS],
) -> String {
    let words = words.map(|word| format!("{word:x}")).join(" ");
    s.run(format!("record {remote} {tag:x} {len:x} {words}"))
}

const TAGGED: Envelope = Envelope { tag: Some(5), data: None };
const PLAIN: Envelope = Envelope { tag: None, data: Some(9) };

pub(crate) fn script(s: &mut Script) {
    sent(s);
    received(s);
    asked(s);
    windows(s);
    touched(s);
    kept(s);
    refused(s);
}

fn sent(s: &mut Script) {
    s.section("messages by their length: short, by the ring, and too long to go unasked");
    s.run("endpoint 40000000");
    for len in ["0", "200", "201", "4000", "4001", "10000", "10001"] {
        s.run(format!("send 1 5 - {len} 0 0"));
        s.run(format!("send 1 - 9 {len} 1 7000"));
    }
    say(s, 1, Record::Fin { id: 1 }, 0);
    s.section("a full lane, and a remote without a ring");
    s.run("room 0 100000");
    s.run("send 1 5 - 8 0 0");
    s.run("send 1 5 - 800 0 0");
    s.run("room 100 -");
    s.run("send 1 5 - 800 0 0");
}

fn received(s: &mut Script) {
    s.section("messages that come before and behind their receives, tagged and plain");
    s.run("endpoint 40000000");
    say(s, 1, Record::Short { envelope: TAGGED, answer: None }, 0x20);
    say(s, 2, Record::Short { envelope: PLAIN, answer: Some(4) }, 8);
    s.run("receive - 5 0 100 - a1");
    s.run("receive - - 0 100 - a2");
    s.run("push");
    s.run("receive 2 5 0 10 - a3");
    s.run("receive - 4 1 100 - a4");
    say(s, 1, Record::Short { envelope: TAGGED, answer: None }, 0x20);
    say(s, 2, Record::Short { envelope: TAGGED, answer: Some(4) }, 0x20);
    s.section("one that takes many, and one that is taken back");
    s.run("receive - - 0 40 10 a5");
    for len in [0x18, 0x20, 0x20] {
        say(s, 1, Record::Short { envelope: PLAIN, answer: None }, len);
    }
    s.run("receive - - 0 40 - a6");
    s.run("receive 1 7 0 40 - a7");
    s.run("cancel a7");
    s.run("cancel a7");
    s.run("push");
    s.section("messages in the ring");
    s.run("receive - 5 0 800 - a8");
    say(s, 1, Record::Long { envelope: TAGGED, answer: None, len: 0x1000, place: 0 }, 0);
    say(s, 1, Record::Long { envelope: TAGGED, answer: None, len: 0x1000, place: 1 }, 0);
    say(s, 1, Record::Long { envelope: TAGGED, answer: Some(1), len: 0x1000, place: 0x1000 }, 0);
    s.run("receive - 5 0 1000 - a9");
    s.run("push");
}

fn ask(s: &mut Script, id: u64, len: u64, address: u64) -> String {
    say(s, 1, Record::Rts { envelope: TAGGED, id, answered: false, len, address }, 0)
}

fn asked(s: &mut Script) {
    s.section("a message that asks: it comes by the ring in parts");
    s.run("endpoint 40000000");
    s.run("receive - 5 0 20000 - b1");
    ask(s, 3, 0x18000, 0);
    for (len, place) in [(0x8000, 0), (0x10000, 0x8000), (0x10001, 0x8000)] {
        say(s, 1, Record::Fragment { to: 0, len, place }, 0);
    }
    s.section("or is read where it lies");
    s.run("come read");
    ask(s, 4, 0x180000, 0x7000);
    s.run("receive - 5 0 200000 - b2");
    s.run("push");
    s.run("push");
    s.section("or is to be read, and cannot be");
    s.run("come refused");
    ask(s, 5, 0x20000, 0x7000);
    s.run("receive - 5 0 10000 - b3");
    s.run("push");
    say(s, 1, Record::FragmentHere { to: 0 }, 0x200);
    s.section("its sender's death");
    s.run("end 1 peer-dead");
    s.section("the other side: a message that is wanted goes in eight parts, and one in part");
    s.run("endpoint 40000000");
    s.run("send 1 5 - 20000 0 0");
    s.run("send 1 5 - 20000 1 0");
    say(s, 1, Record::Cts { id: 0, to: 7, len: 0x20000 }, 0);
    say(s, 1, Record::Cts { id: 1, to: 8, len: 0x100 }, 0);
    s.run("room 3 100000");
    s.run("push");
    s.run("room 100 100000");
    s.run("push");
    say(s, 1, Record::Fin { id: 1 }, 0);
    s.section("nothing of it is wanted");
    s.run("send 1 5 - 20000 0 0");
    say(s, 1, Record::Cts { id: 1, to: u64::MAX, len: 0 }, 0);
}

fn windows(s: &mut Script) {
    s.section("writes, reads and updates of a remote's window");
    s.run("endpoint 40000000");
    s.run("write 1 7 1000 40 - 0 c1");
    s.run("write 1 7 1000 18000 9 0 c2");
    s.run("read 1 7 1000 40 c3");
    s.run("read 1 7 1000 8000 c4");
    s.run("add 1 7 1000 0 c5");
    s.run("add 1 7 1000 1 c6");
    let name = |key: u64| key | 1 << 63;
    for key in [0, 1] {
        say(s, 1, Record::Fin { id: name(key) }, 0);
    }
    say(s, 1, Record::FragmentHere { to: name(2) }, 0x40);
    say(s, 1, Record::Fragment { to: name(3), len: 0x8000, place: 0 }, 0);
    say(s, 1, Record::Refused { id: name(4), fault: Fault::Rights }, 0);
    say(s, 1, Record::FragmentHere { to: name(5) }, 8);
    s.section("a long write waits for room, and nothing overtakes it");
    s.run("room 1 100000");
    s.run("write 1 7 1000 18000 - 0 c7");
    s.run("room 100 100000");
    s.run("push");
    s.run("end 1 peer-dead");
}

fn touched(s: &mut Script) {
    let (key, address) = (7, 0x1000);
    s.section("a remote writes, reads and updates");
    s.run("endpoint 40000000");
    let what = Calculation { op: Combine::Sum, number: Number::U64, count: 1, fetches: true };
    for status in ["ok", "bounds"] {
        s.run(format!("claims {status}"));
        touch(s, RmaRecord::WriteHere { key, address, id: 1, before: 0, data: Some(9) }, 0x40);
        let (len, count) = (0x8040, 0x8000);
        touch(s, RmaRecord::WritePart { key, address, len, before: 0, count, place: 0 }, 0);
        touch(s, RmaRecord::WriteHere { key, address, id: 2, before: count, data: None }, 0x40);
        touch(s, RmaRecord::Read { key, address, id: 3, len: 0x40 }, 0);
        touch(s, RmaRecord::Read { key, address, id: 4, len: 0x9000 }, 0);
        s.run("push");
        touch(s, RmaRecord::Update { key, address, id: 5, what, data: None }, 8);
    }
}

fn kept(s: &mut Script) {
    s.section("a remote of which much is kept keeps what it can; one that sends more is refused");
    s.run("endpoint 4000");
    for _ in 0..16 {
        let done = say(s, 1, Record::Short { envelope: PLAIN, answer: None }, 0x100);
        if done.contains("shut-out") {
            break;
        }
    }
    s.run("receive - - 0 100 - d1");
    s.run("push");
    s.section("this one is refused");
    say(s, 2, Record::Refused { id: u64::MAX, fault: Fault::NoMemory }, 0);
}

fn refused(s: &mut Script) {
    s.section("what no correct remote says");
    s.run("endpoint 40000000");
    s.run("send 1 5 - 20000 0 0");
    say(s, 2, Record::Cts { id: 0, to: 7, len: 1 }, 0);
    say(s, 1, Record::Cts { id: 0, to: 7, len: 0x20001 }, 0);
    say(s, 1, Record::Cts { id: 1, to: 7, len: 1 }, 0);
    say(s, 1, Record::Fin { id: 0 }, 0);
    say(s, 1, Record::Fin { id: 1 << 63 }, 0);
    say(s, 1, Record::Refused { id: 1 << 63, fault: Fault::Bounds }, 0);
    say(s, 1, Record::Fragment { to: 0, len: 1, place: 0 }, 0);
    say(s, 1, Record::FragmentHere { to: 1 << 63 }, 8);
    run_record(s, 1, 0xf, 8, [0; RMA_WORDS]);
    run_record(s, 1, 1, 8, [0; RMA_WORDS]);
}
