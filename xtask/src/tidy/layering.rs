//! Layering: each package is built only on those below it, and no skin on another.

use crate::finding::Finding;
use crate::rules::{LAYERS, Layer};
use crate::tree::{Text, Tree};

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for manifest in &tree.manifests {
        let layer = LAYERS.iter().find(|layer| manifest.path.starts_with(layer.folder));
        let Some(layer) = layer else { continue };
        for dependency in own_dependencies(manifest) {
            if !is_allowed(layer, &dependency) {
                let name = dependency.name;
                let what = format!("dependency on {name} is against the layering");
                findings.push(Finding::new(&manifest.path, dependency.line, what));
            }
        }
    }
}

/// A dependency on a package of ours.
struct Dependency<'a> {
    name: &'a str,
    line: usize,
    is_for_tests: bool,
}

fn is_allowed(layer: &Layer, dependency: &Dependency<'_>) -> bool {
    layer.uses.contains(&dependency.name)
        || (dependency.is_for_tests && layer.tests_use.contains(&dependency.name))
}

/// Reads the few forms that manifests here take: `[section]` and `name = ...` or `name.key = ...`.
fn own_dependencies(manifest: &Text) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    for (index, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        }
        let is_for_tests = section.contains("dev-dependencies");
        // The workspace's own table names versions; it makes nothing depend on anything.
        if !section.contains("dependencies") || section.starts_with("workspace") {
            continue;
        }
        let name = match line.strip_prefix('[') {
            Some(_) => section.rsplit_once("dependencies.").map_or("", |(_, name)| name),
            None => package_name(line),
        };
        if name == "ayre" || name.starts_with("ayre-") {
            found.push(Dependency { name, line: index + 1, is_for_tests });
        }
    }
    found
}

/// The package that a line names, under its own name even where it is renamed.
fn package_name(line: &str) -> &str {
    if let Some((_, renamed)) = line.split_once("package") {
        let mut quoted = renamed.split('"');
        if let (Some(before), Some(name)) = (quoted.next(), quoted.next())
            && before.trim() == "="
        {
            return name;
        }
    }
    line.split(|c: char| c == '.' || c == '=' || c.is_whitespace()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_layers_pass() {
        let files = [
            ("Cargo.toml", "[workspace.dependencies]\nayre-cli = { path = \"cli\" }\n"),
            (
                "proto/Cargo.toml",
                "[package]\nname = \"ayre-proto\"\n[dependencies]\nserde = \"1\"\n",
            ),
            ("engine/Cargo.toml", "[dependencies]\nayre-proto.workspace = true\n"),
            ("cli/Cargo.toml", "[dependencies]\nayre.workspace = true\n"),
            ("cli/Cargo.toml", "[dev-dependencies]\nayre-conformance = { workspace = true }\n"),
        ];
        assert!(found(check, &files).is_empty());
    }

    #[test]
    fn crossings_fail() {
        let bad = [
            ("proto/Cargo.toml", "[dev-dependencies]\nayre.workspace = true\n"),
            ("engine/Cargo.toml", "[dependencies]\nayre-conformance.workspace = true\n"),
            ("cli/Cargo.toml", "[dependencies]\nayre-pagerank = \"1\"\n"),
            (
                "cli/Cargo.toml",
                "[target.'cfg(unix)'.dependencies]\np={package=\"ayre-pagerank\"}\n",
            ),
            ("examples/a/Cargo.toml", "[build-dependencies]\nayre-cli.workspace = true\n"),
            ("conformance/Cargo.toml", "\n[dependencies.ayre-cli]\nversion = \"1\"\n"),
        ];
        for (path, text) in bad {
            let findings = found(check, &[(path, text)]);
            assert_eq!(findings.len(), 1, "{path}: {text}");
            assert!(findings[0].starts_with(&format!("{path}:2: dependency on ayre")));
        }
    }
}
