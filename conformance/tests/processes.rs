//! Cases with a second process, for the executors of two ports.
use ayre_conformance::{Executor, inside, processes, storm};

/// What a second process runs; nothing in an ordinary run.

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
    inside::who_dies_inside_leaves_all_or_nothing("child_inside");
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
    storm::who_dies_leaves_whole_messages(Executor::Direct, "child_of_storm");
}

#[test]
fn calls_inline() {
    storm::who_dies_leaves_whole_messages(Executor::Inline, "child_of_storm");
}

/// Long messages are read out of a process that is killed meanwhile.
#[test]
fn calls_tuned() {
    storm::who_dies_leaves_whole_messages(Executor::Tuned, "child_of_storm");
}
