//! Methods of moving many bytes: all give the same, whatever the cut-offs say.
use ayre::active::{DropCause, Handler, Messenger};
use ayre::tuning::{Method, Step, Tuning, Use};
use ayre::{Config, PeerId, Port, PostOptions, RegionOptions, Rights};
use std::thread::yield_now;

/// Each use by its other method from this number of bytes on.
fn tuned(from: u64) -> Tuning {
    let step = |method| vec![Step { from, method }];
    let tuning = Tuning::new().with_steps(Use::Put, step(Method::Streaming));
    let tuning = tuning.unwrap().with_steps(Use::Get, step(Method::Streaming));
    tuning.unwrap().with_steps(Use::Message, step(Method::Kernel)).unwrap()
}

fn pair(tuning: &Tuning) -> (Port, Port) {
    let config = |number| Config::new().number(number).tuning(tuning.clone());
    Port::pair(config(0), config(1)).unwrap()
}

const NEAR: PeerId = PeerId(0);
const FAR: PeerId = PeerId(1);

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 256 + seed * 7) as u8).collect()
}

// spec: INJ-1, INJ-2
#[test]
fn puts_and_gets_are_the_same_by_every_method() {
    let size = 1 << 20;
    for tuning in [Tuning::new(), tuned(0), tuned(4096)] {
        let (mut near, mut far) = pair(&tuning);
        let region = far.alloc(size, RegionOptions::new()).unwrap();
        let _grant = far.share(NEAR, &region, 0..size, Rights::all(), 5).unwrap();
        let remote = near.accept_region(FAR, 5).unwrap();
        let lens = [0, 1, 8, 63, 64, 511, 512, 513, 4095, 4096, 4097, 65_536, 1_000_003];
        for (seed, len) in lens.into_iter().enumerate() {
            for at in [0, 1, 15, 16, 48, 1000] {
                let sent = bytes(len, seed + at);
                region.write(0, &vec![0xee; size]);
                near.put(&remote, at as u64, &sent[..], PostOptions::new()).unwrap();
                let mut whole = vec![0; size];
                region.read(0, &mut whole);
                assert!(whole[at..at + len] == sent, "put {len} at {at}");
                let around = whole[..at].iter().chain(&whole[at + len..]);
                assert!(around.into_iter().all(|byte| *byte == 0xee), "put {len} at {at}");
                let mut got = vec![0; len];
                near.get(&remote, at as u64, &mut got[..], PostOptions::new()).unwrap();
                assert!(got == sent, "get {len} at {at}");
            }
        }
    }
}

/// The runs of a handler.
type Seen = Vec<(u64, Vec<u8>)>;

fn messenger(port: Port) -> (Messenger<Seen>, Handler<1>) {
    let mut messenger = Messenger::new(port);
    let keep = messenger.register("keep", |seen: &mut Seen, _, [number], payload| {
        seen.push((number, payload.to_vec()));
    });
    (messenger, keep.unwrap())
}

// spec: INJ-1, INJ-6, INJ-7
#[test]
fn messages_are_the_same_by_every_method() {
    let lens = [1017, 1025, 4096, 300_000, 3, 1 << 20, 5000, 2_000_001, 1, 70_000];
    for tuning in [Tuning::new(), tuned(0), tuned(65_536)] {
        let (near, far) = pair(&tuning);
        let ((mut near, keep), (mut far, _)) = (messenger(near), messenger(far));
        let (mut at_near, mut at_far) = (vec![], vec![]);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                for (number, len) in lens.into_iter().enumerate() {
                    let payload = bytes(len, number);
                    near.call(&mut at_near, FAR, keep, [number as u64], &payload).unwrap();
                }
                near.flush(&mut at_near);
            });
            while at_far.len() < lens.len() {
                far.poll(&mut at_far);
                yield_now();
            }
            while !sending.is_finished() {
                far.poll(&mut at_far);
            }
        });
        for (number, ((found, payload), len)) in at_far.iter().zip(lens).enumerate() {
            assert_eq!((*found, payload.len()), (number as u64, len));
            assert!(*payload == bytes(len, number), "{len} bytes");
        }
    }
}

/// Receives records until one has a tag of these.
fn record(port: &mut Port, tags: &[u32], mut poll: impl FnMut() -> usize) -> (u32, Vec<u64>) {
    let mut bytes = [0; 1024];
    loop {
        poll();
        if let Ok(Some(found)) = port.try_recv(&mut bytes)
            && tags.contains(&found.tag)
        {
            let words = bytes[..found.len].chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            return (found.tag, words.collect());
        }
        yield_now();
    }
}

const WANT: u32 = 5;
const PULL: u32 = 16;
const PULLED: u32 = 17;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A peer that cannot read is asked once; then all goes by the landing.
// spec: INJ-2, INJ-7
#[test]
fn a_sender_whose_read_is_refused_uses_the_landing_afterwards() {
    let (mut near, far) = pair(&tuned(2000));
    let mut far = Messenger::new(far);
    let payload = bytes(5000, 1);
    let keep = Handler::<1>::named("keep");
    let ask = far.register("ask", move |_: &mut Seen, call, [], _| {
        call.reply(keep, [7], &payload).unwrap();
    });
    let (ask, mut seen) = (ask.unwrap(), vec![]);
    near.send(FAR, 9, &words(&[ask.id().into()])).unwrap();
    let (_, pull) = record(&mut near, &[PULL], || far.poll(&mut seen));
    assert_eq!((pull[0], pull[1], pull[3]), (keep.id().into(), 5000, 7));
    near.send(FAR, PULLED, &words(&[0])).unwrap();
    let (tag, _) = record(&mut near, &[PULL, WANT], || far.poll(&mut seen));
    assert_eq!(tag, WANT);
    assert!(far.port().is_alive(NEAR));
    near.send(FAR, PULLED, &words(&[0])).unwrap();
    while far.port().is_alive(NEAR) {
        far.poll(&mut seen);
    }
}

