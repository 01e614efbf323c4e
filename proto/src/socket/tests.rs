//! Both ends of a direction against a stream that is one list of bytes.
extern crate std;

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::vec::Vec;

/// A direction: its two ends, the ring, and the kernel's queue.
struct Direction {
    out: Outgoing,
    inward: Incoming,
    ring: Vec<u8>,
    kernel: VecDeque<u8>,
    wants: Wants,
    written: u64,
    read: u64,
}

/// The byte at a position of the stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

impl Direction {
    fn new() -> Self {
        Self {
            out: Outgoing::default(),
            inward: Incoming::default(),
            ring: std::vec![0; RING as usize],
            kernel: VecDeque::new(),
            wants: Wants::Kernel,
            written: 0,
            read: 0,
        }
    }

    fn write(&mut self, len: u64) {
        if self.wants == Wants::Gone {
            self.take_back();
        }
        let way = self.out.way(self.inward.taken, self.wants.is_ring()).unwrap();
        let len = match way {
            To::Wait => 0,
            To::Kernel => {
                self.kernel.extend((self.written..self.written + len).map(byte));
                len
            }
            To::Ring(free) => {
                let len = len.min(free.len);
                for i in 0..len {
                    let place = (free.place + i) % RING;
                    self.ring[place as usize] = byte(self.written + i);
                }
                len
            }
        };
        self.out.wrote(len);
        self.written += len;
    }

    fn take_back(&mut self) {
        match self.out.take_back(self.inward.taken).unwrap() {
            TakenBack::Broken => {
                panic!("bytes are with the kernel that come after some in the ring")
            }
            TakenBack::Span(span) => {
                let of = |i| self.ring[((span.place + i) % RING) as usize];
                self.kernel.extend((0..span.len).map(of));
            }
        }
    }

    fn read(&mut self, len: u64) {
        let taken = if self.wants == Wants::Gone {
            let len = len.min(self.kernel.len() as u64);
            self.kernel.drain(..len as usize).collect::<Vec<_>>()
        } else {
            match self.inward.way(&self.out.written).unwrap() {
                From::Kernel(most) => {
                    let len = len.min(most).min(self.kernel.len() as u64);
                    self.kernel.drain(..len as usize).collect()
                }
                From::Ring(span) => (0..len.min(span.len))
                    .map(|i| self.ring[((span.place + i) % RING) as usize])
                    .collect(),
            }
        };
        for (i, found) in taken.iter().enumerate() {
            assert_eq!(*found, byte(self.read + i as u64), "at {}", self.read + i as u64);
        }
        self.read += taken.len() as u64;
        if self.wants != Wants::Gone {
            self.inward.took(taken.len() as u64);
        }
    }

    /// Reads until nothing comes.
    fn drain(&mut self) {
        loop {
            let before = self.read;
            self.read(1 << 20);
            if self.read == before {
                break;
            }
        }
        assert_eq!(self.read, self.written);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64),
    Read(u64),
    Want(Wants),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![1u64..100, 1u64..RING * 2];
    let wants = prop_oneof![Just(Wants::Kernel), Just(Wants::Looking), Just(Wants::Bell(3))];
    let step = prop_oneof![
        3 => len.clone().prop_map(Step::Write),
        3 => len.prop_map(Step::Read),
        1 => wants.prop_map(Step::Want),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    // spec: SOCK-10, SOCK-11, SOCK-12, SOCK-13
    #[test]
    fn all_bytes_arrive_in_order_by_either_way(steps in steps()) {
        let mut direction = Direction::new();
        for step in steps {
            match step {
                Step::Write(len) => direction.write(len),
                Step::Read(len) => direction.read(len),
                Step::Want(wants) => direction.wants = wants,
            }
            let in_ring = direction.written - direction.read - direction.kernel.len() as u64;
            prop_assert_eq!(direction.out.untaken_in_ring(direction.inward.taken), Ok(in_ring));
            prop_assert_eq!(direction.inward.untaken_in_ring(&direction.out.written), in_ring);
        }
        direction.drain();
    }

    // spec: SOCK-21
    #[test]
    fn bytes_in_the_ring_of_a_reader_that_goes_are_taken_back(
        before in 0u64..1000, ring in 0u64..RING, part in 0u64..RING, after in 1u64..1000,
    ) {
        let mut direction = Direction::new();
        direction.write(before);
        direction.wants = Wants::Looking;
        direction.write(ring);
        direction.read(part);
        direction.read(part);
        direction.wants = Wants::Gone;
        direction.write(after);
        direction.drain();
    }

    // spec: SOCK-27, SOCK-28
    #[test]
    fn words_of_a_liar_never_lead_out_of_the_ring(
        tail: u64, segment: u32, origin: u64, marks: [u64; MARKS], head in 0u64..1 << 40, own: u32,
    ) {
        let mut inward = Incoming { taken: Taken { head, segment: own } };
        let written = Written { tail, segment, origin, marks };
        if let Ok(From::Ring(span)) = inward.way(&written) {
            prop_assert!(span.len <= RING && span.place < RING);
        }
        let written = Written { tail: head, segment: own, ..written };
        let mut out = Outgoing { written, is_left: false };
        let taken = Taken { head: tail, segment };
        if let Ok(To::Ring(span)) = out.way(taken, true) {
            prop_assert!(span.len <= RING && span.place < RING);
        }
        if let Ok(TakenBack::Span(span)) = out.take_back(taken) {
            prop_assert!(span.len <= RING && span.place < RING);
        }
    }
}

// spec: SOCK-21
#[test]
fn a_reader_sees_a_gap_that_it_would_leave() {
    let mut direction = Direction::new();
    let has_gap = |direction: &Direction| direction.inward.has_gap(&direction.out.written);
    direction.wants = Wants::Looking;
    direction.write(100);
    direction.wants = Wants::Kernel;
    direction.out.way(direction.inward.taken, false).unwrap();
    assert!(!has_gap(&direction), "there is a mark, and nothing behind it");
    direction.write(100);
    assert!(has_gap(&direction));
    direction.read(100);
    assert!(!has_gap(&direction));
}

// spec: SOCK-21
#[test]
fn a_gap_before_bytes_with_the_kernel_is_found() {
    let mut direction = Direction::new();
    direction.wants = Wants::Looking;
    direction.write(10);
    direction.wants = Wants::Kernel;
    direction.write(10);
    let taken = direction.inward.taken;
    assert_eq!(direction.out.take_back(taken), Ok(TakenBack::Broken));
}

#[test]
fn an_empty_ring_begins_anew() {
    let mut direction = Direction::new();
    direction.wants = Wants::Looking;
    for _ in 0..1000 {
        let way = direction.out.way(direction.inward.taken, true);
        assert!(matches!(way, Ok(To::Ring(Span { place: 0, len: RING }))), "{way:?}");
        direction.write(1000);
        direction.drain();
    }
}

// spec: SOCK-14
#[test]
fn a_word_says_what_the_reader_wants() {
    let bells = [0, 1, u16::MAX].into_iter();
    let bells = bells.flat_map(|bell| [Wants::Bell(bell), Wants::KernelBell(bell)]);
    let others = [Wants::Kernel, Wants::Gone, Wants::Claimed, Wants::Looking];
    for wants in others.into_iter().chain(bells) {
        assert_eq!(Wants::of_word(wants.to_word()), wants);
    }
    assert_eq!(Wants::of_word(u32::MAX), Wants::Kernel);
}
