//! Citations: the requirements in `spec/`, the code that carries them out and the tests that hold
//! it to them.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rules::{UNCITED, is_test_file, is_under};
use crate::source::Source;
use crate::tokens;
use crate::tree::{Text, Tree};

/// Prints the report; false when a citation or a definition is wrong or, if `strict`, when a
/// requirement has no test.
pub(crate) fn run(tree: &Tree, strict: bool) -> bool {
    let report = report(tree);
    print!("{}", table(&report));
    let untested = untested(&report);
    if !untested.is_empty() {
        println!("\nwithout a test:");
    }
    for (chapter, (path, numbers)) in &untested {
        println!("  {chapter:<8} {:<24} {path}", ranges(numbers));
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    report.findings.is_empty() && (untested.is_empty() || !strict)
}

struct Requirement {
    path: String,
    line: usize,
    code: usize,
    tests: usize,
}

#[derive(Default)]
struct Report {
    requirements: BTreeMap<Number, Requirement>,
    findings: Vec<Finding>,
}

/// A requirement's number, such as PUT-3; sorts by chapter, then by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    chapter: String,
    number: u32,
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}-{}", self.chapter, self.number))
    }
}

fn report(tree: &Tree) -> Report {
    let mut report = Report::default();
    for chapter in &tree.chapters {
        define(chapter, &mut report);
    }
    for source in tree.sources.iter().filter(|source| !is_under(&source.path, UNCITED)) {
        cite(source, &mut report);
    }
    report.findings.sort();
    report
}

/// Notes the requirements of a chapter: bullets that begin with `**[PUT-3]**`.
fn define(chapter: &Text, report: &mut Report) {
    for (index, text) in chapter.text.lines().enumerate() {
        let Some(number) = definition(text) else { continue };
        let (path, line) = (chapter.path.clone(), index + 1);
        if let Some(first) = report.requirements.get(&number) {
            let what = format!("{number} is defined already in {}:{}", first.path, first.line);
            report.findings.push(Finding::new(&path, line, what));
        } else {
            report.requirements.insert(number, Requirement { path, line, code: 0, tests: 0 });
        }
    }
}

fn definition(line: &str) -> Option<Number> {
    let bullet = line.trim_start();
    let item = bullet.strip_prefix("- ").or_else(|| bullet.strip_prefix("* "))?;
    let (word, _) = item.trim_start().strip_prefix("**[")?.split_once("]**")?;
    number(word)
}

fn number(word: &str) -> Option<Number> {
    let (chapter, digits) = word.rsplit_once('-')?;
    let is_chapter = chapter.starts_with(|c: char| c.is_ascii_uppercase())
        && chapter.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    (is_chapter && is_number)
        .then(|| digits.parse().ok())
        .flatten()
        .map(|number| Number { chapter: chapter.to_owned(), number })
}

/// Counts the citations in a file's comments.
fn cite(source: &Source, report: &mut Report) {
    let spans: Vec<(usize, usize)> = tokens::test_spans(&source.tokens)
        .into_iter()
        .map(|(first, last)| (source.comment_block_start(first), last))
        .collect();
    for (index, line) in source.lines.iter().enumerate() {
        let at = index + 1;
        let is_test = is_test_file(&source.path)
            || spans.iter().any(|(first, last)| (*first..=*last).contains(&at));
        for citation in citations(line.comment_text()) {
            let number = match citation {
                Ok(number) => number,
                Err(word) => {
                    let what = format!("`spec: {word}` names no requirement");
                    report.findings.push(Finding::new(&source.path, at, what));
                    continue;
                }
            };
            let Some(requirement) = report.requirements.get_mut(&number) else {
                let what = format!("{number} is not a requirement of the spec");
                report.findings.push(Finding::new(&source.path, at, what));
                continue;
            };
            if is_test {
                requirement.tests += 1;
            } else {
                requirement.code += 1;
            }
        }
    }
}

/// The numbers after each `spec:`, such as `spec: PUT-3, PUT-4 and GET-1`, up to the first other
/// word. It is an error if there is none, or if that word looks like a number but is not.
fn citations(comment: &str) -> Vec<Result<Number, &str>> {
    let mut found = Vec::new();
    for part in comment.split("spec:").skip(1) {
        let before = found.len();
        for word in part.split_whitespace() {
            let word = word.trim_end_matches([',', '.', ';', ':', ')', '`']);
            match number(word) {
                Some(number) => found.push(Ok(number)),
                None if word == "and" => {}
                None => {
                    let is_like_number = word.starts_with(|c: char| c.is_ascii_uppercase())
                        && word.contains('-')
                        && word.ends_with(|c: char| c.is_ascii_digit());
                    if is_like_number {
                        found.push(Err(word));
                    }
                    break;
                }
            }
        }
        if found.len() == before {
            found.push(Err(part.split_whitespace().next().unwrap_or_default()));
        }
    }
    found
}

/// The requirements without a test: for each chapter a file and numbers in ascending order.
fn untested(report: &Report) -> BTreeMap<&str, (&str, Vec<u32>)> {
    let mut found = BTreeMap::new();
    for (Number { chapter, number }, requirement) in &report.requirements {
        if requirement.tests == 0 {
            let (_, numbers): &mut (&str, Vec<u32>) = found
                .entry(chapter.as_str())
                .or_insert_with(|| (requirement.path.as_str(), Vec::new()));
            numbers.push(*number);
        }
    }
    found
}

