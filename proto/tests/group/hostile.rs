//! Any bytes as what liars say to members of a group: what the fuzzer and the tests with random
//! bytes share.
use super::script::Script;
use super::world::{World, members};
use ayre_proto::group::{Message, Options, View};

/// Bounds that are soon met.
pub(crate) const OPTIONS: Options = Options { window: 4, requests: 2 };
const MEMBERS: u8 = 5;
/// Kinds of messages.
const KINDS: u8 = 18;
/// The words of each, in front of a payload or of seats.
const WORDS: [u8; KINDS as usize] = [1, 2, 2, 1, 5, 2, 1, 1, 0, 1, 4, 5, 1, 0, 0, 0, 0, 0];

/// Five members, and a sixth process; member 1 has two children, 3 and 4. Some messages are there.
pub(crate) fn group() -> World {
    let mut world = members(MEMBERS.into(), 6, OPTIONS);
    for at in [0, 1, 2, 1] {
        world.multicast(at).expect("there is room");
        world.settle();
    }
    // From here on they are lied to.
    world.checks = false;
    world
}

/// For any input of any sender, a member goes on or refuses; a refused message changes nothing.
/// Returns the number of refused messages.
pub(crate) fn play(bytes: &[u8]) -> u32 {
    let mut script = Script(bytes);
    let mut world = group();
    let mut refused = 0;
    while !script.is_over() {
        let (what, at) = (script.below(16), usize::from(script.below(MEMBERS)));
        match what {
            0 | 1 => drop(world.multicast(at)),
            2 => world.leave(at),
            3 => {
                // Nobody is told that it is dead itself.
                let who = usize::from(script.below(MEMBERS));
                if who != at {
                    world.lose(at, who);
                }
            }
            _ => {
                let have = world.group(at).expect("a member").have();
                let message = message(&mut script, have);
                refused += u32::from(say(&mut world, at, script.below(MEMBERS + 2), &message));
            }
        }
    }
    refused
}

/// Says something to a member, and whether it was refused there.
fn say(world: &mut World, to: usize, from: u8, bytes: &[u8]) -> bool {
    let mut view = View::default();
    let Ok((group, message)) = Message::parse(bytes, &mut view, <[u8]>::to_vec) else {
        return false;
    };
    let (head, payload) = message.encode(group);
    let written = [&head[..], payload.map_or(&[][..], |payload| payload)].concat();
    assert_eq!(written, bytes, "one way to say it");
    let (_, message) = Message::parse(bytes, &mut view, |_| 0_u64).expect("it was read before");
    let (said, is_same) = world.offer(from.into(), to, message);
    assert!(said.is_ok() || is_same, "it has changed something");
    said.is_err()
}

/// Any bytes, or a message with numbers that are near those that are due.
fn message(script: &mut Script<'_>, have: u64) -> Vec<u8> {
    let kind = script.below(KINDS + 2);
    let Some(words) = kind.checked_sub(1).and_then(|at| WORDS.get(usize::from(at))) else {
        return script.bytes(255);
    };
    let mut bytes = vec![0, 0, 0, 0, kind, 0, 0, 0];
    for at in 0..*words {
        let near = match (kind, at) {
            (5, 0) | (6, 0) | (7 | 13, _) | (12, 1) => 5,
            (5 | 11, 4 | 3) | (2..=4, _) | (12, 2..) => 2,
            (1, _) => u64::from(OPTIONS.window) | u64::from(OPTIONS.requests) << 16,
            _ => have,
        };
        bytes.extend(script.word(near).to_le_bytes());
    }
    match kind {
        2 | 5 | 11 | 16 => bytes.extend(script.bytes(9)),
        12 => {
            for _ in 0..script.below(7) {
                bytes.extend(u32::from(script.below(7)).to_le_bytes());
                bytes.extend(script.word(2).to_le_bytes());
            }
        }
        _ => {}
    }
    bytes
}
