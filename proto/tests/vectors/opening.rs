//! Vectors of opening a link: set-ups, what they come to, both sides.
use super::frame::{from_hex, hex};
use super::names::{FRAME_KINDS, REPAIRS, name, value};
use super::script::{Fields, Machine, Random, Script};
use ayre_proto::link::answer::{Answer, reset_header};
use ayre_proto::link::end::Agreement;
use ayre_proto::link::frame::{Digest, Header};
use ayre_proto::link::half_open::{
    AdmitError, HALF_OPEN_OF_ONE, HalfOpenTable, OpenRequest, Place, YOUNG,
};
use ayre_proto::link::open::{ANYBODY, AgreedLimits, By, Opener, SETUP_BYTES, SetUp, Trust, agree};
use ayre_proto::link::race::Pace;
use ayre_proto::link::token_bucket::TokenBucket;

pub(crate) const HEADER: &str = "\
Opening a link (proto/src/link/open.rs, half_open.rs; spec/87). Numbers: hexadecimal, `-` is none.
A set-up is its BYTES, two digits each, in the order in which they travel.

encode FIELDS -> BYTES
parse BYTES -> FIELDS                or malformed
FIELDS are NONCE ANSWERS INCARNATION TOKEN GENERATION INDEX FIRST FIRST FIRST FRAME-MAX NUMBER
           WHOM PATHS REPAIR COOKIE and seven words of the owner
agree OURS THEIRS -> AGREED          or malformed
AGREED is TO INCARNATION OWN GENERATION TOKEN OWN-TOKEN REPAIR PATHS FRAME-MAX and twice three
         first numbers

open BYTES FIRST MOST GIVE-UP NOW -> ok                 an opener
time NOW -> PACKET PATH STATE        the open is sent, or `- -` in its place
next -> AT                           when something is due, or never
accept BYTES -> AGREED STATE         or - or malformed in place of what was agreed
answer KIND TOKEN BYTES TRUST FRESH NOW -> NONCE COOKIE STATE CODE DETAIL
                                     asking, accepted, refused or given-up; - - without a reason;
                                     TRUST is 0 without proof, 1 of anybody, 2 of a holder of the
                                     key; FRESH the nonce of another attempt; foreign
                                     or malformed where it is no answer to this one
say CODE DETAIL PROOF PROOF -> BYTES                    an answer as it travels

door PATIENCE BURST INTERVAL -> ok   an empty table of half-open links, and its ration
find BYTES -> PLACE                  of an open that has come before, or -
let-in OPENER MARK PROVED NAMED NOW -> YES              1, or 0: it is to come again with a cookie
admit OPENER MARK PROVED BYTES OURS NOW -> PLACE LEFT ACCEPT
                                     nonce of the open that had to leave, or -; malformed, crowded
repeat PLACE NOW -> YES              whether the accept goes again
confirm KIND TO TOKEN GENERATION NOW -> PLACE NONCE     of the link that is one now, or -
expire NOW -> PLACE NONCE            one that is over, or -
half-open -> COUNT AT                and when the next one is over, or never

refuse KIND TO TOKEN GENERATION PACKET PATH -> FRAME    the reset, with stamp 7; or -";

struct Both {
    opener: Opener,
    door: HalfOpenTable,
    /// That were given.
    places: Vec<Place>,
}

pub(crate) fn machine() -> Box<dyn Machine> {
    let open = set_up(&mut Random::new(7), 0);
    let door = HalfOpenTable::new(1, TokenBucket::new(1, 1, 0));
    Box::new(Both { opener: Opener::new(open, Pace::RACK, 0, 0), door, places: Vec::new() })
}

/// An open.
fn set_up(random: &mut Random, number: u16) -> SetUp {
    SetUp {
        nonce: random.word() | 1,
        answers: 0,
        incarnation: random.word() | 1,
        token: random.word() | 1,
        generation: 1 + random.below(9) as u32,
        index: random.word() as u32,
        first: [0; 3].map(|_| random.word() as u32),
        frame_max: 1128 + random.below(8000) as u16,
        number,
        destination: ANYBODY,
        paths: 1 + random.below(4) as u8,
        repair: random.pick(REPAIRS).1,
        owner: [0; 7].map(|_| random.edge()),
        cookie: random.edge(),
    }
}

