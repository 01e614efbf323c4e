//! Cases with a second process, for the executors of two ports.
use ayre_conformance::{Executor, inside, processes, storm};

/// The work of a second process; nothing in an ordinary run.

#[test]
fn child() {
    processes::child();
}

#[test]
fn child_inside() {
    inside::child();
}

#[test]
fn inside_a_depot() {
    inside::a_sender_killed_in_a_compound_leaves_all_writes_or_none("child_inside");
}

#[test]
fn direct() {
    processes::a_killed_process_leaves_whole_records(Executor::Direct, "child");
}

#[test]
fn inline() {
    processes::a_killed_process_leaves_whole_records(Executor::Inline, "child");
}

#[test]
fn engine() {
    processes::a_killed_process_leaves_whole_records(Executor::Engine, "child");
}

#[test]
fn child_of_storm() {
    storm::child();
}

#[test]
fn calls_direct() {
    storm::a_killed_sender_leaves_only_whole_messages_in_order(Executor::Direct, "child_of_storm");
}

#[test]
fn calls_inline() {
    storm::a_killed_sender_leaves_only_whole_messages_in_order(Executor::Inline, "child_of_storm");
}

/// Long messages are read out of a process that is killed meanwhile.
#[test]
fn calls_tuned() {
    storm::a_killed_sender_leaves_only_whole_messages_in_order(Executor::Tuned, "child_of_storm");
}
