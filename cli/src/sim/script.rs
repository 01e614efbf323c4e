//! The course of a script as lines of text, and as tables of a page.
use ayre_sim::report::Course;

use crate::page::{Page, Table, Unit};

/// Nodes whose ends are told at most: the first ones.
const NODES_MAX: usize = 16;

/// The heads of the table of operations.
const HEADS: [&str; 5] = ["operation", "number", "mean", "shortest", "longest"];

/// A line for each kind of operation, and the ends of nodes.
pub(super) fn lines(course: &Course) -> Vec<String> {
    let mut lines = vec![];
    for cells in operations(course) {
        let [operation, count, mean, least, most] = cells;
        lines.push(format!("{count} x {operation}: {mean} in the mean, {least} to {most}"));
    }
    lines.extend(ends(course).map(|(node, end)| format!("node {node} ends after {end}")));
    let more = course.nodes_ns.len().saturating_sub(NODES_MAX);
    if more > 0 {
        lines.push(format!("and {more} more nodes"));
    }
    lines
}

/// Two tables for the script of a point, whose name goes into the heading.
pub(super) fn show(page: &mut Page, course: &Course, point: &str) {
    page.heading(&format!("The script{point}"));
    let mut table = Table::new(HEADS);
    table.lines = operations(course).map(|cells| cells.to_vec()).collect();
    page.table(&table);
    let mut table = Table::new(["node", "end"]);
    table.lines = ends(course).map(|(node, end)| vec![node.to_string(), end]).collect();
    page.table(&table);
}

fn operations(course: &Course) -> impl Iterator<Item = [String; 5]> {
    course.operations.iter().map(|times| {
        let [mean, least, most] =
            [times.mean_ns, times.least_ns, times.most_ns].map(|ns| Unit::Nanoseconds.label(ns));
        [times.operation.clone(), times.count.to_string(), mean, least, most]
    })
}

fn ends(course: &Course) -> impl Iterator<Item = (u32, String)> {
    let told = |(node, ns): &(u32, f64)| (*node, Unit::Nanoseconds.label(*ns));
    course.nodes_ns.iter().take(NODES_MAX).map(told)
}
