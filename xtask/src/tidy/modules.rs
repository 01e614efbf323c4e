//! Layers within a crate: modules of one parent never import from each other in a cycle, and those
//! at the root of a crate only from layers below their own.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::modules::{Arrow, Modules, Place, cycles};
use crate::rules::{CRATES, CrateRules};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for rules in CRATES {
        let modules = Modules::of(tree, rules.folder);
        let roots = ["lib.rs", "main.rs"].map(|file| format!("{}{file}", rules.folder));
        // A sample of files has no root, and not every module.
        if let Some(root) = tree.sources.iter().find(|source| roots.contains(&source.path)) {
            check_names(rules, &modules.children(&[]), &root.path, findings);
        }
        for (parent, arrows) in modules.arrows() {
            if parent.is_empty() {
                check_layers(rules, &arrows, findings);
                continue;
            }
            for cycle in cycles(&arrows) {
                report(&parent, &cycle, &arrows, findings);
            }
        }
    }
}

/// Each module of the root has its layer, and each name in a layer its module.
fn check_names(
    rules: &CrateRules,
    children: &BTreeSet<&str>,
    root: &str,
    findings: &mut Vec<Finding>,
) {
    let listed: BTreeSet<&str> =
        rules.layers.iter().flat_map(|layer| layer.split_whitespace()).collect();
    for name in children.difference(&listed) {
        findings.push(Finding::new(root, 1, format!("the module `{name}` has no layer")));
    }
    for name in listed.difference(children) {
        findings.push(Finding::new(root, 1, format!("there is no module `{name}` of a layer")));
    }
}

fn check_layers(rules: &CrateRules, arrows: &[Arrow], findings: &mut Vec<Finding>) {
    let layer = |name: &str| {
        rules.layers.iter().position(|layer| layer.split_whitespace().any(|other| other == name))
    };
    for Arrow { from, to, path, line } in arrows {
        if layer(to) >= layer(from) {
            let what = format!("`{from}` imports from `{to}`, which is not below it");
            findings.push(Finding::new(path, *line, what));
        }
    }
}

/// Each import of a cycle: any of them may be the one to change.
fn report(parent: &Place, cycle: &[&str], arrows: &[Arrow], findings: &mut Vec<Finding>) {
    let name = format!("{}: {}", parent.join("::"), cycle.join(" "));
    let is_in = |name: &String| cycle.contains(&name.as_str());
    for arrow in arrows.iter().filter(|arrow| is_in(&arrow.from) && is_in(&arrow.to)) {
        let Arrow { from, to, path, line } = arrow;
        let what = format!("`{from}` imports from `{to}`, which closes the cycle `{name}`");
        findings.push(Finding::new(path, *line, what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn imports_from_below_pass() {
        let files = [
            ("conformance/src/suite.rs", "use crate::world::A;"),
            ("engine/src/link/x.rs", "use super::y::Y;\nuse crate::sync;"),
            ("engine/src/link/y.rs", "#[cfg(test)]\nmod tests { use super::super::x::X; }"),
        ];
        assert_eq!(found(check, &files), Vec::<String>::new());
    }

    #[test]
    fn cycles_fail_at_each_of_their_imports() {
        let files = [
            ("engine/src/link/x.rs", "\nuse super::y::Y;"),
            ("engine/src/link/y/mod.rs", "use crate::link::x::z::X;"),
            ("engine/src/link/x/z.rs", "pub struct X;"),
        ];
        let want = ["x.rs:2: `x` imports from `y`", "y/mod.rs:1: `y` imports from `x`"];
        let want =
            want.map(|what| format!("engine/src/link/{what}, which closes the cycle `link: x y`"));
        assert_eq!(found(check, &files), want);
    }

    #[test]
    fn modules_have_their_layers() {
        let files = [
            ("proto/src/lib.rs", ""),
            ("proto/src/units.rs", "use crate::link::Link;"),
            ("proto/src/link/mod.rs", "use crate::units::Key;"),
            ("proto/src/extra.rs", ""),
        ];
        let findings = found(check, &files);
        let has = |what: &str| findings.iter().any(|finding| finding == what);
        assert!(has("proto/src/units.rs:1: `units` imports from `link`, which is not below it"));
        assert!(has("proto/src/lib.rs:1: the module `extra` has no layer"));
        assert!(has("proto/src/lib.rs:1: there is no module `lane` of a layer"));
    }
}