fn read(inputs: &mut Fields<'_>) -> SetUp {
    SetUp::parse(&from_hex(inputs.text())).expect("a good one")
}

fn fields(inputs: &mut Fields<'_>) -> SetUp {
    SetUp {
        nonce: inputs.number(),
        answers: inputs.number(),
        incarnation: inputs.number(),
        token: inputs.number(),
        generation: inputs.number(),
        index: inputs.number(),
        first: std::array::from_fn(|_| inputs.number()),
        frame_max: inputs.number(),
        number: inputs.number(),
        destination: inputs.number(),
        paths: inputs.number(),
        repair: value(REPAIRS, inputs.text()),
        cookie: inputs.number(),
        owner: std::array::from_fn(|_| inputs.number()),
    }
}

fn numbers<const N: usize, T: std::fmt::LowerHex>(numbers: [T; N]) -> String {
    numbers.map(|number| format!("{number:x}")).join(" ")
}

fn show(read: &SetUp) -> String {
    let ids = numbers([read.nonce, read.answers, read.incarnation, read.token]);
    let (generation, index, first) = (read.generation, read.index, numbers(read.first));
    let (frame_max, paths, cookie) = (read.frame_max, read.paths, read.cookie);
    let (number, whom) = (read.number, read.destination);
    let repair = name(REPAIRS, &read.repair);
    let owner = numbers(read.owner);
    format!(
        "{ids} {generation:x} {index:x} {first} {frame_max:x} {number:x} {whom:x} {paths:x} \
         {repair} {cookie:x} {owner}"
    )
}

fn agreed((agreed, limits): &(Agreement, AgreedLimits)) -> String {
    let Agreement { to, incarnation, own, .. } = *agreed;
    let Agreement { generation, token, own_token, repair, paths, first, .. } = *agreed;
    let (repair, frame_max) = (name(REPAIRS, &repair), limits.frame_max);
    let first = first.map(numbers).join(" ");
    format!(
        "{to:x} {incarnation:x} {own:x} {generation:x} {token:x} {own_token:x} {repair} {paths:x} \
         {frame_max:x} {first}"
    )
}

fn time(at: u64) -> String {
    if at == u64::MAX { "never".to_owned() } else { format!("{at:x}") }
}

/// The header of a frame of this kind, of which only these fields matter.
fn header(inputs: &mut Fields<'_>) -> Header {
    let kind = value(FRAME_KINDS, inputs.text());
    let (to, token, generation) = (inputs.number(), inputs.number(), inputs.number());
    let any = set_up(&mut Random::new(1), 0);
    let header = any.open_header(1, 0, Digest { len: 0, crc: 0 });
    Header { kind, to, token, generation, ..header }
}

fn asker(inputs: &mut Fields<'_>) -> OpenRequest {
    let (opener, mark) = (inputs.number(), inputs.number());
    OpenRequest { opener, mark, host: 0, is_proved: inputs.number::<u64>() == 1 }
}

impl Both {
    fn state(&self) -> String {
        let state = format!("{:?}", self.opener.state()).to_lowercase();
        state.replace("givenup", "given-up")
    }

    fn open(&mut self, inputs: &mut Fields<'_>) -> String {
        let ours = read(inputs);
        let pace = Pace { first: inputs.number(), most: inputs.number() };
        self.opener = Opener::new(ours, pace, inputs.number(), inputs.number());
        "ok".to_owned()
    }

    fn opener(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let first = match step {
            "time" => {
                let payload = Digest { len: SETUP_BYTES as u16, crc: 0 };
                match self.opener.on_time(inputs.number(), payload) {
                    Some(header) => format!("{:x} {:x}", header.packet, header.path),
                    None => "- -".to_owned(),
                }
            }
            "accept" => match self.opener.on_accept(&read(inputs)) {
                Ok(Some(come_to)) => agreed(&come_to),
                Ok(None) => "-".to_owned(),
                Err(_) => "malformed".to_owned(),
            },
            _ => return self.answer(inputs),
        };
        format!("{first} {}", self.state())
    }

