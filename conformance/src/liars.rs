//! Messengers whose other end is none: it says what it likes, or takes nothing.
use crate::messenger::{Active, Call, Groups, Messengers, Multicast, MulticastOptions};
use crate::port::{Options, Port, RegionOptions, RemoteRegion};
use crate::seed::Dice;
use crate::world::{ROUNDS, World, insist};
use ayre::active::{Handler, id_of};
use ayre::{Fault, PeerId, PostError, Rights};
use std::thread::yield_now;

/// The runs of a handler: arguments and payload.
type Seen = Vec<(Vec<u64>, Vec<u8>)>;

fn keep<const N: usize>(seen: &mut Seen, _: &mut dyn Call, arguments: [u64; N], payload: &[u8]) {
    seen.push((arguments.to_vec(), payload.to_vec()));
}

/// A long call to who takes nothing ends with his death.
// spec: AM-11
pub fn a_long_call_ends_with_its_peer<F: Messengers>(fabric: F) {
    let world = World::open(fabric);
    let (near_id, far_id) = (world.initiator_id(), world.target_id());
    let (near, mut far) = world.split();
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || {
            let mut near = F::Messenger::<Seen>::new(near);
            let handler = Handler::<0>::named("nobody's");
            near.call(&mut vec![], far_id, handler, [], &vec![1; 1 << 20])
        });
        if fabric.traits().pulls {
            expect_record(&mut far, 16);
            insist(&mut far, |port| port.send(near_id, 17, &0_u64.to_le_bytes()));
        }
        expect_record(&mut far, 5);
        let region = far.alloc(1 << 12, RegionOptions::new()).expect("memory is there");
        let rights = Rights::WRITE;
        far.share(near_id, &region, 0..1 << 12, rights, 0x6179_7265_0000_0001).expect("a grant");
        insist(&mut far, |port| port.send(near_id, 6, &4096_u64.to_le_bytes()));
        expect_record(&mut far, 2);
        drop(far);
        let ended = calling.join().expect("it does not panic");
        assert_eq!(ended, Err(Fault::PeerDead));
    });
}

/// Waits for a record of this tag.
fn expect_record(port: &mut impl Port, tag: u32) {
    for _ in 0..ROUNDS {
        if let Ok(Some(message)) = port.try_recv(&mut [0; 1024])
            && message.tag == tag
        {
            return;
        }
        port.progress();
        yield_now();
    }
    panic!("no record {tag} has come");
}

/// Whether a messenger takes no more from a peer, sooner or later.
fn is_cut_off<M: Active<Seen>>(
    far: &mut M,
    seen: &mut Seen,
    (liar, near_id): (&mut M::Port, PeerId),
) -> bool {
    (0..ROUNDS).any(|_| {
        far.poll(seen);
        liar.progress();
        yield_now();
        !far.port().is_alive(near_id)
    })
}

/// A peer that breaks the protocol is disconnected, and no memory changes.
// spec: AM-15
pub fn peers_that_break_the_message_protocol_are_disconnected<F: Messengers>(fabric: F) {
    let lies: [(u32, &[u64]); 14] = [
        (0, &[0]),
        (1, &[1 << 40, 0, 0]),
        (1, &[300, 0]),
        (2, &[300, 5000, 1000, 1]),
        (2, &[3]),
        (3, &[100]),
        (4, &[100]),
        (5, &[1]),
        (5, &[0, 0]),
        (6, &[4096]),
        (7, &[300, 9]),
        (8, &[7]),
        (9, &[15]),
        (10, &[0]),
    ];
    for (tag, words) in lies {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let mut far = F::Messenger::<Seen>::new(far);
        let mut seen = vec![];
        let lie: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        insist(&mut liar, |port| port.send(far_id, tag, &lie));
        assert!(is_cut_off(&mut far, &mut seen, (&mut liar, near_id)), "{tag} {words:?}");
        assert!(seen.is_empty());
    }
}

