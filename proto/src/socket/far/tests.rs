//! Two hosts with a connection, against streams that are lists of bytes. Messages arrive in order,
//! and bytes of the kernel in order, but each of both may overtake the other.
extern crate std;

use super::*;
use crate::socket::{From, Incoming, TakenBack};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::vec::Vec;

/// The byte at a position of the stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// One host: a program's end, the memory between it and its proxy, and the proxy.
struct Host {
    out: Outgoing,
    inward: Incoming,
    wants: Wants,
    is_ended: bool,
    /// Its writer keeps to a small ring.
    is_small: bool,
    ring_out: Vec<u8>,
    ring_in: Vec<u8>,
    /// As the proxy tells the program.
    far_written: Written,
    far_way: Way,
    is_far_ended: bool,
    proxy: Proxy,
    /// Messages, and bytes of the kernel, on the way to this host.
    mail: VecDeque<(Envelope, Vec<u8>)>,
    kernel: VecDeque<u8>,
    /// Bytes that its program has written and read.
    written: u64,
    read: u64,
    /// It counts on the kernel alone.
    is_settled: bool,
    /// Messages without bytes that it has sent.
    notes: u64,
}

impl Host {
    fn new(is_small: bool) -> Self {
        Self {
            out: Outgoing::default(),
            inward: Incoming::default(),
            wants: Wants::Kernel,
            is_ended: false,
            is_small,
            ring_out: std::vec![0; RING as usize],
            ring_in: std::vec![0; RING as usize],
            far_written: Written::default(),
            far_way: Way::default(),
            is_far_ended: false,
            proxy: Proxy::default(),
            mail: VecDeque::new(),
            kernel: VecDeque::new(),
            written: 0,
            read: 0,
            is_settled: false,
            notes: 0,
        }
    }

    fn words(&self) -> Words {
        Words {
            written: self.out.written,
            taken: self.inward.taken,
            wants: self.wants,
            is_ended: self.is_ended,
            has_left: false,
        }
    }

    /// The way of its next bytes, and how many there is room for.
    fn way(&mut self, asks: bool) -> To {
        let by_ring = asks && self.far_way == Way::Ring && !self.is_ended;
        let way = way_out(&mut self.out, &self.proxy.far_progress(), by_ring);
        match way.expect("the far proxy tells the truth") {
            To::Ring(span) if self.is_small => {
                let len = span.len.min(SMALL.saturating_sub(span.place));
                To::Ring(Span { len, ..span })
            }
            way => way,
        }
    }

    fn read(&mut self, len: u64) {
        let way = match self.wants {
            Wants::Gone => From::Kernel(u64::MAX),
            _ => self.inward.way(&self.far_written).expect("the far proxy tells the truth"),
        };
        let taken: Vec<u8> = match way {
            From::Kernel(most) => {
                let len = len.min(most).min(self.kernel.len() as u64);
                self.kernel.drain(..len as usize).collect()
            }
            From::Ring(span) => (0..len.min(span.len))
                .map(|i| self.ring_in[((span.place + i) % RING) as usize])
                .collect(),
        };
        for (i, found) in taken.iter().enumerate() {
            let at = self.read + i as u64;
            assert_eq!(*found, byte(at), "at {at}, {way:?}");
        }
        self.read += taken.len() as u64;
        if self.wants != Wants::Gone {
            self.inward.took(taken.len() as u64);
        }
    }

    fn want(&mut self, wants: Wants) {
        if self.wants != Wants::Gone {
            self.wants = wants;
            self.is_settled = false;
        }
    }

    /// Asks whether bytes can come by the ring.
    fn settle(&mut self) {
        self.inward.way(&self.far_written).expect("the far proxy tells the truth");
        let is_level = self.inward.is_settled(&self.far_written);
        self.is_settled = is_level && self.proxy.is_settled(self.wants);
    }

    /// Sends the next message, with its bytes.
    fn next_mail(&mut self) -> Option<(Envelope, Vec<u8>)> {
        let message = self.proxy.due(&self.words()).expect("the program tells the truth")?;
        self.proxy.sent(&message);
        let bytes: Vec<u8> = match message {
            Message::Write { piece, .. } => {
                let Span { place, len } = piece.span();
                (0..len).map(|i| self.ring_out[((place + i) % RING) as usize]).collect()
            }
            _ => Vec::new(),
        };
        self.notes += u64::from(bytes.is_empty());
        Some((Letter::About { slot: 5, message }.to_envelope(), bytes))
    }

