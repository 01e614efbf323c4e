//! Vectors of whole nodes: operations, frames, records and time in; effects out.
use super::frame::{crc, from_hex, hex};
use super::names::{KINDS, OPERATIONS, STATUSES, fault, name, value};
use super::plain_memory::{Heap, frames};
use super::script::{Fields, Machine, Script};
use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
use ayre_proto::deposit::message::Posted;
use ayre_proto::execute::{Action, Command};
use ayre_proto::fault::{Fault, Status};
use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header};
use ayre_proto::link::looks::Looks;
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::connection::Lines;
use ayre_proto::node::effects::{self, Host, LaneName, WordName};
use ayre_proto::node::initiator::{Ended, Refused};
use ayre_proto::node::lane::Entry;
use ayre_proto::node::linked::Linked;
use ayre_proto::node::peer::Message;
use ayre_proto::node::target::{Delivery, Exchange, Exposed};
use ayre_proto::node::{Node, Order, PostError};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Extent, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub(crate) const HEADER: &str = "\
Two whole nodes, a and b (proto/src/node/whole.rs, spec/10, 30, 40, 60, 85, 89, 90): what each is
asked for, what comes to it, and all that it causes. Numbers are hexadecimal; BYTES are too, two
digits each, or `-` for none. N is the node, TIME nanoseconds; CLASSES are bits as in command.txt.

nodes WAY -> ok             both begin, at time 0, connected by a link, by one that carries rings,
                            or by lanes of one host
post N OPERATION SLOT CLASSES OFFSET ROWLEN ROWS LSTRIDE RSTRIDE LOCAL -> TICKET EFFECTS
                            or why not; tag 3, value 4; atomics add 1, immediates are 9
send N TAG BYTES -> ok      a short message, or why not
time N TIME -> EFFECTS
frame N TIME BYTES -> EFFECTS            a frame of the link has come, as in frame.txt
record N TIME LANE KIND TAG BYTES -> EFFECTS     the other one has stored a record in a lane
word N TIME WORD VALUE -> EFFECTS        it has stored a word
receive N -> TAG BYTES                   the program takes a message; or -
write-ring N BYTES -> POSITION           the program writes a piece; or -, where there is no room
take-ring N POSITION LEN -> BYTES        it takes one that the other one has written; or malformed
notification N -> WORD0 WORD1            the program takes a notification; or -
deadline N -> TIME                       or -: when time is due, though nothing happens
silent N TIME -> EFFECTS                 nothing comes until then, and time goes on by deadlines;
                                         what it transmits meanwhile is not among them
Each program has 400 bytes of memory, which count 0, 1, 2 to ff, and again. The other one has two
keys to those from 100 to 2ff: slot 0 with all rights, and slot 1 to read. LOCAL is an address.
EFFECTS are in order, with `+` between them, or - for none
  load ADDRESS LEN          a put's data is read
  land ADDRESS BYTES        a get's data is written
  write ADDRESS BYTES       a command of the other one writes memory
  read ADDRESS LEN          one reads it
  store ADDRESS VALUE       one writes a word
  atomic ADDRESS VALUE      one updates a word, which was this before
  ended TICKET STATUS VALUE
  gone FAULT                the connection has ended
  transmit BYTES            a frame goes
  record LANE KIND TAG BYTES
  word WORD VALUE
LANE is commands, responses or messages, WORD is done, noted, or lines-LANE.
The link is of generation 5. Its index is 1 at a and 0 at b, its tokens are 11 in a's frames and 22
in b's; first frames are 0, one path, selective repair, payloads of e0 bytes at most, 8 buffers for
each channel, driven as for hosts of one rack (spec/85, 86). Lanes have 18 lines, rings 10.";

/// Bytes of a program's memory, and what the other one may reach of it.
const MEMORY: usize = 0x400;
const BASE: u64 = 0x100;
const LEN: u64 = 0x200;
/// Bytes of the longest payload.
const ROOM: usize = 224;
/// Buffers of each channel.
const BUFFERS: u32 = 8;
const LINES: Lines = Lines { messages: 24, responses: 24, commands: 24, ring: 0 };

