//! Liars among endpoints: whatever they write, they harm what they have under way, and nothing
//! else.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "endpoint_hostile/scene.rs"]
mod scene;

use attacker::{Attacker, Lane};
use ayre_proto::envelope::{LONG_MAX, Record};
use ayre_proto::lane::Kind;
use ayre_proto::limits::EAGER_MAX;
use scene::{ASKED, LIARS_ID, Scene, WANTED, envelope, poll_until, say};

const HUGE: [u64; 4] = [1 << 63, u64::MAX, u64::MAX - 63, (1 << 63) - 64];
/// Bytes of a ring.
const RING: u64 = 1 << 18;
/// A tag that no receive of the scene has.
const OTHER: u64 = 40;

/// Writes a record of any kind, tag, length and words.
fn put(liar: &mut Attacker, (kind, tag, len): (Kind, u32, u32), words: &[u64]) {
    liar.put_claim(Lane::Messages, (kind, len, tag), words);
}

/// A gated record of these words, the gate before them.
fn put_words(liar: &mut Attacker, tag: u32, words: &[u64]) {
    let words = [&[0], words].concat();
    put(liar, (Kind::GatedMessage, tag, words.len() as u32 * 8), &words);
}

fn long(len: u64, place: u64) -> Record {
    Record::Long { envelope: envelope(OTHER), answer: None, len, place }
}

/// Each lie in a scene of its own; `placed` bytes of what the liar sends arrive before it.
fn each(what: &str, count: usize, placed: usize, lie: impl Fn(&mut Scene, usize)) {
    for index in 0..count {
        for in_parts in [false, true] {
            let mut scene = Scene::new(in_parts);
            lie(&mut scene, index);
            scene.check_ended(&format!("{what}, {index}, in parts: {in_parts}"), placed);
        }
    }
}

fn say_each(what: &str, records: &[Record]) {
    each(what, records.len(), 0, |scene, index| say(&mut scene.liar, &records[index], &[]));
}

// spec: ENV-2, ENV-17
#[test]
fn malformed_records_end_the_connection() {
    let heads = [0, 8, 15, 1 | 1 << 7, 1 | 1 << 31, 4 | 1 << 4, 5 | 1 << 5, 7 | 1 << 6, u32::MAX];
    each("a code or a bit", heads.len(), 0, |scene, index| {
        put_words(&mut scene.liar, heads[index], &[0; 5]);
    });
    let gated = Kind::GatedMessage;
    let claims = [
        (Kind::Message, 1, 24),
        (Kind::Command, 1, 24),
        (gated, 1, 0),
        (gated, 1, 7),
        (gated, 1, 8),
        (gated, 1, 23),
        (gated, 1 | 1 << 6, 31),
        (gated, 1, 24 + EAGER_MAX as u32 + 1),
        (gated, 1, 4095),
        (gated, 2, 40),
        (gated, 2, 56),
        (gated, 3, 48),
        (gated, 4, 40),
        (gated, 5, 24),
        (gated, 6, 8),
        (gated, 6, 16 + EAGER_MAX as u32 + 1),
        (gated, 7, 24),
        (gated, 7, 15),
    ];
    each("a length", claims.len(), 0, |scene, index| {
        put(&mut scene.liar, claims[index], &[0; 4095 / 8 + 1]);
    });
}

// spec: ENV-2, ENV-12, ENV-17
#[test]
fn places_outside_the_ring_end_the_connection() {
    let mut records = vec![long(LONG_MAX as u64 + 1, 0), long(64, 8), long(64, RING)];
    records.extend([long(128, RING - 64), long(1, RING), long(16000, RING - 8192)]);
    for huge in HUGE {
        records.extend([long(huge, 0), long(64, huge), long(huge, huge), long(0, huge)]);
    }
    say_each("a long one", &records);
    each("a place that is taken", 2, 0, |scene, index| {
        say(&mut scene.liar, &long(640, 0), &[]);
        say(&mut scene.liar, &long(64, [0, 576][index]), &[]);
    });
}

// spec: ENV-2, ENV-17, ENV-18
#[test]
fn unknown_operation_ids_end_the_connection() {
    let (to, place) = (LIARS_ID, 0);
    let mut records = vec![Record::Cts { id: 99, to, len: 8 }, Record::Fin { id: 99 }];
    records.extend([Record::Fragment { to: 99, len: 8, place }]);
    for huge in HUGE {
        records.push(Record::Cts { id: huge, to, len: 8 });
        records.extend([Record::Fin { id: huge }, Record::Fragment { to: huge, len: 8, place }]);
    }
    say_each("a name", &records);
    each("a name of a part that is here", 1, 0, |scene, _| {
        say(&mut scene.liar, &Record::FragmentHere { to: 99 }, &[1]);
    });
    each("another's", 4, 0, |scene, index| {
        let (id, to) = (scene.asked_of_honest(), scene.wanted_of_honest());
        let record = match index {
            0 => Record::Cts { id, to: 0, len: 8 },
            1 => Record::Fin { id },
            2 => Record::Fragment { to, len: 8, place },
            _ => Record::FragmentHere { to },
        };
        say(&mut scene.liar, &record, &[1][..usize::from(index == 3)]);
    });
}