/// Without cut-offs a messenger asks for messages that are long enough, and one that is wanted by
/// the landing goes by that.
// spec: INJ-2, INJ-7
#[test]
fn long_messages_send_rts_and_use_the_requested_method() {
    let (mut near, far) = pair(&Tuning::new());
    let mut far = Messenger::new(far);
    let keep = Handler::<1>::named("keep");
    let ask = far.register("ask", move |_: &mut Seen, call, [len], _| {
        call.reply(keep, [7], &bytes(len as usize, 1)).unwrap();
    });
    let (ask, mut seen) = (ask.unwrap(), vec![]);
    let call = |near: &mut Port, len| near.send(FAR, ask.id(), &words(&[len])).unwrap();
    call(&mut near, 65_537);
    let (_, pull) = record(&mut near, &[PULL], || far.poll(&mut seen));
    assert_eq!((pull[0], pull[1], pull[3]), (keep.id().into(), 65_537, 7));
    near.send(FAR, PULLED, &words(&[2])).unwrap();
    let (tag, _) = record(&mut near, &[PULL, WANT], || far.poll(&mut seen));
    assert_eq!(tag, WANT, "by the landing");
    let (mut near, far) = pair(&Tuning::new());
    let mut far = Messenger::new(far);
    far.register("ask", move |_: &mut Seen, call, [len]: [u64; 1], _| {
        call.reply(keep, [7], &bytes(len as usize, 1)).unwrap();
    })
    .unwrap();
    call(&mut near, 65_536);
    let (tag, _) = record(&mut near, &[PULL, WANT], || far.poll(&mut seen));
    assert_eq!(tag, WANT, "unasked");
}

/// Without cut-offs a receiver chooses the method. The shortest of the messages that ask come by
/// the landing at first, the longest in place, and so does any message whose sender was told to
/// ask.
// spec: INJ-2, INJ-8
#[test]
fn a_receiver_chooses_how_messages_come() {
    let (mut near, far) = pair(&Tuning::new());
    let ((mut far, keep), mut seen) = (messenger(far), vec![]);
    let payload = bytes(5 << 20, 3);
    let there = payload.as_ptr().addr() as u64;
    for (len, answer) in [(65_536, 1), (100_000, 2), (5 << 20, 1), (100_000, 2)] {
        near.send(FAR, PULL, &words(&[keep.id().into(), len, there, 4])).unwrap();
        let (_, found) = record(&mut near, &[PULLED], || far.poll(&mut seen));
        assert_eq!(found, [answer], "{len} bytes");
    }
    let lens: Vec<_> = seen.iter().map(|(_, payload)| payload.len()).collect();
    assert_eq!(lens, [65_536, 5 << 20]);
    assert!(seen[1].1 == payload);
}

// spec: INJ-6, INJ-7
#[test]
fn a_message_whose_memory_cannot_be_read_is_not_run() {
    let (mut near, far) = pair(&Tuning::new());
    let ((mut far, keep), mut seen) = (messenger(far), vec![]);
    let payload = bytes(3000, 2);
    let pull = |id: u32, total: u64, address: u64| words(&[id.into(), total, address, 4]);
    let there = payload.as_ptr().addr() as u64;
    let cases = [
        (keep.id(), 3000, 16, 0),
        (keep.id(), 3000, u64::MAX - 8, 0),
        (keep.id(), 1 << 40, there, 1),
        (keep.id() ^ 1, 3000, there, 1),
        (keep.id(), 3000, there, 1),
    ];
    for (id, total, address, answer) in cases {
        near.send(FAR, PULL, &pull(id, total, address)).unwrap();
        let (_, found) = record(&mut near, &[PULLED], || far.poll(&mut seen));
        assert_eq!(found, [answer], "{id} {total} {address}");
    }
    assert_eq!(seen, [(4, payload.clone())]);
    let causes: Vec<_> = far.failures().map(|failure| failure.cause).collect();
    assert_eq!(causes, [DropCause::Malformed, DropCause::Unknown]);
    near.send(FAR, PULL, &pull(keep.id(), 3000, there)).unwrap();
    drop(near);
    while far.port().is_alive(NEAR) {
        far.poll(&mut seen);
    }
    far.poll(&mut seen);
    assert_eq!(seen.len(), 1, "its sender had left");
    drop(payload);
}

// spec: AM-15, INJ-7
#[test]
fn nonsense_about_reading_ends_the_connection() {
    let cases: [(u32, &[u64]); 5] = [
        (PULLED, &[1]),
        (PULLED, &[2]),
        (PULL, &[300, 0, 4096]),
        (PULL, &[10, 5, 4096]),
        (PULL, &[300, 5]),
    ];
    for (tag, record) in cases {
        let (mut near, far) = pair(&tuned(0));
        let ((mut far, _), mut seen) = (messenger(far), vec![]);
        near.send(FAR, tag, &words(record)).unwrap();
        while far.port().is_alive(NEAR) {
            far.poll(&mut seen);
        }
        assert!(seen.is_empty(), "{tag} {record:?}");
    }
}
