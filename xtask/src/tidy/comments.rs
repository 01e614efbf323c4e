//! Comments: they say why; none marks unfinished work, none hides code that was switched off.

use crate::finding::Finding;
use crate::rules::{UNFINISHED_MACROS, UNFINISHED_WORDS};
use crate::source::Line;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        for (index, line) in source.lines.iter().enumerate() {
            let mut report = |what| findings.push(Finding::new(&source.path, index + 1, what));
            for word in UNFINISHED_WORDS {
                if words(&line.comment).any(|found| found == *word) {
                    report(format!("{word}: finish it, or write an issue"));
                }
            }
            for name in UNFINISHED_MACROS {
                if has_macro(&line.code, name) {
                    report(format!("{name} is not for the tree"));
                }
            }
            if is_disabled_code(line) {
                report("code in a comment: delete it, the history keeps it".to_owned());
            }
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn has_macro(code: &str, name: &str) -> bool {
    code.match_indices(name)
        .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Prose may end in a semicolon too, but has four plain words in a row; statements hardly ever do.
fn is_disabled_code(line: &Line) -> bool {
    const KEYWORDS: &[&str] =
        &["let", "return", "use", "if", "for", "while", "match", "pub", "fn", "struct", "mod", "}"];
    let text = line.comment_text();
    if line.is_doc || !line.is_only_comment() || !text.ends_with([';', '{', '}']) {
        return false;
    }
    let mut run = 0;
    let mut longest = 0;
    for word in text.split_whitespace() {
        let is_plain = word.trim_end_matches([',', ':']).chars().all(char::is_alphabetic);
        run = if is_plain { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let first = text.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default();
    let has_mark = ["(", "=", "::", "->"].iter().any(|mark| text.contains(mark));
    longest < 4 && (has_mark || KEYWORDS.contains(&first) || first.starts_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn findings(text: &str) -> Vec<String> {
        found(check, &[("a.rs", text)])
    }

    #[test]
    fn unfinished_work_is_found_in_comments_only() {
        assert!(findings("let a = \"TODO\"; // a todo list, XXXL\n").is_empty());
        assert_eq!(findings("\n// TODO: b\n"), ["a.rs:2: TODO: finish it, or write an issue"]);
        assert_eq!(findings("/// FIXME\nfn a() {} // XXX\n").len(), 2);
    }

    #[test]
    fn debugging_macros_are_found_in_code_only() {
        assert!(findings("let a = \"dbg!(b)\"; // dbg!(c)\nmydbg!(d);\n").is_empty());
        assert_eq!(findings("let a = dbg!(b);\n"), ["a.rs:1: dbg! is not for the tree"]);
        assert_eq!(findings("fn a() { todo!() }\n").len(), 1);
    }

    #[test]
    fn disabled_code_is_told_from_prose() {
        let prose = [
            "the cursor is read before the line (see above);",
            "a, b = c; both sides are then equal;",
            "see below;",
            "{a, b}",
        ];
        for text in prose {
            assert!(findings(&format!("// {text}\n")).is_empty(), "{text}");
        }
        for text in ["let a = b;", "a.store(1);", "if a {", "}", "return;", "use a::b;", "});"] {
            assert_eq!(findings(&format!("// {text}\n")).len(), 1, "{text}");
        }
        assert!(findings("/// let a = b;\nfn a() {}\n").is_empty(), "an example");
    }
}