    /// Takes the next message.
    fn take_mail(&mut self) -> bool {
        let Some((envelope, bytes)) = self.mail.pop_front() else { return false };
        let letter = Letter::of_envelope(&envelope, bytes.len() as u64).expect("a letter");
        let Letter::About { slot: 5, message } = letter else { panic!("of another slot") };
        let change = self.proxy.on(&message, &self.words()).expect("the far proxy is honest");
        match change {
            Change::Written { span, before, after } => {
                assert!(span.len == 0 || !self.is_settled, "the reader does not look at the ring");
                assert_eq!(before, self.far_written);
                for i in 0..span.len {
                    let place = (span.place + i) % RING;
                    self.ring_in[place as usize] = bytes[i as usize];
                }
                self.far_written = after;
            }
            Change::Wants(way) => self.far_way = way,
            Change::Ended => self.is_far_ended = true,
            Change::None => {}
        }
        true
    }
}

struct World([Host; 2]);

impl World {
    fn new(small: [bool; 2]) -> Self {
        Self(small.map(Host::new))
    }

    fn write(&mut self, from: usize, len: u64, asks: bool) -> u64 {
        if self.0[from].far_way == Way::Gone {
            self.take_back(from);
        }
        let host = &mut self.0[from];
        let bytes = host.written..host.written + len;
        let len = match host.way(asks) {
            To::Wait => 0,
            To::Kernel => {
                self.0[1 - from].kernel.extend(bytes.map(byte));
                len
            }
            To::Ring(free) => {
                let len = len.min(free.len);
                for i in 0..len {
                    let place = (free.place + i) % RING;
                    host.ring_out[place as usize] = byte(host.written + i);
                }
                len
            }
        };
        let host = &mut self.0[from];
        host.out.wrote(len);
        host.written += len;
        len
    }

    /// Passes on what the far reader, which has gone, has left in the ring.
    fn take_back(&mut self, from: usize) {
        let host = &mut self.0[from];
        let taken = host.proxy.far_progress().taken;
        match host.out.take_back(taken).expect("the far proxy is honest") {
            TakenBack::Broken => panic!("newer bytes were with the kernel"),
            TakenBack::Span(span) => self.pass_on(from, span),
        }
    }

    fn pass_on(&mut self, from: usize, span: Span) {
        let of = |i| self.0[from].ring_out[((span.place + i) % RING) as usize];
        let bytes: Vec<u8> = (0..span.len).map(of).collect();
        self.0[1 - from].kernel.extend(bytes);
    }

    /// Sends at most this number of messages.
    fn pump(&mut self, from: usize, most: usize) -> bool {
        let mail: Vec<_> = std::iter::from_fn(|| self.0[from].next_mail()).take(most).collect();
        let has_sent = !mail.is_empty();
        self.0[1 - from].mail.extend(mail);
        has_sent
    }

    fn step(&mut self, of: usize, step: &Step) {
        match *step {
            Step::Write(len) => drop(self.write(of, len, true)),
            Step::WriteByKernel(len) => drop(self.write(of, len, false)),
            Step::Read(len) => self.0[of].read(len),
            Step::Want(wants) => self.0[of].want(wants),
            Step::Settle => self.0[of].settle(),
            Step::Pump(most) => drop(self.pump(of, most)),
            Step::Deliver(most) => {
                let _ = (0..most).take_while(|_| self.0[of].take_mail()).count();
            }
        }
    }

    /// Messages go on until none is due, and programs read until nothing comes.
    fn come_to_rest(&mut self) {
        loop {
            let before = [0, 1].map(|host| self.0[host].read);
            let mut is_moving = false;
            for of in [0, 1] {
                is_moving |= self.pump(of, usize::MAX);
                while self.0[of].take_mail() {
                    is_moving = true;
                }
                self.0[of].read(1 << 30);
            }
            if !is_moving && before == [0, 1].map(|host| self.0[host].read) {
                return;
            }
        }
    }