/// Writes 1, 2, 3, 5 as `1-3, 5`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            run => format!("{}", run[0]),
        })
        .collect();
    texts.join(", ")
}

/// One row for each chapter's file and one for the sum.
fn table(report: &Report) -> String {
    let mut rows: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut total = [0; 3];
    for requirement in report.requirements.values() {
        let row = rows.entry(&requirement.path).or_default();
        let counts = [1, usize::from(requirement.code > 0), usize::from(requirement.tests > 0)];
        for (column, count) in counts.into_iter().enumerate() {
            row[column] += count;
            total[column] += count;
        }
    }
    let mut text = row("chapter", ["requirements", "with code", "with test"].map(String::from));
    for (path, counts) in rows {
        text += &row(path, counts.map(|count| count.to_string()));
    }
    text + &row("total", total.map(|count| count.to_string()))
}

fn row(name: &str, [all, code, tests]: [String; 3]) -> String {
    format!("{name:<36} {all:>12} {code:>12} {tests:>12}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAPTER: &str =
        "# Put\n- **[PUT-1]** A put lands.\n  * **[PUT-2]** Once.\nSee **[PUT-9]**.\n";

    fn counts(files: &[(&str, &str)]) -> (Vec<(String, usize, usize)>, Vec<String>) {
        let report = report(&Tree::of(files));
        let requirements = report.requirements.iter();
        (
            requirements
                .map(|(number, found)| (number.to_string(), found.code, found.tests))
                .collect(),
            report.findings.iter().map(Finding::to_string).collect(),
        )
    }

    #[test]
    fn citations_in_code_and_tests_are_told_apart() {
        let source = "// spec: PUT-1, PUT-2.\nfn a() {}\n\n\
                      // spec: PUT-1\n#[test]\nfn b() {\n    c(); // spec: PUT-2\n}\n\n\
                      #[cfg(test)]\nmod tests {\n    // (spec: PUT-2)\n}\n";
        let files = [("spec/put.md", CHAPTER), ("engine/src/a.rs", source)];
        let want = [("PUT-1".to_owned(), 1, 1), ("PUT-2".to_owned(), 1, 2)];
        assert_eq!(counts(&files), (want.to_vec(), vec![]));
    }

    #[test]
    fn whole_files_can_be_tests() {
        let cites = "//! A. spec: PUT-1 and PUT-2\n";
        for path in ["engine/tests/a.rs", "conformance/src/a.rs", "fuzz/a.rs", "a/tests.rs"] {
            let (requirements, _) = counts(&[("spec/put.md", CHAPTER), (path, cites)]);
            assert_eq!(requirements[1], ("PUT-2".to_owned(), 0, 1), "{path}");
        }
    }

    #[test]
    fn wrong_citations_and_double_definitions_are_found() {
        let files = [
            ("spec/a.md", CHAPTER),
            ("spec/b.md", "\n- **[PUT-2]** Twice.\n"),
            ("engine/src/a.rs", "let a = \"spec: PUT-8\"; // spec: PUT-9\n"),
            ("xtask/src/a.rs", "// spec: PUT-7\n"),
        ];
        let want = [
            "engine/src/a.rs:1: PUT-9 is not a requirement of the spec",
            "spec/b.md:2: PUT-2 is defined already in spec/a.md:3",
        ];
        assert_eq!(counts(&files).1, want);
    }

    #[test]
    fn citations_that_cannot_be_read_are_found() {
        let source = "// spec: PUT-1/PUT-2\n// spec: put\n// (spec: PUT-1) which, PUT-A3\n";
        let files = [("spec/a.md", CHAPTER), ("engine/src/a.rs", source)];
        let want = [
            "engine/src/a.rs:1: `spec: PUT-1/PUT-2` names no requirement",
            "engine/src/a.rs:2: `spec: put` names no requirement",
        ];
        assert_eq!(counts(&files).1, want);
    }

    #[test]
    fn strict_mode_requires_a_test_for_each_requirement() {
        let code = [("spec/a.md", CHAPTER), ("engine/src/a.rs", "// spec: PUT-1, PUT-2\n")];
        assert!(run(&Tree::of(&code), false) && !run(&Tree::of(&code), true));
        let test = [("spec/a.md", CHAPTER), ("engine/tests/a.rs", "// spec: PUT-1, PUT-2\n")];
        assert!(run(&Tree::of(&test), true));
    }

    #[test]
    fn untested_requirements_are_listed_as_ranges() {
        let files = [("spec/a.md", CHAPTER), ("engine/tests/a.rs", "// spec: PUT-1\n")];
        let report = report(&Tree::of(&files));
        assert_eq!(untested(&report)["PUT"], ("spec/a.md", vec![2]));
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7-8");
    }

    #[test]
    fn the_table_sums_up() {
        let files = [("spec/a.md", CHAPTER), ("engine/src/a.rs", "// spec: PUT-1\n")];
        let text = table(&report(&Tree::of(&files)));
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["total", "2", "1", "0"]);
        assert_eq!(text.lines().count(), 3);
    }
}
