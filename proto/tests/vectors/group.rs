//! Vectors of what members of groups tell each other.
use super::frame::{from_hex, hex};
use super::script::{Fields, Machine, Script};
use ayre_proto::group::{Label, Member, Message, Options, Seat, Standing, View, What};

pub(crate) const HEADER: &str = "\
What members of groups tell each other (proto/src/group/message.rs, spec/48). Numbers are
hexadecimal, BYTES two digits each in the order in which they travel, or `-` for none.

encode GROUP MESSAGE -> BYTES       a view is said by its bytes only
parse BYTES -> GROUP MESSAGE        or malformed; what is read is said by the same bytes
MESSAGE is one of
  join WINDOW REQUESTS
  request NUMBER ORIGIN BYTES       a message; joins NUMBER WHO and leaves NUMBER: a change
  tree VIEW STABLE LABEL BYTES
  ack VIEW TICKET
  stop VIEW
  have TICKET
  seek
  fetch AFTER
  fill STABLE LABEL BYTES
  view TICKET NUMBER BRANCHES SEATS each MEMBER:ORDERED, behind it + of who joins, - of who leaves
  go VIEW
  gone, out, done, refused
  ask BYTES
LABEL is TICKET NUMBER SENDER ORIGIN";

struct Format;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Format)
}

fn label(label: &Label) -> String {
    let Label { ticket, number, sender, origin } = label;
    format!("{ticket:x} {number:x} {:x} {:x}", sender.0, origin.0)
}

fn seat(Seat { member, standing, ordered }: &Seat) -> String {
    let sign = match standing {
        Standing::Stays => "",
        Standing::Joins => "+",
        Standing::Leaves => "-",
    };
    format!("{:x}:{ordered:x}{sign}", member.0)
}

fn show(message: &Message<'_, Vec<u8>>) -> String {
    match message {
        Message::Join(Options { window, requests }) => format!("join {window:x} {requests:x}"),
        Message::Request { number, what } => match what {
            What::Message(origin, payload) => {
                format!("request {number:x} {:x} {}", origin.0, hex(payload))
            }
            What::Join(who) => format!("joins {number:x} {:x}", who.0),
            What::Leave => format!("leaves {number:x}"),
        },
        Message::Tree { view, stable, label: of, payload } => {
            format!("tree {view:x} {stable:x} {} {}", label(of), hex(payload))
        }
        Message::Ack { view, ticket } => format!("ack {view:x} {ticket:x}"),
        Message::Stop { view } => format!("stop {view:x}"),
        Message::Have { ticket } => format!("have {ticket:x}"),
        Message::Seek => "seek".to_owned(),
        Message::Fetch { after } => format!("fetch {after:x}"),
        Message::Fill { stable, label: of, payload } => {
            format!("fill {stable:x} {} {}", label(of), hex(payload))
        }
        Message::View { ticket, view } => {
            let seats: Vec<_> = view.seats().iter().map(seat).collect();
            let (number, branches) = (view.number(), view.branches());
            format!("view {ticket:x} {number:x} {branches:x} {}", seats.join(" "))
        }
        Message::Go { view } => format!("go {view:x}"),
        Message::Gone => "gone".to_owned(),
        Message::Out => "out".to_owned(),
        Message::Ask { payload } => format!("ask {}", hex(payload)),
        Message::Done => "done".to_owned(),
        Message::Refused => "refused".to_owned(),
    }
}

fn read(fields: &mut Fields<'_>) -> Message<'static, Vec<u8>> {
    let payload = |fields: &mut Fields<'_>| from_hex(fields.text());
    let label = |fields: &mut Fields<'_>| Label {
        ticket: fields.number(),
        number: fields.number(),
        sender: Member(fields.number()),
        origin: Member(fields.number()),
    };
    let request = |number, what| Message::Request { number, what };
    match fields.text() {
        "join" => Message::Join(Options { window: fields.number(), requests: fields.number() }),
        "request" => {
            request(fields.number(), What::Message(Member(fields.number()), payload(fields)))
        }
        "joins" => request(fields.number(), What::Join(Member(fields.number()))),
        "leaves" => request(fields.number(), What::Leave),
        "tree" => Message::Tree {
            view: fields.number(),
            stable: fields.number(),
            label: label(fields),
            payload: payload(fields),
        },
        "ack" => Message::Ack { view: fields.number(), ticket: fields.number() },
        "stop" => Message::Stop { view: fields.number() },
        "have" => Message::Have { ticket: fields.number() },
        "seek" => Message::Seek,
        "fetch" => Message::Fetch { after: fields.number() },
        "fill" => Message::Fill {
            stable: fields.number(),
            label: label(fields),
            payload: payload(fields),
        },
        "go" => Message::Go { view: fields.number() },
        "gone" => Message::Gone,
        "out" => Message::Out,
        "ask" => Message::Ask { payload: payload(fields) },
        "done" => Message::Done,
        "refused" => Message::Refused,
        other => panic!("{other} is no message that can be written"),
    }
}

fn bytes_of(group: u32, message: &Message<'_, Vec<u8>>) -> Vec<u8> {
    let (head, payload) = message.encode(group);
    [&head[..], payload.map_or(&[][..], |payload| payload)].concat()
}

