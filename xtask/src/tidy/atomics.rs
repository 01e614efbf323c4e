//! Atomics: all go through the one facade, so that a model checker can stand in for them.

use crate::finding::Finding;
use crate::rules::ATOMIC_HOMES;
use crate::tokens;
use crate::tree::Tree;

const FACADE: &str = "engine/src/sync.rs";

/// How a path to the atomics begins; the last is what remains after `use std::sync;`.
const ROOTS: &[&[&str]] = &[
    &["std", "sync", "atomic"],
    &["core", "sync", "atomic"],
    &["loom", "sync", "atomic"],
    &["sync", "atomic"],
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        if ATOMIC_HOMES.iter().any(|(home, _)| source.path.starts_with(home)) {
            continue;
        }
        let mut last = 0;
        for path in tokens::paths(&source.tokens) {
            let is_atomic = ROOTS.iter().any(|root| path.starts_with(root));
            if is_atomic && path.line != last {
                last = path.line;
                let what = format!("atomics are imported from {FACADE} only");
                findings.push(Finding::new(&source.path, path.line, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_facade_and_its_users_pass() {
        let facade = "pub use core::sync::atomic::{AtomicU64, Ordering};\n";
        let user = "use crate::sync::atomic::AtomicU64;\nuse std::sync::{Arc, mpsc};\n";
        let test = "use std::sync::atomic::AtomicBool;\n";
        let files = [(FACADE, facade), ("engine/src/a.rs", user), ("engine/tests/b.rs", test)];
        assert!(found(check, &files).is_empty());
    }

    #[test]
    fn atomics_past_the_facade_fail() {
        let bad = [
            "use core::sync::atomic::AtomicU64;",
            "use std::sync::atomic::{AtomicU32, AtomicU64};",
            "use std::{fmt, sync::{atomic::AtomicU64, Arc}};",
            "use std::sync::atomic::*;",
            "fn a() { ::std::sync::atomic::fence(b) }",
            "fn a() { sync::atomic::fence(b) }",
        ];
        for text in bad {
            let want = ["engine/src/a.rs:1: atomics are imported from engine/src/sync.rs only"];
            assert_eq!(found(check, &[("engine/src/a.rs", text)]), want, "{text}");
        }
    }
}
