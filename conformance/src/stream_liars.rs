//! Peers that lie about streams, or take no answers.
use crate::messenger::{Active, Messengers};
use crate::port::Port;
use crate::streams::{DONE, SINK, Seen, member};
use crate::world::{ROUNDS, World, insist};
use std::thread::yield_now;

/// Tags and bytes.
type Records = Vec<(u32, Vec<u8>)>;

/// A peer that breaks the protocol of streams is disconnected; items that may have crossed a stop
/// are dropped.
// spec: PIPE-17, PIPE-18
pub fn a_peer_that_breaks_the_stream_protocol_is_disconnected<F: Messengers>(fabric: F) {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let open = [&words(&[1, 5, SINK.id(), 0])[..], &[0; 32]].concat();
    let item = || (14, words(&[5, 1]));
    let lies: [(bool, Records); 8] = [
        (false, vec![item(), (15, words(&[3, 5, 0, 0]))]),
        (false, vec![(15, open.clone()), item()]),
        (true, vec![(15, open.clone()), (15, open)]),
        (true, vec![(14, vec![1, 2, 3])]),
        (true, vec![(15, vec![0])]),
        (true, vec![(15, words(&[2, 5, 1]))]),
        (true, vec![(15, words(&[4, 5, 0, 0]))]),
        (true, vec![(15, words(&[7, 0, 0]))]),
    ];
    for (is_lie, mut records) in lies {
        if !is_lie {
            records.push((9, u64::from(DONE.id()).to_le_bytes().to_vec()));
        }
        let world = World::open(fabric);
        let (near_id, far_id) = (world.initiator_id(), world.target_id());
        let (mut liar, far) = world.split();
        let (mut far, mut seen) = (member::<F>(far), Seen::default());
        for (tag, record) in &records {
            insist(&mut liar, |port| {
                far.poll(&mut seen);
                port.send(far_id, *tag, record)
            });
        }
        for _ in 0..ROUNDS {
            if !far.port().is_alive(near_id) || seen.done > 0 {
                break;
            }
            far.poll(&mut seen);
            liar.progress();
            yield_now();
        }
        assert_ne!(far.port().is_alive(near_id), is_lie, "{records:?}");
    }
}

/// A peer that asks without end, and reads no answer, is disconnected before the answers grow
/// without end.
// spec: PIPE-17
pub fn a_peer_that_asks_without_end_and_reads_no_answer_is_disconnected<F: Messengers>(fabric: F) {
    let world = World::open(fabric);
    let (near_id, far_id) = (world.initiator_id(), world.target_id());
    let (mut liar, far) = world.split();
    let (mut far, mut seen) = (member::<F>(far), Seen::default());
    let clear: Vec<u8> = [6, 0, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let mut asked = 0;
    for _ in 0..ROUNDS {
        if !far.port().is_alive(near_id) {
            break;
        }
        // It does not even receive what lies in its lane.
        if liar.send(far_id, 15, &clear).is_ok() {
            asked += 1;
        } else {
            yield_now();
        }
        far.poll(&mut seen);
        liar.progress();
    }
    assert!(!far.port().is_alive(near_id), "{asked} questions");
    assert!((16_384..30_000).contains(&asked), "{asked} questions");
}
