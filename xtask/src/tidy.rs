//! The rules of CONTRIBUTING.md that a program can check, one module for each.

mod assertions;
mod atomics;
mod clock;
mod comments;
mod header;
mod homes;
mod layering;
mod modules;
mod ordering;
mod plain;
mod size;
mod unsafety;

use crate::finding::Finding;
use crate::tree::Tree;

type Check = fn(&Tree, &mut Vec<Finding>);

const CHECKS: &[Check] = &[
    size::check,
    header::check,
    comments::check,
    unsafety::check,
    atomics::check,
    ordering::check,
    layering::check,
    modules::check,
    clock::check,
    homes::check,
    assertions::check,
    plain::check,
];

/// Prints all findings; true when there are none.
pub(crate) fn run(tree: &Tree) -> bool {
    let findings = check(tree);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing found", tree.sources.len());
    } else {
        println!("tidy: {} findings", findings.len());
    }
    findings.is_empty()
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in CHECKS {
        check(tree, &mut findings);
    }
    findings.extend(tree.broken.iter().map(|finding| {
        let Finding { path, line, what } = finding;
        Finding::new(path, *line, what.as_str())
    }));
    findings.sort();
    findings
}

/// The findings of `check` in samples, as `path:line: what`.
#[cfg(test)]
fn found(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    check(&Tree::of(files), &mut findings);
    findings.iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let findings = check(&Tree::load(&crate::root()).unwrap());
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn findings_of_all_checks_come_sorted() {
        let files = [("b.rs", "fn b( {}"), ("a.rs", "fn a() { unsafe {} }\n")];
        let findings = check(&Tree::of(&files));
        let places: Vec<_> = findings.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(places, [("a.rs", 1), ("a.rs", 1), ("b.rs", 1)]);
    }
}
