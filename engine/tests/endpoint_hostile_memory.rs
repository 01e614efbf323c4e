//! Liars among endpoints that touch windows, and answer those that touch theirs.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "endpoint_hostile/scene.rs"]
mod scene;

use attacker::{Attacker, Lane};
use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    Completion, CompletionKind, Context, MemoryRegion, MemoryRegions, RemoteAddress, RmaUpdate,
    RmaWrite, Sent, Spans,
};
use ayre::{EndpointOptions, Fault, Rights};
use ayre_proto::envelope::Record;
use ayre_proto::lane::Kind;
use ayre_proto::rma::{Calculation, RmaRecord};
use scene::{Guarded, Scene, poll_until, say, say_touch, span};

const KEY: u64 = 0x6b65_7931;
const BASE: u64 = 0x10_0000;
/// Bytes of the victim's window.
const LEN: usize = 4096;
/// Bytes that the victim reads of the liar.
const READ: usize = 1000;
const RING: u64 = 1 << 18;

/// Contexts of what the victim does to windows of the liar, then of the honest one.
const ITS_READ: Context = 101;
const ITS_WRITE: Context = 102;
const ITS_UPDATE: Context = 103;
const ITS_LONG_WRITE: Context = 104;
const OF_HONEST: Context = 110;

/// A scene in which windows are touched as well.
struct Touches {
    scene: Scene,
    windows: MemoryRegions,
    window: Guarded,
    into: Guarded,
    /// Of the honest one.
    theirs: Vec<u8>,
    from_theirs: Vec<u8>,
    long: Vec<u8>,
    /// The victim's names of what it does.
    read: u64,
    write: u64,
    update: u64,
}

impl Touches {
    fn new() -> Self {
        let mut touches = Self {
            scene: Scene::new(false),
            windows: MemoryRegions::new(),
            window: Guarded::new(LEN),
            into: Guarded::new(READ),
            theirs: vec![6; 100_000],
            from_theirs: vec![0; 100_000],
            long: vec![4; 400_000],
            read: 0,
            write: 0,
            update: 0,
        };
        touches.expose();
        touches.begin();
        touches
    }

    fn expose(&mut self) {
        let rights = Rights::all();
        let memory = vec![self.window.whole()];
        let window = MemoryRegion { key: KEY, base: BASE, memory, rights };
        self.windows.expose(window).expect("there is room");
        self.scene.victim.share(&self.windows);
        let windows = MemoryRegions::new();
        let memory = vec![scene::whole(&mut self.theirs)];
        windows.expose(MemoryRegion { key: KEY, base: 0, memory, rights }).expect("there is room");
        self.scene.honest.share(&windows);
    }

    fn begin(&mut self) {
        let Self { scene, into, from_theirs, long, .. } = self;
        let Scene { victim, remote, to_honest, liar, .. } = scene;
        let ours = RemoteAddress { remote: *remote, key: 1, address: 0 };
        victim.read(ours, into.spans(), ITS_READ).expect("there is room");
        let mut bytes = [3; 16];
        let write =
            RmaWrite { bytes: span(&mut bytes), data: None, context: ITS_WRITE, inject: true };
        assert_eq!(victim.write(ours, &write), Ok(Sent::Completed));
        let update = RmaUpdate {
            op: Combine::Sum,
            number: Number::U64,
            operand: span(&mut bytes),
            compare: Spans::default(),
            result: None,
            data: None,
            context: ITS_UPDATE,
        };
        victim.update(ours, &update).expect("there is room");
        let write = RmaWrite { bytes: span(long), context: ITS_LONG_WRITE, inject: false, ..write };
        assert_eq!(victim.write(ours, &write), Ok(Sent::Pending));
        let theirs = RemoteAddress { remote: *to_honest, key: KEY, address: 0 };
        victim.read(theirs, span(from_theirs), OF_HONEST).expect("there is room");
        // The scene's own two records came before: ask and go.
        let names = [2, 3, 4].map(|line| liar.heard(line)[3]);
        [self.read, self.write, self.update] = names;
    }

    /// The victim's names of its long write, and of what it reads of the honest one.
    fn long_write(&self) -> u64 {
        self.update + 1
    }

    fn of_honest(&self) -> u64 {
        self.update + 2
    }

    fn say(&mut self, record: &Record, bytes: &[u64]) {
        say(&mut self.scene.liar, record, bytes);
    }

    fn touch(&mut self, touch: &RmaRecord, bytes: &[u64]) {
        say_touch(&mut self.scene.liar, touch, bytes);
    }

