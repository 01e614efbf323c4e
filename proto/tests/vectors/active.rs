//! Vectors of the records of a messenger, and of both ends of its long messages.
use super::frame::{from_hex, hex};
use super::script::{Fields, Machine, Script};
use ayre_proto::active::long::{LongReceiver, LongSender, Message, Taken, Way};
use ayre_proto::active::record::{DropCause, Pulled, Record};
use ayre_proto::lane::Malformed;

pub(crate) const HEADER: &str = "\
Active messages: records, and both ends of long messages (proto/src/active/, spec/47, spec/51).
Numbers are hexadecimal, BYTES two digits each in the order in which they travel, or `-` for none.

parse TAG BYTES -> ok               or malformed: whether a record may be so; `ok` is said by the
                                    same bytes
out -> ok                           a sender's end: nothing was asked for or sent
send ID TOTAL SENT ADDRESS STEPS -> SENT HOW WHAT
                                    goes on with a message of so many bytes, of which so many are
                                    sent. The receiver may read it at ADDRESS, or `-`. The way takes
                                    so many records, puts and openings yet. HOW is done, waits, or
                                    full. WHAT it did, one behind the other: TAG:BYTES says a
                                    record, put:OFFSET:BYTES puts, open:BYTES opens the landing.
landing BYTES -> ok                 the receiver's records, or malformed
room TAKEN -> ok
pulled WHAT -> ok                   0 never, 1 whole, 2 not now
in -> ok                            a receiver's end: no landing, nothing has come
want -> ok                          the sender's records, or malformed
begin ID TOTAL WHY -> ok            a message begins; WHY it is forgotten, as numbered in `failed`
piece LEN -> OFFSET LAST            the next piece, where it lies, and whether it was the last one
pull ID TOTAL WHY -> ok
make BYTES -> ok                    the landing is made, and handed over
answer WHAT -> ok                   what was to be read was read, or not, as numbered in `pulled`
due -> TAG:BYTES                    what the sender is to be told, and is told; or `-`";

/// Both ends.
#[derive(Default)]
struct Ends {
    out: LongSender,
    inward: LongReceiver,
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Ends::default())
}

/// The way to the receiver: what is done to it.
struct Paper {
    steps: u32,
    address: Option<u64>,
    done: Vec<String>,
}

struct Full;

impl Paper {
    fn step(&mut self, what: String) -> Result<(), Full> {
        self.steps = self.steps.checked_sub(1).ok_or(Full)?;
        self.done.push(what);
        Ok(())
    }
}

fn said(record: &Record<'_>) -> String {
    let (tag, bytes) = record.encode();
    format!("{tag:x}:{}", hex(&bytes))
}

impl Way for Paper {
    type Error = Full;

    fn say(&mut self, record: &Record<'_>) -> Result<(), Full> {
        self.step(said(record))
    }

    fn open(&mut self, bytes: u64) -> Result<(), Full> {
        self.step(format!("open:{bytes:x}"))
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Full> {
        self.step(format!("put:{offset:x}:{:x}", bytes.len()))
    }

    fn longest_put(&mut self) -> usize {
        usize::MAX
    }

    fn offers(&self, _: &Message<'_>) -> Option<u64> {
        self.address
    }
}

fn why(fields: &mut Fields<'_>) -> Option<DropCause> {
    match fields.number::<u8>() {
        0 => None,
        1 => Some(DropCause::Unknown),
        2 => Some(DropCause::Malformed),
        other => panic!("{other} is no cause that is known before a handler runs"),
    }
}

fn pulled(fields: &mut Fields<'_>) -> Pulled {
    match fields.number::<u8>() {
        0 => Pulled::Never,
        1 => Pulled::Whole,
        2 => Pulled::NotNow,
        other => panic!("{other} is no answer"),
    }
}

impl Ends {
    fn send(&mut self, fields: &mut Fields<'_>) -> String {
        let (id, total, mut sent) = (fields.number(), fields.number(), fields.number());
        let address = fields.maybe();
        let mut way = Paper { steps: fields.number(), address, done: vec![] };
        let payload = vec![0; total];
        let message = Message { id, arguments: &[7; 8], payload: &payload };
        let how = match self.out.advance(&mut way, message, &mut sent) {
            Ok(true) => "done",
            Ok(false) => "waits",
            Err(Full) => "full",
        };
        format!("{sent:x} {how} {}", way.done.join(" ")).trim_end().to_owned()
    }

