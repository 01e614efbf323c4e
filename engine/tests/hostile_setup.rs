//! Callers and peers that lie while a connection or a capability is being set up. Each call
//! returns, with the right error, and the port goes on with its other peers.
#[path = "hostile/attacker.rs"]
mod attacker;
#[path = "hostile/world.rs"]
mod world;

use attacker::{
    BYE, Begun, HELLO, KICK, Layout, OFFER_QUEUE, OFFER_REGION, Offer, PAGE_BYTES, Parts, REFUSE,
    VERSION, WELCOME, accept_from, connect_to, hello, listen_at, memory_file, receive, refusal_to,
    sealed_file, send, send_bytes, stream_pair,
};
use ayre::error::Refusal;
use ayre::{Config, Fault, Mode, PeerId, Port, SetupError, Spin};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    MemfdFlags, Mode as FileMode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use world::{REGION, World, seeds, socket_path};

const MODES: [Mode; 2] = [Mode::Direct, Mode::Mediated];

/// A caller introduces itself with any words and descriptors, and is refused with code and detail
/// of a reason. The same call serves the next caller.
fn turned_away(world: &mut World, words: [u64; 8], fds: &[BorrowedFd<'_>]) -> [u64; 2] {
    let stranger = connect_to(&world.path);
    assert!(send(&stranger, words, fds), "the victim listens");
    let malformed = world.victim.counters().malformed();
    let (attacker, peer) = world.attacker(false);
    let refusal = refusal_to(&stranger);
    assert!(world.victim.counters().malformed() > malformed, "and counts it");
    assert_eq!(peer.index() as u64, attacker.number);
    world.honest_round();
    refusal
}

// spec: LIFE-7, LIFE-9, LIFE-27, LANE-14
#[test]
fn wrong_introductions_are_turned_away() {
    for mode in MODES {
        let mut world = World::new(mode, "introductions");
        let parts = Parts::new();
        let good = hello(900, false);
        for kind in [0, WELCOME, REFUSE, OFFER_REGION, OFFER_QUEUE, BYE, 7, KICK, u64::MAX] {
            turned_away(&mut world, [kind, good[1], good[2], 0, 1, 0, 0, 0], &parts.fds());
        }
        for version in [0, VERSION + 1, u64::MAX] {
            let words = [HELLO, version, 900, 0, 1, 0, 0, 0];
            let why = turned_away(&mut world, words, &parts.fds());
            assert_eq!(why, Refusal::Version(VERSION).to_words(), "{version}");
            // Of other versions no more is known.
            let why = turned_away(&mut world, [HELLO, version, 7, 7, 7, 7, 7, 7], &[]);
            assert_eq!(why, Refusal::Version(VERSION).to_words(), "{version}");
        }
        for (number, why) in [
            (0, Refusal::Taken),
            (1, Refusal::Taken),
            (1024, Refusal::Full(1024)),
            (65535, Refusal::Full(1024)),
            (65536, Refusal::Unknown),
            (u64::MAX, Refusal::Kind),
        ] {
            let told = turned_away(&mut world, hello(number, false), &parts.fds());
            assert_eq!(told, why.to_words(), "{number}");
        }
        for sizes in [[1, 0], [23, 24], [1 << 20, 24], [u64::MAX, u64::MAX], [28, 1 << 40]] {
            let words = [HELLO, VERSION, 900, 0, 1, sizes[0], sizes[1], 0];
            turned_away(&mut world, words, &parts.fds());
        }
    }
}

// spec: LIFE-9
#[test]
fn wrong_descriptors_are_turned_away() {
    for mode in MODES {
        let mut world = World::new(mode, "descriptors");
        let (Parts { page }, (first, second)) = (Parts::new(), stream_pair());
        let (page, first, second) = (page.as_fd(), first.as_fd(), second.as_fd());
        for fds in [vec![], vec![page; 2], vec![page, first], vec![page, first, second]] {
            turned_away(&mut world, hello(900, false), &fds);
        }
        turned_away(&mut world, hello(900, false), &[page; 12]);
        for file in wrong_files(PAGE_BYTES) {
            turned_away(&mut world, hello(900, false), &[file.as_fd()]);
        }
    }
}

/// Descriptors that no memory of `len` bytes stands behind, or none that stays.
fn wrong_files(len: u64) -> Vec<OwnedFd> {
    let fixed = SealFlags::SHRINK | SealFlags::GROW;
    let zero = open("/dev/zero", OFlags::RDWR | OFlags::CLOEXEC, FileMode::empty());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let folder = open("/", OFlags::RDONLY | OFlags::CLOEXEC, FileMode::empty());
    let huge = memfd_create(c"huge", MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB);
    let huge = huge.expect("a file of huge pages, whether there are any or not");
    ftruncate(&huge, 1 << 21).expect("its length");
    fcntl_add_seals(&huge, fixed).expect("its seals");
    vec![
        huge,
        memory_file(len, SealFlags::empty()),
        memory_file(len, SealFlags::GROW),
        memory_file(0, fixed),
        memory_file(len - 4096, fixed),
        zero.expect("a device"),
        reader.into(),
        writer.into(),
        stream_pair().0,
        folder.expect("a folder"),
    ]
}

// spec: LIFE-9
#[test]
fn silent_or_departing_callers_do_not_delay_the_port() {
    for mode in MODES {
        let mut world = World::new(mode, "silence");
        let silent = connect_to(&world.path);
        let error = world.victim.accept().expect_err("nobody speaks");
        assert!(matches!(error, SetupError::TimedOut(_)), "{error}");
        let also_silent = connect_to(&world.path);
        world.attacker(false);
        drop((silent, also_silent, connect_to(&world.path)));
        world.attacker(false);
        let parts = Parts::new();
        for len in [1, 8, 63, 65, 4096] {
            let stranger = connect_to(&world.path);
            assert!(send_bytes(&stranger, &vec![1; len], &parts.fds()), "the victim listens");
            world.attacker(false);
            assert_eq!(refusal_to(&stranger), [0, 0], "{len} bytes are no introduction");
        }
        let stranger = connect_to(&world.path);
        assert!(send(&stranger, hello(900, false), &parts.fds()), "the victim listens");
        drop(stranger);
        // It may be too late for the victim to notice here; then it does with its next progress.
        let _ = world.victim.accept();
        world.drain();
        assert!(!world.victim.is_alive(PeerId(900)));
        world.honest_round();
    }
}

// spec: LIFE-9
#[test]
fn a_number_that_is_taken_is_not_given_again() {
    for mode in MODES {
        let mut world = World::new(mode, "taken");
        let parts = Parts::new();
        turned_away(&mut world, hello(1, false), &parts.fds());
        let (attacker, peer) = world.attacker(false);
        turned_away(&mut world, hello(attacker.number, true), &parts.fds());
        assert!(world.victim.is_alive(peer));
    }
}

/// The answer of a hostile listener.
struct Answer {
    words: [u64; 8],
    fds: Vec<OwnedFd>,
}

impl Answer {
    fn new(layout: Layout, mediated: bool, file: OwnedFd) -> Self {
        let mode = u64::from(mediated);
        let words = [WELCOME, VERSION, 9, mode, 1, layout.paired, layout.response, layout.ring];
        Self { words, fds: vec![Parts::new().page, file] }
    }

    fn good(mode: Mode) -> Self {
        let (layout, mediated) = match mode {
            Mode::Direct => (Layout { paired: 44, response: 0, ring: 0 }, false),
            Mode::Mediated => (Layout { paired: 28, response: 32, ring: 0 }, true),
        };
        Self::new(layout, mediated, sealed_file(layout.file_bytes()))
    }

    fn with_word(mut self, index: usize, word: u64) -> Self {
        self.words[index] = word;
        self
    }
}

/// Lets a victim connect to a listener that gives this answer, or closes without one.
fn connect_to_answer(mode: Mode, answer: Option<Answer>) -> Result<PeerId, SetupError> {
    let path = socket_path(&format!("listener-{mode:?}-{:?}", std::thread::current().id()));
    let listener = listen_at(&path, 1);
    let thread = std::thread::spawn(move || {
        let socket = accept_from(&listener);
        let (words, fds) = receive(&socket).expect("a hello");
        assert_eq!((words[0], words[1], fds.len()), (HELLO, VERSION, 1));
        if let Some(answer) = answer {
            let fds: Vec<_> = answer.fds.iter().map(AsFd::as_fd).collect();
            let _ = send(&socket, answer.words, &fds);
            // The victim closes when it is done, whatever it thinks of the answer.
            let _ = receive(&socket);
        }
    });
    let config = Config::new().mode(mode).number(3).spin(Spin::SHARED);
    let mut victim = Port::open(config).expect("a port");
    let connected = victim.connect(&path);
    victim.progress();
    drop(victim);
    thread.join().expect("the listener ends");
    let _ = std::fs::remove_file(&path);
    connected
}

// spec: LIFE-7
#[test]
fn wrong_welcomes_are_refused() {
    for mode in MODES {
        assert_eq!(connect_to_answer(mode, Some(Answer::good(mode))).ok(), Some(PeerId(9)));
        assert!(connect_to_answer(mode, None).is_err(), "no answer");
        let wrong = |index, word| {
            let answer = Answer::good(mode).with_word(index, word);
            let connected = connect_to_answer(mode, Some(answer));
            assert!(connected.is_err(), "{word:#x} as word {index}");
        };
        for kind in [0, HELLO, REFUSE, OFFER_REGION, BYE, 99] {
            wrong(0, kind);
        }
        wrong(1, VERSION + 1);
        for number in [1024, 65535, 65536, u64::MAX] {
            wrong(2, number);
        }
        for lines in [0, 1, 23, 1 << 14, 1 << 15, 1 << 32, u64::MAX] {
            wrong(5, lines);
        }
        for lines in [1, 23, 1 << 14, 1 << 40, u64::MAX] {
            wrong(6, lines);
        }
        for bytes in [1, 64, 1 << 11, (1 << 12) + 64, 1 << 25, 1 << 32, 1 << 40, u64::MAX] {
            wrong(7, bytes);
        }
    }
    let unasked = Answer::good(Mode::Direct);
    assert!(connect_to_answer(Mode::Mediated, Some(unasked)).is_err(), "never direct unasked");
}

/// The caller's call ends with the reason that the listener gave.
// spec: LIFE-27, LANE-14
#[test]
fn a_refused_caller_is_told_why() {
    let refused = |version, why: Refusal| {
        let [code, detail] = why.to_words();
        let words = [REFUSE, version, code, detail, 0, 0, 0, 0];
        let answer = Answer { words, fds: Vec::new() };
        connect_to_answer(Mode::Direct, Some(answer)).expect_err("it was refused")
    };
    for why in [Refusal::User(7), Refusal::Kind, Refusal::Taken, Refusal::Resources(24)] {
        let error = refused(VERSION, why);
        assert!(matches!(error, SetupError::Refused { why: told, .. } if told == why), "{error}");
        let text = error.to_string();
        assert!(text.contains(&why.to_string()) && text.contains("/ayre-"), "{text}");
    }
    for version in [0, VERSION - 1, VERSION + 1, 1 << 40] {
        let told = refused(version, Refusal::Version(version));
        let welcomed = Answer::good(Mode::Direct).with_word(1, version);
        let welcomed = connect_to_answer(Mode::Direct, Some(welcomed)).expect_err("it differs");
        for text in [told.to_string(), welcomed.to_string()] {
            let numbers = [version, VERSION].map(|number| format!("version {number} "));
            let [theirs, ours] = numbers.map(|number| text.replace(':', " ").contains(&number));
            assert!(theirs && ours, "{text}");
        }
    }
}

// spec: LANE-9
#[test]
fn welcomes_with_wrong_files_are_refused() {
    let layout = Layout { paired: 44, response: 0, ring: 0 };
    for file in wrong_files(layout.file_bytes()) {
        let answer = Answer::new(layout, false, file);
        assert!(connect_to_answer(Mode::Direct, Some(answer)).is_err());
    }
    let fixed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    let read_only = Answer::new(layout, false, memory_file(layout.file_bytes(), fixed));
    assert!(connect_to_answer(Mode::Direct, Some(read_only)).is_err());
    for count in 0..2 {
        let mut answer = Answer::good(Mode::Direct);
        answer.fds.truncate(count);
        assert!(connect_to_answer(Mode::Direct, Some(answer)).is_err(), "{count} descriptors");
    }
}

/// The victim's result for an offer under the name 1.
fn offered(world: &mut World, words: [u64; 8], files: &[OwnedFd]) -> Result<(), SetupError> {
    let (attacker, peer) = world.attacker(false);
    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    assert!(attacker.send(words, &fds), "the victim is there");
    let taken = match words[0] {
        OFFER_REGION => world.victim.accept_region(peer, 1).map(|_| ()),
        _ => world.victim.accept_queue(peer, 1).map(|_| ()),
    };
    world.honest_round();
    taken
}

fn region_offer(base: u64, len: u64, mapped: u64) -> [u64; 8] {
    [OFFER_REGION, 1, 31 << 16, 0, base, len, mapped, 0]
}

// spec: CAP-5, REG-1
#[test]
fn offers_of_regions_that_lie_are_refused() {
    let (len, far) = (REGION as u64, u64::MAX - 7);
    for mode in MODES {
        let mut world = World::new(mode, "region-offers");
        let file = || vec![sealed_file(len)];
        let numbers = [
            (0, len + 8, len),
            (8, len, len),
            (4, 8, len),
            (far, 8, len),
            (far, 16, len),
            (8, far, len),
            (len + 8, 0, len),
            (1 << 63, 1 << 63, len),
        ];
        for (base, len, mapped) in numbers {
            let taken = offered(&mut world, region_offer(base, len, mapped), &file());
            assert!(taken.is_err(), "{base:#x} + {len:#x} of {mapped:#x}");
        }
        if mode == Mode::Mediated {
            continue;
        }
        for mapped in [0, len + 1, len + 4096, 1 << 40, 1 << 62, far, u64::MAX] {
            let taken = offered(&mut world, region_offer(0, 0, mapped), &file());
            assert!(taken.is_err(), "{mapped:#x} bytes in a file of {len:#x}");
        }
        assert!(offered(&mut world, region_offer(0, len, len), &[]).is_err(), "no file");
        for file in wrong_files(len) {
            assert!(offered(&mut world, region_offer(0, len, len), &[file]).is_err());
        }
        let sealed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
        let read_only = [memory_file(len, sealed)];
        assert!(offered(&mut world, region_offer(0, len, len), &read_only).is_err());
    }
}

// spec: QUE-2
#[test]
fn offers_of_queues_that_lie_are_refused() {
    for mode in MODES {
        let mut world = World::new(mode, "queue-offers");
        let lines: u64 = 64;
        let bytes = (128 + 128 * lines).next_multiple_of(4096);
        for wrong in [0, 1, 23, 1000, 1 << 14, 1 << 15, 1 << 32 | lines, u64::MAX] {
            let words = [OFFER_QUEUE, 1, wrong, 0, 0, 0, 0, 0];
            assert!(offered(&mut world, words, &[sealed_file(bytes)]).is_err(), "{wrong} lines");
        }
        let words = [OFFER_QUEUE, 1, lines, 0, 0, 0, 0, 0];
        assert!(offered(&mut world, words, &[]).is_err(), "no file");
        for file in wrong_files(bytes) {
            assert!(offered(&mut world, words, &[file]).is_err());
        }
        assert!(offered(&mut world, words, &[sealed_file(bytes)]).is_ok(), "a truthful offer");
    }
}

// spec: REG-1, LANE-9
#[test]
fn memory_that_was_taken_cannot_be_taken_away() {
    let mut world = World::new(Mode::Direct, "shrink");
    let (attacker, peer) = world.attacker(false);
    let file = sealed_file(REGION as u64);
    assert!(attacker.offer_region(Offer::of(1, REGION as u64), Some(file.as_fd())));
    let remote = world.victim.accept_region(peer, 1).expect("a truthful offer");
    for file in [&file, &attacker.file, &attacker.victim_page] {
        assert!(ftruncate(file, 0).is_err(), "a sealed file keeps its length");
    }
    let holes = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    for file in [&file, &attacker.file] {
        rustix::fs::fallocate(file, holes, 0, 4096).expect("a hole");
    }
    let victim = &mut world.victim;
    let mut word = [1; 8];
    victim.get(&remote, 0, &mut word, ayre::PostOptions::new()).expect("memory that is there");
    assert_eq!(word, [0; 8]);
    victim.put(&remote, 8, &word, ayre::PostOptions::new()).expect("memory that is there");
    world.drain();
    world.honest_round();
}

// spec: LIFE-13
#[test]
fn peers_may_close_at_every_step() {
    for mode in MODES {
        let mut world = World::new(mode, "steps");
        for step in 0..6 {
            let number = world.fresh_number();
            let begun = Begun::connect(&world.path, number, false);
            if step == 0 {
                drop(begun);
                let _ = world.victim.accept();
                world.honest_round();
                continue;
            }
            let peer = world.victim.accept().expect("a correct introduction");
            if step == 1 {
                drop(begun);
                assert!(world.victim.accept_region(peer, 1).is_err(), "the peer has left");
                world.honest_round();
                continue;
            }
            let attacker = begun.finish();
            let file = sealed_file(REGION as u64);
            if step > 2 {
                assert!(attacker.offer_region(Offer::of(1, REGION as u64), Some(file.as_fd())));
            }
            if step > 3 {
                assert!(attacker.send([BYE, 0, 0, 0, 0, 0, 0, 0], &[]));
            }
            let late = (step > 4).then(|| attacker.send(region_offer(0, 0, 0), &[]));
            drop(attacker);
            assert!(late.unwrap_or(true), "the victim is there");
            let _ = world.victim.accept_region(peer, 1);
            world.drain();
            assert!(!world.victim.is_alive(peer));
            let refused = world.victim.send(peer, 1, b"too late").expect_err("the peer is gone");
            assert!(!refused.is_busy());
            world.honest_round();
        }
    }
}

// spec: ERR-7, LIM-1
#[test]
fn packets_out_of_turn_end_the_connection_alone() {
    for mode in MODES {
        let mut world = World::new(mode, "packets");
        for (_, mut random) in seeds(20) {
            let (attacker, peer) = world.attacker(random.below(2) == 1);
            let parts = Parts::new();
            for _ in 0..random.below(12) + 1 {
                let kind = random.below(9);
                let words = std::array::from_fn(|i| if i == 0 { kind } else { random.nasty() });
                let fds = [parts.page.as_fd(); 3];
                let _ = attacker.send(words, &fds[..random.below(4) as usize]);
                let _ = random.below(3) == 0 && send_bytes(&attacker.control, &[9; 20], &[]);
                world.victim.progress();
            }
            let _ = attacker.send([HELLO, VERSION, 9, 0, 1, 0, 0, 0], &[]);
            world.drain();
            assert!(!world.victim.is_alive(peer), "nobody says hello twice");
            world.honest_round();
        }
    }
}

fn packet(words: [u64; 8]) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

// spec: ERR-9, LIFE-18
#[test]
fn a_packet_that_no_peer_sends_is_counted_and_named() {
    let long = [packet(region_offer(0, 8, 8)), vec![0; 1]].concat();
    let wrong = [
        packet([HELLO, VERSION, 9, 0, 1, 0, 0, 0]),
        packet([0; 8]),
        packet([99, 0, 0, 0, 0, 0, 0, 0]),
        vec![BYE as u8; 1],
        packet([BYE, 0, 0, 0, 0, 0, 0, 0])[..63].to_vec(),
        long,
    ];
    for mode in MODES {
        let mut world = World::new(mode, "packet");
        for bytes in &wrong {
            let (attacker, peer) = world.attacker(false);
            let malformed = world.victim.counters().malformed();
            assert!(send_bytes(&attacker.control, bytes, &[]), "the victim is there");
            world.victim.progress();
            assert_eq!(world.victim.counters().malformed(), malformed + 1, "{bytes:?}");
            let refused = world.victim.send(peer, 1, b"too late");
            assert_eq!(refused, Err(Fault::Malformed.into()), "{bytes:?}");
            world.honest_round();
        }
    }
}

// spec: LIM-1
#[test]
fn sparse_files_use_no_memory_of_the_receiver() {
    let mut world = World::new(Mode::Direct, "sparse");
    let len = 1 << 30;
    let (attacker, peer) = world.attacker(false);
    let file = memory_file(len, SealFlags::SHRINK | SealFlags::GROW);
    assert!(attacker.offer_region(Offer::of(1, len), Some(file.as_fd())));
    let _region = world.victim.accept_region(peer, 1);
    let blocks = rustix::fs::fstat(&file).expect("its size").st_blocks as u64;
    assert!(blocks * 512 < 1 << 24, "the victim has filled a file of {len} bytes");
    world.honest_round();
}
