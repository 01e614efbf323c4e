//! The dependency graph of Debian packages.
//!
//! A vertex is a package name; versions, architectures and components of one name are merged, and
//! so are their dependencies. An edge leads from a package to each package that it may need:
//!
//! - `Depends` and `Pre-Depends` count, `Recommends` if asked for; version constraints and
//!   architectures do not.
//! - Of alternatives, `a | b`, each gives an edge.
//! - A name that some package bears means that package alone, even if others provide it. A name
//!   that is only provided (a virtual package) gives an edge to each of its providers.
//! - A name that nobody bears or provides gives no edge and is counted as unresolved.
//!
//! A malformed stanza is left out as a whole, and counted. Vertices are numbered in the order of
//! their names, so the order of the lists does not matter.

use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

use anyhow::Result;
use indicatif::ProgressBar;

use crate::graph::{Builder, Dropped, Graph};
use crate::names::Names;
use crate::stanza::{Field, Malformed, Reader, Stanza};

/// The dependencies in package lists, gathered list by list.
pub(crate) struct Packages {
    recommends: bool,
    /// A name may be a package's, a virtual package's or nobody's.
    names: Names,
    /// Whether there is a package of that name, by name id.
    real: Vec<bool>,
    /// Pairs of a package and what it depends on, as name ids.
    dependencies: Vec<(u32, u32)>,
    /// Pairs of a name and a package that provides it, as name ids.
    provisions: Vec<(u32, u32)>,
    summary: Summary,
}

/// Counts of the entries that were read on the way to the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) stanzas: u64,
    pub(crate) malformed: u64,
    /// Where the first malformed stanza ended, and what was wrong with it.
    pub(crate) first_malformed: Option<(u64, Malformed)>,
    /// Dependencies on names that are only provided.
    pub(crate) on_virtual: u64,
    /// Dependencies on names that nobody bears or provides.
    pub(crate) unresolved: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} stanzas; {} dependencies on virtual packages, {} unresolved; {} malformed stanzas",
            self.stanzas, self.on_virtual, self.unresolved, self.malformed
        )?;
        if let Some((line, why)) = self.first_malformed {
            write!(f, " (the first ends in line {line} of its list: {why})")?;
        }
        Ok(())
    }
}

