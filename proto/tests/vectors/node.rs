//! Vectors of whole nodes: operations, frames, records and time in; effects out.
mod program;
mod talks;

use super::frame::{crc, from_hex, hex};
use super::names::{KINDS, OPERATIONS, fault, value};
use super::plain_memory::{Heap, frames};
use super::script::{Fields, Machine};
use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::execute::{Action, Command};
use ayre_proto::lane::Malformed;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header};
use ayre_proto::link::looks::Looks;
use ayre_proto::node::connection::Lines;
use ayre_proto::node::effects::{Host, LaneName, WordName};
use ayre_proto::node::initiator::Refused;
use ayre_proto::node::lane::Entry;
use ayre_proto::node::linked::Linked;
use ayre_proto::node::peer::Message;
use ayre_proto::node::{Node, Order, PostError};
use ayre_proto::notify::{Classes, Operation};
use ayre_proto::segment::Shape;
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use program::{Log, Program, Wire};
pub(crate) use talks::script;

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