/// A peer that lies about groups is disconnected. It takes portions that were never sent, sends
/// more than there is room for, or names too many groups or one of which it is no member.
// spec: COLL-11, COLL-14
pub fn a_peer_that_breaks_the_group_protocol_is_disconnected<F: Messengers>(fabric: F) {
    let portion = |group: u32, taken: u64| (10, [u64::from(group) | 1 << 32, taken << 32]);
    let alone = id_of("alone");
    let lies: [Vec<(u32, [u64; 2])>; 6] = [
        vec![portion(7, 1)],
        vec![portion(7, 0); 65],
        (1..=17).map(|group| portion(group, 0)).collect(),
        vec![portion(alone, 0)],
        vec![portion(7, 0), (11, [7, 5])],
        vec![(12, [1 << 40, 0])],
    ];
    for records in lies {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let mut far = F::Messenger::<Seen>::new(far);
        let group = far.group("alone", &[far_id]).expect("of its own");
        let mut seen = vec![];
        let last = records.len() - 1;
        for (number, (tag, words)) in records.into_iter().enumerate() {
            assert!(far.port().is_alive(near_id), "{number} of {last}");
            let record: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            insist(&mut liar, |port| {
                far.poll(&mut seen);
                port.send(far_id, tag, &record)
            });
        }
        assert!(is_cut_off(&mut far, &mut seen, (&mut liar, near_id)));
        far.barrier(&mut seen, group).expect("it needs nobody");
    }
}