impl Packages {
    /// No packages yet; `recommends` says whether recommendations count as dependencies.
    pub(crate) fn new(recommends: bool) -> Self {
        Self {
            recommends,
            names: Names::default(),
            real: Vec::new(),
            dependencies: Vec::new(),
            provisions: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Adds what one list says; `progress` counts stanzas.
    pub(crate) fn add(&mut self, list: impl BufRead, progress: &ProgressBar) -> Result<()> {
        let mut reader = Reader::new(list);
        while let Some(stanza) = reader.read()? {
            progress.inc(1);
            self.summary.stanzas += 1;
            let stanza = stanza.as_ref().map_err(|&why| why);
            match stanza.and_then(|stanza| Statement::parse(stanza, self.recommends)) {
                Ok(statement) => self.record(&statement)?,
                Err(why) => {
                    self.summary.malformed += 1;
                    let first = &mut self.summary.first_malformed;
                    first.get_or_insert_with(|| (reader.line_number(), why));
                }
            }
        }
        Ok(())
    }

    /// Makes the graph of all packages met.
    pub(crate) fn into_graph(mut self) -> Result<(Graph, Dropped, Summary)> {
        let mut packages: Vec<u32> = (0..self.names.count()).collect();
        packages.retain(|&name| self.is_real(name));
        packages.sort_unstable_by_key(|&name| self.names.get(name));
        let mut builder = Builder::default();
        let mut vertices = HashMap::with_capacity(packages.len());
        for name in packages {
            vertices.insert(name, builder.vertex(self.names.get(name))?);
        }

        self.provisions.sort_unstable();
        self.provisions.dedup();
        for &(package, needed) in &self.dependencies {
            let source = vertices[&package];
            if let Some(&target) = vertices.get(&needed) {
                builder.edge(source, target);
                continue;
            }
            let providers = providers(&self.provisions, needed);
            match providers {
                [] => self.summary.unresolved += 1,
                _ => self.summary.on_virtual += 1,
            }
            for (_, provider) in providers {
                builder.edge(source, vertices[provider]);
            }
        }
        let (graph, dropped) = builder.build();
        Ok((graph, dropped, self.summary))
    }

    fn record(&mut self, statement: &Statement<'_>) -> Result<()> {
        let package = self.names.id(statement.package)?;
        self.real.resize(self.real.len().max(package as usize + 1), false);
        self.real[package as usize] = true;
        for name in &statement.needed {
            self.dependencies.push((package, self.names.id(name)?));
        }
        for name in &statement.provided {
            self.provisions.push((self.names.id(name)?, package));
        }
        Ok(())
    }

    fn is_real(&self, name: u32) -> bool {
        self.real.get(name as usize).copied().unwrap_or(false)
    }
}

/// The dependencies that a stanza states.
struct Statement<'a> {
    package: &'a str,
    needed: Vec<&'a str>,
    provided: Vec<&'a str>,
}

impl<'a> Statement<'a> {
    fn parse(stanza: &'a Stanza, recommends: bool) -> Result<Self, Malformed> {
        let package = stanza.get(Field::Package).trim_ascii();
        if !is_name(package) {
            return Err(Malformed::NoPackage);
        }
        let mut needed = Vec::new();
        relation(stanza, Field::PreDepends, &mut needed)?;
        relation(stanza, Field::Depends, &mut needed)?;
        if recommends {
            relation(stanza, Field::Recommends, &mut needed)?;
        }
        let mut provided = Vec::new();
        relation(stanza, Field::Provides, &mut provided)?;
        Ok(Self { package, needed, provided })
    }
}

/// The pairs in sorted `provisions` that provide `name`.
fn providers(provisions: &[(u32, u32)], name: u32) -> &[(u32, u32)] {
    let start = provisions.partition_point(|&(provided, _)| provided < name);
    let length = provisions[start..].partition_point(|&(provided, _)| provided == name);
    &provisions[start..start + length]
}

/// Appends all names in a relation: `a (>= 1), b:any | c [amd64] <!nocheck>`.
fn relation<'a>(
    stanza: &'a Stanza,
    field: Field,
    names: &mut Vec<&'a str>,
) -> Result<(), Malformed> {
    let text = stanza.get(field).trim_ascii();
    for group in text.split(',').map(str::trim_ascii) {
        // Lists may end in a comma.
        if group.is_empty() {
            continue;
        }
        for alternative in group.split('|') {
            names.push(name_in(alternative).ok_or(Malformed::BadRelation(field))?);
        }
    }
    Ok(())
}

