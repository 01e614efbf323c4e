//! The modules of a crate, and which of them import from which: between two that share a parent,
//! however deep below them the importing file and the imported item lie.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::rules;
use crate::source::Source;
use crate::tokens;
use crate::tree::Tree;

/// Where a module stands: the names from the crate's root down to it.
pub(crate) type Place = Vec<String>;

/// Re-exports may lead to re-exports, which a program that compiles ends some time.
const REEXPORTS_MAX: usize = 8;

/// An import that crosses from one module to another one of the same parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The file and the line where the item is named.
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// The modules of one crate, without those of tests.
pub(crate) struct Modules<'a> {
    files: BTreeMap<Place, &'a Source>,
    /// The re-exports of each module under names of its own: the paths as they stand there.
    passed_on: BTreeMap<Place, BTreeMap<String, Vec<String>>>,
}

impl<'a> Modules<'a> {
    /// Those below a folder such as `engine/src/`.
    pub(crate) fn of(tree: &'a Tree, folder: &str) -> Self {
        let mut files = BTreeMap::new();
        for source in &tree.sources {
            if let Some(path) = source.path.strip_prefix(folder)
                && !rules::is_test_file(&source.path)
            {
                files.insert(place(path), source);
            }
        }
        let of_tests: Vec<Place> =
            files.iter().flat_map(|(at, source)| tests_in(at, source)).collect();
        files.retain(|place, _| !of_tests.iter().any(|of_tests| place.starts_with(of_tests)));
        let passed_on = files.iter().map(|(place, source)| (place.clone(), passed_on(source)));
        let passed_on = passed_on.collect();
        Self { files, passed_on }
    }

    /// The names of the modules directly below one.
    pub(crate) fn children(&self, parent: &[String]) -> BTreeSet<&str> {
        let below = self.files.keys().filter(|place| place.starts_with(parent));
        below.filter_map(|place| place.get(parent.len())).map(String::as_str).collect()
    }

    /// All arrows, by the parent of the two modules.
    pub(crate) fn arrows(&self) -> BTreeMap<Place, Vec<Arrow>> {
        let mut arrows: BTreeMap<Place, Vec<Arrow>> = BTreeMap::new();
        for (place, source) in &self.files {
            let tests = tokens::test_spans(&source.tokens);
            let is_test =
                |line: usize| tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
            for path in tokens::paths(&source.tokens) {
                let begins = path.segments.first().map(String::as_str);
                if !matches!(begins, Some("crate" | "self" | "super")) || is_test(path.line) {
                    continue;
                }
                let Some(target) = self.resolve(place, &path.segments, 0) else { continue };
                let common = place.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (place.get(common), target.get(common)) {
                    let (from, to, line) = (from.clone(), to.clone(), path.line);
                    let arrow = Arrow { from, to, path: source.path.clone(), line };
                    arrows.entry(place[..common].to_vec()).or_default().push(arrow);
                }
            }
        }
        arrows
    }

    /// The module that holds what a path names, seen from a module.
    fn resolve(&self, from: &[String], segments: &[String], depth: usize) -> Option<Place> {
        let (mut place, mut rest) = self.begin(from, segments)?;
        while let Some((name, after)) = rest.split_first() {
            let child = [&place[..], std::slice::from_ref(name)].concat();
            if self.has(&child) {
                (place, rest) = (child, after);
                continue;
            }
            let onward = self.passed_on.get(&place).and_then(|names| names.get(name));
            if let Some(onward) = onward
                && depth < REEXPORTS_MAX
            {
                let onward = [&onward[..], after].concat();
                return self.resolve(&place, &onward, depth + 1).or(Some(place));
            }
            break;
        }
        Some(place)
    }

    /// Where a path begins, and what of it is left.
    fn begin<'b>(&self, from: &[String], segments: &'b [String]) -> Option<(Place, &'b [String])> {
        let (first, rest) = segments.split_first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), rest)),
            "self" => Some((from.to_vec(), rest)),
            "super" => {
                let supers = segments.iter().take_while(|segment| *segment == "super").count();
                let parent = from.len().checked_sub(supers)?;
                Some((from[..parent].to_vec(), &segments[supers..]))
            }
            _ => {
                let child = [from, std::slice::from_ref(first)].concat();
                self.has(&child).then_some((child, rest))
            }
        }
    }

    /// Whether there is this module, as a file or only as a folder.
    fn has(&self, place: &[String]) -> bool {
        let from = place.to_vec();
        self.files.range(from..).next().is_some_and(|(found, _)| found.starts_with(place))
    }
}

impl fmt::Display for Modules<'_> {
    /// For each module that has several below it: these, from those that import from no other one
    /// upwards, then the imports of each cycle.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (parent, arrows) in self.arrows() {
            let children = self.children(&parent);
            let pairs: BTreeSet<_> = arrows.iter().map(|arrow| (&arrow.from, &arrow.to)).collect();
            let at = [&["crate".to_owned()], &parent[..]].concat().join("::");
            writeln!(f, "{at}: {} modules, {} arrows", children.len(), pairs.len())?;
            for (height, layer) in layers(children, &arrows).iter().enumerate() {
                writeln!(f, "  {height:2}  {}", layer.join(" "))?;
            }
            for cycle in cycles(&arrows) {
                writeln!(f, "  cycle  {}", cycle.join(" "))?;
                let is_in = |name: &String| cycle.contains(&name.as_str());
                for arrow in arrows.iter().filter(|arrow| is_in(&arrow.from) && is_in(&arrow.to)) {
                    let Arrow { from, to, path, line } = arrow;
                    writeln!(f, "    {from} -> {to}  {path}:{line}")?;
                }
            }
        }
        Ok(())
    }
}