    fn answer(&mut self, inputs: &mut Fields<'_>) -> String {
        let (kind, token) = (value(FRAME_KINDS, inputs.text()), inputs.number());
        let said = Answer::parse(&from_hex(inputs.text()));
        let trust = [Trust::Nobody, Trust::Anybody, Trust::Holder][inputs.number::<usize>()];
        let fresh = inputs.number();
        let now = inputs.number();
        let ours = self.opener.ours().open_header(1, 0, Digest { len: 0, crc: 0 });
        if !self.opener.is_answered_by(&Header { kind, token, ..ours }) {
            return "foreign".to_owned();
        }
        let Ok((answer, _)) = said else { return "malformed".to_owned() };
        self.opener.on_answer((answer, By { path: 0, way: 0 }), trust, fresh, now);
        let SetUp { nonce, cookie, .. } = *self.opener.ours();
        let why = self.opener.refusal().map(|why| numbers(why.to_words()));
        let why = why.unwrap_or_else(|| "- -".to_owned());
        format!("{nonce:x} {cookie:x} {} {why}", self.state())
    }

    fn door(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let none = || "-".to_owned();
        let found = match step {
            "find" => {
                let place = self.door.find(&read(inputs));
                return place.map_or_else(none, |place| format!("{:x}", place.index()));
            }
            "let-in" => {
                let asker = asker(inputs);
                let is_named = inputs.number::<u64>() == 1;
                return u8::from(self.door.may_enter(&asker, is_named, inputs.number()))
                    .to_string();
            }
            "repeat" => {
                let place: u64 = inputs.number();
                let given = self.places.iter().find(|given| given.index() as u64 == place);
                let place = *given.expect("it was given");
                return u8::from(self.door.repeat(place, inputs.number())).to_string();
            }
            "admit" => {
                let (asker, open, ours) = (asker(inputs), read(inputs), read(inputs));
                let (place, left) = match self.door.admit(asker, &open, ours, inputs.number()) {
                    Ok(admitted) => admitted,
                    Err(AdmitError::Malformed) => return "malformed".to_owned(),
                    Err(AdmitError::Full) => return "crowded".to_owned(),
                };
                self.places.push(place);
                let left = left.map_or_else(none, |left| format!("{:x}", left.theirs().nonce));
                let accept = self.door.get(place).expect("it is there").ours().encode();
                return format!("{:x} {left} {}", place.index(), hex(&accept));
            }
            "confirm" => {
                let header = header(inputs);
                self.door.confirm(&header, inputs.number())
            }
            _ => self.door.expire(inputs.number()),
        };
        found.map_or_else(none, |(place, entry)| {
            format!("{:x} {:x}", place.index(), entry.theirs().nonce)
        })
    }
}

impl Machine for Both {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => hex(&fields(inputs).encode()),
            "parse" => match SetUp::parse(&from_hex(inputs.text())) {
                Ok(read) => show(&read),
                Err(_) => "malformed".to_owned(),
            },
            "agree" => match agree(&read(inputs), &read(inputs)) {
                Ok(come_to) => agreed(&come_to),
                Err(_) => "malformed".to_owned(),
            },
            "open" => self.open(inputs),
            "next" => time(self.opener.deadline()),
            "time" | "accept" | "answer" => self.opener(step, inputs),
            "say" => {
                let [code, detail, first, second] = std::array::from_fn(|_| inputs.number());
                let bytes: Vec<_> = [code, detail, first, second].map(u64::to_le_bytes).concat();
                let (answer, proof) = Answer::parse(&bytes).expect("it has the length");
                hex(&answer.encode(proof))
            }
            "door" => {
                let (timeout, burst) = (inputs.number(), inputs.number());
                self.door =
                    HalfOpenTable::new(timeout, TokenBucket::new(burst, inputs.number(), 0));
                "ok".to_owned()
            }
            "half-open" => format!("{:x} {}", self.door.len(), time(self.door.deadline())),
            "find" | "let-in" | "admit" | "repeat" | "confirm" | "expire" => {
                self.door(step, inputs)
            }
            "refuse" => {
                let header = header(inputs);
                let (packet, path) = (inputs.number(), inputs.number());
                let reset = reset_header(&Header { packet, path, ..header }, 7);
                reset.map_or_else(|| "-".to_owned(), |reset| hex(&reset.encode(super::frame::crc)))
            }
            _ => panic!("{step} is no step of an opening"),
        }
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("set-ups");
    for number in [0, 1, 0xffff] {
        let set_up = set_up(&mut s.random, number);
        let bytes = s.run(format!("encode {}", show(&set_up)));
        s.run(format!("parse {bytes}"));
    }
    malformed(s);
    s.section("what two come to, as each side sees it");
    for _ in 0..6 {
        let (open, ours) = (set_up(&mut s.random, 1), set_up(&mut s.random, 2));
        let accept = ours.answering(&open);
        let [open, accept] = [open, accept].map(|set_up| hex(&set_up.encode()));
        s.run(format!("agree {open} {accept}"));
        s.run(format!("agree {accept} {open}"));
    }
    disagreement(s);
    asking(s);
    accepting(s);
    s.section("resets");
    for (kind, _) in FRAME_KINDS {
        s.run(format!("refuse {kind} 12 34 56 78 2"));
    }
}

