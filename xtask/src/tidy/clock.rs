//! Clocks: the state machines have none, and no test waits for one.

use crate::finding::Finding;
use crate::rules::{CLOCKLESS, is_in_tests_folder, is_under};
use crate::tokens;
use crate::tree::Tree;

const CALLS: &[&[&str]] = &[&["thread", "sleep"], &["Instant", "now"], &["SystemTime", "now"]];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        if !is_under(&source.path, CLOCKLESS) && !is_in_tests_folder(&source.path) {
            continue;
        }
        for path in tokens::paths(&source.tokens) {
            for call in CALLS.iter().filter(|call| path.contains(call)) {
                let what = format!("{} in a place without a clock", call.join("::"));
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
    fn other_places_may_look_at_the_clock() {
        let text = "fn a() { std::thread::sleep(b); Instant::now(); }";
        assert!(found(check, &[("cli/src/perf.rs", text)]).is_empty());
        let spawn = "fn a() { std::thread::spawn(b); Duration::from_secs(1); }";
        assert!(found(check, &[("engine/tests/a.rs", spawn)]).is_empty());
    }

    #[test]
    fn state_machines_and_tests_may_not() {
        let text = "use std::thread::sleep;\nfn a() { std::time::Instant::now() }\n";
        for path in ["proto/src/a.rs", "engine/tests/a.rs", "cli/tests/common/a.rs"] {
            let want = [
                format!("{path}:1: thread::sleep in a place without a clock"),
                format!("{path}:2: Instant::now in a place without a clock"),
            ];
            assert_eq!(found(check, &[(path, text)]), want);
        }
    }
}
