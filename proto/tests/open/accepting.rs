//! The side that accepts: half-open links, their table, rations.
use super::{Admitted, MILLISECOND, PAYLOAD, admit, asker, door, set_up};
use ayre_proto::link::frame::{Header, Kind};
use ayre_proto::link::half_open::{
    ANSWERED_MAX, AdmitError, HALF_OPEN_CALM, HALF_OPEN_MAX, HALF_OPEN_OF_ONE, HalfOpenTable,
    OpenRequest, YOUNG,
};
use ayre_proto::link::open::{ANYBODY, SetUp};
use ayre_proto::link::token_bucket::{TokenBucket, TokenBuckets};

/// The first frame of a half-open link's opener.
fn confirmation(door: &HalfOpenTable, open: &SetUp) -> Header {
    let entry = door.get(door.find(open).expect("half-open")).expect("an entry");
    let (to, token, generation) = (entry.ours().index, entry.ours().token, entry.ours().generation);
    let header = entry.ours().accept_header(open, 0, 0, PAYLOAD);
    Header { kind: Kind::Probe, to, token, generation, ..header }
}

/// The same open has the same accept; only a frame with all that was agreed confirms it, once.
// spec: OPEN-8, OPEN-10
#[test]
fn a_half_open_link_is_confirmed_by_its_own_frame() {
    let (open, ours) = (set_up(1, 0), set_up(2, 3));
    let mut door = door(HalfOpenTable::TIMEOUT);
    assert_eq!(door.find(&open), None);
    let (place, left) = admit(&mut door, 1, &open, ours, 0).expect("a good open");
    assert!(left.is_none());
    assert_eq!(door.find(&open), Some(place));
    assert_eq!(door.get(place).map(|entry| *entry.ours()), Some(ours.answering(&open)));
    assert_eq!(door.with_index(ours.index), Some(place));
    assert_eq!((door.with_mark(open.nonce), door.with_mark(1)), (Some(place), None));
    let good = confirmation(&door, &open);
    let strange = [
        Header { token: good.token ^ 1, ..good },
        Header { to: good.to ^ 1, ..good },
        Header { generation: good.generation - 1, ..good },
        Header { kind: Kind::Open, ..good },
        Header { kind: Kind::Accept, ..good },
        Header { kind: Kind::Close, ..good },
        Header { kind: Kind::Reset, ..good },
    ];
    for header in strange {
        assert!(door.confirm(&header, 1).is_none());
    }
    let (at, confirmed) = door.confirm(&good, 1).expect("the good one");
    assert_eq!((at, *confirmed.theirs()), (place, open));
    assert!(door.confirm(&good, 1).is_none() && door.is_empty());
}

/// A port that hears its own open, or an accept in place of an open, has no half-open link.
// spec: OPEN-3
#[test]
fn a_reflected_open_is_no_open() {
    let (open, ours) = (set_up(1, 0), set_up(2, 0));
    let mut door = door(HalfOpenTable::TIMEOUT);
    let own = SetUp { nonce: 99, ..ours };
    let accept = SetUp { answers: 5, ..open };
    for impossible in [own, accept] {
        assert_eq!(admit(&mut door, 1, &impossible, ours, 0).err(), Some(AdmitError::Malformed));
    }
    assert!(door.is_empty());
}

/// Of an opener's attempts the one that is confirmed wins, and ends the others. A later one, from
/// before a restart or from a recording, undoes nothing.
// spec: OPEN-9, OPEN-10
#[test]
fn the_confirmed_attempt_wins_over_later_and_replayed_ones() {
    let mut door = door(HalfOpenTable::TIMEOUT);
    let (old, new) = (set_up(1, 0), set_up(1, 1));
    for (nth, open) in [&new, &old].into_iter().enumerate() {
        admit(&mut door, 1, open, set_up(2, nth as u64), 0).expect("good");
    }
    let other = set_up(3, 0);
    admit(&mut door, 3, &other, set_up(2, 9), 0).expect("good");
    let (first, late) = (confirmation(&door, &new), confirmation(&door, &old));
    assert_eq!(door.confirm(&first, 1).map(|(_, entry)| *entry.theirs()), Some(new));
    assert!(door.confirm(&late, 1).is_none(), "the earlier incarnation is over");
    assert_eq!(door.find(&old), None);
    assert_eq!(door.expire(0).map(|(_, entry)| *entry.theirs()), Some(old), "the owner is told");
    assert!(door.expire(0).is_none());
    let others = confirmation(&door, &other);
    assert!(door.confirm(&others, 1).is_some(), "another opener's stays");
}

