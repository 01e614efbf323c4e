//! How far each side has come, and puts whose data may be in place before their turn.
use ayre_proto::execute::{Action, Command};
use ayre_proto::node::carrier::counts::{Counts, is_after};
use ayre_proto::node::carrier::early::{Early, Run};
use ayre_proto::notify::Classes;
use ayre_proto::units::{Claim, Key};

// spec: WIRE-4
#[test]
fn counts_travel_whole() {
    let counts = Counts { responses: 7, done: u64::MAX - 1, noted: 1 << 40, lines: 3, ring: 9 };
    assert_eq!(Counts::parse(&counts.encode(u32::MAX)), (u32::MAX, counts));
}

#[test]
fn numbers_wrap() {
    assert!(is_after(0, u32::MAX) && is_after(5, 4) && !is_after(4, 4) && !is_after(4, 5));
}

const KEY: Key = Key { slot: 1, generation: 1 };

fn command(action: Action, key: Key, offset: u64, len: u64) -> Command {
    let claim = Claim { key, offset, len };
    Command { action, classes: Classes::empty(), tag: 0, value: 0, claim }
}

fn put(offset: u64, len: u64) -> Command {
    command(Action::Put, KEY, offset, len)
}

// spec: WIRE-13
#[test]
fn disjoint_puts_wait_only_for_operations_before_their_run() {
    let mut run = None;
    let mut join = |command, before| Run::join(&mut run, Some(&command), before);
    assert_eq!(join(put(100, 50), 7), Some(7));
    assert_eq!(join(put(150, 50), 8), Some(7), "behind");
    assert_eq!(join(put(0, 100), 9), Some(7), "before");
    assert_eq!(join(put(1000, 1), 10), Some(7), "apart");
    assert_eq!(join(put(300, 1), 11), Some(11), "inside the span");
    assert_eq!(join(put(300, 1), 12), Some(12), "again");
    assert_eq!(join(put(299, 2), 13), Some(13), "in part");
    let other = Key { generation: 2, ..KEY };
    assert_eq!(join(command(Action::Put, other, 500, 1), 14), Some(14), "perhaps the same");
    assert_eq!(join(put(u64::MAX, 9), 15), Some(15));
    assert_eq!(join(put(0, 9), 16), Some(15));
}

// spec: WIRE-13
#[test]
fn operations_other_than_puts_wait_for_their_turn() {
    for action in [Action::Get, Action::Immediate(1), Action::Notify] {
        let mut run = None;
        assert_eq!(Run::join(&mut run, Some(&put(0, 8)), 0), Some(0));
        assert_eq!(Run::join(&mut run, Some(&command(action, KEY, 64, 8)), 1), None);
        assert_eq!(Run::join(&mut run, Some(&put(8, 8)), 2), Some(2));
    }
}

// spec: WIRE-13
#[test]
fn a_frame_of_two_runs_or_other_operations_waits_for_its_turn() {
    let after = |what: &[Option<u64>]| what.iter().copied().fold(Early::NoMatter, Early::with);
    assert!(after(&[Some(3), Some(3)]).holds(3));
    assert!(!after(&[Some(3), Some(3)]).holds(2));
    for mixed in [&[][..], &[Some(3), Some(4)], &[Some(3), None], &[None, Some(3), Some(3)]] {
        assert!(!after(mixed).holds(u64::MAX), "{mixed:?}");
    }
}