fn malformed(s: &mut Script) {
    s.section("what is none: by byte, then by length; reserved bytes are ignored");
    let good = set_up(&mut s.random, 3).encode();
    for (from, to, byte) in [
        (0, 8, 0),
        (16, 24, 0),
        (24, 32, 0),
        (32, 36, 0),
        (52, 54, 0),
        (56, 57, 0),
        (56, 57, 5),
        (57, 58, 0),
        (57, 58, 3),
        (58, 64, 0xff),
    ] {
        let mut bytes = good;
        bytes[from..to].fill(byte);
        s.run(format!("parse {}", hex(&bytes)));
    }
    s.run(format!("parse {}", hex(&good[..SETUP_BYTES - 1])));
    s.run(format!("parse {}00", hex(&good)));
    s.run("parse -");
    s.section("the least longest frame");
    for (low, high) in [(0x67, 0x04), (0x68, 0x04)] {
        let mut bytes = good;
        (bytes[52], bytes[53]) = (low, high);
        s.run(format!("parse {}", hex(&bytes)));
    }
}

fn disagreement(s: &mut Script) {
    s.section("no pair: answers nothing, another one, itself, with a smaller generation");
    let (open, ours) = (set_up(&mut s.random, 1), set_up(&mut s.random, 2));
    let open = SetUp { generation: 5, ..open };
    let accept = ours.answering(&open);
    for strange in [
        ours,
        SetUp { answers: open.nonce ^ 1, ..accept },
        SetUp { incarnation: open.incarnation, ..accept },
        SetUp { generation: 4, ..accept },
    ] {
        s.run(format!("agree {} {}", hex(&open.encode()), hex(&strange.encode())));
    }
}

fn asking(s: &mut Script) {
    let (open, ours) = (set_up(&mut s.random, 1), set_up(&mut s.random, 2));
    let open = SetUp { paths: 3, destination: 2, cookie: 0, ..open };
    let accept = hex(&ours.answering(&open).encode());
    let strange = hex(&SetUp { number: 9, ..ours.answering(&open) }.encode());
    let (open, other) = (hex(&open.encode()), hex(&ours.encode()));
    s.section("an opener that is accepted, by the one that it has asked");
    s.run(format!("open {open} a 28 100 3"));
    for step in ["next", "time 3", "time c", "next", "time d", "time 21"] {
        s.run(step);
    }
    for answer in [&other, &strange, &accept, &accept] {
        s.run(format!("accept {answer}"));
    }
    s.run("next");
    s.section("answers as they travel: refusals, and one to come again");
    let said = ["0 0 0 0", "2 9 1 2", "5 800 0 0", "9 0 3 4", "63 1 0 0", "100000000 55 6 7"]
        .map(|said| s.run(format!("say {said}")));
    s.section("one that is asked to come again, one that is refused, and one that gives up");
    s.run(format!("open {open} a 28 100 0"));
    s.run("time 0");
    let nonce = u64::from_le_bytes(from_hex(&open)[..8].try_into().expect("eight bytes"));
    for (kind, token) in [("reset", nonce ^ 1), ("probe", nonce)] {
        s.run(format!("answer {kind} {token:x} {} 1 77 3", said[0]));
    }
    s.run(format!("answer reset {nonce:x} {}00 1 77 3", said[0]));
    for (bytes, trust) in [(&said[5], 0), (&said[1], 0), (&said[5], 2)] {
        s.run(format!("answer reset {nonce:x} {bytes} {trust} 77 3"));
    }
    for step in ["next", "time 3", "next"] {
        s.run(step);
    }
    s.run(format!("answer reset 77 {} 1 78 4", said[2]));
    s.run(format!("accept {accept}"));
    s.run(format!("open {open} a 28 100 0"));
    loop {
        let at = s.run("next");
        if at == "never" {
            break;
        }
        s.run(format!("time {at}"));
    }
    s.run(format!("accept {accept}"));
}

