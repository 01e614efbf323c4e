//! The bytes of messages.
use super::dice::Dice;
use ayre_proto::group::{Label, MESSAGE_BYTES, Member, Message, Options, View, What};
use ayre_proto::lane::Malformed;

const GROUP: u32 = 0x0403_0201;

fn bytes_of(message: &Message<'_, Vec<u8>>) -> Vec<u8> {
    let (head, payload) = message.encode(GROUP);
    [&head[..], payload.map_or(&[][..], |payload| &payload[..])].concat()
}

fn parse<'a>(bytes: &[u8], view: &'a mut View) -> Result<(u32, Message<'a, Vec<u8>>), Malformed> {
    Message::parse(bytes, view, <[u8]>::to_vec)
}

/// Words of the head, behind group and kind.
fn head(kind: u8, words: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 2, 3, 4, kind, 0, 0, 0];
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(rest);
    bytes
}

/// Members with the numbers that were ordered of them.
fn seats(seats: &[(u32, u64)]) -> Vec<u8> {
    let seat = |(member, ordered): &(u32, u64)| {
        [&member.to_le_bytes()[..], &ordered.to_le_bytes()[..]].concat()
    };
    seats.iter().flat_map(seat).collect()
}

// spec: GRP-21
#[test]
fn every_message_has_its_bytes() {
    let label = Label { ticket: 9, number: 3, sender: Member(5), origin: Member(6) };
    let (who, payload) = (5 | 6 << 32, vec![0xaa, 0xbb]);
    let cases: Vec<(Message<'_, Vec<u8>>, Vec<u8>, bool)> = vec![
        (Message::Join(Options::default()), head(1, &[8 << 16 | 64], &[]), false),
        (
            Message::Request { number: 7, what: What::Message(Member(6), payload.clone()) },
            head(2, &[7, 6], &payload),
            true,
        ),
        (Message::Request { number: 7, what: What::Join(Member(8)) }, head(3, &[7, 8], &[]), false),
        (Message::Request { number: 7, what: What::Leave }, head(4, &[7], &[]), false),
        (
            Message::Tree { view: 2, stable: 4, label, payload: payload.clone() },
            head(5, &[2, 4, 9, 3, who], &payload),
            true,
        ),
        (Message::Ack { view: 2, ticket: 9 }, head(6, &[2, 9], &[]), false),
        (Message::Stop { view: 2 }, head(7, &[2], &[]), false),
        (Message::Have { ticket: 9 }, head(8, &[9], &[]), false),
        (Message::Seek, head(9, &[], &[]), false),
        (Message::Fetch { after: 9 }, head(10, &[9], &[]), false),
        (
            Message::Fill { stable: 4, label, payload: payload.clone() },
            head(11, &[4, 9, 3, who], &payload),
            true,
        ),
        (Message::Go { view: 2 }, head(13, &[2], &[]), false),
        (Message::Gone, head(14, &[], &[]), false),
        (Message::Out, head(15, &[], &[]), false),
        (Message::Ask { payload: payload.clone() }, head(16, &[], &payload), true),
        (Message::Done, head(17, &[], &[]), false),
        (Message::Refused, head(18, &[], &[]), false),
    ];
    for (message, bytes, has_payload) in cases {
        assert_eq!(bytes_of(&message), bytes, "{message:?}");
        let mut view = View::default();
        assert_eq!(parse(&bytes, &mut view), Ok((GROUP, message.clone())));
        let whole = bytes.len() - if has_payload { payload.len() } else { 0 };
        assert_eq!(parse(&bytes[..whole - 1], &mut View::default()), Err(Malformed), "{message:?}");
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(parse(&longer, &mut View::default()).is_ok(), has_payload, "{message:?}");
    }
}

// spec: GRP-2, GRP-21
#[test]
fn a_view_has_its_bytes() {
    let some = seats(&[(1, 10), (2, 20), (3, 30), (9, 0)]);
    let bytes = head(12, &[77, 6, 0b0010, 0b1000, 2], &some);
    assert_eq!(
        bytes[24..64],
        [
            2, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 10,
            0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0
        ]
    );
    let mut view = View::default();
    let (_, message) = parse(&bytes, &mut view).expect("a good view");
    assert_eq!(bytes_of(&message), bytes);
    let Message::View { ticket: 77, view } = message else { panic!("{message:?}") };
    assert_eq!(view.number(), 6);
    assert_eq!(view.members().collect::<Vec<_>>(), [1, 3, 9].map(Member));

    let all: Vec<_> = (0..65).map(|member| (member, 1)).collect();
    let most = head(12, &[77, 6, u64::MAX, 0, 2], &seats(&all[..64]));
    assert!(parse(&most, &mut View::default()).is_ok());
    assert!(most.len() <= MESSAGE_BYTES);
    let bad = [
        ("no window", head(1, &[8 << 16], &[])),
        ("no requests", head(1, &[64], &[])),
        ("more than bounds", head(1, &[1 << 32 | 8 << 16 | 64], &[])),
        ("no branches", head(12, &[77, 6, 0, 0, 0], &some)),
        ("too many branches", head(12, &[77, 6, 0, 0, 65], &some)),
        ("no seats", head(12, &[77, 6, 0, 0, 2], &[])),
        ("too many", head(12, &[77, 6, 0, 0, 2], &seats(&all))),
        ("half a seat", head(12, &[77, 6, 0, 0, 2], &some[..18])),
        ("leaves without a seat", head(12, &[77, 6, 0b1_0000, 0, 2], &some)),
        ("joins without a seat", head(12, &[77, 6, 0, 0b1_1000, 2], &some)),
        ("leaves and joins", head(12, &[77, 6, 0b1000, 0b1000, 2], &some)),
        (
            "not the last",
            head(12, &[77, 6, 0, 0b0100, 2], &seats(&[(1, 0), (2, 0), (3, 0), (4, 0)])),
        ),
        (
            "has ordered",
            head(12, &[77, 6, 0, 0b1000, 2], &seats(&[(1, 0), (2, 0), (3, 0), (4, 1)])),
        ),
        ("twice", head(12, &[77, 6, 0, 0, 2], &seats(&[(1, 10), (2, 20), (1, 10)]))),
        ("beyond counts", head(12, &[77, 1 << 63, 0, 0, 2], &some)),
        ("ordered beyond counts", head(12, &[77, 6, 0, 0, 2], &seats(&[(1, 1 << 63)]))),
    ];
    for (why, bytes) in bad {
        assert_eq!(parse(&bytes, &mut View::default()), Err(Malformed), "{why}");
    }
}

// spec: GRP-21
#[test]
fn any_bytes_are_one_message_or_none() {
    let mut dice = Dice(1);
    let mut read = 0;
    for _ in 0..200_000 {
        let len = dice.below(120) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| dice.word() as u8).collect();
        if dice.percent(90) && len > 8 {
            (bytes[4], bytes[5], bytes[6], bytes[7]) = (dice.below(20) as u8, 0, 0, 0);
            for word in bytes[8..].chunks_mut(8).take(5) {
                let small = dice.below(8).to_le_bytes();
                word.copy_from_slice(&small[..word.len()]);
            }
        }
        let mut view = View::default();
        if let Ok((group, message)) = parse(&bytes, &mut view) {
            let (head, payload) = message.encode(group);
            let written = [&head[..], payload.map_or(&[][..], |payload| &payload[..])].concat();
            assert_eq!(written, bytes);
            read += 1;
        }
    }
    assert!(read > 10_000, "most bytes are refused: {read}");
}
