//! Both sides of a pair in one process: slots, the memory of rings, and a peer's claims.
use super::*;
use rustix::fs::fstat;
use std::sync::Barrier;

/// Both sides of a pair, and its file.
fn both() -> ([PairMemory; 2], Descriptor) {
    let (maker, file) = PairMemory::make().expect("memory");
    let taker = PairMemory::open(file.as_fd()).expect("memory").expect("this version");
    ([maker, taker], file)
}

fn blocks(file: &Descriptor) -> u64 {
    fstat(file).expect("a file").st_blocks as u64 * 512
}

const WORDS: [u64; OFFER_WORDS] = [1, 2, 3, 4, 5];

/// A slot that the maker has offered, seen from both sides.
fn offered([maker, taker]: &[PairMemory; 2]) -> (u32, [SlotMemory; 2]) {
    let (number, slot) = maker.claim().expect("a slot");
    slot.offer(WORDS);
    (number, [slot, taker.slot(number).expect("addresses")])
}

fn take(slot: &SlotMemory) -> bool {
    slot.found(WORDS).is_some_and(|found| slot.take(found))
}

// spec: SOCK-42
#[test]
fn the_last_side_that_leaves_gives_the_slot_back() {
    let (pair, _file) = both();
    for first in [0, 1] {
        let (number, slots) = offered(&pair);
        assert_eq!(number, 0);
        assert!(take(&slots[1]));
        assert!(slots[0].is_agreed() && slots[1].is_agreed());
        pair[first].leave(number, &slots[first]);
        assert!(slots[1 - first].is_agreed(), "the other side has it still");
        assert!(!take(&slots[1]));
        let (other, others) = offered(&pair);
        assert_eq!(other, 1, "it is not given while a side has it");
        pair[1 - first].leave(number, &slots[1 - first]);
        pair[0].leave(other, &others[0]);
        // Leaving twice gives nothing back twice.
        let (number, again) = offered(&pair);
        assert_eq!(number, 0);
        pair[1].leave(number, &again[1]);
        assert_eq!(again[0].state(), State::Offered);
        pair[0].leave(number, &again[0]);
    }
}

// spec: SOCK-7, SOCK-42
#[test]
fn an_offer_that_was_withdrawn_is_not_taken_and_gives_its_slot_back() {
    let (pair, _file) = both();
    for _ in 0..3 {
        let (number, slots) = offered(&pair);
        assert_eq!(number, 0);
        slots[0].withdraw();
        assert!(!take(&slots[1]) && !slots[0].is_agreed());
        assert_ne!(slots[0].state(), State::Free, "the maker may be about to use it");
        pair[0].leave(number, &slots[0]);
        assert_eq!(slots[0].state(), State::Free);
    }
}

#[test]
fn of_two_sides_that_leave_at_a_time_one_is_the_last() {
    let (pair, _file) = both();
    let gate = Barrier::new(2);
    for round in 0..2000 {
        let (number, slots) = offered(&pair);
        // The taker takes it before the maker leaves, or at that moment.
        let is_taken = round % 2 == 0 && take(&slots[1]);
        let leave = |side: Side| {
            gate.wait();
            let slot = &slots[side as usize];
            let has_it = side == Side::Maker || is_taken || take(slot);
            has_it && slot.leave(side)
        };
        let last = std::thread::scope(|scope| {
            let taker = scope.spawn(|| leave(Side::Taker));
            [leave(Side::Maker), taker.join().unwrap()]
        });
        assert!(last[0] != last[1], "round {round}: {last:?}");
        assert_eq!(slots[0].state(), State::Free);
        pair[0].used().give_back(number);
    }
}