    /// The liar was found out; what is under way with it has ended, and nothing else.
    fn check_ended(&mut self, what: &str, placed: usize) {
        let Scene { victim, ends, .. } = &mut self.scene;
        poll_until(victim, ends, |victim, _| victim.counters().malformed() > 0);
        for _ in 0..100 {
            victim.progress(|end| ends.push(end));
        }
        assert_eq!(victim.counters().malformed(), 1, "{what}: counted once");
        for context in [ITS_READ, ITS_WRITE, ITS_UPDATE, ITS_LONG_WRITE] {
            let mut ended = ends.iter().filter(|end| end.context == context);
            let end = ended.next().unwrap_or_else(|| panic!("{what}: {context} has not ended"));
            let is_due = end.result == Err(Fault::Malformed) || end.result == Ok(());
            assert!(is_due && ended.next().is_none(), "{what}: {ends:?}");
        }
        let is_fault = |end: &&Completion| end.result == Err(Fault::Malformed);
        assert!(ends.iter().any(|end| is_fault(&end)), "{what}");
        self.into.check(placed);
        self.check_others(what);
    }

    /// Nothing of the window was touched, and the honest one's memory is read.
    fn check_others(&mut self, what: &str) {
        self.window.check(0);
        self.scene.check_honest(what);
        let ended =
            |end: &&Completion| end.context == OF_HONEST && end.what == CompletionKind::Read;
        let ends: Vec<_> = self.scene.ends.iter().filter(ended).collect();
        assert!(ends.len() == 1 && ends[0].result == Ok(()), "{what}: {ends:?}");
        assert!(self.from_theirs == self.theirs, "{what}");
    }
}

/// Each lie in a scene of its own; `placed` bytes of what the victim reads arrive before it.
fn each(what: &str, count: usize, placed: usize, lie: impl Fn(&mut Touches, usize)) {
    for index in 0..count {
        let mut touches = Touches::new();
        lie(&mut touches, index);
        touches.check_ended(&format!("{what}, {index}"), placed);
    }
}

const HUGE: [u64; 4] = [u64::MAX, u64::MAX - 63, 1 << 62, 99];

// spec: ENV-17
#[test]
fn unsolicited_answers_end_the_connection() {
    let fault = Fault::Bounds;
    each("a name", HUGE.len() * 3, 0, |it, index| {
        let id = HUGE[index / 3] | 1 << 63;
        let records = [
            Record::Fin { id },
            Record::Refused { id, fault },
            Record::Fragment { to: id, len: 8, place: 0 },
        ];
        it.say(&records[index % 3], &[]);
    });
    each("a part that is here", 1, 0, |it, _| {
        it.say(&Record::FragmentHere { to: 99 | 1 << 63 }, &[1])
    });
    each("a message's name", 2, 0, |it, index| {
        let id = [it.scene.asked, LIARS_OWN][index];
        it.say(&Record::Refused { id, fault }, &[]);
    });
    each("another's", 4, 0, |it, index| {
        let id = it.of_honest();
        let records = [
            Record::Fin { id },
            Record::Refused { id, fault },
            Record::Fragment { to: id, len: 8, place: 0 },
            Record::FragmentHere { to: id },
        ];
        it.say(&records[index], &[1][..usize::from(index == 3)]);
    });
}

/// The liar's name of a message of its own.
const LIARS_OWN: u64 = scene::LIARS_ID;

// spec: ENV-17
#[test]
fn answers_out_of_turn_end_the_connection() {
    let fault = Fault::Rights;
    each("done where bytes are due", 1, 0, |it, _| {
        let id = it.read;
        it.say(&Record::Fin { id }, &[]);
    });
    each("bytes where none are due", 6, 0, |it, index| {
        let to = [it.write, it.update, it.long_write()][index / 2];
        match index % 2 {
            0 => it.say(&Record::Fragment { to, len: 8, place: 0 }, &[]),
            _ => it.say(&Record::FragmentHere { to }, &[1]),
        }
    });
    each("before all has gone", 2, 0, |it, index| {
        let id = it.long_write();
        it.say(&[Record::Fin { id }, Record::Refused { id, fault }][index], &[]);
    });
    each("twice", 4, 0, |it, index| {
        let id = [it.write, it.update][index / 2];
        let records = [Record::Fin { id }, Record::Refused { id, fault: Fault::Bounds }];
        it.say(&records[0], &[]);
        it.say(&records[index % 2], &[]);
    });
    each("a fault that no target finds", 12, 0, |it, index| {
        let (id, code) = (it.update, [0, 2, 5, 6, 7, 8, 9, 10, 11, 256, 1 << 32, u64::MAX][index]);
        it.scene.liar.put_claim(Lane::Messages, (Kind::GatedMessage, 24, 8), &[0, id, code]);
    });
}