    fn due(&mut self) -> String {
        if let Some(taken) = self.inward.room_due() {
            self.inward.told(taken);
            return said(&Record::Room(taken));
        }
        match self.inward.pulled_due() {
            Some(pulled) => {
                self.inward.told_pulled();
                said(&Record::Pulled(pulled))
            }
            None => "-".to_owned(),
        }
    }
}

impl Machine for Ends {
    fn step(&mut self, name: &str, inputs: &mut Fields<'_>) -> String {
        let heard = match name {
            "parse" => {
                let (tag, bytes) = (inputs.number(), from_hex(inputs.text()));
                Record::parse(tag, &bytes).map(|record| {
                    assert_eq!(record.encode().1[..], bytes, "a record is what it says");
                })
            }
            "out" => {
                self.out = LongSender::default();
                Ok(())
            }
            "send" => return self.send(inputs),
            "landing" => self.out.on_landing(inputs.number()),
            "room" => self.out.on_room(inputs.number()),
            "pulled" => self.out.on_pulled(pulled(inputs)),
            "in" => {
                self.inward = LongReceiver::default();
                Ok(())
            }
            "want" => self.inward.on_want(),
            "begin" => {
                let (id, total) = (inputs.number(), inputs.number());
                self.inward.begin(id, total, why(inputs))
            }
            "piece" => match self.inward.take(inputs.number()) {
                Ok(Taken { piece, is_last }) => {
                    return format!("{:x} {}", piece.offset, u8::from(is_last));
                }
                Err(Malformed) => Err(Malformed),
            },
            "pull" => {
                let (id, total) = (inputs.number(), inputs.number());
                self.inward.on_pull(id, total, why(inputs))
            }
            "make" => {
                self.inward.make(inputs.number());
                self.inward.gave();
                Ok(())
            }
            "answer" => {
                self.inward.answer(pulled(inputs));
                Ok(())
            }
            "due" => return self.due(),
            _ => panic!("{name} is no step of active messages"),
        };
        if heard.is_ok() { "ok" } else { "malformed" }.to_owned()
    }
}

pub(crate) fn script(s: &mut Script) {
    records(s);
    s.section("by the landing: asked for, opened, pieces, room that is told of");
    all(
        s,
        "out, landing 1000, send 12c 1400 0 - 0, send 12c 1400 0 - 1, landing fff, \
         landing 800, room 0, landing 1000, landing 1000, send 12c 1400 0 - 0, \
         send 12c 1400 0 - 1, send 12c 1400 0 - 2, send 12c 1400 400 - 99, room 1001, \
         room 400, send 12c 1400 1000 - 99, room 3ff, room 1400, send 12c 65 0 - 99, \
         send 12c 65 0 - 1, send 12c 3c0 0 - 99",
    );
    s.section("a piece that does not fit before the end begins anew");
    all(s, "room 1840, send 12c 400 0 - 99, send 12c 400 0 - 99, send 12c 400 0 - 99");
    s.section("read where it lies, wanted by the landing, refused; messages of features are not");
    all(
        s,
        "out, pulled 1, send 12c 1400 0 1000 0, send 12c 1400 0 1000 1, \
         send 12c 1400 0 1000 1, pulled 1, pulled 1, send 12c 1400 0 1000 0, \
         send a 1400 0 1000 1, send 12c 500 0 2000 1, pulled 2, \
         send 12c 500 0 2000 1, landing 1000, send 12c 500 0 2000 99, \
         send 12c 500 0 2000 1, pulled 0, send 12c 500 0 2000 1, \
         send 12c 500 0 2000 99, send 12c 500 0 2000 99",
    );
    s.section("a receiver: what is not due");
    all(
        s,
        "in, begin 12c 1400 0, piece 1, want, want, make 1000, want, piece 1, \
         begin 12c 0 0, begin 12c 1400 0, begin 12c 5 0, pull 12c 5 0, piece 0, \
         piece 401, piece 400, due, due, piece 400, piece 400, piece 400, due, \
         piece 3ff, piece 2, piece 1, piece 1",
    );
    s.section("a receiver: where pieces lie, room, what is read");
    all(
        s,
        "due, begin 12c 65 1, piece 65, begin a 400 0, piece 400, begin 12d 400 2, \
         piece 400, due, begin 12d 400 0, piece 400, due, pull 12c 0 0, pull 12c 5 0, \
         answer 1, pull 12c 5 0, due, due, pull 12c ffffffffffffffff 2, answer 0, due",
    );
}

fn records(s: &mut Script) {
    s.section("records, and what is none");
    let name = "handler";
    let id = ayre_proto::active::id_of(name);
    for record in [
        Record::Announce { id, arguments: 3, name },
        Record::Long { id: 300, total: 5000, piece: 1024, arguments: &[7; 16] },
        Record::Piece(1024),
        Record::Room(4096),
        Record::Want,
        Record::Landing(4096),
        Record::Failed(300, DropCause::Panicked),
        Record::Sync(2),
        Record::Empty(300),
        Record::Pull { id: 300, total: 5000, address: 0x7fff_0000_1234, arguments: &[] },
        Record::Pulled(Pulled::NotNow),
    ] {
        let (tag, bytes) = record.encode();
        s.run(format!("parse {tag:x} {}", hex(&bytes)));
        s.run(format!("parse {tag:x} {}", hex(&bytes[1..])));
        let at = s.random.below(bytes.len() as u64) as usize;
        let mut other = bytes.to_vec();
        other[at] ^= 0x80;
        s.run(format!("parse {tag:x} {}", hex(&other)));
    }
}

fn all(s: &mut Script, steps: &str) {
    for step in steps.split(',') {
        s.run(step.trim());
    }
}