/// Modules from the bottom to the top: each stands above all that it imports from. Those of a cycle
/// stand on one layer.
fn layers<'a>(children: BTreeSet<&'a str>, arrows: &'a [Arrow]) -> Vec<Vec<&'a str>> {
    let cycles = cycles(arrows);
    let mut left = children;
    let mut layers = Vec::new();
    while !left.is_empty() {
        let is_below = |name: &str, other: &str| {
            !left.contains(other)
                || cycles.iter().any(|all| all.contains(&name) && all.contains(&other))
        };
        let is_free = |name: &str| {
            arrows.iter().filter(|arrow| arrow.from == name).all(|arrow| is_below(name, &arrow.to))
        };
        // A cycle is free as a whole.
        let is_whole = |name: &str| {
            let cycle = cycles.iter().find(|all| all.contains(&name));
            cycle.map_or_else(|| is_free(name), |all| all.iter().all(|name| is_free(name)))
        };
        let layer: Vec<&str> = left.iter().copied().filter(|name| is_whole(name)).collect();
        left.retain(|name| !layer.contains(name));
        layers.push(layer);
    }
    layers
}

/// The modules that form a cycle with others, each cycle sorted, of arrows between siblings.
pub(crate) fn cycles(arrows: &[Arrow]) -> Vec<Vec<&str>> {
    let mut targets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        targets.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    let mut found: Vec<Vec<&str>> = Vec::new();
    for &name in targets.keys() {
        let is_back = |other: &&str| reached(&targets, other).contains(name);
        let cycle: Vec<&str> = reached(&targets, name).into_iter().filter(is_back).collect();
        if !cycle.is_empty() && !found.contains(&cycle) {
            found.push(cycle);
        }
    }
    found
}

/// The modules that one imports from, directly or by way of others.
fn reached<'a>(targets: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(next) = left.pop() {
        for &target in targets.get(next).into_iter().flatten() {
            if reached.insert(target) {
                left.push(target);
            }
        }
    }
    reached
}

/// The module that a file holds, by its path below the crate's `src`.
fn place(path: &str) -> Place {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut place: Place = path.split('/').map(str::to_owned).collect();
    if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        place.pop();
    }
    place
}

/// The modules of tests that a module declares.
fn tests_in(place: &Place, source: &Source) -> Vec<Place> {
    let names = tokens::test_modules(&source.tokens).into_iter();
    names.map(|name| [&place[..], &[name]].concat()).collect()
}

/// The names that a module re-exports.
fn passed_on(source: &Source) -> BTreeMap<String, Vec<String>> {
    let paths = tokens::paths(&source.tokens).into_iter();
    let named = paths.filter_map(|path| Some((path.public_name?, path.segments)));
    named.filter(|(_, segments)| segments.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        (
            "a/src/lib.rs",
            "mod low;\nmod high;\n#[cfg(test)]\nmod check;\npub use low::deep::Thing;",
        ),
        ("a/src/low/mod.rs", "pub mod deep;\nmod other;\nuse self::other::x;"),
        ("a/src/low/deep.rs", "use super::other::{self, y as z};\npub struct Thing;"),
        ("a/src/low/other.rs", "fn a() { crate::high::b() }\n#[test]\nfn b() { super::deep::c() }"),
        ("a/src/high.rs", "use crate::Thing;\nuse std::fmt;\nfn a() { crate::low::a() }"),
        ("a/src/check.rs", "use crate::high::a;"),
        ("a/src/high/tests.rs", "use crate::low::a;"),
    ];

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let all = Modules::of(&tree, "a/src/").arrows();
        let named = all.iter().flat_map(|(parent, arrows)| {
            arrows.iter().map(move |Arrow { from, to, line, .. }| {
                format!("{} {from} -> {to} {line}", parent.join("::"))
            })
        });
        let mut named: Vec<String> = named.collect();
        named.sort();
        named
    }

    #[test]
    fn arrows_run_between_modules_of_one_parent() {
        let want = [
            " high -> low 1",
            " high -> low 3",
            " low -> high 1",
            "low deep -> other 1",
            "low deep -> other 1",
        ];
        assert_eq!(arrows(FILES), want);
    }

    #[test]
    fn cycles_are_found_with_all_their_modules() {
        let arrow = |from: &str, to: &str| Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            path: String::new(),
            line: 1,
        };
        let pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f"), ("f", "e")];
        let arrows = pairs.map(|(from, to)| arrow(from, to));
        assert_eq!(cycles(&arrows), [vec!["a", "b", "c"], vec!["e", "f"]]);
        assert_eq!(cycles(&arrows[..2]), Vec::<Vec<&str>>::new());
        let all = ["a", "b", "c", "d", "e", "f", "g"].into();
        let want = [vec!["a", "b", "c", "e", "f", "g"], vec!["d"]];
        assert_eq!(layers(all, &arrows), want);
    }
}