// spec: SOCK-40
#[test]
fn a_ring_that_shrinks_gives_back_what_a_small_one_does_not_have() {
    let (pair, file) = both();
    let (number, slots) = offered(&pair);
    assert!(take(&slots[1]));
    for (slot, other) in [(0, 1), (1, 0)] {
        let before = blocks(&file);
        slots[slot].enlarge();
        slots[slot].copy_in(0, &vec![7; RING as usize]);
        assert_eq!(blocks(&file) - before, RING);
        slots[slot].shrink();
        assert_eq!(blocks(&file) - before, SMALL);
        let mut read = vec![1; RING as usize];
        slots[other].copy_out(0, &mut read);
        let (small, rest) = read.split_at(SMALL as usize);
        assert!(small.iter().all(|byte| *byte == 7) && rest.iter().all(|byte| *byte == 0));
        // Looking has made pages of zeros.
        slots[slot].shrink();
    }
    let before = blocks(&file);
    slots[1].enlarge();
    slots[1].copy_in(SMALL, &[7; 5000]);
    assert_eq!(blocks(&file) - before, 8192);
    pair[0].leave(number, &slots[0]);
    assert_eq!(blocks(&file) - before, 8192, "its reader may look at it still");
    pair[1].leave(number, &slots[1]);
    assert_eq!(blocks(&file), before, "a small ring of the first slots stays");
}

// spec: SOCK-29
#[test]
fn rings_are_mapped_in_blocks_and_slots_are_apart() {
    let (pair, file) = both();
    let numbers = [0, 63, 64, 8000, SLOTS - 1];
    for number in numbers {
        let slot = pair[0].slot(number).expect("addresses");
        slot.copy_in(RING - 4, &[(number as u8).wrapping_add(1); 8]);
        slot.offer([u64::from(number); OFFER_WORDS]);
    }
    for number in numbers {
        let slot = pair[1].slot(number).expect("addresses");
        let mut read = [0; 8];
        slot.copy_out(RING - 4, &mut read);
        assert_eq!(read, [(number as u8).wrapping_add(1); 8]);
        assert!(slot.found([u64::from(number); OFFER_WORDS]).is_some());
    }
    let mapped = pair[0].rings.iter().filter(|block| block.get().is_some());
    assert_eq!(mapped.count(), 4);
    assert!(blocks(&file) < 32 * 4096 * 2, "only what was used is there");
}

#[test]
fn a_number_that_the_peer_makes_up_is_no_slot() {
    let (pair, _file) = both();
    pair[0].tell_of_port(7, SLOTS - 1);
    pair[0].tell_of_port(u16::MAX, SLOTS);
    assert_eq!([7, u16::MAX].map(|port| pair[1].told_of_port(port)), [Some(SLOTS - 1), None]);
    // A slot that is used, and that the peer has given back in our place, is not given again.
    let (number, slots) = offered(&pair);
    pair[1].used().give_back(number);
    assert!(pair[0].claim().is_none());
    assert_eq!(slots[0].state(), State::Offered);
    assert_eq!(offered(&pair).0, 1);
}

// spec: SOCK-53
#[test]
fn bells_of_processes_that_have_died_are_claimed_anew() {
    let (pair, _file) = both();
    let all: Vec<u16> = std::iter::from_fn(|| pair[0].claim_bell()).collect();
    let room = hidden::room().min(BELLS.into()) as u16;
    assert_eq!(all, (0..room).collect::<Vec<_>>(), "as many as the other side has room for");
    assert_eq!(pair[1].claim_bell(), Some(0), "that of the other side");

    pair[0].give_back_bell(7);
    assert_eq!([pair[0].claim_bell(), pair[0].claim_bell()], [Some(7), None]);
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    for bell in [5, 9] {
        let owner = OWNERS + Side::Maker as u64 * u64::from(BELLS) * 4 + 4 * bell;
        // Relaxed: nobody else has the memory.
        pair[0].shared.half_word(owner).store(child.id(), Ordering::Relaxed);
    }
    assert!((0..room).all(|_| pair[0].claim_bell().is_none()), "it was not waited for");
    child.wait().expect("it ends");
    let mut anew: Vec<u16> = (0..room).filter_map(|_| pair[0].claim_bell()).collect();
    anew.sort_unstable();
    assert_eq!(anew, [5, 9]);
}

#[test]
fn a_new_owner_of_a_bell_finds_no_marks_and_is_to_be_rung() {
    let (pair, _file) = both();
    let (own, theirs) = (pair[0].bell(Side::Maker, 3), pair[1].bell(Side::Maker, 3));
    own.begin(1);
    theirs.mark(8);
    assert!(own.is_marked() && theirs.sleep().disturb() && !theirs.sleep().disturb());
    own.begin(2);
    assert!(!own.is_marked() && theirs.sleep().disturb());
    assert_eq!(theirs.edition(), 2);
}
