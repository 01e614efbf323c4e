//! Memory orderings: every release names its acquire, every relaxed access its reason.
//!
//! A label is written in a comment at the access: `LANE-R1` for a release, `LANE-A1` for the
//! acquire that it pairs with. A sequentially consistent access may carry a label of its own.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rules::{LABEL_SOURCES, LABELLED_HOMES, is_under};
use crate::source::Source;
use crate::tokens;
use crate::tree::Tree;

/// How many lines above an access its comment may end.
const REACH: usize = 3;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut labels = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| is_under(&source.path, LABEL_SOURCES)) {
        let accesses = accesses(source, findings);
        if is_under(&source.path, LABELLED_HOMES) {
            check_accesses(source, &accesses, findings);
        }
        collect_labels(source, &accesses, &mut labels);
    }
    check_pairs(&labels, findings);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Relaxed,
    Release,
    Acquire,
    AcqRel,
    SeqCst,
}

impl Order {
    const ALL: [(&'static str, Self); 5] = [
        ("Relaxed", Self::Relaxed),
        ("Release", Self::Release),
        ("Acquire", Self::Acquire),
        ("AcqRel", Self::AcqRel),
        ("SeqCst", Self::SeqCst),
    ];
}

struct Access {
    line: usize,
    order: Order,
    name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Release,
    Acquire,
    Neither,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    name: String,
    side: Side,
    number: u32,
}

/// Where each label was first seen.
type Labels = BTreeMap<Label, (String, usize)>;

fn accesses(source: &Source, findings: &mut Vec<Finding>) -> Vec<Access> {
    let mut found = Vec::new();
    for path in tokens::paths(&source.tokens) {
        for (name, order) in Order::ALL {
            if !path.contains(&["Ordering", name]) {
                continue;
            }
            if path.is_import && is_under(&source.path, LABELLED_HOMES) {
                let what = format!("write Ordering::{name} at the access; do not import {name}");
                findings.push(Finding::new(&source.path, path.line, what));
            } else if !path.is_import {
                found.push(Access { line: path.line, order, name });
            }
        }
    }
    found
}

fn check_accesses(source: &Source, accesses: &[Access], findings: &mut Vec<Finding>) {
    for access in accesses {
        let comment = comment_near(source, access.line);
        let labels = labels_in(&comment);
        let has = |sides: &[Side]| labels.iter().any(|label| sides.contains(&label.side));
        let both = &[Side::Release, Side::Acquire];
        let (is_named, want) = match access.order {
            Order::Relaxed => {
                let has_reason = comment
                    .split_once("Relaxed:")
                    .is_some_and(|(_, reason)| reason.contains(char::is_alphabetic));
                (has_reason || has(both), "the reason after `Relaxed:`")
            }
            Order::Release => (has(&[Side::Release]), "a label such as LANE-R1"),
            Order::Acquire => (has(&[Side::Acquire]), "a label such as LANE-A1"),
            Order::AcqRel => (has(both), "a label such as LANE-R1 or LANE-A1"),
            Order::SeqCst => (!labels.is_empty(), "a label such as LANE-R1 or LANE-A1"),
        };
        if !is_named {
            let what = format!("Ordering::{} needs a comment with {want}", access.name);
            findings.push(Finding::new(&source.path, access.line, what));
        }
    }
}

/// The comments of a line and of those shortly above it, each block as a whole.
fn comment_near(source: &Source, line: usize) -> String {
    let mut first = line.saturating_sub(REACH).max(1);
    if source.line(first).is_only_comment() {
        first = source.comment_block_start(first);
    }
    let texts: Vec<&str> =
        (first..=line).map(|number| source.line(number).comment_text()).collect();
    texts.join("\n")
}

/// The labels in a comment; citations of the spec look alike and are left out.
fn labels_in(comment: &str) -> Vec<Label> {
    let text = comment.lines().map(|line| line.split("spec:").next().unwrap_or_default());
    text.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-'))
        .filter_map(label)
        .collect()
}

fn label(word: &str) -> Option<Label> {
    let (name, rest) = word.split_once('-')?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_uppercase()) {
        return None;
    }
    let (side, digits) = match rest.as_bytes().first()? {
        b'R' => (Side::Release, &rest[1..]),
        b'A' => (Side::Acquire, &rest[1..]),
        _ => (Side::Neither, rest),
    };
    Some(Label { name: name.to_owned(), side, number: digits.parse().ok()? })
}

