//! The files of the repository that the checks read, and the findings that they report.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::finding::Finding;
use crate::source::Source;

/// A file that is not Rust: a manifest, a script, a chapter of the spec or a page.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files that the checks read, sorted by path.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) sources: Vec<Source>,
    pub(crate) manifests: Vec<Text>,
    pub(crate) scripts: Vec<Text>,
    pub(crate) chapters: Vec<Text>,
    /// The pages of `docs/` and those beside it.
    pub(crate) pages: Vec<Text>,
    /// Rust files that do not even split into tokens.
    pub(crate) broken: Vec<Finding>,
}

impl Tree {
    /// Reads the tree below `root`.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.visit(root, "")?;
        Ok(tree)
    }

    /// Makes a tree of samples: pairs of path and text.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add(path, (*text).to_owned());
        }
        tree
    }

    fn visit(&mut self, root: &Path, folder: &str) -> Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(root.join(folder)).context("reading the tree")? {
            let entry = entry?;
            // A name that is not Unicode is none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            entries.push((name, entry.file_type()?));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            let path = format!("{folder}{name}");
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                self.visit(root, &format!("{path}/"))?;
            } else if kind.is_file() && is_read(&path) {
                let text = fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
                self.add(&path, text);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, text: String) {
        let Some((_, extension)) = path.rsplit_once('.') else { return };
        let list = match extension {
            "rs" => {
                match Source::parse(path, &text) {
                    Ok(source) => self.sources.push(source),
                    Err(finding) => self.broken.push(finding),
                }
                return;
            }
            "toml" => &mut self.manifests,
            "sh" => &mut self.scripts,
            _ if path.starts_with("spec/") => &mut self.chapters,
            _ => &mut self.pages,
        };
        list.push(Text { path: path.to_owned(), text });
    }
}

fn is_read(path: &str) -> bool {
    path.ends_with(".rs")
        || path.ends_with(".sh")
        || path.ends_with("/Cargo.toml")
        || path.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_into_kinds() {
        let tree = Tree::of(&[
            ("a.rs", "fn a() {}"),
            ("b.rs", "fn b( {}"),
            ("c/Cargo.toml", ""),
            ("d.sh", ""),
            ("spec/e.md", ""),
        ]);
        assert_eq!(tree.sources.len(), 1);
        assert_eq!(
            tree.broken,
            [Finding::new("b.rs", 1, "is not Rust: cannot parse string into token stream")]
        );
        assert_eq!((tree.manifests.len(), tree.scripts.len(), tree.chapters.len()), (1, 1, 1));
    }

    #[test]
    fn only_checked_files_are_read() {
        assert!(
            is_read("engine/src/lib.rs") && is_read("spec/put.md") && is_read("proto/Cargo.toml")
        );
        assert!(!is_read("engine/instructions.txt"));
    }
}