const LANES: &[(&str, LaneName)] = &[
    ("commands", LaneName::Commands),
    ("responses", LaneName::Responses),
    ("messages", LaneName::Messages),
];

const WORDS: &[(&str, WordName)] = &[
    ("done", WordName::Done),
    ("noted", WordName::Noted),
    ("lines-commands", WordName::Lines(LaneName::Commands)),
    ("lines-responses", WordName::Lines(LaneName::Responses)),
    ("lines-messages", WordName::Lines(LaneName::Messages)),
];

/// The effects of a node.
type Log = Rc<RefCell<Vec<String>>>;

struct Program {
    memory: Vec<u8>,
    log: Log,
}

impl Program {
    fn note(&self, effect: String) {
        self.log.borrow_mut().push(effect);
    }

    fn at(&mut self, extent: Extent) -> &mut [u8] {
        &mut self.memory[extent.offset() as usize..][..extent.len() as usize]
    }
}

impl Exposed for Program {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.note(format!("write {:x} {}", to.offset(), hex(data)));
        self.at(to).copy_from_slice(data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.note(format!("read {:x} {:x}", from.offset(), into.len()));
        into.copy_from_slice(&self.memory[from.offset() as usize..][..into.len()]);
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.note(format!("store {:x} {value:x}", to.offset()));
        self.at(to).copy_from_slice(&value.to_le_bytes());
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let place: &mut [u8; 8] = self.at(at).try_into().expect("a word");
        let old = u64::from_le_bytes(*place);
        *place = atomic.apply(old).unwrap_or(old).to_le_bytes();
        self.note(format!("atomic {:x} {old:x}", at.offset()));
        atomic.fetched(old)
    }

    fn carry_out(&mut self, _: &Posted, _: Extent, _: &mut impl Exchange) -> Delivery {
        Delivery::NoInlet
    }

    fn give(&self, _: &mut [u8]) {}
}

impl effects::Program for Program {
    /// An address.
    type Local = u64;
    type Reply = ();

    fn load(&self, local: &u64, offset: u64, into: &mut [u8]) {
        self.note(format!("load {:x} {:x}", local + offset, into.len()));
        into.copy_from_slice(&self.memory[(local + offset) as usize..][..into.len()]);
    }

    fn land(&mut self, local: &u64, offset: u64, data: &[u8]) {
        self.note(format!("land {:x} {}", local + offset, hex(data)));
        self.memory[(local + offset) as usize..][..data.len()].copy_from_slice(data);
    }

    fn reply(&mut self, (): &mut (), _: u64, _: &[u8]) -> Option<(Status, Option<Notification>)> {
        Some((Status::Ok, None))
    }

    fn ended(&mut self, _: PeerId, ended: &Ended) {
        let Ended { ticket, status, value, .. } = ended;
        self.note(format!("ended {:x} {} {value:x}", ticket.0, name(STATUSES, status)));
    }

    fn offered(&mut self, _: PeerId, _: Offer) {}

    fn gone(&mut self, _: PeerId, why: Fault) {
        self.note(format!("gone {}", fault(why)));
    }
}

struct Wire {
    log: Log,
}

impl effects::Wire for Wire {
    fn transmit(&mut self, _: PeerId, header: &Header, payload: &[u8]) {
        let frame = [&header.encode(crc)[..], payload].concat();
        self.log.borrow_mut().push(format!("transmit {}", hex(&frame)));
    }

    fn renew(&mut self, _: PeerId, _: Channel, left: u32) -> u32 {
        BUFFERS - left
    }

    fn store(&mut self, _: PeerId, lane: LaneName, record: Entry) {
        let Entry { kind, tag, bytes } = record;
        let (lane, kind) = (name(LANES, &lane), name(KINDS, &kind));
        self.log.borrow_mut().push(format!("record {lane} {kind} {tag:x} {}", hex(&bytes)));
    }

    fn tell(&mut self, _: PeerId, word: WordName, value: u64) {
        self.log.borrow_mut().push(format!("word {} {value:x}", name(WORDS, &word)));
    }

    fn offer(&mut self, _: PeerId, _: Offer) {}
}