/// A flood of opens in one name leaves the places of others alone; in all names it takes the
/// oldest, but none that may still be confirmed. Each entry ends.
// spec: OPEN-9
#[test]
fn the_table_is_bounded_and_forgets() {
    let mut door = door(HalfOpenTable::TIMEOUT);
    let honest = set_up(1, 0);
    admit(&mut door, 1, &honest, set_up(2, 0), 0).expect("good");
    for nth in 1..100 {
        let at = nth * YOUNG;
        let (_, left) = admit(&mut door, 3, &set_up(3, nth), set_up(2, nth), at).expect("good");
        let left = left.map(|entry| entry.theirs().generation);
        let oldest = nth.checked_sub(HALF_OPEN_OF_ONE as u64).filter(|nth| *nth > 0);
        assert_eq!(left, oldest.map(|nth| 1 + nth as u32), "its own oldest makes room");
    }
    assert_eq!(door.len(), 1 + HALF_OPEN_OF_ONE);
    assert!(door.find(&honest).is_some());
    let begin = 100 * YOUNG;
    for nth in 0..200u16 {
        let at = begin + u64::from(nth) * YOUNG;
        let admitted = admit(&mut door, 4 + u64::from(nth), &set_up(4 + nth, 0), set_up(2, 0), at);
        admitted.expect("the oldest is old enough");
        let next = admit(&mut door, 1000, &set_up(999, 0), set_up(2, 0), at).map(|_| ());
        assert!(next.is_ok() || door.len() == HALF_OPEN_MAX);
        assert!(door.len() <= HALF_OPEN_MAX);
    }
    assert_eq!((door.len(), door.find(&honest)), (HALF_OPEN_MAX, None));
    let first = door.deadline();
    assert!(door.expire(first - 1).is_none() && door.expire(first).is_some());
    while door.expire(u64::MAX).is_some() {}
    assert_eq!((door.len(), door.deadline()), (0, u64::MAX));
}

/// Whether this open is let in as one that nothing is known of but whom it names.
fn let_in(door: &mut HalfOpenTable, opener: u64, open: &SetUp, now: u64) -> Option<Admitted> {
    let asker = asker(opener, open, false);
    let is_named = open.destination == 2;
    let may = door.may_enter(&asker, is_named, now);
    may.then(|| door.admit(asker, open, set_up(2, now % 99), now))
}

