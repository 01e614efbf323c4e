//! Assertions: rooms of state machines say in code what holds, and how much of that there is.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rules::{ASSERTIONS, ASSERTIVE, Assertive, is_test_file};
use crate::source::Source;
use crate::tokens;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for rule in ASSERTIVE {
        let mut all = Count::default();
        let mut parts: BTreeMap<&str, Count> = BTreeMap::new();
        for source in tree.sources.iter().filter(|source| !is_test_file(&source.path)) {
            if let Some(part) = part_of(&source.path, rule.folder) {
                let count = Count::of(source);
                parts.entry(part).or_default().add(count);
                all.add(count);
            }
        }
        let whole = [(rule.folder.trim_end_matches('/'), all)];
        for (part, count) in whole.into_iter().chain(parts) {
            findings.extend(count.finding(part, rule));
        }
    }
}

/// The folder within the room that a file lies in, or the room; none outside.
fn part_of<'a>(path: &'a str, room: &str) -> Option<&'a str> {
    let within = path.strip_prefix(room)?;
    let end = within.find('/').map_or(room.len(), |end| room.len() + end + 1);
    Some(&path[..end])
}

/// The counts of some files, without tests.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Lines of code.
    lines: usize,
    assertions: usize,
}

impl Count {
    fn of(source: &Source) -> Self {
        let tests = tokens::test_spans(&source.tokens);
        let is_code =
            |line: usize| !tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
        let lines = source.lines.iter().zip(1..);
        let lines = lines.filter(|(line, number)| !line.code.is_empty() && is_code(*number));
        let is_one = |path: &&tokens::Path| {
            path.segments.last().is_some_and(|name| ASSERTIONS.contains(&name.as_str()))
        };
        let paths = tokens::paths(&source.tokens);
        let assertions = paths.iter().filter(is_one).filter(|path| is_code(path.line));
        Self { lines: lines.count(), assertions: assertions.count() }
    }

    const fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.assertions += other.assertions;
    }

    fn finding(self, part: &str, rule: &Assertive) -> Option<Finding> {
        let Self { lines, assertions } = self;
        let least = (lines * rule.per_thousand).div_ceil(1000);
        (assertions < least).then(|| {
            let what = format!(
                "{assertions} assertions in {lines} lines of code; at least {least} are wanted \
                 (see CONTRIBUTING.md)"
            );
            Finding::new(part, 1, what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    /// Functions with `lines` lines of code in all, of which `assertions` are assertions.
    fn code(lines: usize, assertions: usize) -> String {
        let mut text = "// A comment.\n\n".to_owned();
        text.push_str(&"const _: () = assert!(A, \"a\");\n".repeat(assertions));
        text.push_str(&"const B: u8 = 1;\n".repeat(lines - assertions));
        text
    }

    #[test]
    fn a_room_with_enough_of_them_passes() {
        let (root, folder) = (code(100, 2), code(50, 1));
        let files = [("proto/src/a.rs", root.as_str()), ("proto/src/b/mod.rs", &folder)];
        assert!(found(check, &files).is_empty());
        assert!(found(check, &[("cli/src/a.rs", &code(100, 0))]).is_empty());
    }

    #[test]
    fn each_folder_has_enough_by_itself() {
        let (root, folder) = (code(100, 20), code(100, 1));
        let files = [("proto/src/a.rs", root.as_str()), ("proto/src/b/c/d.rs", &folder)];
        let want = "proto/src/b/:1: 1 assertions in 100 lines of code; at least 2 are wanted \
                    (see CONTRIBUTING.md)";
        assert_eq!(found(check, &files), [want]);
    }

    #[test]
    fn files_at_the_root_and_all_together_have_enough() {
        let lines: Vec<_> = found(check, &[("proto/src/a.rs", &code(101, 2))]);
        let what = "2 assertions in 101 lines of code; at least 3 are wanted (see CONTRIBUTING.md)";
        assert_eq!(lines, [format!("proto/src:1: {what}"), format!("proto/src/:1: {what}")]);
    }

    #[test]
    fn tests_are_neither_code_nor_assertions() {
        let tests =
            "#[cfg(test)]\nmod tests {\n    fn a() {\n        assert_eq!(b, c);\n    }\n}\n";
        let text = code(50, 1) + tests;
        assert!(found(check, &[("proto/src/a.rs", &text)]).is_empty());
        let text = code(50, 0) + tests;
        assert_eq!(found(check, &[("proto/src/a.rs", &text)]).len(), 2);
    }

    #[test]
    fn all_kinds_count_and_names_like_theirs_do_not() {
        let kinds = "fn a() {\n    debug_assert!(b);\n    core::debug_assert_ne!(b, c);\n}\n";
        assert!(found(check, &[("proto/src/a.rs", &(code(96, 0) + kinds))]).is_empty());
        let others = "fn a() {\n    assert_lines(b);\n    self.assert_sound();\n}\n";
        assert_eq!(found(check, &[("proto/src/a.rs", &(code(96, 0) + others))]).len(), 2);
    }
}
