//! Where the graph comes from.

use std::convert::Infallible;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::graph::{Dropped, Graph};
use crate::{debian, edges, lists, report};

/// The graph that ships with this program; see `data/README.md`.
const SMALL: &str = include_str!("../data/debian-xfce.edges");

/// A graph, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The packages in apt's lists.
    Debian,
    /// The graph that ships with this program.
    Small,
    /// A file in the format of `edges`.
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "debian" => Self::Debian,
            "small" => Self::Small,
            path => Self::File(path.into()),
        })
    }
}

/// A graph and what there is to say about how it was read.
pub(crate) struct Loaded {
    pub(crate) graph: Graph,
    pub(crate) dropped: Dropped,
    /// Counts that only package lists have: see `debian::Summary`.
    pub(crate) packages: Option<debian::Summary>,
}

/// Reads the graph; `directory` and `recommends` matter to `Source::Debian`.
pub(crate) fn load(source: &Source, directory: &Path, recommends: bool) -> Result<Loaded> {
    match source {
        Source::Debian => read_lists(directory, recommends),
        Source::Small => {
            let progress = report::bar("reading edges", SMALL.len() as u64);
            let (graph, dropped) = edges::read(SMALL.as_bytes(), &progress)?;
            Ok(Loaded { graph, dropped, packages: None })
        }
        Source::File(path) => read_edges(path).with_context(|| format!("{}", path.display())),
    }
}

fn read_lists(directory: &Path, recommends: bool) -> Result<Loaded> {
    let progress = report::counter("stanzas read");
    let mut packages = debian::Packages::new(recommends);
    for path in lists::find(directory)? {
        lists::open(&path, |list| packages.add(list, &progress))?;
    }
    let (graph, dropped, summary) = packages.into_graph()?;
    Ok(Loaded { graph, dropped, packages: Some(summary) })
}

fn read_edges(path: &Path) -> Result<Loaded> {
    let file = File::open(path)?;
    let progress = report::bar("reading edges", file.metadata()?.len());
    let (graph, dropped) = edges::read(BufReader::new(file), &progress)?;
    Ok(Loaded { graph, dropped, packages: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        assert_eq!("debian".parse(), Ok(Source::Debian));
        assert_eq!("small".parse(), Ok(Source::Small));
        assert_eq!("./small".parse(), Ok(Source::File("./small".into())));
    }

    #[test]
    fn the_small_graph_is_in_order() {
        let loaded = load(&Source::Small, Path::new(""), false).unwrap();
        assert!(loaded.graph.vertices() > 100);
        assert!(loaded.graph.dangling() > 0);
        assert_eq!(loaded.dropped, Dropped::default());
    }
}