impl Machine for Format {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        match step {
            "encode" => {
                let group = inputs.number();
                hex(&bytes_of(group, &read(inputs)))
            }
            "parse" => {
                let bytes = from_hex(inputs.text());
                let mut view = View::default();
                match Message::parse(&bytes, &mut view, <[u8]>::to_vec) {
                    Ok((group, message)) => {
                        assert_eq!(bytes_of(group, &message), bytes, "one way to say it");
                        format!("{group:x} {}", show(&message))
                    }
                    Err(_) => "malformed".to_owned(),
                }
            }
            _ => panic!("{step} is no step of a message"),
        }
    }
}

const MESSAGES: &[&str] = &[
    "join 40 8",
    "join 1 ffff",
    "request 7 6 aabb",
    "request 7fffffffffffffff ffffffff -",
    "joins 7 8",
    "leaves 7",
    "tree 2 4 9 3 5 6 aabbcc",
    "tree 2 4 9 3 ffffffff 0 -",
    "ack 2 9",
    "stop 2",
    "have 9",
    "seek",
    "fetch 9",
    "fill 4 9 3 5 6 aabb",
    "go 2",
    "gone",
    "out",
    "ask 00112233",
    "ask -",
    "done",
    "refused",
];

/// A message's bytes: its kind, its words, and what comes behind them.
fn raw(kind: u64, words: &[u64], rest: &[u8]) -> String {
    let mut bytes = 0x0403_0201_u32.to_le_bytes().to_vec();
    bytes.extend((kind as u32).to_le_bytes());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    hex(&[&bytes[..], rest].concat())
}

/// Seats: members with the numbers that were ordered of them.
fn seats(seats: &[(u32, u64)]) -> Vec<u8> {
    let of = |(member, ordered): &(u32, u64)| {
        [&member.to_le_bytes()[..], &ordered.to_le_bytes()].concat()
    };
    seats.iter().flat_map(of).collect()
}

pub(crate) fn script(s: &mut Script) {
    s.section("every message");
    for message in MESSAGES {
        let bytes = s.run(format!("encode 1020304 {message}"));
        s.run(format!("parse {bytes}"));
        if bytes.len() > 2 {
            s.run(format!("parse {}", &bytes[..bytes.len() - 2]));
        }
        s.run(format!("parse {bytes}00"));
    }
    s.section("bounds that a member cannot have");
    for word in [0, 0x40, 8 << 16, 1 << 32 | 8 << 16 | 0x40] {
        s.run(format!("parse {}", raw(1, &[word], &[])));
    }
    views(s);
    s.section("counts stay below 2^63, names below 2^32");
    for (kind, words) in [(6, 2), (7, 1), (8, 1), (10, 1), (13, 1), (4, 1), (3, 2), (2, 2)] {
        for at in 0..words {
            let mut all = vec![1; words];
            all[at] = 1 << 63;
            s.run(format!("parse {}", raw(kind, &all, &[])));
            all[at] = 1 << 32;
            s.run(format!("parse {}", raw(kind, &all, &[])));
        }
    }
    s.section("any words, of each kind");
    for kind in 0..21 {
        for _ in 0..4 {
            let words: Vec<_> = (0..s.random.below(6)).map(|_| s.random.edge()).collect();
            s.run(format!("parse {}", raw(kind, &words, &[])));
        }
    }
    for kind in [0x100, 0x101, 1 << 31] {
        s.run(format!("parse {}", raw(kind, &[], &[])));
    }
    s.run("parse -");
}

fn views(s: &mut Script) {
    s.section("views, and what is none");
    let four = seats(&[(1, 0xa), (2, 0x14), (3, 0x1e), (9, 0)]);
    let fresh = seats(&[(1, 0), (2, 0), (3, 0), (9, 0)]);
    for words in [[0b0010, 0b1000, 2], [0, 0, 1], [0b1111, 0, 0x40], [0, 0b1100, 2]] {
        for seats in [&four, &fresh] {
            s.run(format!("parse {}", raw(12, &[&[0x4d, 6][..], &words].concat(), seats)));
        }
    }
    for words in [[0, 0b0100, 2], [0b1000, 0b1000, 2], [0x10, 0, 2], [0, 0x18, 2], [0, 0xf, 2]] {
        s.run(format!("parse {}", raw(12, &[&[0x4d, 6][..], &words].concat(), &fresh)));
    }
    for (ticket, number, branches) in [(0, 0, 0), (0, 0, 0x41), (1 << 63, 0, 2), (0, 1 << 63, 2)] {
        s.run(format!("parse {}", raw(12, &[ticket, number, 0, 0, branches], &four)));
    }
    let most: Vec<_> = (0..65).map(|member| (member, 1)).collect();
    for some in [&most[..0], &most[..64], &most[..], &[(1, 1 << 63)], &[(1, 2), (2, 2), (1, 3)]] {
        s.run(format!("parse {}", raw(12, &[1, 2, 0, 0, 2], &seats(some))));
    }
    s.run(format!("parse {}", raw(12, &[1, 2, u64::MAX, 0, 2], &seats(&most[..64]))));
    s.run(format!("parse {}", raw(12, &[1, 2, 0, 0, 2], &four[..18])));
}