/// One of the two.
struct Half {
    peer: PeerId,
    node: Node<Heap, Program>,
    program: Program,
    wire: Wire,
    log: Log,
}

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Bench(pair("link")))
}

struct Bench([Half; 2]);

fn pair(way: &str) -> [Half; 2] {
    [0, 1].map(|own| Half::new(own, way))
}

fn link(own: u32) -> Linked<Heap> {
    let agreed = Agreement {
        to: own,
        own: 1 - own,
        incarnation: 7,
        generation: 5,
        token: [0x11, 0x22][own as usize],
        own_token: [0x22, 0x11][own as usize],
        first: [[0; 3]; 2],
        repair: Repair::Selective,
        paths: 1,
    };
    let mut end = End::new(agreed, &Drive::RACK, 0);
    let frame_max = (HEADER_BYTES + ROOM) as u16;
    end.limit_lengths(frame_max, frame_max);
    for channel in Channel::ALL {
        end.give(channel, BUFFERS, 0);
    }
    Linked::new(end, frames(ROOM))
}

impl Half {
    fn new(own: u16, way: &str) -> Self {
        let (peer, log) = (PeerId(1 - own), Log::default());
        let mut node = Node::new(2, 8);
        match way {
            "link" => node.connect(peer, &LINES, link(u32::from(own))),
            "rings" => node.connect(peer, &Lines { ring: 16, ..LINES }, link(u32::from(own))),
            "lanes" => node.join(peer, &LINES),
            _ => panic!("{way} is no way between nodes"),
        }
        for (slot, rights) in [Rights::all(), Rights::READ].into_iter().enumerate() {
            let cover = Cover { holder: peer, rights, region: 7, base: BASE, len: LEN };
            let key = node.share(cover);
            assert_eq!(key, Some(Key { slot: slot as u16, generation: 0 }));
        }
        let memory = (0..MEMORY).map(|at| at as u8).collect();
        let program = Program { memory, log: log.clone() };
        Self { peer, node, program, wire: Wire { log: log.clone() }, log }
    }

    fn effects(&self) -> String {
        let effects = self.log.take().join(" + ");
        if effects.is_empty() { "-".to_owned() } else { effects }
    }

    /// The node acts.
    fn with(
        &mut self,
        act: impl FnOnce(&mut Node<Heap, Program>, PeerId, &mut Host<'_, Program, Wire>),
    ) -> String {
        let Self { node, program, wire, peer, .. } = self;
        act(node, *peer, &mut Host { program, wire });
        self.effects()
    }

    fn receive(&mut self) -> String {
        let Self { node, program, wire, peer, .. } = self;
        let message = node.receive(*peer, &mut Host { program, wire });
        let show = |message: Message| format!("{:x} {}", message.tag, hex(&message.bytes));
        message.map_or_else(|| self.effects(), show)
    }

    fn write_ring(&mut self, piece: &[u8]) -> String {
        match self.node.write_ring(self.peer, piece) {
            Ok(Some(at)) => format!("{at:x}"),
            Ok(None) => "-".to_owned(),
            Err(why) => fault(why).to_owned(),
        }
    }

    fn take_ring(&mut self, at: u64, len: usize) -> String {
        let mut into = vec![0; len];
        match self.node.take_ring(self.peer, (at, len), &mut into) {
            Ok(()) => hex(&into),
            Err(Malformed) => "malformed".to_owned(),
        }
    }

    /// Until this time; what it transmits meanwhile, nobody hears.
    fn wait(&mut self, until: u64) -> String {
        let effects = self.with(|node, _, host| {
            while node.deadline() <= until {
                node.on_time(node.deadline(), host);
            }
        });
        let is_heard = |effect: &&str| !effect.starts_with("transmit");
        effects.split(" + ").filter(is_heard).collect::<Vec<_>>().join(" + ")
    }

    fn post(&mut self, inputs: &mut Fields<'_>) -> String {
        let operation = value(OPERATIONS, inputs.text());
        let key = Key { slot: inputs.number(), generation: 0 };
        let classes = Classes::from_bits_truncate(inputs.number());
        let offset = inputs.number();
        let shape = Shape {
            row_len: inputs.number(),
            rows: inputs.number(),
            local_stride: inputs.number(),
            remote_stride: inputs.number(),
        };
        let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
        let action = match operation {
            Operation::Put => Action::Put,
            Operation::Get => Action::Get,
            Operation::ImmediatePut => Action::Immediate(9),
            Operation::NotificationPut => Action::Notify,
            Operation::Atomic => Action::Atomic(atomic),
            Operation::FetchAtomic => Action::Fetch(atomic),
            Operation::Deposit | Operation::Reply => panic!("{operation:?} is not posted so"),
        };
        let len = shape.remote_span().expect("it is short");
        let claim = Claim { key, offset, len };
        let command = Command { action, classes, tag: 3, value: 4, claim };
        let order = Order { command, shape, local: inputs.maybe() };
        match self.node.post(self.peer, order, &self.program) {
            Ok(ticket) => format!("{:x} {}", ticket.0, self.effects()),
            Err(error) => refused(error).to_owned(),
        }
    }
}

fn refused(error: PostError) -> &'static str {
    match error {
        PostError::Refused(Refused::TooManyOutstanding) => "outstanding",
        PostError::Refused(Refused::NoRoom) => "no-room",
        PostError::Refused(Refused::TooLong) => "too-long",
        PostError::NotificationsFull => "notifications-full",
        PostError::Fault(why) => fault(why),
    }
}