// spec: ENV-12, ENV-17, ENV-27
#[test]
fn bytes_that_cannot_be() {
    let lens = [0, READ as u64 + 1, 1 << 63, u64::MAX, u64::MAX - 63];
    each("a length", lens.len(), 0, |it, index| {
        let to = it.read;
        it.say(&Record::Fragment { to, len: lens[index], place: 0 }, &[]);
    });
    let places = [8, RING, RING - 64, 1 << 63, u64::MAX, u64::MAX - 63];
    each("a place", places.len(), 0, |it, index| {
        let to = it.read;
        it.say(&Record::Fragment { to, len: 65, place: places[index] }, &[]);
    });
    each("more than is left", 2, 960, |it, index| {
        let to = it.read;
        it.say(&Record::Fragment { to, len: 960, place: 0 }, &[]);
        match index {
            0 => it.say(&Record::Fragment { to, len: 41, place: 960 }, &[]),
            _ => it.say(&Record::FragmentHere { to }, &[0; 6]),
        }
    });
    each("behind the end", 2, READ, |it, index| {
        let (to, len) = (it.read, READ as u64);
        it.say(&Record::Fragment { to, len, place: 0 }, &[]);
        it.say(&[Record::Fragment { to, len: 8, place: 1024 }, Record::Fin { id: to }][index], &[]);
    });
}

// spec: ENV-2, ENV-12, ENV-17
#[test]
fn malformed_rma_records_end_the_connection() {
    let (key, address) = (KEY, BASE);
    let part = |len, before, count, place| RmaRecord::WritePart {
        key,
        address,
        len,
        before,
        count,
        place,
    };
    let parts = [
        part(640, 0, 0, 0),
        part(640, 0, 641, 0),
        part(640, 1, 640, 0),
        part(640, u64::MAX, 1, 0),
        part(u64::MAX, 1, u64::MAX, 0),
        part(640, 0, 64, 8),
        part(640, 0, 64, RING),
        part(640, 0, 128, RING - 64),
        part(640, 0, 64, u64::MAX - 63),
        part(u64::MAX, 0, u64::MAX, 0),
        part(u64::MAX, 0, 1 << 63, 0),
    ];
    each("a part", parts.len(), 0, |it, index| it.touch(&parts[index], &[]));
    let here = |len, before| RmaRecord::WritePartHere { key, address, len, before };
    let heres = [(here(64, 0), 0), (here(8, 1), 1), (here(8, 0), 2), (here(2000, 0), 129)];
    each("a part that is here", heres.len(), 0, |it, index| {
        let (touch, words) = &heres[index];
        it.touch(touch, &[0; 129][..*words]);
    });
    let (id, data) = (1, None);
    each("too many bytes", 2, 0, |it, index| {
        let last = RmaRecord::WriteHere { key, address, id, before: 0, data };
        let read = RmaRecord::Read { key, address, id, len: 8 };
        it.touch([&last, &read][index], &[0; 129][..[129, 1][index]]);
    });
    let update = |op, number, count, fetches| {
        let what = Calculation { op, number, count, fetches };
        RmaRecord::Update { key, address, id, what, data }
    };
    let sum = |count| update(Combine::Sum, Number::U64, count, true);
    let updates = [
        (sum(1), 0),
        (sum(1), 2),
        (sum(129), 129),
        (sum(u16::MAX), 8),
        (update(Combine::Read, Number::U64, 1, true), 1),
        (update(Combine::Read, Number::U64, 129, true), 0),
        (update(Combine::Read, Number::U64, 1, false), 0),
        (update(Combine::BOr, Number::F64, 1, false), 1),
        (update(Combine::Max, Number::C32, 1, false), 1),
        (update(Combine::MaskedSwap, Number::U64, 1, false), 1),
    ];
    each("an update", updates.len(), 0, |it, index| {
        let (touch, words) = &updates[index];
        it.touch(touch, &[0; 129][..*words]);
    });
    let whats = [0, 20, 3, 3 | 13 << 8, 3 | 8 << 8 | 1 << 16 | 1 << 32];
    each("what an update does", whats.len(), 0, |it, index| {
        let words = [0, KEY, BASE, 1, whats[index], 5];
        it.scene.liar.put_claim(Lane::Messages, (Kind::GatedMessage, 48, 13), &words);
    });
}

/// The next refusals to the liar, from the reply numbered `first` on: names and codes.
fn refusals(it: &mut Touches, first: u64, count: u64) -> Vec<[u64; 2]> {
    let Touches { scene: Scene { victim, ends, liar, .. }, .. } = it;
    let heard = |line| liar.heard(first + line);
    poll_until(victim, ends, |_, _| (0..count).all(|line| heard(line)[2] != 0));
    (0..count).map(|line| [heard(line)[1], heard(line)[2]]).collect()
}