/// Recorded opens of one opener behind the true one, or before it: the true one gets its link.
// spec: OPEN-9, OPEN-20, OPEN-21
#[test]
fn recorded_opens_do_not_shut_their_opener_out() {
    let recorded: Vec<_> = (1..=8).map(|nth| set_up(1, nth)).collect();
    let open = set_up(1, 0);
    // Behind it.
    let mut behind = door(HalfOpenTable::TIMEOUT);
    assert!(let_in(&mut behind, 1, &open, 0).is_some_and(|admitted| admitted.is_ok()));
    for (nth, old) in recorded.iter().enumerate() {
        let admitted = let_in(&mut behind, 1, old, 1 + nth as u64).expect("there are few");
        assert_eq!(admitted.is_ok(), nth + 1 < HALF_OPEN_OF_ONE, "no young place is taken");
    }
    let first = confirmation(&behind, &open);
    assert_eq!(behind.confirm(&first, 1).map(|(_, entry)| *entry.theirs()), Some(open));
    // Before it: it comes again with a cookie, and takes the place of one without.
    let mut before = door(HalfOpenTable::TIMEOUT);
    for old in &recorded[..HALF_OPEN_OF_ONE] {
        assert!(let_in(&mut before, 1, old, 0).is_some_and(|admitted| admitted.is_ok()));
    }
    assert_eq!(let_in(&mut before, 1, &open, 1).map(|got| got.err()), Some(Some(AdmitError::Full)));
    let proved = asker(1, &open, true);
    assert!(before.may_enter(&proved, false, 1));
    let (_, left) = before.admit(proved, &open, set_up(2, 99), 1).expect("a cookie counts");
    assert_eq!(left.map(|left| *left.theirs()), Some(recorded[0]));
    for old in &recorded[HALF_OPEN_OF_ONE..] {
        let again = let_in(&mut before, 1, old, 2 * YOUNG);
        let left = again.and_then(Result::ok).and_then(|(_, left)| left);
        assert!(left.is_none_or(|left| *left.theirs() != open), "no place of one with a cookie");
    }
    let first = confirmation(&before, &open);
    assert!(before.confirm(&first, 3 * YOUNG).is_some());
}

/// An attacker with true addresses, and cookies for them, opens in many names. Openers of other
/// hosts get in all the same, at once, and keep their places. He gets the places that they leave.
// spec: OPEN-9
#[test]
fn one_host_that_fills_all_places_keeps_no_other_out() {
    let mut door = door(HalfOpenTable::TIMEOUT);
    let mut number = 0;
    let mut open_from = |door: &mut HalfOpenTable, host: u64| {
        number += 1;
        let open = set_up(number, 0);
        let asker = OpenRequest { host, ..asker(number.into(), &open, true) };
        let admitted = door.admit(asker, &open, set_up(2, number.into()), 0);
        (open, admitted.map(|(_, left)| left.map(|left| *left.theirs())))
    };
    let flood: Vec<_> = (0..HALF_OPEN_MAX).map(|_| open_from(&mut door, 1)).collect();
    assert!(flood.iter().all(|(_, admitted)| *admitted == Ok(None)), "they are free");
    assert_eq!(open_from(&mut door, 1).1, Err(AdmitError::Full), "no young place of its own host");
    let mut honest = Vec::new();
    for nth in 0..HALF_OPEN_MAX / 4 {
        for host in [2, 3] {
            let (open, admitted) = open_from(&mut door, host);
            let left = admitted.expect("another host").expect("for one of the many");
            assert!(flood.iter().any(|(flooded, _)| *flooded == left), "{nth} of {host}");
            honest.push(open);
        }
        assert_eq!(open_from(&mut door, 1).1, Err(AdmitError::Full));
        if honest.len() == 2 * 20 {
            break;
        }
    }
    assert!(honest.iter().all(|open| door.find(open).is_some()), "nobody else has left");
    let stranger = set_up(9999, 0);
    let unproved = OpenRequest { host: 4, ..asker(9999, &stranger, false) };
    let admitted = door.admit(unproved, &stranger, set_up(2, 9999), 0);
    assert_eq!(admitted.err(), Some(AdmitError::Full), "without a cookie it is nobody's host");
}

/// An open that was answered is not answered as a new one again, whether there is a link of it or
/// not.
// spec: OPEN-21
#[test]
fn an_open_that_was_answered_is_known() {
    let mut door = HalfOpenTable::new(100, TokenBucket::new(u32::MAX, 1, 0));
    let opens: Vec<_> = (0..ANSWERED_MAX as u64).map(|nth| set_up(1, nth)).collect();
    for (nth, open) in opens.iter().enumerate() {
        assert!(!door.was_answered(open.nonce));
        assert!(let_in(&mut door, nth as u64, open, nth as u64 * 100).is_some());
        while door.expire(u64::MAX).is_some() {}
    }
    for open in &opens {
        assert!(let_in(&mut door, 7, open, u64::MAX).is_none(), "a recording");
        assert!(!door.may_enter(&asker(7, open, true), true, u64::MAX), "nor with its cookie");
    }
}