fn accepting(s: &mut Script) {
    s.section("a half-open link, and what makes it one");
    s.run("door 64 20 1");
    let (open, ours) = (set_up(&mut s.random, 1), set_up(&mut s.random, 2));
    let accept = ours.answering(&open);
    let SetUp { index, token, generation, .. } = accept;
    let [open, ours] = [open, ours].map(|set_up| hex(&set_up.encode()));
    s.run(format!("find {open}"));
    s.run("let-in 1 111 0 0 10");
    s.run("let-in 1 111 0 1 10");
    s.run(format!("admit 1 111 0 {open} {ours} 10"));
    s.run(format!("find {open}"));
    s.run("let-in 1 111 1 1 10");
    for at in ["11", "3d0910", "3d0911"] {
        s.run(format!("repeat 0 {at}"));
    }
    s.run("half-open");
    for (kind, index, token, generation) in [
        ("probe", index ^ 1, token, generation),
        ("probe", index, token ^ 1, generation),
        ("probe", index, token, generation + 1),
        ("close", index, token, generation),
        ("data", index, token, generation),
        ("data", index, token, generation),
    ] {
        s.run(format!("confirm {kind} {index:x} {token:x} {generation:x} 20"));
    }
    crowd(s);
}

fn crowd(s: &mut Script) {
    s.section("more than one opener may have; the one that is confirmed ends its others");
    s.run("door 77359400 20 1");
    let mut last = None;
    for nth in 0..HALF_OPEN_OF_ONE as u64 + 5 {
        let (open, ours) = (set_up(&mut s.random, 1), set_up(&mut s.random, 2));
        let accept = ours.answering(&open);
        let [open, ours] = [open, ours].map(|set_up| hex(&set_up.encode()));
        let opener = if nth == 1 { 2 } else { 1 };
        // With a cookie from the sixth on; the last but two comes when the others are old.
        let (is_proved, at) = (u8::from(nth > 4), if nth > 6 { YOUNG + 0x40 } else { 0x20 + nth });
        let mark = 0x200 + nth;
        let admitted = s.run(format!("admit {opener} {mark:x} {is_proved} {open} {ours} {at:x}"));
        if admitted != "crowded" {
            last = Some(accept);
        }
    }
    let SetUp { index, token, generation, .. } = last.expect("the last one");
    s.run("half-open");
    for now in [2 * YOUNG * 10, YOUNG] {
        s.run(format!("confirm probe {index:x} {token:x} {generation:x} {now:x}"));
    }
    s.run("half-open");
    for _ in 0..4 {
        s.run("expire 0");
    }
    for step in ["expire 77359420", "expire 77359421", "expire 77359421", "half-open"] {
        s.run(step);
    }
    s.section("opens without a cookie: so many at once, and one more in each interval");
    s.run("door 64 2 a");
    for (mark, now) in [(1, 0), (2, 0), (3, 0), (3, 9), (3, 0xa), (4, 0xa)] {
        s.run(format!("let-in {mark} {mark} 0 1 {now:x}"));
    }
}