impl Machine for Bench {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        if step == "nodes" {
            self.0 = pair(inputs.text());
            return "ok".to_owned();
        }
        let half = match inputs.text() {
            "a" => &mut self.0[0],
            "b" => &mut self.0[1],
            other => panic!("{other} is no node"),
        };
        match step {
            "post" => half.post(inputs),
            "send" => {
                let (tag, bytes) = (inputs.number(), from_hex(inputs.text()));
                let sent = half.node.send(half.peer, tag, &bytes);
                sent.map_or_else(refused, |()| "ok").to_owned()
            }
            "time" => {
                let now = inputs.number();
                half.with(|node, _, host| node.on_time(now, host))
            }
            "frame" => {
                let (looks, bytes) =
                    (Looks::all_the_time(inputs.number()), from_hex(inputs.text()));
                let header = Header::parse(&bytes, crc).expect("a frame's header is sound");
                let frame = (&header, &bytes[HEADER_BYTES..]);
                half.with(|node, _, host| node.on_frame(frame, &looks, host))
            }
            "record" => {
                let now = inputs.number();
                let lane = value(LANES, inputs.text());
                let (kind, tag) = (value(KINDS, inputs.text()), inputs.number());
                let record = Entry { kind, tag, bytes: from_hex(inputs.text()) };
                half.with(|node, peer, host| {
                    node.on_record(peer, lane, &record, host);
                    node.on_time(now, host);
                })
            }
            "word" => {
                let now = inputs.number();
                let (word, count) = (value(WORDS, inputs.text()), inputs.number());
                half.with(|node, peer, host| {
                    node.on_word(peer, word, count, host);
                    node.on_time(now, host);
                })
            }
            "receive" => half.receive(),
            "write-ring" => half.write_ring(&from_hex(inputs.text())),
            "take-ring" => {
                let (at, len) = (inputs.number(), inputs.number());
                half.take_ring(at, len)
            }
            "notification" => {
                let words = half.node.notification().map(|note| note.encode());
                let show = |[first, second]: [u64; 2]| format!("{first:016x} {second:x}");
                words.map_or_else(|| "-".to_owned(), show)
            }
            "deadline" => match half.node.deadline() {
                u64::MAX => "-".to_owned(),
                deadline => format!("{deadline:x}"),
            },
            "silent" => half.wait(inputs.number()),
            _ => panic!("{step} is no step of a node"),
        }
    }
}