/// A record of a member of a group: its name and the other one's, the group, a kind, and words.
fn said([from, to]: [u32; 2], group: u32, kind: u32, words: &[u64]) -> Vec<u8> {
    let head = [from, to, group, kind].into_iter().flat_map(u32::to_le_bytes);
    head.chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// A peer that speaks for another member, or sends malformed records, is disconnected. One that
/// speaks to no member gets an error, or no answer.
// spec: GRP-4, GRP-21, GRP-22, GRP-23
pub fn a_member_that_forges_multicast_records_is_disconnected<F: Messengers>(fabric: F) {
    let group = id_of("group");
    let bounds = 8 << 16 | 64;
    for number in 0..9 {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let mut far = F::Messenger::<Seen>::new(far);
        let mut seen = vec![];
        far.found("group", MulticastOptions::new(), |_, _| ()).expect("a new name");
        let (me, door) = (u32::from(near_id.0) | 7 << 10, u32::from(far_id.0));
        let (lie, is_lie) = match number {
            0 => (said([me + 1, door], group, 1, &[bounds]), true),
            1 => (said([me, door + 1], group, 1, &[bounds]), true),
            2 => (said([me, door], group, 1, &[0]), true),
            3 => (said([me, door], group, 77, &[]), true),
            4 => (said([me, door], group, 17, &[]), true),
            5 => (said([me, door], group, 1, &[])[..12].to_vec(), true),
            6 => (said([me, door], group + 1, 1, &[bounds]), false),
            7 => (said([me, door | 99 << 10], group, 5, &[1, 0, 1, 1, 0]), false),
            _ => (said([me, door], group, 5, &[1, 0, 1, 1, 0]), false),
        };
        insist(&mut liar, |port| port.send(far_id, 13, &lie));
        if is_lie {
            assert!(is_cut_off(&mut far, &mut seen, (&mut liar, near_id)), "{number}");
            continue;
        }
        let mut answer = [0; 64];
        // Who asks to join is turned away; who seems to think that it is a member is told, too.
        let is_answered = number != 7;
        let rounds = if is_answered { ROUNDS } else { 200 };
        let answered = (0..rounds).find_map(|_| {
            far.poll(&mut seen);
            yield_now();
            liar.try_recv(&mut answer).expect("it is short")
        });
        assert_eq!(answered.is_some(), is_answered, "{number}");
        assert!(answered.is_none_or(|answer| answer.tag == 13));
        assert!(far.port().is_alive(near_id));
    }
}

/// Records of any kind, most of them nearly right: nothing panics, nothing is written where a
/// landing is not, and the far end can be used by others afterwards.
// spec: AM-15, AM-7
pub fn arbitrary_records_cause_no_panic_and_no_stray_write<F: Messengers>(fabric: F) {
    let mut dice = Dice::new(48);
    for _ in 0..60 {
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let mut far = F::Messenger::<Seen>::new(far);
        far.register::<1>("one", keep::<1>).expect("a new name");
        let mut seen = vec![];
        for _ in 0..30 {
            let (tag, record) = any_record(&mut dice);
            match liar.send(far_id, tag, &record) {
                Ok(()) | Err(PostError::Busy(_)) => {}
                Err(PostError::Fault(_)) => break,
            }
            for _ in 0..dice.below(20) {
                far.poll(&mut seen);
                liar.progress();
            }
            while let Ok(Some(_)) = liar.try_recv(&mut [0; 1024]) {}
        }
        for _ in 0..1000 {
            far.poll(&mut seen);
        }
        for (arguments, payload) in &seen {
            assert!(arguments.len() == 1 && payload.len() <= 1 << 17);
        }
        far.failures().for_each(|failed| assert_eq!(failed.peer, near_id));
        let two = far.register::<2>("two", keep::<2>);
        assert!(two.is_ok());
    }
}

/// A tag and bytes: of a record or of a message, with numbers that are small, exact, or wild.
fn any_record(dice: &mut Dice) -> (u32, Vec<u8>) {
    let id = Handler::<1>::named("one").id();
    let tag = match dice.below(8) {
        0 => id,
        1 => dice.below(300) as u32,
        _ => 1 + dice.below(19) as u32,
    };
    let words = 1 + dice.below(4);
    let mut bytes = vec![];
    for _ in 0..words {
        let word = match dice.below(7) {
            0 => u64::from(id),
            // As a message by a channel, or a part of one, begins.
            1 => u64::from(id) << 32 | dice.below(2) << 8 | dice.below(4),
            2 => dice.below(6),
            3 => 1 << dice.below(64),
            4 => 1 << 17,
            _ => dice.below(5000),
        };
        bytes.extend(word.to_le_bytes());
    }
    if tag == 1 {
        bytes.truncate(16);
        bytes.extend(b"one");
    }
    if dice.below(6) == 0 {
        bytes.truncate(1 + dice.index(bytes.len()));
    }
    (tag, bytes)
}

/// A region of the right to write is all that a landing is.
// spec: AM-12, LIM-4
pub fn a_landing_is_for_writing<F: Messengers>(fabric: F) {
    let world = World::open(fabric);
    let (near_id, far_id) = (world.initiator_id(), world.target_id());
    let (mut near, far) = world.split();
    let mut far = F::Messenger::<Seen>::new(far);
    let mut seen = vec![];
    insist(&mut near, |port| port.send(far_id, 5, &[0; 8]));
    let mut record = [0; 64];
    let mut found = None;
    for _ in 0..ROUNDS {
        far.poll(&mut seen);
        if let Ok(Some(message)) = near.try_recv(&mut record) {
            found = Some((message.tag, message.len));
            break;
        }
        yield_now();
    }
    assert_eq!(found, Some((6, 8)));
    let bytes = u64::from_le_bytes(record[..8].try_into().expect("eight")) as usize;
    assert!(bytes.is_power_of_two() && (1 << 20..=1 << 22).contains(&bytes), "{bytes}");
    let landing = near.accept_region(far_id, 0x6179_7265_0000_0001).expect("it is handed over");
    assert_eq!((landing.len() as usize, landing.rights()), (bytes, Rights::WRITE));
    let mut into = [0; 8];
    let read = near.get(&landing, 0, &mut into, Options::new());
    assert_eq!(read.map(drop), Err(Fault::Rights.into()));
    assert!(far.port().is_alive(near_id));
}