/// An opener that proves nothing gets few places at a time, few in a while, and none for an open
/// that names no port.
// spec: OPEN-20, OPEN-21
#[test]
fn opens_without_a_cookie_are_rationed() {
    let mut door = HalfOpenTable::rack(0);
    let nobody = SetUp { destination: ANYBODY, ..set_up(1, 0) };
    assert!(let_in(&mut door, 1, &nobody, 0).is_none(), "it may be meant for another port");
    let others = SetUp { destination: 3, ..set_up(1, 0) };
    assert!(let_in(&mut door, 1, &others, 0).is_none());
    let names = 10..110;
    let taken =
        names.filter(|name| let_in(&mut door, u64::from(*name), &set_up(*name, 0), 0).is_some());
    assert_eq!(taken.count(), HALF_OPEN_CALM);
    let proved = asker(5, &set_up(5, 0), true);
    assert!(door.may_enter(&proved, false, 0), "a cookie is a cookie");
    while door.expire(HalfOpenTable::TIMEOUT).is_some() {}
    let mut count = 0;
    for nth in 0..100 {
        // Each is confirmed, or its time is over, before the next one comes.
        let now = HalfOpenTable::TIMEOUT + nth;
        count += usize::from(let_in(&mut door, 9, &set_up(200 + nth as u16, 0), now).is_some());
        while door.expire(u64::MAX).is_some() {}
    }
    assert_eq!(count, 32, "at once");
    assert!(
        let_in(&mut door, 9, &set_up(999, 0), HalfOpenTable::TIMEOUT + 10 * MILLISECOND).is_some()
    );
}

/// An accept goes again, but not for each of a flood of copies.
// spec: OPEN-8
#[test]
fn an_accept_is_repeated_at_a_pace() {
    let mut door = door(HalfOpenTable::TIMEOUT);
    let open = set_up(1, 0);
    let (place, _) = admit(&mut door, 1, &open, set_up(2, 0), 0).expect("good");
    let repeats = (0..100).filter(|at| door.repeat(place, at * MILLISECOND)).count();
    assert_eq!(repeats, 24);
}

/// A repeated open does not prolong its entry.
// spec: OPEN-8, OPEN-9, OPEN-10
#[test]
fn an_open_that_is_repeated_ends_in_time() {
    let mut door = door(100);
    let open = set_up(1, 0);
    admit(&mut door, 1, &open, set_up(2, 0), 50).expect("good");
    assert!(door.find(&open).is_some() && door.expire(149).is_none());
    let late = confirmation(&door, &open);
    assert!(door.confirm(&late, 150).is_none(), "its time is over, whoever looks when");
    assert!(door.expire(150).is_some() && door.find(&open).is_none());
}

// spec: OPEN-22
#[test]
fn a_flooding_address_does_not_use_the_ration_of_others() {
    let mut rations = TokenBuckets::rack(0);
    let taken = |rations: &mut TokenBuckets, address: u64| {
        std::iter::repeat_with(|| rations.take(address, 0)).take_while(|is| *is).count()
    };
    assert_eq!((taken(&mut rations, 7), taken(&mut rations, 7)), (16, 0));
    assert_eq!(taken(&mut rations, 8), 16);
    assert!(rations.take(7, 4 * MILLISECOND) && !rations.take(7, 4 * MILLISECOND));
}

// spec: OPEN-11
#[test]
fn resets_are_rationed() {
    let mut ration = TokenBucket::new(3, 10, 5);
    let mut taken =
        |now: u64| std::iter::repeat_with(|| ration.take(now)).take_while(|is| *is).count();
    assert_eq!((taken(5), taken(14), taken(15), taken(24), taken(25)), (3, 0, 1, 0, 1));
    assert_eq!((taken(54), taken(10_000), taken(10_009), taken(10_010)), (2, 3, 0, 1));
}
