//! The binary interface of the library for C: functions, structures and constants of the header.
//!
//! Programs that were linked with one version of the library run with all later ones of the same
//! number of the interface. So a declaration may be added, but none may go or change.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The list, and in it the number of the interface, in the library's folder.
const LIST: &str = "abi.txt";
const NUMBER: &str = "interface ";
/// Where the number is given to the library: a line `abi=0`.
const BUILD: &str = "scripts/capi.sh";

/// Compares the header with the list; with `write`, adds what is new. False where they differ: a
/// declaration that has gone or changed needs another number of the interface.
pub(super) fn check(root: &Path, folder: &Path, header: &str, write: bool) -> Result<bool> {
    let build = fs::read_to_string(root.join(BUILD)).context(BUILD)?;
    let number = build.lines().find_map(|line| line.strip_prefix("abi="));
    let number = number.with_context(|| format!("{BUILD}: it has no line abi="))?;
    let path = folder.join(LIST);
    let list = fs::read_to_string(&path).unwrap_or_default();
    let found = declarations(header);
    let (said, breaches) = differences(&list, number, &found);
    let is_right = if write { breaches.is_empty() } else { said.is_empty() && breaches.is_empty() };
    breaches.iter().chain(said.iter().filter(|_| !write)).for_each(|line| println!("{line}"));
    if write && is_right {
        let lines: Vec<_> = found.iter().map(String::as_str).collect();
        let text = format!("{NUMBER}{number}\n{}\n", lines.join("\n"));
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(is_right)
}

/// The declarations that the list lacks, and those that have gone although the number is the same.
fn differences(list: &str, number: &str, found: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let (first, rest) = list.split_once('\n').unwrap_or_default();
    let listed: BTreeSet<_> = rest.lines().map(str::to_owned).collect();
    if first.strip_prefix(NUMBER) != Some(number) {
        let text = format!("{LIST}: it is of another interface: cargo xtask header --write");
        return (vec![text], Vec::new());
    }
    let new = found.difference(&listed);
    let said = |line| format!("{LIST}: new, `cargo xtask header --write` adds it: {line}");
    let gone = listed.difference(found);
    let breach = |line| {
        format!("{LIST}: gone or changed; programs need another number in {BUILD}, abi=: {line}")
    };
    (new.map(said).collect(), gone.map(breach).collect())
}

/// The declarations of a header, each in one line, without comments.
fn declarations(header: &str) -> BTreeSet<String> {
    let (mut all, mut code) = (BTreeSet::new(), String::new());
    for line in without_comments(header).lines().map(str::trim) {
        match line {
            _ if line.starts_with("#define ") && line.split_whitespace().count() > 2 => {
                all.insert(words(line));
            }
            _ if line.starts_with('#') || line.starts_with("extern \"C\"") => {}
            _ => {
                code.push_str(line);
                code.push(' ');
            }
        }
    }
    let (mut depth, mut one) = (0, String::new());
    for letter in code.chars() {
        match letter {
            '{' => depth += 1,
            // The end of `extern "C"` closes nothing.
            '}' if depth == 0 => continue,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                all.insert(words(&std::mem::take(&mut one)));
                continue;
            }
            _ => {}
        }
        one.push(letter);
    }
    all
}

fn without_comments(header: &str) -> String {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    text.push_str(rest);
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Words with one space between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "/* Of it. */\n#ifndef A_H\n#define A_H\n#define A_ONE 1\nextern \"C\" {\n\
        typedef struct a {\n    /**\n     * Bytes; all.\n     */\n    int len;\n} a;\n\
        int f(struct a *one,\n      int two);\n}  // extern \"C\"\n#endif /* A_H */\n";

    #[test]
    fn declarations_are_found_without_their_comments() {
        let found: Vec<_> = declarations(HEADER).into_iter().collect();
        let expected =
            ["#define A_ONE 1", "int f(struct a *one, int two)", "typedef struct a { int len; } a"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_declaration_may_come_and_not_go() {
        let found = declarations(HEADER);
        let list =
            "interface 0\n#define A_ONE 1\nint f(struct a *one)\ntypedef struct a { int len; } a";
        let (said, breaches) = differences(list, "0", &found);
        assert!(said.len() == 1 && said[0].ends_with("int f(struct a *one, int two)"));
        assert!(breaches.len() == 1 && breaches[0].ends_with("int f(struct a *one)"));
        for (list, number) in [(list, "1"), ("", "0")] {
            let (said, breaches) = differences(list, number, &found);
            assert!(said.len() == 1 && breaches.is_empty(), "another interface is written anew");
        }
    }
}
