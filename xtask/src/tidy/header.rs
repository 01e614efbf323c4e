//! Headers: every file says in a sentence what it is for, and `proto` what it abstains from.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

const PROTO_ROOT: &str = "proto/src/lib.rs";
const PROTO_ATTRIBUTES: &[&str] = &["#![no_std]", "#![forbid(unsafe_code)]"];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        if !begins_with_sentence(source) {
            let what = "file does not begin with a `//!` sentence that says what it is for";
            findings.push(Finding::new(&source.path, 1, what));
        }
        if source.path == PROTO_ROOT {
            for attribute in PROTO_ATTRIBUTES {
                if !source.lines.iter().any(|line| line.code == *attribute) {
                    let what = format!("`{attribute}` is missing: proto has no I/O and no unsafe");
                    findings.push(Finding::new(&source.path, 1, what));
                }
            }
        }
    }
}

/// Whether the first paragraph begins as a sentence does and ends as one.
fn begins_with_sentence(source: &Source) -> bool {
    let paragraph: Vec<&str> = source
        .lines
        .iter()
        .map_while(|line| line.raw.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let text = paragraph.join(" ");
    let begins = text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '`');
    begins && text.ends_with(['.', ':', '?', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn files_begin_with_a_sentence() {
        for good in ["//! One line.\n", "//! `a` does\n//! this.\n//!\n//! more\n", "//! Kinds:\n"]
        {
            assert!(found(check, &[("a.rs", good)]).is_empty(), "{good}");
        }
        for bad in ["", "fn a() {}\n", "// Plain.\n", "//! placeholder\n", "\n//! Late.\n", "//!\n"]
        {
            assert_eq!(found(check, &[("a.rs", bad)]).len(), 1, "{bad}");
        }
    }

    #[test]
    fn proto_abstains() {
        let good = "//! Machines.\n#![no_std]\n#![forbid(unsafe_code)]\n";
        assert!(found(check, &[(PROTO_ROOT, good)]).is_empty());
        let bad = "//! Machines.\n// #![no_std]\n";
        assert_eq!(found(check, &[(PROTO_ROOT, bad)]).len(), 2);
    }
}