/// Nodes at work on each other: what each causes, comes to the other one.
struct Talk<'a, 's> {
    script: &'a mut Script,
    now: u64,
    /// The steps that are under way: the node that takes each, and its input.
    under_way: VecDeque<(&'s str, String)>,
    /// Of the frames from here on, those that are lost.
    lost: Vec<bool>,
}

/// Nanoseconds that anything is under way.
const WAY: u64 = 1000;
/// Nobody waits longer for what nobody asks for.
const AWHILE: u64 = 60_000;

impl Talk<'_, '_> {
    /// A step of a node, and what it causes.
    fn step(&mut self, node: &str, step: impl AsRef<str>) -> String {
        let out = self.script.run(step);
        let other = if node == "a" { "b" } else { "a" };
        for effect in out.split(" + ") {
            let (what, rest) = effect.split_once(' ').unwrap_or_default();
            let step = match what {
                "transmit" => {
                    if !self.lost.is_empty() && self.lost.remove(0) {
                        continue;
                    }
                    "frame"
                }
                "record" | "word" => what,
                _ => continue,
            };
            self.under_way.push_back((other, format!("{step} {other} TIME {rest}")));
        }
        out
    }

    /// The next thing that is under way arrives.
    fn arrive(&mut self) -> bool {
        let Some((node, step)) = self.under_way.pop_front() else { return false };
        self.now += WAY;
        let step = step.replacen("TIME", &format!("{:x}", self.now), 1);
        self.step(node, step);
        true
    }

    fn due(&mut self, node: &str) -> u64 {
        let deadline = self.script.look(&format!("deadline {node}"));
        u64::from_str_radix(&deadline, 16).unwrap_or(u64::MAX)
    }

    fn time(&mut self, node: &str) {
        self.step(node, format!("time {node} {:x}", self.now));
    }

    /// Until nothing is under way, or due in a while.
    fn converse(&mut self, awhile: u64) {
        loop {
            for node in ["a", "b"] {
                if self.due(node) <= self.now {
                    self.time(node);
                }
            }
            if self.arrive() {
                continue;
            }
            let due = self.due("a").min(self.due("b"));
            if due > self.now.saturating_add(awhile) {
                return;
            }
            self.now = self.now.max(due);
        }
    }

    /// Node `a` posts, and all that follows happens.
    fn post(&mut self, what: &str) {
        self.step("a", format!("post a {what}"));
        self.converse(AWHILE);
    }
}

fn begin<'a>(script: &'a mut Script, section: &str, way: &str) -> Talk<'a, 'static> {
    script.section(section);
    script.run(format!("nodes {way}"));
    Talk { script, now: 0, under_way: VecDeque::new(), lost: Vec::new() }
}

const OPERATIONS_OF_A: &[(&str, &str)] = &[
    ("a short put", "put 0 0 0 8 1 0 0 40"),
    ("a long put, in commands that fit a frame, or half a lane", "put 0 2 0 180 1 0 0 10"),
    ("a strided put: three rows of 8, every 10 to every 20", "put 0 0 8 8 3 10 20 0"),
    ("a get, and a strided one", "get 0 5 20 18 1 0 0 300"),
    ("", "get 0 0 0 8 2 10 40 320"),
    ("an immediate put and atomics, one with a result", "immediate-put 0 2 40 8 1 0 0 -"),
    ("", "atomic 0 4 40 8 1 0 0 -"),
    ("", "fetch-atomic 0 1 40 8 1 0 0 -"),
    ("a notification put", "notification-put 0 0 0 0 1 0 0 -"),
    ("claims that the target refuses: rights, bounds, no such key", "put 1 0 0 8 1 0 0 0"),
    ("", "get 0 0 1fc 8 1 0 0 0"),
    ("", "atomic 5 0 0 8 1 0 0 -"),
    ("what is refused at once: an atomic that is not aligned", "atomic 0 0 4 8 1 0 0 -"),
];

