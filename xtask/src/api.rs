//! The public interface of the published crates, item by item, against the list of it that is
//! committed: a change to it shows in the review. A type's name has one meaning in its crate.

mod homonyms;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The published crates: their packages and folders.
const CRATES: [(&str, &str); 3] =
    [("ayre", "engine"), ("ayre-proto", "proto"), ("ayre-netsim", "netsim")];

/// The crates whose types are read with their modules. Each machine of `ayre-proto` has a message,
/// a sender or a header of its own, and only Ayre's own crates name them.
const NAMED_BY_MODULE: [&str; 1] = ["ayre-proto"];

/// The list of a crate's public items, in its folder.
const LIST: &str = "api.txt";

/// Compares each crate's public items with its list, and prints what differs; with `write`, writes
/// the lists anew. False where something differs, or where a name means two things.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let mut is_same = true;
    let mut is_clear = true;
    for (package, folder) in CRATES {
        let path = root.join(folder).join(LIST);
        let items = public_items(root, package)?;
        if !NAMED_BY_MODULE.contains(&package) {
            for homonym in homonyms::find(&items) {
                println!("{folder}/{LIST}: {homonym}");
                is_clear = false;
            }
        }
        if write {
            fs::write(&path, &items).with_context(|| path.display().to_string())?;
            continue;
        }
        let listed = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let changes = changes(&listed, &items);
        for change in &changes {
            println!("{folder}/{LIST}: {change}");
        }
        is_same &= changes.is_empty();
    }
    if !is_same {
        println!(
            "the public interface has changed: tell users in CHANGELOG.md, then \
             `cargo xtask api --write`"
        );
    }
    Ok(is_same && is_clear)
}

/// The public items of a package, a line each, sorted. Implementations that the compiler or a
/// blanket gives to every type are left out.
fn public_items(root: &Path, package: &str) -> Result<String> {
    // The description of a crate in JSON is not stable, and the compiler's version is pinned here.
    let done = Command::new("cargo")
        .args(["rustdoc", "--quiet", "--lib", "--all-features", "--package", package])
        .args(["--", "-Zunstable-options", "--output-format=json", "--cap-lints=allow"])
        .env("RUSTDOC", root.join("scripts/rustdoc-json.sh"))
        .current_dir(root)
        .status()
        .context("cargo rustdoc")?;
    ensure!(done.success(), "cargo rustdoc of {package} failed");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let file = format!("doc/{}.json", package.replace('-', "_"));
    let json = root.join(target).join(file);
    let items = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("the public items of {package}"))?;
    Ok(items.to_string())
}

/// Lines that only one of two sorted lists has: `- ` those of the first, `+ ` those of the second.
fn changes(old: &str, new: &str) -> Vec<String> {
    let only = |these: &str, others: &str, mark: &str| -> Vec<String> {
        let others: std::collections::HashSet<&str> = others.lines().collect();
        these
            .lines()
            .filter(|line| !others.contains(line))
            .map(|line| format!("{mark} {line}"))
            .collect()
    };
    let mut changes = only(old, new, "-");
    changes.extend(only(new, old, "+"));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_came_or_went_are_named() {
        assert!(changes("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(changes("a\nb\n", "b\nc\nd\n"), ["- a", "+ c", "+ d"]);
    }
}