// spec: ENV-23
#[test]
fn guessed_keys_are_refused_and_change_no_memory() {
    let mut it = Touches::new();
    // Its long write has filled the ring: eight parts behind the three others.
    let first = 2 + 3 + 8;
    let end = BASE + LEN as u64;
    let (rights, unknown, bounds) = (3, 1, 4);
    let windows = it.windows.clone();
    let guesses = [
        (KEY ^ 1, BASE, unknown),
        (0, 0, unknown),
        (u64::MAX, BASE, unknown),
        (KEY, BASE - 1, bounds),
        (KEY, end - 7, bounds),
        (KEY, u64::MAX - 7, bounds),
        (KEY, u64::MAX, bounds),
        (KEY, 0, bounds),
    ];
    let mut line = first;
    for (key, address, why) in guesses {
        let data = None;
        it.touch(&RmaRecord::WriteHere { key, address, id: 1, before: 0, data }, &[1]);
        it.touch(&RmaRecord::Read { key, address, id: 2, len: 8 }, &[]);
        it.touch(&RmaRecord::Read { key, address, id: 3, len: 1 << 40 }, &[]);
        let (op, number) = (Combine::Sum, Number::U64);
        let what = Calculation { op, number, count: 1, fetches: true };
        it.touch(&RmaRecord::Update { key, address, id: 4, what, data }, &[1]);
        let got = refusals(&mut it, line, 4);
        assert_eq!(got, [1, 2, 3, 4].map(|id| [id, why]), "{key:#x} {address:#x}");
        line += 4;
    }
    // The last part leaves the window, or its bytes before cannot be.
    for before in [LEN as u64 - 7, LEN as u64 + 1, 1 << 63, u64::MAX - 3, u64::MAX] {
        let last = RmaRecord::WriteHere { key: KEY, address: BASE, id: 5, before, data: None };
        it.touch(&last, &[1]);
        assert_eq!(refusals(&mut it, line, 1), [[5, bounds]], "{before:#x}");
        line += 1;
    }
    assert_eq!(it.scene.malformed(), 0);
    assert!(windows.withdraw(KEY));
    let closed = MemoryRegion {
        memory: vec![it.window.whole()],
        key: KEY,
        base: BASE,
        rights: Rights::empty(),
    };
    windows.expose(closed).expect("there is room");
    it.touch(&RmaRecord::Read { key: KEY, address: BASE, id: 6, len: 8 }, &[]);
    assert_eq!(refusals(&mut it, line, 1), [[6, rights]]);
    it.check_others("after all guesses");
}

// spec: ENV-37, LIM-1
#[test]
fn unread_rma_answers_are_bounded() {
    let mut scene = Scene::of(&EndpointOptions::new().memory(2 << 20), false);
    let (windows, mut memory) = (MemoryRegions::new(), vec![7; 1 << 20]);
    let memory = vec![scene::whole(&mut memory)];
    windows.expose(MemoryRegion { key: KEY, base: 0, memory, rights: Rights::READ }).expect("room");
    scene.victim.share(&windows);
    let read = RmaRecord::Read { key: KEY, address: 0, id: 1, len: 1 << 20 };
    let is_refused = |liar: &Attacker| {
        (2..40).any(|line| liar.heard(line)[1..3] == [u64::MAX, Fault::NoMemory as u64])
    };
    let mut count = 0;
    while !is_refused(&scene.liar) {
        say_touch(&mut scene.liar, &read, &[]);
        let Scene { victim, ends, .. } = &mut scene;
        victim.progress(|end| ends.push(end));
        count += 1;
        assert!(count < 9000, "it is bounded");
    }
    // Half of the budget, 64 bytes for each; what waits besides counts, too.
    assert!((7000..=8192).contains(&count), "{count} were taken");
    scene.check_honest("after a flood of reads");
    // The liar hangs up: what is under way with it ends with the reason.
    scene.liar.control = attacker::control_socket();
    let ended =
        |ends: &[Completion]| ends.iter().filter(|end| end.result == Err(Fault::NoMemory)).count();
    poll_until(&mut scene.victim, &mut scene.ends, |_, ends| ended(ends) == 3);
    assert_eq!(scene.malformed(), 0, "each of them was sound");
}

// spec: ENV-26
#[test]
fn a_write_that_never_ends_does_not_disturb_others() {
    let mut it = Touches::new();
    let (key, address) = (KEY, BASE);
    // Refused, and left; the next write is another one.
    let first = 2 + 3 + 8;
    it.touch(&RmaRecord::WritePartHere { key: 1, address, len: 64, before: 0 }, &[1]);
    it.touch(&RmaRecord::WriteHere { key, address, id: 1, before: 0, data: None }, &[]);
    let Touches { scene: Scene { victim, ends, liar, .. }, .. } = &mut it;
    poll_until(victim, ends, |_, _| liar.heard(first)[1] == 1);
    it.check_others("after a write without end");
    let told =
        it.scene.ends.iter().filter(|end| matches!(end.what, CompletionKind::RmaEvent(_))).count();
    assert_eq!(told, 1);
}