/// Every operation, each after what was before has ended.
fn operations(s: &mut Script, way: &str) {
    let mut talk = begin(s, "before anything is posted", way);
    talk.converse(AWHILE);
    for (what, post) in OPERATIONS_OF_A {
        if !what.is_empty() {
            talk.script.section(what);
        }
        talk.post(post);
    }
    talk.script.section("what both programs are notified of");
    for node in ["a", "a", "a", "a", "a", "a", "a", "a", "b", "b", "b", "b", "b"] {
        talk.step(node, format!("notification {node}"));
    }
    talk.converse(AWHILE);
    talk.script.section("a message, which is not taken before what was posted before was done");
    talk.step("a", "post a put 0 0 0 4 1 0 0 40");
    talk.step("a", "send a 77 6d657373616765");
    talk.time("a");
    if way == "lanes" {
        // It may be seen before the command that precedes it.
        talk.under_way.swap(0, 1);
        talk.arrive();
    }
    talk.step("b", "receive b");
    talk.converse(AWHILE);
    talk.step("b", "receive b");
    talk.step("b", "receive b");
    talk.converse(AWHILE);
}

/// Three frames of puts, of which one is lost.
fn loss(s: &mut Script) {
    let mut talk =
        begin(s, "the second of four frames is lost, and that alone is sent again", "link");
    talk.converse(AWHILE);
    for place in 0..4 {
        talk.step(
            "a",
            format!("post a put 0 0 {:x} 90 1 0 0 {:x}", 0x90 * place / 2, 0x40 * place),
        );
    }
    talk.lost = vec![false, true];
    talk.converse(10_000_000);
}

/// Frames that overtake each other.
fn early(s: &mut Script) {
    let what = "a frame overtakes another one: its puts reach other bytes, so its data is placed";
    let mut talk = begin(s, what, "link");
    talk.converse(AWHILE);
    talk.step("a", "post a put 0 0 0 90 1 0 0 0");
    talk.step("a", "post a put 0 2 100 90 1 0 0 80");
    talk.time("a");
    talk.under_way.swap(0, 1);
    talk.arrive();
    talk.step("b", "notification b");
    talk.converse(AWHILE);
    talk.step("b", "notification b");
    talk.script.section("they reach the same bytes, so the one waits for the other");
    talk.step("a", "post a put 0 0 0 90 1 0 0 0");
    talk.step("a", "post a put 0 2 8 90 1 0 0 80");
    talk.time("a");
    talk.under_way.swap(0, 1);
    talk.converse(AWHILE);
}

/// Pieces that messages name, until the ring's end is passed.
fn rings(s: &mut Script) {
    let what = "pieces in a ring come before the messages that name them";
    let mut talk = begin(s, what, "rings");
    talk.converse(AWHILE);
    for at in [0, 0x180, 0x400, 0x580] {
        if at == 0x400 {
            talk.script.section("the next one begins at the ring's start, once that was taken");
        }
        let piece = hex(&(0..0x150).map(|place| (place + at) as u8).collect::<Vec<_>>());
        talk.step("a", format!("write-ring a {piece}"));
        talk.step("a", format!("send a 5 {at:04x}"));
        talk.converse(AWHILE);
        if at == 0x180 {
            talk.step("a", format!("write-ring a {piece}"));
            talk.script.section("what cannot be a piece is not taken");
            talk.step("b", "take-ring b 4 10");
            talk.step("b", "take-ring b 3c0 80");
            talk.script.section("a piece is taken, and its writer told");
            talk.step("b", "receive b");
            talk.step("b", "take-ring b 0 150");
            talk.step("b", "receive b");
            talk.step("b", "take-ring b 180 150");
            talk.converse(AWHILE);
        }
    }
    talk.step("b", "receive b");
    talk.step("b", "take-ring b 400 150");
    talk.converse(AWHILE);
}

fn death(s: &mut Script) {
    let mut talk = begin(s, "the other one falls silent: what is under way ends", "link");
    talk.converse(AWHILE);
    talk.step("a", "post a get 0 1 0 8 1 0 0 0");
    talk.step("a", "post a notification-put 0 0 0 0 1 0 0 -");
    let end = Drive::RACK.life.dead_after * 2;
    talk.script.run(format!("silent a {end:x}"));
    for step in [
        "post a put 0 0 0 8 1 0 0 0",
        "send a 1 00",
        "notification a",
        "notification a",
        "notification a",
        "deadline a",
    ] {
        talk.script.run(step);
    }
}

pub(crate) fn script(s: &mut Script) {
    operations(s, "link");
    loss(s);
    early(s);
    death(s);
    rings(s);
    operations(s, "lanes");
}