// spec: ENV-17, ENV-18
#[test]
fn records_out_of_turn_end_the_connection() {
    each("more than there is", 5, 0, |scene, index| {
        let more = [ASKED as u64 + 1, HUGE[0], HUGE[1], HUGE[2], HUGE[3]][index];
        say(&mut scene.liar, &Record::Cts { id: scene.asked, to: 0, len: more }, &[]);
    });
    each("go twice", 2, 0, |scene, index| {
        let go = Record::Cts { id: scene.asked, to: 0, len: [8, ASKED as u64][index] };
        say(&mut scene.liar, &go, &[]);
        say(&mut scene.liar, &go, &[]);
    });
    each("done before it has gone", 2, 0, |scene, index| {
        let id = scene.asked;
        if index == 1 {
            say(&mut scene.liar, &Record::Cts { id, to: 0, len: 8 }, &[]);
        }
        say(&mut scene.liar, &Record::Fin { id }, &[]);
    });
}

/// A message that cannot be read at its stated address is fetched with a CTS instead.
// spec: INJ-6, ENV-18
#[test]
fn messages_that_lie_nowhere() {
    for address in [8, 4096, HUGE[0], HUGE[1], HUGE[2], HUGE[3]] {
        let mut scene = Scene::new(false);
        let mut into = [0, 1].map(|_| vec![0; ASKED]);
        for (line, into) in (2..).zip(&mut into) {
            let (id, len) = (50 + line, ASKED as u64);
            let ask = Record::Rts { envelope: envelope(77), id, answered: false, len, address };
            say(&mut scene.liar, &ask, &[]);
            scene.receive_of_liar(77, into);
            let Scene { victim, ends, liar, .. } = &mut scene;
            let is_go = || liar.heard(line)[1] == id && liar.heard(line)[3] == len;
            poll_until(victim, ends, |_, _| is_go());
        }
        assert!(into.iter().flatten().all(|byte| *byte == 0), "nothing has come");
    }
}

/// Of what is read where it lies, a piece at a time, no parts come.
// spec: ENV-17, ENV-18
#[test]
fn fragments_of_a_message_read_in_place_end_the_connection() {
    let mut from = vec![7; 8 << 20];
    let address = from.as_mut_ptr().addr() as u64;
    for to in 0..6 {
        let mut scene = Scene::new(false);
        if to == scene.wanted {
            continue;
        }
        let (len, mut into) = (from.len() as u64, vec![0; from.len()]);
        scene.receive_of_liar(77, &mut into);
        let ask = Record::Rts { envelope: envelope(77), id: 50, answered: false, len, address };
        say(&mut scene.liar, &ask, &[]);
        scene.victim.progress(|end| panic!("it is not whole: {end:?}"));
        say(&mut scene.liar, &Record::Fragment { to, len: 64, place: 0 }, &[]);
        let Scene { victim, ends, .. } = &mut scene;
        poll_until(victim, ends, |victim, _| victim.counters().malformed() == 1);
    }
}

// spec: ENV-17, ENV-18
#[test]
fn malformed_fragments_end_the_connection() {
    let wanted = WANTED as u64;
    let lens = [0, wanted + 1, HUGE[0], HUGE[1], HUGE[2], HUGE[3]];
    each("a length", lens.len(), 0, |scene, index| {
        let part = Record::Fragment { to: scene.wanted, len: lens[index], place: 0 };
        say(&mut scene.liar, &part, &[]);
    });
    let places = [8, RING, RING - 64, HUGE[0], HUGE[1], HUGE[2], HUGE[3]];
    each("a place", places.len(), 0, |scene, index| {
        let part = Record::Fragment { to: scene.wanted, len: 65, place: places[index] };
        say(&mut scene.liar, &part, &[]);
    });
    each("here, of no bytes or too many", 2, 0, |scene, index| {
        let bytes = [0; 128];
        say(&mut scene.liar, &Record::FragmentHere { to: scene.wanted }, &bytes[..index * 126]);
    });
    each("more than is left", 2, 640, |scene, index| {
        let to = scene.wanted;
        say(&mut scene.liar, &Record::Fragment { to, len: 640, place: 0 }, &[]);
        match index {
            0 => say(&mut scene.liar, &Record::Fragment { to, len: 361, place: 640 }, &[]),
            _ => say(&mut scene.liar, &Record::FragmentHere { to }, &[0; 46]),
        }
    });
    each("behind the end", 2, WANTED, |scene, index| {
        let (to, len) = (scene.wanted, wanted);
        say(&mut scene.liar, &Record::Fragment { to, len, place: 0 }, &[]);
        match index {
            0 => say(&mut scene.liar, &Record::Fragment { to, len: 8, place: 1024 }, &[]),
            _ => say(&mut scene.liar, &Record::FragmentHere { to }, &[1]),
        }
    });
}
