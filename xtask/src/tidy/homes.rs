//! Calls that have one home. The library is a guest in a program's process: it starts threads and
//! makes descriptors in one place each, so that all of them are as the program may expect.

use crate::finding::Finding;
use crate::rules::{ONE_HOME, is_test_file, is_under};
use crate::tokens;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        let rules = ONE_HOME.iter().filter(|rule| {
            is_under(&source.path, rule.folders)
                && !source.path.starts_with(rule.home)
                && !is_under(&source.path, rule.exempt)
        });
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() || is_test_file(&source.path) {
            continue;
        }
        let tests = tokens::test_spans(&source.tokens);
        let is_test =
            |line: usize| tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
        for path in tokens::paths(&source.tokens) {
            let rule = rules.iter().find(|rule| rule.calls.iter().any(|call| path.contains(call)));
            if let Some(rule) = rule
                && !is_test(path.line)
            {
                let what = format!("{} in {} only", rule.what, rule.home);
                findings.push(Finding::new(&source.path, path.line, what));
            }
        }
    }
    findings.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_homes_their_users_and_tests_pass() {
        let home = "pub fn spawn() { std::thread::Builder::new() }\n";
        let user = "use crate::sys::{descriptor, thread};\nfn a() { thread::yield_now(); b() }\n\
                    #[cfg(test)]\nmod tests {\n    fn a() { std::thread::scope(b) }\n}\n";
        let files = [
            ("engine/src/sys/thread.rs", home),
            ("engine/src/a.rs", user),
            ("engine/tests/b.rs", "fn a() { std::thread::spawn(b); socketpair(); }"),
            ("cli/src/c.rs", "fn a() { std::thread::spawn(b); File::open(c) }"),
        ];
        assert!(found(check, &files).is_empty());
    }

    #[test]
    fn threads_and_descriptors_elsewhere_fail() {
        let bad = [
            ("use std::thread::Builder;", "threads are started", "thread"),
            ("fn a() { thread::spawn(b) }", "threads are started", "thread"),
            ("fn a() { std::thread::scope(b) }", "threads are started", "thread"),
            ("use rustix::event::{epoll, eventfd};", "descriptors are made", "descriptor"),
            ("fn a() { epoll::create(b) }", "descriptors are made", "descriptor"),
            ("fn a() { std::fs::File::create(b) }", "descriptors are made", "descriptor"),
            ("fn a() { fcntl_dupfd_cloexec(b, 0) }", "descriptors are made", "descriptor"),
        ];
        for (text, what, home) in bad {
            for path in ["engine/src/a.rs", "provider/src/a.rs"] {
                let want = [format!("{path}:1: {what} in engine/src/sys/{home}.rs only")];
                assert_eq!(found(check, &[(path, text)]), want, "{text}");
            }
        }
    }
}