/// A comment at a release mentions its acquire too, and then proves no acquire. So where all
/// following accesses are of one side, only the labels of that side count.
fn collect_labels(source: &Source, accesses: &[Access], labels: &mut Labels) {
    for (index, line) in source.lines.iter().enumerate() {
        let number = index + 1;
        let mut last = number;
        while last < source.lines.len() && source.line(last + 1).is_only_comment() {
            last += 1;
        }
        let reach = if line.is_only_comment() { last + REACH } else { number };
        let near = accesses.iter().filter(|access| (number..=reach).contains(&access.line));
        let orders: Vec<Order> =
            near.map(|access| access.order).filter(|order| *order != Order::Relaxed).collect();
        let is_all = |order| !orders.is_empty() && orders.iter().all(|found| *found == order);
        for label in labels_in(if line.is_doc { "" } else { line.comment_text() }) {
            let is_mention = match label.side {
                Side::Release => is_all(Order::Acquire),
                Side::Acquire => is_all(Order::Release),
                Side::Neither => true,
            };
            if !is_mention {
                labels.entry(label).or_insert_with(|| (source.path.clone(), number));
            }
        }
    }
}

fn check_pairs(labels: &Labels, findings: &mut Vec<Finding>) {
    for (label, (path, line)) in labels {
        let Label { name, side, number } = label;
        let (own, other, side) = match side {
            Side::Release => ("R", "A", Side::Acquire),
            Side::Acquire => ("A", "R", Side::Release),
            Side::Neither => continue,
        };
        if !labels.contains_key(&Label { name: name.clone(), side, number: *number }) {
            let what = format!("{name}-{own}{number} has no partner {name}-{other}{number}");
            findings.push(Finding::new(path, *line, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const HOME: &str = "engine/src/mem/a.rs";

    fn findings(text: &str) -> Vec<String> {
        found(check, &[(HOME, text)])
    }

    #[test]
    fn labelled_accesses_pass() {
        let text = "
            // LANE-R1: publishes the line; pairs with LANE-A1.
            a.store(1, Ordering::Release);
            a.load(Ordering::Acquire); // LANE-A1

            // Relaxed: only this thread writes it.
            b.load(Ordering::Relaxed);

            // SLEEP-1: against the fence of the sleeper.
            fence(Ordering::SeqCst);
            c.cmp(d) == Ordering::Less;
        ";
        assert_eq!(findings(text), [""; 0]);
    }

    #[test]
    fn a_long_comment_counts_as_a_whole() {
        let text = "// LANE-R1, LANE-A1\n// a\n// b\n// c\n// d\n\na.swap(1, Ordering::AcqRel);\n";
        assert_eq!(findings(text), [""; 0]);
    }

    #[test]
    fn accesses_without_their_label_fail() {
        let bad = [
            "a.store(1, Ordering::Release);",
            "a.store(1, Ordering::Release); // Relaxed: no",
            "// LANE-R1\n// pairs with\n\n\n\na.load(Ordering::Acquire); // LANE-R1, LANE-A",
            "b.load(Ordering::Relaxed); // Relaxed:",
            "fence(Ordering::SeqCst); // spec: PUT-3",
        ];
        for text in bad {
            let needs = |finding: &String| finding.contains("needs a comment with");
            assert_eq!(findings(text).iter().filter(|f| needs(f)).count(), 1, "{text}");
        }
        let import = findings("use crate::sync::Ordering::{Acquire, self};");
        assert_eq!(import.len(), 1);
        assert!(import[0].ends_with("do not import Acquire"));
    }

    #[test]
    fn other_folders_need_no_labels_but_their_labels_count() {
        let release = "a.store(1, Ordering::Release); // LANE-R1\n";
        let acquire = "a.load(Ordering::Acquire); // LANE-A1\nb.load(Ordering::Acquire);\n";
        assert!(found(check, &[(HOME, release), ("engine/src/b.rs", acquire)]).is_empty());
    }

    #[test]
    fn a_label_without_its_partner_fails() {
        let alone = "// LANE-R2: pairs with LANE-A2.\na.store(1, Ordering::Release);\n";
        let what = "engine/src/mem/a.rs:1: LANE-R2 has no partner LANE-A2";
        assert_eq!(findings(alone), [what]);
        let documented = format!("{alone}/// LANE-A2\nfn b() {{}}\n");
        assert_eq!(findings(&documented), [what], "documentation is no access");
        assert_eq!(findings(&format!("{alone}\n\n\nbarrier(); // LANE-A2\n")), [""; 0]);
    }
}