    /// Both directions go over to the kernel. Programs make no calls but for that.
    fn leave_link(&mut self) {
        self.0.iter_mut().for_each(|host| host.want(Wants::Kernel));
        self.exchange();
        for of in [0, 1] {
            self.write(of, 0, false);
        }
        self.exchange();
    }

    /// Messages go on until none is due.
    fn exchange(&mut self) {
        loop {
            let has_sent = [0, 1].map(|of| self.pump(of, usize::MAX));
            for host in &mut self.0 {
                while host.take_mail() {}
            }
            if has_sent == [false; 2] {
                return;
            }
        }
    }

    /// The link dies, with all that is under way. Whether the connection goes on by the kernel:
    /// otherwise it is reset.
    fn lose_link(&mut self) -> bool {
        let is_lost = |host: &Host| is_ring(host.proxy.arrived().segment) && !host.is_far_ended;
        if self.0.iter().any(is_lost) {
            return false;
        }
        for of in [0, 1] {
            let host = &mut self.0[of];
            host.mail.clear();
            let Some(last) = host.proxy.last_progress(&host.out.written) else { return false };
            match host.out.take_back(last.taken).expect("the far proxy was honest") {
                TakenBack::Broken => return false,
                TakenBack::Span(span) => self.pass_on(of, span),
            }
        }
        true
    }

    /// All bytes arrive, and each writer has room again.
    fn check_end(&mut self) {
        self.come_to_rest();
        for of in [0, 1] {
            assert_eq!(self.0[of].written, self.0[1 - of].read);
            // The first time, it may begin the ring, and wait until its peer has heard of that.
            if self.write(of, 1, true) == 0 {
                self.come_to_rest();
                assert!(self.write(of, 1, true) > 0, "its room was lost");
            }
        }
        self.come_to_rest();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64),
    /// Its writer wants to leave the ring.
    WriteByKernel(u64),
    Read(u64),
    Want(Wants),
    Settle,
    Pump(usize),
    Deliver(usize),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let len = prop_oneof![3 => 1u64..100, 1 => 1u64..RING * 2];
    let wants = prop_oneof![
        1 => Just(Wants::Kernel),
        3 => Just(Wants::Looking),
        3 => Just(Wants::Bell(3)),
        1 => Just(Wants::KernelBell(3)),
    ];
    let some = prop_oneof![3 => 1usize..4, 1 => Just(usize::MAX)];
    let step = prop_oneof![
        6 => len.clone().prop_map(Step::Write),
        1 => len.clone().prop_map(Step::WriteByKernel),
        5 => len.prop_map(Step::Read),
        2 => wants.prop_map(Step::Want),
        2 => Just(Step::Settle),
        7 => some.clone().prop_map(Step::Pump),
        7 => some.prop_map(Step::Deliver),
    ];
    proptest::collection::vec((0..2usize, step), 1..150)
}

/// A world whose readers both want the ring, and are known to.
fn in_rings() -> World {
    let mut world = World::new([false; 2]);
    for host in &mut world.0 {
        host.want(Wants::Looking);
    }
    world.come_to_rest();
    world
}

