//! The page that `ayre perf --report` writes, beside what is printed in the same run.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;

/// A file that goes with its test.
struct Page(PathBuf);

impl Page {
    fn new(name: &str) -> Self {
        let name = format!("ayre-{name}-{}.html", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn perf(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ayre")).arg("perf").args(arguments).output().unwrap()
}

fn words(node: &Node<'_, '_>) -> String {
    node.descendants().filter_map(|part| part.is_text().then(|| part.text()).flatten()).collect()
}

fn inside<'a>(node: &Node<'a, 'a>, name: &str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|part| part.tag_name().name() == name).collect()
}

#[test]
fn the_page_shows_the_printed_figures() {
    let page = Page::new("perf");
    let path = page.0.to_str().unwrap();
    let how = ["--quick", "--reps", "1", "--json", "--op", "put-latency,fetch-add-latency"];
    let output = perf(&[&how[..], &["--size", "8,64", "--report", path]].concat());
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let html = fs::read_to_string(path).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&html, options).unwrap();
    let root = document.root_element();
    let titles: Vec<_> = inside(&root, "figcaption").iter().map(words).collect();
    assert!(titles.iter().any(|title| title == "put-latency, direct"), "{titles:?}");
    assert_eq!(inside(&root, "figure").len(), titles.len());
    // The last table has all figures, in the order in which they were printed.
    let table = *inside(&root, "table").last().unwrap();
    let lines = &inside(&table, "tr")[1..];
    assert_eq!(lines.len(), printed.len());
    for (line, row) in lines.iter().zip(&printed) {
        let cells: Vec<_> = inside(line, "td").iter().map(words).collect();
        assert_eq!(
            (&*cells[0], &*cells[1]),
            (row["op"].as_str().unwrap(), row["path"].as_str().unwrap())
        );
        assert_eq!(cells[3], row["size"].to_string());
        let (told, value) = (cells[4].parse::<f64>().unwrap(), row["value"].as_f64().unwrap());
        assert!((told / value - 1.0).abs() < 0.006, "{told} is told of {row}");
    }
    let facts: Vec<_> = inside(&root, "dt").iter().map(words).collect();
    for fact in ["placement", "kernel", "cores"] {
        assert!(facts.iter().any(|name| name == fact), "{fact} in {facts:?}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let output = perf(&["--quick", "--report", "/nowhere/at/all.html"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("ayre: could not write /nowhere/at/all.html"), "{told}");
}
