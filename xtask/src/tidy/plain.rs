//! Plain words in `spec/`, pages and doc comments: short requirements, short sentences, no opening
//! that hides the subject, and one definition for each term.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rules::{
    ELLIPSES, GLOSSARY, OPENINGS, REQUIREMENT_WORDS, RETIRED_PHRASES, SENTENCE_WORDS,
};
use crate::source::Line;
use crate::tree::{Text, Tree};

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for chapter in &tree.chapters {
        if chapter.path == GLOSSARY {
            check_terms(chapter, findings);
        }
        check_text(&chapter.path, chapter.text.lines(), findings);
    }
    for page in &tree.pages {
        check_text(&page.path, page.text.lines(), findings);
    }
    for source in &tree.sources {
        let comments = source.lines.iter().map(doc_of);
        check_text(&source.path, comments, findings);
    }
}

/// The text of a line's doc comment; an empty one, which ends a paragraph, where it has none.
fn doc_of(line: &Line) -> &str {
    if line.is_doc && line.is_only_comment() { line.comment_text() } else { "" }
}

fn check_text<'a>(path: &str, lines: impl Iterator<Item = &'a str>, findings: &mut Vec<Finding>) {
    for block in blocks(lines) {
        let mut report = |what| findings.push(Finding::new(path, block.line, what));
        let count = words(&block.text).count();
        if block.is_requirement && count > REQUIREMENT_WORDS {
            report(format!(
                "a requirement of {count} words, at most {REQUIREMENT_WORDS}: put details into a \
                 table or a list below it"
            ));
        }
        for sentence in sentences(&block.text) {
            check_sentence(&sentence, &mut report);
        }
    }
}

fn check_sentence(sentence: &str, report: &mut impl FnMut(String)) {
    let count = words(sentence).count();
    if count > SENTENCE_WORDS {
        report(format!("a sentence of {count} words, at most {SENTENCE_WORDS}: {sentence}"));
    }
    let first = words(sentence).next().unwrap_or_default().trim_matches(is_mark);
    if OPENINGS.contains(&first) {
        report(format!("a sentence opens with {first}: name its subject"));
    }
    if lacks_noun(sentence) {
        report("a sentence opens with The same: repeat the noun".to_owned());
    }
    let lower = format!(" {} ", words(sentence).collect::<Vec<_>>().join(" ").to_lowercase());
    let lower = lower.replace(is_mark, " ");
    for (phrase, instead) in RETIRED_PHRASES {
        if lower.contains(&format!(" {phrase} ")) {
            report(format!("\"{phrase}\": write {instead}"));
        }
    }
}

/// Whether a sentence begins with "The same" and no noun behind it, which is read by the sentence
/// before only.
fn lacks_noun(sentence: &str) -> bool {
    let mut words = words(sentence);
    if words.next() != Some("The") {
        return false;
    }
    match words.next() {
        Some("same") => words.next().is_none_or(|word| ELLIPSES.contains(&word)),
        Some(word) => word.trim_matches(is_mark) == "same",
        None => false,
    }
}

/// A paragraph or an item of a list.
struct Block {
    /// Its first line.
    line: usize,
    is_requirement: bool,
    /// Without its mark and without the number of a requirement.
    text: String,
}

/// The paragraphs and items of a text: no headings, tables, drawings, lists of sources, or comments
/// of a page.
fn blocks<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    let mut is_drawing = false;
    let mut is_hidden = false;
    for (line, text) in (1..).zip(lines.map(str::trim)) {
        is_hidden |= !is_drawing && text.starts_with("<!--");
        if is_hidden {
            is_hidden = !text.ends_with("-->");
            is_open = false;
        } else if text.starts_with("```") {
            is_drawing = !is_drawing;
            is_open = false;
        } else if is_drawing || text.is_empty() || text.starts_with(['|', '#']) {
            is_open = false;
        } else if let Some(item) = item(text) {
            let (is_requirement, text) = requirement(item);
            blocks.push(Block { line, is_requirement, text: text.to_owned() });
            is_open = true;
        } else if is_open && let Some(block) = blocks.last_mut() {
            block.text.push(' ');
            block.text.push_str(text);
        } else {
            blocks.push(Block { line, is_requirement: false, text: text.to_owned() });
            is_open = true;
        }
    }
    blocks.retain(|block| !block.text.starts_with("*Source"));
    blocks
}

/// The text behind the mark of a list's item: `- `, `* ` or `1. `.
fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = if digits.len() < line.len() { digits.strip_prefix(". ") } else { None };
    numbered.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* "))
}

/// Whether an item is a requirement, and its text without the number.
fn requirement(item: &str) -> (bool, &str) {
    let number = item.strip_prefix("**[").and_then(|rest| rest.split_once("]**"));
    number.map_or((false, item), |(_, text)| (true, text.trim_start()))
}

/// Words: what stands between spaces and has a letter or a digit; a link's target is none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.split_once("](").map_or(word, |(shown, _)| shown))
        .filter(|word| word.contains(char::is_alphanumeric))
}

/// Sentences end with a full stop, a question mark or an exclamation mark before a space.
fn sentences(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(sentence) = found.last_mut() {
            sentence.push_str(word);
            sentence.push(' ');
        }
        if word.trim_end_matches([')', '*', '`', '"', '|']).ends_with(['.', '?', '!']) {
            found.push(String::new());
        }
    }
    found.retain(|sentence| words(sentence).next().is_some());
    found
}

fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && c != '-' && c != '\''
}

/// Each row of the glossary's table of meanings defines one term, or several with `;` in between.
fn check_terms(glossary: &Text, findings: &mut Vec<Finding>) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let rows = (1..).zip(glossary.text.lines());
    let rows = rows.skip_while(|(_, line)| !line.starts_with("| term |"));
    for (line, row) in rows.skip(2).take_while(|(_, line)| line.starts_with('|')) {
        for term in row.split('|').nth(1).unwrap_or_default().split(';').map(str::trim) {
            if let Some(first) = lines.insert(term, line) {
                let what = format!("{term} is defined already in line {first}");
                findings.push(Finding::new(&glossary.path, line, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn findings(text: &str) -> Vec<String> {
        found(check, &[("spec/a.md", text)])
    }

    /// Sentences of ten words each.
    fn sentences_of_ten(count: usize) -> String {
        "A b c d e f g h i j. ".repeat(count)
    }

    #[test]
    fn a_requirement_is_short_without_its_tables_and_lists() {
        let fits = sentences_of_ten(6);
        let details = format!("  - {}\n  1. b.\n\n| {} |\n", sentences_of_ten(5), fits);
        assert!(findings(&format!("- **[A-1]** {fits}\n{details}")).is_empty());
        let what = "spec/a.md:2: a requirement of 61 words, at most 60: put details into a table \
                    or a list below it";
        assert_eq!(findings(&format!("\n- **[A-1]** {fits}\n  End.\n{details}")), [what]);
        assert!(findings(&sentences_of_ten(9)).is_empty(), "text that explains is free");
    }

    #[test]
    fn the_same_has_a_noun() {
        for lacks in ["A b. The same of c.", "The same, but d.", "The same."] {
            let what = "spec/a.md:1: a sentence opens with The same: repeat the noun";
            assert_eq!(findings(lacks), [what], "{lacks}");
        }
        assert!(findings("The same seed gives the same course. The samples of a.").is_empty());
    }

    #[test]
    fn a_sentence_is_short() {
        let thirty = "a ".repeat(29);
        assert!(findings(&format!("{thirty}b. {thirty}(b.) {thirty} [b](c.md)? C!")).is_empty());
        let long = findings(&format!("{thirty}\nb [c](d.md).\n"));
        assert_eq!(long.len(), 1);
        assert!(long[0].starts_with("spec/a.md:1: a sentence of 31 words, at most 30: a a"));
    }

    #[test]
    fn drawings_tables_headings_and_sources_are_free() {
        let long = format!("What {}", "a ".repeat(50));
        let text = format!("# {long}\n```\n{long}\n```\n| {long} |\n\n*Source: {long}*\n");
        assert!(findings(&text).is_empty());
    }

    #[test]
    fn comments_of_a_page_are_free() {
        assert!(findings("<!-- not run: What. -->\n<!-- given:\nWhat.\n```\n-->\n").is_empty());
        let after = "<!-- A. -->\nB.\n```\n<!-- C\n```\nWhat.\n";
        assert_eq!(findings(after), ["spec/a.md:6: a sentence opens with What: name its subject"]);
    }

    #[test]
    fn a_sentence_names_its_subject() {
        let want = "spec/a.md:1: a sentence opens with What: name its subject";
        assert_eq!(findings("- **[A-1]** What comes is taken.\n"), [want]);
        assert_eq!(findings("It comes. (Whoever sends, waits.)\n").len(), 2);
        assert!(findings("It knows what comes. Whatnot is a word.\n").is_empty());
    }

    #[test]
    fn retired_words_are_found() {
        let want = "spec/a.md:1: \"keeper\": write progress thread";
        assert_eq!(findings("The keeper, too.\n"), [want]);
        assert!(findings("The bookkeeper, too.\n").is_empty());
    }

    #[test]
    fn pages_and_doc_comments_are_plain() {
        let want = "sentence opens with What: name its subject";
        assert_eq!(found(check, &[("docs/a.md", "\nWhat.\n")]), [format!("docs/a.md:2: a {want}")]);
        let source = "//! A. What\n//! b.\n\n/// ```\n/// What.\n/// ```\nfn a() {} // What.\n";
        assert_eq!(found(check, &[("a.rs", source)]), [format!("a.rs:1: a {want}")]);
    }

    #[test]
    fn a_doc_comment_ends_with_its_lines() {
        let fifteen = "a ".repeat(15);
        assert!(
            found(
                check,
                &[("a.rs", &format!("/// {fifteen}\nfn a() {{}}\n/// {fifteen} b\nfn b() {{}}\n"))]
            )
            .is_empty()
        );
    }

    #[test]
    fn the_glossary_defines_a_term_once() {
        let text = "| word | b |\n|---|---|\n| a | |\n\n| term | meaning |\n|---|---|\n| a | b |\n\
                    | b; c | d |\n| c | e |\n\n| a | f |\n";
        let want = "spec/00-glossary.md:9: c is defined already in line 8";
        assert_eq!(found(check, &[(GLOSSARY, text)]), [want]);
    }
}