proptest! {
    // spec: SOCK-61, SOCK-62, SOCK-63, SOCK-64, SOCK-65
    #[test]
    fn all_bytes_arrive_in_order_whatever_overtakes(small: [bool; 2], steps in steps()) {
        let mut world = World::new(small);
        for (of, step) in &steps {
            world.step(*of, step);
        }
        world.check_end();
    }

    // spec: SOCK-61
    #[test]
    fn a_far_reader_that_goes_gets_the_rest_by_the_kernel(
        before in 0u64..1000, ring in 0u64..RING, part in 0u64..RING, sent in 0usize..80,
        arrived in 0usize..80, after in 1u64..1000,
    ) {
        let mut world = World::new([false; 2]);
        world.write(0, before, true);
        world.0[1].want(Wants::Looking);
        world.step(1, &Step::Pump(1));
        world.step(0, &Step::Deliver(1));
        world.write(0, ring, true);
        world.step(0, &Step::Pump(sent));
        world.step(1, &Step::Deliver(arrived));
        world.0[1].read(part);
        world.0[1].read(part);
        world.0[1].want(Wants::Gone);
        world.step(1, &Step::Pump(usize::MAX));
        world.step(0, &Step::Deliver(usize::MAX));
        world.write(0, after, true);
        world.come_to_rest();
        prop_assert_eq!(world.0[0].written, world.0[1].read);
    }

    // spec: SOCK-70
    #[test]
    fn a_connection_that_outlives_its_link_loses_no_byte_and_gets_none_twice(
        small: [bool; 2], steps in steps(), leaves: bool, later in 1u64..100,
    ) {
        let mut world = World::new(small);
        for (of, step) in &steps {
            world.step(*of, step);
        }
        if leaves {
            world.leave_link();
        }
        let is_in_ring = world.0.iter().any(|host| host.out.is_in_ring());
        let goes_on = world.lose_link();
        prop_assert!(goes_on || is_in_ring || !leaves, "both ends are with the kernel");
        if goes_on {
            for of in [0, 1] {
                prop_assert_eq!(world.write(of, later, true), later);
                (0..=MARKS).for_each(|_| world.0[1 - of].read(1 << 30));
                prop_assert_eq!(world.0[of].written, world.0[1 - of].read);
            }
        }
    }

    // spec: SOCK-66
    #[test]
    fn messages_of_a_liar_change_nothing_beside_the_ring(
        honest in steps(), lies in proptest::collection::vec(lie(), 1..20),
    ) {
        let mut world = World::new([false; 2]);
        for (of, step) in &honest {
            world.step(*of, step);
        }
        let host = &mut world.0[0];
        for (envelope, len) in lies {
            let letter = Letter::of_envelope(&envelope, len);
            let Ok(Letter::About { message, .. }) = letter else { continue };
            let before = host.proxy;
            match host.proxy.on(&message, &host.words()) {
                Err(Malformed) => prop_assert_eq!(host.proxy, before),
                Ok(Change::Written { span, after, .. }) => {
                    prop_assert!(span.place < RING && span.len <= BYTES_MOST);
                    let head = host.inward.taken.head;
                    let is_room = span.len == 0 || after.tail - head <= RING;
                    prop_assert!(is_room, "over bytes that were not read");
                    host.far_written = after;
                    if let Ok(From::Ring(span)) = host.inward.way(&after) {
                        prop_assert!(span.len <= RING && span.place < RING);
                    }
                }
                Ok(_) => {}
            }
        }
    }
}

/// A message that may be true or not.
fn lie() -> impl Strategy<Value = (Envelope, u64)> {
    let number = || prop_oneof![0u64..4, 0u64..2 * RING, Just(u64::MAX), any::<u64>()];
    let small = || prop_oneof![4 => 0u32..5, 1 => any::<u32>()];
    let tag = (0u64..8, small()).prop_map(|(kind, number)| kind << 56 | u64::from(number));
    let segments = (small(), small()).prop_map(|(a, b)| u64::from(a) | u64::from(b) << 32);
    let len = prop_oneof![Just(0), 0..BYTES_MOST * 2];
    (tag, number(), number(), number(), segments, len).prop_map(
        |(tag, first, origin, head, segments, len)| {
            (Envelope { tag, words: [first, origin, head, segments] }, len)
        },
    )
}

// spec: SOCK-64
#[test]
fn requests_and_answers_take_a_message_each() {
    let mut world = in_rings();
    for turn in 0..1000 {
        let notes = [0, 1].map(|host| world.0[host].notes);
        for of in [0, 1] {
            assert_eq!(world.write(of, 64, true), 64);
            assert!(world.pump(of, usize::MAX));
            assert!(world.0[1 - of].take_mail());
            world.0[1 - of].read(100);
        }
        if turn > 0 {
            assert_eq!(notes, [0, 1].map(|host| world.0[host].notes), "turn {turn}");
        }
    }
}

// spec: SOCK-64
#[test]
fn a_stream_takes_a_message_of_its_reader_for_some_kibibytes() {
    let mut world = in_rings();
    let notes = world.0[1].notes;
    for _ in 0..1000 {
        assert_eq!(world.write(0, 4000, true), 4000);
        world.come_to_rest();
    }
    let told = world.0[1].notes - notes;
    assert!(told <= 4_000_000 / SMALL + 2, "{told} messages");
}