/// The name in one alternative, which may have an architecture, a version and restrictions.
fn name_in(alternative: &str) -> Option<&str> {
    let text = alternative.trim_ascii();
    let is_end = |c: char| c.is_ascii_whitespace() || ":([<".contains(c);
    let (name, mut rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    if !is_name(name) {
        return None;
    }
    if let Some(architecture) = rest.strip_prefix(':') {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        let end = architecture.find(is_end).unwrap_or(architecture.len());
        if end == 0 {
            return None;
        }
        rest = &architecture[end..];
    }
    loop {
        rest = rest.trim_ascii_start();
        let close = match rest.chars().next() {
            None => return Some(name),
            Some('(') => ')',
            Some('[') => ']',
            Some('<') => '>',
            Some(_) => return None,
        };
        rest = rest.split_once(close)?.1;
    }
}

/// Whether `text` has the form of a package name.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lists: &[&str], recommends: bool) -> (Vec<String>, Dropped, Summary) {
        let mut packages = Packages::new(recommends);
        for list in lists {
            packages.add(list.as_bytes(), &ProgressBar::hidden()).unwrap();
        }
        let (graph, dropped, summary) = packages.into_graph().unwrap();
        let mut rows = Vec::new();
        for vertex in 0..graph.vertices() {
            let mut row = format!("{}:", graph.name(vertex));
            for &target in graph.targets(vertex) {
                row = format!("{row} {}", graph.name(target));
            }
            rows.push(row);
        }
        (rows, dropped, summary)
    }

    #[test]
    fn names_in_alternatives() {
        let table = [
            ("libc6", Some("libc6")),
            ("  libc6 (>= 2.34) ", Some("libc6")),
            ("libc6(>=2.34)", Some("libc6")),
            ("python3:any", Some("python3")),
            ("python3:any (<< 3.12)", Some("python3")),
            ("gcc:x86-64 (= 1)", Some("gcc")),
            ("libstdc++6 [amd64 !i386]", Some("libstdc++6")),
            ("debhelper <!nocheck> <!cross>", Some("debhelper")),
            ("a.b-c+d (>= 1:2~rc1-3)[any]<x>", Some("a.b-c+d")),
            ("", None),
            ("(>= 1)", None),
            ("-dash", None),
            ("two words", None),
            ("open (>= 1", None),
            ("open (>= 1]", None),
            ("colon:", None),
            ("${shlibs:Depends}", None),
            ("d\u{e9}j\u{e0}", None),
        ];
        for (text, expected) in table {
            assert_eq!(name_in(text), expected, "{text:?}");
        }
    }

    #[test]
    fn kinds_of_dependencies() {
        let list = "Package: a\nDepends: b (>= 1), c | d:any,\n e\nPre-Depends: f\n\
                    Recommends: g\nSuggests: h\n\nPackage: b\n\nPackage: c\n\nPackage: d\n\n\
                    Package: e\n\nPackage: f\n\nPackage: g\n\nPackage: h\n";
        assert_eq!(read(&[list], false).0[0], "a: b c d e f");
        assert_eq!(read(&[list], true).0[0], "a: b c d e f g");
    }

    #[test]
    fn virtual_packages() {
        let list = "Package: exim\nProvides: mta (= 4), mail\n\nPackage: postfix\nProvides: mta\n\n\
                    Package: cron\nDepends: mta, nothing | exim\n\n\
                    Package: mail\n\nPackage: reader\nDepends: mail\n\n\
                    Package: self\nProvides: me\nDepends: me\n";
        let (rows, dropped, summary) = read(&[list], false);
        let expected =
            ["cron: exim postfix", "exim:", "mail:", "postfix:", "reader: mail", "self:"];
        assert_eq!(rows, expected);
        assert_eq!((summary.on_virtual, summary.unresolved), (2, 1));
        // exim stands twice among what cron needs, and self needs itself.
        assert_eq!(dropped, Dropped { duplicates: 1, self_loops: 1 });
    }

    #[test]
    fn lists_are_merged_in_any_order() {
        let main = "Package: b\nArchitecture: amd64\nDepends: a\n\nPackage: a\n";
        let updates = "Package: b\nArchitecture: i386\nDepends: c\n\nPackage: c\nDepends: a\n";
        let (rows, _, summary) = read(&[main, updates], false);
        assert_eq!(rows, ["a:", "b: a c", "c: a"]);
        assert_eq!(summary.stanzas, 4);
        assert_eq!(read(&[updates, main], false).0, rows);
    }

    #[test]
    fn malformed_stanzas_are_skipped_and_counted() {
        let list = "Package: a\nDepends: b\n\nPackage: b\nDepends: a (\n\nDepends: a\n\n\
                    Package: not a name\n\nPackage: c\nDepends: a\nDepends: a\n\n\
                    Package: d\nDepends: a | \n\nPackage: e\nDepends: a\n";
        let (rows, _, summary) = read(&[list], false);
        assert_eq!(rows, ["a:", "e: a"], "b is malformed, so nothing of it is kept");
        assert_eq!((summary.stanzas, summary.malformed, summary.unresolved), (7, 5, 1));
        assert_eq!(summary.first_malformed, Some((6, Malformed::BadRelation(Field::Depends))));
        assert!(summary.to_string().ends_with("line 6 of its list: Depends is no relation)"));
    }

    #[test]
    fn no_list_gives_the_empty_graph() {
        assert_eq!(read(&[], false), (vec![], Dropped::default(), Summary::default()));
    }
}