// spec: SOCK-63
#[test]
fn a_writer_leaves_the_ring_when_the_far_proxy_knows_where_it_began() {
    let mut world = in_rings();
    assert_eq!(world.write(0, 10, true), 10);
    assert_eq!(world.write(0, 10, false), 0, "bytes of the kernel would be read first");
    world.pump(0, usize::MAX);
    while world.0[1].take_mail() {}
    world.pump(1, usize::MAX);
    while world.0[0].take_mail() {}
    assert_eq!(world.write(0, 10, false), 10);
    world.check_end();
}

// spec: SOCK-65
#[test]
fn a_reader_that_wants_the_kernel_is_settled_once_the_writer_has_left_the_ring() {
    let mut world = in_rings();
    assert_eq!(world.write(0, 10, true), 10);
    world.come_to_rest();
    world.0[1].want(Wants::Kernel);
    world.come_to_rest();
    world.0[1].settle();
    assert!(!world.0[1].is_settled, "the writer may write to the ring still");
    assert_eq!(world.write(0, 10, true), 10);
    world.come_to_rest();
    world.0[1].settle();
    assert!(world.0[1].is_settled);
}

// spec: SOCK-70
#[test]
fn bytes_that_came_before_a_link_was_left_come_once() {
    let mut world = in_rings();
    assert_eq!(world.write(0, 10, true), 10);
    world.leave_link();
    assert_eq!(world.0[1].read, 0);
    assert!(world.lose_link());
    assert_eq!(world.write(0, 10, true), 10);
    world.come_to_rest();
    assert_eq!(world.0[1].read, 20);
}

#[test]
fn an_end_and_a_leave_come_behind_all_bytes() {
    let mut world = in_rings();
    assert_eq!(world.write(0, 10_000, true), 10_000);
    world.0[0].is_ended = true;
    world.pump(0, usize::MAX);
    while !world.0[1].is_far_ended {
        assert!(world.0[1].take_mail());
    }
    world.0[1].read(20_000);
    assert_eq!(world.0[1].read, 10_000);
    let left = Words { has_left: true, ..world.0[0].words() };
    let [near, far] = &mut world.0;
    assert_eq!(near.proxy.due(&left), Ok(Some(Message::Leave)));
    near.proxy.sent(&Message::Leave);
    assert_eq!(near.proxy.due(&left), Ok(None));
    assert_eq!(far.proxy.on(&Message::Leave, &far.words()), Ok(Change::None));
    assert_eq!(far.proxy.on(&Message::End, &far.words()), Err(Malformed));
    assert!(!near.proxy.is_over() && !far.proxy.is_over());
    far.proxy.sent(&Message::Leave);
    assert!(far.proxy.is_over());
}

// spec: SOCK-66
#[test]
fn messages_go_through_envelopes() {
    let progress = Progress { taken: Taken { head: 1 << 40, segment: 7 }, known: u32::MAX };
    let piece = Piece { segment: u32::MAX, at: u64::MAX, origin: 1 << 50, len: 9 };
    for message in [
        Message::Write { piece, progress },
        Message::Progress(progress),
        Message::Wish { number: 3, way: Way::Gone, progress },
        Message::Wish { number: 4, way: Way::Ring, progress },
        Message::Heard { number: u32::MAX },
        Message::End,
        Message::Leave,
    ] {
        let len = if matches!(message, Message::Write { .. }) { 9 } else { 0 };
        let letter = Letter::About { slot: 16_383, message };
        let envelope = letter.to_envelope();
        assert_eq!(Letter::of_envelope(&envelope, len), Ok(letter));
        let of_many = Letter::of_envelope(&envelope, BYTES_MOST + 1);
        assert_eq!(of_many, Err(Malformed), "more bytes than a message has");
    }
    let meet = Letter::Meet { slot: 7, token: [u64::MAX, 1] };
    assert_eq!(Letter::of_envelope(&meet.to_envelope(), 0), Ok(meet));
    assert_eq!(Letter::of_envelope(&meet.to_envelope(), 1), Err(Malformed));
    let other = Envelope { tag: 99 << 56, words: [0; HEAD_WORDS] };
    assert_eq!(Letter::of_envelope(&other, 0), Err(Malformed));
}
